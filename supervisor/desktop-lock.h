// One desktop has one actor. The first supervisor of a display holds a lock; others may read.
#pragma once

#include <kj/io.h>
#include <kj/string.h>

namespace praefectus {

// Takes the lock of this display in the user's runtime folder ($XDG_RUNTIME_DIR, else a private
// folder of the user under /tmp). Nothing when another supervisor has it, or when no folder is safe
// to use. Held until the descriptor is closed, so the kernel frees it when the process dies.
kj::Maybe<kj::AutoCloseFd> lockDesktop(kj::StringPtr display);

}  // namespace praefectus
