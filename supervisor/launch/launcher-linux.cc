#include "supervisor/launch/launcher.h"

#include "ipc/bounds.h"
#include "supervisor/launch/launcher-process.h"
#include "supervisor/launch/packet.h"
#include "supervisor/launch/pidfd.h"

#include <kj/map.h>

#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::launch {
namespace {

using Observer = kj::UnixEventPort::FdObserver;

constexpr Exit KILLED{SIGKILL, true};

Refusal unavailable(kj::StringPtr why) { return {RefusalCode::SERVICE_UNAVAILABLE, why}; }

// What supervisor and launcher both know of one child. Held by the Child that was handed out and,
// until the child's end is known, by the launcher's side.
class Tracked final : public kj::Refcounted {
 public:
  Tracked(kj::UnixEventPort& port, uint32_t pid, kj::AutoCloseFd fd)
      : Tracked(port, pid, kj::mv(fd), kj::newPromiseAndFulfiller<Exit>()) {}

  uint32_t pid() const { return number; }
  kj::Promise<Exit> onExit() { return exit.addBranch(); }

  void kill() {
    if (!over) killByPidfd(pidfd);
  }

  void ended(Exit how) {
    over = true;
    fulfiller->fulfill(kj::mv(how));
  }

  // The launcher is gone: nobody will say how the child ended, but that it ended can be seen.
  void orphaned() {
    kill();
    end = gone.addBranch().then([this]() { ended(KILLED); }).eagerlyEvaluate(nullptr);
  }

 private:
  Tracked(kj::UnixEventPort& port, uint32_t pid, kj::AutoCloseFd fd,
          kj::PromiseFulfillerPair<Exit> pair)
      : number(pid),
        pidfd(kj::mv(fd)),
        observer(port, pidfd, Observer::OBSERVE_READ),
        gone(observer.whenBecomesReadable().fork()),
        fulfiller(kj::mv(pair.fulfiller)),
        exit(pair.promise.fork()) {}

  uint32_t number;
  // In this order: KJ demands that an observer dies before its descriptor.
  kj::AutoCloseFd pidfd;
  Observer observer;
  kj::ForkedPromise<void> gone;
  kj::Own<kj::PromiseFulfiller<Exit>> fulfiller;
  kj::ForkedPromise<Exit> exit;
  kj::Promise<void> end = nullptr;
  bool over = false;
};

class TrackedChild final : public Child {
 public:
  explicit TrackedChild(kj::Own<Tracked> tracked) : tracked(kj::mv(tracked)) {}
  ~TrackedChild() noexcept(false) override { tracked->kill(); }
  KJ_DISALLOW_COPY(TrackedChild);

  uint32_t pid() const override { return tracked->pid(); }
  kj::Promise<Exit> onExit() override { return tracked->onExit(); }
  void kill() override { tracked->kill(); }

 private:
  kj::Own<Tracked> tracked;
};

int64_t monotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000ll + now.tv_nsec;
}

kj::AutoCloseFd pidfdOf(uint32_t pid) {
  int fd;
  KJ_SYSCALL(fd = openPidfd(static_cast<pid_t>(pid)));
  return kj::AutoCloseFd(fd);
}

class AttachedLauncher final : public Launcher {
 public:
  AttachedLauncher(kj::UnixEventPort& port, kj::Timer& timer, kj::AutoCloseFd fd, uint32_t pid)
      : port(port),
        timer(timer),
        process(pidfdOf(pid)),
        socket(kj::mv(fd)),
        observer(kj::heap<Observer>(port, socket, Observer::OBSERVE_READ)),
        reading(readReports().eagerlyEvaluate(nullptr)) {}

  // Waits for the launcher's end, which its closed socket asks for, and reaps it.
  ~AttachedLauncher() noexcept(false) override {
    abandon();
    reading = nullptr;
    observer = nullptr;
    socket = nullptr;
    if (!goneWithin(process, static_cast<int>(bounds::CLOSE / kj::MILLISECONDS)))
      killByPidfd(process);
    siginfo_t how{};
    waitid(P_PIDFD, static_cast<id_t>(process.get()), &how, WEXITED);
  }
  KJ_DISALLOW_COPY(AttachedLauncher);

  kj::Promise<Result<kj::Own<Child>>> start(const attest::Image& image, uint64_t generation,
                                            kj::AutoCloseFd childSocket) override {
    if (lost) return refuse("The launcher is gone.");
    if (starting.size() >= CHILDREN) return refuse("Too many helpers are being started.");
    Request request;
    auto& name = image.manifest().name;
    KJ_REQUIRE(name.size() < sizeof(request.name));
    memcpy(request.name, name.cStr(), name.size());
    request.role = static_cast<uint32_t>(image.manifest().role);
    request.ticket = ++lastTicket;
    request.generation = generation;
    // Half of our own wait: the launcher has to have given up before we do, and the event loop's
    // clock, by which we do, stands still while the loop is busy.
    request.deadline = monotonicNanoseconds() + bounds::SPAWN / kj::NANOSECONDS / 2;
    if (sendPacket(socket, bytesOfPacket(request), {image.fd(), childSocket.get()}) != Sent::YES) {
      return refuse("The launcher takes no request.");
    }

    auto pair = kj::newPromiseAndFulfiller<Started>();
    starting.insert(request.ticket, kj::mv(pair.fulfiller));
    // When the time is over, the promise that is dropped here takes a late child down with it; and
    // the launcher starts nothing that it takes up after the deadline.
    auto late = timer.afterDelay(bounds::SPAWN).then([]() {
      return Started(unavailable("The helper was not started in time."));
    });
    return pair.promise.exclusiveJoin(kj::mv(late));
  }

 private:
  using Started = Result<kj::Own<Child>>;

  static kj::Promise<Started> refuse(kj::StringPtr why) { return Started(unavailable(why)); }

  kj::Promise<void> readReports() {
    while (!lost) {
      Report report;
      kj::Vector<kj::AutoCloseFd> descriptors;
      auto got = receivePacket(socket, kj::arrayPtr(&report, 1).asBytes(), descriptors);
      switch (got) {
        case Received::NOTHING:
          return observer->whenBecomesReadable().then([this]() { return readReports(); });
        case Received::PACKET:
          take(report, descriptors);
          break;
        case Received::CLOSED:
        case Received::BROKEN:
          lose();
          break;
      }
    }
    return kj::READY_NOW;
  }

  void take(const Report& report, kj::Vector<kj::AutoCloseFd>& descriptors) {
    size_t expected = report.tiding == Tiding::STARTED ? 1 : 0;
    if (report.mark != REPORT_MARK || descriptors.size() != expected) return lose();
    switch (report.tiding) {
      case Tiding::STARTED:
        return started(report, kj::mv(descriptors[0]));
      case Tiding::REFUSED:
        return answer(report.ticket, unavailable("The helper could not be executed."));
      case Tiding::EXITED:
        return exited(report);
    }
    lose();
  }

  void started(const Report& report, kj::AutoCloseFd pidfd) {
    auto tracked = kj::refcounted<Tracked>(port, report.pid, kj::mv(pidfd));
    running.insert(report.ticket, kj::addRef(*tracked));
    answer(report.ticket, kj::Own<Child>(kj::heap<TrackedChild>(kj::mv(tracked))));
  }

  // An answer that nobody waits for any more is destroyed, and a child in it killed.
  void answer(uint64_t ticket, Started result) {
    KJ_IF_MAYBE (fulfiller, starting.find(ticket)) {
      (*fulfiller)->fulfill(kj::mv(result));
      starting.erase(ticket);
    }
  }

  void exited(const Report& report) {
    KJ_IF_MAYBE (tracked, running.find(report.ticket)) {
      (*tracked)->ended(Exit{report.code, report.signalled != 0});
      running.erase(report.ticket);
    }
  }

  // The launcher is gone or not to be trusted. Its children die with it.
  void lose() {
    killByPidfd(process);
    abandon();
  }

  // From here nothing is asked of the launcher, and nothing expected.
  void abandon() {
    lost = true;
    for (auto& entry : starting) {
      entry.value->fulfill(Started(unavailable("The launcher is gone.")));
    }
    starting.clear();
    for (auto& entry : running) {
      entry.value->orphaned();
    }
    orphans = kj::mv(running);
  }

  kj::UnixEventPort& port;
  kj::Timer& timer;
  kj::AutoCloseFd process;  // The launcher's pidfd.
  kj::AutoCloseFd socket;
  kj::Own<Observer> observer;  // Dies before its descriptor.
  uint64_t lastTicket = 0;
  kj::HashMap<uint64_t, kj::Own<kj::PromiseFulfiller<Started>>> starting;
  kj::HashMap<uint64_t, kj::Own<Tracked>> running, orphans;
  bool lost = false;
  kj::Promise<void> reading;
};

}  // namespace

kj::AutoCloseFd Launcher::fork(kj::ArrayPtr<const RoleEntry> table, uint32_t& pid) {
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
  kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
  pid_t self = getpid();
  pid_t child;
  KJ_SYSCALL(child = ::fork());
  if (child == 0) runLauncher(self, kj::mv(theirs), table);
  pid = static_cast<uint32_t>(child);
  KJ_SYSCALL(fcntl(ours, F_SETFL, O_NONBLOCK));
  return ours;
}

kj::Own<Launcher> Launcher::attach(kj::UnixEventPort& port, kj::Timer& timer,
                                   kj::AutoCloseFd socket, uint32_t pid) {
  return kj::heap<AttachedLauncher>(port, timer, kj::mv(socket), pid);
}

}  // namespace praefectus::launch
