// Who may ask: v2's pinned keys, and the proof that a request is one that a key's owner allowed.
//
// v2 signs no label and no audience. A key that signs v2 grants must sign nothing else, and one
// grant is good for every ledger whose ring pins its key: at most once holds for each ledger, not
// for each grant.
#pragma once

#include "attest/v2/request.h"

namespace praefectus::attest::v2 {

struct PinnedKey {
  kj::String issuer, keyId, policyGeneration;
  PublicKey key{};
};

// A request whose authority held. Only a ring makes one, so whoever is handed one need not ask.
class Verified {
 public:
  const ActionRequest& request() const { return content; }
  // 64 lower-case hexadecimal digits; see request.h on what may become of it.
  kj::StringPtr actionHash() const { return hash; }
  // Unix milliseconds: when the request or the grant ends, whichever is sooner. Nobody has yet
  // compared it with a clock.
  int64_t deadlineMs() const;

 private:
  friend class KeyRing;
  Verified(ActionRequest content, kj::String hash) : content(kj::mv(content)), hash(kj::mv(hash)) {}
  ActionRequest content;
  kj::String hash;
};

class KeyRing {
 public:
  // Refuses: MALFORMED when an issuer, key id or policy generation is not a name, or an issuer has
  // one key id twice. An empty ring denies everything.
  static Result<KeyRing> of(kj::Array<PinnedKey> keys);

  // In this order: the grant is this request's (operation, subject, session, risk, action hash);
  // its names are names; its key is pinned; its policy generation is that key's; its signature
  // holds, by the strict rules of Ed25519. Refuses: POLICY_DENIED; the detail says which.
  Result<Verified> verify(ActionRequest request) const;

 private:
  explicit KeyRing(kj::Array<PinnedKey> keys) : keys(kj::mv(keys)) {}
  kj::Array<PinnedKey> keys;
};

// For a host that speaks v2: signs with the key of this 32-byte seed, of which no copy stays.
Signature signGrant(const AuthorityGrant& grant, Bytes seed);

}  // namespace praefectus::attest::v2
