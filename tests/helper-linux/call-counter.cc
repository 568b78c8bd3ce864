#include "tests/helper-linux/call-counter.h"

#include "supervisor/cli/bus-connection-linux.h"

#include <kj/debug.h>

#include <vector>

namespace praefectus::tests {
namespace {

constexpr int WAIT_MS = 10'000;
using bus::Connection;
using bus::Message;

constexpr const char* MARK = "PraefectusTestMark";

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
  auto address = bus::accessibilityBus(environment);
  parts->asking = bus::connectTo(address);
  parts->watching = bus::connectTo(address);
  bus::watch(parts->watching.get(), "type='method_call'");
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
