// What another process asks of the kernel, as strace sees it.
#pragma once

#include <kj/string.h>

#include <string>
#include <vector>

#include <sys/types.h>

namespace praefectus::bench {

// The system calls that a process and its threads begin within so many seconds, one line each. What
// it was waiting in already is not among them. `folder` is for strace's own record.
std::vector<std::string> systemCallsOf(pid_t process, unsigned seconds, kj::StringPtr folder);

}  // namespace praefectus::bench
