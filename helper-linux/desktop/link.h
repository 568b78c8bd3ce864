// The helper's two ways to the desktop: the X display and the accessibility bus. Each is connected
// when first needed, and again after it was lost; neither keeps the helper from starting.
#pragma once

#include "helper-linux/accessibility/objects.h"
#include "helper-linux/x11/camera.h"
#include "helper-linux/x11/display.h"

namespace praefectus::desktop {

// A connection to the accessibility bus. Counted, since an operation in flight outlives its loss.
struct Bus final : public kj::Refcounted {
  explicit Bus(kj::Own<dbus::Connection> connection)
      : connection(kj::mv(connection)), objects(*this->connection) {}
  kj::Own<dbus::Connection> connection;
  accessibility::Objects objects;
};

class Link {
 public:
  // Names as the environment gives them; null for what it does not name.
  struct Addresses {
    kj::StringPtr display;
    kj::StringPtr sessionBus;
  };

  Link(kj::Network& network, kj::Timer& timer, Addresses addresses)
      : network(network), timer(timer), addresses(addresses) {}
  KJ_DISALLOW_COPY(Link);

  // Refuses: NO_DISPLAY.
  Result<kj::Own<x11::Display>> display();
  Result<x11::Camera*> camera();
  // Within bounds::CALL twice over. Refuses: NO_ACCESSIBILITY_BUS.
  kj::Promise<Result<kj::Own<Bus>>> bus();

 private:
  kj::Promise<kj::String> busAddress();
  kj::TimePoint callDeadline() const;

  kj::Network& network;
  kj::Timer& timer;
  Addresses addresses;
  kj::Maybe<kj::Own<x11::Display>> screen;
  kj::Maybe<kj::Own<x11::Camera>> lens;
  kj::Maybe<kj::Own<Bus>> accessibilityBus;
};

}  // namespace praefectus::desktop
