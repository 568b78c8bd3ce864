// Pictures on their way to a host: who gets which, what is checked of them, and what they cost.
#include "ipc/picture.h"
#include "tests/supervisor/wire-host.h"

#include <gtest/gtest.h>

namespace praefectus::test {
namespace {

Action picturing(Target target, Act act) {
  Action action;
  action.blind = attest::random<32>();
  action.timeoutMs = 15'000;
  action.target = kj::mv(target);
  action.act = kj::mv(act);
  return action;
}

Action shot() { return picturing(WINDOW, ScreenshotAct()); }

// From (2, 3) to (11, 7): ten pixels by five.
Action zoom(const Observation& seen, const WindowRef& window = WINDOW) {
  return picturing(PointTarget{window, seen.frame.id, seen.frame.epoch, 2, 3}, ZoomAct{11, 7});
}

auto capturing(wire::Session::Client session, const Request& request) {
  auto call = session.captureRequest();
  fill(request, call.initSubmission());
  return sent(call);
}

std::string captured(Workbench& on, wire::Session::Client session, const Action& action,
                     kj::StringPtr id) {
  return said(on.wait(capturing(session, on.request(*named(on), action, id))));
}

kj::Maybe<Png> pngOf(Workbench& on, wire::Picture::Client picture, const PictureInfo& info) {
  return on.wait(
      fetchPng(kj::mv(picture), info, [](Bytes bytes) { return attest::digestOf(bytes); }));
}

// An observation with its picture.
auto pictured(Workbench& on, wire::Session::Client session, kj::StringPtr id = "read-1") {
  return on.wait(observing(session, on.request(*named(on), look(WINDOW, true), id)));
}

TEST(Capture, aScreenshotComesWithItsPicture) {
  Workbench on("versatile");
  Host host(on);
  auto session = opened(on, host);
  auto answer = on.wait(capturing(session, on.request(*named(on), shot(), "shot-1")));
  ASSERT_EQ(said(answer), "ok");
  auto info = read(answer.getResult().getPicture());
  EXPECT_EQ(info.width, 3u);
  EXPECT_EQ(info.height, 2u);
  EXPECT_TRUE(info.frame == nullptr);
  auto own = read(on.wait(answer.getPicture().infoRequest().send()).getInfo());
  EXPECT_EQ(own.pixels, info.pixels);
  EXPECT_TRUE(pngOf(on, answer.getPicture(), info) != nullptr);
  EXPECT_EQ(on.count("capture screenshot"), 1u);
}

TEST(Capture, ofAMonitorNeedsALeaseForTheWholeDesktop) {
  Workbench on("versatile");
  on.leasing = false;
  Host host(on);
  EXPECT_EQ(said(hello(on, host)), "ok");
  auto session = opening(on, host).getSession();
  EXPECT_EQ(said(beginning(on, session, "turn-1")), "ok");
  auto monitor = picturing(MonitorTarget{}, ScreenshotAct());
  auto lease = on.leaseFor(*named(on), {ActionClass::SCREENSHOT_READ}, "lease-1");
  lease.target = WINDOW;
  EXPECT_EQ(said(leasing(on, session, on.seal(lease))), "ok");
  EXPECT_EQ(captured(on, session, shot(), "shot-1"), "ok");
  EXPECT_EQ(captured(on, session, monitor, "shot-2"), "lease_missing");
  auto whole = on.leaseFor(*named(on), {ActionClass::SCREENSHOT_READ}, "lease-2");
  EXPECT_EQ(said(leasing(on, session, on.seal(whole))), "ok");
  EXPECT_EQ(captured(on, session, monitor, "shot-3"), "ok");
  EXPECT_EQ(on.count("capture "), 2u);
}

TEST(Capture, aPngIsMadeOnlyWhenTheHostAsksForIt) {
  Workbench on;
  Host host(on);
  auto session = opened(on, host);
  auto answer = pictured(on, session);
  ASSERT_EQ(said(answer), "ok");
  auto info = KJ_ASSERT_NONNULL(read(answer.getResult().getObservation()).picture);
  EXPECT_EQ(read(on.wait(answer.getPicture().infoRequest().send()).getInfo()).pixels, info.pixels);
  EXPECT_EQ(on.count("png"), 0u);
  EXPECT_TRUE(pngOf(on, answer.getPicture(), info) != nullptr);
  EXPECT_TRUE(pngOf(on, answer.getPicture(), info) != nullptr);
  EXPECT_EQ(on.count("png"), 1u);
}

TEST(Capture, aPngThatWasFetchedOutlivesItsHelperAndOneThatWasNotIsNone) {
  Workbench on;
  Host host(on);
  auto session = opened(on, host);
  auto first = pictured(on, session, "read-1"), second = pictured(on, session, "read-2");
  auto info = KJ_ASSERT_NONNULL(read(first.getResult().getObservation()).picture);
  ASSERT_TRUE(pngOf(on, first.getPicture(), info) != nullptr);
  kill(on.pids()[0], SIGKILL);
  EXPECT_TRUE(on.ends(on.pids()[0]));
  EXPECT_TRUE(pngOf(on, first.getPicture(), info) != nullptr);
  EXPECT_TRUE(pngOf(on, second.getPicture(), info) == nullptr);
}

TEST(Capture, aZoomIsIntoTheSessionsPresentFrame) {
  Workbench on("versatile");
  Host host(on);
  auto session = opened(on, host);
  auto none = observed(on, session, "read-1");
  auto seen = observed(on, session, "read-2");
  auto answer = on.wait(capturing(session, on.request(*named(on), zoom(seen), "zoom-1")));
  ASSERT_EQ(said(answer), "ok");
  auto info = read(answer.getResult().getPicture());
  EXPECT_EQ(info.x, 2);
  EXPECT_EQ(info.y, 3);
  EXPECT_EQ(info.width, 10u);
  EXPECT_EQ(info.height, 5u);
  EXPECT_EQ(KJ_ASSERT_NONNULL(info.frame), seen.frame.id);
  EXPECT_EQ(captured(on, session, zoom(none), "zoom-2"), "stale_epoch");
  EXPECT_EQ(captured(on, session, zoom(seen, OTHER_WINDOW), "zoom-3"), "target_mismatch");
  Observation invented;
  invented.frame.id.fill(9);
  invented.frame.epoch = seen.frame.epoch;
  EXPECT_EQ(captured(on, session, zoom(invented), "zoom-4"), "stale_frame");
  // It spends nothing; what spends the frame ends it.
  auto pressed = on.wait(executing(session, on.request(*named(on), press(seen), "op-1")));
  EXPECT_EQ(said(pressed), "ok");
  EXPECT_EQ(captured(on, session, zoom(seen), "zoom-5"), "stale_frame");
  EXPECT_EQ(on.count("capture zoom"), 1u) << "the others never reached the helper";
}

TEST(Capture, isRefusedUnderAnyOtherGrant) {
  Workbench on("versatile");
  Host host(on);
  auto session = opened(on, host);
  auto action = shot();
  auto grant = on.grantFor(*named(on), action, "shot-1");
  EXPECT_EQ(grant.actionClass, ActionClass::SCREENSHOT_READ);
  grant.actionClass = ActionClass::METADATA_READ;
  EXPECT_EQ(said(on.wait(capturing(session, on.seal(grant, action)))), "policy_denied");
  EXPECT_EQ(captured(on, session, look(WINDOW, true), "shot-2"), "malformed");
  EXPECT_EQ(said(on.wait(observing(session, on.request(*named(on), action, "shot-3")))),
            "malformed");
  auto once = on.request(*named(on), shot(), "shot-4");
  EXPECT_EQ(said(on.wait(capturing(session, once))), "ok");
  EXPECT_EQ(said(on.wait(capturing(session, once))), "grant_spent");
  EXPECT_EQ(on.count("capture "), 1u);
}

TEST(Capture, thatTheHelperDoesNotOfferIsNotAskedOfIt) {
  Workbench on;
  Host host(on);
  auto session = opened(on, host);
  auto seen = observed(on, session);
  EXPECT_EQ(captured(on, session, shot(), "shot-1"), "unsupported_action");
  EXPECT_EQ(captured(on, session, zoom(seen), "zoom-1"), "unsupported_action");
  EXPECT_EQ(on.count("capture "), 0u);
}

TEST(Capture, aHelperThatShowsAnotherPictureThanItSaysIsEnded) {
  for (std::string mode : {"picture-of-another-frame", "picture-of-nothing"}) {
    Workbench on(mode);
    Host host(on);
    auto session = opened(on, host);
    EXPECT_EQ(said(pictured(on, session)), "service_mismatch") << mode;
    EXPECT_TRUE(on.ends(on.pids()[0])) << mode;
  }
  for (std::string mode : {"picture-of-other-bytes", "picture-of-another-size"}) {
    Workbench on(mode);
    Host host(on);
    auto session = opened(on, host);
    auto answer = pictured(on, session);
    ASSERT_EQ(said(answer), "ok") << mode;
    auto info = KJ_ASSERT_NONNULL(read(answer.getResult().getObservation()).picture);
    EXPECT_TRUE(pngOf(on, answer.getPicture(), info) == nullptr) << mode;
    EXPECT_TRUE(on.ends(on.pids()[0])) << mode;
  }
}

}  // namespace
}  // namespace praefectus::test
