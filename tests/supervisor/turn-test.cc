// Turns, and the person's stop of one. Nothing is read or done outside a turn; what was not sent
// when it ends is never sent.
#include "tests/support/workbench.h"

#include "ipc/bounds.h"

#include <gtest/gtest.h>

namespace praefectus::test {
namespace {

std::string beginning(Workbench& on, Session& session, kj::StringPtr turn) {
  auto begun = on.supervisor().beginTurn(session, kj::str(turn));
  return begun.ok() ? "ok" : nameOf(begun.refusal().code).cStr();
}

std::string looking(Ready& on, kj::StringPtr id) {
  return on.observing(*on.session, on.request(*on.session, look(), id));
}

// ---- Turns -------------------------------------------------------------------------------------

TEST(Turn, beforeTheFirstOneNothingIsReadOrDone) {
  Workbench on;
  auto opened = on.supervisor().open(kj::str("session-1"));
  ASSERT_TRUE(opened.ok());
  auto& session = **opened;
  auto other = on.open("session-2");  // Names the turn that the requests are signed for.
  auto signedFor = [&](const Action& action, kj::StringPtr id) {
    auto grant = on.grantFor(*other, action, id);
    grant.session = kj::str("session-1");
    return on.seal(grant, action);
  };
  EXPECT_EQ(on.observing(session, signedFor(look(), "look")), "no_active_turn");
  EXPECT_EQ(on.listing(session, signedFor(survey(), "list")), "no_active_turn");
  EXPECT_EQ(on.outcome(on.execute(session, signedFor(launching("app"), "op-1"))),
            "refused: no_active_turn");
  auto lease = on.leaseFor(*other, EVERYTHING, "lease-1");
  lease.session = kj::str("session-1");
  EXPECT_EQ(on.lease(session, lease), "no_active_turn");
  EXPECT_EQ(on.helpers().starts, 0u);
  EXPECT_EQ(on.known("op-1"), "unknown");
}

TEST(Turn, capabilitiesNeedNone) {
  Workbench on;
  auto session = on.supervisor().open(kj::str("session-1"));
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE(on.wait(on.supervisor().capabilities(**session)).ok());
}

TEST(Turn, betweenTwoTurnsNothingIsReadOrDone) {
  Ready on;
  auto pressing = on.pressing("op-1"), looks = on.request(*on.session, look(), "look");
  on.supervisor().endTurn(*on.session);
  on.supervisor().endTurn(*on.session);  // Idempotent.
  EXPECT_EQ(on.outcome(on.run(pressing)), "refused: no_active_turn");
  EXPECT_EQ(on.observing(*on.session, looks), "no_active_turn");
  EXPECT_EQ(on.known("op-1"), "unknown");
}

TEST(Turn, aTurnBeginsOnceInASession) {
  Ready on;
  EXPECT_EQ(beginning(on, *on.session, "turn-1"), "operation_conflict") << "while it is active";
  EXPECT_EQ(looking(on, "look-1"), "ok") << "and it goes on";
  on.supervisor().endTurn(*on.session);
  EXPECT_EQ(beginning(on, *on.session, "turn-1"), "operation_conflict") << "after its end";
  EXPECT_EQ(beginning(on, *on.session, "turn-2"), "ok");
  EXPECT_EQ(beginning(on, *on.session, "turn-1"), "operation_conflict") << "in a later one";
  EXPECT_EQ(looking(on, "look-2"), "ok");
  auto other = on.open("session-2");
  EXPECT_EQ(beginning(on, *other, "turn-2"), "ok") << "sessions count by themselves";
}

TEST(Turn, aTurnBeginsOnceAlsoInTheNextSessionOfTheSameName) {
  for (bool left : {false, true}) {
    Ready on;
    left ? on.supervisor().leave(*on.session) : on.supervisor().close(*on.session);
    auto again = on.supervisor().open(kj::str("session-1"));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(beginning(on, **again, "turn-1"), "operation_conflict");
    EXPECT_TRUE((*again)->turn() == nullptr);
    EXPECT_EQ(beginning(on, **again, "turn-2"), "ok");
  }
}

TEST(Turn, thereAreManyInASupervisorAndTheNextIsBusy) {
  Workbench on;
  auto session = on.open("session-1", "t-0"), other = on.open("session-2", "t-0");
  for (size_t i = 2; i < bounds::TURNS; ++i) {
    ASSERT_EQ(beginning(on, *session, kj::str("t-", i)), "ok");
  }
  EXPECT_EQ(beginning(on, *session, "one-more"), "busy");
  EXPECT_EQ(beginning(on, *other, "one-more"), "busy");
  EXPECT_EQ(beginning(on, *session, "t-0"), "operation_conflict");
}

TEST(Turn, oneThatCannotBeginLeavesThePresentOneAndWhatIsInFlightAlone) {
  for (auto name : {"turn-1"_kj, "not an identifier"_kj, "stopped"_kj}) {
    Ready on("waits-in-prepare");
    on.supervisor().stop("session-1", "stopped");
    auto answer = on.begin(*on.session, on.pressing("op-1"));
    on.await("prepare ");
    EXPECT_NE(beginning(on, *on.session, name), "ok");
    on.signal(on.pids()[0]);
    EXPECT_EQ(on.outcome(on.wait(kj::mv(answer))), "succeeded") << name.cStr();
  }
}

TEST(Turn, aClosedSessionBeginsNone) {
  Ready on;
  on.supervisor().close(*on.session);
  EXPECT_EQ(beginning(on, *on.session, "turn-2"), "no_active_session");
}

TEST(Turn, aGrantOfAnotherTurnIsRefusedInItsOwnTime) {
  Ready on;
  auto ofTheFirst = on.pressing("op-1"), looks = on.request(*on.session, look(), "look");
  ASSERT_EQ(beginning(on, *on.session, "turn-2"), "ok");
  EXPECT_EQ(on.outcome(on.run(ofTheFirst)), "refused: policy_denied");
  EXPECT_EQ(on.observing(*on.session, looks), "policy_denied");
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "succeeded") << "the id was not used up";
}

TEST(Turn, whatWasRecordedInOneIsAnsweredInTheNextAndInNone) {
  Ready on;
  auto request = on.pressing("op-1");
  on.run(request);
  on.supervisor().endTurn(*on.session);
  EXPECT_TRUE(on.run(request)->replayed);
  ASSERT_EQ(beginning(on, *on.session, "turn-2"), "ok");
  EXPECT_TRUE(on.run(request)->replayed);
}

TEST(Turn, itsEndWithdrawsWhatIsInFlightWhereverItIs) {
  Ready on("waits-in-prepare");
  auto first = on.begin(*on.session, on.pressing("op-1"));
  auto queued = on.begin(*on.session, on.pressing("op-2"));
  auto reading = on.beginObserving(*on.session, on.request(*on.session, look(), "look"));
  on.await("prepare ");
  on.supervisor().endTurn(*on.session);
  EXPECT_EQ(on.outcome(on.wait(kj::mv(first))), "refused: aborted");
  EXPECT_EQ(on.outcome(on.wait(kj::mv(queued))), "refused: aborted");
  auto seen = on.wait(kj::mv(reading));
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::NO_ACTIVE_TURN);
  EXPECT_EQ(on.count("prepare "), 1u);
  EXPECT_EQ(on.count("observe "), 1u);
  EXPECT_EQ(on.effects(), 0u);
}

TEST(Turn, whatWasSentWhenItEndedIsUnknownAndTheNextTurnHasToObserve) {
  Ready on("waits-in-perform");
  auto answer = on.begin(*on.session, on.pressing("op-1"));
  on.await("effect ");
  ASSERT_EQ(beginning(on, *on.session, "turn-2"), "ok");
  on.signal(on.pids()[0]);
  EXPECT_EQ(on.outcome(on.wait(kj::mv(answer))), "outcome_unknown");
  EXPECT_EQ(on.next(), "refused: reobserve_required");
}

// ---- Stop --------------------------------------------------------------------------------------

TEST(Stop, aTurnThatWasStoppedBeforeItBeganNeverBegins) {
  Workbench on;
  on.supervisor().stop("session-1", "turn-1");
  auto session = on.supervisor().open(kj::str("session-1"));
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(beginning(on, **session, "turn-1"), "user_stopped");
  EXPECT_EQ(beginning(on, **session, "turn-1"), "user_stopped");
  EXPECT_EQ(beginning(on, **session, "turn-2"), "ok");
}

TEST(Stop, anActiveTurnDoesNothingMore) {
  Ready on;
  auto request = on.pressing("op-1");
  on.supervisor().stop("session-1", "turn-1");
  EXPECT_EQ(on.outcome(on.run(request)), "refused: user_stopped");
  EXPECT_EQ(looking(on, "look"), "user_stopped");
  EXPECT_EQ(on.listing(*on.session, on.request(*on.session, survey(), "list")), "user_stopped");
  EXPECT_EQ(on.lease(*on.session, on.leaseFor(*on.session, EVERYTHING, "l-2")), "user_stopped");
  EXPECT_EQ(on.count("prepare "), 0u);
  EXPECT_EQ(on.known("op-1"), "unknown");
}

TEST(Stop, anotherTurnMayBegin) {
  Ready on;
  on.supervisor().stop("session-1", "turn-1");
  ASSERT_EQ(beginning(on, *on.session, "turn-2"), "ok");
  EXPECT_EQ(on.next(), "succeeded");
  on.supervisor().endTurn(*on.session);
  EXPECT_EQ(beginning(on, *on.session, "turn-1"), "user_stopped");
}

TEST(Stop, whatIsQueuedOrPreparedIsNotSent) {
  Ready on("waits-in-prepare");
  auto first = on.begin(*on.session, on.pressing("op-1"));
  auto queued = on.begin(*on.session, on.pressing("op-2"));
  auto reading = on.beginObserving(*on.session, on.request(*on.session, look(), "look"));
  on.await("prepare ");
  on.supervisor().stop("session-1", "turn-1");
  EXPECT_EQ(on.outcome(on.wait(kj::mv(first))), "refused: user_stopped");
  EXPECT_EQ(on.outcome(on.wait(kj::mv(queued))), "refused: user_stopped");
  auto seen = on.wait(kj::mv(reading));
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::USER_STOPPED);
  EXPECT_EQ(on.count("prepare "), 1u);
  EXPECT_EQ(on.count("observe "), 1u);
  EXPECT_EQ(on.effects(), 0u);
  EXPECT_EQ(on.known("op-1"), "unknown");
}

TEST(Stop, whatIsClaimedAndNotSentEndsAsCancelled) {
  Ready on;
  auto answer = on.run(on.pressing("op-1"), [&](wire::Stage stage) {
    if (stage == wire::Stage::CLAIMED) on.supervisor().stop("session-1", "turn-1");
  });
  EXPECT_EQ(on.outcome(answer), "cancelled_before_effect");
  EXPECT_EQ(on.effects(), 0u);
}

TEST(Stop, whatWasSentGoesOnAndIsUnknown) {
  Ready on("waits-in-perform");
  auto answer = on.begin(*on.session, on.pressing("op-1"));
  on.await("effect ");
  on.supervisor().stop("session-1", "turn-1");
  on.signal(on.pids()[0]);
  auto done = on.wait(kj::mv(answer));
  EXPECT_EQ(on.outcome(done), "outcome_unknown");
  EXPECT_TRUE(done->fresh.is<Done>()) << "and nobody looks after it";
  EXPECT_EQ(on.effects(), 1u);
  EXPECT_EQ(on.count("observe "), 1u);
}

TEST(Stop, otherSessionsAndOtherTurnsAreNotTouched) {
  Ready on;
  auto other = on.open("session-2");
  auto seen = on.observe(*other, OTHER_WINDOW);
  on.supervisor().stop("session-1", "turn-2");
  on.supervisor().stop("session-2", "turn-2");
  on.supervisor().stop("session-3", "turn-1");
  EXPECT_EQ(on.next(), "succeeded");
  on.supervisor().stop("session-1", "turn-1");
  EXPECT_EQ(on.outcome(on.execute(*other, on.request(*other, press(seen), "op-2"))), "succeeded");
}

TEST(Stop, namesThatNothingCanHaveAreIgnored) {
  Ready on;
  on.supervisor().stop("", "turn-1");
  on.supervisor().stop("session-1", "");
  on.supervisor().stop("session-1 turn-1", "x");
  EXPECT_EQ(on.next(), "succeeded");
}

TEST(Stop, whenNoMoreCanBeRememberedEveryTurnIsStopped) {
  Ready on;
  for (size_t i = 0; i < bounds::STOPS - 1; ++i) on.supervisor().stop("other", kj::str("t-", i));
  EXPECT_EQ(looking(on, "look-1"), "ok");
  on.supervisor().stop("other", "one-more");
  EXPECT_EQ(looking(on, "look-2"), "user_stopped");
  EXPECT_EQ(beginning(on, *on.session, "turn-2"), "user_stopped");
}

}  // namespace
}  // namespace praefectus::test
