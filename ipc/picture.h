// A picture on its way: how its PNG, too large for one message, is fetched piece by piece.
#pragma once

#include "ipc/desktop.h"

#include <kj/async.h>
#include <kj/function.h>

namespace praefectus {

// Unkeyed BLAKE2b-256; given by whoever owns the hash (attest), so that ipc needs no cryptography.
using PlainHash = kj::Function<Hash(Bytes)>;
// Makes a PNG of a Picture's pixels; nothing when it would be larger than bounds::PICTURE_BYTES.
// Given by the helper, so that ipc needs no library for it.
using PngEncoder = kj::Function<kj::Maybe<kj::Array<kj::byte>>(const PictureInfo&, Bytes pixels)>;

// One PNG, in memory.
struct Png {
  kj::Array<kj::byte> bytes;
  Hash digest{};

  // At most bounds::PICTURE_CHUNK bytes; empty at and beyond the end.
  Bytes piece(uint64_t offset) const;
};

// Whether it has pixels, and not more than bounds::PIXEL_BYTES of them.
bool isPossible(const PictureInfo& info);

// Fetches the whole PNG of the picture that `info` describes; nothing when the other side says that
// there is none. Rejects when an answer is not of its schema, the size is above
// bounds::PICTURE_BYTES, a piece is empty or too long, the digest is not that of the bytes, or they
// do not begin as a PNG of this width and height. Has no deadline of its own.
kj::Promise<kj::Maybe<Png>> fetchPng(wire::Picture::Client from, const PictureInfo& info,
                                     PlainHash hash);

}  // namespace praefectus
