#include "tests/attest/samples.h"

#include "attest/image.h"

#include <capnp/any.h>
#include <capnp/serialize.h>

namespace praefectus::attest {
namespace {

// A copy of the struct with room for more, and what `change` makes of it.
template <typename Change>
kj::Array<kj::byte> widened(Bytes canonicalStruct, capnp::uint words, capnp::uint pointers,
                            Change&& change) {
  auto aligned = kj::heapArray<capnp::word>(canonicalStruct.size() / sizeof(capnp::word));
  memcpy(aligned.asBytes().begin(), canonicalStruct.begin(), canonicalStruct.size());
  kj::ArrayPtr<const capnp::word> segments[] = {aligned};
  capnp::SegmentArrayMessageReader from(kj::arrayPtr(segments, 1));
  auto old = from.getRoot<capnp::AnyPointer>().getAs<capnp::AnyStruct>();

  capnp::MallocMessageBuilder to;
  auto wide = to.initRoot<capnp::AnyPointer>().initAsAnyStruct(
      static_cast<uint16_t>(old.getDataSection().size() / sizeof(capnp::word) + words),
      static_cast<uint16_t>(old.getPointerSection().size() + pointers));
  memcpy(wide.getDataSection().begin(), old.getDataSection().begin(), old.getDataSection().size());
  for (capnp::uint i = 0; i < old.getPointerSection().size(); ++i) {
    wide.getPointerSection()[i].set(old.getPointerSection()[i]);
  }
  change(wide);
  return kj::heapArray<kj::byte>(wide.asReader().canonicalize().asBytes());
}

constexpr int64_t NOW = 1'800'000'000'000;
constexpr WindowRef WINDOW = {{4242, 987654}, 0x1400003};

LedgerId ledger() { return {digestOf("a ledger"_kj.asBytes()), 2}; }

FrameId frameNumber(kj::byte number) {
  FrameId frame;
  frame.fill(number);
  return frame;
}

template <typename Value>
void nameKey(Value& body, Purpose purpose) {
  body.issuer = kj::str(issuerFor(purpose));
  body.keyId = keyIdOf(keyFor(purpose).publicKey());
}

// What the host states in every permission.
template <typename Value>
Value byTheHost() {
  Value body;
  nameKey(body, Purpose::ISSUER);
  body.audience = ledger();
  body.subject = kj::str("uid:1000");
  body.session = kj::str("session-1");
  body.turn = kj::str("turn-1");
  body.policyGeneration = 4;
  return body;
}

}  // namespace

SigningKey keyNumber(kj::byte number) {
  initialize();
  std::array<kj::byte, 32> seed;
  seed.fill(number);
  return SigningKey::fromSeed(bytesOf(seed));
}

SigningKey issuerKey() { return keyNumber(1); }
SigningKey publisherKey() { return keyNumber(2); }
SigningKey receiptKey() { return keyNumber(3); }

SigningKey keyFor(Purpose purpose) {
  switch (purpose) {
    case Purpose::ISSUER:
      return issuerKey();
    case Purpose::PUBLISHER:
      return publisherKey();
    case Purpose::RECEIPT:
      return receiptKey();
  }
  KJ_UNREACHABLE;
}

kj::StringPtr issuerFor(Purpose purpose) {
  switch (purpose) {
    case Purpose::ISSUER:
      return "host";
    case Purpose::PUBLISHER:
      return "publisher";
    case Purpose::RECEIPT:
      return "ledger";
  }
  KJ_UNREACHABLE;
}

KeyRing sampleRing() {
  KeyRing ring;
  for (auto purpose : {Purpose::ISSUER, Purpose::PUBLISHER, Purpose::RECEIPT}) {
    auto key = keyFor(purpose).publicKey();
    ring.add(purpose, issuerFor(purpose), keyIdOf(key), key);
  }
  return ring;
}

Lease sampleLease() {
  auto lease = byTheHost<Lease>();
  lease.lease = kj::str("lease-1");
  lease.classes = {ActionClass::METADATA_READ, ActionClass::SEMANTIC_MUTATION};
  lease.target = WINDOW;
  lease.frame = frameNumber(9);
  lease.notBefore = NOW;
  lease.expires = NOW + 60'000;
  return lease;
}

Grant sampleGrant() {
  auto grant = byTheHost<Grant>();
  grant.operation = kj::str("operation-1");
  grant.actionHash = digestOf("an action"_kj.asBytes());
  grant.actionClass = ActionClass::SEMANTIC_MUTATION;
  grant.risk = Safety::DESTRUCTIVE;
  grant.target = WINDOW;
  grant.frame = frameNumber(9);
  grant.rights = {.focus = true, .irreversible = true};
  grant.notBefore = NOW;
  grant.expires = NOW + 60'000;
  return grant;
}

TaskGrant sampleTaskGrant() {
  auto grant = byTheHost<TaskGrant>();
  grant.task = kj::str("task-1");
  grant.rootDevice = 65'025;
  grant.rootInode = 131'074;
  grant.planHash = digestOf("a plan"_kj.asBytes());
  grant.steps.add(digestOf("a step"_kj.asBytes()));
  grant.steps.add(digestOf("another step"_kj.asBytes()));
  grant.undo = true;
  grant.risk = Safety::EXTERNAL;
  grant.rights = {.ownPointer = true, .userPointer = true};
  grant.notBefore = NOW;
  grant.expires = NOW + 3'600'000;
  return grant;
}

Revocation sampleRevocation() {
  Revocation revocation;
  nameKey(revocation, Purpose::ISSUER);
  revocation.audience = ledger();
  revocation.subject = kj::str("uid:1000");
  revocation.revocation = kj::str("revocation-1");
  revocation.issuedAt = NOW;
  revocation.what = RevokedOperation{kj::str("operation-1")};
  return revocation;
}

Receipt sampleReceipt() {
  Receipt receipt;
  nameKey(receipt, Purpose::RECEIPT);
  receipt.ledger = ledger();
  receipt.operation = kj::str("operation-1");
  receipt.actionHash = digestOf("an action"_kj.asBytes());
  receipt.actionClass = ActionClass::SEMANTIC_MUTATION;
  receipt.kind = kj::str("set_value");
  receipt.mode = Mode::INTERACTIVE;
  receipt.risk = Safety::EXTERNAL;
  receipt.proof = Proof::VALUE;
  receipt.rights = {.focus = true, .ownPointer = true};
  receipt.grantIssuer = kj::str("host");
  receipt.grantKeyId = kj::str("host-key");
  receipt.grantHash = digestOf("a grant"_kj.asBytes());
  receipt.policyGeneration = 4;
  receipt.lease = kj::str("lease-1");
  receipt.subject = kj::str("uid:1000");
  receipt.session = kj::str("session-1");
  receipt.turn = kj::str("turn-1");
  receipt.helper = {kj::str("praefectus-desktop"), kj::str("0.1.0"),
                    digestOf("an image"_kj.asBytes()), 7};
  receipt.route = Route::ACCESSIBILITY;
  receipt.terminal = Terminal::SUCCEEDED;
  receipt.effect = Effect::VERIFIED;
  receipt.evidence = {Verdict::CONFIRMED, Method::VALUE_READBACK, Source::SAME_PROCESS, 1, 1};
  receipt.context = ContextState::PRESERVED;
  receipt.claimedAt = NOW;
  receipt.settledAt = NOW + 50;
  receipt.sequence = 3;
  receipt.previous = digestOf("the link before"_kj.asBytes());
  return receipt;
}

Receipt sampleRejection() {
  auto receipt = sampleReceipt();
  receipt.route = Route::NONE;
  receipt.terminal = Terminal::REJECTED;
  receipt.effect = Effect::NONE;
  receipt.refusal = RefusalCode::TARGET_CHANGED;
  receipt.retrySafe = true;
  receipt.evidence = Evidence();
  receipt.context = ContextState::UNWATCHED;
  receipt.claimedAt = 0;
  return receipt;
}

Refused sampleRefused() {
  Refused refused;
  nameKey(refused, Purpose::RECEIPT);
  refused.ledger = ledger();
  refused.subject = kj::str("uid:1000");
  refused.session = kj::str("session-1");
  refused.sequence = 5;
  refused.request = digestOf("a request"_kj.asBytes());
  refused.operation = kj::str("operation-1");
  refused.code = RefusalCode::LEASE_MISSING;
  refused.at = NOW;
  return refused;
}

LedgerEvent sampleEvent() {
  LedgerEvent event;
  nameKey(event, Purpose::RECEIPT);
  event.ledger = ledger();
  event.sequence = 11;
  event.previous = digestOf("the link before"_kj.asBytes());
  event.at = NOW;
  event.what = Started{{NOW - 1, 86'400'000, digestOf("a boot"_kj.asBytes())}};
  return event;
}

Manifest sampleManifest(Bytes image) {
  Manifest manifest;
  nameKey(manifest, Purpose::PUBLISHER);
  manifest.name = kj::str("praefectus-desktop");
  manifest.release = kj::str("0.1.0");
  manifest.role = Role::DESKTOP;
  manifest.platform = kj::str(platform());
  manifest.protocol = wire::PROTOCOL_VERSION;
  manifest.digest = digestOf(image);
  manifest.size = image.size();
  return manifest;
}

Envelope signedAs(kj::StringPtr label, const SigningKey& key, kj::StringPtr issuer, Bytes body) {
  return {kj::heapArray<kj::byte>(body), kj::str(issuer), keyIdOf(key.publicKey()),
          key.sign(label, body)};
}

kj::Array<kj::byte> withOneMoreWord(Bytes canonicalStruct) {
  return widened(canonicalStruct, 1, 0,
                 [](capnp::AnyStruct::Builder wide) { wide.getDataSection().back() = 1; });
}

kj::Array<kj::byte> withOneMorePointer(Bytes canonicalStruct) {
  return widened(canonicalStruct, 0, 1, [](capnp::AnyStruct::Builder wide) {
    wide.getPointerSection()[wide.getPointerSection().size() - 1].setAs<capnp::Text>("news");
  });
}

kj::Array<kj::byte> notCanonical(Bytes canonicalStruct) {
  // A word that nothing points to. Every reader of the struct sees the same.
  auto out = kj::heapArray<kj::byte>(canonicalStruct.size() + sizeof(capnp::word));
  memset(out.begin(), 0, out.size());
  memcpy(out.begin(), canonicalStruct.begin(), canonicalStruct.size());
  return out;
}

}  // namespace praefectus::attest
