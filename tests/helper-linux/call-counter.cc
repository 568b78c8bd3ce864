#include "tests/helper-linux/call-counter.h"

#include <kj/debug.h>

#include <dbus/dbus.h>

#include <memory>
#include <vector>

namespace praefectus::tests {
namespace {

constexpr int WAIT_MS = 10'000;
constexpr const char* MARK = "PraefectusTestMark";

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

Connection connectTo(const std::string& address) {
  Connection connection(dbus_connection_open_private(address.c_str(), nullptr));
  KJ_REQUIRE(connection != nullptr, "the bus cannot be reached");
  dbus_connection_set_exit_on_disconnect(connection.get(), FALSE);
  KJ_REQUIRE(dbus_bus_register(connection.get(), nullptr), "the bus refused the connection");
  return connection;
}

Message ask(DBusConnection* connection, Message call) {
  Message reply(
      dbus_connection_send_with_reply_and_block(connection, call.get(), WAIT_MS, nullptr));
  KJ_REQUIRE(reply != nullptr, "the bus does not answer");
  return reply;
}

std::string sessionBus(kj::ArrayPtr<const kj::String> environment) {
  constexpr kj::StringPtr NAME = "DBUS_SESSION_BUS_ADDRESS="_kj;
  for (auto& entry : environment) {
    if (entry.startsWith(NAME)) return entry.slice(NAME.size()).cStr();
  }
  KJ_FAIL_REQUIRE("no session bus is named");
}

std::string accessibilityBus(const std::string& session) {
  auto connection = connectTo(session);
  Message call(
      dbus_message_new_method_call("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress"));
  auto reply = ask(connection.get(), std::move(call));
  const char* address = nullptr;
  KJ_REQUIRE(
      dbus_message_get_args(reply.get(), nullptr, DBUS_TYPE_STRING, &address, DBUS_TYPE_INVALID));
  return address;
}

}  // namespace

struct CallCounter::Parts {
  Connection asking;
  Connection watching;
  std::map<std::string, pid_t> processes;                       // By the names of connections.
  std::vector<std::pair<std::string, std::string>> unassigned;  // Sender and member.

  pid_t processOf(const std::string& name) {
    auto known = processes.find(name);
    if (known != processes.end()) return known->second;
    Message call(dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS,
                                              DBUS_INTERFACE_DBUS, "GetConnectionUnixProcessID"));
    const char* text = name.c_str();
    dbus_message_append_args(call.get(), DBUS_TYPE_STRING, &text, DBUS_TYPE_INVALID);
    Message reply(
        dbus_connection_send_with_reply_and_block(asking.get(), call.get(), WAIT_MS, nullptr));
    dbus_uint32_t pid = 0;
    // A connection that is gone has nobody any more.
    if (reply != nullptr) {
      dbus_message_get_args(reply.get(), nullptr, DBUS_TYPE_UINT32, &pid, DBUS_TYPE_INVALID);
    }
    return processes[name] = static_cast<pid_t>(pid);
  }

  // Takes what has passed, up to our own mark.
  void takeUntilMark() {
    Message mark(
        dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, MARK));
    dbus_connection_send(asking.get(), mark.get(), nullptr);
    dbus_connection_flush(asking.get());
    for (;;) {
      while (Message message{dbus_connection_pop_message(watching.get())}) {
        if (dbus_message_get_type(message.get()) != DBUS_MESSAGE_TYPE_METHOD_CALL) continue;
        std::string member = dbus_message_get_member(message.get());
        if (member == MARK) return;
        const char* sender = dbus_message_get_sender(message.get());
        if (sender != nullptr) unassigned.emplace_back(sender, member);
      }
      KJ_REQUIRE(dbus_connection_read_write(watching.get(), WAIT_MS), "the watch was cut");
    }
  }
};

CallCounter::CallCounter(kj::ArrayPtr<const kj::String> environment) : parts(kj::heap<Parts>()) {
  auto address = accessibilityBus(sessionBus(environment));
  parts->asking = connectTo(address);
  parts->watching = connectTo(address);
  const char* rules[] = {"type='method_call'"};
  const char** list = rules;
  dbus_uint32_t flags = 0;
  Message call(dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS,
                                            "org.freedesktop.DBus.Monitoring", "BecomeMonitor"));
  dbus_message_append_args(call.get(), DBUS_TYPE_ARRAY, DBUS_TYPE_STRING, &list, 1,
                           DBUS_TYPE_UINT32, &flags, DBUS_TYPE_INVALID);
  ask(parts->watching.get(), std::move(call));
}

CallCounter::~CallCounter() noexcept(false) = default;

std::map<std::string, unsigned> CallCounter::callsOf(pid_t process) {
  parts->takeUntilMark();
  std::map<std::string, unsigned> out;
  for (auto& [sender, member] : parts->unassigned) {
    if (parts->processOf(sender) == process) ++out[member];
  }
  parts->unassigned.clear();
  return out;
}

unsigned sumOf(const std::map<std::string, unsigned>& calls) {
  unsigned sum = 0;
  for (auto& each : calls) sum += each.second;
  return sum;
}

}  // namespace praefectus::tests
