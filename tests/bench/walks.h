// What the helper's observations are measured against: an application read by others. libdbus one
// call at a time, and libatspi in a process of its own.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include <string>

#include <sys/types.h>

struct DBusConnection;

namespace praefectus::bench {

struct Reading {
  double time = 0;      // Microseconds.
  size_t elements = 0;  // How many it held, so that readings can be told to be of the same thing.
  bool cut = false;     // It was not everything.
};

// An object on the accessibility bus.
struct Place {
  std::string bus, path;
};

class OneAtATime {
 public:
  // `environment` names the session bus whose accessibility bus is meant.
  explicit OneAtATime(kj::ArrayPtr<const kj::String> environment);
  ~OneAtATime();
  KJ_DISALLOW_COPY(OneAtATime);

  Place applicationOf(pid_t process);
  // The window of an application whose name contains this text.
  Place windowOf(const Place& application, kj::StringPtr title);
  // GTK 3 keeps its items only while somebody listens. For as long as this lives.
  void listen(const Place& application);

  // The application's own Cache.GetItems, until the whole answer is there.
  Reading items(const Place& application);
  // Every element of the window: role, states, interfaces, name, child count, children and extents,
  // a call each, each waited for.
  Reading walk(const Place& window);

 private:
  DBusConnection* connection;
};

// A walk by praefectus-second-reader, in a new process: libatspi has nothing in its cache yet. The
// time is of the walk alone, without the start and the search for the window.
Reading walkByLibatspi(kj::ArrayPtr<const kj::String> environment, pid_t process,
                       kj::StringPtr title, bool cached);

}  // namespace praefectus::bench
