#include "attest/v2/authority.h"

#include <sodium.h>

namespace praefectus::attest::v2 {
namespace {

Refusal denied(kj::StringPtr why) { return {RefusalCode::POLICY_DENIED, why}; }

bool areNames(const PinnedKey& key) {
  return isName(key.issuer) && isName(key.keyId) && isName(key.policyGeneration);
}

bool areNames(const AuthorityGrant& grant) {
  return isName(grant.issuer) && isName(grant.keyId) && isName(grant.policyGeneration);
}

bool belongTogether(const AuthorityGrant& grant, const ActionRequest& request,
                    kj::StringPtr actionHash) {
  return grant.operation == request.operation && grant.subject == request.subject &&
         grant.session == request.session && grant.risk == request.safety &&
         grant.actionHash == actionHash;
}

template <typename Names>
const PinnedKey* find(kj::ArrayPtr<const PinnedKey> keys, const Names& names) {
  for (auto& key : keys) {
    if (key.issuer == names.issuer && key.keyId == names.keyId) return &key;
  }
  return nullptr;
}

}  // namespace

int64_t Verified::deadlineMs() const {
  return kj::min(content.deadlineMs, content.authority.grant.expiresMs);
}

Result<KeyRing> KeyRing::of(kj::Array<PinnedKey> keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!areNames(keys[i])) {
      return Refusal{RefusalCode::MALFORMED, "A pinned key's name is not a name."};
    }
    if (find(keys.slice(0, i), keys[i]) != nullptr) {
      return Refusal{RefusalCode::MALFORMED, "An issuer has the same key id twice."};
    }
  }
  return KeyRing(kj::mv(keys));
}

Result<Verified> KeyRing::verify(ActionRequest request) const {
  auto hash = v2::actionHash(request);
  auto& grant = request.authority.grant;
  if (!belongTogether(grant, request, hash)) return denied("The grant is not for this request.");
  if (!areNames(grant)) return denied("A name in the grant is not a name.");
  auto pinned = find(keys, grant);
  if (pinned == nullptr) return denied("The grant's key is not pinned.");
  if (pinned->policyGeneration != grant.policyGeneration) {
    return denied("The grant is of another policy generation.");
  }
  // Refuses a non-canonical S, and points of small order or non-canonical form.
  auto body = canonicalGrant(grant);
  if (crypto_sign_verify_detached(request.authority.signature.data(), body.asBytes().begin(),
                                  body.size(), pinned->key.data()) != 0) {
    return denied("The signature does not hold.");
  }
  return Verified(kj::mv(request), kj::mv(hash));
}

Signature signGrant(const AuthorityGrant& grant, Bytes seed) {
  KJ_REQUIRE(seed.size() == crypto_sign_SEEDBYTES);
  PublicKey pub;
  std::array<kj::byte, crypto_sign_SECRETKEYBYTES> secret;
  KJ_DEFER(sodium_memzero(secret.data(), secret.size()));
  KJ_ASSERT(crypto_sign_seed_keypair(pub.data(), secret.data(), seed.begin()) == 0);
  auto body = canonicalGrant(grant);
  Signature out;
  KJ_ASSERT(crypto_sign_detached(out.data(), nullptr, body.asBytes().begin(), body.size(),
                                 secret.data()) == 0);
  return out;
}

}  // namespace praefectus::attest::v2
