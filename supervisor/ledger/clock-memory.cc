#include "supervisor/ledger/clock-memory.h"

#include "ipc/bounds.h"

namespace praefectus::ledger {

int64_t ClockMemory::expectedWallMs(uint64_t bootMs) const {
  KJ_IF_MAYBE (start, sameBoot) {
    auto passed = static_cast<int64_t>(bootMs) - static_cast<int64_t>(start->bootMs);
    return kj::max(start->wallMs + passed, floorMs);
  }
  return floorMs;
}

bool ClockMemory::agrees(const Moment& now) const {
  int64_t ahead = now.wallMs - expectedWallMs(now.bootMs);
  bool tooFar = sameBoot != nullptr && ahead > bounds::CLOCK_JUMP_MS;
  return ahead >= -bounds::CLOCK_JUMP_MS && !tooFar;
}

}  // namespace praefectus::ledger
