#include "supervisor/admission.h"

#include <kj/debug.h>

namespace praefectus {
namespace {

Refusal denied(kj::StringPtr detail) { return {RefusalCode::POLICY_DENIED, detail}; }

bool sameFrame(const kj::Maybe<FrameId>& granted, const kj::Maybe<Action::InFrame>& acted) {
  KJ_IF_MAYBE (frame, granted) {
    KJ_IF_MAYBE (own, acted) return *frame == own->id;
    return false;
  }
  return acted == nullptr;
}

// Who, where and when a lease or a grant is for.
template <typename Body>
Result<Done> matchParty(const Body& body, const Party& party, const Session& session) {
  if (!(body.audience == party.ledger)) return denied("This was signed for another ledger.");
  if (body.subject != party.subject) {
    return denied("This was signed for another subject than this peer.");
  }
  if (body.session != session.id) return denied("This was signed for another session.");
  return Done{};
}

Result<Done> matchTurn(kj::StringPtr turn, const Session& session) {
  if (session.closed) return Refusal{RefusalCode::NO_ACTIVE_SESSION, "The session was closed."_kj};
  KJ_IF_MAYBE (present, session.turn()) {
    if (turn != *present) return denied("This was signed for another turn.");
    return Done{};
  }
  return Refusal{RefusalCode::NO_ACTIVE_TURN, "No turn is active in this session."_kj};
}

}  // namespace

Result<Approved> match(attest::Grant grant, kj::Array<kj::byte> actionBytes, const Party& party,
                       const Session& session) {
  auto ours = matchParty(grant, party, session);
  if (!ours.ok()) return ours.refusal();
  if (!attest::same(grant.actionHash, attest::actionHash(actionBytes))) {
    return denied("The action is not the one that was signed.");
  }
  auto action = decodeAction(actionBytes);
  if (!action.ok()) return action.refusal();
  if (grant.actionClass != action->actionClass()) {
    return denied("The grant is for another class of action.");
  }
  if (grant.risk != action->safety) return denied("The grant is for another risk.");
  if (action->safety == Safety::DESTRUCTIVE && !grant.rights.irreversible) {
    return denied("The grant does not allow what cannot be undone.");
  }
  if (!(grant.target == action->window())) return denied("The grant is for another window.");
  if (!sameFrame(grant.frame, action->frame())) return denied("The grant is for another frame.");
  return Approved{kj::mv(grant), kj::mv(*action)};
}

Result<kj::StringPtr> admit(const attest::Grant& grant, const Session& session,
                            const ledger::Revocations& revocations, const Clock& clock) {
  auto turn = matchTurn(grant.turn, session);
  if (!turn.ok()) return turn.refusal();
  int64_t now = clock.wallMs();
  if (now < grant.notBefore) return denied("The grant is not valid yet.");
  if (now >= grant.expires) return denied("The grant has expired.");
  auto revoked = revocations.check(grant);
  if (!revoked.ok()) return revoked.refusal();
  return session.leases.covering(grant, leaseScope(session, revocations, clock));
}

Result<Done> admitAction(const Action& action, const Session& session) {
  KJ_IF_MAYBE (frame, action.frame()) {
    auto current = session.frames.check(*frame, action.window(), session.generation());
    if (!current.ok()) return current.refusal();
  }
  KJ_IF_MAYBE (helper, session.liveHelper()) {
    if (!helper->offers(action)) {
      return Refusal{RefusalCode::UNSUPPORTED_ACTION,
                     "The helper on this desktop does not offer this action or this proof."_kj};
    }
  }
  return Done{};
}

Result<Done> admitMutation(const Action& action, const Session& session, const TimeKeeper& clock) {
  if (!clock.trusted()) {
    return Refusal{RefusalCode::CLOCK_UNTRUSTED,
                   "The wall clock jumped; mutations wait until it agrees again."_kj};
  }
  if (session.mustObserve) {
    return Refusal{RefusalCode::REOBSERVE_REQUIRED,
                   "The last outcome is unknown; observe first."_kj};
  }
  return admitAction(action, session);
}

Result<Done> admitLease(attest::Lease lease, const Hash& hash, const Party& party, Session& session,
                        const ledger::Revocations& revocations, const Clock& clock) {
  auto ours = matchParty(lease, party, session);
  if (!ours.ok()) return ours.refusal();
  auto turn = matchTurn(lease.turn, session);
  if (!turn.ok()) return turn.refusal();
  return session.leases.open(kj::mv(lease), hash, leaseScope(session, revocations, clock));
}

LeaseScope leaseScope(const Session& session, const ledger::Revocations& revocations,
                      const Clock& clock) {
  return {session.frames, revocations, session.losses(), clock.wallMs()};
}

uint64_t deadlineOf(const Approved& approved, const Clock& clock) {
  auto left = static_cast<uint64_t>(kj::max(approved.grant.expires - clock.wallMs(), int64_t{0}));
  return clock.bootMs() + kj::min(left, uint64_t{approved.action.timeoutMs});
}

}  // namespace praefectus
