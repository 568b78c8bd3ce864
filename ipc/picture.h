// A picture too large for one message: how it is offered, and how it is fetched, piece by piece.
#pragma once

#include "ipc/schema/desktop.capnp.h"
#include "ipc/words.h"

#include <kj/async.h>
#include <kj/function.h>

namespace praefectus {

// Unkeyed BLAKE2b-256; given by whoever owns the hash (attest), so that ipc needs no cryptography.
using PlainHash = kj::Function<Hash(Bytes)>;

// One PNG, in memory.
struct PictureData {
  uint32_t width = 0, height = 0;
  kj::Array<kj::byte> png;
  Hash digest{};

  void writeInfo(wire::PictureInfo::Builder to) const;
  // At most bounds::PICTURE_CHUNK bytes; empty at and beyond the end.
  Bytes piece(uint64_t offset) const;
};

// Fetches the whole of it. Rejects when an answer is not of its schema, the size is above
// bounds::PICTURE_BYTES, a piece is empty or too long, or the digest is not that of the bytes. Has
// no deadline of its own.
kj::Promise<PictureData> fetchPicture(wire::Picture::Client from, PlainHash hash);

}  // namespace praefectus
