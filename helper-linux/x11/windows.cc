#include "helper-linux/x11/display.h"

#include "attest/digest.h"
#include "ipc/bounds.h"

#include <xcb/randr.h>
#include <xcb/res.h>

#include <cstring>

namespace praefectus::x11 {
namespace {

constexpr uint32_t TITLE_WORDS = 1024;
constexpr uint32_t LIST_WORDS = 4096;
constexpr uint32_t ICONIC_STATE = 3;  // ICCCM 4.1.3.1

using Property = Freed<xcb_get_property_reply_t>;

xcb_get_property_cookie_t askProperty(xcb_connection_t* connection, xcb_window_t window,
                                      xcb_atom_t name, uint32_t words) {
  return xcb_get_property(connection, 0, window, name, XCB_ATOM_ANY, 0, words);
}

// A property's 32-bit items; empty when it is absent or has another format.
kj::ArrayPtr<const uint32_t> items(const Property& property) {
  if (!property || property->format != 32) return nullptr;
  return kj::arrayPtr(static_cast<const uint32_t*>(xcb_get_property_value(property.get())),
                      property->value_len);
}

// A title as text: other bytes than UTF-8 come from old clients and are replaced one by one.
kj::String textIn(const Property& property) {
  if (!property || property->format != 8) return kj::str();
  auto start = static_cast<const char*>(xcb_get_property_value(property.get()));
  auto text = kj::str(kj::arrayPtr(start, strnlen(start, property->value_len)));
  if (isText(text)) return text;
  return kj::str(KJ_MAP(c, text) { return static_cast<signed char>(c) < 0 ? '?' : c; });
}

bool contains(kj::ArrayPtr<const uint32_t> list, uint32_t item) {
  for (uint32_t each : list) {
    if (each == item) return true;
  }
  return false;
}

// Everything asked about one window, in flight.
struct Asked {
  xcb_window_t window;
  xcb_get_window_attributes_cookie_t attributes;
  xcb_get_geometry_cookie_t geometry;
  xcb_translate_coordinates_cookie_t origin;
  xcb_get_property_cookie_t pid, netName, oldName, state, icccmState, frame, margins;
  xcb_res_query_client_ids_cookie_t owner;
};

uint32_t ownerIn(xcb_connection_t* connection, xcb_res_query_client_ids_cookie_t cookie) {
  Freed reply(xcb_res_query_client_ids_reply(connection, cookie, nullptr));
  if (!reply) return 0;
  for (auto ids = xcb_res_query_client_ids_ids_iterator(reply.get()); ids.rem > 0;
       xcb_res_client_id_value_next(&ids)) {
    bool isPid = (ids.data->spec.mask & XCB_RES_CLIENT_ID_MASK_LOCAL_CLIENT_PID) != 0;
    if (isPid && xcb_res_client_id_value_value_length(ids.data) == 1) {
      return *xcb_res_client_id_value_value(ids.data);
    }
  }
  return 0;
}

// Left, right, top, bottom: the order of both extents properties.
void takeExtents(const Property& property, uint32_t& left, uint32_t& right, uint32_t& top,
                 uint32_t& bottom) {
  auto list = items(property);
  if (list.size() != 4) return;
  left = list[0];
  right = list[1];
  top = list[2];
  bottom = list[3];
}

}  // namespace

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

kj::Vector<TopLevel> Display::topLevels(bool& cut) {
  Waiting waiting(*this);
  auto activeCookie = askProperty(connection, rootWindow, atom(Atom::ACTIVE_WINDOW), 1);
  auto windows = listWindows(cut);
  auto asked = KJ_MAP(window, windows) {
    Asked out{};
    out.window = window;
    out.attributes = xcb_get_window_attributes(connection, window);
    out.geometry = xcb_get_geometry(connection, window);
    out.origin = xcb_translate_coordinates(connection, window, rootWindow, 0, 0);
    out.pid = askProperty(connection, window, atom(Atom::WM_PID), 1);
    out.netName = askProperty(connection, window, atom(Atom::WM_NAME), TITLE_WORDS);
    out.oldName = askProperty(connection, window, XCB_ATOM_WM_NAME, TITLE_WORDS);
    out.state = askProperty(connection, window, atom(Atom::WM_STATE), 32);
    out.icccmState = askProperty(connection, window, atom(Atom::ICCCM_STATE), 2);
    out.frame = askProperty(connection, window, atom(Atom::FRAME_EXTENTS), 4);
    out.margins = askProperty(connection, window, atom(Atom::GTK_FRAME_EXTENTS), 4);
    if (resource) {
      xcb_res_client_id_spec_t spec{window, XCB_RES_CLIENT_ID_MASK_LOCAL_CLIENT_PID};
      out.owner = xcb_res_query_client_ids(connection, 1, &spec);
    }
    return out;
  };
  Property active(xcb_get_property_reply(connection, activeCookie, nullptr));

  kj::Vector<TopLevel> out(asked.size());
  for (auto& query : asked) {
    auto property = [this](xcb_get_property_cookie_t cookie) {
      return xcb_get_property_reply(connection, cookie, nullptr);
    };
    Freed attributes(xcb_get_window_attributes_reply(connection, query.attributes, nullptr));
    Freed geometry(xcb_get_geometry_reply(connection, query.geometry, nullptr));
    Freed origin(xcb_translate_coordinates_reply(connection, query.origin, nullptr));
    Property pid(property(query.pid)), netName(property(query.netName)),
        oldName(property(query.oldName)), state(property(query.state)),
        icccmState(property(query.icccmState)), frame(property(query.frame)),
        margins(property(query.margins));
    TopLevel top;
    top.id = query.window;
    if (resource) top.pid = ownerIn(connection, query.owner);
    // The window went away meanwhile, or is not one that a person sees as a window.
    if (!attributes || !geometry || !origin || attributes->override_redirect != 0) continue;
    if (top.pid == 0 && items(pid).size() == 1) top.pid = items(pid)[0];
    top.title = textIn(netName);
    if (top.title.size() == 0) top.title = textIn(oldName);
    top.bounds = {origin->dst_x, origin->dst_y, geometry->width, geometry->height};
    bool iconic = items(icccmState).size() > 0 && items(icccmState)[0] == ICONIC_STATE;
    top.visible = attributes->map_state == XCB_MAP_STATE_VIEWABLE && !iconic &&
                  !contains(items(state), atom(Atom::WM_STATE_HIDDEN));
    top.active = contains(items(active), query.window);
    top.modal = contains(items(state), atom(Atom::WM_STATE_MODAL));
    takeExtents(margins, top.marginLeft, top.marginRight, top.marginTop, top.marginBottom);
    takeExtents(frame, top.frameLeft, top.frameRight, top.frameTop, top.frameBottom);
    out.add(kj::mv(top));
  }
  return out;
}

Hash Display::topology() {
  Waiting waiting(*this);
  attest::Digest digest;
  Freed geometry(
      xcb_get_geometry_reply(connection, xcb_get_geometry(connection, rootWindow), nullptr));
  if (geometry) digest.addNumber(geometry->width).addNumber(geometry->height);
  if (!randr) return digest.finish();
  Freed monitors(xcb_randr_get_monitors_reply(
      connection, xcb_randr_get_monitors(connection, rootWindow, 1), nullptr));
  if (!monitors) return digest.finish();
  for (auto each = xcb_randr_get_monitors_monitors_iterator(monitors.get()); each.rem > 0;
       xcb_randr_monitor_info_next(&each)) {
    digest.addNumber(each.data->name).addNumber(each.data->primary);
    digest.addNumber(static_cast<uint64_t>(each.data->x));
    digest.addNumber(static_cast<uint64_t>(each.data->y));
    digest.addNumber(each.data->width).addNumber(each.data->height);
  }
  return digest.finish();
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
  auto address = textIn(bus);
  if (address.size() == 0) return nullptr;
  return kj::mv(address);
}

}  // namespace praefectus::x11
