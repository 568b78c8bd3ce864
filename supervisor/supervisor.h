// The supervisor: what is decided. See supervisor.cc, which is the page to read.
#pragma once

#include "supervisor/admission.h"
#include "supervisor/judge.h"
#include "supervisor/ledger/ledger.h"
#include "supervisor/session.h"
#include "supervisor/turnstile.h"

#include <kj/map.h>
#include <kj/refcount.h>

#include <initializer_list>

namespace praefectus {

// One request as the host sent it: a signed grant, and the bytes of the action whose hash it names.
struct Submission {
  attest::Envelope grant;
  kj::Array<kj::byte> action;
};

// What a refusal says of the request that it refuses.
struct RequestName {
  kj::Maybe<Hash> hash;  // Of all that was received; nothing for a call that submits nothing.
  kj::String operation;  // As the grant says, proven or not.
  static RequestName of(const Submission& submission);
};

// Told as an operation goes on; never waited for.
class Listener {
 public:
  virtual ~Listener() noexcept(false) = default;
  virtual void reached(wire::Stage stage) = 0;
};

// The right to act on this desktop, which one supervisor has at a time.
class Actor {
 public:
  virtual ~Actor() noexcept(false) = default;
  // Ours from now on, until this supervisor ends. Refuses DESKTOP_BUSY.
  virtual Result<Done> hold() = 0;
  // Whether `hold` would succeed now.
  virtual bool isFree() = 0;
};

// The answer to a mutation. Shared by all who asked for the same operation.
struct Answer : kj::Refcounted {
  kj::Maybe<Refusal> refusal;  // Set: nothing was recorded, and there is no receipt.
  attest::Envelope receipt;    // Else: how it ended.
  bool replayed = false;
  kj::OneOf<Done, ObservationHeld, Refusal> fresh = Done();  // Done: left to the host, on purpose.

  kj::Own<Answer> addRef() { return kj::addRef(*this); }
};

struct Operation;

// Why an operation that is under way may not go on.
enum class Stop : uint8_t {
  CANCELLED,
  USER_STOPPED,
  EXPIRED,
  REVOKED,
  LEASE_ENDED,
  CLOCK_JUMPED,
  HELPER_GONE
};

class Supervisor final : private kj::TaskSet::ErrorHandler {
 public:
  Supervisor(ledger::Ledger& ledger, HelperSource& helpers, Actor& actor, const TimeKeeper& clock,
             kj::Timer& timer, kj::String subject);
  ~Supervisor() noexcept(false);

  // Refuses MALFORMED, OPERATION_CONFLICT while a session of this name is open (neither left nor
  // closed), BUSY when too many are live or there were too many names.
  Result<kj::Own<Session>> open(kj::String session);
  // Ends the present turn, as endTurn does, and begins this one. Refuses USER_STOPPED when it was
  // stopped, OPERATION_CONFLICT when it had begun before, in whatever session of this name, BUSY
  // when there were too many, and as Session::beginTurn; then the present turn goes on.
  Result<Done> beginTurn(Session& session, kj::String turn);
  // Withdraws what is in flight, and closes the turn and its leases.
  void endTurn(Session& session);
  // Refuses POLICY_DENIED when it was signed by nobody known here, or its time begins before this
  // supervisor did, whose predecessor may have had it open; and as admitLease.
  Result<Done> openLease(Session& session, attest::Envelope lease);
  // The person's stop of a turn, begun or not: see host.capnp.
  void stop(kj::StringPtr session, kj::StringPtr turn);
  // What it takes back is refused from this call on; it is durable when the promise resolves.
  // Refuses POLICY_DENIED, LEDGER_POISONED, and as Revocations::admit.
  kj::Promise<Result<Done>> revoke(attest::Envelope revocation);

  // Nothing new starts in it; what is past admission goes on and is settled, then the helper ends.
  // A read has nobody left to answer and is ended with the helper. This is also what the death of a
  // host means. Once for every session that was opened.
  void leave(Session& session);
  // Leaves it, and withdraws what is in flight.
  void close(Session& session);

  // Reads. Refuse as grants, admission and the helper do.
  kj::Promise<Result<DesktopHeld>> list(Session& session, Submission submission);
  kj::Promise<Result<ObservationHeld>> observe(Session& session, Submission submission);
  kj::Promise<Result<PictureHandle>> capture(Session& session, Submission submission);
  // Of a picture that was read in this session: what was seen may be looked at for as long as the
  // helper that took it lives. Nothing when there is none.
  kj::Promise<Result<kj::Maybe<Png>>> png(Session& session, PictureHandle picture);
  kj::Promise<Result<StatusHeld>> capabilities(Session& session);

  // A mutation, at most once.
  kj::Promise<kj::Own<Answer>> execute(Session& session, Submission submission,
                                       kj::Own<Listener> listener);
  // Withdraws an operation of this session that is in flight and not ended; says whether there was
  // one.
  bool cancel(Session& session, kj::StringPtr operation);

  // Signs that this request was not carried out. `session` is null when none is concerned.
  attest::Envelope prove(kj::Maybe<Session&> session, const RequestName& request,
                         const Refusal& refusal);

  // Resolves when every session was left and nothing is in flight: what was dispatched has been
  // settled, and nothing that is still to come refers to this supervisor. One call at a time.
  kj::Promise<void> drained();

  ledger::Ledger& book() { return ledger; }
  kj::StringPtr subjectName() const { return subject; }
  bool mayAct() { return actor.isFree(); }
  bool clockTrusted() const { return clock.trusted(); }
  uint64_t policyGenerationOf(kj::StringPtr issuer) const {
    return revocations.generationOf(issuer);
  }

 private:
  kj::Own<Answer> carryOut(Operation& operation, kj::WaitScope& wait);
  kj::Own<Answer> settle(Operation& operation, ledger::Ending ending, kj::WaitScope& wait);
  kj::Own<Answer> conclude(Operation& operation, ledger::Ending ending, kj::WaitScope& wait);
  kj::Maybe<Stop> mustStop(const Operation& operation) const;
  ledger::Ending endingOf(const Operation& operation, const Hash& nonce,
                          const Performed& performed) const;
  void withdraw(Session& session, Stop why);
  bool isStopped(kj::StringPtr session, kj::StringPtr turn) const;
  bool isRevoked(const Operation& operation) const;
  Party party() const { return {ledger.id(), subject}; }
  Result<Approved> approve(const Session& session, Submission& submission) const;
  Result<kj::StringPtr> admitted(const attest::Grant& grant, const Session& session) const;
  Result<Approved> approveRead(const Session& session, Submission& submission,
                               std::initializer_list<kj::StringPtr> kinds);
  Result<Done> countUse(const attest::Grant& grant);
  Result<HelperLink*> helperFor(Session& session, uint64_t deadline, kj::WaitScope& wait);
  Result<HelperLink*> helperForRead(Session& session, const Approved& read, uint64_t deadline,
                                    kj::WaitScope& wait);
  Result<ObservationHeld> look(Session& session, const WindowRef& window, const ObserveAct& request,
                               uint64_t deadline, kj::WaitScope& wait);
  template <typename Work>
  kj::PromiseForResult<Work, kj::WaitScope&> inFiber(Work work);
  template <typename T, typename Work>
  kj::Promise<Result<T>> inTurn(Session& session, Work work);
  template <typename T>
  kj::Promise<Result<T>> inTime(kj::Promise<Result<T>> write);
  bool usable() const { return !stalled && ledger.usable(); }
  bool isActing(const Session& session) const;
  void forgetExpiredReads();
  uint64_t readDeadline(const Approved& approved) const;
  kj::Duration remaining(uint64_t deadline) const;
  void taskFailed(kj::Exception&& exception) override;

  ledger::Ledger& ledger;
  HelperSource& helpers;
  Actor& actor;
  const TimeKeeper& clock;
  kj::Timer& timer;
  const kj::String subject;
  ledger::Revocations revocations;

  const int64_t began;  // Wall time.
  bool ending = false;
  bool stalled = false;  // A write to the ledger has not come back in time.
  uint64_t lastSession = 0;
  unsigned liveSessions = 0;
  uint64_t refusals = 0;  // Signed so far that concern no session.
  // Of every session there was, by name: whoever opens the next one of a name goes on from here.
  struct Name {
    bool open = false;
    uint64_t refusals = 0;  // Signed so far.
  };
  kj::HashMap<kj::String, Name> names;
  kj::HashSet<kj::String> begun;    // "session turn"; identifiers have no spaces.
  kj::HashSet<kj::String> stopped;  // The same.
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> lastLeft;
  kj::HashMap<kj::String, Operation*> inFlight;  // By operation id.
  struct ReadUse {
    Hash grant;
    int64_t expires;
    uint32_t count;
  };
  kj::HashMap<kj::String, ReadUse> readUses;  // By operation id of the read grant.
  Turnstile sessions, windows;
  kj::FiberPool fibers;
  kj::TaskSet operations;  // Owns every operation and every read until it has ended.
};

}  // namespace praefectus
