// What a person says to a ledger: that it lies here now, that its key is another, that the clock is
// right; and what a person may ask of it.
#include "supervisor/ledger/upkeep.h"

#include "tests/ledger/keeping.h"

#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

using ledger::acceptClock;
using ledger::rotateKey;
using ledger::takeInventory;

constexpr int64_t HOUR = 3'600'000;
constexpr int64_t DAY = 24 * HOUR;

// ---- Adoption

TEST(Adoption, makesTheLedgerServeWhereItLiesNow) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  does(folder, "op-1");
  copyFolder(folder, place / "moved");
  ASSERT_EQ(outcomeOfOpening(place / "moved"), "ledger_moved");

  auto id = ledger::adopt(place / "moved", momentAt(NOW));
  ASSERT_TRUE(id.ok()) << id.refusal().detail.cStr();
  EXPECT_EQ(id->incarnation, 2u);
  Running moved(place / "moved");
  EXPECT_EQ(moved->id(), *id);
  EXPECT_TRUE(moved->find("op-1")->is<attest::Envelope>());
  moved.close();
  EXPECT_EQ(findingsIn(place / "moved"), "");
}

// Admission's own comparison, of a grant that was signed before.
TEST(Adoption, voidsEveryEarlierGrant) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  GrantSignedFor earlier(folder);
  EXPECT_EQ(earlier.presentedTo(folder), "ok");
  ASSERT_TRUE(ledger::adopt(folder, momentAt(NOW)).ok());
  EXPECT_EQ(earlier.presentedTo(folder), "policy_denied");
  EXPECT_EQ(GrantSignedFor(folder).presentedTo(folder), "ok");
}

// An older copy may count to an incarnation that was used meanwhile.
TEST(Adoption, passesAnIncarnationThatIsKnownElsewhere) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  EXPECT_EQ(ledger::adopt(folder, momentAt(NOW), 1)->incarnation, 2u);
  EXPECT_EQ(ledger::adopt(folder, momentAt(NOW), 7)->incarnation, 8u);
  EXPECT_EQ(ledger::adopt(folder, momentAt(NOW), 3)->incarnation, 9u);
  auto before = bytesIn(folder);
  auto tooFar = ledger::adopt(folder, momentAt(NOW), 2000);
  ASSERT_FALSE(tooFar.ok());
  EXPECT_EQ(tooFar.refusal().code, RefusalCode::POLICY_FORBIDDEN);
  EXPECT_TRUE(bytesIn(folder) == before);
  EXPECT_EQ(findingsIn(folder), "");
}

TEST(Adoption, leavesWhatIsOpenToTheNextStart) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  ASSERT_TRUE(Running(folder).claims("op-1"));
  ASSERT_TRUE(ledger::adopt(folder, momentAt(NOW)).ok());
  EXPECT_EQ(takeInventory(folder)->summary.open, 1u);
  Running ledger(folder);
  EXPECT_EQ(ledger->recovered().settled, 1u);
  auto found = ledger->find("op-1");
  EXPECT_EQ(opened(*ledger.operator->(), found->get<attest::Envelope>()).terminal,
            Terminal::OUTCOME_UNKNOWN);
}

// ---- Who may

TEST(Upkeep, leavesALedgerAloneThatASupervisorHas) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  auto before = bytesIn(folder);
  EXPECT_EQ(codeOf(ledger::adopt(folder, momentAt(NOW))), "ledger_busy");
  EXPECT_EQ(codeOf(rotateKey(folder, momentAt(NOW))), "ledger_busy");
  EXPECT_EQ(codeOf(acceptClock(folder, momentAt(NOW))), "ledger_busy");
  EXPECT_EQ(codeOf(archiveBefore(folder, NOW + DAY, place / "archive")), "ledger_busy");
  EXPECT_EQ(codeOf(import(folder, "")), "ledger_busy");
  EXPECT_TRUE(bytesIn(folder) == before);
}

TEST(Upkeep, asksForAdoptionBeforeAnythingElse) {
  TemporaryFolder place;
  auto folder = place / "moved";
  copyFolder(makeLedger(place), folder);
  EXPECT_EQ(codeOf(rotateKey(folder, momentAt(NOW))), "ledger_moved");
  EXPECT_EQ(codeOf(acceptClock(folder, momentAt(NOW))), "ledger_moved");
  EXPECT_EQ(codeOf(archiveBefore(folder, NOW + DAY, place / "archive")), "ledger_moved");
  EXPECT_EQ(codeOf(import(folder, "")), "ledger_moved");
}

TEST(Upkeep, recordsNoTimeThatTheLedgerDoesNotBelieve) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  { Running ledger(folder); }
  ASSERT_TRUE(ledger::adopt(folder, momentAt(NOW - DAY)).ok());
  ASSERT_TRUE(rotateKey(folder, {NOW + 30 * DAY, 1'000'000}).ok());
  BackDoor file(folder, SQLITE_OPEN_READONLY);
  EXPECT_EQ(kj::strArray(file.rows("SELECT DISTINCT at FROM event"), " "), kj::str(NOW));
}

// ---- Keys

TEST(Rotation, changesTheKeyAndWhatTheOldOneSignedStillCounts) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  LedgerId id;
  attest::PublicKey first;
  attest::Envelope early;
  {
    Running ledger(folder);
    id = ledger->id();
    first = ledger->receiptKey();
    early = does(ledger, "op-1");
  }
  auto next = rotateKey(folder, momentAt(NOW + 1));
  ASSERT_TRUE(next.ok()) << next.refusal().detail.cStr();
  EXPECT_NE(*next, first);
  Running ledger(folder);
  EXPECT_EQ(ledger->id(), id);
  EXPECT_EQ(ledger->receiptKey(), *next);
  ASSERT_EQ(ledger->formerReceiptKeys().size(), 1u);
  EXPECT_EQ(ledger->formerReceiptKeys()[0], first);
  auto late = does(ledger, "op-2");
  EXPECT_TRUE(attest::openReceipt(*next, late).ok());
  EXPECT_FALSE(attest::openReceipt(first, late).ok());
  auto found = ledger->find("op-1");
  ASSERT_TRUE(found->is<attest::Envelope>());
  EXPECT_TRUE(attest::openReceipt(first, found->get<attest::Envelope>()).ok());
  EXPECT_EQ(found->get<attest::Envelope>().body, early.body);
  ledger.close();
  EXPECT_EQ(findingsIn(folder), "");
  EXPECT_NE(access((place / "ledger/receipt.key.next").cStr(), F_OK), 0);
}

// What a power cut leaves: the event is there and the key is still in its other place.
TEST(Rotation, thatWasCutShortIsFinishedByTheNextToOpen) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto key = place / "ledger/receipt.key", other = place / "ledger/receipt.key.next";
  auto old = readWhole(key);
  auto next = rotateKey(folder, momentAt(NOW));
  ASSERT_TRUE(next.ok());
  ASSERT_EQ(rename(key.cStr(), other.cStr()), 0);
  writeWhole(key, old);

  EXPECT_EQ(check(folder), "");
  auto copied = ledger::backUp(folder, place / "backup", silent());
  EXPECT_TRUE(copied.ok() && copied->findings == 0);
  Running ledger(folder);
  EXPECT_EQ(ledger->receiptKey(), *next);
  EXPECT_NE(access(other.cStr(), F_OK), 0);
}

TEST(Rotation, takesNoKeyThatNoEventStates) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto other = place / "ledger/receipt.key.next";
  attest::SigningKey::generate().save(other);
  auto first = takeInventory(folder)->summary.receiptKey;
  EXPECT_EQ(Running(folder)->receiptKey(), first);
  auto next = rotateKey(folder, momentAt(NOW));
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(Running(folder)->receiptKey(), *next);

  // Nor when the ledger's own is gone.
  attest::SigningKey::generate().save(other);
  ASSERT_EQ(rename(other.cStr(), (place / "ledger/receipt.key").cStr()), 0);
  attest::SigningKey::generate().save(other);
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");
}

// ---- Time

TEST(ClockAcceptance, makesAnEarlierTimeTheOneThatCounts) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  { Running ledger(folder, NOW + 30 * DAY); }
  ledger::Moment now{NOW, momentAt(NOW + 30 * DAY).bootMs + 1000};
  {
    auto opened = Ledger::open(folder, now);
    ASSERT_TRUE(opened.ok());
    EXPECT_FALSE((*opened)->clockMemory().agrees(now));
  }
  ASSERT_TRUE(acceptClock(folder, now).ok());
  auto opened = Ledger::open(folder, now);
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE((*opened)->clockMemory().agrees(now));
  EXPECT_FALSE((*opened)->clockMemory().agrees({NOW + 30 * DAY, now.bootMs}));
  opened = Refusal{RefusalCode::ABORTED, "closed"};
  EXPECT_EQ(findingsIn(folder), "");
}

// ---- Looking

TEST(Inventory, countsWhatThereIs) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    for (int i = 0; i < 3; ++i) does(ledger, kj::str("done-", i));
    ledger.concludes("refused");
    ASSERT_TRUE(ledger.claims("open"));
  }
  auto inventory = takeInventory(folder);
  ASSERT_TRUE(inventory.ok()) << inventory.refusal().detail.cStr();
  EXPECT_EQ(inventory->summary.operations, 5u);
  EXPECT_EQ(inventory->summary.open, 1u);
  EXPECT_EQ(spelled(inventory->terminals),
            "succeeded 3, rejected 1, failed 0, cancelled_before_effect 0, "
            "expired_before_effect 0, outcome_unknown 0");
  EXPECT_EQ(spelled(inventory->events), "created 1, started 1");
  ASSERT_EQ(inventory->keys.size(), 1u);
  EXPECT_EQ(inventory->keys[0].key, inventory->summary.receiptKey);
  EXPECT_EQ(KJ_ASSERT_NONNULL(inventory->firstAt), NOW);
  EXPECT_EQ(KJ_ASSERT_NONNULL(inventory->lastAt), NOW + 5);
  EXPECT_EQ(inventory->databaseBytes, readWhole(place / "ledger/ledger.db").size());
  EXPECT_EQ(inventory->logBytes, readWhole(place / "ledger/ledger.db-wal").size());
  EXPECT_FALSE(inventory->moved);
  EXPECT_EQ(inventory->quarantined + inventory->retiredHere + inventory->retiredElsewhere, 0u);
}

TEST(Inventory, isTakenBesideASupervisorAndChangesNothing) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  does(ledger, "op-1");
  auto before = bytesIn(folder);
  EXPECT_EQ(takeInventory(folder)->summary.operations, 1u);
  EXPECT_EQ(check(folder), "");
  EXPECT_TRUE(bytesIn(folder) == before);
  does(ledger, "op-2");
  EXPECT_EQ(takeInventory(folder)->summary.operations, 2u);
}

TEST(Inventory, saysWhoTheLedgerWasAndWhereItIs) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto first = takeInventory(folder)->summary.receiptKey;
  auto next = rotateKey(folder, momentAt(NOW));
  auto inventory = takeInventory(folder);
  ASSERT_EQ(inventory->keys.size(), 2u);
  EXPECT_EQ(inventory->keys[0].key, first);
  EXPECT_EQ(inventory->keys[1].key, *next);
  EXPECT_EQ(inventory->keys[1].after, 2u);
  copyFolder(folder, place / "moved");
  EXPECT_TRUE(takeInventory(place / "moved")->moved);
}

TEST(Check, findsWhatIsWrongAroundTheLedger) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  ASSERT_EQ(check(folder), "");
  auto key = place / "ledger/receipt.key";

  ASSERT_EQ(chmod((place / "ledger/ledger.db-wal").cStr(), 0640), 0);
  ASSERT_EQ(chmod(folder.cStr(), 0750), 0);
  EXPECT_EQ(check(folder),
            "0: The ledger's folder does not have mode 0700.\n"
            "0: A file of the ledger does not have mode 0600.");
  ASSERT_EQ(chmod((place / "ledger/ledger.db-wal").cStr(), 0600), 0);
  ASSERT_EQ(chmod(folder.cStr(), 0700), 0);
  ASSERT_EQ(check(folder), "");

  ASSERT_EQ(rename(key.cStr(), (place / "elsewhere").cStr()), 0);
  EXPECT_NE(check(folder), "");
  attest::SigningKey::generate().save(key);
  EXPECT_EQ(check(folder), "0: The receipt key is not this ledger's.");
}

TEST(Check, findsWhatWasChangedInIt) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  does(folder, "op-1");
  {
    BackDoor file(folder);
    ASSERT_EQ(file.run("DROP TRIGGER ending_fixed; UPDATE ending SET terminal = 'failed'"),
              SQLITE_OK);
  }
  EXPECT_NE(check(folder), "");
}

}  // namespace
}  // namespace praefectus::test
