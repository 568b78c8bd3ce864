#include "supervisor/cli/keeper.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus {

namespace {

constexpr int GENTLE_MS = 2'000;  // between SIGTERM and SIGKILL
constexpr int ANSWER_MS = 5'000;  // owner waits this long for the keeper's answer
constexpr int CLOSE_MS = 15'000;  // owner waits this long for the keeper's end
constexpr size_t REQUEST_BYTES = 64u << 10;
constexpr size_t STRINGS = 512;

enum class Kind : uint32_t { START, END };

// A request is this head, then the arguments and the environment, each closed by a zero byte. One
// datagram, with the output and ready descriptors beside it.
struct Head {
  Kind kind;
  pid_t leader;
  uint32_t arguments;
  uint32_t environment;
  bool last;
};

struct Reply {
  pid_t pid;
  int error;
};

int64_t nowMs() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

// ------------------------------------------------------------------------------------------------
// The keeper's side. It runs after a fork of a process that may have had threads, so all of it is
// system calls on memory it already has: no allocation, no KJ, no stdio, no exit handlers.

constexpr int LINE = 3;    // requests
constexpr int OWNER = 4;   // pidfd of the owner
constexpr int DEATHS = 5;  // signalfd of SIGCHLD

char request[REQUEST_BYTES];
char children[REQUEST_BYTES];
char* strings[STRINGS];
char* folderRemover[5];
pid_t lastToEnd = 0;

// Waits until a child has died or the time is up; the signal carries nothing we rely on.
void awaitDeath(int64_t untilMs) {
  int64_t left = untilMs - nowMs();
  pollfd waiting{DEATHS, POLLIN, 0};
  if (left > 0 && poll(&waiting, 1, static_cast<int>(left)) > 0) {
    signalfd_siginfo consumed;
    [[maybe_unused]] ssize_t n = read(DEATHS, &consumed, sizeof(consumed));
  }
}

// Kills and reaps our direct children that `chosen` picks until there are none. Orphans of the dead
// become our children (we are the subreaper), so going round until nobody is left takes the whole
// tree.
template <typename Chosen>
void killUntilNone(Chosen&& chosen) {
  for (;;) {
    int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (list < 0) return;
    ssize_t size = read(list, children, sizeof(children) - 1);
    close(list);
    bool any = false;
    pid_t pid = 0;
    for (ssize_t i = 0; i < size; ++i) {
      if (children[i] >= '0' && children[i] <= '9') {
        pid = pid * 10 + (children[i] - '0');
        continue;
      }
      if (pid > 0 && chosen(pid)) {
        kill(pid, SIGKILL);
        while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
        }
        any = true;
      }
      pid = 0;
    }
    if (!any) return;
  }
}

bool isOurChild(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool hasEnded(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

// The leader is not reaped before its group has got its last signal: so long its number means it
// alone.
void endGently(pid_t leader) {
  if (leader <= 0 || !isOurChild(leader) || getsid(leader) != leader) return;
  kill(-leader, SIGTERM);
  kill(-leader, SIGCONT);  // A stopped program would never see the first one.
  int64_t until = nowMs() + GENTLE_MS;
  while (!hasEnded(leader) && nowMs() < until) awaitDeath(until);
  kill(-leader, SIGKILL);
  while (waitpid(leader, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void endSession(pid_t leader) {
  endGently(leader);
  killUntilNone([leader](pid_t child) { return getsid(child) == leader; });
}

[[noreturn]] void endEverything() {
  killUntilNone([](pid_t child) { return child != lastToEnd; });
  endGently(lastToEnd);
  killUntilNone([](pid_t) { return true; });
  if (chdir("/") == 0) {
    pid_t remover = fork();
    if (remover == 0) {
      execve(folderRemover[0], folderRemover, nullptr);
      _exit(127);
    }
    while (remover > 0 && waitpid(remover, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  _exit(0);
}

void reapTheDead() {
  signalfd_siginfo consumed;
  [[maybe_unused]] ssize_t n = read(DEATHS, &consumed, sizeof(consumed));
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

// In the new child, before exec. The error, if any, goes up the pipe; a successful exec closes it.
[[noreturn]] void becomeProgram(const Head& head, const int* given, size_t count, int failure) {
  sigset_t none;
  sigemptyset(&none);
  // Should the keeper itself be killed, nothing it holds stays.
  bool ready = setsid() >= 0 && prctl(PR_SET_PDEATHSIG, head.last ? SIGTERM : SIGKILL) == 0 &&
               dup2(given[0], 1) >= 0 && dup2(given[0], 2) >= 0 &&
               (count < 2 || dup2(given[1], 3) >= 0) &&
               sigprocmask(SIG_SETMASK, &none, nullptr) == 0;
  if (ready) execve(strings[0], strings, strings + head.arguments + 1);
  int error = errno;
  [[maybe_unused]] ssize_t n = write(failure, &error, sizeof(error));
  _exit(127);
}

Reply startProgram(const Head& head, const int* given, size_t count) {
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) return {0, errno};
  pid_t child = fork();
  if (child == 0) becomeProgram(head, given, count, failure[1]);
  int error = child < 0 ? errno : 0;
  close(failure[1]);
  if (child > 0 && read(failure[0], &error, sizeof(error)) == sizeof(error)) {
    waitpid(child, nullptr, 0);
  } else if (child > 0 && head.last) {
    lastToEnd = child;
  }
  close(failure[0]);
  return {error == 0 ? child : 0, error};
}

// Points `strings` at the request's texts: arguments, null, environment, null.
bool splitStrings(const Head& head, char* text, const char* end) {
  if (size_t{head.arguments} + head.environment + 2 > STRINGS) return false;
  size_t slot = 0;
  for (uint32_t part : {head.arguments, head.environment}) {
    for (uint32_t i = 0; i < part; ++i) {
      if (text >= end) return false;
      strings[slot++] = text;
      text += strlen(text) + 1;
    }
    strings[slot++] = nullptr;
  }
  return text == end;
}

void serve() {
  int given[2] = {-1, -1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(given))];
  iovec body{request, sizeof(request) - 1};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t size = recvmsg(LINE, &message, MSG_CMSG_CLOEXEC);
  if (size < static_cast<ssize_t>(sizeof(Head))) endEverything();
  request[size] = '\0';

  size_t count = 0;
  if (cmsghdr* beside = CMSG_FIRSTHDR(&message)) {
    count = (beside->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(given, CMSG_DATA(beside), count * sizeof(int));
  }
  Head head;
  memcpy(&head, request, sizeof(head));
  Reply reply{0, EPROTO};
  switch (head.kind) {
    case Kind::START:
      if (count > 0 && splitStrings(head, request + sizeof(head), request + size)) {
        reply = startProgram(head, given, count);
      }
      break;
    case Kind::END:
      endSession(head.leader);
      reply = {head.leader, 0};
      break;
  }
  for (size_t i = 0; i < count; ++i) close(given[i]);
  [[maybe_unused]] ssize_t sent = send(LINE, &reply, sizeof(reply), MSG_NOSIGNAL);
}

// Leaves everything of the owner behind: descriptors (whose ends of file others may wait for),
// terminal, signal handlers.
void leaveOwner(int line, int owner, char* const (&remover)[5]) {
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, "desktop-keeper");
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  // No core of a desktop's program is written: it would hold what the person typed.
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  umask(077);
  int highLine = fcntl(line, F_DUPFD_CLOEXEC, 64);
  int highOwner = fcntl(owner, F_DUPFD_CLOEXEC, 64);
  int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard : {0, 1, 2}) dup2(nowhere, standard);
  dup3(highLine, LINE, O_CLOEXEC);
  dup3(highOwner, OWNER, O_CLOEXEC);
  close_range(OWNER + 1, ~0u, 0);
  sigset_t deaths;
  sigemptyset(&deaths);
  sigaddset(&deaths, SIGCHLD);
  if (signalfd(-1, &deaths, SFD_CLOEXEC | SFD_NONBLOCK) != DEATHS) _exit(127);
  memcpy(folderRemover, remover, sizeof(folderRemover));
  if (chdir(folderRemover[3]) != 0) _exit(127);
}

[[noreturn]] void keep() {
  for (;;) {
    pollfd waiting[] = {{LINE, POLLIN, 0}, {OWNER, POLLIN, 0}, {DEATHS, POLLIN, 0}};
    if (poll(waiting, 3, -1) < 0) continue;
    if (waiting[1].revents != 0) endEverything();
    if (waiting[0].revents != 0) serve();
    // Always: a request that waited for one death may have taken the signal of another.
    reapTheDead();
  }
}

// ------------------------------------------------------------------------------------------------
// The owner's side.

// glibc 2.36 declares pidfd_open without C linkage, so from C++ it does not link.
int openPid(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

bool readableWithin(int descriptor, int milliseconds) {
  int64_t until = nowMs() + milliseconds;
  for (;;) {
    int64_t left = until - nowMs();
    pollfd waiting{descriptor, POLLIN, 0};
    int n = poll(&waiting, 1, left > 0 ? static_cast<int>(left) : 0);
    if (n > 0) return true;
    if (n == 0) return false;
    KJ_ASSERT(errno == EINTR, "poll failed", errno);
  }
}

void append(kj::Vector<kj::byte>& request, kj::ArrayPtr<const kj::StringPtr> texts) {
  for (kj::StringPtr text : texts) {
    request.addAll(text.asBytes());
    request.add(0);
  }
}

Head headOf(Kind kind) {
  Head head;
  memset(&head, 0, sizeof(head));  // Padding too: it travels.
  head.kind = kind;
  return head;
}

}  // namespace

struct Keeper::Answer : Reply {};

Keeper::Keeper(kj::StringPtr folder) {
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
  line = kj::AutoCloseFd(ends[0]);
  kj::AutoCloseFd far(ends[1]);
  int self;
  KJ_SYSCALL(self = openPid(getpid()));
  kj::AutoCloseFd owner(self);

  auto path = kj::heapString(folder);
  char rm[] = "/bin/rm", recursive[] = "-rf", oneSystem[] = "--one-file-system";
  char* const remover[] = {rm, recursive, oneSystem, path.begin(), nullptr};

  // With every signal blocked no handler of the owner's ever runs in the keeper.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid = fork();
  if (pid == 0) {
    leaveOwner(far, owner, remover);
    keep();
  }
  int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) KJ_FAIL_SYSCALL("fork", error);
  KJ_SYSCALL(self = openPid(pid));
  handle = kj::AutoCloseFd(self);
}

Keeper::~Keeper() noexcept(false) {
  // Shutting down, not closing: a copy of the descriptor in some other child of ours does not hold
  // it up.
  shutdown(line, SHUT_RDWR);
  bool ended = readableWithin(handle, CLOSE_MS);
  if (!ended) kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  KJ_REQUIRE(ended, "the private desktop did not end in time") { break; }
}

Keeper::Answer Keeper::ask(kj::ArrayPtr<const kj::byte> request,
                           kj::ArrayPtr<const int> descriptors) {
  KJ_REQUIRE(request.size() < REQUEST_BYTES, "the command line is too long");
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  iovec body{const_cast<kj::byte*>(request.begin()), request.size()};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  if (descriptors.size() > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* beside = CMSG_FIRSTHDR(&message);
    KJ_ASSERT(beside != nullptr);
    beside->cmsg_level = SOL_SOCKET;
    beside->cmsg_type = SCM_RIGHTS;
    beside->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    memcpy(CMSG_DATA(beside), descriptors.begin(), descriptors.size() * sizeof(int));
  }
  KJ_SYSCALL(sendmsg(line, &message, MSG_NOSIGNAL));
  KJ_REQUIRE(readableWithin(line, ANSWER_MS), "the desktop's keeper does not answer");
  Answer answer{};
  ssize_t size;
  KJ_SYSCALL(size = recv(line, &answer, sizeof(answer), 0));
  KJ_REQUIRE(size == sizeof(answer), "the desktop's keeper has gone");
  return answer;
}

pid_t Keeper::start(const Start& program) {
  KJ_REQUIRE(program.arguments.size() > 0);
  Head head = headOf(Kind::START);
  head.arguments = static_cast<uint32_t>(program.arguments.size());
  head.environment = static_cast<uint32_t>(program.environment.size());
  head.last = program.last;
  kj::Vector<kj::byte> request;
  request.addAll(kj::arrayPtr(reinterpret_cast<const kj::byte*>(&head), sizeof(head)));
  append(request, program.arguments);
  append(request, program.environment);
  int descriptors[] = {program.output, program.ready};
  Answer answer = ask(request, kj::arrayPtr(descriptors, program.ready < 0 ? 1 : 2));
  if (answer.error != 0) KJ_FAIL_SYSCALL("execve", answer.error, program.arguments[0]);
  return answer.pid;
}

void Keeper::end(pid_t leader) {
  Head head = headOf(Kind::END);
  head.leader = leader;
  ask(kj::arrayPtr(reinterpret_cast<const kj::byte*>(&head), sizeof(head)), nullptr);
}

}  // namespace praefectus
