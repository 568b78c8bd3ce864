#include "supervisor/ledger/chain.h"

#include "supervisor/ledger/spelling.h"

namespace praefectus::ledger {
namespace {

attest::Digest labelled(kj::StringPtr label) {
  constexpr kj::byte NUL = 0;
  attest::Digest digest;
  digest.add(label).add(Bytes(&NUL, 1));
  return digest;
}

}  // namespace

Hash genesis(const attest::PublicKey& receiptKey, const attest::KeyRing& ring) {
  auto digest = labelled("praefectus/genesis/v2");
  digest.add(bytesOf(receiptKey)).addNumber(ring.entries().size());
  for (auto& entry : ring.entries()) {
    digest.addNumber(static_cast<uint64_t>(entry.purpose));
    digest.addSized(entry.issuer).addSized(entry.keyId).addSized(bytesOf(entry.key));
  }
  return digest.finish();
}

Hash contentOf(const Claim& claim) {
  auto digest = labelled("praefectus/claim/v2");
  digest.addSized(claim.operation).add(bytesOf(claim.actionHash));
  digest.addSized(nameOf(claim.actionClass)).addSized(claim.kind);
  digest.addSized(nameOf(claim.mode)).addSized(nameOf(claim.risk));
  digest.addSized(nameOf(claim.proof)).addSized(wordsOf(claim.rights));
  digest.addSized(claim.grantIssuer).addSized(claim.grantKeyId).add(bytesOf(claim.grantHash));
  digest.addNumber(claim.policyGeneration).addSized(claim.lease);
  digest.addSized(claim.subject).addSized(claim.session).addSized(claim.turn);
  digest.addSized(claim.helper.name).addSized(claim.helper.release);
  digest.add(bytesOf(claim.helper.digest)).addNumber(claim.helper.generation);
  digest.addNumber(static_cast<uint64_t>(claim.at));
  return digest.finish();
}

}  // namespace praefectus::ledger
