#include "helper-linux/accessibility/objects.h"

#include "helper-linux/accessibility/vocabulary.h"

namespace praefectus::accessibility {
namespace {

using dbus::Arguments;
using dbus::Reader;
using dbus::Reply;

constexpr kj::StringPtr ACCESSIBLE = "org.a11y.atspi.Accessible"_kj;
constexpr kj::StringPtr APPLICATION = "org.a11y.atspi.Application"_kj;
constexpr kj::StringPtr ACTION_FACE = "org.a11y.atspi.Action"_kj;
constexpr kj::StringPtr COMPONENT_FACE = "org.a11y.atspi.Component"_kj;
constexpr kj::StringPtr EDITABLE_FACE = "org.a11y.atspi.EditableText"_kj;
constexpr kj::StringPtr TEXT_FACE = "org.a11y.atspi.Text"_kj;
constexpr kj::StringPtr VALUE_FACE = "org.a11y.atspi.Value"_kj;
constexpr kj::StringPtr PROPERTIES = "org.freedesktop.DBus.Properties"_kj;
constexpr kj::StringPtr BUS = "org.freedesktop.DBus"_kj;

// More than any control offers; a list beyond it is not a list of actions.
constexpr int32_t ACTIONS = 32;

// Names remembered; forgetting them costs one call each.
constexpr size_t APPLICATIONS_AWAKE = 1024;

uint32_t readUint32(Reader& reader) { return reader.uint32(); }
int32_t readInt32(Reader& reader) { return reader.int32(); }
kj::String readText(Reader& reader) { return kj::str(reader.text()); }

Rect readRect(Reader& reader) {
  reader.structure();
  Rect out;
  out.x = reader.int32();
  out.y = reader.int32();
  // Some toolkits answer -1 for what has no size.
  out.width = static_cast<uint32_t>(kj::max(0, reader.int32()));
  out.height = static_cast<uint32_t>(kj::max(0, reader.int32()));
  return out;
}

wire::Answer answerOf(const Reply& reply) {
  switch (reply.end) {
    case dbus::End::ERROR:
      // The bus says so when the application went away without an answer.
      if (reply.message.errorName == "org.freedesktop.DBus.Error.NoReply") {
        return wire::Answer::SILENT;
      }
      return wire::Answer::ERROR;
    case dbus::End::LATE:
    case dbus::End::LOST:
      return wire::Answer::SILENT;
    case dbus::End::REPLIED:
      break;
  }
  // A setter of a property answers nothing; the others say yes or no.
  if (reply.message.signature == "") return wire::Answer::ACCEPTED;
  auto yes = reply.decode("b", [](Reader& reader) { return reader.boolean(); });
  KJ_IF_MAYBE (accepted, yes) {
    return *accepted ? wire::Answer::ACCEPTED : wire::Answer::DECLINED;
  }
  return wire::Answer::ERROR;
}

dbus::Call callOf(const ObjectRef& object, kj::StringPtr interface, kj::StringPtr member) {
  return {object.bus, object.path, interface, member};
}

}  // namespace

ObjectRef readObject(Reader& reader) {
  reader.structure();
  kj::String bus = kj::str(reader.text());
  return {kj::mv(bus), kj::str(reader.text())};
}

uint64_t readStates(Reader& reader) {
  uint64_t out = 0;
  size_t end = reader.array(4);
  for (unsigned shift = 0; reader.more(end); shift += 32) {
    uint64_t word = reader.uint32();
    if (shift < 64) out |= word << shift;
  }
  return out;
}

uint8_t readInterfaces(Reader& reader) {
  uint8_t out = 0;
  size_t end = reader.array(4);
  while (reader.more(end)) out |= interfaceBit(reader.text());
  return out;
}

template <typename Read>
auto Objects::ask(kj::StringPtr destination, kj::StringPtr path, kj::StringPtr interface,
                  kj::StringPtr member, const Arguments& arguments, kj::StringPtr signature,
                  Deadline deadline, Read read) {
  using T = decltype(read(kj::instance<Reader&>()));
  return bus.call({destination, path, interface, member}, arguments, deadline)
      .then([signature, read](Reply&& reply) {
        return Answered<T>{reply.decode(signature, read), reply.end};
      });
}

template <typename Read>
auto Objects::ask(const ObjectRef& object, kj::StringPtr interface, kj::StringPtr member,
                  const Arguments& arguments, kj::StringPtr signature, Deadline deadline,
                  Read read) {
  return ask(object.bus, object.path, interface, member, arguments, signature, deadline, read);
}

template <typename Read>
auto Objects::property(const ObjectRef& object, kj::StringPtr interface, kj::StringPtr name,
                       kj::StringPtr type, Deadline deadline, Read read) {
  Arguments arguments;
  arguments.text(interface).text(name);
  return ask(object, PROPERTIES, "Get", arguments, "v", deadline, [type, read](Reader& reader) {
    KJ_REQUIRE(reader.signature() == type, "a property of another type");
    return read(reader);
  });
}

kj::Promise<Answered<uint32_t>> Objects::role(const ObjectRef& object, Deadline deadline) {
  return ask(object, ACCESSIBLE, "GetRole", {}, "u", deadline, readUint32);
}

kj::Promise<Answered<kj::String>> Objects::name(const ObjectRef& object, Deadline deadline) {
  return property(object, ACCESSIBLE, "Name", "s", deadline, readText);
}

kj::Promise<Answered<uint64_t>> Objects::states(const ObjectRef& object, Deadline deadline) {
  return ask(object, ACCESSIBLE, "GetState", {}, "au", deadline, readStates);
}

kj::Promise<Answered<uint8_t>> Objects::interfaces(const ObjectRef& object, Deadline deadline) {
  return ask(object, ACCESSIBLE, "GetInterfaces", {}, "as", deadline, readInterfaces);
}

kj::Promise<Answered<int32_t>> Objects::childCount(const ObjectRef& object, Deadline deadline) {
  return property(object, ACCESSIBLE, "ChildCount", "i", deadline, readInt32);
}

kj::Promise<Answered<kj::Vector<ObjectRef>>> Objects::children(const ObjectRef& object,
                                                               Deadline deadline) {
  return ask(object, ACCESSIBLE, "GetChildren", {}, "a(so)", deadline, [](Reader& reader) {
    kj::Vector<ObjectRef> out;
    size_t end = reader.array(8);
    while (reader.more(end)) out.add(readObject(reader));
    return out;
  });
}

kj::Promise<Answered<ObjectRef>> Objects::childAt(const ObjectRef& object, uint32_t index,
                                                  Deadline deadline) {
  Arguments arguments;
  arguments.int32(static_cast<int32_t>(index));
  return ask(object, ACCESSIBLE, "GetChildAtIndex", arguments, "(so)", deadline, readObject);
}

kj::Promise<Answered<ObjectRef>> Objects::parent(const ObjectRef& object, Deadline deadline) {
  return property(object, ACCESSIBLE, "Parent", "(so)", deadline, readObject);
}

kj::Promise<Answered<kj::String>> Objects::accessibleId(const ObjectRef& object,
                                                        Deadline deadline) {
  return property(object, ACCESSIBLE, "AccessibleId", "s", deadline, readText);
}

kj::Promise<Answered<kj::Vector<kj::String>>> Objects::actions(const ObjectRef& object,
                                                               Deadline deadline) {
  using Names = Answered<kj::Vector<kj::String>>;
  return property(object, ACTION_FACE, "NActions", "i", deadline, readInt32)
      .then([this, &object, deadline](Answered<int32_t>&& count) -> kj::Promise<Names> {
        if (count.value == nullptr) return Names{nullptr, count.end};
        auto asked = kj::Vector<kj::Promise<Answered<kj::String>>>();
        for (int32_t i = 0; i < kj::min(count.value.orDefault(0), ACTIONS); ++i) {
          Arguments arguments;
          arguments.int32(i);
          asked.add(ask(object, ACTION_FACE, "GetName", arguments, "s", deadline, readText));
        }
        return kj::joinPromises(asked.releaseAsArray())
            .then([](kj::Array<Answered<kj::String>>&& answers) {
              kj::Vector<kj::String> names;
              for (auto& answer : answers) {
                KJ_IF_MAYBE (name, answer.value) {
                  names.add(kj::mv(*name));
                } else {
                  return Names{nullptr, answer.end};
                }
              }
              return Names{kj::mv(names), dbus::End::REPLIED};
            });
      });
}

kj::Promise<Answered<Rect>> Objects::extents(const ObjectRef& object, CoordinateSpace space,
                                             Deadline deadline) {
  Arguments arguments;
  arguments.uint32(static_cast<uint32_t>(space));
  return ask(object, COMPONENT_FACE, "GetExtents", arguments, "(iiii)", deadline, readRect);
}

kj::Promise<Answered<int32_t>> Objects::characterCount(const ObjectRef& object, Deadline deadline) {
  return property(object, TEXT_FACE, "CharacterCount", "i", deadline, readInt32);
}

kj::Promise<Answered<kj::String>> Objects::text(const ObjectRef& object, int32_t end,
                                                Deadline deadline) {
  Arguments arguments;
  arguments.int32(0).int32(end);
  return ask(object, TEXT_FACE, "GetText", arguments, "s", deadline, readText);
}

kj::Promise<Answered<double>> Objects::number(const ObjectRef& object, Deadline deadline) {
  return property(object, VALUE_FACE, "CurrentValue", "d", deadline,
                  [](Reader& reader) { return reader.float64(); });
}

kj::Promise<Answered<kj::String>> Objects::toolkitName(const ObjectRef& application,
                                                       Deadline deadline) {
  return property(application, APPLICATION, "ToolkitName", "s", deadline, readText);
}

kj::Promise<Answered<kj::String>> Objects::toolkitVersion(const ObjectRef& application,
                                                          Deadline deadline) {
  return property(application, APPLICATION, "Version", "s", deadline, readText);
}

kj::Promise<Answered<uint32_t>> Objects::processOf(kj::StringPtr busName, Deadline deadline) {
  Arguments arguments;
  arguments.text(busName);
  return ask(BUS, "/org/freedesktop/DBus", BUS, "GetConnectionUnixProcessID", arguments, "u",
             deadline, readUint32);
}

kj::Promise<void> Objects::wakeCache(kj::StringPtr busName, Deadline deadline) {
  if (awake.contains(busName)) return kj::READY_NOW;
  if (awake.size() >= APPLICATIONS_AWAKE) awake.clear();
  awake.insert(kj::str(busName));
  Arguments arguments;
  arguments.text("document:content-changed").noTexts().text(busName);
  return bus
      .call({"org.a11y.atspi.Registry"_kj, "/org/a11y/atspi/registry"_kj,
             "org.a11y.atspi.Registry"_kj, "RegisterEvent"_kj},
            arguments, deadline)
      .ignoreResult();
}

kj::Promise<Reply> Objects::cache(kj::StringPtr busName, Deadline deadline) {
  return bus.call({busName, "/org/a11y/atspi/cache"_kj, "org.a11y.atspi.Cache"_kj, "GetItems"_kj},
                  {}, deadline);
}

kj::Promise<wire::Answer> Objects::doAction(const ObjectRef& object, int32_t index,
                                            Deadline deadline) {
  Arguments arguments;
  arguments.int32(index);
  return bus.call(callOf(object, ACTION_FACE, "DoAction"), arguments, deadline)
      .then([](Reply&& reply) { return answerOf(reply); });
}

kj::Promise<wire::Answer> Objects::setText(const ObjectRef& object, kj::StringPtr text,
                                           Deadline deadline) {
  Arguments arguments;
  arguments.text(text);
  return bus.call(callOf(object, EDITABLE_FACE, "SetTextContents"), arguments, deadline)
      .then([](Reply&& reply) { return answerOf(reply); });
}

kj::Promise<wire::Answer> Objects::setNumber(const ObjectRef& object, double value,
                                             Deadline deadline) {
  Arguments arguments;
  arguments.text(VALUE_FACE).text("CurrentValue").variantDouble(value);
  return bus.call(callOf(object, PROPERTIES, "Set"), arguments, deadline).then([](Reply&& reply) {
    return answerOf(reply);
  });
}

ObjectRef registryRoot() {
  return {kj::str("org.a11y.atspi.Registry"), kj::str("/org/a11y/atspi/accessible/root")};
}

}  // namespace praefectus::accessibility
