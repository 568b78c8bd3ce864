#include "supervisor/launch/launcher-process.h"

#include "ipc/bounds.h"
#include "supervisor/launch/packet.h"
#include "supervisor/launch/pidfd.h"
#include "supervisor/launch/spawn.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::launch {
namespace {

// The control socket sits where a child's socket goes, so that nothing that matters to a child can
// be on that number when it is replaced there.
constexpr int CONTROL = CHILD_SOCKET;

struct Running {
  uint64_t ticket;
  kj::AutoCloseFd pidfd;
};

int64_t monotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000ll + now.tv_nsec;
}

// Puts /dev/null on the standard descriptors and `socket` on CONTROL; everything else is closed.
void keepOnly(int socket) {
  int parked, null;
  KJ_SYSCALL(parked = fcntl(socket, F_DUPFD_CLOEXEC, 16));
  KJ_SYSCALL(null = open("/dev/null", O_RDWR | O_CLOEXEC));
  KJ_SYSCALL(null = fcntl(null, F_DUPFD_CLOEXEC, 16));
  for (int standard = 0; standard < 3; ++standard) KJ_SYSCALL(dup2(null, standard));
  KJ_SYSCALL(dup3(parked, CONTROL, O_CLOEXEC));
  KJ_SYSCALL(close_range(CONTROL + 1, ~0u, 0));
}

// Whether what would run is what was hashed: in memory that cannot change, and a program itself.
// For anything else the kernel would start an interpreter that nobody has attested (execve(2),
// binfmt_misc).
bool isSealedProgram(int image) {
  constexpr int SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  int seals = fcntl(image, F_GET_SEALS);
  if (seals < 0 || (seals & SEALS) != SEALS) return false;
  char magic[SELFMAG];
  return pread(image, magic, SELFMAG, 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

// What the launcher gives up for itself. All but the dumpable mark is inherited by the children;
// that one is set anew by every exec, so a helper has to drop it itself.
void giveUp() {
  resetSignals();
  prctl(PR_SET_NAME, "pf-launcher");
  // Not in the terminal's foreground group: Ctrl-C is for the supervisor, which ends us in order.
  KJ_SYSCALL(setsid());
  KJ_SYSCALL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  KJ_SYSCALL(prctl(PR_SET_DUMPABLE, 0));
  rlimit none{0, 0};
  KJ_SYSCALL(setrlimit(RLIMIT_CORE, &none));
  KJ_SYSCALL(chdir("/"));
  umask(077);
}

class LauncherProcess {
 public:
  LauncherProcess(kj::ArrayPtr<const RoleEntry> table, kj::AutoCloseFd supervisor)
      : table(table), supervisor(kj::mv(supervisor)) {}

  // Until the supervisor is gone or breaks the protocol.
  void serve() {
    while (!over) {
      auto waits = waitList();
      int n = poll(waits.begin(), waits.size(), -1);
      if (n < 0) {
        KJ_ASSERT(errno == EINTR, errno);
        continue;
      }
      // Children first, from the end, since a child that is gone is taken out of the list.
      for (size_t i = children.size(); i > 0; --i) {
        if (waits[FIXED_WAITS + i - 1].revents != 0) reportExit(i - 1);
      }
      if (waits[1].revents != 0) over = true;
      if (!over && waits[0].revents != 0) takeRequest();
    }
  }

  // SIGKILL for all, then reaps what goes within the time; nothing outlasts us anyway (PDEATHSIG).
  void endChildren() {
    for (auto& child : children) killByPidfd(child.pidfd);
    int64_t deadline = monotonicNanoseconds() + bounds::CLOSE / kj::NANOSECONDS;
    for (auto& child : children) {
      auto left = kj::max(deadline - monotonicNanoseconds(), 0) / 1'000'000;
      if (goneWithin(child.pidfd, static_cast<int>(left))) reap(child);
    }
  }

 private:
  static constexpr size_t FIXED_WAITS = 2;

  kj::Array<pollfd> waitList() {
    auto waits = kj::heapArrayBuilder<pollfd>(FIXED_WAITS + children.size());
    waits.add(pollfd{CONTROL, POLLIN, 0});
    waits.add(pollfd{supervisor, POLLIN, 0});
    for (auto& child : children) waits.add(pollfd{child.pidfd, POLLIN, 0});
    return waits.finish();
  }

  void takeRequest() {
    Request request;
    kj::Vector<kj::AutoCloseFd> descriptors;
    auto got = receivePacket(CONTROL, kj::arrayPtr(&request, 1).asBytes(), descriptors);
    bool whole = got == Received::PACKET && request.mark == REQUEST_MARK &&
                 descriptors.size() == 2 && request.name[sizeof(request.name) - 1] == '\0';
    if (!whole) {
      over = true;
      return;
    }
    KJ_IF_MAYBE (child, start(request, descriptors[0], descriptors[1])) {
      Report report;
      report.tiding = Tiding::STARTED;
      report.ticket = request.ticket;
      report.pid = static_cast<uint32_t>(child->pid);
      send(report, {child->pidfd.get()});
      children.add(Running{request.ticket, kj::mv(child->pidfd)});
    } else {
      Report report;
      report.tiding = Tiding::REFUSED;
      report.ticket = request.ticket;
      send(report, {});
    }
  }

  struct Started {
    pid_t pid;
    kj::AutoCloseFd pidfd;
  };

  kj::Maybe<Started> start(const Request& request, int image, int socket) {
    if (children.size() >= CHILDREN || monotonicNanoseconds() >= request.deadline) return nullptr;
    if (!isSealedProgram(image)) return nullptr;
    KJ_IF_MAYBE (entry, entryFor(request.role)) {
      auto generation = kj::str(request.generation);
      const char* arguments[] = {request.name,   "--role",          nameOf(entry->role).cStr(),
                                 "--generation", generation.cStr(), nullptr};
      auto environment = kj::heapArrayBuilder<const char*>(entry->environment.size() + 1);
      for (auto& variable : entry->environment) environment.add(variable.cStr());
      environment.add(nullptr);

      KJ_IF_MAYBE (pid, spawn({image, socket, arguments, environment})) {
        // Ours and not reaped yet, so the number still means this child.
        int pidfd = openPidfd(*pid);
        if (pidfd >= 0) return Started{*pid, kj::AutoCloseFd(pidfd)};
        kill(*pid, SIGKILL);
        waitpid(*pid, nullptr, 0);
      }
    }
    return nullptr;
  }

  kj::Maybe<const RoleEntry&> entryFor(uint32_t role) const {
    for (auto& entry : table) {
      if (static_cast<uint32_t>(entry.role) == role) return entry;
    }
    return nullptr;
  }

  static siginfo_t reap(const Running& child) {
    siginfo_t how{};
    waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &how, WEXITED);
    return how;
  }

  void reportExit(size_t index) {
    auto how = reap(children[index]);
    Report report;
    report.tiding = Tiding::EXITED;
    report.ticket = children[index].ticket;
    report.code = how.si_status;
    report.signalled = how.si_code == CLD_EXITED ? 0 : 1;
    if (index + 1 < children.size()) children[index] = kj::mv(children.back());
    children.removeLast();
    send(report, {});
  }

  // The socket blocks for at most bounds::SPAWN; a supervisor that takes nothing for that long is
  // as good as gone.
  void send(const Report& report, std::initializer_list<int> descriptors) {
    if (sendPacket(CONTROL, bytesOfPacket(report), descriptors) != Sent::YES) over = true;
  }

  kj::ArrayPtr<const RoleEntry> table;
  kj::AutoCloseFd supervisor;  // Its pidfd.
  kj::Vector<Running> children;
  bool over = false;
};

void boundSends() {
  timeval limit{bounds::SPAWN / kj::SECONDS, 0};
  KJ_SYSCALL(setsockopt(CONTROL, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
}

// The supervisor by pidfd: a second way to learn of its death, should anybody else hold its socket.
// Nothing when it is gone already; the number may then mean another process.
kj::Maybe<kj::AutoCloseFd> watchOn(pid_t supervisor) {
  int fd = openPidfd(supervisor);
  if (fd < 0) return nullptr;
  kj::AutoCloseFd watch(fd);
  if (getppid() != supervisor) return nullptr;
  return kj::mv(watch);
}

}  // namespace

void runLauncher(pid_t supervisor, kj::AutoCloseFd socket,
                 kj::ArrayPtr<const RoleEntry> table) noexcept {
  auto failed = kj::runCatchingExceptions([&]() {
    keepOnly(socket);
    giveUp();
    boundSends();
    KJ_IF_MAYBE (watch, watchOn(supervisor)) {
      LauncherProcess launcher(table, kj::mv(*watch));
      KJ_DEFER(launcher.endChildren());
      launcher.serve();
    }
  });
  _exit(failed == nullptr ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace praefectus::launch
