#include "supervisor/judge.h"

#include "attest/digest.h"

#include <capnp/message.h>

#include <gtest/gtest.h>

#include <array>
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

  void states(wire::Sight::Builder sight, std::initializer_list<State> list) {
    auto out = sight.initStates(static_cast<capnp::uint>(list.size()));
    capnp::uint i = 0;
    for (auto state : list) out.set(i++, state);
  }
};

Action acting(Act act, Verification::Content proof = StrongestProof()) {
  Action action;
  action.target = ElementTarget();
  action.act = kj::mv(act);
  action.verification.content = kj::mv(proof);
  return action;
}

Action invoking() { return acting(InvokeRequest{kj::str("press")}); }
Action setting(kj::StringPtr text) { return acting(SetValueRequest{kj::str(text)}); }

Action proving(Verification::Content proof) {
  return acting(InvokeRequest{kj::str("press")}, kj::mv(proof));
}

std::string words(const attest::Evidence& evidence) {
  return kj::str(nameOf(evidence.verdict), " by ", nameOf(evidence.method)).cStr();
}

std::string judged(const Action& action, Seen& seen) {
  return words(judge(action, NONCE, seen.facts.asReader()).evidence);
}

// ---- From evidence to a terminal -------------------------------------------------------------

constexpr Verdict VERDICTS[] = {Verdict::CONFIRMED, Verdict::PARTIAL, Verdict::UNVERIFIABLE,
                                Verdict::SUSPECTED_NOOP, Verdict::UNKNOWN};
constexpr Proof PROOFS[] = {Proof::STRONGEST, Proof::NONE,       Proof::VALUE,         Proof::STATE,
                            Proof::APPEARS,   Proof::DISAPPEARS, Proof::REGION_CHANGED};

Judgement judgementOf(Verdict verdict, Watch watch = {true, false, false, false}) {
  return {{verdict, Method::STATE_READBACK, Source::SAME_PROCESS, 0, 1}, watch, false};
}

std::vector<Warning> warningsOf(const ledger::Ending& ending) {
  return {ending.warnings.begin(), ending.warnings.end()};
}

// The 16 values of four yes-or-no questions.
std::array<bool, 4> bitsOf(unsigned number) {
  return {(number & 1) != 0, (number & 2) != 0, (number & 4) != 0, (number & 8) != 0};
}

// The context in our own words, a second time.
std::string contextFor(const Watch& watch, const Rights& rights, Mode mode) {
  bool strict = mode == Mode::BACKGROUND_ONLY;
  if (watch.pointerMoved && (strict || !rights.userPointer)) return "breached";
  if (watch.focusChanged && (strict || !rights.focus)) return "breached";
  if (watch.stackingChanged && (strict || !rights.focus)) return "breached";
  if (!watch.watching) return "unwatched";
  bool quiet = !watch.pointerMoved && !watch.focusChanged && !watch.stackingChanged;
  return quiet ? "preserved" : "permitted";
}

// And the table of the design, for a context that kept to the terms.
std::string endFor(Proof proof, Verdict verdict) {
  if (verdict == Verdict::CONFIRMED) return "succeeded, verified";
  bool enough = proof == Proof::NONE && verdict == Verdict::UNVERIFIABLE;
  return enough ? "succeeded, executed_unverified" : "outcome_unknown, unknown";
}

void expectEnding(const Terms& asked, Verdict verdict, const Watch& watch,
                  Interruption interruption) {
  auto ending = endingFor(asked, judgementOf(verdict, watch), interruption, NOW);
  auto context = contextFor(watch, asked.rights, asked.mode);
  bool undisturbed = interruption == Interruption::NONE;
  bool kept = context == "preserved" || context == "permitted";
  auto end = kept && undisturbed ? endFor(asked.proof, verdict) : "outcome_unknown, unknown";

  EXPECT_EQ(nameOf(ending.context), context.c_str());
  EXPECT_EQ(kj::str(nameOf(ending.terminal), ", ", nameOf(ending.effect)), end.c_str());
  EXPECT_EQ(ending.evidence.verdict, verdict) << "the evidence is kept";
  EXPECT_EQ(ending.route, Route::ACCESSIBILITY);
  EXPECT_EQ(ending.at, NOW);
  EXPECT_FALSE(ending.retrySafe) << "something was sent";
  EXPECT_TRUE(ending.refusal == nullptr);
  std::vector<Warning> warnings;
  if (context == "unwatched") warnings.push_back(Warning::CONTEXT_UNWATCHED);
  if (!undisturbed) warnings.push_back(Warning::LATE_AFTER_DISPATCH);
  if (end.ends_with("unverified")) warnings.push_back(Warning::UNVERIFIED);
  EXPECT_EQ(warningsOf(ending), warnings);
}

TEST(Judge, everyEndingIsAsDesigned) {
  for (auto proof : PROOFS) {
    for (auto mode : {Mode::INTERACTIVE, Mode::BACKGROUND_ONLY}) {
      for (unsigned rights = 0; rights < 16; ++rights) {
        auto [focus, own, user, irreversible] = bitsOf(rights);
        Terms asked{proof, mode, {focus, own, user, irreversible}};
        for (unsigned seen = 0; seen < 16; ++seen) {
          auto [watching, pointer, focused, stacked] = bitsOf(seen);
          Watch watch{watching, pointer, focused, stacked};
          for (auto verdict : VERDICTS) {
            expectEnding(asked, verdict, watch, Interruption::NONE);
            expectEnding(asked, verdict, watch, Interruption::CANCELLED_OR_LATE);
            if (HasFailure()) return;
          }
        }
      }
    }
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

TEST(Judge, whatTheWatchSawIsKeptApart) {
  for (unsigned seen = 0; seen < 16; ++seen) {
    auto [watching, pointer, focus, stacking] = bitsOf(seen);
    Seen facts;
    auto wire = facts.facts.getWatch();
    wire.setWatching(watching);
    wire.setPointerMoved(pointer);
    wire.setFocusChanged(focus);
    wire.setStackingChanged(stacking);
    auto watch = judge(invoking(), NONCE, facts.facts.asReader()).watch;
    EXPECT_EQ(watch.watching, watching);
    EXPECT_EQ(watch.pointerMoved, pointer);
    EXPECT_EQ(watch.focusChanged, focus);
    EXPECT_EQ(watch.stackingChanged, stacking);
  }
}

// ---- What a control replies ------------------------------------------------------------------

TEST(Judge, whatTheControlRepliedIsNoEvidence) {
  for (auto answer : {wire::Answer::ACCEPTED, wire::Answer::DECLINED, wire::Answer::ERROR,
                      wire::Answer::SILENT}) {
    Seen seen;
    seen.facts.setAnswer(answer);
    bool declined = answer == wire::Answer::DECLINED || answer == wire::Answer::ERROR;
    EXPECT_EQ(judged(invoking(), seen),
              declined ? "suspected_noop by none" : "unverifiable by none");
    seen.after.getValue().setText(bytesOf(textHash("new")));
    EXPECT_EQ(judged(setting("new"), seen), "confirmed by value_readback");

    auto judgement = judge(setting("new"), NONCE, seen.facts.asReader());
    EXPECT_EQ(judgement.declined, declined);
    auto ending = endingFor(Terms(), judgement, Interruption::NONE, NOW);
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

// ---- Proofs that are asked for ---------------------------------------------------------------

// Every way to have the same value proven.
kj::Vector<Action> provingValue(kj::StringPtr text) {
  kj::Vector<Action> out;
  out.add(setting(text));
  out.add(acting(SetValueRequest{kj::str(text)}, NoProof()));
  out.add(acting(SetValueRequest{kj::str("another text")}, ValueProof{kj::str(text)}));
  out.add(proving(ValueProof{kj::str(text)}));
  out.add(acting(ClickRequest(), ValueProof{kj::str(text)}));
  return out;
}

TEST(Judge, aValueIsProvenAlikeForEveryKind) {
  const char* values[] = {nullptr, "old", "new", "other"};
  for (bool presentBefore : {true, false}) {
    for (bool presentAfter : {true, false}) {
      for (auto was : values) {
        for (auto is : values) {
          Seen seen;
          seen.before.setPresent(presentBefore);
          seen.after.setPresent(presentAfter);
          if (was != nullptr) seen.before.getValue().setText(bytesOf(textHash(was)));
          if (is != nullptr) seen.after.getValue().setText(bytesOf(textHash(is)));
          std::string expected = "unverifiable by value_readback";
          if (was != nullptr && was == is) expected = "suspected_noop by value_readback";
          if (is == values[2]) expected = "confirmed by value_readback";
          if (is == nullptr) expected = "unverifiable by none";
          if (!presentBefore || !presentAfter) expected = "unknown by none";
          for (auto& action : provingValue("new")) EXPECT_EQ(judged(action, seen), expected);
        }
      }
    }
  }
}

TEST(Judge, aNumberIsProvenAsANumber) {
  for (auto& action : provingValue("2.50")) {
    Seen seen;
    seen.before.getValue().setNumber(bytesOf(hashOf(1.0)));
    seen.after.getValue().setNumber(bytesOf(hashOf(2.5)));
    EXPECT_EQ(judged(action, seen), "confirmed by value_readback");
  }
}

// Two states are asked for, one to hold and one not; a third is nobody's business.
TEST(Judge, statesAreProvenWhenTheyCameWithTheAct) {
  for (unsigned was = 0; was < 8; ++was) {
    for (unsigned is = 0; is < 8; ++is) {
      for (unsigned present = 0; present < 4; ++present) {
        Seen seen;
        auto show = [&](wire::Sight::Builder sight, unsigned bits) {
          std::vector<State> list;
          if (bits & 1) list.push_back(State::CHECKED);
          if (bits & 2) list.push_back(State::BUSY);
          if (bits & 4) list.push_back(State::MODAL);
          auto out = sight.initStates(static_cast<capnp::uint>(list.size()));
          for (capnp::uint i = 0; i < out.size(); ++i) out.set(i, list[i]);
        };
        show(seen.before, was);
        show(seen.after, is);
        seen.before.setPresent(present & 1);
        seen.after.setPresent(present & 2);
        StateProof proof;
        proof.expected.add(Expectation{State::CHECKED, true});
        proof.expected.add(Expectation{State::BUSY, false});

        auto right = [](unsigned bits) { return (bits & 3) == 1; };
        std::string expected = "unverifiable by state_readback";
        if (right(is) && !right(was)) expected = "confirmed by state_readback";
        if (!right(is) && was == is) expected = "suspected_noop by state_readback";
        if (present != 3) expected = "unknown by none";
        EXPECT_EQ(judged(proving(kj::mv(proof)), seen), expected) << was << is << present;
      }
    }
  }
}

// A control that was replaced by one that looks right is not the control that was acted on.
TEST(Judge, anElementThatWasReplacedConfirmsNeitherValueNorState) {
  Seen seen;
  seen.after.setPresent(false);
  seen.after.getValue().setText(bytesOf(textHash("new")));
  seen.states(seen.after, {State::CHECKED});
  StateProof checked;
  checked.expected.add(Expectation{State::CHECKED, true});
  EXPECT_EQ(judged(proving(kj::mv(checked)), seen), "unknown by none");
  for (auto& action : provingValue("new")) EXPECT_EQ(judged(action, seen), "unknown by none");
}

TEST(Judge, aWindowMoreIsProvenByTheSetAndItsSize) {
  for (unsigned bits = 0; bits < 16; ++bits) {
    auto [runsBefore, runsAfter, readBefore, readAfter] = bitsOf(bits);
    for (bool same : {true, false}) {
      for (uint32_t count : {1u, 2u, 3u}) {
        Seen seen;
        seen.before.setWindowCount(2);
        seen.after.setWindowCount(count);
        seen.before.setProcessRunning(runsBefore);
        seen.after.setProcessRunning(runsAfter);
        if (!same) seen.after.setWindows(bytesOf(textHash("other windows")));
        if (!readBefore) seen.before.setWindows(nullptr);
        if (!readAfter) seen.after.setWindows(nullptr);
        std::string expected =
            count == 3 ? "confirmed by tree_delta" : "unverifiable by tree_delta";
        if (same) expected = "suspected_noop by tree_delta";
        if (!runsBefore || !runsAfter || !readBefore || !readAfter) expected = "unknown by none";
        EXPECT_EQ(judged(proving(AppearsProof()), seen), expected) << bits << same << count;
      }
    }
  }
}

TEST(Judge, whatIsGoneIsProvenWhileItsApplicationRunsAndAnswers) {
  for (bool ofElement : {true, false}) {
    for (unsigned bits = 0; bits < 16; ++bits) {
      auto [elementBefore, elementAfter, windowBefore, windowAfter] = bitsOf(bits);
      for (bool runs : {true, false}) {
        for (bool silent : {true, false}) {
          Seen seen;
          seen.before.setPresent(elementBefore);
          seen.after.setPresent(elementAfter);
          seen.before.setWindowPresent(windowBefore);
          seen.after.setWindowPresent(windowAfter);
          seen.after.setProcessRunning(runs);
          seen.facts.setAnswer(silent ? wire::Answer::SILENT : wire::Answer::ACCEPTED);
          auto action = proving(DisappearsProof());
          if (!ofElement) {
            action = acting(WindowRequest(), DisappearsProof());
            action.target = WindowRef{{1, 2}, 3};
          }
          bool windowGone = windowBefore && !windowAfter;
          bool elementGone = ofElement && !elementAfter;
          std::string expected = "suspected_noop by tree_delta";
          if (elementGone) expected = silent ? "unknown by none" : "confirmed by tree_delta";
          if (windowGone) expected = "confirmed by tree_delta";
          if (!runs || !(ofElement ? elementBefore : windowBefore)) expected = "unknown by none";
          EXPECT_EQ(judged(action, seen), expected) << ofElement << bits << runs << silent;
        }
      }
    }
  }
}

TEST(Judge, pixelsAreProvenByBothReadingsOfAWindowThatIsThere) {
  const kj::StringPtr pixels[] = {"", "red"_kj, "blue"_kj};
  for (auto was : pixels) {
    for (auto is : pixels) {
      for (unsigned there = 0; there < 4; ++there) {
        Seen seen;
        if (was.size() > 0) seen.before.setRegion(bytesOf(textHash(was)));
        if (is.size() > 0) seen.after.setRegion(bytesOf(textHash(is)));
        seen.before.setWindowPresent(there & 1);
        seen.after.setWindowPresent(there & 2);
        std::string expected =
            was == is ? "suspected_noop by pixel_delta" : "confirmed by pixel_delta";
        if (was.size() == 0 || is.size() == 0 || there != 3) expected = "unknown by none";
        EXPECT_EQ(judged(proving(RegionProof()), seen), expected) << was.cStr() << is.cStr();
      }
    }
  }
  Seen cut;
  cut.before.setRegion(bytesOf(textHash("red")));
  cut.after.setRegion(bytesOf(textHash("blue")).slice(0, 31));
  EXPECT_EQ(judged(proving(RegionProof()), cut), "unknown by none");
}

// A change that would confirm the press by itself is not what the host asked to see.
TEST(Judge, oneProofDoesNotStandForAnother) {
  Seen seen;
  seen.states(seen.after, {State::CHECKED});
  seen.after.getValue().setText(bytesOf(textHash("new")));
  EXPECT_EQ(judged(invoking(), seen), "confirmed by state_readback");
  StateProof selected;
  selected.expected.add(Expectation{State::SELECTED, true});
  kj::Vector<Verification::Content> others;
  others.add(kj::mv(selected));
  others.add(ValueProof{kj::str("newer")});
  others.add(AppearsProof());
  others.add(DisappearsProof());
  others.add(RegionProof());
  for (auto& proof : others) {
    auto action = proving(kj::mv(proof));
    auto judgement = judge(action, NONCE, seen.facts.asReader());
    EXPECT_NE(judgement.evidence.verdict, Verdict::CONFIRMED);
    EXPECT_EQ(judgement.evidence.unitsDone, 0u);
  }
}

TEST(Judge, aControlThatDeclinedMakesNoUnverifiedSuccessOfAnyProof) {
  Seen seen;
  seen.facts.setAnswer(wire::Answer::DECLINED);
  seen.after.setWindows(bytesOf(textHash("other windows")));
  EXPECT_EQ(judged(proving(AppearsProof()), seen), "suspected_noop by tree_delta");
  EXPECT_EQ(judged(acting(ClickRequest(), NoProof()), seen), "suspected_noop by none");
  seen.after.setWindowCount(1);
  EXPECT_EQ(judged(proving(AppearsProof()), seen), "confirmed by tree_delta");
}

// Until a kind has a rule of its own, nothing that is seen is taken for its effect.
TEST(Judge, aKindWithoutARuleOfItsOwnIsUnverifiable) {
  HotkeyRequest hotkey;
  hotkey.keys.add(kj::str("a"));
  kj::Vector<Act> acts;
  acts.add(SelectTextRequest());
  acts.add(SecondaryRequest{kj::str("pick")});
  acts.add(ClickRequest());
  acts.add(ScrollRequest());
  acts.add(MoveRequest());
  acts.add(DragRequest());
  acts.add(TypeTextRequest{kj::str("new"), false, false, 0});
  acts.add(PressRequest{kj::str("a"), 1, 0});
  acts.add(kj::mv(hotkey));
  acts.add(PasteRequest{kj::str("new")});
  acts.add(ApplicationRequest{{}, kj::str("editor")});
  acts.add(WindowRequest());
  acts.add(OpenRequest{kj::str("what"), kj::str(), false});
  acts.add(ClipboardWriteRequest{kj::str("new")});
  for (auto& act : acts) {
    Seen seen;
    seen.states(seen.after, {State::CHECKED});
    seen.after.getValue().setText(bytesOf(textHash("new")));
    seen.after.setWindows(bytesOf(textHash("other windows")));
    EXPECT_EQ(judged(acting(kj::mv(act)), seen), "unverifiable by none");
  }
}

TEST(Judge, aReadHasNoEvidence) {
  Seen seen;
  kj::Vector<Act> reads;
  reads.add(ListAct());
  reads.add(ObserveAct());
  reads.add(ScreenshotAct());
  for (auto& read : reads) {
    EXPECT_ANY_THROW(judge(acting(kj::mv(read)), NONCE, seen.facts.asReader()));
  }
}

// ---- invoke ----------------------------------------------------------------------------------

TEST(Judge, anActWithoutAnyChangeIsUnverifiable) {
  Seen seen;
  EXPECT_EQ(judged(invoking(), seen), "unverifiable by none");
}

TEST(Judge, aChangeOfWhatTheControlMeansIsConfirmed) {
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
  for (auto state : {State::ACTIVE, State::ARMED, State::BUSY, State::FOCUSED, State::PRESSED}) {
    Seen seen;
    seen.states(seen.after, {state});
    EXPECT_EQ(judged(invoking(), seen), "unverifiable by none");
  }
}

TEST(Judge, aCheckBoxThatStaysUncheckedIsASuspectedNoop) {
  Seen seen;
  seen.states(seen.before, {State::CHECKABLE});
  seen.states(seen.after, {State::CHECKABLE});
  EXPECT_EQ(judged(invoking(), seen), "suspected_noop by state_readback");
}

TEST(Judge, aRadioButtonThatStaysCheckedIsUnverifiable) {
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
  kj::Vector<Action> actions;
  for (auto text : {"new"_kj, ""_kj}) {
    for (auto& action : provingValue(text)) actions.add(kj::mv(action));
  }
  actions.add(invoking());
  actions.add(proving(NoProof()));
  actions.add(proving(StateProof()));
  actions.add(proving(AppearsProof()));
  actions.add(proving(DisappearsProof()));
  actions.add(proving(RegionProof()));
  for (auto& action : actions) {
    Terms asked{action.verification.kind(), Mode::INTERACTIVE, {}};
    auto ending = endingFor(asked, judge(action, NONCE, facts.asReader()), Interruption::NONE, NOW);
    EXPECT_EQ(ending.terminal, Terminal::OUTCOME_UNKNOWN);
  }
}

}  // namespace
}  // namespace praefectus
