// What a ledger's chain of hashes begins with, and what it says of a claim. Pure: values in, hashes
// out. The formulas, byte for byte, are in schema.sql; the links themselves are attest's.
#pragma once

#include "supervisor/ledger/ledger.h"

namespace praefectus::ledger {

// The link before the first: which ledger this is, and whose signatures count here. `ring` is in
// the order of the table.
Hash genesis(const attest::PublicKey& receiptKey, const attest::KeyRing& ring);

Hash contentOf(const Claim& claim);

}  // namespace praefectus::ledger
