// How far a long piece of work is, for a person who waits. Says nothing where nobody looks: only
// when standard error is a terminal.
#pragma once

#include <kj/string.h>

#include <chrono>

namespace praefectus::cli {

class Progress {
 public:
  Progress();
  // Takes its line away again.
  ~Progress() noexcept(false);
  KJ_DISALLOW_COPY(Progress);

  // "checking: 12 of 345, 3 %". Cheap enough for every step.
  void at(kj::StringPtr doing, uint64_t done, uint64_t all);

 private:
  using Clock = std::chrono::steady_clock;
  bool seen;         // Whether somebody may be looking.
  size_t width = 0;  // Of what stands on the line now.
  Clock::time_point next;
};

}  // namespace praefectus::cli
