#include "tests/support/faulty-vfs.h"

#include <kj/debug.h>

#include <sqlite3.h>

#include <condition_variable>
#include <cstring>
#include <mutex>

#include <signal.h>
#include <unistd.h>

namespace praefectus::test {

struct FaultyVfs::State {
  sqlite3_vfs* real = nullptr;
  sqlite3_vfs own{};

  mutable std::mutex mutex;
  std::condition_variable changed;
  Fault fault = Fault::NONE;
  Calls kind = Calls::CHANGES;
  uint64_t nth = 0, count = 0, flushes = 0, reads = 0, unflushedWrites = 0;
  bool met = false, held = false, released = false;
};

namespace {

using State = FaultyVfs::State;

// SQLite gives us `szOsFile` bytes: this, and the real file behind it.
struct File {
  sqlite3_file base;
  State* state;
  bool isLog;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File* of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }

bool isDeadly(Fault fault) { return fault == Fault::KILL_BEFORE || fault == Fault::KILL_AFTER; }
bool isLasting(Fault fault) {
  return fault == Fault::ERROR_FOREVER || fault == Fault::FULL_FOREVER;
}
bool isFull(Fault fault) { return fault == Fault::FULL_ONCE || fault == Fault::FULL_FOREVER; }

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  while (true) pause();
}

bool concerns(Calls asked, Calls made) {
  return asked == made || (asked == Calls::CHANGES && made == Calls::FLUSHES);
}

// Makes the call, or what stands in for it. `full` is what a full disk answers here.
template <typename Call>
int pass(State& state, Calls kind, int error, int full, Call&& call) {
  Fault fault = Fault::NONE;
  {
    std::unique_lock lock(state.mutex);
    if (kind == Calls::READS) ++state.reads;
    if (concerns(state.kind, kind) && state.fault != Fault::NONE) {
      ++state.count;
      bool now = state.count == state.nth || (isLasting(state.fault) && state.count > state.nth);
      if (now) {
        fault = state.fault;
        state.met = true;
      }
      if (now && fault == Fault::HOLD) {
        state.held = true;
        state.changed.notify_all();
        state.changed.wait(lock, [&] { return state.released; });
        fault = Fault::NONE;
      }
    }
  }
  if (fault == Fault::NONE) return call();
  if (isDeadly(fault)) {
    if (fault == Fault::KILL_AFTER) call();
    die();
  }
  return isFull(fault) ? full : error;
}

int closeFile(sqlite3_file* file) { return of(file)->real()->pMethods->xClose(of(file)->real()); }

int readFile(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  return pass(*of(file)->state, Calls::READS, SQLITE_IOERR_READ, SQLITE_IOERR_READ,
              [&] { return of(file)->real()->pMethods->xRead(of(file)->real(), to, size, at); });
}

int writeFile(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  auto& state = *of(file)->state;
  return pass(state, Calls::CHANGES, SQLITE_IOERR_WRITE, SQLITE_FULL, [&] {
    int code = of(file)->real()->pMethods->xWrite(of(file)->real(), from, size, at);
    std::unique_lock lock(state.mutex);
    if (of(file)->isLog) ++state.unflushedWrites;
    return code;
  });
}

int truncateFile(sqlite3_file* file, sqlite3_int64 size) {
  return pass(*of(file)->state, Calls::CHANGES, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_TRUNCATE,
              [&] { return of(file)->real()->pMethods->xTruncate(of(file)->real(), size); });
}

int syncFile(sqlite3_file* file, int flags) {
  auto& state = *of(file)->state;
  return pass(state, Calls::FLUSHES, SQLITE_IOERR_FSYNC, SQLITE_IOERR_FSYNC, [&] {
    int code = of(file)->real()->pMethods->xSync(of(file)->real(), flags);
    std::unique_lock lock(state.mutex);
    if (of(file)->isLog) {
      ++state.flushes;
      state.unflushedWrites = 0;
    }
    return code;
  });
}

int fileSize(sqlite3_file* file, sqlite3_int64* size) {
  return of(file)->real()->pMethods->xFileSize(of(file)->real(), size);
}
int lockFile(sqlite3_file* file, int level) {
  return of(file)->real()->pMethods->xLock(of(file)->real(), level);
}
int unlockFile(sqlite3_file* file, int level) {
  return of(file)->real()->pMethods->xUnlock(of(file)->real(), level);
}
int checkReservedLock(sqlite3_file* file, int* out) {
  return of(file)->real()->pMethods->xCheckReservedLock(of(file)->real(), out);
}
int fileControl(sqlite3_file* file, int what, void* argument) {
  return of(file)->real()->pMethods->xFileControl(of(file)->real(), what, argument);
}
int sectorSize(sqlite3_file* file) {
  return of(file)->real()->pMethods->xSectorSize(of(file)->real());
}
int deviceCharacteristics(sqlite3_file* file) {
  return of(file)->real()->pMethods->xDeviceCharacteristics(of(file)->real());
}
int shmMap(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  return of(file)->real()->pMethods->xShmMap(of(file)->real(), page, size, extend, out);
}
int shmLock(sqlite3_file* file, int offset, int count, int flags) {
  return of(file)->real()->pMethods->xShmLock(of(file)->real(), offset, count, flags);
}
void shmBarrier(sqlite3_file* file) { of(file)->real()->pMethods->xShmBarrier(of(file)->real()); }
int shmUnmap(sqlite3_file* file, int remove) {
  return of(file)->real()->pMethods->xShmUnmap(of(file)->real(), remove);
}

constexpr sqlite3_io_methods METHODS = {2,
                                        closeFile,
                                        readFile,
                                        writeFile,
                                        truncateFile,
                                        syncFile,
                                        fileSize,
                                        lockFile,
                                        unlockFile,
                                        checkReservedLock,
                                        fileControl,
                                        sectorSize,
                                        deviceCharacteristics,
                                        shmMap,
                                        shmLock,
                                        shmBarrier,
                                        shmUnmap,
                                        nullptr,
                                        nullptr};

int openFile(sqlite3_vfs* vfs, const char* name, sqlite3_file* out, int flags, int* outFlags) {
  auto state = static_cast<State*>(vfs->pAppData);
  auto file = of(out);
  file->state = state;
  file->isLog = (flags & SQLITE_OPEN_WAL) != 0;
  int code = state->real->xOpen(state->real, name, file->real(), flags, outFlags);
  file->base.pMethods = file->real()->pMethods == nullptr ? nullptr : &METHODS;
  return code;
}

}  // namespace

FaultyVfs::FaultyVfs() : state(new State) {
  state->real = sqlite3_vfs_find(nullptr);
  KJ_ASSERT(state->real != nullptr);
  state->own = *state->real;
  state->own.zName = "faulty";
  state->own.pAppData = state;
  state->own.pNext = nullptr;
  state->own.szOsFile = static_cast<int>(sizeof(File)) + state->real->szOsFile;
  state->own.xOpen = openFile;
  KJ_ASSERT(sqlite3_vfs_register(&state->own, 1) == SQLITE_OK);
}

FaultyVfs::~FaultyVfs() noexcept {
  sqlite3_vfs_unregister(&state->own);
  sqlite3_vfs_register(state->real, 1);
  delete state;
}

void FaultyVfs::arm(Fault fault, uint64_t nth, Calls calls) {
  std::unique_lock lock(state->mutex);
  state->fault = fault;
  state->nth = nth;
  state->kind = calls;
  state->count = state->flushes = state->reads = 0;
  state->met = state->held = state->released = false;
}

bool FaultyVfs::struck() const {
  std::unique_lock lock(state->mutex);
  return state->met;
}

void FaultyVfs::awaitHeld() {
  std::unique_lock lock(state->mutex);
  state->changed.wait(lock, [&] { return state->held; });
}

bool FaultyVfs::isHeld() const {
  std::unique_lock lock(state->mutex);
  return state->held;
}

void FaultyVfs::release(Fault next, uint64_t nth) {
  std::unique_lock lock(state->mutex);
  state->fault = next;
  state->nth = nth;
  state->count = 0;
  state->released = true;
  state->changed.notify_all();
}

uint64_t FaultyVfs::logFlushes() const {
  std::unique_lock lock(state->mutex);
  return state->flushes;
}

uint64_t FaultyVfs::reads() const {
  std::unique_lock lock(state->mutex);
  return state->reads;
}

bool FaultyVfs::logIsFlushed() const {
  std::unique_lock lock(state->mutex);
  return state->unflushedWrites == 0;
}

}  // namespace praefectus::test
