#include "supervisor/session.h"

#include "ipc/bounds.h"

namespace praefectus {

Result<HelperLink*> Session::helper(kj::WaitScope& wait) {
  KJ_IF_MAYBE (present, link) {
    if ((*present)->alive()) return present->get();
    endHelper();
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
  if (link != nullptr) ++lost;
  link = nullptr;
  frames.voidAll();
}

uint64_t Session::losses() const {
  KJ_IF_MAYBE (held, link) return lost + ((*held)->alive() ? 0 : 1);
  return lost;
}

Result<Done> Session::beginTurn(kj::String turn) {
  if (closed) return Refusal{RefusalCode::NO_ACTIVE_SESSION, "The session was closed."_kj};
  if (!isIdentifier(turn)) {
    return Refusal{RefusalCode::MALFORMED, "A turn's name must be an identifier."_kj};
  }
  endTurn();
  present = kj::mv(turn);
  return Done{};
}

void Session::endTurn() {
  leases.closeAll();
  present = nullptr;
}

uint64_t Session::generation() const {
  KJ_IF_MAYBE (present, liveHelper()) return present->generation();
  return 0;
}

}  // namespace praefectus
