#include "supervisor/host-port.h"

#include "ipc/bounds.h"

namespace praefectus {
namespace {

constexpr Refusal NO_HELLO = {RefusalCode::UNSUPPORTED_VERSION, "Say hello first."_kj};
constexpr Refusal ROLLED_BACK = {
    RefusalCode::LEDGER_ROLLED_BACK,
    "The ledger does not contain the head that this host has seen of it."_kj};
constexpr Refusal SAID_HELLO = {RefusalCode::MALFORMED, "Hello was said on this connection."_kj};
constexpr Refusal OTHER_VERSION = {RefusalCode::UNSUPPORTED_VERSION,
                                   "This supervisor speaks another protocol version."_kj};

// Passes stages on. The host may be slow or gone; nobody waits for it, and a call that fails is
// forgotten. At most two calls an operation, so nothing piles up.
class ProgressListener final : public Listener {
 public:
  explicit ProgressListener(kj::Maybe<wire::Progress::Client> to) : to(kj::mv(to)) {}

  void reached(wire::Stage stage) override {
    KJ_IF_MAYBE (client, to) {
      auto request = client->reachedRequest();
      request.setStage(stage);
      request.send().ignoreResult().detach([](kj::Exception&&) {});
    }
  }

 private:
  kj::Maybe<wire::Progress::Client> to;
};

Result<Submission> readSubmission(wire::Submission::Reader from) {
  auto envelope = attest::readEnvelope(from.getGrant());
  if (!envelope.ok()) return envelope.refusal();
  if (from.getAction().size() > bounds::ACTION_BYTES) {
    return Refusal{RefusalCode::MALFORMED, "The action is too large."_kj};
  }
  return Submission{kj::mv(*envelope), kj::heapArray<kj::byte>(from.getAction())};
}

// A refusal and the proof of it.
void writeRefusal(Supervisor& supervisor, kj::Maybe<Session&> session, const RequestName& request,
                  const Refusal& refusal, wire::HostRefusal::Builder to) {
  write(refusal, to.initRefusal());
  attest::write(supervisor.prove(session, request, refusal), to.initProof());
}

void writeDone(Supervisor& supervisor, kj::Maybe<Session&> session, const Result<Done>& done,
               wire::DoneResult::Builder to) {
  if (done.ok()) {
    to.setDone();
  } else {
    writeRefusal(supervisor, session, {}, done.refusal(), to.initRefusal());
  }
}

// A picture that a helper holds, until its PNG is asked for; then the supervisor holds that, for as
// long as the host keeps the capability.
class PicturePort final : public Strict<wire::Picture> {
 public:
  PicturePort(Supervisor& supervisor, kj::Own<Session> session, PictureHandle picture)
      : supervisor(supervisor),
        session(kj::mv(session)),
        about(picture.info),
        picture(kj::mv(picture)) {}

 protected:
  kj::Promise<void> info(InfoContext context) override {
    write(about, context.getResults().initInfo());
    return kj::READY_NOW;
  }

  kj::Promise<void> png(PngContext context) override {
    context.allowCancellation();
    return fetched().then([this, context]() mutable {
      auto results = context.getResults();
      KJ_IF_MAYBE (made, file) {
        results.setSize(made->bytes.size());
        results.setDigest(bytesOf(made->digest));
      }
    });
  }

  kj::Promise<void> read(ReadContext context) override {
    context.allowCancellation();
    return fetched().then([this, context]() mutable {
      auto offset = context.getParams().getOffset();
      KJ_IF_MAYBE (made, file) context.getResults().setBytes(made->piece(offset));
    });
  }

 private:
  // Whether or not there is one, the helper is asked once and then holds it no longer.
  kj::Promise<void> fetched() {
    KJ_IF_MAYBE (held, picture) {
      return supervisor.png(*session, *held).then([this](Result<kj::Maybe<Png>> answer) {
        if (picture == nullptr) return;
        if (answer.ok()) file = kj::mv(*answer);
        picture = nullptr;
      });
    }
    return kj::READY_NOW;
  }

  Supervisor& supervisor;
  kj::Own<Session> session;
  PictureInfo about;
  kj::Maybe<PictureHandle> picture;
  kj::Maybe<Png> file;
};

// Every call that takes time lets itself be withdrawn: a call is not what keeps its operation
// going, and one that outlived its connection would keep the session open.
class SessionPort final : public Strict<wire::Session> {
 public:
  SessionPort(Supervisor& supervisor, kj::Own<Session> session)
      : supervisor(supervisor), session(kj::mv(session)) {}
  // Let go of, or the host is gone: two cases that cannot be told apart here, and need not be.
  ~SessionPort() noexcept(false) { supervisor.leave(*session); }

 protected:
  kj::Promise<void> capabilities(CapabilitiesContext context) override {
    context.allowCancellation();
    return supervisor.capabilities(*session).then(
        [this, context](Result<StatusHeld> status) mutable {
          auto result = context.getResults().initResult();
          if (!status.ok()) return refuse(status.refusal(), {}, result.initRefusal());
          result.setHelper(status->get());
        });
  }

  kj::Promise<void> list(ListContext context) override {
    context.allowCancellation();
    auto asked = take(context.getParams().getSubmission());
    context.releaseParams();
    auto result = context.getResults().initResult();
    if (!asked.submission.ok()) {
      refuse(asked.submission.refusal(), asked.name, result.initRefusal());
      return kj::READY_NOW;
    }
    return supervisor.list(*session, kj::mv(*asked.submission))
        .then([this, result, name = kj::mv(asked.name)](Result<DesktopHeld> desktop) mutable {
          if (!desktop.ok()) return refuse(desktop.refusal(), name, result.initRefusal());
          result.setDesktop(desktop->get());
        });
  }

  kj::Promise<void> observe(ObserveContext context) override {
    context.allowCancellation();
    auto asked = take(context.getParams().getSubmission());
    context.releaseParams();
    if (!asked.submission.ok()) {
      refuse(asked.submission.refusal(), asked.name,
             context.getResults().initResult().initRefusal());
      return kj::READY_NOW;
    }
    return supervisor.observe(*session, kj::mv(*asked.submission))
        .then([this, context, name = kj::mv(asked.name)](Result<ObservationHeld> seen) mutable {
          auto results = context.getResults();
          auto result = results.initResult();
          if (!seen.ok()) return refuse(seen.refusal(), name, result.initRefusal());
          result.setObservation(seen->get());
          KJ_IF_MAYBE (picture, seen->picture) results.setPicture(hand(kj::mv(*picture)));
        });
  }

  kj::Promise<void> capture(CaptureContext context) override {
    context.allowCancellation();
    auto asked = take(context.getParams().getSubmission());
    context.releaseParams();
    if (!asked.submission.ok()) {
      refuse(asked.submission.refusal(), asked.name,
             context.getResults().initResult().initRefusal());
      return kj::READY_NOW;
    }
    return supervisor.capture(*session, kj::mv(*asked.submission))
        .then([this, context, name = kj::mv(asked.name)](Result<PictureHandle> taken) mutable {
          auto results = context.getResults();
          auto result = results.initResult();
          if (!taken.ok()) return refuse(taken.refusal(), name, result.initRefusal());
          write(taken->info, result.initPicture());
          results.setPicture(hand(kj::mv(*taken)));
        });
  }

  kj::Promise<void> execute(ExecuteContext context) override {
    context.allowCancellation();
    auto params = context.getParams();
    auto asked = take(params.getSubmission());
    kj::Maybe<wire::Progress::Client> progress;
    if (params.hasProgress()) progress = params.getProgress();
    context.releaseParams();
    if (!asked.submission.ok()) {
      refuse(asked.submission.refusal(), asked.name,
             context.getResults().initResult().initRefusal());
      return kj::READY_NOW;
    }
    return supervisor
        .execute(*session, kj::mv(*asked.submission), kj::heap<ProgressListener>(kj::mv(progress)))
        .then([this, context, name = kj::mv(asked.name)](kj::Own<Answer> answer) mutable {
          auto result = context.getResults().initResult();
          KJ_IF_MAYBE (refusal, answer->refusal) {
            return refuse(*refusal, name, result.initRefusal());
          }
          writeOutcome(*answer, result.initOutcome());
        });
  }

  kj::Promise<void> beginTurn(BeginTurnContext context) override {
    writeDone(supervisor, *session,
              supervisor.beginTurn(*session, kj::str(context.getParams().getTurn())),
              context.getResults().initResult());
    return kj::READY_NOW;
  }

  kj::Promise<void> endTurn(EndTurnContext) override {
    supervisor.endTurn(*session);
    return kj::READY_NOW;
  }

  kj::Promise<void> openLease(OpenLeaseContext context) override {
    auto envelope = attest::readEnvelope(context.getParams().getLease());
    auto opened = envelope.ok() ? supervisor.openLease(*session, kj::mv(*envelope))
                                : Result<Done>(envelope.refusal());
    writeDone(supervisor, *session, opened, context.getResults().initResult());
    return kj::READY_NOW;
  }

  kj::Promise<void> cancel(CancelContext context) override {
    context.getResults().setFound(supervisor.cancel(*session, context.getParams().getOperation()));
    return kj::READY_NOW;
  }

  kj::Promise<void> close(CloseContext) override {
    supervisor.close(*session);
    return kj::READY_NOW;
  }

 private:
  // A submission out of a message that is about to be let go of.
  struct Asked {
    RequestName name;
    Result<Submission> submission;
  };
  static Asked take(wire::Submission::Reader from) {
    auto submission = readSubmission(from);
    auto name = submission.ok() ? RequestName::of(*submission) : RequestName();
    return {kj::mv(name), kj::mv(submission)};
  }

  wire::Picture::Client hand(PictureHandle picture) {
    return kj::heap<PicturePort>(supervisor, kj::addRef(*session), kj::mv(picture));
  }

  void refuse(const Refusal& refusal, const RequestName& request, wire::HostRefusal::Builder to) {
    writeRefusal(supervisor, *session, request, refusal, to);
  }

  static void writeOutcome(Answer& answer, wire::Outcome::Builder outcome) {
    attest::write(answer.receipt, outcome.initReceipt());
    outcome.setReplayed(answer.replayed);
    auto fresh = outcome.getFresh();
    KJ_SWITCH_ONEOF(answer.fresh) {
      KJ_CASE_ONEOF(none, Done) { fresh.setNone(); }
      KJ_CASE_ONEOF(seen, ObservationHeld) { fresh.setObservation(seen.get()); }
      KJ_CASE_ONEOF(refusal, Refusal) { write(refusal, fresh.initRefusal()); }
    }
  }

  Supervisor& supervisor;
  kj::Own<Session> session;
};

class HostPort final : public Strict<wire::Supervisor> {
 public:
  explicit HostPort(Supervisor& supervisor) : supervisor(supervisor) {}

 protected:
  kj::Promise<void> hello(HelloContext context) override {
    auto params = context.getParams();
    auto result = context.getResults().initResult();
    if (params.getProtocol() != wire::PROTOCOL_VERSION) {
      refuse(OTHER_VERSION, result.initRefusal());
      return kj::READY_NOW;
    }
    if (greeted) {
      refuse(SAID_HELLO, result.initRefusal());
      return kj::READY_NOW;
    }
    greeted = true;
    rolledBack = !knows(params.getSeen());
    KJ_IF_MAYBE (why, barred()) {
      refuse(*why, result.initRefusal());
      return kj::READY_NOW;
    }
    writeInfo(result.initInfo());
    return kj::READY_NOW;
  }

  kj::Promise<void> open(OpenContext context) override {
    auto results = context.getResults();
    auto opened = ifGreeted<kj::Own<Session>>(
        [&]() { return supervisor.open(kj::str(context.getParams().getSession())); });
    if (!opened.ok()) {
      refuse(opened.refusal(), results.initResult().initRefusal());
      return kj::READY_NOW;
    }
    results.initResult().setDone();
    results.setSession(kj::heap<SessionPort>(supervisor, kj::mv(*opened)));
    return kj::READY_NOW;
  }

  kj::Promise<void> status(StatusContext context) override {
    auto result = context.getResults().initResult();
    auto operation = context.getParams().getOperation();
    auto found = ifGreeted<ledger::Found>([&]() { return supervisor.book().find(operation); });
    if (!found.ok()) {
      refuse(found.refusal(), result.initRefusal());
      return kj::READY_NOW;
    }
    KJ_SWITCH_ONEOF(*found) {
      KJ_CASE_ONEOF(unknown, ledger::Unknown) { result.setUnknown(); }
      KJ_CASE_ONEOF(conflict, ledger::Conflict) { result.setUnknown(); }
      KJ_CASE_ONEOF(open, ledger::Open) { result.setOpen(); }
      KJ_CASE_ONEOF(receipt, attest::Envelope) { attest::write(receipt, result.initEnded()); }
      KJ_CASE_ONEOF(elsewhere, ledger::Elsewhere) {
        refuse(ledger::ARCHIVED, result.initRefusal());
      }
      KJ_CASE_ONEOF(damaged, ledger::Damaged) { refuse(ledger::DAMAGED, result.initRefusal()); }
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> stop(StopContext context) override {
    supervisor.stop(context.getParams().getSession(), context.getParams().getTurn());
    return kj::READY_NOW;
  }

  kj::Promise<void> revoke(RevokeContext context) override {
    context.allowCancellation();
    auto envelope = attest::readEnvelope(context.getParams().getRevocation());
    context.releaseParams();
    KJ_IF_MAYBE (why, barred()) envelope = *why;
    if (!envelope.ok()) {
      refuse(envelope.refusal(), context.getResults().initResult().initRefusal());
      return kj::READY_NOW;
    }
    return supervisor.revoke(kj::mv(*envelope)).then([this, context](Result<Done> done) mutable {
      writeDone(supervisor, nullptr, done, context.getResults().initResult());
    });
  }

 private:
  // Why nothing is served on this connection.
  kj::Maybe<Refusal> barred() const {
    if (rolledBack) return ROLLED_BACK;
    if (!greeted) return NO_HELLO;
    return nullptr;
  }

  template <typename T, typename Deed>
  Result<T> ifGreeted(Deed&& deed) {
    KJ_IF_MAYBE (why, barred()) return *why;
    return deed();
  }

  void refuse(const Refusal& refusal, wire::HostRefusal::Builder to) {
    writeRefusal(supervisor, nullptr, {}, refusal, to);
  }

  // Whether the ledger contains what the host has seen of it; an empty head has seen nothing.
  bool knows(wire::Head::Reader seen) {
    if (seen.getSequence() == 0) return true;
    KJ_IF_MAYBE (link, fixed<32>(seen.getLink())) {
      return supervisor.book().contains({seen.getSequence(), *link});
    }
    return false;
  }

  void writeInfo(wire::SupervisorInfo::Builder info) {
    auto& ledger = supervisor.book();
    info.setProtocol(wire::PROTOCOL_VERSION);
    info.setRelease(PRAEFECTUS_RELEASE);
    write(ledger.id(), info.initLedger());
    info.setReceiptKey(bytesOf(ledger.receiptKey()));
    info.setSubject(supervisor.subjectName());
    info.setActing(supervisor.mayAct());
    info.setRecovered(ledger.recovered().settled);
    info.setClockTrusted(supervisor.clockTrusted());
    auto head = ledger.head();
    info.initHead().setSequence(head.sequence);
    info.getHead().setLink(bytesOf(head.link));
    writePolicies(info);
    auto former = ledger.formerReceiptKeys();
    auto keys = info.initFormerKeys(static_cast<capnp::uint>(former.size()));
    for (capnp::uint i = 0; i < keys.size(); ++i) keys.set(i, bytesOf(former[i]));
  }

  void writePolicies(wire::SupervisorInfo::Builder info) {
    // An issuer may have several keys; it has one policy.
    kj::TreeMap<kj::StringPtr, uint64_t> policies;
    for (auto& entry : supervisor.book().ring().entries()) {
      if (entry.purpose != attest::Purpose::ISSUER) continue;
      policies.upsert(entry.issuer.asPtr(), supervisor.policyGenerationOf(entry.issuer),
                      [](uint64_t&, uint64_t&&) {});
    }
    auto list = info.initPolicies(static_cast<capnp::uint>(policies.size()));
    capnp::uint i = 0;
    for (auto& policy : policies) {
      list[i].setIssuer(policy.key);
      list[i++].setGeneration(policy.value);
    }
  }

  Supervisor& supervisor;
  bool greeted = false;
  bool rolledBack = false;
};

// Without a ledger nobody can sign, so these refusals carry no proof.
class RefusingPort final : public Strict<wire::Supervisor> {
 public:
  explicit RefusingPort(Refusal why) : why(why) {}

 protected:
  kj::Promise<void> hello(HelloContext context) override { return refuse(context); }
  kj::Promise<void> open(OpenContext context) override { return refuse(context); }
  kj::Promise<void> status(StatusContext context) override { return refuse(context); }
  kj::Promise<void> revoke(RevokeContext context) override { return refuse(context); }
  // Nothing runs here, so what is to be stopped is stopped.
  kj::Promise<void> stop(StopContext) override { return kj::READY_NOW; }

 private:
  template <typename Context>
  kj::Promise<void> refuse(Context& context) {
    write(why, context.getResults().initResult().initRefusal().initRefusal());
    return kj::READY_NOW;
  }

  Refusal why;
};

}  // namespace

wire::Supervisor::Client servePort(Supervisor& supervisor) {
  return kj::heap<HostPort>(supervisor);
}
wire::Supervisor::Client serveRefusal(Refusal why) { return kj::heap<RefusingPort>(why); }

}  // namespace praefectus
