#include "helper-linux/x11/camera.h"

#include "ipc/bounds.h"

#include <xcb/composite.h>
#include <xcb/damage.h>

#include <png.h>

#include <csetjmp>

namespace praefectus::x11 {
namespace {

// After a window got its buffer: how long drawing may take, and how long it must be quiet to be
// over.
constexpr kj::Duration DRAWING = 250 * kj::MILLISECONDS;
constexpr kj::Duration QUIET = 40 * kj::MILLISECONDS;
constexpr kj::Duration LOOK = 5 * kj::MILLISECONDS;

void append(png_structp png, png_bytep data, png_size_t size) {
  static_cast<kj::Vector<kj::byte>*>(png_get_io_ptr(png))->addAll(kj::arrayPtr(data, size));
}

void nothingToFlush(png_structp) {}

// X gives blue, green, red and one byte of nothing.
void packRow(const kj::byte* from, uint32_t width, kj::byte* to) {
  for (uint32_t x = 0; x < width; ++x, from += 4, to += 3) {
    to[0] = from[2];
    to[1] = from[1];
    to[2] = from[0];
  }
}

// libpng leaves by longjmp; nothing with a destructor lives in the frame it may leave.
bool writePng(png_structp png, png_infop info, const kj::byte* pixels, uint32_t width,
              uint32_t height, kj::byte* row) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  // The quickest setting: interfaces are flat colours and compress well anyway.
  png_set_compression_level(png, 1);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_write_info(png, info);
  for (uint32_t y = 0; y < height; ++y) {
    packRow(pixels + size_t{y} * width * 4, width, row);
    png_write_row(png, row);
  }
  png_write_end(png, info);
  return true;
}

kj::Maybe<Png> encode(const kj::byte* pixels, uint32_t width, uint32_t height) {
  kj::Vector<kj::byte> out;
  auto row = kj::heapArray<kj::byte>(size_t{width} * 3);
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  if (png == nullptr) return nullptr;
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &out, append, nothingToFlush);
  bool ok = info != nullptr && writePng(png, info, pixels, width, height, row.begin());
  png_destroy_write_struct(&png, &info);
  if (!ok || out.size() > bounds::PICTURE_BYTES) return nullptr;
  return Png{out.releaseAsArray(), width, height};
}

}  // namespace

kj::Promise<void> Camera::prepare(xcb_window_t window) {
  for (auto each : prepared) {
    if (each == window) return kj::READY_NOW;
  }
  if (!display->hasComposite()) return kj::READY_NOW;
  prepared.add(window);
  auto connection = display->raw();
  if (!display->hasDamage()) {
    xcb_composite_redirect_window(connection, window, XCB_COMPOSITE_REDIRECT_AUTOMATIC);
    xcb_flush(connection);
    return kj::READY_NOW;
  }
  uint32_t damage = xcb_generate_id(connection);
  xcb_damage_create(connection, damage, window, XCB_DAMAGE_REPORT_LEVEL_RAW_RECTANGLES);
  xcb_composite_redirect_window(connection, window, XCB_COMPOSITE_REDIRECT_AUTOMATIC);
  xcb_flush(connection);
  auto now = timer.now();
  return waitForDrawing(damage, now + DRAWING, now + QUIET);
}

kj::Promise<void> Camera::waitForDrawing(uint32_t damage, kj::TimePoint until,
                                         kj::TimePoint quietAt) {
  return timer.afterDelay(LOOK).then([this, damage, until, quietAt]() mutable -> kj::Promise<void> {
    auto connection = display->raw();
    for (;;) {
      Freed event(xcb_poll_for_event(connection));
      if (!event) break;
      bool drawn = (event->response_type & 0x7f) == display->damageEvent() + XCB_DAMAGE_NOTIFY;
      if (drawn) quietAt = timer.now() + QUIET;
    }
    if (timer.now() < kj::min(until, quietAt)) return waitForDrawing(damage, until, quietAt);
    xcb_damage_destroy(connection, damage);
    xcb_flush(connection);
    return kj::READY_NOW;
  });
}

kj::Maybe<Png> Camera::take(xcb_window_t window) {
  if (!display->hasComposite()) return nullptr;
  Display::Waiting waiting(*display);
  auto connection = display->raw();
  Freed geometry(xcb_get_geometry_reply(connection, xcb_get_geometry(connection, window), nullptr));
  if (!geometry) return nullptr;
  uint32_t width = geometry->width, height = geometry->height;
  uint64_t size = uint64_t{width} * height * 4;
  if (size == 0 || size > bounds::PIXEL_BYTES) return nullptr;

  xcb_pixmap_t pixmap = xcb_generate_id(connection);
  auto named = xcb_composite_name_window_pixmap_checked(connection, window, pixmap);
  Freed refused(xcb_request_check(connection, named));
  if (refused) return nullptr;
  KJ_DEFER(xcb_free_pixmap(connection, pixmap); xcb_flush(connection));
  // The buffer includes the window's own border.
  int16_t border = static_cast<int16_t>(geometry->border_width);
  auto asked = xcb_get_image(connection, XCB_IMAGE_FORMAT_Z_PIXMAP, pixmap, border, border,
                             geometry->width, geometry->height, ~0u);
  Freed image(xcb_get_image_reply(connection, asked, nullptr));
  if (!image || (image->depth != 24 && image->depth != 32)) return nullptr;
  if (static_cast<uint64_t>(xcb_get_image_data_length(image.get())) != size) return nullptr;
  return encode(xcb_get_image_data(image.get()), width, height);
}

}  // namespace praefectus::x11
