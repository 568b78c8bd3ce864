#include "attest/signed.h"

#include "attest/body.h"

namespace praefectus::attest {
namespace {

// An envelope around the largest body: names, signature and pointers need less than this.
constexpr size_t ENVELOPE_BYTES = bounds::SIGNED_BODY_BYTES + 1024;

void writeBody(const Manifest& from, wire::HelperManifest::Builder to) {
  to.setName(from.name);
  to.setRelease(from.release);
  to.setRole(from.role);
  to.setPlatform(from.platform);
  to.setProtocol(from.protocol);
  to.setDigest(bytesOf(from.digest));
  to.setSize(from.size);
}

Result<Done> readBody(wire::HelperManifest::Reader from, Manifest& to) {
  bool good = true;
  to.name = kj::str(from.getName());
  to.release = kj::str(from.getRelease());
  to.role = from.getRole();
  to.platform = kj::str(from.getPlatform());
  to.protocol = from.getProtocol();
  to.digest = hashIn(from.getDigest(), good);
  to.size = from.getSize();

  if (!good) return malformed(BAD_HASH);
  if (!areIdentifiers({to.name, to.release, to.platform})) return malformed(BAD_NAME);
  if (to.size < 1 || to.size > bounds::IMAGE_BYTES) return malformed("The size is out of bounds.");
  return Done{};
}

constexpr auto WRITE = [](const auto& from, auto to) { writeBody(from, to); };
constexpr auto READ = [](auto from, auto& to) { return readBody(from, to); };

}  // namespace

Envelope seal(const Manifest& manifest, const SigningKey& key) {
  return sealAs<wire::HelperManifest>(MANIFEST_LABEL, manifest, key, WRITE);
}

Result<Manifest> openManifest(const KeyRing& ring, const Envelope& envelope) {
  auto checked = ring.check(Purpose::PUBLISHER, MANIFEST_LABEL, envelope);
  if (!checked.ok()) return checked.refusal();
  return openAs<Manifest, wire::HelperManifest>(envelope, READ);
}

Result<Envelope> readEnvelope(wire::Signed::Reader from) {
  auto body = from.getBody();
  if (body.size() == 0 || body.size() > bounds::SIGNED_BODY_BYTES) {
    return malformed("The signed body is empty or oversize.");
  }
  if (!areIdentifiers({from.getIssuer(), from.getKeyId()})) return malformed(BAD_NAME);
  KJ_IF_MAYBE (signature, fixed<64>(from.getSignature())) {
    return Envelope{kj::heapArray<kj::byte>(body), kj::str(from.getIssuer()),
                    kj::str(from.getKeyId()), *signature};
  }
  return malformed("The signature does not have 64 bytes.");
}

void write(const Envelope& from, wire::Signed::Builder to) {
  to.setBody(from.body);
  to.setIssuer(from.issuer);
  to.setKeyId(from.keyId);
  to.setSignature(bytesOf(from.signature));
}

kj::Array<kj::byte> envelopeBytes(const Envelope& envelope) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Signed>();
  write(envelope, root);
  return canonicalBytes(root.asReader());
}

Result<Envelope> envelopeFrom(Bytes file) {
  auto parsed = Canonical<wire::Signed>::parse(file, ENVELOPE_BYTES);
  if (!parsed.ok()) return parsed.refusal();
  return readEnvelope(parsed->get());
}

}  // namespace praefectus::attest
