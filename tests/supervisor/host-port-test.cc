// What a host meets at the other end of its socket: a real connection, a real supervisor behind it,
// and hosts that keep no rule.
#include "ipc/bounds.h"
#include "tests/supervisor/wire-host.h"

#include <capnp/any.h>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

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
    EXPECT_EQ(said(hello(on, host, {}, version)), "unsupported_version");
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
  EXPECT_TRUE(info.getClockTrusted());
  EXPECT_EQ(info.getHead().getSequence(), on.ledger().head().sequence);
  EXPECT_TRUE(info.getHead().getLink() == bytesOf(on.ledger().head().link));
  EXPECT_EQ(info.getFormerKeys().size(), 0u);
}

TEST(HostPort, helloIsSaidOnce) {
  Workbench on;
  Host host(on);
  EXPECT_EQ(said(hello(on, host)), "ok");
  EXPECT_EQ(said(hello(on, host)), "malformed");
  EXPECT_EQ(said(opening(on, host)), "ok") << "the conversation goes on";
}

// ---- What a host has seen of the ledger --------------------------------------------------------

TEST(HostPort, everyHeadThatTheLedgerEverHadIsKnownToIt) {
  Ready on;
  std::vector<attest::Head> heads = {on.ledger().head()};
  on.run(on.pressing("op-1"));
  heads.push_back(on.ledger().head());
  on.restart();
  heads.push_back(on.ledger().head());
  EXPECT_LT(heads[0].sequence, heads[1].sequence);
  for (auto& head : heads) {
    Host host(on);
    EXPECT_EQ(said(hello(on, host, head)), "ok") << head.sequence;
    EXPECT_EQ(said(status(on, host, "op-1")), "ok");
  }
}

TEST(HostPort, aLedgerThatDoesNotContainWhatTheHostHasSeenServesItNothing) {
  Ready on;
  on.run(on.pressing("op-1"));
  auto other = on.ledger().head(), later = on.ledger().head();
  other.link[31] ^= 1;
  ++later.sequence;
  for (auto& head : {other, later}) {
    Host host(on);
    EXPECT_EQ(said(hello(on, host, head)), "ledger_rolled_back");
    EXPECT_EQ(said(opening(on, host)), "ledger_rolled_back");
    EXPECT_EQ(said(status(on, host, "op-1")), "ledger_rolled_back");
    EXPECT_EQ(said(revoking(on, host, on.seal(attest::Revocation()))), "ledger_rolled_back");
    EXPECT_NE(said(hello(on, host)), "ok") << "there is no way back";
    EXPECT_EQ(said(status(on, host, "op-1")), "ledger_rolled_back");
    Host another(on);
    EXPECT_EQ(said(hello(on, another)), "ok") << "that connection alone";
  }
}

TEST(HostPort, aLedgerThatWasSetBackToAnOlderCopyOfItselfIsNoticed) {
  Workbench on;
  auto path = kj::str(on.ledgerFolder(), "/ledger.db");
  auto fold = [&]() {
    ASSERT_EQ(BackDoor(on.ledgerFolder()).run("PRAGMA wal_checkpoint(TRUNCATE)"), SQLITE_OK);
  };
  kj::Array<kj::byte> older;
  on.restart([&]() {
    fold();
    older = readWhole(path);
  });
  attest::Revocation revocation;
  revocation.revocation = kj::str("revocation-1");
  revocation.what = attest::RevokedLease{kj::str("lease-1")};
  ASSERT_EQ(on.revoke(on.seal(kj::mv(revocation))), "ok");
  auto seen = on.ledger().head();
  on.restart([&]() {
    fold();
    writeWhole(path, older);  // In its place: the file is the same one.
  });
  Host host(on);
  EXPECT_EQ(said(hello(on, host, seen)), "ledger_rolled_back");
  EXPECT_EQ(said(opening(on, host)), "ledger_rolled_back");
}

// ---- What breaks the form of a call ------------------------------------------------------------

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
  auto listing = session.listRequest();
  auto acting = session.executeRequest();
  EXPECT_EQ(said(on.wait(sent(listing))), "malformed");
  EXPECT_EQ(said(on.wait(sent(acting))), "malformed");
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
  EXPECT_FALSE(on.wait(sent(cancel)).getFound());
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

// ---- Turns, leases, stops and revocations over the wire ----------------------------------------

TEST(HostPort, withoutATurnAndALeaseNothingIsRead) {
  Workbench on;
  Host host(on);
  EXPECT_EQ(said(hello(on, host)), "ok");
  auto session = opening(on, host).getSession();
  auto ask = on.request(*named(on), look(), "read-1");
  EXPECT_EQ(said(on.wait(observing(session, ask))), "no_active_turn");
  EXPECT_EQ(said(beginning(on, session, "turn-1")), "ok");
  EXPECT_EQ(said(on.wait(observing(session, ask))), "lease_missing");
  auto lease = on.leaseFor(*named(on), {ActionClass::METADATA_READ}, "lease-1");
  EXPECT_EQ(said(leasing(on, session, on.seal(lease))), "ok");
  EXPECT_EQ(said(on.wait(observing(session, ask))), "ok");
  on.wait(session.endTurnRequest().send().ignoreResult());
  EXPECT_EQ(said(on.wait(observing(session, ask))), "no_active_turn");
  EXPECT_EQ(said(beginning(on, session, "turn-1")), "operation_conflict");
}

TEST(HostPort, aStopNeedsNoHelloNoSessionAndNoAuthority) {
  Workbench on;
  Host host(on);
  auto call = host.supervisor.stopRequest();
  call.setSession("session-1");
  call.setTurn("turn-1");
  on.wait(call.send().ignoreResult());
  EXPECT_EQ(said(hello(on, host)), "ok");
  auto session = opening(on, host).getSession();
  EXPECT_EQ(said(beginning(on, session, "turn-1")), "user_stopped");
  EXPECT_EQ(said(beginning(on, session, "turn-2")), "ok");
}

TEST(HostPort, aRevocationReachesTheLedger) {
  Workbench on;
  Host host(on);
  auto session = opened(on, host);
  auto before = on.ledger().head().sequence;
  attest::Revocation revocation;
  revocation.revocation = kj::str("revocation-1");
  revocation.what = attest::RevokedLease{kj::str("lease-1")};
  EXPECT_EQ(said(revoking(on, host, on.seal(kj::mv(revocation)))), "ok");
  EXPECT_GT(on.ledger().head().sequence, before);
  auto ask = on.request(*named(on), look(), "read-1");
  EXPECT_EQ(said(on.wait(observing(session, ask))), "revoked");
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
    auto session = call.send().getSession();
    EXPECT_EQ(said(beginning(on, session, "turn-1")), "ok");
    auto lease = on.seal(on.leaseFor(*named(on), EVERYTHING, "lease-1"));
    EXPECT_EQ(said(leasing(on, session, lease)), "ok");
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
