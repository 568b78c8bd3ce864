#include "supervisor/admission.h"

#include <kj/debug.h>

namespace praefectus {
namespace {

Refusal denied(kj::StringPtr detail) { return {RefusalCode::POLICY_DENIED, detail}; }

}  // namespace

Result<Approved> match(attest::Grant grant, kj::Array<kj::byte> actionBytes, const LedgerId& ledger,
                       kj::StringPtr subject, const Session& session) {
  if (!(grant.audience == ledger)) return denied("The grant is for another ledger.");
  if (grant.subject != subject) return denied("The grant is for another subject than this peer.");
  if (grant.session != session.id) return denied("The grant is for another session.");
  if (!attest::same(grant.actionHash, attest::actionHash(actionBytes))) {
    return denied("The action is not the one that was signed.");
  }
  auto action = decodeAction(actionBytes);
  if (!action.ok()) return action.refusal();
  if (grant.actionClass != action->actionClass()) {
    return denied("The grant is for another class of action.");
  }
  if (!(grant.target == action->window)) return denied("The grant is for another window.");
  return Approved{kj::mv(grant), kj::mv(*action)};
}

Result<Done> admit(const Approved& approved, const Session& session, const Clock& clock) {
  if (session.closed) return Refusal{RefusalCode::NO_ACTIVE_SESSION, "The session was closed."_kj};
  if (approved.grant.turn != session.turn) return denied("The grant is for another turn.");
  int64_t now = clock.wallMs();
  if (now < approved.grant.notBefore) return denied("The grant is not valid yet.");
  if (now >= approved.grant.expires) return denied("The grant has expired.");
  return Done{};
}

Result<Done> admitMutation(const Approved& approved, const Session& session) {
  if (session.mustObserve) {
    return Refusal{RefusalCode::REOBSERVE_REQUIRED,
                   "The last outcome is unknown; observe first."_kj};
  }
  return session.frames.check(approved.action.element, session.generation());
}

uint64_t deadlineOf(const Approved& approved, const Clock& clock) {
  auto left = static_cast<uint64_t>(kj::max(approved.grant.expires - clock.wallMs(), int64_t{0}));
  return clock.bootMs() + kj::min(left, uint64_t{approved.action.timeoutMs});
}

}  // namespace praefectus
