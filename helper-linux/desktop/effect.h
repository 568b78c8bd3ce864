// One prepared action: the check once more, the effect, and the readback.
#pragma once

#include "helper-linux/desktop/target.h"

namespace praefectus::desktop {

class Effect final : public PreparedAction {
 public:
  // `link` outlives it.
  Effect(Link& link, kj::Timer& timer, kj::Own<ObservedFrame> frame, uint32_t element,
         const Hash& digest, Act act)
      : link(link),
        timer(timer),
        checker(link, timer),
        frame(kj::mv(frame)),
        element(element),
        digest(digest),
        act(kj::mv(act)) {}

  // As `perform` will check again. Refuses as TargetCheck does.
  kj::Promise<Result<Done>> check();
  kj::Promise<Result<Facts>> perform() override;

 private:
  class Running;

  // The only place of the helper from which an application is changed.
  kj::Promise<wire::Answer> send(const accessibility::Node& node);
  bool shows(const Sight& before, const Sight& after) const;

  Link& link;
  kj::Timer& timer;
  TargetCheck checker;
  kj::Own<ObservedFrame> frame;
  uint32_t element;
  Hash digest;
  Act act;
};

}  // namespace praefectus::desktop
