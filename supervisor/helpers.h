// Where sessions get their helpers: the attested image, and the count of what was started.
#pragma once

#include "supervisor/session.h"

namespace praefectus {

class DesktopHelpers final : public HelperSource {
 public:
  // `path` is the helper's file; its manifest stands beside it. Both are read at the first start,
  // and the sealed copy that was attested then serves every later one: it cannot change.
  DesktopHelpers(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, launch::Launcher& launcher,
                 const attest::KeyRing& ring, kj::String path);

  kj::Promise<Result<kj::Own<HelperLink>>> startDesktopHelper() override;

 private:
  kj::LowLevelAsyncIoProvider& io;
  kj::Timer& timer;
  launch::Launcher& launcher;
  const attest::KeyRing& ring;
  kj::String path;
  kj::Maybe<kj::Own<attest::Image>> image;
  uint64_t generation = 0;
};

}  // namespace praefectus
