// A process that holds processes. Everything a private desktop starts, and everything those
// programs start in turn (activated services, daemons that detach themselves), is a descendant of
// one keeper and ends with it. The keeper ends when it is told to, when its owner closes the line,
// or when its owner dies in whatever way, SIGKILL included.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/io.h>
#include <kj/string.h>

#include <sys/types.h>

namespace praefectus {

class Keeper {
 public:
  // Forks the keeper; `folder` is the working directory of all it starts, and is removed at the
  // end. Safe in a process with threads: between fork and exec only system calls are made. Throws
  // when the kernel refuses.
  explicit Keeper(kj::StringPtr folder);
  // Ends every descendant, removes the folder, reaps the keeper. Throws when that takes more than
  // 15 s.
  ~Keeper() noexcept(false);
  KJ_DISALLOW_COPY(Keeper);

  struct Start {
    kj::ArrayPtr<const kj::StringPtr> arguments;  // The first is an absolute path.
    kj::ArrayPtr<const kj::StringPtr> environment;
    int output;      // Becomes standard output and error.
    int ready = -1;  // Becomes descriptor 3, for programs that write there when they are up.
    bool last =
        false;  // Ended after all others and gently: an X server removes its own lock files.
  };

  // Starts a program as leader of a session of its own, standard input from nowhere, with no other
  // descriptor. Returns its pid; throws, naming the program, when it cannot be executed.
  pid_t start(const Start& program);

  // SIGTERM to the leader's process group, SIGKILL after 2 s; then whatever is left of its session.
  // A pid that start did not return, or that has already gone, is left alone. Returns once it is
  // reaped.
  void end(pid_t leader);

 private:
  struct Answer;
  Answer ask(kj::ArrayPtr<const kj::byte> request, kj::ArrayPtr<const int> descriptors);

  kj::AutoCloseFd line;
  pid_t pid;
  kj::AutoCloseFd handle;  // pidfd of the keeper.
};

}  // namespace praefectus
