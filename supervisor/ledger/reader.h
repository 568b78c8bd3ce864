// Reading a ledger from outside: an auditor's and a person's view. Never writes, works while a
// supervisor holds the ledger, and leaves the database and its write-ahead log byte for byte as
// they were.
#pragma once

#include "attest/signed.h"

#include <kj/function.h>

namespace praefectus::ledger {

struct Summary {
  uint64_t operations = 0;  // That were ever recorded, archived ones included.
  uint64_t open = 0;
  uint64_t sequence = 0;  // Last chain position.
  Hash head{};            // Last chain link.
  LedgerId id;
  attest::PublicKey receiptKey{};  // The one that signs now.
};

struct Finding {
  uint64_t sequence;  // 0 when it concerns the whole file.
  kj::String what;    // A fixed sentence.
};

struct Report {
  Summary summary;
  uint64_t receipts = 0;         // Receipts whose signature and chain position hold.
  uint64_t events = 0;           // Events of which that is true.
  kj::Vector<Finding> findings;  // Empty when everything holds. At most 100.
};

// One line of a list of operations. When it is damaged, only what could be read is there.
struct Listed {
  kj::String operation, kind, session, turn;
  uint64_t sequence = 0;  // Last place in the chain that concerns it.
  int64_t claimedAt = 0;  // 0 when it ended before a claim.
  // Nothing while it is open. Its signature is not checked here.
  kj::Maybe<attest::Envelope> ended;
  bool damaged = false;
};

// Which operations to list. What is not stated does not matter.
struct Filter {
  kj::Maybe<kj::String> session, turn, kind;
  kj::Maybe<Terminal> terminal;
  // Unix milliseconds: when it was claimed, or ended if it never was. `since` inclusive, `until`
  // exclusive.
  kj::Maybe<int64_t> since, until;
  uint64_t limit = 100;
};

class LedgerReader {
 public:
  // Places done, of how many. Called now and then, and once at the end.
  using Progress = kj::Function<void(uint64_t done, uint64_t all)>;

  // A ledger's folder, or the file of an archive, of which the same is true.
  // Refuses: LEDGER_FOREIGN when it is not one that this user may read.
  static Result<kj::Own<LedgerReader>> open(kj::StringPtr path);
  virtual ~LedgerReader() noexcept(false) = default;

  // Costs what is open, not what is old.
  virtual Result<Summary> summary() = 0;
  // Nothing when the id was never used; a null inner value when it is claimed and open. A receipt
  // that is answered carries its signature.
  // Refuses: OPERATION_ARCHIVED, RECORD_DAMAGED.
  virtual Result<kj::Maybe<kj::Maybe<attest::Envelope>>> receipt(kj::StringPtr operation) = 0;

  // Those claimed last first. Without a filter it costs what it answers.
  virtual Result<kj::Vector<Listed>> list(const Filter& filter) = 0;
  Result<kj::Vector<Listed>> recent(uint64_t limit);

  // The keys that have signed its receipts, the one that signs now last. A key that no longer signs
  // is still the one to check what it signed.
  virtual Result<kj::Vector<attest::PublicKey>> receiptKeys() = 0;

  // The link in a place of the chain, genesis for place 0; nothing when the chain has no such
  // place, or it was archived.
  virtual Result<kj::Maybe<Hash>> linkAt(uint64_t sequence) = 0;

  // Recomputes every chain link and checks every signature. Follows the receipt key from the one
  // recorded at creation through every rotation; a trusted key has to be one of these, and to have
  // signed something. Without one, consistency is proven and not origin.
  virtual Result<Report> verify(kj::Maybe<attest::PublicKey> trusted,
                                kj::Maybe<Progress> progress = nullptr) = 0;
};

}  // namespace praefectus::ledger
