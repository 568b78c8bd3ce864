#include "helper-linux/x11/camera.h"

#include "attest/digest.h"
#include "ipc/bounds.h"

#include <xcb/composite.h>
#include <xcb/damage.h>

#include <algorithm>
#include <cstring>

namespace praefectus::x11 {
namespace {

// After a window got its buffer: how long drawing may take, and how long it must be quiet to be
// over.
constexpr kj::Duration DRAWING = 250 * kj::MILLISECONDS;
constexpr kj::Duration QUIET = 40 * kj::MILLISECONDS;
constexpr kj::Duration LOOK = 5 * kj::MILLISECONDS;

// A picture is often still held while the next one is taken.
constexpr size_t MEMORIES = 2;
constexpr size_t GRAIN = 1u << 20;

// X says nothing of the byte beside red, green and blue, and applications leave all kinds of things
// there; without it the digest is that of what is to be seen. A piece is cleared and hashed while
// it is at hand.
Hash finish(kj::ArrayPtr<kj::byte> pixels) {
  constexpr size_t PIECE = 16u << 10;
  constexpr uint64_t SEEN = 0x00ff'ffff'00ff'ffff;
  attest::Digest digest;
  while (pixels.size() > 0) {
    auto piece = pixels.slice(0, std::min(pixels.size(), PIECE));
    kj::byte* at = piece.begin();
    for (; piece.end() - at >= 8; at += 8) {
      uint64_t two;
      memcpy(&two, at, sizeof(two));
      two &= SEEN;
      memcpy(at, &two, sizeof(two));
    }
    if (at != piece.end()) at[3] = 0;
    digest.add(piece);
    pixels = pixels.slice(piece.size(), pixels.size());
  }
  return digest.finish();
}

bool isPlain(uint8_t depth) { return depth == 24 || depth == 32; }

bool isInside(const Rect& part, uint32_t width, uint32_t height) {
  return part.x >= 0 && part.y >= 0 && part.width > 0 && part.height > 0 &&
         static_cast<uint64_t>(part.x) + part.width <= width &&
         static_cast<uint64_t>(part.y) + part.height <= height;
}

}  // namespace

Camera::Camera(kj::Own<Display> display, kj::Timer& timer)
    : display(kj::mv(display)),
      timer(timer),
      sharing(Segment::works(*this->display)),
      quietAt(timer.now()) {}

bool Camera::works() const {
  return display->hasComposite() && xcb_connection_has_error(display->raw()) == 0;
}

bool Camera::lacksBuffer(xcb_window_t window) {
  Display::Waiting waiting(*display);
  auto connection = display->raw();
  xcb_pixmap_t pixmap = xcb_generate_id(connection);
  auto named = xcb_composite_name_window_pixmap_checked(connection, window, pixmap);
  auto asked = xcb_get_window_attributes(connection, window);
  Freed attributes(xcb_get_window_attributes_reply(connection, asked, nullptr));
  Freed refused(xcb_request_check(connection, named));
  if (!refused) xcb_free_pixmap(connection, pixmap);
  return refused && attributes && attributes->map_state == XCB_MAP_STATE_VIEWABLE;
}

kj::Promise<void> Camera::prepare(xcb_window_t window) {
  if (!display->hasComposite() || !lacksBuffer(window)) return kj::READY_NOW;
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
  quietAt = now + QUIET;
  return waitForDrawing(damage, now + DRAWING).attach(kj::addRef(*this));
}

kj::Promise<void> Camera::waitForDrawing(uint32_t damage, kj::TimePoint until) {
  return timer.afterDelay(LOOK).then([this, damage, until]() -> kj::Promise<void> {
    auto connection = display->raw();
    for (;;) {
      Freed event(xcb_poll_for_event(connection));
      if (!event) break;
      bool drawn = (event->response_type & 0x7f) == display->damageEvent() + XCB_DAMAGE_NOTIFY;
      if (drawn) quietAt = timer.now() + QUIET;
    }
    if (timer.now() < kj::min(until, quietAt)) return waitForDrawing(damage, until);
    xcb_damage_destroy(connection, damage);
    xcb_flush(connection);
    return kj::READY_NOW;
  });
}

kj::Maybe<Picture> Camera::take(xcb_window_t window) {
  return takeBuffer(window, [](uint32_t width, uint32_t height) {
    return Rect{0, 0, width, height};
  });
}

kj::Maybe<Picture> Camera::take(xcb_window_t window, const Rect& part) {
  return takeBuffer(window, [&part](uint32_t, uint32_t) { return part; });
}

// The size is that of the buffer, which never changes, and not of the window, which may change
// between two requests.
template <typename Part>
kj::Maybe<Picture> Camera::takeBuffer(xcb_window_t window, Part part) {
  if (!display->hasComposite()) return nullptr;
  Display::Waiting waiting(*display);
  auto connection = display->raw();
  xcb_pixmap_t pixmap = xcb_generate_id(connection);
  auto named = xcb_composite_name_window_pixmap_checked(connection, window, pixmap);
  auto askedBuffer = xcb_get_geometry(connection, pixmap);
  auto askedWindow = xcb_get_geometry(connection, window);
  Freed buffer(xcb_get_geometry_reply(connection, askedBuffer, nullptr));
  Freed geometry(xcb_get_geometry_reply(connection, askedWindow, nullptr));
  Freed refused(xcb_request_check(connection, named));
  if (refused) return nullptr;
  KJ_DEFER(xcb_free_pixmap(connection, pixmap); xcb_flush(connection));
  if (!buffer || !geometry) return nullptr;
  // It includes the window's own border.
  uint32_t border = geometry->border_width;
  if (buffer->width <= 2 * border || buffer->height <= 2 * border) return nullptr;
  Area area{pixmap, static_cast<int32_t>(border), static_cast<int32_t>(border),
            buffer->width - 2 * border, buffer->height - 2 * border};
  return fetch(area, part(area.width, area.height));
}

kj::Maybe<Picture> Camera::takeScreen(const Rect& part) {
  Display::Waiting waiting(*display);
  auto connection = display->raw();
  auto asked = xcb_get_geometry(connection, display->root());
  Freed geometry(xcb_get_geometry_reply(connection, asked, nullptr));
  if (!geometry) return nullptr;
  int64_t left = std::max(0, part.x), top = std::max(0, part.y);
  int64_t right = std::min(int64_t{geometry->width}, int64_t{part.x} + part.width);
  int64_t bottom = std::min(int64_t{geometry->height}, int64_t{part.y} + part.height);
  if (left >= right || top >= bottom) return nullptr;
  Rect shown{static_cast<int32_t>(left), static_cast<int32_t>(top),
             static_cast<uint32_t>(right - left), static_cast<uint32_t>(bottom - top)};
  return fetch({display->root(), 0, 0, geometry->width, geometry->height}, shown);
}

kj::Maybe<Picture> Camera::fetch(const Area& area, const Rect& part) {
  if (!isInside(part, area.width, area.height)) return nullptr;
  uint64_t size = uint64_t{part.width} * part.height * 4;
  if (size > bounds::PIXEL_BYTES) return nullptr;
  KJ_IF_MAYBE (pixels, read(area, part, size)) {
    Picture out;
    out.info.width = part.width;
    out.info.height = part.height;
    out.info.x = part.x;
    out.info.y = part.y;
    out.info.pixels = finish(*pixels);
    out.pixels = kj::mv(*pixels);
    return kj::mv(out);
  }
  return nullptr;
}

kj::Maybe<kj::Array<kj::byte>> Camera::read(const Area& area, const Rect& part, size_t size) {
  auto connection = display->raw();
  auto x = static_cast<int16_t>(area.x + part.x), y = static_cast<int16_t>(area.y + part.y);
  auto width = static_cast<uint16_t>(part.width), height = static_cast<uint16_t>(part.height);
  KJ_IF_MAYBE (shared, memory(size)) {
    auto asked = xcb_shm_get_image(connection, area.drawable, x, y, width, height, ~0u,
                                   XCB_IMAGE_FORMAT_Z_PIXMAP, shared->id(), 0);
    Freed image(xcb_shm_get_image_reply(connection, asked, nullptr));
    if (!image || !isPlain(image->depth) || image->size != size) return nullptr;
    return shared->hold(size);
  }
  auto asked =
      xcb_get_image(connection, XCB_IMAGE_FORMAT_Z_PIXMAP, area.drawable, x, y, width, height, ~0u);
  Freed image(xcb_get_image_reply(connection, asked, nullptr));
  if (!image || !isPlain(image->depth)) return nullptr;
  if (static_cast<uint64_t>(xcb_get_image_data_length(image.get())) != size) return nullptr;
  return kj::heapArray(xcb_get_image_data(image.get()), size);
}

// Memory that nobody looks at. Nothing when the server takes none; then it is not asked again.
kj::Maybe<Segment&> Camera::memory(size_t size) {
  if (!sharing) return nullptr;
  kj::Own<Segment>* free = nullptr;
  for (auto& each : memories) {
    if (each->isShared()) continue;
    if (each->size() >= size) return *each;
    free = &each;
  }
  if (free == nullptr && memories.size() < MEMORIES) free = &memories.add();
  // All are looked at: the one that waited longest is left to whoever looks at it.
  if (free == nullptr) {
    std::rotate(memories.begin(), memories.begin() + 1, memories.end());
    free = &memories.back();
  }
  auto made = Segment::make(kj::addRef(*display), (size + GRAIN - 1) / GRAIN * GRAIN);
  KJ_IF_MAYBE (segment, made) {
    *free = kj::mv(*segment);
    return **free;
  }
  sharing = false;
  memories.clear();
  return nullptr;
}

}  // namespace praefectus::x11
