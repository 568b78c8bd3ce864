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
  EXPECT_EQ(receipt.mode, Mode::BACKGROUND_ONLY);
  EXPECT_EQ(receipt.risk, Safety::REVERSIBLE);
  EXPECT_EQ(receipt.proof, Proof::VALUE);
  EXPECT_TRUE(receipt.rights.irreversible);
  EXPECT_FALSE(receipt.rights.focus);
  EXPECT_EQ(receipt.grantIssuer, "host");
  EXPECT_EQ(receipt.grantHash, hashNamed("a grant"));
  EXPECT_EQ(receipt.policyGeneration, 4u);
  EXPECT_EQ(receipt.lease, "lease-1");
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
  EXPECT_EQ(receipt.sequence, 4u);  // After creation, start and claim.
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
  EXPECT_EQ(receipt.sequence, 3u);
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

// What is stored, column by column, is an id that was given, a word, a hash or a number.
TEST(Ledger, rowsHoldNothingButIdentifiersWordsHashesAndNumbers) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("op-1"));
    ledger.settles("op-1");
    ledger.concludes("op-2");
  }
  std::set<std::string> known = {// Given.
                                 "op-1", "op-2", "host", "key-1", "lease-1", "uid:1000",
                                 "session-1", "turn-1", "praefectus-desktop", "0.1.0",
                                 // Words.
                                 "", "semantic_mutation", "set_value", "background_only",
                                 "reversible", "value", "irreversible", "succeeded", "rejected",
                                 "verified", "none", "target_missing", "accessibility", "confirmed",
                                 "unknown", "value_readback", "same_process", "preserved",
                                 "unwatched", "created", "started"};
  BackDoor door(folder);
  size_t texts = 0;
  for (auto table :
       {"operation", "ending", "event", "authority", "helper", "retired", "mark", "ledger"}) {
    for (auto& column :
         door.rows(kj::str("SELECT name, type FROM pragma_table_info('", table, "')"))) {
      auto bar = KJ_ASSERT_NONNULL(column.findFirst('|'));
      auto name = kj::str(column.slice(0, bar));
      if (column.slice(bar + 1) != "TEXT") continue;
      for (auto& value : door.rows(kj::str("SELECT \"", name, "\" FROM ", table))) {
        EXPECT_TRUE(known.count(value.cStr())) << name.cStr() << " holds " << value.cStr();
        ++texts;
      }
    }
  }
  EXPECT_GT(texts, 40u);
}

// Recorded in every table.
kj::String makeFullLedger(const TemporaryFolder& place) {
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    KJ_ASSERT(ledger.claims("ended"));
    ledger.settles("ended");
    ledger.concludes("unclaimed");
  }
  BackDoor door(folder);
  KJ_ASSERT(door.run("INSERT INTO retired (id) VALUES ('imported')") == SQLITE_OK);
  return folder;
}

TEST(Ledger, noProgramCanChangeOrRemoveWhatIsRecorded) {
  TemporaryFolder place;
  auto folder = makeFullLedger(place);
  BackDoor door(folder);
  for (kj::StringPtr table : {"operation"_kj, "ending"_kj, "event"_kj, "authority"_kj, "helper"_kj,
                              "retired"_kj, "mark"_kj, "ring"_kj, "ledger"_kj}) {
    ASSERT_FALSE(door.rows(kj::str("SELECT 1 FROM ", table)).empty()) << table.cStr();
    EXPECT_EQ(door.run(kj::str("DELETE FROM ", table)), SQLITE_CONSTRAINT) << table.cStr();
    for (auto& column : door.rows(kj::str("SELECT name FROM pragma_table_info('", table, "')"))) {
      if (table == "mark") break;  // Moves on, under rules of its own.
      EXPECT_EQ(door.run(kj::str("UPDATE ", table, " SET \"", column, "\" = \"", column, "\"")),
                SQLITE_CONSTRAINT)
          << table.cStr() << "." << column.cStr();
    }
    EXPECT_EQ(door.run(kj::str("INSERT OR REPLACE INTO ", table, " SELECT * FROM ", table)),
              SQLITE_CONSTRAINT)
        << table.cStr();
  }
}

class BesideTheChain : public testing::Test {
 public:
  ~BesideTheChain() noexcept override {}

 protected:
  // Places: 1 created, 2 started, 3 claim "open", 4 claim and 5 ending "ended", 6 "unclaimed".
  void SetUp() override {
    folder = makeLedger(place);
    ledger = kj::heap<Running>(folder);
    ASSERT_TRUE(ledger->claims("open"));
    ASSERT_TRUE(ledger->claims("ended"));
    ledger->settles("ended");
    ledger->concludes("unclaimed");
    // The back door comes in while the supervisor is at work.
    door = kj::heap<BackDoor>(folder);
  }

  void TearDown() override {
    ledger = nullptr;
    EXPECT_EQ(findingsIn(folder), "");
  }

  // A copy of a row with some columns changed: "column = expression, …".
  kj::String copy(kj::StringPtr table, kj::StringPtr which, kj::StringPtr verb,
                  std::initializer_list<kj::StringPtr> changes) {
    kj::Vector<kj::String> values;
    for (auto& column : door->rows(kj::str("SELECT name FROM pragma_table_info('", table, "')"))) {
      auto value = kj::str('"', column, '"');
      for (auto change : changes) {
        if (change.startsWith(kj::str(column, " = "))) {
          value = kj::heapString(change.slice(column.size() + 3));
        }
      }
      values.add(kj::mv(value));
    }
    return kj::str(verb, " INTO ", table, " SELECT ", kj::strArray(values, ", "), " FROM ", table,
                   " WHERE ", which);
  }
  // What the trigger or constraint said; empty when it was accepted, and then it is taken back.
  kj::String refusal(kj::StringPtr script) {
    int code = door->run(kj::str("BEGIN IMMEDIATE; ", script));
    auto said = kj::str(door->said());
    KJ_ASSERT(code == SQLITE_OK || code == SQLITE_CONSTRAINT, script, code, said);
    KJ_ASSERT(door->run("ROLLBACK") == SQLITE_OK);
    return code == SQLITE_OK ? kj::str() : kj::mv(said);
  }
  kj::String operation(kj::StringPtr verb, std::initializer_list<kj::StringPtr> changes) {
    return refusal(copy("operation", "id = 'open'", verb, changes));
  }
  kj::String ending(std::initializer_list<kj::StringPtr> changes) {
    return refusal(copy("ending", "place = 5", "INSERT", changes));
  }
  static kj::String retiring(kj::StringPtr id, kj::StringPtr hash = "action_hash",
                             kj::StringPtr ended = "e.place, e.link") {
    return kj::str("INSERT INTO retired SELECT id, ", hash, ", ", ended,
                   " FROM operation o LEFT JOIN ending e ON e.operation = o.place WHERE id = '", id,
                   "'");
  }
  kj::String event(std::initializer_list<kj::StringPtr> changes) {
    return refusal(copy("event", "place = 2", "INSERT", changes));
  }

  TemporaryFolder place;
  kj::String folder;
  kj::Own<Running> ledger;
  kj::Own<BackDoor> door;
};

constexpr kj::StringPtr ONCE = "an operation id is used once"_kj;
constexpr kj::StringPtr NEXT = "an operation takes the next place in the chain"_kj;
constexpr kj::StringPtr ENDS_NEXT = "an ending takes the next place in the chain"_kj;
constexpr kj::StringPtr ENDS_ONCE = "an operation ends once, and never when it is quarantined"_kj;

TEST_F(BesideTheChain, anOperationTakesTheNextPlaceUnderANewId) {
  EXPECT_EQ(operation("INSERT", {"place = 7"_kj, "id = 'new'"_kj}),
            "");  // The measure of the rest.
  EXPECT_EQ(operation("INSERT", {"place = 7"_kj}), ONCE);
  EXPECT_EQ(operation("INSERT OR REPLACE", {"place = 7"_kj}), ONCE);
  EXPECT_EQ(operation("INSERT OR REPLACE", {"id = 'new'"_kj}), NEXT);
  EXPECT_EQ(operation("INSERT", {"place = 8"_kj, "id = 'new'"_kj}), NEXT);
  EXPECT_EQ(operation("INSERT", {"place = 5"_kj, "id = 'new'"_kj}), NEXT);
  ASSERT_EQ(door->run("INSERT INTO retired (id) VALUES ('imported')"), SQLITE_OK);
  EXPECT_EQ(operation("INSERT", {"place = 7"_kj, "id = 'imported'"_kj}), ONCE);
}

TEST_F(BesideTheChain, anOperationNamesWhatIsHereAndNothingButNames) {
  auto named = "an operation names an authority and a helper that are here"_kj;
  EXPECT_EQ(operation("INSERT", {"place = 7"_kj, "id = 'new'"_kj, "authority = 99"_kj}), named);
  EXPECT_EQ(operation("INSERT", {"place = 7"_kj, "id = 'new'"_kj, "helper = 99"_kj}), named);
  for (kj::StringPtr change :
       {"id = 'not an id'"_kj, "id = ''"_kj, "action_hash = zeroblob(31)"_kj,
        "action_class = 'my pin'"_kj, "kind = 'Typed'"_kj, "mode = ''"_kj, "risk = '1234'"_kj,
        "proof = 'a b'"_kj, "rights = '1234'"_kj, "grant_hash = zeroblob(33)"_kj,
        "helper = NULL"_kj, "helper_generation = 0"_kj, "claimed_at = NULL"_kj, "claimed_at = 0"_kj,
        "link = NULL"_kj, "link = zeroblob(31)"_kj}) {
    EXPECT_TRUE(operation("INSERT", {"place = 7"_kj, "id = 'new'"_kj, change})
                    .startsWith("CHECK constraint failed"))
        << change.cStr();
  }
}

TEST_F(BesideTheChain, anEndingTakesTheNextPlaceOnceForWhatWasClaimed) {
  EXPECT_EQ(ending({"place = 7"_kj, "operation = 3"_kj}), "");  // The measure of the rest.
  EXPECT_EQ(ending({"place = 8"_kj, "operation = 3"_kj}), ENDS_NEXT);
  EXPECT_EQ(ending({"place = 3"_kj, "operation = 3"_kj}), ENDS_NEXT);
  EXPECT_EQ(ending({"place = 7"_kj, "operation = 99"_kj}), ENDS_NEXT);
  EXPECT_EQ(ending({"place = 7"_kj, "operation = 2"_kj}), ENDS_NEXT);  // An event.
  EXPECT_EQ(ending({"place = 7"_kj, "operation = 4"_kj}), ENDS_ONCE);
  EXPECT_EQ(ending({"place = 6"_kj, "operation = 6"_kj}), ENDS_ONCE);
  EXPECT_NE(ending({"place = 7"_kj, "operation = 6"_kj}), "");
  for (kj::StringPtr change :
       {"terminal = 'done'"_kj, "effect = 'some'"_kj, "refusal = 'My pin'"_kj, "retry_safe = 2"_kj,
        "route = ''"_kj, "verdict = '1'"_kj, "method = 'X'"_kj, "source = ''"_kj,
        "units_done = -1"_kj, "units_asked = 4294967296"_kj, "context = '?'"_kj,
        "warnings = '1234'"_kj, "previous = zeroblob(31)"_kj, "link = zeroblob(1)"_kj,
        "signature = zeroblob(63)"_kj}) {
    EXPECT_TRUE(
        ending({"place = 7"_kj, "operation = 3"_kj, change}).startsWith("CHECK constraint failed"))
        << change.cStr();
  }
}

TEST_F(BesideTheChain, anEventTakesTheNextPlaceAndIsOfAKnownKind) {
  auto next = "an event takes the next place in the chain"_kj;
  EXPECT_EQ(event({"place = 7"_kj}), "");
  EXPECT_EQ(event({"place = 8"_kj}), next);
  EXPECT_EQ(event({"place = 3"_kj}), next);
  for (kj::StringPtr change :
       {"kind = 'created'"_kj, "kind = 'other'"_kj, "kind = 'archived'"_kj, "about = 3"_kj,
        "body = zeroblob(7)"_kj, "link = zeroblob(31)"_kj, "signature = zeroblob(65)"_kj}) {
    EXPECT_TRUE(event({"place = 7"_kj, change}).startsWith("CHECK constraint failed"))
        << change.cStr();
  }
}

TEST_F(BesideTheChain, whatIsQuarantinedNeverEnds) {
  auto quarantine = copy("event", "place = 2", "INSERT",
                         {"place = 7"_kj, "kind = 'quarantined'"_kj, "about = 3"_kj});
  auto ending = copy("ending", "place = 5", "INSERT", {"place = 8"_kj, "operation = 3"_kj});
  EXPECT_EQ(refusal(kj::str(quarantine, "; ", ending)), ENDS_ONCE);
}

TEST_F(BesideTheChain, onlyWhatIsArchivedRetiredAndCountedIsRemoved) {
  ledger->settles("open");  // In place 7.
  auto kept = "nothing is removed that is not archived"_kj;
  auto archiveTo = [&](kj::StringPtr about) {
    return copy("event", "place = 2", "INSERT", {"place = 8"_kj, "kind = 'archived'"_kj, about});
  };
  auto archive = archiveTo("about = 5");
  auto count = "UPDATE mark SET place = 8, operations = 3"_kj;
  auto retire = retiring("ended");
  auto end = "DELETE FROM ending WHERE place = 5"_kj;
  auto operation = "DELETE FROM operation WHERE id = 'ended'"_kj;
  auto together = [&](std::initializer_list<kj::StringPtr> deeds) {
    return refusal(kj::strArray(kj::arrayPtr(deeds.begin(), deeds.size()), "; "));
  };
  EXPECT_EQ(together({count, archive, retire, end, operation}), "");  // The measure of the rest.
  EXPECT_EQ(together({count, archive, end}), kept);
  EXPECT_EQ(together({count, retire, end}), kept);
  EXPECT_EQ(together({count, archiveTo("about = 4"), retire, end}), kept);
  EXPECT_EQ(together({count, archive, retire, operation}), kept);  // Before its ending.
  EXPECT_EQ(together({archive, retire, end, operation}), kept);
  EXPECT_EQ(together({count, archive, "DELETE FROM event WHERE place = 1"}), "no event is removed");
}

TEST_F(BesideTheChain, anIdIsRetiredAsWhatItWasAfterItsEnd) {
  auto once = "an id is retired once, as what it was, after its end"_kj;
  EXPECT_EQ(refusal(retiring("ended")), "");  // The measure of the rest.
  EXPECT_EQ(refusal(retiring("open")), once);
  EXPECT_EQ(refusal(retiring("ended", "zeroblob(32)")), once);
  EXPECT_EQ(refusal(retiring("ended", "NULL")), once);
  EXPECT_EQ(refusal(retiring("ended", "action_hash", "4, e.link")), once);  // Of its claim.
  EXPECT_EQ(refusal(retiring("ended", "action_hash", "e.place, o.link")), once);
  EXPECT_EQ(refusal(retiring("ended", "action_hash", "NULL, NULL")), once);
  EXPECT_EQ(refusal("INSERT INTO retired VALUES ('x', zeroblob(32), 5, zeroblob(32))"), once);
  EXPECT_EQ(refusal("INSERT INTO retired (id) VALUES ('x'); "
                    "INSERT OR REPLACE INTO retired (id) VALUES ('x')"),
            once);
  EXPECT_TRUE(refusal("INSERT INTO retired VALUES ('x', zeroblob(32), NULL, NULL)")
                  .startsWith("CHECK constraint failed"));
}

TEST_F(BesideTheChain, theMarkMovesOnAndPassesNothingThatIsOpen) {
  auto moves = "the mark moves on and counts"_kj;
  EXPECT_EQ(door->rows("SELECT place, operations FROM mark")[0], "3|0");
  EXPECT_EQ(refusal("UPDATE mark SET place = 2"), moves);
  EXPECT_EQ(refusal("UPDATE mark SET operations = 1"), moves);
  EXPECT_EQ(refusal("UPDATE mark SET place = 4, operations = 1"),
            "the mark passes nothing that is open");
  EXPECT_EQ(refusal("UPDATE mark SET latest = latest - 1"),
            "the mark goes back in time only when the clock was accepted");
  EXPECT_EQ(refusal("INSERT OR REPLACE INTO mark VALUES (1, 3, 0, 0)"), "there is one mark");
  EXPECT_EQ(refusal("UPDATE mark SET only = 2"), "CHECK constraint failed: only = 1");
  ledger->settles("open");
  EXPECT_EQ(refusal("UPDATE mark SET place = 8, operations = 2"), moves);
  EXPECT_EQ(refusal("UPDATE mark SET place = 9, operations = 3"), moves);
  EXPECT_EQ(refusal("UPDATE mark SET place = 8, operations = 3"), "");
}

TEST_F(BesideTheChain, ringAndIdentityAreClosed) {
  EXPECT_EQ(refusal("INSERT INTO ring VALUES (1, 'me', 'mine', zeroblob(32))"),
            "the ring is pinned at creation");
  EXPECT_EQ(refusal("INSERT INTO ledger VALUES (1, zeroblob(32))"), "a ledger is made once");
}

}  // namespace
}  // namespace praefectus::test
