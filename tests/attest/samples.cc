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

KeyRing sampleRing() {
  KeyRing ring;
  auto issuer = issuerKey().publicKey(), publisher = publisherKey().publicKey();
  ring.add(Purpose::ISSUER, "host", keyIdOf(issuer), issuer);
  ring.add(Purpose::PUBLISHER, "publisher", keyIdOf(publisher), publisher);
  return ring;
}

Grant sampleGrant() {
  Grant grant;
  grant.issuer = kj::str("host");
  grant.keyId = keyIdOf(issuerKey().publicKey());
  grant.audience = {digestOf("a ledger"_kj.asBytes()), 1};
  grant.subject = kj::str("uid:1000");
  grant.session = kj::str("session-1");
  grant.turn = kj::str("turn-1");
  grant.operation = kj::str("operation-1");
  grant.actionHash = digestOf("an action"_kj.asBytes());
  grant.actionClass = ActionClass::SEMANTIC_MUTATION;
  grant.target = {{4242, 987654}, 0x1400003};
  grant.notBefore = 1'800'000'000'000;
  grant.expires = grant.notBefore + 60'000;
  grant.uses = 1;
  return grant;
}

Receipt sampleReceipt() {
  Receipt receipt;
  receipt.issuer = kj::str("ledger");
  receipt.keyId = keyIdOf(receiptKey().publicKey());
  receipt.ledger = {digestOf("a ledger"_kj.asBytes()), 1};
  receipt.operation = kj::str("operation-1");
  receipt.actionHash = digestOf("an action"_kj.asBytes());
  receipt.actionClass = ActionClass::SEMANTIC_MUTATION;
  receipt.kind = kj::str("set_value");
  receipt.grantIssuer = kj::str("host");
  receipt.grantKeyId = kj::str("host-key");
  receipt.grantHash = digestOf("a grant"_kj.asBytes());
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
  receipt.claimedAt = 1'800'000'000'000;
  receipt.settledAt = 1'800'000'000'050;
  receipt.sequence = 3;
  receipt.previous = digestOf("the link before"_kj.asBytes());
  return receipt;
}

Manifest sampleManifest(Bytes image) {
  Manifest manifest;
  manifest.issuer = kj::str("publisher");
  manifest.keyId = keyIdOf(publisherKey().publicKey());
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
