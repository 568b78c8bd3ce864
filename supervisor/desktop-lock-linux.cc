#include "supervisor/desktop-lock.h"

#include <kj/debug.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus {
namespace {

constexpr Refusal TAKEN = {RefusalCode::DESKTOP_BUSY,
                           "Another supervisor acts on this desktop."_kj};
constexpr Refusal NO_PLACE = {RefusalCode::DESKTOP_BUSY,
                              "The desktop's lock has no safe place: see /run/user and /tmp."_kj};

// Without the screen, since the screens of one server share pointer and focus; and without the ways
// to say that a server is on this machine.
kj::String serverOf(kj::StringPtr display) {
  KJ_IF_MAYBE (colon, display.findLast(':')) {
    auto host = kj::heapString(display.slice(0, *colon));
    auto number = kj::str(display.slice(*colon + 1));
    KJ_IF_MAYBE (dot, number.findFirst('.')) number = kj::heapString(number.slice(0, *dot));
    bool local = host == "" || host == "unix" || host == "localhost" || host == "127.0.0.1";
    return kj::str(local ? kj::StringPtr("local") : kj::StringPtr(host), ":", number);
  }
  return kj::str(display);
}

// A display name may hold a path; a file name must not.
kj::String fileName(kj::StringPtr display) {
  auto name = kj::str("praefectus-desktop-", serverOf(display), ".lock");
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return name;
}

bool isOurs(const struct stat& facts) {
  return facts.st_uid == geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

kj::Maybe<kj::AutoCloseFd> openFolder(kj::StringPtr path) {
  int folder = open(path.cStr(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return nullptr;
  kj::AutoCloseFd owned(folder);
  struct stat facts;
  KJ_SYSCALL(fstat(folder, &facts));
  if (!isOurs(facts)) return nullptr;
  return kj::mv(owned);
}

kj::Maybe<kj::AutoCloseFd> userFolder() {
  auto runtime = openFolder(kj::str("/run/user/", geteuid()));
  if (runtime != nullptr) return runtime;
  auto fallback = kj::str("/tmp/praefectus-", geteuid());
  mkdir(fallback.cStr(), 0700);  // Judged by openFolder, whoever made it.
  return openFolder(fallback);
}

struct flock wholeFile() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

DesktopLock::DesktopLock(kj::StringPtr display) : name(fileName(display)) {}

kj::Maybe<kj::AutoCloseFd&> DesktopLock::lockFile() {
  KJ_IF_MAYBE (known, file) return *known;
  KJ_IF_MAYBE (folder, userFolder()) {
    int fd = openat(folder->get(), name.cStr(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return nullptr;
    kj::AutoCloseFd owned(fd);
    struct stat facts;
    KJ_SYSCALL(fstat(fd, &facts));
    if (isOurs(facts) && S_ISREG(facts.st_mode)) return file.emplace(kj::mv(owned));
  }
  return nullptr;
}

Result<Done> DesktopLock::hold() {
  if (held) return Done{};
  KJ_IF_MAYBE (fd, lockFile()) {
    // Of the open file, not of the process: freed by the kernel when we end, in whatever way.
    auto lock = wholeFile();
    if (fcntl(fd->get(), F_OFD_SETLK, &lock) != 0) return TAKEN;
    held = true;
    return Done{};
  }
  return NO_PLACE;
}

bool DesktopLock::isFree() {
  if (held) return true;
  KJ_IF_MAYBE (fd, lockFile()) {
    auto lock = wholeFile();
    return fcntl(fd->get(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
  }
  return false;
}

}  // namespace praefectus
