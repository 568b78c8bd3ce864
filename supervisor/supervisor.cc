// The itinerary of one operation, from submission to receipt. Read execute() and carryOut(): they
// are the whole of it, in order, and the row numbers are those of the README's table.
//
// What makes it at most once:
//
// An id is single-flight from the moment its grant is proven (execute): whoever asks again waits
// for the first one's answer.
//
// Nothing is sent before `claim` has become durable, and only the caller that made the claim sends.
//
// A claim without an ending is never sent again, by anyone: the ledger refuses a second claim, and
// the next start settles it as outcomeUnknown.
#include "supervisor/supervisor.h"

#include "ipc/bounds.h"

namespace praefectus {

struct Operation {
  Operation(kj::Own<Session> session, Approved approved, kj::Own<Listener> listener,
            uint64_t deadline)
      : session(kj::mv(session)),
        approved(kj::mv(approved)),
        listener(kj::mv(listener)),
        deadline(deadline),
        cancelSignal(kj::newPromiseAndFulfiller<void>()),
        cancelSeen(cancelSignal.promise.fork()) {}

  const attest::Grant& grant() const { return approved.grant; }
  const Action& action() const { return approved.action; }

  void cancel() {
    cancelled = true;
    cancelSignal.fulfiller->fulfill();
  }

  // What the ledger is told before anything is sent.
  ledger::Claim claim(int64_t wallMs) const {
    auto& g = grant();
    return {kj::str(g.operation), g.actionHash,     g.actionClass,  kj::str(action().kind()),
            kj::str(g.issuer),    kj::str(g.keyId), g.hash,         kj::str(g.subject),
            kj::str(g.session),   kj::str(g.turn),  helper.clone(), wallMs};
  }

  kj::Own<Session> session;
  Approved approved;
  kj::Own<Listener> listener;
  const uint64_t deadline;        // Milliseconds since boot.
  attest::HelperIdentity helper;  // Set once one has prepared it.
  bool cancelled = false;
  kj::Maybe<attest::Envelope> receipt;  // Set when it has ended.
  kj::PromiseFulfillerPair<void> cancelSignal;
  kj::ForkedPromise<void> cancelSeen;
  kj::Maybe<kj::ForkedPromise<kj::Own<Answer>>> answer;
};

namespace {

constexpr size_t FIBER_STACK = 256u << 10;
constexpr uint64_t READ_MS = bounds::READ / kj::MILLISECONDS;

constexpr Refusal CONFLICT = {RefusalCode::OPERATION_CONFLICT,
                              "This operation id was already used for another action."_kj};
constexpr Refusal UNSETTLED = {
    RefusalCode::OUTCOME_UNKNOWN,
    "This operation was claimed and could not be settled; it is not sent again."_kj};
constexpr Refusal UNRECORDED = {RefusalCode::OUTCOME_UNKNOWN,
                                "The ending could not be recorded; the next start settles it."_kj};
constexpr Refusal STOPPED = {
    RefusalCode::LEDGER_POISONED,
    "A write to the ledger failed; nothing is done until the next start."_kj};
constexpr Refusal TOO_MANY = {RefusalCode::BUSY, "Too many operations are in flight."_kj};

kj::Own<Answer> refused(Refusal refusal) {
  auto answer = kj::refcounted<Answer>();
  answer->refusal = refusal;
  return answer;
}

kj::Own<Answer> recorded(attest::Envelope receipt, bool replayed) {
  auto answer = kj::refcounted<Answer>();
  answer->receipt = kj::mv(receipt);
  answer->replayed = replayed;
  return answer;
}

Refusal refusalFor(Stop stop) {
  switch (stop) {
    case Stop::CANCELLED:
      return {RefusalCode::ABORTED, "The operation was cancelled before anything was sent."_kj};
    case Stop::EXPIRED:
      return {RefusalCode::TIMEOUT, "The time ran out before anything was sent."_kj};
    case Stop::HELPER_GONE:
      return {RefusalCode::SERVICE_UNAVAILABLE, "The helper ended before anything was sent."_kj};
  }
  KJ_UNREACHABLE;
}

ledger::Ending endingFor(Stop stop, int64_t wallMs) {
  switch (stop) {
    case Stop::CANCELLED:
      return cancelledBeforeEffect(wallMs);
    case Stop::EXPIRED:
      return expiredBeforeEffect(wallMs);
    case Stop::HELPER_GONE:
      return notSent(RefusalCode::SERVICE_UNAVAILABLE, wallMs);
  }
  KJ_UNREACHABLE;
}

// A helper that died, was late or broke its protocol says nothing about the target.
bool concernsTarget(RefusalCode code) {
  return code != RefusalCode::SERVICE_UNAVAILABLE && code != RefusalCode::SERVICE_MISMATCH;
}

// A second asker's view of the first one's answer.
kj::Own<Answer> again(kj::Own<Answer> first) {
  KJ_IF_MAYBE (refusal, first->refusal) return refused(*refusal);
  return recorded(first->receipt.clone(), true);
}

}  // namespace

kj::Promise<kj::Own<Answer>> Supervisor::execute(Session& session, Submission submission,
                                                 kj::Own<Listener> listener) {
  // 4  Proven: signed by a pinned issuer, for this ledger, peer, session and exactly this action.
  auto approved = approve(session, submission);
  if (!approved.ok()) return refused(approved.refusal());
  if (!approved->action.isMutation()) {
    return refused({RefusalCode::MALFORMED, "This action is a read; it is not executed."_kj});
  }
  auto id = kj::str(approved->grant.operation);
  const Hash hash = approved->grant.actionHash;

  // 5  Known: in flight, or recorded. No fact that ages is looked at before this is answered.
  KJ_IF_MAYBE (first, inFlight.find(id)) {
    if (!attest::same((*first)->grant().actionHash, hash)) return refused(CONFLICT);
    KJ_IF_MAYBE (receipt, (*first)->receipt) return recorded(receipt->clone(), true);
    return KJ_ASSERT_NONNULL((*first)->answer).addBranch().then([](kj::Own<Answer> answer) {
      return again(kj::mv(answer));
    });
  }
  auto found = ledger.find(id, hash);
  if (!found.ok()) return refused(found.refusal());
  KJ_SWITCH_ONEOF(*found) {
    KJ_CASE_ONEOF(receipt, attest::Envelope) { return recorded(kj::mv(receipt), true); }
    KJ_CASE_ONEOF(conflict, ledger::Conflict) { return refused(CONFLICT); }
    KJ_CASE_ONEOF(open, ledger::Open) { return refused(UNSETTLED); }
    KJ_CASE_ONEOF(unknown, ledger::Unknown) {}
  }
  if (inFlight.size() >= bounds::IN_FLIGHT) return refused(TOO_MANY);

  auto deadline = deadlineOf(*approved, clock);
  auto operation =
      kj::heap<Operation>(kj::addRef(session), kj::mv(*approved), kj::mv(listener), deadline);
  auto& op = *operation;
  inFlight.insert(kj::mv(id), &op);
  auto& answer = op.answer.emplace(
      inFiber([this, &op](kj::WaitScope& wait) { return carryOut(op, wait); }).fork());
  // The operation belongs to the supervisor, not to the host's call: a host that goes away does not
  // stop it, and its id stays single-flight until it has ended.
  operations.add(answer.addBranch().ignoreResult().attach(kj::defer(
      [this, operation = kj::mv(operation)]() { inFlight.erase(operation->grant().operation); })));
  return answer.addBranch();
}

kj::Own<Answer> Supervisor::carryOut(Operation& op, kj::WaitScope& wait) {
  auto& session = *op.session;
  auto turn = sessions.enter(session.serial).wait(wait);
  auto alone = windows.enter(op.action().window.window).wait(wait);

  // 6  Admitted: the facts that age. A no leaves no trace, and the id can still be used.
  auto admitted = admit(op.approved, session, clock);
  if (!admitted.ok()) return refused(admitted.refusal());
  auto held = actor.hold();
  if (!held.ok()) return refused(held.refusal());
  auto fit = admitMutation(op.approved, session);
  if (!fit.ok()) return refused(fit.refusal());
  KJ_IF_MAYBE (stop, mustStop(op)) return refused(refusalFor(*stop));
  auto& helper = KJ_ASSERT_NONNULL(session.liveHelper());
  op.helper = helper.identity().clone();

  // 7  Prepared: the live target was resolved and is still what was observed. Nothing is changed.
  const Hash nonce = attest::random<32>();
  auto prepared = helper.prepare(op.action(), nonce, remaining(op.deadline))
                      .exclusiveJoin(op.cancelSeen.addBranch().then(
                          []() { return Result<PreparedHandle>(refusalFor(Stop::CANCELLED)); }))
                      .wait(wait);
  if (op.cancelled) return refused(refusalFor(Stop::CANCELLED));
  if (!prepared.ok()) {
    auto code = prepared.refusal().code;
    if (!concernsTarget(code)) return refused(prepared.refusal());
    return conclude(op, rejected(code, clock.wallMs()), wait);
  }
  KJ_IF_MAYBE (stop, mustStop(op)) return refused(refusalFor(*stop));
  op.listener->reached(wire::Stage::PREPARED);

  // 8  Claimed: durable before the first byte of the effect leaves this process.
  auto claimed = recordedIn(ledger.claim(op.claim(clock.wallMs())), wait);
  if (!claimed.ok()) return refused(claimed.refusal());
  session.frames.spend();
  op.listener->reached(wire::Stage::CLAIMED);

  // 9  Performed. Nothing waits between this last look and the call.
  if (!usable()) return refused(STOPPED);
  KJ_IF_MAYBE (stop, mustStop(op)) return settle(op, endingFor(*stop, clock.wallMs()), wait);
  auto performed = helper.perform(kj::mv(*prepared), remaining(op.deadline)).wait(wait);

  // 10  Judged, from what was seen before and after; never from "it returned".
  auto ending = endingOf(op, nonce, performed);

  // 11  Settled: durable, chained, signed.
  auto answer = settle(op, kj::mv(ending), wait);

  // 12  A fresh observation, unless the outcome is unknown (then the host has to look by itself),
  //     nothing was sent, or nobody is left to look.
  if (answer->refusal == nullptr && !session.mustObserve && !session.closed &&
      !performed.is<NothingSent>()) {
    auto fresh = look(session, op.action().window, false, clock.bootMs() + READ_MS, wait);
    if (fresh.ok()) {
      answer->fresh = kj::mv(*fresh);
    } else {
      answer->fresh = fresh.refusal();
    }
  }
  return answer;
}

// ---- what the itinerary calls ------------------------------------------------------------------

kj::Maybe<Stop> Supervisor::mustStop(const Operation& op) const {
  // Cancel wins over an expired deadline.
  if (op.cancelled) return Stop::CANCELLED;
  if (clock.bootMs() >= op.deadline) return Stop::EXPIRED;
  if (op.session->liveHelper() == nullptr) return Stop::HELPER_GONE;
  return nullptr;
}

ledger::Ending Supervisor::endingOf(const Operation& op, const Hash& nonce,
                                    const Performed& performed) const {
  int64_t now = clock.wallMs();
  KJ_SWITCH_ONEOF(performed) {
    KJ_CASE_ONEOF(facts, FactsHeld) {
      bool interrupted = op.cancelled || clock.bootMs() >= op.deadline;
      return endingFor(op.action().verification, judge(op.action(), nonce, facts.get()),
                       interrupted ? Interruption::CANCELLED_OR_LATE : Interruption::NONE, now);
    }
    KJ_CASE_ONEOF(refusal, RefusedBySelf) { return rejected(refusal.code, now); }
    KJ_CASE_ONEOF(nothing, NothingSent) { return notSent(RefusalCode::SERVICE_UNAVAILABLE, now); }
    KJ_CASE_ONEOF(gone, Lost) {
      return lost(gone.late ? Warning::LATE_AFTER_DISPATCH : Warning::HELPER_LOST, now);
    }
  }
  KJ_UNREACHABLE;
}

kj::Own<Answer> Supervisor::settle(Operation& op, ledger::Ending ending, kj::WaitScope& wait) {
  bool unknown = ending.terminal == Terminal::OUTCOME_UNKNOWN;
  auto receipt = recordedIn(ledger.settle(kj::str(op.grant().operation), kj::mv(ending)), wait);
  if (unknown || !receipt.ok()) op.session->mustObserve = true;
  if (!receipt.ok()) return refused(UNRECORDED);
  op.receipt = receipt->clone();
  return recorded(kj::mv(*receipt), false);
}

kj::Own<Answer> Supervisor::conclude(Operation& op, ledger::Ending ending, kj::WaitScope& wait) {
  auto receipt = recordedIn(ledger.conclude(op.claim(clock.wallMs()), kj::mv(ending)), wait);
  if (!receipt.ok()) return refused(receipt.refusal());
  op.receipt = receipt->clone();
  return recorded(kj::mv(*receipt), false);
}

// A write that does not come back may be on disk or not, as one that failed: the same caution.
template <typename T>
Result<T> Supervisor::recordedIn(kj::Promise<Result<T>> write, kj::WaitScope& wait) {
  kj::Promise<Result<T>> late = timer.afterDelay(bounds::LEDGER).then([this]() -> Result<T> {
    stalled = true;
    return STOPPED;
  });
  return write.exclusiveJoin(kj::mv(late)).wait(wait);
}

Result<Approved> Supervisor::approve(const Session& session, Submission& submission) const {
  if (!usable()) return STOPPED;
  auto grant = attest::openGrant(ledger.ring(), submission.grant);
  if (!grant.ok()) return grant.refusal();
  return match(kj::mv(*grant), kj::mv(submission.action), ledger.id(), subject, session);
}

// Reads change nothing and are not recorded. Their grants count uses, in memory.
Result<Approved> Supervisor::approveRead(const Session& session, Submission& submission,
                                         kj::StringPtr kind) {
  auto approved = approve(session, submission);
  if (!approved.ok()) return approved.refusal();
  if (approved->action.kind() != kind) {
    return Refusal{RefusalCode::MALFORMED, "This action is not what is asked for."_kj};
  }
  auto admitted = admit(*approved, session, clock);
  if (!admitted.ok()) return admitted.refusal();
  auto counted = countUse(approved->grant);
  if (!counted.ok()) return counted.refusal();
  return kj::mv(*approved);
}

Result<Done> Supervisor::countUse(const attest::Grant& grant) {
  KJ_IF_MAYBE (use, readUses.find(grant.operation)) {
    if (!attest::same(use->grant, grant.hash)) return CONFLICT;
    if (use->count >= grant.uses) {
      return Refusal{RefusalCode::GRANT_SPENT, "Every use of this grant is used up."_kj};
    }
    ++use->count;
    return Done{};
  }
  forgetExpiredReads();
  if (readUses.size() >= bounds::READ_GRANTS_REMEMBERED) {
    return Refusal{RefusalCode::BUSY, "Too many read grants are in use."_kj};
  }
  readUses.insert(kj::str(grant.operation), ReadUse{grant.hash, grant.expires, 1});
  return Done{};
}

// An expired grant is refused by its time, so its count need not be kept.
void Supervisor::forgetExpiredReads() {
  int64_t now = clock.wallMs();
  readUses.eraseAll([now](kj::String&, ReadUse& use) { return use.expires <= now; });
}

// The session's helper, with time left to ask it something: one that is asked too late would be
// ended for not answering.
Result<HelperLink*> Supervisor::helperFor(Session& session, uint64_t deadline,
                                          kj::WaitScope& wait) {
  if (clock.bootMs() >= deadline) return refusalFor(Stop::EXPIRED);
  auto helper = session.helper(wait);
  if (helper.ok() && clock.bootMs() >= deadline) return refusalFor(Stop::EXPIRED);
  return helper;
}

Result<ObservationHeld> Supervisor::look(Session& session, const WindowRef& window, bool picture,
                                         uint64_t deadline, kj::WaitScope& wait) {
  auto helper = helperFor(session, deadline, wait);
  if (!helper.ok()) return helper.refusal();
  auto frame = session.frames.draw();
  auto seen =
      (*helper)->observe(window, frame.id, frame.epoch, picture, remaining(deadline)).wait(wait);
  if (!seen.ok()) {
    session.frames.voidAll();
    return seen.refusal();
  }
  session.frames.taken(frame, window, (*helper)->generation());
  session.mustObserve = false;
  return kj::mv(*seen);
}

kj::Promise<Result<ObservationHeld>> Supervisor::observe(Session& session, Submission submission) {
  auto approved = approveRead(session, submission, "observe");
  if (!approved.ok()) return Result<ObservationHeld>(approved.refusal());
  return inTurn<ObservationHeld>(
      session, [this, window = approved->action.window,
                picture = approved->action.act.get<ObserveAct>().picture,
                deadline = readDeadline(*approved)](Session& own, kj::WaitScope& wait) {
        return look(own, window, picture, deadline, wait);
      });
}

kj::Promise<Result<DesktopHeld>> Supervisor::list(Session& session, Submission submission) {
  auto approved = approveRead(session, submission, "list");
  if (!approved.ok()) return Result<DesktopHeld>(approved.refusal());
  return inTurn<DesktopHeld>(
      session, [this, deadline = readDeadline(*approved)](Session& own, kj::WaitScope& wait) {
        auto helper = helperFor(own, deadline, wait);
        if (!helper.ok()) return Result<DesktopHeld>(helper.refusal());
        return (*helper)->list(remaining(deadline)).wait(wait);
      });
}

kj::Promise<Result<StatusHeld>> Supervisor::capabilities(Session& session) {
  return inTurn<StatusHeld>(session, [this](Session& own, kj::WaitScope& wait) {
    if (!usable()) return Result<StatusHeld>(STOPPED);
    auto helper = own.helper(wait);
    if (!helper.ok()) return Result<StatusHeld>(helper.refusal());
    return (*helper)->status(bounds::READ).wait(wait);
  });
}

// KJ 0.9.2 runs a fiber that is cancelled before it began, and takes it amiss when it then waits.
// So no fiber is ever dropped but by the end of the supervisor, and at that one none begins.
template <typename Work>
kj::PromiseForResult<Work, kj::WaitScope&> Supervisor::inFiber(Work work) {
  return fibers.startFiber([this, work = kj::mv(work)](kj::WaitScope& wait) mutable {
    KJ_REQUIRE(!ending, "the supervisor is ending");
    return work(wait);
  });
}

// Runs `work` in a fiber of its own when the session's earlier requests are done. It belongs to the
// supervisor; a caller that no longer waits finds nobody disturbed.
template <typename T, typename Work>
kj::Promise<Result<T>> Supervisor::inTurn(Session& session, Work work) {
  auto answer = kj::newPromiseAndFulfiller<Result<T>>();
  operations.add(inFiber([this, own = kj::addRef(session), work = kj::mv(work),
                          to = kj::mv(answer.fulfiller)](kj::WaitScope& wait) mutable {
    auto turn = sessions.enter(own->serial).wait(wait);
    if (!to->isWaiting()) return;
    if (own->closed) {
      to->fulfill(Refusal{RefusalCode::NO_ACTIVE_SESSION, "The session was closed."_kj});
    } else {
      to->fulfill(work(*own, wait));
    }
  }));
  return kj::mv(answer.promise);
}

// A read is over by its own timeout or bounds::READ, whichever is first.
uint64_t Supervisor::readDeadline(const Approved& approved) const {
  return kj::min(deadlineOf(approved, clock), clock.bootMs() + READ_MS);
}

bool Supervisor::cancel(Session& session, kj::StringPtr id) {
  KJ_IF_MAYBE (operation, inFlight.find(id)) {
    if ((*operation)->session.get() != &session || (*operation)->receipt != nullptr) return false;
    (*operation)->cancel();
    return true;
  }
  return false;
}

Result<kj::Own<Session>> Supervisor::open(kj::String id, kj::String turn) {
  if (!isIdentifier(id) || !isIdentifier(turn)) {
    return Refusal{RefusalCode::MALFORMED, "Session and turn must be identifiers."_kj};
  }
  if (liveSessions >= bounds::SESSIONS) {
    return Refusal{RefusalCode::BUSY, "The limit of live sessions is reached."_kj};
  }
  ++liveSessions;
  return kj::refcounted<Session>(++lastSession, kj::mv(id), kj::mv(turn), clock, helpers);
}

void Supervisor::close(Session& session) {
  for (auto& entry : inFlight) {
    if (entry.value->session.get() == &session) entry.value->cancel();
  }
  leave(session);
}

void Supervisor::leave(Session& session) {
  if (session.closed) return;
  session.closed = true;
  if (!isActing(session)) {
    KJ_IF_MAYBE (helper, session.liveHelper()) helper->kill();
  }
  operations.add(inFiber([this, own = kj::addRef(session)](kj::WaitScope& wait) mutable {
    auto turn = sessions.enter(own->serial).wait(wait);
    own->endHelper();
    if (--liveSessions > 0) return;
    KJ_IF_MAYBE (waiting, lastLeft) (*waiting)->fulfill();
  }));
}

bool Supervisor::isActing(const Session& session) const {
  for (auto& entry : inFlight) {
    if (entry.value->session.get() == &session) return true;
  }
  return false;
}

Supervisor::Supervisor(ledger::Ledger& ledger, HelperSource& helpers, Actor& actor,
                       const Clock& clock, kj::Timer& timer, kj::String subject)
    : ledger(ledger),
      helpers(helpers),
      actor(actor),
      clock(clock),
      timer(timer),
      subject(kj::mv(subject)),
      fibers(FIBER_STACK),
      operations(*this) {}

Supervisor::~Supervisor() noexcept(false) { ending = true; }

kj::Promise<void> Supervisor::drained() {
  if (liveSessions == 0) return operations.onEmpty();
  auto left = kj::newPromiseAndFulfiller<void>();
  lastLeft = kj::mv(left.fulfiller);
  return left.promise.then([this]() { return operations.onEmpty(); });
}

kj::Duration Supervisor::remaining(uint64_t deadline) const {
  uint64_t now = clock.bootMs();
  return (deadline > now ? static_cast<int64_t>(deadline - now) : 0) * kj::MILLISECONDS;
}

// An operation that failed by a bug stays claimed in the ledger; the next start settles it as
// unknown.
void Supervisor::taskFailed(kj::Exception&& exception) {
  KJ_LOG(ERROR, "an operation failed inside the supervisor", exception.getFile(),
         exception.getLine());
}

}  // namespace praefectus
