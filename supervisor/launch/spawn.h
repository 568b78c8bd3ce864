// One child process, from sealed memory to a running program.
#pragma once

#include "ipc/words.h"

#include <sys/types.h>

namespace praefectus::launch {

// The descriptor a child finds its socket on, after the three standard ones.
constexpr int CHILD_SOCKET = 3;

struct Spawn {
  int image;                                    // Sealed memory; above CHILD_SOCKET.
  int socket;                                   // Becomes CHILD_SOCKET; above it too.
  kj::ArrayPtr<const char* const> arguments;    // Ends with a null pointer, as does…
  kj::ArrayPtr<const char* const> environment;  // …the whole environment of the child.
};

// Starts it. Call from a single-threaded process whose descriptors 0 to 3 are taken, none of 0 to 2
// by anything that matters; the child inherits those and nothing else. Nothing when the program
// could not be executed; no process is then left, not even to be reaped.
kj::Maybe<pid_t> spawn(const Spawn& what);

// Every disposition to default, nothing blocked. Both are inherited through fork and exec, and the
// supervisor ignores SIGPIPE (KJ does).
void resetSignals();

}  // namespace praefectus::launch
