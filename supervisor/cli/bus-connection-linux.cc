#include "supervisor/cli/bus-connection-linux.h"

#include <kj/debug.h>

namespace praefectus::bus {
namespace {

constexpr int CALL_MS = 10'000;

Message ask(DBusConnection* connection, DBusMessage* call) {
  Message reply(dbus_connection_send_with_reply_and_block(connection, call, CALL_MS, nullptr));
  KJ_REQUIRE(reply != nullptr, "the bus does not answer, or refuses");
  return reply;
}

kj::StringPtr sessionBus(kj::ArrayPtr<const kj::String> environment) {
  constexpr kj::StringPtr NAME = "DBUS_SESSION_BUS_ADDRESS="_kj;
  for (auto& entry : environment) {
    if (entry.startsWith(NAME)) return entry.slice(NAME.size());
  }
  KJ_FAIL_REQUIRE("no session bus is named");
}

}  // namespace

Connection connectTo(kj::StringPtr address) {
  Connection connection(dbus_connection_open_private(address.cStr(), nullptr));
  KJ_REQUIRE(connection != nullptr, "the bus cannot be reached");
  dbus_connection_set_exit_on_disconnect(connection.get(), FALSE);
  KJ_REQUIRE(dbus_bus_register(connection.get(), nullptr), "the bus refused the connection");
  return connection;
}

kj::String accessibilityBus(kj::ArrayPtr<const kj::String> environment) {
  auto connection = connectTo(sessionBus(environment));
  Message call(
      dbus_message_new_method_call("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress"));
  auto reply = ask(connection.get(), call.get());
  const char* address = nullptr;
  KJ_REQUIRE(
      dbus_message_get_args(reply.get(), nullptr, DBUS_TYPE_STRING, &address, DBUS_TYPE_INVALID),
      "there is no accessibility bus");
  return kj::str(address);
}

void watch(DBusConnection* connection, kj::StringPtr rule) {
  const char* rules[] = {rule.cStr()};
  const char** list = rules;
  dbus_uint32_t flags = 0;
  Message call(dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS,
                                            "org.freedesktop.DBus.Monitoring", "BecomeMonitor"));
  KJ_REQUIRE(dbus_message_append_args(call.get(), DBUS_TYPE_ARRAY, DBUS_TYPE_STRING, &list, 1,
                                      DBUS_TYPE_UINT32, &flags, DBUS_TYPE_INVALID));
  ask(connection, call.get());
}

}  // namespace praefectus::bus
