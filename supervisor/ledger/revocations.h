// What issuers have taken back. Pure: revocations in, answers out.
#pragma once

#include "attest/signed.h"

#include <kj/map.h>

namespace praefectus::ledger {

class Revocations {
 public:
  // One whose signature was checked. The same one again changes nothing.
  void add(const attest::Revocation& revocation);
  // Whether it can be added. Refuses OPERATION_CONFLICT when another one of its id was, BUSY when
  // it would be one more than bounds::REVOCATIONS.
  Result<Done> admit(const attest::Revocation& revocation) const;
  size_t size() const { return count; }
  bool has(kj::StringPtr issuer, kj::StringPtr revocation) const;
  // Whether all that it takes back is taken back already, by it or by another.
  bool covers(const attest::Revocation& revocation) const;
  Revocations clone() const;

  // The issuer's present policy generation; 1 when it never raised it.
  uint64_t generationOf(kj::StringPtr issuer) const;

  // Refuse REVOKED, or POLICY_DENIED when the policy generation is not the present one.
  Result<Done> check(const attest::Grant& grant) const;
  Result<Done> check(const attest::Lease& lease) const;

 private:
  Result<Done> checkCommon(kj::StringPtr issuer, uint64_t generation, kj::StringPtr session,
                           kj::StringPtr turn) const;

  kj::HashMap<kj::String, uint64_t> generations;  // By issuer.
  // What is taken back, each as "issuer kind name…"; identifiers have no spaces.
  kj::HashMap<kj::String, bool> taken;
  size_t count = 0;  // Of revocations, each of which has its own id.
};

}  // namespace praefectus::ledger
