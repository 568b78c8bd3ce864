// What the supervisor does to its own process at the start.
#pragma once

#include <kj/io.h>
#include <kj/string.h>

namespace praefectus {

// Takes an inherited descriptor as ours: no child will have it.
kj::AutoCloseFd takeInherited(int fd);

// No privilege to be gained by exec, no debugger of the same user, no core file with keys in it.
void giveUp();

// The folder of this program's own file: helpers are installed beside it.
kj::String ownFolder();

}  // namespace praefectus
