// What an application says wrongly of one element spoils no other, and what its cache says wrongly
// spoils nothing.
#include "tests/helper-linux/strange.h"

#include <gtest/gtest.h>

namespace praefectus::tests {
namespace {

using Lines = std::vector<std::string>;

// The elements of the odd modes' window, but the odd one and what it may have below it.
Lines soundNamesOf(const Observed& seen) {
  Lines out;
  for (auto& each : seen.seen.elements) {
    bool sound = each.fault == Fault::NONE && each.name != "Odd" && each.name.size() < 100;
    if (sound) out.push_back(kj::str(each.role, ' ', each.name).cStr());
  }
  return out;
}

const Lines SOUND = {
    "frame Strange",     "panel Controls",   "list Rows",       "label Greeting",
    "push button Press", "text Text",        "slider Slider",   "password text Password",
    "push button Twin",  "push button Twin", "label After",     "list item Row 1",
    "list item Row 2",   "list item Row 3",  "list item Row 4", "list item Row 5",
};

struct Oddity {
  const char* mode;
  Fault fault;  // Of the odd element; none when only its child is none.
};

class Odd : public testing::TestWithParam<Oddity> {};

TEST_P(Odd, elementSpoilsNoOther) {
  for (auto cache : {"none", "whole"}) {
    StrangeDesk desk({"--mode", GetParam().mode, "--cache", cache});
    auto seen = desk.observe();
    EXPECT_EQ(soundNamesOf(seen), SOUND) << cache;
    Lines faults;
    for (auto& each : seen.seen.elements) {
      if (each.fault != Fault::NONE) faults.push_back(std::to_string(static_cast<int>(each.fault)));
    }
    Lines expected;
    if (GetParam().fault != Fault::NONE) {
      expected.push_back(std::to_string(static_cast<int>(GetParam().fault)));
    }
    EXPECT_EQ(faults, expected) << cache;
    EXPECT_EQ(seen.seen.faults, faults.size());
    EXPECT_EQ(desk.press(seen, seen.find("push button", "Press")), "");
    EXPECT_EQ(desk.app.pressed().size(), 1u);
    EXPECT_TRUE(desk.app.isRunning());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faulty, Odd,
    testing::Values(Oddity{"odd-error", Fault::UNREADABLE},
                    Oddity{"odd-signature", Fault::UNREADABLE}, Oddity{"odd-size", Fault::LATE},
                    Oddity{"odd-loop", Fault::NONE}, Oddity{"odd-self", Fault::NONE},
                    Oddity{"odd-foreign", Fault::NONE}, Oddity{"odd-extents", Fault::NONE}),
    [](auto& oddity) {
      std::string mode = oddity.param.mode;
      return mode.substr(mode.find('-') + 1);
    });

// The bus itself cuts off an application that sends what is no text: its process lives on, with a
// window and without a tree.
TEST(Faulty, anApplicationThatTheBusCutsOffWhileItIsReadIsPartialOrRefused) {
  StrangeDesk desk({"--mode", "odd-text", "--cache", "none"});
  Strange other(desk.desktop, {"--title", "Other"});
  auto seen = desk.helper.observe(desk.window);
  EXPECT_TRUE(!seen.ok() || seen->seen.faults > 0);
  EXPECT_TRUE(desk.app.isRunning());
  auto again = desk.helper.observe(desk.window);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(nameOf(again.refusal().code), "accessibility_off");
  auto readable = desk.helper.observe(other.window(desk.helper));
  ASSERT_TRUE(readable.ok());
  EXPECT_EQ(readable->seen.faults, 0u);
}

class FaultyCache : public testing::TestWithParam<const char*> {};

TEST_P(FaultyCache, makesNoDifferenceToWhatIsSeen) {
  Lines expected;
  {
    StrangeDesk whole({"--cache", "whole"});
    expected = linesOf(whole.observe());
    ASSERT_GT(expected.size(), 10u);
  }
  StrangeDesk faulty({"--cache", GetParam()});
  auto seen = faulty.observe();
  EXPECT_EQ(linesOf(seen), expected);
  EXPECT_EQ(seen.seen.faults, 0u);
  EXPECT_EQ(faulty.press(seen, seen.find("push button", "Twin", 1)), "");
}

INSTANTIATE_TEST_SUITE_P(Faulty, FaultyCache,
                         testing::Values("none", "count", "repeat", "holes", "layout"),
                         [](auto& cache) { return std::string(cache.param); });

TEST(Secret, isNeverAskedForByAnythingThatReads) {
  StrangeDesk desk({"--mode", "plain"});
  auto seen = desk.observe();
  auto& password = seen.at(seen.find("password text", "Password"));
  EXPECT_TRUE(password.secure);
  EXPECT_TRUE(password.value == nullptr);
  ASSERT_TRUE(desk.helper.observe(desk.window, true).ok());
  seen = desk.observe();
  auto element = seen.find("password text", "Password");
  EXPECT_EQ(nameOf(desk.helper.prepareSet(seen, element, "guess")), "sensitivity_blocked");
  EXPECT_EQ(desk.press(seen, seen.find("push button", "Press")), "");
  EXPECT_EQ(desk.app.recorded("asked-secret"), Lines());
  EXPECT_EQ(desk.app.pressed().size(), 1u) << "the record is one";
}

TEST(Window, withNothingInItIsEmptyAndNotCut) {
  StrangeDesk desk({"--empty"});
  auto seen = desk.observe();
  EXPECT_EQ(seen.seen.elements.size(), 1u);
  EXPECT_EQ(seen.seen.faults, 0u);
  auto& cuts = seen.seen.cuts;
  EXPECT_FALSE(cuts.elements || cuts.depth || cuts.text || cuts.time);
}

TEST(Window, thatIsNotOfferedYetIsWarmingUpAndThenRead) {
  PrivateDesktop desktop;
  HelperClient helper(desktop.environment());
  helper.hello();
  Strange app(desktop, {"--silent-start"});
  auto window = app.window(helper, false);
  auto refused = helper.observe(window);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(nameOf(refused.refusal().code), "warming_up");
  auto listed = helper.list();
  ASSERT_TRUE(listed.ok());
  for (auto& each : listed->applications) {
    if (each.process.pid != static_cast<uint32_t>(app.pid())) continue;
    EXPECT_EQ(each.state, AppState::WARMING_UP);
  }
  app.change();
  auto seen = helper.observe(window);
  ASSERT_TRUE(seen.ok());
  EXPECT_TRUE(seen->has("push button", "Press"));
}

TEST(Window, ofSeveralOfOneProcessIsReadWithItsOwnElements) {
  StrangeDesk desk({"--windows", "3", "--title", "Many"});
  auto listed = desk.helper.list();
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->windows.size(), 3u);
  for (auto& each : listed->windows) {
    EXPECT_TRUE(each.accessible);
    auto seen = desk.helper.observe(each.ref);
    ASSERT_TRUE(seen.ok());
    EXPECT_EQ(std::string(seen->at(0).name.cStr()), each.title.cStr());
    EXPECT_EQ(desk.press(*seen, seen->find("push button", "Press")), "");
  }
  auto pressed = desk.app.pressed();
  ASSERT_EQ(pressed.size(), 3u);
  EXPECT_NE(pressed[0], pressed[1]);
  EXPECT_NE(pressed[1], pressed[2]);
  EXPECT_NE(pressed[0], pressed[2]);
}

}  // namespace
}  // namespace praefectus::tests
