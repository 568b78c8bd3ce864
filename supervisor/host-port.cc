#include "supervisor/host-port.h"

#include "ipc/bounds.h"

namespace praefectus {
namespace {

constexpr Refusal NO_HELLO = {RefusalCode::UNSUPPORTED_VERSION, "Say hello first."_kj};
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

// Every call that takes time lets itself be withdrawn: a call is not what keeps its operation
// going, and one that outlived its connection would keep the session open.
// A picture that the supervisor holds; it lives as long as the host keeps the capability.
class PicturePort final : public Strict<wire::Picture> {
 public:
  explicit PicturePort(PictureData picture) : picture(kj::mv(picture)) {}

 protected:
  kj::Promise<void> info(InfoContext context) override {
    picture.writeInfo(context.getResults().initInfo());
    return kj::READY_NOW;
  }
  kj::Promise<void> read(ReadContext context) override {
    context.getResults().setBytes(picture.piece(context.getParams().getOffset()));
    return kj::READY_NOW;
  }

 private:
  PictureData picture;
};

class SessionPort final : public Strict<wire::Session> {
 public:
  SessionPort(Supervisor& supervisor, kj::Own<Session> session)
      : supervisor(supervisor), session(kj::mv(session)) {}
  // Let go of, or the host is gone: two cases that cannot be told apart here, and need not be.
  ~SessionPort() noexcept(false) { supervisor.leave(*session); }

 protected:
  kj::Promise<void> capabilities(CapabilitiesContext context) override {
    context.allowCancellation();
    return supervisor.capabilities(*session).then([context](Result<StatusHeld> status) mutable {
      auto result = context.getResults().initResult();
      if (status.ok()) {
        result.setHelper(status->get());
      } else {
        write(status.refusal(), result.initRefusal());
      }
    });
  }

  kj::Promise<void> list(ListContext context) override {
    context.allowCancellation();
    auto submission = readSubmission(context.getParams().getSubmission());
    context.releaseParams();
    auto result = context.getResults().initResult();
    if (!submission.ok()) {
      write(submission.refusal(), result.initRefusal());
      return kj::READY_NOW;
    }
    return supervisor.list(*session, kj::mv(*submission))
        .then([result](Result<DesktopHeld> desktop) mutable {
          if (desktop.ok()) {
            result.setDesktop(desktop->get());
          } else {
            write(desktop.refusal(), result.initRefusal());
          }
        });
  }

  kj::Promise<void> observe(ObserveContext context) override {
    context.allowCancellation();
    auto submission = readSubmission(context.getParams().getSubmission());
    context.releaseParams();
    if (!submission.ok()) {
      write(submission.refusal(), context.getResults().initResult().initRefusal());
      return kj::READY_NOW;
    }
    return supervisor.observe(*session, kj::mv(*submission))
        .then([context](Result<ObservationHeld> seen) mutable {
          auto results = context.getResults();
          if (!seen.ok()) {
            write(seen.refusal(), results.initResult().initRefusal());
            return;
          }
          results.initResult().setObservation(seen->get());
          KJ_IF_MAYBE (picture, seen->picture)
            results.setPicture(kj::heap<PicturePort>(kj::mv(*picture)));
        });
  }

  kj::Promise<void> execute(ExecuteContext context) override {
    context.allowCancellation();
    auto params = context.getParams();
    auto submission = readSubmission(params.getSubmission());
    kj::Maybe<wire::Progress::Client> progress;
    if (params.hasProgress()) progress = params.getProgress();
    context.releaseParams();
    if (!submission.ok()) {
      write(submission.refusal(), context.getResults().initResult().initRefusal());
      return kj::READY_NOW;
    }
    return supervisor
        .execute(*session, kj::mv(*submission), kj::heap<ProgressListener>(kj::mv(progress)))
        .then([context](kj::Own<Answer> answer) mutable {
          writeAnswer(*answer, context.getResults().initResult());
        });
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
  static void writeAnswer(Answer& answer, wire::ExecuteResult::Builder result) {
    KJ_IF_MAYBE (refusal, answer.refusal) {
      write(*refusal, result.initRefusal());
      return;
    }
    auto outcome = result.initOutcome();
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
    auto result = context.getResults().initResult();
    if (context.getParams().getProtocol() != wire::PROTOCOL_VERSION) {
      write(OTHER_VERSION, result.initRefusal());
      return kj::READY_NOW;
    }
    greeted = true;
    auto& ledger = supervisor.book();
    auto info = result.initInfo();
    info.setProtocol(wire::PROTOCOL_VERSION);
    info.setRelease(PRAEFECTUS_RELEASE);
    write(ledger.id(), info.initLedger());
    info.setReceiptKey(bytesOf(ledger.receiptKey()));
    info.setSubject(supervisor.subjectName());
    info.setActing(supervisor.mayAct());
    info.setRecovered(ledger.recovered().settled);
    return kj::READY_NOW;
  }

  kj::Promise<void> open(OpenContext context) override {
    auto results = context.getResults();
    auto opened = greeted ? supervisor.open(kj::str(context.getParams().getSession()),
                                            kj::str(context.getParams().getTurn()))
                          : Result<kj::Own<Session>>(NO_HELLO);
    if (!opened.ok()) {
      write(opened.refusal(), results.initResult().initRefusal());
      return kj::READY_NOW;
    }
    results.initResult().setOpened();
    results.setSession(kj::heap<SessionPort>(supervisor, kj::mv(*opened)));
    return kj::READY_NOW;
  }

  kj::Promise<void> status(StatusContext context) override {
    auto result = context.getResults().initResult();
    auto found = greeted ? supervisor.book().find(context.getParams().getOperation())
                         : Result<ledger::Found>(NO_HELLO);
    if (!found.ok()) {
      write(found.refusal(), result.initRefusal());
      return kj::READY_NOW;
    }
    KJ_SWITCH_ONEOF(*found) {
      KJ_CASE_ONEOF(unknown, ledger::Unknown) { result.setUnknown(); }
      KJ_CASE_ONEOF(conflict, ledger::Conflict) { result.setUnknown(); }
      KJ_CASE_ONEOF(open, ledger::Open) { result.setOpen(); }
      KJ_CASE_ONEOF(receipt, attest::Envelope) { attest::write(receipt, result.initEnded()); }
    }
    return kj::READY_NOW;
  }

 private:
  Supervisor& supervisor;
  bool greeted = false;
};

class RefusingPort final : public Strict<wire::Supervisor> {
 public:
  explicit RefusingPort(Refusal why) : why(why) {}

 protected:
  kj::Promise<void> hello(HelloContext context) override {
    write(why, context.getResults().initResult().initRefusal());
    return kj::READY_NOW;
  }
  kj::Promise<void> open(OpenContext context) override {
    write(why, context.getResults().initResult().initRefusal());
    return kj::READY_NOW;
  }
  kj::Promise<void> status(StatusContext context) override {
    write(why, context.getResults().initResult().initRefusal());
    return kj::READY_NOW;
  }

 private:
  Refusal why;
};

}  // namespace

wire::Supervisor::Client servePort(Supervisor& supervisor) {
  return kj::heap<HostPort>(supervisor);
}
wire::Supervisor::Client serveRefusal(Refusal why) { return kj::heap<RefusingPort>(why); }

}  // namespace praefectus
