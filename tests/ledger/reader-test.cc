// An auditor's view: it works at any time, changes nothing, and names the place that was tampered
// with.
#include "tests/ledger/fixture.h"

#include <set>
#include <string>

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

struct Files {
  kj::Array<kj::byte> database, log;
};
Files filesOf(kj::StringPtr folder) {
  return {readWhole(kj::str(folder, "/ledger.db")), readWhole(kj::str(folder, "/ledger.db-wal"))};
}

std::set<std::string> namesIn(kj::StringPtr folder) {
  std::set<std::string> out;
  DIR* list = opendir(folder.cStr());
  KJ_DEFER(closedir(list));
  while (auto entry = readdir(list)) out.insert(entry->d_name);
  return out;
}

// Operations: 1 claim, 2 ending, 3 claim (stays open), 4 conclusion.
void fill(Running& ledger) {
  ASSERT_TRUE(ledger.claims("ended"));
  ledger.settles("ended");
  ASSERT_TRUE(ledger.claims("open"));
  ledger.concludes("unclaimed");
}

enum class State { UNKNOWN, OPEN, ENDED };
State stateIn(LedgerReader& reader, kj::StringPtr operation) {
  auto answer = reader.receipt(operation);
  KJ_REQUIRE(answer.ok());
  KJ_IF_MAYBE (known, *answer) return *known == nullptr ? State::OPEN : State::ENDED;
  return State::UNKNOWN;
}

kj::String receiptIn(LedgerReader& reader, kj::StringPtr operation) {
  auto answer = reader.receipt(operation);
  KJ_REQUIRE(answer.ok());
  return hex(KJ_REQUIRE_NONNULL(KJ_REQUIRE_NONNULL(*answer)).body);
}

void expectFilled(kj::StringPtr folder) {
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok()) << reader.refusal().detail.cStr();
  auto summary = (*reader)->summary();
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->operations, 3u);
  EXPECT_EQ(summary->open, 1u);
  EXPECT_EQ(summary->sequence, 4u);
  auto report = (*reader)->verify(nullptr);
  ASSERT_TRUE(report.ok()) << report.refusal().detail.cStr();
  EXPECT_EQ(report->findings.size(), 0u);
  EXPECT_EQ(report->receipts, 2u);
  EXPECT_EQ(report->summary.head, summary->head);

  EXPECT_EQ(stateIn(**reader, "ended"), State::ENDED);
  EXPECT_EQ(stateIn(**reader, "open"), State::OPEN);
  EXPECT_EQ(stateIn(**reader, "never-used"), State::UNKNOWN);
}

TEST(Reader, aLedgerAtWorkIsReadAndItsFilesStayAsTheyWere) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  fill(ledger);
  // From another process: closing a file gives up the locks of the whole process that closes it.
  OtherProcess auditor([&](int) {
    auto before = filesOf(folder);
    expectFilled(folder);
    auto after = filesOf(folder);
    KJ_ASSERT(before.database == after.database && before.log == after.log);
    KJ_ASSERT(!testing::Test::HasFailure());
  });
  EXPECT_EQ(auditor.wait(), 0);
  EXPECT_TRUE(ledger.claims("afterwards"));
}

TEST(Reader, aClosedLedgerIsReadAndItsFilesStayAsTheyWere) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    fill(ledger);
  }
  auto before = filesOf(folder);
  unlink(kj::str(folder, "/ledger.db-shm").cStr());
  expectFilled(folder);
  auto after = filesOf(folder);
  EXPECT_EQ(before.database, after.database);
  EXPECT_EQ(before.log, after.log);
}

TEST(Reader, aLedgerThatWasKilledIsReadFromItsLogAndStaysAsItWas) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  OtherProcess supervisor([&](int) {
    Running ledger(folder);
    fill(ledger);
    raise(SIGKILL);
  });
  ASSERT_EQ(supervisor.wait(), -SIGKILL);
  auto before = filesOf(folder);
  expectFilled(folder);
  auto after = filesOf(folder);
  EXPECT_EQ(before.database, after.database);
  EXPECT_EQ(before.log, after.log);
  EXPECT_EQ(namesIn(folder), (std::set<std::string>{".", "..", "ledger.db", "ledger.db-wal",
                                                    "ledger.db-shm", "receipt.key"}));
}

TEST(Reader, aCopyWithoutTheReceiptKeyCanBeVerified) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    fill(ledger);
  }
  copyFolder(folder, place / "copy");
  unlink((place / "copy/receipt.key").cStr());
  expectFilled(place / "copy");
}

TEST(Reader, anEmptyLedgerHoldsAndItsHeadDependsOnWhoItIs) {
  TemporaryFolder place, elsewhere;
  auto one = LedgerReader::open(makeLedger(place));
  auto other = LedgerReader::open(makeLedger(elsewhere));
  EXPECT_EQ((*one)->verify(nullptr)->findings.size(), 0u);
  EXPECT_EQ((*one)->summary()->sequence, 0u);
  EXPECT_NE((*one)->summary()->head, (*other)->summary()->head);
}

TEST(Reader, whatIsNotALedgerIsForeign) {
  TemporaryFolder place;
  EXPECT_FALSE(LedgerReader::open(place / "nothing").ok());
  EXPECT_FALSE(LedgerReader::open(place / ".").ok());
  auto before = namesIn(place / ".");
  auto folder = makeLedger(place);
  unlink(kj::str(folder, "/ledger.db-wal").cStr());
  EXPECT_FALSE(LedgerReader::open(folder).ok());
  EXPECT_EQ(namesIn(folder).count("ledger.db-wal"), 0u);
}

TEST(Reader, operationsAreListedWithTheNewestFirstAndNoMoreThanAskedFor) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  fill(ledger);
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  auto all = (*reader)->recent(100);
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].operation, "unclaimed");
  EXPECT_EQ((*all)[0].sequence, 4u);
  EXPECT_EQ((*all)[1].operation, "open");
  EXPECT_TRUE((*all)[1].ended == nullptr);
  EXPECT_EQ((*all)[2].operation, "ended");
  EXPECT_EQ(hex(KJ_ASSERT_NONNULL((*all)[2].ended).body), receiptIn(**reader, "ended"));
  auto newest = (*reader)->recent(1);
  ASSERT_EQ(newest->size(), 1u);
  EXPECT_EQ((*newest)[0].operation, "unclaimed");
}

TEST(Reader, aHeadNotedEarlierIsFoundInItsPlaceAndNothingBehindTheEnd) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  auto beginning = (*reader)->summary()->head;
  Running ledger(folder);
  fill(ledger);
  auto later = (*reader)->summary();
  auto linkAt = [&](uint64_t sequence) -> kj::Maybe<Hash> {
    auto answer = (*reader)->linkAt(sequence);
    KJ_ASSERT(answer.ok());
    return kj::mv(*answer);
  };
  EXPECT_TRUE(linkAt(0).orDefault({}) == beginning);
  EXPECT_TRUE(linkAt(4).orDefault({}) == later->head);
  EXPECT_FALSE(linkAt(3).orDefault({}) == later->head);
  EXPECT_TRUE(linkAt(5) == nullptr);
}

// The formulas of schema.sql, written out once more and by themselves: what an auditor would
// program.
TEST(Reader, theFormatPageIsEnoughToRecomputeTheChain) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    fill(ledger);
  }
  BackDoor door(folder);
  auto bytes = [&](kj::StringPtr query) { return KJ_ASSERT_NONNULL(unhex(door.rows(query)[0])); };
  auto number = [&](kj::StringPtr query) { return door.rows(query)[0].parseAs<uint64_t>(); };
  auto begin = [](kj::StringPtr label) {
    attest::Digest digest;
    digest.add(label).add(Bytes(reinterpret_cast<const kj::byte*>(""), 1));
    return digest;
  };

  auto genesis = begin("praefectus/genesis/v1");
  genesis.add(bytes("SELECT lower(hex(ledger_key)) FROM ledger"));
  genesis.addNumber(1).add(bytes("SELECT lower(hex(receipt_key)) FROM ledger")).addNumber(2);
  for (auto which : {"purpose = 1", "purpose = 2"}) {
    auto from = kj::str(" FROM ring WHERE ", which);
    genesis.addNumber(number(kj::str("SELECT purpose", from)));
    genesis.addSized(bytes(kj::str("SELECT lower(hex(issuer))", from)));
    genesis.addSized(bytes(kj::str("SELECT lower(hex(key_id))", from)));
    genesis.addSized(bytes(kj::str("SELECT lower(hex(key))", from)));
  }

  auto claim = begin("praefectus/claim/v1");
  for (kj::StringPtr column :
       {"id"_kj, "action_hash"_kj, "action_class"_kj, "kind"_kj, "grant_issuer"_kj,
        "grant_key_id"_kj, "grant_hash"_kj, "subject"_kj, "session"_kj, "turn"_kj, "helper_name"_kj,
        "helper_release"_kj, "helper_digest"_kj}) {
    auto value =
        bytes(kj::str("SELECT lower(hex(", column, ")) FROM operation WHERE id = 'ended'"));
    bool isHash = column.endsWith("_hash") || column.endsWith("_digest");
    isHash ? claim.add(value) : claim.addSized(value);
  }
  claim.addNumber(number("SELECT helper_generation FROM operation WHERE id = 'ended'"));
  claim.addNumber(number("SELECT claimed_at FROM operation WHERE id = 'ended'"));

  auto first = begin("praefectus/link/v1");
  first.add(bytesOf(genesis.finish())).addNumber(1).addSized("claim"_kj).addSized("ended"_kj);
  auto firstLink = first.add(bytesOf(claim.finish())).finish();
  EXPECT_EQ(hex(bytesOf(firstLink)),
            door.rows("SELECT lower(hex(link)) FROM chain WHERE sequence = 1")[0]);

  auto receipt =
      attest::digestOf(bytes("SELECT lower(hex(receipt)) FROM chain WHERE sequence = 2"));
  auto second = begin("praefectus/link/v1");
  second.add(bytesOf(firstLink)).addNumber(2).addSized("ending"_kj).addSized("ended"_kj);
  EXPECT_EQ(hex(bytesOf(second.add(bytesOf(receipt)).finish())),
            door.rows("SELECT lower(hex(link)) FROM chain WHERE sequence = 2")[0]);
}

TEST(Reader, theTrustedKeyDecidesWhoseReceiptsCount) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  kj::Maybe<attest::PublicKey> own;
  {
    Running ledger(folder);
    fill(ledger);
    own = ledger->receiptKey();
  }
  auto reader = LedgerReader::open(folder);
  EXPECT_EQ((*reader)->verify(own)->findings.size(), 0u);
  auto stranger = attest::SigningKey::fromSeed(bytesOf(hashNamed("stranger")));
  auto report = (*reader)->verify(stranger.publicKey());
  EXPECT_EQ(report->receipts, 0u);
  EXPECT_EQ(report->findings.size(), 3u);  // The key, and each receipt.
}

TEST(Reader, aReaderFollowsALedgerAtWork) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  for (uint64_t i = 0; i < 300; ++i) {
    auto id = kj::str("op-", i);
    ASSERT_TRUE(ledger.claims(id));
    EXPECT_EQ((*reader)->summary()->sequence, 2 * i + 1);
    ledger.settles(id);
    EXPECT_EQ(stateIn(**reader, id), State::ENDED);
  }
  auto report = (*reader)->verify(nullptr);
  EXPECT_EQ(report->findings.size(), 0u);
  EXPECT_EQ(report->receipts, 300u);
}

// Opens the back door, takes all triggers away, changes something, puts them back.
void tamper(kj::StringPtr folder, kj::StringPtr change) {
  BackDoor door(folder);
  auto triggers = door.rows("SELECT sql FROM sqlite_schema WHERE type = 'trigger'");
  for (auto& name : door.rows("SELECT name FROM sqlite_schema WHERE type = 'trigger'")) {
    KJ_REQUIRE(door.run(kj::str("DROP TRIGGER ", name)) == SQLITE_OK);
  }
  KJ_REQUIRE(door.run(kj::str("PRAGMA ignore_check_constraints = ON; ", change)) == SQLITE_OK,
             door.said());
  for (auto& trigger : triggers) KJ_REQUIRE(door.run(trigger) == SQLITE_OK);
}

bool names(const ledger::Report& report, uint64_t sequence) {
  for (auto& finding : report.findings) {
    if (finding.sequence == sequence) return true;
  }
  return false;
}

// An expression that differs from the column's value and keeps its type.
kj::String otherValue(kj::StringPtr table, kj::StringPtr column, kj::ArrayPtr<const char> type) {
  if (table == "chain" && column == "kind") return kj::str("'other'");
  if (column == "sequence") return kj::str("sequence + 10");
  if (column == "purpose") return kj::str("3");
  auto quoted = kj::str("\"", column, "\"");
  if (type == kj::StringPtr("INTEGER")) return kj::str(quoted, " + 1");
  if (type == kj::StringPtr("TEXT")) return kj::str("'x' || ", quoted);
  return kj::str("CAST(CASE substr(", quoted,
                 ", 1, 1) WHEN x'00' THEN x'01' ELSE x'00' END || substr(", quoted,
                 ", 2) AS BLOB)");
}

// Each column of each table changed by itself: the audit names the place that is concerned.
TEST(Reader, aChangeOfAnyColumnIsFoundAtItsPlace) {
  TemporaryFolder place(fastPlace());
  auto pattern = makeLedger(place);
  {
    Running ledger(pattern);
    fill(ledger);
  }
  struct Row {
    kj::StringPtr table, which;
    uint64_t sequence;
    std::set<std::string> without;  // Columns that are NULL here.
  };
  Row rows[] = {
      {"operation"_kj, "id = 'ended'"_kj, 2, {}},
      {"operation"_kj, "id = 'open'"_kj, 3, {"ended"}},
      {"operation"_kj, "id = 'unclaimed'"_kj, 4, {"claimed"}},
      {"chain"_kj, "sequence = 1"_kj, 1, {"terminal", "receipt", "signature"}},
      {"chain"_kj, "sequence = 2"_kj, 2, {}},
      {"chain"_kj, "sequence = 4"_kj, 4, {}},
      {"ledger"_kj, "only = 1"_kj, 1, {"only"}},
      {"ring"_kj, "purpose = 1"_kj, 1, {}},
  };
  size_t changes = 0;
  for (auto& row : rows) {
    auto columns = BackDoor(pattern).rows(
        kj::str("SELECT name, type FROM pragma_table_info('", row.table, "')"));
    for (auto& column : columns) {
      auto bar = KJ_ASSERT_NONNULL(column.findFirst('|'));
      auto name = kj::str(column.slice(0, bar));
      if (row.without.count(name.cStr())) continue;
      auto type = column.slice(bar + 1);
      auto changed = otherValue(row.table, name, type);
      TemporaryFolder each(fastPlace());
      auto folder = each / "ledger";
      copyFolder(pattern, folder);
      tamper(folder, kj::str("UPDATE ", row.table, " SET \"", name, "\" = ", changed, " WHERE ",
                             row.which));
      auto reader = LedgerReader::open(folder);
      ASSERT_TRUE(reader.ok()) << row.table.cStr() << "." << name.cStr();
      auto report = (*reader)->verify(nullptr);
      ASSERT_TRUE(report.ok()) << row.table.cStr() << "." << name.cStr();
      auto expected = row.sequence;
      if (name == "sequence") expected += 10;
      if (name == "claimed" && row.sequence == 2) expected = 1;  // The place of its claim.
      EXPECT_TRUE(names(*report, expected)) << row.table.cStr() << "." << name.cStr() << " where "
                                            << row.which.cStr() << ": " << report->findings.size();
      ++changes;
    }
  }
  EXPECT_GT(changes, 60u);
}

TEST(Reader, aRemovedPlaceAndARemovedOperationAreFound) {
  TemporaryFolder place(fastPlace());
  auto pattern = makeLedger(place);
  {
    Running ledger(pattern);
    fill(ledger);
  }
  struct Case {
    kj::StringPtr change;
    uint64_t sequence;
  };
  for (auto& each : {Case{"DELETE FROM chain WHERE sequence = 2"_kj, 3},
                     Case{"DELETE FROM operation WHERE id = 'open'"_kj, 3},
                     // The last place leaves no gap, but its operation still names it.
                     Case{"DELETE FROM chain WHERE sequence = 4"_kj, 0}}) {
    TemporaryFolder other(fastPlace());
    auto folder = other / "ledger";
    copyFolder(pattern, folder);
    tamper(folder, each.change);
    auto reader = LedgerReader::open(folder);
    auto report = (*reader)->verify(nullptr);
    EXPECT_TRUE(names(*report, each.sequence)) << each.change.cStr();
  }
}

TEST(Reader, aDroppedTriggerIsFound) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    BackDoor door(folder);
    ASSERT_EQ(door.run("DROP TRIGGER chain_stays"), SQLITE_OK);
  }
  EXPECT_EQ(findingsIn(folder), "0: The ledger's constraints or triggers were changed.");
}

// Flips one bit at a time all over the database: found, or without consequence, and never a crash.
TEST(Reader, aFlippedBitIsFoundOrHarmless) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    fill(ledger);
  }
  {
    BackDoor door(folder);
    ASSERT_EQ(door.run("PRAGMA wal_checkpoint(TRUNCATE)"), SQLITE_OK);
  }
  auto path = kj::str(folder, "/ledger.db");
  auto whole = readWhole(path);
  kj::String truth;
  {
    auto reader = LedgerReader::open(folder);
    ASSERT_TRUE(reader.ok());
    truth = receiptIn(**reader, "ended");
  }
  size_t found = 0, flips = 0;
  for (size_t at = 0; at < whole.size(); at += 61) {
    auto damaged = kj::heapArray<kj::byte>(whole.asPtr());
    damaged[at] = static_cast<kj::byte>(damaged[at] ^ (1u << (at % 8)));
    writeWhole(path, damaged);
    ++flips;
    auto reader = LedgerReader::open(folder);
    if (!reader.ok()) {
      ++found;
      continue;
    }
    auto report = (*reader)->verify(nullptr);
    if (!report.ok() || report->findings.size() > 0) {
      ++found;
      continue;
    }
    EXPECT_EQ(receiptIn(**reader, "ended"), truth) << at;
  }
  EXPECT_GT(found, 20u) << "of " << flips;
}

}  // namespace
}  // namespace praefectus::test
