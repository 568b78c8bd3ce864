// Bare system calls: Debian 12's <sys/pidfd.h> cannot be linked from C++, it lacks extern "C".
#include "supervisor/launch/pidfd.h"

#include <csignal>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace praefectus::launch {

int openPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

void killByPidfd(int pidfd) { syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0); }

bool goneWithin(int pidfd, int milliseconds) {
  pollfd wait{pidfd, POLLIN, 0};
  return poll(&wait, 1, milliseconds) == 1;
}

}  // namespace praefectus::launch
