// One observation: from a window's name to its elements, and the frame that remembers them.
#pragma once

#include "helper-linux/accessibility/tree.h"
#include "helper-linux/desktop/matching.h"
#include "helper-linux/desktop/target.h"

namespace praefectus::desktop {

class Observing {
 public:
  // `before` is the session's frame until now: what `below` starts from, and what changes are told
  // against when it shows the same window.
  Observing(Link& link, kj::Timer& timer, WindowRef window, FrameId id, uint64_t epoch,
            ObserveAct request, kj::Maybe<kj::Own<ObservedFrame>> before);
  KJ_DISALLOW_COPY(Observing);

  // At most the request's time for the tree, within bounds::CALL more from the beginning;
  // connecting to the bus, the lock and the page's address come on top of that. Once.
  kj::Promise<Result<Observation>> run();
  // The live side of a successful run.
  kj::Own<ObservedFrame> takeFrame() { return kj::mv(frame); }

 private:
  Result<Done> findWindow();
  kj::Promise<Result<Observation>> observe();
  kj::Promise<Result<Observation>> observeWhole();
  kj::Maybe<kj::Vector<Rect>> drawnSince();
  kj::Promise<Result<Observation>> observeFull();
  kj::Promise<Result<Observation>> observeBelow(const Below& below);
  kj::Promise<Result<Done>> findAccessible();
  Result<Done> choose(kj::Maybe<Applications> found);
  kj::Promise<accessibility::Tree> readUntilPage();
  kj::Promise<void> prepareCamera();

  // Tells what the tree shows, with its page and picture.
  kj::Promise<Result<Observation>> show(const accessibility::Tree& tree);
  Result<Observation> describe(const accessibility::Tree& tree);
  Result<Done> takePicture(Observation& out);
  Element elementOf(const accessibility::Tree& tree, size_t index, Observation& out);
  void describeChanges(Observation& out);
  Content contentOf(const accessibility::Tree& tree) const;
  accessibility::TreeBounds treeBounds();

  Link& link;
  kj::Timer& timer;
  WindowRef window;
  ObserveAct request;
  kj::Maybe<kj::Own<ObservedFrame>> before;
  kj::TimePoint begun;
  kj::Own<x11::Display> display;
  kj::Vector<x11::TopLevel> tops;
  x11::TopLevel* top = nullptr;
  Rect screen;
  kj::Vector<Monitor> monitors;
  kj::Own<ObservedFrame> frame;
  accessibility::ObjectRef root;
  kj::Maybe<kj::Own<accessibility::Tree>> read;  // Where the mirror does not keep it.
  kj::Maybe<uint32_t> page;                      // The tree's document, and its address.
  kj::String url;
  Mapping mapping;
};

}  // namespace praefectus::desktop
