#include "tests/bench/bulk.h"
#include "tests/bench/parts.h"
#include "tests/bench/records.h"
#include "tests/bench/storage-meter.h"

#include <kj/io.h>

#include <fcntl.h>
#include <unistd.h>

namespace praefectus::bench {
namespace {

kj::Own<ledger::Ledger> openedAt(kj::StringPtr folder) {
  auto opened = ledger::Ledger::open(folder, moment());
  KJ_REQUIRE(opened.ok(), nameOf(opened.refusal().code), opened.refusal().detail);
  return kj::mv(*opened);
}

// The processor time that the ledger's thread spends from one flush to the next: for a claim, from
// the flush of the ending before it.
struct Spent {
  Samples claim, ending;
};

void spend(ledger::Ledger& ledger, kj::WaitScope& wait, int operations, Spent& spent) {
  kj::Maybe<double> last;
  for (int i = 0; i < operations; ++i) {
    auto id = newOperation();
    KJ_ASSERT(ledger.claim(claimOf(id)).wait(wait).ok());
    auto atClaim = processorTimeAtFlush();
    KJ_IF_MAYBE (before, last) spent.claim.add(atClaim - *before);
    KJ_ASSERT(ledger.settle(kj::mv(id), success()).wait(wait).ok());
    last = processorTimeAtFlush();
    spent.ending.add(KJ_ASSERT_NONNULL(last) - atClaim);
  }
}

// Takes what the kernel remembers of the file away, as if it had not been read since the start.
void forget(kj::StringPtr path) {
  int fd;
  KJ_SYSCALL(fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC), path);
  kj::AutoCloseFd file(fd);
  KJ_SYSCALL(fdatasync(file));
  KJ_ASSERT(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0);
}

}  // namespace

void measureGrowth(kj::WaitScope& wait, const Places& places, Report& report) {
  constexpr int ROUNDS = 20, EACH = 200;
  auto small = ledgerOf(places.scratch, 1000);
  auto large = ledgerOf(places.kept, 1'000'000);
  Spent few, many;
  {
    auto ofFew = openedAt(small);
    auto ofMany = openedAt(large);
    skipFlushes(true);
    KJ_DEFER(skipFlushes(false));
    for (int i = 0; i < ROUNDS; ++i) {
      spend(*ofFew, wait, EACH, few);
      spend(*ofMany, wait, EACH, many);
    }
  }
  report.note("processor time of a claim, 10^3 rows", few.claim);
  report.note("processor time of a claim, 10^6 rows", many.claim);
  report.note("processor time of an ending, 10^3 rows", few.ending);
  report.note("processor time of an ending, 10^6 rows", many.ending);
  report.gate({"processor time of a claim, 10^6 rows / 10^3 rows",
               many.claim.median() / few.claim.median(), 1.3, "times"});
}

void measureOpening(const Places& places, Report& report) {
  constexpr int ROUNDS = 25;
  auto small = ledgerOf(places.scratch, 1000);
  auto large = ledgerOf(places.kept, 10'000'000);
  auto file = kj::str(large, "/ledger.db");
  Samples few, remembered, forgotten;
  auto open = [](Samples& samples, kj::StringPtr folder) {
    kj::Own<ledger::Ledger> opened;
    samples.add(timeOf([&]() { opened = openedAt(folder); }));
  };
  for (int i = 0; i < ROUNDS; ++i) {
    open(few, small);
    open(remembered, large);
    forget(file);
    open(forgotten, large);
  }
  report.note("opening 10^3 rows", few);
  report.note("opening 10^7 rows, pages in memory", remembered);
  report.note("opening 10^7 rows, pages on the device", forgotten);
  report.gate({"opening 10^7 rows, pages in memory", remembered.median() / 1e3, 50, "ms"});
  report.gate({"opening 10^7 rows, pages on the device", forgotten.median() / 1e3, 50, "ms"});
}

}  // namespace praefectus::bench
