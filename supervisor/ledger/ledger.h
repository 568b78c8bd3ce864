// The ledger: which operations were claimed, and how each one ended. The authority on at-most-once.
//
// One SQLite file in a folder of its own, one writer, one thread. The writer's thread takes
// whatever has queued up and commits it together, so sessions that commit at the same time share
// one device flush. What is on disk, and why, is described in schema.sql.
//
// A failed write poisons the ledger: a commit that returned an error may still be there, so nothing
// more is dispatched, and only a new start, which reads the file again, may go on.
#pragma once

#include "attest/signed.h"
#include "supervisor/ledger/clock-memory.h"
#include "supervisor/ledger/revocations.h"

#include <kj/async.h>

namespace praefectus::ledger {

// What is written before an effect may be sent.
struct Claim {
  kj::String operation;
  Hash actionHash{};
  ActionClass actionClass{};
  kj::String kind;
  Mode mode{};
  Safety risk{};
  Proof proof{};
  Rights rights;
  kj::String grantIssuer, grantKeyId;
  Hash grantHash{};
  uint64_t policyGeneration = 1;
  kj::String lease, subject, session, turn;
  attest::HelperIdentity helper;
  int64_t at = 0;  // Unix milliseconds.
};

// How an operation ended. The ledger adds chain position, ledger id, names of its key, and signs.
struct Ending {
  Terminal terminal{};
  Effect effect{};
  kj::Maybe<RefusalCode> refusal;
  bool retrySafe = false;
  Route route = Route::NONE;
  attest::Evidence evidence;
  ContextState context = ContextState::UNWATCHED;
  kj::Vector<Warning> warnings;
  int64_t at = 0;
};

struct Unknown {};    // The id was never used here.
struct Open {};       // Claimed, not ended.
struct Conflict {};   // Used with another action.
struct Elsewhere {};  // Used; its record is in an archive, or in the ledger it was imported from.
struct Damaged {};    // Used; its record cannot be read.
// What the last two mean to whoever asks for the operation.
constexpr Refusal ARCHIVED = {
    RefusalCode::OPERATION_ARCHIVED,
    "This operation id was used; its record is in an archive or in the ledger that it came from."_kj};
constexpr Refusal DAMAGED = {
    RefusalCode::RECORD_DAMAGED,
    "The ledger's record of this operation is damaged; it is not sent again."_kj};
using Found = kj::OneOf<Unknown, Open, attest::Envelope, Conflict, Elsewhere, Damaged>;

struct Recovered {
  uint32_t settled = 0;  // Claims without an ending that this opening settled as outcomeUnknown.
  uint32_t quarantined = 0;  // Claims that it found damaged, and left alone.
};

class Ledger {
 public:
  // Makes the folder (0700), those missing on the way to it, and in it the ledger, the receipt key
  // (0600) and the pinned key ring. Everything is on disk, folders included, when it returns.
  // Refuses: LEDGER_FOREIGN when the path exists with anything in it, or when a folder on the way
  // can be changed by another user. Throws: when the device fails; then the folder's place holds a
  // whole ledger or none.
  static Result<Done> create(kj::StringPtr folder, const attest::KeyRing& ring, Moment now);

  // Opens for writing and settles what an earlier run left open. Does not record a start when the
  // clock does not agree with what the ledger remembers (see clockAgrees).
  // Refuses: LEDGER_FOREIGN (owner, mode, symlink, not ours, damaged, a file missing, another key),
  // LEDGER_MOVED (not the file, device or machine that it was made or adopted on), LEDGER_BUSY
  // (another supervisor has it), LEDGER_POISONED (the storage does not work, or settling failed).
  static Result<kj::Own<Ledger>> open(kj::StringPtr folder, Moment now);

  virtual ~Ledger() noexcept(false) = default;

  virtual const attest::KeyRing& ring() const = 0;
  virtual const LedgerId& id() const = 0;
  virtual const attest::PublicKey& receiptKey() const = 0;  // The one that signs now.
  // Those before it, oldest first: what they signed still counts.
  virtual kj::ArrayPtr<const attest::PublicKey> formerReceiptKeys() const = 0;
  virtual Recovered recovered() const = 0;
  // What it knew of time when it was opened.
  virtual const ClockMemory& clockMemory() const = 0;
  // False from the first failed write on. Then nothing may be dispatched, also not what was
  // claimed.
  virtual bool usable() const = 0;

  // The last place that is durable.
  virtual attest::Head head() const = 0;
  // Whether the chain has this link in this place; of archived operations the endings' are known.
  // False too when the read fails.
  virtual bool contains(const attest::Head& seen) = 0;

  // What is known of an id, now, on the calling thread. Reads only.
  // Refuses: LEDGER_POISONED after a failed write, or when the read fails.
  virtual Result<Found> find(kj::StringPtr operation, const Hash& actionHash) = 0;
  // The same for an id alone: never Conflict.
  virtual Result<Found> find(kj::StringPtr operation) = 0;

  // Claims an operation for exactly one dispatch. Durable when the promise resolves.
  // Refuses: OPERATION_CONFLICT when the id is already there in any form; LEDGER_POISONED when the
  // write failed: whether the claim is on disk is then unknown, and it must not be dispatched.
  // Throws: when a name is not an identifier or the time is not positive.
  virtual kj::Promise<Result<Done>> claim(Claim claim) = 0;

  // Ends a claimed operation. Durable when the promise resolves. Ending an ended operation answers
  // the recorded receipt.
  // Refuses: LEDGER_POISONED when the write failed; the next open settles it.
  // Throws, through the promise: when the id was never used.
  virtual kj::Promise<Result<attest::Envelope>> settle(kj::String operation, Ending ending) = 0;

  // Records an operation that ended before it could be claimed, in one commit. The claim's time is
  // not kept. One that ended with the same action before answers the recorded receipt. Refuses:
  // OPERATION_CONFLICT when the id is there otherwise; LEDGER_POISONED when the write failed.
  // Throws: when a name is not an identifier or the ending has an effect.
  virtual kj::Promise<Result<attest::Envelope>> conclude(Claim claim, Ending ending) = 0;

  // Keeps a revocation whose signature was checked. Durable when the promise resolves; one whose id
  // is there already changes nothing. Refuses: LEDGER_POISONED.
  virtual kj::Promise<Result<Done>> revoke(attest::Envelope revocation, int64_t nowMs) = 0;
  // Those kept when it was opened.
  virtual const Revocations& revocations() const = 0;

  // Signs that something was not done, on the calling thread. Fills in whose ledger and key it is.
  virtual attest::Envelope sign(attest::Refused refused) const = 0;
};

}  // namespace praefectus::ledger
