// How the strange application speaks AT-SPI: libdbus on the accessibility bus, one call after the
// other, as a toolkit's main loop does.
#pragma once

#include "tests/helper-linux/strange-scene.h"

#include <dbus/dbus.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace strange {

// Where the window is on the screen, for the one question that asks it.
struct Point {
  int32_t x = 0, y = 0;
};

class Body;

class AccessibilityBus {
 public:
  using Note = std::function<void(const std::string& line)>;
  using Place = std::function<Point()>;

  // Connects, by the session bus's word of where. Exits the process when there is none.
  AccessibilityBus(const Options& options, Scene& scene, Note note, Place place);
  ~AccessibilityBus();
  AccessibilityBus(const AccessibilityBus&) = delete;
  AccessibilityBus& operator=(const AccessibilityBus&) = delete;

  // Tells the registry that there is an application.
  void embed();
  int descriptor() const;  // -1 when the bus has cut us off.
  bool wantsToWrite() const;
  // Reads and writes what can be, and answers what has come.
  void turn();
  void tell(const std::vector<Event>& events);

  // Notes how often each member was asked for since the last time: "asked <member> <times>".
  void noteCounts();

 private:
  friend struct Calls;

  void answer(DBusMessage* call);
  void answerOdd(DBusMessage* call, Object& object);
  void answerOrdinary(DBusMessage* call, Object& object);
  void answerCache(DBusMessage* call);
  void send(DBusMessage* message);  // And forgets it.
  void sendError(DBusMessage* call, const char* name);
  void sendNotText(DBusMessage* call);
  void count(const std::string& member, bool ofElement);

  void appendObject(Body& body, const std::string& path) const;
  void appendChild(Body& body, const Object& parent, int32_t index) const;
  void appendItem(Body& body, const Object& object, int32_t index) const;
  void tellOne(const Event& event);

  const Options& options;
  Scene& scene;
  Note note;
  Place place;
  DBusConnection* connection = nullptr;
  std::string name;
  std::string registry;  // The unique name of an object of another process.
  std::map<std::string, unsigned> counts;
  unsigned ofElements = 0;
};

}  // namespace strange
