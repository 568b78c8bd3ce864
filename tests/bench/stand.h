// A supervisor on a stand: in this process, with its real parts (ledger on a disk, launcher, helper
// processes, the system's clocks), and the host's side of it.
#pragma once

#include "supervisor/launch/launcher.h"
#include "supervisor/supervisor.h"

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <map>

namespace praefectus::bench {

// A name that sorts by its time, as the client library makes them.
kj::String newOperation();
ledger::Moment moment();

// Starts fixture helpers by their names (echo-helper.cc).
class Echoes final : public HelperSource {
 public:
  Echoes(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, launch::Launcher& launcher,
         kj::StringPtr folder);

  kj::Promise<Result<kj::Own<HelperLink>>> startDesktopHelper() override;
  kj::StringPtr name = "answers"_kj;  // Of the next one.

 private:
  const attest::Image& imageOf(kj::StringPtr name);

  kj::LowLevelAsyncIoProvider& io;
  kj::Timer& timer;
  launch::Launcher& launcher;
  const kj::String folder;
  attest::SigningKey publisher;
  attest::KeyRing pinned;
  std::map<kj::StringPtr, kj::Own<attest::Image>> images;
  uint64_t generation = 0;
};

struct OnlyActor final : public Actor {
  Result<Done> hold() override { return Done{}; }
  bool isFree() override { return true; }
};

class Stand;

// A session with its host, on a window of its own. Leaves when it ends.
class Guest {
 public:
  Guest(Stand& stand, kj::StringPtr name, uint64_t window);
  ~Guest() noexcept(false);
  KJ_DISALLOW_COPY(Guest);

  // Begins a turn with a lease for everything when the last one may end within the half minute. A
  // signature and its check, so never inside of a measured span, and before what is measured is
  // signed.
  void renew();
  // Looks at the window; the frame can then be acted on.
  void observe();

  // Requests, signed. An entry of the frame that was seen last is set; the clipboard written; the
  // window focused. The last two refer to no frame and can be signed in advance.
  Submission setsValue();
  Submission writesClipboard();
  Submission focuses();

  // Throws, by the promise, when there is no receipt of a success. Takes the fresh frame.
  kj::Promise<kj::Own<Answer>> submit(Submission submission);
  kj::Own<Answer> carryOut(Submission submission);
  // What `submit` checks, for who measured by himself.
  void take(const Answer& answer);

  Session& session() { return *own; }
  HelperLink& helper() { return KJ_ASSERT_NONNULL(own->liveHelper()); }

 private:
  Submission sign(Action action);

  Stand& stand;
  kj::Own<Session> own;
  WindowRef window;
  Observation seen;
  double leasedAt;
  kj::String turn;
  unsigned leases = 0;
};

class Stand {
 public:
  // Makes a ledger in this folder, which goes away with what is in it. Forks: before the first
  // thread of the process.
  explicit Stand(kj::StringPtr folder);
  ~Stand() noexcept(false);
  KJ_DISALLOW_COPY(Stand);

  Supervisor& supervisor() { return *core; }
  ledger::Ledger& ledger() { return *book; }
  kj::AsyncIoContext& loop() { return io; }
  kj::WaitScope& wait() { return io.waitScope; }
  Echoes& helpers() { return *echoes; }
  const attest::SigningKey& issuerKey() const { return issuer; }
  // Signs as the pinned issuer. Names of the key, the ledger and the subject are filled in.
  template <typename Body>
  attest::Envelope seal(Body body) const {
    body.issuer = kj::str("host");
    body.keyId = attest::keyIdOf(issuer.publicKey());
    body.audience = book->id();
    body.subject = kj::str("uid:1000");
    return attest::seal(body, issuer);
  }

 private:
  const kj::String folder;
  attest::SigningKey issuer;
  uint32_t launcherPid = 0;
  kj::AutoCloseFd launcherSocket;
  kj::AsyncIoContext io;
  kj::Own<launch::Launcher> launcher;
  kj::Own<Echoes> echoes;
  OnlyActor actor;
  SystemClock clock;
  kj::Own<ledger::Ledger> book;
  kj::Own<TimeKeeper> keeper;
  kj::Own<Supervisor> core;
};

}  // namespace praefectus::bench
