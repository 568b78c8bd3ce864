#include "supervisor/frames.h"

#include "attest/digest.h"
#include "ipc/bounds.h"

namespace praefectus {
namespace {

constexpr uint64_t FRAME_LIFE_MS = bounds::FRAME_LIFE / kj::MILLISECONDS;

}  // namespace

Frames::Drawn Frames::draw() { return {attest::random<16>(), lastEpoch + 1}; }

void Frames::taken(const Drawn& drawn, const WindowRef& window, uint64_t helperGeneration) {
  retire(Fate::SUPERSEDED);
  lastEpoch = drawn.epoch;
  entries.push_back({drawn, window, helperGeneration, clock.bootMs(), Fate::CURRENT});
  while (entries.size() > bounds::FRAMES_REMEMBERED) entries.pop_front();
}

void Frames::spend() { retire(Fate::SPENT); }
void Frames::voidAll() { retire(Fate::VOID); }

void Frames::retire(Fate fate) {
  if (!entries.empty() && entries.back().fate == Fate::CURRENT) entries.back().fate = fate;
}

bool Frames::isTooOld(const Entry& entry) const {
  return clock.bootMs() - entry.takenAt >= FRAME_LIFE_MS;
}

bool Frames::isCurrent(const FrameId& frame) const {
  if (entries.empty()) return false;
  auto& newest = entries.back();
  return newest.drawn.id == frame && newest.fate == Fate::CURRENT && !isTooOld(newest);
}

Result<Done> Frames::check(const Action::InFrame& frame, const WindowRef& window,
                           uint64_t helperGeneration) const {
  if (entries.empty()) {
    return Refusal{RefusalCode::NO_ACTIVE_FRAME, "Nothing was observed in this session yet."_kj};
  }
  for (auto& entry : entries) {
    if (entry.drawn.id != frame.id) continue;
    if (entry.drawn.epoch != frame.epoch) {
      return Refusal{RefusalCode::STALE_FRAME, "The frame has another epoch."_kj};
    }
    switch (entry.fate) {
      case Fate::SUPERSEDED:
        return Refusal{RefusalCode::STALE_EPOCH, "A newer observation replaced this frame."_kj};
      case Fate::SPENT:
        return Refusal{RefusalCode::STALE_FRAME, "An action spent this frame."_kj};
      case Fate::VOID:
        return Refusal{RefusalCode::STALE_FRAME, "The helper no longer holds this frame."_kj};
      case Fate::CURRENT:
        break;
    }
    if (entry.helperGeneration != helperGeneration) {
      return Refusal{RefusalCode::STALE_FRAME, "The helper no longer holds this frame."_kj};
    }
    if (isTooOld(entry)) {
      return Refusal{RefusalCode::STALE_FRAME, "The frame is older than 30 seconds."_kj};
    }
    if (!(entry.window == window)) {
      return Refusal{RefusalCode::TARGET_MISMATCH, "The frame belongs to another window."_kj};
    }
    return Done{};
  }
  return Refusal{RefusalCode::STALE_FRAME, "The frame is not one of this session's last eight."_kj};
}

}  // namespace praefectus
