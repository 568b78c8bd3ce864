#include "supervisor/own-process.h"

#include <kj/debug.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace praefectus {

kj::AutoCloseFd takeInherited(int fd) {
  KJ_SYSCALL(fcntl(fd, F_SETFD, FD_CLOEXEC));
  return kj::AutoCloseFd(fd);
}

void giveUp() {
  KJ_SYSCALL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  KJ_SYSCALL(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
  rlimit none{0, 0};
  KJ_SYSCALL(setrlimit(RLIMIT_CORE, &none));
}

kj::String ownFolder() {
  char path[4096];
  ssize_t size;
  KJ_SYSCALL(size = readlink("/proc/self/exe", path, sizeof(path) - 1));
  path[size] = '\0';
  kj::StringPtr whole(path);
  return kj::heapString(whole.slice(0, KJ_ASSERT_NONNULL(whole.findLast('/'))));
}

}  // namespace praefectus
