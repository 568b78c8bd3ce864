#include "supervisor/helpers.h"

namespace praefectus {

DesktopHelpers::DesktopHelpers(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer,
                               launch::Launcher& launcher, const attest::KeyRing& ring,
                               kj::String path)
    : io(io), timer(timer), launcher(launcher), ring(ring), path(kj::mv(path)) {}

kj::Promise<Result<kj::Own<HelperLink>>> DesktopHelpers::startDesktopHelper() {
  if (image == nullptr) {
    auto attested = attest::Image::attest(ring, Role::DESKTOP, path);
    if (!attested.ok()) return Result<kj::Own<HelperLink>>(attested.refusal());
    image = kj::mv(*attested);
  }
  return HelperLink::start(io, timer, launcher, *KJ_ASSERT_NONNULL(image), ++generation);
}

}  // namespace praefectus
