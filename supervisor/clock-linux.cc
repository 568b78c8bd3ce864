#include "supervisor/clock.h"

#include <kj/debug.h>

#include <ctime>

namespace praefectus {
namespace {

int64_t milliseconds(clockid_t clock) {
  timespec now;
  KJ_SYSCALL(clock_gettime(clock, &now));
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

int64_t SystemClock::wallMs() const { return milliseconds(CLOCK_REALTIME); }
uint64_t SystemClock::bootMs() const { return static_cast<uint64_t>(milliseconds(CLOCK_BOOTTIME)); }

}  // namespace praefectus
