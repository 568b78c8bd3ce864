// What the shipped helper refuses. After each refusal the application's own record shows that
// nothing reached it.
#include "tests/helper-linux/desk.h"
#include "tests/helper-linux/screen.h"

#include <gtest/gtest.h>

namespace praefectus::tests {
namespace {

std::string refusedPress(Desk& desk, const Observed& seen, kj::StringPtr name = "Record") {
  auto refused = nameOf(desk.helper.prepareInvoke(seen, seen.find("push button", name), "click"));
  EXPECT_TRUE(desk.recorded("record").empty());
  return refused;
}

TEST(Prepare, refusesADisabledControl) {
  Desk desk;
  auto seen = desk.observe();
  EXPECT_EQ(refusedPress(desk, seen, "Disabled"), "target_disabled");
}

TEST(Prepare, refusesAHiddenControl) {
  Desk desk;
  auto seen = desk.observe();
  EXPECT_EQ(refusedPress(desk, seen, "Hidden"), "target_hidden");
}

TEST(Prepare, refusesAPasswordField) {
  Desk desk;
  auto seen = desk.observe();
  auto password = seen.find("password text", "Password");
  EXPECT_EQ(nameOf(desk.helper.prepareSet(seen, password, "secret")), "sensitivity_blocked");
  EXPECT_EQ(nameOf(desk.helper.prepareInvoke(seen, password, "activate")), "sensitivity_blocked");
}

TEST(Prepare, refusesAnActionThatIsNotOffered) {
  Desk desk;
  auto seen = desk.observe();
  auto button = seen.find("push button", "Record");
  EXPECT_EQ(nameOf(desk.helper.prepareInvoke(seen, button, "expand")), "unsupported_action");
  EXPECT_EQ(nameOf(desk.helper.prepareSet(seen, button, "text")), "unsupported_action");
  EXPECT_EQ(nameOf(desk.helper.prepareSet(seen, seen.find("slider", "Slider"), "much")),
            "malformed");
}

// Before any look at the target: each is aimed at an earlier frame, and nobody speaks of that.
TEST(Prepare, refusesAKindOrAProofThatItDoesNotOffer) {
  Desk desk;
  auto old = desk.observe();
  auto target = HelperClient::targetOf(old, old.find("push button", "Record"));
  desk.observe();
  auto refused = [&](Act act, Verification::Content proof) {
    return nameOf(desk.helper.prepare(HelperClient::acting(target, kj::mv(act), kj::mv(proof))));
  };
  HotkeyRequest hotkey;
  hotkey.keys.add(kj::str("a"));
  kj::Vector<Act> others;
  others.add(SelectTextRequest{0, 1});
  others.add(SecondaryRequest{kj::str("show_menu")});
  others.add(ClickRequest());
  others.add(ScrollRequest());
  others.add(TypeTextRequest{kj::str("a"), false, false, 0});
  others.add(PressRequest{kj::str("a"), 1, 0});
  others.add(kj::mv(hotkey));
  others.add(PasteRequest{kj::str("a")});
  for (auto& act : others) {
    EXPECT_EQ(refused(kj::mv(act), StrongestProof()), "unsupported_action");
  }
  EXPECT_EQ(refused(InvokeRequest{kj::str("click")}, RegionProof{{0, 0, 9, 9}}),
            "unsupported_action");
  EXPECT_EQ(refused(InvokeRequest{kj::str("click")}, AppearsProof()), "stale_frame");

  Action elsewhere;
  elsewhere.act = ClipboardWriteRequest{kj::str("a")};
  EXPECT_EQ(nameOf(desk.helper.prepare(kj::mv(elsewhere))), "unsupported_action");
  Action close;
  close.target = desk.probe;
  close.act = WindowRequest{wire::ControlWindow::Operation::CLOSE};
  EXPECT_EQ(nameOf(desk.helper.prepare(kj::mv(close))), "unsupported_action");
  desk.observe();
  EXPECT_TRUE(desk.recorded("record").empty());
}

TEST(Prepare, refusesToReadAPasswordBackAsAProof) {
  Desk desk("secret");
  auto seen = desk.observe();
  auto password = HelperClient::targetOf(seen, seen.find("password text", "Password"));
  auto refused = [&](Act act) {
    return nameOf(desk.helper.prepare(
        HelperClient::acting(password, kj::mv(act), ValueProof{kj::str("guess")})));
  };
  EXPECT_EQ(refused(InvokeRequest{kj::str("activate")}), "sensitivity_blocked");
  EXPECT_EQ(refused(SetValueRequest{kj::str("guess")}), "sensitivity_blocked");
}

TEST(Prepare, refusesAValueThatTheElementCanNeverShow) {
  Desk desk;
  auto seen = desk.observe();
  auto slider = HelperClient::targetOf(seen, seen.find("slider", "Slider"));
  auto refused = [&](kj::StringPtr shown) {
    return nameOf(desk.helper.prepare(
        HelperClient::acting(slider, SetValueRequest{kj::str("5")}, ValueProof{kj::str(shown)})));
  };
  EXPECT_EQ(refused("five"), "malformed");
  EXPECT_EQ(refused("5.0"), "");
}

TEST(Prepare, refusesWhatBecameDisabled) {
  Desk desk("disable");
  auto seen = desk.observe();
  desk.change();
  EXPECT_EQ(refusedPress(desk, seen), "target_disabled");
}

TEST(Prepare, refusesWhatBecameHidden) {
  Desk desk("hide");
  auto seen = desk.observe();
  desk.change();
  EXPECT_EQ(refusedPress(desk, seen), "target_hidden");
}

TEST(Prepare, refusesARenamedControl) {
  Desk desk("rename");
  auto seen = desk.observe();
  desk.change();
  EXPECT_EQ(refusedPress(desk, seen), "target_changed");
}

TEST(Prepare, refusesARemovedControl) {
  Desk desk("remove");
  auto seen = desk.observe();
  desk.change();
  EXPECT_EQ(refusedPress(desk, seen), "target_missing");
}

TEST(Prepare, refusesALookAlikeInTheControlsPlace) {
  Desk desk("replace");
  auto seen = desk.observe();
  desk.change();
  EXPECT_EQ(refusedPress(desk, seen), "target_missing");
  auto fresh = desk.observe();
  EXPECT_EQ(nameOf(desk.helper.invoke(fresh, fresh.find("push button", "Record"), "click").refusal),
            "");
  EXPECT_TRUE(eventually([&]() { return desk.recorded("record").size() == 1; }));
}

TEST(Prepare, refusesAnEditedText) {
  Desk desk;
  auto first = desk.observe();
  ASSERT_EQ(nameOf(desk.helper.set(first, first.find("text", "Text"), "mine").refusal), "");
  auto seen = desk.observe();
  auto entry = seen.find("text", "Text");
  ASSERT_EQ(nameOf(desk.helper.set(seen, entry, "yours").refusal), "");
  EXPECT_EQ(nameOf(desk.helper.prepareSet(seen, entry, "again")), "target_changed");
  EXPECT_EQ(desk.recorded("text").back(),
            "text 5 " + std::string(hex("yours"_kj.asBytes()).cStr()));
}

TEST(Prepare, refusesAnotherDigest) {
  Desk desk;
  auto seen = desk.observe();
  auto target = HelperClient::targetOf(seen, seen.find("push button", "Record"));
  target.digest[0] ^= 1;
  EXPECT_EQ(nameOf(desk.helper.prepare(target, "click")), "stale_frame");
  target.digest = seen.at(seen.find("check box", "Check")).digest;
  EXPECT_EQ(nameOf(desk.helper.prepare(target, "click")), "stale_frame");
  target.element = 1400;
  EXPECT_EQ(nameOf(desk.helper.prepare(target, "click")), "stale_frame");
}

TEST(Prepare, refusesAnEarlierFrame) {
  Desk desk;
  auto old = desk.observe();
  auto fresh = desk.observe();
  EXPECT_EQ(refusedPress(desk, old), "stale_frame");
  auto target = HelperClient::targetOf(fresh, fresh.find("push button", "Record"));
  ++target.epoch;
  EXPECT_EQ(nameOf(desk.helper.prepare(target, "click")), "stale_epoch");
  target = HelperClient::targetOf(fresh, fresh.find("push button", "Record"));
  ++target.window.window;
  EXPECT_EQ(nameOf(desk.helper.prepare(target, "click")), "target_mismatch");
}

TEST(Prepare, aRefusedObservationSpendsTheFrameToo) {
  Desk desk;
  auto seen = desk.observe();
  auto nowhere = desk.probe;
  nowhere.window += 1000;
  EXPECT_FALSE(desk.helper.observe(nowhere).ok());
  EXPECT_EQ(refusedPress(desk, seen), "stale_frame");
}

TEST(Prepare, refusesAMinimizedWindow) {
  Desk desk("minimize");
  auto seen = desk.observe();
  desk.change();
  ASSERT_TRUE(eventually([&]() {
    auto desktop = desk.helper.list();
    return desktop.ok() && !desktop->windows[0].visible;
  }));
  EXPECT_EQ(refusedPress(desk, seen), "target_hidden");
}

TEST(Prepare, refusesAMovedWindow) {
  Desk desk("move");
  auto seen = desk.observe();
  desk.change();
  ASSERT_TRUE(eventually([&]() {
    auto desktop = desk.helper.list();
    return desktop.ok() && !(desktop->windows[0].bounds == seen.seen.frame.bounds);
  }));
  EXPECT_EQ(refusedPress(desk, seen), "target_changed");
}

TEST(Prepare, refusesAWindowThatAModalDialogBlocks) {
  Desk desk("modal");
  auto seen = desk.observe();
  desk.change();
  ASSERT_TRUE(eventually([&]() {
    auto desktop = desk.helper.list();
    if (!desktop.ok() || desktop->windows.size() != 2) return false;
    // A dialog that is listed and not yet mapped blocks nobody.
    return desktop->windows[0].visible && desktop->windows[1].visible &&
           desktop->windows[0].accessible && desktop->windows[1].accessible;
  }));
  EXPECT_EQ(refusedPress(desk, seen), "target_occluded");
  // The dialog itself can be read and acted on.
  auto desktop = desk.helper.list();
  for (auto& window : desktop->windows) {
    if (window.ref == desk.probe) continue;
    auto dialog = desk.helper.observe(window.ref);
    ASSERT_TRUE(dialog.ok());
    auto done = desk.helper.invoke(*dialog, dialog->find("push button", "OK"), "click");
    EXPECT_EQ(nameOf(done.refusal), "");
    EXPECT_FALSE(done.facts().getAfter().getWindowPresent());
  }
}

// Nothing tells the two apart that the accessibility bus and the display both know, so neither is
// chosen for the other.
TEST(Prepare, refusesOfTwoWindowsThatLookAlikeToChooseOne) {
  Desk desk("double");
  desk.observe();
  desk.change();
  EXPECT_TRUE(eventually([&]() {
    auto again = desk.helper.observe(desk.probe);
    return !again.ok() && again.refusal().code == RefusalCode::AMBIGUOUS_TARGET;
  }));
}

TEST(Prepare, anEndedProcessIsMissing) {
  Desk desk;
  auto seen = desk.observe();
  desk.desktop.end(static_cast<pid_t>(desk.probe.process.pid));
  EXPECT_EQ(refusedPress(desk, seen), "target_missing");
}

TEST(Prepare, aStoppedApplicationIsNotActedOnLater) {
  Desk desk;
  auto seen = desk.observe();
  desk.stop();
  EXPECT_EQ(refusedPress(desk, seen), "not_answering");
  EXPECT_EQ(nameOf(desk.helper.prepareSet(seen, seen.find("text", "Text"), "late")),
            "not_answering");
  desk.resume();
  auto fresh = desk.observe();
  EXPECT_TRUE(desk.recorded("record").empty());
  EXPECT_TRUE(desk.recorded("text").empty());
  EXPECT_EQ(nameOf(desk.helper.invoke(fresh, fresh.find("push button", "Record"), "click").refusal),
            "");
}

TEST(Perform, checksOnceMoreAndSendsNothingToWhatChanged) {
  Desk desk("rename");
  auto seen = desk.observe();
  ASSERT_EQ(nameOf(desk.helper.prepareInvoke(seen, seen.find("push button", "Record"), "click")),
            "");
  desk.change();
  EXPECT_EQ(nameOf(desk.helper.perform().refusal), "target_changed");
  EXPECT_TRUE(desk.recorded("record").empty());
}

TEST(Perform, aLaterObservationVoidsWhatWasPrepared) {
  Desk desk;
  auto seen = desk.observe();
  ASSERT_EQ(nameOf(desk.helper.prepareInvoke(seen, seen.find("push button", "Record"), "click")),
            "");
  desk.observe();
  EXPECT_EQ(nameOf(desk.helper.perform().refusal), "stale_frame");
  EXPECT_TRUE(desk.recorded("record").empty());
}

}  // namespace
}  // namespace praefectus::tests
