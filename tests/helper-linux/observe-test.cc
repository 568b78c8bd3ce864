// What the shipped helper sees of real applications on a real X server.
#include "helper-linux/desktop/process.h"
#include "ipc/bounds.h"
#include "tests/helper-linux/desk.h"
#include "tests/helper-linux/screen.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace praefectus::tests {
namespace {

const Application* applicationOf(const Desktop& desktop, uint32_t pid) {
  for (auto& each : desktop.applications) {
    if (each.process.pid == pid) return &each;
  }
  return nullptr;
}

TEST(List, namesTheApplicationByPidAndStartTime) {
  Desk desk;
  auto desktop = desk.helper.list();
  ASSERT_TRUE(desktop.ok());
  auto application = applicationOf(*desktop, desk.probe.process.pid);
  ASSERT_NE(application, nullptr);
  EXPECT_EQ(application->process.start, desktop::startOf(desk.probe.process.pid).orDefault(0));
  EXPECT_STREQ(application->name.cStr(), "praefectus-probe");
  EXPECT_EQ(application->state, AppState::READY);
  EXPECT_FALSE(desktop->cut);
}

TEST(List, givesEachWindowItsPlaceOrderAndTitle) {
  Desk desk;
  kj::StringPtr mousepad[] = {"mousepad"_kj};
  auto editor = desk.open(mousepad);
  auto desktop = desk.helper.list();
  ASSERT_TRUE(desktop.ok());
  ASSERT_EQ(desktop->windows.size(), 2u);
  Screen screen(desk.desktop.display());
  auto order = screen.windows("_NET_CLIENT_LIST_STACKING");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(desktop->windows[i].ref.window, order[i]);
    EXPECT_EQ(desktop->windows[i].stacking, i);
    EXPECT_TRUE(desktop->windows[i].visible);
    EXPECT_TRUE(desktop->windows[i].accessible);
    bool isProbe = desktop->windows[i].ref == desk.probe;
    EXPECT_STREQ(desktop->windows[i].title.cStr(),
                 isProbe ? "Praefectus Probe" : "Untitled 1 - Mousepad");
    if (isProbe) {
      EXPECT_EQ(desktop->windows[i].bounds.width, 420u);
      EXPECT_EQ(desktop->windows[i].bounds.height, 320u);
    }
  }
  EXPECT_FALSE(editor == desk.probe);
}

TEST(List, reportsAnApplicationWithoutATreeInsteadOfLeavingItOut) {
  Desk desk;
  kj::StringPtr arguments[] = {PRAEFECTUS_BIN "/praefectus-probe"_kj, "--title"_kj, "Mute"_kj};
  kj::StringPtr mute[] = {"NO_AT_BRIDGE=1"_kj};
  auto pid = static_cast<uint32_t>(desk.desktop.run(arguments, mute).pid);
  kj::Maybe<WindowRef> window;
  ASSERT_TRUE(eventually([&]() {
    window = desk.windowOf(pid, false);
    return window != nullptr;
  }));
  auto desktop = desk.helper.list();
  ASSERT_TRUE(desktop.ok());
  auto application = applicationOf(*desktop, pid);
  ASSERT_NE(application, nullptr);
  EXPECT_EQ(application->state, AppState::ACCESSIBILITY_OFF);
  auto seen = desk.helper.observe(KJ_ASSERT_NONNULL(window));
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::ACCESSIBILITY_OFF);
}

TEST(List, aStoppedApplicationIsReportedAndDelaysNobody) {
  Desk desk;
  kj::StringPtr mousepad[] = {"mousepad"_kj};
  auto editor = desk.open(mousepad);
  desk.stop();
  auto desktop = desk.helper.list();
  ASSERT_TRUE(desktop.ok());
  auto stopped = applicationOf(*desktop, desk.probe.process.pid);
  auto other = applicationOf(*desktop, editor.process.pid);
  ASSERT_NE(stopped, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(stopped->state, AppState::NOT_ANSWERING);
  EXPECT_EQ(other->state, AppState::READY);
  EXPECT_TRUE(desk.helper.observe(editor).ok());
  auto seen = desk.helper.observe(desk.probe);
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::NOT_ANSWERING);
}

TEST(Observe, givesParentsBeforeChildrenAndPlacesWithoutHoles) {
  Desk desk;
  kj::StringPtr mousepad[] = {"mousepad"_kj};
  auto editor = desk.open(mousepad);
  for (auto& window : {desk.probe, editor}) {
    auto seen = desk.helper.observe(window);
    ASSERT_TRUE(seen.ok());
    auto& elements = seen->seen.elements;
    EXPECT_EQ(elements[0].parent, 0u);
    std::vector<std::set<uint32_t>> places(elements.size());
    bool hidden = false;
    for (uint32_t i = 1; i < elements.size(); ++i) {
      ASSERT_LT(elements[i].parent, i);
      EXPECT_EQ(elements[i].depth, elements[elements[i].parent].depth + 1);
      EXPECT_TRUE(places[elements[i].parent].insert(elements[i].position).second);
      // What shows comes first.
      hidden = hidden || !elements[i].states.has(State::SHOWING);
      EXPECT_EQ(elements[i].states.has(State::SHOWING), !hidden);
    }
    for (uint32_t i = 0; i < elements.size(); ++i) {
      EXPECT_EQ(places[i].size(), elements[i].children);
      if (places[i].empty()) continue;
      EXPECT_EQ(*places[i].rbegin() + 1, places[i].size());
    }
    EXPECT_EQ(seen->seen.faults, 0u);
    EXPECT_FALSE(seen->seen.cuts.elements || seen->seen.cuts.depth || seen->seen.cuts.time);
  }
}

TEST(Observe, readsWhatEachControlIs) {
  Desk desk;
  auto seen = desk.observe();
  auto& entry = seen.at(seen.find("text", "Text"));
  EXPECT_TRUE(entry.settable);
  EXPECT_FALSE(entry.secure);
  EXPECT_STREQ(KJ_ASSERT_NONNULL(entry.value).cStr(), "");
  EXPECT_TRUE(entry.states.has(State::EDITABLE) && entry.states.has(State::SHOWING));

  auto& record = seen.at(seen.find("push button", "Record"));
  ASSERT_EQ(record.actions.size(), 1u);
  EXPECT_STREQ(record.actions[0].cStr(), "click");
  EXPECT_FALSE(record.settable);

  EXPECT_FALSE(seen.at(seen.find("push button", "Disabled")).states.has(State::SENSITIVE));
  EXPECT_FALSE(seen.at(seen.find("check box", "Check")).states.has(State::CHECKED));
  auto& slider = seen.at(seen.find("slider", "Slider"));
  EXPECT_TRUE(slider.settable);
  EXPECT_STREQ(KJ_ASSERT_NONNULL(slider.value).cStr(), "0");
}

TEST(Observe, aHiddenControlHasNoPlaceAndNoActions) {
  Desk desk;
  auto seen = desk.observe();
  auto& hidden = seen.at(seen.find("push button", "Hidden"));
  EXPECT_TRUE(hidden.bounds == nullptr);
  EXPECT_EQ(hidden.actions.size(), 0u);
}

TEST(Observe, neverReadsAPassword) {
  Desk desk;
  auto seen = desk.observe();
  auto& password = seen.at(seen.find("password text", "Password"));
  EXPECT_TRUE(password.secure);
  EXPECT_TRUE(password.value == nullptr);
  EXPECT_FALSE(password.settable);
}

// The coordinates are the person's: a click of a real mouse at a button's middle presses that
// button.
TEST(Observe, boundsAreWhereTheControlReallyIs) {
  Desk desk;
  auto seen = desk.observe();
  EXPECT_EQ(KJ_ASSERT_NONNULL(seen.at(0).bounds), (Rect{0, 0, 420, 320}));
  auto bounds = KJ_ASSERT_NONNULL(seen.at(seen.find("push button", "Record")).bounds);
  auto& window = seen.seen.frame.bounds;
  Screen screen(desk.desktop.display());
  screen.moveMouse(window.x + bounds.x + static_cast<int>(bounds.width / 2),
                   window.y + bounds.y + static_cast<int>(bounds.height / 2));
  screen.click();
  EXPECT_TRUE(eventually([&]() { return desk.recorded("record").size() == 1; }));
}

TEST(Observe, givesAPictureOfACoveredWindow) {
  Desk desk;
  auto free = desk.helper.observe(desk.probe, true);
  ASSERT_TRUE(free.ok());
  ASSERT_GT(free->png.size(), 1000u);
  kj::StringPtr arguments[] = {PRAEFECTUS_BIN "/praefectus-probe"_kj, "--title"_kj, "Cover"_kj};
  auto cover = desk.open(arguments);
  Screen screen(desk.desktop.display());
  screen.move(cover.window, 0, 0, 1280, 780);
  screen.raise(cover.window);
  ASSERT_TRUE(eventually([&]() {
    auto desktop = desk.helper.list();
    return desktop.ok() && desktop->windows.back().ref == cover &&
           desktop->windows.back().bounds.width == 1280;
  }));
  auto covered = desk.helper.observe(desk.probe, true);
  ASSERT_TRUE(covered.ok());
  EXPECT_EQ(covered->png.size(), free->png.size());
  EXPECT_EQ(memcmp(covered->png.begin(), "\x89PNG", 4), 0);
}

TEST(Observe, theDigestOfAnElementDiffersFromFrameToFrame) {
  Desk desk;
  auto first = desk.observe();
  auto second = desk.observe();
  auto button = first.find("push button", "Record");
  EXPECT_NE(first.at(button).digest, second.at(button).digest);
}

TEST(Observe, refusesAWindowOfAnotherProcess) {
  Desk desk;
  auto wrongPid = desk.probe;
  wrongPid.process.pid = static_cast<uint32_t>(getpid());
  auto wrongStart = desk.probe;
  ++wrongStart.process.start;
  auto wrongWindow = desk.probe;
  wrongWindow.window += 1000;
  EXPECT_EQ(desk.helper.observe(wrongPid).refusal().code, RefusalCode::TARGET_CHANGED);
  EXPECT_EQ(desk.helper.observe(wrongStart).refusal().code, RefusalCode::TARGET_CHANGED);
  EXPECT_EQ(desk.helper.observe(wrongWindow).refusal().code, RefusalCode::TARGET_MISSING);
}

TEST(Observe, twoWindowsOfOneTitleAreToldApartByTheirProcess) {
  Desk desk;
  kj::StringPtr arguments[] = {PRAEFECTUS_BIN "/praefectus-probe"_kj, "--mode"_kj, "equal"_kj};
  auto other = desk.open(arguments);
  auto mine = desk.helper.observe(desk.probe);
  auto theirs = desk.helper.observe(other);
  ASSERT_TRUE(mine.ok() && theirs.ok());
  EXPECT_FALSE(mine->has("push button", "Twin"));
  EXPECT_TRUE(theirs->has("push button", "Twin"));
}

TEST(Process, theStartTimeIsReadPastAnyProgramName) {
  EXPECT_EQ(
      desktop::startFrom("7 (a) b) R (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 9"_kj)
          .orDefault(0),
      4242u);
  EXPECT_TRUE(desktop::startFrom("7 (cut) S 1 2 3"_kj) == nullptr);
  EXPECT_TRUE(desktop::startFrom("7 (a) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 42 9"_kj) ==
              nullptr);
  EXPECT_TRUE(desktop::startFrom(""_kj) == nullptr);
}

}  // namespace
}  // namespace praefectus::tests
