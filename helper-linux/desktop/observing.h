// One observation: from a window's name to its elements, and the frame that remembers them.
#pragma once

#include "helper-linux/accessibility/tree.h"
#include "helper-linux/desktop/matching.h"
#include "helper-linux/desktop/target.h"

namespace praefectus::desktop {

class Observing {
 public:
  Observing(Link& link, kj::Timer& timer, WindowRef window, FrameId id, uint64_t epoch,
            bool picture);
  KJ_DISALLOW_COPY(Observing);

  // At most bounds::WALK for the tree, after bounds::CALL to find it. Once.
  kj::Promise<Result<Observation>> run();
  // The live side of a successful run.
  kj::Own<ObservedFrame> takeFrame() { return kj::mv(frame); }

 private:
  Result<Done> findWindow();
  kj::Promise<Result<Done>> findAccessible();
  Result<Done> choose(kj::Maybe<Applications> found);
  kj::Promise<void> prepareCamera();
  Result<Observation> describe(accessibility::Tree tree);
  Result<Done> takePicture(Observation& out);
  Element elementOf(const accessibility::Tree& tree, size_t index, const Mapping& mapping);

  Link& link;
  kj::Timer& timer;
  WindowRef window;
  bool picture;
  kj::TimePoint begun;
  kj::Own<x11::Display> display;
  kj::Vector<x11::TopLevel> tops;
  x11::TopLevel* top = nullptr;
  kj::Own<ObservedFrame> frame;
  accessibility::ObjectRef root;
};

}  // namespace praefectus::desktop
