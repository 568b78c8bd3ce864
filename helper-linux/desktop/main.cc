// The desktop helper: one socket on descriptor 3, one display, one accessibility bus, nothing else.
#include "attest/digest.h"
#include "helper-linux/desktop/accessibility-switch.h"
#include "helper-linux/desktop/driver.h"
#include "helper-linux/x11/png.h"
#include "ipc/helper-server.h"

#include <kj/async-unix.h>
#include <kj/debug.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace praefectus {
namespace {

constexpr int SOCKET = 3;
constexpr int USAGE = 2;
constexpr kj::StringPtr NAME = "praefectus-desktop-linux"_kj;

// What it reads of a person's screen must not be found in a core file or by a debugger.
void closeUp() {
  KJ_SYSCALL(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
  KJ_SYSCALL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  rlimit none{0, 0};
  KJ_SYSCALL(setrlimit(RLIMIT_CORE, &none));
}

// {name, "--role", "desktop", "--generation", number}; anything else is not ours to serve.
kj::Maybe<uint64_t> generationFrom(int argc, char** argv) {
  if (argc != 5 || strcmp(argv[1], "--role") != 0 || strcmp(argv[2], "desktop") != 0 ||
      strcmp(argv[3], "--generation") != 0) {
    return nullptr;
  }
  char* end = nullptr;
  uint64_t number = strtoull(argv[4], &end, 10);
  if (end == argv[4] || *end != 0) return nullptr;
  return number;
}

kj::StringPtr environment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? kj::StringPtr(value) : kj::StringPtr();
}

// Where the system's bus is when the environment does not say. Source: D-Bus Specification, "System
// message bus".
constexpr kj::StringPtr SYSTEM_BUS = "unix:path=/run/dbus/system_bus_socket"_kj;

int serve(uint64_t generation) {
  attest::initialize();
  auto sessionBus = environment("DBUS_SESSION_BUS_ADDRESS");
  auto systemBus = environment("DBUS_SYSTEM_BUS_ADDRESS");
  if (systemBus == nullptr) systemBus = SYSTEM_BUS;
  kj::Maybe<desktop::AccessibilitySwitch> accessibility;
  if (environment(desktop::ACCESSIBILITY_SETTING.cStr()) == desktop::ACCESSIBILITY_ON) {
    accessibility.emplace(sessionBus);
  }
  auto io = kj::setupAsyncIo();
  auto& timer = io.provider->getTimer();
  desktop::Link link(io.provider->getNetwork(), timer,
                     {environment("DISPLAY"), sessionBus, systemBus});
  desktop::LinuxDriver driver(link, timer);
  HelperSelf self{NAME, PRAEFECTUS_RELEASE, Role::DESKTOP, generation};
  KeyedHash hash = [](Bytes key, Bytes message) {
    return key.size() > 0 ? attest::keyedDigest(key, message) : attest::digestOf(message);
  };
  return serveHelper(*io.lowLevelProvider, timer, kj::AutoCloseFd(SOCKET), self, driver,
                     kj::mv(hash), x11::encodePng)
      .wait(io.waitScope);
}

}  // namespace
}  // namespace praefectus

int main(int argc, char** argv) {
  KJ_IF_MAYBE (generation, praefectus::generationFrom(argc, argv)) {
    praefectus::closeUp();
    return praefectus::serve(*generation);
  }
  fputs("This program is started by the Praefectus supervisor, with a socket on descriptor 3.\n",
        stderr);
  return praefectus::USAGE;
}
