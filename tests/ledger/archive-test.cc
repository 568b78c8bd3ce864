// Old operations in a file of their own: whole, provable by itself, and never done again here.
#include "tests/ledger/keeping.h"

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

using ledger::takeInventory;

constexpr int64_t HOUR = 3'600'000;

void claimsAt(Running& ledger, kj::StringPtr operation, int64_t at) {
  auto claim = claimOf(operation);
  claim.at = at;
  KJ_REQUIRE(ledger->claim(kj::mv(claim)).wait(ledger.wait()).ok());
}

attest::Envelope settlesAt(Running& ledger, kj::StringPtr operation, int64_t at) {
  auto ending = success();
  ending.at = at;
  auto receipt = ledger->settle(kj::str(operation), kj::mv(ending)).wait(ledger.wait());
  KJ_REQUIRE(receipt.ok(), receipt.refusal().detail);
  return kj::mv(*receipt);
}

attest::Envelope doesAt(Running& ledger, kj::StringPtr operation, int64_t at) {
  claimsAt(ledger, operation, at);
  return settlesAt(ledger, operation, at + 1);
}

// Throws when nothing was moved.
ledger::ArchiveMade moved(kj::StringPtr folder, int64_t before, kj::StringPtr file) {
  auto made = archiveBefore(folder, before, file);
  KJ_REQUIRE(made.ok(), made.refusal().detail);
  return KJ_REQUIRE_NONNULL(kj::mv(*made), "nothing was moved");
}

bool movesNothing(kj::StringPtr folder, int64_t before, kj::StringPtr file) {
  auto made = archiveBefore(folder, before, file);
  KJ_REQUIRE(made.ok(), made.refusal().detail);
  return *made == nullptr && access(file.cStr(), F_OK) != 0;
}

// "receipts R, findings F"
std::string verified(kj::StringPtr file, kj::Maybe<attest::PublicKey> trusted = nullptr) {
  auto reader = LedgerReader::open(file);
  if (!reader.ok()) return reader.refusal().detail.cStr();
  auto report = (*reader)->verify(trusted);
  if (!report.ok()) return report.refusal().detail.cStr();
  return kj::str("receipts ", report->receipts, ", findings ", report->findings.size()).cStr();
}

// Five operations of the first hour, and three of the third.
struct Aged : TemporaryFolder {
  Aged() : folder(makeLedger(*this)), file(*this / "archive") {
    Running ledger(folder);
    first = ledger->receiptKey();
    for (int i = 0; i < 4; ++i) early = doesAt(ledger, kj::str("old-", i), NOW + i);
    ledger.concludes("old-4");
    for (int i = 0; i < 3; ++i) doesAt(ledger, kj::str("new-", i), NOW + 2 * HOUR + i);
  }
  kj::String folder, file;
  attest::Envelope early;  // Receipt of old-3.
  attest::PublicKey first;
};

TEST(Archive, takesWhatIsOldAndLeavesItsIdsBehind) {
  Aged place;
  auto made = moved(place.folder, NOW + HOUR, place.file);
  EXPECT_EQ(made.operations, 5u);
  auto inventory = takeInventory(place.folder);
  EXPECT_EQ(inventory->summary.operations, 8u);
  EXPECT_EQ(inventory->retiredHere, 5u);
  EXPECT_EQ(spelled(inventory->events), "created 1, started 1, archived 1");
  ASSERT_EQ(inventory->archives.size(), 1u);
  EXPECT_EQ(inventory->archives[0].digest, attest::digestOf(readWhole(place.file)));
  EXPECT_EQ(inventory->archives[0].digest, made.digest);
  EXPECT_EQ(inventory->archives[0].through, made.through);

  Running ledger(place.folder, NOW + 3 * HOUR);
  for (int i = 0; i < 5; ++i) {
    auto id = kj::str("old-", i);
    EXPECT_TRUE(ledger->find(id, hashNamed("an action"))->is<ledger::Elsewhere>()) << i;
    EXPECT_TRUE(ledger->find(id, hashNamed("another"))->is<ledger::Conflict>()) << i;
    EXPECT_FALSE(ledger.claims(id)) << i;
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ledger->find(kj::str("new-", i))->is<attest::Envelope>()) << i;
  }
  does(ledger, "next");
  ledger.close();
  EXPECT_EQ(check(place.folder), "");
}

TEST(Archive, isProvenByThePublicKeyAlone) {
  Aged place;
  moved(place.folder, NOW + HOUR, place.file);
  std::filesystem::remove_all(place.folder.cStr());
  auto before = readWhole(place.file);
  EXPECT_EQ(verified(place.file, place.first), "receipts 5, findings 0");
  EXPECT_NE(verified(place.file, attest::SigningKey::generate().publicKey()),
            "receipts 5, findings 0");
  auto reader = LedgerReader::open(place.file);
  auto receipt = (*reader)->receipt("old-3");
  EXPECT_EQ(KJ_ASSERT_NONNULL(KJ_ASSERT_NONNULL(*receipt)).body, place.early.body);
  EXPECT_TRUE((*(*reader)->receipt("new-0")) == nullptr);
  EXPECT_EQ((*reader)->recent(100)->size(), 5u);
  EXPECT_EQ((*reader)->summary()->open, 0u);
  EXPECT_TRUE(readWhole(place.file) == before);

  struct stat info;
  ASSERT_EQ(lstat(place.file.cStr(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  auto files = std::filesystem::directory_iterator((place / ".").cStr());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);  // Nothing is beside it.
}

TEST(Archive, andItsLedgerAreOneChain) {
  Aged place;
  auto made = moved(place.folder, NOW + HOUR, place.file);
  auto archive = LedgerReader::open(place.file), rest = LedgerReader::open(place.folder);
  auto last = (*archive)->summary();
  EXPECT_EQ(last->sequence, made.through);
  auto link = (*rest)->linkAt(made.through);
  EXPECT_EQ(KJ_ASSERT_NONNULL(*link), last->head);
}

TEST(Archive, isNoLedger) {
  Aged place;
  moved(place.folder, NOW + HOUR, place.file);
  writeWhole(kj::str(place.folder, "/ledger.db"), readWhole(place.file));
  writeWhole(kj::str(place.folder, "/ledger.db-wal"), nullptr);
  EXPECT_EQ(outcomeOfOpening(place.folder), "ledger_foreign");
}

// The event of the first archive stands behind everything that the second one takes.
TEST(Archive, goesOnWhereTheOneBeforeEnded) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    for (int i = 0; i < 9; ++i) doesAt(ledger, kj::str("op-", i), NOW + i * HOUR);
  }
  auto first = moved(folder, NOW + 3 * HOUR, place / "1");
  auto second = moved(folder, NOW + 6 * HOUR, place / "2");
  EXPECT_GT(second.through, first.through);
  {
    Running ledger(folder, NOW + 9 * HOUR);
    doesAt(ledger, "op-9", NOW + 9 * HOUR);
  }
  auto third = moved(folder, NOW + 20 * HOUR, place / "3");
  EXPECT_EQ(first.operations, 3u);
  EXPECT_EQ(second.operations, 3u);
  EXPECT_EQ(third.operations, 4u);
  EXPECT_EQ(verified(place / "1"), "receipts 3, findings 0");
  EXPECT_EQ(verified(place / "2"), "receipts 3, findings 0");
  EXPECT_EQ(verified(place / "3"), "receipts 4, findings 0");
  EXPECT_EQ(verified(folder), "receipts 0, findings 0");
  auto inventory = takeInventory(folder);
  EXPECT_EQ(inventory->summary.operations, 10u);
  EXPECT_EQ(inventory->archives.size(), 3u);
  EXPECT_TRUE(movesNothing(folder, NOW + 20 * HOUR, place / "4"));
  does(folder, "op-10");
  EXPECT_EQ(check(folder), "");
}

// A host remembers where the last receipt that it got stands, however long ago that was.
TEST(Archive, leavesTheHeadOfEveryReceiptKnown) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  kj::Vector<attest::Head> heads;
  {
    Running ledger(folder);
    auto keep = [&](attest::Envelope receipt) {
      heads.add(attest::headAfter(opened(*ledger.operator->(), receipt), receipt.body));
    };
    keep(doesAt(ledger, "a", NOW));
    keep(ledger.concludes("b"));
    claimsAt(ledger, "c", NOW);
    claimsAt(ledger, "d", NOW);
    keep(settlesAt(ledger, "d", NOW + 1));
    keep(settlesAt(ledger, "c", NOW + 1));
    for (int i = 2; i < 6; ++i) keep(doesAt(ledger, kj::str("op-", i), NOW + i * HOUR));
  }
  auto unknown = [&](int64_t now) {
    Running ledger(folder, now);
    kj::Vector<uint64_t> out;
    for (auto& head : heads) {
      auto wrong = head, moved = head;
      wrong.link[31] ^= 1;
      ++moved.sequence;
      EXPECT_FALSE(ledger->contains(wrong)) << head.sequence;
      EXPECT_FALSE(ledger->contains(moved)) << head.sequence;
      if (!ledger->contains(head)) out.add(head.sequence);
    }
    return kj::str(kj::delimited(out, ", "));
  };
  EXPECT_EQ(unknown(NOW + 6 * HOUR), "");
  EXPECT_EQ(moved(folder, NOW + 3 * HOUR, place / "1").operations, 5u);
  EXPECT_EQ(unknown(NOW + 7 * HOUR), "");
  EXPECT_EQ(moved(folder, NOW + 6 * HOUR, place / "2").operations, 3u);
  EXPECT_EQ(unknown(NOW + 8 * HOUR), "");
  EXPECT_EQ(check(folder), "");
}

TEST(Archive, whatItLeftBehindIsCheckedAgainstWhatIsSigned) {
  Aged place;
  auto made = moved(place.folder, NOW + HOUR, place.file);
  auto kept = "0: The ids of archived operations are not those that the archives took."_kj;
  auto link = kj::str(made.through, ": The link kept of an archived ending is another one.");
  for (auto& [change, finding] : std::initializer_list<std::pair<kj::StringPtr, kj::StringPtr>>{
           {"DELETE FROM retired WHERE id = 'old-0'"_kj, kept},
           {"UPDATE retired SET place = 1000 WHERE id = 'old-0'"_kj, kept},
           {"UPDATE retired SET place = 2 WHERE id = 'old-0'"_kj, kept},  // An event.
           {"UPDATE retired SET link = zeroblob(32) WHERE id = 'old-4'"_kj, link}}) {
    TemporaryFolder each;
    copyLedger(place.folder, each / "ledger");
    tamper(each / "ledger", change);
    EXPECT_EQ(findingsIn(each / "ledger"), finding) << change.cStr();
  }
  EXPECT_EQ(check(place.folder), "");
}

TEST(Archive, stopsBeforeTheFirstThatIsOpen) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    doesAt(ledger, "done", NOW);
    claimsAt(ledger, "open", NOW);
    doesAt(ledger, "later", NOW);
  }
  EXPECT_EQ(moved(folder, NOW + HOUR, place / "1").operations, 1u);
  EXPECT_TRUE(movesNothing(folder, NOW + HOUR, place / "2"));
  Running ledger(folder, NOW + 2 * HOUR);
  EXPECT_EQ(ledger->recovered().settled, 1u);
  EXPECT_TRUE(ledger->find("later")->is<attest::Envelope>());
  ledger.close();
  EXPECT_EQ(moved(folder, NOW + 3 * HOUR, place / "2").operations, 2u);
  EXPECT_EQ(check(folder), "");
}

TEST(Archive, cutsNoOperationInTwo) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    claimsAt(ledger, "a", NOW);
    claimsAt(ledger, "b", NOW);
    settlesAt(ledger, "a", NOW + 1);
    claimsAt(ledger, "c", NOW);
    settlesAt(ledger, "b", NOW + 2);
    settlesAt(ledger, "c", NOW + 2 * HOUR);
  }
  EXPECT_TRUE(movesNothing(folder, NOW + HOUR, place / "1"));
  EXPECT_EQ(moved(folder, NOW + 3 * HOUR, place / "1").operations, 3u);
  EXPECT_EQ(verified(place / "1"), "receipts 3, findings 0");
}

TEST(Archive, isNotHeldUpByAQuarantinedClaim) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    doesAt(ledger, "before", NOW);
    claimsAt(ledger, "bad", NOW);
  }
  {
    BackDoor file(folder);
    auto rule = file.rows("SELECT sql FROM sqlite_schema WHERE name = 'operation_fixed'");
    ASSERT_EQ(file.run("DROP TRIGGER operation_fixed;"
                       "UPDATE operation SET kind = 'press' WHERE id = 'bad'"),
              SQLITE_OK);
    ASSERT_EQ(file.run(rule[0]), SQLITE_OK);
  }
  {
    Running ledger(folder);
    ASSERT_EQ(ledger->recovered().quarantined, 1u);
    doesAt(ledger, "after", NOW);
  }
  EXPECT_EQ(moved(folder, NOW + HOUR, place / "1").operations, 2u);
  {
    Running ledger(folder, NOW + HOUR);
    EXPECT_TRUE(ledger->find("bad")->is<ledger::Damaged>());
    EXPECT_FALSE(ledger.claims("bad"));
    EXPECT_TRUE(ledger->find("after")->is<ledger::Elsewhere>());
    doesAt(ledger, "later", NOW + HOUR);
  }
  auto inventory = takeInventory(folder);
  EXPECT_EQ(inventory->quarantined, 1u);
  EXPECT_EQ(inventory->summary.operations, 4u);
  EXPECT_EQ(check(folder), "5: The claim is quarantined: a start found its record damaged.");
  EXPECT_EQ(moved(folder, NOW + 2 * HOUR, place / "2").operations, 1u);
}

TEST(Archive, ofNothingMakesNoFile) {
  Aged place;
  auto before = bytesIn(place.folder);
  EXPECT_TRUE(movesNothing(place.folder, NOW - HOUR, place.file));
  EXPECT_TRUE(bytesIn(place.folder) == before);
}

TEST(Archive, writesOverNothing) {
  Aged place;
  auto before = bytesIn(place.folder);
  writeWhole(place.file, "mine"_kj.asBytes());
  EXPECT_EQ(codeOf(archiveBefore(place.folder, NOW + HOUR, place.file)), "ledger_foreign");
  EXPECT_TRUE(readWhole(place.file) == "mine"_kj.asBytes());
  EXPECT_EQ(codeOf(archiveBefore(place.folder, NOW + HOUR, place / "missing/archive")),
            "ledger_foreign");
  EXPECT_TRUE(bytesIn(place.folder) == before);
}

// What is damaged stays where it can be looked at.
TEST(Archive, takesNothingThatDoesNotHold) {
  Aged place;
  {
    BackDoor file(place.folder);
    auto rule = file.rows("SELECT sql FROM sqlite_schema WHERE name = 'ending_fixed'");
    ASSERT_EQ(file.run("DROP TRIGGER ending_fixed;"
                       "UPDATE ending SET terminal = 'failed' WHERE place = 4"),
              SQLITE_OK);
    ASSERT_EQ(file.run(rule[0]), SQLITE_OK);
  }
  auto before = bytesIn(place.folder);
  EXPECT_EQ(codeOf(archiveBefore(place.folder, NOW + HOUR, place.file)), "record_damaged");
  EXPECT_TRUE(bytesIn(place.folder) == before);
  auto files = std::filesystem::directory_iterator((place / ".").cStr());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);  // The ledger alone.
}

TEST(Archive, showsWhatIsChangedInIt) {
  Aged place;
  moved(place.folder, NOW + HOUR, place.file);
  auto whole = readWhole(place.file);
  for (auto change :
       {"UPDATE ending SET terminal = 'failed' WHERE place = 4",
        "UPDATE operation SET kind = 'other'", "UPDATE authority SET session = 'session-2'",
        "DELETE FROM ending WHERE place = (SELECT max(place) FROM ending)",
        "DELETE FROM ending WHERE operation = 3; DELETE FROM operation WHERE place = 3"}) {
    writeWhole(place.file, whole);
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(place.file.cStr(), &connection), SQLITE_OK);
    KJ_DEFER(sqlite3_close(connection));
    for (auto rule : {"ending_fixed", "operation_fixed", "authority_fixed", "ending_stays",
                      "operation_stays"}) {
      ASSERT_EQ(sqlite3_exec(connection, kj::str("DROP TRIGGER ", rule).cStr(), nullptr, nullptr,
                             nullptr),
                SQLITE_OK);
    }
    sqlite3_exec(connection, change, nullptr, nullptr, nullptr);
    auto reader = LedgerReader::open(place.file);
    auto report = (*reader)->verify(nullptr);
    EXPECT_GT(report->findings.size(), 1u) << change;  // More than that triggers are missing.
  }
}

TEST(Archive, holdsWhatEveryKeyAndIncarnationSigned) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto first = takeInventory(folder)->summary.receiptKey;
  does(folder, "op-1");
  auto second = ledger::rotateKey(folder, momentAt(NOW));
  does(folder, "op-2");
  ASSERT_TRUE(ledger::adopt(folder, momentAt(NOW)).ok());
  does(folder, "op-3");
  EXPECT_EQ(moved(folder, NOW + HOUR, place / "1").operations, 3u);
  EXPECT_EQ(verified(place / "1", first), "receipts 3, findings 0");
  EXPECT_EQ(verified(place / "1", *second), "receipts 3, findings 0");
  EXPECT_EQ(verified(folder, first), "receipts 0, findings 0");
  does(folder, "op-4");
  EXPECT_EQ(check(folder), "");
}

TEST(Archive, goesOnAfterAClockThatWasWrong) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder, NOW + 100 * HOUR);
    doesAt(ledger, "early", NOW + 100 * HOUR);
  }
  ledger::Moment now{NOW, momentAt(NOW + 100 * HOUR).bootMs + 1000};
  ASSERT_TRUE(ledger::acceptClock(folder, now).ok());
  {
    auto opened = Ledger::open(folder, now);
    ASSERT_TRUE(opened.ok());
  }
  auto made = ledger::archive(folder, NOW + 200 * HOUR, place / "1", now, silent());
  ASSERT_TRUE(made.ok() && *made != nullptr);
  EXPECT_EQ(verified(place / "1"), "receipts 1, findings 0");
  EXPECT_EQ(check(folder), "");
  auto opened = Ledger::open(folder, now);
  EXPECT_TRUE((*opened)->clockMemory().agrees(now));
}

TEST(Archive, givesTheSpaceBack) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    kj::Vector<kj::Promise<Result<Done>>> claims;
    for (int i = 0; i < 3000; ++i) claims.add(ledger->claim(claimOf(kj::str("op-", 10'000 + i))));
    for (auto& claim : claims) ASSERT_TRUE(claim.wait(ledger.wait()).ok());
    kj::Vector<kj::Promise<Result<attest::Envelope>>> endings;
    for (int i = 0; i < 3000; ++i) {
      endings.add(ledger->settle(kj::str("op-", 10'000 + i), success()));
    }
    for (auto& ending : endings) ASSERT_TRUE(ending.wait(ledger.wait()).ok());
  }
  auto made = moved(folder, NOW + HOUR, place / "archive");
  EXPECT_EQ(made.operations, 3000u);
  auto database = readWhole(kj::str(folder, "/ledger.db")).size();
  auto log = readWhole(kj::str(folder, "/ledger.db-wal")).size();
  EXPECT_EQ(database, made.bytesAfter);
  EXPECT_LT(made.bytesAfter, made.bytesBefore / 3);
  EXPECT_LT(log, 5'000'000u);
  EXPECT_EQ(verified(place / "archive"), "receipts 3000, findings 0");
  EXPECT_EQ(check(folder), "");
}

}  // namespace
}  // namespace praefectus::test
