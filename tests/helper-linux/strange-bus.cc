#include "tests/helper-linux/strange-bus.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <time.h>
#include <unistd.h>

namespace strange {

// What a message carries, as it is written.
class Body {
 public:
  explicit Body(DBusMessage* message) { dbus_message_iter_init_append(message, &iter); }

  Body& text(const std::string& value) {
    const char* raw = value.c_str();
    return basic(DBUS_TYPE_STRING, &raw);
  }
  Body& path(const std::string& value) {
    const char* raw = value.c_str();
    return basic(DBUS_TYPE_OBJECT_PATH, &raw);
  }
  Body& int32(int32_t value) { return basic(DBUS_TYPE_INT32, &value); }
  Body& uint32(uint32_t value) { return basic(DBUS_TYPE_UINT32, &value); }
  Body& float64(double value) { return basic(DBUS_TYPE_DOUBLE, &value); }
  Body& boolean(bool value) {
    dbus_bool_t raw = value ? TRUE : FALSE;
    return basic(DBUS_TYPE_BOOLEAN, &raw);
  }

  template <typename Fill>
  Body& structure(Fill fill) {
    return within(DBUS_TYPE_STRUCT, nullptr, fill);
  }
  template <typename Fill>
  Body& array(const char* of, Fill fill) {
    return within(DBUS_TYPE_ARRAY, of, fill);
  }
  template <typename Fill>
  Body& variant(const char* of, Fill fill) {
    return within(DBUS_TYPE_VARIANT, of, fill);
  }
  template <typename Fill>
  Body& entry(Fill fill) {
    return within(DBUS_TYPE_DICT_ENTRY, nullptr, fill);
  }

 private:
  Body() = default;

  Body& basic(int type, const void* value) {
    dbus_message_iter_append_basic(&iter, type, value);
    return *this;
  }

  template <typename Fill>
  Body& within(int type, const char* of, Fill fill) {
    Body inner;
    dbus_message_iter_open_container(&iter, type, of, &inner.iter);
    fill(inner);
    dbus_message_iter_close_container(&iter, &inner.iter);
    return *this;
  }

  DBusMessageIter iter;
};

namespace {

constexpr const char* ITEM = "((so)(so)(so)iiassusau)";
constexpr const char* QT_ITEM = "((so)(so)(so)a(so)assusau)";
constexpr const char* CACHE_PATH = "/org/a11y/atspi/cache";
constexpr const char* CACHE = "org.a11y.atspi.Cache";
constexpr const char* NO_OBJECT = "org.freedesktop.DBus.Error.UnknownObject";
constexpr const char* NO_METHOD = "org.freedesktop.DBus.Error.UnknownMethod";
constexpr const char* FAILED = "org.freedesktop.DBus.Error.Failed";
constexpr int PATIENCE_MS = 20'000;

struct FaceName {
  Face face;
  const char* name;
};
constexpr FaceName FACES[] = {
    {COMPONENT, "org.a11y.atspi.Component"},
    {ACTION, "org.a11y.atspi.Action"},
    {TEXT, "org.a11y.atspi.Text"},
    {EDITABLE_TEXT, "org.a11y.atspi.EditableText"},
    {VALUE, "org.a11y.atspi.Value"},
    {DOCUMENT, "org.a11y.atspi.Document"},
    {APPLICATION, "org.a11y.atspi.Application"},
};

[[noreturn]] void fail(const char* what) {
  fprintf(stderr, "praefectus-strange: %s\n", what);
  exit(1);
}

DBusMessage* asked(DBusConnection* connection, DBusMessage* call) {
  DBusMessage* reply =
      dbus_connection_send_with_reply_and_block(connection, call, PATIENCE_MS, nullptr);
  dbus_message_unref(call);
  if (reply == nullptr) fail("a bus does not answer");
  return reply;
}

std::string textOf(DBusMessage* reply) {
  const char* text = nullptr;
  if (!dbus_message_get_args(reply, nullptr, DBUS_TYPE_STRING, &text, DBUS_TYPE_INVALID)) {
    fail("a bus answers with no text");
  }
  std::string out = text;
  dbus_message_unref(reply);
  return out;
}

std::string accessibilityAddress() {
  DBusConnection* session = dbus_bus_get_private(DBUS_BUS_SESSION, nullptr);
  if (session == nullptr) fail("no session bus");
  dbus_connection_set_exit_on_disconnect(session, FALSE);
  auto address = textOf(asked(session, dbus_message_new_method_call("org.a11y.Bus", "/org/a11y/bus",
                                                                    "org.a11y.Bus", "GetAddress")));
  dbus_connection_close(session);
  dbus_connection_unref(session);
  return address;
}

void appendInterfaces(Body& body, const Object& object) {
  body.array("s", [&](Body& all) {
    all.text("org.a11y.atspi.Accessible");
    for (auto& each : FACES) {
      if ((object.faces & each.face) != 0) all.text(each.name);
    }
  });
}

void appendStates(Body& body, const Object& object) {
  body.array("u", [&](Body& words) {
    words.uint32(static_cast<uint32_t>(object.states));
    words.uint32(static_cast<uint32_t>(object.states >> 32));
  });
}

template <typename T>
T argument(DBusMessage* call, int type, T otherwise) {
  DBusMessageIter iter;
  if (!dbus_message_iter_init(call, &iter) || dbus_message_iter_get_arg_type(&iter) != type) {
    return otherwise;
  }
  T out;
  dbus_message_iter_get_basic(&iter, &out);
  return out;
}

int32_t numberIn(DBusMessage* call) { return argument<int32_t>(call, DBUS_TYPE_INT32, 0); }

void pauseFor(unsigned milliseconds) {
  timespec time{milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1'000'000};
  nanosleep(&time, nullptr);
}

std::string hexOf(const std::string& text) {
  std::string out;
  for (unsigned char byte : text) {
    char digits[3];
    snprintf(digits, sizeof(digits), "%02x", byte);
    out += digits;
  }
  return out;
}

}  // namespace

// One call about one object, and the ways to answer it.
struct Calls {
  AccessibilityBus& bus;
  DBusMessage* call;
  Object& object;
  Body& body;

  void children() {
    if (object.claimed > 0 && bus.options.mode == Mode::WIDE) {
      bus.note("fetched-all " + object.path);
      abort();
    }
    body.array("(so)", [this](Body& all) {
      for (int32_t i = 0; i < object.childCount(); ++i) bus.appendChild(all, object, i);
    });
  }
  void childAtIndex() { bus.appendChild(body, object, numberIn(call)); }
  void indexInParent() { body.int32(bus.scene.indexOf(object)); }
  void role() { body.uint32(object.role); }
  void roleName() { body.text("strange"); }
  void states() { appendStates(body, object); }
  void interfaces() { appendInterfaces(body, object); }
  void application() { bus.appendObject(body, Scene::ROOT); }
  void relations() {
    body.array("(ua(so))", [](Body&) {});
  }
  void attributes() {
    body.array("{ss}", [this](Body& all) {
      all.entry([this](Body& each) { each.text("toolkit").text(bus.options.toolkit); });
      if (object.id.empty()) return;
      all.entry([this](Body& each) { each.text("id").text(object.id); });
      all.entry([](Body& each) { each.text("tag").text("button"); });
    });
  }

  void extents() {
    bool screen = argument<uint32_t>(call, DBUS_TYPE_UINT32, 0) == 0;
    auto origin = screen ? bus.place() : Point();
    body.structure([&](Body& rect) {
      rect.int32(object.x + origin.x).int32(object.y + origin.y);
      rect.int32(object.width).int32(object.height);
    });
  }

  void actionName() { body.text("click"); }
  void actions() {
    body.array("(sss)", [](Body& all) {
      all.structure([](Body& each) { each.text("Click").text("").text(""); });
    });
  }
  void act() {
    bus.note("pressed " + object.path);
    body.boolean(true);
  }

  void text() {
    if (object.role == role::PASSWORD_TEXT) bus.note("asked-secret " + object.path);
    body.text(object.text);
  }
  void setText() {
    object.text = argument<const char*>(call, DBUS_TYPE_STRING, "");
    bus.note("text " + object.path + " " + hexOf(object.text));
    body.boolean(true);
  }

  void documentAttribute() {
    std::string asked = argument<const char*>(call, DBUS_TYPE_STRING, "");
    body.text(asked == "DocURL" || asked == "URI" ? object.address : "");
  }
  void documentAttributes() {
    body.array("{ss}", [this](Body& all) {
      all.entry([this](Body& each) { each.text("DocURL").text(object.address); });
      all.entry([this](Body& each) { each.text("DocTitle").text(object.name); });
      all.entry([](Body& each) { each.text("MimeType").text("text/html"); });
    });
  }

  void textValue(const std::string& value) {
    body.variant("s", [&](Body& inner) { inner.text(value); });
  }
  void intValue(int32_t value) {
    body.variant("i", [&](Body& inner) { inner.int32(value); });
  }
  void floatValue(double value) {
    body.variant("d", [&](Body& inner) { inner.float64(value); });
  }
  void name() { textValue(object.name); }
  void nothing() { textValue(""); }
  void locale() { textValue("C.UTF-8"); }
  void childCount() { intValue(object.childCount()); }
  void parent() {
    body.variant("(so)", [this](Body& inner) { bus.appendObject(inner, object.parent); });
  }
  void actionCount() { intValue(1); }
  void characters() { intValue(static_cast<int32_t>(object.text.size())); }
  void caret() { intValue(0); }
  void number() { floatValue(object.number); }
  void lowest() { floatValue(0); }
  void highest() { floatValue(100); }
  void step() { floatValue(1); }
  void toolkit() { textValue(bus.options.toolkit); }
  void toolkitVersion() { textValue(bus.options.toolkitVersion); }
  void protocolVersion() { textValue("2.1"); }
  void identifier() { intValue(0); }

  void set() {
    DBusMessageIter iter, value;
    if (!dbus_message_iter_init(call, &iter)) return;
    dbus_message_iter_next(&iter);
    dbus_message_iter_next(&iter);
    dbus_message_iter_recurse(&iter, &value);
    // The registry also gives each application a number; that is an int.
    if (dbus_message_iter_get_arg_type(&value) != DBUS_TYPE_DOUBLE) return;
    dbus_message_iter_get_basic(&value, &object.number);
    bus.note("value " + object.path + " " + std::to_string(object.number));
  }
};

namespace {

struct Member {
  const char* interface;
  const char* name;
  void (Calls::*answer)();
};
constexpr Member METHODS[] = {
    {"org.a11y.atspi.Accessible", "GetChildren", &Calls::children},
    {"org.a11y.atspi.Accessible", "GetChildAtIndex", &Calls::childAtIndex},
    {"org.a11y.atspi.Accessible", "GetIndexInParent", &Calls::indexInParent},
    {"org.a11y.atspi.Accessible", "GetRole", &Calls::role},
    {"org.a11y.atspi.Accessible", "GetRoleName", &Calls::roleName},
    {"org.a11y.atspi.Accessible", "GetLocalizedRoleName", &Calls::roleName},
    {"org.a11y.atspi.Accessible", "GetState", &Calls::states},
    {"org.a11y.atspi.Accessible", "GetInterfaces", &Calls::interfaces},
    {"org.a11y.atspi.Accessible", "GetApplication", &Calls::application},
    {"org.a11y.atspi.Accessible", "GetRelationSet", &Calls::relations},
    {"org.a11y.atspi.Accessible", "GetAttributes", &Calls::attributes},
    {"org.a11y.atspi.Component", "GetExtents", &Calls::extents},
    {"org.a11y.atspi.Action", "GetName", &Calls::actionName},
    {"org.a11y.atspi.Action", "GetActions", &Calls::actions},
    {"org.a11y.atspi.Action", "DoAction", &Calls::act},
    {"org.a11y.atspi.Text", "GetText", &Calls::text},
    {"org.a11y.atspi.EditableText", "SetTextContents", &Calls::setText},
    {"org.a11y.atspi.Document", "GetAttributeValue", &Calls::documentAttribute},
    {"org.a11y.atspi.Document", "GetAttributes", &Calls::documentAttributes},
    {"org.freedesktop.DBus.Properties", "Set", &Calls::set},
};
constexpr Member PROPERTIES[] = {
    {"org.a11y.atspi.Accessible", "Name", &Calls::name},
    {"org.a11y.atspi.Accessible", "Description", &Calls::nothing},
    {"org.a11y.atspi.Accessible", "AccessibleId", &Calls::nothing},
    {"org.a11y.atspi.Accessible", "Locale", &Calls::locale},
    {"org.a11y.atspi.Accessible", "ChildCount", &Calls::childCount},
    {"org.a11y.atspi.Accessible", "Parent", &Calls::parent},
    {"org.a11y.atspi.Action", "NActions", &Calls::actionCount},
    {"org.a11y.atspi.Text", "CharacterCount", &Calls::characters},
    {"org.a11y.atspi.Text", "CaretOffset", &Calls::caret},
    {"org.a11y.atspi.Value", "CurrentValue", &Calls::number},
    {"org.a11y.atspi.Value", "MinimumValue", &Calls::lowest},
    {"org.a11y.atspi.Value", "MaximumValue", &Calls::highest},
    {"org.a11y.atspi.Value", "MinimumIncrement", &Calls::step},
    {"org.a11y.atspi.Application", "ToolkitName", &Calls::toolkit},
    {"org.a11y.atspi.Application", "Version", &Calls::toolkitVersion},
    {"org.a11y.atspi.Application", "AtspiVersion", &Calls::protocolVersion},
    {"org.a11y.atspi.Application", "Id", &Calls::identifier},
};

template <size_t N>
const Member* memberOf(const Member (&all)[N], const std::string& interface,
                       const std::string& name) {
  for (auto& each : all) {
    if (interface == each.interface && name == each.name) return &each;
  }
  return nullptr;
}

bool offers(const Object& object, const std::string& interface) {
  for (auto& each : FACES) {
    if (interface == each.name) return (object.faces & each.face) != 0;
  }
  return true;
}

// What a call is about: an interface's method or, asked through the interface for properties, its
// property.
struct Question {
  std::string interface, name;
  bool property = false;

  explicit Question(DBusMessage* call)
      : interface(dbus_message_get_interface(call) ? dbus_message_get_interface(call) : ""),
        name(dbus_message_get_member(call)) {
    if (interface != "org.freedesktop.DBus.Properties" || name != "Get") return;
    const char *of = nullptr, *which = nullptr;
    if (!dbus_message_get_args(call, nullptr, DBUS_TYPE_STRING, &of, DBUS_TYPE_STRING, &which,
                               DBUS_TYPE_INVALID)) {
      return;
    }
    interface = of;
    name = which;
    property = true;
  }
};

}  // namespace

AccessibilityBus::AccessibilityBus(const Options& options, Scene& scene, Note note, Place place)
    : options(options), scene(scene), note(std::move(note)), place(std::move(place)) {
  connection = dbus_connection_open_private(accessibilityAddress().c_str(), nullptr);
  if (connection == nullptr || !dbus_bus_register(connection, nullptr)) {
    fail("no accessibility bus");
  }
  dbus_connection_set_exit_on_disconnect(connection, FALSE);
  name = dbus_bus_get_unique_name(connection);
}

AccessibilityBus::~AccessibilityBus() {
  dbus_connection_close(connection);
  dbus_connection_unref(connection);
}

void AccessibilityBus::embed() {
  DBusMessage* call = dbus_message_new_method_call("org.a11y.atspi.Registry", Scene::ROOT.c_str(),
                                                   "org.a11y.atspi.Socket", "Embed");
  Body body(call);
  appendObject(body, Scene::ROOT);
  dbus_message_unref(asked(connection, call));

  call = dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS,
                                      "GetNameOwner");
  Body(call).text("org.a11y.atspi.Registry");
  registry = textOf(asked(connection, call));
}

int AccessibilityBus::descriptor() const {
  int out = -1;
  if (dbus_connection_get_is_connected(connection)) dbus_connection_get_unix_fd(connection, &out);
  return out;
}

bool AccessibilityBus::wantsToWrite() const {
  return dbus_connection_has_messages_to_send(connection) != FALSE;
}

void AccessibilityBus::turn() {
  dbus_connection_read_write(connection, 0);
  while (DBusMessage* message = dbus_connection_pop_message(connection)) {
    if (dbus_message_get_type(message) == DBUS_MESSAGE_TYPE_METHOD_CALL) answer(message);
    dbus_message_unref(message);
    dbus_connection_read_write(connection, 0);
  }
}

void AccessibilityBus::send(DBusMessage* message) {
  dbus_connection_send(connection, message, nullptr);
  dbus_message_unref(message);
}

void AccessibilityBus::sendError(DBusMessage* call, const char* error) {
  send(dbus_message_new_error(call, error, "Strange."));
}

void AccessibilityBus::count(const std::string& member, bool ofElement) {
  ++counts[member];
  if (!ofElement || ++ofElements != options.after) return;
  if (options.mode == Mode::DIES) _exit(1);
  if (options.mode == Mode::FREEZES) raise(SIGSTOP);
}

void AccessibilityBus::noteCounts() {
  for (auto& each : counts) note("asked " + each.first + " " + std::to_string(each.second));
  counts.clear();
}

void AccessibilityBus::answer(DBusMessage* call) {
  if (options.mode == Mode::SLOW) pauseFor(options.pauseMs);
  std::string path = dbus_message_get_path(call);
  Question question(call);
  if (path == CACHE_PATH) {
    count(question.name, false);
    return answerCache(call);
  }
  Object* object = scene.find(path);
  if (object == nullptr) return sendError(call, NO_OBJECT);
  count(question.name, path != Scene::ROOT && object->parent != Scene::ROOT);
  if (path == scene.odd()) return answerOdd(call, *object);
  answerOrdinary(call, *object);
}

void AccessibilityBus::answerOdd(DBusMessage* call, Object& object) {
  if (options.mode == Mode::MUTE) return;
  if (options.mode == Mode::ODD_ERROR) return sendError(call, FAILED);
  if (options.mode == Mode::ODD_TEXT) return sendNotText(call);
  if (options.mode != Mode::ODD_SIGNATURE) return answerOrdinary(call, object);
  DBusMessage* reply = dbus_message_new_method_return(call);
  Body(reply).array("d", [](Body& all) { all.float64(0.5).float64(1.5); });
  send(reply);
}

// libdbus refuses to write what is no text, so the bytes are spoilt on their way.
void AccessibilityBus::sendNotText(DBusMessage* call) {
  DBusMessage* reply = dbus_message_new_method_return(call);
  Body(reply).variant("s", [](Body& inner) { inner.text("SPOILT"); });
  dbus_message_set_serial(reply, 1u << 30);
  char* bytes = nullptr;
  int size = 0;
  dbus_connection_flush(connection);
  if (!dbus_message_marshal(reply, &bytes, &size)) fail("out of memory");
  std::string spoilt(bytes, static_cast<size_t>(size));
  spoilt[spoilt.rfind("SPOILT")] = '\xff';
  int socket = descriptor();
  if (socket >= 0 && ::write(socket, spoilt.data(), spoilt.size()) < 0) perror("write");
  dbus_free(bytes);
  dbus_message_unref(reply);
}

void AccessibilityBus::answerOrdinary(DBusMessage* call, Object& object) {
  Question question(call);
  if (question.name == "GetAll") {
    // As Qt 5.15 does.
    note("fetched-properties " + object.path);
    abort();
  }
  auto* member = question.property ? memberOf(PROPERTIES, question.interface, question.name)
                                   : memberOf(METHODS, question.interface, question.name);
  if (member == nullptr || !offers(object, question.interface)) return sendError(call, NO_METHOD);
  DBusMessage* reply = dbus_message_new_method_return(call);
  Body body(reply);
  Calls answering{*this, call, object, body};
  (answering.*member->answer)();
  send(reply);
}

void AccessibilityBus::appendObject(Body& body, const std::string& path) const {
  body.structure([&](Body& inner) {
    // The application's parent is the registry's; nothing is the null object.
    inner.text(name).path(path.empty() ? "/org/a11y/atspi/null" : path);
  });
}

void AccessibilityBus::appendChild(Body& body, const Object& parent, int32_t index) const {
  if (options.mode == Mode::ODD_FOREIGN && parent.path == scene.odd()) {
    body.structure([&](Body& inner) { inner.text(registry).path(Scene::ROOT); });
    return;
  }
  appendObject(body, scene.childAt(parent, index));
}

void AccessibilityBus::appendItem(Body& body, const Object& object, int32_t index) const {
  bool lies = object.role == role::PANEL && object.name == "Controls";
  auto& parent = object.parent.empty() ? object : *scene.find(object.parent);
  bool liesOfChild = parent.role == role::PANEL && parent.name == "Controls";
  bool first = liesOfChild && parent.children.front() == object.path;
  auto path = object.path;
  // at-spi2-atk counts no children where an object makes them on demand.
  auto children = object.claimed >= 0 ? -1 : object.childCount();
  if (options.cache == Cache::COUNT && lies) children += 2;
  if (options.cache == Cache::HOLES && liesOfChild) index += 1;
  if (options.cache == Cache::REPEAT && first) path = parent.children.back();

  body.structure([&](Body& item) {
    appendObject(item, path);
    appendObject(item, Scene::ROOT);
    appendObject(item, object.parent);
    if (options.cache == Cache::LAYOUT) {
      item.array("(so)", [](Body&) {});
    } else {
      item.int32(index).int32(children);
    }
    appendInterfaces(item, object);
    item.text(object.name).uint32(object.role).text("");
    appendStates(item, object);
  });
}

void AccessibilityBus::answerCache(DBusMessage* call) {
  bool asked = dbus_message_is_method_call(call, CACHE, "GetItems") != FALSE;
  if (!asked || options.cache == Cache::NONE) return sendError(call, NO_METHOD);
  std::unordered_map<std::string, int32_t> places;
  for (auto& each : scene.all()) {
    int32_t place = 0;
    for (auto& child : each.second.children) places[child] = place++;
  }
  DBusMessage* reply = dbus_message_new_method_return(call);
  bool qt = options.cache == Cache::LAYOUT;
  Body(reply).array(qt ? QT_ITEM : ITEM, [&](Body& items) {
    for (auto& each : scene.all()) {
      // An object that is odd to ask is not told of here either.
      if (each.first == scene.odd()) continue;
      auto place = places.find(each.first);
      appendItem(items, each.second, place == places.end() ? -1 : place->second);
    }
  });
  send(reply);
}

void AccessibilityBus::tell(const std::vector<Event>& events) {
  if (options.silent) return;
  for (auto& event : events) tellOne(event);
}

// As at-spi2-atk 2.46 does, adaptors/event.c.
void AccessibilityBus::tellOne(const Event& event) {
  auto signal = [&](const char* interface, const char* member, const char* type, auto fill) {
    DBusMessage* message = dbus_message_new_signal(event.source.c_str(), interface, member);
    Body body(message);
    bool named = event.kind == Event::Kind::NAME;
    body.text(named ? "accessible-name" : event.detail);
    body.int32(event.number).int32(0).variant(type, fill);
    body.array("{sv}", [](Body&) {});
    send(message);
  };
  auto cacheSignal = [&](const char* member, auto fill) {
    DBusMessage* message = dbus_message_new_signal(CACHE_PATH, CACHE, member);
    Body body(message);
    fill(body);
    send(message);
  };
  constexpr const char* OBJECT_EVENT = "org.a11y.atspi.Event.Object";
  auto child = [&](Body& body) { appendObject(body, event.child); };
  switch (event.kind) {
    case Event::Kind::NAME:
      signal(OBJECT_EVENT, "PropertyChange", "s", [&](Body& body) { body.text(event.detail); });
      break;
    case Event::Kind::STATE:
      signal(OBJECT_EVENT, "StateChanged", "i", [](Body& body) { body.int32(0); });
      break;
    case Event::Kind::ADDED:
      if (auto* object = scene.find(event.child)) {
        cacheSignal("AddAccessible", [&](Body& body) { appendItem(body, *object, event.number); });
      }
      signal(OBJECT_EVENT, "ChildrenChanged", "(so)", child);
      break;
    case Event::Kind::REMOVED:
      signal(OBJECT_EVENT, "ChildrenChanged", "(so)", child);
      cacheSignal("RemoveAccessible", child);
      break;
    case Event::Kind::LOADED:
      signal("org.a11y.atspi.Event.Document", "LoadComplete", "s",
             [](Body& body) { body.text(""); });
      break;
  }
}

}  // namespace strange
