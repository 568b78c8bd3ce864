// Time, in the two senses that must not be mixed up.
#pragma once

#include <cstdint>

namespace praefectus {

class Clock {
 public:
  virtual ~Clock() = default;
  // Unix milliseconds: what grants state and receipts record. May step.
  virtual int64_t wallMs() const = 0;
  // Milliseconds since boot, suspend included (CLOCK_BOOTTIME): what deadlines and frame ages are
  // counted on. Never steps.
  virtual uint64_t bootMs() const = 0;
};

class SystemClock final : public Clock {
 public:
  int64_t wallMs() const override;
  uint64_t bootMs() const override;
};

}  // namespace praefectus
