// The time that grants are judged by: the wall clock, as long as it can be believed.
//
// A wall clock that has jumped against the time since boot, or that is behind what the ledger has
// on record, is not followed. Time then goes on from what was remembered, reads are served, and
// mutations wait until the clock agrees again or a person accepts it (`praefectus ledger clock`).
#pragma once

#include "supervisor/clock.h"
#include "supervisor/ledger/clock-memory.h"

namespace praefectus {

class TimeKeeper final : public Clock {
 public:
  TimeKeeper(const Clock& clock, const ledger::ClockMemory& memory);

  // Never goes backwards while it lives, and is never before what the ledger has on record.
  int64_t wallMs() const override;
  uint64_t bootMs() const override { return clock.bootMs(); }
  // Whether the wall clock agrees now.
  bool trusted() const;

 private:
  // Both clocks now. Until the wall clock has agreed once in this boot, what is on record grows
  // with the time that has passed since we began: that much later it must be.
  ledger::Moment look() const;

  const Clock& clock;
  mutable ledger::ClockMemory memory;
  const ledger::Moment start;  // The latest time on record, and when we began.
};

}  // namespace praefectus
