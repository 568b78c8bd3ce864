#include "tests/helper-linux/paper.h"

#include "helper-linux/desktop/process.h"

#include <kj/debug.h>

#include <png.h>

#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace praefectus::tests {
namespace {

xcb_screen_t& screenOf(xcb_connection_t* connection) {
  KJ_REQUIRE(xcb_connection_has_error(connection) == 0);
  return *xcb_setup_roots_iterator(xcb_get_setup(connection)).data;
}

// Whatever was asked is done.
void settle(xcb_connection_t* connection) {
  free(xcb_get_input_focus_reply(connection, xcb_get_input_focus(connection), nullptr));
}

xcb_visualid_t visualOf(xcb_screen_t& screen, uint8_t depth) {
  if (depth == screen.root_depth) return screen.root_visual;
  for (auto each = xcb_screen_allowed_depths_iterator(&screen); each.rem > 0;
       xcb_depth_next(&each)) {
    if (each.data->depth == depth) return xcb_depth_visuals_iterator(each.data).data->visual_id;
  }
  KJ_FAIL_REQUIRE("the server has no such depth", depth);
}

}  // namespace

Paper::Paper(kj::StringPtr display, const Rect& at, uint8_t depth, uint16_t border)
    : connection(xcb_connect(display.cStr(), nullptr)),
      width(at.width),
      height(at.height),
      depth(depth) {
  auto& screen = screenOf(connection);
  auto visual = visualOf(screen, depth);
  auto colours = xcb_generate_id(connection);
  xcb_create_colormap(connection, XCB_COLORMAP_ALLOC_NONE, colours, screen.root, visual);
  window = xcb_generate_id(connection);
  constexpr uint32_t NO_COLOUR = 0, PAST_THE_MANAGER = 1;
  const uint32_t values[] = {NO_COLOUR, PAST_THE_MANAGER, colours};
  xcb_create_window(connection, depth, window, screen.root, static_cast<int16_t>(at.x - border),
                    static_cast<int16_t>(at.y - border), static_cast<uint16_t>(width),
                    static_cast<uint16_t>(height), border, XCB_WINDOW_CLASS_INPUT_OUTPUT, visual,
                    XCB_CW_BORDER_PIXEL | XCB_CW_OVERRIDE_REDIRECT | XCB_CW_COLORMAP, values);
  paint(1);
  xcb_map_window(connection, window);
  settle(connection);
}

Paper::~Paper() { xcb_disconnect(connection); }

WindowRef Paper::ref() const {
  auto pid = static_cast<uint32_t>(getpid());
  return {{pid, KJ_ASSERT_NONNULL(desktop::startOf(pid))}, window};
}

void Paper::paint(uint32_t number) {
  pixels = kj::heapArray<kj::byte>(size_t{width} * height * 4);
  uint32_t state = number * 2'654'435'761u + 1;
  for (size_t i = 0; i < pixels.size(); ++i) {
    state = state * 1'664'525u + 1'013'904'223u;
    pixels[i] = i % 4 == 3 ? 0xa5 : static_cast<kj::byte>(state >> 24);
  }
  auto pixmap = xcb_generate_id(connection), pen = xcb_generate_id(connection);
  xcb_create_pixmap(connection, depth, pixmap, window, static_cast<uint16_t>(width),
                    static_cast<uint16_t>(height));
  xcb_create_gc(connection, pen, pixmap, 0, nullptr);
  for (uint32_t y = 0; y < height; ++y) {
    xcb_put_image(connection, XCB_IMAGE_FORMAT_Z_PIXMAP, pixmap, pen, static_cast<uint16_t>(width),
                  1, 0, static_cast<int16_t>(y), 0, depth, width * 4,
                  pixels.begin() + size_t{y} * width * 4);
  }
  xcb_change_window_attributes(connection, window, XCB_CW_BACK_PIXMAP, &pixmap);
  xcb_clear_area(connection, 0, window, 0, 0, 0, 0);
  xcb_free_gc(connection, pen);
  xcb_free_pixmap(connection, pixmap);
  settle(connection);
}

void Paper::hide() {
  xcb_unmap_window(connection, window);
  settle(connection);
}

kj::Array<kj::byte> Paper::shows(const Rect& part) const {
  auto out = crop(pixels, width, part);
  for (size_t i = 3; i < out.size(); i += 4) out[i] = 0;
  return out;
}

kj::Array<kj::byte> pixelsOf(Bytes png, uint32_t width, uint32_t height) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  KJ_REQUIRE(png_image_begin_read_from_memory(&image, png.begin(), png.size()) != 0, image.message);
  KJ_REQUIRE(image.width == width && image.height == height, image.width, image.height);
  image.format = PNG_FORMAT_BGRA;
  auto out = kj::heapArray<kj::byte>(size_t{width} * height * 4);
  KJ_REQUIRE(png_image_finish_read(&image, nullptr, out.begin(), 0, nullptr) != 0, image.message);
  for (size_t i = 3; i < out.size(); i += 4) out[i] = 0;
  return out;
}

kj::Array<kj::byte> crop(Bytes pixels, uint32_t width, const Rect& part) {
  auto row = size_t{part.width} * 4;
  auto out = kj::heapArray<kj::byte>(row * part.height);
  for (uint32_t y = 0; y < part.height; ++y) {
    auto from =
        ((size_t{y} + static_cast<uint32_t>(part.y)) * width + static_cast<uint32_t>(part.x));
    memcpy(out.begin() + y * row, pixels.begin() + from * 4, row);
  }
  return out;
}

}  // namespace praefectus::tests
