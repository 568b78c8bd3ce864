// An observed frame with its live objects, and the one check that stands between an element of it
// and an effect on that element.
#pragma once

#include "helper-linux/accessibility/node.h"
#include "helper-linux/desktop/link.h"
#include "ipc/driver.h"

namespace praefectus::desktop {

// What is kept of an element: enough to find the live object and to know it again.
struct Record {
  accessibility::ObjectRef ref;
  uint32_t parent = 0;
  uint32_t position = 0;
  Hash digest{};
};

// One observation's live side. Counted: a prepared action holds on to it, and learns by `current`
// when a later observation has replaced it.
struct ObservedFrame final : public kj::Refcounted {
  FrameId id{};
  uint64_t epoch = 0;
  WindowRef window;
  Rect bounds;
  Hash topology{};
  accessibility::Toolkit toolkit;
  kj::Vector<Record> records;
  kj::Own<Bus> bus;  // Object names mean something only on the bus they were read from.
  bool current = true;
};

// The element as it is now.
struct Look {
  accessibility::Node node;
  bool silent = false;    // The application did not answer.
  bool attached = false;  // It answered, and is still in the window it was observed in.
  bool inPlace = false;   // It is its parent's child at the recorded position.
  kj::Vector<uint32_t> ancestorRoles;
};

// Asks the live object and its ancestors, all at once. Never throws.
kj::Promise<kj::Own<Look>> lookAt(ObservedFrame& frame, uint32_t element, kj::TimePoint deadline);

// The window's side of it.
struct WindowSight {
  bool present = false;
  bool running = false;          // The process, and the display that says which windows it has.
  kj::Vector<uint64_t> windows;  // Of the same process.
};

// A target that passed every check, as it was at that moment.
struct CheckedTarget {
  kj::Own<Look> look;
  WindowSight window;
};

class TargetCheck {
 public:
  TargetCheck(Link& link, kj::Timer& timer) : link(link), timer(timer) {}

  // All of it, in one place: frame, process and its start, window and its place, live object,
  // ancestry, identity, state, and what is asked of it. Used by `prepare` and again by `perform`.
  // Changes nothing. `asked` is an action on an element, of a kind that this helper offers, and
  // outlives the promise.
  // Refuses: STALE_FRAME, TARGET_MISSING, TARGET_CHANGED, TARGET_HIDDEN, TARGET_OCCLUDED,
  // TARGET_DISABLED, SENSITIVITY_BLOCKED, UNSUPPORTED_ACTION, AMBIGUOUS_TARGET, MALFORMED,
  // NOT_ANSWERING, NO_DISPLAY, NO_ACCESSIBILITY_BUS.
  kj::Promise<Result<kj::Own<CheckedTarget>>> check(ObservedFrame& frame, const Action& asked);

  // The window's side alone, for readback.
  WindowSight windowSight(const WindowRef& window);

 private:
  Result<WindowSight> checkWindow(const ObservedFrame& frame);

  Link& link;
  kj::Timer& timer;
};

}  // namespace praefectus::desktop
