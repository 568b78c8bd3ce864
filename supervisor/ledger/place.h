// Where and when a ledger is opened: its file, this machine, this boot. Names of machines and boots
// are kept hashed with the ledger's id, so that two ledgers do not tell that they share one.
#pragma once

#include "attest/signed.h"
#include "supervisor/ledger/clock-memory.h"

namespace praefectus::ledger {

struct Machine {
  kj::String name;  // Empty when the system states none.
  kj::String boot;  // Another after every start of the system.
};
// Throws when the kernel does not name its boot.
Machine thisMachine();

// Throws when the file cannot be looked at.
attest::LedgerPlace placeOf(kj::StringPtr file, const LedgerId& id, const Machine& machine);
attest::ClockReading readingOf(const Moment& now, const LedgerId& id, const Machine& machine);

}  // namespace praefectus::ledger
