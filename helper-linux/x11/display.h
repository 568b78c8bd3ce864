// The X display: windows, their owners, geometry and order, monitors, and the person's pointer and
// focus. Reads only; nothing here moves, raises or focuses anything.
//
// Requests of one question leave together and are answered in one round trip. xcb waits without a
// deadline, so every question runs under a timer that cuts the socket: a display that hangs is
// lost, not waited for.
#pragma once

#include "ipc/desktop.h"

#include <kj/refcount.h>
#include <kj/time.h>

#include <xcb/xcb.h>

#include <cstdlib>

namespace praefectus::x11 {

// A window that a person sees as one: those that the window manager lists, and besides those that
// pass it by (override-redirect: menus, popovers, tooltips, lists of combo boxes) as long as they
// show.
struct TopLevel {
  xcb_window_t id = 0;
  uint32_t pid = 0;  // By the X server's own knowledge where it has any, else as the client claims.
  kj::String title;
  Rect bounds;  // Client area, in root coordinates.
  bool managed = true;
  WindowKind kind = WindowKind::NORMAL;
  // Another one of the list that it belongs to: the one that it names, and for what passes the
  // window manager by and names none, its process's only managed one. 0 for none.
  xcb_window_t owner = 0;
  bool visible = false;
  bool active = false;
  bool modal = false;
  // Invisible margins that the client draws inside its window (shadows of GTK's own decorations).
  uint32_t marginLeft = 0, marginRight = 0, marginTop = 0, marginBottom = 0;
  // The window manager's frame around the client area.
  uint32_t frameLeft = 0, frameRight = 0, frameTop = 0, frameBottom = 0;
};

// One part of the root window that is a screen of its own.
struct MonitorSeen {
  xcb_atom_t name = XCB_ATOM_NONE;
  Rect bounds;  // In root coordinates; origins may be negative.
  bool primary = false;
};

// How the monitors stand.
struct Layout {
  Rect screen;      // The root window.
  Hash topology{};  // Of their names, places and sizes, and of the root window's size.
  kj::Vector<MonitorSeen> monitors;  // At most bounds::MONITORS; the topology covers all.
};

// What must not change behind the person's back.
struct Context {
  int16_t pointerX = 0, pointerY = 0;
  xcb_window_t focus = 0;
  xcb_window_t active = 0;
  kj::Vector<xcb_window_t> stacking;  // Bottom first.
  uint32_t sequence = 0;              // Of the request that read the stacking.
};

enum class Atom : unsigned {
  ACTIVE_WINDOW,
  CLIENT_LIST_STACKING,
  WM_PID,
  WM_NAME,
  WM_STATE,
  WM_STATE_HIDDEN,
  WM_STATE_MODAL,
  WM_WINDOW_TYPE,
  TYPE_NORMAL,
  TYPE_DIALOG,
  TYPE_UTILITY,
  TYPE_TOOLBAR,
  TYPE_MENU,
  TYPE_DROPDOWN_MENU,
  TYPE_POPUP_MENU,
  TYPE_COMBO,
  TYPE_TOOLTIP,
  TYPE_NOTIFICATION,
  TYPE_SPLASH,
  TYPE_DOCK,
  TYPE_DESKTOP,
  ICCCM_STATE,
  FRAME_EXTENTS,
  GTK_FRAME_EXTENTS,
  UTF8_STRING,
  COMPOUND_TEXT,
  AT_SPI_BUS,
  XTEST_DEVICE,
};
constexpr unsigned ATOMS = static_cast<unsigned>(Atom::XTEST_DEVICE) + 1;

class Display final : public kj::Refcounted {
 public:
  // Connects to a display of this machine (":7", "unix:7.0"); nothing when there is none.
  static kj::Maybe<kj::Own<Display>> open(kj::StringPtr name);
  explicit Display(kj::StringPtr name);
  ~Display() noexcept(false);
  KJ_DISALLOW_COPY(Display);

  bool alive();  // Asks the server.
  kj::StringPtr name() const { return displayName; }

  // Bottom of the stack first, as the server draws it; at most bounds::WINDOWS, and `cut` when
  // there were more.
  kj::Vector<TopLevel> topLevels(bool& cut);
  Layout layout();
  Hash topology() { return layout().topology; }
  // Of the X server, where it is known.
  kj::Maybe<uint32_t> serverProcess() const;
  kj::Maybe<Context> context();
  // The accessibility bus that at-spi2-core announced on this display.
  kj::Maybe<kj::String> accessibilityBus();

  xcb_connection_t* raw() const { return connection; }
  xcb_window_t root() const { return rootWindow; }
  xcb_atom_t atom(Atom which) const { return atoms[static_cast<unsigned>(which)]; }
  bool hasComposite() const { return composite; }
  bool hasDamage() const { return damage; }
  bool hasInput() const { return input; }
  uint8_t damageEvent() const { return firstDamageEvent; }
  uint8_t inputOpcode() const { return inputMajor; }

  // While one lives, replies may be waited for; after the time allowed the connection is cut. One
  // at a time.
  class Waiting {
   public:
    explicit Waiting(const Display& display);
    ~Waiting() noexcept(false);
    KJ_DISALLOW_COPY(Waiting);
  };

 private:
  bool connect();
  void findExtensions();
  void internAtoms();
  kj::Vector<xcb_window_t> listWindows(bool& cut);

  kj::String displayName;
  xcb_connection_t* connection = nullptr;
  int fd = -1;
  xcb_window_t rootWindow = 0;
  bool composite = false, damage = false, input = false, randr = false, resource = false;
  uint8_t firstDamageEvent = 0, inputMajor = 0;
  xcb_atom_t atoms[ATOMS] = {};
};

// A reply or event that frees itself.
template <typename T>
class Freed {
 public:
  explicit Freed(T* pointer) : pointer(pointer) {}
  ~Freed() { free(pointer); }
  KJ_DISALLOW_COPY(Freed);
  explicit operator bool() const { return pointer != nullptr; }
  T* operator->() const { return pointer; }
  T* get() const { return pointer; }

 private:
  T* pointer;
};

}  // namespace praefectus::x11
