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

// A top-level window as the window manager lists it.
struct TopLevel {
  xcb_window_t id = 0;
  uint32_t pid = 0;  // By the X server's own knowledge where it has any, else as the client claims.
  kj::String title;
  Rect bounds;  // Client area, in root coordinates.
  bool visible = false;
  bool active = false;
  bool modal = false;
  // Invisible margins that the client draws inside its window (shadows of GTK's own decorations).
  uint32_t marginLeft = 0, marginRight = 0, marginTop = 0, marginBottom = 0;
  // The window manager's frame around the client area.
  uint32_t frameLeft = 0, frameRight = 0, frameTop = 0, frameBottom = 0;
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
  ICCCM_STATE,
  FRAME_EXTENTS,
  GTK_FRAME_EXTENTS,
  UTF8_STRING,
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

  // Bottom of the stack first; at most bounds::WINDOWS, and `cut` when there were more.
  kj::Vector<TopLevel> topLevels(bool& cut);
  // A digest over the monitors' names, places and sizes.
  Hash topology();
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
