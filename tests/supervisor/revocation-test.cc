// What an issuer takes back is refused from that moment, and after every restart too. Where in an
// operation's way it comes is told in points-test.cc.
#include "tests/support/workbench.h"

#include "ipc/bounds.h"

#include <gtest/gtest.h>

namespace praefectus::test {
namespace {

template <typename What>
attest::Revocation revoking(What what, kj::StringPtr id = "revocation-1") {
  attest::Revocation revocation;
  revocation.revocation = kj::str(id);
  revocation.what = kj::mv(what);
  return revocation;
}

attest::RevokedTurn firstTurn() { return {kj::str("session-1"), kj::str("turn-1")}; }

std::string looking(Workbench& on, Session& session, kj::StringPtr id) {
  return on.observing(session, on.request(session, look(), id));
}

TEST(Revocation, ofAnOperationVoidsItsGrantAlone) {
  Ready on;
  auto request = on.pressing("op-1");
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedOperation{kj::str("op-1")}))), "ok");
  EXPECT_EQ(on.outcome(on.run(request)), "refused: revoked");
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "refused: revoked") << "signed anew too";
  EXPECT_EQ(on.count("prepare "), 0u);
  EXPECT_EQ(on.known("op-1"), "unknown");
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-2"))), "succeeded");
}

TEST(Revocation, ofAReadsGrantVoidsItsRemainingUses) {
  Ready on;
  auto many = on.request(*on.session, look(), "look", {.uses = 10});
  EXPECT_EQ(on.observing(*on.session, many), "ok");
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedOperation{kj::str("look")}))), "ok");
  EXPECT_EQ(on.observing(*on.session, many), "revoked");
}

TEST(Revocation, ofALeaseLeavesWhatAnotherOneCovers) {
  Ready on;
  on.leasing = false;
  on.session->leases.closeAll();
  ASSERT_EQ(on.lease(*on.session, on.leaseFor(*on.session, EVERYTHING, "one")), "ok");
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedLease{kj::str("one")}))), "ok");
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "refused: revoked");
  ASSERT_EQ(on.lease(*on.session, on.leaseFor(*on.session, EVERYTHING, "two")), "ok");
  EXPECT_EQ(on.receiptOf(*on.run(on.pressing("op-1"))).lease, "two"_kj);
}

TEST(Revocation, ofATurnVoidsItsLeasesAndGrantsAndNoOtherTurns) {
  Ready on;
  ASSERT_EQ(on.revoke(on.seal(revoking(firstTurn()))), "ok");
  EXPECT_EQ(on.next(), "refused: revoked");
  EXPECT_EQ(looking(on, *on.session, "look-1"), "revoked");
  EXPECT_EQ(on.lease(*on.session, on.leaseFor(*on.session, EVERYTHING, "l-2")), "revoked");
  ASSERT_TRUE(on.supervisor().beginTurn(*on.session, kj::str("turn-2")).ok());
  EXPECT_EQ(looking(on, *on.session, "look-2"), "ok");
  auto other = on.open("session-2");
  EXPECT_EQ(looking(on, *other, "look-3"), "ok") << "a turn of that name in another session";
}

TEST(Revocation, ofAPolicyGenerationVoidsEverythingThatStatesAnother) {
  Ready on;
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedGeneration{5}))), "ok");
  for (uint64_t stated : {1, 4, 6}) {
    on.policyGeneration = stated;
    EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "refused: policy_denied") << stated;
    EXPECT_EQ(looking(on, *on.session, "look"), "policy_denied") << stated;
    EXPECT_EQ(on.lease(*on.session, on.leaseFor(*on.session, EVERYTHING, "l-2")), "policy_denied");
  }
  on.policyGeneration = 5;
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "refused: policy_denied") << "the lease";
  ASSERT_EQ(on.lease(*on.session, on.leaseFor(*on.session, EVERYTHING, "l-5")), "ok");
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "succeeded");
}

TEST(Revocation, aPolicyGenerationNeverGoesBack) {
  Ready on;
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedGeneration{5}))), "ok");
  on.revoke(on.seal(revoking(attest::RevokedGeneration{2}, "revocation-2")));
  on.policyGeneration = 2;
  EXPECT_EQ(on.next(), "refused: policy_denied");
  on.policyGeneration = 5;
  ASSERT_EQ(on.lease(*on.session, on.leaseFor(*on.session, EVERYTHING, "l-5")), "ok");
  EXPECT_EQ(on.next(), "succeeded");
}

TEST(Revocation, whatWasRecordedIsAnsweredAllTheSame) {
  Ready on;
  auto request = on.pressing("op-1");
  on.run(request);
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedOperation{kj::str("op-1")}))), "ok");
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedGeneration{2}, "r-2"))), "ok");
  EXPECT_TRUE(on.run(request)->replayed);
  EXPECT_EQ(on.known("op-1"), "succeeded");
}

TEST(Revocation, survivesARestart) {
  Ready on;
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedOperation{kj::str("op-1")}, "r-1"))), "ok");
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedLease{kj::str("by-hand")}, "r-2"))), "ok");
  ASSERT_EQ(on.revoke(on.seal(revoking(firstTurn(), "r-3"))), "ok");
  on.restart();
  auto later = on.open();
  EXPECT_EQ(looking(on, *later, "look-1"), "revoked");
  ASSERT_TRUE(on.supervisor().beginTurn(*later, kj::str("turn-2")).ok());
  auto seen = on.observe(*later);
  EXPECT_EQ(on.lease(*later, on.leaseFor(*later, EVERYTHING, "by-hand")), "revoked");
  EXPECT_EQ(on.outcome(on.execute(*later, on.request(*later, press(seen), "op-1"))),
            "refused: revoked");
  EXPECT_EQ(on.outcome(on.execute(*later, on.request(*later, press(seen), "op-2"))), "succeeded");
}

TEST(Revocation, ofAPolicyGenerationSurvivesARestart) {
  Ready on;
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedGeneration{2}))), "ok");
  on.restart();
  auto later = on.open();
  auto ofOld = on.request(*later, look(), "look-1");
  EXPECT_EQ(on.observing(*later, ofOld), "policy_denied");
  on.policyGeneration = 2;
  EXPECT_EQ(looking(on, *later, "look-1"), "ok");
}

// It counts at once, also while the disk is slow, and is answered when it is durable.
TEST(Revocation, isAnsweredWhenItIsDurable) {
  FaultyVfs disk;
  Ready on;
  auto request = on.pressing("op-1");
  disk.arm(Fault::HOLD, 1);
  bool answered = false;
  auto revoked = on.supervisor()
                     .revoke(on.seal(revoking(attest::RevokedOperation{kj::str("op-1")})))
                     .then([&](Result<Done> done) {
                       answered = true;
                       return done;
                     })
                     .eagerlyEvaluate(nullptr);
  disk.awaitHeld();
  on.settle();
  EXPECT_FALSE(answered);
  EXPECT_EQ(on.outcome(on.run(request)), "refused: revoked");
  disk.release();
  EXPECT_TRUE(on.wait(kj::mv(revoked)).ok());
}

TEST(Revocation, thatCannotBeWrittenCountsUntilTheEndOfThisSupervisorWhichDoesNothingMore) {
  FaultyVfs disk;
  Ready on;
  disk.arm(Fault::ERROR_FOREVER, 1);
  EXPECT_EQ(on.revoke(on.seal(revoking(attest::RevokedOperation{kj::str("op-1")}))),
            "ledger_poisoned");
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-2"))), "refused: ledger_poisoned");
  EXPECT_EQ(on.effects(), 0u);
}

TEST(Revocation, whoseWriteNeverComesBackIsGivenUpAndNothingMoreIsDone) {
  FaultyVfs disk;
  Ready on;
  disk.arm(Fault::HOLD, 1);
  auto revoked =
      on.supervisor().revoke(on.seal(revoking(attest::RevokedOperation{kj::str("op-1")})));
  disk.awaitHeld();
  on.passForLedger(bounds::LEDGER);
  auto done = on.wait(kj::mv(revoked));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.refusal().code, RefusalCode::LEDGER_POISONED);
  EXPECT_EQ(on.next(), "refused: ledger_poisoned");
  disk.release();
}

TEST(Revocation, theSameOneAgainChangesNothing) {
  Ready on;
  auto sealed = on.seal(revoking(attest::RevokedOperation{kj::str("op-1")}));
  ASSERT_EQ(on.revoke(sealed.clone()), "ok");
  auto head = on.ledger().head();
  EXPECT_EQ(on.revoke(sealed.clone()), "ok");
  EXPECT_TRUE(on.ledger().head() == head);
}

TEST(Revocation, anotherOneOfItsIdIsAConflictAndTakesNothingBack) {
  Ready on;
  ASSERT_EQ(on.revoke(on.seal(revoking(attest::RevokedOperation{kj::str("op-1")}))), "ok");
  for (bool restarted : {false, true}) {
    if (restarted) on.restart();
    EXPECT_EQ(on.revoke(on.seal(revoking(attest::RevokedOperation{kj::str("op-2")}))),
              "operation_conflict");
    EXPECT_EQ(on.revoke(on.seal(revoking(attest::RevokedLease{kj::str("lease-1")}))),
              "operation_conflict");
    EXPECT_EQ(on.revoke(on.seal(revoking(firstTurn()))), "operation_conflict");
    EXPECT_EQ(on.revoke(on.seal(revoking(attest::RevokedGeneration{2}))), "operation_conflict");
    EXPECT_EQ(on.revoke(on.seal(revoking(attest::RevokedOperation{kj::str("op-1")}))), "ok");
  }
  auto later = on.open();
  auto seen = on.observe(*later);
  EXPECT_EQ(on.outcome(on.execute(*later, on.request(*later, press(seen), "op-2"))), "succeeded");
}

TEST(Revocation, thatIsNotForUsOrNotSignedByAPinnedIssuerHasNoEffect) {
  struct Change {
    const char* name;
    std::function<void(attest::Revocation&)> make;
  };
  const Change changes[] = {
      {"another ledger", [](attest::Revocation& r) { r.audience.key[0] ^= 1; }},
      {"another incarnation", [](attest::Revocation& r) { ++r.audience.incarnation; }},
      {"another subject", [](attest::Revocation& r) { r.subject = kj::str("uid:1"); }},
      {"an unknown issuer", [](attest::Revocation& r) { r.issuer = kj::str("guest"); }},
      {"an unknown key", [](attest::Revocation& r) { r.keyId = kj::str("0123456789abcdef"); }},
  };
  Ready on;
  auto head = on.ledger().head();
  for (auto& change : changes) {
    auto sealed = on.seal(revoking(attest::RevokedOperation{kj::str("op-1")}));
    attest::KeyRing ring;
    ring.add(attest::Purpose::ISSUER, "host", attest::keyIdOf(on.issuerKey().publicKey()),
             on.issuerKey().publicKey());
    auto opened = attest::openRevocation(ring, sealed);
    ASSERT_TRUE(opened.ok());
    change.make(*opened);
    EXPECT_EQ(on.revoke(attest::seal(*opened, on.issuerKey())), "policy_denied") << change.name;
  }
  auto tampered = on.seal(revoking(attest::RevokedOperation{kj::str("op-1")}));
  tampered.signature[0] ^= 1;
  EXPECT_EQ(on.revoke(kj::mv(tampered)), "policy_denied");
  EXPECT_TRUE(on.ledger().head() == head);
  EXPECT_EQ(on.outcome(on.run(on.pressing("op-1"))), "succeeded");
}

TEST(Revocation, manyAreKeptAndTheNextIsBusy) {
  ledger::Revocations revocations;
  auto numbered = [](size_t i) {
    auto out = revoking(attest::RevokedOperation{kj::str("op-", i)}, kj::str("r-", i));
    out.issuer = kj::str(i % 2 == 0 ? "host" : "guest");
    return out;
  };
  for (size_t i = 0; i < bounds::REVOCATIONS; ++i) {
    ASSERT_TRUE(revocations.admit(numbered(i)).ok()) << i;
    revocations.add(numbered(i));
    revocations.add(numbered(i));  // The same one counts once.
    ASSERT_EQ(revocations.size(), i + 1);
  }
  auto all = revocations.clone();
  auto refused = all.admit(numbered(bounds::REVOCATIONS));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.refusal().code, RefusalCode::BUSY);
  EXPECT_TRUE(all.admit(numbered(7)).ok()) << "it is kept already";
}

// What one issuer takes back is its own: another one's revocation of the same names is void.
TEST(Revocation, ofAnotherIssuerHasNoEffect) {
  ledger::Revocations revocations;
  auto ofGuest = revoking(attest::RevokedOperation{kj::str("op-1")}, "r-1");
  ofGuest.issuer = kj::str("guest");
  revocations.add(ofGuest);
  auto raised = revoking(attest::RevokedGeneration{2}, "r-2");
  raised.issuer = kj::str("guest");
  revocations.add(raised);
  attest::Grant grant;
  grant.issuer = kj::str("host");
  grant.operation = kj::str("op-1");
  EXPECT_TRUE(revocations.check(grant).ok());
  grant.issuer = kj::str("guest");
  EXPECT_FALSE(revocations.check(grant).ok());
}

}  // namespace
}  // namespace praefectus::test
