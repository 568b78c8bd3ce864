// A locked session: said so, and neither looked at nor acted on. The desktop's own services are
// played by the test, on buses that only it and the helper know.
#include "tests/helper-linux/bus-service.h"
#include "tests/helper-linux/desk.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace praefectus::tests {
namespace {

Lock lockOf(Desk& desk) {
  auto listed = desk.helper.list();
  KJ_REQUIRE(listed.ok(), nameOf(listed.refusal().code));
  return listed->lock;
}

// A name's coming and going is told by the bus, in its own time.
bool becomes(Desk& desk, Lock lock) {
  return eventually([&]() { return lockOf(desk) == lock; });
}

std::string refusalOf(const Result<Observed>& seen) {
  return seen.ok() ? "" : praefectus::nameOf(seen.refusal().code).cStr();
}

kj::Maybe<RefusalCode> preparePress(Desk& desk, const Observed& seen) {
  return desk.helper.prepareInvoke(seen, seen.find("push button", "Record"), "click");
}

// logind, with one session that the display's server belongs to.
class Logind {
 public:
  explicit Logind(PrivateDesktop& desktop)
      : service(systemBusOf(desktop), "org.freedesktop.login1",
                [this](const std::string& method, const std::string& path, uint32_t number) {
                  return answer(method, path, number);
                }) {}

  std::atomic<bool> locked = false;
  std::atomic<bool> knowsServer = true;
  std::atomic<uint32_t> askedAbout = 0;

 private:
  Answer answer(const std::string& method, const std::string& path, uint32_t number) {
    if (method == "org.freedesktop.login1.Manager.GetSessionByPID") {
      askedAbout = number;
      if (!knowsServer) return {};
      return {Answer::Kind::PATH, false, "/org/freedesktop/login1/session/_31"};
    }
    bool hers = path == (knowsServer ? "/org/freedesktop/login1/session/_31"
                                     : "/org/freedesktop/login1/session/auto");
    if (method != "org.freedesktop.DBus.Properties.Get" || !hers) return {};
    return {Answer::Kind::VARIANT_BOOLEAN, locked};
  }

  BusService service;
};

TEST(Lock, aLockedScreenIsNeitherLookedAtNorActedOn) {
  Desk desk;
  ScreenSaver saver(desk.desktop);
  EXPECT_TRUE(becomes(desk, Lock::UNLOCKED));
  auto seen = desk.observe();

  saver.active = true;
  auto listed = desk.helper.list();
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->lock, Lock::LOCKED);
  EXPECT_EQ(listed->windows.size(), 1u) << "the list goes on";
  EXPECT_EQ(nameOf(preparePress(desk, seen)), "screen_locked");
  EXPECT_EQ(refusalOf(desk.helper.observe(desk.probe)), "screen_locked");

  saver.active = false;
  EXPECT_EQ(lockOf(desk), Lock::UNLOCKED);
  auto again = desk.observe();
  EXPECT_EQ(nameOf(preparePress(desk, again)), "");
  EXPECT_EQ(nameOf(desk.helper.perform().refusal), "");
  EXPECT_EQ(desk.recorded("record").size(), 1u);
}

TEST(Lock, aPressThatWasPreparedBeforeItIsNotDoneAfterIt) {
  Desk desk;
  ScreenSaver saver(desk.desktop);
  ASSERT_TRUE(becomes(desk, Lock::UNLOCKED));
  auto seen = desk.observe();
  ASSERT_EQ(nameOf(preparePress(desk, seen)), "");
  saver.active = true;
  EXPECT_EQ(nameOf(desk.helper.perform().refusal), "screen_locked");
  EXPECT_TRUE(desk.recorded("record").empty());
}

TEST(Lock, everyDesktopsOwnScreenSaverIsHeard) {
  Desk desk;
  for (auto name :
       {"org.freedesktop.ScreenSaver"_kj, "org.gnome.ScreenSaver"_kj, "org.cinnamon.ScreenSaver"_kj,
        "org.mate.ScreenSaver"_kj, "org.xfce.ScreenSaver"_kj}) {
    ScreenSaver saver(desk.desktop, name);
    EXPECT_TRUE(becomes(desk, Lock::UNLOCKED)) << name.cStr();
    saver.active = true;
    EXPECT_EQ(lockOf(desk), Lock::LOCKED) << name.cStr();
  }
}

TEST(Lock, withNobodyToSayItIsUnknownAndEverythingWorks) {
  Desk desk;
  EXPECT_EQ(lockOf(desk), Lock::UNKNOWN);
  auto seen = desk.observe();
  EXPECT_EQ(nameOf(preparePress(desk, seen)), "");
}

TEST(Lock, aScreenSaverThatComesAndGoesIsNoticed) {
  Desk desk;
  EXPECT_EQ(lockOf(desk), Lock::UNKNOWN);
  {
    ScreenSaver saver(desk.desktop);
    saver.active = true;
    EXPECT_TRUE(becomes(desk, Lock::LOCKED));
  }
  EXPECT_TRUE(becomes(desk, Lock::UNKNOWN));
}

TEST(Lock, aScreenSaverThatDoesNotAnswerSaysNothing) {
  Desk desk;
  ScreenSaver saver(desk.desktop);
  ASSERT_TRUE(becomes(desk, Lock::UNLOCKED));
  unsigned before = saver.calls();
  saver.silent = true;
  EXPECT_EQ(lockOf(desk), Lock::UNKNOWN);
  EXPECT_EQ(saver.calls(), before + 1);
}

TEST(Lock, oneQuestionIsOneCall) {
  Desk desk;
  ScreenSaver saver(desk.desktop);
  ASSERT_TRUE(becomes(desk, Lock::UNLOCKED));
  unsigned before = saver.calls();
  lockOf(desk);
  EXPECT_EQ(saver.calls(), before + 1);
}

TEST(Lock, logindsHintForTheDisplaysOwnSessionLocksToo) {
  Desk desk;
  startSystemBus(desk.desktop);
  Logind logind(desk.desktop);
  EXPECT_TRUE(becomes(desk, Lock::UNKNOWN)) << "that no locker told it is not that nobody locked";
  logind.locked = true;
  EXPECT_TRUE(becomes(desk, Lock::LOCKED));
  EXPECT_EQ(refusalOf(desk.helper.observe(desk.probe)), "screen_locked");
  char program[64] = {};
  auto link = kj::str("/proc/", logind.askedAbout.load(), "/exe");
  ASSERT_GT(readlink(link.cStr(), program, sizeof(program) - 1), 0);
  EXPECT_STREQ(program, "/usr/bin/Xvfb");
}

TEST(Lock, withoutASessionOfTheDisplaysServerOursIsMeant) {
  Desk desk;
  startSystemBus(desk.desktop);
  Logind logind(desk.desktop);
  logind.knowsServer = false;
  logind.locked = true;
  EXPECT_TRUE(becomes(desk, Lock::LOCKED));
}

TEST(Lock, logindIsNotStartedToBeAsked) {
  Desk desk;
  startSystemBus(desk.desktop);
  EXPECT_EQ(lockOf(desk), Lock::UNKNOWN);
  // The bus would have started it before it answered anything else of ours.
  { Logind later(desk.desktop); }
  EXPECT_NE(access(kj::str(desk.desktop.folder(), "/started").cStr(), F_OK), 0);
}

}  // namespace
}  // namespace praefectus::tests
