#include "supervisor/session.h"

#include "ipc/bounds.h"

namespace praefectus {

Result<HelperLink*> Session::helper(kj::WaitScope& wait) {
  KJ_IF_MAYBE (present, link) {
    if ((*present)->alive()) return present->get();
    link = nullptr;
    frames.voidAll();
  }
  if (failures >= bounds::STARTS) return KJ_ASSERT_NONNULL(firstCause);

  auto started = source.startDesktopHelper().wait(wait);
  if (!started.ok()) {
    if (failures++ == 0) firstCause = started.refusal();
    return started.refusal();
  }
  failures = 0;
  return link.emplace(kj::mv(*started)).get();
}

kj::Maybe<HelperLink&> Session::liveHelper() const {
  KJ_IF_MAYBE (present, link) {
    if ((*present)->alive()) return **present;
  }
  return nullptr;
}

void Session::endHelper() {
  link = nullptr;
  frames.voidAll();
}

uint64_t Session::generation() const {
  KJ_IF_MAYBE (present, liveHelper()) return present->generation();
  return 0;
}

}  // namespace praefectus
