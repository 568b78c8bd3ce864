// Sessions beside each other, their reads, and the helpers behind them, with real processes.
#include "supervisor/helpers.h"
#include "tests/support/workbench.h"

#include "ipc/bounds.h"

#include <gtest/gtest.h>

#include <csignal>

namespace praefectus::test {
namespace {

std::vector<std::string> beginningWith(const std::string& beginning,
                                       const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  for (auto& line : lines) {
    if (line.starts_with(beginning)) out.push_back(line);
  }
  return out;
}

// ---- Order -------------------------------------------------------------------------------------

TEST(Sessions, operationsOfOneSessionAreServedInOrder) {
  Workbench on("refuses-prepare");  // So that no frame is spent.
  auto session = on.open();
  auto seen = on.observe(*session);
  auto answers = kj::heapArrayBuilder<kj::Promise<kj::Own<Answer>>>(8);
  std::vector<std::string> expected;
  for (int i = 0; i < 8; ++i) {
    auto name = kj::str("op-", i);
    expected.push_back(std::string("prepare ") + name.cStr());
    answers.add(on.begin(*session, on.request(*session, press(seen, name), name)));
  }
  on.wait(kj::joinPromises(answers.finish()));
  EXPECT_EQ(beginningWith("prepare ", on.record()), expected);
}

TEST(Sessions, aReadWaitsForTheOperationBeforeIt) {
  Workbench on("waits-in-perform");
  auto session = on.open();
  auto seen = on.observe(*session);
  auto acting = on.begin(*session, on.request(*session, press(seen), "op-1"));
  on.await("effect ");
  auto reading = on.beginObserving(*session, on.request(*session, look(), "read"));
  on.settle();
  EXPECT_EQ(on.count("observe "), 1u);
  on.signal(on.pids()[0]);
  EXPECT_EQ(on.outcome(on.wait(kj::mv(acting))), "succeeded");
  EXPECT_TRUE(on.wait(kj::mv(reading)).ok());
}

TEST(Sessions, aStuckSessionDoesNotHoldAnotherOneUp) {
  Workbench on("hangs-in-perform");
  auto stuck = on.open("session-1");
  auto seen = on.observe(*stuck);
  auto hanging = on.begin(*stuck, on.request(*stuck, press(seen), "op-1"));
  on.await("effect ");
  on.helpers().mode = "good";
  auto free = on.open("session-2");
  auto other = on.observe(*free, OTHER_WINDOW);
  EXPECT_EQ(on.outcome(on.execute(*free, on.request(*free, press(other), "op-2"))), "succeeded");
  on.pass(15 * kj::SECONDS);
  EXPECT_EQ(on.outcome(on.wait(kj::mv(hanging))), "outcome_unknown");
}

TEST(Sessions, twoSessionsOnOneWindowDoNotInterleave) {
  Workbench on("waits-in-perform");
  auto first = on.open("session-1"), second = on.open("session-2");
  auto seen = on.observe(*first);
  on.helpers().mode = "good";
  auto alsoSeen = on.observe(*second);
  auto one = on.begin(*first, on.request(*first, press(seen, "one"), "op-1"));
  on.await("effect one");
  auto two = on.begin(*second, on.request(*second, press(alsoSeen, "two"), "op-2"));
  // Reading is not acting, and shows that the second session is served meanwhile.
  auto third = on.open("session-3");
  on.observe(*third);
  EXPECT_EQ(on.count("prepare two"), 0u);
  on.signal(on.pids()[0]);
  EXPECT_EQ(on.outcome(on.wait(kj::mv(one))), "succeeded");
  EXPECT_EQ(on.outcome(on.wait(kj::mv(two))), "succeeded");
  auto lines = on.record();
  EXPECT_LT(std::find(lines.begin(), lines.end(), "effect one"),
            std::find(lines.begin(), lines.end(), "prepare two"));
}

// ---- Opening and closing -----------------------------------------------------------------------

TEST(Sessions, sixteenAreLiveAndTheSeventeenthIsBusyUntilOneHasEnded) {
  Workbench on;
  kj::Vector<kj::Own<Session>> live;
  for (size_t i = 0; i < bounds::SESSIONS; ++i) live.add(on.open(kj::str("session-", i)));
  auto refused = on.supervisor().open(kj::str("one-more"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.refusal().code, RefusalCode::BUSY);
  on.supervisor().leave(*live[3]);
  on.settle();
  EXPECT_TRUE(on.supervisor().open(kj::str("one-more")).ok());
}

TEST(Sessions, twoOfOneNameAreNotOpenAtOnce) {
  for (bool left : {false, true}) {
    Workbench on;
    auto first = on.open();
    auto again = on.supervisor().open(kj::str("session-1"));
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.refusal().code, RefusalCode::OPERATION_CONFLICT);
    EXPECT_EQ(on.observing(*first, on.request(*first, look(), "read")), "ok") << "it goes on";
    left ? on.supervisor().leave(*first) : on.supervisor().close(*first);
    auto next = on.supervisor().open(kj::str("session-1"));
    EXPECT_TRUE(next.ok()) << left;
    on.supervisor().leave(*first);  // Once more, which is nothing to the next one.
    EXPECT_FALSE(on.supervisor().open(kj::str("session-1")).ok()) << left;
  }
}

TEST(Sessions, namesAreRememberedUpToABoundAndThenReused) {
  Workbench on;
  for (size_t i = 0; i < bounds::SESSION_NAMES; ++i) {
    auto session = on.supervisor().open(kj::str("s-", i));
    ASSERT_TRUE(session.ok()) << i;
    on.supervisor().leave(**session);
    on.poll();
  }
  auto refused = on.supervisor().open(kj::str("one-more"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.refusal().code, RefusalCode::BUSY);
  EXPECT_TRUE(on.supervisor().open(kj::str("s-7")).ok());
}

TEST(Sessions, theNextOneOfANameCountsItsSignedRefusalsOn) {
  Workbench on;
  auto proven = [&](kj::Maybe<Session&> session) {
    Refusal why{RefusalCode::BUSY, "For the count."_kj};
    auto sealed = on.supervisor().prove(session, {}, why);
    auto refused = attest::openRefused(on.ledger().receiptKey(), sealed);
    return refused.ok() ? refused->sequence : 0;
  };
  auto first = on.open(), other = on.open("session-2");
  EXPECT_EQ(proven(*first), 1u);
  EXPECT_EQ(proven(*first), 2u);
  EXPECT_EQ(proven(*other), 1u);
  EXPECT_EQ(proven(nullptr), 1u);
  on.supervisor().close(*first);
  EXPECT_EQ(proven(*first), 3u);
  auto next = on.open("session-1", "turn-2");
  EXPECT_EQ(proven(*next), 4u);
  EXPECT_EQ(proven(*first), 5u) << "they share a name, so they share its count";
}

TEST(Sessions, sessionAndTurnAreIdentifiers) {
  Workbench on;
  auto session = on.open();
  for (auto bad : {""_kj, "a b"_kj, "ä"_kj}) {
    EXPECT_FALSE(on.supervisor().open(kj::str(bad)).ok());
    EXPECT_FALSE(on.supervisor().beginTurn(*session, kj::str(bad)).ok());
  }
}

TEST(Sessions, aClosedSessionActsAndReadsNoMoreAndItsHelperEnds) {
  Workbench on;
  auto session = on.open();
  auto seen = on.observe(*session);
  on.supervisor().close(*session);
  EXPECT_EQ(on.outcome(on.execute(*session, on.request(*session, press(seen), "op-1"))),
            "refused: no_active_session");
  EXPECT_EQ(on.observing(*session, on.request(*session, look(), "read")), "no_active_session");
  on.wait(on.supervisor().drained());
  EXPECT_TRUE(on.ends(on.pids()[0]));
  EXPECT_EQ(on.helpers().starts, 1u);
}

TEST(Sessions, closingWithdrawsWhatIsInFlight) {
  Workbench on("hangs-in-prepare");
  auto session = on.open();
  auto seen = on.observe(*session);
  auto answer = on.begin(*session, on.request(*session, press(seen), "op-1"));
  on.await("prepare ");
  on.supervisor().close(*session);
  EXPECT_EQ(on.outcome(on.wait(kj::mv(answer))), "refused: aborted");
}

TEST(Sessions, leavingCarriesWhatIsInFlightToItsEnd) {
  Workbench on("waits-in-perform");
  auto session = on.open();
  auto seen = on.observe(*session);
  auto first = on.begin(*session, on.request(*session, press(seen), "op-1"));
  auto queued = on.begin(*session, on.request(*session, press(seen), "op-2"));
  on.await("effect ");
  on.supervisor().leave(*session);
  on.settle();
  on.signal(on.pids()[0]);
  on.wait(on.supervisor().drained());
  EXPECT_EQ(on.outcome(on.wait(kj::mv(first))), "succeeded");
  EXPECT_EQ(on.outcome(on.wait(kj::mv(queued))), "refused: no_active_session");
  EXPECT_EQ(on.effects(), 1u);
}

TEST(Sessions, drainedWaitsForEverySessionAndForWhatIsInFlight) {
  Workbench on("waits-in-perform");
  auto first = on.open("session-1"), second = on.open("session-2");
  auto seen = on.observe(*first);
  auto answer = on.begin(*first, on.request(*first, press(seen), "op-1"));
  on.await("effect ");
  bool drained = false;
  auto waiting = on.supervisor().drained().then([&]() { drained = true; }).eagerlyEvaluate(nullptr);
  on.supervisor().leave(*first);
  on.settle();
  EXPECT_FALSE(drained);
  on.signal(on.pids()[0]);
  EXPECT_EQ(on.outcome(on.wait(kj::mv(answer))), "succeeded");
  on.settle();
  EXPECT_FALSE(drained) << "the second session is open";
  on.supervisor().leave(*second);
  on.wait(kj::mv(waiting));
  EXPECT_TRUE(drained);
}

TEST(Sessions, leavingEndsAHelperThatHangsInARead) {
  Workbench on("hangs-in-reads");
  auto session = on.open();
  auto reading = on.beginObserving(*session, on.request(*session, look(), "read"));
  on.await("observe ");
  on.supervisor().leave(*session);
  auto seen = on.wait(kj::mv(reading));
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::SERVICE_UNAVAILABLE);
  on.wait(on.supervisor().drained());
}

// KJ runs a fiber that is cancelled before it began.
TEST(Sessions, aSupervisorMayEndBeforeAnythingThatWasAskedOfItHasBegun) {
  Workbench on;
  auto session = on.open();
  auto seen = on.observe(*session);
  auto lines = on.record().size();
  auto request = on.request(*session, press(seen), "op-1");
  {
    auto acting = on.begin(*session, request);
    auto reading = on.beginObserving(*session, on.request(*session, look(), "read"));
    on.supervisor().leave(*session);
  }
  on.restart();
  EXPECT_EQ(on.record().size(), lines);
  EXPECT_EQ(on.known("op-1"), "unknown");
}

// ---- Reads -------------------------------------------------------------------------------------

TEST(Reads, aGrantIsGoodForAsManyUsesAsItSays) {
  Workbench on;
  auto session = on.open();
  auto twice = on.request(*session, look(), "read", {.uses = 2});
  EXPECT_EQ(on.observing(*session, twice), "ok");
  EXPECT_EQ(on.observing(*session, twice), "ok");
  EXPECT_EQ(on.observing(*session, twice), "grant_spent");
  EXPECT_EQ(on.count("observe "), 2u);
}

TEST(Reads, theUsesOfAGrantAreNoneInTheNextSessionOfThatNameWhichKnowsItsId) {
  Workbench on;
  auto session = on.open();
  auto twice = on.request(*session, look(), "read", {.uses = 2});
  EXPECT_EQ(on.observing(*session, twice), "ok");
  on.supervisor().close(*session);
  auto again = on.open("session-1", "turn-2");
  EXPECT_EQ(on.observing(*again, twice), "policy_denied") << "it was for that turn";
  EXPECT_EQ(on.observing(*again, on.request(*again, look(), "read")), "operation_conflict");
  EXPECT_EQ(on.observing(*again, on.request(*again, look(), "read-2")), "ok");
}

TEST(Reads, aRequestThatAsksTheWrongQuestionUsesNothingUp) {
  Workbench on;
  auto session = on.open();
  auto once = on.request(*session, look(), "read");
  EXPECT_EQ(on.listing(*session, once), "malformed");
  EXPECT_EQ(on.observing(*session, once), "ok");
}

TEST(Reads, theSameIdUnderAnotherGrantIsAConflict) {
  Workbench on;
  auto session = on.open();
  EXPECT_EQ(on.observing(*session, on.request(*session, look(), "read", {.uses = 5})), "ok");
  EXPECT_EQ(on.observing(*session, on.request(*session, look(), "read", {.uses = 5})),
            "operation_conflict");
}

TEST(Reads, aMutationsGrantIsNoReadAndAReadsGrantIsNoMutation) {
  Workbench on;
  auto session = on.open();
  auto seen = on.observe(*session);
  auto mutation = on.request(*session, press(seen), "op-1");
  EXPECT_EQ(on.observing(*session, mutation), "malformed");
  EXPECT_EQ(on.outcome(on.execute(*session, mutation)), "succeeded") << "nothing was used up";
  EXPECT_EQ(on.outcome(on.execute(*session, on.request(*session, look(), "op-2"))),
            "refused: malformed");
}

TEST(Reads, aPictureUnderAGrantForMetadataIsRefused) {
  Workbench on;
  auto session = on.open();
  auto action = look(WINDOW, true);
  auto grant = on.grantFor(*session, action, "read");
  grant.actionClass = ActionClass::METADATA_READ;
  EXPECT_EQ(on.observing(*session, on.seal(grant, action)), "policy_denied");
  EXPECT_EQ(on.count("observe "), 0u);
  EXPECT_EQ(on.helpers().starts, 0u);
}

TEST(Reads, theDesktopIsListedUnderItsOwnGrant) {
  Workbench on;
  auto session = on.open();
  auto listing = on.request(*session, survey(), "read");
  EXPECT_EQ(on.listing(*session, listing), "ok");
  EXPECT_EQ(on.observing(*session, on.request(*session, survey(), "read-2")), "malformed");
  EXPECT_EQ(on.count("list"), 1u);
}

TEST(Reads, whatTheHelperRefusesIsPassedOn) {
  Workbench on("refuses-reads");
  auto session = on.open();
  EXPECT_EQ(on.observing(*session, on.request(*session, look(), "read")), "target_missing");
  auto listing = on.request(*session, survey(), "read-2");
  EXPECT_EQ(on.listing(*session, listing), "no_display");
}

TEST(Reads, aHelperThatHangsIsEndedAtTheDeadline) {
  Workbench on("hangs-in-reads");
  auto session = on.open();
  auto reading = on.beginObserving(*session, on.request(*session, look(), "read"));
  on.await("observe ");
  on.pass(15 * kj::SECONDS);
  auto seen = on.wait(kj::mv(reading));
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::SERVICE_UNAVAILABLE);
  EXPECT_TRUE(on.ends(on.pids()[0]));
}

TEST(Reads, aFrameThatIsNotTheOneAskedForIsAMismatch) {
  Workbench on("wrong-frame");
  auto session = on.open();
  EXPECT_EQ(on.observing(*session, on.request(*session, look(), "read")), "service_mismatch");
  EXPECT_TRUE(on.ends(on.pids()[0]));
}

// A read that waited until its grant was over is refused for that, and its session's helper, which
// did nothing wrong, lives on with the frame it holds.
TEST(Reads, aReadWhoseGrantExpiredInTheQueueHarmsNobody) {
  Workbench on("waits-in-prepare");
  auto session = on.open();
  auto seen = on.observe(*session);
  auto acting = on.begin(*session, on.request(*session, press(seen), "op-1"));
  on.await("prepare ");
  auto reading =
      on.beginObserving(*session, on.request(*session, look(), "read", {.validForMs = 1'000}));
  on.pass(2 * kj::SECONDS);
  EXPECT_TRUE(on.supervisor().cancel(*session, "op-1"));
  EXPECT_EQ(on.outcome(on.wait(kj::mv(acting))), "refused: aborted");
  auto late = on.wait(kj::mv(reading));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.refusal().code, RefusalCode::TIMEOUT);
  EXPECT_TRUE(session->liveHelper() != nullptr);
}

TEST(Reads, capabilitiesNameTheHelperThatRuns) {
  Workbench on;
  auto session = on.open();
  auto answer = on.wait(on.supervisor().capabilities(*session));
  ASSERT_TRUE(answer.ok());
  auto status = answer->get();
  EXPECT_EQ(status.getIdentity().getName(), "good"_kj);
  EXPECT_EQ(status.getIdentity().getGeneration(), 1u);
  EXPECT_EQ(status.getPid(), static_cast<uint32_t>(on.pids()[0]));
  EXPECT_EQ(status.getHealth(), wire::Health::HEALTHY);
  EXPECT_EQ(status.getCapabilities().size(), 5u);
}

// ---- Starting helpers --------------------------------------------------------------------------

TEST(HelperStart, everyFieldOfTheHelloIsCompared) {
  for (std::string mode : {"wrong-name", "wrong-release", "wrong-role", "wrong-protocol",
                           "wrong-pid", "wrong-generation", "wrong-elements", "wrong-depth",
                           "wrong-text", "unknown-field-in-hello", "garbage-hello"}) {
    Workbench on(mode);
    auto session = on.open();
    auto refusal = on.observing(*session, on.request(*session, look(), "read"));
    if (mode == "garbage-hello") {
      EXPECT_TRUE(refusal == "service_mismatch" || refusal == "service_unavailable") << refusal;
    } else {
      EXPECT_EQ(refusal, "service_mismatch") << mode;
    }
    EXPECT_EQ(on.helpers().starts, 1u);
    EXPECT_TRUE(session->liveHelper() == nullptr);
    for (auto pid : on.pids()) EXPECT_TRUE(on.ends(pid)) << mode;
    EXPECT_EQ(on.count("observe "), 0u);
  }
}

TEST(HelperStart, aHelperThatExitsAtOnceIsUnavailable) {
  Workbench on("exit-at-start");
  auto session = on.open();
  EXPECT_EQ(on.observing(*session, on.request(*session, look(), "read")), "service_unavailable");
  EXPECT_EQ(on.helpers().starts, 1u);
}

TEST(HelperStart, aHelperThatSaysNothingIsEndedAfterItsTime) {
  Workbench on("silent-hello");
  auto session = on.open();
  auto reading = on.beginObserving(*session, on.request(*session, look(), "read"));
  on.await("asked");
  on.pass(bounds::HELLO);
  auto seen = on.wait(kj::mv(reading));
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::SERVICE_UNAVAILABLE);
  EXPECT_TRUE(on.ends(on.pids()[0]));
}

TEST(HelperStart, afterThreeFailedStartsTheFirstCauseIsRepeatedAndNothingIsStarted) {
  Workbench on("wrong-pid");
  auto session = on.open();
  auto ask = [&](int i) {
    return on.observing(*session, on.request(*session, look(), kj::str("read-", i)));
  };
  EXPECT_EQ(ask(1), "service_mismatch");
  on.helpers().mode = "exit-at-start";
  EXPECT_EQ(ask(2), "service_unavailable");
  EXPECT_EQ(ask(3), "service_unavailable");
  EXPECT_EQ(on.helpers().starts, bounds::STARTS);
  on.helpers().mode = "good";
  EXPECT_EQ(ask(4), "service_mismatch") << "the first cause";
  EXPECT_EQ(ask(5), "service_mismatch");
  EXPECT_EQ(on.helpers().starts, bounds::STARTS);
  auto other = on.open("session-2");
  EXPECT_EQ(on.observing(*other, on.request(*other, look(), "read-6")), "ok")
      << "each session has its own";
}

TEST(HelperStart, aStartThatSucceedsRestoresTheBudget) {
  Workbench on("wrong-pid");
  auto session = on.open();
  for (int round = 0; round < 2; ++round) {
    on.helpers().mode = "wrong-pid";
    for (int i = 0; i < 2; ++i) {
      auto request = on.request(*session, look(), kj::str("read-", round, "-", i));
      EXPECT_EQ(on.observing(*session, request), "service_mismatch");
    }
    on.helpers().mode = "good";
    on.observe(*session);
    KJ_ASSERT_NONNULL(session->liveHelper()).kill();
  }
}

TEST(HelperStart, aHelperThatWasKilledVoidsItsFramesAndTheNextReadStartsANewGeneration) {
  Workbench on;
  auto session = on.open();
  auto seen = on.observe(*session);
  kill(on.pids()[0], SIGKILL);
  ASSERT_TRUE(on.ends(on.pids()[0]));
  on.settle();
  EXPECT_EQ(on.outcome(on.execute(*session, on.request(*session, press(seen), "op-1"))),
            "refused: stale_frame");
  EXPECT_EQ(on.known("op-1"), "unknown");
  seen = on.observe(*session);
  EXPECT_EQ(session->generation(), 2u);
  auto receipt = on.receiptOf(*on.execute(*session, on.request(*session, press(seen), "op-1")));
  EXPECT_EQ(receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_EQ(receipt.helper.generation, 2u);
}

TEST(HelperStart, theImageThatWasAttestedOnceServesEveryStart) {
  Workbench on;
  auto path = on.helpers().fileOf("good");
  DesktopHelpers helpers(on.low(), on.timer, on.launcher(), on.helpers().ring(), kj::str(path));
  auto first = on.wait(helpers.startDesktopHelper());
  ASSERT_TRUE(first.ok());
  writeWhole(path, "no program any more"_kj.asBytes());
  auto second = on.wait(helpers.startDesktopHelper());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*first)->generation() + 1, (*second)->generation());
  EXPECT_EQ((*first)->identity().digest, (*second)->identity().digest);
}

TEST(HelperStart, aFileThatIsNotTheSignedOneIsNeverStarted) {
  Workbench on;
  auto path = on.helpers().fileOf("good");
  auto bytes = readWhole(path);
  bytes.back() ^= 1;
  writeWhole(path, bytes);
  DesktopHelpers helpers(on.low(), on.timer, on.launcher(), on.helpers().ring(), kj::str(path));
  auto changed = on.wait(helpers.startDesktopHelper());
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.refusal().code, RefusalCode::SERVICE_MISMATCH);
  unlink(kj::str(path, ".manifest").cStr());
  auto unsignedOne = on.wait(helpers.startDesktopHelper());
  ASSERT_FALSE(unsignedOne.ok());
  EXPECT_EQ(unsignedOne.refusal().code, RefusalCode::SERVICE_UNAVAILABLE);
  EXPECT_EQ(on.pids().size(), 0u);
}

}  // namespace
}  // namespace praefectus::test
