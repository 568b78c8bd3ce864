// A process by its pid and start time, which together name one process while the machine is up.
#pragma once

#include "ipc/words.h"

namespace praefectus::desktop {

// Start time of a live process in clock ticks since boot; nothing when there is no such process.
kj::Maybe<uint64_t> startOf(uint32_t pid);

// Field 22 of the text of /proc/PID/stat; nothing for a process that has ended and waits for its
// parent. The second field is the program's name in parentheses,
// which may itself hold spaces and parentheses: fields are counted from the last ')'. Source:
// proc(5).
kj::Maybe<uint64_t> startFrom(kj::StringPtr stat);

}  // namespace praefectus::desktop
