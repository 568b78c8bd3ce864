// One host session: its turn, its leases, its frames, its helper, and whether it must observe
// before it acts.
#pragma once

#include "supervisor/dispatch.h"
#include "supervisor/frames.h"
#include "supervisor/leases.h"

#include <kj/refcount.h>

namespace praefectus {

// Starts helpers for sessions; the only thing a session needs to know of launching.
class HelperSource {
 public:
  virtual ~HelperSource() noexcept(false) = default;
  virtual kj::Promise<Result<kj::Own<HelperLink>>> startDesktopHelper() = 0;
};

// Shared by the host's capability and the operations in flight; outlives both.
class Session : public kj::Refcounted {
 public:
  Session(uint64_t serial, kj::String id, const Clock& clock, HelperSource& source)
      : serial(serial), id(kj::mv(id)), frames(clock), source(source) {}

  const uint64_t serial;  // Key of this session's place in the queue.
  const kj::String id;
  Frames frames;
  Leases leases;
  bool mustObserve = false;  // The last mutation ended as outcomeUnknown.
  bool closed = false;

  // Nothing between turns.
  const kj::Maybe<kj::String>& turn() const { return present; }
  // Ends the present one. Refuses NO_ACTIVE_SESSION, MALFORMED; then the present one goes on.
  // That no turn begins twice is its supervisor's care, which outlives a session of this name.
  Result<Done> beginTurn(kj::String turn);
  void endTurn();

  // The session's helper, started when there is none alive. After bounds::STARTS starts failed in a
  // row the first cause is repeated and nothing is started any more.
  // Only for whoever holds this session's turn: the pointer is good until the turn is given back.
  Result<HelperLink*> helper(kj::WaitScope& wait);
  // The helper that is alive now, without starting one.
  kj::Maybe<HelperLink&> liveHelper() const;
  // Generation of the helper that is alive now; 0 when none is.
  uint64_t generation() const;
  // How many helpers this session has lost, a dead one that nobody has noticed yet included.
  uint64_t losses() const;
  void endHelper();

 private:
  HelperSource& source;
  kj::Maybe<kj::String> present;
  uint64_t lost = 0;
  mutable kj::Maybe<kj::Own<HelperLink>> link;
  unsigned failures = 0;
  kj::Maybe<Refusal> firstCause;
};

}  // namespace praefectus
