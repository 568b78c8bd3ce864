#include "supervisor/client/client.h"

#include "ipc/bounds.h"
#include "ipc/picture.h"
#include "ipc/strict.h"
#include "supervisor/client/spawn.h"

#include <kj/mutex.h>

#include <ctime>
#include <set>
#include <string>

#include <sys/socket.h>

namespace praefectus::client {
namespace {

constexpr Refusal GONE = {RefusalCode::SERVICE_UNAVAILABLE,
                          "The supervisor is gone, or does not answer."_kj};
constexpr Refusal NOT_KNOWN = {
    RefusalCode::OUTCOME_UNKNOWN,
    "The supervisor ended before it answered; ask the next one for this operation's status."_kj};
constexpr Refusal NONSENSE = {RefusalCode::SERVICE_MISMATCH,
                              "The supervisor broke the protocol."_kj};
constexpr Refusal FORGED = {RefusalCode::SERVICE_MISMATCH,
                            "The receipt is not this ledger's, or not of this request."_kj};

int64_t wallMs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// A refusal's sentence lives as long as the program: the supervisor has a few dozen of them. One
// that sends more than that is answered with the code's own meaning.
kj::StringPtr kept(kj::StringPtr detail, RefusalCode code) {
  static const kj::MutexGuarded<std::set<std::string>> sentences;
  constexpr size_t MOST = 256;
  auto locked = sentences.lockExclusive();
  std::string text(detail.begin(), detail.size());
  auto found = locked->find(text);
  if (found == locked->end()) {
    if (locked->size() >= MOST || text.size() > 256) return meaningOf(code);
    found = locked->insert(kj::mv(text)).first;
  }
  return kj::StringPtr(found->c_str(), found->size());
}

Refusal readRefusal(wire::Refusal::Reader from) {
  return {from.getCode(), kept(from.getDetail(), from.getCode())};
}

// One place turns a call's failure into words: the peer is gone, does not answer, or is not what it
// should be.
template <typename T>
kj::Promise<Result<T>> worded(kj::Timer& timer, kj::Duration within, kj::Promise<Result<T>> call,
                              Refusal whenGone) {
  return timer.timeoutAfter(within, kj::mv(call))
      .catch_([whenGone](kj::Exception&& problem) -> Result<T> {
        switch (problem.getType()) {
          case kj::Exception::Type::DISCONNECTED:
          case kj::Exception::Type::OVERLOADED:  // How a timer says that the time is over.
            return whenGone;
          case kj::Exception::Type::FAILED:
          case kj::Exception::Type::UNIMPLEMENTED:
            return NONSENSE;
        }
        return NONSENSE;
      });
}

// The supervisor keeps its own deadlines; these are for one that is stopped or stuck.
constexpr kj::Duration BRIEF = bounds::HELLO;
constexpr kj::Duration READING = bounds::SPAWN + bounds::HELLO + 2 * bounds::READ;
constexpr kj::Duration ACTING =
    bounds::ACTION_TIMEOUT_MS * kj::MILLISECONDS + 3 * bounds::LEDGER + READING;

template <typename Results>
typename Results::Reader strictly(const capnp::Response<Results>& response) {
  typename Results::Reader reader = response;
  KJ_REQUIRE(checkStrict(reader).ok(), "the answer is not of its schema");
  return reader;
}

attest::HelperIdentity readIdentity(wire::HelperIdentity::Reader from) {
  return {kj::str(from.getName()), kj::str(from.getRelease()),
          KJ_REQUIRE_NONNULL(fixed<32>(from.getDigest())), from.getGeneration()};
}

class ProgressPort final : public Strict<wire::Progress> {
 public:
  explicit ProgressPort(kj::Function<void(wire::Stage)> told) : told(kj::mv(told)) {}

 protected:
  kj::Promise<void> reached(ReachedContext context) override {
    told(context.getParams().getStage());
    return kj::READY_NOW;
  }

 private:
  kj::Function<void(wire::Stage)> told;
};

// What both ends of a session need: who signs, and for which ledger.
struct Signer {
  const Authority& authority;
  const HostInfo& info;
};

class SessionImpl final : public Session {
 public:
  SessionImpl(kj::Timer& timer, Signer signer, kj::String id, kj::String turn,
              wire::Session::Client client)
      : timer(timer), signer(signer), id(kj::mv(id)), turn(kj::mv(turn)), client(kj::mv(client)) {}

  kj::Promise<Result<HelperStatus>> capabilities() override {
    kj::Promise<Result<HelperStatus>> call =
        client.capabilitiesRequest().send().then([](auto&& answer) -> Result<HelperStatus> {
          auto result = strictly(answer).getResult();
          if (result.isRefusal()) return readRefusal(result.getRefusal());
          auto helper = result.getHelper();
          HelperStatus status;
          status.identity = readIdentity(helper.getIdentity());
          status.pid = helper.getPid();
          status.health = helper.getHealth();
          for (auto capability : helper.getCapabilities()) {
            status.capabilities.add(Capability{kept(capability.getName(), RefusalCode::MALFORMED),
                                               capability.getAvailable(), capability.getWhy()});
          }
          return kj::mv(status);
        });
    return worded(timer, READING, kj::mv(call), GONE);
  }

  kj::Promise<Result<Desktop>> list() override {
    Action action;
    action.act = ListAct();
    return list(sign(action, How()));
  }

  kj::Promise<Result<Observation>> observe(WindowRef window, bool picture) override {
    Action action;
    action.act = ObserveAct{picture};
    action.window = window;
    return observe(sign(action, How()));
  }

  Request invoke(const Observation& seen, const Element& element, kj::StringPtr name,
                 How how) override {
    return sign(mutation(seen, element, InvokeRequest{kj::str(name)}), how);
  }

  Request setValue(const Observation& seen, const Element& element, kj::StringPtr text,
                   How how) override {
    return sign(mutation(seen, element, SetValueRequest{kj::str(text)}), how);
  }

  Request sign(const Action& action, How how) override {
    Request request;
    KJ_IF_MAYBE (chosen, how.operation) {
      request.operation = kj::str(*chosen);
    } else {
      request.operation = newOperationId();
    }
    request.action = encoded(action, how);

    attest::Grant grant;
    grant.issuer = kj::str(signer.authority.issuer());
    grant.keyId = kj::str(signer.authority.keyId());
    grant.audience = signer.info.ledger;
    grant.subject = kj::str(signer.info.subject);
    grant.session = kj::str(id);
    grant.turn = kj::str(turn);
    grant.operation = kj::str(request.operation);
    grant.actionHash = attest::actionHash(request.action);
    grant.actionClass = action.actionClass();
    grant.target = action.window;
    grant.notBefore = wallMs();
    grant.expires = grant.notBefore + how.validForMs;
    grant.uses = 1;
    request.grant = attest::seal(grant, signer.authority.key());
    return request;
  }

  kj::Promise<Result<Desktop>> list(const Request& request) override {
    auto call = client.listRequest();
    fill(request, call.initSubmission());
    kj::Promise<Result<Desktop>> answer = call.send().then([](auto&& got) -> Result<Desktop> {
      auto result = strictly(got).getResult();
      if (result.isRefusal()) return readRefusal(result.getRefusal());
      return read(result.getDesktop());
    });
    return worded(timer, READING, kj::mv(answer), GONE);
  }

  kj::Promise<Result<Observation>> observe(const Request& request) override {
    auto call = client.observeRequest();
    fill(request, call.initSubmission());
    kj::Promise<Result<Observation>> answer =
        call.send().then([](auto&& got) -> kj::Promise<Result<Observation>> {
          auto results = strictly(got);
          auto result = results.getResult();
          if (result.isRefusal()) return Result<Observation>(readRefusal(result.getRefusal()));
          auto seen = kj::heap<Observation>(read(result.getObservation()));
          if (!results.hasPicture()) return Result<Observation>(kj::mv(*seen));
          return fetchPicture(results.getPicture(),
                              [](Bytes bytes) { return attest::digestOf(bytes); })
              .then([seen = kj::mv(seen)](PictureData picture) mutable {
                seen->picture = kj::mv(picture.png);
                seen->pictureWidth = picture.width;
                seen->pictureHeight = picture.height;
                return Result<Observation>(kj::mv(*seen));
              });
        });
    return worded(timer, READING, kj::mv(answer), GONE);
  }

  kj::Promise<Result<Outcome>> execute(
      const Request& request, kj::Maybe<kj::Function<void(wire::Stage)>> onStage) override {
    auto call = client.executeRequest();
    fill(request, call.initSubmission());
    KJ_IF_MAYBE (told, onStage) call.setProgress(kj::heap<ProgressPort>(kj::mv(*told)));
    kj::Promise<Result<Outcome>> answer = call.send().then(
        [this, operation = kj::str(request.operation),
         hash = attest::actionHash(request.action)](auto&& got) -> Result<Outcome> {
          auto result = strictly(got).getResult();
          if (result.isRefusal()) return readRefusal(result.getRefusal());
          return readOutcome(result.getOutcome(), operation, hash);
        });
    return worded(timer, ACTING, kj::mv(answer), NOT_KNOWN);
  }

  kj::Promise<bool> cancel(kj::StringPtr operation) override {
    auto call = client.cancelRequest();
    call.setOperation(operation);
    return timer.timeoutAfter(
        BRIEF, call.send().then([](auto&& answer) { return strictly(answer).getFound(); }));
  }

  kj::Promise<void> close() override {
    return timer.timeoutAfter(BRIEF, client.closeRequest().send().ignoreResult());
  }

 private:
  static kj::Array<kj::byte> encoded(const Action& from, const How& how) {
    Action action;
    action.blind = attest::random<32>();
    action.timeoutMs = how.timeoutMs;
    action.verification = how.verification;
    action.window = from.window;
    action.element = from.element;
    KJ_SWITCH_ONEOF(from.act) {
      KJ_CASE_ONEOF(list, ListAct) { action.act = list; }
      KJ_CASE_ONEOF(look, ObserveAct) { action.act = look; }
      KJ_CASE_ONEOF(invoke, InvokeRequest) { action.act = InvokeRequest{kj::str(invoke.name)}; }
      KJ_CASE_ONEOF(set, SetValueRequest) { action.act = SetValueRequest{kj::str(set.text)}; }
    }
    return encode(action);
  }

  template <typename Act>
  static Action mutation(const Observation& seen, const Element& element, Act act) {
    KJ_REQUIRE(&element >= seen.elements.begin() && &element < seen.elements.end(),
               "the element is not one of this observation");
    Action action;
    action.window = seen.frame.window;
    action.element = {seen.frame.window, seen.frame.id, seen.frame.epoch,
                      static_cast<uint32_t>(&element - seen.elements.begin()), element.digest};
    action.act = kj::mv(act);
    return action;
  }

  static void fill(const Request& request, wire::Submission::Builder to) {
    attest::write(request.grant, to.initGrant());
    to.setAction(request.action);
  }

  Result<Outcome> readOutcome(wire::Outcome::Reader from, kj::StringPtr operation,
                              const Hash& hash) const {
    auto sealed = attest::readEnvelope(from.getReceipt());
    if (!sealed.ok()) return FORGED;
    auto receipt = attest::openReceipt(signer.info.receiptKey, *sealed);
    if (!receipt.ok() || receipt->operation != operation ||
        !attest::same(receipt->actionHash, hash) || !(receipt->ledger == signer.info.ledger)) {
      return FORGED;
    }
    Outcome outcome;
    outcome.receipt = kj::mv(*receipt);
    outcome.sealed = kj::mv(*sealed);
    outcome.replayed = from.getReplayed();
    auto fresh = from.getFresh();
    switch (fresh.which()) {
      case wire::Outcome::Fresh::NONE:
        break;
      case wire::Outcome::Fresh::OBSERVATION:
        outcome.fresh = read(fresh.getObservation());
        break;
      case wire::Outcome::Fresh::REFUSAL:
        outcome.notFresh = readRefusal(fresh.getRefusal());
        break;
    }
    return kj::mv(outcome);
  }

  kj::Timer& timer;
  Signer signer;
  kj::String id, turn;
  wire::Session::Client client;
};

class HostImpl final : public Host {
 public:
  HostImpl(kj::AsyncIoContext& io, kj::Own<SupervisorProcess> process, kj::AutoCloseFd socket,
           const Authority& authority)
      : timer(io.provider->getTimer()),
        authority(authority),
        process(kj::mv(process)),
        channel(*io.lowLevelProvider, kj::mv(socket)),
        client(channel.bootstrap().castAs<wire::Supervisor>()) {}

  kj::Promise<Result<Done>> hello() {
    auto call = client.helloRequest();
    call.setProtocol(wire::PROTOCOL_VERSION);
    kj::Promise<Result<Done>> answer = call.send().then([this](auto&& got) -> Result<Done> {
      auto result = strictly(got).getResult();
      if (result.isRefusal()) return readRefusal(result.getRefusal());
      auto from = result.getInfo();
      stated.release = kj::str(from.getRelease());
      stated.ledger = KJ_REQUIRE_NONNULL(read(from.getLedger()));
      stated.receiptKey = KJ_REQUIRE_NONNULL(fixed<32>(from.getReceiptKey()));
      stated.subject = kj::str(from.getSubject());
      stated.acting = from.getActing();
      stated.recovered = from.getRecovered();
      return Done{};
    });
    return worded(timer, BRIEF, kj::mv(answer), GONE);
  }

  const HostInfo& info() const override { return stated; }
  pid_t supervisorPid() const override { return process->pid(); }
  wire::Supervisor::Client raw() override { return client; }

  kj::Promise<Result<kj::Own<Session>>> open(kj::StringPtr session, kj::StringPtr turn) override {
    auto call = client.openRequest();
    call.setSession(session);
    call.setTurn(turn);
    kj::Promise<Result<kj::Own<Session>>> answer =
        call.send().then([this, id = kj::str(session),
                          turn = kj::str(turn)](auto&& got) mutable -> Result<kj::Own<Session>> {
          auto results = strictly(got);
          auto result = results.getResult();
          if (result.isRefusal()) return readRefusal(result.getRefusal());
          return kj::Own<Session>(kj::heap<SessionImpl>(timer, Signer{authority, stated}, kj::mv(id),
                                                        kj::mv(turn), results.getSession()));
        });
    return worded(timer, BRIEF, kj::mv(answer), GONE);
  }

  kj::Promise<Result<Status>> status(kj::StringPtr operation) override {
    auto call = client.statusRequest();
    call.setOperation(operation);
    kj::Promise<Result<Status>> answer = call.send().then([this](auto&& got) -> Result<Status> {
      auto result = strictly(got).getResult();
      switch (result.which()) {
        case wire::StatusResult::UNKNOWN:
          return Status(OperationUnknown());
        case wire::StatusResult::OPEN:
          return Status(OperationOpen());
        case wire::StatusResult::REFUSAL:
          return readRefusal(result.getRefusal());
        case wire::StatusResult::ENDED: {
          auto sealed = attest::readEnvelope(result.getEnded());
          if (!sealed.ok()) return FORGED;
          auto receipt = attest::openReceipt(stated.receiptKey, *sealed);
          if (!receipt.ok()) return FORGED;
          return Status(kj::mv(*receipt));
        }
      }
      return NONSENSE;
    });
    return worded(timer, BRIEF, kj::mv(answer), GONE);
  }

 private:
  kj::Timer& timer;
  const Authority& authority;
  HostInfo stated;
  // Destroyed bottom up: the connection closes first, which is what makes the supervisor exit.
  kj::Own<SupervisorProcess> process;
  Channel channel;
  wire::Supervisor::Client client;
};

}  // namespace

Authority::Authority(kj::StringPtr issuer, attest::SigningKey key)
    : name(kj::str(issuer)), id(attest::keyIdOf(key.publicKey())), signingKey(kj::mv(key)) {}

Request Request::clone() const {
  return {kj::str(operation), grant.clone(), kj::heapArray<kj::byte>(action.asPtr())};
}

Result<Done> createLedger(const Options& options, const Authority& authority) {
  auto issuer = kj::str(authority.issuer(), ":", authority.keyId(), ":",
                        hex(bytesOf(authority.key().publicKey())));
  return runCreate(options, issuer);
}

kj::Promise<Result<kj::Own<Host>>> Host::start(kj::AsyncIoContext& io, Options options,
                                               const Authority& authority) {
  int pair[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
  kj::AutoCloseFd ours(pair[0]), theirs(pair[1]);
  auto process = SupervisorProcess::spawn(options, kj::mv(theirs));
  if (!process.ok()) return Result<kj::Own<Host>>(process.refusal());
  auto host = kj::heap<HostImpl>(io, kj::mv(*process), kj::mv(ours), authority);
  auto greeted = host->hello();
  return greeted.then([host = kj::mv(host)](Result<Done> done) mutable -> Result<kj::Own<Host>> {
    if (!done.ok()) return done.refusal();
    return kj::Own<Host>(kj::mv(host));
  });
}

kj::String newOperationId() {
  auto nonce = attest::random<10>();
  auto time = static_cast<uint64_t>(wallMs());
  kj::byte digits[6];
  for (int i = 0; i < 6; ++i) digits[i] = static_cast<kj::byte>(time >> (40 - 8 * i));
  return kj::str("op-", hex(digits), "-", hex(bytesOf(nonce)));
}

kj::Vector<const Element*> find(const Observation& seen, kj::StringPtr role, kj::StringPtr name) {
  kj::Vector<const Element*> found;
  for (auto& element : seen.elements) {
    if (element.role == role && element.name == name) found.add(&element);
  }
  return found;
}

}  // namespace praefectus::client
