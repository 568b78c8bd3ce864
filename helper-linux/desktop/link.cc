#include "helper-linux/desktop/link.h"

#include "ipc/bounds.h"

namespace praefectus::desktop {
namespace {

constexpr Refusal NO_DISPLAY{RefusalCode::NO_DISPLAY, "There is no display to connect to."_kj};
constexpr Refusal NO_BUS{RefusalCode::NO_ACCESSIBILITY_BUS, "There is no accessibility bus."_kj};

}  // namespace

Bus::Bus(kj::Own<dbus::Connection> connectionParam, kj::Timer& timer)
    : connection(kj::mv(connectionParam)), objects(*connection), mirror(objects, timer) {
  connection->listen([this](const dbus::Message& signal) { mirror.hear(signal); });
}

Result<kj::Own<x11::Display>> Link::display() {
  KJ_IF_MAYBE (known, screen) {
    if ((*known)->alive()) return kj::addRef(**known);
    screen = nullptr;
    lens = nullptr;
  }
  screen = x11::Display::open(addresses.display);
  KJ_IF_MAYBE (opened, screen) return kj::addRef(**opened);
  return NO_DISPLAY;
}

Result<x11::Camera*> Link::camera() {
  KJ_IF_MAYBE (known, lens) {
    if ((*known)->works()) return known->get();
  }
  lens = nullptr;
  auto opened = x11::Display::open(addresses.display);
  KJ_IF_MAYBE (own, opened) {
    auto camera = kj::refcounted<x11::Camera>(kj::mv(*own), timer);
    x11::Camera* out = camera.get();
    bool works = camera->works();
    lens = kj::mv(camera);
    if (works) return out;
    return Refusal{RefusalCode::CAPTURE_FAILED, "The display gives windows no pictures."};
  }
  return NO_DISPLAY;
}

Result<x11::Drawing*> Link::drawing() {
  KJ_IF_MAYBE (known, drawn) {
    if ((*known)->works()) return known->get();
  }
  drawn = nullptr;
  auto opened = x11::Display::open(addresses.display);
  KJ_IF_MAYBE (own, opened) {
    x11::Drawing* out = drawn.emplace(kj::heap<x11::Drawing>(kj::mv(*own))).get();
    if (out->works()) return out;
    return Refusal{RefusalCode::CAPTURE_FAILED, "The display does not tell what is drawn."};
  }
  return NO_DISPLAY;
}

kj::TimePoint Link::callDeadline() const { return timer.now() + bounds::CALL; }

kj::Promise<Result<kj::Own<Bus>>> Link::bus() {
  using Found = Result<kj::Own<Bus>>;
  KJ_IF_MAYBE (known, accessibilityBus) {
    if (!(*known)->objects.lost()) return Found(kj::addRef(**known));
    accessibilityBus = nullptr;
  }
  return busAddress()
      .then([this](kj::String&& address) {
        auto opening = dbus::Connection::open(network, timer, address, callDeadline());
        return opening.attach(kj::mv(address));
      })
      .then([this](kj::Maybe<kj::Own<dbus::Connection>>&& opened) -> Found {
        KJ_IF_MAYBE (connection, opened) {
          auto bus = kj::refcounted<Bus>(kj::mv(*connection), timer);
          auto out = kj::addRef(*bus);
          accessibilityBus = kj::mv(bus);
          return kj::mv(out);
        }
        return NO_BUS;
      });
}

kj::Promise<Lock> Link::lock() {
  kj::Maybe<uint32_t> server;
  KJ_IF_MAYBE (known, screen) server = (*known)->serverProcess();
  return sessionLock.ask(server);
}

// Where the accessibility bus is: the session bus knows when its launcher runs, and otherwise the
// display may. Neither is asked to start it, since reading changes nothing.
kj::Promise<kj::String> Link::busAddress() {
  return dbus::Connection::open(network, timer, addresses.sessionBus, callDeadline())
      .then([this](kj::Maybe<kj::Own<dbus::Connection>>&& opened) -> kj::Promise<kj::String> {
        KJ_IF_MAYBE (connection, opened) {
          dbus::Call call{"org.a11y.Bus"_kj, "/org/a11y/bus"_kj, "org.a11y.Bus"_kj,
                          "GetAddress"_kj};
          auto asked = (*connection)->call(call, {}, callDeadline());
          return asked.attach(kj::mv(*connection)).then([](dbus::Reply&& reply) {
            auto address =
                reply.decode("s", [](dbus::Reader& reader) { return kj::str(reader.text()); });
            return kj::mv(address).orDefault(kj::String());
          });
        }
        return kj::String();
      })
      .then([this](kj::String&& address) {
        if (address.size() > 0) return kj::mv(address);
        auto screenNow = display();
        if (!screenNow.ok()) return kj::String();
        KJ_IF_MAYBE (announced, (*screenNow)->accessibilityBus()) return kj::mv(*announced);
        return kj::String();
      });
}

}  // namespace praefectus::desktop
