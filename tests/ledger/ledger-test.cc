#include "tests/ledger/fixture.h"

#include <set>
#include <string>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

TEST(Ledger, aNewLedgerIsEmptyAndKnowsWhoItIs) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));

  EXPECT_EQ(ledger->id().key, attest::digestOf(bytesOf(ledger->receiptKey())));
  EXPECT_EQ(ledger->id().incarnation, 1u);
  EXPECT_EQ(ledger->recovered().settled, 0u);
  auto found = ledger->find("never-used");
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->is<ledger::Unknown>());
}

TEST(Ledger, thePinnedRingComesBackAsItWas) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  auto given = sampleRing();

  ASSERT_EQ(ledger->ring().entries().size(), given.entries().size());
  for (auto& entry : given.entries()) {
    bool there = false;
    for (auto& kept : ledger->ring().entries()) {
      there = there || (kept.purpose == entry.purpose && kept.issuer == entry.issuer &&
                        kept.keyId == entry.keyId && kept.key == entry.key);
    }
    EXPECT_TRUE(there) << entry.issuer.cStr();
  }
}

TEST(Ledger, aClaimIsOpenUntilItsEndingIsRecorded) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));

  ASSERT_TRUE(ledger.claims("op-1"));
  EXPECT_TRUE(ledger->find("op-1", hashNamed("an action"))->is<ledger::Open>());
  auto receipt = ledger.settles("op-1");
  auto found = ledger->find("op-1", hashNamed("an action"));
  ASSERT_TRUE(found->is<attest::Envelope>());
  EXPECT_EQ(found->get<attest::Envelope>().body.asPtr(), receipt.body.asPtr());
}

TEST(Ledger, theReceiptSaysWhatWasClaimedAndHowItEnded) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  ASSERT_TRUE(ledger.claims("op-1"));
  auto receipt = opened(*ledger.operator->(), ledger.settles("op-1"));

  EXPECT_EQ(receipt.operation, "op-1");
  EXPECT_TRUE(receipt.ledger == ledger->id());
  EXPECT_EQ(receipt.actionHash, hashNamed("an action"));
  EXPECT_EQ(receipt.actionClass, ActionClass::SEMANTIC_MUTATION);
  EXPECT_EQ(receipt.kind, "set_value");
  EXPECT_EQ(receipt.grantIssuer, "host");
  EXPECT_EQ(receipt.grantHash, hashNamed("a grant"));
  EXPECT_EQ(receipt.subject, "uid:1000");
  EXPECT_EQ(receipt.session, "session-1");
  EXPECT_EQ(receipt.turn, "turn-1");
  EXPECT_EQ(receipt.helper.name, "praefectus-desktop");
  EXPECT_EQ(receipt.helper.digest, hashNamed("an image"));
  EXPECT_EQ(receipt.helper.generation, 3u);
  EXPECT_EQ(receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_EQ(receipt.effect, Effect::VERIFIED);
  EXPECT_EQ(receipt.evidence.verdict, Verdict::CONFIRMED);
  EXPECT_EQ(receipt.context, ContextState::PRESERVED);
  EXPECT_EQ(receipt.claimedAt, NOW);
  EXPECT_EQ(receipt.settledAt, NOW + 5);
  EXPECT_EQ(receipt.sequence, 2u);
}

TEST(Ledger, aUsedIdWithAnotherActionIsAConflict) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  ASSERT_TRUE(ledger.claims("op-1"));
  EXPECT_TRUE(ledger->find("op-1", hashNamed("another action"))->is<ledger::Conflict>());
  EXPECT_TRUE(ledger->find("op-1")->is<ledger::Open>());
  ledger.settles("op-1");
  EXPECT_TRUE(ledger->find("op-1", hashNamed("another action"))->is<ledger::Conflict>());
  EXPECT_TRUE(ledger->find("op-1")->is<attest::Envelope>());
}

TEST(Ledger, anIdIsClaimedOnceWhateverBecameOfIt) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  ASSERT_TRUE(ledger.claims("op-1"));
  auto again = ledger->claim(claimOf("op-1")).wait(ledger.wait());
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.refusal().code, RefusalCode::OPERATION_CONFLICT);
  ledger.settles("op-1");
  EXPECT_FALSE(ledger.claims("op-1"));
  ledger.concludes("op-2");
  EXPECT_FALSE(ledger.claims("op-2"));
}

// The thread is held in the flush of the first claim, so that all the others are one batch.
TEST(Ledger, ofManyClaimsOfOneIdInOneCommitExactlyOneIsAccepted) {
  TemporaryFolder place;
  FaultyVfs disk;
  Running ledger(makeLedger(place));
  disk.arm(Fault::HOLD, 1);
  auto first = ledger->claim(claimOf("first"));
  disk.awaitHeld();
  kj::Vector<kj::Promise<Result<Done>>> racing;
  for (int i = 0; i < 16; ++i) racing.add(ledger->claim(claimOf("raced")));
  auto other = ledger->claim(claimOf("other"));
  disk.release();

  EXPECT_TRUE(first.wait(ledger.wait()).ok());
  int accepted = 0;
  for (auto& claim : racing) accepted += claim.wait(ledger.wait()).ok() ? 1 : 0;
  EXPECT_EQ(accepted, 1);
  EXPECT_TRUE(other.wait(ledger.wait()).ok());
}

TEST(Ledger, sessionsThatCommitTogetherShareAFlush) {
  TemporaryFolder place;
  FaultyVfs disk;
  Running ledger(makeLedger(place));
  ASSERT_TRUE(ledger.claims("opener"));  // Has a flush of its own, for the log's head.
  disk.arm(Fault::HOLD, 1);
  kj::Vector<kj::Promise<Result<Done>>> claims;
  claims.add(ledger->claim(claimOf("op-0")));
  disk.awaitHeld();
  for (int i = 1; i <= 64; ++i) claims.add(ledger->claim(claimOf(kj::str("op-", i))));
  disk.release();

  for (auto& claim : claims) EXPECT_TRUE(claim.wait(ledger.wait()).ok());
  EXPECT_EQ(disk.logFlushes(), 2u);
}

TEST(Ledger, anOperationCostsTwoFlushes) {
  TemporaryFolder place;
  FaultyVfs disk;
  Running ledger(makeLedger(place));
  ASSERT_TRUE(ledger.claims("opener"));
  disk.disarm();
  ASSERT_TRUE(ledger.claims("op-1"));
  EXPECT_EQ(disk.logFlushes(), 1u);
  ledger.settles("op-1");
  EXPECT_EQ(disk.logFlushes(), 2u);
}

TEST(Ledger, aClaimIsFlushedBeforeItsPromiseResolves) {
  TemporaryFolder place;
  FaultyVfs disk;
  Running ledger(makeLedger(place));
  for (int i = 0; i < 20; ++i) {
    auto before = disk.logFlushes();
    ASSERT_TRUE(ledger.claims(kj::str("op-", i)));
    EXPECT_GT(disk.logFlushes(), before);
    EXPECT_TRUE(disk.logIsFlushed());
  }
}

TEST(Ledger, aClaimSurvivesAKillRightAfterItsPromiseResolved) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  OtherProcess other([&](int) {
    Running ledger(folder);
    if (ledger.claims("op-1")) raise(SIGKILL);
  });
  ASSERT_EQ(other.wait(), -SIGKILL);

  Running ledger(folder);
  EXPECT_EQ(ledger->recovered().settled, 1u);
  EXPECT_TRUE(ledger->find("op-1")->is<attest::Envelope>());
}

TEST(Ledger, anEndingIsRecordedOnceAndAnsweredEverAfter) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  ASSERT_TRUE(ledger.claims("op-1"));
  auto first = ledger.settles("op-1");
  auto again = ledger->settle(kj::str("op-1"), refusal()).wait(ledger.wait());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->body.asPtr(), first.body.asPtr());
  EXPECT_EQ(again->signature, first.signature);
}

TEST(Ledger, anOperationThatEndedBeforeItsClaimIsOneRow) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  // A helper refused it in prepare: known, though nothing was claimed.
  auto first = ledger->conclude(claimOf("op-1"), refusal()).wait(ledger.wait());
  ASSERT_TRUE(first.ok());
  auto receipt = opened(*ledger.operator->(), *first);
  EXPECT_EQ(receipt.claimedAt, 0);
  EXPECT_EQ(receipt.sequence, 1u);
  EXPECT_EQ(receipt.helper.generation, 3u);
  EXPECT_EQ(receipt.terminal, Terminal::REJECTED);
  EXPECT_EQ(KJ_ASSERT_NONNULL(receipt.refusal), RefusalCode::TARGET_MISSING);

  auto again = ledger->conclude(claimOf("op-1"), refusal()).wait(ledger.wait());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->body.asPtr(), first->body.asPtr());
  auto other = ledger->conclude(claimOf("op-1", "another"), refusal()).wait(ledger.wait());
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.refusal().code, RefusalCode::OPERATION_CONFLICT);
}

TEST(Ledger, aClaimedOperationCannotBeConcludedAsUnclaimed) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  ASSERT_TRUE(ledger.claims("op-1"));
  auto concluded = ledger->conclude(claimOf("op-1"), refusal()).wait(ledger.wait());
  ASSERT_FALSE(concluded.ok());
  EXPECT_EQ(concluded.refusal().code, RefusalCode::OPERATION_CONFLICT);
  EXPECT_TRUE(ledger->find("op-1")->is<ledger::Open>());
}

TEST(Ledger, anEffectWithoutAClaimIsNeverRecorded) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  EXPECT_ANY_THROW(ledger->conclude(claimOf("op-1"), success()).wait(ledger.wait()));
  EXPECT_TRUE(ledger->find("op-1")->is<ledger::Unknown>());
}

TEST(Ledger, anEndingForAnUnknownIdHarmsNobodyElse) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  EXPECT_ANY_THROW(ledger->settle(kj::str("never-claimed"), success()).wait(ledger.wait()));
  EXPECT_TRUE(ledger.claims("op-1"));
  EXPECT_TRUE(ledger->find("never-claimed")->is<ledger::Unknown>());
}

TEST(Ledger, aClaimThatIsNotMadeOfIdentifiersNeverReachesTheFile) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  auto spaced = claimOf("op-1");
  spaced.turn = kj::str("my pin is 1234");
  EXPECT_ANY_THROW(ledger->claim(kj::mv(spaced)));
  auto nameless = claimOf("");
  EXPECT_ANY_THROW(ledger->claim(kj::mv(nameless)));
  auto timeless = claimOf("op-1");
  timeless.at = 0;
  EXPECT_ANY_THROW(ledger->claim(kj::mv(timeless)));
  EXPECT_TRUE(ledger.claims("op-1"));
}

TEST(Ledger, aDroppedPromiseDoesNotTakeTheWriteBack) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    { auto dropped = ledger->claim(claimOf("op-1")); }
    ASSERT_TRUE(ledger.claims("op-2"));
    EXPECT_TRUE(ledger->find("op-1")->is<ledger::Open>());
  }
}

TEST(Ledger, whatIsQueuedIsWrittenBeforeTheLedgerCloses) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    FaultyVfs disk;
    Running ledger(folder);
    disk.arm(Fault::HOLD, 1);
    kj::Vector<kj::Promise<Result<Done>>> claims;
    claims.add(ledger->claim(claimOf("op-0")));
    disk.awaitHeld();
    for (int i = 1; i < 20; ++i) claims.add(ledger->claim(claimOf(kj::str("op-", i))));
    disk.release();
    ledger.close();
    for (auto& claim : claims) EXPECT_TRUE(claim.wait(ledger.wait()).ok());
  }
  Running ledger(folder);
  EXPECT_EQ(ledger->recovered().settled, 20u);
}

TEST(Ledger, everyClassAndTerminalOfTheSchemaCanBeRecorded) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    int n = 0;
    for (uint16_t each = 0; each <= static_cast<uint16_t>(ActionClass::FILE_MUTATION); ++each) {
      auto claim = claimOf(kj::str("class-", ++n));
      claim.actionClass = static_cast<ActionClass>(each);
      EXPECT_TRUE(ledger->claim(kj::mv(claim)).wait(ledger.wait()).ok());
      ledger.settles(kj::str("class-", n));
    }
    for (uint16_t each = 0; each <= static_cast<uint16_t>(Terminal::OUTCOME_UNKNOWN); ++each) {
      auto id = kj::str("terminal-", ++n);
      ASSERT_TRUE(ledger.claims(id));
      auto ending = refusal();
      ending.terminal = static_cast<Terminal>(each);
      EXPECT_TRUE(ledger->settle(kj::str(id), kj::mv(ending)).wait(ledger.wait()).ok());
    }
  }
}

TEST(Ledger, aLongRunUsesItsLogAgain) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  auto log = kj::str(folder, "/ledger.db-wal");
  struct stat before, after;
  ASSERT_EQ(stat(log.cStr(), &before), 0);
  {
    Running ledger(folder);
    for (int i = 0; i < 1500; ++i) {
      ASSERT_TRUE(ledger.claims(kj::str("op-", i)));
      ledger.settles(kj::str("op-", i));
    }
    ASSERT_EQ(stat(log.cStr(), &after), 0);
  }
  // 1500 operations write some 9000 pages; the log has room for 1000 and takes the batch that fills
  // it.
  EXPECT_LT(after.st_size, before.st_size + 64 * 4120);
  EXPECT_EQ(findingsIn(folder), "");
}

// What is stored of an operation, column by column, is an id that was given, a word, a hash or a
// number.
TEST(Ledger, rowsHoldNothingButIdentifiersWordsHashesAndNumbers) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("op-1"));
    ledger.settles("op-1");
    ledger.concludes("op-2");
  }
  std::set<std::string> known = {
      "op-1",    "op-2",   "semantic_mutation",  "set_value", "host",
      "key-1",   "turn-1", "uid:1000",           "session-1", "",
      "0.1.0",   "claim",  "praefectus-desktop", "ending",    "succeeded",
      "rejected"};
  BackDoor door(folder);
  for (auto table : {"operation", "chain"}) {
    for (auto& column :
         door.rows(kj::str("SELECT name, type FROM pragma_table_info('", table, "')"))) {
      auto bar = KJ_ASSERT_NONNULL(column.findFirst('|'));
      auto name = kj::str(column.slice(0, bar));
      if (column.slice(bar + 1) != "TEXT") continue;
      for (auto& value : door.rows(kj::str("SELECT \"", name, "\" FROM ", table))) {
        EXPECT_TRUE(known.count(value.cStr())) << name.cStr() << " holds " << value.cStr();
      }
    }
  }
}

TEST(Ledger, noProgramCanChangeOrRemoveWhatIsRecorded) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("ended"));
    ledger.settles("ended");
    ledger.concludes("unclaimed");
  }
  BackDoor door(folder);
  for (auto table : {"operation", "chain", "ring", "ledger"}) {
    EXPECT_EQ(door.run(kj::str("DELETE FROM ", table)), SQLITE_CONSTRAINT) << table;
    for (auto& column : door.rows(kj::str("SELECT name FROM pragma_table_info('", table, "')"))) {
      EXPECT_EQ(door.run(kj::str("UPDATE ", table, " SET \"", column, "\" = \"", column, "\"")),
                SQLITE_CONSTRAINT)
          << table << "." << column.cStr();
    }
    EXPECT_EQ(door.run(kj::str("INSERT OR REPLACE INTO ", table, " SELECT * FROM ", table)),
              SQLITE_CONSTRAINT)
        << table;
  }
}

TEST(Ledger, noProgramCanPutSomethingBesideTheChain) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("open"));
    ASSERT_TRUE(ledger.claims("ended"));
    ledger.settles("ended");
    // Left open on purpose; the back door comes in while the supervisor is at work.
    BackDoor door(folder);
    auto refuses = [&](kj::StringPtr script) { return door.run(script) == SQLITE_CONSTRAINT; };
    auto copy = [](kj::StringPtr id, kj::StringPtr places) {
      return kj::str(
          "INSERT INTO operation SELECT '", id,
          "', action_hash, action_class, kind, grant_issuer, grant_key_id, grant_hash, subject, "
          "session, turn, helper_name, helper_release, helper_digest, helper_generation, "
          "claimed_at, ",
          places, " FROM operation WHERE id = 'open'");
    };
    EXPECT_TRUE(refuses(copy("open", "4, NULL")));  // An id twice.
    auto replacing =
        kj::str("INSERT OR REPLACE ", copy("open", "4, NULL").slice(strlen("INSERT ")));
    EXPECT_TRUE(refuses(replacing));               // The same, in place of the first.
    EXPECT_TRUE(refuses(copy("new", "9, NULL")));  // A gap.
    EXPECT_TRUE(refuses(copy("new", "1, NULL")));  // An old place.
    EXPECT_TRUE(refuses(copy("new", "NULL, 4")));  // Claimed at a time, in no place.
    EXPECT_TRUE(refuses(copy("new", "4, 5")));     // Ended at birth.
    EXPECT_TRUE(refuses(copy("not an id", "4, NULL")));
    EXPECT_TRUE(refuses("UPDATE operation SET ended = 9 WHERE id = 'open'"));
    EXPECT_TRUE(refuses("UPDATE operation SET ended = NULL WHERE id = 'open'"));
    EXPECT_TRUE(
        refuses("INSERT INTO chain VALUES (4, 'claim', 'open', zeroblob(32), NULL, NULL, NULL)"));
    EXPECT_TRUE(
        refuses("INSERT INTO chain VALUES (6, 'claim', 'open', zeroblob(32), NULL, NULL, NULL)"));
    EXPECT_TRUE(
        refuses("INSERT INTO chain VALUES (4, 'claim', 'none', zeroblob(32), NULL, NULL, NULL)"));
    EXPECT_TRUE(refuses("INSERT INTO ring VALUES (1, 'me', 'mine', zeroblob(32))"));
    EXPECT_TRUE(refuses("INSERT INTO ledger VALUES (1, zeroblob(32), 1, zeroblob(32))"));
  }
  EXPECT_EQ(findingsIn(folder), "");
}

}  // namespace
}  // namespace praefectus::test
