#include "supervisor/client/spawn.h"

#include "ipc/bounds.h"

#include <kj/debug.h>

#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace praefectus::client {
namespace {

constexpr Refusal NO_PROGRAM = {RefusalCode::SERVICE_UNAVAILABLE,
                                "The supervisor program could not be started."_kj};

kj::String programOf(const Options& options) {
  if (options.supervisor != nullptr) return kj::str(options.supervisor);
  char path[4096];
  ssize_t size;
  KJ_SYSCALL(size = readlink("/proc/self/exe", path, sizeof(path) - 1));
  path[size] = '\0';
  kj::StringPtr whole(path);
  return kj::str(whole.slice(0, KJ_ASSERT_NONNULL(whole.findLast('/'))), "/praefectus-supervisor");
}

// Null-terminated pointers for exec, into strings that outlive the call.
kj::Array<char*> pointers(kj::ArrayPtr<const kj::String> strings) {
  auto out = kj::heapArrayBuilder<char*>(strings.size() + 1);
  for (auto& text : strings) out.add(const_cast<char*>(text.cStr()));
  out.add(nullptr);
  return out.finish();
}

// The child gets default signal handling whatever this process uses (KJ ignores SIGPIPE), and a
// session of its own, so that a terminal's interrupt ends the host and lets the supervisor settle.
kj::Maybe<pid_t> spawnProgram(const Options& options, kj::ArrayPtr<const kj::String> arguments,
                              kj::Maybe<int> socket) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  KJ_REQUIRE(posix_spawn_file_actions_init(&files) == 0);
  KJ_DEFER(posix_spawn_file_actions_destroy(&files));
  KJ_REQUIRE(posix_spawnattr_init(&attributes) == 0);
  KJ_DEFER(posix_spawnattr_destroy(&attributes));

  kj::AutoCloseFd parked;
  KJ_IF_MAYBE (fd, socket) {
    // dup2 of a descriptor onto itself would leave close-on-exec set.
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, 10);
    KJ_REQUIRE(high >= 0);
    parked = kj::AutoCloseFd(high);
    KJ_REQUIRE(posix_spawn_file_actions_adddup2(&files, high, 3) == 0);
    KJ_REQUIRE(posix_spawn_file_actions_addclosefrom_np(&files, 4) == 0);
  } else {
    KJ_REQUIRE(posix_spawn_file_actions_addclosefrom_np(&files, 3) == 0);
  }
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);

  auto program = programOf(options);
  auto argv = pointers(arguments);
  char** environment = environ;
  kj::Array<char*> given;
  KJ_IF_MAYBE (chosen, options.environment) {
    given = pointers(*chosen);
    environment = given.begin();
  }
  pid_t pid;
  if (posix_spawn(&pid, program.cStr(), &files, &attributes, argv.begin(), environment) != 0) {
    return nullptr;
  }
  return pid;
}

// False when it has not ended in time.
bool awaitEnd(pid_t child, kj::Duration within) {
  int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (pidfd < 0) return true;
  kj::AutoCloseFd owned(pidfd);
  pollfd ended{pidfd, POLLIN, 0};
  return poll(&ended, 1, static_cast<int>(within / kj::MILLISECONDS)) == 1;
}

}  // namespace

Result<kj::Own<SupervisorProcess>> SupervisorProcess::spawn(const Options& options,
                                                            kj::AutoCloseFd socket) {
  kj::Vector<kj::String> arguments;
  for (auto word : {"praefectus-supervisor"_kj, "serve"_kj, "--ledger"_kj, options.ledger}) {
    arguments.add(kj::str(word));
  }
  if (options.enableAccessibility) arguments.add(kj::str("--enable-accessibility"));
  KJ_IF_MAYBE (pid, spawnProgram(options, arguments, socket.get())) {
    auto process = kj::heap<SupervisorProcess>();
    process->child = *pid;
    return kj::mv(process);
  }
  return NO_PROGRAM;
}

SupervisorProcess::~SupervisorProcess() noexcept(false) {
  if (child == 0) return;
  awaitEnd(child, bounds::CLOSE);
  waitpid(child, nullptr, WNOHANG);
}

Result<Done> runCreate(const Options& options, kj::StringPtr issuer) {
  kj::String arguments[] = {
      kj::str("praefectus-supervisor"), kj::str("create"),   kj::str("--ledger"),
      kj::str(options.ledger),          kj::str("--issuer"), kj::str(issuer)};
  KJ_IF_MAYBE (pid, spawnProgram(options, arguments, nullptr)) {
    if (!awaitEnd(*pid, bounds::LEDGER)) kill(*pid, SIGKILL);
    int status = 0;
    KJ_SYSCALL(waitpid(*pid, &status, 0));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Done{};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return NO_PROGRAM;
    return Refusal{RefusalCode::LEDGER_FOREIGN, "The ledger could not be made there."_kj};
  }
  return NO_PROGRAM;
}

}  // namespace praefectus::client
