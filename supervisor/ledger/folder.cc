#include "supervisor/ledger/folder.h"

#include <kj/debug.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::ledger {
namespace {

Refusal foreign(kj::StringPtr why) { return {RefusalCode::LEDGER_FOREIGN, why}; }

constexpr kj::StringPtr NO_LEDGER = "There is no ledger here that this user can open."_kj;
constexpr kj::StringPtr UNSAFE_WAY =
    "A folder on the way to the ledger can be changed by another user."_kj;
constexpr kj::StringPtr OCCUPIED = "Something is already there."_kj;

struct Required {
  kj::StringPtr name;
  bool mayBeMissing;
  // SQLite deletes the log of a database without a page, so an empty one must not come near it.
  off_t smallest;
};
constexpr Required FILES[] = {{DATABASE_FILE, false, 4096},
                              {LOG_FILE, false, 0},
                              {INDEX_FILE, true, 0},
                              {KEY_FILE, false, 1}};

// A path in two parts: the folder it is in, and its own name.
struct Named {
  kj::String parent, name;
};

kj::Maybe<Named> split(kj::StringPtr path) {
  size_t end = path.size();
  while (end > 1 && path[end - 1] == '/') --end;
  size_t begin = end;
  while (begin > 0 && path[begin - 1] != '/') --begin;
  auto name = kj::str(path.slice(begin, end));
  if (name.size() == 0 || name == "." || name == "..") return nullptr;
  auto parent = begin == 0 ? kj::str(".") : kj::str(path.slice(0, begin));
  return Named{kj::mv(parent), kj::mv(name)};
}

kj::Maybe<kj::String> realPath(kj::StringPtr path) {
  char resolved[PATH_MAX];
  if (realpath(path.cStr(), resolved) == nullptr) return nullptr;
  return kj::str(kj::StringPtr(resolved) == "/" ? "" : resolved);
}

// Whether only root and the effective user can replace what is in this folder. In a sticky folder
// everyone can add, but only owners can remove or rename.
bool isSafe(const struct stat& folder) {
  bool ours = folder.st_uid == 0 || folder.st_uid == geteuid();
  bool open = (folder.st_mode & 0022) != 0 && (folder.st_mode & S_ISVTX) == 0;
  return S_ISDIR(folder.st_mode) && ours && !open;
}

// `place` is absolute and without links; every folder above its last part is looked at.
bool wayIsSafe(kj::StringPtr place) {
  for (size_t i = 0; i < place.size(); ++i) {
    if (place[i] != '/') continue;
    struct stat info;
    auto folder = i == 0 ? kj::str("/") : kj::str(place.slice(0, i));
    if (lstat(folder.cStr(), &info) != 0 || !isSafe(info)) return false;
  }
  return true;
}

kj::Maybe<kj::String> placeOf(kj::StringPtr path) {
  KJ_IF_MAYBE (named, split(path)) {
    KJ_IF_MAYBE (parent, realPath(named->parent)) return kj::str(*parent, '/', named->name);
  }
  return nullptr;
}

kj::Maybe<kj::AutoCloseFd> openFolder(kj::StringPtr place) {
  int fd = ::open(place.cStr(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  return kj::AutoCloseFd(fd);
}

// Nothing when the file may be used. The files are looked at and not opened: closing a second
// descriptor of a database gives up the locks that SQLite holds through the first (fcntl(2)).
kj::Maybe<kj::StringPtr> faultOf(int folder, const Required& file, bool owned) {
  struct stat info;
  if (fstatat(folder, file.name.cStr(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT && file.mayBeMissing) return nullptr;
    return errno == ENOENT ? "A file of the ledger is missing."_kj
                           : "A file of the ledger cannot be looked at."_kj;
  }
  if (!S_ISREG(info.st_mode)) return "A file of the ledger is a link or not a regular file."_kj;
  if (info.st_size < file.smallest) return "A file of the ledger is too short."_kj;
  if (!owned) return nullptr;
  if (info.st_uid != geteuid()) return "A file of the ledger belongs to another user."_kj;
  if ((info.st_mode & 07777) != 0600) return "A file of the ledger does not have mode 0600."_kj;
  if (info.st_nlink != 1) return "A file of the ledger has a second name."_kj;
  return nullptr;
}

kj::Maybe<kj::StringPtr> faultOf(int folder) {
  struct stat info;
  KJ_SYSCALL(fstat(folder, &info));
  if (info.st_uid != geteuid()) return "The ledger's folder belongs to another user."_kj;
  if ((info.st_mode & 07777) != 0700) return "The ledger's folder does not have mode 0700."_kj;
  return nullptr;
}

bool sameFolder(int folder, kj::StringPtr place) {
  struct stat held, named;
  return fstat(folder, &held) == 0 && lstat(place.cStr(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

void syncFolder(kj::StringPtr place) {
  int fd;
  KJ_SYSCALL(fd = ::open(place.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  kj::AutoCloseFd folder(fd);
  KJ_SYSCALL(fsync(folder));
}

kj::String parentOf(kj::StringPtr place) {
  size_t slash = KJ_ASSERT_NONNULL(place.findLast('/'));
  return slash == 0 ? kj::str("/") : kj::str(place.slice(0, slash));
}

// Makes what is missing of a folder, each part on the device before the next.
bool makeWay(kj::StringPtr folder) {
  if (access(folder.cStr(), F_OK) == 0) return true;
  KJ_IF_MAYBE (named, split(folder)) {
    if (!makeWay(named->parent)) return false;
    if (mkdir(folder.cStr(), 0700) == 0) {
      KJ_SYSCALL(chmod(folder.cStr(), 0700));
    } else if (errno != EEXIST) {
      return false;
    }
    syncFolder(named->parent);
    return true;
  }
  return false;
}

}  // namespace

Result<Folder> Folder::own(kj::StringPtr path) {
  KJ_IF_MAYBE (place, placeOf(path)) {
    if (!wayIsSafe(*place)) return foreign(UNSAFE_WAY);
    KJ_IF_MAYBE (directory, openFolder(*place)) {
      KJ_IF_MAYBE (fault, faultOf(*directory)) return foreign(*fault);
      if (flock(*directory, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return foreign("The ledger's folder cannot be locked.");
        return Refusal{RefusalCode::LEDGER_BUSY, "Another supervisor holds this ledger."};
      }
      for (auto& file : FILES) {
        KJ_IF_MAYBE (fault, faultOf(*directory, file, true)) return foreign(*fault);
      }
      if (!sameFolder(*directory, *place)) return foreign("The ledger's folder was replaced.");
      return Folder(kj::mv(*place), kj::mv(*directory));
    }
  }
  return foreign(NO_LEDGER);
}

Result<Folder> Folder::view(kj::StringPtr path) {
  KJ_IF_MAYBE (place, placeOf(path)) {
    KJ_IF_MAYBE (directory, openFolder(*place)) {
      for (auto& file : FILES) {
        // An auditor has no receipt key.
        if (file.name == KEY_FILE) continue;
        KJ_IF_MAYBE (fault, faultOf(*directory, file, false)) return foreign(*fault);
      }
      return Folder(kj::mv(*place), kj::mv(*directory));
    }
  }
  return foreign(NO_LEDGER);
}

kj::Vector<kj::StringPtr> Folder::faults(kj::StringPtr path) {
  kj::Vector<kj::StringPtr> out;
  KJ_IF_MAYBE (place, placeOf(path)) {
    if (!wayIsSafe(*place)) out.add(UNSAFE_WAY);
    KJ_IF_MAYBE (directory, openFolder(*place)) {
      KJ_IF_MAYBE (fault, faultOf(*directory)) out.add(*fault);
      for (auto& file : FILES) {
        KJ_IF_MAYBE (fault, faultOf(*directory, file, true)) out.add(*fault);
      }
      return out;
    }
  }
  out.add(NO_LEDGER);
  return out;
}

void Folder::replace(kj::StringPtr name, kj::StringPtr by) const {
  KJ_SYSCALL(renameat(directory, by.cStr(), directory, name.cStr()));
  KJ_SYSCALL(fsync(directory));
}

void Folder::remove(kj::StringPtr name) const {
  if (unlinkat(directory, name.cStr(), 0) != 0 && errno != ENOENT) {
    KJ_FAIL_SYSCALL("unlinkat", errno);
  }
}

Result<NewFolder> NewFolder::beside(kj::StringPtr path) {
  KJ_IF_MAYBE (named, split(path)) {
    if (!makeWay(named->parent)) return foreign("The folder for the ledger cannot be made.");
    KJ_IF_MAYBE (parent, realPath(named->parent)) {
      auto destination = kj::str(*parent, '/', named->name);
      if (!wayIsSafe(destination)) return foreign(UNSAFE_WAY);
      struct stat info;
      // An empty folder is as good as none; publishing finds out.
      if (lstat(destination.cStr(), &info) == 0 && !S_ISDIR(info.st_mode)) return foreign(OCCUPIED);
      auto place = kj::str(destination, ".XXXXXX");
      if (mkdtemp(place.begin()) == nullptr) {
        return foreign("The folder for the ledger cannot be made.");
      }
      KJ_SYSCALL(chmod(place.cStr(), 0700));  // Whatever the umask; so below.
      return NewFolder(kj::mv(place), kj::mv(destination));
    }
  }
  return foreign("This is not the name of a folder.");
}

NewFolder::~NewFolder() noexcept {
  if (place.size() == 0) return;
  for (auto& file : FILES) unlink(path(file.name).cStr());
  rmdir(place.cStr());
}

void NewFolder::makeFile(kj::StringPtr name) const {
  int fd;
  KJ_SYSCALL(fd = ::open(path(name).cStr(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  kj::AutoCloseFd file(fd);
  KJ_SYSCALL(fchmod(file, 0600));
}

void NewFolder::blank(kj::StringPtr name, size_t size) const {
  int fd;
  KJ_SYSCALL(fd = ::open(path(name).cStr(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  auto zeros = kj::heapArray<kj::byte>(size);
  memset(zeros.begin(), 0, zeros.size());
  kj::FdOutputStream(kj::AutoCloseFd(fd)).write(zeros.begin(), zeros.size());
}

void NewFolder::remove(kj::StringPtr name) const {
  if (unlink(path(name).cStr()) != 0 && errno != ENOENT) KJ_FAIL_SYSCALL("unlink", errno);
}

// SQLite flushes the folder when it makes a log, but goes on when that fails, so all of it is done
// here.
Result<Done> NewFolder::publish() {
  for (auto& file : FILES) {
    int fd = ::open(path(file.name).cStr(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && file.mayBeMissing) continue;
    if (fd < 0) KJ_FAIL_SYSCALL("open", errno);
    kj::AutoCloseFd open(fd);
    KJ_SYSCALL(fsync(open));
  }
  syncFolder(place);
  // An empty folder in the way is replaced, a full one is not (rename(2)).
  if (rename(place.cStr(), destination.cStr()) != 0) return foreign(OCCUPIED);
  place = nullptr;
  syncFolder(parentOf(destination));
  return Done();
}

}  // namespace praefectus::ledger
