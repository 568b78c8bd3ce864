#include "helper-linux/desktop/driver.h"

#include "helper-linux/desktop/effect.h"
#include "helper-linux/desktop/observing.h"
#include "helper-linux/desktop/process.h"
#include "ipc/bounds.h"

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

Desktop describe(x11::Display& display, Applications& found) {
  Desktop out;
  out.display = kj::str(display.name());
  for (auto& each : found) {
    KJ_IF_MAYBE (start, startOf(each->pid)) {
      add(out,
          {{each->pid, *start}, kj::str(each->name), kj::str(each->toolkit.name), stateOf(*each)});
    }
  }
  bool cut = false;
  auto tops = display.topLevels(cut);
  out.cut = out.cut || cut;
  for (auto& top : tops) {
    uint64_t start = startOf(top.pid).orDefault(0);
    // A window that no live process of this machine owns cannot be named, let alone acted on.
    if (start == 0) continue;
    add(out, {{top.pid, start}, kj::str(), kj::str(), AppState::ACCESSIBILITY_OFF});
    Window window;
    window.ref = {{top.pid, start}, top.id};
    window.title = kj::str(top.title);
    window.bounds = top.bounds;
    window.visible = top.visible;
    window.active = top.active;
    window.stacking = static_cast<uint32_t>(out.windows.size());
    window.accessible = matches(top, tops, found).size() == 1;
    out.windows.add(kj::mv(window));
  }
  return out;
}

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
        report("picture", reading == nullptr ? noPicture : reading);
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
    auto& objects = (*bus)->objects;
    auto reading = accessibility::readApplications(objects, nullptr, timer.now() + bounds::CALL);
    return reading.attach(kj::mv(*bus))
        .then([display =
                   kj::mv(display)](kj::Maybe<Applications>&& found) mutable -> Result<Desktop> {
          KJ_IF_MAYBE (applications, found) return describe(*display, *applications);
          return Refusal{RefusalCode::NO_ACCESSIBILITY_BUS, "The registry does not answer."};
        });
  });
}

kj::Promise<Result<Observation>> LinuxDriver::observe(WindowRef window, FrameId id, uint64_t epoch,
                                                      bool picture) {
  // The session's earlier frame is forgotten whether or not this reading succeeds.
  KJ_IF_MAYBE (earlier, frame) (*earlier)->current = false;
  frame = nullptr;
  auto observing = kj::heap<Observing>(link, timer, window, id, epoch, picture);
  auto reading = observing->run();
  return reading.then([this, observing = kj::mv(observing)](Result<Observation>&& seen) mutable {
    if (seen.ok()) frame = observing->takeFrame();
    return kj::mv(seen);
  });
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
    return checked.then([effect = kj::mv(effect)](Result<Done>&& done) mutable -> Prepared {
      if (!done.ok()) return done.refusal();
      return kj::Own<PreparedAction>(kj::mv(effect));
    });
  }
  return Prepared(Refusal{RefusalCode::STALE_FRAME, "There is no frame."});
}

}  // namespace praefectus::desktop
