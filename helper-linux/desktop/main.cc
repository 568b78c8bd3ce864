// The desktop helper: one socket on descriptor 3, one display, one accessibility bus, nothing else.
#include "attest/digest.h"
#include "helper-linux/desktop/driver.h"
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

int serve(uint64_t generation) {
  attest::initialize();
  auto io = kj::setupAsyncIo();
  auto& timer = io.provider->getTimer();
  desktop::Link link(io.provider->getNetwork(), timer,
                     {environment("DISPLAY"), environment("DBUS_SESSION_BUS_ADDRESS")});
  desktop::LinuxDriver driver(link, timer);
  HelperSelf self{NAME, PRAEFECTUS_RELEASE, Role::DESKTOP, generation};
  KeyedHash hash = [](Bytes key, Bytes message) {
    return key.size() > 0 ? attest::keyedDigest(key, message) : attest::digestOf(message);
  };
  return serveHelper(*io.lowLevelProvider, timer, kj::AutoCloseFd(SOCKET), self, driver,
                     kj::mv(hash))
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
