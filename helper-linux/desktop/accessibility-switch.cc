#include "helper-linux/desktop/accessibility-switch.h"

#include "helper-linux/dbus/connection.h"
#include "ipc/bounds.h"

#include <kj/async-io.h>
#include <kj/debug.h>

#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::desktop {
namespace {

using dbus::Arguments;
using dbus::Connection;
using dbus::Reader;
using dbus::Reply;

constexpr kj::StringPtr STATUS = "org.a11y.Status"_kj;
constexpr kj::StringPtr IS_ENABLED = "IsEnabled"_kj;
constexpr int SOCKET = 3;

dbus::Call statusCall(kj::StringPtr member) {
  return {"org.a11y.Bus"_kj, "/org/a11y/bus"_kj, "org.freedesktop.DBus.Properties"_kj, member};
}

// The keeper's side, with an event loop of its own.
class Keeper {
 public:
  explicit Keeper(kj::StringPtr sessionBus)
      : io(kj::setupAsyncIo()),
        sessionBus(sessionBus),
        helper(io.lowLevelProvider->wrapSocketFd(kj::AutoCloseFd(SOCKET))) {}
  KJ_DISALLOW_COPY(Keeper);

  void keep() {
    bool changed = turnOn().wait(io.waitScope);
    static constexpr kj::byte READY = 1;
    helper->write(&READY, 1).then([]() {}, [](kj::Exception&&) {}).wait(io.waitScope);
    // The helper never writes: what comes is its end.
    kj::byte nothing;
    helper->tryRead(&nothing, 1, 1).then([](size_t) {}, [](kj::Exception&&) {}).wait(io.waitScope);
    if (changed) set(false).wait(io.waitScope);
  }

 private:
  // Whether it was off, and on is what we asked for, answered or not.
  kj::Promise<bool> turnOn() {
    return reach([this](Connection& bus) {
      Arguments arguments;
      arguments.text(STATUS).text(IS_ENABLED);
      return bus.call(statusCall("Get"_kj), arguments, deadline())
          .then([this](Reply&& reply) -> kj::Promise<bool> {
            auto enabled = reply.decode("v", [](Reader& reader) {
              KJ_REQUIRE(reader.signature() == "b");
              return reader.boolean();
            });
            if (enabled.orDefault(true)) return false;
            return set(true).then([](bool) { return true; });
          });
    });
  }

  // Whether it was taken.
  kj::Promise<bool> set(bool enabled) {
    return reach([this, enabled](Connection& bus) {
      Arguments arguments;
      arguments.text(STATUS).text(IS_ENABLED).variantBoolean(enabled);
      return bus.call(statusCall("Set"_kj), arguments, deadline()).then([](Reply&& reply) {
        return reply.end == dbus::End::REPLIED;
      });
    });
  }

  template <typename Ask>
  kj::Promise<bool> reach(Ask ask) {
    return Connection::open(io.provider->getNetwork(), io.provider->getTimer(), sessionBus,
                            deadline())
        .then([ask = kj::mv(ask)](
                  kj::Maybe<kj::Own<Connection>>&& opened) mutable -> kj::Promise<bool> {
          KJ_IF_MAYBE (bus, opened) {
            auto asked = ask(**bus);
            return asked.attach(kj::mv(*bus));
          }
          return false;
        });
  }

  kj::TimePoint deadline() { return io.provider->getTimer().now() + bounds::CALL; }

  kj::AsyncIoContext io;
  kj::StringPtr sessionBus;
  kj::Own<kj::AsyncIoStream> helper;
};

[[noreturn]] void runKeeper(int socket, kj::StringPtr sessionBus) {
  auto failed = kj::runCatchingExceptions([&]() {
    // In the helper's place: its own socket must close when it ends, and with it everything else.
    KJ_SYSCALL(dup2(socket, SOCKET));
    KJ_SYSCALL(close_range(SOCKET + 1, ~0u, 0));
    prctl(PR_SET_NAME, "pf-switch");
    // They may be meant for the helper and all of its group; its end is what counts here.
    for (int number : {SIGTERM, SIGINT, SIGHUP}) signal(number, SIG_IGN);
    Keeper(sessionBus).keep();
  });
  _exit(failed == nullptr ? EXIT_SUCCESS : EXIT_FAILURE);
}

// Whether the keeper said something or is gone.
bool heard(int socket, kj::Duration within) {
  pollfd waiting{socket, POLLIN, 0};
  return poll(&waiting, 1, static_cast<int>(within / kj::MILLISECONDS)) == 1;
}

}  // namespace

AccessibilitySwitch::AccessibilitySwitch(kj::StringPtr sessionBus) {
  int ends[2];
  // Away from descriptor 3, which is the helper's own socket in both processes.
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  socket = kj::AutoCloseFd(ends[0]);
  kj::AutoCloseFd theirs(ends[1]);
  KJ_SYSCALL(keeper = fork());
  if (keeper == 0) runKeeper(theirs, sessionBus);
  theirs = nullptr;
  kj::byte ready;
  if (heard(socket, bounds::CONNECT)) recv(socket, &ready, 1, MSG_DONTWAIT);
}

AccessibilitySwitch::~AccessibilitySwitch() noexcept(false) {
  shutdown(socket, SHUT_WR);
  if (!heard(socket, bounds::CALL)) return;
  waitpid(keeper, nullptr, 0);
}

}  // namespace praefectus::desktop
