#include "helper-linux/desktop/capturing.h"

#include "helper-linux/desktop/process.h"

namespace praefectus::desktop {
namespace {

using Taken = Result<Picture>;

constexpr Refusal NO_PICTURE{RefusalCode::CAPTURE_FAILED,
                             "There is nothing to take a picture of."_kj};

bool isInside(int32_t x, int32_t y, const Rect& bounds) {
  return x >= 0 && y >= 0 && static_cast<uint32_t>(x) < bounds.width &&
         static_cast<uint32_t>(y) < bounds.height;
}

}  // namespace

kj::Promise<Taken> Capturing::run() {
  auto locked = link.lock().eagerlyEvaluate(nullptr);
  return takePrepared().then([locked = kj::mv(locked)](Taken&& taken) mutable {
    return locked.then([taken = kj::mv(taken)](Lock lock) mutable -> Taken {
      if (lock != Lock::LOCKED) return kj::mv(taken);
      return Refusal{RefusalCode::SCREEN_LOCKED, "The person's session is locked."};
    });
  });
}

kj::Promise<Taken> Capturing::takePrepared() {
  auto before = look();
  if (!before.ok()) return Taken(before.refusal());
  auto taken = take();
  bool bare = !taken.ok() && taken.refusal().code == RefusalCode::CAPTURE_FAILED;
  if (!bare || action.target.is<MonitorTarget>()) return kj::mv(taken);
  // A window has no contents of its own before somebody wants them.
  auto camera = link.camera();
  if (!camera.ok()) return Taken(camera.refusal());
  auto window = static_cast<xcb_window_t>(action.window().window);
  return (*camera)->prepare(window).then([this]() { return take(); });
}

// The picture is of what was looked at: it was that before, and it still is.
Taken Capturing::take() {
  auto taken = takeNow();
  auto after = look();
  if (!after.ok()) return after.refusal();
  return taken;
}

Taken Capturing::takeNow() {
  auto camera = link.camera();
  if (!camera.ok()) return camera.refusal();
  auto window = static_cast<xcb_window_t>(action.window().window);
  kj::Maybe<Picture> taken;
  KJ_IF_MAYBE (point, action.target.tryGet<PointTarget>()) {
    taken = (*camera)->take(window, regionOf(*point, action.act.get<ZoomAct>()));
    KJ_IF_MAYBE (picture, taken) picture->info.frame = point->frame;
  } else if (action.target.is<MonitorTarget>()) {
    taken = (*camera)->takeScreen(bounds);
  } else {
    taken = (*camera)->take(window);
  }
  KJ_IF_MAYBE (picture, taken) return kj::mv(*picture);
  return NO_PICTURE;
}

Result<Done> Capturing::look() {
  KJ_IF_MAYBE (window, action.target.tryGet<WindowRef>()) return lookAtWindow(*window);
  KJ_IF_MAYBE (point, action.target.tryGet<PointTarget>()) return lookAtFrame(*point);
  KJ_IF_MAYBE (monitor, action.target.tryGet<MonitorTarget>()) return lookAtMonitor(monitor->id);
  return Refusal{RefusalCode::UNSUPPORTED_ACTION, "There are no pictures of this."};
}

Result<Done> Capturing::lookAtWindow(const WindowRef& window) {
  auto display = link.display();
  if (!display.ok()) return display.refusal();
  bool cut;
  for (auto& top : (*display)->topLevels(cut)) {
    if (top.id != window.window) continue;
    uint64_t start = startOf(top.pid).orDefault(0);
    if (top.pid != window.process.pid || start != window.process.start) {
      return Refusal{RefusalCode::TARGET_CHANGED, "The window belongs to another process."};
    }
    bounds = top.bounds;
    return Done();
  }
  return Refusal{RefusalCode::TARGET_MISSING, "There is no such window."};
}

Result<Done> Capturing::lookAtMonitor(const MonitorId& id) {
  auto display = link.display();
  if (!display.ok()) return display.refusal();
  KJ_IF_MAYBE (found, link.monitors().find((*display)->layout(), id)) {
    bounds = *found;
    return Done();
  }
  return Refusal{RefusalCode::TARGET_MISSING, "There is no such monitor now."};
}

Result<Done> Capturing::lookAtFrame(const PointTarget& target) {
  KJ_IF_MAYBE (held, frame) {
    auto& known = **held;
    if (known.id != target.frame || !known.current) {
      return Refusal{RefusalCode::STALE_FRAME, "The frame is not the last one."};
    }
    if (known.epoch != target.epoch) {
      return Refusal{RefusalCode::STALE_EPOCH, "The frame has another epoch."};
    }
    if (!(known.window == target.window)) {
      return Refusal{RefusalCode::TARGET_MISMATCH, "The frame shows another window."};
    }
    auto& to = action.act.get<ZoomAct>();
    if (!isInside(target.x, target.y, known.bounds) || !isInside(to.toX, to.toY, known.bounds)) {
      return Refusal{RefusalCode::INVALID_COORDINATE, "A corner is outside of the frame."};
    }
    auto display = link.display();
    if (!display.ok()) return display.refusal();
    if ((*display)->topology() != known.topology) {
      return Refusal{RefusalCode::TARGET_CHANGED, "The monitors have changed."};
    }
    auto window = lookAtWindow(target.window);
    if (!window.ok()) return window.refusal();
    if (bounds != known.bounds) {
      return Refusal{RefusalCode::TARGET_CHANGED, "The window was moved or resized."};
    }
    return Done();
  }
  return Refusal{RefusalCode::STALE_FRAME, "There is no frame."};
}

}  // namespace praefectus::desktop
