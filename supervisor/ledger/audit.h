// Goes through a ledger from its beginning and notes what does not hold.
#pragma once

#include "supervisor/ledger/book.h"
#include "supervisor/ledger/reader.h"

namespace praefectus::ledger {

// Fills everything of the report but its summary. Takes one moment's look at a few hundred places
// at a time, so that a writer at work can go on using its log again. Throws: DISCONNECTED or
// OVERLOADED when the device does not answer; damage is a finding.
void audit(Database& database, kj::Maybe<attest::PublicKey> trusted,
           kj::Maybe<LedgerReader::Progress>& progress, Report& report);

// What a ledger or an archive says of itself; nothing is checked. In a moment that the caller
// holds.
Summary summaryOf(Database& database, Book& book, const Identity& identity);

}  // namespace praefectus::ledger
