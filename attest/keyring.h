// Pinned public keys, each for one purpose, and private keys in locked memory.
//
// A signature is checked over the bytes as they were received, before anything parses them.
#pragma once

#include "attest/digest.h"

#include <kj/map.h>
#include <kj/vector.h>

namespace praefectus::attest {

using PublicKey = std::array<kj::byte, 32>;
using Signature = std::array<kj::byte, 64>;

enum class Purpose : uint8_t { ISSUER = 1, PUBLISHER = 2, RECEIPT = 3 };

// A signed body and the names that say which key to try.
struct Envelope {
  kj::Array<kj::byte> body;
  kj::String issuer;
  kj::String keyId;
  Signature signature{};

  Envelope clone() const;
};

// An Ed25519 private key. Its memory is guarded, read-only, left out of core dumps and wiped at the
// end; it is locked too where RLIMIT_MEMLOCK allows, and used unlocked where it does not
// (sodium_malloc(3) reports no difference, and a supervisor without a key would protect nobody).
class SigningKey {
 public:
  static SigningKey generate();
  // Reads a key file: 0600, owned by the effective user, not a symlink, exactly what save wrote.
  // Refuses: LEDGER_FOREIGN when any of that does not hold.
  static Result<SigningKey> load(kj::StringPtr path);
  // From a 32-byte seed (tests, vectors).
  static SigningKey fromSeed(Bytes seed);

  // Creates the file (0600, exclusive, synced with its folder). Throws when it cannot; a file that
  // it had begun is then removed.
  void save(kj::StringPtr path) const;
  const PublicKey& publicKey() const { return pub; }
  // Signs `label ‖ NUL ‖ body`.
  Signature sign(kj::StringPtr label, Bytes body) const;

  SigningKey(SigningKey&& other);
  SigningKey& operator=(SigningKey&& other);
  ~SigningKey() noexcept;
  KJ_DISALLOW_COPY(SigningKey);

 private:
  SigningKey() = default;
  kj::byte* secret = nullptr;  // 64 bytes from the guarded allocator.
  PublicKey pub{};
};

// First 16 hex digits of the key's BLAKE2b-256.
kj::String keyIdOf(const PublicKey& key);

bool verify(const PublicKey& key, kj::StringPtr label, Bytes body, const Signature& signature);

class KeyRing {
 public:
  struct Entry {
    Purpose purpose;
    kj::String issuer;
    kj::String keyId;
    PublicKey key;
  };

  // Throws on a repeated (purpose, issuer, keyId), a bad identifier, or a key already pinned for
  // another purpose.
  void add(Purpose purpose, kj::StringPtr issuer, kj::StringPtr keyId, const PublicKey& key);
  kj::ArrayPtr<const Entry> entries() const { return list; }

  // Checks the envelope's signature with the pinned key of that purpose.
  // Refuses: POLICY_DENIED when no such key is pinned or the signature does not hold; the detail
  // says which. An empty ring denies everything.
  Result<Done> check(Purpose purpose, kj::StringPtr label, const Envelope& envelope) const;

 private:
  kj::Vector<Entry> list;
};

}  // namespace praefectus::attest
