// Many that race for one operation id, ten thousand times: one dispatch each, counted where it
// arrives. Nearly all of the time goes into 640,000 signatures, so the rounds are cut in parts,
// which a run of all tests spreads over the cores.
#include "tests/support/workbench.h"

#include "ipc/bounds.h"

#include <gtest/gtest.h>

#include <set>

namespace praefectus::test {
namespace {

constexpr size_t SUBMITTERS = 64;
constexpr size_t ROUNDS = 10'000, PARTS = 8;

using Answers = kj::Array<kj::Own<Answer>>;

// The loop turns between submissions, at other places in each round: some come together, some while
// the first is prepared, claimed, performed or has ended.
template <typename Pick>
Answers race(Ready& on, size_t round, Pick&& pick) {
  auto answers = kj::heapArrayBuilder<kj::Promise<kj::Own<Answer>>>(SUBMITTERS);
  const size_t stride = 1 + round % SUBMITTERS;
  for (size_t i = 0; i < SUBMITTERS; ++i) {
    answers.add(on.begin(*on.session, pick(i)));
    if ((i + 1) % stride == 0) on.poll();
  }
  return on.wait(kj::joinPromises(answers.finish()));
}

// The one answer that was not a replay; all others have its receipt.
Answer& winnerOf(Answers& answers) {
  Answer* winner = nullptr;
  for (auto& answer : answers) {
    KJ_REQUIRE(answer->refusal == nullptr);
    if (answer->replayed) continue;
    KJ_REQUIRE(winner == nullptr, "two were dispatched");
    winner = answer.get();
  }
  KJ_REQUIRE(winner != nullptr, "none was dispatched");
  for (auto& answer : answers) KJ_REQUIRE(answer->receipt.body == winner->receipt.body);
  return *winner;
}

void lookAnew(Ready& on, const Answer& winner) {
  on.seen = read(winner.fresh.get<ObservationHeld>().get());
}

// Every operation of that many rounds was prepared once and had its effect once.
void expectOnceEach(const Workbench& on, size_t rounds) {
  std::set<std::string> effects, prepares;
  size_t lines = 0;
  for (auto& line : on.record()) {
    bool effect = line.starts_with("effect "), prepare = line.starts_with("prepare ");
    if (effect) effects.insert(line);
    if (prepare) prepares.insert(line);
    if (effect || prepare) ++lines;
  }
  EXPECT_EQ(effects.size(), rounds);
  EXPECT_EQ(prepares.size(), rounds);
  EXPECT_EQ(lines, 2 * rounds);
}

class Race : public testing::TestWithParam<size_t> {};

TEST_P(Race, sixtyFourForOneIdAreOneDispatchInEveryRound) {
  Ready on;
  for (size_t round = 0; round < ROUNDS / PARTS; ++round) {
    auto request = on.pressing(kj::str("op-", GetParam(), '-', round));
    auto answers = race(on, round + GetParam(), [&](size_t) -> Request& { return request; });
    auto& winner = winnerOf(answers);
    ASSERT_EQ(on.outcome(winner), "succeeded");
    lookAnew(on, winner);
  }
  expectOnceEach(on, ROUNDS / PARTS);
}

INSTANTIATE_TEST_SUITE_P(Part, Race, testing::Range(size_t{0}, PARTS));

// The target is gone with the effect, so whoever asked the helper a second time would be refused.
TEST(RaceForOneId, theOthersGetTheFirstOnesAnswerAlsoWhenItsEffectTakesTheTargetAway) {
  constexpr size_t rounds = 200;
  Ready on("fleeting");
  for (size_t round = 0; round < rounds; ++round) {
    auto request = on.pressing(kj::str("op-", round));
    auto answers = race(on, round, [&](size_t) -> Request& { return request; });
    auto& winner = winnerOf(answers);
    ASSERT_EQ(on.outcome(winner), "succeeded");
    EXPECT_TRUE(on.run(request)->replayed);
    lookAnew(on, winner);
  }
  expectOnceEach(on, rounds);
  auto again = on.request(*on.session, press(on.seen, "op-0"), "another-id");
  EXPECT_EQ(on.outcome(on.run(again)), "rejected") << "under another id the target is gone";
}

TEST(RaceForOneId, ofTwoActionsForOneIdOneIsDispatchedAndTheOtherIsAConflict) {
  constexpr size_t rounds = 200;
  Ready on;
  for (size_t round = 0; round < rounds; ++round) {
    auto name = kj::str("op-", round);
    auto one = on.pressing(name), other = on.pressing(name);
    bool otherFirst = round % 2 == 1;
    auto isOther = [&](size_t i) { return (i % 2 == 1) != otherFirst; };
    auto answers = race(on, round, [&](size_t i) -> Request& { return isOther(i) ? other : one; });
    size_t dispatched = 0, replayed = 0, conflicts = 0;
    for (size_t i = 0; i < SUBMITTERS; ++i) {
      auto& answer = *answers[i];
      KJ_IF_MAYBE (refusal, answer.refusal) {
        EXPECT_EQ(refusal->code, RefusalCode::OPERATION_CONFLICT);
        EXPECT_NE(isOther(i), otherFirst);
        ++conflicts;
      } else if (answer.replayed) {
        ++replayed;
      } else {
        ++dispatched;
        lookAnew(on, answer);
      }
    }
    ASSERT_EQ(dispatched, 1u);
    ASSERT_EQ(replayed, SUBMITTERS / 2 - 1);
    ASSERT_EQ(conflicts, SUBMITTERS / 2);
  }
  expectOnceEach(on, rounds);
}

TEST(RaceForOneId, twoSupervisorsCannotShareALedger) {
  Ready on;
  auto second = ledger::Ledger::open(on.ledgerFolder(), {on.clock.wall, on.clock.boot});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.refusal().code, RefusalCode::LEDGER_BUSY);
  EXPECT_EQ(on.next(), "succeeded") << "and the first one goes on";
}

}  // namespace
}  // namespace praefectus::test
