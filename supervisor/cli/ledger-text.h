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

// Checks with the key that was given, if one was, and says what came of it. A key that is not the
// one to check this ledger with is told from a ledger that does not hold. `check` is called once
// more without a key when something was found with it.
using Check = kj::Function<ledger::Report(const kj::Maybe<attest::PublicKey>& trusted)>;
Report judge(Check check, ledger::LedgerReader& reader, const kj::Maybe<attest::PublicKey>& trusted,
             bool noted);

Report inventoryReport(const ledger::Inventory& inventory);

}  // namespace praefectus::cli
