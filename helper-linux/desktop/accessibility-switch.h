// Applications' accessibility, switched on for as long as a helper runs. Only where a person has
// asked for it: a desktop's applications all see the switch, and some of them do more work from
// then on. Without the setting nothing of this file runs.
//
// A process of its own keeps the switch, because helpers may be killed: it shares one socket with
// its helper and nothing else, and when that socket closes, however the helper ended, it puts the
// switch back to what it was and ends. It does not put it back when it is killed itself, or when
// the session bus ends first; then the switch stays on until the session ends or somebody turns it
// off.
//
// With several helpers, the one that found it off puts it back, also while another one runs: what
// was on before is left on, and nobody keeps an account of who else relies on it.
#pragma once

#include <kj/io.h>
#include <kj/string.h>

#include <sys/types.h>

namespace praefectus::desktop {

// The setting, in the helper's environment, and its only value.
constexpr kj::StringPtr ACCESSIBILITY_SETTING = "PRAEFECTUS_ACCESSIBILITY"_kj;
constexpr kj::StringPtr ACCESSIBILITY_ON = "on"_kj;

class AccessibilitySwitch {
 public:
  // Forks; call before there is an event loop or a thread. Returns once the switch is on, or was
  // found on, or could not be turned: bounds::CONNECT at most. Never starts a service.
  explicit AccessibilitySwitch(kj::StringPtr sessionBus);
  // Waits until it has been put back: bounds::CALL at most.
  ~AccessibilitySwitch() noexcept(false);
  KJ_DISALLOW_COPY(AccessibilitySwitch);

 private:
  pid_t keeper = -1;
  kj::AutoCloseFd socket;
};

}  // namespace praefectus::desktop
