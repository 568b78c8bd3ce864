// What a signed-action protocol has to keep, where only the whole supervisor can show it: any kind
// of action in either mode, signed by the right key, asked of helpers that offer much, little or
// nothing. The rest of that list is shown elsewhere; tests/behaviours.tsv says where.
#include "tests/support/workbench.h"

#include <gtest/gtest.h>

#include <csignal>

namespace praefectus::test {
namespace {

std::string repeated(char c, size_t times) { return std::string(times, c); }
kj::String text(const std::string& from) { return kj::heapString(from.data(), from.size()); }

bool sameBytes(const attest::Envelope& a, const attest::Envelope& b) {
  return a.body == b.body && a.signature == b.signature;
}

std::vector<Warning> warningsOf(const attest::Receipt& receipt) {
  return {receipt.warnings.begin(), receipt.warnings.end()};
}

Action aimed(Target target, Act act, Terms terms = {}) {
  Action action;
  action.blind = attest::random<32>();
  action.timeoutMs = terms.timeoutMs;
  action.mode = terms.mode;
  if (terms.proof == Proof::NONE) action.verification = Verification::none();
  action.target = kj::mv(target);
  action.act = kj::mv(act);
  return action;
}

ElementTarget elementOf(const Observation& seen) {
  return {seen.frame.window, seen.frame.id, seen.frame.epoch, 1, seen.elements[1].digest};
}

PointTarget pointOf(const Observation& seen) {
  return {seen.frame.window, seen.frame.id, seen.frame.epoch, 7, 8};
}

HotkeyRequest hotkey(size_t keys, const std::string& each = "Control") {
  HotkeyRequest request;
  for (size_t i = 0; i < keys; ++i) request.keys.add(text(each));
  return request;
}

Act typing(const std::string& what, uint32_t delayMs = 0) {
  return TypeTextRequest{text(what), false, false, delayMs};
}

Act pressing(const std::string& key, uint32_t count = 1, uint32_t delayMs = 0) {
  return PressRequest{text(key), count, delayMs};
}

// Every kind but invoke and set_value, which are all that the helper "good" offers.
kj::Vector<Action> furtherKinds(const Observation& seen, Terms terms = {}) {
  kj::Vector<Action> out;
  auto add = [&](Target target, Act act) { out.add(aimed(kj::mv(target), kj::mv(act), terms)); };
  auto element = elementOf(seen);
  auto point = pointOf(seen);
  auto application = wire::ControlApplication::Operation::LAUNCH;
  add(element, SelectTextRequest{0, 1});
  add(element, SecondaryRequest{kj::str("show_menu")});
  add(element, ClickRequest{Button::LEFT, 1});
  add(point, ClickRequest{Button::LEFT, 1});
  add(element, ScrollRequest{Direction::DOWN, 3});
  add(point, MoveRequest());
  add(point, DragRequest{Button::LEFT, 9, 9});
  add(element, typing("typed"));
  add(element, pressing("Return"));
  add(element, hotkey(2));
  add(element, PasteRequest{kj::str("pasted")});
  add(DesktopTarget(), ApplicationRequest{application, kj::str("editor")});
  add(seen.frame.window, WindowRequest{wire::ControlWindow::Operation::CLOSE});
  add(DesktopTarget(), OpenRequest{kj::str("/a/file"), nullptr, true});
  add(DesktopTarget(), ClipboardWriteRequest{kj::str("copied")});
  add(seen.frame.window, ScreenshotAct());
  return out;
}

bool isPrepared(const Workbench& on) { return on.count("prepare ") > 0; }

// ---- What was signed ---------------------------------------------------------------------------

TEST(Signed, theModeIsPartOfTheAction) {
  Ready on;
  auto action = press(on.seen);
  auto request = on.request(*on.session, action, "op-1");
  action.mode = Mode::BACKGROUND_ONLY;
  Request changed{kj::str("op-1"), request.grant.clone(), encode(action)};
  EXPECT_EQ(on.outcome(on.run(changed)), "refused: policy_denied");
  EXPECT_EQ(on.known("op-1"), "unknown");
  EXPECT_EQ(on.outcome(on.run(request)), "succeeded");
  auto signedAnew = on.request(*on.session, action, "op-1");
  EXPECT_EQ(on.outcome(on.run(signedAnew)), "refused: operation_conflict");
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Signed, whatIsOutOfBoundsReachesNeitherHelperNorLedger) {
  Ready on("versatile");
  auto element = elementOf(on.seen);
  kj::Vector<Act> acts;
  acts.add(ClickRequest{Button::LEFT, 0});
  acts.add(ClickRequest{Button::LEFT, 4});
  acts.add(typing(""));
  acts.add(typing(repeated('x', 16'385)));
  acts.add(typing("x", 1'001));
  acts.add(pressing(""));
  acts.add(pressing(repeated('x', 65)));
  acts.add(pressing("x", 0));
  acts.add(pressing("x", 101));
  acts.add(pressing("x", 1, 1'001));
  acts.add(PasteRequest{kj::str()});
  acts.add(PasteRequest{text(repeated('x', 16'385))});
  acts.add(hotkey(0));
  acts.add(hotkey(9));
  acts.add(hotkey(1, ""));
  acts.add(hotkey(1, repeated('x', 65)));
  acts.add(ScrollRequest{Direction::UP, 0});
  acts.add(ScrollRequest{Direction::UP, 101});
  acts.add(SetValueRequest{text(repeated('x', 16'385))});
  acts.add(SelectTextRequest{1'048'576, 1});
  acts.add(SelectTextRequest{UINT32_MAX, UINT32_MAX});
  acts.add(SecondaryRequest{kj::str("AXPress")});
  acts.add(SecondaryRequest{kj::str()});
  for (auto& act : acts) {
    auto action = aimed(element, kj::mv(act));
    auto kind = std::string(action.kind().cStr());
    EXPECT_EQ(on.outcome(on.run(on.request(*on.session, action, "op-1"))), "refused: malformed")
        << kind;
  }
  EXPECT_FALSE(isPrepared(on));
  EXPECT_EQ(on.known("op-1"), "unknown");
  auto good = aimed(element, SelectTextRequest{1'048'575, 1}, {.proof = Proof::NONE});
  EXPECT_EQ(on.outcome(on.run(on.request(*on.session, good, "op-1"))), "succeeded")
      << "the bound itself is inside";
}

TEST(Signed, aKindAimedAtWhatItCannotMeanReachesNeitherHelperNorLedger) {
  Ready on("versatile");
  auto element = elementOf(on.seen);
  auto point = pointOf(on.seen);
  kj::Vector<Action> actions;
  for (auto& target : {Target(point), Target(DesktopTarget())}) {
    actions.add(aimed(target, SelectTextRequest{0, 1}));
    actions.add(aimed(target, SecondaryRequest{kj::str("pick")}));
  }
  for (auto& target : {Target(element), Target(DesktopTarget())}) {
    actions.add(aimed(target, DragRequest{Button::LEFT, 9, 9}));
  }
  for (auto& action : furtherKinds(on.seen)) {
    if (action.target.is<DesktopTarget>()) actions.add(aimed(element, kj::mv(action.act)));
  }
  actions.add(aimed(element, WindowRequest{wire::ControlWindow::Operation::CLOSE}));
  for (auto& action : actions) {
    EXPECT_EQ(on.outcome(on.run(on.request(*on.session, action, "op-1"))), "refused: malformed")
        << action.kind().cStr();
  }
  EXPECT_EQ(actions.size(), 10u);
  EXPECT_FALSE(isPrepared(on));
  EXPECT_EQ(on.known("op-1"), "unknown");
}

TEST(Signed, anotherWindowThanTheFramesIsAMismatch) {
  Ready on;
  auto action = press(on.seen);
  action.target.get<ElementTarget>().window = OTHER_WINDOW;
  EXPECT_EQ(on.outcome(on.run(on.request(*on.session, action, "op-1"))),
            "refused: target_mismatch");
  EXPECT_FALSE(isPrepared(on));
  EXPECT_EQ(on.known("op-1"), "unknown");
}

TEST(Signed, theEndOfTheGrantAfterTheClaimIsAnEndingThatReplays) {
  Ready on;
  auto request = on.pressing("op-1", {.timeoutMs = 120'000, .validForMs = 3'000});
  auto answer = on.run(request, [&](wire::Stage stage) {
    if (stage != wire::Stage::CLAIMED) return;
    on.clock.wall += 3'000;
    on.clock.boot += 3'000;
  });
  EXPECT_EQ(on.outcome(answer), "expired_before_effect");
  EXPECT_EQ(on.known("op-1"), "expired_before_effect");
  auto again = on.run(request);
  EXPECT_TRUE(again->replayed);
  EXPECT_TRUE(sameBytes(again->receipt, answer->receipt));
  EXPECT_EQ(on.effects(), 0u);
}

// Where the claim has not been made, an end of the grant uses nothing up.
TEST(Signed, theEndOfTheGrantBeforeTheClaimLeavesTheIdUsable) {
  Ready on;
  auto request = on.pressing("op-1", {.timeoutMs = 120'000, .validForMs = 3'000});
  on.pass(3 * kj::SECONDS);
  EXPECT_EQ(on.outcome(on.run(request)), "refused: policy_denied");
  EXPECT_FALSE(isPrepared(on));
  EXPECT_EQ(on.known("op-1"), "unknown");
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "succeeded");
}

// ---- What the helper offers --------------------------------------------------------------------

TEST(Offered, aKindThatIsNotReachesNeitherHelperNorLedgerInEitherMode) {
  Ready on;
  for (auto mode : {Mode::INTERACTIVE, Mode::BACKGROUND_ONLY}) {
    for (auto& action : furtherKinds(on.seen, {.mode = mode})) {
      auto kind = std::string(action.kind().cStr());
      // A picture may be asked for as a read; as an action it is not offered either.
      auto said = on.outcome(on.run(on.request(*on.session, action, "op-1")));
      EXPECT_EQ(said, action.isMutation() ? "refused: unsupported_action" : "refused: malformed")
          << kind;
    }
  }
  EXPECT_FALSE(isPrepared(on));
  EXPECT_EQ(on.known("op-1"), "unknown");
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "succeeded") << "nothing was used up";
}

// No rule says what would prove them, so "sent" is all that anybody can know.
TEST(Offered, aKindWithoutAProofOfItsOwnIsASuccessOnlyForOneWhoAskedForNone) {
  Ready on("versatile");
  size_t number = 0;
  for (auto proof : {Proof::STRONGEST, Proof::NONE}) {
    for (auto& action : furtherKinds(on.seen, {.proof = proof})) {
      if (!action.isMutation()) continue;
      on.seen = on.observe(*on.session);
      if (action.target.is<ElementTarget>()) action.target = elementOf(on.seen);
      if (action.target.is<PointTarget>()) action.target = pointOf(on.seen);
      auto id = kj::str("op-", ++number);
      auto receipt = on.receiptOf(*on.run(on.request(*on.session, action, id)));
      bool asked = proof != Proof::NONE;
      EXPECT_EQ(receipt.terminal, asked ? Terminal::OUTCOME_UNKNOWN : Terminal::SUCCEEDED)
          << action.kind().cStr();
      EXPECT_EQ(receipt.effect, asked ? Effect::UNKNOWN : Effect::EXECUTED_UNVERIFIED);
      EXPECT_EQ(warningsOf(receipt),
                asked ? std::vector<Warning>{} : std::vector{Warning::UNVERIFIED});
      EXPECT_EQ(on.effects(), number);
    }
  }
  EXPECT_EQ(number, 30u);
}

// ---- The frame ---------------------------------------------------------------------------------

TEST(Frame, whatWaitedItsTurnDoesNotSlideOntoANewerOne) {
  Ready on;
  auto first = on.begin(*on.session, on.pressing("op-1"));
  auto second = on.begin(*on.session, on.pressing("op-2"));
  auto answer = on.wait(kj::mv(first));
  ASSERT_TRUE(answer->fresh.is<ObservationHeld>()) << "a newer frame of the same window is there";
  EXPECT_EQ(on.outcome(on.wait(kj::mv(second))), "refused: stale_frame");
  EXPECT_EQ(on.count("effect op-2"), 0u);
  EXPECT_EQ(on.known("op-2"), "unknown");
}

TEST(Frame, whereNoFreshOneCanBeHadTheReceiptStandsAndNothingElseIsActedOn) {
  Ready on("leaves-after-perform");
  auto begun = on.begin(*on.session, on.pressing("op-1"));
  on.await("effect ");
  on.helpers().mode = "exit-at-start";  // Of the one that would have to look.
  on.signal(on.pids()[0]);
  ASSERT_TRUE(on.ends(on.pids()[0]));
  auto answer = on.wait(kj::mv(begun));
  EXPECT_EQ(on.outcome(answer), "succeeded");
  ASSERT_TRUE(answer->fresh.is<Refusal>());
  EXPECT_EQ(answer->fresh.get<Refusal>().code, RefusalCode::SERVICE_UNAVAILABLE);
  EXPECT_EQ(on.next(), "refused: stale_frame");
  EXPECT_EQ(on.effects(), 1u);
}

// ---- In the background -------------------------------------------------------------------------

TEST(Background, aSuccessSaysThatTheDesktopWasLeftAsItWas) {
  Ready on;
  auto receipt = on.receiptOf(*on.run(on.pressing("op-1", {.mode = Mode::BACKGROUND_ONLY})));
  EXPECT_EQ(receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_EQ(receipt.effect, Effect::VERIFIED);
  EXPECT_EQ(receipt.mode, Mode::BACKGROUND_ONLY);
  EXPECT_EQ(receipt.context, ContextState::PRESERVED);
  EXPECT_EQ(receipt.route, Route::ACCESSIBILITY);
}

TEST(Background, noRightMakesADisturbanceASuccess) {
  constexpr Rights ALL = {
      .focus = true, .ownPointer = true, .userPointer = true, .irreversible = true};
  for (auto proof : {Proof::STRONGEST, Proof::NONE}) {
    for (auto mode : {Mode::BACKGROUND_ONLY, Mode::INTERACTIVE}) {
      Ready on("breach");
      auto receipt =
          on.receiptOf(*on.run(on.pressing("op-1", {.proof = proof, .mode = mode, .rights = ALL})));
      bool background = mode == Mode::BACKGROUND_ONLY;
      EXPECT_EQ(receipt.terminal, background ? Terminal::OUTCOME_UNKNOWN : Terminal::SUCCEEDED);
      EXPECT_EQ(receipt.context, background ? ContextState::BREACHED : ContextState::PERMITTED);
    }
  }
}

TEST(Background, whatNobodyWatchedIsNoSuccess) {
  for (auto proof : {Proof::STRONGEST, Proof::NONE}) {
    Ready on("unwatched");
    auto receipt =
        on.receiptOf(*on.run(on.pressing("op-1", {.proof = proof, .mode = Mode::BACKGROUND_ONLY})));
    EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
    EXPECT_EQ(receipt.context, ContextState::UNWATCHED);
  }
}

// ---- What was answered before ------------------------------------------------------------------

TEST(Replay, andConflictNeedNoHelper) {
  Ready on;
  auto request = on.pressing("op-1");
  auto first = on.run(request);
  auto other = on.request(*on.session, press(on.seen, "other"), "op-1");
  on.killNoticed(*on.session);
  on.helpers().mode = "exit-at-start";
  auto again = on.run(request);
  EXPECT_TRUE(again->replayed);
  EXPECT_TRUE(sameBytes(again->receipt, first->receipt));
  EXPECT_EQ(on.outcome(on.run(other)), "refused: operation_conflict");
  EXPECT_EQ(on.helpers().starts, 1u);

  // What does need one is refused without a trace, and can be asked for again.
  auto fresh = on.request(*on.session, launching("editor", {.proof = Proof::NONE}), "op-2");
  EXPECT_EQ(on.outcome(on.run(fresh)), "refused: service_unavailable");
  EXPECT_EQ(on.known("op-2"), "unknown");
  on.helpers().mode = "versatile";
  EXPECT_EQ(on.outcome(on.run(fresh)), "succeeded");
}

TEST(Replay, ofAnUnknownOutcomeIsTheSameUnknownOutcomeForGood) {
  Ready on("promises-nothing");
  auto request = on.pressing("op-1");
  auto first = on.run(request);
  EXPECT_EQ(on.outcome(first), "outcome_unknown");
  EXPECT_TRUE(sameBytes(on.run(request)->receipt, first->receipt));
  on.restart();
  auto later = on.open();
  auto again = on.execute(*later, request);
  EXPECT_TRUE(again->replayed);
  EXPECT_TRUE(sameBytes(again->receipt, first->receipt));
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Replay, ofAnInterruptedOperationKeepsWhatWasClaimed) {
  Ready on("waits-in-perform");
  auto request = on.pressing("op-1", {.mode = Mode::BACKGROUND_ONLY});
  auto answer = on.begin(*on.session, request);
  on.await("effect ");
  { auto dropped = kj::mv(answer); }
  on.restart();
  EXPECT_EQ(on.known("op-1"), "outcome_unknown") << "before anybody asks to execute it";
  auto later = on.open();
  for (int times = 0; times < 2; ++times) {
    auto again = on.execute(*later, request);
    EXPECT_TRUE(again->replayed);
    auto receipt = on.receiptOf(*again);
    EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
    EXPECT_EQ(receipt.mode, Mode::BACKGROUND_ONLY);
    EXPECT_EQ(receipt.kind, "invoke"_kj);
    EXPECT_EQ(warningsOf(receipt), std::vector{Warning::RECOVERED});
    EXPECT_FALSE(receipt.retrySafe);
  }
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Cancel, duringTheEffectIsNoSuccessForOneWhoAskedForNoProofEither) {
  Ready on("waits-in-perform");
  auto answer = on.begin(*on.session, on.pressing("op-1", {.proof = Proof::NONE}));
  on.await("effect ");
  EXPECT_TRUE(on.supervisor().cancel(*on.session, "op-1"));
  on.settle();
  on.signal(on.pids()[0]);
  auto receipt = on.receiptOf(*on.wait(kj::mv(answer)));
  EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_EQ(receipt.effect, Effect::UNKNOWN);
  EXPECT_EQ(on.effects(), 1u);
}

}  // namespace
}  // namespace praefectus::test
