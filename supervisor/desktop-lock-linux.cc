#include "supervisor/desktop-lock.h"

#include <kj/debug.h>

#include <cstdlib>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus {
namespace {

kj::String runtimeFolder() {
  const char* given = getenv("XDG_RUNTIME_DIR");
  if (given != nullptr && given[0] == '/') return kj::str(given);
  auto folder = kj::str("/tmp/praefectus-", geteuid());
  mkdir(folder.cStr(), 0700);  // Judged below, whoever made it.
  return folder;
}

// ":0" and ":0.1" are two screens of one display, which has one pointer and one focus.
kj::String withoutScreen(kj::StringPtr display) {
  KJ_IF_MAYBE (colon, display.findFirst(':')) {
    KJ_IF_MAYBE (dot, display.slice(*colon).findFirst('.')) {
      return kj::heapString(display.slice(0, *colon + *dot));
    }
  }
  return kj::str(display);
}

// A display name may hold a host and a path; a file name must not.
kj::String fileName(kj::StringPtr display) {
  auto name = kj::str("praefectus-desktop-", withoutScreen(display), ".lock");
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return name;
}

bool isOurs(const struct stat& facts) {
  return facts.st_uid == geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

kj::Maybe<kj::AutoCloseFd> lockDesktop(kj::StringPtr display) {
  int folder = open(runtimeFolder().cStr(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return nullptr;
  kj::AutoCloseFd folderFd(folder);
  struct stat facts;
  KJ_SYSCALL(fstat(folder, &facts));
  if (!isOurs(facts)) return nullptr;

  int file =
      openat(folder, fileName(display).cStr(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  kj::AutoCloseFd fileFd(file);
  KJ_SYSCALL(fstat(file, &facts));
  if (!isOurs(facts) || !S_ISREG(facts.st_mode)) return nullptr;
  if (flock(file, LOCK_EX | LOCK_NB) != 0) return nullptr;
  return kj::mv(fileFd);
}

}  // namespace praefectus
