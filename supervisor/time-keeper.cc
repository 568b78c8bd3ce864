#include "supervisor/time-keeper.h"

namespace praefectus {

TimeKeeper::TimeKeeper(const Clock& clock, const ledger::ClockMemory& memory)
    : clock(clock), memory(memory), start{memory.floorMs, clock.bootMs()} {
  trusted();
}

ledger::Moment TimeKeeper::look() const {
  ledger::Moment now{clock.wallMs(), clock.bootMs()};
  if (memory.sameBoot == nullptr) {
    auto passed = static_cast<int64_t>(now.bootMs) - static_cast<int64_t>(start.bootMs);
    memory.floorMs = kj::max(memory.floorMs, start.wallMs + passed);
  }
  return now;
}

bool TimeKeeper::trusted() const {
  auto now = look();
  if (!memory.agrees(now)) return false;
  // From the first agreement on, this boot's own course is what the wall clock is held against.
  if (memory.sameBoot == nullptr) memory.sameBoot = now;
  return true;
}

int64_t TimeKeeper::wallMs() const {
  auto now = look();
  int64_t time = trusted() ? now.wallMs : memory.expectedWallMs(now.bootMs);
  memory.floorMs = kj::max(memory.floorMs, time);
  return memory.floorMs;
}

}  // namespace praefectus
