#include "supervisor/cli/receipt-text.h"

#include "supervisor/cli/grant-text.h"

#include <ctime>

namespace praefectus::cli {
namespace {

// Whether to ask once more is the first question after an ending.
kj::StringPtr againText(const attest::Receipt& receipt) {
  switch (receipt.terminal) {
    case Terminal::SUCCEEDED:
      return "done; the same id answers this receipt"_kj;
    case Terminal::OUTCOME_UNKNOWN:
      return "must not be repeated blindly: look first"_kj;
    case Terminal::REJECTED:
    case Terminal::FAILED:
    case Terminal::CANCELLED_BEFORE_EFFECT:
    case Terminal::EXPIRED_BEFORE_EFFECT:
      return receipt.retrySafe ? "safe to ask for again under a new id"_kj
                               : "must not be repeated blindly: look first"_kj;
  }
  return ""_kj;
}

}  // namespace

kj::String timeText(int64_t unixMs) {
  time_t seconds = unixMs / 1000;
  tm parts;
  char text[32];
  gmtime_r(&seconds, &parts);
  strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  auto fraction = kj::str(1000 + unixMs % 1000);
  return kj::str(kj::StringPtr(text), ".", fraction.slice(1), " UTC");
}

Json receiptJson(const attest::Receipt& receipt) {
  Json warnings = Json::array();
  for (auto warning : receipt.warnings) warnings.push_back(nameOf(warning).cStr());
  Json out = {{"operation", json(receipt.operation)},
              {"kind", json(receipt.kind)},
              {"action_class", nameOf(receipt.actionClass).cStr()},
              {"action_hash", hex(bytesOf(receipt.actionHash)).cStr()},
              {"mode", nameOf(receipt.mode).cStr()},
              {"risk", nameOf(receipt.risk).cStr()},
              {"proof", nameOf(receipt.proof).cStr()},
              {"rights", rightsJson(receipt.rights)},
              {"terminal", nameOf(receipt.terminal).cStr()},
              {"effect", nameOf(receipt.effect).cStr()},
              {"retry_safe", receipt.retrySafe},
              {"evidence",
               {{"verdict", nameOf(receipt.evidence.verdict).cStr()},
                {"method", nameOf(receipt.evidence.method).cStr()},
                {"source", nameOf(receipt.evidence.source).cStr()},
                {"units_done", receipt.evidence.unitsDone},
                {"units_asked", receipt.evidence.unitsAsked}}},
              {"context", nameOf(receipt.context).cStr()},
              {"route", nameOf(receipt.route).cStr()},
              {"warnings", warnings},
              {"issuer", json(receipt.grantIssuer)},
              {"key_id", json(receipt.grantKeyId)},
              {"grant_hash", hex(bytesOf(receipt.grantHash)).cStr()},
              {"policy_generation", receipt.policyGeneration},
              {"lease", json(receipt.lease)},
              {"subject", json(receipt.subject)},
              {"session", json(receipt.session)},
              {"turn", json(receipt.turn)},
              {"helper",
               {{"name", json(receipt.helper.name)},
                {"release", json(receipt.helper.release)},
                {"digest", hex(bytesOf(receipt.helper.digest)).cStr()},
                {"generation", receipt.helper.generation}}},
              {"claimed_at_ms", receipt.claimedAt},
              {"settled_at_ms", receipt.settledAt},
              {"ledger", hex(bytesOf(receipt.ledger.key)).cStr()},
              {"incarnation", receipt.ledger.incarnation},
              {"sequence", receipt.sequence},
              {"previous", hex(bytesOf(receipt.previous)).cStr()}};
  KJ_IF_MAYBE (code, receipt.refusal) out["refusal"] = nameOf(*code).cStr();
  return out;
}

kj::String receiptSentence(const attest::Receipt& receipt) {
  auto how = receipt.effect == Effect::VERIFIED
                 ? kj::str(", verified by ", nameOf(receipt.evidence.method))
             : receipt.effect == Effect::EXECUTED_UNVERIFIED ? kj::str(", not verified")
                                                             : kj::str();
  KJ_IF_MAYBE (code, receipt.refusal) how = kj::str(" (", nameOf(*code), ")");
  return kj::str(nameOf(receipt.terminal), how);
}

kj::String receiptText(const attest::Receipt& receipt) {
  Page page;
  page.line("operation", receipt.operation);
  page.line("ended", receiptSentence(receipt));
  page.line("what", kj::str(receipt.kind, " (", nameOf(receipt.actionClass), "), by ",
                            nameOf(receipt.route)));
  page.line("asked as", kj::str(nameOf(receipt.mode), ", ", nameOf(receipt.risk), ", proof ",
                                nameOf(receipt.proof)));
  if (receipt.rights != Rights()) page.line("rights", rightsText(receipt.rights));
  page.line("authority",
            kj::str(receipt.grantIssuer, " key ", receipt.grantKeyId, ", for ", receipt.subject));
  page.line("lease", kj::str(receipt.lease, ", policy generation ", receipt.policyGeneration));
  page.line("session", kj::str(receipt.session, ", turn ", receipt.turn));
  page.line("helper", kj::str(receipt.helper.name, " ", receipt.helper.release, ", generation ",
                              receipt.helper.generation));
  page.line("desktop", nameOf(receipt.context));
  page.line("again", againText(receipt));
  if (receipt.warnings.size() > 0) {
    auto warnings = KJ_MAP(warning, receipt.warnings) { return nameOf(warning); };
    page.line("warnings", kj::strArray(warnings, ", "));
  }
  if (receipt.claimedAt > 0) page.line("claimed", timeText(receipt.claimedAt));
  page.line("settled", timeText(receipt.settledAt));
  page.line("chain", kj::str("position ", receipt.sequence));
  return page.str();
}

}  // namespace praefectus::cli
