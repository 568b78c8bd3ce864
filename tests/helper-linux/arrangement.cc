#include "tests/helper-linux/arrangement.h"

#include <kj/debug.h>

// Last: its macros have the names of ordinary things.
#include <X11/extensions/Xrandr.h>

namespace praefectus::tests {

Arrangement::Arrangement(kj::StringPtr name) : display(XOpenDisplay(name.cStr())) {
  KJ_REQUIRE(display != nullptr);
}

Arrangement::~Arrangement() { XCloseDisplay(display); }

void Arrangement::place(kj::StringPtr name, const Rect& at) {
  auto* monitor = XRRAllocateMonitor(display, 0);
  KJ_REQUIRE(monitor != nullptr);
  monitor->name = XInternAtom(display, name.cStr(), False);
  monitor->primary = monitor->automatic = False;
  monitor->x = at.x;
  monitor->y = at.y;
  monitor->width = static_cast<int>(at.width);
  monitor->height = static_cast<int>(at.height);
  monitor->mwidth = monitor->mheight = 100;
  XRRSetMonitor(display, XDefaultRootWindow(display), monitor);
  XRRFreeMonitors(monitor);
  XSync(display, False);
}

}  // namespace praefectus::tests
