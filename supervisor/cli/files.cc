#include "supervisor/cli/files.h"

#include <kj/io.h>

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::cli {
namespace {

Failure inputFailed(kj::StringPtr why, kj::StringPtr path) {
  return {ExitCode::FAILED, kj::str("input_failed"), kj::str(why, ": ", printable(path)),
          kj::str()};
}

Failure outputFailed(kj::StringPtr why, kj::StringPtr path) {
  return {ExitCode::OUTPUT_LOST, kj::str("output_failed"), kj::str(why, ": ", printable(path)),
          kj::str()};
}

Failure folderFailed(kj::StringPtr path) {
  return {ExitCode::FAILED, kj::str("folder_failed"),
          kj::str("the folder cannot be made: ", printable(path)),
          kj::str("Its parent must be a folder that is yours to write to.")};
}

// Or a folder that was made, with a key in it, could be gone after a power cut.
bool syncFolderOf(kj::StringPtr path) {
  kj::String folder = kj::str(".");
  KJ_IF_MAYBE (slash, path.findLast('/')) {
    folder = *slash == 0 ? kj::str("/") : kj::heapString(path.slice(0, *slash));
  }
  int fd = open(folder.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  kj::AutoCloseFd opened(fd);
  return fsync(opened) == 0;
}

// True when it is there afterwards, be it as something else than a folder.
bool makeOne(kj::StringPtr path) {
  if (mkdir(path.cStr(), 0700) == 0) return syncFolderOf(path);
  struct stat found {};
  return stat(path.cStr(), &found) == 0;
}

}  // namespace

kj::Array<kj::byte> readFile(kj::StringPtr path, size_t limit) {
  int fd = open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw inputFailed("the file cannot be opened"_kj, path);
  kj::AutoCloseFd file(fd);
  kj::Vector<kj::byte> out;
  kj::byte piece[4096];
  while (true) {
    ssize_t n = ::read(file, piece, sizeof(piece));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw inputFailed("the file cannot be read"_kj, path);
    if (n == 0) return out.releaseAsArray();
    out.addAll(piece, piece + n);
    if (out.size() > limit)
      throw inputFailed("the file is larger than such a thing can be"_kj, path);
  }
}

void writeNewFile(kj::StringPtr path, Bytes bytes) {
  int fd = open(path.cStr(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    throw outputFailed(
        errno == EEXIST ? "the file exists already"_kj : "the file cannot be made"_kj, path);
  }
  kj::AutoCloseFd file(fd);
  auto trouble = kj::runCatchingExceptions([&]() {
    kj::FdOutputStream(file.get()).write(bytes.begin(), bytes.size());
    KJ_SYSCALL(fsync(file));
  });
  if (trouble == nullptr) return;
  unlink(path.cStr());
  throw outputFailed("the file could not be written"_kj, path);
}

void makeFolder(kj::StringPtr path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end < path.size() && path[end] != '/') continue;
    if (!makeOne(kj::heapString(path.slice(0, end)))) throw folderFailed(path);
  }
  struct stat made;
  if (stat(path.cStr(), &made) != 0 || !S_ISDIR(made.st_mode)) throw folderFailed(path);
}

bool isPrivateFolder(kj::StringPtr path) {
  struct stat found {};
  if (lstat(path.cStr(), &found) != 0 && errno == ENOENT) return false;
  bool isPrivate = (found.st_mode & 07777) == 0700 && found.st_uid == geteuid();
  if (isPrivate && S_ISDIR(found.st_mode)) return true;
  throw Failure{ExitCode::FAILED, kj::str("folder_unsafe"),
                kj::str("not a folder of this user with mode 0700: ", printable(path)),
                kj::str("chmod 700 makes a folder of yours private.")};
}

}  // namespace praefectus::cli
