// A window is read again at the cost of what changed, and shows the same as one that is read in
// full.
#include "tests/helper-linux/call-counter.h"
#include "tests/helper-linux/desk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include <signal.h>

namespace praefectus::tests {
namespace {

// Everything that an observation shows of its elements, one line each.
std::vector<std::string> linesOf(const Observed& seen) {
  std::vector<std::string> out;
  for (auto& element : seen.seen.elements) {
    auto line =
        kj::str(seen.at(element.parent).path, ' ', element.position, ' ', element.path, ' ',
                element.role, " '", element.name, "' ", element.states.bits, ' ',
                element.faces.bits, ' ', element.children, ' ', element.actions, ' ',
                element.settable, element.secure, element.shows, static_cast<int>(element.fault));
    KJ_IF_MAYBE (at, element.bounds) {
      line = kj::str(line, " at ", at->x, ',', at->y, ' ', at->width, 'x', at->height);
    }
    KJ_IF_MAYBE (value, element.value) line = kj::str(line, " = ", *value);
    out.push_back(line.cStr());
  }
  return out;
}

std::string differences(const std::vector<std::string>& mirror,
                        const std::vector<std::string>& full) {
  std::string out;
  auto missing = [](const std::vector<std::string>& in, const std::string& line) {
    return std::find(in.begin(), in.end(), line) == in.end();
  };
  for (auto& line : mirror) {
    if (missing(full, line)) out += "mirror: " + line + "\n";
  }
  for (auto& line : full) {
    if (missing(mirror, line)) out += "  full: " + line + "\n";
  }
  return out;
}

// An application of many kinds of widgets that changes in one way after the other.
class Changing {
 public:
  Changing() : record(kj::str(desk.desktop.folder(), "/changing.record")) {
    kj::StringPtr arguments[] = {PRAEFECTUS_BIN "/praefectus-changing"_kj, "--record"_kj, record};
    window = desk.open(arguments);
  }

  // The next change, by its name; "" when there are no more.
  std::string change() {
    size_t before = lines().size();
    KJ_SYSCALL(kill(static_cast<pid_t>(window.process.pid), SIGUSR1));
    KJ_REQUIRE(eventually([&]() { return lines().size() > before; }));
    auto last = lines().back();
    return last == "no more" ? "" : last.substr(strlen("changed "));
  }

  // What a helper of its own sees, which has never looked before. In a thread, since an event loop
  // has one to itself.
  std::vector<std::string> full() {
    std::vector<std::string> out;
    std::thread other([&]() {
      HelperClient fresh(desk.desktop.environment());
      fresh.hello();
      auto seen = fresh.observe(window);
      if (seen.ok()) out = linesOf(*seen);
    });
    other.join();
    return out;
  }

  std::vector<std::string> mirror() {
    auto seen = desk.helper.observe(window);
    KJ_REQUIRE(seen.ok(), praefectus::nameOf(seen.refusal().code));
    return linesOf(*seen);
  }

  Desk desk;
  WindowRef window;

 private:
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    std::ifstream file(record.cStr());
    for (std::string line; std::getline(file, line);) out.push_back(line);
    return out;
  }

  kj::String record;
};

TEST(Mirror, showsAfterEveryKindOfChangeWhatAFullReadingShows) {
  Changing on;
  on.mirror();
  for (;;) {
    auto name = on.change();
    if (name.empty()) break;
    // Only what two full readings agree on is at rest.
    std::vector<std::string> before, between;
    ASSERT_TRUE(eventually([&]() {
      before = on.full();
      between = on.mirror();
      return before == on.full();
    })) << name;
    EXPECT_EQ(differences(between, before), "") << "after: " << name;
  }
}

TEST(Mirror, readsAnUnchangedWindowInAFewCalls) {
  Changing on;
  CallCounter calls(on.desk.desktop.environment());
  on.mirror();
  on.mirror();  // Compared with the application's word once.
  calls.callsOf(on.desk.helper.pid());
  auto first = on.mirror();
  auto counted = calls.callsOf(on.desk.helper.pid());
  EXPECT_EQ(counted["GetItems"], 0u);
  EXPECT_LE(sumOf(counted), 10u);
  EXPECT_EQ(first, on.full());
}

TEST(Mirror, readsAgainOnlyWhatChanged) {
  Changing on;
  CallCounter calls(on.desk.desktop.environment());
  auto elements = on.mirror().size();
  calls.callsOf(on.desk.helper.pid());
  ASSERT_EQ(on.change(), "nothing");
  ASSERT_EQ(on.change(), "label");
  auto seen = on.mirror();
  auto counted = calls.callsOf(on.desk.helper.pid());
  EXPECT_EQ(counted["GetItems"], 0u);
  EXPECT_LT(sumOf(counted), elements);
  EXPECT_EQ(differences(seen, on.full()), "");
}

TEST(Mirror, aDesktopAtRestIsNotAskedAnything) {
  Changing on;
  CallCounter calls(on.desk.desktop.environment());
  on.mirror();
  on.mirror();
  calls.callsOf(on.desk.helper.pid());
  // Another helper's whole reading takes its time; ours sends nothing meanwhile.
  on.full();
  EXPECT_EQ(sumOf(calls.callsOf(on.desk.helper.pid())), 0u);
}

TEST(Below, readsTheRestOfAListAndSaysNothingOfWhatItDidNotRead) {
  Changing on;
  auto seen = on.desk.helper.observe(on.window);
  ASSERT_TRUE(seen.ok());
  auto list = seen->find("list box", "");
  auto rows = seen->at(list).children;
  ASSERT_EQ(rows, 12u);
  auto part = on.desk.helper.observeBelow(*seen, list, 9);
  ASSERT_TRUE(part.ok()) << praefectus::nameOf(part.refusal().code).cStr();
  auto& top = part->at(part->seen.below);
  EXPECT_STREQ(top.path.cStr(), seen->at(list).path.cStr());
  std::vector<uint32_t> places;
  for (auto& element : part->seen.elements) {
    if (element.parent == part->seen.below && element.role == "list item") {
      places.push_back(element.position);
    }
  }
  std::sort(places.begin(), places.end());
  EXPECT_EQ(places, (std::vector<uint32_t>{9, 10, 11}));
  EXPECT_EQ(part->seen.gone.size(), 0u) << "what was not asked for is not gone";
  auto whole = on.desk.helper.observe(on.window);
  ASSERT_TRUE(whole.ok());
  for (auto& element : whole->seen.elements) EXPECT_NE(element.change, Change::ADDED);
}

TEST(Below, ofTheWindowItselfIsAPartToo) {
  Changing on;
  auto seen = on.desk.helper.observe(on.window);
  ASSERT_TRUE(seen.ok());
  auto part = on.desk.helper.observeBelow(*seen, 0, 1);
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->seen.gone.size(), 0u);
}

TEST(Below, countsDepthFromWhereItBegins) {
  Changing on;
  auto seen = on.desk.helper.observe(on.window);
  ASSERT_TRUE(seen.ok());
  ObserveAct shallow;
  shallow.depth = 1;
  auto list = seen->find("list box", "");
  shallow.below =
      Below{seen->seen.frame.id, seen->seen.frame.epoch, list, seen->at(list).digest, 0};
  auto part = on.desk.helper.observe(on.window, shallow);
  ASSERT_TRUE(part.ok());
  EXPECT_TRUE(part->has("list item", ""));
  EXPECT_FALSE(part->has("label", "Row 0"));
  EXPECT_TRUE(part->seen.cuts.depth);
}

TEST(Below, refusesWhatIsNotOfTheLastFrame) {
  Changing on;
  auto seen = on.desk.helper.observe(on.window);
  ASSERT_TRUE(seen.ok());
  auto refused = [&](Below below, const WindowRef& window) {
    ObserveAct act;
    act.below = below;
    auto answer = on.desk.helper.observe(window, act);
    // Every look spends the frame before it.
    auto again = on.desk.helper.observe(on.window);
    KJ_REQUIRE(again.ok());
    seen = kj::mv(again);
    return answer.ok() ? std::string()
                       : std::string(praefectus::nameOf(answer.refusal().code).cStr());
  };
  auto right = [&]() {
    return Below{seen->seen.frame.id, seen->seen.frame.epoch, 1, seen->at(1).digest, 0};
  };
  auto frame = right();
  frame.frame[0] ^= 1;
  EXPECT_EQ(refused(frame, on.window), "stale_frame");
  auto epoch = right();
  ++epoch.epoch;
  EXPECT_EQ(refused(epoch, on.window), "stale_epoch");
  auto digest = right();
  digest.digest[0] ^= 1;
  EXPECT_EQ(refused(digest, on.window), "stale_frame");
  EXPECT_EQ(refused(right(), on.desk.probe), "target_mismatch");
  EXPECT_EQ(refused(right(), on.window), "");
}

TEST(Mirror, tellsWhatIsNewChangedAndGoneSinceTheLastFrame) {
  Changing on;
  auto observe = [&]() {
    auto seen = on.desk.helper.observe(on.window);
    KJ_REQUIRE(seen.ok());
    return kj::mv(*seen);
  };
  on.desk.observe();
  auto first = observe();
  EXPECT_TRUE(first.seen.before == nullptr);
  EXPECT_EQ(first.at(0).change, Change::UNKNOWN);
  while (on.change() != "button") {
  }
  auto second = observe();
  EXPECT_TRUE(KJ_ASSERT_NONNULL(second.seen.before) == first.seen.frame.id);
  EXPECT_EQ(second.at(second.find("push button", "Renamed")).change, Change::CHANGED);
  EXPECT_EQ(second.at(second.find("check box", "Check")).change, Change::SAME);
  EXPECT_EQ(second.seen.gone.size(), 0u);
  while (on.change() != "add") {
  }
  auto third = observe();
  EXPECT_EQ(third.at(third.find("push button", "Extra")).change, Change::ADDED);
  while (on.change() != "rename hidden") {
  }
  auto before = observe();
  auto extra = before.find("push button", "Hidden name");
  ASSERT_EQ(on.change(), "remove");
  auto fourth = observe();
  ASSERT_EQ(fourth.seen.gone.size(), 1u);
  EXPECT_EQ(fourth.seen.gone[0], extra);
}

}  // namespace
}  // namespace praefectus::tests
