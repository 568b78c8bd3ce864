#include "helper-linux/desktop/lock.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace praefectus::desktop {
namespace {

using dbus::Arguments;
using dbus::Connection;
using dbus::Message;
using dbus::Reader;
using dbus::Reply;

constexpr kj::Duration PATIENCE = 500 * kj::MILLISECONDS;

constexpr kj::StringPtr BUS = "org.freedesktop.DBus"_kj;
constexpr kj::StringPtr BUS_PATH = "/org/freedesktop/DBus"_kj;
constexpr kj::StringPtr LOGIND = "org.freedesktop.login1"_kj;
// The caller's own session, and without one the display session of its user. Source:
// org.freedesktop.login1(5).
constexpr kj::StringPtr OWN_SESSION = "/org/freedesktop/login1/session/auto"_kj;

// Each has GetActive in an interface of its name, at the path that the name spells: the
// freedesktop.org draft, and the desktops' own that came before it or never took it up.
constexpr kj::StringPtr SAVERS[] = {"org.freedesktop.ScreenSaver"_kj, "org.gnome.ScreenSaver"_kj,
                                    "org.cinnamon.ScreenSaver"_kj, "org.mate.ScreenSaver"_kj,
                                    "org.xfce.ScreenSaver"_kj};
constexpr kj::StringPtr SYSTEM_NAMES[] = {LOGIND};

kj::String pathOf(kj::StringPtr name) {
  return kj::str(
      "/", KJ_MAP(c, name) { return c == '.' ? '/' : c; });
}

// Locked weighs most, nothing least.
Lock heavier(Lock a, Lock b) { return std::max(a, b); }

Lock lockFrom(kj::Maybe<bool> active) {
  KJ_IF_MAYBE (locked, active) return *locked ? Lock::LOCKED : Lock::UNLOCKED;
  return Lock::UNKNOWN;
}

}  // namespace

// A connection that is kept, and which of a few names have an owner there.
class SessionLock::Bus final : public kj::Refcounted {
 public:
  Bus(kj::Own<Connection> connectionParam, kj::ArrayPtr<const kj::StringPtr> names)
      : connection(kj::mv(connectionParam)),
        names(names),
        owned(kj::heapArray<bool>(names.size())) {
    std::fill(owned.begin(), owned.end(), false);
    connection->listen([this](const Message& message) { hear(message); });
  }
  KJ_DISALLOW_COPY(Bus);

  // Until then no name is known to have an owner.
  kj::Promise<void> learn(kj::TimePoint deadline) {
    // Asked for in this order, so that no change falls between the list and the signals.
    kj::Vector<kj::Promise<void>> parts;
    for (auto name : names) {
      auto rule = kj::str("type='signal',sender='", BUS, "',interface='", BUS,
                          "',member='NameOwnerChanged',arg0='", name, "'");
      parts.add(connection->match(rule, deadline).ignoreResult());
    }
    parts.add(connection->call({BUS, BUS_PATH, BUS, "ListNames"_kj}, {}, deadline)
                  .then([this](Reply&& reply) { takeNames(reply); }));
    return kj::joinPromises(parts.releaseAsArray());
  }

  bool has(size_t index) const { return owned[index]; }
  bool lost() const { return connection->lost(); }
  kj::Promise<Reply> call(const dbus::Call& call, const Arguments& arguments,
                          kj::TimePoint deadline) {
    return connection->call(call, arguments, deadline);
  }

  kj::String logindSession;  // The path of the one that is meant; empty until known.

 private:
  void takeNames(const Reply& reply) {
    reply.decode("as", [this](Reader& reader) {
      for (size_t end = reader.array(4); reader.more(end);) set(reader.text(), true);
      return true;
    });
  }

  void hear(const Message& message) {
    bool change =
        message.sender == BUS && message.member == "NameOwnerChanged" && message.signature == "sss";
    if (!change) return;
    // What cannot be read changes nothing.
    kj::runCatchingExceptions([&]() {
      Reader reader = message.body();
      auto name = reader.text();
      reader.text();
      set(name, reader.text().size() > 0);
    });
  }

  void set(kj::StringPtr name, bool has) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) owned[i] = has;
    }
    if (name == LOGIND) logindSession = kj::String();
  }

  kj::Own<Connection> connection;
  kj::ArrayPtr<const kj::StringPtr> names;
  kj::Array<bool> owned;
};

SessionLock::SessionLock(kj::Network& network, kj::Timer& timer, kj::StringPtr sessionBus,
                         kj::StringPtr systemBus)
    : network(network), timer(timer), sessionBus(sessionBus), systemBus(systemBus) {}

SessionLock::~SessionLock() noexcept(false) {}

kj::Promise<Lock> SessionLock::ask(kj::Maybe<uint32_t> displayServer) {
  auto deadline = timer.now() + PATIENCE;
  auto parts = kj::heapArrayBuilder<kj::Promise<Lock>>(2);
  parts.add(askSavers(deadline));
  parts.add(askLogind(displayServer, deadline));
  return kj::joinPromises(parts.finish()).then([](kj::Array<Lock>&& said) {
    return heavier(said[0], said[1]);
  });
}

kj::Promise<SessionLock::MaybeBus> SessionLock::reach(MaybeBus& kept, kj::StringPtr address,
                                                      kj::ArrayPtr<const kj::StringPtr> names,
                                                      kj::TimePoint deadline) {
  KJ_IF_MAYBE (bus, kept) {
    if (!(*bus)->lost()) return MaybeBus(kj::addRef(**bus));
    kept = nullptr;
  }
  if (address.size() == 0) return MaybeBus(nullptr);
  return Connection::open(network, timer, address, deadline)
      .then([&kept, names,
             deadline](kj::Maybe<kj::Own<Connection>>&& opened) -> kj::Promise<MaybeBus> {
        KJ_IF_MAYBE (connection, opened) {
          auto bus = kj::refcounted<Bus>(kj::mv(*connection), names);
          auto& known = *bus;
          return known.learn(deadline).then([&kept, bus = kj::mv(bus)]() mutable -> MaybeBus {
            kept = kj::addRef(*bus);
            return kj::mv(bus);
          });
        }
        return MaybeBus(nullptr);
      });
}

kj::Promise<Lock> SessionLock::askSavers(kj::TimePoint deadline) {
  return reach(session, sessionBus, SAVERS, deadline)
      .then([deadline](MaybeBus&& reached) -> kj::Promise<Lock> {
        KJ_IF_MAYBE (bus, reached) {
          kj::Vector<kj::Promise<Lock>> asked;
          for (size_t i = 0; i < std::size(SAVERS); ++i) {
            if (!(*bus)->has(i)) continue;
            auto path = pathOf(SAVERS[i]);
            auto call = (*bus)->call({SAVERS[i], path, SAVERS[i], "GetActive"_kj}, {}, deadline);
            asked.add(call.then([](Reply&& reply) {
              return lockFrom(reply.decode("b", [](Reader& reader) { return reader.boolean(); }));
            }));
          }
          return kj::joinPromises(asked.releaseAsArray())
              .attach(kj::mv(*bus))
              .then([](kj::Array<Lock>&& said) {
                return std::accumulate(said.begin(), said.end(), Lock::UNKNOWN, heavier);
              });
        }
        return Lock::UNKNOWN;
      });
}

kj::Promise<Lock> SessionLock::askLogind(kj::Maybe<uint32_t> displayServer,
                                         kj::TimePoint deadline) {
  return reach(system, systemBus, SYSTEM_NAMES, deadline)
      .then([displayServer, deadline](MaybeBus&& reached) -> kj::Promise<Lock> {
        KJ_IF_MAYBE (found, reached) {
          auto& bus = **found;
          if (!bus.has(0)) return Lock::UNKNOWN;
          kj::Promise<void> located = kj::READY_NOW;
          if (bus.logindSession.size() == 0) located = locate(bus, displayServer, deadline);
          return located
              .then([&bus, deadline]() {
                Arguments arguments;
                arguments.text("org.freedesktop.login1.Session").text("LockedHint");
                return bus.call(
                    {LOGIND, bus.logindSession, "org.freedesktop.DBus.Properties"_kj, "Get"_kj},
                    arguments, deadline);
              })
              .then([&bus](Reply&& reply) {
                auto hint = reply.decode("v", [](Reader& reader) {
                  KJ_REQUIRE(reader.signature() == "b");
                  return reader.boolean();
                });
                // A session that is no more is looked for again.
                if (hint == nullptr) bus.logindSession = kj::String();
                return hint.orDefault(false) ? Lock::LOCKED : Lock::UNKNOWN;
              })
              .attach(kj::mv(*found));
        }
        return Lock::UNKNOWN;
      });
}

// The session that the display belongs to, as far as logind knows one; else our own.
kj::Promise<void> SessionLock::locate(Bus& bus, kj::Maybe<uint32_t> displayServer,
                                      kj::TimePoint deadline) {
  KJ_IF_MAYBE (pid, displayServer) {
    Arguments arguments;
    arguments.uint32(*pid);
    return bus
        .call({LOGIND, "/org/freedesktop/login1"_kj, "org.freedesktop.login1.Manager"_kj,
               "GetSessionByPID"_kj},
              arguments, deadline)
        .then([&bus](Reply&& reply) {
          auto path = reply.decode("o", [](Reader& reader) { return kj::str(reader.text()); });
          bus.logindSession = kj::mv(path).orDefault(kj::str(OWN_SESSION));
        });
  }
  bus.logindSession = kj::str(OWN_SESSION);
  return kj::READY_NOW;
}

}  // namespace praefectus::desktop
