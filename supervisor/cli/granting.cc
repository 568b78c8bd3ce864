// grant show: what a grant, lease, task grant or revocation says, before it is signed as well as
// after. It shows and checks; it signs nothing and hands nothing on.
#include "supervisor/cli/action-text.h"
#include "supervisor/cli/commands.h"
#include "supervisor/cli/files.h"
#include "supervisor/cli/grant-text.h"
#include "supervisor/cli/moment.h"

#include "ipc/bounds.h"
#include "ipc/canonical.h"

namespace praefectus::cli {
namespace {

// An envelope needs less than this beside its body; its own reader knows exactly.
constexpr size_t FILE_BYTES = 2 * bounds::SIGNED_BODY_BYTES;

enum class Signing { ABSENT, UNCHECKED, HOLDS, BROKEN };

struct Document {
  Asked asked;
  kj::StringPtr label;                   // What a signature over a body of this kind is made under.
  kj::Maybe<attest::Envelope> envelope;  // As it came; nothing around a bare body.
};

// The value as the supervisor's own reader finds it, every bound included. That reader wants a
// signature first, so a key that nobody has seen before and nobody will again makes one: it proves
// nothing, and what the file's own signature is worth is asked elsewhere.
template <typename Open>
auto readUnproven(kj::StringPtr label, attest::Envelope& envelope, Open&& open) {
  auto key = attest::SigningKey::generate();
  envelope.signature = key.sign(label, envelope.body);
  attest::KeyRing ring;
  ring.add(attest::Purpose::ISSUER, envelope.issuer, envelope.keyId, key.publicKey());
  return open(ring, envelope);
}

// Finds out which of the kinds a body is of. No body is well formed as two of them.
class Kinds {
 public:
  // `envelope` is null for a bare body, which names its key itself.
  Kinds(Bytes body, const attest::Envelope* envelope) : body(body), envelope(envelope) {}

  template <typename Wire, typename Open>
  void tryAs(kj::StringPtr label, Open&& open) {
    if (found != nullptr) return;
    auto parsed = Canonical<Wire>::parse(body, bounds::SIGNED_BODY_BYTES);
    if (!parsed.ok()) return;
    auto reader = parsed->get();
    attest::Envelope unproven{
        kj::heapArray<kj::byte>(body),
        kj::str(envelope == nullptr ? reader.getIssuer() : kj::StringPtr(envelope->issuer)),
        kj::str(envelope == nullptr ? reader.getKeyId() : kj::StringPtr(envelope->keyId)),
        {}};
    if (!isIdentifier(unproven.issuer) || !isIdentifier(unproven.keyId)) {
      refuse({RefusalCode::MALFORMED, "The body does not name its issuer and key."_kj});
      return;
    }
    auto opened = readUnproven(label, unproven, open);
    if (!opened.ok()) return refuse(opened.refusal());
    found = Document{Asked(kj::mv(*opened)), label, nullptr};
  }

  Document orFail() {
    KJ_IF_MAYBE (document, found) return kj::mv(*document);
    KJ_IF_MAYBE (refusal, refused) throw failure(*refusal);
    throw Failure{ExitCode::FAILED, kj::str("malformed"),
                  kj::str("the file holds no grant, lease, task grant or revocation, neither "
                          "signed nor bare"),
                  kj::str("`praefectus verify FILE` checks receipts.")};
  }

 private:
  void refuse(Refusal why) {
    if (refused == nullptr) refused = why;
  }

  Bytes body;
  const attest::Envelope* envelope;
  kj::Maybe<Document> found;
  kj::Maybe<Refusal> refused;  // By the first kind whose shape the body has.
};

Document readDocument(Bytes file) {
  kj::Maybe<attest::Envelope> envelope;
  if (Canonical<wire::Signed>::parse(file, FILE_BYTES).ok()) {
    envelope = orFail(attest::envelopeFrom(file));
  }
  const attest::Envelope* around = nullptr;
  KJ_IF_MAYBE (there, envelope) around = there;
  Kinds kinds(around == nullptr ? file : Bytes(around->body), around);
  kinds.tryAs<wire::Grant>(attest::GRANT_LABEL, attest::openGrant);
  kinds.tryAs<wire::TaskGrant>(attest::TASK_GRANT_LABEL, attest::openTaskGrant);
  kinds.tryAs<wire::Revocation>(attest::REVOCATION_LABEL, attest::openRevocation);
  kinds.tryAs<wire::Lease>(attest::LEASE_LABEL, attest::openLease);
  auto document = kinds.orFail();
  document.envelope = kj::mv(envelope);
  return document;
}

Signing signingOf(const Document& document, const kj::Maybe<attest::PublicKey>& trusted) {
  KJ_IF_MAYBE (envelope, document.envelope) {
    KJ_IF_MAYBE (key, trusted) {
      bool holds = attest::verify(*key, document.label, envelope->body, envelope->signature);
      return holds ? Signing::HOLDS : Signing::BROKEN;
    }
    return Signing::UNCHECKED;
  }
  return Signing::ABSENT;
}

kj::StringPtr nameOf(Signing signing) {
  switch (signing) {
    case Signing::ABSENT:
      return "absent"_kj;
    case Signing::UNCHECKED:
      return "not_checked"_kj;
    case Signing::HOLDS:
      return "holds"_kj;
    case Signing::BROKEN:
      return "broken"_kj;
  }
  return "unknown"_kj;
}

kj::StringPtr textOf(Signing signing) {
  switch (signing) {
    case Signing::ABSENT:
      return "none: this is not signed, and allows nothing yet"_kj;
    case Signing::UNCHECKED:
      return "not checked: give the issuer's public key with --key"_kj;
    case Signing::HOLDS:
      return "holds, for the key you gave"_kj;
    case Signing::BROKEN:
      return "DOES NOT HOLD for the key you gave: nobody with that key said this"_kj;
  }
  return ""_kj;
}

bool sameFrame(const kj::Maybe<FrameId>& stated, const Action& action) {
  KJ_IF_MAYBE (inFrame, action.frame()) {
    KJ_IF_MAYBE (frame, stated) return *frame == inFrame->id;
    return false;
  }
  return stated == nullptr;
}

// Whatever is shown beside a grant must be what it allows, so one that differs is not shown at all.
Action actionFor(const Asked& asked, kj::StringPtr path) {
  auto bytes = readFile(path, bounds::ACTION_BYTES);
  if (!asked.is<attest::Grant>()) throw usage(kj::str("only a grant is for one action"));
  auto& grant = asked.get<attest::Grant>();
  auto action = orFail(decodeAction(bytes));
  auto differs = [](kj::StringPtr how) {
    return Failure{ExitCode::FAILED, kj::str("action_differs"), kj::str(how),
                   kj::str("Do not sign, and do not rely on this grant.")};
  };
  if (!attest::same(attest::actionHash(bytes), grant.actionHash)) {
    throw differs("the action is not the one in the grant"_kj);
  }
  // The hash holds, and still the grant may say something milder about it than it is.
  if (action.actionClass() != grant.actionClass || action.safety != grant.risk ||
      !(action.window() == grant.target) || !sameFrame(grant.frame, action)) {
    throw differs("the grant states another class, risk or target than its own action has"_kj);
  }
  return action;
}

}  // namespace

Report grantShow(Arguments arguments) {
  constexpr Options::Spec SPECS[] = {{"--action"_kj, true}, {"--key"_kj, true}};
  Options options(arguments, kj::arrayPtr(SPECS, 2), 1);
  if (options.positional().size() != 1) throw usage(kj::str("which file?"));
  auto trusted = trustedKey(options);
  auto document = readDocument(readFile(options.positional()[0], FILE_BYTES));
  auto signing = signingOf(document, trusted);
  if (signing == Signing::ABSENT && trusted != nullptr) {
    throw Failure{ExitCode::FAILED, kj::str("unsigned"),
                  kj::str("the file is not signed: there is no signature to check with a key"),
                  kj::str()};
  }

  Report report;
  Page page;
  auto now = momentNow().wallMs;
  describe(document.asked, now, page);
  report.data = askedJson(document.asked, now);
  KJ_IF_MAYBE (path, options.value("--action")) {
    auto action = actionFor(document.asked, *path);
    page.gap();
    page.say("The action, which is the one in the grant:");
    page.gap();
    describe(action, page);
    report.data["action"] = actionJson(action);
  } else if (document.asked.is<attest::Grant>()) {
    page.gap();
    page.say("What exactly is done is in the action; --action FILE shows it.");
  }
  page.gap();
  page.line("signature", textOf(signing));
  report.data["signature"] = nameOf(signing).cStr();
  report.text = page.str();
  if (signing == Signing::BROKEN) {
    report.ok = false;
    report.code = kj::str("signature_broken");
    report.message = kj::str("the signature does not hold for the key that was given");
    report.hint = kj::str("Do not rely on it.");
  }
  return report;
}

}  // namespace praefectus::cli
