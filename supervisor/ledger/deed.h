// What the tools of upkeep share: a ledger taken for one deed, and one event that states it.
#pragma once

#include "supervisor/ledger/holding.h"
#include "supervisor/ledger/upkeep.h"

namespace praefectus::ledger {

// The time to write down: the wall clock's when it agrees with what the ledger remembers, else the
// latest that is on record.
int64_t timeToRecord(const Holding& holding, const Machine& machine, const Moment& now);

// Records an event, durable when it returns.
void record(Holding& holding, EventContent what, int64_t at);

// Takes a ledger and does one thing to it. The deed's exceptions become refusals.
template <typename T, typename Deed>
Result<T> onLedger(kj::StringPtr folder, const Machine& machine, Holding::Moved moved,
                   Deed&& deed) {
  auto taken = Holding::take(folder, machine, moved);
  if (!taken.ok()) return taken.refusal();
  return refusingTrouble<T>([&]() -> Result<T> { return deed(**taken); });
}

constexpr kj::StringPtr NOT_A_LEDGER = "The database is not a ledger of this version."_kj;

}  // namespace praefectus::ledger
