// An element is the live object that was seen, still being what was seen, or it is refused. Each
// test observes, lets the application change, and then tries to press what was observed.
#include "tests/helper-linux/strange.h"

#include <gtest/gtest.h>

namespace praefectus::tests {
namespace {

using Options = std::vector<std::string>;
using Refusals = std::vector<std::string>;
using Paths = std::vector<std::string>;

testing::AssertionResult isOneOf(const std::string& refusal, const Refusals& expected) {
  for (auto& each : expected) {
    if (each == refusal) return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << (refusal.empty() ? "nothing was refused" : refusal);
}

// Pressed after the change; what was refused, and nothing was pressed.
std::string refusedAfterChange(const Options& options, kj::StringPtr role, kj::StringPtr name) {
  StrangeDesk desk(options);
  auto seen = desk.observe();
  auto element = seen.find(role, name);
  desk.app.change();
  auto refusal = desk.press(seen, element);
  EXPECT_EQ(desk.app.pressed(), Paths()) << "pressed what was not observed";
  EXPECT_TRUE(desk.app.isRunning());
  return refusal;
}

TEST(Identity, whatHasNotChangedIsPressedOnce) {
  StrangeDesk desk({"--mode", "plain"});
  auto seen = desk.observe();
  desk.app.change();
  EXPECT_EQ(desk.press(seen, seen.find("push button", "Press")), "");
  EXPECT_EQ(desk.app.pressed().size(), 1u);
}

TEST(Identity, aRenamedControlIsRefused) {
  EXPECT_EQ(refusedAfterChange({"--mode", "rename"}, "push button", "Press"), "target_changed");
}

// No event tells of it: whatever is remembered of the application, the live object is asked.
TEST(Identity, aControlThatWasRenamedWithoutAnyEventIsRefused) {
  EXPECT_EQ(refusedAfterChange({"--mode", "rename", "--silent"}, "push button", "Press"),
            "target_changed");
}

TEST(Identity, aChangeWithoutAnyEventIsFoundAtTheLastLookToo) {
  StrangeDesk desk({"--mode", "rename", "--silent"});
  auto seen = desk.observe();
  ASSERT_EQ(nameOf(desk.helper.prepareInvoke(seen, seen.find("push button", "Press"), "click")),
            "");
  desk.app.change();
  EXPECT_EQ(nameOf(desk.helper.perform().refusal), "target_changed");
  EXPECT_EQ(desk.app.pressed(), Paths());
}

// What is kept between two observations must not hide what no event told.
TEST(Identity, afterAChangeThatWasToldTheNextObservationShowsIt) {
  StrangeDesk desk({"--mode", "rename"});
  desk.observe();
  desk.app.change();
  auto fresh = desk.observe();
  EXPECT_FALSE(fresh.has("push button", "Press"));
  EXPECT_EQ(desk.press(fresh, fresh.find("push button", "Erase")), "");
  EXPECT_EQ(desk.app.pressed().size(), 1u);
}

TEST(Identity, aRemovedControlIsMissing) {
  EXPECT_EQ(refusedAfterChange({"--mode", "remove"}, "push button", "Press"), "target_missing");
  EXPECT_EQ(refusedAfterChange({"--mode", "remove", "--silent"}, "push button", "Press"),
            "target_missing");
}

TEST(Identity, aLookAlikeInTheControlsPlaceIsNeverPressed) {
  Refusals allowed{"target_missing", "target_changed"};
  EXPECT_TRUE(isOneOf(refusedAfterChange({"--mode", "replace"}, "push button", "Press"), allowed));
  EXPECT_TRUE(isOneOf(refusedAfterChange({"--mode", "replace", "--silent"}, "push button", "Press"),
                      allowed));
}

// A toolkit may keep an object that is out of its window alive; it answers as it always did.
TEST(Identity, anObjectThatLeftItsWindowAndGoesOnAnsweringIsRefused) {
  Refusals allowed{"target_missing", "target_changed"};
  EXPECT_TRUE(isOneOf(refusedAfterChange({"--mode", "ghost"}, "push button", "Press"), allowed));
  EXPECT_TRUE(isOneOf(refusedAfterChange({"--mode", "ghost", "--silent"}, "push button", "Press"),
                      allowed));
}

// It is where it was, but what it is in is not.
TEST(Identity, anObjectInSomethingThatLeftItsWindowIsRefused) {
  for (Options told : {Options{}, Options{"--silent"}}) {
    Options options{"--mode", "detach"};
    options.insert(options.end(), told.begin(), told.end());
    EXPECT_EQ(refusedAfterChange(options, "push button", "Press"), "target_missing");
  }
}

// Which once pressed "Cancel", because every number had moved by one.
TEST(Identity, siblingsThatAreRenumberedNeverMakeItsNeighbourTheTarget) {
  StrangeDesk desk({"--mode", "renumber"});
  auto seen = desk.observe();
  for (size_t nth = 0; nth < 2; ++nth) {
    // The path of the very object: it is pressed before anything changes.
    auto twin = seen.find("push button", "Twin", nth);
    ASSERT_EQ(desk.press(seen, twin), "");
    seen = desk.observe();
  }
  auto before = desk.app.pressed();
  ASSERT_EQ(before.size(), 2u);
  desk.app.change();
  auto refusal = desk.press(seen, seen.find("push button", "Twin", 0));
  EXPECT_TRUE(isOneOf(refusal, {"", "target_changed"}));
  auto after = desk.app.pressed();
  if (refusal.empty()) before.push_back(before[0]);
  EXPECT_EQ(after, before);
}

TEST(Identity, ofTwoEqualControlsTheOneThatWasMeantIsPressed) {
  StrangeDesk desk({"--mode", "plain"});
  auto press = [&](size_t nth) {
    auto seen = desk.observe();
    return desk.press(seen, seen.find("push button", "Twin", nth));
  };
  EXPECT_EQ(press(1), "");
  EXPECT_EQ(press(0), "");
  EXPECT_EQ(press(1), "");
  auto pressed = desk.app.pressed();
  ASSERT_EQ(pressed.size(), 3u);
  EXPECT_EQ(pressed[0], pressed[2]);
  EXPECT_NE(pressed[0], pressed[1]);
}

TEST(Identity, aRowThatNowStandsForAnotherIsRefused) {
  EXPECT_EQ(refusedAfterChange({"--mode", "recycle"}, "list item", "Row 2"), "target_changed");
  EXPECT_EQ(refusedAfterChange({"--mode", "recycle", "--silent"}, "list item", "Row 2"),
            "target_changed");
}

TEST(Identity, aDisabledControlIsRefusedWhetherAnEventToldItOrNot) {
  EXPECT_EQ(refusedAfterChange({"--mode", "disable"}, "push button", "Press"), "target_disabled");
  EXPECT_EQ(refusedAfterChange({"--mode", "disable", "--silent"}, "push button", "Press"),
            "target_disabled");
}

class Page : public testing::TestWithParam<bool> {
 protected:
  Options mode(const std::string& mode) const {
    Options out{"--mode", mode, "--toolkit", "Chromium"};
    if (GetParam()) out.push_back("--silent");
    return out;
  }
};

std::string howItIsTold(const testing::TestParamInfo<bool>& silent) {
  return silent.param ? "withoutAnEvent" : "withEvents";
}

TEST_P(Page, thatWasLeftIsNoTarget) {
  EXPECT_EQ(refusedAfterChange(mode("navigate"), "push button", "Go"), "page_target_changed");
}

// An application of one page changes its address and may keep every object.
TEST_P(Page, whoseAddressAloneChangedIsNoTarget) {
  EXPECT_EQ(refusedAfterChange(mode("navigate-within"), "push button", "Go"),
            "page_target_changed");
}

// Whether the new page's objects have the paths of the old ones, or only their ids.
TEST_P(Page, thatWasReloadedIsNoTarget) {
  EXPECT_EQ(refusedAfterChange(mode("reload"), "push button", "Go"), "page_target_changed");
  EXPECT_EQ(refusedAfterChange(mode("reload-anew"), "push button", "Go"), "page_target_changed");
}

TEST_P(Page, aControlOutsideOfItIsPressedAfterItWasLeft) {
  StrangeDesk desk(mode("reload"));
  auto seen = desk.observe();
  desk.app.change();
  auto refusal = desk.press(seen, seen.find("push button", "Press"));
  EXPECT_TRUE(isOneOf(refusal, {"", "page_target_changed"}));
  EXPECT_EQ(desk.app.pressed().size(), refusal.empty() ? 1u : 0u);
}

// A page may draw itself anew at any moment; its id says that it is the same element.
TEST_P(Page, anElementThatWasMadeAnewIsKnownByItsId) {
  StrangeDesk desk(mode("reborn"));
  auto seen = desk.observe();
  auto go = seen.find("push button", "Go");
  ASSERT_EQ(desk.press(seen, go), "");
  seen = desk.observe();
  desk.app.change();
  EXPECT_EQ(desk.press(seen, seen.find("push button", "Go")), "");
  auto pressed = desk.app.pressed();
  ASSERT_EQ(pressed.size(), 2u);
  EXPECT_NE(pressed[0], pressed[1]) << "the old object is gone";
}

TEST_P(Page, ofTwoElementsWithThatIdNoneIsChosen) {
  EXPECT_TRUE(isOneOf(refusedAfterChange(mode("reborn-twice"), "push button", "Go"),
                      {"ambiguous_target", "target_changed"}));
}

// The second one is beyond what is read of a window: whether there is one cannot be known.
TEST_P(Page, anElementIsNotKnownByItsIdWhereNotAllWasRead) {
  EXPECT_TRUE(isOneOf(refusedAfterChange(mode("reborn-far"), "push button", "Go"),
                      {"ambiguous_target", "target_changed", "target_missing"}));
}

TEST_P(Page, anElementWithThatIdThatSaysSomethingElseIsNotIt) {
  EXPECT_TRUE(isOneOf(refusedAfterChange(mode("reborn-renamed"), "push button", "Go"),
                      {"target_missing", "target_changed"}));
}

INSTANTIATE_TEST_SUITE_P(Identity, Page, testing::Bool(), howItIsTold);

}  // namespace
}  // namespace praefectus::tests
