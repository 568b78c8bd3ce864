// What a host meets at the other end of its socket: a real connection, a real supervisor behind it,
// and hosts that keep no rule.
#include "supervisor/host-port.h"

#include "ipc/bounds.h"
#include "tests/support/workbench.h"

#include <capnp/any.h>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

struct Ends {
  kj::AutoCloseFd ours, theirs;
  Ends() {
    int ends[2];
    KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    ours = kj::AutoCloseFd(ends[0]);
    theirs = kj::AutoCloseFd(ends[1]);
  }
};

// One host's connection, both ends of it.
struct Host {
  Host(Workbench& bench, wire::Supervisor::Client served, Ends ends = Ends())
      : server(kj::heap<Channel>(bench.low(), kj::mv(ends.ours), kj::mv(served))),
        channel(kj::heap<Channel>(bench.low(), kj::mv(ends.theirs))),
        supervisor(channel->bootstrap().castAs<wire::Supervisor>()) {}
  explicit Host(Workbench& bench) : Host(bench, servePort(bench.supervisor())) {}

  kj::Own<Channel> server, channel;
  wire::Supervisor::Client supervisor;
};

// What an answer says: "ok", or the refusal's name.
template <typename Response>
std::string said(Response&& response) {
  auto result = response.getResult();
  return result.isRefusal() ? nameOf(result.getRefusal().getCode()).cStr() : "ok";
}

auto hello(Workbench& on, Host& host, uint16_t protocol = wire::PROTOCOL_VERSION) {
  auto call = host.supervisor.helloRequest();
  call.setProtocol(protocol);
  return on.wait(kj::Promise<capnp::Response<wire::Supervisor::HelloResults>>(call.send()));
}

auto opening(Workbench& on, Host& host) {
  auto call = host.supervisor.openRequest();
  call.setSession("session-1");
  call.setTurn("turn-1");
  return on.wait(kj::Promise<capnp::Response<wire::Supervisor::OpenResults>>(call.send()));
}

auto status(Workbench& on, Host& host, kj::StringPtr operation) {
  auto call = host.supervisor.statusRequest();
  call.setOperation(operation);
  return on.wait(kj::Promise<capnp::Response<wire::Supervisor::StatusResults>>(call.send()));
}

wire::Session::Client opened(Workbench& on, Host& host) {
  EXPECT_EQ(said(hello(on, host)), "ok");
  auto answer = opening(on, host);
  EXPECT_EQ(said(answer), "ok");
  return answer.getSession();
}

// How a call that fails ends, or nothing when it does not fail.
std::string complaint(Workbench& on, kj::Promise<void> call) {
  std::string text;
  on.wait(call.catch_([&](kj::Exception&& why) { text = why.getDescription().cStr(); }));
  return text;
}

// What grants name; a host has no other use for it.
kj::Own<Session> named(Workbench& on) {
  return kj::refcounted<Session>(0, kj::str("session-1"), kj::str("turn-1"), on.clock,
                                 on.helpers());
}

void fill(const Request& request, wire::Submission::Builder to) {
  attest::write(request.grant, to.initGrant());
  to.setAction(request.action);
}

auto observing(wire::Session::Client session, const Request& request) {
  auto call = session.observeRequest();
  fill(request, call.initSubmission());
  return kj::Promise<capnp::Response<wire::Session::ObserveResults>>(call.send());
}

Observation observed(Workbench& on, wire::Session::Client session, kj::StringPtr id = "read-1") {
  auto answer = on.wait(observing(session, on.request(*named(on), look(), id)));
  KJ_REQUIRE(!answer.getResult().isRefusal(), nameOf(answer.getResult().getRefusal().getCode()));
  return read(answer.getResult().getObservation());
}

class Ear final : public wire::Progress::Server {
 public:
  explicit Ear(std::vector<wire::Stage>& heard) : heard(heard) {}
  kj::Promise<void> reached(ReachedContext context) override {
    heard.push_back(context.getParams().getStage());
    return kj::READY_NOW;
  }

 private:
  std::vector<wire::Stage>& heard;
};

auto executing(wire::Session::Client session, const Request& request,
               kj::Maybe<wire::Progress::Client> progress = nullptr) {
  auto call = session.executeRequest();
  fill(request, call.initSubmission());
  KJ_IF_MAYBE (to, progress) call.setProgress(kj::mv(*to));
  return kj::Promise<capnp::Response<wire::Session::ExecuteResults>>(call.send());
}

// ---- The rules of the conversation -------------------------------------------------------------

TEST(HostPort, nothingIsAnsweredBeforeHello) {
  Workbench on;
  Host host(on);
  EXPECT_EQ(said(opening(on, host)), "unsupported_version");
  EXPECT_EQ(said(status(on, host, "op-1")), "unsupported_version");
}

TEST(HostPort, anotherProtocolVersionIsRefusedAndOpensNothing) {
  Workbench on;
  Host host(on);
  for (uint16_t version : {0, wire::PROTOCOL_VERSION + 1}) {
    EXPECT_EQ(said(hello(on, host, version)), "unsupported_version");
    EXPECT_EQ(said(opening(on, host)), "unsupported_version");
  }
}

TEST(HostPort, helloSaysWhatGrantsMustName) {
  Workbench on;
  Host host(on);
  auto answer = hello(on, host);
  auto info = answer.getResult().getInfo();
  EXPECT_EQ(info.getProtocol(), wire::PROTOCOL_VERSION);
  EXPECT_TRUE(KJ_ASSERT_NONNULL(read(info.getLedger())) == on.ledger().id());
  EXPECT_TRUE(info.getReceiptKey() == bytesOf(on.ledger().receiptKey()));
  EXPECT_EQ(info.getSubject(), "uid:1000"_kj);
  EXPECT_TRUE(info.getActing());
  EXPECT_EQ(info.getRecovered(), 0u);
}

TEST(HostPort, aSupervisorWithoutALedgerSaysWhyAndNothingElse) {
  Workbench on;
  Host host(on, serveRefusal({RefusalCode::LEDGER_BUSY, "Another supervisor holds it."}));
  EXPECT_EQ(said(hello(on, host)), "ledger_busy");
  EXPECT_EQ(said(opening(on, host)), "ledger_busy");
  EXPECT_EQ(said(status(on, host, "op-1")), "ledger_busy");
}

TEST(HostPort, anUnknownFieldFailsTheCallAndReachesNothing) {
  Workbench on;
  Host host(on);
  auto session = opened(on, host);
  // `cancel`, with a word more than its schema has.
  auto call = session.typelessRequest(capnp::typeId<wire::Session>(), 4, nullptr);
  call.initAsAnyStruct(1, 1).getDataSection()[0] = 1;
  EXPECT_NE(complaint(on, call.send().ignoreResult()).find("unknown_field"), std::string::npos);
  EXPECT_EQ(said(status(on, host, "op-1")), "ok") << "the connection goes on";
}

TEST(HostPort, anUnknownFieldInsideASubmissionFailsTheCall) {
  Workbench on;
  Host host(on);
  auto session = opened(on, host);
  auto call = session.observeRequest();
  auto request = on.request(*named(on), look(), "read-1");
  // Submission has no data section; this one has.
  auto wide = capnp::toAny(call).getPointerSection()[0].initAsAnyStruct(1, 2);
  wide.getDataSection()[0] = 1;
  attest::write(request.grant, wide.getPointerSection()[0].initAs<wire::Signed>());
  wide.getPointerSection()[1].setAs<capnp::Data>(request.action);
  EXPECT_NE(complaint(on, call.send().ignoreResult()).find("unknown_field"), std::string::npos);
  EXPECT_EQ(on.helpers().starts, 0u);
}

TEST(HostPort, submissionsBeyondTheBoundsAreMalformed) {
  Workbench on;
  Host host(on);
  auto session = opened(on, host);
  auto good = on.request(*named(on), look(), "read-1");
  auto ask = [&](const Request& request) { return said(on.wait(observing(session, request))); };
  Request large{kj::str("read-1"), good.grant.clone(),
                kj::heapArray<kj::byte>(bounds::ACTION_BYTES + 8)};
  EXPECT_EQ(ask(large), "malformed");
  Request empty{kj::str("read-1"), good.grant.clone(), nullptr};
  empty.grant.body = nullptr;
  EXPECT_EQ(ask(empty), "malformed");
  EXPECT_EQ(said(on.wait(kj::Promise<capnp::Response<wire::Session::ListResults>>(
                session.listRequest().send()))),
            "malformed");
  EXPECT_EQ(said(on.wait(kj::Promise<capnp::Response<wire::Session::ExecuteResults>>(
                session.executeRequest().send()))),
            "malformed");
  EXPECT_EQ(on.helpers().starts, 0u);
}

// ---- One operation over the wire ---------------------------------------------------------------

TEST(HostPort, anOperationIsToldAsItGoesOnAndEndsInAReceiptAndAFreshObservation) {
  Workbench on;
  Host host(on);
  auto session = opened(on, host);
  auto seen = observed(on, session);
  auto request = on.request(*named(on), press(seen), "op-1");
  std::vector<wire::Stage> heard;
  auto answer = on.wait(executing(session, request, wire::Progress::Client(kj::heap<Ear>(heard))));
  auto outcome = answer.getResult().getOutcome();
  EXPECT_EQ(heard, (std::vector{wire::Stage::PREPARED, wire::Stage::CLAIMED}));
  EXPECT_FALSE(outcome.getReplayed());
  ASSERT_TRUE(outcome.getFresh().isObservation());
  EXPECT_EQ(read(outcome.getFresh().getObservation()).frame.epoch, 2u);
  auto sealed = attest::readEnvelope(outcome.getReceipt());
  ASSERT_TRUE(sealed.ok());
  auto receipt = attest::openReceipt(on.ledger().receiptKey(), *sealed);
  ASSERT_TRUE(receipt.ok());
  EXPECT_EQ(receipt->terminal, Terminal::SUCCEEDED);

  auto again = on.wait(executing(session, request));
  EXPECT_TRUE(again.getResult().getOutcome().getReplayed());
  EXPECT_TRUE(again.getResult().getOutcome().getFresh().isNone());
  EXPECT_TRUE(again.getResult().getOutcome().getReceipt().getBody() == sealed->body.asPtr());
  EXPECT_EQ(on.effects(), 1u);
}

TEST(HostPort, statusTellsUnknownOpenAndEndedApart) {
  Workbench on("waits-in-perform");
  Host host(on);
  auto session = opened(on, host);
  auto request = on.request(*named(on), press(observed(on, session)), "op-1");
  EXPECT_TRUE(status(on, host, "op-1").getResult().isUnknown());
  auto answer = executing(session, request).eagerlyEvaluate(nullptr);
  on.await("effect ");
  EXPECT_TRUE(status(on, host, "op-1").getResult().isOpen());
  on.signal(on.pids()[0]);
  on.wait(kj::mv(answer));
  EXPECT_TRUE(status(on, host, "op-1").getResult().isEnded());
}

class DeafEar final : public wire::Progress::Server {
 public:
  kj::Promise<void> reached(ReachedContext) override { return kj::NEVER_DONE; }
};

TEST(HostPort, aListenerThatNeverAnswersOrIsBrokenChangesNothing) {
  Workbench on;
  Host host(on);
  auto session = opened(on, host);
  auto first = on.request(*named(on), press(observed(on, session)), "op-1");
  EXPECT_EQ(said(on.wait(executing(session, first, wire::Progress::Client(kj::heap<DeafEar>())))),
            "ok");
  auto second = on.request(*named(on), press(observed(on, session, "read-2")), "op-2");
  wire::Progress::Client broken = KJ_EXCEPTION(FAILED, "broken");
  EXPECT_EQ(said(on.wait(executing(session, second, kj::mv(broken)))), "ok");
  EXPECT_EQ(on.effects(), 2u);
}

TEST(HostPort, cancelAndCloseReachTheSession) {
  Workbench on("hangs-in-prepare");
  Host host(on);
  auto session = opened(on, host);
  auto request = on.request(*named(on), press(observed(on, session)), "op-1");
  auto answer = executing(session, request).eagerlyEvaluate(nullptr);
  on.await("prepare ");
  auto cancel = session.cancelRequest();
  cancel.setOperation("op-2");
  EXPECT_FALSE(on.wait(kj::Promise<capnp::Response<wire::Session::CancelResults>>(cancel.send()))
                   .getFound());
  on.wait(session.closeRequest().send().ignoreResult());
  EXPECT_EQ(said(on.wait(kj::mv(answer))), "aborted");
  EXPECT_EQ(said(on.wait(observing(session, on.request(*named(on), look(), "read-2")))),
            "no_active_session");
}

// ---- Hosts that break the protocol -------------------------------------------------------------

// Sends these bytes on a connection of its own, and waits until the supervisor has dropped it.
void sendRaw(Workbench& on, Bytes bytes) {
  Ends ends;
  KJ_SYSCALL(fcntl(ends.theirs, F_SETFL, O_NONBLOCK));
  Channel server(on.low(), kj::mv(ends.ours), servePort(on.supervisor()));
  ssize_t sent;
  KJ_SYSCALL(sent = ::write(ends.theirs, bytes.begin(), bytes.size()));
  on.wait(server.onDisconnect());
  EXPECT_FALSE(server.peerLeft());
}

TEST(HostPort, aMessageBeyondTheBoundDropsThatConnectionAlone) {
  Workbench on;
  Host host(on);
  auto session = opened(on, host);
  observed(on, session);
  // One segment of one word more than a message may have.
  const uint32_t head[] = {0, bounds::MESSAGE_WORDS + 1};
  sendRaw(on, kj::arrayPtr(head, 2).asBytes());
  EXPECT_EQ(said(status(on, host, "op-1")), "ok");
  auto request = on.request(*named(on), press(observed(on, session, "read-2")), "op-1");
  EXPECT_EQ(said(on.wait(executing(session, request))), "ok") << "the session lives on";
}

TEST(HostPort, garbageDropsThatConnectionAlone) {
  Workbench on;
  Host host(on);
  opened(on, host);
  auto garbage = kj::heapArray<kj::byte>(4096);
  memset(garbage.begin(), 0xa5, garbage.size());
  sendRaw(on, garbage);
  // Well framed, and no message of the protocol: a union tag of no version.
  const uint64_t words[] = {uint64_t{2} << 32, uint64_t{1} << 32, 0x7777};
  {
    Ends ends;
    Channel server(on.low(), kj::mv(ends.ours), servePort(on.supervisor()));
    ssize_t sent;
    KJ_SYSCALL(sent = ::write(ends.theirs, words, sizeof(words)));
    on.settle();
  }
  EXPECT_EQ(said(status(on, host, "op-1")), "ok");
}

// ---- The death of a host -----------------------------------------------------------------------

TEST(HostPort, aHostThatIsGoneDoesNotStopWhatWasDispatched) {
  Workbench on("waits-in-perform");
  auto host = kj::heap<Host>(on);
  auto session = opened(on, *host);
  auto request = on.request(*named(on), press(observed(on, session)), "op-1");
  auto answer = executing(session, request).ignoreResult().eagerlyEvaluate([](kj::Exception&&) {});
  on.await("effect ");
  { auto dropped = kj::mv(answer); }
  session = nullptr;
  host = nullptr;
  on.settle();
  on.signal(on.pids()[0]);
  on.wait(on.supervisor().drained());
  EXPECT_EQ(on.known("op-1"), "succeeded");
  EXPECT_TRUE(on.ends(on.pids()[0])) << "its session is over";
}

TEST(HostPort, aHostThatIsGoneTakesItsSessionsAndHelpersAlong) {
  Workbench on;
  auto host = kj::heap<Host>(on);
  auto session = opened(on, *host);
  observed(on, session);
  session = nullptr;
  host = nullptr;
  on.wait(on.supervisor().drained());
  EXPECT_TRUE(on.ends(on.pids()[0]));
}

// As praefectus-supervisor ends: the connection, then what is in flight, then the supervisor
// itself.
TEST(HostPort, aHostThatDiesInAReadLeavesNothingBehindThatOutlivesTheSupervisor) {
  Workbench on("hangs-in-reads");
  Ends ends;
  auto server = kj::heap<Channel>(on.low(), kj::mv(ends.ours), servePort(on.supervisor()));
  auto channel = kj::heap<Channel>(on.low(), kj::mv(ends.theirs));
  auto client = kj::heap<wire::Supervisor::Client>(channel->bootstrap().castAs<wire::Supervisor>());
  {
    auto greeting = client->helloRequest();
    greeting.setProtocol(wire::PROTOCOL_VERSION);
    on.wait(greeting.send().ignoreResult());
    auto call = client->openRequest();
    call.setSession("session-1");
    call.setTurn("turn-1");
    auto session = call.send().getSession();
    auto reading = observing(session, on.request(*named(on), look(), "read-1"))
                       .ignoreResult()
                       .eagerlyEvaluate([](kj::Exception&&) {});
    on.await("observe ");
    client = nullptr;
    channel = nullptr;  // The host's end closes while its calls are under way.
    on.wait(server->onDisconnect());
    server = nullptr;
  }
  on.wait(on.supervisor().drained());
  EXPECT_TRUE(on.ends(on.pids()[0])) << "the read was withdrawn, and its helper ended";
  // Were anything of the read still there, it would now reach for a supervisor that is not.
  on.restart();
  on.settle();
}

}  // namespace
}  // namespace praefectus::test
