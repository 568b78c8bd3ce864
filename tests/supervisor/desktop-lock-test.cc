// One desktop has one actor, however its display is spelled, and the next one when that one has
// gone.
#include "supervisor/desktop-lock.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace praefectus {
namespace {

// A display that no other test and no person has.
kj::String display(kj::StringPtr host, kj::StringPtr screen = "") {
  return kj::str(host, ":90", getpid(), screen);
}

TEST(DesktopLock, theFirstToActHasTheDesktopUntilItEnds) {
  auto first = kj::heap<DesktopLock>(display(""));
  DesktopLock second(display(""));
  EXPECT_TRUE(first->isFree() && second.isFree());  // Looking takes nothing.
  ASSERT_TRUE(first->hold().ok());
  EXPECT_TRUE(first->hold().ok());
  EXPECT_FALSE(second.isFree());
  auto busy = second.hold();
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.refusal().code, RefusalCode::DESKTOP_BUSY);

  first = nullptr;
  EXPECT_TRUE(second.isFree());
  EXPECT_TRUE(second.hold().ok());
}

TEST(DesktopLock, everySpellingOfALocalDisplayIsTheSameDesktop) {
  DesktopLock first(display(""));
  ASSERT_TRUE(first.hold().ok());
  for (const char* host : {"unix", "localhost", "127.0.0.1", ""}) {
    for (const char* screen : {"", ".0", ".1"}) {
      EXPECT_FALSE(DesktopLock(display(host, screen)).isFree()) << host << screen;
    }
  }
  EXPECT_TRUE(DesktopLock(kj::str(display(""), "7")).isFree());
  EXPECT_TRUE(DesktopLock(display("elsewhere")).isFree());
}

}  // namespace
}  // namespace praefectus
