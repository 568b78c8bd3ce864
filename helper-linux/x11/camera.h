// Pictures of a window's own contents, covered or not, without raising it.
#pragma once

#include "helper-linux/x11/display.h"

#include <kj/async.h>
#include <kj/timer.h>

namespace praefectus::x11 {

struct Png {
  kj::Array<kj::byte> bytes;
  uint32_t width = 0, height = 0;
};

class Camera {
 public:
  // Takes a connection of its own: the buffers live as long as it does, and its events are nobody
  // else's.
  Camera(kj::Own<Display> display, kj::Timer& timer) : display(kj::mv(display)), timer(timer) {}
  KJ_DISALLOW_COPY(Camera);

  // Gives the window a picture buffer of its own, once, and waits until the application has drawn
  // what was covered before. Nobody sees the difference. Ended with our connection.
  kj::Promise<void> prepare(xcb_window_t window);

  // Whether the server can do it.
  bool works() { return display->hasComposite() && display->alive(); }

  // Nothing when the window has no contents (unmapped), is too large, or has another pixel layout
  // than 32 bits for red, green and blue.
  kj::Maybe<Png> take(xcb_window_t window);

 private:
  kj::Promise<void> waitForDrawing(uint32_t damage, kj::TimePoint until, kj::TimePoint quietAt);

  kj::Own<Display> display;
  kj::Timer& timer;
  kj::Vector<xcb_window_t> prepared;
};

}  // namespace praefectus::x11
