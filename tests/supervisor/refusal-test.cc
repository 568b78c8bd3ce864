// What a host is told when something was not done: in words, and as a signed proof that it can
// keep. A refusal leaves nothing in the ledger.
#include "ipc/bounds.h"
#include "tests/supervisor/wire-host.h"

#include <gtest/gtest.h>

namespace praefectus::test {
namespace {

// A host in its session, which audits every refusal that it gets.
struct Audited : Workbench {
  explicit Audited(const std::string& mode = "good") : Workbench(mode), host(*this) {}

  // Whether this is the refusal of that code, proven for that session, as the next one of it.
  template <typename Response>
  void expect(RefusalCode code, kj::StringPtr session, Response&& response,
              kj::StringPtr operation = "") {
    auto result = response.getResult();
    ASSERT_TRUE(result.isRefusal());
    auto refusal = result.getRefusal();
    EXPECT_STREQ(nameOf(refusal.getRefusal().getCode()).cStr(), nameOf(code).cStr());
    auto sealed = attest::readEnvelope(refusal.getProof());
    ASSERT_TRUE(sealed.ok());
    auto refused = attest::openRefused(ledger().receiptKey(), *sealed);
    ASSERT_TRUE(refused.ok());
    EXPECT_STREQ(nameOf(refused->code).cStr(), nameOf(code).cStr());
    EXPECT_TRUE(refused->ledger == ledger().id());
    EXPECT_EQ(refused->subject, "uid:1000"_kj);
    EXPECT_EQ(refused->session, session);
    EXPECT_EQ(refused->operation, operation);
    EXPECT_EQ(refused->sequence, ++counted[session.cStr()]);
    EXPECT_EQ(refused->at, time().wallMs());
    EXPECT_EQ(refused->dispatched(),
              code == RefusalCode::OUTCOME_UNKNOWN || code == RefusalCode::LEDGER_POISONED);
  }

  Host host;
  std::map<std::string, uint64_t> counted;
};

Request damaged(const Request& request, size_t byte) {
  Request out{kj::str(request.operation), request.grant.clone(),
              kj::heapArray<kj::byte>(request.action)};
  out.grant.body[byte] ^= 1;
  return out;
}

TEST(SignedRefusal, provesWhatWasRefusedOutsideOfAnySession) {
  Audited on;
  auto head = on.ledger().head();
  on.expect(RefusalCode::UNSUPPORTED_VERSION, "", opening(on, on.host));
  on.expect(RefusalCode::UNSUPPORTED_VERSION, "", status(on, on.host, "op-1"));
  on.expect(RefusalCode::UNSUPPORTED_VERSION, "", hello(on, on.host, {}, 99));
  EXPECT_EQ(said(hello(on, on.host)), "ok");
  on.expect(RefusalCode::MALFORMED, "", hello(on, on.host));
  on.expect(RefusalCode::MALFORMED, "", opening(on, on.host, "no identifier"));
  on.expect(RefusalCode::MALFORMED, "", revoking(on, on.host, attest::Envelope()));
  attest::Revocation revocation;
  revocation.revocation = kj::str("revocation-1");
  revocation.what = attest::RevokedLease{kj::str("lease-1")};
  auto forged = on.seal(kj::mv(revocation));
  forged.signature[0] ^= 1;
  on.expect(RefusalCode::POLICY_DENIED, "", revoking(on, on.host, forged));
  kj::Vector<wire::Session::Client> live;
  for (size_t i = 0; i < bounds::SESSIONS; ++i) {
    live.add(opening(on, on.host, kj::str("session-", i)).getSession());
  }
  on.expect(RefusalCode::BUSY, "", opening(on, on.host, "one-more"));
  EXPECT_TRUE(on.ledger().head() == head);
}

TEST(SignedRefusal, provesWhatALedgerThatWasSetBackRefuses) {
  Audited on;
  attest::Head later = on.ledger().head();
  ++later.sequence;
  on.expect(RefusalCode::LEDGER_ROLLED_BACK, "", hello(on, on.host, later));
  on.expect(RefusalCode::LEDGER_ROLLED_BACK, "", opening(on, on.host));
  on.expect(RefusalCode::LEDGER_ROLLED_BACK, "", status(on, on.host, "op-1"));
}

TEST(SignedRefusal, provesWhatASessionRefusesAndNamesTheOperation) {
  Audited on;
  EXPECT_EQ(said(hello(on, on.host)), "ok");
  auto session = opening(on, on.host).getSession();
  auto signer = named(on);
  auto looks = on.request(*signer, look(), "look-1");
  auto head = on.ledger().head();
  auto expect = [&](RefusalCode code, auto&& response, kj::StringPtr operation = "") {
    on.expect(code, "session-1", response, operation);
  };
  // Turns and leases.
  expect(RefusalCode::MALFORMED, beginning(on, session, "no identifier"));
  expect(RefusalCode::NO_ACTIVE_TURN, on.wait(observing(session, looks)), "look-1");
  EXPECT_EQ(said(beginning(on, session, "turn-1")), "ok");
  expect(RefusalCode::OPERATION_CONFLICT, beginning(on, session, "turn-1"));
  expect(RefusalCode::LEASE_MISSING, on.wait(observing(session, looks)), "look-1");
  expect(RefusalCode::MALFORMED, leasing(on, session, attest::Envelope()));
  auto lease = on.seal(on.leaseFor(*signer, EVERYTHING, "lease-1"));
  lease.signature[0] ^= 1;
  expect(RefusalCode::POLICY_DENIED, leasing(on, session, lease));
  lease.signature[0] ^= 1;
  EXPECT_EQ(said(leasing(on, session, lease)), "ok");
  // Reads.
  auto seen = observed(on, session);
  auto listing = session.listRequest();
  fill(looks, listing.initSubmission());
  expect(RefusalCode::MALFORMED, on.wait(sent(listing)));
  auto empty = session.observeRequest();
  expect(RefusalCode::MALFORMED, on.wait(sent(empty)));
  // Mutations.
  auto good = on.request(*signer, press(seen), "op-1");
  auto forged = damaged(good, good.grant.body.size() - 1);
  expect(RefusalCode::POLICY_DENIED, on.wait(executing(session, forged)));
  expect(RefusalCode::MALFORMED, on.wait(executing(session, looks)));
  auto nothing = session.executeRequest();
  expect(RefusalCode::MALFORMED, on.wait(sent(nothing)));
  auto newer = observed(on, session, "read-2");
  expect(RefusalCode::STALE_EPOCH, on.wait(executing(session, good)), "op-1");
  EXPECT_TRUE(on.ledger().head() == head) << "nothing of it is on record";
  EXPECT_EQ(on.effects(), 0u);
  EXPECT_EQ(said(on.wait(executing(session, on.request(*signer, press(newer), "op-1")))), "ok");
  // The end.
  on.wait(session.closeRequest().send().ignoreResult());
  expect(RefusalCode::NO_ACTIVE_SESSION, on.wait(observing(session, looks)), "look-1");
  auto capabilities = session.capabilitiesRequest();
  expect(RefusalCode::NO_ACTIVE_SESSION, on.wait(sent(capabilities)));
}

// Whoever can break a signature must not get the ledger's word about an operation that was done.
TEST(SignedRefusal, speaksOfTheVeryRequestAndNamesNoOperationBeforeItIsProven) {
  Audited on;
  auto session = opened(on, on.host);
  auto request = on.request(*named(on), press(observed(on, session)), "op-1");
  EXPECT_EQ(said(on.wait(executing(session, request))), "ok");
  EXPECT_EQ(on.effects(), 1u);
  auto refusedFor = [&](const Request& asked) {
    auto answer = on.wait(executing(session, asked));
    auto sealed = attest::readEnvelope(answer.getResult().getRefusal().getProof());
    KJ_REQUIRE(sealed.ok());
    auto refused = attest::openRefused(on.ledger().receiptKey(), *sealed);
    KJ_REQUIRE(refused.ok());
    return kj::mv(*refused);
  };
  auto done = attest::requestHash(request.grant, request.action);
  auto broken =
      Request{kj::str("op-1"), request.grant.clone(), kj::heapArray<kj::byte>(request.action)};
  broken.grant.signature[0] ^= 1;
  auto refused = refusedFor(broken);
  EXPECT_EQ(refused.operation, "");
  EXPECT_TRUE(KJ_ASSERT_NONNULL(refused.request) ==
              attest::requestHash(broken.grant, broken.action));
  EXPECT_FALSE(KJ_ASSERT_NONNULL(refused.request) == done);
  auto swapped = Request{kj::str("op-1"), request.grant.clone(), encode(survey())};
  EXPECT_FALSE(KJ_ASSERT_NONNULL(refusedFor(swapped).request) == done);
}

TEST(SignedRefusal, anOperationIsNamedOnlyAsFarAsItsGrantCanBeRead) {
  Audited on;
  EXPECT_EQ(said(hello(on, on.host)), "ok");
  auto session = opening(on, on.host).getSession();
  auto request = on.request(*named(on), look(), "look-1");
  Request garbage{kj::str("look-1"), request.grant.clone(),
                  kj::heapArray<kj::byte>(request.action)};
  memset(garbage.grant.body.begin(), 0xa5, garbage.grant.body.size());
  on.expect(RefusalCode::POLICY_DENIED, "session-1", on.wait(observing(session, garbage)));
  garbage.grant.body = kj::heapArray<kj::byte>(garbage.grant.body.slice(0, 8));
  on.expect(RefusalCode::POLICY_DENIED, "session-1", on.wait(observing(session, garbage)));
}

TEST(SignedRefusal, eachSessionCountsItsOwn) {
  Audited on;
  EXPECT_EQ(said(hello(on, on.host)), "ok");
  auto one = opening(on, on.host, "one").getSession(),
       two = opening(on, on.host, "two").getSession();
  for (int i = 0; i < 3; ++i) {
    on.expect(RefusalCode::MALFORMED, "one", beginning(on, one, ""));
    on.expect(RefusalCode::MALFORMED, "", opening(on, on.host, ""));
  }
  on.expect(RefusalCode::MALFORMED, "two", beginning(on, two, ""));
  EXPECT_EQ(on.counted["one"], 3u);
  EXPECT_EQ(on.counted["two"], 1u);
}

TEST(SignedRefusal, aStopIsProvenToHaveSentNothing) {
  Audited on("waits-in-prepare");
  auto session = opened(on, on.host);
  auto request = on.request(*named(on), press(observed(on, session)), "op-1");
  auto head = on.ledger().head();
  auto answer = executing(session, request).eagerlyEvaluate(nullptr);
  on.await("prepare ");
  auto call = on.host.supervisor.stopRequest();
  call.setSession("session-1");
  call.setTurn("turn-1");
  on.wait(call.send().ignoreResult());
  on.expect(RefusalCode::USER_STOPPED, "session-1", on.wait(kj::mv(answer)), "op-1");
  EXPECT_EQ(on.effects(), 0u);
  EXPECT_TRUE(on.ledger().head() == head);
}

// The one refusal that promises nothing says so in its proof too.
TEST(SignedRefusal, anEndingThatCouldNotBeRecordedIsNotProvenToBeUnsent) {
  FaultyVfs disk;
  Audited on("waits-in-perform");
  auto session = opened(on, on.host);
  auto request = on.request(*named(on), press(observed(on, session)), "op-1");
  auto answer = executing(session, request).eagerlyEvaluate(nullptr);
  on.await("effect ");
  disk.arm(Fault::ERROR_FOREVER, 1);
  on.signal(on.pids()[0]);
  on.expect(RefusalCode::OUTCOME_UNKNOWN, "session-1", on.wait(kj::mv(answer)), "op-1");
  // The very same request comes again: that it did nothing is not true either.
  on.expect(RefusalCode::LEDGER_POISONED, "session-1", on.wait(executing(session, request)));
}

TEST(SignedRefusal, whoeverChangesItBreaksIt) {
  Audited on;
  auto response = opening(on, on.host);
  auto sealed = attest::readEnvelope(response.getResult().getRefusal().getProof());
  ASSERT_TRUE(sealed.ok());
  auto& key = on.ledger().receiptKey();
  EXPECT_TRUE(attest::openRefused(key, *sealed).ok());
  for (size_t i = 0; i < sealed->body.size(); ++i) {
    sealed->body[i] ^= 1;
    EXPECT_FALSE(attest::openRefused(key, *sealed).ok()) << i;
    sealed->body[i] ^= 1;
  }
  for (auto& byte : sealed->signature) {
    byte ^= 1;
    EXPECT_FALSE(attest::openRefused(key, *sealed).ok());
    byte ^= 1;
  }
  EXPECT_TRUE(attest::openRefused(key, *sealed).ok());
  EXPECT_FALSE(attest::openRefused(on.issuerKey().publicKey(), *sealed).ok());
  EXPECT_FALSE(attest::openReceipt(key, *sealed).ok()) << "and it passes for no receipt";
}

TEST(SignedRefusal, withoutALedgerNobodySigns) {
  Workbench on;
  Host host(on, serveRefusal({RefusalCode::LEDGER_FOREIGN, "Not ours."_kj}));
  auto answer = hello(on, host);
  EXPECT_EQ(said(answer), "ledger_foreign");
  EXPECT_EQ(answer.getResult().getRefusal().getProof().getBody().size(), 0u);
}

}  // namespace
}  // namespace praefectus::test
