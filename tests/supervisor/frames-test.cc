#include "supervisor/frames.h"

#include "attest/digest.h"
#include "ipc/bounds.h"

#include <gtest/gtest.h>

#include <string>

namespace praefectus {
namespace {

constexpr WindowRef WINDOW = {{4242, 987654}, 7};
constexpr WindowRef OTHER_WINDOW = {{4242, 987654}, 8};
constexpr uint64_t GENERATION = 3;
constexpr uint64_t LIFE_MS = 30'000;

class StillClock final : public Clock {
 public:
  int64_t wallMs() const override { return 0; }
  uint64_t bootMs() const override { return boot; }
  uint64_t boot = 5'000;
};

struct Taking {
  Taking() { attest::initialize(); }

  Frames::Drawn take(const WindowRef& window = WINDOW, uint64_t generation = GENERATION) {
    auto drawn = frames.draw();
    frames.taken(drawn, window, generation);
    return drawn;
  }

  // "ok", or the refusal's name and sentence.
  std::string check(const Frames::Drawn& frame, uint64_t generation = GENERATION,
                    const WindowRef& window = WINDOW) {
    auto checked = frames.check({frame.id, frame.epoch}, window, generation);
    if (checked.ok()) return "ok";
    return kj::str(nameOf(checked.refusal().code), ": ", checked.refusal().detail).cStr();
  }

  StillClock clock;
  Frames frames{clock};
};

constexpr char SUPERSEDED[] = "stale_epoch: A newer observation replaced this frame.";
constexpr char SPENT[] = "stale_frame: An action spent this frame.";
constexpr char VOID[] = "stale_frame: The helper no longer holds this frame.";
constexpr char OLD[] = "stale_frame: The frame is older than 30 seconds.";
constexpr char FORGOTTEN[] = "stale_frame: The frame is not one of this session's last eight.";

TEST(Frames, theCurrentFrameIsAccepted) {
  Taking on;
  EXPECT_EQ(on.check(on.take()), "ok");
}

TEST(Frames, withoutAnObservationThereIsNoFrame) {
  Taking on;
  auto drawn = on.frames.draw();
  EXPECT_EQ(on.check(drawn).substr(0, 15), "no_active_frame");
}

TEST(Frames, aNewerObservationSupersedes) {
  Taking on;
  auto first = on.take(), second = on.take();
  EXPECT_EQ(on.check(first), SUPERSEDED);
  EXPECT_EQ(on.check(second), "ok");
}

TEST(Frames, aFrameThatIsDrawnAndNotTakenReplacesNothing) {
  Taking on;
  auto first = on.take();
  auto drawn = on.frames.draw();
  EXPECT_EQ(on.check(first), "ok");
  EXPECT_EQ(on.check(drawn), FORGOTTEN);
}

TEST(Frames, aMutationSpendsTheFrame) {
  Taking on;
  auto frame = on.take();
  on.frames.spend();
  EXPECT_EQ(on.check(frame), SPENT);
  EXPECT_EQ(on.check(on.take()), "ok");
  EXPECT_EQ(on.check(frame), SPENT) << "what ended it first is what is said";
}

TEST(Frames, theEndOfItsHelperVoidsTheFrame) {
  Taking on;
  auto frame = on.take();
  on.frames.voidAll();
  EXPECT_EQ(on.check(frame), VOID);
}

TEST(Frames, anotherHelpersFrameIsVoidEvenWhenNobodySaidSo) {
  Taking on;
  auto frame = on.take();
  EXPECT_EQ(on.check(frame, GENERATION + 1), VOID);
  EXPECT_EQ(on.check(frame, 0), VOID) << "no helper is alive";
}

TEST(Frames, aFrameLivesForThirtySecondsAndNotOneMillisecondLonger) {
  Taking on;
  auto frame = on.take();
  on.clock.boot += LIFE_MS - 1;
  EXPECT_EQ(on.check(frame), "ok");
  on.clock.boot += 1;
  EXPECT_EQ(on.check(frame), OLD);
  EXPECT_EQ(bounds::FRAME_LIFE, 30 * kj::SECONDS);
}

TEST(Frames, theRightIdWithAnotherEpochIsRefused) {
  Taking on;
  auto frame = on.take();
  for (auto epoch : {frame.epoch - 1, frame.epoch + 1}) {
    EXPECT_EQ(on.check({frame.id, epoch}), "stale_frame: The frame has another epoch.");
  }
}

TEST(Frames, anIdThatWasNeverDrawnIsRefused) {
  Taking on;
  auto frame = on.take();
  frame.id[0] ^= 1;
  EXPECT_EQ(on.check(frame), FORGOTTEN);
}

TEST(Frames, aFrameOfAnotherWindowIsAMismatch) {
  Taking on;
  auto frame = on.take();
  EXPECT_EQ(on.check(frame, GENERATION, OTHER_WINDOW).substr(0, 15), "target_mismatch");
  auto reborn = WINDOW;
  ++reborn.process.start;
  EXPECT_EQ(on.check(frame, GENERATION, reborn).substr(0, 15), "target_mismatch");
}

TEST(Frames, theLastEightAreRememberedAndTheNinthIsForgotten) {
  Taking on;
  auto ninth = on.take(), eighth = on.take();
  Frames::Drawn last = eighth;
  for (int i = 0; i < 7; ++i) last = on.take();
  EXPECT_EQ(on.check(ninth), FORGOTTEN);
  EXPECT_EQ(on.check(eighth), SUPERSEDED);
  EXPECT_EQ(on.check(last), "ok");
}

// What a lease for a frame is held against.
TEST(Frames, onlyTheNewestOneThatIsNeitherSpentNorVoidNorOldIsCurrent) {
  Taking on;
  auto first = on.take(), second = on.take();
  EXPECT_FALSE(on.frames.isCurrent(first.id));
  EXPECT_TRUE(on.frames.isCurrent(second.id));
  on.clock.boot += LIFE_MS - 1;
  EXPECT_TRUE(on.frames.isCurrent(second.id));
  on.clock.boot += 1;
  EXPECT_FALSE(on.frames.isCurrent(second.id));
  auto third = on.take();
  on.frames.spend();
  EXPECT_FALSE(on.frames.isCurrent(third.id));
  auto fourth = on.take();
  on.frames.voidAll();
  EXPECT_FALSE(on.frames.isCurrent(fourth.id));
  EXPECT_FALSE(on.frames.isCurrent(on.frames.draw().id));
  EXPECT_TRUE(on.frames.isCurrent(on.take().id));
}

TEST(Frames, idsAreUnlikeEachOtherAndEpochsCount) {
  Taking on;
  auto first = on.take(), second = on.take();
  EXPECT_NE(first.id, second.id);
  EXPECT_EQ(first.epoch, 1u);
  EXPECT_EQ(second.epoch, 2u);
}

}  // namespace
}  // namespace praefectus
