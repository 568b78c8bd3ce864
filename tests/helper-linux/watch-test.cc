// The person's pointer, focus and window order: untouched by what the helper does, and watched
// while it does it.
#include "tests/helper-linux/desk.h"
#include "tests/helper-linux/screen.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace praefectus::tests {
namespace {

// A new window takes the focus when it appears, and its toolkit may pass it on: waits until the
// window is the active one and nothing has changed for forty looks in a row.
bool isSettledOn(Screen& screen, uint64_t window) {
  Surroundings last;
  int equal = 0;
  return eventually([&]() {
    auto now = screen.look();
    equal = now == last && now.active == window ? equal + 1 : 0;
    last = now;
    return equal >= 40;
  });
}

// Looks without pause from another thread and another connection, for as long as it lives.
class Sentinel {
 public:
  explicit Sentinel(kj::StringPtr display)
      : screen(display), first(screen.look()), thread([this]() {
          while (!stop) {
            if (!(screen.look() == first)) changed = true;
            ++looks;
          }
        }) {}
  ~Sentinel() {
    stop = true;
    thread.join();
  }
  bool sawChange() const { return changed; }
  unsigned count() const { return looks; }

 private:
  Screen screen;
  Surroundings first;
  std::atomic<bool> stop = false, changed = false;
  std::atomic<unsigned> looks = 0;
  std::thread thread;
};

TEST(Context, isUntouchedByReadingAndActing) {
  Desk desk;
  kj::StringPtr mousepad[] = {"mousepad"_kj};
  auto editor = desk.open(mousepad);
  Screen screen(desk.desktop.display());
  ASSERT_TRUE(isSettledOn(screen, editor.window));
  {
    Sentinel sentinel(desk.desktop.display());
    auto seen = desk.observe();
    auto set = desk.helper.set(seen, seen.find("text", "Text"), "quietly");
    ASSERT_EQ(nameOf(set.refusal), "");
    EXPECT_TRUE(set.facts().getWatch().getWatching());
    EXPECT_FALSE(set.facts().getWatch().getFocusChanged());
    seen = desk.observe();
    auto press = desk.helper.invoke(seen, seen.find("push button", "Record"), "click");
    ASSERT_EQ(nameOf(press.refusal), "");
    auto watch = press.facts().getWatch();
    EXPECT_TRUE(watch.getWatching());
    EXPECT_FALSE(watch.getPointerMoved() || watch.getFocusChanged() || watch.getStackingChanged());
    EXPECT_TRUE(desk.helper.observe(desk.probe, true).ok());
    EXPECT_FALSE(sentinel.sawChange());
    EXPECT_GT(sentinel.count(), 10u);
  }
  EXPECT_EQ(desk.recorded("record").size(), 1u);
}

// A press of a button that does nothing lasts as long as the helper waits for an effect: meanwhile
// the test disturbs, again and again, until the action is over.
template <typename Disturb>
wire::Watch::Reader watchDuring(Desk& desk, Performed& done, Disturb disturb) {
  auto seen = desk.observe();
  EXPECT_EQ(nameOf(desk.helper.prepareInvoke(seen, seen.find("push button", "Record"), "click")),
            "");
  desk.helper.beginPerform();
  for (int i = 0; !desk.helper.isDone(); ++i) disturb(i);
  done = desk.helper.finish();
  EXPECT_EQ(nameOf(done.refusal), "");
  EXPECT_TRUE(done.facts().getWatch().getWatching());
  return done.facts().getWatch();
}

TEST(Watch, reportsAPointerThatAProgramMoved) {
  Desk desk("noop");
  Screen screen(desk.desktop.display());
  Performed done;
  auto watch = watchDuring(desk, done, [&](int i) { screen.warp(10 + i % 50, 10); });
  EXPECT_TRUE(watch.getPointerMoved());
  EXPECT_FALSE(watch.getStackingChanged());
}

TEST(Watch, leavesThePersonTheirMouse) {
  Desk desk("noop");
  Screen screen(desk.desktop.display());
  Performed done;
  auto start = screen.look();
  auto watch = watchDuring(desk, done, [&](int i) { screen.moveMouse(10 + i % 50, 10); });
  EXPECT_NE(screen.look().pointerX, start.pointerX);
  EXPECT_FALSE(watch.getPointerMoved());
}

TEST(Watch, reportsAFocusThatChangedAndChangedBack) {
  Desk desk("noop");
  kj::StringPtr mousepad[] = {"mousepad"_kj};
  auto editor = desk.open(mousepad);
  Screen screen(desk.desktop.display());
  ASSERT_TRUE(isSettledOn(screen, editor.window));
  auto before = screen.look();
  Performed done;
  auto watch = watchDuring(desk, done, [&](int) {
    screen.focus(desk.probe.window);
    screen.focus(before.focus);
  });
  EXPECT_TRUE(watch.getFocusChanged());
  EXPECT_EQ(screen.look().focus, before.focus);
}

TEST(Watch, reportsAWindowThatWasRaisedAndPutBack) {
  Desk desk("noop");
  kj::StringPtr mousepad[] = {"mousepad"_kj};
  auto editor = desk.open(mousepad);
  Screen screen(desk.desktop.display());
  Performed done;
  auto watch = watchDuring(desk, done, [&](int) {
    screen.raise(desk.probe.window);
    screen.raise(editor.window);
  });
  EXPECT_TRUE(watch.getStackingChanged());
  EXPECT_FALSE(watch.getPointerMoved());
}

}  // namespace
}  // namespace praefectus::tests
