// A disk that fails: the write is refused as poisoned, nothing is accepted afterwards, and the next
// start finds a state that was promised or asked for.
#include "tests/ledger/fixture.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

enum class Said { NOTHING, YES, POISONED };

// One request after another, and what came of each.
struct Story {
  Said first = Said::NOTHING, claim = Said::NOTHING, settle = Said::NOTHING,
       conclude = Said::NOTHING;
};

template <typename T>
Said heard(const Result<T>& result) {
  if (result.ok()) return Said::YES;
  EXPECT_EQ(result.refusal().code, RefusalCode::LEDGER_POISONED);
  return Said::POISONED;
}

Story live(Running& ledger) {
  Story out;
  out.first = heard(ledger->claim(claimOf("first")).wait(ledger.wait()));
  out.settle = heard(ledger->settle(kj::str("first"), success()).wait(ledger.wait()));
  out.claim = heard(ledger->claim(claimOf("second")).wait(ledger.wait()));
  out.conclude = heard(ledger->conclude(unclaimed("third"), refusal()).wait(ledger.wait()));
  return out;
}

// `settle` of an operation whose claim was refused is refused as well, so the story has one turning
// point.
void expectNothingAfterTheFirstNo(const Story& story) {
  bool poisoned = false;
  for (auto said : {story.first, story.settle, story.claim, story.conclude}) {
    poisoned = poisoned || said == Said::POISONED;
    EXPECT_EQ(said, poisoned ? Said::POISONED : Said::YES);
  }
}

enum class After { ABSENT, SUCCEEDED, UNKNOWN, REJECTED };

After stateOf(Running& ledger, kj::StringPtr id) {
  auto found = ledger->find(id);
  KJ_REQUIRE(found.ok());
  if (found->is<ledger::Unknown>()) return After::ABSENT;
  auto receipt = opened(*ledger.operator->(), found->get<attest::Envelope>());
  switch (receipt.terminal) {
    case Terminal::SUCCEEDED:
      return After::SUCCEEDED;
    case Terminal::REJECTED:
      return After::REJECTED;
    default:
      EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
      return After::UNKNOWN;
  }
}

// What was answered yes is there. What was answered no may be there or not, and nothing else is.
void expectTruth(kj::StringPtr folder, const Story& story) {
  {
    Running ledger(folder);
    auto first = stateOf(ledger, "first"), second = stateOf(ledger, "second"),
         third = stateOf(ledger, "third");
    if (story.settle == Said::YES) {
      EXPECT_EQ(first, After::SUCCEEDED);
    }
    if (story.first == Said::YES) {
      EXPECT_NE(first, After::ABSENT);
    }
    EXPECT_NE(first, After::REJECTED);
    if (story.claim == Said::YES) {
      EXPECT_EQ(second, After::UNKNOWN);
    }
    EXPECT_TRUE(second == After::UNKNOWN || second == After::ABSENT);
    if (story.conclude == Said::YES) {
      EXPECT_EQ(third, After::REJECTED);
    }
    EXPECT_TRUE(third == After::REJECTED || third == After::ABSENT);
    EXPECT_TRUE(ledger.claims("afterwards"));
  }
  EXPECT_EQ(findingsIn(folder), "");
}

class EveryFault : public testing::TestWithParam<Fault> {};

// The loop of SQLite's own tests: the n-th call fails, n = 1 to the first run that meets no fault.
TEST_P(EveryFault, anyFailedWriteOfAnOpenLedgerPoisonsIt) {
  TemporaryFolder place(fastPlace());
  auto pattern = makeLedger(place);
  FaultyVfs disk;
  uint64_t n = 1, poisoned = 0;
  for (bool struck = true; struck; ++n) {
    TemporaryFolder each(fastPlace());
    auto folder = each / "ledger";
    copyLedger(pattern, folder);
    Story story;
    {
      Running ledger(folder);
      disk.arm(GetParam(), n);
      story = live(ledger);
      bool no = story.conclude == Said::POISONED;
      poisoned += no ? 1 : 0;
      EXPECT_EQ(ledger->find("first").ok(), !no);
      expectNothingAfterTheFirstNo(story);
      ledger.close();  // Its own writes may meet the fault too.
      struck = disk.struck();
      disk.disarm();
    }
    ASSERT_NO_FATAL_FAILURE(expectTruth(folder, story)) << "fault at " << n;
    ASSERT_FALSE(HasFailure()) << "fault at " << n;
  }
  EXPECT_GT(poisoned, 10u);
}

TEST_P(EveryFault, aFaultWhileOpeningIsRefusedAndLosesNothing) {
  TemporaryFolder place(fastPlace());
  auto pattern = makeLedger(place);
  {
    Running ledger(pattern);
    ASSERT_TRUE(ledger.claims("first"));
  }
  FaultyVfs disk;
  for (auto calls : {Calls::CHANGES, Calls::READS}) {
    uint64_t n = 1;
    for (bool struck = true; struck; ++n) {
      TemporaryFolder each(fastPlace());
      auto folder = each / "ledger";
      copyLedger(pattern, folder);
      disk.arm(GetParam(), n, calls);
      kj::StringPtr outcome = "ok";
      {
        auto opening = Ledger::open(folder, momentAt(NOW));
        if (!opening.ok()) outcome = nameOf(opening.refusal().code);
        struck = disk.struck();
        disk.disarm();  // What closing does is another test.
      }
      EXPECT_TRUE(outcome == "ok" || outcome == "ledger_poisoned") << n << outcome.cStr();
      if (struck && calls == Calls::READS) {
        EXPECT_EQ(outcome, "ledger_poisoned") << n;
      }
      Running ledger(folder);
      EXPECT_EQ(stateOf(ledger, "first"), After::UNKNOWN) << n;
    }
    EXPECT_GT(n, 2u);
  }
}

TEST_P(EveryFault, aFaultWhileCreatingLeavesNoHalfALedger) {
  FaultyVfs disk;
  uint64_t n = 1;
  for (bool struck = true; struck; ++n) {
    TemporaryFolder each(fastPlace());
    auto folder = each / "ledger";
    disk.arm(GetParam(), n);
    bool made = false;
    auto threw = kj::runCatchingExceptions([&]() {
                   made = Ledger::create(folder, sampleRing(), momentAt(NOW)).ok();
                 }) != nullptr;
    struck = disk.struck();
    disk.disarm();
    EXPECT_EQ(made, !threw) << n;
    if (!made) {
      EXPECT_NE(access(folder.cStr(), F_OK), 0) << n;
      ASSERT_TRUE(Ledger::create(folder, sampleRing(), momentAt(NOW)).ok()) << n;
    }
    EXPECT_EQ(outcomeOfOpening(folder), "ok") << n;
  }
  EXPECT_GT(n, 5u);
}

INSTANTIATE_TEST_SUITE_P(Disk, EveryFault,
                         testing::Values(Fault::ERROR_ONCE, Fault::ERROR_FOREVER, Fault::FULL_ONCE,
                                         Fault::FULL_FOREVER),
                         [](auto& each) -> std::string {
                           switch (each.param) {
                             case Fault::ERROR_ONCE:
                               return "errorOnce";
                             case Fault::ERROR_FOREVER:
                               return "errorForever";
                             case Fault::FULL_ONCE:
                               return "fullOnce";
                             default:
                               return "fullForever";
                           }
                         });

// Everything in the batch of a failed commit is refused, whoever asked; what was answered before
// stays.
TEST(Fault, aFailedCommitRefusesTheWholeBatch) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  {
    FaultyVfs disk;
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("opener"));  // Has a flush of its own, for the log's head.
    disk.arm(Fault::HOLD, 1, Calls::FLUSHES);
    auto first = ledger->claim(claimOf("first"));
    disk.awaitHeld();
    kj::Vector<kj::Promise<Result<Done>>> batch;
    for (int i = 0; i < 8; ++i) batch.add(ledger->claim(claimOf(kj::str("op-", i))));
    disk.release(Fault::ERROR_ONCE, 1);

    EXPECT_TRUE(first.wait(ledger.wait()).ok());
    for (auto& claim : batch) EXPECT_EQ(heard(claim.wait(ledger.wait())), Said::POISONED);
    EXPECT_EQ(heard(ledger->claim(claimOf("later")).wait(ledger.wait())), Said::POISONED);
  }
  Running ledger(folder);
  EXPECT_EQ(stateOf(ledger, "first"), After::UNKNOWN);
  EXPECT_EQ(stateOf(ledger, "later"), After::ABSENT);
}

TEST(Fault, aReadThatFailsIsRefusedAndNotTakenForAnUnusedId) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    for (int i = 0; i < 600; ++i) ASSERT_TRUE(ledger.claims(kj::str("op-", i)));
  }
  FaultyVfs disk;
  Running ledger(folder);
  disk.arm(Fault::ERROR_FOREVER, 1, Calls::READS);
  int refused = 0;
  for (int i = 0; i < 600; ++i) {
    auto found = ledger->find(kj::str("op-", i));
    if (!found.ok()) {
      ++refused;
      EXPECT_EQ(found.refusal().code, RefusalCode::LEDGER_POISONED);
    } else {
      EXPECT_FALSE(found->is<ledger::Unknown>()) << i;
    }
  }
  EXPECT_GT(refused, 0);
  disk.disarm();
}

// The device may have lost what it was given: nothing may be built on it, not even on the way out.
TEST(Fault, aPoisonedLedgerWritesNothingMore) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  FaultyVfs disk;
  Running ledger(folder);
  ASSERT_TRUE(ledger.claims("op-1"));
  disk.arm(Fault::ERROR_ONCE, 1, Calls::FLUSHES);
  EXPECT_EQ(heard(ledger->claim(claimOf("op-2")).wait(ledger.wait())), Said::POISONED);
  disk.arm(Fault::ERROR_ONCE, 1);
  EXPECT_EQ(heard(ledger->claim(claimOf("op-3")).wait(ledger.wait())), Said::POISONED);
  ledger.close();
  EXPECT_FALSE(disk.struck());
}

// The log's way into the database, in the middle of service: its failure poisons like any other.
TEST(Fault, aFailedCheckpointPoisons) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  {
    FaultyVfs disk;
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("opener"));  // Has a flush of its own, for the log's head.
    disk.arm(Fault::HOLD, 1, Calls::FLUSHES);
    kj::Vector<kj::Promise<Result<Done>>> claims;
    claims.add(ledger->claim(claimOf("op-0")));
    disk.awaitHeld();
    // One commit that fills the log, so that what comes right after it is the checkpoint.
    auto long200 = kj::strArray(kj::repeat("x"_kj, 200), "");
    for (int i = 1; i < 9000; ++i) claims.add(ledger->claim(claimOf(kj::str(long200, i))));
    disk.release(Fault::ERROR_FOREVER, 2);
    for (auto& claim : claims) ASSERT_EQ(heard(claim.wait(ledger.wait())), Said::YES);
    EXPECT_EQ(heard(ledger->claim(claimOf("later")).wait(ledger.wait())), Said::POISONED);
    EXPECT_TRUE(disk.struck());
  }
  Running ledger(folder);
  EXPECT_EQ(ledger->recovered().settled, 9001u);
}

// A real file system without a free block, in place of an injected error.
class SmallDisk {
 public:
  explicit SmallDisk(kj::String at) : place(kj::mv(at)) {
    KJ_SYSCALL(mkdir(place.cStr(), 0700));
    KJ_SYSCALL(mount("none", place.cStr(), "tmpfs", 0, "size=6m,mode=0700"));
  }
  ~SmallDisk() noexcept { umount2(place.cStr(), MNT_DETACH); }
  KJ_DISALLOW_COPY(SmallDisk);

  void fill() {
    kj::AutoCloseFd file(open(kj::str(place, "/ballast").cStr(), O_WRONLY | O_CREAT, 0600));
    char block[4096] = {};
    while (::write(file, block, sizeof(block)) > 0) {
    }
  }
  void empty() { unlink(kj::str(place, "/ballast").cStr()); }
  kj::String operator/(kj::StringPtr name) { return kj::str(place, '/', name); }

 private:
  kj::String place;
};

TEST(Fault, aFullDiskIsRefusedAndRecoversOnceThereIsSpace) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can mount the small file system this fills";
  TemporaryFolder place;
  SmallDisk disk(place / "disk");
  auto folder = disk / "ledger";
  ASSERT_TRUE(Ledger::create(folder, sampleRing(), momentAt(NOW)).ok());
  kj::Vector<kj::String> accepted;
  {
    Running ledger(folder);
    disk.fill();
    bool poisoned = false;
    // The log has its space already; the database grows when the log is full.
    for (int i = 0; i < 5000 && !poisoned; ++i) {
      auto id = kj::str("op-", i);
      auto claim = ledger->claim(claimOf(id)).wait(ledger.wait());
      if (claim.ok()) {
        accepted.add(kj::mv(id));
      } else {
        EXPECT_EQ(claim.refusal().code, RefusalCode::LEDGER_POISONED);
        poisoned = true;
      }
    }
    ASSERT_TRUE(poisoned);
    EXPECT_FALSE(ledger->find("op-0").ok());
  }
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_poisoned");
  disk.empty();
  {
    Running ledger(folder);
    EXPECT_GE(ledger->recovered().settled, accepted.size());
    for (auto& id : accepted) EXPECT_EQ(stateOf(ledger, id), After::UNKNOWN);
    EXPECT_TRUE(ledger.claims("afterwards"));
  }
  EXPECT_EQ(findingsIn(folder), "");
}

TEST(Fault, creationOnAFullDiskThrowsAndLeavesNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can mount the small file system this fills";
  TemporaryFolder place;
  SmallDisk disk(place / "disk");
  disk.fill();
  EXPECT_ANY_THROW(KJ_ASSERT(Ledger::create(disk / "ledger", sampleRing(), momentAt(NOW)).ok()));
  EXPECT_NE(access((disk / "ledger").cStr(), F_OK), 0);
  disk.empty();
  EXPECT_TRUE(Ledger::create(disk / "ledger", sampleRing(), momentAt(NOW)).ok());
}

}  // namespace
}  // namespace praefectus::test
