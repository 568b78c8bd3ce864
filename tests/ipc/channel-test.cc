#include "ipc/channel.h"

#include "ipc/bounds.h"
#include "tests/ipc/loop.h"
#include "tests/ipc/newer.capnp.h"
#include "tests/ipc/refusals.h"

#include <kj/filesystem.h>

#include <netinet/in.h>

namespace praefectus {
namespace {

using newer::Echo;
using newer::EchoNewer;

class EchoPort final : public Strict<Echo> {
 public:
  uint32_t& calls;
  explicit EchoPort(uint32_t& count) : calls(count) {}

  kj::Promise<void> say(SayContext context) override {
    ++calls;
    context.getResults().setData(context.getParams().getData());
    return kj::READY_NOW;
  }
  kj::Promise<void> hold(HoldContext) override {
    ++calls;
    return kj::NEVER_DONE;
  }
};

kj::Array<kj::byte> filled(size_t size) {
  auto bytes = kj::heapArray<kj::byte>(size);
  std::fill(bytes.begin(), bytes.end(), kj::byte{'x'});
  return bytes;
}

template <typename Client>
auto sayRequest(Client client, kj::ArrayPtr<const kj::byte> data) {
  auto request = client.sayRequest();
  request.setData(data);
  return request;
}

// A client's and a server's channel on one socket pair.
struct Connected {
  Loop loop;
  SocketPair sockets;
  uint32_t calls = 0;
  kj::Own<Channel> server, client;
  Echo::Client echo = nullptr;

  Connected() {
    server = kj::heap<Channel>(loop.low(), kj::mv(sockets.one), kj::heap<EchoPort>(calls));
    client = kj::heap<Channel>(loop.low(), kj::mv(sockets.other));
    echo = client->bootstrap().castAs<Echo>();
  }

  size_t say(size_t bytes) {
    return loop.wait(sayRequest(echo, filled(bytes)).send()).getData().size();
  }
};

// A client's channel with an end of the socket in our own hand.
struct Alone {
  Loop loop;
  SocketPair sockets;
  Channel client{loop.low(), kj::mv(sockets.one)};
  Echo::Client echo = client.bootstrap().castAs<Echo>();
  RawPeer peer{kj::mv(sockets.other)};
};

TEST(Channel, aCallComesBack) {
  Connected on;
  EXPECT_EQ(on.say(3), 3u);
  EXPECT_EQ(on.calls, 1u);
}

TEST(Channel, theLargestMessageCanBeSentCheckedReadAndAnswered) {
  Connected on;
  size_t size = bounds::MESSAGE_BYTES - 1024;
  EXPECT_EQ(on.say(size), size);
  EXPECT_EQ(on.say(size), size);
}

TEST(Channel, ourOwnMessageBeyondTheBoundIsNotSent) {
  Connected on;
  EXPECT_EQ(on.say(1), 1u);
  EXPECT_ANY_THROW(on.say(bounds::MESSAGE_BYTES + 1));
  EXPECT_EQ(on.calls, 1u);
}

TEST(Channel, aPeerThatClosesHasLeft) {
  Connected on;
  EXPECT_EQ(on.say(1), 1u);
  on.client = nullptr;
  on.loop.wait(on.server->onDisconnect());
  EXPECT_TRUE(on.server->peerLeft());
}

TEST(Channel, aPeerThatClosesInTheMiddleOfAMessageHasLeft) {
  Alone on;
  on.peer.send({0, 4, 0, 0});
  on.loop.settle();
  on.peer.close();
  on.loop.wait(on.client.onDisconnect());
  EXPECT_TRUE(on.client.peerLeft());
}

size_t residentBytes() {
  auto text = kj::newDiskFilesystem()->getRoot().openFile(kj::Path::parse("proc/self/statm"));
  char content[128] = {};
  text->read(0, kj::arrayPtr(content, sizeof(content) - 1).asBytes());
  size_t total = 0, resident = 0;
  sscanf(content, "%zu %zu", &total, &resident);
  return resident * static_cast<size_t>(getpagesize());
}

TEST(Channel, aMessageThatClaimsTooMuchEndsTheConnectionUnbuffered) {
  for (uint32_t words : {uint32_t{bounds::MESSAGE_WORDS} + 1, 2 * uint32_t{bounds::MESSAGE_WORDS},
                         uint32_t{1} << 27, ~uint32_t{0}}) {
    Alone on;
    on.loop.settle();
    auto before = residentBytes();
    on.peer.send({0, words});
    on.loop.wait(on.client.onDisconnect());
    EXPECT_FALSE(on.client.peerLeft());
    EXPECT_LT(residentBytes(), before + bounds::MESSAGE_BYTES);
  }
}

TEST(Channel, segmentsAreCountedAndSummedBeforeAnythingIsKept) {
  for (uint32_t segments : {uint32_t{bounds::SEGMENTS} + 1, uint32_t{1} << 30, ~uint32_t{0}}) {
    Alone on;
    on.peer.send({segments - 1, 1});
    on.loop.wait(on.client.onDisconnect());
    EXPECT_FALSE(on.client.peerLeft());
  }
  // Three segments that fit one by one and not together.
  Alone on;
  uint32_t half = bounds::MESSAGE_WORDS / 2;
  on.peer.send({2, half, half, 1});
  on.loop.wait(on.client.onDisconnect());
  EXPECT_FALSE(on.client.peerLeft());
}

TEST(Channel, bytesThatAreNoMessageEndTheConnection) {
  auto isABreach = [](auto bytes) {
    Alone on;
    on.peer.send(bytes);
    on.loop.wait(on.client.onDisconnect());
    return !on.client.peerLeft();
  };
  using Words = std::initializer_list<uint32_t>;
  EXPECT_TRUE(isABreach(Words{0, 2, ~0u, ~0u, ~0u, ~0u}));  // A frame with nonsense in it,
  EXPECT_TRUE(isABreach(Words{0, 0}));                      // one with nothing in it,
  EXPECT_TRUE(isABreach(kj::StringPtr("GET / HTTP/1.1\r\n\r\n").asBytes()));  // and no frame.
}

TEST(Channel, callsFailWhenThePeerBreaksTheProtocol) {
  Alone on;
  auto call = on.echo.holdRequest().send().ignoreResult();
  on.loop.settle();
  on.peer.send({~0u, ~0u});
  EXPECT_ANY_THROW(on.loop.wait(kj::mv(call)));
}

TEST(Channel, nothingWrittenMeansNothingWasSent) {
  Connected on;
  EXPECT_EQ(on.say(1), 1u);
  auto before = on.client->written();
  EXPECT_EQ(on.say(1), 1u);
  EXPECT_GT(on.client->written(), before);

  on.server = nullptr;
  on.loop.wait(on.client->onDisconnect());
  before = on.client->written();
  EXPECT_ANY_THROW(on.say(1));
  EXPECT_EQ(on.client->written(), before);
  EXPECT_EQ(on.calls, 2u);
}

// The count must not fall while earlier messages leave the queue, or a call that was sent could
// look like one that was not.
TEST(Channel, theCountNeverFallsWhileMessagesAreOnTheirWay) {
  Connected on;
  auto before = on.client->written();
  auto first = sayRequest(on.echo, filled(100'000)).send().ignoreResult();
  auto second = sayRequest(on.echo, filled(10)).send().ignoreResult();
  uint64_t last = before;
  for (int turn = 0; turn < 200; ++turn) {
    on.loop.io.waitScope.poll();
    EXPECT_GE(on.client->written(), last);
    last = on.client->written();
  }
  on.loop.wait(kj::mv(first));
  on.loop.wait(kj::mv(second));
  EXPECT_GE(on.client->written(), last);
  EXPECT_GT(on.client->written(), before + 100'000);
}

// A call that waits behind a slow one fails with the connection. It must not be sent afterwards,
// behind the back of whoever was told that it failed.
TEST(Channel, aCallThatFailedWaitingIsNeverSentLater) {
  Alone on;
  auto slow = sayRequest(on.echo, filled(bounds::MESSAGE_BYTES - 1024)).send().ignoreResult();
  auto waiting =
      sayRequest(on.echo, kj::StringPtr("the waiting call").asBytes()).send().ignoreResult();
  on.loop.settle();
  on.peer.send({~0u, ~0u});
  EXPECT_ANY_THROW(on.loop.wait(kj::mv(waiting)));
  EXPECT_ANY_THROW(on.loop.wait(kj::mv(slow)));
  std::string received;
  for (int i = 0; i < 100; ++i) {
    auto bytes = on.peer.receive();
    received.append(bytes.asChars().begin(), bytes.size());
    on.loop.settle();
  }
  EXPECT_GT(received.size(), bounds::MESSAGE_BYTES - 1024);
  EXPECT_EQ(received.find("the waiting call"), std::string::npos);
}

// Carries bytes between a client and a server, so that a test can hold them back.
struct Carried {
  Loop loop;
  SocketPair left, right;
  uint32_t calls = 0;
  Channel client{loop.low(), kj::mv(left.one)};
  Channel server{loop.low(), kj::mv(right.one), kj::heap<EchoPort>(calls)};
  Echo::Client echo = client.bootstrap().castAs<Echo>();
  RawPeer atClient{kj::mv(left.other)}, atServer{kj::mv(right.other)};

  // Takes what the client has sent to the server, and returns what the server answers.
  kj::Array<kj::byte> toServer() {
    loop.settle();
    atServer.send(atClient.receive());
    loop.settle();
    return atServer.receive();
  }
};

TEST(Channel, aCompleteAnswerWinsOverTheDeathAfterIt) {
  Carried on;
  auto first = sayRequest(on.echo, filled(5)).send();
  // The bootstrap's answer lets the call go directly; then the call's own answer is held back.
  on.atClient.send(on.toServer());
  auto second = sayRequest(on.echo, filled(7)).send();
  on.atClient.send(on.toServer());
  EXPECT_EQ(on.loop.wait(kj::mv(first)).getData().size(), 5u);
  EXPECT_EQ(on.loop.wait(kj::mv(second)).getData().size(), 7u);

  auto answered = sayRequest(on.echo, filled(9)).send();
  auto answer = on.toServer();
  ASSERT_GT(answer.size(), 0u);
  on.atClient.send(answer);
  on.atClient.close();
  // The peer is dead with its answer still unread, and we have something more to say to it.
  auto unanswered = sayRequest(on.echo, filled(1)).send().ignoreResult();
  EXPECT_EQ(on.loop.wait(kj::mv(answered)).getData().size(), 9u);
  EXPECT_ANY_THROW(on.loop.wait(kj::mv(unanswered)));
  on.loop.wait(on.client.onDisconnect());
  EXPECT_TRUE(on.client.peerLeft());
}

TEST(Channel, theDeathIsToldAfterTheAnswerThatCameBeforeIt) {
  Carried on;
  std::string order;
  auto answered = sayRequest(on.echo, filled(1)).send().then([&](auto&&) { order += "answer "; });
  auto died = on.client.onDisconnect().then([&]() { order += "death"; });
  on.atClient.send(on.toServer());
  on.atClient.close();
  kj::Vector<kj::Promise<void>> both;
  both.add(kj::mv(answered));
  both.add(kj::mv(died));
  on.loop.wait(kj::joinPromises(both.releaseAsArray()));
  EXPECT_EQ(order, "answer death");
}

TEST(Channel, aPeerThatAsksAndNeverReadsIsDropped) {
  Carried on;
  auto large = filled(bounds::MESSAGE_BYTES / 2);
  size_t asked = 0;
  bool dropped = false;
  auto gone = on.server.onDisconnect().then([&]() { dropped = true; }).eagerlyEvaluate(nullptr);
  kj::Vector<kj::Promise<void>> calls;
  for (; asked < 4 * bounds::UNREAD_BYTES && !dropped; asked += large.size()) {
    calls.add(
        sayRequest(on.echo, large).send().ignoreResult().eagerlyEvaluate([](kj::Exception&&) {}));
    // A socket's buffer is smaller than the call, so it is carried in pieces.
    for (bool more = true; more && !dropped;) {
      on.loop.settle();
      auto bytes = on.atClient.receive();
      more = bytes.size() > 0;
      for (size_t at = 0; at < bytes.size() && !dropped;) {
        auto piece = bytes.slice(at, std::min(bytes.size(), at + 4096));
        on.atServer.send(piece);
        at += piece.size();
        on.loop.settle();
      }
    }
  }
  EXPECT_TRUE(dropped);
  EXPECT_GE(asked, bounds::UNREAD_BYTES);
  EXPECT_FALSE(on.server.peerLeft());
}

size_t openDescriptors() {
  return kj::newDiskFilesystem()
      ->getRoot()
      .openSubdir(kj::Path::parse("proc/self/fd"))
      ->listNames()
      .size();
}

TEST(Channel, noDescriptorIsTakenFromAPeer) {
  Alone on;
  on.loop.settle();
  auto before = openDescriptors();
  kj::byte byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  auto header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  int gift = on.peer.get();
  memcpy(CMSG_DATA(header), &gift, sizeof(gift));
  KJ_SYSCALL(::sendmsg(on.peer.get(), &message, 0));
  on.loop.settle();
  EXPECT_EQ(openDescriptors(), before);
}

TEST(CountingStream, countsBeforeTheOtherEndHasRead) {
  Loop loop;
  auto pipe = kj::newTwoWayPipe();
  CountingStream stream(kj::mv(pipe.ends[0]));
  EXPECT_EQ(stream.written(), 0u);
  const kj::byte bytes[10] = {};
  auto write = stream.write(bytes, sizeof(bytes));
  EXPECT_EQ(stream.written(), 10u);
  kj::byte received[10];
  loop.wait(pipe.ends[1]->read(received, sizeof(received)));
  loop.wait(kj::mv(write));
  const kj::ArrayPtr<const kj::byte> pieces[] = {kj::arrayPtr(bytes, 3), kj::arrayPtr(bytes, 4)};
  auto second = stream.write(kj::arrayPtr(pieces, 2));
  EXPECT_EQ(stream.written(), 17u);
  // A read is not a write.
  auto read = stream.tryRead(received, 1, 1);
  EXPECT_EQ(stream.written(), 17u);
}

TEST(Peer, theKernelSaysWhoItIs) {
  SocketPair sockets;
  auto peer = peerOf(sockets.one);
  ASSERT_EQ(outcome(peer), "ok");
  EXPECT_EQ(peer->pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(peer->uid, getuid());
}

TEST(Peer, onlyAConnectedUnixStreamSocketHasOne) {
  int pipes[2];
  KJ_SYSCALL(::pipe2(pipes, O_CLOEXEC));
  kj::AutoCloseFd in(pipes[0]), out(pipes[1]);
  EXPECT_EQ(outcome(peerOf(in)), "malformed");
  auto socketOf = [](int domain, int type) {
    int fd;
    KJ_SYSCALL(fd = ::socket(domain, type | SOCK_CLOEXEC, 0));
    return kj::AutoCloseFd(fd);
  };
  EXPECT_EQ(outcome(peerOf(socketOf(AF_INET, SOCK_STREAM))), "malformed");
  EXPECT_EQ(outcome(peerOf(socketOf(AF_UNIX, SOCK_STREAM))), "malformed");
  EXPECT_EQ(outcome(peerOf(socketOf(AF_UNIX, SOCK_DGRAM))), "malformed");
  EXPECT_EQ(outcome(peerOf(-1)), "malformed");
}

// The description of the exception that the promise ends in, or nothing.
std::string complaint(Loop& loop, kj::Promise<void> promise) {
  std::string text;
  loop.wait(promise.catch_([&](kj::Exception&& why) { text = why.getDescription().cStr(); }));
  return text;
}

TEST(Strict, aCallWithAnUnknownFieldDoesNotReachItsMethod) {
  Connected on;
  EXPECT_EQ(on.say(1), 1u);
  auto newer = on.client->bootstrap().castAs<Echo>();
  // The client speaks the newer interface under the older one's id.
  auto request = newer.typelessRequest(capnp::typeId<Echo>(), 0, nullptr);
  request.initAs<EchoNewer::SayParams>().setMore(1);
  auto text = complaint(on.loop, request.send().ignoreResult());
  EXPECT_NE(text.find("unknown_field: "), std::string::npos) << text;

  auto fine = newer.typelessRequest(capnp::typeId<Echo>(), 0, nullptr);
  fine.initAs<EchoNewer::SayParams>();
  EXPECT_EQ(complaint(on.loop, fine.send().ignoreResult()), "");
  EXPECT_EQ(on.calls, 2u);
}

TEST(Strict, anUnknownMethodOrInterfaceIsNotDispatched) {
  Connected on;
  auto call = [&](uint64_t interfaceId, uint16_t method) {
    auto request = on.echo.typelessRequest(interfaceId, method, nullptr);
    request.initAsAnyStruct(0, 0);
    return complaint(on.loop, request.send().ignoreResult());
  };
  EXPECT_NE(call(capnp::typeId<Echo>(), 2).find("unknown_field: "), std::string::npos);
  EXPECT_NE(call(capnp::typeId<EchoNewer>(), 0).find("unknown_field: "), std::string::npos);
  EXPECT_EQ(on.calls, 0u);
}

TEST(Strict, paramsThatAreNoStructAreMalformed) {
  Connected on;
  auto request = on.echo.typelessRequest(capnp::typeId<Echo>(), 0, nullptr);
  request.initAs<capnp::List<uint8_t>>(3);
  auto text = complaint(on.loop, request.send().ignoreResult());
  EXPECT_NE(text.find("malformed: "), std::string::npos) << text;
  EXPECT_EQ(on.calls, 0u);
}

}  // namespace
}  // namespace praefectus
