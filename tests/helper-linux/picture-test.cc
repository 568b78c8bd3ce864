// What the shipped helper shows of windows and monitors, against windows whose every pixel is
// known.
#include "helper-linux/x11/camera.h"
#include "tests/helper-linux/arrangement.h"
#include "tests/helper-linux/bare-server.h"
#include "tests/helper-linux/bus-service.h"
#include "tests/helper-linux/desk.h"
#include "tests/helper-linux/paper.h"
#include "tests/helper-linux/screen.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string_view>
#include <thread>

namespace praefectus::tests {
namespace {

// Whether a picture is these pixels: those of its PNG, and by its hash.
void expectIs(const PictureInfo& info, Bytes png, const Rect& place, Bytes pixels) {
  ASSERT_EQ(info.width, place.width);
  ASSERT_EQ(info.height, place.height);
  EXPECT_EQ(info.x, place.x);
  EXPECT_EQ(info.y, place.y);
  EXPECT_EQ(info.scale, 1000u);
  EXPECT_TRUE(pixelsOf(png, info.width, info.height) == pixels);
  EXPECT_EQ(info.pixels, attest::digestOf(pixels));
}

void expectShot(const Result<Captured>& shot, const Rect& place, Bytes pixels) {
  ASSERT_TRUE(shot.ok()) << praefectus::nameOf(shot.refusal().code).cStr();
  EXPECT_TRUE(shot->info.frame == nullptr);
  expectIs(shot->info, shot->png, place, pixels);
}

std::string refusalOf(const Result<Captured>& shot) {
  return shot.ok() ? "" : praefectus::nameOf(shot.refusal().code).cStr();
}

TEST(Screenshot, showsAWindowToItsLastPixelCoveredOrNot) {
  Desk desk;
  Paper paper(desk.desktop.display(), {40, 30, 331, 257});
  expectShot(desk.helper.screenshot(paper.ref()), {0, 0, 331, 257}, paper.shows());
  Paper cover(desk.desktop.display(), {0, 0, 700, 500});
  expectShot(desk.helper.screenshot(paper.ref()), {0, 0, 331, 257}, paper.shows());
  paper.paint(2);
  expectShot(desk.helper.screenshot(paper.ref()), {0, 0, 331, 257}, paper.shows());
}

TEST(Screenshot, showsAWindowThatWasCoveredBeforeAnybodyLooked) {
  Desk desk;
  Paper paper(desk.desktop.display(), {40, 30, 331, 257});
  Paper cover(desk.desktop.display(), {0, 0, 700, 500});
  expectShot(desk.helper.screenshot(paper.ref()), {0, 0, 331, 257}, paper.shows());
}

TEST(Screenshot, showsWhatIsBeyondTheEdgeOfTheScreen) {
  Desk desk;
  Paper paper(desk.desktop.display(), {-100, 700, 300, 300});
  expectShot(desk.helper.screenshot(paper.ref()), {0, 0, 300, 300}, paper.shows());
}

TEST(Screenshot, leavesOutAWindowsBorderAndItsTransparency) {
  Desk desk;
  for (uint8_t depth : {24, 32}) {
    Paper paper(desk.desktop.display(), {40, 30, 200, 100}, depth, 5);
    expectShot(desk.helper.screenshot(paper.ref()), {0, 0, 200, 100}, paper.shows());
  }
}

TEST(Screenshot, ofAWindowThatIsNotOnTheScreenIsRefused) {
  Desk desk("minimize");
  ASSERT_TRUE(desk.helper.screenshot(desk.probe).ok());
  auto seen = desk.observe();
  desk.change();
  ASSERT_TRUE(eventually([&]() { return !desk.helper.screenshot(desk.probe).ok(); }));
  EXPECT_EQ(refusalOf(desk.helper.screenshot(desk.probe)), "capture_failed");
  EXPECT_FALSE(desk.helper.zoom(seen, 0, 0, {9, 9}).ok());
  auto pictured = desk.helper.observe(desk.probe, true);
  ASSERT_FALSE(pictured.ok());
  EXPECT_EQ(pictured.refusal().code, RefusalCode::CAPTURE_FAILED);
}

TEST(Screenshot, isOfThatWindowOfThatProcessOrRefused) {
  Desk desk;
  auto wrongPid = desk.probe, wrongStart = desk.probe, wrongWindow = desk.probe;
  wrongPid.process.pid = static_cast<uint32_t>(getpid());
  ++wrongStart.process.start;
  wrongWindow.window += 1000;
  EXPECT_EQ(refusalOf(desk.helper.screenshot(wrongPid)), "target_changed");
  EXPECT_EQ(refusalOf(desk.helper.screenshot(wrongStart)), "target_changed");
  EXPECT_EQ(refusalOf(desk.helper.screenshot(wrongWindow)), "target_missing");
}

TEST(Screenshot, ofAMonitorIsWhatAPersonSeesThere) {
  Desk desk;
  Arrangement arrangement(desk.desktop.display());
  arrangement.place("left", {-60, 0, 500, 400});
  arrangement.place("right", {440, 100, 300, 200});
  Paper below(desk.desktop.display(), {0, 0, 800, 500});
  Paper above(desk.desktop.display(), {500, 150, 100, 100});
  auto listed = desk.helper.list();
  ASSERT_TRUE(listed.ok());
  auto monitorAt = [&](int32_t x) {
    for (auto& each : listed->monitors) {
      if (each.bounds.x == x) return MonitorTarget{each.id};
    }
    ADD_FAILURE() << "no monitor at " << x;
    return MonitorTarget();
  };
  // Of the left one, what there is.
  expectShot(desk.helper.screenshot(monitorAt(-60)), {0, 0, 440, 400},
             below.shows({0, 0, 440, 400}));
  auto both = below.shows({440, 100, 300, 200});
  auto upper = above.shows();
  for (size_t y = 0; y < 100; ++y) {
    memcpy(both.begin() + ((y + 50) * 300 + 60) * 4, upper.begin() + y * 100 * 4, 400);
  }
  expectShot(desk.helper.screenshot(monitorAt(440)), {440, 100, 300, 200}, both);
}

TEST(Screenshot, ofAMonitorThatThisHelperDidNotListIsRefused) {
  Desk desk;
  auto listed = desk.helper.list();
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->monitors.size(), 1u);
  MonitorTarget known{listed->monitors[0].id}, invented = known;
  EXPECT_TRUE(desk.helper.screenshot(known).ok());
  invented.id[15] ^= 1;
  EXPECT_EQ(refusalOf(desk.helper.screenshot(invented)), "target_missing");
  // Nor one of a layout that is no more.
  Arrangement(desk.desktop.display()).place("further", {0, 0, 300, 200});
  EXPECT_EQ(refusalOf(desk.helper.screenshot(known)), "target_missing");
}

TEST(Screenshot, ofALockedSessionIsRefused) {
  Desk desk;
  ScreenSaver saver(desk.desktop);
  auto locked = [&](Lock lock) {
    return eventually([&]() {
      auto listed = desk.helper.list();
      return listed.ok() && listed->lock == lock;
    });
  };
  ASSERT_TRUE(locked(Lock::UNLOCKED));
  auto seen = desk.observe();
  auto listed = desk.helper.list();
  ASSERT_TRUE(listed.ok());
  MonitorTarget monitor{listed->monitors[0].id};
  saver.active = true;
  EXPECT_EQ(refusalOf(desk.helper.screenshot(desk.probe)), "screen_locked");
  EXPECT_EQ(refusalOf(desk.helper.screenshot(monitor)), "screen_locked");
  EXPECT_EQ(refusalOf(desk.helper.zoom(seen, 0, 0, {9, 9})), "screen_locked");
  saver.active = false;
  EXPECT_EQ(refusalOf(desk.helper.screenshot(desk.probe)), "");
  EXPECT_EQ(refusalOf(desk.helper.zoom(seen, 0, 0, {9, 9})), "");
}

TEST(Picture, belongsToItsFrame) {
  Desk desk;
  auto seen = desk.helper.observe(desk.probe, true);
  ASSERT_TRUE(seen.ok());
  auto& info = KJ_ASSERT_NONNULL(seen->seen.picture);
  EXPECT_EQ(KJ_ASSERT_NONNULL(info.frame), seen->seen.frame.id);
  auto& bounds = seen->seen.frame.bounds;
  auto pixels = pixelsOf(seen->png, bounds.width, bounds.height);
  expectIs(info, seen->png, {0, 0, bounds.width, bounds.height}, pixels);
  auto shot = desk.helper.screenshot(desk.probe);
  expectShot(shot, {0, 0, bounds.width, bounds.height}, pixels);
}

TEST(Zoom, isThatPartOfTheFramesWindow) {
  Desk desk;
  auto seen = desk.helper.observe(desk.probe, true);
  ASSERT_TRUE(seen.ok());
  auto& bounds = seen->seen.frame.bounds;
  auto pixels = pixelsOf(seen->png, bounds.width, bounds.height);
  Paper cover(desk.desktop.display(), {0, 0, 1280, 800});
  auto right = static_cast<int32_t>(bounds.width) - 1;
  auto bottom = static_cast<int32_t>(bounds.height) - 1;
  struct {
    int32_t x, y;
    ZoomAct to;
    Rect part;
  } cases[] = {{20, 30, {119, 79}, {20, 30, 100, 50}},
               {119, 79, {20, 30}, {20, 30, 100, 50}},
               {119, 30, {20, 79}, {20, 30, 100, 50}},
               {5, 6, {5, 6}, {5, 6, 1, 1}},
               {right, bottom, {right, bottom}, {right, bottom, 1, 1}},
               {0, 0, {right, bottom}, {0, 0, bounds.width, bounds.height}}};
  for (auto& each : cases) {
    auto zoomed = desk.helper.zoom(*seen, each.x, each.y, each.to);
    ASSERT_TRUE(zoomed.ok()) << refusalOf(zoomed);
    EXPECT_EQ(KJ_ASSERT_NONNULL(zoomed->info.frame), seen->seen.frame.id);
    expectIs(zoomed->info, zoomed->png, each.part, crop(pixels, bounds.width, each.part));
  }
  // And it has spent nothing.
  EXPECT_EQ(nameOf(desk.helper.prepareInvoke(*seen, seen->find("push button", "Record"), "click")),
            "");
}

TEST(Zoom, withACornerOutsideOfTheFrameIsRefused) {
  Desk desk;
  auto seen = desk.observe();
  auto& bounds = seen.seen.frame.bounds;
  auto width = static_cast<int32_t>(bounds.width), height = static_cast<int32_t>(bounds.height);
  const std::pair<int32_t, int32_t> beyond[] = {{width, 0}, {0, height}, {65'535, 65'535}};
  for (auto [x, y] : beyond) {
    EXPECT_EQ(refusalOf(desk.helper.zoom(seen, x, y, {10, 10})), "invalid_coordinate");
    EXPECT_EQ(refusalOf(desk.helper.zoom(seen, 10, 10, {x, y})), "invalid_coordinate");
  }
  const std::pair<int32_t, int32_t> nowhere[] = {{-1, 0}, {0, -1}};
  for (auto [x, y] : nowhere) {
    EXPECT_EQ(refusalOf(desk.helper.zoom(seen, x, y, {10, 10})), "malformed");
    EXPECT_EQ(refusalOf(desk.helper.zoom(seen, 10, 10, {x, y})), "malformed");
  }
}

TEST(Zoom, intoAWindowThatWasMovedIsRefusedUntilItIsObservedAgain) {
  Desk desk("move");
  auto seen = desk.observe();
  ASSERT_TRUE(desk.helper.zoom(seen, 0, 0, {9, 9}).ok());
  desk.change();
  ASSERT_TRUE(eventually([&]() { return !desk.helper.zoom(seen, 0, 0, {9, 9}).ok(); }));
  EXPECT_EQ(refusalOf(desk.helper.zoom(seen, 0, 0, {9, 9})), "target_changed");
  auto again = desk.observe();
  EXPECT_EQ(again.seen.frame.bounds.x, seen.seen.frame.bounds.x + 7);
  EXPECT_TRUE(desk.helper.zoom(again, 0, 0, {9, 9}).ok());
}

TEST(Zoom, isIntoThePresentFrameOrRefused) {
  Desk desk;
  auto first = desk.observe();
  auto present = desk.observe();
  EXPECT_EQ(refusalOf(desk.helper.zoom(first, 0, 0, {9, 9})), "stale_frame");
  auto other = desk.observe();
  ++other.seen.frame.epoch;
  EXPECT_EQ(refusalOf(desk.helper.zoom(other, 0, 0, {9, 9})), "stale_epoch");
  --other.seen.frame.epoch;
  ++other.seen.frame.window.window;
  EXPECT_EQ(refusalOf(desk.helper.zoom(other, 0, 0, {9, 9})), "target_mismatch");
  --other.seen.frame.window.window;
  EXPECT_EQ(refusalOf(desk.helper.zoom(other, 0, 0, {9, 9})), "");
  Arrangement(desk.desktop.display()).place("further", {0, 0, 300, 200});
  EXPECT_EQ(refusalOf(desk.helper.zoom(other, 0, 0, {9, 9})), "target_changed");
}

// What a person would notice, looked at over and over by somebody else.
class Onlooker {
 public:
  explicit Onlooker(kj::StringPtr display)
      : screen(display), before(screen.look()), looking([this]() {
          while (!ended) {
            if (!(screen.look() == before)) changed = true;
            ++looks;
          }
        }) {}
  ~Onlooker() { end(); }
  KJ_DISALLOW_COPY(Onlooker);

  void end() {
    if (!ended.exchange(true)) looking.join();
  }
  std::atomic<bool> changed = false, ended = false;
  std::atomic<unsigned> looks = 0;

 private:
  Screen screen;
  Surroundings before;
  std::thread looking;
};

TEST(Reading, changesNothingThatAPersonWouldNotice) {
  Desk desk;
  kj::StringPtr mousepad[] = {"mousepad"_kj};
  auto editor = desk.open(mousepad);
  Onlooker onlooker(desk.desktop.display());
  auto describe = [](const Desktop& desktop) {
    return kj::strArray(
        KJ_MAP(each, desktop.windows) {
          return kj::str(each.ref.window, ' ', each.bounds.x, ' ', each.bounds.y, ' ',
                         each.bounds.width, ' ', each.bounds.height, ' ', each.visible,
                         each.active);
        },
        "; ");
  };
  auto before = desk.helper.list();
  ASSERT_TRUE(before.ok());
  ASSERT_EQ(before->monitors.size(), 1u);
  for (auto& window : {desk.probe, editor}) {
    auto seen = desk.helper.observe(window, true);
    ASSERT_TRUE(seen.ok());
    EXPECT_TRUE(desk.helper.screenshot(window).ok());
    EXPECT_TRUE(desk.helper.zoom(*seen, 0, 0, {99, 99}).ok());
    EXPECT_TRUE(desk.helper.screenshot(MonitorTarget{before->monitors[0].id}).ok());
  }
  auto after = desk.helper.list();
  ASSERT_TRUE(after.ok());
  EXPECT_STREQ(describe(*after).cStr(), describe(*before).cStr());
  onlooker.end();
  EXPECT_FALSE(onlooker.changed);
  EXPECT_GT(onlooker.looks, 10u) << "the onlooker saw too little to say so";
}

// ---- the camera by itself
// ------------------------------------------------------------------------

struct Studio {
  explicit Studio(kj::StringPtr display)
      : io(kj::setupAsyncIo()),
        camera(kj::refcounted<x11::Camera>(KJ_REQUIRE_NONNULL(x11::Display::open(display)),
                                           io.provider->getTimer())) {
    attest::initialize();
  }
  Picture take(const Paper& paper) {
    auto window = static_cast<xcb_window_t>(paper.ref().window);
    camera->prepare(window).wait(io.waitScope);
    return KJ_REQUIRE_NONNULL(camera->take(window));
  }
  kj::AsyncIoContext io;
  kj::Own<x11::Camera> camera;
};

TEST(Camera, takesTheSamePicturesFromAServerThatSharesNoMemory) {
  for (auto extension : {"MIT-SHM"_kj, ""_kj}) {
    BareServer server(extension);
    Paper paper(server.display(), {40, 30, 331, 257});
    Paper cover(server.display(), {0, 0, 640, 400});
    Studio studio(server.display());
    auto taken = studio.take(paper);
    EXPECT_TRUE(taken.pixels == paper.shows()) << extension.cStr();
    auto part = studio.camera->take(static_cast<xcb_window_t>(paper.ref().window), {7, 8, 9, 10});
    EXPECT_TRUE(KJ_ASSERT_NONNULL(part).pixels == paper.shows({7, 8, 9, 10})) << extension.cStr();
    auto screen = studio.camera->takeScreen({0, 0, 640, 400});
    EXPECT_TRUE(KJ_ASSERT_NONNULL(screen).pixels == cover.shows()) << extension.cStr();
  }
}

TEST(Camera, leavesAPictureAsItWasForAsLongAsItIsHeld) {
  BareServer server;
  Paper paper(server.display(), {0, 0, 300, 200});
  Studio studio(server.display());
  kj::Vector<Picture> taken;
  kj::Vector<kj::Array<kj::byte>> shown;
  for (uint32_t i = 1; i <= 5; ++i) {
    paper.paint(i);
    shown.add(paper.shows());
    taken.add(studio.take(paper));
  }
  for (size_t i = 0; i < taken.size(); ++i) EXPECT_TRUE(taken[i].pixels == shown[i]) << i;
  // Even when the camera and its display are gone.
  auto last = kj::mv(taken.back());
  taken.clear();
  studio.camera = nullptr;
  EXPECT_TRUE(last.pixels == shown.back());
}

TEST(Camera, takesALargerPictureAfterASmallOneAndASmallOneAfterThat) {
  BareServer server;
  Studio studio(server.display());
  for (uint32_t side : {10u, 600u, 20u}) {
    Paper paper(server.display(), {0, 0, side, side});
    EXPECT_TRUE(studio.take(paper).pixels == paper.shows()) << side;
  }
}

TEST(Camera, knowsAWindowThatCameBackUnderTheIdOfAnother) {
  BareServer server;
  Studio studio(server.display());
  WindowRef first;
  {
    Paper paper(server.display(), {0, 0, 100, 100});
    first = paper.ref();
    studio.take(paper);
  }
  // A client that comes when another has gone gets the same range of ids.
  Paper paper(server.display(), {0, 0, 100, 100});
  ASSERT_EQ(paper.ref().window, first.window);
  paper.paint(2);
  EXPECT_TRUE(studio.take(paper).pixels == paper.shows());
}

TEST(Camera, takesNothingOfWhatIsNotThere) {
  BareServer server;
  Studio studio(server.display());
  Paper paper(server.display(), {0, 0, 100, 80});
  auto window = static_cast<xcb_window_t>(paper.ref().window);
  studio.take(paper);
  for (Rect part : {Rect{0, 0, 0, 5}, Rect{0, 0, 5, 0}, Rect{-1, 0, 5, 5}, Rect{0, -1, 5, 5},
                    Rect{96, 0, 5, 5}, Rect{0, 76, 5, 5}, Rect{0, 0, UINT32_MAX, 1}}) {
    EXPECT_TRUE(studio.camera->take(window, part) == nullptr) << part.x << ' ' << part.width;
  }
  for (Rect part : {Rect{0, 0, 0, 5}, Rect{-9, 0, 9, 5}, Rect{640, 0, 5, 5}, Rect{0, 400, 5, 5}}) {
    EXPECT_TRUE(studio.camera->takeScreen(part) == nullptr) << part.x << ' ' << part.width;
  }
  paper.hide();
  EXPECT_TRUE(studio.camera->take(window) == nullptr);
  EXPECT_TRUE(studio.camera->take(window + 1000) == nullptr);
}

}  // namespace
}  // namespace praefectus::tests
