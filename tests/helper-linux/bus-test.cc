// The bus client against bytes that no honest bus sends, and against silence.
#include "helper-linux/dbus/connection.h"

#include <kj/async-io.h>

#include <gtest/gtest.h>

#include <random>

namespace praefectus::dbus {
namespace {

constexpr Call PING{"org.example"_kj, "/a"_kj, "org.example.Face"_kj, "Ping"_kj};

// A reply as a peer would send it: a call's bytes with the type changed and a reply serial put in.
kj::Array<kj::byte> reply(uint32_t serial, const Arguments& arguments) {
  kj::Vector<kj::byte> out;
  auto put32 = [&out](uint32_t value) {
    for (int i = 0; i < 4; ++i) out.add(static_cast<kj::byte>(value >> (8 * i)));
  };
  out.addAll(kj::ArrayPtr<const kj::byte>("l\2\0\1"_kj.asBytes()));
  put32(static_cast<uint32_t>(arguments.body().size()));
  put32(99);
  auto types = arguments.signature();
  put32(static_cast<uint32_t>(8 + 5 + types.size() + 1));
  out.addAll(kj::ArrayPtr<const kj::byte>("\5\1u\0"_kj.asBytes()));
  put32(serial);
  out.addAll(kj::ArrayPtr<const kj::byte>("\10\1g\0"_kj.asBytes()));
  out.add(static_cast<kj::byte>(types.size()));
  out.addAll(types.asBytes());
  out.add(0);
  while (out.size() % 8 != 0) out.add(0);
  out.addAll(arguments.body());
  return out.releaseAsArray();
}

struct Wire {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::TwoWayPipe pipe = io.provider->newTwoWayPipe();
  Connection connection{kj::mv(pipe.ends[0]), io.provider->getTimer()};

  kj::TimePoint in(kj::Duration delay) { return io.provider->getTimer().now() + delay; }
  void send(kj::ArrayPtr<const kj::byte> bytes) {
    pipe.ends[1]->write(bytes.begin(), bytes.size()).wait(io.waitScope);
  }
};

TEST(Bus, aReplyReachesTheCallItBelongsTo) {
  Wire wire;
  auto first = wire.connection.call(PING, {}, wire.in(10 * kj::SECONDS));
  auto second = wire.connection.call(PING, {}, wire.in(10 * kj::SECONDS));
  wire.send(reply(2, Arguments().text("two")));
  wire.send(reply(1, Arguments().int32(-1)));
  auto two = second.wait(wire.io.waitScope);
  auto one = first.wait(wire.io.waitScope);
  EXPECT_EQ(two.decode("s", [](Reader& r) { return kj::str(r.text()); }).orDefault(kj::str()),
            "two");
  EXPECT_EQ(one.decode("i", [](Reader& r) { return r.int32(); }).orDefault(0), -1);
}

TEST(Bus, aReplyOfAnotherSignatureIsNotRead) {
  Wire wire;
  auto asked = wire.connection.call(PING, {}, wire.in(10 * kj::SECONDS));
  wire.send(reply(1, Arguments().text("7")));
  auto got = asked.wait(wire.io.waitScope);
  EXPECT_EQ(got.end, End::REPLIED);
  EXPECT_TRUE(got.decode("i", [](Reader& r) { return r.int32(); }) == nullptr);
}

TEST(Bus, silenceEndsOneCallAndLeavesTheOthers) {
  Wire wire;
  auto silent = wire.connection.call(PING, {}, wire.in(20 * kj::MILLISECONDS));
  auto other = wire.connection.call(PING, {}, wire.in(10 * kj::SECONDS));
  EXPECT_EQ(silent.wait(wire.io.waitScope).end, End::LATE);
  wire.send(reply(1, {}));  // Too late: nobody waits for it.
  wire.send(reply(2, {}));
  EXPECT_EQ(other.wait(wire.io.waitScope).end, End::REPLIED);
}

TEST(Bus, aClosedConnectionEndsEveryCall) {
  Wire wire;
  auto asked = wire.connection.call(PING, {}, wire.in(10 * kj::SECONDS));
  wire.pipe.ends[1] = nullptr;
  EXPECT_EQ(asked.wait(wire.io.waitScope).end, End::LOST);
  EXPECT_TRUE(wire.connection.lost());
  EXPECT_EQ(wire.connection.call(PING, {}, wire.in(10 * kj::SECONDS)).wait(wire.io.waitScope).end,
            End::LOST);
}

TEST(Bus, anOversizeMessageIsSkippedAndTheNextOneRead) {
  Wire wire;
  auto asked = wire.connection.call(PING, {}, wire.in(60 * kj::SECONDS));
  kj::byte head[] = {'l', 2, 0, 1, 0, 0, 0, 3, 9, 0, 0, 0, 0, 0, 0, 0};  // Body of 48 MiB.
  wire.send(head);
  auto zeros = kj::heapArray<kj::byte>(1u << 20);
  memset(zeros.begin(), 0, zeros.size());
  for (int i = 0; i < 48; ++i) wire.send(zeros);
  wire.send(reply(1, Arguments().text("after")));
  EXPECT_EQ(asked.wait(wire.io.waitScope).end, End::REPLIED);
}

TEST(Bus, noBytesAtAllBreakIt) {
  std::mt19937 random(4711);
  auto good = reply(1, Arguments().text("a text to be damaged").int32(7));
  for (int round = 0; round < 2000; ++round) {
    auto bytes = kj::heapArray<kj::byte>(good);
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<kj::byte>(random());
    auto size = random() % (bytes.size() + 1);
    Reply got;
    KJ_IF_MAYBE (message, Message::parse(kj::heapArray<kj::byte>(bytes.slice(0, size)))) {
      got.end = End::REPLIED;
      got.message = kj::mv(*message);
    }
    got.decode("si", [](Reader& r) { return r.text().size() + static_cast<size_t>(r.int32()); });
  }
}

TEST(Bus, onlySocketsOfThisMachineAreAddresses) {
  auto names = unixAddresses(
      "tcp:host=a,port=1;unix:path=/run/a%20b,guid=1;unix:abstract=c;unix:tmpdir=/t"_kj);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_STREQ(names[0].cStr(), "unix:/run/a b");
  EXPECT_STREQ(names[1].cStr(), "unix-abstract:c");
  EXPECT_EQ(unixAddresses(""_kj).size(), 0u);
}

}  // namespace
}  // namespace praefectus::dbus
