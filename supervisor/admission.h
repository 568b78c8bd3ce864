// Admission: does this grant allow this submission, here, to this peer, now?
//
// Two kinds of facts. Some never age (who, where, which action): a submission that fails them is
// not the one that was signed, whenever it comes. Others age (time, turn, frame, session state):
// they are asked only of an operation that is new, so that a recorded answer can be had again at
// any time.
#pragma once

#include "attest/signed.h"
#include "ipc/action.h"
#include "supervisor/session.h"

namespace praefectus {

// Signed, and matched with the action that came with it.
struct Approved {
  attest::Grant grant;
  Action action;
};

// Refuses POLICY_DENIED when a field of the grant differs from the ledger, the peer, the session,
// the action's hash, its class or its target.
Result<Approved> match(attest::Grant grant, kj::Array<kj::byte> actionBytes, const LedgerId& ledger,
                       kj::StringPtr subject, const Session& session);

// The facts that age, for any operation. Refuses POLICY_DENIED or NO_ACTIVE_SESSION.
Result<Done> admit(const Approved& approved, const Session& session, const Clock& clock);

// Those that concern mutations besides. Refuses REOBSERVE_REQUIRED and what Frames::check refuses.
Result<Done> admitMutation(const Approved& approved, const Session& session);

// When the operation must be over: the action's timeout or the grant's expiry, whichever is first,
// as milliseconds since boot.
uint64_t deadlineOf(const Approved& approved, const Clock& clock);

}  // namespace praefectus
