// The launcher: a small process of the supervisor's own image that starts helpers and nothing else.
//
// It is forked before the supervisor has a thread or confines itself, since confinement is
// inherited by every child. It takes requests of one fixed shape over one socket pair, looks the
// role up in a closed table, and executes the sealed image it was handed. It never sees a byte from
// host or helper. The supervisor's death ends it; its end ends its children. The only room with
// Boost.Process.
#pragma once

#include "attest/image.h"

#include <kj/async-unix.h>

namespace praefectus::launch {

// What one role's child gets. Built once, before the fork, and never changed.
struct RoleEntry {
  Role role;
  kj::Array<kj::String> environment;  // "NAME=value"; the whole environment of the child.
};

struct Exit {
  int code = 0;  // Exit code, or the signal's number when `signalled`.
  bool signalled = false;
};

// A running helper process.
class Child {
 public:
  virtual ~Child() noexcept(false) = default;  // Kills it when it still runs.
  virtual uint32_t pid() const = 0;
  // Resolves once the process is gone and reaped. May be awaited more than once.
  virtual kj::Promise<Exit> onExit() = 0;
  // SIGKILL to exactly this process, by pidfd; nothing when it is gone.
  virtual void kill() = 0;
};

class Launcher {
 public:
  // Forks. Call before the event loop, any thread, or any secret exists. Returns in the supervisor
  // only; the forked process ends inside.
  static kj::AutoCloseFd fork(kj::ArrayPtr<const RoleEntry> table, uint32_t& pid);

  // The supervisor's side of it, once there is an event loop; in the process that forked. Its
  // destruction ends the launcher and all children, and waits for the launcher: bounds::CLOSE at
  // most.
  static kj::Own<Launcher> attach(kj::UnixEventPort& port, kj::Timer& timer, kj::AutoCloseFd socket,
                                  uint32_t pid);

  virtual ~Launcher() noexcept(false) = default;

  // Executes the image with descriptors 0-2 on /dev/null, `socket` as 3, nothing else open, default
  // signal dispositions, its own session, and argv {name, "--role", role, "--generation", n}.
  // Refuses: SERVICE_UNAVAILABLE when the launcher is gone, the role is not in its table, the image
  // is no sealed ELF file, the exec failed, or bounds::SPAWN passed; then no such process is left.
  virtual kj::Promise<Result<kj::Own<Child>>> start(const attest::Image& image, uint64_t generation,
                                                    kj::AutoCloseFd socket) = 0;
};

}  // namespace praefectus::launch
