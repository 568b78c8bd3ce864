// Counts the calls that one process sends over an accessibility bus, as the bus itself shows them
// to anyone of the same user: an account of the helper's work that is not its own.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>

#include <map>
#include <string>

#include <sys/types.h>

namespace praefectus::tests {

class CallCounter {
 public:
  // `environment` names the session bus whose accessibility bus is meant.
  explicit CallCounter(kj::ArrayPtr<const kj::String> environment);
  ~CallCounter() noexcept(false);
  KJ_DISALLOW_COPY(CallCounter);

  // The calls of `process` since the last question, by member, all that passed before this one. A
  // message of our own marks the end of them.
  std::map<std::string, unsigned> callsOf(pid_t process);

 private:
  struct Parts;
  kj::Own<Parts> parts;
};

// All of them.
unsigned sumOf(const std::map<std::string, unsigned>& calls);

}  // namespace praefectus::tests
