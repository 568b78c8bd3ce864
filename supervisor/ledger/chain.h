// The chain of hashes over everything a ledger holds. Pure: values in, hashes out. The formulas,
// byte for byte, are in schema.sql.
#pragma once

#include "attest/signed.h"
#include "supervisor/ledger/ledger.h"

namespace praefectus::ledger {

enum class Step { CLAIM, ENDING };
kj::StringPtr nameOf(Step step);  // "claim", "ending"

// Where the chain stands: the last row's place and link.
struct Head {
  uint64_t sequence = 0;
  Hash link{};
};

// The link before the first: which ledger this is, and whose signatures count here. `ring` is in
// the order of the table.
Hash genesis(const LedgerId& id, const attest::PublicKey& receiptKey, const attest::KeyRing& ring);

Hash contentOf(const Claim& claim);
Hash contentOf(Bytes receipt);

// The head after one more row.
Head extend(const Head& head, Step step, kj::StringPtr operation, const Hash& content);

}  // namespace praefectus::ledger
