// Services of a desktop as a test wants them, on the buses of a private desktop: a name with
// answers behind it, on a thread of its own, and a look at who holds the accessibility switch.
#pragma once

#include "supervisor/cli/private-desktop.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct DBusConnection;
struct DBusMessage;

namespace praefectus::tests {

kj::String sessionBusOf(const PrivateDesktop& desktop);
// Where a private desktop's programs look for the system's bus. There is none until startSystemBus.
kj::String systemBusOf(const PrivateDesktop& desktop);
// A bus of the system for this desktop. It could start a logind: a program that writes the file
// `started` in the desktop's folder.
void startSystemBus(PrivateDesktop& desktop);

// What a service answers a call with: yes, no, an object's path, an error (nothing), or no answer.
struct Answer {
  enum class Kind { BOOLEAN, VARIANT_BOOLEAN, PATH, ERROR, SILENCE } kind = Kind::ERROR;
  bool yes = false;
  std::string path = "";
};

class BusService {
 public:
  // "interface.member" and the called object's path, and the first argument if it is a number.
  using Answers =
      std::function<Answer(const std::string& method, const std::string& path, uint32_t number)>;

  // Owns the name when it returns. `answers` is called on the service's thread.
  BusService(kj::StringPtr address, kj::StringPtr name, Answers answers);
  ~BusService();  // Gives the name up.
  KJ_DISALLOW_COPY(BusService);

  // Calls that were answered, or deliberately not.
  unsigned calls() const { return taken; }

 private:
  void serve();
  void answer(DBusMessage* call);

  DBusConnection* connection;
  Answers answers;
  std::atomic<unsigned> taken = 0;
  std::atomic<bool> over = false;
  std::thread thread;
};

// A screen saver, of any desktop's kind.
class ScreenSaver {
 public:
  explicit ScreenSaver(const PrivateDesktop& desktop,
                       kj::StringPtr name = "org.freedesktop.ScreenSaver"_kj);

  std::atomic<bool> active = false;
  std::atomic<bool> silent = false;
  unsigned calls() const { return service.calls(); }

 private:
  BusService service;
};

// Every value that org.a11y.Status.IsEnabled had since this began to look: the first is the one
// that it had then.
class SwitchWatch {
 public:
  explicit SwitchWatch(const PrivateDesktop& desktop);
  ~SwitchWatch();
  KJ_DISALLOW_COPY(SwitchWatch);

  // With everything in it that happened before the call.
  std::vector<bool> values();
  void set(bool enabled);

 private:
  bool ask();

  DBusConnection* connection;
  std::vector<bool> seen;
};

}  // namespace praefectus::tests
