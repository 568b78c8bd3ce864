// Applications that are too large, too slow, silent, stopped or dying, and a bus that is wedged.
// Reading them is bounded and says what is missing; nobody else is affected, and the application is
// none the worse for having been read.
#include "tests/helper-linux/strange.h"

#include "ipc/bounds.h"

#include <kj/debug.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <signal.h>

namespace praefectus::tests {
namespace {

using Options = std::vector<std::string>;

// Stopped by a signal for as long as this lives.
class Stopped {
 public:
  explicit Stopped(pid_t pid) : pid(pid) {
    KJ_SYSCALL(kill(pid, SIGSTOP));
    KJ_REQUIRE(eventually([pid]() { return isStopped(pid); }));
  }
  ~Stopped() { kill(pid, SIGCONT); }
  KJ_DISALLOW_COPY(Stopped);

 private:
  pid_t pid;
};

std::string contentOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A program of this desktop, by a word of its command line.
pid_t programOf(const PrivateDesktop& desktop, const std::string& word) {
  for (auto& each : std::filesystem::directory_iterator("/proc")) {
    auto name = each.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (contentOf(each.path() / "cmdline").find(word) == std::string::npos) continue;
    auto environment = contentOf(each.path() / "environ");
    if (environment.find(desktop.folder().cStr()) != std::string::npos) return std::stoi(name);
  }
  KJ_FAIL_REQUIRE("no such program", word.c_str());
}

constexpr const char* ACCESSIBILITY_BUS = "defaults/at-spi2/accessibility.conf";
constexpr const char* SESSION_BUS = "--session";

size_t countOf(const Observed& seen, Fault fault) {
  size_t out = 0;
  for (auto& each : seen.seen.elements) out += each.fault == fault ? 1 : 0;
  return out;
}

size_t faultsOf(const Observed& seen) {
  return seen.seen.elements.size() - countOf(seen, Fault::NONE);
}

bool isCut(const Cuts& cuts) { return cuts.elements || cuts.depth || cuts.text || cuts.time; }

// That it is whole: it lives, nothing deadly was asked of it, and it can be read and acted on.
void expectUnharmed(StrangeDesk& desk) {
  EXPECT_TRUE(desk.app.isRunning());
  EXPECT_EQ(desk.app.recorded("fetched-all"), Options());
  EXPECT_EQ(desk.app.recorded("fetched-properties"), Options());
  auto seen = desk.observe();
  EXPECT_EQ(desk.press(seen, seen.find("push button", "Press")), "");
  EXPECT_EQ(desk.app.pressed().size(), 1u);
}

// That another application of this desktop is read as if nothing were wrong.
void expectReadable(HelperClient& helper, const WindowRef& window) {
  auto seen = helper.observe(window);
  ASSERT_TRUE(seen.ok()) << praefectus::nameOf(seen.refusal().code).cStr();
  EXPECT_TRUE(seen->has("push button", "Press"));
  EXPECT_EQ(faultsOf(*seen), 0u);
  EXPECT_FALSE(isCut(seen->seen.cuts));
}

AppState stateOf(HelperClient& helper, pid_t pid) {
  auto listed = helper.list();
  KJ_REQUIRE(listed.ok());
  for (auto& each : listed->applications) {
    if (each.process.pid == static_cast<uint32_t>(pid)) return each.state;
  }
  KJ_FAIL_REQUIRE("the application is not listed");
}

class Large : public testing::TestWithParam<const char*> {};

TEST_P(Large, aTreeOfAHundredThousandElementsIsCutAndSaysSo) {
  StrangeDesk desk({"--mode", "huge", "--cache", GetParam()});
  auto seen = desk.observe();
  EXPECT_TRUE(seen.seen.cuts.elements || seen.seen.cuts.time);
  EXPECT_LE(seen.seen.elements.size(), bounds::ELEMENTS);
  // Breadth first: what is near the window is there.
  EXPECT_TRUE(seen.has("push button", "Press"));
  EXPECT_TRUE(seen.has("panel", "Part 99"));
  expectUnharmed(desk);
}

TEST_P(Large, aTreeOfTenThousandLevelsIsCutAndSaysSo) {
  StrangeDesk desk({"--mode", "deep", "--cache", GetParam()});
  auto seen = desk.observe();
  EXPECT_TRUE(seen.seen.cuts.depth);
  for (auto& each : seen.seen.elements) EXPECT_LE(each.depth, bounds::DEPTH);
  EXPECT_TRUE(seen.has("panel", "20"));
  expectUnharmed(desk);
}

// Asked for all its cells, a real spreadsheet took 23 GB and hung; this one dies.
TEST_P(Large, aSheetOfABillionCellsIsNeverAskedForAllOfThem) {
  StrangeDesk desk({"--mode", "wide", "--cache", GetParam()});
  auto seen = desk.observe();
  auto& sheet = seen.at(seen.find("table", "Sheet"));
  EXPECT_EQ(sheet.fault, Fault::SKIPPED);
  EXPECT_EQ(faultsOf(seen), 1u) << "the others are whole";
  EXPECT_TRUE(seen.has("list item", "Row 5"));
  expectUnharmed(desk);
}

// A part of it, wherever that is, costs no more than the part.
TEST_P(Large, aSheetOfABillionCellsIsReadInParts) {
  StrangeDesk desk({"--mode", "wide", "--cache", GetParam()});
  auto seen = desk.observe();
  constexpr uint32_t FIRST = 1'000'000'000;
  auto part = desk.helper.observeBelow(seen, seen.find("table", "Sheet"), FIRST, 40);
  ASSERT_TRUE(part.ok()) << praefectus::nameOf(part.refusal().code).cStr();
  auto cell = part->find("table cell", "Cell 1000000007");
  EXPECT_EQ(part->at(cell).position, FIRST + 7);
  EXPECT_FALSE(part->has("table cell", "Cell 0"));
  EXPECT_LE(part->seen.elements.size(), 40u);
  EXPECT_TRUE(part->seen.cuts.elements);
  expectUnharmed(desk);
}

INSTANTIATE_TEST_SUITE_P(Hang, Large, testing::Values("whole", "none"),
                         [](auto& cache) { return std::string(cache.param) + "Cache"; });

TEST(Hang, ofASlowApplicationWhatCouldBeReadInTimeIsGivenAndSaysSo) {
  StrangeDesk desk({"--mode", "slow", "--cache", "none", "--pause", "20"});
  Strange other(desk.desktop, {"--title", "Other"});
  auto seen = desk.observe();
  EXPECT_TRUE(seen.seen.cuts.time || faultsOf(seen) > 0);
  EXPECT_EQ(seen.at(0).fault, Fault::NONE);
  EXPECT_EQ(std::string(seen.at(0).name.cStr()), "Strange");
  EXPECT_TRUE(desk.app.isRunning());
  expectReadable(desk.helper, other.window(desk.helper));
}

TEST(Hang, ofOneElementThatNeverAnswersSpoilsNoOther) {
  for (auto cache : {"whole", "none"}) {
    StrangeDesk desk({"--mode", "mute", "--cache", cache});
    auto seen = desk.observe();
    EXPECT_EQ(faultsOf(seen), 1u);
    EXPECT_EQ(countOf(seen, Fault::LATE), 1u);
    EXPECT_TRUE(seen.has("label", "After")) << "its next sibling";
    expectUnharmed(desk);
  }
}

TEST(Hang, anApplicationThatDiesWhileItIsReadIsPartialOrGone) {
  StrangeDesk desk({"--mode", "dies"});
  Strange other(desk.desktop, {"--title", "Other"});
  auto seen = desk.helper.observe(desk.window);
  EXPECT_TRUE(eventually([&]() { return !desk.app.isRunning(); }));
  if (seen.ok()) {
    EXPECT_TRUE(faultsOf(*seen) > 0 || seen->seen.cuts.time) << "it is not whole and says so";
  } else {
    auto refusal = nameOf(seen.refusal().code);
    EXPECT_TRUE(refusal == "target_missing" || refusal == "not_answering" ||
                refusal == "capture_failed")
        << refusal;
  }
  EXPECT_EQ(nameOf(desk.helper.observe(desk.window).refusal().code), "target_missing");
  expectReadable(desk.helper, other.window(desk.helper));
}

TEST(Hang, anApplicationThatStopsWhileItIsReadIsPartialOrNotAnswering) {
  StrangeDesk desk({"--mode", "freezes"});
  Strange other(desk.desktop, {"--title", "Other"});
  auto seen = desk.helper.observe(desk.window);
  EXPECT_TRUE(isStopped(desk.app.pid()));
  if (seen.ok()) {
    EXPECT_TRUE(faultsOf(*seen) > 0 || seen->seen.cuts.time) << "it is not whole and says so";
  } else {
    EXPECT_EQ(nameOf(seen.refusal().code), "not_answering");
  }
  expectReadable(desk.helper, other.window(desk.helper));
  desk.app.resume();
  EXPECT_EQ(faultsOf(desk.observe()), 0u);
  expectUnharmed(desk);
}

TEST(Hang, aStoppedApplicationIsNamedAndNobodyElseIsAffected) {
  StrangeDesk desk({"--mode", "plain"});
  Strange other(desk.desktop, {"--title", "Other"});
  auto otherWindow = other.window(desk.helper);
  {
    Stopped stopped(desk.app.pid());
    EXPECT_EQ(nameOf(desk.helper.observe(desk.window).refusal().code), "not_answering");
    EXPECT_EQ(stateOf(desk.helper, desk.app.pid()), AppState::NOT_ANSWERING);
    EXPECT_EQ(stateOf(desk.helper, other.pid()), AppState::READY);
    expectReadable(desk.helper, otherWindow);
  }
  EXPECT_EQ(stateOf(desk.helper, desk.app.pid()), AppState::READY);
  expectUnharmed(desk);
}

// One session's helper waits for it, another session's goes on meanwhile.
TEST(Hang, aHelperThatWaitsForAStoppedApplicationHoldsUpNoOtherHelper) {
  StrangeDesk desk({"--mode", "plain"});
  Strange other(desk.desktop, {"--title", "Other"});
  auto otherWindow = other.window(desk.helper);
  Stopped stopped(desk.app.pid());
  Beside second([&]() {
    HelperClient helper(desk.desktop.environment());
    helper.hello();
    expectReadable(helper, otherWindow);
    expectReadable(helper, otherWindow);
  });
  EXPECT_EQ(nameOf(desk.helper.observe(desk.window).refusal().code), "not_answering");
}

TEST(Hang, aWedgedAccessibilityBusIsNamedAndReadAgainWhenItGoesOn) {
  StrangeDesk desk({"--mode", "plain"});
  {
    Stopped stopped(programOf(desk.desktop, ACCESSIBILITY_BUS));
    // Another session, on another desktop.
    Beside elsewhere([]() {
      StrangeDesk other({"--title", "Other"});
      expectReadable(other.helper, other.window);
    });
    auto listed = desk.helper.list();
    ASSERT_FALSE(listed.ok());
    EXPECT_EQ(nameOf(listed.refusal().code), "no_accessibility_bus");
    auto seen = desk.helper.observe(desk.window);
    ASSERT_FALSE(seen.ok());
    EXPECT_EQ(nameOf(seen.refusal().code), "no_accessibility_bus");
  }
  EXPECT_EQ(faultsOf(desk.observe()), 0u);
  expectUnharmed(desk);
}

TEST(Hang, aHelperStartsOnAWedgedAccessibilityBusAndSaysSo) {
  PrivateDesktop desktop;
  Strange app(desktop, {"--mode", "plain"});
  HelperClient helper(desktop.environment());
  {
    Stopped stopped(programOf(desktop, ACCESSIBILITY_BUS));
    for (auto& each : helper.hello()) {
      if (each.name == "screenshot") continue;  // It needs the display only.
      EXPECT_FALSE(each.available) << each.name.cStr();
      EXPECT_EQ(nameOf(each.why), "no_accessibility_bus") << each.name.cStr();
    }
  }
  expectReadable(helper, app.window(helper));
}

// The display knows where the accessibility bus is, too.
TEST(Hang, aWedgedSessionBusKeepsNobodyFromReading) {
  PrivateDesktop desktop;
  Strange app(desktop, {"--mode", "plain"});
  Stopped stopped(programOf(desktop, SESSION_BUS));
  HelperClient helper(desktop.environment());
  helper.hello();
  expectReadable(helper, app.window(helper));
}

// What was prepared is looked at once more, and a target that has fallen silent is not acted on,
// now or when it wakes.
TEST(Hang, anEffectThatWaitsForAStoppedApplicationIsNotSentLater) {
  StrangeDesk desk({"--mode", "plain"});
  auto seen = desk.observe();
  ASSERT_EQ(nameOf(desk.helper.prepareInvoke(seen, seen.find("push button", "Press"), "click")),
            "");
  {
    Stopped stopped(desk.app.pid());
    EXPECT_EQ(nameOf(desk.helper.perform().refusal), "not_answering");
  }
  desk.observe();
  EXPECT_EQ(desk.app.pressed(), Options());
}

}  // namespace
}  // namespace praefectus::tests
