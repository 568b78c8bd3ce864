#include "supervisor/leases.h"

#include "ipc/bounds.h"

namespace praefectus {
namespace {

constexpr Refusal MISSING = {
    RefusalCode::LEASE_MISSING,
    "No open lease covers this class of action on this target and frame."_kj};

bool sameFrame(const kj::Maybe<FrameId>& a, const FrameId& b) {
  KJ_IF_MAYBE (frame, a) return *frame == b;
  return false;
}

bool covers(const WindowRef& leased, const WindowRef& target) {
  if (leased == WindowRef{}) return true;
  if (leased.window == 0) return leased.process == target.process;
  return leased == target;
}

}  // namespace

Result<Done> Leases::open(attest::Lease lease, const Hash& hash, const LeaseScope& scope) {
  if (scope.nowMs < lease.notBefore) {
    return Refusal{RefusalCode::POLICY_DENIED, "The lease is not valid yet."_kj};
  }
  if (scope.nowMs >= lease.expires) {
    return Refusal{RefusalCode::POLICY_DENIED, "The lease has expired."_kj};
  }
  auto revoked = scope.revocations.check(lease);
  if (!revoked.ok()) return revoked.refusal();
  KJ_IF_MAYBE (frame, lease.frame) {
    if (!scope.frames.isCurrent(*frame)) {
      return Refusal{RefusalCode::STALE_FRAME, "The lease is for a frame that is not current."_kj};
    }
  }
  forgetEnded(scope);
  for (auto& entry : leases) {
    if (!isNamed(entry, lease.issuer, lease.lease)) continue;
    if (!attest::same(entry.hash, hash)) {
      return Refusal{RefusalCode::OPERATION_CONFLICT, "Another lease of this id was opened."_kj};
    }
    if (holds(entry, scope)) return Done{};
    return Refusal{RefusalCode::LEASE_MISSING, "This lease ended with its helper."_kj};
  }
  if (countOpen(scope) >= bounds::LEASES) {
    return Refusal{RefusalCode::BUSY, "Too many leases are open in this session."_kj};
  }
  leases.add(Entry{kj::mv(lease), hash, scope.generation});
  return Done{};
}

Result<kj::StringPtr> Leases::covering(const attest::Grant& grant, const LeaseScope& scope) const {
  Refusal why = MISSING;
  // Of several, the one that is open longest: an operation should not end with a lease beside which
  // its successor is already open.
  kj::Maybe<const attest::Lease&> best;
  for (auto& entry : leases) {
    auto& lease = entry.lease;
    if (lease.issuer != grant.issuer || !lease.classes.has(grant.actionClass)) continue;
    if (!covers(lease.target, grant.target)) continue;
    KJ_IF_MAYBE (frame, lease.frame) {
      if (!scope.frames.isCurrent(*frame)) continue;
      if (grant.frame != nullptr && !sameFrame(grant.frame, *frame)) continue;
    }
    auto revoked = scope.revocations.check(lease);
    if (!revoked.ok()) why = revoked.refusal();
    bool longer = true;
    KJ_IF_MAYBE (other, best) longer = lease.expires > other->expires;
    if (longer && holds(entry, scope)) best = lease;
  }
  KJ_IF_MAYBE (lease, best) return lease->lease.asPtr();
  return why;
}

bool Leases::isOpen(kj::StringPtr issuer, kj::StringPtr lease, const LeaseScope& scope) const {
  for (auto& entry : leases) {
    if (isNamed(entry, issuer, lease) && holds(entry, scope)) return true;
  }
  return false;
}

bool Leases::isRevoked(kj::StringPtr issuer, kj::StringPtr lease,
                       const ledger::Revocations& revocations) const {
  for (auto& entry : leases) {
    if (isNamed(entry, issuer, lease) && !revocations.check(entry.lease).ok()) return true;
  }
  return false;
}

bool Leases::couldOpen(const attest::Lease& lease, const LeaseScope& scope) {
  return scope.nowMs >= lease.notBefore && scope.nowMs < lease.expires &&
         scope.revocations.check(lease).ok();
}

bool Leases::holds(const Entry& entry, const LeaseScope& scope) {
  return entry.generation == scope.generation && couldOpen(entry.lease, scope);
}

size_t Leases::countOpen(const LeaseScope& scope) const {
  size_t open = 0;
  for (auto& entry : leases) open += holds(entry, scope) ? 1 : 0;
  return open;
}

void Leases::forgetEnded(const LeaseScope& scope) {
  kj::Vector<Entry> kept;
  for (auto& entry : leases) {
    bool current = true;
    KJ_IF_MAYBE (frame, entry.lease.frame) current = scope.frames.isCurrent(*frame);
    if (current && couldOpen(entry.lease, scope)) kept.add(kj::mv(entry));
  }
  leases = kj::mv(kept);
}

}  // namespace praefectus
