// What a list of the desktop says of its windows, applications and monitors, against a second pair
// of eyes and against windows that the test makes itself.
#include "helper-linux/desktop/process.h"
#include "tests/helper-linux/applications.h"
#include "tests/helper-linux/call-counter.h"
#include "tests/helper-linux/desk.h"
#include "tests/helper-linux/screen.h"
#include "tests/helper-linux/strange.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <thread>

#include <signal.h>
#include <xcb/composite.h>

// Last: its macros have the names of ordinary things.
#include <X11/Xatom.h>
#include <X11/Xlib.h>
#include <X11/extensions/Xrandr.h>
#undef None

namespace praefectus::tests {
namespace {

// What a test wants of a window of its own.
struct Wanted {
  int x = 50, y = 60;
  unsigned width = 120, height = 80;
  bool passes = false;  // Past the window manager.
  const char* type = nullptr;
  uint64_t owner = 0;
  const char* title = "of the test";
  bool shows = true;
  bool inputOnly = false;
};

// A program with windows and without accessibility, in the test's own process.
class Client {
 public:
  explicit Client(const Desk& desk)
      : display(XOpenDisplay(desk.desktop.display().cStr())),
        compositor(xcb_connect(desk.desktop.display().cStr(), nullptr)) {
    KJ_REQUIRE(display != nullptr && xcb_connection_has_error(compositor) == 0);
  }
  ~Client() {
    xcb_disconnect(compositor);
    XCloseDisplay(display);
  }
  KJ_DISALLOW_COPY(Client);

  uint64_t open(const Wanted& wanted) {
    XSetWindowAttributes attributes{};
    attributes.override_redirect = wanted.passes ? True : False;
    ::Window window = XCreateWindow(display, root(), wanted.x, wanted.y, wanted.width,
                                    wanted.height, 0, wanted.inputOnly ? 0 : CopyFromParent,
                                    wanted.inputOnly ? InputOnly : InputOutput, nullptr,
                                    CWOverrideRedirect, &attributes);
    set(window, "WM_NAME", "STRING", wanted.title);
    if (wanted.owner != 0) XSetTransientForHint(display, window, wanted.owner);
    if (wanted.type != nullptr) {
      Atom type = atom(kj::str("_NET_WM_WINDOW_TYPE_", wanted.type).cStr());
      XChangeProperty(display, window, atom("_NET_WM_WINDOW_TYPE"), XA_ATOM, 32, PropModeReplace,
                      reinterpret_cast<unsigned char*>(&type), 1);
    }
    if (wanted.shows) XMapWindow(display, window);
    XSync(display, False);
    return window;
  }

  void set(uint64_t window, const char* property, const char* type, const std::string& bytes) {
    XChangeProperty(display, window, atom(property), atom(type), 8, PropModeReplace,
                    reinterpret_cast<const unsigned char*>(bytes.data()),
                    static_cast<int>(bytes.size()));
    XSync(display, False);
  }

  // Under everything that the window manager has.
  void lower(uint64_t window) {
    XLowerWindow(display, window);
    XSync(display, False);
  }

  void hide(uint64_t window) {
    XUnmapWindow(display, window);
    XSync(display, False);
  }

  // The window that a compositor draws on: over everything, and nobody's.
  uint64_t takeOverlay() {
    auto* reply = xcb_composite_get_overlay_window_reply(
        compositor, xcb_composite_get_overlay_window(compositor, static_cast<xcb_window_t>(root())),
        nullptr);
    KJ_REQUIRE(reply != nullptr);
    uint64_t overlay = reply->overlay_win;
    free(reply);
    return overlay;
  }

  // A further monitor beside the one that there is, or another place for it.
  void placeMonitor(int x, int y) {
    auto name = atom("a-further-monitor");
    if (placed) XRRDeleteMonitor(display, root(), name);
    auto* monitor = XRRAllocateMonitor(display, 0);
    monitor->name = name;
    monitor->primary = monitor->automatic = False;
    monitor->x = x;
    monitor->y = y;
    monitor->width = monitor->height = monitor->mwidth = monitor->mheight = 100;
    XRRSetMonitor(display, root(), monitor);
    XRRFreeMonitors(monitor);
    XSync(display, False);
    placed = true;
  }

  ::Window root() const { return XDefaultRootWindow(display); }

 private:
  Atom atom(const char* name) { return XInternAtom(display, name, False); }

  ::Display* display;
  xcb_connection_t* compositor;
  bool placed = false;
};

Desktop listOf(Desk& desk) {
  auto listed = desk.helper.list();
  KJ_REQUIRE(listed.ok(), nameOf(listed.refusal().code));
  return kj::mv(*listed);
}

kj::Maybe<const Window&> in(const Desktop& desktop, uint64_t id) {
  for (auto& window : desktop.windows) {
    if (window.ref.window == id) return window;
  }
  return nullptr;
}

// The list as soon as it has the window.
Desktop listWith(Desk& desk, uint64_t id) {
  Desktop out;
  KJ_REQUIRE(eventually([&]() {
               out = listOf(desk);
               return in(out, id) != nullptr;
             }),
             "the window is not listed");
  return out;
}

const Window& find(const Desktop& desktop, uint64_t id) {
  return KJ_REQUIRE_NONNULL(in(desktop, id), "the window is not listed");
}

kj::Maybe<AppState> stateOf(const Desktop& desktop, uint32_t pid) {
  for (auto& each : desktop.applications) {
    if (each.process.pid == pid) return each.state;
  }
  return nullptr;
}

std::vector<uint64_t> idsOf(const Desktop& desktop) {
  std::vector<uint64_t> out;
  for (auto& window : desktop.windows) out.push_back(window.ref.window);
  return out;
}

// ---- Windows ----------------------------------------------------------------------------------

TEST(Windows, standInTheOrderInWhichTheServerDrawsThem) {
  Desk desk;
  Client client(desk);
  Screen screen(desk.desktop.display());
  auto low = client.open({.x = 10, .title = "low"});
  auto high = client.open({.x = 30, .title = "high"});
  listWith(desk, low);
  listWith(desk, high);
  auto passing = client.open({.x = 20, .passes = true});
  listWith(desk, passing);
  auto isAsDrawn = [&]() {
    auto desktop = listOf(desk);
    auto ids = idsOf(desktop);
    EXPECT_EQ(ids, screen.drawn(ids));
    std::vector<uint64_t> managed;
    for (size_t i = 0; i < desktop.windows.size(); ++i) {
      EXPECT_EQ(desktop.windows[i].stacking, i);
      if (desktop.windows[i].managed) managed.push_back(ids[i]);
    }
    EXPECT_EQ(managed, screen.windows("_NET_CLIENT_LIST_STACKING"));
    return ids;
  };
  EXPECT_EQ(isAsDrawn().back(), passing);
  client.lower(passing);
  EXPECT_EQ(isAsDrawn().front(), passing);
  for (auto raised : {low, high, desk.probe.window, low}) {
    screen.raise(raised);
    ASSERT_TRUE(
        eventually([&]() { return screen.windows("_NET_CLIENT_LIST_STACKING").back() == raised; }));
    auto ids = isAsDrawn();
    EXPECT_EQ(ids.back() == passing ? ids[ids.size() - 2] : ids.back(), raised);
  }
}

TEST(Windows, areWhatTheirOwnersSay) {
  struct {
    const char* type;
    WindowKind managed, passing;
  } const kinds[] = {
      {"NORMAL", WindowKind::NORMAL, WindowKind::POPUP},
      {"DIALOG", WindowKind::DIALOG, WindowKind::DIALOG},
      {"UTILITY", WindowKind::UTILITY, WindowKind::UTILITY},
      {"TOOLBAR", WindowKind::UTILITY, WindowKind::UTILITY},
      {"MENU", WindowKind::MENU, WindowKind::MENU},
      {"DROPDOWN_MENU", WindowKind::MENU, WindowKind::MENU},
      {"POPUP_MENU", WindowKind::MENU, WindowKind::MENU},
      {"COMBO", WindowKind::POPUP, WindowKind::POPUP},
      {"TOOLTIP", WindowKind::TOOLTIP, WindowKind::TOOLTIP},
      {"NOTIFICATION", WindowKind::NOTIFICATION, WindowKind::NOTIFICATION},
      {"SPLASH", WindowKind::SPLASH, WindowKind::SPLASH},
      {"DOCK", WindowKind::DOCK, WindowKind::DOCK},
      {"DESKTOP", WindowKind::DESKTOP, WindowKind::DESKTOP},
      {nullptr, WindowKind::NORMAL, WindowKind::POPUP},
      {"OF_THE_FUTURE", WindowKind::NORMAL, WindowKind::POPUP},
  };
  Desk desk;
  Client client(desk);
  for (auto& each : kinds) {
    const char* name = each.type == nullptr ? "none" : each.type;
    auto managed = client.open({.type = each.type});
    auto passing = client.open({.passes = true, .type = each.type});
    listWith(desk, managed);
    auto desktop = listWith(desk, passing);
    EXPECT_EQ(find(desktop, managed).kind, each.managed) << name;
    EXPECT_TRUE(find(desktop, managed).managed) << name;
    EXPECT_EQ(find(desktop, passing).kind, each.passing) << name;
    EXPECT_FALSE(find(desktop, passing).managed) << name;
    client.hide(managed);
    client.hide(passing);
  }
}

TEST(Windows, nameTheOneThatTheyBelongTo) {
  Desk desk;
  Client client(desk);
  auto owned = client.open({.owner = desk.probe.window});
  auto menu = client.open({.passes = true, .type = "POPUP_MENU", .owner = desk.probe.window});
  auto grouped = client.open({.owner = client.root()});
  auto hidden = client.open({.shows = false});
  auto orphan = client.open({.passes = true, .owner = hidden});
  for (auto each : {owned, menu, grouped, orphan}) listWith(desk, each);
  auto desktop = listOf(desk);
  EXPECT_EQ(find(desktop, owned).owner, desk.probe.window);
  EXPECT_EQ(find(desktop, owned).kind, WindowKind::DIALOG) << "by EWMH, having said nothing else";
  EXPECT_EQ(find(desktop, menu).owner, desk.probe.window);
  EXPECT_EQ(find(desktop, grouped).owner, 0u) << "the root is nobody";
  EXPECT_EQ(find(desktop, orphan).owner, 0u) << "nobody can see its owner";
  EXPECT_EQ(find(desktop, desk.probe.window).owner, 0u);
}

TEST(Windows, thatDoNotSayWhoseTheyAreBelongToTheirProcesssOnlyOther) {
  Desk desk;
  Client client(desk);
  auto first = client.open({});
  listWith(desk, first);
  auto menu = client.open({.passes = true});
  auto alone = listWith(desk, menu);
  EXPECT_EQ(find(alone, menu).owner, first);
  auto second = client.open({.x = 300});
  auto several = listWith(desk, second);
  EXPECT_EQ(find(several, menu).owner, 0u);
}

TEST(Windows, thatNobodyCanSeeAreNotListed) {
  Desk desk;
  Client client(desk);
  auto unmapped = client.open({.passes = true, .shows = false});
  auto dot = client.open({.width = 1, .height = 1, .passes = true});
  auto line = client.open({.width = 1, .height = 90, .passes = true});
  auto transparent = client.open({.passes = true, .inputOnly = true});
  auto overlay = client.takeOverlay();
  auto smallest = client.open({.width = 2, .height = 2, .passes = true});
  auto desktop = listWith(desk, smallest);
  for (auto each : {unmapped, dot, line, transparent, overlay}) {
    EXPECT_TRUE(in(desktop, each) == nullptr);
  }
  EXPECT_EQ(desktop.windows.size(), 2u);
  client.hide(smallest);
  EXPECT_TRUE(eventually([&]() { return in(listOf(desk), smallest) == nullptr; }));
}

TEST(Windows, haveTitlesInUtf8WhateverTheyWereWrittenIn) {
  Desk desk;
  Client client(desk);
  auto window = client.open({});
  listWith(desk, window);
  auto title = [&]() { return std::string(find(listOf(desk), window).title.cStr()); };
  client.set(window, "WM_NAME", "STRING", "Caf\xe9");
  EXPECT_EQ(title(), "Caf\xc3\xa9");
  client.set(window, "WM_NAME", "COMPOUND_TEXT", "\x1b%G\xe4\xbd\xa0\x1b%@ caf\xe9");
  EXPECT_EQ(title(), "\xe4\xbd\xa0 caf\xc3\xa9");
  client.set(window, "WM_NAME", "UTF8_STRING", "\xe4\xbd\xa0");
  EXPECT_EQ(title(), "\xe4\xbd\xa0");
  client.set(window, "_NET_WM_NAME", "UTF8_STRING", "\xf0\x9f\x98\x80");
  EXPECT_EQ(title(), "\xf0\x9f\x98\x80") << "the newer property comes first";
}

TEST(Windows, ofOneProcessWithEqualTitlesAreTwo) {
  Desk desk;
  Client client(desk);
  auto first = client.open({.x = 10, .title = "Twin"});
  auto second = client.open({.x = 400, .title = "Twin"});
  listWith(desk, first);
  auto desktop = listWith(desk, second);
  auto& one = find(desktop, first);
  auto& other = find(desktop, second);
  EXPECT_EQ(one.title, other.title);
  EXPECT_EQ(one.ref.process.pid, static_cast<uint32_t>(getpid())) << "by the server's word";
  EXPECT_EQ(one.ref.process, other.ref.process);
  EXPECT_EQ(one.ref.process.start, desktop::startOf(static_cast<uint32_t>(getpid())).orDefault(0));
  EXPECT_NE(one.bounds, other.bounds);
  EXPECT_FALSE(one.accessible || other.accessible);
}

// Opens a menu of an editor by the person's mouse, at an element of it.
class OpenMenu {
 public:
  OpenMenu(kj::StringPtr role, kj::StringPtr name, unsigned button)
      : editor(open(desk.desktop, desk.helper, MOUSEPAD).window), screen(desk.desktop.display()) {
    auto bounds = find(listOf(desk), editor.window).bounds;
    auto seen = desk.helper.observe(editor);
    KJ_REQUIRE(seen.ok());
    auto& place = KJ_ASSERT_NONNULL(seen->at(seen->find(role, name)).bounds);
    screen.raise(editor.window);
    screen.moveMouse(bounds.x + place.x + 9, bounds.y + place.y + 9);
    screen.click(button);
    KJ_REQUIRE(eventually([this]() {
      for (auto& window : listOf(desk).windows) {
        if (!window.managed) menu = kj::mv(window);
      }
      return menu.ref.window != 0;
    }));
  }

  Desk desk;
  WindowRef editor;
  Screen screen;
  Window menu;
};

TEST(Windows, ofAnOpenMenuNameTheWindowThatTheyBelongTo) {
  OpenMenu open("menu", "File", 1);
  EXPECT_EQ(open.menu.kind, WindowKind::MENU);
  EXPECT_EQ(open.menu.owner, open.editor.window);
  EXPECT_EQ(open.menu.ref.process, open.editor.process);
  EXPECT_TRUE(open.menu.visible);
  EXPECT_FALSE(open.menu.accessible) << "its elements are in the window that it belongs to";
  EXPECT_EQ(idsOf(listOf(open.desk)).back(), open.menu.ref.window);
  open.screen.type("Escape", false);
  EXPECT_TRUE(eventually([&]() { return in(listOf(open.desk), open.menu.ref.window) == nullptr; }));
}

TEST(Windows, ofAMenuWithATreeOfItsOwnAreReadLikeAnyOther) {
  OpenMenu open("text", "", 3);
  EXPECT_EQ(open.menu.kind, WindowKind::MENU);
  EXPECT_EQ(open.menu.owner, open.editor.window);
  EXPECT_FALSE(open.menu.managed);
  ASSERT_TRUE(eventually([&]() {
    auto desktop = listOf(open.desk);
    KJ_IF_MAYBE (menu, in(desktop, open.menu.ref.window)) return menu->accessible;
    return false;
  }));
  auto seen = open.desk.helper.observe(open.menu.ref);
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->seen.frame.window, open.menu.ref);
  unsigned items = 0;
  for (auto& element : seen->seen.elements) items += element.role == "menu item" ? 1 : 0;
  EXPECT_GT(items, 5u);
}

TEST(Windows, ofAModalDialogSayWhatTheyBlock) {
  Desk desk("modal");
  desk.change();
  kj::Maybe<Window> found;
  ASSERT_TRUE(eventually([&]() {
    for (auto& window : listOf(desk).windows) {
      if (window.modal && window.accessible) found = kj::mv(window);
    }
    return found != nullptr;
  }));
  auto& dialog = KJ_ASSERT_NONNULL(found);
  EXPECT_EQ(dialog.kind, WindowKind::DIALOG);
  EXPECT_EQ(dialog.owner, desk.probe.window);
  EXPECT_TRUE(dialog.managed);
  EXPECT_STREQ(dialog.title.cStr(), "Praefectus Probe Question");
  auto desktop = listOf(desk);
  EXPECT_FALSE(find(desktop, desk.probe.window).modal);
}

TEST(Windows, withoutAWindowManagerAreThoseThatShow) {
  PrivateDesktop::Options options;
  options.windowManager = false;
  Desk desk("plain", options);
  Client client(desk);
  auto shown = client.open({});
  auto hidden = client.open({.shows = false});
  auto passing = client.open({.passes = true});
  auto desktop = listWith(desk, passing);
  EXPECT_TRUE(find(desktop, shown).managed);
  EXPECT_TRUE(find(desktop, desk.probe.window).managed);
  EXPECT_FALSE(find(desktop, passing).managed);
  EXPECT_TRUE(in(desktop, hidden) == nullptr);
}

// Qt says wrongly where things are in a window, and a window's name may be empty.
TEST(Windows, ofQtAreFoundByTheirSizeAndTheirElementsAreInThem) {
  Desk desk;
  auto calculator = open(desk.desktop, desk.helper, KCALC).window;
  auto desktop = listOf(desk);
  auto& window = find(desktop, calculator.window);
  EXPECT_STREQ(window.title.cStr(), "KCalc");
  EXPECT_TRUE(window.bounds.x > 0 && window.bounds.y > 0) << "where it is must make a difference";
  auto seen = desk.helper.observe(calculator);
  ASSERT_TRUE(seen.ok());
  unsigned buttons = 0;
  for (auto& element : seen->seen.elements) {
    if (element.role != "push button" || !element.shows) continue;
    auto& place = KJ_ASSERT_NONNULL(element.bounds);
    EXPECT_GE(place.x, 0);
    EXPECT_GT(place.y, 0);
    EXPECT_LE(static_cast<uint32_t>(place.x) + place.width, window.bounds.width);
    EXPECT_LE(static_cast<uint32_t>(place.y) + place.height, window.bounds.height);
    ++buttons;
  }
  EXPECT_GT(buttons, 9u);
}

// ---- Applications -----------------------------------------------------------------------------

TEST(Applications, thatCannotBeReadSayWhyEachInItsOwnWord) {
  Desk desk;
  auto terminal = open(desk.desktop, desk.helper, XTERM);
  auto factory = open(desk.desktop, desk.helper, WIDGET_FACTORY);
  Strange starting(desk.desktop, {"--silent-start", "--title", "Starting"});
  auto window = starting.window(desk.helper, false);
  Strange ready(desk.desktop, {"--title", "Ready"});
  auto pidOf = [](const Running& running) { return running.window.process.pid; };
  auto refused = [&](const WindowRef& ref) {
    auto seen = desk.helper.observe(ref);
    return std::string(seen.ok() ? "" : praefectus::nameOf(seen.refusal().code).cStr());
  };
  EXPECT_EQ(refused(terminal.window), "accessibility_off");
  EXPECT_EQ(refused(factory.window), "accessibility_off");
  EXPECT_EQ(refused(window), "warming_up");

  desk.stop();
  auto desktop = listOf(desk);
  EXPECT_EQ(stateOf(desktop, desk.probe.process.pid), AppState::NOT_ANSWERING);
  EXPECT_EQ(stateOf(desktop, pidOf(factory)), AppState::UNREGISTERED);
  EXPECT_EQ(stateOf(desktop, pidOf(terminal)), AppState::ACCESSIBILITY_OFF);
  EXPECT_EQ(stateOf(desktop, window.process.pid), AppState::WARMING_UP);
  EXPECT_EQ(stateOf(desktop, static_cast<uint32_t>(ready.pid())), AppState::READY);
  EXPECT_EQ(refused(desk.probe), "not_answering");
  desk.resume();

  starting.change();
  EXPECT_EQ(refused(window), "");
  EXPECT_EQ(stateOf(listOf(desk), window.process.pid), AppState::READY);
}

TEST(Applications, thatEndedBetweenListAndLookAreMissing) {
  Desk desk;
  auto desktop = listOf(desk);
  auto ref = find(desktop, desk.probe.window).ref;
  ASSERT_EQ(kill(static_cast<pid_t>(ref.process.pid), SIGKILL), 0);
  ASSERT_TRUE(eventually([&]() { return listOf(desk).windows.empty(); }));
  auto seen = desk.helper.observe(ref);
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::TARGET_MISSING);
  EXPECT_TRUE(stateOf(listOf(desk), ref.process.pid) == nullptr);
}

TEST(Applications, nameTheirToolkitAndItsVersion) {
  Desk desk;
  for (auto& each : listOf(desk).applications) {
    if (each.process.pid != desk.probe.process.pid) continue;
    EXPECT_STREQ(each.toolkit.cStr(), "gtk");
    EXPECT_TRUE(each.version.startsWith("3."));
    return;
  }
  FAIL() << "the probe is not listed";
}

// ---- Monitors ---------------------------------------------------------------------------------

std::set<MonitorId> idsOfMonitors(const Desktop& desktop) {
  std::set<MonitorId> out;
  for (auto& monitor : desktop.monitors) out.insert(monitor.id);
  return out;
}

TEST(Monitors, areListedWithNegativeOriginsToo) {
  Desk desk;
  Client client(desk);
  auto one = listOf(desk);
  ASSERT_EQ(one.monitors.size(), 1u);
  EXPECT_EQ(one.monitors[0].bounds, (Rect{0, 0, 1280, 800}));
  EXPECT_EQ(one.monitors[0].scale, 1000u);
  client.placeMonitor(-100, -50);
  auto two = listOf(desk);
  ASSERT_EQ(two.monitors.size(), 2u);
  bool left = two.monitors[0].bounds == Rect{-100, -50, 100, 100} ||
              two.monitors[1].bounds == Rect{-100, -50, 100, 100};
  EXPECT_TRUE(left);
  EXPECT_NE(one.topology, two.topology);
  EXPECT_EQ(idsOfMonitors(two).size(), 2u);
}

TEST(Monitors, haveIdsOfThisHelperAndThisLayoutAlone) {
  Desk desk;
  Client client(desk);
  auto before = idsOfMonitors(listOf(desk));
  EXPECT_EQ(idsOfMonitors(listOf(desk)), before) << "the same layout has the same ids";
  auto topology = listOf(desk).topology;
  std::thread([&]() {
    HelperClient other(desk.desktop.environment());
    other.hello();
    auto foreign = other.list();
    ASSERT_TRUE(foreign.ok());
    EXPECT_EQ(foreign->topology, topology);
    for (auto& id : idsOfMonitors(*foreign)) EXPECT_EQ(before.count(id), 0u);
  }).join();
  client.placeMonitor(10, 0);
  auto after = idsOfMonitors(listOf(desk));
  for (auto& id : before) EXPECT_EQ(after.count(id), 0u);
  client.placeMonitor(17, 0);
  for (auto& id : idsOfMonitors(listOf(desk))) EXPECT_EQ(after.count(id), 0u);
}

TEST(Monitors, areTheSameInAFrameAsInTheList) {
  Desk desk;
  Client client(desk);
  client.placeMonitor(-100, 0);
  auto desktop = listOf(desk);
  auto seen = desk.observe();
  EXPECT_EQ(seen.seen.frame.topology, desktop.topology);
  ASSERT_EQ(seen.seen.frame.monitors.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(seen.seen.frame.monitors[i].id, desktop.monitors[i].id);
    EXPECT_EQ(seen.seen.frame.monitors[i].bounds, desktop.monitors[i].bounds);
  }
}

// ---- All of it --------------------------------------------------------------------------------

TEST(Discovery, movesAndRaisesNothingAndTakesNoFocus) {
  Desk desk;
  auto editor = open(desk.desktop, desk.helper, MOUSEPAD);
  auto terminal = open(desk.desktop, desk.helper, XTERM);
  Client client(desk);
  listWith(desk,
           client.open({.passes = true, .type = "POPUP_MENU", .owner = editor.window.window}));
  Screen screen(desk.desktop.display());
  screen.warp(333, 222);
  screen.focus(terminal.window.window);
  auto before = screen.look();
  auto pictured = idsOf(listOf(desk));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(idsOf(listOf(desk)), pictured);
    EXPECT_TRUE(desk.helper.observe(editor.window).ok());
    EXPECT_FALSE(desk.helper.observe(terminal.window).ok());
  }
  EXPECT_EQ(screen.look(), before);
}

// Twenty windows of one application cost calls, and not one after the other: all of it within what
// twice as many single questions would need.
TEST(Windows, manyOfThemAreListedInAFewCallsEach) {
  constexpr unsigned COUNT = 20;
  Desk desk;
  CallCounter counter(desk.desktop.environment());
  auto callsOfAList = [&]() {
    counter.callsOf(desk.helper.pid());
    listOf(desk);
    return sumOf(counter.callsOf(desk.helper.pid()));
  };
  listOf(desk);
  auto before = callsOfAList();
  Strange many(desk.desktop, {"--windows", std::to_string(COUNT), "--title", "Many"});
  EXPECT_TRUE(eventually([&]() {
    size_t accessible = 0;
    for (auto& window : listOf(desk).windows) {
      bool theirs = window.ref.process.pid == static_cast<uint32_t>(many.pid());
      accessible += theirs && window.accessible ? 1 : 0;
    }
    return accessible == COUNT;
  }));
  EXPECT_LE(callsOfAList() - before, 4 * COUNT);
}

// A cap is spent on the window that was asked for, and on no other one of its application.
TEST(Windows, ofOneApplicationDoNotShareACap) {
  Desk desk;
  Strange two(desk.desktop, {"--windows", "2", "--title", "Pair"});
  kj::Vector<WindowRef> windows;
  ASSERT_TRUE(eventually([&]() {
    windows.clear();
    for (auto& window : listOf(desk).windows) {
      bool theirs = window.ref.process.pid == static_cast<uint32_t>(two.pid());
      if (theirs && window.accessible) windows.add(window.ref);
    }
    return windows.size() == 2;
  }));
  for (auto& window : windows) {
    auto whole = desk.helper.observe(window);
    ASSERT_TRUE(whole.ok());
    ASSERT_FALSE(whole->seen.cuts.elements);
    ObserveAct exact;
    exact.elements = static_cast<uint32_t>(whole->seen.elements.size());
    auto again = desk.helper.observe(window, exact);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->seen.elements.size(), exact.elements);
    EXPECT_FALSE(again->seen.cuts.elements);
    --exact.elements;
    auto less = desk.helper.observe(window, exact);
    ASSERT_TRUE(less.ok());
    EXPECT_EQ(less->seen.elements.size(), exact.elements);
    EXPECT_TRUE(less->seen.cuts.elements);
  }
}

TEST(Windows, canBeReadWhileAModalDialogOfTheirsIsOpen) {
  Desk desk("modal");
  desk.change();
  kj::Maybe<Window> dialog;
  ASSERT_TRUE(eventually([&]() {
    for (auto& window : listOf(desk).windows) {
      if (window.modal && window.accessible) dialog = kj::mv(window);
    }
    return dialog != nullptr;
  }));
  auto& opened = KJ_ASSERT_NONNULL(dialog);
  EXPECT_EQ(opened.owner, desk.probe.window);
  auto below = desk.helper.observe(desk.probe);
  ASSERT_TRUE(below.ok());
  EXPECT_TRUE(below->has("push button", "Record"));
  auto above = desk.helper.observe(opened.ref);
  ASSERT_TRUE(above.ok());
  EXPECT_TRUE(above->has("label", "Really?"));
}

// On a display scaled to 200 % places are pixels all the same: the person's own click at a button's
// middle presses that button.
TEST(Windows, ofAScaledApplicationHaveTheirElementsWhereTheyReallyAre) {
  Desk desk;
  auto record = kj::str(desk.desktop.folder(), "/scaled.record");
  kj::StringPtr arguments[] = {PRAEFECTUS_BIN "/praefectus-probe"_kj, "--title"_kj, "Scaled"_kj,
                               "--record"_kj, record};
  kj::StringPtr environment[] = {"GDK_SCALE=2"_kj};
  Recipe recipe{.name = "scaled"_kj, .arguments = arguments, .environment = environment};
  auto scaled = open(desk.desktop, desk.helper, recipe);
  auto seen = desk.helper.observe(scaled.window);
  ASSERT_TRUE(seen.ok());
  auto bounds = KJ_ASSERT_NONNULL(seen->at(seen->find("push button", "Record")).bounds);
  auto& window = seen->seen.frame.bounds;
  EXPECT_GT(window.width, 800u) << "it is twice as large";
  Screen screen(desk.desktop.display());
  screen.moveMouse(window.x + bounds.x + static_cast<int>(bounds.width / 2),
                   window.y + bounds.y + static_cast<int>(bounds.height / 2));
  screen.click();
  EXPECT_TRUE(eventually([&]() {
    std::ifstream file(record.cStr());
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("record 1", 0) == 0) return true;
    }
    return false;
  }));
}

}  // namespace
}  // namespace praefectus::tests
