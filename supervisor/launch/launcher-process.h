// The launcher's own side of the fork.
#pragma once

#include "supervisor/launch/launcher.h"

#include <sys/types.h>

namespace praefectus::launch {

// Becomes the launcher: gives up everything but `socket`, serves it until it closes or the
// supervisor is gone, ends every child, and leaves the process without running exit handlers.
[[noreturn]] void runLauncher(pid_t supervisor, kj::AutoCloseFd socket,
                              kj::ArrayPtr<const RoleEntry> table) noexcept;

}  // namespace praefectus::launch
