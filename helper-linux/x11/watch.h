// A watch over the person's pointer, focus and window order, for as long as one action lasts.
//
// A comparison of before and after would miss what was changed and changed back, so the watch
// samples every few milliseconds and listens for focus and for the active window in between. What
// it proves is that nothing happened, not who did it: a person who changes the focus meanwhile
// counts as a breach. Only the pointer is told apart, since a device leaves raw motion events and a
// warp does not.
#pragma once

#include "helper-linux/x11/display.h"

#include <kj/async.h>
#include <kj/timer.h>

namespace praefectus::x11 {

class ContextWatch {
 public:
  // Watches from now on. Nothing is watched, and the result says so, when the display goes away or
  // has no XInput 2. Only one at a time on one display, since the events are taken by the first
  // that asks.
  ContextWatch(kj::Own<Display> display, kj::Timer& timer);
  ~ContextWatch() noexcept(false);
  KJ_DISALLOW_COPY(ContextWatch);

  // Takes the last look and ends the watch.
  Watch finish();

 private:
  kj::Promise<void> keepSampling();
  void sample();
  void select(bool on);
  void takeEvents(uint32_t sequence);
  bool isSynthetic(uint16_t device) const;
  void findSyntheticDevices();

  kj::Own<Display> display;
  kj::Timer& timer;
  Watch seen;
  Context last;
  xcb_window_t focusWatched = 0;
  kj::Vector<uint16_t> syntheticDevices;
  bool deviceMoved = false;
  bool restacked = false, restackedLater = false;  // Before the last sample was taken, and since.
  kj::Promise<void> sampling;
};

}  // namespace praefectus::x11
