// Watches an accessibility bus from the outside, as the bus itself offers to anyone of the same
// user: the demo uses it to know when a call is on its way to the application, without asking our
// own helper.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>
#include <kj/time.h>

namespace praefectus {

class BusWitness {
 public:
  // `environment` names the session bus whose accessibility bus is meant. Watches calls of
  // `member`. Throws when there is no such bus.
  BusWitness(kj::ArrayPtr<const kj::String> environment, kj::StringPtr member);
  ~BusWitness() noexcept(false);
  KJ_DISALLOW_COPY(BusWitness);

  // Blocks until such a call passes; false when none did in time.
  bool waitForCall(kj::Duration within);

 private:
  struct Parts;
  kj::Own<Parts> parts;
};

}  // namespace praefectus
