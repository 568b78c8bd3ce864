// What is open in one session's turn: which classes of actions, on what, until when.
//
// A grant says what may be done once; a lease says that a person wants this kind of thing done at
// all, here and now. Both are needed, and either one alone is refused.
#pragma once

#include "supervisor/frames.h"
#include "supervisor/ledger/revocations.h"

namespace praefectus {

// What leases are held against.
struct LeaseScope {
  const Frames& frames;
  const ledger::Revocations& revocations;
  uint64_t generation;  // Of the session: counts the helpers that it has lost.
  int64_t nowMs;
};

class Leases {
 public:
  // Refuses POLICY_DENIED (not valid yet, expired), REVOKED, STALE_FRAME (of a frame that is not
  // current), LEASE_MISSING (it was open and ended with its helper), BUSY (bounds::LEASES are
  // open), OPERATION_CONFLICT (another lease of this id was opened). The same lease again changes
  // nothing.
  Result<Done> open(attest::Lease lease, const Hash& hash, const LeaseScope& scope);
  void closeAll() { leases.clear(); }

  // The id of an open lease that covers the grant's class, target and frame; of several, of the one
  // that expires last.
  // Refuses LEASE_MISSING, or REVOKED when one did and was taken back.
  Result<kj::StringPtr> covering(const attest::Grant& grant, const LeaseScope& scope) const;
  // Whether this lease is still open, its frame left aside: an operation spends its own.
  bool isOpen(kj::StringPtr issuer, kj::StringPtr lease, const LeaseScope& scope) const;
  bool isRevoked(kj::StringPtr issuer, kj::StringPtr lease,
                 const ledger::Revocations& revocations) const;

 private:
  struct Entry {
    attest::Lease lease;
    Hash hash;
    uint64_t generation;
  };
  static bool isNamed(const Entry& entry, kj::StringPtr issuer, kj::StringPtr lease) {
    return entry.lease.issuer == issuer && entry.lease.lease == lease;
  }
  static bool holds(const Entry& entry, const LeaseScope& scope);
  static bool couldOpen(const attest::Lease& lease, const LeaseScope& scope);
  size_t countOpen(const LeaseScope& scope) const;
  void forgetEnded(const LeaseScope& scope);

  // One that ended with its helper stays until it could not be opened any more: signed once, it
  // is opened once.
  kj::Vector<Entry> leases;
};

}  // namespace praefectus
