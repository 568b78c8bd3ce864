// What every kind of signed body has in common. Of this room only.
#pragma once

#include "attest/signed.h"
#include "ipc/bounds.h"
#include "ipc/canonical.h"

#include <capnp/message.h>

namespace praefectus::attest {

inline Refusal malformed(kj::StringPtr why) { return {RefusalCode::MALFORMED, why}; }
inline Refusal denied(kj::StringPtr why) { return {RefusalCode::POLICY_DENIED, why}; }

constexpr kj::StringPtr BAD_NAME = "A name is not an identifier of 1 to 256 characters."_kj;
constexpr kj::StringPtr BAD_HASH =
    "A digest does not have 32 bytes, or a ledger has no incarnation."_kj;
constexpr kj::StringPtr LEDGER_ISSUER = "ledger"_kj;

inline bool areIdentifiers(std::initializer_list<kj::StringPtr> texts) {
  for (auto text : texts) {
    if (!isIdentifier(text)) return false;
  }
  return true;
}

// These clear `good` when the data is no hash, or the ledger is none.
inline Hash hashIn(Bytes data, bool& good) {
  KJ_IF_MAYBE (hash, fixed<32>(data)) return *hash;
  good = false;
  return {};
}

inline LedgerId ledgerIn(wire::LedgerId::Reader from, bool& good) {
  KJ_IF_MAYBE (id, read(from)) {
    good = good && id->incarnation >= 1;
    return *id;
  }
  good = false;
  return {};
}

template <typename Wire, typename Value, typename Write>
kj::Array<kj::byte> bodyAs(const Value& value, Write&& writeBody) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<Wire>();
  root.setVersion(wire::PROTOCOL_VERSION);
  root.setIssuer(value.issuer);
  root.setKeyId(value.keyId);
  writeBody(value, root);
  return canonicalBytes(root.asReader());
}

template <typename Wire, typename Value, typename Write>
Envelope sealAs(kj::StringPtr label, const Value& value, const SigningKey& key, Write&& writeBody) {
  auto body = bodyAs<Wire>(value, writeBody);
  auto signature = key.sign(label, body);
  return {kj::mv(body), kj::str(value.issuer), kj::str(value.keyId), signature};
}

// The part of opening that comes after the signature: `readBody(reader, value)` answers Done or why
// not. It runs after the strict check, so kinds, text and enumerants are known to be good.
template <typename Value, typename Wire, typename Read>
Result<Value> openAs(const Envelope& envelope, Read&& readBody) {
  auto parsed = Canonical<Wire>::parse(envelope.body, bounds::SIGNED_BODY_BYTES);
  if (!parsed.ok()) return parsed.refusal();
  auto body = parsed->get();
  if (body.getVersion() != wire::PROTOCOL_VERSION) {
    return Refusal{RefusalCode::UNSUPPORTED_VERSION, "The body states another protocol version."};
  }
  if (body.getIssuer() != envelope.issuer || body.getKeyId() != envelope.keyId) {
    return denied("The envelope names another key than the body.");
  }
  if (!areIdentifiers({body.getIssuer(), body.getKeyId()})) return malformed(BAD_NAME);
  Value value;
  value.issuer = kj::str(body.getIssuer());
  value.keyId = kj::str(body.getKeyId());
  auto read = readBody(body, value);
  if (!read.ok()) return read.refusal();
  return kj::mv(value);
}

}  // namespace praefectus::attest
