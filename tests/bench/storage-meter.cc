#include "tests/bench/storage-meter.h"

#include "tests/bench/measure.h"

#include <kj/debug.h>

#include <sqlite3.h>

#include <atomic>

#include <sys/syscall.h>
#include <unistd.h>

namespace praefectus::bench {
namespace {

std::atomic<uint64_t> flushes{0}, others{0};
std::atomic<bool> skipping{false};
std::atomic<double> timeAtFlush{0};

int flush(long number, int file) {
  ++flushes;
  timeAtFlush = processorTime();
  return skipping ? 0 : static_cast<int>(syscall(number, file));
}

// A system call's name as a template argument.
struct Name {
  template <size_t N>
  consteval Name(const char (&name)[N]) {  // NOLINT: a name is written as a literal.
    for (size_t i = 0; i < N; ++i) text[i] = name[i];
  }
  char text[16] = {};
};

// One of SQLite's system calls, counted. Each has a function of its own, since SQLite's table of
// them has no place for a context.
template <Name NAME, typename Call>
struct Counted;

template <Name NAME, typename Return, typename... Arguments>
struct Counted<NAME, Return (*)(Arguments...)> {
  using Call = Return (*)(Arguments...);
  static inline Call real = nullptr;

  static Return call(Arguments... arguments) {
    ++others;
    return real(arguments...);
  }

  static void install(sqlite3_vfs& vfs) {
    real = reinterpret_cast<Call>(vfs.xGetSystemCall(&vfs, NAME.text));
    if (real == nullptr) return;  // This build of SQLite does not make it.
    KJ_ASSERT(vfs.xSetSystemCall(&vfs, NAME.text, reinterpret_cast<sqlite3_syscall_ptr>(&call)) ==
              SQLITE_OK);
  }
};

// Variadic in C; SQLite passes one further argument or none that is read.
using Control = int (*)(int, int, void*);
using Read = ssize_t (*)(int, void*, size_t);
using ReadAt = ssize_t (*)(int, void*, size_t, off_t);
using Write = ssize_t (*)(int, const void*, size_t);
using WriteAt = ssize_t (*)(int, const void*, size_t, off_t);
using ByPath = int (*)(const char*, void*);
using ByFile = int (*)(int, void*);
using Cut = int (*)(int, off_t);
using Allocate = int (*)(int, off_t, off_t);

}  // namespace

void startCounting() {
  auto found = sqlite3_vfs_find("unix");
  KJ_ASSERT(found != nullptr);
  auto& vfs = *found;
  Counted<"fcntl", Control>::install(vfs);
  Counted<"read", Read>::install(vfs);
  Counted<"pread", ReadAt>::install(vfs);
  Counted<"pread64", ReadAt>::install(vfs);
  Counted<"write", Write>::install(vfs);
  Counted<"pwrite", WriteAt>::install(vfs);
  Counted<"pwrite64", WriteAt>::install(vfs);
  Counted<"stat", ByPath>::install(vfs);
  Counted<"lstat", ByPath>::install(vfs);
  Counted<"fstat", ByFile>::install(vfs);
  Counted<"ftruncate", Cut>::install(vfs);
  Counted<"fallocate", Allocate>::install(vfs);
}

Asked asked() { return {flushes, flushes + others}; }
void skipFlushes(bool skipped) { skipping = skipped; }
double processorTimeAtFlush() { return timeAtFlush; }

}  // namespace praefectus::bench

extern "C" int fdatasync(int file) { return praefectus::bench::flush(SYS_fdatasync, file); }
extern "C" int fsync(int file) { return praefectus::bench::flush(SYS_fsync, file); }
