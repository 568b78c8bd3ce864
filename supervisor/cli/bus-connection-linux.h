// A connection of libdbus to a bus of a private or a person's desktop, and an outside look at what
// passes there, as the bus offers it to anyone of the same user.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <dbus/dbus.h>

#include <memory>

namespace praefectus::bus {

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

// Each throws when there is no such bus, or it does not answer in time.
Connection connectTo(kj::StringPtr address);
// The accessibility bus of the session bus that `environment` ("NAME=value") names.
kj::String accessibilityBus(kj::ArrayPtr<const kj::String> environment);
// From now on the connection receives what `rule` matches, and can be used for nothing else.
void watch(DBusConnection* connection, kj::StringPtr rule);

}  // namespace praefectus::bus
