#include "helper-linux/desktop/driver.h"

#include "helper-linux/desktop/capturing.h"
#include "helper-linux/desktop/connected.h"
#include "helper-linux/desktop/effect.h"
#include "helper-linux/desktop/observing.h"
#include "helper-linux/desktop/process.h"
#include "ipc/bounds.h"

#include <algorithm>

namespace praefectus::desktop {
namespace {

using accessibility::AccessibleApplication;
using Prepared = Result<kj::Own<PreparedAction>>;

AppState stateOf(const AccessibleApplication& application) {
  if (!application.answering) return AppState::NOT_ANSWERING;
  return application.windows.empty() ? AppState::WARMING_UP : AppState::READY;
}

// What can be done, and how it can be proven: from what is read of an element and its windows.
constexpr kj::StringPtr ACTING[] = {"invoke"_kj,      "set_value"_kj,     "proof_value"_kj,
                                    "proof_state"_kj, "proof_appears"_kj, "proof_disappears"_kj};

bool isOffered(const Action& action) {
  bool act = action.act.is<InvokeRequest>() || action.act.is<SetValueRequest>();
  return act && action.target.is<ElementTarget>() &&
         action.verification.kind() != Proof::REGION_CHANGED;
}

// One process may register several times; what it does best is what it is.
unsigned rank(AppState state) {
  switch (state) {
    case AppState::READY:
      return 3;
    case AppState::NOT_ANSWERING:
      return 2;
    case AppState::WARMING_UP:
      return 1;
    case AppState::UNREGISTERED:
    case AppState::ACCESSIBILITY_OFF:
      return 0;
  }
  return 0;
}

// Adds an application, or improves the one that is there for its process.
void add(Desktop& desktop, Application application) {
  for (auto& known : desktop.applications) {
    if (known.process.pid != application.process.pid) continue;
    if (rank(application.state) > rank(known.state)) known = kj::mv(application);
    return;
  }
  if (desktop.applications.size() < bounds::APPLICATIONS) {
    desktop.applications.add(kj::mv(application));
  } else {
    desktop.cut = true;
  }
}

template <typename List>
bool contains(const List& list, uint32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// What is said of a desktop, as it comes in: the registered applications, the windows, and who else
// is on the bus.
class Listing {
 public:
  Listing(Link& link, kj::Timer& timer, kj::Own<x11::Display> display)
      : link(link), timer(timer), display(kj::mv(display)) {}
  KJ_DISALLOW_COPY(Listing);

  kj::Promise<Result<Desktop>> run(Bus& bus) {
    auto parts = kj::heapArrayBuilder<kj::Promise<void>>(2);
    parts.add(link.lock().then([this](Lock lock) { out.lock = lock; }));
    parts.add(accessibility::readApplications(bus.objects, nullptr, timer.now() + bounds::CALL)
                  .then([this](kj::Maybe<Applications>&& read) { found = kj::mv(read); }));
    return kj::joinPromises(parts.finish()).then([this, &bus]() -> kj::Promise<Result<Desktop>> {
      KJ_IF_MAYBE (applications, found) return describe(bus, *applications);
      return Result<Desktop>(
          Refusal{RefusalCode::NO_ACCESSIBILITY_BUS, "The registry does not answer."});
    });
  }

 private:
  kj::Promise<Result<Desktop>> describe(Bus& bus, Applications& applications) {
    addApplications(applications);
    tops = display->topLevels(windowsCut);
    return findUnregistered(bus).then([this, &applications]() -> Result<Desktop> {
      addWindows(applications);
      describeScreen();
      return kj::mv(out);
    });
  }

  void addApplications(Applications& applications) {
    for (auto& each : applications) {
      registered.add(each->pid);
      out.cut = out.cut || each->cut;
      KJ_IF_MAYBE (start, startOf(each->pid)) {
        add(out, {{each->pid, *start},
                  kj::str(each->name),
                  kj::str(each->toolkit.name),
                  kj::str(each->toolkit.version),
                  stateOf(*each)});
      }
    }
  }

  // Asked only when there is a window that no registered application can have. The time that silent
  // applications took is over by now, and the bus is not one of them.
  kj::Promise<void> findUnregistered(Bus& bus) {
    bool all = std::all_of(tops.begin(), tops.end(),
                           [this](auto& top) { return contains(registered, top.pid); });
    if (all) return kj::READY_NOW;
    return connectedProcesses(bus, timer.now() + bounds::CALL)
        .then([this](kj::Vector<uint32_t>&& processes) { connected = kj::mv(processes); });
  }

  void addWindows(Applications& applications) {
    for (auto& top : tops) {
      uint64_t start = startOf(top.pid).orDefault(0);
      // A window that no live process of this machine owns cannot be named, let alone acted on.
      if (start == 0) continue;
      if (!contains(registered, top.pid)) {
        bool isOnBus = contains(connected, top.pid);
        add(out, {{top.pid, start},
                  kj::str(),
                  kj::str(),
                  kj::str(),
                  isOnBus ? AppState::UNREGISTERED : AppState::ACCESSIBILITY_OFF});
      }
      Window window;
      window.ref = {{top.pid, start}, top.id};
      window.title = kj::str(top.title);
      window.bounds = top.bounds;
      window.visible = top.visible;
      window.active = top.active;
      window.stacking = static_cast<uint32_t>(out.windows.size());
      window.accessible = matches(top, tops, applications).size() == 1;
      window.kind = top.kind;
      window.owner = top.owner;
      window.modal = top.modal;
      window.managed = top.managed;
      out.windows.add(kj::mv(window));
    }
    out.cut = out.cut || windowsCut;
  }

  void describeScreen() {
    out.display = kj::str(display->name());
    auto layout = display->layout();
    out.monitors = link.monitors().list(layout);
    out.topology = layout.topology;
  }

  Link& link;
  kj::Timer& timer;
  kj::Own<x11::Display> display;
  kj::Maybe<Applications> found;
  kj::Vector<uint32_t> registered, connected;
  kj::Vector<x11::TopLevel> tops;
  bool windowsCut = false;
  Desktop out;
};

}  // namespace

kj::Promise<kj::Vector<Capability>> LinuxDriver::capabilities() {
  auto display = link.display();
  bool watched = display.ok() && (*display)->hasInput();
  kj::Maybe<RefusalCode> noDisplay, noPicture;
  if (display.ok()) {
    auto camera = link.camera();
    if (!camera.ok()) noPicture = camera.refusal().code;
  } else {
    noDisplay = display.refusal().code;
  }
  return link.bus()
      .then([this](Result<kj::Own<Bus>>&& bus) -> kj::Promise<kj::Maybe<RefusalCode>> {
        if (!bus.ok()) return kj::Maybe<RefusalCode>(bus.refusal().code);
        auto& objects = (*bus)->objects;
        auto root = kj::heap(accessibility::registryRoot());
        auto asked = objects.childCount(*root, timer.now() + bounds::CALL);
        return asked.attach(kj::mv(root), kj::mv(*bus))
            .then([](accessibility::Answered<int32_t>&& count) -> kj::Maybe<RefusalCode> {
              if (count.value == nullptr) return RefusalCode::NO_ACCESSIBILITY_BUS;
              return nullptr;
            });
      })
      .then([noDisplay, noPicture, watched](kj::Maybe<RefusalCode>&& noBus) {
        kj::Vector<Capability> out;
        auto report = [&out](kj::StringPtr name, kj::Maybe<RefusalCode> why) {
          Capability capability{name, why == nullptr, {}};
          KJ_IF_MAYBE (code, why) capability.why = *code;
          out.add(capability);
        };
        auto reading = noDisplay == nullptr ? noBus : noDisplay;
        // Without XInput 2 nobody could show that an action left the person's desktop alone.
        auto acting = reading;
        if (reading == nullptr && !watched) acting = RefusalCode::UNSUPPORTED_ACTION;
        report("list", reading);
        report("observe", reading);
        auto picturing = noDisplay == nullptr ? noPicture : noDisplay;
        report("picture", reading == nullptr ? noPicture : reading);
        report("screenshot", picturing);
        report("zoom", reading == nullptr ? noPicture : reading);
        for (auto name : ACTING) report(name, acting);
        return out;
      });
}

kj::Promise<Result<Desktop>> LinuxDriver::list() {
  auto display = link.display();
  if (!display.ok()) return Result<Desktop>(display.refusal());
  return link.bus().then([this, display = kj::mv(*display)](
                             Result<kj::Own<Bus>>&& bus) mutable -> kj::Promise<Result<Desktop>> {
    if (!bus.ok()) return Result<Desktop>(bus.refusal());
    auto listing = kj::heap<Listing>(link, timer, kj::mv(display));
    auto listed = listing->run(**bus);
    return listed.attach(kj::mv(listing), kj::mv(*bus));
  });
}

kj::Promise<Result<Observation>> LinuxDriver::observe(WindowRef window, FrameId id, uint64_t epoch,
                                                      ObserveAct request) {
  // The session's earlier frame is spent whether or not this reading succeeds.
  auto before = kj::mv(frame);
  frame = nullptr;
  KJ_IF_MAYBE (earlier, before) (*earlier)->current = false;
  auto observing =
      kj::heap<Observing>(link, timer, window, id, epoch, kj::mv(request), kj::mv(before));
  auto reading = observing->run();
  return reading.then([this, observing = kj::mv(observing)](Result<Observation>&& seen) mutable {
    if (seen.ok()) frame = observing->takeFrame();
    return kj::mv(seen);
  });
}

kj::Promise<Result<Picture>> LinuxDriver::capture(Action action) {
  auto present = frame.map([](kj::Own<ObservedFrame>& held) { return kj::addRef(*held); });
  auto capturing = kj::heap<Capturing>(link, kj::mv(present), kj::mv(action));
  auto taken = capturing->run();
  return taken.attach(kj::mv(capturing));
}

kj::Promise<Prepared> LinuxDriver::prepare(Action action) {
  if (!isOffered(action)) {
    return Prepared(Refusal{RefusalCode::UNSUPPORTED_ACTION, "It cannot be done or proven here."});
  }
  auto& target = action.target.get<ElementTarget>();
  KJ_IF_MAYBE (held, frame) {
    auto& known = **held;
    if (known.id != target.frame) {
      return Prepared(Refusal{RefusalCode::STALE_FRAME, "The frame is not the last one."});
    }
    if (known.epoch != target.epoch) {
      return Prepared(Refusal{RefusalCode::STALE_EPOCH, "The frame has another epoch."});
    }
    if (!(known.window == target.window)) {
      return Prepared(Refusal{RefusalCode::TARGET_MISMATCH, "The frame shows another window."});
    }
    auto effect = kj::heap<Effect>(link, timer, kj::addRef(known), kj::mv(action));
    auto checked = effect->check();
    return checked.then([effect = kj::mv(effect),
                         shown = kj::addRef(known)](Result<Done>&& done) mutable -> Prepared {
      if (!done.ok()) {
        // What was shown was no longer so: the next look reads everything anew.
        shown->bus->mirror.distrust(shown->window.window);
        return done.refusal();
      }
      return kj::Own<PreparedAction>(kj::mv(effect));
    });
  }
  return Prepared(Refusal{RefusalCode::STALE_FRAME, "There is no frame."});
}

}  // namespace praefectus::desktop
