// The six things a platform must be able to do. Everything else about being a helper (phases,
// bounds, deadlines, redaction, the wire) is written once, in helper-server.
#pragma once

#include "ipc/action.h"

#include <kj/async.h>

namespace praefectus {

// One validated action on one live object. Destroying it does nothing to the world.
class PreparedAction {
 public:
  virtual ~PreparedAction() noexcept(false) = default;

  // Looks at the live target once more, enters the effect, and reads back until the effect shows or
  // bounds::SETTLE has passed. Called at most once.
  //
  // A Refusal promises that nothing was sent to the application. Once anything was sent the answer
  // is Facts, with `answer` saying what the control replied and the sights saying what was seen.
  virtual kj::Promise<Result<Facts>> perform() = 0;
};

class Driver {
 public:
  virtual ~Driver() noexcept(false) = default;

  // What works at this moment, tried and not assumed. Never throws.
  virtual kj::Promise<kj::Vector<Capability>> capabilities() = 0;

  virtual kj::Promise<Result<Desktop>> list() = 0;

  // Reads one window within the request's bounds; what could not be read in time is missing and
  // flagged. Keeps the live objects of this frame, and forgets those of earlier ones. Refuses:
  // TARGET_MISSING, TARGET_CHANGED (another process behind the id), NOT_ANSWERING, WARMING_UP,
  // ACCESSIBILITY_OFF, AMBIGUOUS_TARGET, CAPTURE_FAILED, SCREEN_LOCKED, NO_DISPLAY,
  // NO_ACCESSIBILITY_BUS; with `below` besides STALE_FRAME, STALE_EPOCH, TARGET_MISMATCH.
  virtual kj::Promise<Result<Observation>> observe(WindowRef window, FrameId frame, uint64_t epoch,
                                                   ObserveAct request) = 0;

  // A picture: a screenshot of a window or a monitor, or a zoom into the present frame. Changes
  // nothing, and the frame stays what it was. Refuses: UNSUPPORTED_ACTION (the kind is not among the
  // capabilities), TARGET_MISSING (also a monitor that was never listed), TARGET_CHANGED,
  // STALE_FRAME, STALE_EPOCH, TARGET_MISMATCH, INVALID_COORDINATE, CAPTURE_FAILED, SCREEN_LOCKED,
  // NO_DISPLAY.
  virtual kj::Promise<Result<Picture>> capture(Action action) = 0;

  // Resolves and checks the live target of a mutation. Changes nothing, focus included. A kind or
  // a proof that is not among the capabilities is UNSUPPORTED_ACTION.
  // Refuses: STALE_FRAME, TARGET_MISSING, TARGET_CHANGED, AMBIGUOUS_TARGET, TARGET_DISABLED,
  // TARGET_HIDDEN, SENSITIVITY_BLOCKED, UNSUPPORTED_ACTION, NOT_ANSWERING, and those of observe.
  virtual kj::Promise<Result<kj::Own<PreparedAction>>> prepare(Action action) = 0;
};

}  // namespace praefectus
