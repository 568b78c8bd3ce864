// The only unit that includes Boost.Process. Version 2 of Boost 1.81, as far as it can be trusted:
//
// * Its close_all compares an entry with itself and leaves gaps open: every descriptor is marked
//   close-on-exec by us, right before the exec, when the pipe that reports a failed exec still
//   works.
// * bind_fd and process_environment are broken or need its separately compiled half: our own
//   initializer sets arguments, environment and descriptors.
// * After a failed exec the child leaves through exit(), running handlers that belong to its
// parent:
//   our on_exec_error leaves before it. And the parent forgets the child: we reap it.
// * Its process handle reaps with waitpid and kills by pid: we detach it at once and use a pidfd.
// * It executes by path only: /proc/self/fd/N names the sealed memory.
#include "supervisor/launch/spawn.h"

#include <boost/asio/io_context.hpp>
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::launch {
namespace {

namespace process = boost::process::v2;
using process::error_code;
using process::filesystem::path;
using Arguments = const char* const*;

// What happens on both sides of Boost's fork. The member names and signatures are Boost's.
class Setup {
 public:
  explicit Setup(const Spawn& what) : what(what), parent(getpid()) {}

  // In the launcher, before the fork.
  error_code on_setup(process::posix::default_launcher& launcher, const path&,
                      Arguments& arguments) {
    arguments = what.arguments.begin();
    launcher.env = what.environment.begin();
    launcher.fd_whitelist.push_back(CHILD_SOCKET);
    launcher.fd_whitelist.push_back(what.image);
    return {};
  }

  // In the child. Async-signal-safe calls only; a failure leaves its errno for Boost to report.
  template <typename Launcher>
  error_code on_exec_setup(Launcher&, const path&, Arguments&) {
    if (becomeChild()) return {};
    return error_code(errno, process::system_category());
  }

  // In the child, when it could not be executed and that has been reported. Boost looks for the
  // first form and calls the second.
  template <typename Launcher>
  void on_exec_error(Launcher&, const error_code&, const path&, Arguments&, const error_code&);
  template <typename Launcher>
  [[noreturn]] void on_exec_error(Launcher&, const path&, Arguments&, const error_code&) {
    _exit(EXIT_FAILURE);
  }

 private:
  bool becomeChild() {
    if (setsid() < 0) return false;
    // The launcher has no other thread, so this fires when the launcher itself ends. It holds
    // across an exec that gains no privilege. Had the launcher ended before the call, it would
    // never fire.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return false;
    if (getppid() != parent) {
      errno = ESRCH;
      return false;
    }
    // dup2 clears close-on-exec on the copy, since the two numbers differ.
    if (dup2(what.socket, CHILD_SOCKET) < 0) return false;
    if (close_range(CHILD_SOCKET + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0) return false;
    resetSignals();
    return true;
  }

  const Spawn& what;
  pid_t parent;
};

// A child that never became the program, or that we cannot keep.
void discard(pid_t pid) {
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace

void resetSignals() {
  for (int number = 1; number < NSIG; ++number) {
    // Fails for SIGKILL, SIGSTOP and the numbers the C library keeps to itself: they have no
    // handler.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(number, &standard, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

kj::Maybe<pid_t> spawn(const Spawn& what) {
  KJ_REQUIRE(what.image > CHILD_SOCKET && what.socket > CHILD_SOCKET);
  process::posix::default_launcher launcher;
  try {
    // A context of its own for every start, so that none of its descriptors exists at the fork.
    boost::asio::io_context context;
    error_code failure;
    path image(kj::str("/proc/self/fd/", what.image).cStr());
    auto child =
        launcher(context.get_executor(), failure, image, std::vector<std::string>(), Setup(what));
    child.detach();
    if (!failure) return pid_t{launcher.pid};
  } catch (const std::exception&) {
    // From Boost, with or without a child: what counts is launcher.pid.
  }
  if (launcher.pid > 0) discard(launcher.pid);
  return nullptr;
}

}  // namespace praefectus::launch
