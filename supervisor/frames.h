// The frames of one session: which moment of which window its actions may still refer to.
//
// One frame is current. A newer observation supersedes it, a mutation spends it, time expires it,
// and the end of the helper that took it voids it. The last few are remembered, so that a refusal
// can say which of these happened; an id that was never drawn here is told apart from all of them.
#pragma once

#include "ipc/action.h"
#include "supervisor/clock.h"

#include <deque>

namespace praefectus {

class Frames {
 public:
  explicit Frames(const Clock& clock) : clock(clock) {}

  // The next frame's id and epoch. It becomes current when `taken` is called, not before. A helper
  // that was asked has forgotten the earlier frame, also when it then refused: see voidAll.
  struct Drawn {
    FrameId id;
    uint64_t epoch;
  };
  Drawn draw();
  void taken(const Drawn& drawn, const WindowRef& window, uint64_t helperGeneration);

  // A mutation was dispatched, or may have been: what was seen is no longer what is there.
  void spend();
  // The live objects of our frames are gone: the helper ended, or was asked for a new observation.
  void voidAll();

  // Whether what an action refers to may be acted on.
  // Refuses NO_ACTIVE_FRAME, STALE_EPOCH, STALE_FRAME or TARGET_MISMATCH.
  Result<Done> check(const Action::InFrame& frame, const WindowRef& window,
                     uint64_t helperGeneration) const;
  // Whether this is the newest frame, not spent, not void and not too old.
  bool isCurrent(const FrameId& frame) const;

 private:
  enum class Fate : uint8_t { CURRENT, SUPERSEDED, SPENT, VOID };
  struct Entry {
    Drawn drawn;
    WindowRef window;
    uint64_t helperGeneration;
    uint64_t takenAt;
    Fate fate;
  };
  void retire(Fate fate);
  bool isTooOld(const Entry& entry) const;

  const Clock& clock;
  uint64_t lastEpoch = 0;
  std::deque<Entry> entries;  // Newest last; only the newest can be current.
};

}  // namespace praefectus
