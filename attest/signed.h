// The signed bodies as values: Grant, HelperManifest, Receipt. Sealing makes canonical bytes and
// signs them; opening checks the signature, then canonical form, then every bound.
#pragma once

#include "attest/keyring.h"
#include "ipc/schema/signed.capnp.h"

namespace praefectus::attest {

constexpr kj::StringPtr GRANT_LABEL = "praefectus/grant/v1"_kj;
constexpr kj::StringPtr MANIFEST_LABEL = "praefectus/manifest/v1"_kj;
constexpr kj::StringPtr RECEIPT_LABEL = "praefectus/receipt/v1"_kj;

struct Grant {
  kj::String issuer, keyId;
  LedgerId audience;
  kj::String subject, session, turn, operation;
  Hash actionHash{};
  ActionClass actionClass{};
  WindowRef target;
  int64_t notBefore = 0, expires = 0;  // Unix milliseconds.
  uint32_t uses = 1;
  Hash hash{};  // Of the body; set by open.
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
  kj::String grantIssuer, grantKeyId;
  Hash grantHash{};
  kj::String subject, session, turn;
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

// Sealing signs what it is given, within bounds or not: the reader is the judge of form. Names of
// the key (issuer, keyId) are the value's own and go into the envelope too.
Envelope seal(const Grant& grant, const SigningKey& key);
Envelope seal(const Manifest& manifest, const SigningKey& key);
Envelope seal(const Receipt& receipt, const SigningKey& key);

// All three refuse POLICY_DENIED (key or signature; envelope names differ from the body's),
// UNSUPPORTED_VERSION, UNKNOWN_FIELD, MALFORMED (form or a bound of signed.capnp).
Result<Grant> openGrant(const KeyRing& ring, const Envelope& envelope);
Result<Manifest> openManifest(const KeyRing& ring, const Envelope& envelope);
// With a public key alone, as an auditor has it: the key id must be that key's. A receipt that
// contradicts itself is MALFORMED: a success without its evidence or with a breached context, a
// rejection without a reason, an unknown outcome called safe to retry, a route when nothing was
// sent.
Result<Receipt> openReceipt(const PublicKey& key, const Envelope& envelope);

// From a message that has passed the strict check (the channel and envelopeFrom do that).
// Refuses: MALFORMED on an empty or oversize body, a name or signature of the wrong form.
Result<Envelope> readEnvelope(wire::Signed::Reader from);
void write(const Envelope& from, wire::Signed::Builder to);

// The file form of an envelope: one canonical Signed struct. Used for manifests and exported
// receipts.
kj::Array<kj::byte> envelopeBytes(const Envelope& envelope);
Result<Envelope> envelopeFrom(Bytes file);

}  // namespace praefectus::attest
