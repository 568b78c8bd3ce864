// A disk that fails, or a machine that stops, at any write of any deed: the ledger opens, holds,
// and the deed was done as a whole or not at all.
#include "tests/ledger/keeping.h"

#include <functional>

#include <signal.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

constexpr int64_t HOUR = 3'600'000;

// What may be done to a ledger, and whether it was: asked of a ledger that has just been opened.
struct Deed {
  const char* name;
  // Answers whether it is said to be done; throws when it is refused otherwise than as poisoned.
  std::function<bool(kj::StringPtr folder)> attempt;
  std::function<bool(kj::StringPtr folder)> isDone;
};

void PrintTo(const Deed& deed, std::ostream* out) { *out << deed.name; }

template <typename T>
bool saidDone(const Result<T>& result) {
  KJ_REQUIRE(result.ok() || result.refusal().code == RefusalCode::LEDGER_POISONED,
             result.refusal().detail);
  return result.ok();
}

kj::String archiveOf(kj::StringPtr folder) { return kj::str(folder, "-archive"); }
kj::String copyOf(kj::StringPtr folder) { return kj::str(folder, "-copy"); }

// How many of that many operations are known here only by their ids.
unsigned retired(kj::StringPtr folder, kj::StringPtr prefix, unsigned count) {
  Running ledger(folder);
  unsigned out = 0;
  for (unsigned i = 0; i < count; ++i) {
    out += ledger->find(kj::str(prefix, i))->is<ledger::Elsewhere>() ? 1 : 0;
  }
  return out;
}

// Whether the old operations are there and nowhere else, every one of them.
bool wasArchived(kj::StringPtr folder) {
  auto away = retired(folder, "op-", 6);
  EXPECT_TRUE(away == 0 || away == 6) << away;
  auto file = archiveOf(folder);
  if (away > 0 || access(file.cStr(), F_OK) == 0) {
    // Whatever stands there is a whole archive, also when nothing was removed for it.
    auto reader = LedgerReader::open(file);
    KJ_REQUIRE(reader.ok(), reader.refusal().detail);
    auto report = (*reader)->verify(nullptr);
    EXPECT_EQ(report->receipts, 6u);
    EXPECT_EQ(report->findings.size(), 0u);
  }
  return away > 0;
}

bool wasCopied(kj::StringPtr folder) {
  auto copy = copyOf(folder);
  if (access(copy.cStr(), F_OK) != 0) return false;
  EXPECT_EQ(check(copy), "");
  return true;
}

const Deed DEEDS[] = {
    {"adopt", [](auto folder) { return saidDone(ledger::adopt(folder, momentAt(NOW))); },
     [](auto folder) { return ledger::takeInventory(folder)->summary.id.incarnation == 3; }},
    {"rotate", [](auto folder) { return saidDone(ledger::rotateKey(folder, momentAt(NOW))); },
     [](auto folder) { return ledger::takeInventory(folder)->keys.size() == 2; }},
    {"clock", [](auto folder) { return saidDone(ledger::acceptClock(folder, momentAt(NOW))); },
     [](auto folder) {
       return spelled(ledger::takeInventory(folder)->events).find("clock_accepted") !=
              std::string::npos;
     }},
    {"import",
     [](auto folder) {
       auto line = [](kj::StringPtr id) {
         return kj::str("{\"kind\":\"claim\",\"operation_id\":\"", id, "\",\"action_hash\":\"",
                        kj::strArray(kj::repeat("0"_kj, 64), ""), "\",\"claimed_at_ms\":1}\n");
       };
       return saidDone(import(folder, kj::str(line("v2-0"), line("v2-1"))));
     },
     [](auto folder) {
       auto there = retired(folder, "v2-", 2);
       EXPECT_TRUE(there == 0 || there == 2) << there;
       return there == 2;
     }},
    {"archive",
     [](auto folder) { return saidDone(archiveBefore(folder, NOW + HOUR, archiveOf(folder))); },
     wasArchived},
    {"backup",
     [](auto folder) { return saidDone(ledger::backUp(folder, copyOf(folder), silent())); },
     wasCopied},
    {"restore",
     [](auto folder) {
       return saidDone(ledger::restore(folder, copyOf(folder), momentAt(NOW), 0, silent()));
     },
     [](auto folder) {
       bool copied = wasCopied(folder);
       if (copied) {
         EXPECT_EQ(outcomeOfOpening(copyOf(folder)), "ok");
       }
       return copied;
     }},
};

class EveryDeed : public testing::TestWithParam<Deed> {
 protected:
  EveryDeed() : place(fastPlace()), pattern(makeLedger(place)) {
    Running ledger(pattern);
    for (int i = 0; i < 6; ++i) does(ledger, kj::str("op-", i));
  }

  // Runs the deed against the n-th call of a disk, n = 1 to the first run that meets no fault.
  template <typename Run>
  void sweep(Run&& run) {
    uint64_t n = 1, undone = 0;
    for (bool struck = true; struck; ++n) {
      TemporaryFolder each(fastPlace());
      auto folder = each / "ledger";
      copyLedger(pattern, folder);
      bool said = run(folder, n, struck);
      does(folder, "afterwards");
      bool done = GetParam().isDone(folder);
      if (said) {
        EXPECT_TRUE(done) << n;
      }
      undone += done ? 0 : 1;
      EXPECT_EQ(check(folder), "") << n;
      ASSERT_FALSE(HasFailure()) << "fault at " << n;
    }
    EXPECT_GT(n, 3u);
    EXPECT_GT(undone, 0u);
  }

  TemporaryFolder place;
  kj::String pattern;
};

TEST_P(EveryDeed, killedAtAnyWriteWasDoneOrNot) {
  for (auto fault : {Fault::KILL_BEFORE, Fault::KILL_AFTER}) {
    sweep([&](kj::StringPtr folder, uint64_t n, bool& struck) {
      OtherProcess other([&](int) {
        FaultyVfs disk;
        disk.arm(fault, n);
        if (!GetParam().attempt(folder)) KJ_FAIL_REQUIRE("not done");
      });
      int status = other.wait();
      EXPECT_TRUE(status == 0 || status == -SIGKILL) << status;
      struck = status == -SIGKILL;
      return !struck;
    });
    if (HasFatalFailure()) return;
  }
}

TEST_P(EveryDeed, onADiskThatFailsWasDoneOrNot) {
  FaultyVfs disk;
  for (auto fault : {Fault::ERROR_ONCE, Fault::ERROR_FOREVER, Fault::FULL_FOREVER}) {
    sweep([&](kj::StringPtr folder, uint64_t n, bool& struck) {
      disk.arm(fault, n);
      bool said = GetParam().attempt(folder);
      struck = disk.struck();
      disk.disarm();
      return said;
    });
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Upkeep, EveryDeed, testing::ValuesIn(DEEDS),
                         [](auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace praefectus::test
