// A ledger as the commands look at it: opened for reading, with the keys that its receipts are
// checked with.
#pragma once

#include "supervisor/cli/commands.h"
#include "supervisor/ledger/reader.h"

namespace praefectus::cli {

class OpenedLedger {
 public:
  // The folder that --ledger names. Throws a usage Failure when there is none; a Failure with the
  // reader's refusal, and what can be done about it, when it cannot be read.
  explicit OpenedLedger(const Options& options);

  ledger::LedgerReader& reader() { return *opened; }
  // The key of that id. Nothing when this ledger has had no such key.
  kj::Maybe<const attest::PublicKey&> keyNamed(kj::StringPtr keyId) const;
  // What a receipt of this ledger says; nothing when none of its keys signed it, or it is about
  // another operation than `operation`.
  kj::Maybe<attest::Receipt> read(const attest::Envelope& sealed, kj::StringPtr operation) const;

  // What is known of one operation. Throws a Failure when its record is damaged or elsewhere.
  struct Known {
    bool seen = false;  // Whether the id was ever used.
    kj::Maybe<attest::Receipt> receipt;
    kj::Maybe<attest::Envelope> sealed;  // The same, as it was signed.
  };
  Known look(kj::StringPtr operation);

 private:
  kj::Own<ledger::LedgerReader> opened;
  kj::Vector<attest::PublicKey> keys;
};

// A receipt that does not hold is not repeated as if it did.
Failure damagedReceipt();

// The operation that is the command's one argument; nothing when there is none. Throws a usage
// Failure when it cannot be an id.
kj::Maybe<kj::StringPtr> operationOf(const Options& options);

}  // namespace praefectus::cli
