#include "ipc/picture.h"

#include "ipc/strict.h"

#include <capnp/capability.h>

#include <algorithm>

namespace praefectus {
namespace {

template <typename Results>
typename Results::Reader strictly(const capnp::Response<Results>& response) {
  typename Results::Reader reader = response;
  KJ_REQUIRE(checkStrict(reader).ok(), "the answer is not of its schema");
  return reader;
}

// The signature and the head of the first chunk (PNG, second edition, 5.2, 5.3 and 11.2.2), then
// width and height. The rest of a PNG is for whoever decodes it.
bool isPngOf(const PictureInfo& info, Bytes bytes) {
  constexpr kj::byte START[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n',
                                0,    0,   0,   13,  'I',  'H',  'D',  'R'};
  constexpr size_t SIZES = 8;
  if (bytes.size() < sizeof(START) + SIZES) return false;
  if (!std::equal(std::begin(START), std::end(START), bytes.begin())) return false;
  auto number = [at = bytes.begin() + sizeof(START)](size_t offset) {
    uint32_t out = 0;
    for (size_t i = 0; i < 4; ++i) out = out << 8 | at[offset + i];
    return out;
  };
  return number(0) == info.width && number(4) == info.height;
}

class Fetching {
 public:
  Fetching(wire::Picture::Client from, const PictureInfo& info, PlainHash hash)
      : from(kj::mv(from)), info(info), hash(kj::mv(hash)) {}

  kj::Promise<kj::Maybe<Png>> run() {
    return from.pngRequest().send().then(
        [this](capnp::Response<wire::Picture::PngResults>&& answer) -> kj::Promise<kj::Maybe<Png>> {
          auto said = strictly(answer);
          if (said.getSize() == 0) return kj::Maybe<Png>();
          KJ_REQUIRE(said.getSize() <= bounds::PICTURE_BYTES);
          png.digest = KJ_REQUIRE_NONNULL(fixed<32>(said.getDigest()));
          png.bytes = kj::heapArray<kj::byte>(said.getSize());
          return rest().then([this]() -> kj::Maybe<Png> {
            KJ_REQUIRE(hash(png.bytes) == png.digest, "not the announced picture");
            KJ_REQUIRE(isPngOf(info, png.bytes), "not a picture of this size");
            return kj::mv(png);
          });
        });
  }

 private:
  kj::Promise<void> rest() {
    if (filled == png.bytes.size()) return kj::READY_NOW;
    auto request = from.readRequest();
    request.setOffset(filled);
    return request.send().then([this](capnp::Response<wire::Picture::ReadResults>&& answer) {
      auto piece = strictly(answer).getBytes();
      KJ_REQUIRE(piece.size() > 0 && piece.size() <= png.bytes.size() - filled);
      memcpy(png.bytes.begin() + filled, piece.begin(), piece.size());
      filled += piece.size();
      return rest();
    });
  }

  wire::Picture::Client from;
  PictureInfo info;
  PlainHash hash;
  Png png;
  size_t filled = 0;
};

}  // namespace

Bytes Png::piece(uint64_t offset) const {
  size_t from = std::min<uint64_t>(offset, bytes.size());
  return bytes.slice(from, std::min(from + bounds::PICTURE_CHUNK, bytes.size()));
}

bool isPossible(const PictureInfo& info) {
  uint64_t pixels = uint64_t{info.width} * info.height;
  return pixels > 0 && pixels <= bounds::PIXEL_BYTES / 4;
}

kj::Promise<kj::Maybe<Png>> fetchPng(wire::Picture::Client from, const PictureInfo& info,
                                     PlainHash hash) {
  auto fetching = kj::heap<Fetching>(kj::mv(from), info, kj::mv(hash));
  auto done = fetching->run();
  return done.attach(kj::mv(fetching));
}

}  // namespace praefectus
