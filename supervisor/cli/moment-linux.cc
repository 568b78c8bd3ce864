#include "supervisor/cli/moment.h"

#include <ctime>

namespace praefectus::cli {
namespace {

int64_t millisecondsOf(clockid_t clock) {
  timespec now{};
  KJ_SYSCALL(clock_gettime(clock, &now));
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

ledger::Moment momentNow() {
  return {millisecondsOf(CLOCK_REALTIME), static_cast<uint64_t>(millisecondsOf(CLOCK_BOOTTIME))};
}

}  // namespace praefectus::cli
