// Starting the supervisor as a child with one socket.
#pragma once

#include "supervisor/client/client.h"

namespace praefectus::client {

// A supervisor process. Its end is awaited when this is destroyed, at most bounds::CLOSE: a
// supervisor that is still settling an operation is left to finish.
class SupervisorProcess {
 public:
  // `socket` becomes its descriptor 3; nothing else of ours is inherited but 0, 1 and 2.
  // Refuses SERVICE_UNAVAILABLE when the program cannot be executed.
  static Result<kj::Own<SupervisorProcess>> spawn(const Options& options, kj::AutoCloseFd socket);
  ~SupervisorProcess() noexcept(false);
  pid_t pid() const { return child; }

 private:
  pid_t child = 0;
};

// Runs `praefectus-supervisor create` and waits for it.
Result<Done> runCreate(const Options& options, kj::StringPtr issuer);

}  // namespace praefectus::client
