// Large ledgers without the time that it takes to make them in earnest.
#pragma once

#include <kj/string.h>

#include <cstdint>

namespace praefectus::bench {

// A folder with a ledger of at least that many rows, half of them claims, half their endings: one
// that is there already from an earlier run, or a new one. All columns are as a supervisor would
// write them, but links, hashes and signatures are random: an audit would find nothing but faults,
// opening and claiming find nothing amiss. Its rules are those of the schema.
kj::String ledgerOf(kj::StringPtr folder, uint64_t rows);

}  // namespace praefectus::bench
