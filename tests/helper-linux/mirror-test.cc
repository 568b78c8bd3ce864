// What is kept of an application between two observations never shows other than what is there. The
// second opinion is a helper that was just started and has kept nothing.
#include "tests/helper-linux/call-counter.h"
#include "tests/helper-linux/strange.h"

#include <gtest/gtest.h>

namespace praefectus::tests {
namespace {

using Lines = std::vector<std::string>;
using Options = std::vector<std::string>;

// Calls to an application whose window has not changed.
constexpr size_t FEW = 10;

// What a helper sees that has never seen it before.
Lines seenAfresh(StrangeDesk& desk) {
  Lines out;
  Beside fresh([&]() {
    HelperClient helper(desk.desktop.environment());
    helper.hello();
    auto seen = helper.observe(desk.window);
    if (seen.ok()) out = linesOf(*seen);
  });
  fresh.wait();
  return out;
}

struct Change {
  const char* mode;
  const char* toolkit;
  const char* version;
};

Options optionsOf(const Change& change) {
  return {"--mode", change.mode, "--toolkit", change.toolkit, "--toolkit-version", change.version};
}

std::string nameOfChange(const testing::TestParamInfo<Change>& change) {
  std::string out = std::string(change.param.mode) + "_" + change.param.toolkit;
  for (auto& each : out) each = each == '-' ? '_' : each;
  return out;
}

constexpr Change CHANGES[] = {
    {"plain", "gtk", "3.24.38"},           {"rename", "gtk", "3.24.38"},
    {"disable", "gtk", "3.24.38"},         {"add", "gtk", "3.24.38"},
    {"remove", "gtk", "3.24.38"},          {"replace", "gtk", "3.24.38"},
    {"ghost", "gtk", "3.24.38"},           {"detach", "gtk", "3.24.38"},
    {"renumber", "gtk", "3.24.38"},        {"flood", "gtk", "3.24.38"},
    {"recycle", "gtk", "3.24.38"},         {"rename", "Chromium", "120"},
    {"navigate", "Chromium", "120"},       {"navigate-within", "Chromium", "120"},
    {"reload", "Chromium", "120"},         {"reload-anew", "Chromium", "120"},
    {"reborn", "Chromium", "120"},         {"reborn-twice", "Chromium", "120"},
    {"reborn-renamed", "Chromium", "120"},
};

// A copy may show what is no more; nothing is done to it.
TEST(Copy, isNeverActedOnInPlaceOfTheLiveObject) {
  StrangeDesk desk(
      {"--mode", "rename", "--silent", "--toolkit", "gtk", "--toolkit-version", "3.24.38"});
  CallCounter calls(desk.desktop.environment());
  // Until it is kept, and has been compared with the application's word.
  ASSERT_TRUE(eventually([&]() {
    calls.callsOf(desk.helper.pid());
    desk.observe();
    auto made = calls.callsOf(desk.helper.pid());
    return made["GetItems"] == 0 && sumOf(made) <= FEW;
  }));
  desk.app.change();
  auto shown = desk.observe();
  auto button = shown.find("push button", "Press");
  auto refused = desk.helper.prepareInvoke(shown, button, shown.at(button).actions[0]);
  EXPECT_EQ(nameOf(refused), "target_changed");
  EXPECT_TRUE(desk.app.pressed().empty());
  EXPECT_FALSE(desk.observe().has("push button", "Press")) << "it was read in full";
}

class Told : public testing::TestWithParam<Change> {};

TEST_P(Told, changeIsShownByTheNextObservation) {
  StrangeDesk desk(optionsOf(GetParam()));
  desk.observe();
  desk.observe();
  desk.app.change();
  auto seen = linesOf(desk.observe());
  EXPECT_EQ(seen, seenAfresh(desk));
  EXPECT_GT(seen.size(), 5u);
}

INSTANTIATE_TEST_SUITE_P(Mirror, Told, testing::ValuesIn(CHANGES), nameOfChange);

constexpr Change SILENT_CHANGES[] = {
    {"rename", "gtk", "3.24.38"},  {"disable", "gtk", "3.24.38"}, {"add", "gtk", "3.24.38"},
    {"remove", "gtk", "3.24.38"},  {"replace", "gtk", "3.24.38"}, {"renumber", "gtk", "3.24.38"},
    {"recycle", "gtk", "3.24.38"}, {"reborn", "Chromium", "120"},
};

class Untold : public testing::TestWithParam<Change> {};

// By whatever looks again from time to time.
TEST_P(Untold, changeIsShownInTheEnd) {
  auto options = optionsOf(GetParam());
  options.push_back("--silent");
  StrangeDesk desk(options);
  desk.observe();
  desk.app.change();
  auto expected = seenAfresh(desk);
  EXPECT_TRUE(eventually([&]() { return linesOf(desk.observe()) == expected; }));
}

INSTANTIATE_TEST_SUITE_P(Mirror, Untold, testing::ValuesIn(SILENT_CHANGES), nameOfChange);

// Of a toolkit that nobody has tried nobody knows what it tells.
TEST(Mirror, isNotKeptOfAToolkitWhoseEventsWereNotProven) {
  for (auto mode : {"rename", "add", "remove", "recycle"}) {
    StrangeDesk desk({"--mode", mode, "--silent"});
    desk.observe();
    desk.app.change();
    EXPECT_EQ(linesOf(desk.observe()), seenAfresh(desk)) << mode;
  }
}

// The paths of both are the same; only who sends an event tells whose it is.
TEST(Mirror, isNotDisturbedByAnotherApplicationsEvents) {
  StrangeDesk desk({"--mode", "plain", "--toolkit", "gtk", "--toolkit-version", "3.24.38"});
  Strange other(desk.desktop, {"--mode", "add", "--toolkit", "gtk", "--toolkit-version", "3.24.38",
                               "--title", "Other", "--place", "1"});
  ASSERT_TRUE(desk.helper.observe(other.window(desk.helper)).ok()) << "so that both are heard";
  desk.observe();
  auto before = linesOf(desk.observe());
  desk.app.countCalls();
  other.change();
  EXPECT_EQ(linesOf(desk.observe()), before);
  EXPECT_LE(desk.app.countCalls(), FEW);
  EXPECT_EQ(seenAfresh(desk), before);
}

TEST(Mirror, ofOneWindowDoesNotShowWhatIsInAnother) {
  StrangeDesk desk(
      {"--mode", "rename", "--toolkit", "gtk", "--toolkit-version", "3.24.38", "--windows", "2"});
  auto listed = desk.helper.list();
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->windows.size(), 2u);
  for (auto& window : listed->windows) ASSERT_TRUE(desk.helper.observe(window.ref).ok());
  desk.app.change();
  size_t renamed = 0;
  for (auto& window : listed->windows) {
    auto seen = desk.helper.observe(window.ref);
    ASSERT_TRUE(seen.ok());
    desk.window = window.ref;
    EXPECT_EQ(linesOf(*seen), seenAfresh(desk));
    renamed += seen->has("push button", "Erase") ? 1 : 0;
  }
  EXPECT_EQ(renamed, 1u);
}

// A window that has not changed is not read again.
TEST(Mirror, ofAnUnchangedWindowCostsAFewCallsOnly) {
  StrangeDesk desk({"--mode", "plain", "--toolkit", "gtk", "--toolkit-version", "3.24.38"});
  desk.observe();
  auto before = linesOf(desk.observe());
  desk.app.countCalls();
  EXPECT_EQ(linesOf(desk.observe()), before);
  EXPECT_LE(desk.app.countCalls(), FEW);
}

}  // namespace
}  // namespace praefectus::tests
