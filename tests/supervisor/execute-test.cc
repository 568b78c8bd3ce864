// One operation from submission to receipt, with a real ledger and a real helper process. What
// counts as an effect is what the helper wrote down.
#include "tests/support/workbench.h"

#include "ipc/bounds.h"
#include "supervisor/ledger/reader.h"
#include "supervisor/ledger/upkeep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

using Stages = std::vector<wire::Stage>;

std::vector<Warning> warningsOf(const attest::Receipt& receipt) {
  return {receipt.warnings.begin(), receipt.warnings.end()};
}

bool sameBytes(const attest::Envelope& a, const attest::Envelope& b) {
  return a.body == b.body && a.signature == b.signature;
}

// ---- Success and replay ------------------------------------------------------------------------

TEST(Execute, aConfirmedEffectEndsAsSucceededAndVerified) {
  Ready on;
  Stages stages;
  auto answer = on.run(on.pressing("op-1"), [&](wire::Stage stage) { stages.push_back(stage); });
  auto receipt = on.receiptOf(*answer);
  EXPECT_EQ(receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_EQ(receipt.effect, Effect::VERIFIED);
  EXPECT_EQ(receipt.evidence.verdict, Verdict::CONFIRMED);
  EXPECT_EQ(receipt.context, ContextState::PRESERVED);
  EXPECT_EQ(receipt.route, Route::ACCESSIBILITY);
  EXPECT_EQ(receipt.operation, "op-1"_kj);
  EXPECT_EQ(receipt.kind, "invoke"_kj);
  EXPECT_EQ(receipt.helper.name, "good"_kj);
  EXPECT_EQ(receipt.helper.generation, on.session->generation());
  EXPECT_EQ(warningsOf(receipt), std::vector<Warning>{});
  EXPECT_FALSE(answer->replayed);
  EXPECT_EQ(stages, (Stages{wire::Stage::PREPARED, wire::Stage::CLAIMED}));
  EXPECT_EQ(on.count("effect op-1"), 1u);
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, aTextThatReadsBackIsVerifiedAndStandsInNoReceipt) {
  Ready on;
  auto answer = on.run(on.request(*on.session, put(on.seen, "a private text"), "op-1"));
  EXPECT_EQ(on.receiptOf(*answer).evidence.method, Method::VALUE_READBACK);
  EXPECT_EQ(on.outcome(answer), "succeeded");
  auto body = answer->receipt.body.asChars();
  EXPECT_EQ(std::string(body.begin(), body.end()).find("private text"), std::string::npos);
}

TEST(Execute, aFreshObservationComesWithTheReceiptAndItsFrameCanBeActedOn) {
  Ready on;
  auto answer = on.run(on.pressing("op-1"));
  ASSERT_TRUE(answer->fresh.is<ObservationHeld>());
  on.seen = read(answer->fresh.get<ObservationHeld>().get());
  EXPECT_EQ(on.seen.frame.epoch, 2u);
  EXPECT_EQ(on.next(), "succeeded");
}

TEST(Execute, theOldFrameIsSpentByTheMutation) {
  Ready on;
  auto before = on.pressing("op-2");
  on.run(on.pressing("op-1"));
  EXPECT_EQ(on.outcome(on.run(before)), "refused: stale_frame");
  EXPECT_EQ(on.count("prepare "), 1u) << "no helper was asked";
  EXPECT_EQ(on.known("op-2"), "unknown");
}

TEST(Execute, theSameRequestAgainAnswersTheRecordedBytesWithoutAnotherEffect) {
  Ready on;
  auto request = on.pressing("op-1");
  auto first = on.run(request);
  auto lines = on.record().size();
  auto again = on.run(request);
  EXPECT_TRUE(again->replayed);
  EXPECT_TRUE(sameBytes(first->receipt, again->receipt));
  EXPECT_TRUE(again->fresh.is<Done>());
  EXPECT_EQ(on.record().size(), lines) << "no helper was asked";
}

TEST(Execute, aReplayIsAnsweredWhateverHasAgedSince) {
  Ready on;
  auto request = on.pressing("op-1");
  auto first = on.run(request);
  on.pass(25 * 3600 * kj::SECONDS);
  EXPECT_TRUE(sameBytes(on.run(request)->receipt, first->receipt)) << "expired";
  on.supervisor().close(*on.session);
  EXPECT_TRUE(sameBytes(on.run(request)->receipt, first->receipt)) << "closed";
  auto later = on.open("session-1", "turn-2");
  EXPECT_TRUE(sameBytes(on.execute(*later, request)->receipt, first->receipt)) << "another turn";
  later->mustObserve = true;
  EXPECT_TRUE(sameBytes(on.execute(*later, request)->receipt, first->receipt)) << "must observe";
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, aReplayIsAnsweredByTheNextSupervisor) {
  Ready on;
  auto request = on.pressing("op-1");
  auto first = on.run(request);
  on.restart();
  auto later = on.open();
  EXPECT_TRUE(sameBytes(on.execute(*later, request)->receipt, first->receipt));
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, theSameIdWithAnotherActionIsAConflict) {
  Ready on;
  on.run(on.pressing("op-1"));
  on.seen = on.observe(*on.session);
  auto other = on.request(*on.session, press(on.seen, "other"), "op-1");
  EXPECT_EQ(on.outcome(on.run(other)), "refused: operation_conflict");
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, theSameIdWithAnotherActionIsAConflictWhileTheFirstIsInFlight) {
  Ready on("waits-in-perform");
  auto first = on.begin(*on.session, on.pressing("op-1"));
  on.await("effect ");
  auto other = on.request(*on.session, press(on.seen, "other"), "op-1");
  EXPECT_EQ(on.outcome(on.run(other)), "refused: operation_conflict");
  on.signal(on.pids()[0]);
  EXPECT_EQ(on.outcome(on.wait(kj::mv(first))), "succeeded");
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, sixtyFourAtOnceOfOneIdAreOneEffectOneReceiptAndSixtyThreeReplays) {
  Ready on;
  auto request = on.pressing("op-1");
  auto answers = kj::heapArrayBuilder<kj::Promise<kj::Own<Answer>>>(64);
  for (int i = 0; i < 64; ++i) answers.add(on.begin(*on.session, request));
  auto all = on.wait(kj::joinPromises(answers.finish()));
  size_t replayed = 0;
  for (auto& answer : all) {
    if (answer->replayed) ++replayed;
    EXPECT_TRUE(sameBytes(answer->receipt, all[0]->receipt));
  }
  EXPECT_EQ(replayed, 63u);
  EXPECT_EQ(on.count("prepare "), 1u);
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, aReceiptThatWasAnsweredHoldsInALedgerThatVerifies) {
  Ready on;
  on.run(on.pressing("op-1"));
  auto reader = ledger::LedgerReader::open(on.ledgerFolder());
  ASSERT_TRUE(reader.ok());
  auto report = (*reader)->verify(on.ledger().receiptKey());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->findings.size(), 0u);
  EXPECT_EQ(report->receipts, 1u);
}

// ---- What the evidence makes of it -------------------------------------------------------------

TEST(Execute, aControlThatDoesNothingNeverEndsAsSuccess) {
  for (auto asked : {Proof::STRONGEST, Proof::NONE}) {
    Ready on("no-op");
    auto receipt = on.receiptOf(*on.run(on.pressing("op-1", {.proof = asked})));
    EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
    EXPECT_EQ(receipt.evidence.verdict, Verdict::SUSPECTED_NOOP);
    EXPECT_EQ(on.next(), "refused: reobserve_required");
  }
}

TEST(Execute, whatCannotBeVerifiedIsASuccessOnlyForOneWhoAskedForNoProof) {
  {
    Ready on("unverifiable");
    auto receipt = on.receiptOf(*on.run(on.pressing("op-1")));
    EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
    EXPECT_EQ(receipt.evidence.verdict, Verdict::UNVERIFIABLE);
  }
  Ready on("unverifiable");
  auto receipt = on.receiptOf(*on.run(on.pressing("op-1", {.proof = Proof::NONE})));
  EXPECT_EQ(receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_EQ(receipt.effect, Effect::EXECUTED_UNVERIFIED);
  EXPECT_EQ(warningsOf(receipt), std::vector{Warning::UNVERIFIED});
  EXPECT_FALSE(receipt.retrySafe);
}

TEST(Execute, aDisturbedDesktopIsInTheReceiptAndEndsSuccess) {
  Ready on("breach");
  auto receipt = on.receiptOf(*on.run(on.pressing("op-1")));
  EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_EQ(receipt.evidence.verdict, Verdict::CONFIRMED);
  EXPECT_EQ(receipt.context, ContextState::BREACHED);
}

TEST(Execute, anUnwatchedDesktopIsInTheReceiptAndEndsSuccess) {
  Ready on("unwatched");
  auto receipt = on.receiptOf(*on.run(on.pressing("op-1")));
  EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_EQ(receipt.context, ContextState::UNWATCHED);
  EXPECT_EQ(warningsOf(receipt), std::vector{Warning::CONTEXT_UNWATCHED});
}

// ---- Helpers that fail before the effect -------------------------------------------------------

TEST(Execute, aTargetThatIsRefusedInPrepareIsRejectedWithoutAClaim) {
  Ready on("refuses-prepare");
  auto request = on.pressing("op-1");
  auto answer = on.run(request);
  auto receipt = on.receiptOf(*answer);
  EXPECT_EQ(receipt.terminal, Terminal::REJECTED);
  EXPECT_EQ(receipt.effect, Effect::NONE);
  EXPECT_EQ(KJ_ASSERT_NONNULL(receipt.refusal), RefusalCode::TARGET_CHANGED);
  EXPECT_TRUE(receipt.retrySafe);
  EXPECT_EQ(receipt.claimedAt, 0);
  EXPECT_EQ(on.effects(), 0u);
  EXPECT_TRUE(on.run(request)->replayed);
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-2"))), "rejected") << "the frame is not spent";
}

TEST(Execute, aTargetThatIsRefusedInPerformIsRejected) {
  Ready on("refuses-perform");
  auto receipt = on.receiptOf(*on.run(on.pressing("op-1")));
  EXPECT_EQ(receipt.terminal, Terminal::REJECTED);
  EXPECT_EQ(KJ_ASSERT_NONNULL(receipt.refusal), RefusalCode::TARGET_CHANGED);
  EXPECT_TRUE(receipt.retrySafe);
  EXPECT_GT(receipt.claimedAt, 0);
  EXPECT_EQ(on.effects(), 0u);
  EXPECT_EQ(on.next(), "refused: stale_frame") << "the claim spent the frame";
}

// In words.capnp every refusal promises that nothing was sent, and this one promises nothing.
TEST(Execute, aRefusalThatPromisesNothingEndsAsOutcomeUnknown) {
  Ready on("promises-nothing");
  auto receipt = on.receiptOf(*on.run(on.pressing("op-1")));
  EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_FALSE(receipt.retrySafe);
  EXPECT_EQ(on.effects(), 1u);
  EXPECT_EQ(on.next(), "refused: reobserve_required");
}

TEST(Execute, aHelperThatDiesInPrepareLeavesNothingAndTheIdCanBeUsedAgain) {
  Ready on("dies-in-prepare");
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "refused: service_unavailable");
  EXPECT_EQ(on.known("op-1"), "unknown");
  on.helpers().mode = "good";
  on.seen = on.observe(*on.session);
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "succeeded");
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, aHelperThatHangsInPrepareIsEndedAtTheDeadlineAndLeavesNothing) {
  Ready on("hangs-in-prepare");
  auto answer = on.begin(*on.session, on.pressing("op-1", {.timeoutMs = 5'000}));
  on.await("prepare ");
  on.pass(4'999 * kj::MILLISECONDS);
  EXPECT_TRUE(on.session->liveHelper() != nullptr) << "not before its time";
  on.pass(1 * kj::MILLISECONDS);
  EXPECT_EQ(on.outcome(on.wait(kj::mv(answer))), "refused: service_unavailable");
  EXPECT_TRUE(on.ends(on.pids()[0]));
  EXPECT_EQ(on.known("op-1"), "unknown");
  on.helpers().mode = "good";
  on.seen = on.observe(*on.session);
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "succeeded");
}

TEST(Execute, nonsenseInPrepareIsAMismatchAndLeavesNothing) {
  Ready on("nonsense-in-prepare");
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "refused: service_mismatch");
  EXPECT_EQ(on.known("op-1"), "unknown");
  EXPECT_TRUE(on.ends(on.pids()[0]));
}

// ---- Helpers that fail in the effect -----------------------------------------------------------

void expectLost(Ready& on, const kj::Own<Answer>& answer, Warning why) {
  auto receipt = on.receiptOf(*answer);
  EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_EQ(receipt.effect, Effect::UNKNOWN);
  EXPECT_EQ(receipt.evidence.verdict, Verdict::UNKNOWN);
  EXPECT_FALSE(receipt.retrySafe);
  EXPECT_EQ(warningsOf(receipt), std::vector{why});
  EXPECT_TRUE(answer->fresh.is<Done>()) << "the host has to look by itself";
}

TEST(Execute, aHelperThatDiesInPerformEndsAsOutcomeUnknownAndIsNotSentAgain) {
  for (std::string mode : {"dies-before-effect", "dies-after-effect"}) {
    Ready on(mode);
    auto request = on.pressing("op-1");
    auto answer = on.run(request);
    expectLost(on, answer, Warning::HELPER_LOST);
    auto again = on.run(request);
    EXPECT_TRUE(again->replayed);
    EXPECT_TRUE(sameBytes(again->receipt, answer->receipt));
    EXPECT_EQ(on.effects(), mode == "dies-before-effect" ? 0u : 1u);
    EXPECT_EQ(on.helpers().starts, 1u);
  }
}

TEST(Execute, afterAnUnknownOutcomeTheSessionMustObserveBeforeItActs) {
  Ready on("dies-after-effect");
  on.run(on.pressing("op-1"));
  EXPECT_EQ(on.next(), "refused: reobserve_required");
  on.helpers().mode = "good";
  on.seen = on.observe(*on.session);
  EXPECT_EQ(on.next(), "succeeded");
  EXPECT_EQ(on.effects(), 2u);
}

TEST(Execute, anObservationThatFailsDoesNotLiftTheDemandToObserve) {
  Ready on("dies-after-effect");
  on.run(on.pressing("op-1"));
  on.helpers().mode = "refuses-reads";
  EXPECT_EQ(on.observing(*on.session, on.request(*on.session, look(), "again")), "target_missing");
  EXPECT_EQ(on.next(), "refused: reobserve_required");
}

TEST(Execute, aHelperThatHangsInPerformIsEndedAtTheDeadlineAndTheOutcomeIsUnknown) {
  Ready on("hangs-in-perform");
  auto answer = on.begin(*on.session, on.pressing("op-1", {.timeoutMs = 5'000}));
  on.await("effect ");
  on.pass(5 * kj::SECONDS);
  expectLost(on, on.wait(kj::mv(answer)), Warning::LATE_AFTER_DISPATCH);
  EXPECT_TRUE(on.ends(on.pids()[0]));
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, nonsenseInPerformEndsAsOutcomeUnknownAndEndsTheHelper) {
  Ready on("nonsense-in-perform");
  expectLost(on, on.run(on.pressing("op-1")), Warning::HELPER_LOST);
  EXPECT_TRUE(on.ends(on.pids()[0]));
}

TEST(Execute, aCompleteReplyWinsOverTheDeathAfterIt) {
  Ready on("leaves-after-perform");
  auto answer = on.begin(*on.session, on.pressing("op-1"));
  on.await("effect ");
  on.signal(on.pids()[0]);
  // The event loop does not turn here: reply and end are both there when it turns again.
  ASSERT_TRUE(on.ends(on.pids()[0]));
  auto done = on.wait(kj::mv(answer));
  EXPECT_EQ(on.outcome(done), "succeeded");
  EXPECT_TRUE(done->fresh.is<ObservationHeld>()) << "by another helper";
  EXPECT_EQ(on.helpers().starts, 2u);
}

TEST(Execute, aHelperThatIsKilledAfterTheClaimWasSentNothing) {
  Ready on;
  auto answer = on.run(on.pressing("op-1"), [&](wire::Stage stage) {
    if (stage == wire::Stage::CLAIMED) KJ_ASSERT_NONNULL(on.session->liveHelper()).kill();
  });
  auto receipt = on.receiptOf(*answer);
  EXPECT_EQ(receipt.terminal, Terminal::FAILED);
  EXPECT_EQ(KJ_ASSERT_NONNULL(receipt.refusal), RefusalCode::SERVICE_UNAVAILABLE);
  EXPECT_TRUE(receipt.retrySafe);
  EXPECT_EQ(on.effects(), 0u);
}

// The kernel may have taken bytes for a process that was dead already: in doubt something was sent.
TEST(Execute, aHelperThatDiedUnnoticedBeforePerformIsNeverASuccess) {
  Ready on;
  auto pid = on.pids()[0];
  auto answer = on.run(on.pressing("op-1"), [&](wire::Stage stage) {
    if (stage != wire::Stage::CLAIMED) return;
    kill(pid, SIGKILL);
    EXPECT_TRUE(on.ends(pid));
  });
  EXPECT_NE(on.outcome(answer), "succeeded");
  EXPECT_EQ(on.effects(), 0u);
}

// ---- Cancellation ------------------------------------------------------------------------------

TEST(Cancel, anOperationThatWaitsItsTurnIsWithdrawnWithoutATrace) {
  Ready on("hangs-in-prepare");
  auto first = on.begin(*on.session, on.pressing("op-1"));
  auto second = on.begin(*on.session, on.pressing("op-2"));
  on.await("prepare ");
  EXPECT_TRUE(on.supervisor().cancel(*on.session, "op-2"));
  EXPECT_TRUE(on.supervisor().cancel(*on.session, "op-1"));
  EXPECT_EQ(on.outcome(on.wait(kj::mv(first))), "refused: aborted");
  EXPECT_EQ(on.outcome(on.wait(kj::mv(second))), "refused: aborted");
  EXPECT_EQ(on.known("op-2"), "unknown");
  EXPECT_EQ(on.count("prepare op-2"), 0u);
}

TEST(Cancel, anOperationInPrepareIsWithdrawnBeforeItsEffect) {
  Ready on("hangs-in-prepare");
  auto answer = on.begin(*on.session, on.pressing("op-1"));
  on.await("prepare ");
  EXPECT_TRUE(on.supervisor().cancel(*on.session, "op-1"));
  EXPECT_EQ(on.outcome(on.wait(kj::mv(answer))), "refused: aborted");
  EXPECT_EQ(on.known("op-1"), "unknown");
  EXPECT_TRUE(on.session->liveHelper() != nullptr) << "the helper did nothing wrong";
}

TEST(Cancel, beforeTheEffectItEndsAsCancelledBeforeEffectAndNothingWasSent) {
  for (auto at : {wire::Stage::PREPARED, wire::Stage::CLAIMED}) {
    Ready on;
    auto answer = on.run(on.pressing("op-1"), [&](wire::Stage stage) {
      if (stage == at) {
        EXPECT_TRUE(on.supervisor().cancel(*on.session, "op-1"));
      }
    });
    auto receipt = on.receiptOf(*answer);
    EXPECT_EQ(receipt.terminal, Terminal::CANCELLED_BEFORE_EFFECT);
    EXPECT_TRUE(receipt.retrySafe);
    EXPECT_EQ(receipt.route, Route::NONE);
    EXPECT_EQ(on.effects(), 0u);
    EXPECT_EQ(on.next(), "refused: stale_frame") << "the claim spent the frame";
  }
}

TEST(Cancel, duringTheEffectItGoesOnAndEndsAsOutcomeUnknown) {
  Ready on("waits-in-perform");
  auto answer = on.begin(*on.session, on.pressing("op-1"));
  on.await("effect ");
  EXPECT_TRUE(on.supervisor().cancel(*on.session, "op-1"));
  on.settle();
  on.signal(on.pids()[0]);
  auto done = on.wait(kj::mv(answer));
  auto receipt = on.receiptOf(*done);
  EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_EQ(receipt.evidence.verdict, Verdict::CONFIRMED) << "the evidence is kept";
  EXPECT_EQ(warningsOf(receipt), std::vector{Warning::LATE_AFTER_DISPATCH});
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Cancel, duringTheEffectMakesItUnknownAlsoForOneWhoAskedForNoProof) {
  Ready on("waits-in-perform");
  auto answer = on.begin(*on.session, on.pressing("op-1", {.proof = Proof::NONE}));
  on.await("effect ");
  EXPECT_TRUE(on.supervisor().cancel(*on.session, "op-1"));
  on.signal(on.pids()[0]);
  auto receipt = on.receiptOf(*on.wait(kj::mv(answer)));
  EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_EQ(receipt.effect, Effect::UNKNOWN);
}

TEST(Cancel, winsOverAnExpiredDeadline) {
  Ready on;
  auto answer = on.run(on.pressing("op-1", {.timeoutMs = 5'000}), [&](wire::Stage stage) {
    if (stage != wire::Stage::CLAIMED) return;
    on.clock.boot += 5'000;
    on.supervisor().cancel(*on.session, "op-1");
  });
  EXPECT_EQ(on.outcome(answer), "cancelled_before_effect");
}

TEST(Cancel, isOnlyForOperationsOfTheSameSessionThatAreInFlight) {
  Ready on("hangs-in-prepare");
  auto other = on.open("session-2");
  EXPECT_FALSE(on.supervisor().cancel(*on.session, "op-1"));
  auto answer = on.begin(*on.session, on.pressing("op-1"));
  on.await("prepare ");
  EXPECT_FALSE(on.supervisor().cancel(*other, "op-1"));
  EXPECT_TRUE(on.supervisor().cancel(*on.session, "op-1"));
  EXPECT_TRUE(on.supervisor().cancel(*on.session, "op-1")) << "idempotent";
  EXPECT_EQ(on.outcome(on.wait(kj::mv(answer))), "refused: aborted");
  EXPECT_FALSE(on.supervisor().cancel(*on.session, "op-1"));
}

// ---- The deadline ------------------------------------------------------------------------------

TEST(Deadline, anOperationThatWaitedTooLongForItsTurnIsNotBegun) {
  Ready on("waits-in-prepare");
  auto first = on.begin(*on.session, on.pressing("op-1"));
  auto second = on.begin(*on.session, on.pressing("op-2", {.timeoutMs = 1'000}));
  on.await("prepare ");
  on.pass(1 * kj::SECONDS);
  on.supervisor().cancel(*on.session, "op-1");
  EXPECT_EQ(on.outcome(on.wait(kj::mv(first))), "refused: aborted");
  EXPECT_EQ(on.outcome(on.wait(kj::mv(second))), "refused: timeout");
  EXPECT_EQ(on.known("op-2"), "unknown");
  EXPECT_EQ(on.count("prepare op-2"), 0u);
}

TEST(Deadline, thatPassesAfterTheClaimEndsAsExpiredBeforeEffectAndNothingWasSent) {
  for (auto at : {wire::Stage::PREPARED, wire::Stage::CLAIMED}) {
    Ready on;
    auto answer = on.run(on.pressing("op-1", {.timeoutMs = 5'000}), [&](wire::Stage stage) {
      if (stage == at) on.clock.boot += 5'000;
    });
    auto receipt = on.receiptOf(*answer);
    EXPECT_EQ(receipt.terminal, Terminal::EXPIRED_BEFORE_EFFECT);
    EXPECT_TRUE(receipt.retrySafe);
    EXPECT_EQ(on.effects(), 0u);
  }
}

TEST(Deadline, isTheGrantsEndWhenThatComesFirst) {
  Ready on;
  auto answer = on.run(on.pressing("op-1", {.timeoutMs = 15'000, .validForMs = 3'000}),
                       [&](wire::Stage stage) {
                         if (stage == wire::Stage::CLAIMED) on.clock.boot += 3'000;
                       });
  EXPECT_EQ(on.outcome(answer), "expired_before_effect");
}

TEST(Deadline, isNotMovedByAWallClockThatSteps) {
  Ready on;
  auto answer = on.run(on.pressing("op-1"), [&](wire::Stage stage) {
    if (stage == wire::Stage::CLAIMED) on.clock.wall += 59'000;
  });
  EXPECT_EQ(on.outcome(answer), "succeeded");
}

TEST(Deadline, thatPassesDuringTheEffectMakesTheOutcomeUnknown) {
  Ready on("waits-in-perform");
  auto answer = on.begin(*on.session, on.pressing("op-1", {.timeoutMs = 5'000}));
  on.await("effect ");
  // The reply comes before the timer does, and after the deadline all the same.
  on.clock.boot += 5'000;
  on.signal(on.pids()[0]);
  auto receipt = on.receiptOf(*on.wait(kj::mv(answer)));
  EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_EQ(warningsOf(receipt), std::vector{Warning::LATE_AFTER_DISPATCH});
}

// ---- What is refused before anything -----------------------------------------------------------

TEST(Execute, aGrantThatDoesNotHoldReachesNoHelperAndNoLedger) {
  struct Change {
    const char* name;
    std::function<void(attest::Grant&)> make;
  };
  const Change changes[] = {
      {"another ledger", [](attest::Grant& grant) { grant.audience.key[0] ^= 1; }},
      {"another incarnation", [](attest::Grant& grant) { ++grant.audience.incarnation; }},
      {"another subject", [](attest::Grant& grant) { grant.subject = kj::str("uid:1"); }},
      {"another session", [](attest::Grant& grant) { grant.session = kj::str("other"); }},
      {"another turn", [](attest::Grant& grant) { grant.turn = kj::str("other"); }},
      {"another action", [](attest::Grant& grant) { grant.actionHash[0] ^= 1; }},
      {"another window", [](attest::Grant& grant) { ++grant.target.window; }},
      {"another frame",
       [](attest::Grant& grant) {
         KJ_ASSERT_NONNULL(grant.frame)[0] ^= 1;
       }},
      {"another risk", [](attest::Grant& grant) { grant.risk = Safety::EXTERNAL; }},
      {"another policy", [](attest::Grant& grant) { ++grant.policyGeneration; }},
      {"another key", [](attest::Grant& grant) { grant.keyId = kj::str("0123456789abcdef"); }},
      {"another issuer", [](attest::Grant& grant) { grant.issuer = kj::str("guest"); }},
      {"too early", [](attest::Grant& grant) { grant.notBefore += 1'000; }},
      {"too late",
       [](attest::Grant& grant) {
         grant.notBefore -= 60'000;
         grant.expires -= 60'000;
       }},
      {"a read", [](attest::Grant& grant) { grant.actionClass = ActionClass::METADATA_READ; }},
  };
  Ready on;
  for (auto& change : changes) {
    auto action = press(on.seen);
    auto grant = on.grantFor(*on.session, action, "op-1");
    change.make(grant);
    EXPECT_EQ(on.outcome(on.run(on.seal(grant, action))), "refused: policy_denied") << change.name;
  }
  EXPECT_EQ(on.count("prepare "), 0u);
  EXPECT_EQ(on.known("op-1"), "unknown");
}

TEST(Execute, aTamperedGrantOrActionReachesNoHelper) {
  Ready on;
  auto good = on.pressing("op-1");
  for (auto tamper : {0, 1, 2}) {
    Request bad{kj::str("op-1"), good.grant.clone(), kj::heapArray<kj::byte>(good.action)};
    if (tamper == 0) bad.grant.signature[0] ^= 1;
    if (tamper == 1) bad.grant.body.back() ^= 1;
    if (tamper == 2) bad.action[bad.action.size() - 1] ^= 1;
    EXPECT_EQ(on.outcome(on.run(bad)), "refused: policy_denied");
  }
  EXPECT_EQ(on.count("prepare "), 0u);
  EXPECT_EQ(on.outcome(on.run(good)), "succeeded") << "the id was not used up";
}

TEST(Execute, moreOperationsInFlightThanTheBoundAreBusy) {
  Ready on("hangs-in-prepare");
  kj::Vector<kj::Promise<kj::Own<Answer>>> answers;
  for (size_t i = 0; i < bounds::IN_FLIGHT; ++i) {
    answers.add(on.begin(*on.session, on.pressing(kj::str("op-", i))));
  }
  EXPECT_EQ(on.next(), "refused: busy");
  on.supervisor().close(*on.session);
  for (auto& answer : on.wait(kj::joinPromises(answers.releaseAsArray()))) {
    EXPECT_NE(on.outcome(answer), "succeeded");
  }
  EXPECT_EQ(on.effects(), 0u);
}

TEST(Execute, aReadIsNotExecuted) {
  Ready on;
  auto read = on.request(*on.session, look(), "op-1");
  EXPECT_EQ(on.outcome(on.run(read)), "refused: malformed");
}

TEST(Execute, withoutTheDesktopNothingIsActedOnAndReadingGoesOn) {
  Workbench on("good", false);
  auto session = on.open();
  auto seen = on.observe(*session);
  auto request = on.request(*session, press(seen), "op-1");
  EXPECT_EQ(on.outcome(on.execute(*session, request)), "refused: desktop_busy");
  EXPECT_EQ(on.count("prepare "), 0u);
}

TEST(Execute, beforeAnyObservationThereIsNoFrameToActOn) {
  Ready on;
  auto other = on.open("session-2");
  auto request = on.request(*other, press(on.seen), "op-1");
  EXPECT_EQ(on.outcome(on.execute(*other, request)), "refused: no_active_frame");
  on.observe(*other);
  EXPECT_EQ(on.outcome(on.execute(*other, request)), "refused: stale_frame")
      << "another session's frame";
}

TEST(Execute, aFrameIsTooOldAfterThirtySeconds) {
  Ready on;
  on.pass(30 * kj::SECONDS);
  EXPECT_EQ(on.next(), "refused: stale_frame");
  EXPECT_EQ(on.count("prepare "), 0u);
}

// ---- A ledger that fails -----------------------------------------------------------------------

struct OnBadDisk {
  FaultyVfs disk;  // Before the ledger is opened.
  Ready on;
  kj::Own<Answer> runFailingAt(wire::Stage at) {
    return on.run(on.pressing("op-1"), [this, at](wire::Stage stage) {
      if (stage == at) disk.arm(Fault::ERROR_FOREVER, 1);
    });
  }
};

TEST(Execute, aClaimThatCannotBeWrittenIsNotDispatchedAndNothingIsAfterIt) {
  OnBadDisk bad;
  EXPECT_EQ(bad.on.outcome(bad.runFailingAt(wire::Stage::PREPARED)), "refused: ledger_poisoned");
  bad.disk.disarm();
  EXPECT_EQ(bad.on.outcome(bad.on.run(bad.on.pressing("op-2"))), "refused: ledger_poisoned");
  EXPECT_EQ(bad.on.effects(), 0u);
}

TEST(Execute, anEndingThatCannotBeWrittenIsUnknownAndTheNextStartSaysSo) {
  OnBadDisk bad;
  auto request = bad.on.pressing("op-1");
  auto answer = bad.on.run(request, [&](wire::Stage stage) {
    if (stage == wire::Stage::CLAIMED) bad.disk.arm(Fault::ERROR_FOREVER, 1);
  });
  EXPECT_EQ(bad.on.outcome(answer), "refused: outcome_unknown");
  bad.disk.disarm();
  EXPECT_EQ(bad.on.outcome(bad.on.run(request)), "refused: ledger_poisoned");
  bad.on.restart();
  EXPECT_EQ(bad.on.ledger().recovered().settled, 1u);
  auto later = bad.on.open();
  auto again = bad.on.execute(*later, request);
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(bad.on.outcome(again), "outcome_unknown");
  EXPECT_EQ(bad.on.effects(), 1u);
}

// Another write fails while the operation is about to be sent.
TEST(Execute, aLedgerThatIsPoisonedBetweenClaimAndPerformStopsEverythingAndNothingIsSent) {
  OnBadDisk bad;
  auto request = bad.on.pressing("op-1");
  kj::Maybe<kj::Promise<Result<Done>>> revoking;
  auto answer = bad.on.run(request, [&](wire::Stage stage) {
    if (stage != wire::Stage::CLAIMED) return;
    bad.disk.arm(Fault::ERROR_FOREVER, 1);
    attest::Revocation revocation;
    revocation.revocation = kj::str("revocation-1");
    revocation.what = attest::RevokedLease{kj::str("another-lease")};
    revoking = bad.on.supervisor().revoke(bad.on.seal(kj::mv(revocation)));
    while (bad.on.ledger().usable()) std::this_thread::yield();
  });
  EXPECT_EQ(bad.on.outcome(answer), "refused: ledger_poisoned");
  EXPECT_FALSE(bad.on.wait(kj::mv(KJ_ASSERT_NONNULL(revoking))).ok());
  bad.disk.disarm();
  EXPECT_EQ(bad.on.outcome(bad.on.run(request)), "refused: ledger_poisoned");
  EXPECT_EQ(bad.on.outcome(bad.on.run(bad.on.pressing("op-2"))), "refused: ledger_poisoned");
  EXPECT_EQ(bad.on.observing(*bad.on.session, bad.on.request(*bad.on.session, look(), "look")),
            "ledger_poisoned");
  bad.on.restart();
  EXPECT_EQ(bad.on.known("op-1"), "outcome_unknown") << "it was claimed";
  EXPECT_EQ(bad.on.effects(), 0u);
}

TEST(Execute, aClaimWhoseWriteDoesNotComeBackIsGivenUpAfterThirtySecondsAndNothingIsSent) {
  OnBadDisk bad;
  auto request = bad.on.pressing("op-1");
  auto answer = bad.on.begin(*bad.on.session, request, [&](wire::Stage stage) {
    if (stage == wire::Stage::PREPARED) bad.disk.arm(Fault::HOLD, 1);
  });
  answer = answer.eagerlyEvaluate(nullptr);
  while (!bad.disk.isHeld()) bad.on.settle();
  bad.on.passForLedger(bounds::LEDGER - 1 * kj::MILLISECONDS);
  EXPECT_FALSE(bad.on.isReady(answer)) << "not before its time";
  bad.on.passForLedger(1 * kj::MILLISECONDS);
  EXPECT_EQ(bad.on.outcome(bad.on.wait(kj::mv(answer))), "refused: ledger_poisoned");
  EXPECT_EQ(bad.on.outcome(bad.on.run(request)), "refused: ledger_poisoned");
  bad.disk.release();
  EXPECT_EQ(bad.on.outcome(bad.on.run(request)), "refused: ledger_poisoned") << "nor when it came";
  bad.on.restart();
  EXPECT_EQ(bad.on.known("op-1"), "outcome_unknown");
  EXPECT_EQ(bad.on.effects(), 0u);
}

TEST(Execute, anEndingWhoseWriteDoesNotComeBackIsUnknownUntilTheNextStart) {
  OnBadDisk bad;
  auto answer = bad.on.begin(*bad.on.session, bad.on.pressing("op-1"), [&](wire::Stage stage) {
    if (stage == wire::Stage::CLAIMED) bad.disk.arm(Fault::HOLD, 1);
  });
  answer = answer.eagerlyEvaluate(nullptr);
  while (!bad.disk.isHeld()) bad.on.settle();
  bad.on.passForLedger(bounds::LEDGER);
  EXPECT_EQ(bad.on.outcome(bad.on.wait(kj::mv(answer))), "refused: outcome_unknown");
  EXPECT_EQ(bad.on.next(), "refused: ledger_poisoned");
  bad.disk.release();
  bad.on.restart();
  EXPECT_EQ(bad.on.known("op-1"), "succeeded") << "it had been written after all";
  EXPECT_EQ(bad.on.effects(), 1u);
}

// ---- A ledger whose record is not at hand ------------------------------------------------------

// Flips a bit where these bytes stand in the database of the ledger, which nobody has open.
void spoil(kj::StringPtr folder, Bytes bytes) {
  // What is in the log as well would be read from there.
  ASSERT_EQ(BackDoor(folder).run("PRAGMA wal_checkpoint(TRUNCATE)"), SQLITE_OK);
  auto path = kj::str(folder, "/ledger.db");
  auto whole = readWhole(path);
  auto at = std::search(whole.begin(), whole.end(), bytes.begin(), bytes.end());
  ASSERT_NE(at, whole.end());
  // In its place, since another file would be another ledger.
  int fd;
  KJ_SYSCALL(fd = open(path.cStr(), O_WRONLY | O_CLOEXEC));
  kj::AutoCloseFd file(fd);
  const kj::byte flipped = *at ^ 1;
  KJ_SYSCALL(pwrite(file, &flipped, 1, at - whole.begin()));
}

TEST(Execute, anOperationWhoseEndingIsDamagedIsNeverSentAgain) {
  Ready on;
  auto request = on.pressing("op-1");
  auto answer = on.run(request);
  on.restart([&]() { spoil(on.ledgerFolder(), bytesOf(answer->receipt.signature)); });
  auto later = on.open();
  EXPECT_EQ(on.outcome(on.execute(*later, request)), "refused: record_damaged");
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, anOpenOperationWhoseClaimIsDamagedIsNeverSentAgain) {
  Ready on("waits-in-perform");
  auto request = on.pressing("op-1");
  {
    auto dropped = on.begin(*on.session, request).eagerlyEvaluate(nullptr);
    on.await("effect ");
  }
  on.restart([&]() { spoil(on.ledgerFolder(), bytesOf(attest::actionHash(request.action))); });
  EXPECT_EQ(on.ledger().recovered().quarantined, 1u);
  auto later = on.open();
  EXPECT_EQ(on.outcome(on.execute(*later, request)), "refused: record_damaged");
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, anOperationWhoseRecordWasArchivedIsNeverSentAgain) {
  Ready on;
  auto request = on.pressing("op-1");
  on.run(request);
  on.restart([&]() {
    auto made = ledger::archive(
        on.ledgerFolder(), on.clock.wall + 1, kj::str(on.ledgerFolder(), "-archive"),
        {on.clock.wall, on.clock.boot}, [](kj::StringPtr, uint64_t, uint64_t) {});
    ASSERT_TRUE(made.ok());
    ASSERT_TRUE(*made != nullptr);
  });
  auto later = on.open();
  EXPECT_EQ(on.outcome(on.execute(*later, request)), "refused: operation_archived");
  EXPECT_EQ(on.effects(), 1u);
}

// ---- The supervisor's own end ------------------------------------------------------------------

TEST(Execute, aSupervisorThatEndsInTheEffectIsToldByTheNextOne) {
  Ready on("waits-in-perform");
  auto request = on.pressing("op-1");
  auto answer = on.begin(*on.session, request);
  on.await("effect ");
  { auto dropped = kj::mv(answer); }
  on.restart();
  auto later = on.open();
  auto again = on.execute(*later, request);
  EXPECT_EQ(on.outcome(again), "outcome_unknown");
  EXPECT_EQ(warningsOf(on.receiptOf(*again)), std::vector{Warning::RECOVERED});
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Execute, aHostThatStopsWaitingDoesNotStopTheOperation) {
  Ready on("waits-in-perform");
  auto request = on.pressing("op-1");
  { auto dropped = on.begin(*on.session, request); }
  on.await("effect ");
  on.signal(on.pids()[0]);
  on.supervisor().leave(*on.session);
  on.wait(on.supervisor().drained());
  EXPECT_EQ(on.known("op-1"), "succeeded");
}

}  // namespace
}  // namespace praefectus::test
