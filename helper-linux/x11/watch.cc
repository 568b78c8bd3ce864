#include "helper-linux/x11/watch.h"

#include <xcb/xinput.h>

#include <algorithm>

namespace praefectus::x11 {
namespace {

constexpr kj::Duration INTERVAL = 8 * kj::MILLISECONDS;

// Whether the windows that both lists have stand in the same order.
bool sameOrder(const kj::Vector<xcb_window_t>& before, const kj::Vector<xcb_window_t>& after) {
  auto has = [](const kj::Vector<xcb_window_t>& list, xcb_window_t window) {
    for (auto each : list) {
      if (each == window) return true;
    }
    return false;
  };
  size_t at = 0;
  for (auto window : before) {
    if (!has(after, window)) continue;
    while (at < after.size() && !has(before, after[at])) ++at;
    if (at == after.size() || after[at] != window) return false;
    ++at;
  }
  return true;
}

// A grab hands keys elsewhere for a while; the focus stays where it is.
bool isGrab(uint8_t mode) { return mode == XCB_NOTIFY_MODE_GRAB || mode == XCB_NOTIFY_MODE_UNGRAB; }

}  // namespace

ContextWatch::ContextWatch(kj::Own<Display> displayParam, kj::Timer& timer)
    : display(kj::mv(displayParam)), timer(timer), sampling(nullptr) {
  if (!display->hasInput()) return;
  findSyntheticDevices();
  KJ_IF_MAYBE (context, display->context()) {
    last = kj::mv(*context);
    select(true);
    seen.watching = true;
    sampling = keepSampling().eagerlyEvaluate(nullptr);
  }
}

ContextWatch::~ContextWatch() noexcept(false) {
  if (seen.watching) select(false);
}

Watch ContextWatch::finish() {
  sampling = nullptr;
  if (seen.watching) sample();
  Watch out = seen;
  if (seen.watching) select(false);
  seen.watching = false;
  return out;
}

kj::Promise<void> ContextWatch::keepSampling() {
  return timer.afterDelay(INTERVAL).then([this]() -> kj::Promise<void> {
    sample();
    if (!seen.watching) return kj::READY_NOW;
    return keepSampling();
  });
}

void ContextWatch::sample() {
  KJ_IF_MAYBE (now, display->context()) {
    // Everything that happened before this answer is in the queue by now.
    bool movedBefore = deviceMoved;
    deviceMoved = false;
    restacked = restackedLater;
    restackedLater = false;
    takeEvents(now->sequence);
    bool moved = now->pointerX != last.pointerX || now->pointerY != last.pointerY;
    // The device's event may have been read one sample ahead of the position it led to.
    if (moved && !deviceMoved && !movedBefore) seen.pointerMoved = true;
    if (now->focus != last.focus || now->active != last.active) seen.focusChanged = true;
    // The same windows in the same order, written anew: one was raised and put back in between.
    bool putBack = restacked && std::equal(last.stacking.begin(), last.stacking.end(),
                                           now->stacking.begin(), now->stacking.end());
    if (putBack || !sameOrder(last.stacking, now->stacking)) seen.stackingChanged = true;
    last = kj::mv(*now);
    return;
  }
  seen.watching = false;
}

// Selects, for our connection alone, the events that tell of changes between two samples.
void ContextWatch::select(bool on) {
  auto connection = display->raw();
  uint32_t rootMask = on ? XCB_EVENT_MASK_PROPERTY_CHANGE : 0;
  xcb_change_window_attributes(connection, display->root(), XCB_CW_EVENT_MASK, &rootMask);
  // Focus on no window, or on whatever is under the pointer, has no window that could tell.
  bool onWindow = last.focus > XCB_INPUT_FOCUS_POINTER_ROOT && last.focus != display->root();
  if (on && onWindow) focusWatched = last.focus;
  if (focusWatched != 0) {
    uint32_t focusMask = on ? XCB_EVENT_MASK_FOCUS_CHANGE : 0;
    xcb_change_window_attributes(connection, focusWatched, XCB_CW_EVENT_MASK, &focusMask);
  }
  struct {
    xcb_input_event_mask_t head;
    uint32_t mask;
  } raw{{XCB_INPUT_DEVICE_ALL_MASTER, 1}, on ? uint32_t{XCB_INPUT_XI_EVENT_MASK_RAW_MOTION} : 0};
  xcb_input_xi_select_events(connection, display->root(), 1, &raw.head);
  xcb_flush(connection);
}

void ContextWatch::takeEvents(uint32_t sequence) {
  for (;;) {
    Freed event(xcb_poll_for_event(display->raw()));
    if (!event) return;
    switch (event->response_type & 0x7f) {
      case XCB_PROPERTY_NOTIFY: {
        auto property = reinterpret_cast<xcb_property_notify_event_t*>(event.get());
        if (property->atom == display->atom(Atom::ACTIVE_WINDOW)) seen.focusChanged = true;
        if (property->atom == display->atom(Atom::CLIENT_LIST_STACKING)) {
          bool before = static_cast<int32_t>(event->full_sequence - sequence) < 0;
          (before ? restacked : restackedLater) = true;
        }
        break;
      }
      case XCB_FOCUS_OUT: {
        auto focus = reinterpret_cast<xcb_focus_out_event_t*>(event.get());
        if (focus->event == focusWatched && !isGrab(focus->mode)) seen.focusChanged = true;
        break;
      }
      case XCB_GE_GENERIC: {
        auto raw = reinterpret_cast<xcb_input_raw_motion_event_t*>(event.get());
        bool motion =
            raw->extension == display->inputOpcode() && raw->event_type == XCB_INPUT_RAW_MOTION;
        if (motion && !isSynthetic(raw->sourceid)) deviceMoved = true;
        break;
      }
      default:
        break;
    }
  }
}

bool ContextWatch::isSynthetic(uint16_t device) const {
  for (uint16_t each : syntheticDevices) {
    if (each == device) return true;
  }
  return false;
}

// The server marks the devices through which programs, not persons, move the pointer.
void ContextWatch::findSyntheticDevices() {
  auto connection = display->raw();
  Display::Waiting waiting(*display);
  Freed devices(xcb_input_xi_query_device_reply(
      connection, xcb_input_xi_query_device(connection, XCB_INPUT_DEVICE_ALL), nullptr));
  if (!devices) return;
  for (auto each = xcb_input_xi_query_device_infos_iterator(devices.get()); each.rem > 0;
       xcb_input_xi_device_info_next(&each)) {
    Freed mark(xcb_input_xi_get_property_reply(
        connection,
        xcb_input_xi_get_property(connection, each.data->deviceid, 0,
                                  display->atom(Atom::XTEST_DEVICE), XCB_ATOM_ANY, 0, 1),
        nullptr));
    if (mark && mark->num_items > 0) syntheticDevices.add(each.data->deviceid);
  }
}

}  // namespace praefectus::x11
