#include "supervisor/cli/bus-witness.h"

#include <kj/debug.h>

#include <dbus/dbus.h>

#include <chrono>
#include <memory>

namespace praefectus {
namespace {

constexpr int CALL_MS = 5000;

struct CloseConnection {
  void operator()(DBusConnection* connection) const {
    dbus_connection_close(connection);
    dbus_connection_unref(connection);
  }
};
using Connection = std::unique_ptr<DBusConnection, CloseConnection>;

struct Unref {
  void operator()(DBusMessage* message) const { dbus_message_unref(message); }
};
using Message = std::unique_ptr<DBusMessage, Unref>;

Connection connectTo(kj::StringPtr address) {
  Connection connection(dbus_connection_open_private(address.cStr(), nullptr));
  KJ_REQUIRE(connection != nullptr, "the bus cannot be reached");
  dbus_connection_set_exit_on_disconnect(connection.get(), FALSE);
  KJ_REQUIRE(dbus_bus_register(connection.get(), nullptr), "the bus refused the connection");
  return connection;
}

kj::StringPtr sessionBus(kj::ArrayPtr<const kj::String> environment) {
  constexpr kj::StringPtr NAME = "DBUS_SESSION_BUS_ADDRESS="_kj;
  for (auto& entry : environment) {
    if (entry.startsWith(NAME)) return entry.slice(NAME.size());
  }
  KJ_FAIL_REQUIRE("no session bus is named");
}

kj::String accessibilityBus(kj::StringPtr session) {
  auto connection = connectTo(session);
  Message call(
      dbus_message_new_method_call("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress"));
  Message reply(
      dbus_connection_send_with_reply_and_block(connection.get(), call.get(), CALL_MS, nullptr));
  const char* address = nullptr;
  KJ_REQUIRE(reply != nullptr && dbus_message_get_args(reply.get(), nullptr, DBUS_TYPE_STRING,
                                                       &address, DBUS_TYPE_INVALID),
             "there is no accessibility bus");
  return kj::str(address);
}

}  // namespace

struct BusWitness::Parts {
  Connection connection;
  kj::String member;
};

BusWitness::BusWitness(kj::ArrayPtr<const kj::String> environment, kj::StringPtr member)
    : parts(kj::heap<Parts>()) {
  parts->connection = connectTo(accessibilityBus(sessionBus(environment)));
  parts->member = kj::str(member);
  auto rule = kj::str("type='method_call',member='", member, "'");
  const char* rules[] = {rule.cStr()};
  const char** list = rules;
  dbus_uint32_t flags = 0;
  Message call(dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS,
                                            "org.freedesktop.DBus.Monitoring", "BecomeMonitor"));
  KJ_REQUIRE(dbus_message_append_args(call.get(), DBUS_TYPE_ARRAY, DBUS_TYPE_STRING, &list, 1,
                                      DBUS_TYPE_UINT32, &flags, DBUS_TYPE_INVALID));
  Message reply(dbus_connection_send_with_reply_and_block(parts->connection.get(), call.get(),
                                                          CALL_MS, nullptr));
  KJ_REQUIRE(reply != nullptr, "the bus does not let itself be watched");
}

BusWitness::~BusWitness() noexcept(false) {}

bool BusWitness::waitForCall(kj::Duration within) {
  auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(within / kj::MILLISECONDS);
  for (;;) {
    while (Message message{dbus_connection_pop_message(parts->connection.get())}) {
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
