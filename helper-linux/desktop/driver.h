// The Linux desktop as a Driver: X11 for windows, AT-SPI 2 for what is in them.
//
// It reads through Link, remembers one frame at a time, and hands out Effects. It never moves the
// pointer, sets the focus, or raises a window.
#pragma once

#include "helper-linux/desktop/matching.h"
#include "helper-linux/desktop/target.h"

namespace praefectus::desktop {

class LinuxDriver final : public Driver {
 public:
  LinuxDriver(Link& link, kj::Timer& timer) : link(link), timer(timer) {}

  kj::Promise<kj::Vector<Capability>> capabilities() override;
  kj::Promise<Result<Desktop>> list() override;
  kj::Promise<Result<Observation>> observe(WindowRef window, FrameId frame, uint64_t epoch,
                                           ObserveAct request) override;
  kj::Promise<Result<Picture>> capture(Action action) override;
  kj::Promise<Result<kj::Own<PreparedAction>>> prepare(Action action) override;

 private:
  Link& link;
  kj::Timer& timer;
  kj::Maybe<kj::Own<ObservedFrame>> frame;
};

}  // namespace praefectus::desktop
