// The parts of the bench: each measures some of the gates, and can be run without the others.
#pragma once

#include "tests/bench/measure.h"
#include "tests/bench/stand.h"

namespace praefectus::bench {

// Where things lie: both folders on the file system that is measured.
struct Places {
  kj::String scratch;  // Emptied at the start and at the end.
  kj::String kept;     // Large ledgers, for the next run.
};

// One operation beside the terms that it is made of.
void measureOperation(Stand& stand, const Places& places, Report& report);
// What an operation asks of the storage.
void measureStorage(Stand& stand, Report& report);
// One, eight and sixteen sessions.
void measureSessions(Stand& stand, Report& report);
// Seven sessions beside one whose helper hangs.
void measureStall(Stand& stand, Report& report);
// The processor time of a claim in a small and in a large ledger.
void measureGrowth(kj::WaitScope& wait, const Places& places, Report& report);
// How long a large ledger takes to open.
void measureOpening(const Places& places, Report& report);
// The shipped supervisor after many operations: its memory, and the size of its ledger.
void measureService(kj::AsyncIoContext& io, const Places& places, Report& report);

}  // namespace praefectus::bench
