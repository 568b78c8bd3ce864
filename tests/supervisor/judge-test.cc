#include "supervisor/judge.h"

#include "attest/digest.h"

#include <capnp/message.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace praefectus {
namespace {

constexpr int64_t NOW = 1'900'000'000'000;
const Hash NONCE = [] {
  Hash nonce;
  nonce.fill(9);
  return nonce;
}();

Hash hashOf(const Value& value) { return attest::keyedDigest(bytesOf(NONCE), valueBytes(value)); }
Hash textHash(kj::StringPtr text) { return hashOf(Value(kj::str(text))); }

// Facts in which nothing happened and nobody was disturbed; a test changes what it is about.
struct Seen {
  capnp::MallocMessageBuilder message;
  wire::Facts::Builder facts = message.initRoot<wire::Facts>();
  wire::Sight::Builder before = facts.initBefore();
  wire::Sight::Builder after = facts.initAfter();

  Seen() {
    attest::initialize();
    for (auto* sight : {&before, &after}) {
      sight->setPresent(true);
      sight->setWindowPresent(true);
      sight->setProcessRunning(true);
      sight->setWindows(bytesOf(textHash("the windows")));
      sight->setLabel(bytesOf(textHash("the label")));
    }
    facts.initWatch().setWatching(true);
  }

  void states(wire::Sight::Builder sight, std::initializer_list<wire::State> list) {
    auto out = sight.initStates(static_cast<capnp::uint>(list.size()));
    capnp::uint i = 0;
    for (auto state : list) out.set(i++, state);
  }
};

Action invoking() {
  Action action;
  action.act = InvokeRequest{kj::str("press")};
  return action;
}

Action setting(kj::StringPtr text) {
  Action action;
  action.act = SetValueRequest{kj::str(text)};
  return action;
}

std::string words(const attest::Evidence& evidence) {
  return kj::str(nameOf(evidence.verdict), " by ", nameOf(evidence.method)).cStr();
}

std::string judged(const Action& action, Seen& seen) {
  return words(judge(action, NONCE, seen.facts.asReader()).evidence);
}

// ---- From evidence to a terminal -------------------------------------------------------------

struct Row {
  Verification asked;
  Verdict verdict;
  Terminal terminal;
  Effect effect;
};

// The table of the design, written down a second time.
constexpr Row ROWS[] = {
    {Verification::STRONGEST, Verdict::CONFIRMED, Terminal::SUCCEEDED, Effect::VERIFIED},
    {Verification::STRONGEST, Verdict::PARTIAL, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::STRONGEST, Verdict::UNVERIFIABLE, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::STRONGEST, Verdict::SUSPECTED_NOOP, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::STRONGEST, Verdict::UNKNOWN, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::NONE, Verdict::CONFIRMED, Terminal::SUCCEEDED, Effect::VERIFIED},
    {Verification::NONE, Verdict::UNVERIFIABLE, Terminal::SUCCEEDED, Effect::EXECUTED_UNVERIFIED},
    {Verification::NONE, Verdict::PARTIAL, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::NONE, Verdict::SUSPECTED_NOOP, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::NONE, Verdict::UNKNOWN, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
};

Judgement judgementOf(Verdict verdict, ContextState context = ContextState::PRESERVED) {
  return {{verdict, Method::STATE_READBACK, Source::SAME_PROCESS, 0, 1}, context, false};
}

std::vector<Warning> warningsOf(const ledger::Ending& ending) {
  return {ending.warnings.begin(), ending.warnings.end()};
}

TEST(Judge, eachRowOfTheTableIsAsDesigned) {
  for (auto& row : ROWS) {
    auto ending = endingFor(row.asked, judgementOf(row.verdict), Interruption::NONE, NOW);
    EXPECT_EQ(ending.terminal, row.terminal) << nameOf(row.verdict).cStr();
    EXPECT_EQ(ending.effect, row.effect) << nameOf(row.verdict).cStr();
    EXPECT_EQ(ending.evidence.verdict, row.verdict);
    EXPECT_EQ(ending.route, Route::ACCESSIBILITY);
    EXPECT_EQ(ending.context, ContextState::PRESERVED);
    EXPECT_EQ(ending.at, NOW);
    EXPECT_FALSE(ending.retrySafe) << "something was sent";
    EXPECT_TRUE(ending.refusal == nullptr);
    bool unverified = row.effect == Effect::EXECUTED_UNVERIFIED;
    EXPECT_EQ(warningsOf(ending),
              unverified ? std::vector{Warning::UNVERIFIED} : std::vector<Warning>{});
  }
}

TEST(Judge, aBreachedContextNeverEndsAsSuccess) {
  for (auto& row : ROWS) {
    auto ending = endingFor(row.asked, judgementOf(row.verdict, ContextState::BREACHED),
                            Interruption::NONE, NOW);
    EXPECT_EQ(ending.terminal, Terminal::OUTCOME_UNKNOWN);
    EXPECT_EQ(ending.effect, Effect::UNKNOWN);
    EXPECT_EQ(ending.context, ContextState::BREACHED);
    EXPECT_EQ(warningsOf(ending), std::vector<Warning>{});
  }
}

TEST(Judge, anActionThatNobodyWatchedNeverEndsAsSuccess) {
  for (auto& row : ROWS) {
    auto ending = endingFor(row.asked, judgementOf(row.verdict, ContextState::UNWATCHED),
                            Interruption::NONE, NOW);
    EXPECT_EQ(ending.terminal, Terminal::OUTCOME_UNKNOWN);
    EXPECT_EQ(ending.effect, Effect::UNKNOWN);
    EXPECT_EQ(warningsOf(ending), std::vector{Warning::CONTEXT_UNWATCHED});
  }
}

TEST(Judge, whatWasCancelledOrLateAfterDispatchNeverEndsAsSuccess) {
  for (auto& row : ROWS) {
    auto ending =
        endingFor(row.asked, judgementOf(row.verdict), Interruption::CANCELLED_OR_LATE, NOW);
    EXPECT_EQ(ending.terminal, Terminal::OUTCOME_UNKNOWN);
    EXPECT_EQ(ending.effect, Effect::UNKNOWN);
    EXPECT_EQ(ending.evidence.verdict, row.verdict) << "the evidence is kept";
    EXPECT_EQ(warningsOf(ending), std::vector{Warning::LATE_AFTER_DISPATCH});
  }
}

TEST(Judge, whatWasNotSentSaysSoAndMayBeAskedForAgain) {
  ledger::Ending endings[] = {rejected(RefusalCode::TARGET_CHANGED, NOW),
                              notSent(RefusalCode::SERVICE_UNAVAILABLE, NOW),
                              cancelledBeforeEffect(NOW), expiredBeforeEffect(NOW)};
  Terminal terminals[] = {Terminal::REJECTED, Terminal::FAILED, Terminal::CANCELLED_BEFORE_EFFECT,
                          Terminal::EXPIRED_BEFORE_EFFECT};
  for (size_t i = 0; i < std::size(endings); ++i) {
    EXPECT_EQ(endings[i].terminal, terminals[i]);
    EXPECT_EQ(endings[i].effect, Effect::NONE);
    EXPECT_EQ(endings[i].route, Route::NONE);
    EXPECT_TRUE(endings[i].retrySafe);
    EXPECT_EQ(endings[i].refusal != nullptr, i < 2);
  }
}

TEST(Judge, whatWasLostIsUnknownAndNotToBeAskedForAgain) {
  for (auto why : {Warning::HELPER_LOST, Warning::LATE_AFTER_DISPATCH}) {
    auto ending = lost(why, NOW);
    EXPECT_EQ(ending.terminal, Terminal::OUTCOME_UNKNOWN);
    EXPECT_EQ(ending.effect, Effect::UNKNOWN);
    EXPECT_FALSE(ending.retrySafe);
    EXPECT_EQ(warningsOf(ending), std::vector{why});
  }
}

// ---- The watch -------------------------------------------------------------------------------

TEST(Judge, eachThingThatTheWatchSawIsABreach) {
  for (int what = 0; what < 3; ++what) {
    Seen seen;
    auto watch = seen.facts.getWatch();
    if (what == 0) watch.setPointerMoved(true);
    if (what == 1) watch.setFocusChanged(true);
    if (what == 2) watch.setStackingChanged(true);
    EXPECT_EQ(judge(invoking(), NONCE, seen.facts.asReader()).context, ContextState::BREACHED);
    // What was seen counts also when the watch did not last.
    watch.setWatching(false);
    EXPECT_EQ(judge(invoking(), NONCE, seen.facts.asReader()).context, ContextState::BREACHED);
  }
}

TEST(Judge, theContextIsPreservedOnlyUnderAWatch) {
  Seen seen;
  EXPECT_EQ(judge(invoking(), NONCE, seen.facts.asReader()).context, ContextState::PRESERVED);
  seen.facts.getWatch().setWatching(false);
  EXPECT_EQ(judge(invoking(), NONCE, seen.facts.asReader()).context, ContextState::UNWATCHED);
}

// ---- What a control replies ------------------------------------------------------------------

TEST(Judge, whatTheControlRepliedIsNoEvidence) {
  for (auto answer : {wire::Answer::ACCEPTED, wire::Answer::DECLINED, wire::Answer::ERROR,
                      wire::Answer::SILENT}) {
    Seen seen;
    seen.facts.setAnswer(answer);
    bool declined = answer == wire::Answer::DECLINED || answer == wire::Answer::ERROR;
    EXPECT_EQ(judged(invoking(), seen), declined ? "suspected_noop by none" : "unverifiable by none");
    seen.after.getValue().setText(bytesOf(textHash("new")));
    EXPECT_EQ(judged(setting("new"), seen), "confirmed by value_readback");

    auto judgement = judge(setting("new"), NONCE, seen.facts.asReader());
    EXPECT_EQ(judgement.declined, declined);
    auto ending = endingFor(Verification::STRONGEST, judgement, Interruption::NONE, NOW);
    EXPECT_EQ(warningsOf(ending),
              declined ? std::vector{Warning::CONTROL_DECLINED} : std::vector<Warning>{});
  }
}

// ---- set_value -------------------------------------------------------------------------------

TEST(Judge, aTextThatReadsBackAsAskedIsConfirmed) {
  Seen seen;
  seen.before.getValue().setText(bytesOf(textHash("old")));
  seen.after.getValue().setText(bytesOf(textHash("new")));
  auto evidence = judge(setting("new"), NONCE, seen.facts.asReader()).evidence;
  EXPECT_EQ(words(evidence), "confirmed by value_readback");
  EXPECT_EQ(evidence.unitsDone, 1u);
  EXPECT_EQ(evidence.unitsAsked, 1u);
  EXPECT_EQ(evidence.source, Source::SAME_PROCESS);
}

TEST(Judge, aTextThatStayedAsItWasIsASuspectedNoop) {
  Seen seen;
  seen.before.getValue().setText(bytesOf(textHash("old")));
  seen.after.getValue().setText(bytesOf(textHash("old")));
  EXPECT_EQ(judged(setting("new"), seen), "suspected_noop by value_readback");
  EXPECT_EQ(judge(setting("new"), NONCE, seen.facts.asReader()).evidence.unitsDone, 0u);
}

TEST(Judge, aTextThatWasThereAlreadyIsConfirmed) {
  Seen seen;
  seen.before.getValue().setText(bytesOf(textHash("new")));
  seen.after.getValue().setText(bytesOf(textHash("new")));
  EXPECT_EQ(judged(setting("new"), seen), "confirmed by value_readback");
}

TEST(Judge, aTextThatBecameSomethingElseProvesNothing) {
  Seen seen;
  seen.before.getValue().setText(bytesOf(textHash("old")));
  seen.after.getValue().setText(bytesOf(textHash("NEW")));
  EXPECT_EQ(judged(setting("new"), seen), "unverifiable by value_readback");
}

TEST(Judge, aValueHashedWithAnotherOperationsNonceProvesNothing) {
  Seen seen;
  Hash other = NONCE;
  other[0] ^= 1;
  auto stale = attest::keyedDigest(bytesOf(other), valueBytes(Value(kj::str("new"))));
  seen.after.getValue().setText(bytesOf(stale));
  EXPECT_NE(judged(setting("new"), seen), "confirmed by value_readback");
}

TEST(Judge, aValueThatCannotBeReadIsUnverifiable) {
  Seen seen;
  seen.before.getValue().setText(bytesOf(textHash("old")));
  EXPECT_EQ(judged(setting("new"), seen), "unverifiable by none");
}

TEST(Judge, anElementThatIsGoneOrSilentLeavesNothingToReadBack) {
  Seen seen;
  seen.after.setPresent(false);
  EXPECT_EQ(judged(setting("new"), seen).substr(0, 7), "unknown");
  // Nor does a value in facts that say there is none to read.
  seen.after.getValue().setText(bytesOf(textHash("new")));
  EXPECT_EQ(judged(setting("new"), seen).substr(0, 7), "unknown");
}

TEST(Judge, aHashOfTheWrongLengthIsUnknown) {
  Seen seen;
  seen.after.getValue().setText(bytesOf(textHash("new")).slice(0, 31));
  EXPECT_EQ(judged(setting("new"), seen), "unknown by value_readback");
  seen.after.getValue().setText(nullptr);
  seen.before.getValue().setText(nullptr);
  EXPECT_EQ(judged(setting("new"), seen), "unknown by value_readback");
}

TEST(Judge, aNumberIsComparedAsANumber) {
  for (auto asked : {"2.5"_kj, "2.50"_kj, "25e-1"_kj}) {
    Seen seen;
    seen.before.getValue().setNumber(bytesOf(hashOf(1.0)));
    seen.after.getValue().setNumber(bytesOf(hashOf(2.5)));
    EXPECT_EQ(judged(setting(asked), seen), "confirmed by value_readback") << asked.cStr();
  }
  Seen zero;
  zero.before.getValue().setNumber(bytesOf(hashOf(1.0)));
  zero.after.getValue().setNumber(bytesOf(hashOf(-0.0)));
  EXPECT_EQ(judged(setting("0"), zero), "confirmed by value_readback");
  EXPECT_EQ(judged(setting("3"), zero), "unverifiable by value_readback");
  zero.before.getValue().setNumber(bytesOf(hashOf(0.0)));
  EXPECT_EQ(judged(setting("3"), zero), "suspected_noop by value_readback");
}

TEST(Judge, aTextThatIsNoNumberIsNeverANumbersValue) {
  Seen seen;
  seen.before.getValue().setNumber(bytesOf(hashOf(1.0)));
  seen.after.getValue().setNumber(bytesOf(hashOf(2.0)));
  for (auto asked : {"two"_kj, "2 "_kj, ""_kj, "nan"_kj, "inf"_kj, "0x2"_kj}) {
    EXPECT_EQ(judged(setting(asked), seen), "unknown by value_readback") << asked.cStr();
  }
}

TEST(Judge, aTextAndANumberAreDifferentValues) {
  Seen seen;
  // The digits as a text, in the place of a number.
  seen.after.getValue().setNumber(bytesOf(textHash("2")));
  EXPECT_NE(judged(setting("2"), seen), "confirmed by value_readback");
  // A value that was of another kind before is not the same value.
  seen.before.getValue().setText(bytesOf(textHash("2")));
  EXPECT_EQ(judged(setting("2"), seen), "unverifiable by value_readback");
}

// ---- invoke ----------------------------------------------------------------------------------

TEST(Judge, anActWithoutAnyChangeIsUnverifiable) {
  Seen seen;
  EXPECT_EQ(judged(invoking(), seen), "unverifiable by none");
}

TEST(Judge, aChangeOfWhatTheControlMeansIsConfirmed) {
  using wire::State;
  for (auto state :
       {State::CHECKED, State::EXPANDED, State::COLLAPSED, State::SELECTED, State::ENABLED,
        State::SENSITIVE, State::SHOWING, State::VISIBLE, State::INDETERMINATE}) {
    Seen appeared, vanished;
    appeared.states(appeared.after, {state});
    vanished.states(vanished.before, {state});
    EXPECT_EQ(judged(invoking(), appeared), "confirmed by state_readback");
    EXPECT_EQ(judged(invoking(), vanished), "confirmed by state_readback");
  }
}

TEST(Judge, statesThatComeWithTheTouchProveNothing) {
  using wire::State;
  for (auto state : {State::ACTIVE, State::ARMED, State::BUSY, State::FOCUSED, State::PRESSED}) {
    Seen seen;
    seen.states(seen.after, {state});
    EXPECT_EQ(judged(invoking(), seen), "unverifiable by none");
  }
}

TEST(Judge, aCheckBoxThatStaysUncheckedIsASuspectedNoop) {
  using wire::State;
  Seen seen;
  seen.states(seen.before, {State::CHECKABLE});
  seen.states(seen.after, {State::CHECKABLE});
  EXPECT_EQ(judged(invoking(), seen), "suspected_noop by state_readback");
}

TEST(Judge, aRadioButtonThatStaysCheckedIsUnverifiable) {
  using wire::State;
  Seen seen;
  seen.states(seen.before, {State::CHECKABLE, State::CHECKED});
  seen.states(seen.after, {State::CHECKABLE, State::CHECKED});
  EXPECT_EQ(judged(invoking(), seen), "unverifiable by none");
}

TEST(Judge, aNewLabelOfTheControlIsConfirmedAndAMissingOneProvesNothing) {
  Seen seen;
  seen.after.setLabel(bytesOf(textHash("another label")));
  EXPECT_EQ(judged(invoking(), seen), "confirmed by state_readback");
  seen.after.setLabel(nullptr);
  EXPECT_EQ(judged(invoking(), seen), "unverifiable by none");
}

TEST(Judge, aWindowThatCloseOrOpenedIsConfirmed) {
  Seen closed;
  closed.after.setPresent(false);
  closed.after.setWindowPresent(false);
  closed.after.setWindows(bytesOf(textHash("fewer windows")));
  EXPECT_EQ(judged(invoking(), closed), "confirmed by tree_delta");
  Seen opened;
  opened.after.setWindows(bytesOf(textHash("more windows")));
  EXPECT_EQ(judged(invoking(), opened), "confirmed by tree_delta");
}

TEST(Judge, aWindowThatWentWithItsProcessProvesNothing) {
  Seen crashed;
  crashed.after.setPresent(false);
  crashed.after.setWindowPresent(false);
  crashed.after.setWindows(bytesOf(textHash("fewer windows")));
  crashed.after.setProcessRunning(false);
  EXPECT_EQ(judged(invoking(), crashed).substr(0, 7), "unknown");
}

TEST(Judge, aControlThatSaysNoWithNothingToShowIsSuspectedOfDoingNothing) {
  for (auto answer : {wire::Answer::DECLINED, wire::Answer::ERROR}) {
    Seen seen;
    seen.facts.setAnswer(answer);
    EXPECT_EQ(judged(invoking(), seen).substr(0, 14), "suspected_noop");
  }
}

TEST(Judge, anElementThatWentAwayIsConfirmed) {
  Seen seen;
  seen.facts.setAnswer(wire::Answer::ACCEPTED);
  seen.after.setPresent(false);
  EXPECT_EQ(judged(invoking(), seen), "confirmed by tree_delta");
}

// `present` is false for an element that does not answer, too. A helper that got no reply says
// SILENT, and then nobody knows whether the element is gone.
TEST(Judge, anApplicationThatFellSilentIsNotAnElementThatWentAway) {
  Seen seen;
  seen.facts.setAnswer(wire::Answer::SILENT);
  seen.after.setPresent(false);
  seen.after.setLabel(nullptr);
  EXPECT_EQ(judged(invoking(), seen).substr(0, 7), "unknown");
}

TEST(Judge, factsWithoutATargetBeforeAreUnknown) {
  Seen seen;
  seen.before.setPresent(false);
  seen.after.setWindows(bytesOf(textHash("more windows")));
  EXPECT_EQ(judged(invoking(), seen), "unknown by none");
}

TEST(Judge, aSetOfWindowsThatWasNotReadProvesNothing) {
  for (auto bytes : {Bytes(), bytesOf(NONCE).slice(0, 31)}) {
    Seen missing;
    missing.after.setWindows(bytes);
    EXPECT_EQ(judged(invoking(), missing).substr(0, 7), "unknown");
    Seen earlier;
    earlier.before.setWindows(bytes);
    EXPECT_EQ(judged(invoking(), earlier).substr(0, 7), "unknown");
  }
}

TEST(Judge, emptyFactsNeverEndAsSuccess) {
  attest::initialize();
  capnp::MallocMessageBuilder message;
  auto facts = message.initRoot<wire::Facts>();
  facts.initWatch().setWatching(true);
  for (auto asked : {Verification::STRONGEST, Verification::NONE}) {
    for (auto& action : {setting("new"), setting("")}) {
      auto ending =
          endingFor(asked, judge(action, NONCE, facts.asReader()), Interruption::NONE, NOW);
      EXPECT_EQ(ending.terminal, Terminal::OUTCOME_UNKNOWN);
    }
    auto ending =
        endingFor(asked, judge(invoking(), NONCE, facts.asReader()), Interruption::NONE, NOW);
    EXPECT_EQ(ending.terminal, Terminal::OUTCOME_UNKNOWN);
  }
}

}  // namespace
}  // namespace praefectus
