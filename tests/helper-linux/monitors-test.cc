// Monitors that come, go or change between a look and an act.
#include "tests/helper-linux/desk.h"

#include <gtest/gtest.h>

// Last: its macros have the names of ordinary things.
#include <X11/extensions/Xrandr.h>

namespace praefectus::tests {
namespace {

// Whoever arranges the monitors of a display.
class Arranger {
 public:
  explicit Arranger(kj::StringPtr name) : display(XOpenDisplay(name.cStr())) {
    KJ_REQUIRE(display != nullptr);
    further = XInternAtom(display, "a-further-monitor", False);
  }
  ~Arranger() { XCloseDisplay(display); }
  KJ_DISALLOW_COPY(Arranger);

  // A further monitor, or another place for it. In pixels of the root window.
  void place(int x, int width) {
    if (placed) remove();  // Xvfb takes no second place for one that it has.
    auto* monitor = XRRAllocateMonitor(display, 0);
    KJ_REQUIRE(monitor != nullptr);
    monitor->name = further;
    monitor->primary = monitor->automatic = False;
    monitor->x = x;
    monitor->y = 0;
    monitor->width = width;
    monitor->height = monitor->mwidth = monitor->mheight = 100;
    XRRSetMonitor(display, XDefaultRootWindow(display), monitor);
    XRRFreeMonitors(monitor);
    XSync(display, False);
    placed = true;
  }
  void remove() {
    XRRDeleteMonitor(display, XDefaultRootWindow(display), further);
    XSync(display, False);
    placed = false;
  }

 private:
  ::Display* display;
  Atom further;
  bool placed = false;
};

TEST(Monitors, anyChangeOfThemMakesWhatWasSeenStale) {
  Desk desk;
  Arranger arranger(desk.desktop.display());
  auto refused = [&](const Observed& seen) {
    auto button = seen.find("push button", "Record");
    return nameOf(desk.helper.prepareInvoke(seen, button, "click"));
  };
  auto seen = desk.observe();
  EXPECT_EQ(refused(seen), "");
  arranger.place(0, 50);
  EXPECT_EQ(refused(seen), "target_changed") << "one came";
  seen = desk.observe();
  EXPECT_EQ(refused(seen), "") << "a new look sees them as they are";
  arranger.place(0, 60);
  EXPECT_EQ(refused(seen), "target_changed") << "one changed its size";
  seen = desk.observe();
  arranger.place(10, 60);
  EXPECT_EQ(refused(seen), "target_changed") << "one moved";
  seen = desk.observe();
  arranger.remove();
  EXPECT_EQ(refused(seen), "target_changed") << "one went";
  EXPECT_TRUE(desk.recorded("record").empty());
}

}  // namespace
}  // namespace praefectus::tests
