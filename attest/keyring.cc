#include "attest/keyring.h"

#include <sodium.h>

namespace praefectus::attest {
namespace {

static_assert(std::tuple_size<PublicKey>() == crypto_sign_PUBLICKEYBYTES);
static_assert(std::tuple_size<Signature>() == crypto_sign_BYTES);

// What is really signed. The NUL ends the label, so that no label is the beginning of another.
kj::Array<kj::byte> labelled(kj::StringPtr label, Bytes body) {
  auto out = kj::heapArray<kj::byte>(label.size() + 1 + body.size());
  memcpy(out.begin(), label.cStr(), label.size() + 1);
  if (body.size() > 0) memcpy(out.begin() + label.size() + 1, body.begin(), body.size());
  return out;
}

}  // namespace

Envelope Envelope::clone() const {
  return {kj::heapArray<kj::byte>(body), kj::str(issuer), kj::str(keyId), signature};
}

SigningKey SigningKey::generate() {
  std::array<kj::byte, crypto_sign_SEEDBYTES> seed;
  random(kj::arrayPtr(seed.data(), seed.size()));
  KJ_DEFER(sodium_memzero(seed.data(), seed.size()));
  return fromSeed(bytesOf(seed));
}

SigningKey SigningKey::fromSeed(Bytes seed) {
  KJ_REQUIRE(seed.size() == crypto_sign_SEEDBYTES);
  SigningKey key;
  key.secret = static_cast<kj::byte*>(sodium_malloc(crypto_sign_SECRETKEYBYTES));
  KJ_ASSERT(key.secret != nullptr, "no memory for a key");
  KJ_ASSERT(crypto_sign_seed_keypair(key.pub.data(), key.secret, seed.begin()) == 0);
  KJ_ASSERT(sodium_mprotect_readonly(key.secret) == 0);
  return key;
}

Signature SigningKey::sign(kj::StringPtr label, Bytes body) const {
  KJ_REQUIRE(secret != nullptr, "a key that was moved away");
  auto message = labelled(label, body);
  Signature out;
  KJ_ASSERT(crypto_sign_detached(out.data(), nullptr, message.begin(), message.size(), secret) ==
            0);
  return out;
}

SigningKey::SigningKey(SigningKey&& other) : secret(other.secret), pub(other.pub) {
  other.secret = nullptr;
}

SigningKey& SigningKey::operator=(SigningKey&& other) {
  std::swap(secret, other.secret);
  std::swap(pub, other.pub);
  return *this;
}

SigningKey::~SigningKey() noexcept { sodium_free(secret); }

kj::String keyIdOf(const PublicKey& key) {
  Hash digest = digestOf(bytesOf(key));
  return hex(Bytes(digest.data(), 8));
}

bool verify(const PublicKey& key, kj::StringPtr label, Bytes body, const Signature& signature) {
  auto message = labelled(label, body);
  // Strict: refuses a non-canonical S, and points of small order or non-canonical form.
  return crypto_sign_verify_detached(signature.data(), message.begin(), message.size(),
                                     key.data()) == 0;
}

void KeyRing::add(Purpose purpose, kj::StringPtr issuer, kj::StringPtr keyId,
                  const PublicKey& key) {
  KJ_REQUIRE(isIdentifier(issuer) && isIdentifier(keyId), "not an identifier");
  for (auto& entry : list) {
    KJ_REQUIRE(entry.purpose != purpose || entry.issuer != issuer || entry.keyId != keyId,
               "this name is pinned already");
    KJ_REQUIRE(entry.purpose == purpose || entry.key != key, "a key has one purpose");
  }
  list.add(Entry{purpose, kj::str(issuer), kj::str(keyId), key});
}

Result<Done> KeyRing::check(Purpose purpose, kj::StringPtr label, const Envelope& envelope) const {
  for (auto& entry : list) {
    if (entry.purpose != purpose || entry.issuer != envelope.issuer ||
        entry.keyId != envelope.keyId) {
      continue;
    }
    if (verify(entry.key, label, envelope.body, envelope.signature)) return Done{};
    return Refusal{RefusalCode::POLICY_DENIED, "The signature does not hold."};
  }
  return Refusal{RefusalCode::POLICY_DENIED, "No such key is pinned for this purpose."};
}

}  // namespace praefectus::attest
