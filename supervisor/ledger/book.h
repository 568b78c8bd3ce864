// The rows of a ledger as values: what schema.sql describes, read and written.
//
// `Book` reads and is used by everybody; `Scribe` adds the one way to write, and is used by the
// ledger's thread alone.
#pragma once

#include "supervisor/ledger/chain.h"
#include "supervisor/ledger/database.h"

namespace praefectus::ledger {

struct Identity {
  LedgerId id;
  attest::PublicKey receiptKey{};
  attest::KeyRing ring;
};

// Whether the file says that it is a ledger of this version.
bool isLedger(Database& database);
// Whether tables, constraints and triggers are exactly those of schema.sql.
bool hasOurRules(Database& database);
Identity readIdentity(Database& database);
// Fills an empty database.
void found(Database& database, const Identity& identity);

// What the rows say of one operation.
struct Record {
  Claim claim;                  // `at` is 0 when it ended before a claim.
  kj::Maybe<uint64_t> claimed;  // Places in the chain.
  kj::Maybe<uint64_t> ended;
};

// One place of the chain with everything that belongs to it.
struct Link {
  uint64_t sequence = 0;
  kj::String kind, operation;
  kj::Maybe<Hash> link;  // Nothing when damaged.
  kj::String terminal;
  kj::Array<kj::byte> receipt;
  kj::Maybe<attest::Signature> signature;
  kj::Maybe<Record> record;  // Nothing when the operation's row is missing or damaged.
};

class Book {
 public:
  Book(Database& database, const Identity& identity);

  Head head();
  kj::Maybe<Record> record(kj::StringPtr operation);
  // The receipt in a place of the chain. Throws when there is none.
  attest::Envelope receipt(uint64_t sequence);

 private:
  const Identity& identity;
  kj::String receiptKeyId;
  Statement selectHead, selectRecord, selectReceipt;
};

class Scribe {
 public:
  Scribe(Database& database, const Identity& identity, const attest::SigningKey& key);

  // False when the id is there in any form; then nothing was written.
  bool claim(const Claim& claim);
  // Ends a claimed operation, or answers how it ended. Nothing when it was never used.
  kj::Maybe<attest::Envelope> settle(kj::StringPtr operation, const Ending& ending);
  // Refuses: OPERATION_CONFLICT when the id is there, unless it ended with the same action.
  Result<attest::Envelope> conclude(const Claim& claim, const Ending& ending);

  // At most `limit` operations that are claimed and not ended.
  kj::Array<kj::String> openOperations(uint64_t limit);

 private:
  attest::Envelope end(const Claim& claim, const Ending& ending);
  void insert(const Claim& claim, kj::Maybe<uint64_t> claimed, kj::Maybe<uint64_t> ended);

  Book book;
  const Identity& identity;
  const attest::SigningKey& key;
  kj::String keyId;
  Statement insertOperation, endOperation, insertClaim, insertEnding, selectOpen;
};

// Every place after `sequence`, in order, at most `limit`.
kj::Vector<Link> linksAfter(Database& database, uint64_t sequence, uint64_t limit);

// What a receipt in this place has to say, beyond its ending.
attest::Receipt receiptFor(const Claim& claim, const Identity& identity, const Head& before);

}  // namespace praefectus::ledger
