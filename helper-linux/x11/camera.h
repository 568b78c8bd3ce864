// Pictures of a window's own contents, covered or not, without raising it; and of the screen.
#pragma once

#include "helper-linux/x11/segment.h"

#include <kj/async.h>
#include <kj/timer.h>

namespace praefectus::x11 {

// Counted: a wait for a window's drawing keeps it.
class Camera final : public kj::Refcounted {
 public:
  // Takes a connection of its own: the buffers live as long as it does, and its events are nobody
  // else's.
  Camera(kj::Own<Display> display, kj::Timer& timer);
  KJ_DISALLOW_COPY(Camera);

  // Gives a window on the screen a picture buffer of its own, unless it has one, and waits until
  // the application has drawn what was covered before. Nobody sees the difference. Ended with our
  // connection.
  kj::Promise<void> prepare(xcb_window_t window);

  // Whether the server can do it.
  bool works() const;

  // The window's client area, or a part of it in its own coordinates. The pixels lie in memory that
  // is used again when they are let go of. Nothing when the window has no contents (it is not on
  // the screen, or not prepared), the part is empty or leaves the window, it is larger than
  // bounds::PIXEL_BYTES, or has another pixel layout than 32 bits for red, green and blue.
  kj::Maybe<Picture> take(xcb_window_t window);
  kj::Maybe<Picture> take(xcb_window_t window, const Rect& part);

  // What a person sees in a part of the root window, which is cut where that ends. Nothing when
  // nothing is left, or as above.
  kj::Maybe<Picture> takeScreen(const Rect& part);

 private:
  // What can be taken of a drawable, from `x` and `y` on.
  struct Area {
    xcb_drawable_t drawable;
    int32_t x, y;
    uint32_t width, height;
  };
  template <typename Part>
  kj::Maybe<Picture> takeBuffer(xcb_window_t window, Part part);
  kj::Maybe<Picture> fetch(const Area& area, const Rect& part);
  kj::Maybe<kj::Array<kj::byte>> read(const Area& area, const Rect& part, size_t size);
  kj::Maybe<Segment&> memory(size_t size);
  bool lacksBuffer(xcb_window_t window);
  kj::Promise<void> waitForDrawing(uint32_t damage, kj::TimePoint until);

  kj::Own<Display> display;
  kj::Timer& timer;
  bool sharing;                           // The server takes memory of ours.
  kj::Vector<kj::Own<Segment>> memories;  // Kept for the next picture.
  kj::TimePoint quietAt;                  // When no drawing is expected any more.
};

}  // namespace praefectus::x11
