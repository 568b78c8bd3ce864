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

#include <algorithm>

namespace praefectus {

struct Operation {
  Operation(kj::Own<Session> session, Approved approved, kj::Own<Listener> listener,
            uint64_t deadline)
      : session(kj::mv(session)),
        approved(kj::mv(approved)),
        listener(kj::mv(listener)),
        deadline(deadline),
        signal(kj::newPromiseAndFulfiller<void>()),
        signalled(signal.promise.fork()) {}

  const attest::Grant& grant() const { return approved.grant; }
  const Action& action() const { return approved.action; }

  // The first reason counts, except that a cancellation wins over every other.
  void withdraw(Stop why) {
    if (withdrawn == nullptr || why == Stop::CANCELLED) withdrawn = why;
    signal.fulfiller->fulfill();
  }

  // What the ledger is told before anything is sent.
  ledger::Claim claim(int64_t wallMs) const {
    auto& g = grant();
    return {kj::str(g.operation),
            g.actionHash,
            g.actionClass,
            kj::str(action().kind()),
            action().mode,
            g.risk,
            action().verification.kind(),
            g.rights,
            kj::str(g.issuer),
            kj::str(g.keyId),
            g.hash,
            g.policyGeneration,
            kj::str(lease),
            kj::str(g.subject),
            kj::str(g.session),
            kj::str(g.turn),
            helper.clone(),
            wallMs};
  }

  kj::Own<Session> session;
  Approved approved;
  kj::Own<Listener> listener;
  const uint64_t deadline;        // Milliseconds since boot.
  kj::String lease;               // The one that covers it; set at admission.
  attest::HelperIdentity helper;  // Set once one has prepared it.
  kj::Maybe<Stop> withdrawn;
  kj::Maybe<attest::Envelope> receipt;  // Set when it has ended.
  kj::PromiseFulfillerPair<void> signal;
  kj::ForkedPromise<void> signalled;
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
    case Stop::USER_STOPPED:
      return {RefusalCode::USER_STOPPED, "The person stopped this turn."_kj};
    case Stop::EXPIRED:
      return {RefusalCode::TIMEOUT, "The time ran out before anything was sent."_kj};
    case Stop::REVOKED:
      return {RefusalCode::REVOKED, "The grant was revoked before anything was sent."_kj};
    case Stop::LEASE_ENDED:
      return {RefusalCode::LEASE_MISSING, "The lease ended before anything was sent."_kj};
    case Stop::CLOCK_JUMPED:
      return {RefusalCode::CLOCK_UNTRUSTED, "The wall clock jumped before anything was sent."_kj};
    case Stop::HELPER_GONE:
      return {RefusalCode::SERVICE_UNAVAILABLE, "The helper ended before anything was sent."_kj};
  }
  KJ_UNREACHABLE;
}

ledger::Ending endingFor(Stop stop, int64_t wallMs) {
  switch (stop) {
    case Stop::CANCELLED:
    case Stop::USER_STOPPED:
      return cancelledBeforeEffect(wallMs);
    case Stop::EXPIRED:
      return expiredBeforeEffect(wallMs);
    case Stop::REVOKED:
    case Stop::LEASE_ENDED:
    case Stop::CLOCK_JUMPED:
      return rejected(refusalFor(stop).code, wallMs);
    case Stop::HELPER_GONE:
      return notSent(RefusalCode::SERVICE_UNAVAILABLE, wallMs);
  }
  KJ_UNREACHABLE;
}

// Whether a request that is refused with this code had a signature that holds. Before that, anybody
// can have named the operation.
bool isOfProvenRequest(RefusalCode code) {
  return code != RefusalCode::POLICY_DENIED && code != RefusalCode::MALFORMED &&
         code != RefusalCode::UNKNOWN_FIELD && code != RefusalCode::UNSUPPORTED_VERSION &&
         code != RefusalCode::LEDGER_POISONED;
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
    KJ_CASE_ONEOF(elsewhere, ledger::Elsewhere) { return refused(ledger::ARCHIVED); }
    KJ_CASE_ONEOF(damaged, ledger::Damaged) { return refused(ledger::DAMAGED); }
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
  auto alone = windows.enter(op.action().window().window).wait(wait);

  // 6  Admitted: the facts that age. A no leaves no trace, and the id can still be used.
  KJ_IF_MAYBE (why, op.withdrawn) return refused(refusalFor(*why));
  auto lease = admitted(op.grant(), session);
  if (!lease.ok()) return refused(lease.refusal());
  op.lease = kj::str(*lease);
  auto held = actor.hold();
  if (!held.ok()) return refused(held.refusal());
  if (op.action().frame() == nullptr) {
    // Only what was observed needs the helper that observed it.
    auto started = helperFor(session, op.deadline, wait);
    if (!started.ok()) return refused(started.refusal());
  }
  auto fit = admitMutation(op.action(), session, clock);
  if (!fit.ok()) return refused(fit.refusal());
  KJ_IF_MAYBE (stop, mustStop(op)) return refused(refusalFor(*stop));
  auto& helper = KJ_ASSERT_NONNULL(session.liveHelper());
  op.helper = helper.identity().clone();

  // 7  Prepared: the live target was resolved and is still what was observed. Nothing is changed.
  const Hash nonce = attest::random<32>();
  auto prepared = helper.prepare(op.action(), nonce, remaining(op.deadline))
                      .exclusiveJoin(op.signalled.addBranch().then(
                          []() { return Result<PreparedHandle>(refusalFor(Stop::CANCELLED)); }))
                      .wait(wait);
  KJ_IF_MAYBE (why, op.withdrawn) return refused(refusalFor(*why));
  if (!prepared.ok()) {
    auto code = prepared.refusal().code;
    if (!concernsTarget(code)) return refused(prepared.refusal());
    return conclude(op, rejected(code, clock.wallMs()), wait);
  }
  KJ_IF_MAYBE (stop, mustStop(op)) return refused(refusalFor(*stop));
  op.listener->reached(wire::Stage::PREPARED);

  // 8  Claimed: durable before the first byte of the effect leaves this process.
  auto claimed = inTime(ledger.claim(op.claim(clock.wallMs()))).wait(wait);
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
  bool ofWindow = !op.action().target.is<DesktopTarget>();
  if (ofWindow && answer->refusal == nullptr && !session.mustObserve && !session.closed &&
      !performed.is<NothingSent>()) {
    auto fresh = look(session, op.action().window(), ObserveAct(), clock.bootMs() + READ_MS, wait);
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
  // A cancellation, or whatever else withdrew it, wins over an expired deadline.
  KJ_IF_MAYBE (why, op.withdrawn) return *why;
  if (clock.bootMs() >= op.deadline) return Stop::EXPIRED;
  auto scope = leaseScope(*op.session, revocations, clock);
  if (!op.session->leases.isOpen(op.grant().issuer, op.lease, scope)) {
    return op.session->liveHelper() == nullptr ? Stop::HELPER_GONE : Stop::LEASE_ENDED;
  }
  if (!clock.trusted()) return Stop::CLOCK_JUMPED;
  if (op.session->liveHelper() == nullptr) return Stop::HELPER_GONE;
  return nullptr;
}

ledger::Ending Supervisor::endingOf(const Operation& op, const Hash& nonce,
                                    const Performed& performed) const {
  int64_t now = clock.wallMs();
  KJ_SWITCH_ONEOF(performed) {
    KJ_CASE_ONEOF(facts, FactsHeld) {
      bool interrupted = op.withdrawn != nullptr || clock.bootMs() >= op.deadline;
      Terms asked{op.action().verification.kind(), op.action().mode, op.grant().rights};
      return endingFor(asked, judge(op.action(), nonce, facts.get()),
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
  auto receipt = inTime(ledger.settle(kj::str(op.grant().operation), kj::mv(ending))).wait(wait);
  if (unknown || !receipt.ok()) op.session->mustObserve = true;
  if (!receipt.ok()) return refused(UNRECORDED);
  op.receipt = receipt->clone();
  return recorded(kj::mv(*receipt), false);
}

kj::Own<Answer> Supervisor::conclude(Operation& op, ledger::Ending ending, kj::WaitScope& wait) {
  auto receipt = inTime(ledger.conclude(op.claim(clock.wallMs()), kj::mv(ending))).wait(wait);
  if (!receipt.ok()) return refused(receipt.refusal());
  op.receipt = receipt->clone();
  return recorded(kj::mv(*receipt), false);
}

// A write that does not come back may be on disk or not, as one that failed: the same caution.
template <typename T>
kj::Promise<Result<T>> Supervisor::inTime(kj::Promise<Result<T>> write) {
  kj::Promise<Result<T>> late = timer.afterDelay(bounds::LEDGER).then([this]() -> Result<T> {
    stalled = true;
    return STOPPED;
  });
  return write.exclusiveJoin(kj::mv(late));
}

Result<Approved> Supervisor::approve(const Session& session, Submission& submission) const {
  if (!usable()) return STOPPED;
  auto grant = attest::openGrant(ledger.ring(), submission.grant);
  if (!grant.ok()) return grant.refusal();
  return match(kj::mv(*grant), kj::mv(submission.action), party(), session);
}

Result<kj::StringPtr> Supervisor::admitted(const attest::Grant& grant,
                                           const Session& session) const {
  if (isStopped(session.id, grant.turn)) return refusalFor(Stop::USER_STOPPED);
  return admit(grant, session, revocations, clock);
}

// Reads change nothing and are not recorded. Their grants count uses, in memory.
Result<Approved> Supervisor::approveRead(const Session& session, Submission& submission,
                                         std::initializer_list<kj::StringPtr> kinds) {
  auto approved = approve(session, submission);
  if (!approved.ok()) return approved.refusal();
  if (std::find(kinds.begin(), kinds.end(), approved->action.kind()) == kinds.end()) {
    return Refusal{RefusalCode::MALFORMED, "This action is not what is asked for."_kj};
  }
  auto lease = admitted(approved->grant, session);
  if (!lease.ok()) return lease.refusal();
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

// A read that waited for its turn, or for a helper, is asked again for what ages.
Result<HelperLink*> Supervisor::helperForRead(Session& session, const Approved& read,
                                              uint64_t deadline, kj::WaitScope& wait) {
  auto helper = helperFor(session, deadline, wait);
  if (!helper.ok()) return helper;
  auto lease = admitted(read.grant, session);
  if (!lease.ok()) return lease.refusal();
  auto fit = admitAction(read.action, session);
  if (!fit.ok()) return fit.refusal();
  return helper;
}

Result<ObservationHeld> Supervisor::look(Session& session, const WindowRef& window,
                                         const ObserveAct& request, uint64_t deadline,
                                         kj::WaitScope& wait) {
  auto helper = helperFor(session, deadline, wait);
  if (!helper.ok()) return helper.refusal();
  auto frame = session.frames.draw();
  auto seen =
      (*helper)->observe(window, frame.id, frame.epoch, request, remaining(deadline)).wait(wait);
  if (!seen.ok()) {
    session.frames.voidAll();
    return seen.refusal();
  }
  session.frames.taken(frame, window, (*helper)->generation());
  session.mustObserve = false;
  return kj::mv(*seen);
}

kj::Promise<Result<ObservationHeld>> Supervisor::observe(Session& session, Submission submission) {
  auto approved = approveRead(session, submission, {"observe"_kj});
  if (!approved.ok()) return Result<ObservationHeld>(approved.refusal());
  return inTurn<ObservationHeld>(
      session, [this, deadline = readDeadline(*approved), read = kj::mv(*approved)](
                   Session& own, kj::WaitScope& wait) {
        auto helper = helperForRead(own, read, deadline, wait);
        if (!helper.ok()) return Result<ObservationHeld>(helper.refusal());
        return look(own, read.action.window(), read.action.act.get<ObserveAct>(), deadline, wait);
      });
}

kj::Promise<Result<DesktopHeld>> Supervisor::list(Session& session, Submission submission) {
  auto approved = approveRead(session, submission, {"list"_kj});
  if (!approved.ok()) return Result<DesktopHeld>(approved.refusal());
  return inTurn<DesktopHeld>(session,
                             [this, deadline = readDeadline(*approved), read = kj::mv(*approved)](
                                 Session& own, kj::WaitScope& wait) {
                               auto helper = helperForRead(own, read, deadline, wait);
                               if (!helper.ok()) return Result<DesktopHeld>(helper.refusal());
                               return (*helper)->list(remaining(deadline)).wait(wait);
                             });
}

kj::Promise<Result<PictureHandle>> Supervisor::capture(Session& session, Submission submission) {
  auto approved = approveRead(session, submission, {"screenshot"_kj, "zoom"_kj});
  if (!approved.ok()) return Result<PictureHandle>(approved.refusal());
  return inTurn<PictureHandle>(
      session, [this, deadline = readDeadline(*approved), read = kj::mv(*approved)](
                   Session& own, kj::WaitScope& wait) {
        auto helper = helperForRead(own, read, deadline, wait);
        if (!helper.ok()) return Result<PictureHandle>(helper.refusal());
        return (*helper)->capture(read.action, remaining(deadline)).wait(wait);
      });
}

kj::Promise<Result<kj::Maybe<Png>>> Supervisor::png(Session& session, PictureHandle picture) {
  return inTurn<kj::Maybe<Png>>(
      session,
      [picture = kj::mv(picture)](Session& own,
                                  kj::WaitScope& wait) mutable -> Result<kj::Maybe<Png>> {
        if (own.generation() != picture.generation) return kj::Maybe<Png>();
        return KJ_ASSERT_NONNULL(own.liveHelper()).png(kj::mv(picture), bounds::READ).wait(wait);
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
    (*operation)->withdraw(Stop::CANCELLED);
    return true;
  }
  return false;
}

Result<kj::Own<Session>> Supervisor::open(kj::String id) {
  if (!isIdentifier(id)) {
    return Refusal{RefusalCode::MALFORMED, "A session's name must be an identifier."_kj};
  }
  bool known = false;
  KJ_IF_MAYBE (name, names.find(id)) {
    if (name->open) {
      return Refusal{RefusalCode::OPERATION_CONFLICT, "A session of this name is open."_kj};
    }
    known = true;
  }
  if (liveSessions >= bounds::SESSIONS) {
    return Refusal{RefusalCode::BUSY, "The limit of live sessions is reached."_kj};
  }
  if (!known && names.size() >= bounds::SESSION_NAMES) {
    return Refusal{RefusalCode::BUSY, "There were too many names of sessions; reuse one."_kj};
  }
  names.findOrCreate(id, [&]() { return decltype(names)::Entry{kj::str(id), {}}; }).open = true;
  ++liveSessions;
  return kj::refcounted<Session>(++lastSession, kj::mv(id), clock, helpers);
}

void Supervisor::close(Session& session) {
  withdraw(session, Stop::CANCELLED);
  leave(session);
}

void Supervisor::withdraw(Session& session, Stop why) {
  for (auto& entry : inFlight) {
    if (entry.value->session.get() == &session) entry.value->withdraw(why);
  }
}

Result<Done> Supervisor::beginTurn(Session& session, kj::String turn) {
  if (isStopped(session.id, turn)) return refusalFor(Stop::USER_STOPPED);
  auto name = kj::str(session.id, ' ', turn);
  if (begun.contains(name)) {
    return Refusal{RefusalCode::OPERATION_CONFLICT, "This turn has begun before."_kj};
  }
  if (begun.size() >= bounds::TURNS) {
    return Refusal{RefusalCode::BUSY, "There were too many turns since this supervisor began."_kj};
  }
  auto present = session.beginTurn(kj::mv(turn));
  if (!present.ok()) return present.refusal();
  begun.insert(kj::mv(name));
  withdraw(session, Stop::CANCELLED);  // All of it belongs to earlier turns.
  return Done{};
}

void Supervisor::endTurn(Session& session) {
  withdraw(session, Stop::CANCELLED);
  session.endTurn();
}

// A stop is remembered by name, since it may come before the turn, or the session, that it means.
void Supervisor::stop(kj::StringPtr session, kj::StringPtr turn) {
  if (!isIdentifier(session) || !isIdentifier(turn)) return;  // Nothing can have this name.
  // Beyond what can be remembered every further turn is stopped, rather than this one forgotten.
  if (stopped.size() < bounds::STOPS) {
    stopped.upsert(kj::str(session, ' ', turn), [](kj::String&, kj::String&&) {});
  }
  for (auto& entry : inFlight) {
    auto& grant = entry.value->grant();
    if (grant.session == session && grant.turn == turn) entry.value->withdraw(Stop::USER_STOPPED);
  }
}

bool Supervisor::isStopped(kj::StringPtr session, kj::StringPtr turn) const {
  return stopped.size() >= bounds::STOPS || stopped.contains(kj::str(session, ' ', turn));
}

Result<Done> Supervisor::openLease(Session& session, attest::Envelope envelope) {
  if (!usable()) return STOPPED;
  auto lease = attest::openLease(ledger.ring(), envelope);
  if (!lease.ok()) return lease.refusal();
  if (isStopped(session.id, lease->turn)) return refusalFor(Stop::USER_STOPPED);
  // What an earlier supervisor had open is not on record; this alone keeps it from opening again.
  if (lease->notBefore < began) {
    return Refusal{RefusalCode::POLICY_DENIED,
                   "The lease was signed before this supervisor began."_kj};
  }
  return admitLease(kj::mv(*lease), attest::digestOf(envelope.body), party(), session, revocations,
                    clock);
}

kj::Promise<Result<Done>> Supervisor::revoke(attest::Envelope envelope) {
  if (!usable()) return Result<Done>(STOPPED);
  auto revocation = attest::openRevocation(ledger.ring(), envelope);
  if (!revocation.ok()) return Result<Done>(revocation.refusal());
  if (!(revocation->audience == ledger.id()) || revocation->subject != subject) {
    return Result<Done>(
        Refusal{RefusalCode::POLICY_DENIED, "This was signed for another ledger or subject."_kj});
  }
  auto kept = revocations.admit(*revocation);
  if (!kept.ok()) return Result<Done>(kept.refusal());
  // What is taken back is taken back at once, even if it could not be written down.
  revocations.add(*revocation);
  for (auto& entry : inFlight) {
    if (isRevoked(*entry.value)) entry.value->withdraw(Stop::REVOKED);
  }
  return inTime(ledger.revoke(kj::mv(envelope), clock.wallMs()));
}

bool Supervisor::isRevoked(const Operation& op) const {
  auto& grant = op.grant();
  return !revocations.check(grant).ok() ||
         op.session->leases.isRevoked(grant.issuer, op.lease, revocations);
}

RequestName RequestName::of(const Submission& submission) {
  return {attest::requestHash(submission.grant, submission.action),
          attest::operationNamed(submission.grant.body)};
}

attest::Envelope Supervisor::prove(kj::Maybe<Session&> session, const RequestName& request,
                                   const Refusal& refusal) {
  attest::Refused refused;
  refused.subject = kj::str(subject);
  refused.sequence = refusals + 1;
  KJ_IF_MAYBE (concerned, session) {
    refused.session = kj::str(concerned->id);
    refused.sequence = ++KJ_ASSERT_NONNULL(names.find(concerned->id)).refusals;
  } else {
    ++refusals;
  }
  refused.request = request.hash;
  if (isOfProvenRequest(refusal.code)) refused.operation = kj::str(request.operation);
  refused.code = refusal.code;
  refused.at = clock.wallMs();
  return ledger.sign(kj::mv(refused));
}

void Supervisor::leave(Session& session) {
  if (session.closed) return;
  session.closed = true;
  KJ_ASSERT_NONNULL(names.find(session.id)).open = false;
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
                       const TimeKeeper& clock, kj::Timer& timer, kj::String subject)
    : ledger(ledger),
      helpers(helpers),
      actor(actor),
      clock(clock),
      timer(timer),
      subject(kj::mv(subject)),
      revocations(ledger.revocations().clone()),
      began(clock.wallMs()),
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
