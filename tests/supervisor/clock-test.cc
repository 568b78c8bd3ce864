// A wall clock that jumps is not followed: nothing expired comes back, nothing valid expires by it,
// and mutations wait until it agrees again.
#include "tests/support/workbench.h"

#include <gtest/gtest.h>

namespace praefectus::test {
namespace {

using ledger::ClockMemory;
using ledger::Moment;

constexpr int64_t WALL = 1'900'000'000'000;
constexpr uint64_t BOOT = 1'000'000;
constexpr int64_t YEAR = int64_t{365} * 24 * 3600 * 1000;

// A clock that stood at WALL and BOOT when it was last seen.
struct Kept {
  explicit Kept(ClockMemory memory = {WALL, Moment{WALL, BOOT}}, int64_t wall = WALL,
                uint64_t boot = BOOT)
      : clock(wall, boot), keeper(clock, memory) {}
  void pass(int64_t ms) {
    clock.wall += ms;
    clock.boot += static_cast<uint64_t>(ms);
  }

  struct Set final : Clock {
    Set(int64_t wall, uint64_t boot) : wall(wall), boot(boot) {}
    int64_t wallMs() const override { return wall; }
    uint64_t bootMs() const override { return boot; }
    int64_t wall;
    uint64_t boot;
  };
  Set clock;
  TimeKeeper keeper;
};

ClockMemory fromEarlierBoot() { return {WALL, nullptr}; }

// ---- The keeper of time ------------------------------------------------------------------------

TEST(Time, aWallClockIsFollowedAsLongAsItIsWithinAMinuteOfTheTimeSinceBoot) {
  const std::pair<int64_t, bool> jumps[] = {{0, true},        {59'000, true},  {-59'000, true},
                                            {60'000, true},   {-60'000, true}, {60'001, false},
                                            {-60'001, false}, {61'000, false}, {-61'000, false},
                                            {YEAR, false},    {-YEAR, false}};
  for (auto& [jump, trusted] : jumps) {
    for (int64_t passed : {int64_t{0}, int64_t{5'000}, YEAR}) {
      Kept on;
      on.pass(passed);
      EXPECT_TRUE(on.keeper.trusted());
      on.clock.wall += jump;
      EXPECT_EQ(on.keeper.trusted(), trusted) << jump << " after " << passed;
      int64_t expected = WALL + passed + (trusted ? jump : 0);
      EXPECT_EQ(on.keeper.wallMs(), kj::max(expected, WALL)) << jump << " after " << passed;
    }
  }
}

TEST(Time, whileTheClockIsNotBelievedTimeGoesOnWithTheTimeSinceBoot) {
  Kept on;
  on.clock.wall += YEAR;
  EXPECT_EQ(on.keeper.wallMs(), WALL);
  on.pass(90'000);
  EXPECT_EQ(on.keeper.wallMs(), WALL + 90'000);
  EXPECT_FALSE(on.keeper.trusted());
}

TEST(Time, aClockThatAgreesAgainIsBelievedAtOnce) {
  Kept on;
  on.clock.wall += YEAR;
  on.pass(90'000);
  EXPECT_FALSE(on.keeper.trusted());
  on.clock.wall -= YEAR;
  EXPECT_TRUE(on.keeper.trusted());
  EXPECT_EQ(on.keeper.wallMs(), WALL + 90'000);
}

TEST(Time, neverGoesBackwards) {
  Kept on;
  int64_t before = 0;
  for (int64_t jump : std::initializer_list<int64_t>{30'000, -30'000, 59'000, -59'000, 61'000,
                                                     -61'000, YEAR, -YEAR}) {
    on.clock.wall += jump;
    on.clock.boot += 1;
    int64_t now = on.keeper.wallMs();
    EXPECT_GE(now, before) << jump;
    before = now;
  }
}

TEST(Time, jumpsThatAreSmallEachDoNotAddUp) {
  Kept on;
  bool trusted = true;
  for (int i = 0; i < 3; ++i) {
    on.clock.wall += 59'000;
    trusted = on.keeper.trusted();
  }
  EXPECT_FALSE(trusted);
}

TEST(Time, afterAnotherBootTheClockMayBeLaterButNotEarlierThanWhatIsOnRecord) {
  const std::pair<int64_t, bool> starts[] = {
      {0, true}, {YEAR, true}, {-60'000, true}, {-60'001, false}, {-YEAR, false}};
  for (auto& [ahead, trusted] : starts) {
    Kept on(fromEarlierBoot(), WALL + ahead, 7);
    EXPECT_EQ(on.keeper.trusted(), trusted) << ahead;
    EXPECT_GE(on.keeper.wallMs(), WALL) << ahead;
  }
}

TEST(Time, afterAnotherBootTheFirstAgreementIsWhatTheClockIsHeldAgainst) {
  Kept on(fromEarlierBoot(), WALL + YEAR, 7);
  EXPECT_TRUE(on.keeper.trusted());
  on.clock.wall += 60'001;
  EXPECT_FALSE(on.keeper.trusted());
  EXPECT_EQ(on.keeper.wallMs(), WALL + YEAR);
}

TEST(Time, aClockThatWasBehindAtTheStartIsBelievedWhenItHasCaughtUp) {
  Kept on(fromEarlierBoot(), WALL - YEAR, 7);
  EXPECT_FALSE(on.keeper.trusted());
  on.clock.wall += YEAR;
  EXPECT_TRUE(on.keeper.trusted());
  EXPECT_EQ(on.keeper.wallMs(), WALL);
}

// Or nothing that was signed would ever end.
TEST(Time, afterAnotherBootTimeGoesOnAlsoWhileTheClockIsBehindWhatIsOnRecord) {
  Kept on(fromEarlierBoot(), WALL - YEAR, 7);
  EXPECT_EQ(on.keeper.wallMs(), WALL);
  on.pass(3'600'000);
  EXPECT_EQ(on.keeper.wallMs(), WALL + 3'600'000);
  on.pass(1);
  EXPECT_FALSE(on.keeper.trusted());
  EXPECT_EQ(on.keeper.wallMs(), WALL + 3'600'001);
  on.clock.wall = WALL + 3'600'001 - 60'001;
  EXPECT_FALSE(on.keeper.trusted()) << "later than the record, and behind what has passed since";
  on.clock.wall = WALL + 3'600'001 - 60'000;
  EXPECT_TRUE(on.keeper.trusted());
  EXPECT_EQ(on.keeper.wallMs(), WALL + 3'600'001) << "never backwards";
  on.pass(60'001);
  EXPECT_EQ(on.keeper.wallMs(), WALL + 3'600'002) << "by the wall clock again";
  on.clock.wall += 60'001;
  EXPECT_FALSE(on.keeper.trusted()) << "held against the first agreement";
}

// ---- What the supervisor does with it ----------------------------------------------------------

TEST(ClockJump, mutationsWaitAndReadsAreServedUntilTheClockAgreesAgain) {
  for (int64_t jump : {int64_t{60'001}, int64_t{-60'001}, YEAR, -YEAR}) {
    Ready on;
    auto request = on.pressing("op-1"), ask = on.request(*on.session, survey(), "list");
    on.clock.wall += jump;
    EXPECT_FALSE(on.supervisor().clockTrusted());
    EXPECT_EQ(on.outcome(on.run(request)), "refused: clock_untrusted") << jump;
    EXPECT_EQ(on.count("prepare "), 0u);
    EXPECT_EQ(on.known("op-1"), "unknown");
    EXPECT_EQ(on.listing(*on.session, ask), "ok") << jump;
    on.clock.wall -= jump;
    EXPECT_TRUE(on.supervisor().clockTrusted());
    EXPECT_EQ(on.outcome(on.run(request)), "succeeded") << jump;
  }
}

TEST(ClockJump, upToAMinuteIsNoJump) {
  for (int64_t jump : {59'000ll, -59'000ll}) {
    Ready on;
    auto request = on.pressing("op-1");
    on.clock.wall += jump;
    EXPECT_TRUE(on.supervisor().clockTrusted());
    EXPECT_EQ(on.outcome(on.run(request)), "succeeded") << jump;
  }
}

TEST(ClockJump, oneBetweenClaimAndPerformEndsAsRejectedAndNothingIsSent) {
  for (int64_t jump : {60'001ll, -60'001ll}) {
    Ready on;
    auto answer = on.run(on.pressing("op-1"), [&](wire::Stage stage) {
      if (stage == wire::Stage::CLAIMED) on.clock.wall += jump;
    });
    auto receipt = on.receiptOf(*answer);
    EXPECT_EQ(receipt.terminal, Terminal::REJECTED);
    EXPECT_EQ(KJ_ASSERT_NONNULL(receipt.refusal), RefusalCode::CLOCK_UNTRUSTED);
    EXPECT_TRUE(receipt.retrySafe);
    EXPECT_EQ(on.effects(), 0u);
  }
}

TEST(ClockJump, anExpiredGrantDoesNotComeBackWithTheClock) {
  Ready on;
  auto request = on.pressing("op-1", {.validForMs = 10'000});
  on.pass(10 * kj::SECONDS);
  EXPECT_EQ(on.outcome(on.run(request)), "refused: policy_denied");
  on.clock.wall -= 30'000;
  EXPECT_EQ(on.outcome(on.run(request)), "refused: policy_denied");
  on.clock.wall -= YEAR;
  EXPECT_EQ(on.outcome(on.run(request)), "refused: policy_denied");
  EXPECT_EQ(on.effects(), 0u);
}

TEST(ClockJump, aRecordedAnswerIsGivenWhateverTheClockSays) {
  Ready on;
  auto request = on.pressing("op-1");
  on.run(request);
  on.clock.wall -= YEAR;
  EXPECT_TRUE(on.run(request)->replayed);
}

TEST(ClockJump, theNextSupervisorRemembersWhatTimeItWas) {
  Ready on;
  on.run(on.pressing("op-1"));
  on.clock.wall -= YEAR;
  on.restart();
  EXPECT_FALSE(on.supervisor().clockTrusted());
  auto later = on.open("session-1", "turn-2");
  on.clock.wall += YEAR;  // Signed by a host whose clock is right.
  auto lease = on.leaseFor(*later, EVERYTHING, "lease-later");
  auto reading = on.request(*later, look(), "look");
  on.clock.wall -= YEAR;
  ASSERT_EQ(on.lease(*later, lease), "ok");
  on.leasing = false;
  EXPECT_EQ(on.observing(*later, reading), "ok");
  on.clock.wall += YEAR;
  auto seen = on.observe(*later);
  auto request = on.request(*later, press(seen), "op-2");
  on.clock.wall -= YEAR;
  EXPECT_EQ(on.outcome(on.execute(*later, request)), "refused: clock_untrusted");
  on.clock.wall += YEAR;
  EXPECT_EQ(on.outcome(on.execute(*later, request)), "succeeded");
}

}  // namespace
}  // namespace praefectus::test
