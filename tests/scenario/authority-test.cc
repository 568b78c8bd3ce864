// What a host may and may not do with what it signed, seen from the application: leases, turns, the
// person's stop, revocations, and ledgers that are not where or what they were.
#include "tests/scenario/rig.h"

#include <csignal>
#include <filesystem>

#include <unistd.h>

namespace praefectus::tests {
namespace {

std::string nameOfRefusal(const Refusal& refusal) { return nameOf(refusal.code).cStr(); }

// A session whose leases are opened by hand, on a rig whose own session is closed.
struct ByHand : Rig {
  ByHand() {
    session = nullptr;
    session = need(host->open("session-2", "turn-1", client::Leasing::BY_HAND));
  }

  void lease(attest::Classes classes, int64_t validForMs = 60'000) {
    client::Opening opening;
    opening.classes = classes;
    opening.validForMs = validForMs;
    need(session->openLease(kj::mv(opening)));
  }
  // Looks under a lease for looking.
  Observation seen() {
    lease({ActionClass::METADATA_READ}, 300'000);
    return look();
  }
  client::Request writing(const Observation& seen, kj::StringPtr text) {
    return session->setValue(seen, entry(seen), text);
  }
  size_t effects() { return recorded("text").size(); }
};

TEST(Lease, withoutOneNothingIsReadOrDone) {
  ByHand on;
  auto looked = on.wait(on.session->observe(on.window));
  ASSERT_FALSE(looked.ok());
  EXPECT_EQ(nameOfRefusal(looked.refusal()), "lease_missing");
  auto seen = on.seen();
  auto request = on.writing(seen, "unapproved");
  EXPECT_EQ(on.refusalOf(on.session->execute(request)), "lease_missing");
  EXPECT_EQ(on.effects(), 0u);

  // The refusal is proof that a host can keep, and burned nothing: the same request is good later.
  auto& proof = KJ_ASSERT_NONNULL(on.session->lastRefusal());
  auto refused = attest::openRefused(on.host->info().receiptKey, proof);
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->operation, request.operation);
  EXPECT_FALSE(refused->dispatched());
  on.lease({ActionClass::SEMANTIC_MUTATION});
  EXPECT_EQ(on.refusalOf(on.session->execute(request)), "receipt: succeeded");
}

TEST(Lease, ofAnEarlierHelperOpensNothing) {
  ByHand on;
  auto seen = on.seen();
  on.lease({ActionClass::SEMANTIC_MUTATION});
  auto status = on.need(on.session->capabilities());
  kill(static_cast<pid_t>(status.pid), SIGKILL);
  EXPECT_TRUE(eventually([&] {
    auto next = on.wait(on.session->capabilities());
    return next.ok() && next->pid != status.pid;
  })) << "another one runs";
  auto looked = on.wait(on.session->observe(on.window));
  ASSERT_FALSE(looked.ok());
  EXPECT_EQ(nameOfRefusal(looked.refusal()), "lease_missing");
  auto fresh = on.seen();
  EXPECT_EQ(on.refusalOf(on.session->execute(on.writing(fresh, "late"))), "lease_missing");
  EXPECT_EQ(on.effects(), 0u);
}

TEST(Lease, isShortAndAskedForAgainWhenAnythingChanges) {
  ByHand on;
  auto opened = [&](attest::Classes classes, int64_t validForMs) {
    client::Opening opening;
    opening.classes = classes;
    opening.validForMs = validForMs;
    auto result = on.wait(on.session->openLease(kj::mv(opening)));
    return result.ok() ? std::string("ok") : nameOfRefusal(result.refusal());
  };
  EXPECT_EQ(opened({ActionClass::SEMANTIC_MUTATION}, 60'001), "malformed");
  EXPECT_EQ(opened({ActionClass::METADATA_READ, ActionClass::SEMANTIC_MUTATION}, 60'001),
            "malformed");
  EXPECT_EQ(opened({ActionClass::METADATA_READ}, 300'001), "malformed");
  auto seen = on.seen();

  // For this observation only: it serves one action, whose frame is then spent.
  client::Opening opening;
  opening.classes = {ActionClass::SEMANTIC_MUTATION};
  opening.target = on.window;
  opening.frame = seen.frame.id;
  on.need(on.session->openLease(kj::mv(opening)));
  auto outcome = on.need(on.session->execute(on.writing(seen, "once")));
  EXPECT_EQ(outcome.receipt.terminal, Terminal::SUCCEEDED);
  auto& fresh = KJ_ASSERT_NONNULL(outcome.fresh);
  EXPECT_EQ(on.refusalOf(on.session->execute(on.writing(fresh, "twice"))), "lease_missing");

  // And for this turn only.
  on.lease({ActionClass::SEMANTIC_MUTATION});
  on.need(on.session->beginTurn("turn-2"));
  seen = on.seen();
  EXPECT_EQ(on.refusalOf(on.session->execute(on.writing(seen, "another turn"))), "lease_missing");
  EXPECT_EQ(on.recorded("text").size(), 1u);
}

TEST(Stop, ofATurnThatHasNotBegunKeepsItFromBeginning) {
  Rig on;
  on.wait(on.host->stop("session-1", "turn-2"));
  auto begun = on.wait(on.session->beginTurn("turn-2"));
  ASSERT_FALSE(begun.ok());
  EXPECT_EQ(nameOfRefusal(begun.refusal()), "user_stopped");
  on.need(on.session->beginTurn("turn-3"));
  EXPECT_TRUE(on.wait(on.session->observe(on.window)).ok());
}

TEST(Stop, whileTheTargetIsLookedAtNothingIsSent) {
  Rig on;
  auto seen = on.look();
  auto request = on.session->setValue(seen, Rig::entry(seen), "stopped");
  kill(on.probe, SIGSTOP);
  auto answer = on.session->execute(request).eagerlyEvaluate(nullptr);
  on.wait(on.host->stop("session-1", "turn-1"));
  EXPECT_EQ(on.refusalOf(kj::mv(answer)), "user_stopped");
  kill(on.probe, SIGCONT);
  EXPECT_EQ(on.refusalOf(on.session->execute(request)), "user_stopped");
  on.need(on.session->beginTurn("turn-2"));
  on.look();
  EXPECT_EQ(on.recorded("text").size(), 0u);
}

TEST(Revocation, ofAnOperationIsKeptAcrossARestart) {
  Rig on;
  auto seen = on.look();
  client::How how;
  how.operation = "operation-1"_kj;
  attest::Revocation revocation;
  revocation.what = attest::RevokedOperation{kj::str("operation-1")};
  on.need(on.host->revoke(kj::mv(revocation)));
  for (bool restarted : {false, true}) {
    if (restarted) {
      on.stop();
      on.start();
      seen = on.look();
    }
    auto request = on.session->setValue(seen, Rig::entry(seen), "revoked", how);
    EXPECT_EQ(on.refusalOf(on.session->execute(request)), "revoked") << restarted;
  }
  auto other = on.session->setValue(seen, Rig::entry(seen), "allowed");
  EXPECT_EQ(on.refusalOf(on.session->execute(other)), "receipt: succeeded");
  EXPECT_EQ(on.recorded("text").size(), 1u);
}

TEST(Revocation, ofAPolicyLeavesTheHostAbleToSignUnderTheNextOne) {
  Rig on;
  auto seen = on.look();
  auto before = on.session->setValue(seen, Rig::entry(seen), "under the old policy");
  attest::Revocation revocation;
  revocation.what = attest::RevokedGeneration{2};
  on.need(on.host->revoke(kj::mv(revocation)));
  EXPECT_EQ(on.refusalOf(on.session->execute(before)), "policy_denied");
  for (bool restarted : {false, true}) {
    if (restarted) {
      on.stop();
      on.start();
    }
    EXPECT_EQ(on.host->info().policyGeneration, 2u);
    seen = on.look();
    auto after = on.session->setValue(seen, Rig::entry(seen), "under the new one");
    EXPECT_EQ(on.refusalOf(on.session->execute(after)), "receipt: succeeded") << restarted;
  }
}

TEST(LedgerPlace, aCopiedLedgerIsMovedAndDoesNotAct) {
  Rig on;
  on.stop();
  auto copy = on.folder.file("copy");
  std::filesystem::copy(on.ledger, copy, std::filesystem::copy_options::recursive);
  std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
  auto options = on.options();
  options.ledger = kj::StringPtr(copy.c_str(), copy.size());
  auto host = on.wait(client::Host::start(on.io, options, on.authority));
  ASSERT_FALSE(host.ok());
  EXPECT_EQ(nameOfRefusal(host.refusal()), "ledger_moved");
  on.start();
  on.look();
}

TEST(LedgerPlace, aLedgerThatWasSetBackIsNoticedByAHostThatKeepsItsHead) {
  Rig on;
  on.stop();
  auto older = on.folder.file("older");
  std::filesystem::copy(on.ledger, older, std::filesystem::copy_options::recursive);
  on.start();
  auto seen = on.look();
  auto outcome =
      on.need(on.session->execute(on.session->setValue(seen, Rig::entry(seen), "remembered")));
  auto head = attest::headAfter(outcome.receipt, outcome.sealed.body);
  on.stop();

  auto starts = [&] {
    auto options = on.options();
    options.seen = head;
    auto host = on.wait(client::Host::start(on.io, options, on.authority));
    return host.ok() ? std::string("ok") : nameOfRefusal(host.refusal());
  };
  EXPECT_EQ(starts(), "ok");
  // In place, so that the file is the one that it was.
  for (auto& file : std::filesystem::directory_iterator(older)) {
    auto bytes = contents(file.path());
    auto target = on.ledger + "/" + file.path().filename().string();
    FILE* out = fopen(target.c_str(), "r+");
    ASSERT_NE(out, nullptr) << target;
    fwrite(bytes.data(), 1, bytes.size(), out);
    ASSERT_EQ(ftruncate(fileno(out), static_cast<off_t>(bytes.size())), 0);
    fclose(out);
  }
  EXPECT_EQ(starts(), "ledger_rolled_back");
  on.start();  // A host that kept nothing cannot know.
}

}  // namespace
}  // namespace praefectus::tests
