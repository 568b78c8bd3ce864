// What a ledger remembers of time, and whether a clock agrees with it. Pure.
//
// A wall clock can be set: by a person, by a battery that ran out, by whoever wants an expired
// grant back. What was recorded here cannot be later than now, and within one boot the wall clock
// moves as the time since boot does.
#pragma once

#include "ipc/words.h"

namespace praefectus::ledger {

// Both clocks at one moment.
struct Moment {
  int64_t wallMs = 0;   // Unix milliseconds.
  uint64_t bootMs = 0;  // Milliseconds since boot, suspend included (CLOCK_BOOTTIME).
};

struct ClockMemory {
  // The latest time on record since the last time that a person accepted the clock.
  int64_t floorMs = 0;
  // The last recorded start or acceptance, when it was in this very boot.
  kj::Maybe<Moment> sameBoot;

  // The wall time that is to be expected at that moment since boot, or the least that it can be.
  int64_t expectedWallMs(uint64_t bootMs) const;
  // Whether the wall clock is within bounds::CLOCK_JUMP_MS of that; later than the floor is fine
  // when nothing of this boot is on record.
  bool agrees(const Moment& now) const;
};

}  // namespace praefectus::ledger
