#include "helper-linux/desktop/connected.h"

namespace praefectus::desktop {
namespace {

using accessibility::Answered;
using Processes = kj::Vector<uint32_t>;

constexpr size_t CONNECTIONS = 1024;

constexpr kj::StringPtr BUS = "org.freedesktop.DBus"_kj;

// Every connection has one unique name, which begins with a colon; its others are left out.
kj::Vector<kj::String> uniqueNames(const dbus::Reply& reply) {
  auto names = reply.decode("as", [](dbus::Reader& reader) {
    kj::Vector<kj::String> out;
    size_t end = reader.array(4);
    while (reader.more(end) && out.size() < CONNECTIONS) {
      auto name = reader.text();
      if (name.startsWith(":")) out.add(kj::str(name));
    }
    return out;
  });
  return kj::mv(names).orDefault(kj::Vector<kj::String>());
}

}  // namespace

kj::Promise<Processes> connectedProcesses(Bus& bus, kj::TimePoint deadline) {
  return bus.connection->call({BUS, "/org/freedesktop/DBus"_kj, BUS, "ListNames"_kj}, {}, deadline)
      .then([&bus, deadline](dbus::Reply&& reply) {
        auto names = uniqueNames(reply);
        auto asked = KJ_MAP(name, names) { return bus.objects.processOf(name, deadline); };
        return kj::joinPromises(kj::mv(asked));
      })
      .then([](kj::Array<Answered<uint32_t>>&& answers) {
        Processes out;
        for (auto& answer : answers) {
          KJ_IF_MAYBE (pid, answer.value) out.add(*pid);
        }
        return out;
      });
}

}  // namespace praefectus::desktop
