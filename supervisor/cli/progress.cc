#include "supervisor/cli/progress.h"

#include "supervisor/cli/report.h"

#include <unistd.h>

namespace praefectus::cli {
namespace {

constexpr auto PAUSE = std::chrono::milliseconds(100);

// A line of blanks, with the cursor at its beginning: no terminal is too simple for that.
kj::String wiped(size_t width) {
  auto blanks = kj::heapString(width);
  memset(blanks.begin(), ' ', width);
  return kj::str("\r", blanks, "\r");
}

}  // namespace

Progress::Progress() : seen(isatty(STDERR_FILENO) == 1), next(Clock::now()) {}

Progress::~Progress() noexcept(false) {
  if (width > 0) writeAll(STDERR_FILENO, wiped(width));
}

void Progress::at(kj::StringPtr doing, uint64_t done, uint64_t all) {
  auto now = Clock::now();
  if (!seen || now < next) return;
  next = now + PAUSE;
  uint64_t percent = all == 0 ? 100 : done * 100 / all;
  auto line = kj::str(doing, ": ", done, " of ", all, ", ", percent, " %");
  writeAll(STDERR_FILENO, kj::str(wiped(width), line));
  width = line.size();
}

}  // namespace praefectus::cli
