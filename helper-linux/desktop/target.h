// An observed frame with its live objects, and the one check that stands between an element of it
// and an effect on that element.
#pragma once

#include "helper-linux/accessibility/node.h"
#include "helper-linux/desktop/link.h"
#include "ipc/bounds.h"
#include "ipc/driver.h"

namespace praefectus::desktop {

// What is kept of an element: enough to find the live object and to know it again.
struct Record {
  accessibility::ObjectRef ref;
  uint32_t parent = 0;
  uint32_t position = 0;
  Hash observed{};    // The digest that the host was given, and repeats.
  Hash digest{};      // The same, of the object that stands for it now.
  Hash recognized{};  // The part of it that a person would know.
  Hash appearance{};  // Everything that is shown of it; tells whether it changed from frame to
                      // frame.
  kj::String domId;
  bool complete = false;  // All of its children were read.
  bool isPage = false;
  bool foundAgain = false;
};

// The document that a frame shows.
struct PageRecord {
  accessibility::ObjectRef ref;
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
  kj::Maybe<PageRecord> page;
  uint32_t elements = bounds::ELEMENTS, depth = bounds::DEPTH;  // As they were asked for.
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

// Asks the live object and its ancestors, all at once. Never throws. `frame` outlives the promise.
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

// Whether an element whose object has died may be looked for. Only where the application itself
// gives elements an identity that outlives their objects: a web page's ids.
enum class Refind { NEVER, ONCE };

// Whether the live object of an observed element answers, and is still in its window. Refuses:
// NOT_ANSWERING, TARGET_MISSING.
Result<Done> checkThere(const Look& look);
// Whether it is still what was observed, by its digest. Refuses: TARGET_CHANGED.
Result<Done> checkSame(const ObservedFrame& frame, uint32_t element, const Look& look);

class TargetCheck {
 public:
  TargetCheck(Link& link, kj::Timer& timer) : link(link), timer(timer) {}

  // All of it, in one place: frame, process and its start, window and its place, live object,
  // ancestry, page, identity, state, and what is asked of it. Used by `prepare` and again by
  // `perform`. Changes nothing. `asked` is an action on an element, of a kind that this helper
  // offers, and outlives the promise, as does `frame`. When an element was found again, the frame's
  // record of it names the new object from then on.
  // Refuses: STALE_FRAME, TARGET_MISSING, TARGET_CHANGED, TARGET_HIDDEN, TARGET_OCCLUDED,
  // TARGET_DISABLED, SENSITIVITY_BLOCKED, UNSUPPORTED_ACTION, AMBIGUOUS_TARGET, MALFORMED,
  // NOT_ANSWERING, PAGE_TARGET_CHANGED, NO_DISPLAY, NO_ACCESSIBILITY_BUS.
  kj::Promise<Result<kj::Own<CheckedTarget>>> check(ObservedFrame& frame, const Action& asked,
                                                    Refind refind);

  // The window's side alone, for readback.
  WindowSight windowSight(const WindowRef& window);

 private:
  Result<WindowSight> checkWindow(const ObservedFrame& frame);
  kj::Promise<Result<Done>> checkPage(ObservedFrame& frame);
  kj::Promise<Result<kj::Own<CheckedTarget>>> checkElement(ObservedFrame& frame,
                                                           const Action& asked, Refind refind);
  // Looks once through the window for the element with the lost one's id, and gives its record the
  // new object. Refuses: TARGET_MISSING, TARGET_CHANGED, AMBIGUOUS_TARGET.
  kj::Promise<Result<Done>> findAgain(ObservedFrame& frame, uint32_t element);

  Link& link;
  kj::Timer& timer;
};

}  // namespace praefectus::desktop
