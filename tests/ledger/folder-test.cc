// Which folders and files are a ledger, and who may have them.
#include "tests/ledger/fixture.h"

#include <kj/filesystem.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

constexpr kj::StringPtr FILES[] = {"ledger.db"_kj, "ledger.db-wal"_kj, "receipt.key"_kj};

unsigned modeOf(kj::StringPtr path) {
  struct stat info;
  KJ_SYSCALL(lstat(path.cStr(), &info));
  return info.st_mode & 07777;
}

kj::StringPtr outcomeOfCreating(kj::StringPtr folder) {
  auto made = Ledger::create(folder, sampleRing(), momentAt(NOW));
  return made.ok() ? "ok"_kj : nameOf(made.refusal().code);
}

size_t entriesIn(kj::StringPtr folder) {
  size_t count = 0;
  auto list = kj::newDiskFilesystem();
  for (auto& name : list->getRoot().openSubdir(kj::Path::parse(folder.slice(1)))->listNames()) {
    (void)name;
    ++count;
  }
  return count;
}

TEST(Folder, aNewLedgerIsPrivateWhateverTheUmask) {
  TemporaryFolder place;
  for (mode_t mask : {0000, 0022, 0777}) {
    auto folder = place / kj::str("ledger-", mask);
    auto before = umask(mask);
    auto outcome = outcomeOfCreating(folder);
    umask(before);
    ASSERT_EQ(outcome, "ok");
    EXPECT_EQ(modeOf(folder), 0700u);
    for (auto file : FILES) EXPECT_EQ(modeOf(kj::str(folder, '/', file)), 0600u) << file.cStr();
    EXPECT_EQ(outcomeOfOpening(folder), "ok");
    EXPECT_EQ(modeOf(kj::str(folder, "/ledger.db-shm")), 0600u);
  }
}

TEST(Folder, missingFoldersOnTheWayAreMadeAndPrivate) {
  TemporaryFolder place;
  auto folder = place / "state/praefectus/ledger";
  EXPECT_EQ(outcomeOfCreating(folder), "ok");
  EXPECT_EQ(modeOf(place / "state"), 0700u);
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
}

TEST(Folder, creationGoesIntoAnEmptyFolderAndNowhereElse) {
  TemporaryFolder place;
  KJ_SYSCALL(mkdir((place / "empty").cStr(), 0755));
  EXPECT_EQ(outcomeOfCreating(place / "empty"), "ok");
  EXPECT_EQ(modeOf(place / "empty"), 0700u);

  auto folder = makeLedger(place);
  auto key = readWhole(kj::str(folder, "/receipt.key"));
  EXPECT_EQ(outcomeOfCreating(folder), "ledger_foreign");
  EXPECT_EQ(readWhole(kj::str(folder, "/receipt.key")), key);

  KJ_SYSCALL(mkdir((place / "full").cStr(), 0700));
  writeWhole(place / "full/notes", "mine"_kj.asBytes());
  EXPECT_EQ(outcomeOfCreating(place / "full"), "ledger_foreign");
  writeWhole(place / "file", "mine"_kj.asBytes());
  EXPECT_EQ(outcomeOfCreating(place / "file"), "ledger_foreign");
  KJ_SYSCALL(symlink("empty", (place / "link").cStr()));
  EXPECT_EQ(outcomeOfCreating(place / "link"), "ledger_foreign");
  EXPECT_EQ(outcomeOfCreating(place / ".."), "ledger_foreign");
  EXPECT_EQ(outcomeOfCreating(""), "ledger_foreign");
}

TEST(Folder, aRefusedCreationLeavesNothingBehind) {
  TemporaryFolder place;
  KJ_SYSCALL(mkdir((place / "full").cStr(), 0700));
  writeWhole(place / "full/notes", "mine"_kj.asBytes());
  EXPECT_EQ(outcomeOfCreating(place / "full"), "ledger_foreign");
  EXPECT_EQ(entriesIn(place / "."), 1u);
}

TEST(Folder, aFolderThatAnotherUserCanReplaceIsRefused) {
  TemporaryFolder place;
  auto shared = place / "shared";
  KJ_SYSCALL(mkdir(shared.cStr(), 0700));
  auto folder = kj::str(shared, "/ledger");
  ASSERT_EQ(outcomeOfCreating(folder), "ok");

  for (mode_t mode : {0777, 0770, 0702}) {
    KJ_SYSCALL(chmod(shared.cStr(), mode));
    EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign") << mode;
    EXPECT_EQ(outcomeOfCreating(kj::str(shared, "/other")), "ledger_foreign") << mode;
  }
  KJ_SYSCALL(chmod(shared.cStr(), 01777));  // Sticky, as /tmp is.
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
  KJ_SYSCALL(chmod(shared.cStr(), 0755));
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
  if (geteuid() == 0) {
    KJ_SYSCALL(chown(shared.cStr(), 65534, 65534));
    EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");
  }
}

TEST(Folder, aFolderWithAnyOtherModeIsRefused) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  for (mode_t mode : {0750, 0701, 0710, 0500, 0777, 01700, 02700}) {
    KJ_SYSCALL(chmod(folder.cStr(), mode));
    EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign") << std::oct << mode;
  }
  KJ_SYSCALL(chmod(folder.cStr(), 0700));
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
}

TEST(Folder, aFileWithAnyOtherModeIsRefused) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  ASSERT_EQ(outcomeOfOpening(folder), "ok");
  for (kj::StringPtr file :
       {"ledger.db"_kj, "ledger.db-wal"_kj, "receipt.key"_kj, "ledger.db-shm"_kj}) {
    auto path = kj::str(folder, '/', file);
    for (mode_t mode : {0640, 0604, 0400, 0700, 04600}) {
      KJ_SYSCALL(chmod(path.cStr(), mode));
      EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign") << file.cStr() << std::oct << mode;
    }
    KJ_SYSCALL(chmod(path.cStr(), 0600));
  }
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
}

TEST(Folder, anotherOwnerIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  TemporaryFolder place;
  auto folder = makeLedger(place);
  KJ_SYSCALL(chown(folder.cStr(), 65534, 0));
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");
  KJ_SYSCALL(chown(folder.cStr(), 0, 0));
  for (auto file : FILES) {
    auto path = kj::str(folder, '/', file);
    KJ_SYSCALL(chown(path.cStr(), 65534, 0));
    EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign") << file.cStr();
    KJ_SYSCALL(chown(path.cStr(), 0, 0));
  }
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
}

TEST(Folder, aLinkASecondNameAndAMissingFileAreRefused) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  for (auto file : FILES) {
    auto path = kj::str(folder, '/', file);
    auto aside = place / "aside";
    KJ_SYSCALL(link(path.cStr(), aside.cStr()));
    EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign") << file.cStr();
    KJ_SYSCALL(unlink(path.cStr()));
    EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign") << file.cStr();
    KJ_SYSCALL(symlink(aside.cStr(), path.cStr()));
    EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign") << file.cStr();
    KJ_SYSCALL(unlink(path.cStr()));
    KJ_SYSCALL(mkfifo(path.cStr(), 0600));
    EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign") << file.cStr();
    KJ_SYSCALL(unlink(path.cStr()));
    KJ_SYSCALL(rename(aside.cStr(), path.cStr()));
  }
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
}

TEST(Folder, aLinkToALedgerIsNotALedger) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  KJ_SYSCALL(symlink("ledger", (place / "link").cStr()));
  EXPECT_EQ(outcomeOfOpening(place / "link"), "ledger_foreign");
  EXPECT_EQ(outcomeOfOpening(place / "link/"), "ledger_foreign");
  EXPECT_EQ(outcomeOfOpening(kj::str(folder, "/")), "ok");
  EXPECT_EQ(outcomeOfOpening(place / "nothing"), "ledger_foreign");
}

TEST(Folder, aSecondSupervisorIsRefusedAtOnce) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  OtherProcess second([&](int output) { say(output, outcomeOfOpening(folder)); });
  EXPECT_EQ(KJ_ASSERT_NONNULL(second.line()), "ledger_busy");
  EXPECT_EQ(second.wait(), 0);
  EXPECT_TRUE(ledger.claims("op-1"));
}

TEST(Folder, theNextSupervisorMayHaveItWhenTheFirstWasKilled) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  OtherProcess first([&](int output) {
    Running ledger(folder);
    say(output, "open");
    ledger.wait().poll();
    kj::NEVER_DONE.wait(ledger.wait());
  });
  ASSERT_EQ(KJ_ASSERT_NONNULL(first.line()), "open");
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_busy");
  first.kill();
  first.wait();
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
}

// Puts other bytes in the place of the database, and expects them there untouched after the
// refusal.
void expectForeign(kj::StringPtr folder, Bytes content) {
  auto path = kj::str(folder, "/ledger.db");
  writeWhole(path, content);
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");
  EXPECT_EQ(readWhole(path).asPtr(), content);
  EXPECT_FALSE(LedgerReader::open(folder).ok());
  EXPECT_EQ(readWhole(path).asPtr(), content);
}

TEST(Folder, emptyAndGarbledDatabasesAreForeignAndLeftAsTheyAre) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto log = readWhole(kj::str(folder, "/ledger.db-wal"));
  expectForeign(folder, nullptr);
  expectForeign(folder, "SQLite format 3"_kj.asBytes());
  auto garbage = kj::heapArray<kj::byte>(20000);
  memset(garbage.begin(), 'x', garbage.size());
  expectForeign(folder, garbage);
  EXPECT_EQ(readWhole(kj::str(folder, "/ledger.db-wal")), log);
}

// The log holds the last pages of a ledger and would heal some cuts, so it is emptied first.
TEST(Folder, aTruncatedDatabaseIsForeign) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(ledger.claims(kj::str("op-", i)));
      ledger.settles(kj::str("op-", i));
    }
  }
  ASSERT_EQ(outcomeOfOpening(folder), "ok");
  {
    BackDoor door(folder);
    ASSERT_EQ(door.run("PRAGMA wal_checkpoint(TRUNCATE)"), SQLITE_OK);
  }
  auto whole = readWhole(kj::str(folder, "/ledger.db"));
  for (size_t pages = 1; pages < whole.size() / 4096; pages += 3) {
    expectForeign(folder, whole.slice(0, pages * 4096));
  }
}

TEST(Folder, aDatabaseOfAnotherProgramIsForeign) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    BackDoor door(folder);
    ASSERT_EQ(door.run("PRAGMA application_id = 7"), SQLITE_OK);
  }
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");
  EXPECT_FALSE(LedgerReader::open(folder).ok());
}

TEST(Folder, aFormatOfAnotherVersionIsForeign) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    BackDoor door(folder);
    ASSERT_EQ(door.run("PRAGMA user_version = 1"), SQLITE_OK);
  }
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");
}

TEST(Folder, aLedgerWhoseRulesWereChangedIsForeign) {
  for (kj::StringPtr change :
       {"DROP TRIGGER ending_stays"_kj, "DROP INDEX event_by_kind"_kj, "CREATE TABLE extra (a)"_kj,
        "CREATE TRIGGER extra AFTER INSERT ON ending BEGIN SELECT 1; END"_kj}) {
    TemporaryFolder place;
    auto folder = makeLedger(place);
    {
      BackDoor door(folder);
      ASSERT_EQ(door.run(change), SQLITE_OK) << door.said().cStr();
    }
    EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign") << change.cStr();
  }
}

TEST(Folder, theKeyOfAnotherLedgerIsRefused) {
  TemporaryFolder place, elsewhere;
  auto folder = makeLedger(place);
  auto other = makeLedger(elsewhere);
  auto key = kj::str(folder, "/receipt.key");
  auto content = readWhole(key);
  KJ_SYSCALL(unlink(key.cStr()));
  writeWhole(key, readWhole(kj::str(other, "/receipt.key")));
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");
  writeWhole(key, "not a key"_kj.asBytes());
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");
  writeWhole(key, content);
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
}

}  // namespace
}  // namespace praefectus::test
