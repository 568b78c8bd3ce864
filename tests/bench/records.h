// What a supervisor would record of an operation, for whoever measures the ledger alone.
#pragma once

#include "supervisor/ledger/ledger.h"

namespace praefectus::bench {

ledger::Claim claimOf(kj::StringPtr operation);
ledger::Ending success();

}  // namespace praefectus::bench
