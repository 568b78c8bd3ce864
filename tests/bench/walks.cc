#include "tests/bench/walks.h"

#include "tests/bench/measure.h"
#include "tests/helper-linux/second-reading.h"

#include <kj/debug.h>

#include <dbus/dbus.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <deque>
#include <memory>
#include <set>

namespace praefectus::bench {
namespace {

constexpr int PATIENCE_MS = 30'000;
// A spreadsheet that is asked for all its cells takes gigabytes of memory and does not come back.
constexpr int32_t CHILDREN = 3000;

constexpr const char* ACCESSIBLE = "org.a11y.atspi.Accessible";
constexpr const char* ROOT = "/org/a11y/atspi/accessible/root";

struct Unref {
  void operator()(DBusMessage* message) const { dbus_message_unref(message); }
};
using Message = std::unique_ptr<DBusMessage, Unref>;

Message callOf(const Place& object, const char* interface, const char* member) {
  return Message(
      dbus_message_new_method_call(object.bus.c_str(), object.path.c_str(), interface, member));
}

// Nothing when the object answers with an error or not at all.
Message ask(DBusConnection* connection, const Message& call) {
  return Message(
      dbus_connection_send_with_reply_and_block(connection, call.get(), PATIENCE_MS, nullptr));
}

Message ask(DBusConnection* connection, const Place& object, const char* interface,
            const char* member) {
  return ask(connection, callOf(object, interface, member));
}

Message askProperty(DBusConnection* connection, const Place& object, const char* name) {
  auto call = callOf(object, DBUS_INTERFACE_PROPERTIES, "Get");
  dbus_message_append_args(call.get(), DBUS_TYPE_STRING, &ACCESSIBLE, DBUS_TYPE_STRING, &name,
                           DBUS_TYPE_INVALID);
  return ask(connection, call);
}

// Enters the answer; whether it is there and begins with this type.
bool enter(const Message& answer, int type, DBusMessageIter& at) {
  return answer != nullptr && dbus_message_iter_init(answer.get(), &at) &&
         dbus_message_iter_get_arg_type(&at) == type;
}

bool enterProperty(const Message& answer, int type, DBusMessageIter& at) {
  DBusMessageIter variant;
  if (!enter(answer, DBUS_TYPE_VARIANT, variant)) return false;
  dbus_message_iter_recurse(&variant, &at);
  return dbus_message_iter_get_arg_type(&at) == type;
}

std::string nameOf(DBusConnection* connection, const Place& object) {
  auto answer = askProperty(connection, object, "Name");
  DBusMessageIter at;
  if (!enterProperty(answer, DBUS_TYPE_STRING, at)) return "";
  const char* text = "";
  dbus_message_iter_get_basic(&at, &text);
  return text;
}

int32_t childCountOf(DBusConnection* connection, const Place& object) {
  auto answer = askProperty(connection, object, "ChildCount");
  DBusMessageIter at;
  if (!enterProperty(answer, DBUS_TYPE_INT32, at)) return 0;
  int32_t count = 0;
  dbus_message_iter_get_basic(&at, &count);
  return count;
}

template <typename Each>
void forEach(DBusMessageIter& array, Each&& each) {
  DBusMessageIter at;
  dbus_message_iter_recurse(&array, &at);
  for (; dbus_message_iter_get_arg_type(&at) != DBUS_TYPE_INVALID; dbus_message_iter_next(&at)) {
    each(at);
  }
}

std::deque<Place> childrenOf(DBusConnection* connection, const Place& object) {
  std::deque<Place> out;
  auto answer = ask(connection, object, ACCESSIBLE, "GetChildren");
  DBusMessageIter list;
  if (!enter(answer, DBUS_TYPE_ARRAY, list)) return out;
  forEach(list, [&](DBusMessageIter& child) {
    DBusMessageIter part;
    const char *bus = "", *path = "";
    dbus_message_iter_recurse(&child, &part);
    dbus_message_iter_get_basic(&part, &bus);
    dbus_message_iter_next(&part);
    dbus_message_iter_get_basic(&part, &path);
    out.push_back({bus, path});
  });
  return out;
}

bool hasComponent(DBusConnection* connection, const Place& object) {
  auto answer = ask(connection, object, ACCESSIBLE, "GetInterfaces");
  bool found = false;
  DBusMessageIter list;
  if (!enter(answer, DBUS_TYPE_ARRAY, list)) return false;
  forEach(list, [&](DBusMessageIter& name) {
    const char* text = "";
    dbus_message_iter_get_basic(&name, &text);
    found = found || strcmp(text, "org.a11y.atspi.Component") == 0;
  });
  return found;
}

void askExtents(DBusConnection* connection, const Place& object) {
  auto call = callOf(object, "org.a11y.atspi.Component", "GetExtents");
  const dbus_uint32_t window = 1;
  dbus_message_append_args(call.get(), DBUS_TYPE_UINT32, &window, DBUS_TYPE_INVALID);
  ask(connection, call);
}

DBusConnection* connectTo(const std::string& address) {
  DBusConnection* connection = dbus_connection_open_private(address.c_str(), nullptr);
  KJ_REQUIRE(connection != nullptr, "the bus cannot be reached");
  dbus_connection_set_exit_on_disconnect(connection, 0);
  KJ_REQUIRE(dbus_bus_register(connection, nullptr), "the bus refused the connection");
  return connection;
}

void disconnect(DBusConnection* connection) {
  dbus_connection_close(connection);
  dbus_connection_unref(connection);
}

std::string accessibilityBus(kj::ArrayPtr<const kj::String> environment) {
  constexpr kj::StringPtr NAME = "DBUS_SESSION_BUS_ADDRESS="_kj;
  for (auto& entry : environment) {
    if (!entry.startsWith(NAME)) continue;
    auto* session = connectTo(entry.slice(NAME.size()).cStr());
    auto answer = ask(session, {"org.a11y.Bus", "/org/a11y/bus"}, "org.a11y.Bus", "GetAddress");
    DBusMessageIter at;
    KJ_REQUIRE(enter(answer, DBUS_TYPE_STRING, at), "there is no accessibility bus");
    const char* address = "";
    dbus_message_iter_get_basic(&at, &address);
    std::string out = address;
    disconnect(session);
    return out;
  }
  KJ_FAIL_REQUIRE("no session bus is named");
}

}  // namespace

OneAtATime::OneAtATime(kj::ArrayPtr<const kj::String> environment)
    : connection(connectTo(accessibilityBus(environment))) {}

OneAtATime::~OneAtATime() { disconnect(connection); }

Place OneAtATime::applicationOf(pid_t process) {
  for (auto& each : childrenOf(connection, {"org.a11y.atspi.Registry", ROOT})) {
    auto call = callOf({DBUS_SERVICE_DBUS, DBUS_PATH_DBUS}, DBUS_INTERFACE_DBUS,
                       "GetConnectionUnixProcessID");
    const char* bus = each.bus.c_str();
    dbus_message_append_args(call.get(), DBUS_TYPE_STRING, &bus, DBUS_TYPE_INVALID);
    auto answer = ask(connection, call);
    DBusMessageIter at;
    dbus_uint32_t pid = 0;
    if (enter(answer, DBUS_TYPE_UINT32, at)) dbus_message_iter_get_basic(&at, &pid);
    if (static_cast<pid_t>(pid) == process) return each;
  }
  KJ_FAIL_REQUIRE("the application is not registered");
}

Place OneAtATime::windowOf(const Place& application, kj::StringPtr title) {
  for (auto& each : childrenOf(connection, application)) {
    if (nameOf(connection, each).find(title.cStr()) != std::string::npos) return each;
  }
  KJ_FAIL_REQUIRE("the application has no such window");
}

void OneAtATime::listen(const Place& application) {
  auto call = callOf({"org.a11y.atspi.Registry", "/org/a11y/atspi/registry"},
                     "org.a11y.atspi.Registry", "RegisterEvent");
  const char* event = "document:content-changed";
  const char** none = nullptr;
  const char* bus = application.bus.c_str();
  dbus_message_append_args(call.get(), DBUS_TYPE_STRING, &event, DBUS_TYPE_ARRAY, DBUS_TYPE_STRING,
                           &none, 0, DBUS_TYPE_STRING, &bus, DBUS_TYPE_INVALID);
  ask(connection, call);
}

Reading OneAtATime::items(const Place& application) {
  Reading out;
  Message answer;
  out.time = timeOf([&]() {
    answer = ask(connection, {application.bus, "/org/a11y/atspi/cache"}, "org.a11y.atspi.Cache",
                 "GetItems");
  });
  DBusMessageIter list;
  if (enter(answer, DBUS_TYPE_ARRAY, list))
    forEach(list, [&](DBusMessageIter&) { ++out.elements; });
  return out;
}

Reading OneAtATime::walk(const Place& window) {
  Reading out;
  std::set<std::string> met{window.path};
  std::deque<Place> ahead{window};
  out.time = timeOf([&]() {
    for (; !ahead.empty(); ahead.pop_front()) {
      auto& here = ahead.front();
      ++out.elements;
      ask(connection, here, ACCESSIBLE, "GetRole");
      ask(connection, here, ACCESSIBLE, "GetState");
      nameOf(connection, here);
      if (hasComponent(connection, here)) askExtents(connection, here);
      int32_t count = childCountOf(connection, here);
      if (count <= 0 || count > CHILDREN) continue;
      for (auto& child : childrenOf(connection, here)) {
        if (met.insert(child.path).second) ahead.push_back(child);
      }
    }
  });
  return out;
}

Reading walkByLibatspi(kj::ArrayPtr<const kj::String> environment, pid_t process,
                       kj::StringPtr title, bool cached) {
  kj::StringPtr options[] = {"--cache"_kj, cached ? "on"_kj : "off"_kj, "--time"_kj};
  auto said = tests::secondReading(environment, process, title, options);
  auto line = nlohmann::json::parse(said);
  return {line.at("seconds").get<double>() * 1e6, line.at("elements").get<size_t>()};
}

}  // namespace praefectus::bench
