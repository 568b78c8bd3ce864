#include "supervisor/ledger/revocations.h"

#include "ipc/bounds.h"

namespace praefectus::ledger {
namespace {

Refusal revoked(kj::StringPtr detail) { return {RefusalCode::REVOKED, detail}; }

}  // namespace

void Revocations::add(const attest::Revocation& from) {
  if (!has(from.issuer, from.revocation)) ++count;
  auto take = [&](auto&&... parts) {
    taken.upsert(kj::str(from.issuer, ' ', parts...), true, [](bool&, bool&&) {});
  };
  take("revocation ", from.revocation);
  KJ_SWITCH_ONEOF(from.what) {
    KJ_CASE_ONEOF(grant, attest::RevokedOperation) { take("operation ", grant.operation); }
    KJ_CASE_ONEOF(lease, attest::RevokedLease) { take("lease ", lease.lease); }
    KJ_CASE_ONEOF(turn, attest::RevokedTurn) { take("turn ", turn.session, ' ', turn.turn); }
    KJ_CASE_ONEOF(generation, attest::RevokedGeneration) {
      generations.upsert(kj::str(from.issuer), generation.valid,
                         [](uint64_t& old, uint64_t&& next) { old = kj::max(old, next); });
    }
  }
}

Result<Done> Revocations::admit(const attest::Revocation& revocation) const {
  if (has(revocation.issuer, revocation.revocation)) {
    if (covers(revocation)) return Done{};
    // The ledger keeps the first one of an id, and would not remember what another one says.
    return Refusal{RefusalCode::OPERATION_CONFLICT,
                   "Another revocation of this id was made before."_kj};
  }
  if (count >= bounds::REVOCATIONS) {
    return Refusal{RefusalCode::BUSY, "No more revocations can be kept in this ledger."_kj};
  }
  return Done{};
}

bool Revocations::covers(const attest::Revocation& of) const {
  auto isTaken = [&](auto&&... parts) {
    return taken.find(kj::str(of.issuer, ' ', parts...)) != nullptr;
  };
  KJ_SWITCH_ONEOF(of.what) {
    KJ_CASE_ONEOF(grant, attest::RevokedOperation) {
      return isTaken("operation ", grant.operation);
    }
    KJ_CASE_ONEOF(lease, attest::RevokedLease) { return isTaken("lease ", lease.lease); }
    KJ_CASE_ONEOF(turn, attest::RevokedTurn) {
      return isTaken("turn ", turn.session, ' ', turn.turn);
    }
    KJ_CASE_ONEOF(generation, attest::RevokedGeneration) {
      return generationOf(of.issuer) >= generation.valid;
    }
  }
  KJ_UNREACHABLE;
}

bool Revocations::has(kj::StringPtr issuer, kj::StringPtr revocation) const {
  return taken.find(kj::str(issuer, " revocation ", revocation)) != nullptr;
}

Revocations Revocations::clone() const {
  Revocations out;
  for (auto& entry : generations) out.generations.insert(kj::str(entry.key), entry.value);
  for (auto& entry : taken) out.taken.insert(kj::str(entry.key), true);
  out.count = count;
  return out;
}

uint64_t Revocations::generationOf(kj::StringPtr issuer) const {
  return generations.find(issuer).orDefault(1);
}

Result<Done> Revocations::check(const attest::Grant& grant) const {
  if (taken.find(kj::str(grant.issuer, " operation ", grant.operation)) != nullptr) {
    return revoked("The grant was revoked.");
  }
  return checkCommon(grant.issuer, grant.policyGeneration, grant.session, grant.turn);
}

Result<Done> Revocations::check(const attest::Lease& lease) const {
  if (taken.find(kj::str(lease.issuer, " lease ", lease.lease)) != nullptr) {
    return revoked("The lease was revoked.");
  }
  return checkCommon(lease.issuer, lease.policyGeneration, lease.session, lease.turn);
}

Result<Done> Revocations::checkCommon(kj::StringPtr issuer, uint64_t generation,
                                      kj::StringPtr session, kj::StringPtr turn) const {
  if (generation != generationOf(issuer)) {
    return Refusal{RefusalCode::POLICY_DENIED,
                   "The issuer's policy has another generation now."_kj};
  }
  if (taken.find(kj::str(issuer, " turn ", session, ' ', turn)) != nullptr) {
    return revoked("The turn was revoked.");
  }
  return Done{};
}

}  // namespace praefectus::ledger
