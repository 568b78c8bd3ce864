// A verified v2 request as an action of ours.
//
// Where v2 says less than we do, the mapping never guesses: it refuses. What it takes as said:
//
// * invoke: the element's only action, or its only one among activate, click and press;
// * allow_coordinate_fallback: nothing, as there is no fallback here, and no v2 backend had one;
// * snapshot_changed: the strongest proof, since that something changed proves nothing;
// * target_state: an object of 1 to 16 states of schema/desktop.capnp, in snake_case, each true or
//   false ({"checked": true});
// * target_value_hash: the value itself, which the request carries;
// * deadlines: a timeout of what is left, at most two minutes.
#pragma once

#include "attest/v2/authority.h"
#include "attest/v2/fence.h"

namespace praefectus::attest::v2 {

// `seen` is the observation that the request's target is of; a request without a target needs none.
// `nowMs` is Unix time. `blind` are 32 fresh random bytes. The action is within every bound of
// action.capnp. The same request gives another action each time, so whoever may have sent one
// before asks for the operation's status first. Refuses: TIMEOUT when the deadline has passed;
// NO_ACTIVE_FRAME without an observation; what elementOf and pointOf refuse; UNSUPPORTED_ACTION for
// a window or a picture's path (they need to be looked up by someone who sees the desktop), and for
// what we have no word for; the codes of decodeAction.
Result<praefectus::Action> actionOf(const Verified& verified, kj::Maybe<const Observation&> seen,
                                    int64_t nowMs, const Hash& blind);

}  // namespace praefectus::attest::v2
