#include "attest/image.h"

#include "attest/sealed-copy.h"
#include "ipc/bounds.h"

namespace praefectus::attest {
namespace {

// Room for the largest envelope; what is larger is no manifest.
constexpr uint64_t MANIFEST_FILE_BYTES = bounds::SIGNED_BODY_BYTES + 1024;

Refusal mismatch(kj::StringPtr why) { return {RefusalCode::SERVICE_MISMATCH, why}; }

// What the publisher states about the image at `path`, for this role and this machine.
Result<Manifest> manifestOf(const KeyRing& ring, Role role, kj::StringPtr path) {
  auto file = smallFile(kj::str(path, ".manifest"), MANIFEST_FILE_BYTES);
  if (!file.ok()) return file.refusal();
  auto envelope = envelopeFrom(*file);
  if (!envelope.ok()) return mismatch("The helper's manifest is not well formed.");
  auto manifest = openManifest(ring, *envelope);
  if (!manifest.ok()) return mismatch("The helper's manifest is not signed by a pinned publisher.");
  if (manifest->role != role) return mismatch("The helper's manifest is for another role.");
  if (manifest->platform != platform()) return mismatch("The helper is for another platform.");
  if (manifest->protocol != wire::PROTOCOL_VERSION) {
    return mismatch("The helper speaks another protocol version.");
  }
  return manifest;
}

}  // namespace

Result<kj::Own<Image>> Image::attest(const KeyRing& ring, Role role, kj::StringPtr path) {
  auto manifest = manifestOf(ring, role, path);
  if (!manifest.ok()) return manifest.refusal();
  auto copy = sealedCopy(path, bounds::IMAGE_BYTES);
  if (!copy.ok()) return copy.refusal();

  auto hash = digestOf(copy->contents);
  if (copy->contents.size() != manifest->size || !same(hash, manifest->digest)) {
    return mismatch("The helper's file is not the one that was signed.");
  }
  auto image = kj::heap<Image>();
  image->memory = kj::mv(copy->memory);
  image->hash = hash;
  image->bytes = copy->contents.size();
  image->stated = kj::mv(*manifest);
  return kj::mv(image);
}

}  // namespace praefectus::attest
