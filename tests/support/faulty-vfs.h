// A disk that fails, kills or waits at a chosen call. Stands between SQLite and the file system for
// as long as it lives, so that nothing in the product knows of it.
#pragma once

#include <kj/common.h>

#include <atomic>
#include <cstdint>

namespace praefectus::test {

enum class Fault {
  NONE,
  ERROR_ONCE,     // EIO at the n-th call, well from then on.
  ERROR_FOREVER,  // EIO from the n-th call on.
  FULL_ONCE,      // No space at the n-th call if it writes; EIO if it flushes.
  FULL_FOREVER,
  KILL_BEFORE,  // SIGKILL to this very process, the call not made.
  KILL_AFTER,   // SIGKILL once the call was made.
  HOLD,         // The call is not made before release().
};

enum class Calls {
  CHANGES,  // Writes, flushes and cuts.
  FLUSHES,
  READS,
};

class FaultyVfs {
 public:
  FaultyVfs();
  ~FaultyVfs() noexcept;
  KJ_DISALLOW_COPY(FaultyVfs);

  // From now on counts anew; the n-th call of this kind, from 1, meets the fault.
  void arm(Fault fault, uint64_t nth, Calls calls = Calls::CHANGES);
  void disarm() { arm(Fault::NONE, 0); }
  // Whether the fault has been met since.
  bool struck() const;

  // Waits until a call is held.
  void awaitHeld();
  bool isHeld() const;
  // Lets the held call go on, and counts anew for what comes after it.
  void release(Fault next = Fault::NONE, uint64_t nth = 0);

  // Flushes of the write-ahead log since arm.
  uint64_t logFlushes() const;
  // Reads of any file since arm.
  uint64_t reads() const;
  // Whether everything written to the write-ahead log was flushed.
  bool logIsFlushed() const;

  struct State;

 private:
  State* state;
};

}  // namespace praefectus::test
