// A supervisor with everything it needs, in one process with the test: a real ledger in a folder
// that goes away, a real launcher, real helper processes whose behaviour is chosen by name (see
// fake-helper.cc), and the host's side of it: keys, grants, actions. Time is the test's.
#pragma once

#include "supervisor/launch/launcher.h"
#include "supervisor/supervisor.h"
#include "tests/ledger/fixture.h"

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/timer.h>

#include <functional>
#include <string>
#include <vector>

namespace praefectus::test {

constexpr WindowRef WINDOW = {{4242, 987654}, 0x1400003};
constexpr WindowRef OTHER_WINDOW = {{4242, 987654}, 0x1400004};

class SteppedClock final : public Clock {
 public:
  int64_t wallMs() const override { return wall; }
  uint64_t bootMs() const override { return boot; }
  int64_t wall = 1'900'000'000'000;
  uint64_t boot = 1'000'000;
};

// A request as a host keeps it: it can be sent again.
struct Request {
  kj::String operation;
  attest::Envelope grant;
  kj::Array<kj::byte> action;
  Submission submission() const { return {grant.clone(), kj::heapArray<kj::byte>(action)}; }
};

// What a host may choose about a request.
struct Terms {
  uint32_t timeoutMs = 15'000;
  Verification verification = Verification::STRONGEST;
  int64_t validForMs = 60'000;
  uint32_t uses = 1;
};

// Hands out helpers of the named kind, and counts what it started.
class NamedHelpers final : public HelperSource {
 public:
  NamedHelpers(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, launch::Launcher& launcher,
               kj::StringPtr folder);

  kj::Promise<Result<kj::Own<HelperLink>>> startDesktopHelper() override;

  std::string mode = "good";  // Of the next one.
  unsigned starts = 0;
  // The file of a helper of that name, with its manifest beside it.
  kj::String fileOf(const std::string& name) const;
  const attest::KeyRing& ring() const { return pinned; }

 private:
  const attest::Image& imageOf(const std::string& name);

  kj::LowLevelAsyncIoProvider& io;
  kj::Timer& timer;
  launch::Launcher& launcher;
  const kj::String folder;
  attest::SigningKey publisher;
  attest::KeyRing pinned;
  std::map<std::string, kj::Own<attest::Image>> images;
  uint64_t generation = 0;
};

// Has the desktop, or not, as the test says.
struct StatedActor final : public Actor {
  explicit StatedActor(bool acting) : acting(acting) {}
  Result<Done> hold() override {
    if (acting) return Done{};
    return Refusal{RefusalCode::DESKTOP_BUSY, "Another one acts."_kj};
  }
  bool isFree() override { return acting; }
  bool acting;
};

using OnStage = std::function<void(wire::Stage)>;

class Workbench {
 public:
  explicit Workbench(const std::string& mode = "good", bool acting = true);
  ~Workbench() noexcept(false);
  KJ_DISALLOW_COPY(Workbench);

  Supervisor& supervisor() { return *core; }
  ledger::Ledger& ledger() { return *book; }
  kj::LowLevelAsyncIoProvider& low() { return *io.lowLevelProvider; }
  launch::Launcher& launcher() { return *starter; }

  // ---- Time: wall, boot and the timers that a supervisor waits on, together.
  void pass(kj::Duration duration);
  SteppedClock clock;
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};

  // Throws when nothing has come after a time that only a hang can take.
  template <typename T>
  T wait(kj::Promise<T> promise) {
    return io.provider->getTimer()
        .timeoutAfter(60 * kj::SECONDS, kj::mv(promise))
        .wait(io.waitScope);
  }
  // Runs everything that can run now.
  void settle();

  // ---- The helpers, and what they wrote down.
  NamedHelpers& helpers() { return *source; }
  std::vector<std::string> record() const;
  size_t count(const std::string& beginning) const;
  size_t effects() const { return count("effect "); }
  // Until that many lines begin like this.
  void await(const std::string& beginning, size_t times = 1);
  // Process ids in the order of their starts.
  std::vector<pid_t> pids() const;
  // Lets a helper that waits go on.
  void signal(pid_t pid);
  // Waits until the process is no more.
  bool ends(pid_t pid);

  // ---- The host.
  kj::Own<Session> open(kj::StringPtr session = "session-1", kj::StringPtr turn = "turn-1");
  attest::Grant grantFor(const Session& session, const Action& action, kj::StringPtr operation,
                         Terms terms = {}) const;
  Request seal(const attest::Grant& grant, const Action& action) const;
  Request request(const Session& session, const Action& action, kj::StringPtr operation,
                  Terms terms = {}) const;
  // Throws when it is refused.
  Observation observe(Session& session, const WindowRef& window = WINDOW);
  // Why it is refused, or "ok".
  std::string observing(Session& session, const Request& request);

  kj::Promise<kj::Own<Answer>> begin(Session& session, const Request& request,
                                     OnStage onStage = nullptr);
  kj::Own<Answer> execute(Session& session, const Request& request, OnStage onStage = nullptr) {
    return wait(begin(session, request, kj::mv(onStage)));
  }
  // The receipt, its signature checked. Throws when there is none.
  attest::Receipt receiptOf(const Answer& answer) const;
  // The terminal's name, or "refused: " and the refusal's.
  std::string outcome(const Answer& answer) const;
  std::string outcome(const kj::Own<Answer>& answer) const { return outcome(*answer); }
  // What the ledger knows: "unknown", "open", or the terminal's name.
  std::string known(kj::StringPtr operation);

  // Ends the supervisor as a crash would, without a goodbye to its ledger, and starts another one.
  void restart();
  kj::StringPtr ledgerFolder() const { return ledgerPath; }

 private:
  void openLedger();

  TemporaryFolder folder;
  StatedActor actor;
  kj::String recordPath, ledgerPath;
  attest::SigningKey issuer;
  uint32_t launcherPid = 0;
  kj::AutoCloseFd launcherSocket;
  kj::AsyncIoContext io;
  kj::Own<launch::Launcher> starter;
  kj::AutoCloseFd recordWatch;
  kj::UnixEventPort::FdObserver recordObserver;  // Dies before its descriptor.
  kj::Own<NamedHelpers> source;
  kj::Own<ledger::Ledger> book;
  kj::Own<Supervisor> core;
  unsigned reads = 0;
};

// An action on the observed window's check box, or on its entry.
Action press(const Observation& seen, kj::StringPtr name = "press", Terms terms = {});
Action put(const Observation& seen, kj::StringPtr text, Terms terms = {});
Action look(const WindowRef& window = WINDOW, bool picture = false);
Action survey();

}  // namespace praefectus::test
