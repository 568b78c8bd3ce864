// A ledger in words: what it is, and whether it holds.
#pragma once

#include "supervisor/cli/report.h"
#include "supervisor/ledger/upkeep.h"

namespace praefectus::cli {

Json summaryJson(const ledger::Summary& summary);
// Aligned lines.
kj::String summaryText(const ledger::Summary& summary);

// What verification found. `trusted` is whether a key was given to check with, `noted` whether a
// head was that was kept elsewhere.
Report verdict(const ledger::Report& checked, bool trusted, bool noted);

Report inventoryReport(const ledger::Inventory& inventory);

}  // namespace praefectus::cli
