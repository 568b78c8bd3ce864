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

const attest::Classes EVERYTHING = {ActionClass::METADATA_READ,     ActionClass::SCREENSHOT_READ,
                                    ActionClass::POINTER_MUTATION,  ActionClass::KEYBOARD_MUTATION,
                                    ActionClass::SEMANTIC_MUTATION, ActionClass::FILE_MUTATION};

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
  Proof proof = Proof::STRONGEST;  // Or NONE, APPEARS, DISAPPEARS.
  int64_t validForMs = 60'000;
  uint32_t uses = 1;
  Mode mode = Mode::INTERACTIVE;
  Safety safety = Safety::REVERSIBLE;
  Rights rights = {};
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
    if (onHold) onHold();
    if (acting) return Done{};
    return Refusal{RefusalCode::DESKTOP_BUSY, "Another one acts."_kj};
  }
  bool isFree() override { return acting; }
  bool acting;
  // Called in the middle of admission.
  std::function<void()> onHold;
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
  // Lets the supervisor give up a write to the ledger, which takes real time on a thread of its
  // own.
  void passForLedger(kj::Duration duration);
  SteppedClock clock;
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};

  // Throws when nothing has come after a time that only a hang can take.
  template <typename T>
  T wait(kj::Promise<T> promise) {
    return io.provider->getTimer()
        .timeoutAfter(60 * kj::SECONDS, kj::mv(promise))
        .wait(io.waitScope);
  }
  // Whether it has come; runs everything that can run now.
  template <typename T>
  bool isReady(kj::Promise<T>& promise) {
    return promise.poll(io.waitScope);
  }
  // Runs everything that can run now.
  void settle();
  void poll() { io.waitScope.poll(); }

  // ---- The helpers, and what they wrote down.
  NamedHelpers& helpers() { return *source; }
  std::vector<std::string> record() const;
  size_t count(const std::string& beginning) const;
  size_t effects() const { return count("effect "); }
  // Until that many lines begin like this.
  void await(const std::string& beginning, size_t times = 1);
  // Process ids in the order of their starts.
  std::vector<pid_t> pids() const;
  // Kills that of a session; the supervisor has taken notice when it returns.
  void killNoticed(Session& session);
  // Lets a helper that waits go on.
  void signal(pid_t pid);
  // Waits until the process is no more.
  bool ends(pid_t pid);

  // ---- The host.
  kj::Own<Session> open(kj::StringPtr session = "session-1", kj::StringPtr turn = "turn-1");
  // Whether a lease for everything is opened whenever a session asks for something without one.
  bool leasing = true;
  attest::Lease leaseFor(const Session& session, attest::Classes classes, kj::StringPtr id,
                         int64_t validForMs = 60'000) const;
  attest::Envelope seal(const attest::Lease& lease) const { return attest::seal(lease, issuer); }
  // Fills in by whom and for whom it is.
  attest::Envelope seal(attest::Revocation revocation) const;
  // Why it is refused, or "ok".
  std::string lease(Session& session, const attest::Lease& lease);
  std::string revoke(attest::Envelope revocation);
  // What leases and grants state from now on.
  uint64_t policyGeneration = 1;
  attest::Grant grantFor(const Session& session, const Action& action, kj::StringPtr operation,
                         Terms terms = {}) const;
  Request seal(const attest::Grant& grant, const Action& action) const;
  Request request(const Session& session, const Action& action, kj::StringPtr operation,
                  Terms terms = {}) const;
  // Throws when it is refused.
  Observation observe(Session& session, const WindowRef& window = WINDOW);
  kj::Promise<Result<ObservationHeld>> beginObserving(Session& session, const Request& request);
  // Why it is refused, or "ok".
  std::string observing(Session& session, const Request& request);
  std::string listing(Session& session, const Request& request);

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
  // Meanwhile the ledger lies there for whatever is to be done to it.
  void restart(const std::function<void()>& meanwhile = nullptr);
  // As the supervisor sees it.
  const TimeKeeper& time() const { return *keeper; }
  kj::StringPtr ledgerFolder() const { return ledgerPath; }
  StatedActor actor;
  // Who signs for the host.
  const attest::SigningKey& issuerKey() const { return issuer; }

 private:
  void openLedger();
  void leaseAll(Session& session);

  TemporaryFolder folder;
  kj::TimerImpl ledgerTimer{kj::origin<kj::TimePoint>()};
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
  kj::Own<TimeKeeper> keeper;
  kj::Own<Supervisor> core;
  unsigned leases = 0;
  std::string lastLease;
  unsigned reads = 0;
};

// A workbench with a session that has observed.
struct Ready : Workbench {
  explicit Ready(const std::string& mode = "good")
      : Workbench(mode), session(open()), seen(observe(*session)) {}

  Request pressing(kj::StringPtr operation, Terms terms = {});
  kj::Own<Answer> run(const Request& request, OnStage onStage = nullptr) {
    return execute(*session, request, kj::mv(onStage));
  }
  // What the next mutation of this session is told.
  std::string next() { return outcome(run(pressing("next"))); }

  kj::Own<Session> session;
  Observation seen;
};

// An action on the observed window's check box, or on its entry.
Action press(const Observation& seen, kj::StringPtr name = "press", Terms terms = {});
Action put(const Observation& seen, kj::StringPtr text, Terms terms = {});
// Any other act on the check box, under the helper "versatile".
Action acting(const Observation& seen, Act act, Terms terms = {});
// Something on the desktop itself, which needs no frame, under the same helper.
Action launching(kj::StringPtr application, Terms terms = {});
Action look(const WindowRef& window = WINDOW, bool picture = false);
Action survey();

}  // namespace praefectus::test
