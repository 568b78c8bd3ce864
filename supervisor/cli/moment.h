// Now, by both clocks that a ledger compares.
#pragma once

#include "supervisor/ledger/upkeep.h"

namespace praefectus::cli {

ledger::Moment momentNow();

}  // namespace praefectus::cli
