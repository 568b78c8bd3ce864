// A process by descriptor (pidfd_open(2)): no number that could meanwhile mean another one.
#pragma once

#include <sys/types.h>

namespace praefectus::launch {

// Close-on-exec; negative, with errno set, when there is no such process.
int openPidfd(pid_t pid);
// SIGKILL to exactly that process; nothing when it is gone.
void killByPidfd(int pidfd);
// Whether the process is gone, reaped or not, within the time. An interrupted wait counts as not.
bool goneWithin(int pidfd, int milliseconds);

}  // namespace praefectus::launch
