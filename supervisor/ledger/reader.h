// Reading a ledger from outside: an auditor's and a person's view. Never writes, works while a
// supervisor holds the ledger, and leaves the database and its write-ahead log byte for byte as
// they were.
#pragma once

#include "attest/signed.h"

namespace praefectus::ledger {

struct Summary {
  uint64_t operations = 0;
  uint64_t open = 0;
  uint64_t sequence = 0;  // Last chain position.
  Hash head{};            // Last chain link.
  LedgerId id;
  attest::PublicKey receiptKey{};
};

struct Finding {
  uint64_t sequence;  // 0 when it concerns the whole file.
  kj::String what;    // A fixed sentence.
};

struct Report {
  Summary summary;
  uint64_t receipts = 0;         // Receipts whose signature and chain position hold.
  kj::Vector<Finding> findings;  // Empty when everything holds. At most 100.
};

// One line of a list of operations.
struct Listed {
  kj::String operation, kind;
  uint64_t sequence = 0;  // Last place in the chain that concerns it.
  int64_t claimedAt = 0;  // 0 when it ended before a claim.
  kj::Maybe<attest::Envelope>
      ended;  // Nothing while it is open. Its signature is not checked here.
};

class LedgerReader {
 public:
  // Refuses: LEDGER_FOREIGN when the folder or file is not a ledger that this user may read.
  static Result<kj::Own<LedgerReader>> open(kj::StringPtr folder);
  virtual ~LedgerReader() noexcept(false) = default;

  virtual Result<Summary> summary() = 0;
  // Nothing when the id was never used; a null inner value when it is claimed and open.
  virtual Result<kj::Maybe<kj::Maybe<attest::Envelope>>> receipt(kj::StringPtr operation) = 0;

  // At most `limit` operations, the one that the chain named last first.
  virtual Result<kj::Vector<Listed>> recent(uint64_t limit) = 0;

  // The link in a place of the chain, genesis for place 0; nothing when the chain has no such
  // place.
  virtual Result<kj::Maybe<Hash>> linkAt(uint64_t sequence) = 0;

  // Recomputes every chain link and checks every signature, with the given key or, when none is
  // given, the key recorded at creation (which proves consistency, not origin).
  virtual Result<Report> verify(kj::Maybe<attest::PublicKey> trusted) = 0;
};

}  // namespace praefectus::ledger
