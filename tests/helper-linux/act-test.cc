// What the shipped helper does to real applications. The oracle is what the application wrote down
// itself.
#include "ipc/bounds.h"
#include "tests/helper-linux/desk.h"
#include "tests/helper-linux/screen.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

namespace praefectus::tests {
namespace {

std::string hexOf(const std::string& text) {
  return hex(kj::StringPtr(text.c_str()).asBytes()).cStr();
}

bool has(wire::Sight::Reader sight, State state) {
  for (auto each : sight.getStates()) {
    if (each == state) return true;
  }
  return false;
}

bool equal(capnp::Data::Reader data, const Hash& hash) {
  return data.size() == hash.size() && memcmp(data.begin(), hash.data(), hash.size()) == 0;
}

TEST(Invoke, pressesAButtonExactlyOnce) {
  Desk desk;
  auto seen = desk.observe();
  auto done = desk.helper.invoke(seen, seen.find("push button", "Record"), "click");
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_EQ(done.facts().getAnswer(), wire::Answer::ACCEPTED);
  EXPECT_TRUE(done.facts().getBefore().getPresent());
  EXPECT_TRUE(done.facts().getAfter().getPresent());
  EXPECT_TRUE(eventually([&]() { return desk.recorded("record").size() == 1; }));
  desk.observe();
  EXPECT_EQ(desk.recorded("record").size(), 1u);
}

TEST(Invoke, showsTheStateThatACheckBoxTook) {
  Desk desk;
  auto seen = desk.observe();
  auto done = desk.helper.invoke(seen, seen.find("check box", "Check"), "click");
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_FALSE(has(done.facts().getBefore(), State::CHECKED));
  EXPECT_TRUE(has(done.facts().getAfter(), State::CHECKED));
  EXPECT_EQ(desk.recorded("check"), std::vector<std::string>{"check on"});
}

TEST(Invoke, actsOnTheVeryObjectAmongEquals) {
  Desk desk("equal");
  auto seen = desk.observe();
  auto done = desk.helper.invoke(seen, seen.find("push button", "Twin", 1), "click");
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_TRUE(eventually([&]() { return desk.recorded("twin").size() == 1; }));
  EXPECT_EQ(desk.recorded("twin"), std::vector<std::string>{"twin 2"});
}

TEST(Invoke, aButtonThatDoesNothingLeavesTheFactsUnchanged) {
  Desk desk("noop");
  auto seen = desk.observe();
  auto done = desk.helper.invoke(seen, seen.find("push button", "Record"), "click");
  ASSERT_EQ(nameOf(done.refusal), "");
  auto before = done.facts().getBefore(), after = done.facts().getAfter();
  EXPECT_TRUE(before.getLabel() == after.getLabel());
  EXPECT_TRUE(before.getWindows() == after.getWindows());
  EXPECT_TRUE(after.getPresent() && after.getWindowPresent());
  EXPECT_TRUE(desk.recorded("record").empty());
}

TEST(Invoke, worksOnAForeignApplication) {
  Desk desk;
  kj::StringPtr arguments[] = {"galculator"_kj};
  auto window = desk.open(arguments);
  for (auto digit : {"7"_kj, "5"_kj}) {
    auto seen = desk.helper.observe(window);
    ASSERT_TRUE(seen.ok());
    auto done = desk.helper.invoke(*seen, seen->find("toggle button", digit), "click");
    ASSERT_EQ(nameOf(done.refusal), "");
  }
  EXPECT_TRUE(eventually([&]() {
    auto seen = desk.helper.observe(window);
    if (!seen.ok()) return false;
    for (auto& element : seen->seen.elements) {
      KJ_IF_MAYBE (value, element.value) {
        if (*value == "75") return true;
      }
    }
    return false;
  }));
}

TEST(SetValue, writesTheTextAndReadsItBack) {
  Desk desk;
  auto seen = desk.observe();
  auto done = desk.helper.set(seen, seen.find("text", "Text"), "Grüße");
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_TRUE(equal(done.facts().getBefore().getValue().getText(),
                    desk.helper.valueHash(Value(kj::str("")))));
  EXPECT_TRUE(equal(done.facts().getAfter().getValue().getText(),
                    desk.helper.valueHash(Value(kj::str("Grüße")))));
  EXPECT_EQ(desk.recorded("text").back(), "text 7 " + hexOf("Grüße"));
}

TEST(SetValue, keepsEmojiAndChineseWhole) {
  Desk desk;
  auto seen = desk.observe();
  std::string text = "漢字かな 👩🏽‍🚀 𝔘𝔫𝔦 e\xcc\x81";
  auto done = desk.helper.set(seen, seen.find("text", "Text"), text.c_str());
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_TRUE(equal(done.facts().getAfter().getValue().getText(),
                    desk.helper.valueHash(Value(kj::str(text.c_str())))));
  EXPECT_EQ(desk.recorded("text").back(),
            "text " + std::to_string(text.size()) + " " + hexOf(text));
}

TEST(SetValue, movesASliderToANumber) {
  Desk desk;
  auto seen = desk.observe();
  auto done = desk.helper.set(seen, seen.find("slider", "Slider"), "55");
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_TRUE(
      equal(done.facts().getAfter().getValue().getNumber(), desk.helper.valueHash(Value(55.0))));
  EXPECT_EQ(desk.recorded("slider"), std::vector<std::string>{"slider 55"});
}

TEST(SetValue, aNumberThatASliderCannotTakeIsSeenAsWhatItBecame) {
  Desk desk;
  auto seen = desk.observe();
  auto done = desk.helper.set(seen, seen.find("slider", "Slider"), "500");
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_TRUE(
      equal(done.facts().getAfter().getValue().getNumber(), desk.helper.valueHash(Value(100.0))));
}

TEST(SetValue, aControlThatTakesTheTextBackIsNotMistakenForOneThatKeptIt) {
  Desk desk("reject");
  auto seen = desk.observe();
  auto done = desk.helper.set(seen, seen.find("text", "Text"), "kept?");
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_TRUE(equal(done.facts().getAfter().getValue().getText(),
                    desk.helper.valueHash(Value(kj::str("")))));
  EXPECT_EQ(desk.recorded("text").back(), "text 0 ");
}

// The file is the editor's own record; the test saves it with its own keyboard.
TEST(SetValue, reachesTheFileOfAForeignEditor) {
  Desk desk;
  auto path = kj::str(desk.desktop.folder(), "/note.txt");
  std::ofstream(path.cStr()) << "before\n";
  kj::StringPtr arguments[] = {"mousepad"_kj, path};
  auto window = desk.open(arguments);
  auto seen = desk.helper.observe(window);
  ASSERT_TRUE(seen.ok());
  uint32_t editor = UINT32_MAX;
  for (uint32_t i = 0; i < seen->seen.elements.size(); ++i) {
    if (seen->at(i).role == "text" && seen->at(i).states.has(State::MULTI_LINE)) editor = i;
  }
  ASSERT_NE(editor, UINT32_MAX);
  auto done = desk.helper.set(*seen, editor, "after\nall 漢字\n");
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_TRUE(equal(done.facts().getAfter().getValue().getText(),
                    desk.helper.valueHash(Value(kj::str("after\nall 漢字\n")))));
  Screen screen(desk.desktop.display());
  screen.focus(window.window);
  screen.type("s", true);
  EXPECT_TRUE(eventually([&]() {
    std::ifstream file(path.cStr());
    std::stringstream text;
    text << file.rdbuf();
    return text.str() == "after\nall 漢字\n";
  }));
}

StateProof expecting(std::initializer_list<Expectation> expected) {
  StateProof proof;
  proof.expected.addAll(expected);
  return proof;
}

Performed checkWith(Desk& desk, Verification::Content proof) {
  auto seen = desk.observe();
  auto box = HelperClient::targetOf(seen, seen.find("check box", "Check"));
  return desk.helper.carryOut(
      HelperClient::acting(box, InvokeRequest{kj::str("click")}, kj::mv(proof)));
}

TEST(Proof, theStateThatWasAskedForIsSeenToCome) {
  Desk desk;
  auto done = checkWith(desk, expecting({{State::CHECKED, true}, {State::ENABLED, true}}));
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_FALSE(has(done.facts().getBefore(), State::CHECKED));
  EXPECT_TRUE(has(done.facts().getAfter(), State::CHECKED));
  EXPECT_EQ(desk.recorded("check"), std::vector<std::string>{"check on"});
}

TEST(Proof, theValueThatWasAskedForIsReadBack) {
  Desk desk;
  auto seen = desk.observe();
  auto slider = HelperClient::targetOf(seen, seen.find("slider", "Slider"));
  auto done = desk.helper.carryOut(
      HelperClient::acting(slider, SetValueRequest{kj::str("55")}, ValueProof{kj::str("55.0")}));
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_TRUE(
      equal(done.facts().getAfter().getValue().getNumber(), desk.helper.valueHash(Value(55.0))));
  EXPECT_EQ(desk.recorded("slider"), std::vector<std::string>{"slider 55"});
}

TEST(Proof, aWindowThatOpensIsCounted) {
  Desk desk("opens");
  auto seen = desk.observe();
  auto button = HelperClient::targetOf(seen, seen.find("push button", "Record"));
  auto done = desk.helper.carryOut(
      HelperClient::acting(button, InvokeRequest{kj::str("click")}, AppearsProof()));
  ASSERT_EQ(nameOf(done.refusal), "");
  auto before = done.facts().getBefore(), after = done.facts().getAfter();
  EXPECT_EQ(before.getWindowCount(), 1u);
  EXPECT_EQ(after.getWindowCount(), 2u);
  EXPECT_FALSE(before.getWindows() == after.getWindows());
  EXPECT_TRUE(after.getProcessRunning());
  EXPECT_EQ(desk.recorded("record").size(), 1u);
}

TEST(Proof, aWindowThatClosesIsSeenToBeGone) {
  Desk desk("modal");
  desk.change();
  kj::Maybe<WindowRef> dialog;
  ASSERT_TRUE(eventually([&]() {
    auto desktop = desk.helper.list();
    if (!desktop.ok() || desktop->windows.size() != 2) return false;
    for (auto& window : desktop->windows) {
      if (!(window.ref == desk.probe) && window.visible && window.accessible) dialog = window.ref;
    }
    return dialog != nullptr;
  }));
  auto seen = desk.helper.observe(KJ_ASSERT_NONNULL(dialog));
  ASSERT_TRUE(seen.ok());
  auto button = HelperClient::targetOf(*seen, seen->find("push button", "OK"));
  auto done = desk.helper.carryOut(
      HelperClient::acting(button, InvokeRequest{kj::str("click")}, DisappearsProof()));
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_TRUE(done.facts().getBefore().getWindowPresent());
  EXPECT_FALSE(done.facts().getAfter().getWindowPresent());
  EXPECT_TRUE(done.facts().getAfter().getProcessRunning());
}

// The box is checked at once, which is not what was asked for: the helper goes on looking until the
// time to settle is over, and says so.
TEST(Proof, isWaitedForAndNotJustAnyChange) {
  kj::Vector<Verification::Content> proofs;
  proofs.add(expecting({{State::ENABLED, false}}));
  proofs.add(ValueProof{kj::str("a value that no box has")});
  proofs.add(AppearsProof());
  proofs.add(DisappearsProof());
  // What held before is no sign of an effect.
  proofs.add(expecting({{State::ENABLED, true}}));
  for (auto& proof : proofs) {
    Desk desk;
    auto done = checkWith(desk, kj::mv(proof));
    ASSERT_EQ(nameOf(done.refusal), "");
    EXPECT_TRUE(has(done.facts().getAfter(), State::CHECKED));
    EXPECT_GE(done.facts().getSettledMs() * kj::MILLISECONDS, bounds::SETTLE);
  }
}

TEST(Perform, anApplicationThatStopsAfterTheCheckIsSentNothing) {
  Desk desk;
  auto seen = desk.observe();
  ASSERT_EQ(nameOf(desk.helper.prepareInvoke(seen, seen.find("push button", "Record"), "click")),
            "");
  desk.stop();
  auto done = desk.helper.perform();
  // The second check finds it silent: nothing was sent.
  EXPECT_EQ(nameOf(done.refusal), "not_answering");
  desk.resume();
  desk.observe();
  EXPECT_TRUE(desk.recorded("record").empty());
}

// The press is on its way when the application stops: no fact may claim that anybody saw its
// outcome.
TEST(Perform, anApplicationThatStopsInsideTheEffectIsSilent) {
  Desk desk("freeze");
  auto seen = desk.observe();
  auto done = desk.helper.invoke(seen, seen.find("push button", "Record"), "click");
  ASSERT_EQ(nameOf(done.refusal), "");
  EXPECT_EQ(done.facts().getAnswer(), wire::Answer::SILENT);
  EXPECT_FALSE(done.facts().getAfter().getPresent());
  EXPECT_TRUE(done.facts().getAfter().getWindowPresent());
  EXPECT_TRUE(desk.recorded("record").empty());
  desk.resume();
  EXPECT_TRUE(eventually([&]() { return desk.recorded("record").size() == 1; }));
}

TEST(Perform, worksOnce) {
  Desk desk;
  auto seen = desk.observe();
  ASSERT_EQ(nameOf(desk.helper.prepareInvoke(seen, seen.find("push button", "Record"), "click")),
            "");
  EXPECT_EQ(nameOf(desk.helper.perform().refusal), "");
  EXPECT_EQ(nameOf(desk.helper.perform().refusal), "duplicate_action");
  desk.observe();
  EXPECT_EQ(desk.recorded("record").size(), 1u);
}

}  // namespace
}  // namespace praefectus::tests
