// Windows whose every pixel is known, and the pixels of a PNG: what a picture is compared with.
#pragma once

#include "ipc/words.h"

#include <kj/array.h>
#include <kj/string.h>

#include <xcb/xcb.h>

namespace praefectus::tests {

// A window of the test's own process, past the window manager, with a pattern that never repeats.
// The server paints it; nobody has to wait for that.
class Paper {
 public:
  // `at` is the client area. With 32 bits the fourth byte is a transparency, with 24 it is nothing;
  // in both it is not 0.
  Paper(kj::StringPtr display, const Rect& at, uint8_t depth = 24, uint16_t border = 0);
  ~Paper();
  KJ_DISALLOW_COPY(Paper);

  WindowRef ref() const;
  // As a picture should have it: rows from the top, blue, green, red, 0.
  kj::Array<kj::byte> shows(const Rect& part) const;
  kj::Array<kj::byte> shows() const { return shows({0, 0, width, height}); }
  // Another pattern for each number.
  void paint(uint32_t number);
  void hide();

 private:
  xcb_connection_t* connection;
  xcb_window_t window;
  uint32_t width, height;
  uint8_t depth;
  kj::Array<kj::byte> pixels;
};

// The pixels of a PNG of this size, as above. Fails the test when it is none.
kj::Array<kj::byte> pixelsOf(Bytes png, uint32_t width, uint32_t height);
// A part of a picture's pixels.
kj::Array<kj::byte> crop(Bytes pixels, uint32_t width, const Rect& part);

}  // namespace praefectus::tests
