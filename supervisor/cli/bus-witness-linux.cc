#include "supervisor/cli/bus-witness.h"

#include "supervisor/cli/bus-connection-linux.h"

#include <chrono>

namespace praefectus {

struct BusWitness::Parts {
  bus::Connection connection;
  kj::String member;
};

BusWitness::BusWitness(kj::ArrayPtr<const kj::String> environment, kj::StringPtr member)
    : parts(kj::heap<Parts>()) {
  parts->connection = bus::connectTo(bus::accessibilityBus(environment));
  parts->member = kj::str(member);
  bus::watch(parts->connection.get(), kj::str("type='method_call',member='", member, "'"));
}

BusWitness::~BusWitness() noexcept(false) {}

bool BusWitness::waitForCall(kj::Duration within) {
  auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(within / kj::MILLISECONDS);
  for (;;) {
    while (bus::Message message{dbus_connection_pop_message(parts->connection.get())}) {
      if (dbus_message_has_member(message.get(), parts->member.cStr())) return true;
    }
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (!dbus_connection_read_write(parts->connection.get(), static_cast<int>(left.count())))
      return false;
  }
}

}  // namespace praefectus
