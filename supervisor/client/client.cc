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
                            "The answer is not signed by this ledger, or not of this request."_kj};

constexpr Refusal NO_PNG = {RefusalCode::CAPTURE_FAILED,
                            "There is no PNG: it is too large, or the helper has ended."_kj};

int64_t wallMs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Ids whose first digits are the time, so that they sort as they were made.
kj::String newId(kj::StringPtr prefix) {
  auto nonce = attest::random<10>();
  auto time = static_cast<uint64_t>(wallMs());
  kj::byte digits[6];
  for (int i = 0; i < 6; ++i) digits[i] = static_cast<kj::byte>(time >> (40 - 8 * i));
  return kj::str(prefix, hex(digits), "-", hex(bytesOf(nonce)));
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
constexpr kj::Duration WRITING = bounds::LEDGER;
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

bool sameRequest(const kj::Maybe<Hash>& a, const kj::Maybe<Hash>& b) {
  KJ_IF_MAYBE (one, a) {
    KJ_IF_MAYBE (other, b) return attest::same(*one, *other);
    return false;
  }
  return b == nullptr;
}

Hash hashOf(const Request& request) { return attest::requestHash(request.grant, request.action); }

// What both ends of a session need: who signs, and for which ledger.
struct Signer {
  const Authority& authority;
  const HostInfo& info;
  const uint64_t& revocations;  // How many this host has made: leases may be gone.

  // Fills in what is the same in everything this host signs.
  template <typename Body>
  void sign(Body& body) const {
    body.issuer = kj::str(authority.issuer());
    body.keyId = kj::str(authority.keyId());
    body.audience = info.ledger;
    body.subject = kj::str(info.subject);
    if constexpr (requires { body.policyGeneration; }) {
      body.policyGeneration = info.policyGeneration;
    }
  }

  // The supervisor's word, which has to be signed, for this session (or none) and this very code.
  // `request` is nothing for a call that submits nothing.
  template <typename Keep>
  Refusal refusal(wire::HostRefusal::Reader from, kj::StringPtr session, kj::Maybe<Hash> request,
                  Keep&& keep) const {
    auto said = readRefusal(from.getRefusal());
    auto sealed = attest::readEnvelope(from.getProof());
    if (!sealed.ok()) return FORGED;
    auto refused = attest::openRefused(info.receiptKey, *sealed);
    if (!refused.ok() || refused->code != said.code || refused->session != session ||
        refused->subject != info.subject || !(refused->ledger == info.ledger) ||
        !sameRequest(refused->request, request)) {
      return FORGED;
    }
    keep(kj::mv(*sealed));
    return said;
  }

  // Nothing when no key of the ledger signed it.
  kj::Maybe<attest::Receipt> open(const attest::Envelope& sealed) const {
    auto receipt = attest::openReceipt(info.receiptKey, sealed);
    for (size_t i = info.formerKeys.size(); !receipt.ok() && i > 0; --i) {
      receipt = attest::openReceipt(info.formerKeys[i - 1], sealed);
    }
    if (!receipt.ok() || !(receipt->ledger.key == info.ledger.key)) return nullptr;
    return kj::mv(*receipt);
  }
};

// The leases that this side has opened, so that it knows when the next one is due.
class LeaseBook {
 public:
  // Whether one of them covers this for a while yet.
  bool covers(ActionClass actionClass, const WindowRef& target) const {
    for (auto& lease : leases) {
      bool whole = lease.target == WindowRef{};
      if (lease.classes.has(actionClass) && (whole || lease.target == target) &&
          lease.expires > wallMs() + MARGIN_MS) {
        return true;
      }
    }
    return false;
  }
  void add(const Opening& opening) {
    if (opening.frame != nullptr) return;  // Ends with its frame, which is not followed here.
    leases.add(Kept{opening.classes, opening.target, wallMs() + opening.validForMs});
  }
  void clear() { leases.clear(); }

 private:
  static constexpr int64_t MARGIN_MS = 5000;
  struct Kept {
    attest::Classes classes;
    WindowRef target;
    int64_t expires;
  };
  kj::Vector<Kept> leases;
};

class SessionImpl final : public Session {
 public:
  SessionImpl(kj::Timer& timer, Signer signer, kj::String id, Leasing leasing,
              wire::Session::Client client)
      : timer(timer), signer(signer), id(kj::mv(id)), leasing(leasing), client(kj::mv(client)) {}

  kj::Promise<Result<HelperStatus>> capabilities() override {
    kj::Promise<Result<HelperStatus>> call =
        client.capabilitiesRequest().send().then([this](auto&& answer) -> Result<HelperStatus> {
          auto result = strictly(answer).getResult();
          if (result.isRefusal()) return refusal(result.getRefusal());
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

  kj::Promise<Result<Desktop>> list() override { return list(actOnDesktop(ListAct(), How())); }

  kj::Promise<Result<Observation>> observe(WindowRef window, bool picture) override {
    ObserveAct act;
    act.picture = picture;
    return observe(actOn(window, kj::mv(act), How()));
  }

  kj::Promise<Result<Pictured>> screenshot(WindowRef window) override {
    return capture(actOn(window, ScreenshotAct(), How()));
  }

  kj::Promise<Result<Pictured>> screenshot(MonitorId monitor) override {
    return capture(request(MonitorTarget{monitor}, ScreenshotAct(), How()));
  }

  kj::Promise<Result<Pictured>> zoom(const Observation& seen, Rect part) override {
    KJ_REQUIRE(part.width > 0 && part.height > 0, "there is nothing in this part");
    ZoomAct to{static_cast<int32_t>(part.x + int64_t{part.width} - 1),
               static_cast<int32_t>(part.y + int64_t{part.height} - 1)};
    return capture(actAt(seen, part.x, part.y, to, How()));
  }

  Request invoke(const Observation& seen, const Element& element, kj::StringPtr name,
                 How how) override {
    return act(seen, element, InvokeRequest{kj::str(name)}, kj::mv(how));
  }

  Request setValue(const Observation& seen, const Element& element, kj::StringPtr text,
                   How how) override {
    return act(seen, element, SetValueRequest{kj::str(text)}, kj::mv(how));
  }

  Request act(const Observation& seen, const Element& element, Act act, How how) override {
    KJ_REQUIRE(&element >= seen.elements.begin() && &element < seen.elements.end(),
               "the element is not one of this observation");
    auto index = static_cast<uint32_t>(&element - seen.elements.begin());
    return request(
        ElementTarget{seen.frame.window, seen.frame.id, seen.frame.epoch, index, element.digest},
        kj::mv(act), kj::mv(how));
  }

  Request actAt(const Observation& seen, int32_t x, int32_t y, Act act, How how) override {
    return request(PointTarget{seen.frame.window, seen.frame.id, seen.frame.epoch, x, y},
                   kj::mv(act), kj::mv(how));
  }

  Request actOn(WindowRef window, Act act, How how) override {
    return request(window, kj::mv(act), kj::mv(how));
  }

  Request actOnDesktop(Act act, How how) override {
    return request(DesktopTarget(), kj::mv(act), kj::mv(how));
  }

  Request sign(Action action, How how) override {
    Request request;
    KJ_IF_MAYBE (chosen, how.operation) {
      request.operation = kj::str(*chosen);
    } else {
      request.operation = newOperationId();
    }
    action.blind = attest::random<32>();
    action.timeoutMs = how.timeoutMs;
    action.mode = how.mode;
    action.safety = how.safety;
    action.verification = kj::mv(how.verification);
    request.action = encode(action);
    request.actionClass = action.actionClass();
    request.target = action.window();

    attest::Grant grant;
    signer.sign(grant);
    grant.session = kj::str(id);
    grant.turn = kj::str(turn);
    grant.operation = kj::str(request.operation);
    grant.actionHash = attest::actionHash(request.action);
    grant.actionClass = request.actionClass;
    grant.risk = action.safety;
    grant.target = request.target;
    KJ_IF_MAYBE (frame, action.frame()) grant.frame = frame->id;
    grant.rights = how.rights;
    grant.notBefore = wallMs();
    grant.expires = grant.notBefore + how.validForMs;
    grant.uses = 1;
    request.grant = attest::seal(grant, signer.authority.key());
    return request;
  }

  kj::Promise<Result<Done>> beginTurn(kj::StringPtr next) override {
    leases.clear();
    turn = kj::str(next);
    auto call = client.beginTurnRequest();
    call.setTurn(next);
    return worded(timer, BRIEF, done(call.send()), GONE);
  }

  kj::Promise<void> endTurn() override {
    leases.clear();
    return timer.timeoutAfter(BRIEF, client.endTurnRequest().send().ignoreResult());
  }

  kj::Promise<Result<Done>> openLease(Opening opening) override {
    attest::Lease lease;
    signer.sign(lease);
    lease.session = kj::str(id);
    lease.turn = kj::str(turn);
    KJ_IF_MAYBE (chosen, opening.lease) {
      lease.lease = kj::str(*chosen);
    } else {
      lease.lease = newId("lease-");
    }
    lease.classes = opening.classes;
    lease.target = opening.target;
    lease.frame = opening.frame;
    lease.notBefore = wallMs();
    lease.expires = lease.notBefore + opening.validForMs;
    auto call = client.openLeaseRequest();
    attest::write(attest::seal(lease, signer.authority.key()), call.initLease());
    // Counted on from now: calls on one session arrive in their order, so whatever is sent after
    // this one finds it opened, or refused.
    leases.add(opening);
    return worded(timer, BRIEF, done(call.send()), GONE).then([this](Result<Done> opened) {
      if (!opened.ok()) leases.clear();
      return opened;
    });
  }

  kj::Maybe<const attest::Envelope&> lastRefusal() const override { return proof; }

  kj::Promise<Result<Desktop>> list(const Request& request) override {
    return leased<Desktop>(request, [this](const Request& own) {
      auto call = client.listRequest();
      fill(own, call.initSubmission());
      kj::Promise<Result<Desktop>> answer =
          call.send().then([this, hash = hashOf(own)](auto&& got) -> Result<Desktop> {
            auto result = strictly(got).getResult();
            if (result.isRefusal()) return refusal(result.getRefusal(), hash);
            return read(result.getDesktop());
          });
      return worded(timer, READING, kj::mv(answer), GONE);
    });
  }

  kj::Promise<Result<Observation>> observe(const Request& request) override {
    return leased<Observation>(request, [this](const Request& own) {
      auto call = client.observeRequest();
      fill(own, call.initSubmission());
      kj::Promise<Result<Observation>> answer = call.send().then(
          [this, hash = hashOf(own)](auto&& got) -> kj::Promise<Result<Observation>> {
            auto results = strictly(got);
            auto result = results.getResult();
            if (result.isRefusal()) return Result<Observation>(refusal(result.getRefusal(), hash));
            auto seen = kj::heap<Observation>(read(result.getObservation()));
            KJ_REQUIRE(results.hasPicture() == (seen->picture != nullptr));
            KJ_IF_MAYBE (info, seen->picture) {
              return fetch(results.getPicture(), *info)
                  .then([seen = kj::mv(seen)](
                            Result<Pictured> picture) mutable -> Result<Observation> {
                    if (!picture.ok()) return picture.refusal();
                    seen->png = kj::mv(picture->png);
                    return kj::mv(*seen);
                  });
            }
            return Result<Observation>(kj::mv(*seen));
          });
      return worded(timer, READING, kj::mv(answer), GONE);
    });
  }

  kj::Promise<Result<Pictured>> capture(const Request& request) override {
    return leased<Pictured>(request, [this](const Request& own) {
      auto call = client.captureRequest();
      fill(own, call.initSubmission());
      kj::Promise<Result<Pictured>> answer =
          call.send().then([this, hash = hashOf(own)](auto&& got) -> kj::Promise<Result<Pictured>> {
            auto results = strictly(got);
            auto result = results.getResult();
            if (result.isRefusal()) return Result<Pictured>(refusal(result.getRefusal(), hash));
            return fetch(results.getPicture(), read(result.getPicture()));
          });
      return worded(timer, READING, kj::mv(answer), GONE);
    });
  }

  kj::Promise<Result<Outcome>> execute(
      const Request& request, kj::Maybe<kj::Function<void(wire::Stage)>> onStage) override {
    // A stage is told by whichever sending gets that far; at most one does.
    auto told = kj::heap<kj::Maybe<kj::Function<void(wire::Stage)>>>(kj::mv(onStage));
    return leased<Outcome>(request, [this, told = kj::mv(told)](const Request& own) mutable {
      auto call = client.executeRequest();
      fill(own, call.initSubmission());
      KJ_IF_MAYBE (listener, *told) {
        call.setProgress(
            kj::heap<ProgressPort>([listener](wire::Stage stage) mutable { (*listener)(stage); }));
      }
      kj::Promise<Result<Outcome>> answer = call.send().then(
          [this, operation = kj::str(own.operation), action = attest::actionHash(own.action),
           hash = hashOf(own)](auto&& got) -> Result<Outcome> {
            auto result = strictly(got).getResult();
            if (result.isRefusal()) return refusal(result.getRefusal(), hash);
            return readOutcome(result.getOutcome(), operation, action);
          });
      return worded(timer, ACTING, kj::mv(answer), NOT_KNOWN);
    });
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
  Request request(Target target, Act act, How how) {
    Action action;
    action.target = kj::mv(target);
    action.act = kj::mv(act);
    return sign(kj::mv(action), kj::mv(how));
  }

  // Opens what the request needs, sends it, and does both once more when a lease that was thought
  // open had ended meanwhile: a refusal has dispatched nothing.
  template <typename T, typename Send>
  kj::Promise<Result<T>> leased(const Request& request, Send send) {
    struct Sending {
      Request request;
      Send send;
    };
    auto sending = kj::heap<Sending>(Sending{request.clone(), kj::mv(send)});
    auto& kept = *sending;
    return sendLeased<T>(kept.request, kept.send)
        .then([this, &kept](Result<T> first) -> kj::Promise<Result<T>> {
          bool ended = !first.ok() && first.refusal().code == RefusalCode::LEASE_MISSING;
          if (!ended || leasing == Leasing::BY_HAND) return kj::mv(first);
          leases.clear();
          return sendLeased<T>(kept.request, kept.send);
        })
        .attach(kj::mv(sending))
        // Goes on by itself, so that whoever listens to its stages is let go of when it has ended,
        // whether or not anybody waits for the answer yet.
        .eagerlyEvaluate(nullptr);
  }

  template <typename T, typename Send>
  kj::Promise<Result<T>> sendLeased(const Request& request, Send& send) {
    if (revocationsSeen != signer.revocations) {
      revocationsSeen = signer.revocations;
      leases.clear();
    }
    if (leasing == Leasing::BY_HAND || leases.covers(request.actionClass, request.target)) {
      return send(request);
    }
    return openLease(openingFor(request))
        .then([&request, &send](Result<Done> opened) -> kj::Promise<Result<T>> {
          if (!opened.ok()) return Result<T>(opened.refusal());
          return send(request);
        });
  }

  static Opening openingFor(const Request& request) {
    Opening opening;
    opening.classes = {request.actionClass};
    opening.target = request.target;
    if (!attest::isMutation(request.actionClass)) opening.validForMs = bounds::READ_LEASE_MS;
    return opening;
  }

  static kj::Promise<Result<Pictured>> fetch(wire::Picture::Client picture,
                                             const PictureInfo& info) {
    KJ_REQUIRE(isPossible(info));
    return fetchPng(kj::mv(picture), info, [](Bytes bytes) { return attest::digestOf(bytes); })
        .then([info](kj::Maybe<Png> fetched) -> Result<Pictured> {
          KJ_IF_MAYBE (png, fetched) return Pictured{info, kj::mv(png->bytes)};
          return NO_PNG;
        });
  }

  template <typename Call>
  kj::Promise<Result<Done>> done(Call call) {
    return call.then([this](auto&& got) -> Result<Done> {
      auto result = strictly(got).getResult();
      if (result.isRefusal()) return refusal(result.getRefusal());
      return Done{};
    });
  }

  Refusal refusal(wire::HostRefusal::Reader from, kj::Maybe<Hash> request = nullptr) {
    return signer.refusal(from, id, kj::mv(request),
                          [this](attest::Envelope sealed) { proof = kj::mv(sealed); });
  }

  static void fill(const Request& request, wire::Submission::Builder to) {
    attest::write(request.grant, to.initGrant());
    to.setAction(request.action);
  }

  Result<Outcome> readOutcome(wire::Outcome::Reader from, kj::StringPtr operation,
                              const Hash& hash) const {
    auto sealed = attest::readEnvelope(from.getReceipt());
    if (!sealed.ok()) return FORGED;
    Outcome outcome;
    KJ_IF_MAYBE (receipt, signer.open(*sealed)) {
      outcome.receipt = kj::mv(*receipt);
    } else {
      return FORGED;
    }
    if (outcome.receipt.operation != operation || !attest::same(outcome.receipt.actionHash, hash)) {
      return FORGED;
    }
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
  const Leasing leasing;
  LeaseBook leases;
  uint64_t revocationsSeen = 0;
  kj::Maybe<attest::Envelope> proof;
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

  kj::Promise<Result<Done>> hello(const attest::Head& seen) {
    auto call = client.helloRequest();
    call.setProtocol(wire::PROTOCOL_VERSION);
    auto last = call.initSeen();
    last.setSequence(seen.sequence);
    if (seen.sequence != 0) last.setLink(bytesOf(seen.link));
    kj::Promise<Result<Done>> answer = call.send().then([this](auto&& got) -> Result<Done> {
      auto result = strictly(got).getResult();
      if (result.isRefusal()) return readRefusal(result.getRefusal().getRefusal());
      auto from = result.getInfo();
      stated.release = kj::str(from.getRelease());
      stated.ledger = KJ_REQUIRE_NONNULL(read(from.getLedger()));
      stated.receiptKey = KJ_REQUIRE_NONNULL(fixed<32>(from.getReceiptKey()));
      stated.subject = kj::str(from.getSubject());
      stated.acting = from.getActing();
      stated.recovered = from.getRecovered();
      stated.clockTrusted = from.getClockTrusted();
      stated.head = {from.getHead().getSequence(),
                     KJ_REQUIRE_NONNULL(fixed<32>(from.getHead().getLink()))};
      for (auto policy : from.getPolicies()) {
        if (policy.getIssuer() == authority.issuer()) {
          stated.policyGeneration = policy.getGeneration();
        }
      }
      for (auto key : from.getFormerKeys()) {
        stated.formerKeys.add(KJ_REQUIRE_NONNULL(fixed<32>(key)));
      }
      return Done{};
    });
    return worded(timer, BRIEF, kj::mv(answer), GONE);
  }

  const HostInfo& info() const override { return stated; }
  pid_t supervisorPid() const override { return process->pid(); }
  wire::Supervisor::Client raw() override { return client; }

  kj::Promise<Result<kj::Own<Session>>> open(kj::StringPtr session, kj::StringPtr turn,
                                             Leasing leasing) override {
    auto call = client.openRequest();
    call.setSession(session);
    kj::Promise<Result<kj::Own<Session>>> answer =
        call.send().then([this, leasing, id = kj::str(session), turn = kj::str(turn)](
                             auto&& got) mutable -> kj::Promise<Result<kj::Own<Session>>> {
          auto results = strictly(got);
          auto result = results.getResult();
          if (result.isRefusal()) {
            return Result<kj::Own<Session>>(refusal(result.getRefusal()));
          }
          kj::Own<Session> opened =
              kj::heap<SessionImpl>(timer, Signer{authority, stated, revocations}, kj::mv(id),
                                    leasing, results.getSession());
          return opened->beginTurn(turn).then(
              [opened = kj::mv(opened)](Result<Done> begun) mutable -> Result<kj::Own<Session>> {
                if (!begun.ok()) return begun.refusal();
                return kj::mv(opened);
              });
        });
    return worded(timer, BRIEF, kj::mv(answer), GONE);
  }

  kj::Promise<void> stop(kj::StringPtr session, kj::StringPtr turn) override {
    auto call = client.stopRequest();
    call.setSession(session);
    call.setTurn(turn);
    return timer.timeoutAfter(BRIEF, call.send().ignoreResult());
  }

  kj::Promise<Result<Done>> revoke(attest::Revocation what) override {
    Signer{authority, stated, revocations}.sign(what);
    if (what.revocation.size() == 0) what.revocation = newId("revocation-");
    if (what.issuedAt == 0) what.issuedAt = wallMs();
    uint64_t raised = stated.policyGeneration;
    KJ_IF_MAYBE (policy, what.what.tryGet<attest::RevokedGeneration>()) raised = policy->valid;
    auto call = client.revokeRequest();
    attest::write(attest::seal(what, authority.key()), call.initRevocation());
    kj::Promise<Result<Done>> answer = call.send().then([this, raised](auto&& got) -> Result<Done> {
      auto result = strictly(got).getResult();
      if (result.isRefusal()) return refusal(result.getRefusal());
      ++revocations;
      stated.policyGeneration = kj::max(stated.policyGeneration, raised);
      return Done{};
    });
    return worded(timer, WRITING, kj::mv(answer), GONE);
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
          return refusal(result.getRefusal());
        case wire::StatusResult::ENDED: {
          auto sealed = attest::readEnvelope(result.getEnded());
          if (!sealed.ok()) return FORGED;
          KJ_IF_MAYBE (receipt, (Signer{authority, stated, revocations}.open(*sealed))) {
            return Status(kj::mv(*receipt));
          }
          return FORGED;
        }
      }
      return NONSENSE;
    });
    return worded(timer, BRIEF, kj::mv(answer), GONE);
  }

 private:
  Refusal refusal(wire::HostRefusal::Reader from) const {
    return Signer{authority, stated, revocations}.refusal(from, "", nullptr,
                                                          [](attest::Envelope) {});
  }

  kj::Timer& timer;
  const Authority& authority;
  HostInfo stated;
  uint64_t revocations = 0;
  // Destroyed bottom up: the connection closes first, which is what makes the supervisor exit.
  kj::Own<SupervisorProcess> process;
  Channel channel;
  wire::Supervisor::Client client;
};

}  // namespace

Authority::Authority(kj::StringPtr issuer, attest::SigningKey key)
    : name(kj::str(issuer)), id(attest::keyIdOf(key.publicKey())), signingKey(kj::mv(key)) {}

Request Request::clone() const {
  return {kj::str(operation), grant.clone(), kj::heapArray<kj::byte>(action.asPtr()), actionClass,
          target};
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
  auto greeted = host->hello(options.seen);
  return greeted.then([host = kj::mv(host)](Result<Done> done) mutable -> Result<kj::Own<Host>> {
    if (!done.ok()) return done.refusal();
    return kj::Own<Host>(kj::mv(host));
  });
}

kj::String newOperationId() { return newId("op-"); }

kj::Vector<const Element*> find(const Observation& seen, kj::StringPtr role, kj::StringPtr name) {
  kj::Vector<const Element*> found;
  for (auto& element : seen.elements) {
    if (element.role == role && element.name == name) found.add(&element);
  }
  return found;
}

}  // namespace praefectus::client
