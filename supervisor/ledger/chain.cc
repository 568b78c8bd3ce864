#include "supervisor/ledger/chain.h"

namespace praefectus::ledger {
namespace {

attest::Digest labelled(kj::StringPtr label) {
  constexpr kj::byte NUL = 0;
  attest::Digest digest;
  digest.add(label).add(Bytes(&NUL, 1));
  return digest;
}

}  // namespace

kj::StringPtr nameOf(Step step) {
  switch (step) {
    case Step::CLAIM:
      return "claim";
    case Step::ENDING:
      return "ending";
  }
  KJ_UNREACHABLE;
}

Hash genesis(const LedgerId& id, const attest::PublicKey& receiptKey, const attest::KeyRing& ring) {
  auto digest = labelled("praefectus/genesis/v1");
  digest.add(bytesOf(id.key)).addNumber(id.incarnation).add(bytesOf(receiptKey));
  digest.addNumber(ring.entries().size());
  for (auto& entry : ring.entries()) {
    digest.addNumber(static_cast<uint64_t>(entry.purpose));
    digest.addSized(entry.issuer).addSized(entry.keyId).addSized(bytesOf(entry.key));
  }
  return digest.finish();
}

Hash contentOf(const Claim& claim) {
  auto digest = labelled("praefectus/claim/v1");
  digest.addSized(claim.operation).add(bytesOf(claim.actionHash));
  digest.addSized(praefectus::nameOf(claim.actionClass)).addSized(claim.kind);
  digest.addSized(claim.grantIssuer).addSized(claim.grantKeyId).add(bytesOf(claim.grantHash));
  digest.addSized(claim.subject).addSized(claim.session).addSized(claim.turn);
  digest.addSized(claim.helper.name).addSized(claim.helper.release);
  digest.add(bytesOf(claim.helper.digest)).addNumber(claim.helper.generation);
  digest.addNumber(static_cast<uint64_t>(claim.at));
  return digest.finish();
}

Hash contentOf(Bytes receipt) { return attest::digestOf(receipt); }

Head extend(const Head& head, Step step, kj::StringPtr operation, const Hash& content) {
  auto digest = labelled("praefectus/link/v1");
  digest.add(bytesOf(head.link)).addNumber(head.sequence + 1);
  digest.addSized(nameOf(step)).addSized(operation).add(bytesOf(content));
  return {head.sequence + 1, digest.finish()};
}

}  // namespace praefectus::ledger
