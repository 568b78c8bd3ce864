#include "ipc/picture.h"

#include "ipc/bounds.h"
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

class Fetching {
 public:
  Fetching(wire::Picture::Client from, PlainHash hash) : from(kj::mv(from)), hash(kj::mv(hash)) {}

  kj::Promise<PictureData> run() {
    return from.infoRequest().send().then(
        [this](capnp::Response<wire::Picture::InfoResults>&& answer) {
          auto info = strictly(answer).getInfo();
          KJ_REQUIRE(info.getSize() <= bounds::PICTURE_BYTES);
          picture.width = info.getWidth();
          picture.height = info.getHeight();
          picture.digest = KJ_REQUIRE_NONNULL(fixed<32>(info.getDigest()));
          picture.png = kj::heapArray<kj::byte>(info.getSize());
          return rest().then([this]() {
            KJ_REQUIRE(hash(picture.png) == picture.digest, "not the announced picture");
            return kj::mv(picture);
          });
        });
  }

 private:
  kj::Promise<void> rest() {
    if (filled == picture.png.size()) return kj::READY_NOW;
    auto request = from.readRequest();
    request.setOffset(filled);
    return request.send().then([this](capnp::Response<wire::Picture::ReadResults>&& answer) {
      auto piece = strictly(answer).getBytes();
      KJ_REQUIRE(piece.size() > 0 && piece.size() <= picture.png.size() - filled);
      memcpy(picture.png.begin() + filled, piece.begin(), piece.size());
      filled += piece.size();
      return rest();
    });
  }

  wire::Picture::Client from;
  PlainHash hash;
  PictureData picture;
  size_t filled = 0;
};

}  // namespace

void PictureData::writeInfo(wire::PictureInfo::Builder to) const {
  to.setWidth(width);
  to.setHeight(height);
  to.setSize(png.size());
  to.setDigest(bytesOf(digest));
}

Bytes PictureData::piece(uint64_t offset) const {
  size_t from = std::min<uint64_t>(offset, png.size());
  return png.slice(from, std::min(from + bounds::PICTURE_CHUNK, png.size()));
}

kj::Promise<PictureData> fetchPicture(wire::Picture::Client from, PlainHash hash) {
  auto fetching = kj::heap<Fetching>(kj::mv(from), kj::mv(hash));
  auto done = fetching->run();
  return done.attach(kj::mv(fetching));
}

}  // namespace praefectus
