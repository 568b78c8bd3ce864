#include "tests/bench/covered-window.h"

#include "attest/digest.h"
#include "tests/helper-linux/screen.h"

#include <kj/debug.h>

#include <xcb/composite.h>
#include <xcb/shm.h>

#include <cstdlib>

#include <sys/shm.h>

namespace praefectus::bench {
namespace {

constexpr uint32_t ALL_PLANES = ~0u;

PrivateDesktop::Options screenOnly() {
  PrivateDesktop::Options out;
  out.width = 1920;
  out.height = 1200;
  out.windowManager = out.accessibility = false;
  return out;
}

// Without the fourth byte of each pixel, which shows nothing.
bool showSame(Bytes left, Bytes right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (i % 4 != 3 && left[i] != right[i]) return false;
  }
  return true;
}

}  // namespace

PlainCapture::PlainCapture(kj::StringPtr display, xcb_window_t window, uint32_t width,
                           uint32_t height)
    : connection(xcb_connect(display.cStr(), nullptr)),
      window(window),
      width(static_cast<uint16_t>(width)),
      height(static_cast<uint16_t>(height)),
      size(size_t{width} * height * 4),
      segment(xcb_generate_id(connection)) {
  int id;
  KJ_SYSCALL(id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600));
  memory = static_cast<kj::byte*>(shmat(id, nullptr, 0));
  xcb_composite_redirect_window(connection, window, XCB_COMPOSITE_REDIRECT_AUTOMATIC);
  free(xcb_request_check(
      connection, xcb_shm_attach_checked(connection, segment, static_cast<uint32_t>(id), 0)));
  shmctl(id, IPC_RMID, nullptr);
}

PlainCapture::~PlainCapture() {
  xcb_disconnect(connection);
  shmdt(memory);
}

Hash PlainCapture::take() {
  auto pixmap = xcb_generate_id(connection);
  xcb_composite_name_window_pixmap(connection, window, pixmap);
  auto asked = xcb_shm_get_image(connection, pixmap, 0, 0, width, height, ALL_PLANES,
                                 XCB_IMAGE_FORMAT_Z_PIXMAP, segment, 0);
  auto* answer = xcb_shm_get_image_reply(connection, asked, nullptr);
  KJ_REQUIRE(answer != nullptr, "the server gave no image");
  free(answer);
  xcb_free_pixmap(connection, pixmap);
  return attest::digestOf(pixels());
}

CoveredWindow::CoveredWindow(uint32_t width, uint32_t height)
    : desktop(screenOnly()), io(kj::setupAsyncIo()) {
  tests::useAuthorityOf(desktop);
  auto display = desktop.display();
  Rect at{100, 100, width, height};
  window = kj::heap<tests::Paper>(display, at);
  cover = kj::heap<tests::Paper>(display, at);
  auto drawable = static_cast<xcb_window_t>(window->ref().window);
  camera = kj::refcounted<x11::Camera>(KJ_REQUIRE_NONNULL(x11::Display::open(display)),
                                       io.provider->getTimer());
  camera->prepare(drawable).wait(io.waitScope);
  plain = kj::heap<PlainCapture>(display, drawable, width, height);
  // The server gives a window no content of its own before it has a buffer.
  window->paint(2);
  auto expected = window->shows();
  KJ_REQUIRE(byCamera() == attest::digestOf(expected), "the camera saw something else");
  plain->take();
  KJ_REQUIRE(showSame(plain->pixels(), expected), "the plain capture saw something else");
}

Hash CoveredWindow::byCamera() {
  auto drawable = static_cast<xcb_window_t>(window->ref().window);
  return KJ_REQUIRE_NONNULL(camera->take(drawable), "no picture").info.pixels;
}

}  // namespace praefectus::bench
