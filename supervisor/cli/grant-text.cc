#include "supervisor/cli/grant-text.h"

#include "supervisor/cli/action-text.h"

namespace praefectus::cli {
namespace {

constexpr ActionClass CLASSES[] = {
    ActionClass::METADATA_READ,     ActionClass::SCREENSHOT_READ,   ActionClass::POINTER_MUTATION,
    ActionClass::KEYBOARD_MUTATION, ActionClass::SEMANTIC_MUTATION, ActionClass::FILE_MUTATION,
};

kj::StringPtr classText(ActionClass actionClass) {
  switch (actionClass) {
    case ActionClass::METADATA_READ:
      return "read what is shown, as text and structure"_kj;
    case ActionClass::SCREENSHOT_READ:
      return "take pictures of what is shown"_kj;
    case ActionClass::POINTER_MUTATION:
      return "act by a pointer: click, scroll, move, drag"_kj;
    case ActionClass::KEYBOARD_MUTATION:
      return "act by a keyboard: type, press keys, paste"_kj;
    case ActionClass::SEMANTIC_MUTATION:
      return "act through what elements, windows and applications offer"_kj;
    case ActionClass::FILE_MUTATION:
      return "change files"_kj;
  }
  return "unknown"_kj;
}

void describeClass(kj::StringPtr label, ActionClass actionClass, Page& page) {
  page.line(label, kj::str(classText(actionClass), " (", nameOf(actionClass), ")"));
}

kj::StringPtr riskText(Safety risk) {
  switch (risk) {
    case Safety::REVERSIBLE:
      return "reversible: the host says that it can be undone"_kj;
    case Safety::EXTERNAL:
      return "EXTERNAL: it leaves this desktop; it sends, publishes or pays"_kj;
    case Safety::DESTRUCTIVE:
      return "DESTRUCTIVE: it cannot be undone"_kj;
  }
  return "unknown"_kj;
}

// Each right that a person would want to hear of before saying yes.
void describeRights(const Rights& rights, Page& page) {
  if (rights == Rights()) page.line("rights", "none beyond the action itself");
  if (rights.ownPointer) page.line("rights", "a second pointer, which is not yours, may be used");
  if (rights.focus) {
    page.line("CAUTION", "THE FOCUS may move: active window and window order may change");
  }
  if (rights.userPointer) page.line("CAUTION", "YOUR OWN POINTER may be moved");
  if (rights.irreversible) page.line("CAUTION", "the effect may be IRREVERSIBLE");
}

// A supervisor would refuse it; whoever signs should hear so now.
void describeContradiction(Safety risk, const Rights& rights, Page& page) {
  if (risk == Safety::DESTRUCTIVE && !rights.irreversible) {
    page.line("note", "refused as it stands: what is destructive needs the right `irreversible`");
  }
}

int64_t wholeSeconds(int64_t ms) { return ms < 1000 ? ms : ms - ms % 1000; }

enum class Standing { PENDING, CURRENT, EXPIRED };

template <typename Value>
Standing standingOf(const Value& asked, int64_t nowMs) {
  return nowMs < asked.notBefore ? Standing::PENDING
         : nowMs < asked.expires ? Standing::CURRENT
                                 : Standing::EXPIRED;
}

kj::StringPtr nameOf(Standing standing) {
  switch (standing) {
    case Standing::PENDING:
      return "pending"_kj;
    case Standing::CURRENT:
      return "current"_kj;
    case Standing::EXPIRED:
      return "expired"_kj;
  }
  return "unknown"_kj;
}

template <typename Value>
kj::String standingText(const Value& asked, int64_t nowMs) {
  switch (standingOf(asked, nowMs)) {
    case Standing::PENDING:
      return kj::str("not valid yet");
    case Standing::CURRENT:
      return kj::str("valid now, for another ", durationText(wholeSeconds(asked.expires - nowMs)));
    case Standing::EXPIRED:
      return kj::str("no longer valid");
  }
  return kj::str();
}

template <typename Value>
void describeTime(const Value& asked, int64_t nowMs, Page& page) {
  page.line("from", localTimeText(asked.notBefore));
  page.line("until", localTimeText(asked.expires));
  page.line("for", kj::str(durationText(asked.expires - asked.notBefore), "; ",
                           standingText(asked, nowMs)));
}

template <typename Value>
void describeAsker(const Value& asked, Page& page) {
  page.line("asked by", kj::str(asked.issuer, ", key ", asked.keyId));
  page.line("for peer", asked.subject);
}

template <typename Value>
void describeLedger(const Value& asked, Page& page) {
  page.line("ledger", hex(bytesOf(asked.audience.key)));
  page.line("", kj::str("incarnation ", asked.audience.incarnation));
}

template <typename Value>
void describeScope(const Value& asked, Page& page) {
  page.line("session", asked.session);
  page.line("turn", asked.turn);
  page.line("policy", kj::str("generation ", asked.policyGeneration));
  describeLedger(asked, page);
}

template <typename Value>
void describeFrame(const Value& asked, Page& page) {
  KJ_IF_MAYBE (frame, asked.frame) {
    page.line("", kj::str("as seen in frame ", hex(bytesOf(*frame))));
  }
}

// ---- One kind each.

void describeBody(const attest::Grant& grant, int64_t nowMs, Page& page) {
  page.say("A GRANT for one operation.");
  page.gap();
  describeAsker(grant, page);
  page.line("operation", grant.operation);
  page.gap();
  describeClass("allows to", grant.actionClass, page);
  page.line("on", windowText(grant.target));
  describeFrame(grant, page);
  page.line("how often",
            grant.uses == 1 ? kj::str("once") : kj::str("up to ", grant.uses, " times"));
  page.line("risk", riskText(grant.risk));
  describeRights(grant.rights, page);
  describeContradiction(grant.risk, grant.rights, page);
  page.gap();
  describeTime(grant, nowMs, page);
  page.gap();
  describeScope(grant, page);
  page.line("action hash", hex(bytesOf(grant.actionHash)));
  page.line("grant hash", hex(bytesOf(grant.hash)));
}

void describeBody(const attest::Lease& lease, int64_t nowMs, Page& page) {
  page.say("A LEASE for kinds of action in one turn. Each action needs a grant of its own too.");
  page.gap();
  describeAsker(lease, page);
  page.line("lease", lease.lease);
  page.gap();
  kj::StringPtr label = "opens"_kj;
  for (auto actionClass : CLASSES) {
    if (!lease.classes.has(actionClass)) continue;
    describeClass(label, actionClass, page);
    label = ""_kj;
  }
  page.line("on", windowText(lease.target));
  describeFrame(lease, page);
  page.line("how often", "any number of times while it is valid");
  page.gap();
  describeTime(lease, nowMs, page);
  page.gap();
  describeScope(lease, page);
}

void describeBody(const attest::TaskGrant& grant, int64_t nowMs, Page& page) {
  page.say("A TASK GRANT for the steps of one plan, in one folder.");
  page.gap();
  describeAsker(grant, page);
  page.line("task", grant.task);
  page.gap();
  page.line("allows to", kj::str(grant.undo ? "undo an earlier task, in " : "carry out ",
                                 counted(grant.steps.size(), "step")));
  page.line("in",
            kj::str("the folder with inode ", grant.rootInode, " on device ", grant.rootDevice));
  page.line("how often", "each step once");
  page.line("risk", riskText(grant.risk));
  describeRights(grant.rights, page);
  describeContradiction(grant.risk, grant.rights, page);
  page.gap();
  describeTime(grant, nowMs, page);
  page.gap();
  describeScope(grant, page);
  page.line("plan hash", hex(bytesOf(grant.planHash)));
  page.line("grant hash", hex(bytesOf(grant.hash)));
}

void describeBody(const attest::Revocation& revocation, int64_t, Page& page) {
  page.say("A REVOCATION of what its issuer has signed. It allows nothing.");
  page.gap();
  describeAsker(revocation, page);
  page.line("revocation", revocation.revocation);
  page.gap();
  KJ_SWITCH_ONEOF(revocation.what) {
    KJ_CASE_ONEOF(one, attest::RevokedOperation) {
      page.line("takes back", kj::str("the grant for the operation or task ", one.operation));
    }
    KJ_CASE_ONEOF(one, attest::RevokedLease) {
      page.line("takes back", kj::str("the lease ", one.lease));
    }
    KJ_CASE_ONEOF(one, attest::RevokedTurn) {
      page.line("takes back", "every lease and grant of one turn");
      page.line("session", one.session);
      page.line("turn", one.turn);
    }
    KJ_CASE_ONEOF(one, attest::RevokedGeneration) {
      page.line("takes back", kj::str("every lease and grant of this issuer that does not state "
                                      "policy generation ",
                                      one.valid));
    }
  }
  page.line("issued", localTimeText(revocation.issuedAt));
  page.gap();
  describeLedger(revocation, page);
}

template <typename Value>
Json scopeJson(kj::StringPtr kind, const Value& asked) {
  return {{"kind", kind.cStr()},
          {"issuer", json(asked.issuer)},
          {"key_id", json(asked.keyId)},
          {"ledger", hex(bytesOf(asked.audience.key)).cStr()},
          {"incarnation", asked.audience.incarnation},
          {"subject", json(asked.subject)}};
}

// What all but a revocation have.
template <typename Value>
void addTurn(const Value& asked, int64_t nowMs, Json& to) {
  to["session"] = json(asked.session);
  to["turn"] = json(asked.turn);
  to["policy_generation"] = asked.policyGeneration;
  to["not_before_ms"] = asked.notBefore;
  to["expires_ms"] = asked.expires;
  to["standing"] = nameOf(standingOf(asked, nowMs)).cStr();
}

template <typename Value>
void addTarget(const Value& asked, Json& to) {
  to["target"] = windowRefJson(asked.target);
  to["frame"] = nullptr;
  KJ_IF_MAYBE (frame, asked.frame) to["frame"] = hex(bytesOf(*frame)).cStr();
}

Json bodyJson(const attest::Grant& grant, int64_t nowMs) {
  auto out = scopeJson("grant", grant);
  addTurn(grant, nowMs, out);
  addTarget(grant, out);
  out["operation"] = json(grant.operation);
  out["action_class"] = praefectus::nameOf(grant.actionClass).cStr();
  out["action_hash"] = hex(bytesOf(grant.actionHash)).cStr();
  out["risk"] = praefectus::nameOf(grant.risk).cStr();
  out["rights"] = rightsJson(grant.rights);
  out["uses"] = grant.uses;
  out["grant_hash"] = hex(bytesOf(grant.hash)).cStr();
  return out;
}

Json bodyJson(const attest::Lease& lease, int64_t nowMs) {
  auto out = scopeJson("lease", lease);
  addTurn(lease, nowMs, out);
  addTarget(lease, out);
  out["lease"] = json(lease.lease);
  out["action_classes"] = Json::array();
  for (auto actionClass : CLASSES) {
    if (!lease.classes.has(actionClass)) continue;
    out["action_classes"].push_back(praefectus::nameOf(actionClass).cStr());
  }
  return out;
}

Json bodyJson(const attest::TaskGrant& grant, int64_t nowMs) {
  auto out = scopeJson("task_grant", grant);
  addTurn(grant, nowMs, out);
  out["task"] = json(grant.task);
  out["folder"] = {{"device", grant.rootDevice}, {"inode", grant.rootInode}};
  out["plan_hash"] = hex(bytesOf(grant.planHash)).cStr();
  out["steps"] = grant.steps.size();
  out["undo"] = grant.undo;
  out["risk"] = praefectus::nameOf(grant.risk).cStr();
  out["rights"] = rightsJson(grant.rights);
  out["grant_hash"] = hex(bytesOf(grant.hash)).cStr();
  return out;
}

Json bodyJson(const attest::Revocation& revocation, int64_t) {
  auto out = scopeJson("revocation", revocation);
  out["revocation"] = json(revocation.revocation);
  out["issued_at_ms"] = revocation.issuedAt;
  KJ_SWITCH_ONEOF(revocation.what) {
    KJ_CASE_ONEOF(one, attest::RevokedOperation) { out["operation"] = json(one.operation); }
    KJ_CASE_ONEOF(one, attest::RevokedLease) { out["lease"] = json(one.lease); }
    KJ_CASE_ONEOF(one, attest::RevokedTurn) {
      out["session"] = json(one.session);
      out["turn"] = json(one.turn);
    }
    KJ_CASE_ONEOF(one, attest::RevokedGeneration) { out["valid_generation"] = one.valid; }
  }
  return out;
}

}  // namespace

kj::String rightsText(const Rights& rights) {
  kj::Vector<kj::StringPtr> words;
  if (rights.focus) words.add("focus"_kj);
  if (rights.ownPointer) words.add("a pointer of its own"_kj);
  if (rights.userPointer) words.add("the person's pointer"_kj);
  if (rights.irreversible) words.add("irreversible"_kj);
  return kj::strArray(words, ", ");
}

Json rightsJson(const Rights& rights) {
  return {{"focus", rights.focus},
          {"own_pointer", rights.ownPointer},
          {"user_pointer", rights.userPointer},
          {"irreversible", rights.irreversible}};
}

void describe(const Asked& asked, int64_t nowMs, Page& page) {
  KJ_SWITCH_ONEOF(asked) {
    KJ_CASE_ONEOF(body, attest::Grant) { describeBody(body, nowMs, page); }
    KJ_CASE_ONEOF(body, attest::Lease) { describeBody(body, nowMs, page); }
    KJ_CASE_ONEOF(body, attest::TaskGrant) { describeBody(body, nowMs, page); }
    KJ_CASE_ONEOF(body, attest::Revocation) { describeBody(body, nowMs, page); }
  }
}

Json askedJson(const Asked& asked, int64_t nowMs) {
  KJ_SWITCH_ONEOF(asked) {
    KJ_CASE_ONEOF(body, attest::Grant) { return bodyJson(body, nowMs); }
    KJ_CASE_ONEOF(body, attest::Lease) { return bodyJson(body, nowMs); }
    KJ_CASE_ONEOF(body, attest::TaskGrant) { return bodyJson(body, nowMs); }
    KJ_CASE_ONEOF(body, attest::Revocation) { return bodyJson(body, nowMs); }
  }
  return nullptr;
}

}  // namespace praefectus::cli
