// Whatever can end an operation, at every point of its itinerary: what the host is told, what the
// ledger remembers, how often the effect happened, and whether the id can be used again.
//
// Between two awaited steps the supervisor does not give the loop away, so nothing can come in
// between: the points here are all there are. That the helper's facts have arrived and its ending
// is not yet being written is no point of its own for that reason.
#include "tests/support/workbench.h"

#include <gtest/gtest.h>

namespace praefectus::test {
namespace {

enum class Cause : uint8_t {
  CANCEL,
  CANCEL_AFTER_DEADLINE,
  END_OF_TURN,
  NEXT_TURN,
  CLOSE,
  STOP,
  DEADLINE,
  OPERATION_REVOKED,
  LEASE_REVOKED,
  TURN_REVOKED,
  POLICY_RAISED,
  LEASE_EXPIRES,
  CLOCK_JUMPS,
  HELPER_DIES,
};

enum class Point : uint8_t {
  QUEUED,            // Behind another session's operation on the same window.
  IN_ADMISSION,      // While the right to the desktop is taken.
  IN_PREPARE,        // The helper has been asked to prepare.
  PREPARED,          // It has answered, and the claim is about to be written.
  CLAIM_IN_WRITING,  // The claim is on its way to the disk.
  CLAIMED,           // It is durable.
  IN_PERFORM,        // The effect has happened, its facts are awaited.
  ENDING_IN_WRITING  // They have arrived, and the ending is on its way to the disk.
};

constexpr const char* CAUSES[] = {"cancellation", "cancellationAfterTheDeadline",
                                  "endOfTurn",    "nextTurn",
                                  "close",        "stop",
                                  "deadline",     "revocation",
                                  "leaseRevoked", "turnRevoked",
                                  "policyRaised", "leaseExpires",
                                  "clockJumps",   "helperDies"};
constexpr const char* POINTS[] = {"queued",         "inAdmission", "inPrepare", "prepared",
                                  "claimInWriting", "claimed",     "inPerform", "endingInWriting"};

// The ending of an operation that was claimed and not sent.
const char* endedUnsent(Cause cause) {
  switch (cause) {
    case Cause::CANCEL:
    case Cause::CANCEL_AFTER_DEADLINE:
    case Cause::END_OF_TURN:
    case Cause::NEXT_TURN:
    case Cause::CLOSE:
    case Cause::STOP:
      return "cancelled_before_effect";
    case Cause::DEADLINE:
      return "expired_before_effect";
    case Cause::OPERATION_REVOKED:
    case Cause::LEASE_REVOKED:
    case Cause::TURN_REVOKED:
    case Cause::POLICY_RAISED:
    case Cause::LEASE_EXPIRES:
    case Cause::CLOCK_JUMPS:
      return "rejected";
    case Cause::HELPER_DIES:
      return "failed";
  }
  return "";
}

// Why an operation that was claimed and not sent was rejected or failed; nothing for the others.
std::string reasonUnsent(Cause cause) {
  switch (cause) {
    case Cause::OPERATION_REVOKED:
    case Cause::LEASE_REVOKED:
    case Cause::TURN_REVOKED:
    case Cause::POLICY_RAISED:
      return "revoked";
    case Cause::LEASE_EXPIRES:
      return "lease_missing";
    case Cause::CLOCK_JUMPS:
      return "clock_untrusted";
    case Cause::HELPER_DIES:
      return "service_unavailable";
    default:
      return "";
  }
}

// What an operation that was not claimed is refused with.
std::string refusedAt(Point point, Cause cause) {
  switch (cause) {
    case Cause::CANCEL:
    case Cause::CANCEL_AFTER_DEADLINE:
    case Cause::END_OF_TURN:
    case Cause::NEXT_TURN:
    case Cause::CLOSE:
      return "aborted";
    case Cause::STOP:
      return "user_stopped";
    case Cause::DEADLINE:
      return "timeout";
    case Cause::HELPER_DIES:
      // Its leases end with it, and so do its frames.
      if (point == Point::QUEUED) return "lease_missing";
      if (point == Point::IN_ADMISSION) return "stale_frame";
      return "service_unavailable";
    default:
      return reasonUnsent(cause);
  }
}

// The ending of an operation whose effect was sent before the cause came. What only says whether
// something may be sent has no part in it.
const char* endedSent(Cause cause) {
  switch (cause) {
    case Cause::LEASE_EXPIRES:
    case Cause::CLOCK_JUMPS:
      return "succeeded";
    default:
      return "outcome_unknown";
  }
}

const char* modeFor(Point point) {
  if (point == Point::IN_PREPARE) return "waits-in-prepare";
  if (point == Point::IN_PERFORM) return "waits-in-perform";
  return "good";
}

constexpr Terms TERMS = {.timeoutMs = 5'000};
constexpr int64_t LEASE_MS = 3'000;  // Of the operation's own lease, when it is to expire.

// One operation on its way, and what comes upon it.
struct Course {
  Course(Cause cause, Point point) : cause(cause), point(point), on(modeFor(point)) {
    on.leasing = false;
    on.session->leases.closeAll();
    auto life = cause == Cause::LEASE_EXPIRES ? LEASE_MS : 60'000;
    EXPECT_EQ(on.lease(*on.session, on.leaseFor(*on.session, EVERYTHING, "lease", life)), "ok");
  }

  void revoke(kj::OneOf<attest::RevokedOperation, attest::RevokedLease, attest::RevokedTurn,
                        attest::RevokedGeneration>
                  what) {
    attest::Revocation revocation;
    revocation.revocation = kj::str("revocation-1");
    revocation.what = kj::mv(what);
    // The ledger may be held up by the test; what is revoked counts at once.
    revoking = on.supervisor().revoke(on.seal(kj::mv(revocation))).eagerlyEvaluate(nullptr);
  }

  void passUnnoticed(int64_t ms) {
    on.clock.wall += ms;
    on.clock.boot += static_cast<uint64_t>(ms);
  }

  void strike() {
    struck = true;
    switch (cause) {
      case Cause::CANCEL:
        EXPECT_EQ(on.supervisor().cancel(*on.session, "op-1"), true);
        return;
      case Cause::CANCEL_AFTER_DEADLINE:
        passUnnoticed(TERMS.timeoutMs);
        EXPECT_EQ(on.supervisor().cancel(*on.session, "op-1"), true);
        return;
      case Cause::END_OF_TURN:
        return on.supervisor().endTurn(*on.session);
      case Cause::NEXT_TURN:
        EXPECT_TRUE(on.supervisor().beginTurn(*on.session, kj::str("turn-2")).ok());
        return;
      case Cause::CLOSE:
        return on.supervisor().close(*on.session);
      case Cause::STOP:
        return on.supervisor().stop("session-1", "turn-1");
      case Cause::DEADLINE:
        return passUnnoticed(TERMS.timeoutMs);
      case Cause::OPERATION_REVOKED:
        return revoke(attest::RevokedOperation{kj::str("op-1")});
      case Cause::LEASE_REVOKED:
        return revoke(attest::RevokedLease{kj::str("lease")});
      case Cause::TURN_REVOKED:
        return revoke(attest::RevokedTurn{kj::str("session-1"), kj::str("turn-1")});
      case Cause::POLICY_RAISED:
        return revoke(attest::RevokedGeneration{2});
      case Cause::LEASE_EXPIRES:
        return passUnnoticed(LEASE_MS);
      case Cause::CLOCK_JUMPS:
        on.clock.wall += 60'001;
        return;
      case Cause::HELPER_DIES:
        // From within the loop nobody can wait for it to be noticed.
        KJ_ASSERT_NONNULL(on.session->liveHelper()).kill();
        return;
    }
  }

  // Runs the operation to its end, with the cause at the point.
  kj::Own<Answer> run(const Request& request) {
    switch (point) {
      case Point::QUEUED:
        return runQueued(request);
      case Point::IN_ADMISSION:
        on.actor.onHold = [this]() {
          if (!struck) strike();
        };
        return on.run(request);
      case Point::IN_PREPARE:
        return runAwaiting(request, "prepare ");
      case Point::IN_PERFORM:
        return runAwaiting(request, "effect ");
      case Point::PREPARED:
        return on.run(request, strikeAt(wire::Stage::PREPARED));
      case Point::CLAIMED:
        return on.run(request, strikeAt(wire::Stage::CLAIMED));
      case Point::CLAIM_IN_WRITING:
        return runHolding(request, wire::Stage::PREPARED);
      case Point::ENDING_IN_WRITING:
        return runHolding(request, wire::Stage::CLAIMED);
    }
    KJ_UNREACHABLE;
  }

  kj::Own<Answer> runQueued(const Request& request) {
    on.helpers().mode = "waits-in-prepare";
    auto other = on.open("session-2");
    EXPECT_EQ(on.lease(*other, on.leaseFor(*other, EVERYTHING, "other-lease")), "ok");
    auto seen = on.observe(*other);
    auto first = on.begin(*other, on.request(*other, press(seen, "first"), "op-0"));
    on.await("prepare first");
    auto second = on.begin(*on.session, request);
    on.settle();
    strike();
    on.signal(on.pids()[1]);
    on.wait(kj::mv(first));
    return on.wait(kj::mv(second));
  }

  kj::Own<Answer> runAwaiting(const Request& request, const char* line) {
    auto answer = on.begin(*on.session, request);
    on.await(line);
    strike();
    if (cause != Cause::HELPER_DIES) on.signal(on.pids()[0]);
    return on.wait(kj::mv(answer));
  }

  OnStage strikeAt(wire::Stage at) {
    return [this, at](wire::Stage stage) {
      if (stage == at) strike();
    };
  }

  // The write that comes after this stage is held back meanwhile.
  kj::Own<Answer> runHolding(const Request& request, wire::Stage stage) {
    auto answer = on.begin(*on.session, request, [this, stage](wire::Stage reached) {
      if (reached == stage) disk.arm(Fault::HOLD, 1);
    });
    answer = answer.eagerlyEvaluate(nullptr);
    while (!disk.isHeld()) on.settle();
    strike();
    on.settle();
    disk.release();
    return on.wait(kj::mv(answer));
  }

  void expectSameAgain(const Request& request, const Answer& first) {
    auto lines = on.count("prepare ");
    auto again = on.run(request);
    ASSERT_TRUE(again->refusal == nullptr);
    EXPECT_TRUE(again->replayed);
    EXPECT_EQ(again->receipt.body, first.receipt.body);
    EXPECT_EQ(on.count("prepare "), lines);
  }

  const Cause cause;
  const Point point;
  FaultyVfs disk;  // Before the ledger is opened.
  Ready on;
  bool struck = false;
  kj::Promise<Result<Done>> revoking = Result<Done>(Done());
};

void expectRefused(Course& course, const Answer& answer) {
  auto& on = course.on;
  EXPECT_EQ(on.outcome(answer), "refused: " + refusedAt(course.point, course.cause));
  EXPECT_EQ(on.known("op-1"), "unknown") << "the id can be used again";
  EXPECT_EQ(on.count("effect op-1"), 0u);
  EXPECT_EQ(on.count("prepare op-1"), course.point < Point::IN_PREPARE ? 0u : 1u);
}

void expectEndedUnsent(Course& course, const attest::Receipt& receipt) {
  EXPECT_STREQ(nameOf(receipt.terminal).cStr(), endedUnsent(course.cause));
  std::string reason;
  KJ_IF_MAYBE (code, receipt.refusal) reason = nameOf(*code).cStr();
  EXPECT_EQ(reason, reasonUnsent(course.cause));
  EXPECT_EQ(receipt.effect, Effect::NONE);
  EXPECT_EQ(receipt.route, Route::NONE);
  EXPECT_TRUE(receipt.retrySafe);
  EXPECT_GT(receipt.claimedAt, 0);
  EXPECT_EQ(course.on.count("effect op-1"), 0u);
}

void expectEndedSent(Course& course, const attest::Receipt& receipt) {
  bool judged = course.point == Point::ENDING_IN_WRITING;
  EXPECT_STREQ(nameOf(receipt.terminal).cStr(), judged ? "succeeded" : endedSent(course.cause));
  EXPECT_FALSE(receipt.retrySafe);
  EXPECT_EQ(course.on.count("effect op-1"), 1u);
}

class Points : public testing::TestWithParam<std::tuple<Cause, Point>> {};

TEST_P(Points, anOperationEndsAsItMust) {
  auto [cause, point] = GetParam();
  Course course(cause, point);
  auto& on = course.on;
  auto request = on.pressing("op-1", TERMS);
  auto answer = course.run(request);
  ASSERT_TRUE(course.struck);
  EXPECT_TRUE(on.wait(kj::mv(course.revoking)).ok());
  if (point < Point::PREPARED) return expectRefused(course, *answer);

  auto receipt = on.receiptOf(*answer);
  if (point < Point::IN_PERFORM) {
    expectEndedUnsent(course, receipt);
  } else {
    expectEndedSent(course, receipt);
  }
  EXPECT_EQ(on.known("op-1"), on.outcome(answer)) << "on record, and the id is used up";
  course.expectSameAgain(request, *answer);
}

constexpr Cause EVERY_CAUSE[] = {Cause::CANCEL,        Cause::CANCEL_AFTER_DEADLINE,
                                 Cause::END_OF_TURN,   Cause::NEXT_TURN,
                                 Cause::CLOSE,         Cause::STOP,
                                 Cause::DEADLINE,      Cause::OPERATION_REVOKED,
                                 Cause::LEASE_REVOKED, Cause::TURN_REVOKED,
                                 Cause::POLICY_RAISED, Cause::LEASE_EXPIRES,
                                 Cause::CLOCK_JUMPS,   Cause::HELPER_DIES};
constexpr Point EVERY_POINT[] = {Point::QUEUED,     Point::IN_ADMISSION,     Point::IN_PREPARE,
                                 Point::PREPARED,   Point::CLAIM_IN_WRITING, Point::CLAIMED,
                                 Point::IN_PERFORM, Point::ENDING_IN_WRITING};

std::string nameOfCase(const testing::TestParamInfo<std::tuple<Cause, Point>>& of) {
  auto [cause, point] = of.param;
  return std::string(CAUSES[static_cast<size_t>(cause)]) + "_" + POINTS[static_cast<size_t>(point)];
}

INSTANTIATE_TEST_SUITE_P(Itinerary, Points,
                         testing::Combine(testing::ValuesIn(EVERY_CAUSE),
                                          testing::ValuesIn(EVERY_POINT)),
                         nameOfCase);

}  // namespace
}  // namespace praefectus::test
