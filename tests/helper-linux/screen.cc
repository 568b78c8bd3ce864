#include "tests/helper-linux/screen.h"

#include "supervisor/cli/private-desktop.h"

#include <kj/debug.h>

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XInput.h>
#include <X11/extensions/XInput2.h>
#include <X11/extensions/XTest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace praefectus::tests {

void useAuthorityOf(const PrivateDesktop& desktop) {
  constexpr kj::StringPtr NAME = "XAUTHORITY="_kj;
  for (auto& variable : desktop.environment()) {
    if (!variable.startsWith(NAME)) continue;
    KJ_SYSCALL(setenv("XAUTHORITY", variable.slice(NAME.size()).cStr(), 1));
  }
}

Screen::Screen(kj::StringPtr name) : display(XOpenDisplay(name.cStr())) {
  KJ_REQUIRE(display != nullptr);
  // A window that closes between two requests is no failure of the test.
  XSetErrorHandler([](::Display*, XErrorEvent*) { return 0; });
}

Screen::~Screen() { XCloseDisplay(display); }

std::string Screen::title(uint64_t window) {
  Atom type;
  int format;
  unsigned long count = 0, rest;
  unsigned char* data = nullptr;
  XGetWindowProperty(display, window, XInternAtom(display, "_NET_WM_NAME", False), 0, 1024, False,
                     AnyPropertyType, &type, &format, &count, &rest, &data);
  std::string out(reinterpret_cast<char*>(data), data == nullptr ? 0 : count);
  if (data != nullptr) XFree(data);
  return out;
}

std::vector<uint64_t> Screen::windows(const char* property) {
  std::vector<uint64_t> out;
  Atom type;
  int format;
  unsigned long count = 0, rest;
  unsigned char* data = nullptr;
  XGetWindowProperty(display, DefaultRootWindow(display), XInternAtom(display, property, False), 0,
                     1024, False, AnyPropertyType, &type, &format, &count, &rest, &data);
  for (unsigned long i = 0; i < count; ++i)
    out.push_back(reinterpret_cast<unsigned long*>(data)[i]);
  if (data != nullptr) XFree(data);
  return out;
}

std::vector<uint64_t> Screen::drawn(std::vector<uint64_t> ids) {
  auto treeOf = [this](Window window, Window& parent, std::vector<Window>& children) {
    Window root = 0;
    Window* list = nullptr;
    unsigned count = 0;
    if (XQueryTree(display, window, &root, &parent, &list, &count) == 0) return;
    children.assign(list, list + count);
    if (list != nullptr) XFree(list);
  };
  Window root = DefaultRootWindow(display), parent = 0;
  std::vector<Window> order, ignored;
  treeOf(root, parent, order);
  auto placeOf = [&](uint64_t id) {
    Window at = id;
    for (;;) {
      treeOf(at, parent, ignored);
      if (parent == root || parent == 0) break;
      at = parent;
    }
    return std::find(order.begin(), order.end(), at) - order.begin();
  };
  std::stable_sort(ids.begin(), ids.end(),
                   [&](uint64_t a, uint64_t b) { return placeOf(a) < placeOf(b); });
  return ids;
}

Surroundings Screen::look() {
  Surroundings out;
  Window root, child, focused;
  int x, y, revert;
  unsigned mask;
  XQueryPointer(display, DefaultRootWindow(display), &root, &child, &out.pointerX, &out.pointerY,
                &x, &y, &mask);
  XGetInputFocus(display, &focused, &revert);
  out.focus = focused;
  auto active = windows("_NET_ACTIVE_WINDOW");
  out.active = active.empty() ? 0 : active[0];
  out.stacking = windows("_NET_CLIENT_LIST_STACKING");
  return out;
}

void Screen::warp(int x, int y) {
  XWarpPointer(display, None, DefaultRootWindow(display), 0, 0, 0, 0, x, y);
  XSync(display, False);
}

void Screen::moveMouse(int x, int y) {
  // Xvfb's own mouse is no XTEST device: what moves it looks like a person to every program.
  int count = 0;
  XIDeviceInfo* devices = XIQueryDevice(display, XIAllDevices, &count);
  for (int i = 0; i < count; ++i) {
    bool isMouse = devices[i].use == XISlavePointer && strstr(devices[i].name, "XTEST") == nullptr;
    if (!isMouse) continue;
    XDevice* mouse = XOpenDevice(display, static_cast<XID>(devices[i].deviceid));
    int axes[] = {x, y};
    XTestFakeDeviceMotionEvent(display, mouse, False, 0, axes, 2, CurrentTime);
    XSync(display, False);
    XCloseDevice(display, mouse);
    break;
  }
  XIFreeDeviceInfo(devices);
}

void Screen::click(unsigned button) {
  XTestFakeButtonEvent(display, button, True, 0);
  XTestFakeButtonEvent(display, button, False, 0);
  XSync(display, False);
}

void Screen::focus(uint64_t window) {
  XSetInputFocus(display, window, RevertToParent, CurrentTime);
  XSync(display, False);
}

void Screen::raise(uint64_t window) {
  XRaiseWindow(display, window);
  XSync(display, False);
}

void Screen::move(uint64_t window, int x, int y, unsigned width, unsigned height) {
  XMoveResizeWindow(display, window, x, y, width, height);
  XSync(display, False);
}

void Screen::type(const char* key, bool control) {
  KeyCode code = XKeysymToKeycode(display, XStringToKeysym(key));
  KeyCode modifier = XKeysymToKeycode(display, XStringToKeysym("Control_L"));
  if (control) XTestFakeKeyEvent(display, modifier, True, 0);
  XTestFakeKeyEvent(display, code, True, 0);
  XTestFakeKeyEvent(display, code, False, 0);
  if (control) XTestFakeKeyEvent(display, modifier, False, 0);
  XSync(display, False);
}

}  // namespace praefectus::tests
