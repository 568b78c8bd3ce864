// Memory that the X server writes a picture into and we read it from: nothing is copied, and
// nothing of the size of a picture travels on the socket.
#pragma once

#include "helper-linux/x11/display.h"

#include <xcb/shm.h>

namespace praefectus::x11 {

// Counted: whoever has a picture keeps the memory that it lies in.
class Segment final : public kj::Refcounted {
 public:
  // Whether this server takes memory of ours (MIT-SHM 1.2).
  static bool works(const Display& display);
  // Asks the server, so a Display::Waiting must live. Nothing when it does not take it.
  static kj::Maybe<kj::Own<Segment>> make(kj::Own<Display> display, size_t size);

  Segment(kj::Own<Display> display, kj::byte* memory, size_t size);
  ~Segment() noexcept(false);
  KJ_DISALLOW_COPY(Segment);

  xcb_shm_seg_t id() const { return name; }
  size_t size() const { return bytes; }
  // The first `size` bytes, which keep the segment.
  kj::Array<kj::byte> hold(size_t size);

 private:
  kj::Own<Display> display;
  kj::byte* memory;
  size_t bytes;
  xcb_shm_seg_t name;
};

}  // namespace praefectus::x11
