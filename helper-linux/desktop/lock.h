// Whether the person's session is locked, by what the desktop itself says: its screen saver on the
// session bus, and the session's record at logind on the system bus.
//
// Nobody is asked to start, and nobody who is not there is asked. Both connections are kept, and a
// name's coming and going is listened for, so that a desktop without either costs nothing.
#pragma once

#include "helper-linux/dbus/connection.h"
#include "ipc/desktop.h"

#include <kj/refcount.h>

namespace praefectus::desktop {

class SessionLock {
 public:
  // Addresses of the two buses; null for one that there is not.
  SessionLock(kj::Network& network, kj::Timer& timer, kj::StringPtr sessionBus,
              kj::StringPtr systemBus);
  ~SessionLock() noexcept(false);
  KJ_DISALLOW_COPY(SessionLock);

  // LOCKED when anybody says so, an active screen saver included: what it covers is not what the
  // person shows. UNLOCKED when a screen saver says so. UNKNOWN when nobody there answers within
  // half a second; and logind's "not locked" alone is no answer, since it only repeats what a
  // locker told it, and many tell it nothing. `displayServer` is the X server's process: its
  // session is meant. Never throws.
  kj::Promise<Lock> ask(kj::Maybe<uint32_t> displayServer);

 private:
  class Bus;
  using MaybeBus = kj::Maybe<kj::Own<Bus>>;

  kj::Promise<MaybeBus> reach(MaybeBus& kept, kj::StringPtr address,
                              kj::ArrayPtr<const kj::StringPtr> names, kj::TimePoint deadline);
  kj::Promise<Lock> askSavers(kj::TimePoint deadline);
  static kj::Promise<void> locate(Bus& bus, kj::Maybe<uint32_t> displayServer,
                                  kj::TimePoint deadline);
  kj::Promise<Lock> askLogind(kj::Maybe<uint32_t> displayServer, kj::TimePoint deadline);

  kj::Network& network;
  kj::Timer& timer;
  kj::StringPtr sessionBus, systemBus;
  MaybeBus session, system;
};

}  // namespace praefectus::desktop
