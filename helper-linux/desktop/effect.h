// One prepared action: the check once more, the effect, and the readback.
#pragma once

#include "helper-linux/desktop/target.h"

namespace praefectus::desktop {

class Effect final : public PreparedAction {
 public:
  // `link` outlives it. `action` is what TargetCheck can check.
  Effect(Link& link, kj::Timer& timer, kj::Own<ObservedFrame> frame, Action action)
      : link(link),
        timer(timer),
        checker(link, timer),
        frame(kj::mv(frame)),
        action(kj::mv(action)) {}

  // As `perform` will check again. Refuses as TargetCheck does.
  kj::Promise<Result<Done>> check();
  kj::Promise<Result<Facts>> perform() override;

 private:
  class Running;

  // The only place of the helper from which an application is changed.
  kj::Promise<wire::Answer> send(const accessibility::Node& node);
  // Whether there is nothing more to wait for: what the action is to be proven by shows.
  bool shows(const Sight& before, const Sight& after) const;
  bool showsChange(const Sight& before, const Sight& after) const;

  Link& link;
  kj::Timer& timer;
  TargetCheck checker;
  kj::Own<ObservedFrame> frame;
  Action action;
};

}  // namespace praefectus::desktop
