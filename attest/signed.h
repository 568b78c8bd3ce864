// The signed bodies as values. Sealing makes canonical bytes and signs them; opening checks the
// signature, then canonical form, then every bound of signed.capnp.
#pragma once

#include "attest/keyring.h"
#include "ipc/schema/signed.capnp.h"

#include <initializer_list>

namespace praefectus::attest {

constexpr kj::StringPtr LEASE_LABEL = "praefectus/lease/v1"_kj;
constexpr kj::StringPtr GRANT_LABEL = "praefectus/grant/v1"_kj;
constexpr kj::StringPtr TASK_GRANT_LABEL = "praefectus/task-grant/v1"_kj;
constexpr kj::StringPtr REVOCATION_LABEL = "praefectus/revocation/v1"_kj;
constexpr kj::StringPtr MANIFEST_LABEL = "praefectus/manifest/v1"_kj;
constexpr kj::StringPtr RECEIPT_LABEL = "praefectus/receipt/v1"_kj;
constexpr kj::StringPtr REFUSAL_LABEL = "praefectus/refusal/v1"_kj;
constexpr kj::StringPtr EVENT_LABEL = "praefectus/event/v1"_kj;

// The six action classes as a set.
class Classes {
 public:
  Classes() = default;
  Classes(std::initializer_list<ActionClass> classes) {
    for (auto c : classes) add(c);
  }
  void add(ActionClass c) { bits |= bit(c); }
  bool has(ActionClass c) const { return (bits & bit(c)) != 0; }
  bool empty() const { return bits == 0; }
  bool operator==(const Classes&) const = default;

 private:
  static uint32_t bit(ActionClass c) { return 1u << static_cast<unsigned>(c); }
  uint32_t bits = 0;
};
// Whether an action of this class changes something.
bool isMutation(ActionClass actionClass);

struct Lease {
  kj::String issuer, keyId;
  LedgerId audience;
  kj::String subject, session, turn, lease;
  uint64_t policyGeneration = 1;
  Classes classes;
  WindowRef target;
  kj::Maybe<FrameId> frame;
  int64_t notBefore = 0, expires = 0;  // Unix milliseconds; so in all that follow.
};

struct Grant {
  kj::String issuer, keyId;
  LedgerId audience;
  kj::String subject, session, turn, operation;
  uint64_t policyGeneration = 1;
  Hash actionHash{};
  ActionClass actionClass{};
  Safety risk = Safety::REVERSIBLE;
  WindowRef target;
  kj::Maybe<FrameId> frame;
  Rights rights;
  int64_t notBefore = 0, expires = 0;
  uint32_t uses = 1;
  Hash hash{};  // Of the body; set by open.
};

struct TaskGrant {
  kj::String issuer, keyId;
  LedgerId audience;
  kj::String subject, session, turn, task;
  uint64_t policyGeneration = 1;
  uint64_t rootDevice = 0, rootInode = 0;
  Hash planHash{};
  kj::Vector<Hash> steps;
  bool undo = false;
  Safety risk = Safety::REVERSIBLE;
  Rights rights;
  int64_t notBefore = 0, expires = 0;
  Hash hash{};  // Of the body; set by open.
};

struct RevokedOperation {
  kj::String operation;
};
struct RevokedLease {
  kj::String lease;
};
struct RevokedTurn {
  kj::String session, turn;
};
struct RevokedGeneration {
  uint64_t valid = 0;  // From now on.
};

struct Revocation {
  kj::String issuer, keyId;
  LedgerId audience;
  kj::String subject, revocation;
  int64_t issuedAt = 0;
  kj::OneOf<RevokedOperation, RevokedLease, RevokedTurn, RevokedGeneration> what;
};

struct Manifest {
  kj::String issuer, keyId, name, release;
  Role role{};
  kj::String platform;
  uint16_t protocol = 0;
  Hash digest{};
  uint64_t size = 0;
};

struct HelperIdentity {
  kj::String name, release;
  Hash digest{};
  uint64_t generation = 0;
  HelperIdentity clone() const;
};

struct Evidence {
  Verdict verdict = Verdict::UNKNOWN;
  Method method = Method::NONE;
  Source source = Source::SAME_PROCESS;
  uint32_t unitsDone = 0, unitsAsked = 0;
};

struct Receipt {
  kj::String issuer, keyId;
  LedgerId ledger;
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
  HelperIdentity helper;
  Route route = Route::NONE;
  Terminal terminal{};
  Effect effect{};
  kj::Maybe<RefusalCode> refusal;
  bool retrySafe = false;
  Evidence evidence;
  ContextState context = ContextState::UNWATCHED;
  kj::Vector<Warning> warnings;
  int64_t claimedAt = 0, settledAt = 0;
  uint64_t sequence = 0;
  Hash previous{};
};

// Proof that one request was not carried out.
struct Refused {
  kj::String issuer, keyId;
  LedgerId ledger;
  kj::String subject, session;  // The session is empty when none is concerned.
  uint64_t sequence = 0;        // Of this session's refusals, from 1.
  kj::Maybe<Hash> request;      // Nothing for a call that submits nothing.
  kj::String operation;         // Empty unless the request was proven.
  RefusalCode code{};
  int64_t at = 0;

  // False: this request dispatched nothing. True: it is not known.
  bool dispatched() const;
};

// Names a request as it was received, in the refusal of it.
Hash requestHash(const Envelope& grant, Bytes action);

// What happened to a ledger itself.
struct LedgerPlace {
  uint64_t device = 0, inode = 0;  // Of the database file.
  Hash machine{};                  // See signed.capnp.
  bool operator==(const LedgerPlace&) const = default;
};
struct ClockReading {
  int64_t wallMs = 0;
  uint64_t bootMs = 0;
  Hash boot{};
};
struct Created {
  LedgerPlace place;
};
struct Adopted {
  LedgerPlace place;
};
struct Started {
  ClockReading clock;
};
struct ClockAccepted {
  ClockReading clock;
};
struct KeyRotated {
  PublicKey next{};
};
struct Archived {
  uint64_t through = 0;
  Hash link{};
  uint64_t operations = 0;
  Hash digest{};
};
struct Imported {
  uint64_t operations = 0;
  kj::String source;
};
struct Quarantined {
  uint64_t claim = 0;  // Its place in the chain.
};

struct LedgerEvent {
  kj::String issuer, keyId;
  LedgerId ledger;
  uint64_t sequence = 0;
  Hash previous{};
  int64_t at = 0;
  kj::OneOf<Created, Adopted, Started, ClockAccepted, KeyRotated, Envelope, Archived, Imported,
            Quarantined>
      what;  // An Envelope is a Revocation.
};

// Sealing signs what it is given, within bounds or not: the reader is the judge of form. Names of
// the key (issuer, keyId) are the value's own and go into the envelope too.
Envelope seal(const Lease& lease, const SigningKey& key);
Envelope seal(const Grant& grant, const SigningKey& key);
Envelope seal(const TaskGrant& grant, const SigningKey& key);
Envelope seal(const Revocation& revocation, const SigningKey& key);
Envelope seal(const Manifest& manifest, const SigningKey& key);
Envelope seal(const Receipt& receipt, const SigningKey& key);
Envelope seal(const Refused& refused, const SigningKey& key);
Envelope seal(const LedgerEvent& event, const SigningKey& key);

// The bytes that a receipt's signature is over: one receipt has one encoding, so a ledger keeps the
// fields and the signature and can make the body again.
kj::Array<kj::byte> bodyOf(const Receipt& receipt);

// All of them refuse POLICY_DENIED (key or signature; envelope names differ from the body's),
// UNSUPPORTED_VERSION, UNKNOWN_FIELD, MALFORMED (form or a bound of signed.capnp).
Result<Lease> openLease(const KeyRing& ring, const Envelope& envelope);
Result<Grant> openGrant(const KeyRing& ring, const Envelope& envelope);
Result<TaskGrant> openTaskGrant(const KeyRing& ring, const Envelope& envelope);
Result<Revocation> openRevocation(const KeyRing& ring, const Envelope& envelope);
Result<Manifest> openManifest(const KeyRing& ring, const Envelope& envelope);
// With a public key alone, as an auditor has it: the key id must be that key's. A receipt that
// contradicts itself is MALFORMED: a success without its evidence or with a breached context, an
// unverified one where proof was asked for, a disturbance permitted without a right, a rejection
// without a reason, an unknown outcome called safe to retry, a route when nothing was sent.
Result<Receipt> openReceipt(const PublicKey& key, const Envelope& envelope);
Result<Refused> openRefused(const PublicKey& key, const Envelope& envelope);
Result<LedgerEvent> openEvent(const PublicKey& key, const Envelope& envelope);

// ---- The chain of a ledger: what a host or an auditor needs to follow it from receipt to receipt.

// One place of the chain and the link there.
struct Head {
  uint64_t sequence = 0;
  Hash link{};
  bool operator==(const Head&) const = default;
};
enum class Step { CLAIM, ENDING, EVENT };
using praefectus::nameOf;         // Which the next line would hide.
kj::StringPtr nameOf(Step step);  // "claim", "ending", "event"

// The head after one more row. `operation` is empty for an event; `content` is, for an ending and
// an event, the digest of the signed body, for a claim that of its row (supervisor/ledger).
Head extend(const Head& head, Step step, kj::StringPtr operation, const Hash& content);
// Where the chain stands after this receipt.
Head headAfter(const Receipt& receipt, Bytes body);

// From a message that has passed the strict check (the channel and envelopeFrom do that).
// Refuses: MALFORMED on an empty or oversize body, a name or signature of the wrong form.
Result<Envelope> readEnvelope(wire::Signed::Reader from);
void write(const Envelope& from, wire::Signed::Builder to);

// The id of the operation that the body of a grant names, or nothing when it is no grant's. Read
// before any signature is checked: good for naming a request in its refusal and for nothing else.
kj::String operationNamed(Bytes body);

// The file form of an envelope: one canonical Signed struct. Used for manifests and exported
// receipts.
kj::Array<kj::byte> envelopeBytes(const Envelope& envelope);
Result<Envelope> envelopeFrom(Bytes file);

}  // namespace praefectus::attest
