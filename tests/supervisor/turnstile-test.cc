#include "supervisor/turnstile.h"

#include <kj/async-io.h>
#include <kj/vector.h>

#include <gtest/gtest.h>

#include <string>

namespace praefectus {
namespace {

struct Hall {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  Turnstile turnstile;
  std::string entered;  // Who came in, in order.

  kj::Promise<Turnstile::Ticket> enter(char who, uint64_t key = 1) {
    return turnstile.enter(key)
        .then([this, who](Turnstile::Ticket ticket) {
          entered += who;
          return ticket;
        })
        .eagerlyEvaluate(nullptr);
  }
  void settle() {
    for (int i = 0; i < 20; ++i) io.waitScope.poll();
  }
};

TEST(Turnstile, theFirstComesInAtOnceAndTheNextWhenItLeaves) {
  Hall hall;
  auto first = hall.enter('a');
  auto second = hall.enter('b');
  hall.settle();
  EXPECT_EQ(hall.entered, "a");
  { auto gone = first.wait(hall.io.waitScope); }
  hall.settle();
  EXPECT_EQ(hall.entered, "ab");
}

TEST(Turnstile, whoCameFirstIsServedFirst) {
  Hall hall;
  kj::Vector<kj::Promise<Turnstile::Ticket>> line;
  for (char who : std::string("abcdef")) line.add(hall.enter(who));
  for (auto& place : line) {
    auto ticket = place.wait(hall.io.waitScope);
    hall.settle();
  }
  EXPECT_EQ(hall.entered, "abcdef");
}

TEST(Turnstile, whoGaveUpWaitingIsPassedOver) {
  Hall hall;
  auto first = hall.enter('a');
  kj::Maybe<kj::Promise<Turnstile::Ticket>> second = hall.enter('b'), third = hall.enter('c');
  auto fourth = hall.enter('d');
  hall.settle();
  second = nullptr;
  third = nullptr;
  { auto gone = first.wait(hall.io.waitScope); }
  { auto gone = fourth.wait(hall.io.waitScope); }
  EXPECT_EQ(hall.entered, "ad");
  auto fifth = hall.enter('e');
  hall.settle();
  EXPECT_EQ(hall.entered, "ade") << "nobody was left inside";
}

TEST(Turnstile, aTurnThatWasGivenToOneWhoJustLeftPassesOn) {
  Hall hall;
  kj::Maybe<kj::Promise<Turnstile::Ticket>> second;
  auto first = hall.turnstile.enter(1).wait(hall.io.waitScope);
  second = hall.turnstile.enter(1);
  auto third = hall.enter('c');
  // The turn is on its way to the second when the second gives up.
  { auto gone = kj::mv(first); }
  second = nullptr;
  hall.settle();
  EXPECT_EQ(hall.entered, "c");
}

TEST(Turnstile, keysDoNotWaitForEachOther) {
  Hall hall;
  auto first = hall.enter('a', 1);
  auto other = hall.enter('b', 2);
  auto second = hall.enter('c', 1);
  hall.settle();
  EXPECT_EQ(hall.entered, "ab");
}

}  // namespace
}  // namespace praefectus
