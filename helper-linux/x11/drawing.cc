#include "helper-linux/x11/drawing.h"

#include "ipc/rect.h"

#include <xcb/damage.h>
#include <xcb/xfixes.h>

namespace praefectus::x11 {
namespace {

constexpr size_t WINDOWS = 4;

}  // namespace

Drawing::Drawing(kj::Own<Display> displayParam) : display(kj::mv(displayParam)) {
  if (!display->hasDamage()) return;
  Display::Waiting waiting(*display);
  auto connection = display->raw();
  // Regions belong to an extension of their own, which the server opens only when asked its
  // version.
  Freed reply(xcb_xfixes_query_version_reply(
      connection,
      xcb_xfixes_query_version(connection, XCB_XFIXES_MAJOR_VERSION, XCB_XFIXES_MINOR_VERSION),
      nullptr));
  regions = reply && reply->major_version >= 2;
}

bool Drawing::works() const { return regions && xcb_connection_has_error(display->raw()) == 0; }

void Drawing::end(size_t index) {
  xcb_damage_destroy(display->raw(), accounts[index].damage);
  for (size_t i = index; i + 1 < accounts.size(); ++i) accounts[i] = accounts[i + 1];
  accounts.removeLast();
}

void Drawing::watch(xcb_window_t window) {
  if (!works()) return;
  for (size_t i = 0; i < accounts.size(); ++i) {
    if (accounts[i].window == window) end(i--);
  }
  if (accounts.size() >= WINDOWS) end(0);
  auto connection = display->raw();
  uint32_t damage = xcb_generate_id(connection);
  // One event when there is anything at all; the rest is fetched.
  xcb_damage_create(connection, damage, window, XCB_DAMAGE_REPORT_LEVEL_NON_EMPTY);
  // The server begins with all of the window as drawn.
  xcb_damage_subtract(connection, damage, XCB_NONE, XCB_NONE);
  xcb_flush(connection);
  accounts.add(Account{window, damage});
}

kj::Maybe<kj::Vector<Rect>> Drawing::take(xcb_window_t window) {
  if (!works()) return nullptr;
  for (size_t i = 0; i < accounts.size(); ++i) {
    if (accounts[i].window != window) continue;
    auto connection = display->raw();
    Display::Waiting waiting(*display);
    xcb_xfixes_region_t region = xcb_generate_id(connection);
    xcb_xfixes_create_region(connection, region, 0, nullptr);
    auto subtracted = xcb_damage_subtract_checked(connection, accounts[i].damage, XCB_NONE, region);
    auto fetched = xcb_xfixes_fetch_region(connection, region);
    xcb_xfixes_destroy_region(connection, region);
    Freed failed(xcb_request_check(connection, subtracted));
    Freed reply(xcb_xfixes_fetch_region_reply(connection, fetched, nullptr));
    while (Freed event{xcb_poll_for_queued_event(connection)}) {
    }
    if (failed || !reply) {
      // The window is gone, or another one that has its number.
      accounts[i].window = XCB_NONE;
      return nullptr;
    }
    kj::Vector<Rect> out;
    auto drawn = xcb_xfixes_fetch_region_rectangles(reply.get());
    for (int each = 0; each < xcb_xfixes_fetch_region_rectangles_length(reply.get()); ++each) {
      auto& rect = drawn[each];
      out.add(Rect{rect.x, rect.y, rect.width, rect.height});
    }
    return kj::mv(out);
  }
  return nullptr;
}

bool isInSight(const TopLevel& window, kj::ArrayPtr<const TopLevel> all, const Rect& screen) {
  auto& at = window.bounds;
  bool inside = at.x >= screen.x && at.y >= screen.y &&
                int64_t{at.x} + at.width <= int64_t{screen.x} + screen.width &&
                int64_t{at.y} + at.height <= int64_t{screen.y} + screen.height;
  if (!window.visible || !inside) return false;
  bool above = false;
  for (auto& other : all) {
    if (above && other.visible && intersect(other.bounds, at)) return false;
    if (other.id == window.id) above = true;
  }
  return above;
}

}  // namespace praefectus::x11
