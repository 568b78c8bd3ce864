// Admission: does this grant allow this submission, here, to this peer, now?
//
// Two kinds of facts. Some never age (who, where, which action): a submission that fails them is
// not the one that was signed, whenever it comes. Others age (time, turn, lease, revocation, frame,
// session state): they are asked only of an operation that is new, so that a recorded answer can be
// had again at any time.
#pragma once

#include "supervisor/session.h"
#include "supervisor/time-keeper.h"

namespace praefectus {

// Signed, and matched with the action that came with it.
struct Approved {
  attest::Grant grant;
  Action action;
};

// Whom a lease or a grant has to be for.
struct Party {
  const LedgerId& ledger;
  kj::StringPtr subject;  // The connected peer.
};

// Refuses POLICY_DENIED when a field of the grant differs from the ledger, the peer, the session,
// the action's hash, class, risk, target or frame, or when a right that the action needs is not
// given.
Result<Approved> match(attest::Grant grant, kj::Array<kj::byte> actionBytes, const Party& party,
                       const Session& session);

// The facts that age, for any operation. Answers the id of the lease that covers it.
// Refuses NO_ACTIVE_SESSION, NO_ACTIVE_TURN, POLICY_DENIED, REVOKED, LEASE_MISSING.
Result<kj::StringPtr> admit(const attest::Grant& grant, const Session& session,
                            const ledger::Revocations& revocations, const Clock& clock);

// What it is to be done on, and by whom. Refuses UNSUPPORTED_ACTION when the session's helper does
// not offer the kind or the proof, and what Frames::check refuses.
Result<Done> admitAction(const Action& action, const Session& session);

// The facts that concern mutations besides. Refuses CLOCK_UNTRUSTED, REOBSERVE_REQUIRED, and as
// admitAction.
Result<Done> admitMutation(const Action& action, const Session& session, const TimeKeeper& clock);

// Opens a lease in the session. Refuses POLICY_DENIED when it is for somebody else, NO_ACTIVE_TURN,
// and as Leases::open.
Result<Done> admitLease(attest::Lease lease, const Hash& hash, const Party& party, Session& session,
                        const ledger::Revocations& revocations, const Clock& clock);

LeaseScope leaseScope(const Session& session, const ledger::Revocations& revocations,
                      const Clock& clock);

// When the operation must be over: the action's timeout or the grant's expiry, whichever is first,
// as milliseconds since boot.
uint64_t deadlineOf(const Approved& approved, const Clock& clock);

}  // namespace praefectus
