// The helper's two ways to the desktop: the X display and the accessibility bus. Each is connected
// when first needed, and again after it was lost; neither keeps the helper from starting.
#pragma once

#include "helper-linux/accessibility/mirror.h"
#include "helper-linux/desktop/lock.h"
#include "helper-linux/desktop/monitors.h"
#include "helper-linux/x11/camera.h"
#include "helper-linux/x11/display.h"
#include "helper-linux/x11/drawing.h"

namespace praefectus::desktop {

// A connection to the accessibility bus. Counted, since an operation in flight outlives its loss.
struct Bus final : public kj::Refcounted {
  Bus(kj::Own<dbus::Connection> connection, kj::Timer& timer);
  kj::Own<dbus::Connection> connection;
  accessibility::Objects objects;
  accessibility::Mirror mirror;
  kj::HashSet<uint64_t> pageless;  // Windows of browsers that were waited for and offer no page.
};

class Link {
 public:
  // Names as the environment gives them; null for what it does not name.
  struct Addresses {
    kj::StringPtr display;
    kj::StringPtr sessionBus;
    kj::StringPtr systemBus;
  };

  Link(kj::Network& network, kj::Timer& timer, Addresses addresses)
      : network(network),
        timer(timer),
        addresses(addresses),
        sessionLock(network, timer, addresses.sessionBus, addresses.systemBus) {}
  KJ_DISALLOW_COPY(Link);

  // Refuses: NO_DISPLAY.
  Result<kj::Own<x11::Display>> display();
  Result<x11::Camera*> camera();
  Result<x11::Drawing*> drawing();
  // Within bounds::CALL three times over, when it has to connect. Refuses: NO_ACCESSIBILITY_BUS.
  kj::Promise<Result<kj::Own<Bus>>> bus();
  // Within half a second; UNKNOWN when nobody says. Never throws.
  kj::Promise<Lock> lock();
  const Monitors& monitors() const { return monitorIds; }

 private:
  kj::Promise<kj::String> busAddress();
  kj::TimePoint callDeadline() const;

  kj::Network& network;
  kj::Timer& timer;
  Addresses addresses;
  kj::Maybe<kj::Own<x11::Display>> screen;
  kj::Maybe<kj::Own<x11::Camera>> lens;
  kj::Maybe<kj::Own<x11::Drawing>> drawn;
  kj::Maybe<kj::Own<Bus>> accessibilityBus;
  SessionLock sessionLock;
  Monitors monitorIds;
};

}  // namespace praefectus::desktop
