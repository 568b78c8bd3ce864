#include "tests/bench/records.h"

#include "tests/bench/stand.h"

namespace praefectus::bench {

ledger::Claim claimOf(kj::StringPtr operation) {
  ledger::Claim claim;
  claim.operation = kj::str(operation);
  claim.actionHash = attest::random<32>();
  claim.actionClass = ActionClass::SEMANTIC_MUTATION;
  claim.kind = kj::str("set_value");
  claim.grantIssuer = kj::str("host");
  claim.grantKeyId = kj::str("0123456789abcdef");
  claim.grantHash = attest::random<32>();
  claim.lease = kj::str("lease-1");
  claim.subject = kj::str("uid:1000");
  claim.session = kj::str("session-1");
  claim.turn = kj::str("turn-1");
  claim.helper = {kj::str("praefectus-desktop-linux"), kj::str("0.1.0"), Hash{}, 1};
  claim.at = moment().wallMs;
  return claim;
}

ledger::Ending success() {
  ledger::Ending ending;
  ending.terminal = Terminal::SUCCEEDED;
  ending.effect = Effect::VERIFIED;
  ending.route = Route::ACCESSIBILITY;
  ending.evidence = {Verdict::CONFIRMED, Method::VALUE_READBACK, Source::SAME_PROCESS, 1, 1};
  ending.context = ContextState::PRESERVED;
  ending.at = moment().wallMs;
  return ending;
}

}  // namespace praefectus::bench
