// Typed calls to accessible objects. Each is one D-Bus call with its own deadline; what an
// application answers wrongly counts as an error of that one call.
//
// Rules learned from real toolkits, kept here so that no caller can break them:
// * Never Properties.GetAll: it crashes Qt 5.15. Only Get of one named property.
// * Coordinates are asked relative to the window; GTK 4 knows no others and warns on each call.
// Only
//   Qt is asked for those of the screen, since it calculates the others wrongly (node.h).
// * Text to the end is asked as (0, -1): Qt answers an empty string for an end beyond the text.
#pragma once

#include "helper-linux/dbus/connection.h"
#include "ipc/desktop.h"

namespace praefectus::accessibility {

// A live object: the unique bus name of its process's connection, and its path there.
struct ObjectRef {
  kj::String bus;
  kj::String path;

  ObjectRef clone() const { return {kj::str(bus), kj::str(path)}; }
  bool operator==(const ObjectRef& other) const { return bus == other.bus && path == other.path; }
};

template <typename T>
struct Answered {
  kj::Maybe<T> value;
  dbus::End end = dbus::End::LOST;

  bool silent() const { return end == dbus::End::LATE || end == dbus::End::LOST; }
};

enum class CoordinateSpace : uint32_t { SCREEN = 0, WINDOW = 1 };

class Objects {
 public:
  explicit Objects(dbus::Connection& bus) : bus(bus) {}

  using Deadline = kj::TimePoint;

  kj::Promise<Answered<uint32_t>> role(const ObjectRef& object, Deadline deadline);
  kj::Promise<Answered<kj::String>> name(const ObjectRef& object, Deadline deadline);
  kj::Promise<Answered<uint64_t>> states(const ObjectRef& object, Deadline deadline);
  kj::Promise<Answered<uint32_t>> interfaces(const ObjectRef& object, Deadline deadline);
  kj::Promise<Answered<int32_t>> childCount(const ObjectRef& object, Deadline deadline);
  // Only after childCount: asking a spreadsheet for all its cells once took 23 GB.
  kj::Promise<Answered<kj::Vector<ObjectRef>>> children(const ObjectRef& object, Deadline deadline);
  kj::Promise<Answered<ObjectRef>> childAt(const ObjectRef& object, uint32_t index,
                                           Deadline deadline);
  kj::Promise<Answered<ObjectRef>> parent(const ObjectRef& object, Deadline deadline);
  kj::Promise<Answered<kj::String>> accessibleId(const ObjectRef& object, Deadline deadline);
  // The id that a web page gave an element; "" for none.
  kj::Promise<Answered<kj::String>> domId(const ObjectRef& object, Deadline deadline);
  // Of a web document.
  kj::Promise<Answered<kj::String>> documentUrl(const ObjectRef& object, Deadline deadline);

  // By their names. GetActions would be one call, but answers with names in the person's language.
  kj::Promise<Answered<kj::Vector<kj::String>>> actions(const ObjectRef& object, Deadline deadline);
  // The same with fewer calls: GTK 4 translates only the names of its own actions, and those that
  // widgets bring, which have a dot in them, are most of them.
  kj::Promise<Answered<kj::Vector<kj::String>>> actionsOfGtk4(const ObjectRef& object,
                                                              Deadline deadline);
  kj::Promise<Answered<Rect>> extents(const ObjectRef& object, CoordinateSpace space,
                                      Deadline deadline);
  kj::Promise<Answered<int32_t>> characterCount(const ObjectRef& object, Deadline deadline);
  // Characters [0, end); -1 for all.
  kj::Promise<Answered<kj::String>> text(const ObjectRef& object, int32_t end, Deadline deadline);
  kj::Promise<Answered<double>> number(const ObjectRef& object, Deadline deadline);

  kj::Promise<Answered<kj::String>> toolkitName(const ObjectRef& application, Deadline deadline);
  kj::Promise<Answered<kj::String>> toolkitVersion(const ObjectRef& application, Deadline deadline);
  // Asked once for each connection: the bus never gives a unique name twice.
  kj::Promise<Answered<uint32_t>> processOf(kj::StringPtr busName, Deadline deadline);

  // Makes an application tell of its changes, to us and only it: what it says is heard by the
  // listener of the connection. GTK 3 and Chromium keep their cache only while somebody listens.
  // Ended with our connection. Asked until it succeeded once; whether it has.
  kj::Promise<bool> listenTo(kj::StringPtr busName, Deadline deadline);
  // Everything an application keeps in its cache, in one call. Not decoded: the signature tells
  // which of several layouts it has (cache.h). Nothing is asked of an application whose cache came
  // too late or in an unknown layout before.
  kj::Promise<dbus::Reply> cache(kj::StringPtr busName, Deadline deadline);
  void doWithoutCache(kj::StringPtr busName);

  // The only three calls that change anything. The answer is the control's own word, never
  // evidence.
  kj::Promise<wire::Answer> doAction(const ObjectRef& object, int32_t index, Deadline deadline);
  kj::Promise<wire::Answer> setText(const ObjectRef& object, kj::StringPtr text, Deadline deadline);
  kj::Promise<wire::Answer> setNumber(const ObjectRef& object, double value, Deadline deadline);

  bool lost() const { return bus.lost(); }

 private:
  kj::Promise<Answered<kj::String>> actionName(const ObjectRef& object, int32_t index,
                                               Deadline deadline);
  static kj::Promise<Answered<kj::Vector<kj::String>>> together(
      kj::Array<kj::Promise<Answered<kj::String>>> asked);

  template <typename Read>
  auto ask(kj::StringPtr destination, kj::StringPtr path, kj::StringPtr interface,
           kj::StringPtr member, const dbus::Arguments& arguments, kj::StringPtr signature,
           Deadline deadline, Read read);
  template <typename Read>
  auto ask(const ObjectRef& object, kj::StringPtr interface, kj::StringPtr member,
           const dbus::Arguments& arguments, kj::StringPtr signature, Deadline deadline, Read read);
  template <typename Read>
  auto property(const ObjectRef& object, kj::StringPtr interface, kj::StringPtr name,
                kj::StringPtr type, Deadline deadline, Read read);

  dbus::Connection& bus;
  // By the names of connections. Bounded: forgetting costs one call each.
  kj::HashSet<kj::String> heard, cacheless;
  kj::HashMap<kj::String, uint32_t> processes;
};

// Pieces of replies that the cache's layout shares.
ObjectRef readObject(dbus::Reader& reader);
// A text that an application calls something by, to bounds::NAME_BYTES.
kj::String readName(dbus::Reader& reader);
uint64_t readStates(dbus::Reader& reader);
uint32_t readInterfaces(dbus::Reader& reader);

// The desktop's list of accessible applications, as an object whose children they are.
ObjectRef registryRoot();

}  // namespace praefectus::accessibility
