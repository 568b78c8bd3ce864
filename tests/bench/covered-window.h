// A window wholly under another one, and two who take its picture: the helper's camera, and the
// shortest way there is.
#pragma once

#include "helper-linux/x11/camera.h"
#include "supervisor/cli/private-desktop.h"
#include "tests/helper-linux/paper.h"

#include <kj/async-io.h>

namespace praefectus::bench {

// The window's contents through shared memory and their hash, and nothing besides: what no picture
// can do without. Its own connection, its own code.
class PlainCapture {
 public:
  PlainCapture(kj::StringPtr display, xcb_window_t window, uint32_t width, uint32_t height);
  ~PlainCapture();
  KJ_DISALLOW_COPY(PlainCapture);

  Hash take();
  Bytes pixels() const { return kj::arrayPtr(memory, size); }

 private:
  xcb_connection_t* connection;
  xcb_window_t window;
  uint16_t width, height;
  size_t size;
  kj::byte* memory;
  uint32_t segment;
};

class CoveredWindow {
 public:
  CoveredWindow(uint32_t width, uint32_t height);
  KJ_DISALLOW_COPY(CoveredWindow);

  // Both have looked once before, and what each saw is what the window shows.
  Hash byCamera();
  Hash byPlainCapture() { return plain->take(); }

 private:
  PrivateDesktop desktop;
  kj::AsyncIoContext io;
  kj::Own<tests::Paper> window, cover;
  kj::Own<x11::Camera> camera;
  kj::Own<PlainCapture> plain;
};

}  // namespace praefectus::bench
