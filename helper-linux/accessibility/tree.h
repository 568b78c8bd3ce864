// One window's elements: parents before children, children in their real order. What may be showing
// comes first, breadth first; what is hidden follows, and is the first that a bound leaves out.
//
// An application's item cache gives nearly everything in one call. Where it is not whole (a count
// that does not fit, an order with holes, another layout) the missing part is walked, many calls in
// flight.
#pragma once

#include "helper-linux/accessibility/node.h"

namespace praefectus::accessibility {

struct Tree {
  kj::Vector<kj::Own<Node>> nodes;  // The window is first.
  Cuts cuts;
  bool told = false;  // Its application has told us of its changes since before the reading.
  // The node whose children were asked for; its ancestors stand before it, alone.
  uint32_t below = 0;
};

struct TreeBounds {
  uint32_t elements;
  uint32_t depth;  // Below the node whose children are asked for.
  kj::TimePoint deadline;
};

// Reads the window until the deadline; what was not read by then is missing or carries a fault, and
// `cuts` says so. One object that answers badly costs only itself. The window itself is always
// there; its fault tells whether the application answers at all.
kj::Promise<Tree> readTree(Objects& objects, kj::Timer& timer, const ObjectRef& window,
                           const Toolkit& toolkit, TreeBounds bounds);

// One place on the way from a window to an element.
struct Step {
  ObjectRef ref;
  uint32_t position;
};

// Reads what is below the last step of `way`, which begins with the window, from that element's
// child `first` on. Of an element with too many children to fetch at once as many are asked for one
// by one as the bounds allow.
kj::Promise<Tree> readBelow(Objects& objects, kj::Timer& timer, kj::Array<Step> way, uint32_t first,
                            const Toolkit& toolkit, TreeBounds bounds);

}  // namespace praefectus::accessibility
