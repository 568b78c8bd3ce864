// The rows of a ledger as values: what schema.sql describes, read and written.
//
// `Book` reads and is used by everybody; `Scribe` adds the one way to write, and is used by the
// ledger's thread, and by tools while no supervisor has the ledger.
#pragma once

#include "supervisor/ledger/chain.h"
#include "supervisor/ledger/database.h"

#include <set>

namespace praefectus::ledger {

// Who the ledger is, and whose key signs, after a place of the chain.
struct Era {
  uint64_t after = 0;
  LedgerId id;
  attest::PublicKey key{};
  kj::String keyId;
};

struct Identity {
  attest::PublicKey firstKey{};
  attest::KeyRing ring;
  kj::Vector<Era> eras;  // In their order; the first is after place 0.

  const Era& present() const { return eras.back(); }
  // What holds in a place; for an event that begins an era, what held before it.
  const Era& at(uint64_t place) const;
  // Begins an era when the event does.
  void take(const attest::LedgerEvent& event);
};

// Whether the file says that it is a ledger of this version.
bool isLedger(Database& database);
// What an archive's file says in place of that: "PRLA".
constexpr int64_t ARCHIVE_FILE = 0x50524C41;
bool isArchive(Database& database);
// Whether tables, constraints and triggers are exactly those of schema.sql.
bool hasOurRules(Database& database);
// An era whose event is damaged is left out; verification reports the event.
Identity readIdentity(Database& database);
// Fills an empty database.
void found(Database& database, const attest::PublicKey& firstKey, const attest::KeyRing& ring);

// An event as its row has it. `link` and `signature` are nothing when damaged.
struct EventRow {
  uint64_t place = 0;
  kj::String kind;
  kj::Maybe<uint64_t> about;
  int64_t at = 0;
  kj::Array<kj::byte> body;
  kj::Maybe<Hash> link;
  kj::Maybe<attest::Signature> signature;

  // Refuses like openEvent, with the key that was valid before it.
  Result<attest::LedgerEvent> open(const attest::PublicKey& key) const;
};
kj::Vector<EventRow> eventsBetween(Database& database, uint64_t first, uint64_t last);
kj::Vector<EventRow> eventsOfKind(Database& database, kj::StringPtr kind);
using EventContent = decltype(attest::LedgerEvent::what);
kj::StringPtr kindOf(const EventContent& what);
kj::Maybe<uint64_t> aboutOf(const EventContent& what);

// What the events say that a start has to know. Throws when one of these events does not hold.
struct Memory {
  attest::LedgerPlace place;                    // Where it was made or adopted last.
  kj::Maybe<attest::ClockReading> lastReading;  // Of the last start or acceptance.
  uint64_t acceptedAt = 0;                      // Place of the last acceptance, or 0.
  kj::Vector<attest::Revocation> revocations;
};
Memory readMemory(Database& database, const Identity& identity);

// How an operation ended, and what its receipt has besides.
struct Ended {
  uint64_t place = 0;
  Ending ending;
  Hash previous{}, link{};
  attest::Signature signature{};
};

// What the rows say of one operation.
struct Record {
  uint64_t place = 0;
  Claim claim;           // `at` is 0 when it ended before a claim.
  kj::Maybe<Hash> link;  // Of the claim.
  kj::Maybe<Ended> ended;
};
// A query for everything that belongs to operations, one row each, and a row of it. Reading throws
// when it is damaged, or lacks an authority, a helper or, by endings, its operation.
kj::String recordsByOperation(
    kj::StringPtr condition);                         // o is `operation`, e its `ending` or NULL.
kj::String recordsByEnding(kj::StringPtr condition);  // e is `ending`, o its `operation` or NULL.
enum class Part { CLAIM, ALL };
Record readRecord(const Rows& rows, Part part = Part::ALL);
// Columns of such a row that are of use when it is damaged.
constexpr int OPERATION_PLACE = 0, CLAIM_LINK = 1, OPERATION_ID = 2, CLAIMED_AT = 12,
              ENDING_PLACE = 23, ENDING_LINK = 38;
attest::Receipt receiptOf(const Claim& claim, const Ending& ending, const attest::Head& before,
                          const Era& era);
// The receipt as it was signed, from the rows alone. Not checked.
attest::Envelope envelopeOf(const Record& record, const Ended& ended, const Era& era);

class Book {
 public:
  Book(Database& database, const Identity& identity);

  // Where the chain ends.
  attest::Head head();
  // Genesis for place 0; nothing when no place of that number is here. Of archived places those of
  // endings are.
  kj::Maybe<Hash> linkAt(uint64_t place);
  // A receipt is answered only when its signature holds: else the record is damaged.
  Found find(kj::StringPtr operation, kj::Maybe<const Hash&> actionHash);
  // Whether the claim's link follows from its content and the link before it.
  bool follows(const Record& record);

 private:
  Found describe(const Rows& rows, kj::Maybe<const Hash&> actionHash);
  Found findRetired(kj::StringPtr operation, kj::Maybe<const Hash&> actionHash);
  kj::Maybe<Hash> archivedThrough(uint64_t place);

  const Identity& identity;
  Statement selectHead, selectLink, selectArchived, selectRecord, selectQuarantined, selectRetired,
      selectRetiredLink;
};

class Scribe {
 public:
  Scribe(Database& database, Identity& identity, const attest::SigningKey& key,
         const Memory& memory);

  const attest::Head& head() const { return last; }
  // The latest time on record since the clock was accepted last.
  int64_t floor() const { return latest; }

  // False when the id is there in any form; then nothing was written.
  bool claim(Claim claim);
  // Ends a claimed operation, or answers how it ended. Nothing when it was never used.
  // Refuses: RECORD_DAMAGED, OPERATION_ARCHIVED.
  kj::Maybe<Result<attest::Envelope>> settle(kj::StringPtr operation, const Ending& ending);
  // Refuses: OPERATION_CONFLICT when the id is there, unless it ended with the same action.
  Result<attest::Envelope> conclude(const Claim& claim, const Ending& ending);
  // One whose id is there already changes nothing.
  void revoke(const attest::Revocation& revocation, attest::Envelope envelope, int64_t at);
  // Records an event, signed with the key that was valid before it.
  void append(EventContent what, int64_t at);
  // From now on signs with this key, which must be the one that the last event stated.
  void signWith(const attest::SigningKey& next) { key = &next; }

  // Settles what is claimed and not ended, or says that it is damaged. For a start, before anything
  // else is written. `ending.at` is a time that is not before what is on record.
  Recovered recover(const Ending& ending);

 private:
  struct Open {
    uint64_t place;
    Claim claim;
  };
  struct Pending {
    uint64_t place;
    kj::Maybe<Claim> intact;
  };
  void readPending(uint64_t acceptedAt);
  attest::Envelope end(const Claim& claim, uint64_t operation, const Ending& ending);
  void insert(const Claim& claim, kj::Maybe<Hash> link);
  int64_t authorityOf(const Claim& claim);
  kj::Maybe<int64_t> helperOf(const Claim& claim);
  void note(int64_t time) { latest = kj::max(latest, time); }
  void moveMark(uint64_t stride);

  Book book;
  Identity& identity;
  const attest::SigningKey* key;
  attest::Head last;
  int64_t latest = 0;
  uint64_t mark = 0;
  Revocations revocations;
  kj::Vector<Pending> pending;  // What a start found open.

  kj::HashMap<kj::String, Open> open;
  std::set<uint64_t> openPlaces;
  kj::HashMap<kj::String, int64_t> authorities, helpers;  // Those of late, by all their names.
  int64_t lastAuthority = 0, lastHelper = 0;

  Statement selectUsed, selectOpen, insertOperation, insertEnding, insertEvent, insertAuthority,
      insertHelper, updateMark;
};

}  // namespace praefectus::ledger
