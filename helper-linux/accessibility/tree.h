// One window's elements, breadth first: parents before children, children in their real order.
//
// An application's item cache gives nearly everything in one call. Where it is not whole (a count
// that does not fit, an order with holes, another layout) the missing part is walked, many calls in
// flight.
#pragma once

#include "helper-linux/accessibility/node.h"

namespace praefectus::accessibility {

struct Tree {
  kj::Vector<kj::Own<Node>> nodes;  // The window is first. At most bounds::ELEMENTS.
  Cuts cuts;
};

// Reads the window until `deadline`; what was not read by then is missing or carries a fault, and
// `cuts` says so. One object that answers badly costs only itself. The window itself is always
// there; its fault tells whether the application answers at all.
kj::Promise<Tree> readTree(Objects& objects, kj::Timer& timer, const ObjectRef& window,
                           const Toolkit& toolkit, kj::TimePoint deadline);

}  // namespace praefectus::accessibility
