#include "tests/helper-linux/bus-service.h"

#include "tests/helper-linux/desk.h"

#include <kj/debug.h>

#include <dbus/dbus.h>

#include <cstring>
#include <fstream>

#include <sys/stat.h>

namespace praefectus::tests {
namespace {

constexpr int CALL_MS = 5000;
constexpr int TURN_MS = 20;
constexpr const char* STATUS = "org.a11y.Status";
constexpr const char* IS_ENABLED = "IsEnabled";

struct Unref {
  void operator()(DBusMessage* message) const { dbus_message_unref(message); }
};
using Message = std::unique_ptr<DBusMessage, Unref>;

DBusConnection* connectTo(kj::StringPtr address) {
  dbus_threads_init_default();
  DBusConnection* connection = dbus_connection_open_private(address.cStr(), nullptr);
  if (connection == nullptr) return nullptr;
  dbus_connection_set_exit_on_disconnect(connection, FALSE);
  KJ_REQUIRE(dbus_bus_register(connection, nullptr), "the bus refused the connection");
  return connection;
}

void close(DBusConnection* connection) {
  dbus_connection_close(connection);
  dbus_connection_unref(connection);
}

Message call(DBusConnection* connection, const Message& request) {
  Message reply(
      dbus_connection_send_with_reply_and_block(connection, request.get(), CALL_MS, nullptr));
  KJ_REQUIRE(reply != nullptr, "a bus call failed", dbus_message_get_member(request.get()));
  return reply;
}

Message statusCall(const char* member) {
  Message out(dbus_message_new_method_call("org.a11y.Bus", "/org/a11y/bus",
                                           "org.freedesktop.DBus.Properties", member));
  const char* interface = STATUS;
  const char* property = IS_ENABLED;
  dbus_message_append_args(out.get(), DBUS_TYPE_STRING, &interface, DBUS_TYPE_STRING, &property,
                           DBUS_TYPE_INVALID);
  return out;
}

void appendVariant(DBusMessage* to, bool value) {
  dbus_bool_t raw = value ? 1 : 0;
  DBusMessageIter all, variant;
  dbus_message_iter_init_append(to, &all);
  KJ_ASSERT(dbus_message_iter_open_container(&all, DBUS_TYPE_VARIANT, "b", &variant) &&
            dbus_message_iter_append_basic(&variant, DBUS_TYPE_BOOLEAN, &raw) &&
            dbus_message_iter_close_container(&all, &variant));
}

void appendAnswer(DBusMessage* to, const Answer& answer) {
  dbus_bool_t raw = answer.yes ? 1 : 0;
  const char* path = answer.path.c_str();
  switch (answer.kind) {
    case Answer::Kind::BOOLEAN:
      dbus_message_append_args(to, DBUS_TYPE_BOOLEAN, &raw, DBUS_TYPE_INVALID);
      break;
    case Answer::Kind::VARIANT_BOOLEAN:
      appendVariant(to, answer.yes);
      break;
    case Answer::Kind::PATH:
      dbus_message_append_args(to, DBUS_TYPE_OBJECT_PATH, &path, DBUS_TYPE_INVALID);
      break;
    case Answer::Kind::ERROR:
    case Answer::Kind::SILENCE:
      break;
  }
}

std::string orEmpty(const char* text) { return text == nullptr ? "" : text; }

kj::String variableOf(const PrivateDesktop& desktop, kj::StringPtr name) {
  auto prefix = kj::str(name, "=");
  for (auto& entry : desktop.environment()) {
    if (entry.startsWith(prefix)) return kj::str(entry.slice(prefix.size()));
  }
  KJ_FAIL_REQUIRE("the desktop has no such variable", name);
}

}  // namespace

kj::String sessionBusOf(const PrivateDesktop& desktop) {
  return variableOf(desktop, "DBUS_SESSION_BUS_ADDRESS");
}

kj::String systemBusOf(const PrivateDesktop& desktop) {
  return variableOf(desktop, "DBUS_SYSTEM_BUS_ADDRESS");
}

void startSystemBus(PrivateDesktop& desktop) {
  std::string folder = desktop.folder().cStr();
  mkdir((folder + "/services").c_str(), 0700);
  std::ofstream(folder + "/services/org.freedesktop.login1.service")
      << "[D-BUS Service]\nName=org.freedesktop.login1\nExec=/usr/bin/touch " << folder
      << "/started\n";
  std::ofstream(folder + "/system.conf")
      << "<busconfig><type>session</type><listen>" << systemBusOf(desktop).cStr()
      << "</listen><servicedir>" << folder << "/services</servicedir><policy context=\"default\">"
      << "<allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow "
         "own=\"*\"/></policy>"
      << "</busconfig>\n";
  auto configuration = kj::str("--config-file=", folder.c_str(), "/system.conf");
  desktop.run({"dbus-daemon"_kj, configuration, "--nofork"_kj, "--nopidfile"_kj});
  KJ_REQUIRE(eventually([&]() {
               DBusConnection* reached = connectTo(systemBusOf(desktop));
               if (reached != nullptr) close(reached);
               return reached != nullptr;
             }),
             "the system's bus did not come up");
}

BusService::BusService(kj::StringPtr address, kj::StringPtr name, Answers answers)
    : connection(connectTo(address)), answers(std::move(answers)) {
  KJ_REQUIRE(connection != nullptr, "the bus cannot be reached");
  KJ_REQUIRE(dbus_bus_request_name(connection, name.cStr(), DBUS_NAME_FLAG_DO_NOT_QUEUE, nullptr) ==
             DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER);
  thread = std::thread([this]() { serve(); });
}

BusService::~BusService() {
  over = true;
  thread.join();
  close(connection);
}

void BusService::serve() {
  while (!over && dbus_connection_read_write(connection, TURN_MS)) {
    while (Message message{dbus_connection_pop_message(connection)}) {
      if (dbus_message_get_type(message.get()) == DBUS_MESSAGE_TYPE_METHOD_CALL) {
        answer(message.get());
      }
    }
  }
}

void BusService::answer(DBusMessage* asked) {
  dbus_uint32_t number = 0;
  dbus_message_get_args(asked, nullptr, DBUS_TYPE_UINT32, &number, DBUS_TYPE_INVALID);
  auto method =
      orEmpty(dbus_message_get_interface(asked)) + "." + orEmpty(dbus_message_get_member(asked));
  auto what = answers(method, orEmpty(dbus_message_get_path(asked)), number);
  ++taken;
  if (what.kind == Answer::Kind::SILENCE) return;
  Message reply(what.kind == Answer::Kind::ERROR
                    ? dbus_message_new_error(asked, DBUS_ERROR_UNKNOWN_METHOD, "no such thing")
                    : dbus_message_new_method_return(asked));
  appendAnswer(reply.get(), what);
  dbus_connection_send(connection, reply.get(), nullptr);
  dbus_connection_flush(connection);
}

ScreenSaver::ScreenSaver(const PrivateDesktop& desktop, kj::StringPtr name)
    : service(sessionBusOf(desktop), name,
              [this, method = std::string(name.cStr()) + ".GetActive"](
                  const std::string& asked, const std::string&, uint32_t) -> Answer {
                if (silent) return {Answer::Kind::SILENCE};
                if (asked != method) return {};
                return {Answer::Kind::BOOLEAN, active};
              }) {}

SwitchWatch::SwitchWatch(const PrivateDesktop& desktop)
    : connection(connectTo(sessionBusOf(desktop))) {
  KJ_REQUIRE(connection != nullptr);
  dbus_bus_add_match(connection,
                     "type='signal',path='/org/a11y/bus',"
                     "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'",
                     nullptr);
  dbus_connection_flush(connection);
  seen.push_back(ask());
}

SwitchWatch::~SwitchWatch() { close(connection); }

bool SwitchWatch::ask() {
  auto reply = call(connection, statusCall("Get"));
  DBusMessageIter all, variant;
  dbus_bool_t value = 0;
  KJ_REQUIRE(dbus_message_iter_init(reply.get(), &all) &&
             dbus_message_iter_get_arg_type(&all) == DBUS_TYPE_VARIANT);
  dbus_message_iter_recurse(&all, &variant);
  KJ_REQUIRE(dbus_message_iter_get_arg_type(&variant) == DBUS_TYPE_BOOLEAN);
  dbus_message_iter_get_basic(&variant, &value);
  return value != 0;
}

std::vector<bool> SwitchWatch::values() {
  // What was signalled before the answer is in the queue by then.
  bool now = ask();
  while (Message message{dbus_connection_pop_message(connection)}) {
    DBusMessageIter all, changes;
    if (!dbus_message_is_signal(message.get(), "org.freedesktop.DBus.Properties",
                                "PropertiesChanged") ||
        !dbus_message_iter_init(message.get(), &all) || !dbus_message_iter_next(&all)) {
      continue;
    }
    dbus_message_iter_recurse(&all, &changes);
    for (; dbus_message_iter_get_arg_type(&changes) == DBUS_TYPE_DICT_ENTRY;
         dbus_message_iter_next(&changes)) {
      DBusMessageIter entry, variant;
      const char* name = nullptr;
      dbus_bool_t value = 0;
      dbus_message_iter_recurse(&changes, &entry);
      dbus_message_iter_get_basic(&entry, &name);
      dbus_message_iter_next(&entry);
      dbus_message_iter_recurse(&entry, &variant);
      if (strcmp(name, IS_ENABLED) != 0) continue;
      dbus_message_iter_get_basic(&variant, &value);
      seen.push_back(value != 0);
    }
  }
  if (seen.back() != now) seen.push_back(now);
  return seen;
}

void SwitchWatch::set(bool enabled) {
  auto request = statusCall("Set");
  appendVariant(request.get(), enabled);
  call(connection, request);
}

}  // namespace praefectus::tests
