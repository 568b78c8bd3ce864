// Copies of a ledger: whole, private, of no use before a person adopts them.
#include "tests/ledger/keeping.h"

#include <kj/thread.h>

#include <atomic>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

using ledger::backUp;
using ledger::restore;

mode_t modeOf(kj::StringPtr path) {
  struct stat info;
  KJ_SYSCALL(lstat(path.cStr(), &info));
  return info.st_mode & 07777;
}

size_t filesIn(kj::StringPtr folder) {
  auto files = std::filesystem::directory_iterator(folder.cStr());
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST(Backup, isTheWholeLedgerAndForNobodyElse) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  does(folder, "op-1");
  auto before = umask(0);
  auto copied = backUp(folder, place / "deep/backup", silent());
  umask(before);
  ASSERT_TRUE(copied.ok()) << copied.refusal().detail.cStr();
  EXPECT_EQ(copied->findings, 0u);
  EXPECT_EQ(filesIn(place / "deep/backup"), 3u);
  EXPECT_EQ(filesIn(place / "deep"), 1u);
  auto original = ledger::takeInventory(folder),
       copy = ledger::takeInventory(place / "deep/backup");
  EXPECT_EQ(copied->summary.head, original->summary.head);
  EXPECT_EQ(copied->summary.operations, 1u);
  EXPECT_EQ(copy->summary.head, original->summary.head);

  EXPECT_EQ(modeOf(place / "deep/backup"), 0700u);
  for (auto file : {"ledger.db", "ledger.db-wal", "receipt.key"}) {
    EXPECT_EQ(modeOf(kj::str(place / "deep/backup/", file)), 0600u) << file;
  }
  EXPECT_EQ(check(place / "deep/backup"), "");
  EXPECT_TRUE(readWhole(place / "deep/backup/receipt.key") ==
              readWhole(place / "ledger/receipt.key"));
}

TEST(Backup, servesNobodyBeforeItIsAdopted) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  ASSERT_TRUE(backUp(folder, place / "backup", silent()).ok());
  EXPECT_EQ(outcomeOfOpening(place / "backup"), "ledger_moved");
  ASSERT_TRUE(ledger::adopt(place / "backup", momentAt(NOW)).ok());
  EXPECT_EQ(outcomeOfOpening(place / "backup"), "ok");
}

// The log holds what the database does not, and a writer adds to both while the copy is made.
TEST(Backup, ofALedgerInUseIsOfOneMomentAndHoldsNobodyUp) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  for (int i = 0; i < 200; ++i) does(ledger, kj::str("early-", i));
  ASSERT_GT(readWhole(place / "ledger/ledger.db-wal").size(), 100'000u);

  std::atomic<bool> begun{false}, over{false};
  kj::Maybe<Result<ledger::Copied>> copied;
  kj::Thread copying([&]() {
    copied = backUp(folder, place / "backup", [&](kj::StringPtr step, uint64_t, uint64_t) {
      if (step == "copying") begun = true;
    });
    over = true;
  });
  int written = 0;
  while (!over || written < 100) {
    does(ledger, kj::str("late-", written++));
    ASSERT_LT(written, 1'000'000);
  }
  EXPECT_TRUE(begun);
  auto& result = KJ_ASSERT_NONNULL(copied);
  ASSERT_TRUE(result.ok()) << result.refusal().detail.cStr();
  EXPECT_EQ(result->findings, 0u);
  auto inventory = ledger::takeInventory(place / "backup");
  EXPECT_GE(inventory->summary.operations, 200u);
  EXPECT_LE(inventory->summary.operations, 200u + static_cast<unsigned>(written));
  auto reader = LedgerReader::open(folder);
  auto link = (*reader)->linkAt(inventory->summary.sequence);
  EXPECT_TRUE(KJ_ASSERT_NONNULL(*link) == inventory->summary.head);
}

// The writer commits while the copy is half done: it neither waits for it nor gets into it.
TEST(Backup, isNotDisturbedByACommitInItsMiddle) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  does(ledger, "before");
  bool committed = false;
  auto copied = backUp(folder, place / "backup", [&](kj::StringPtr step, uint64_t, uint64_t) {
    if (step == "copying" && !committed) {
      does(ledger, "meanwhile");
      committed = true;
    }
  });
  ASSERT_TRUE(copied.ok()) << copied.refusal().detail.cStr();
  EXPECT_TRUE(committed);
  EXPECT_EQ(copied->summary.operations, 1u);
}

TEST(Backup, takesNoPlaceThatIsTaken) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  writeWhole(place / "file", "x"_kj.asBytes());
  EXPECT_EQ(codeOf(backUp(folder, place / "file", silent())), "ledger_foreign");
  EXPECT_EQ(codeOf(backUp(folder, folder, silent())), "ledger_foreign");
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
  EXPECT_EQ(filesIn(place / "."), 2u);  // Nothing half-made stays behind.
}

TEST(Backup, ofADamagedLedgerIsMadeAndSaysSo) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  does(folder, "op-1");
  {
    BackDoor file(folder);
    ASSERT_EQ(file.run("DROP TRIGGER ending_fixed; UPDATE ending SET terminal = 'failed'"),
              SQLITE_OK);
  }
  auto copied = backUp(folder, place / "backup", silent());
  ASSERT_TRUE(copied.ok()) << copied.refusal().detail.cStr();
  EXPECT_GT(copied->findings, 0u);
}

TEST(Backup, withoutItsKeyIsRefused) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  ASSERT_EQ(unlink((place / "ledger/receipt.key").cStr()), 0);
  EXPECT_EQ(codeOf(backUp(folder, place / "backup", silent())), "ledger_foreign");
  EXPECT_NE(access((place / "backup").cStr(), F_OK), 0);
}

TEST(Restore, makesALedgerThatServesAndVoidsEarlierGrants) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  does(folder, "op-1");
  GrantSignedFor earlier(folder);
  ASSERT_TRUE(backUp(folder, place / "backup", silent()).ok());
  does(folder, "later");
  auto backup = bytesIn(place / "backup");

  auto restored = restore(place / "backup", place / "restored", momentAt(NOW), 0, silent());
  ASSERT_TRUE(restored.ok()) << restored.refusal().detail.cStr();
  EXPECT_EQ(restored->findings, 0u);
  EXPECT_EQ(restored->summary.id.incarnation, 2u);
  EXPECT_TRUE(bytesIn(place / "backup") == backup);
  EXPECT_EQ(earlier.presentedTo(place / "restored"), "policy_denied");
  EXPECT_EQ(GrantSignedFor(place / "restored").presentedTo(place / "restored"), "ok");
  {
    Running ledger(place / "restored");
    EXPECT_TRUE(ledger->find("op-1")->is<attest::Envelope>());
    EXPECT_TRUE(ledger->find("later")->is<ledger::Unknown>());
    does(ledger, "op-2");
  }
  EXPECT_EQ(check(place / "restored"), "");
}

TEST(Restore, goesAboveTheIncarnationThatIsKnown) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  ASSERT_TRUE(backUp(folder, place / "backup", silent()).ok());
  ASSERT_EQ(ledger::adopt(folder, momentAt(NOW))->incarnation, 2u);
  auto restored = restore(place / "backup", place / "restored", momentAt(NOW), 2, silent());
  EXPECT_EQ(restored->summary.id.incarnation, 3u);
}

TEST(Restore, takesNoPlaceThatIsTaken) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  ASSERT_TRUE(backUp(folder, place / "backup", silent()).ok());
  auto before = bytesIn(folder);
  EXPECT_EQ(codeOf(restore(place / "backup", folder, momentAt(NOW), 0, silent())),
            "ledger_foreign");
  EXPECT_TRUE(bytesIn(folder) == before);
  EXPECT_EQ(filesIn(place / "."), 2u);
}

TEST(Restore, ofSomethingElseIsRefused) {
  TemporaryFolder place;
  std::filesystem::create_directory((place / "nothing").cStr());
  EXPECT_EQ(codeOf(restore(place / "nothing", place / "restored", momentAt(NOW), 0, silent())),
            "ledger_foreign");
  EXPECT_NE(access((place / "restored").cStr(), F_OK), 0);
}

}  // namespace
}  // namespace praefectus::test
