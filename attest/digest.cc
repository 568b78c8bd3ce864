#include "attest/digest.h"

#include <sodium.h>

#include <new>

namespace praefectus::attest {
namespace {

constexpr size_t HASH_BYTES = 32;

// The header keeps libsodium's name out of every user; this is the only place where the two meet.
crypto_generichash_state* stateIn(kj::byte* memory) {
  return std::launder(reinterpret_cast<crypto_generichash_state*>(memory));
}

std::array<kj::byte, 8> littleEndian(uint64_t number) {
  std::array<kj::byte, 8> out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<kj::byte>(number >> (8 * i));
  return out;
}

}  // namespace

void initialize() { KJ_REQUIRE(sodium_init() >= 0, "libsodium could not start"); }

Digest::Digest() {
  static_assert(sizeof(crypto_generichash_state) <= sizeof(state));
  static_assert(alignof(crypto_generichash_state) <= alignof(Digest));
  KJ_ASSERT(crypto_generichash_init(stateIn(state), nullptr, 0, HASH_BYTES) == 0);
}

Digest::Digest(Bytes key) {
  KJ_REQUIRE(key.size() >= crypto_generichash_KEYBYTES_MIN &&
             key.size() <= crypto_generichash_KEYBYTES_MAX);
  KJ_ASSERT(crypto_generichash_init(stateIn(state), key.begin(), key.size(), HASH_BYTES) == 0);
}

Digest& Digest::add(Bytes bytes) {
  crypto_generichash_update(stateIn(state), bytes.begin(), bytes.size());
  return *this;
}

Digest& Digest::add(kj::StringPtr text) { return add(text.asBytes()); }

Digest& Digest::addSized(Bytes bytes) { return addNumber(bytes.size()).add(bytes); }

Digest& Digest::addSized(kj::StringPtr text) { return addSized(text.asBytes()); }

Digest& Digest::addNumber(uint64_t number) { return add(bytesOf(littleEndian(number))); }

Hash Digest::finish() {
  Hash out;
  KJ_ASSERT(crypto_generichash_final(stateIn(state), out.data(), out.size()) == 0);
  // A keyed state is as good as the key to whoever reads it later.
  sodium_memzero(state, sizeof(state));
  return out;
}

Hash digestOf(Bytes bytes) { return Digest().add(bytes).finish(); }

Hash keyedDigest(Bytes key, Bytes bytes) {
  if (key.size() == 0) return digestOf(bytes);
  return Digest(key).add(bytes).finish();
}

Hash labelledDigest(kj::StringPtr label, Bytes bytes) {
  constexpr kj::byte NUL = 0;
  return Digest().add(label).add(Bytes(&NUL, 1)).add(bytes).finish();
}

Hash actionHash(Bytes canonicalAction) {
  return labelledDigest("praefectus/action/v1", canonicalAction);
}

bool same(const Hash& a, const Hash& b) { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

void random(kj::ArrayPtr<kj::byte> out) { randombytes_buf(out.begin(), out.size()); }

}  // namespace praefectus::attest
