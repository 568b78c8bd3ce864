#include "helper-linux/accessibility/objects.h"

#include "helper-linux/accessibility/vocabulary.h"
#include "ipc/bounds.h"

namespace praefectus::accessibility {
namespace {

using dbus::Arguments;
using dbus::Reader;
using dbus::Reply;

constexpr kj::StringPtr ACCESSIBLE = "org.a11y.atspi.Accessible"_kj;
constexpr kj::StringPtr APPLICATION = "org.a11y.atspi.Application"_kj;
constexpr kj::StringPtr ACTION_FACE = "org.a11y.atspi.Action"_kj;
constexpr kj::StringPtr COMPONENT_FACE = "org.a11y.atspi.Component"_kj;
constexpr kj::StringPtr DOCUMENT_FACE = "org.a11y.atspi.Document"_kj;
constexpr kj::StringPtr EDITABLE_FACE = "org.a11y.atspi.EditableText"_kj;
constexpr kj::StringPtr TEXT_FACE = "org.a11y.atspi.Text"_kj;
constexpr kj::StringPtr VALUE_FACE = "org.a11y.atspi.Value"_kj;
constexpr kj::StringPtr PROPERTIES = "org.freedesktop.DBus.Properties"_kj;
constexpr kj::StringPtr BUS = "org.freedesktop.DBus"_kj;

// More than any control offers; a list beyond it is not a list of actions.
constexpr int32_t ACTIONS = 32;

// Names of connections that are remembered; forgetting them costs one call each.
constexpr size_t REMEMBERED = 1024;

// What is listened to: everything that can change what an observation holds.
constexpr kj::StringPtr EVENTS = "object:"_kj;

void remember(kj::HashSet<kj::String>& names, kj::StringPtr name) {
  if (names.size() >= REMEMBERED) names.clear();
  if (!names.contains(name)) names.insert(kj::str(name));
}

uint32_t readUint32(Reader& reader) { return reader.uint32(); }
int32_t readInt32(Reader& reader) { return reader.int32(); }
kj::String readText(Reader& reader) { return readName(reader); }
// A value, which is compared as a whole.
kj::String readWhole(Reader& reader) { return kj::str(reader.text()); }

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

kj::String readName(Reader& reader) {
  auto text = reader.text();
  return kj::str(text.slice(0, kj::min(text.size(), bounds::NAME_BYTES)));
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

uint32_t readInterfaces(Reader& reader) {
  uint32_t out = 0;
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

kj::Promise<Answered<uint32_t>> Objects::interfaces(const ObjectRef& object, Deadline deadline) {
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

// The first of the named attributes that there is, or "".
template <typename... Names>
auto attributeReader(Names... wanted) {
  return [=](Reader& reader) {
    kj::String out;
    size_t end = reader.array(8);
    while (reader.more(end)) {
      reader.structure();
      auto key = reader.text();
      auto value = reader.text();
      if (out.size() == 0 && (... || (key == wanted))) out = kj::str(value);
    }
    return out;
  };
}

kj::Promise<Answered<kj::String>> Objects::domId(const ObjectRef& object, Deadline deadline) {
  return ask(object, ACCESSIBLE, "GetAttributes", {}, "a{ss}", deadline, attributeReader("id"_kj));
}

kj::Promise<Answered<kj::String>> Objects::documentUrl(const ObjectRef& object, Deadline deadline) {
  // Chromium says URI, others DocURL.
  return ask(object, DOCUMENT_FACE, "GetAttributes", {}, "a{ss}", deadline,
             attributeReader("DocURL"_kj, "URI"_kj));
}

kj::Promise<Answered<kj::String>> Objects::actionName(const ObjectRef& object, int32_t index,
                                                      Deadline deadline) {
  Arguments arguments;
  arguments.int32(index);
  return ask(object, ACTION_FACE, "GetName", arguments, "s", deadline, readText);
}

// All of them, or nothing.
kj::Promise<Answered<kj::Vector<kj::String>>> Objects::together(
    kj::Array<kj::Promise<Answered<kj::String>>> asked) {
  return kj::joinPromises(kj::mv(asked)).then([](kj::Array<Answered<kj::String>>&& answers) {
    kj::Vector<kj::String> names;
    for (auto& answer : answers) {
      KJ_IF_MAYBE (name, answer.value) {
        names.add(kj::mv(*name));
      } else {
        return Answered<kj::Vector<kj::String>>{nullptr, answer.end};
      }
    }
    return Answered<kj::Vector<kj::String>>{kj::mv(names), dbus::End::REPLIED};
  });
}

kj::Promise<Answered<kj::Vector<kj::String>>> Objects::actions(const ObjectRef& object,
                                                               Deadline deadline) {
  using Names = Answered<kj::Vector<kj::String>>;
  return property(object, ACTION_FACE, "NActions", "i", deadline, readInt32)
      .then([this, &object, deadline](Answered<int32_t>&& count) -> kj::Promise<Names> {
        if (count.value == nullptr) return Names{nullptr, count.end};
        kj::Vector<kj::Promise<Answered<kj::String>>> asked;
        for (int32_t i = 0; i < kj::min(count.value.orDefault(0), ACTIONS); ++i) {
          asked.add(actionName(object, i, deadline));
        }
        return together(asked.releaseAsArray());
      });
}

kj::Promise<Answered<kj::Vector<kj::String>>> Objects::actionsOfGtk4(const ObjectRef& object,
                                                                     Deadline deadline) {
  using Names = Answered<kj::Vector<kj::String>>;
  auto first = ask(object, ACTION_FACE, "GetActions", {}, "a(sss)", deadline, [](Reader& reader) {
    kj::Vector<kj::String> names;
    size_t end = reader.array(8);
    while (reader.more(end)) {
      reader.structure();
      names.add(kj::str(reader.text()));
      reader.text();
      reader.text();
    }
    return names;
  });
  return first.then([this, &object, deadline](Names&& answer) -> kj::Promise<Names> {
    KJ_IF_MAYBE (names, answer.value) {
      kj::Vector<kj::Promise<Answered<kj::String>>> asked;
      for (size_t i = 0; i < kj::min(names->size(), static_cast<size_t>(ACTIONS)); ++i) {
        if ((*names)[i].findFirst('.') != nullptr) {
          asked.add(Answered<kj::String>{kj::mv((*names)[i]), dbus::End::REPLIED});
        } else {
          asked.add(actionName(object, static_cast<int32_t>(i), deadline));
        }
      }
      return together(asked.releaseAsArray());
    }
    return Names{nullptr, answer.end};
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
  return ask(object, TEXT_FACE, "GetText", arguments, "s", deadline, readWhole);
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
  KJ_IF_MAYBE (known, processes.find(busName)) {
    return Answered<uint32_t>{*known, dbus::End::REPLIED};
  }
  Arguments arguments;
  arguments.text(busName);
  return ask(BUS, "/org/freedesktop/DBus", BUS, "GetConnectionUnixProcessID", arguments, "u",
             deadline, readUint32)
      .then([this, name = kj::str(busName)](Answered<uint32_t>&& answer) mutable {
        KJ_IF_MAYBE (pid, answer.value) {
          if (processes.size() >= REMEMBERED) processes.clear();
          processes.upsert(kj::mv(name), *pid, [](uint32_t&, uint32_t&&) {});
        }
        return kj::mv(answer);
      });
}

kj::Promise<bool> Objects::listenTo(kj::StringPtr busName, Deadline deadline) {
  if (heard.contains(busName)) return true;
  Arguments arguments;
  arguments.text(EVENTS).noTexts().text(busName);
  auto both = kj::heapArrayBuilder<kj::Promise<bool>>(2);
  both.add(bus.match(kj::str("type='signal',sender='", busName, "'"), deadline));
  both.add(bus.call({"org.a11y.atspi.Registry"_kj, "/org/a11y/atspi/registry"_kj,
                     "org.a11y.atspi.Registry"_kj, "RegisterEvent"_kj},
                    arguments, deadline)
               .then([](Reply&& reply) { return reply.end == dbus::End::REPLIED; }));
  return kj::joinPromises(both.finish()).then([this, name = kj::str(busName)](kj::Array<bool>&& done) {
    bool all = done[0] && done[1];
    if (all) remember(heard, name);
    return all;
  });
}

kj::Promise<Reply> Objects::cache(kj::StringPtr busName, Deadline deadline) {
  if (cacheless.contains(busName)) return Reply{dbus::End::ERROR, {}};
  return bus.call({busName, "/org/a11y/atspi/cache"_kj, "org.a11y.atspi.Cache"_kj, "GetItems"_kj},
                  {}, deadline);
}

void Objects::doWithoutCache(kj::StringPtr busName) { remember(cacheless, busName); }

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
