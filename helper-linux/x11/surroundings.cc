#include "attest/digest.h"
#include "helper-linux/x11/display.h"
#include "helper-linux/x11/property.h"
#include "ipc/bounds.h"

#include <xcb/randr.h>

namespace praefectus::x11 {

kj::Vector<xcb_window_t> Display::listWindows(bool& cut) {
  kj::Vector<xcb_window_t> out;
  Property listed(xcb_get_property_reply(
      connection, askProperty(connection, rootWindow, atom(Atom::CLIENT_LIST_STACKING), LIST_WORDS),
      nullptr));
  if (listed && listed->type != XCB_ATOM_NONE) {
    for (uint32_t window : items(listed)) out.add(window);
  } else {
    // No window manager: the root's own children are the windows.
    Freed tree(xcb_query_tree_reply(connection, xcb_query_tree(connection, rootWindow), nullptr));
    if (tree) {
      auto children = xcb_query_tree_children(tree.get());
      for (int i = 0; i < xcb_query_tree_children_length(tree.get()); ++i) out.add(children[i]);
    }
  }
  cut = out.size() > bounds::WINDOWS;
  if (cut) out.truncate(bounds::WINDOWS);
  return out;
}

Layout Display::layout() {
  Waiting waiting(*this);
  auto geometryCookie = xcb_get_geometry(connection, rootWindow);
  xcb_randr_get_monitors_cookie_t monitorsCookie{};
  if (randr) monitorsCookie = xcb_randr_get_monitors(connection, rootWindow, 1);
  Freed geometry(xcb_get_geometry_reply(connection, geometryCookie, nullptr));
  Freed monitors(randr ? xcb_randr_get_monitors_reply(connection, monitorsCookie, nullptr)
                       : nullptr);

  Layout out;
  attest::Digest digest;
  if (geometry) {
    out.screen = {0, 0, geometry->width, geometry->height};
    digest.addNumber(geometry->width).addNumber(geometry->height);
  }
  if (monitors) {
    for (auto each = xcb_randr_get_monitors_monitors_iterator(monitors.get()); each.rem > 0;
         xcb_randr_monitor_info_next(&each)) {
      auto& seen = *each.data;
      digest.addNumber(seen.name).addNumber(seen.primary);
      digest.addNumber(static_cast<uint64_t>(seen.x)).addNumber(static_cast<uint64_t>(seen.y));
      digest.addNumber(seen.width).addNumber(seen.height);
      if (out.monitors.size() == bounds::MONITORS) continue;
      out.monitors.add(
          MonitorSeen{seen.name, {seen.x, seen.y, seen.width, seen.height}, seen.primary != 0});
    }
  }
  // A server that tells of no monitors has one: all of its root window.
  if (out.monitors.empty() && geometry) {
    out.monitors.add(MonitorSeen{XCB_ATOM_NONE, {0, 0, geometry->width, geometry->height}, true});
  }
  out.topology = digest.finish();
  return out;
}

kj::Maybe<Context> Display::context() {
  Waiting waiting(*this);
  auto pointerCookie = xcb_query_pointer(connection, rootWindow);
  auto focusCookie = xcb_get_input_focus(connection);
  auto activeCookie = askProperty(connection, rootWindow, atom(Atom::ACTIVE_WINDOW), 1);
  bool cut;
  Context out;
  out.sequence = activeCookie.sequence + 1;
  out.stacking = listWindows(cut);
  Freed pointer(xcb_query_pointer_reply(connection, pointerCookie, nullptr));
  Freed focus(xcb_get_input_focus_reply(connection, focusCookie, nullptr));
  Property active(xcb_get_property_reply(connection, activeCookie, nullptr));
  if (!pointer || !focus) return nullptr;
  out.pointerX = pointer->root_x;
  out.pointerY = pointer->root_y;
  out.focus = focus->focus;
  if (items(active).size() == 1) out.active = items(active)[0];
  return kj::mv(out);
}

kj::Maybe<kj::String> Display::accessibilityBus() {
  Waiting waiting(*this);
  Property bus(xcb_get_property_reply(
      connection, askProperty(connection, rootWindow, atom(Atom::AT_SPI_BUS), TITLE_WORDS),
      nullptr));
  auto address = textIn(bus, Encoding::UTF8);
  if (address.size() == 0) return nullptr;
  return kj::mv(address);
}

}  // namespace praefectus::x11
