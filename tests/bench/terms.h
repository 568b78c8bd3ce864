// What an operation cannot do without, each measured by itself: a flush, an exchange with the
// helper, a check of a signature, a signature, a wake of another thread.
#pragma once

#include "supervisor/dispatch.h"

#include <kj/async-unix.h>
#include <kj/mutex.h>
#include <kj/thread.h>

namespace praefectus::bench {

// A file whose blocks are all there. Overwrites the next 4 KiB of it, and flushes.
class Overwriting {
 public:
  explicit Overwriting(kj::StringPtr path);
  void once();

 private:
  kj::AutoCloseFd file;
  off_t next = 0;
};

// A thread that waits for work as the ledger's does, and answers at once.
class OtherThread {
 public:
  OtherThread();
  ~OtherThread() noexcept(false);
  KJ_DISALLOW_COPY(OtherThread);

  // There and back: two wakes.
  kj::Promise<void> exchange();

 private:
  using Fulfiller = kj::Own<kj::CrossThreadPromiseFulfiller<void>>;
  struct Queue {
    kj::Vector<Fulfiller> waiting;
    bool closing = false;
  };
  void run();

  kj::MutexGuarded<Queue> queue;
  kj::Own<kj::Thread> thread;
};

}  // namespace praefectus::bench
