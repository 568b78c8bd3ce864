// The list of top-level windows. Two round trips: what there is, then everything about it; a third
// when something shows past the window manager, or a frame has more than one layer.
#include "helper-linux/x11/display.h"
#include "helper-linux/x11/property.h"
#include "ipc/bounds.h"

#include <kj/map.h>

#include <xcb/res.h>

#include <algorithm>

namespace praefectus::x11 {
namespace {

constexpr uint32_t ICONIC_STATE = 3;  // ICCCM 4.1.3.1
// Windows between a client's and the root: KWin has two.
constexpr unsigned FRAME_LAYERS = 4;
// Of the root's children that many are looked at, the topmost. Most are invisible and small.
constexpr size_t ROOT_CHILDREN = 8 * bounds::WINDOWS;
// What is smaller is a trick of a toolkit, not something that a person sees.
constexpr uint16_t SMALLEST_SIDE = 2;
// Ids that clients choose have the top three bits clear; others are the server's own windows, such
// as a compositor's overlay. Source: X Window System Protocol, "Connection Setup".
constexpr uint32_t SERVERS_BITS = 0xE000'0000;
constexpr size_t NOWHERE = SIZE_MAX;

struct KindName {
  Atom atom;
  WindowKind kind;
};
// EWMH 1.5, "_NET_WM_WINDOW_TYPE".
constexpr KindName KINDS[] = {
    {Atom::TYPE_NORMAL, WindowKind::NORMAL},   {Atom::TYPE_DIALOG, WindowKind::DIALOG},
    {Atom::TYPE_UTILITY, WindowKind::UTILITY}, {Atom::TYPE_TOOLBAR, WindowKind::UTILITY},
    {Atom::TYPE_MENU, WindowKind::MENU},       {Atom::TYPE_DROPDOWN_MENU, WindowKind::MENU},
    {Atom::TYPE_POPUP_MENU, WindowKind::MENU}, {Atom::TYPE_COMBO, WindowKind::POPUP},
    {Atom::TYPE_TOOLTIP, WindowKind::TOOLTIP}, {Atom::TYPE_NOTIFICATION, WindowKind::NOTIFICATION},
    {Atom::TYPE_SPLASH, WindowKind::SPLASH},   {Atom::TYPE_DOCK, WindowKind::DOCK},
    {Atom::TYPE_DESKTOP, WindowKind::DESKTOP},
};

bool contains(kj::ArrayPtr<const uint32_t> list, uint32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
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

// Everything asked about one window, in flight.
struct Asked {
  xcb_window_t window;
  bool managed;
  size_t place;  // Among the root's children: of itself, or of the frame that it is in.
  xcb_get_window_attributes_cookie_t attributes;
  xcb_get_geometry_cookie_t geometry;
  xcb_translate_coordinates_cookie_t origin;
  xcb_get_property_cookie_t pid, netName, oldName, state, icccmState, frame, margins, types, owner;
  xcb_res_query_client_ids_cookie_t process;
};

class Listing {
 public:
  Listing(const Display& display, bool resource)
      : display(display), connection(display.raw()), resource(resource) {}
  KJ_DISALLOW_COPY(Listing);

  kj::Vector<TopLevel> read(bool& cut) {
    readLists(cut);
    // In one flight: what the listed windows are, where they hang, and which of the root's own
    // children show.
    auto parents = KJ_MAP(window, listed) { return xcb_query_tree(connection, window); };
    auto shown = KJ_MAP(child, children) { return askShown(child); };
    for (auto window : listed) asked.add(ask(window, true));
    findFrames(parents);
    auto passing = takePassing(shown);
    for (auto& each : passing) {
      asked.add(ask(each.window, !each.overrideRedirect));
      asked.back().place = each.place;
    }
    std::stable_sort(asked.begin(), asked.end(),
                     [](auto& a, auto& b) { return a.place < b.place; });
    return takeAll(cut);
  }

 private:
  struct Shown {
    xcb_window_t window;
    xcb_get_window_attributes_cookie_t attributes;
    xcb_get_geometry_cookie_t geometry;
  };
  struct Passing {
    xcb_window_t window;
    size_t place;
    bool overrideRedirect;
  };

  void readLists(bool& cut) {
    auto activeCookie =
        askProperty(connection, display.root(), display.atom(Atom::ACTIVE_WINDOW), 1);
    auto listCookie = askProperty(connection, display.root(),
                                  display.atom(Atom::CLIENT_LIST_STACKING), LIST_WORDS);
    auto treeCookie = xcb_query_tree(connection, display.root());
    Property activeProperty(xcb_get_property_reply(connection, activeCookie, nullptr));
    Property list(xcb_get_property_reply(connection, listCookie, nullptr));
    Freed tree(xcb_query_tree_reply(connection, treeCookie, nullptr));
    if (items(activeProperty).size() == 1) active = items(activeProperty)[0];
    hasManager = list && list->type != XCB_ATOM_NONE;
    // What is left out is at the bottom, where a person sees it last.
    cut = false;
    auto last = [&cut](kj::ArrayPtr<const uint32_t> all, size_t most) {
      if (all.size() > most) cut = true;
      return all.slice(all.size() - kj::min(all.size(), most), all.size());
    };
    for (auto window : last(items(list), bounds::WINDOWS)) listed.add(window);
    if (!tree) return;
    auto all = kj::arrayPtr(xcb_query_tree_children(tree.get()),
                            static_cast<size_t>(xcb_query_tree_children_length(tree.get())));
    for (auto window : last(all, ROOT_CHILDREN)) {
      places.upsert(window, children.size(), [](auto&, auto&&) {});
      children.add(window);
    }
    framed = kj::heapArray<bool>(children.size());
    std::fill(framed.begin(), framed.end(), false);
  }

  Asked ask(xcb_window_t window, bool managed) {
    auto property = [&](Atom name, uint32_t words) {
      return askProperty(connection, window, display.atom(name), words);
    };
    Asked out{};
    out.window = window;
    out.managed = managed;
    out.place = NOWHERE;
    out.attributes = xcb_get_window_attributes(connection, window);
    out.geometry = xcb_get_geometry(connection, window);
    out.origin = xcb_translate_coordinates(connection, window, display.root(), 0, 0);
    out.pid = property(Atom::WM_PID, 1);
    out.netName = property(Atom::WM_NAME, TITLE_WORDS);
    out.oldName = askProperty(connection, window, XCB_ATOM_WM_NAME, TITLE_WORDS);
    out.state = property(Atom::WM_STATE, 32);
    out.icccmState = property(Atom::ICCCM_STATE, 2);
    out.frame = property(Atom::FRAME_EXTENTS, 4);
    out.margins = property(Atom::GTK_FRAME_EXTENTS, 4);
    out.types = property(Atom::WM_WINDOW_TYPE, 32);
    out.owner = askProperty(connection, window, XCB_ATOM_WM_TRANSIENT_FOR, 1);
    if (resource) {
      xcb_res_client_id_spec_t spec{window, XCB_RES_CLIENT_ID_MASK_LOCAL_CLIENT_PID};
      out.process = xcb_res_query_client_ids(connection, 1, &spec);
    }
    return out;
  }

  Shown askShown(xcb_window_t window) {
    return {window, xcb_get_window_attributes(connection, window),
            xcb_get_geometry(connection, window)};
  }

  // The root's child that each listed window is in: itself, or the window manager's frame.
  void findFrames(kj::ArrayPtr<xcb_query_tree_cookie_t> parents) {
    struct Climb {
      size_t index;
      xcb_query_tree_cookie_t parent;
    };
    kj::Vector<Climb> climbing;
    for (size_t i = 0; i < parents.size(); ++i) {
      if (!isChildOfRoot(i, listed[i])) {
        climbing.add(Climb{i, parents[i]});
      } else {
        xcb_discard_reply(connection, parents[i].sequence);
      }
    }
    for (unsigned layer = 0; layer < FRAME_LAYERS && !climbing.empty(); ++layer) {
      kj::Vector<Climb> higher;
      for (auto& climb : climbing) {
        Freed tree(xcb_query_tree_reply(connection, climb.parent, nullptr));
        if (!tree || isChildOfRoot(climb.index, tree->parent)) continue;
        higher.add(Climb{climb.index, xcb_query_tree(connection, tree->parent)});
      }
      climbing = kj::mv(higher);
    }
    for (auto& climb : climbing) xcb_discard_reply(connection, climb.parent.sequence);
    // One that went away meanwhile keeps the place that the window manager gave it.
    size_t below = 0;
    for (auto& each : asked) {
      if (each.place == NOWHERE) each.place = below;
      below = each.place;
    }
  }

  bool isChildOfRoot(size_t index, xcb_window_t window) {
    KJ_IF_MAYBE (place, places.find(window)) {
      asked[index].place = *place;
      framed[*place] = true;
      return true;
    }
    return false;
  }

  // Without a window manager, every window of the root is listed that shows.
  kj::Vector<Passing> takePassing(kj::ArrayPtr<Shown> shown) {
    kj::Vector<Passing> out;
    for (size_t place = 0; place < shown.size(); ++place) {
      Freed attributes(
          xcb_get_window_attributes_reply(connection, shown[place].attributes, nullptr));
      Freed geometry(xcb_get_geometry_reply(connection, shown[place].geometry, nullptr));
      if (!attributes || !geometry || framed[place]) continue;
      bool isSeen = attributes->map_state == XCB_MAP_STATE_VIEWABLE &&
                    attributes->_class == XCB_WINDOW_CLASS_INPUT_OUTPUT &&
                    geometry->width >= SMALLEST_SIDE && geometry->height >= SMALLEST_SIDE &&
                    (shown[place].window & SERVERS_BITS) == 0;
      bool passes = attributes->override_redirect != 0;
      if (isSeen && (passes || !hasManager)) {
        out.add(Passing{shown[place].window, place, passes});
      }
    }
    return out;
  }

  kj::Vector<TopLevel> takeAll(bool& cut) {
    kj::Vector<TopLevel> out(asked.size());
    for (auto& query : asked) {
      KJ_IF_MAYBE (top, take(query)) out.add(kj::mv(*top));
    }
    if (out.size() > bounds::WINDOWS) {
      cut = true;
      kj::Vector<TopLevel> topmost(bounds::WINDOWS);
      for (auto& top : out.slice(out.size() - bounds::WINDOWS, out.size())) {
        topmost.add(kj::mv(top));
      }
      out = kj::mv(topmost);
    }
    nameOwners(out);
    return out;
  }

  static void nameOwners(kj::ArrayPtr<TopLevel> tops) {
    for (auto& top : tops) {
      bool known = std::any_of(tops.begin(), tops.end(), [&](auto& other) {
        return &other != &top && other.id == top.owner;
      });
      if (!known) top.owner = 0;
      if (top.owner == 0 && !top.managed && top.pid != 0) top.owner = onlyManagedOf(tops, top.pid);
    }
  }

  // GTK 4's popovers and Chromium's menus do not say whose they are.
  static xcb_window_t onlyManagedOf(kj::ArrayPtr<const TopLevel> tops, uint32_t pid) {
    xcb_window_t only = 0;
    for (auto& top : tops) {
      if (!top.managed || top.pid != pid) continue;
      if (only != 0) return 0;
      only = top.id;
    }
    return only;
  }

  // Nothing when the window went away meanwhile.
  kj::Maybe<TopLevel> take(Asked& query) {
    auto property = [this](xcb_get_property_cookie_t cookie) {
      return xcb_get_property_reply(connection, cookie, nullptr);
    };
    Freed attributes(xcb_get_window_attributes_reply(connection, query.attributes, nullptr));
    Freed geometry(xcb_get_geometry_reply(connection, query.geometry, nullptr));
    Freed origin(xcb_translate_coordinates_reply(connection, query.origin, nullptr));
    Property pid(property(query.pid)), netName(property(query.netName)),
        oldName(property(query.oldName)), state(property(query.state)),
        icccmState(property(query.icccmState)), frame(property(query.frame)),
        margins(property(query.margins)), types(property(query.types)),
        owner(property(query.owner));
    TopLevel top;
    top.id = query.window;
    if (resource) top.pid = ownerIn(connection, query.process);
    if (!attributes || !geometry || !origin) return nullptr;
    if (top.pid == 0 && items(pid).size() == 1) top.pid = items(pid)[0];
    top.title = titleIn(netName, oldName);
    top.bounds = {origin->dst_x, origin->dst_y, geometry->width, geometry->height};
    top.managed = query.managed;
    if (items(owner).size() == 1) top.owner = items(owner)[0];
    top.kind = kindOf(items(types), top.managed, top.owner != 0);
    bool iconic = items(icccmState).size() > 0 && items(icccmState)[0] == ICONIC_STATE;
    top.visible = attributes->map_state == XCB_MAP_STATE_VIEWABLE && !iconic &&
                  !contains(items(state), display.atom(Atom::WM_STATE_HIDDEN));
    top.active = query.window == active;
    top.modal = contains(items(state), display.atom(Atom::WM_STATE_MODAL));
    takeExtents(margins, top.marginLeft, top.marginRight, top.marginTop, top.marginBottom);
    takeExtents(frame, top.frameLeft, top.frameRight, top.frameTop, top.frameBottom);
    return kj::mv(top);
  }

  kj::String titleIn(const Property& netName, const Property& oldName) {
    auto title = textIn(netName, Encoding::UTF8);
    if (title.size() > 0 || !oldName) return title;
    bool isUtf8 = oldName->type == display.atom(Atom::UTF8_STRING);
    bool isCompound = oldName->type == display.atom(Atom::COMPOUND_TEXT);
    return textIn(oldName, isUtf8       ? Encoding::UTF8
                           : isCompound ? Encoding::COMPOUND
                                        : Encoding::LATIN1);
  }

  // The first that we know of those that the client names, in its order of preference. Without one,
  // what EWMH prescribes; what passes the window manager by is no normal window, whatever it says.
  WindowKind kindOf(kj::ArrayPtr<const uint32_t> types, bool managed, bool owned) const {
    for (auto type : types) {
      for (auto& known : KINDS) {
        if (display.atom(known.atom) != type) continue;
        bool isNormal = known.kind == WindowKind::NORMAL;
        return isNormal && !managed ? WindowKind::POPUP : known.kind;
      }
    }
    if (!managed) return WindowKind::POPUP;
    return owned ? WindowKind::DIALOG : WindowKind::NORMAL;
  }

  const Display& display;
  xcb_connection_t* connection;
  bool resource;
  bool hasManager = false;
  xcb_window_t active = XCB_WINDOW_NONE;
  kj::Vector<xcb_window_t> listed;    // By the window manager, bottom first.
  kj::Vector<xcb_window_t> children;  // Of the root, bottom first.
  kj::HashMap<xcb_window_t, size_t> places;
  kj::Array<bool> framed;  // Whether a child of the root is a listed window or the frame of one.
  kj::Vector<Asked> asked;
};

}  // namespace

kj::Vector<TopLevel> Display::topLevels(bool& cut) {
  Waiting waiting(*this);
  return Listing(*this, resource).read(cut);
}

}  // namespace praefectus::x11
