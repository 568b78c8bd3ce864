// One action as a value: the twin of schema/action.capnp, with the bounds that hold for it.
#pragma once

#include "ipc/driver.h"
#include "ipc/schema/action.capnp.h"

namespace praefectus {

using wire::Verification;

struct ListAct {};
struct ObserveAct {
  bool picture = false;
};

struct Action {
  Hash blind{};
  uint32_t timeoutMs = 0;
  Verification verification = Verification::STRONGEST;
  // What is acted on: nothing (list), a window (observe) or an element (invoke, setValue).
  kj::OneOf<ListAct, ObserveAct, InvokeRequest, SetValueRequest> act;
  WindowRef window;       // All zero for list.
  ElementTarget element;  // Meaningful for mutations; `element.window` equals `window`.

  bool isMutation() const { return act.is<InvokeRequest>() || act.is<SetValueRequest>(); }
  ActionClass actionClass() const;
  kj::StringPtr kind() const;  // "list", "observe", "invoke", "set_value"
};

// The canonical bytes; what the host signs the hash of and what travels.
kj::Array<kj::byte> encode(const Action& action);

// Refuses: MALFORMED and UNKNOWN_FIELD as Canonical does; MALFORMED when a bound of action.capnp is
// broken or the target does not suit the kind; WITHHELD_VALUE_REPLAYED when the text is one of our
// redaction marks (<text:N>, <point>, <value>, <N items>).
Result<Action> decodeAction(Bytes canonical);

// The same checks on a message received from the supervisor (helper side).
Result<Action> readAction(wire::Action::Reader reader);
void write(const Action& action, wire::Action::Builder to);

}  // namespace praefectus
