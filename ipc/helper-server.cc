#include "ipc/helper-server.h"

#include "ipc/action.h"
#include "ipc/bounds.h"

#include <kj/debug.h>
#include <kj/refcount.h>

#include <algorithm>

#include <unistd.h>

namespace praefectus {
namespace {

constexpr int PEER_GONE = 0;
constexpr int PROTOCOL_BROKEN = 1;
constexpr int OTHER_VERSION = 78;  // EX_CONFIG, sysexits.h

// A driver bounds its own walk and answers with what it has; only one that never answers meets
// this. It stays below bounds::READ, after which the supervisor would no longer listen.
constexpr kj::Duration READ_LIMIT = bounds::WALK + 5 * bounds::CALL;
static_assert(READ_LIMIT < bounds::READ);
// Stays below bounds::HELLO, since hello states the capabilities.
constexpr kj::Duration PROBE_LIMIT = bounds::CONNECT;
static_assert(PROBE_LIMIT < bounds::HELLO);

enum class Call : uint8_t { HELLO, CAPABILITIES, LIST, OBSERVE, PREPARE, PERFORM, CAPTURE };
enum class Phase : uint8_t { NEW, GREETED, LEAVING };

// Which call is legal in which phase. LEAVING, after a hello of another version, has none.
struct Rule {
  Call call;
  Phase phase;
};
constexpr Rule RULES[] = {
    {Call::HELLO, Phase::NEW},       {Call::CAPABILITIES, Phase::GREETED},
    {Call::LIST, Phase::GREETED},    {Call::OBSERVE, Phase::GREETED},
    {Call::PREPARE, Phase::GREETED}, {Call::PERFORM, Phase::GREETED},
    {Call::CAPTURE, Phase::GREETED},
};

constexpr size_t rowOf(Call call) { return static_cast<size_t>(call); }
constexpr bool rulesStandInOrder() {
  for (size_t i = 0; i < std::size(RULES); ++i) {
    if (rowOf(RULES[i].call) != i) return false;
  }
  return true;
}
static_assert(rulesStandInOrder());

// Stands on the wire for every exception inside the helper, whose own text may quote the
// application.
kj::Exception withoutText(kj::StringPtr fixedText) {
  return kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::str(fixedText));
}

// One connection's state, shared by the objects served on it.
class Serving final : public kj::Refcounted {
 public:
  Serving(kj::Timer& clock, HelperSelf identity, Driver& platform, KeyedHash keyedHash,
          PngEncoder pngEncoder, kj::Own<kj::PromiseFulfiller<int>> exit)
      : timer(clock),
        self(identity),
        driver(platform),
        hash(kj::mv(keyedHash)),
        encoder(kj::mv(pngEncoder)),
        end(kj::mv(exit)) {}

  // Does `work` when the call is in phase and not already running; otherwise ends the connection.
  // The call counts as running until its answer is complete or its caller has withdrawn it.
  template <typename Work>
  kj::Promise<void> run(Call call, Work&& work) {
    auto row = rowOf(call);
    if (RULES[row].phase != phase || running[row]) return breakOff("The call is out of phase.");
    running[row] = true;
    if (call == Call::HELLO) phase = Phase::GREETED;
    return calls.wrap(kj::evalNow(kj::fwd<Work>(work))
                          .attach(kj::defer([this, row]() { running[row] = false; }))
                          .catch_([](kj::Exception&&) {
                            kj::throwFatalException(withoutText("The helper failed in this call."));
                          }));
  }

  // Gives up every call. The RPC system does not: a call that may not be withdrawn, as perform, it
  // would leave to the event loop, where it could outlive the driver.
  void stop() {
    leaving = kj::READY_NOW;
    calls.cancel(withoutText("The connection has ended."));
  }

  kj::Promise<void> breakOff(kj::StringPtr why) {
    end->fulfill(exitCode(PROTOCOL_BROKEN));
    return withoutText(why);
  }

  // Another version was asked for: the answer goes out, the peer is given time to leave by itself.
  void leave() {
    phase = Phase::LEAVING;
    leaving = timer.afterDelay(bounds::CLOSE)
                  .then([this]() { end->fulfill(int{OTHER_VERSION}); })
                  .eagerlyEvaluate(nullptr);
  }

  int exitCode(int otherwise) const { return phase == Phase::LEAVING ? OTHER_VERSION : otherwise; }

  kj::Timer& timer;
  HelperSelf self;
  Driver& driver;
  KeyedHash hash;
  PngEncoder encoder;
  uint64_t heldPixels = 0;  // Bytes of the pictures that the peer holds, before they are PNG.
  // Counts observations begun. What was prepared before the latest one is void.
  uint64_t observations = 0;

 private:
  kj::Own<kj::PromiseFulfiller<int>> end;
  Phase phase = Phase::NEW;
  bool running[std::size(RULES)] = {};
  kj::Promise<void> leaving = kj::READY_NOW;
  kj::Canceler calls;
};

// An object served on the connection. A call that the strict reader refuses ends the connection.
template <typename Interface>
class Port : public Interface::Server {
 public:
  explicit Port(kj::Own<Serving> connection) : serving(kj::mv(connection)) {}

  capnp::Capability::Server::DispatchCallResult dispatchCall(
      uint64_t interfaceId, uint16_t methodId,
      capnp::CallContext<capnp::AnyPointer, capnp::AnyPointer> context) override {
    KJ_IF_MAYBE (broken, kj::runCatchingExceptions([&]() {
                   requireStrictCall(capnp::Schema::from<Interface>(), interfaceId, methodId,
                                     context.getParams());
                 })) {
      return {serving->breakOff(broken->getDescription()), false};
    }
    return Interface::Server::dispatchCall(interfaceId, methodId, context);
  }

 protected:
  kj::Own<Serving> serving;
};

// A picture lives as long as the supervisor holds it, through later observations.
class PicturePort final : public Port<wire::Picture> {
 public:
  PicturePort(kj::Own<Serving> connection, Picture taken)
      : Port(kj::mv(connection)), picture(kj::mv(taken)) {
    serving->heldPixels += picture.pixels.size();
  }
  ~PicturePort() noexcept(false) { letPixelsGo(); }

  kj::Promise<void> info(InfoContext context) override {
    write(picture.info, context.getResults().initInfo());
    return kj::READY_NOW;
  }

  kj::Promise<void> png(PngContext context) override {
    encode();
    auto results = context.getResults();
    results.setSize(made.bytes.size());
    if (made.bytes.size() > 0) results.setDigest(bytesOf(made.digest));
    return kj::READY_NOW;
  }

  kj::Promise<void> read(ReadContext context) override {
    encode();
    context.getResults().setBytes(made.piece(context.getParams().getOffset()));
    return kj::READY_NOW;
  }

 private:
  // Once, whether or not it can be done.
  void encode() {
    if (picture.pixels.size() == 0) return;
    KJ_IF_MAYBE (bytes, serving->encoder(picture.info, picture.pixels)) {
      made.digest = serving->hash(nullptr, *bytes);
      made.bytes = kj::mv(*bytes);
    }
    letPixelsGo();
  }

  void letPixelsGo() {
    serving->heldPixels -= picture.pixels.size();
    picture.pixels = nullptr;
  }

  Picture picture;
  Png made;
};

class PreparedPort final : public Port<wire::Prepared> {
 public:
  PreparedPort(kj::Own<Serving> connection, kj::Own<PreparedAction> prepared, const Hash& key,
               uint64_t observation, uint32_t timeoutMs)
      : Port(kj::mv(connection)),
        action(kj::mv(prepared)),
        nonce(key),
        observedAt(observation),
        limit(timeoutMs * kj::MILLISECONDS) {}

  // Runs to its end even when the supervisor no longer waits: an effect cannot be called back, and
  // its readback belongs to it. From here on an exception stays one: it must never read as "nothing
  // was sent".
  kj::Promise<void> perform(PerformContext context) override {
    if (performed) {
      return refuse(context, {RefusalCode::DUPLICATE_ACTION, "It was already performed."});
    }
    performed = true;
    if (serving->observations != observedAt) {
      return refuse(context, {RefusalCode::STALE_FRAME, "The session has observed again since."});
    }
    return serving->run(Call::PERFORM, [this, context]() mutable {
      return serving->timer.timeoutAfter(limit, action->perform())
          .then([this, context](Result<Facts> done) mutable { return answer(context, done); });
    });
  }

 private:
  static kj::Promise<void> refuse(PerformContext& context, const Refusal& refusal) {
    write(refusal, context.getResults().initResult().initRefusal());
    return kj::READY_NOW;
  }

  kj::Promise<void> answer(PerformContext& context, const Result<Facts>& done) {
    if (!done.ok()) return refuse(context, done.refusal());
    write(*done, nonce, serving->hash, context.getResults().initResult().initFacts());
    return kj::READY_NOW;
  }

  kj::Own<PreparedAction> action;
  Hash nonce;
  uint64_t observedAt;
  kj::Duration limit;
  bool performed = false;
};

// A read's answer within its limit. A driver that throws has not read; `broken` says so in its
// place.
template <typename T, typename Ask>
kj::Promise<Result<T>> answerOf(kj::Timer& timer, RefusalCode broken, Ask&& ask) {
  auto late = timer.afterDelay(READ_LIMIT).then([]() -> Result<T> {
    return Refusal{RefusalCode::NOT_ANSWERING, "The desktop did not answer in time."};
  });
  return kj::evalNow(kj::fwd<Ask>(ask))
      .catch_([broken](kj::Exception&&) -> Result<T> {
        return Refusal{broken, "The helper failed to read the desktop."};
      })
      .exclusiveJoin(kj::mv(late));
}

Health healthOf(kj::ArrayPtr<const Capability> capabilities) {
  auto isAvailable = [](const Capability& capability) { return capability.available; };
  if (std::none_of(capabilities.begin(), capabilities.end(), isAvailable)) {
    return Health::UNAVAILABLE;
  }
  bool all = std::all_of(capabilities.begin(), capabilities.end(), isAvailable);
  return all ? Health::HEALTHY : Health::DEGRADED;
}

class HelperPort final : public Port<wire::Helper> {
 public:
  using Port::Port;

  kj::Promise<void> hello(HelloContext context) override {
    return serving->run(Call::HELLO, [this, context]() mutable {
      if (context.getParams().getProtocol() != wire::PROTOCOL_VERSION) serving->leave();
      return probe().then([this, context](kj::Vector<Capability> found) mutable {
        introduce(context.getResults().initHello(), found);
      });
    });
  }

  kj::Promise<void> capabilities(CapabilitiesContext context) override {
    context.allowCancellation();
    return serving->run(Call::CAPABILITIES, [this, context]() mutable {
      return probe().then([context](kj::Vector<Capability> found) mutable {
        auto results = context.getResults();
        write(found, results.initCapabilities(static_cast<capnp::uint>(found.size())));
        results.setHealth(healthOf(found));
      });
    });
  }

  kj::Promise<void> list(ListContext context) override {
    context.allowCancellation();
    return serving->run(Call::LIST, [this, context]() mutable {
      auto asked = answerOf<Desktop>(serving->timer, RefusalCode::CAPTURE_FAILED,
                                     [this]() { return serving->driver.list(); });
      return asked.then([context](Result<Desktop> found) mutable {
        auto result = context.getResults().initResult();
        if (found.ok()) write(*found, result.initDesktop());
        if (!found.ok()) write(found.refusal(), result.initRefusal());
      });
    });
  }

  kj::Promise<void> observe(ObserveContext context) override {
    context.allowCancellation();
    return serving->run(Call::OBSERVE, [this, context]() mutable { return look(context); });
  }

  kj::Promise<void> capture(CaptureContext context) override {
    context.allowCancellation();
    return serving->run(Call::CAPTURE, [this, context]() mutable { return depict(context); });
  }

  kj::Promise<void> prepare(PrepareContext context) override {
    context.allowCancellation();
    return serving->run(Call::PREPARE, [this, context]() mutable { return ready(context); });
  }

 private:
  // A probe that does not come back in time finds nothing that works.
  kj::Promise<kj::Vector<Capability>> probe() {
    auto late =
        serving->timer.afterDelay(PROBE_LIMIT).then([]() { return kj::Vector<Capability>(); });
    return kj::evalNow([this]() { return serving->driver.capabilities(); })
        .catch_([](kj::Exception&&) { return kj::Vector<Capability>(); })
        .exclusiveJoin(kj::mv(late));
  }

  void introduce(wire::HelperHello::Builder hello, kj::ArrayPtr<const Capability> found) {
    hello.setName(serving->self.name);
    hello.setRelease(serving->self.release);
    hello.setRole(serving->self.role);
    hello.setProtocol(wire::PROTOCOL_VERSION);
    hello.setPid(static_cast<uint32_t>(::getpid()));
    hello.setGeneration(serving->self.generation);
    hello.setMaxElements(bounds::ELEMENTS);
    hello.setMaxDepth(bounds::DEPTH);
    hello.setMaxTextBytes(bounds::TEXT_BYTES);
    write(found, hello.initCapabilities(static_cast<capnp::uint>(found.size())));
  }

  kj::Promise<void> look(ObserveContext& context) {
    auto params = context.getParams();
    auto window = read(params.getWindow());
    auto epoch = params.getEpoch();
    auto request = readObserve(params.getRequest());
    auto id = fixed<16>(params.getFrame());
    context.releaseParams();
    if (!request.ok()) return refuse(context, request.refusal());
    KJ_IF_MAYBE (frame, id) {
      ++serving->observations;
      bool pictured = request->picture;
      auto seen = answerOf<Observation>(serving->timer, RefusalCode::CAPTURE_FAILED, [&]() {
        return serving->driver.observe(window, *frame, epoch, kj::mv(*request));
      });
      return seen.then([this, context, pictured](Result<Observation> observed) mutable {
        return show(context, kj::mv(observed), pictured);
      });
    }
    return refuse(context, {RefusalCode::MALFORMED, "The frame id is not 16 bytes."});
  }

  kj::Promise<void> show(ObserveContext& context, Result<Observation> observed, bool pictured) {
    if (!observed.ok()) return refuse(context, observed.refusal());
    if (!pictured) observed->picture = nullptr;
    auto results = context.getResults();
    KJ_IF_MAYBE (info, observed->picture) {
      Picture picture{*info, kj::mv(KJ_REQUIRE_NONNULL(observed->pixels))};
      auto fits = checkHeld(picture);
      if (!fits.ok()) return refuse(context, fits.refusal());
      results.setPicture(kj::heap<PicturePort>(kj::addRef(*serving), kj::mv(picture)));
    }
    write(*observed, results.initResult().initObservation());
    return kj::READY_NOW;
  }

  kj::Promise<void> depict(CaptureContext& context) {
    auto action = readAction(context.getParams().getAction());
    context.releaseParams();
    if (!action.ok()) return refuse(context, action.refusal());
    if (!action->act.is<ScreenshotAct>() && !action->act.is<ZoomAct>()) {
      return refuse(context, {RefusalCode::MALFORMED, "This action takes no picture."});
    }
    auto asked = answerOf<Picture>(serving->timer, RefusalCode::CAPTURE_FAILED,
                                   [&]() { return serving->driver.capture(kj::mv(*action)); });
    return asked.then([this, context](Result<Picture> taken) mutable {
      auto fits = taken.ok() ? checkHeld(*taken) : Result<Done>(taken.refusal());
      if (!fits.ok()) return refuse(context, fits.refusal());
      auto results = context.getResults();
      write(taken->info, results.initResult().initPicture());
      results.setPicture(kj::heap<PicturePort>(kj::addRef(*serving), kj::mv(*taken)));
      return kj::Promise<void>(kj::READY_NOW);
    });
  }

  // Whether it can be given out beside the pictures that the peer still holds.
  Result<Done> checkHeld(const Picture& picture) const {
    KJ_REQUIRE(isPossible(picture.info));
    KJ_REQUIRE(picture.pixels.size() == uint64_t{picture.info.width} * picture.info.height * 4);
    if (serving->heldPixels + picture.pixels.size() > bounds::HELD_PIXEL_BYTES) {
      return Refusal{RefusalCode::CAPTURE_FAILED, "Too many pictures are held."};
    }
    return Done();
  }

  kj::Promise<void> ready(PrepareContext& context) {
    auto params = context.getParams();
    auto action = readAction(params.getAction());
    auto nonce = fixed<32>(params.getNonce());
    context.releaseParams();
    if (!action.ok()) return refuse(context, action.refusal());
    if (!action->isMutation()) {
      return refuse(context, {RefusalCode::MALFORMED, "Only a mutation is prepared."});
    }
    KJ_IF_MAYBE (key, nonce) {
      auto timeoutMs = action->timeoutMs;
      auto observation = serving->observations;
      auto asked = answerOf<kj::Own<PreparedAction>>(
          serving->timer, RefusalCode::NOT_ANSWERING,
          [&]() { return serving->driver.prepare(kj::mv(*action)); });
      return asked.then([this, context, key = *key, observation,
                         timeoutMs](Result<kj::Own<PreparedAction>> prepared) mutable {
        if (!prepared.ok()) return refuse(context, prepared.refusal());
        auto results = context.getResults();
        results.initResult().setReady();
        results.setPrepared(kj::heap<PreparedPort>(kj::addRef(*serving), kj::mv(*prepared), key,
                                                   observation, timeoutMs));
        return kj::Promise<void>(kj::READY_NOW);
      });
    }
    return refuse(context, {RefusalCode::MALFORMED, "The nonce is not 32 bytes."});
  }

  template <typename Context>
  static kj::Promise<void> refuse(Context& context, const Refusal& refusal) {
    write(refusal, context.getResults().initResult().initRefusal());
    return kj::READY_NOW;
  }
};

// What exists for as long as the peer is served.
struct Connection {
  kj::Own<Serving> serving;
  Channel channel;

  Connection(kj::LowLevelAsyncIoProvider& io, kj::AutoCloseFd socket, kj::Own<Serving> state)
      : serving(kj::mv(state)),
        channel(io, kj::mv(socket), kj::heap<HelperPort>(kj::addRef(*serving))) {}
  ~Connection() noexcept(false) { serving->stop(); }
  KJ_DISALLOW_COPY(Connection);

  kj::Promise<int> whenGone() {
    return channel.onDisconnect().then(
        [this]() { return serving->exitCode(channel.peerLeft() ? PEER_GONE : PROTOCOL_BROKEN); });
  }
};

}  // namespace

kj::Promise<int> serveHelper(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer,
                             kj::AutoCloseFd socket, HelperSelf self, Driver& driver,
                             KeyedHash hash, PngEncoder encoder) {
  auto exit = kj::newPromiseAndFulfiller<int>();
  auto connection =
      kj::heap<Connection>(io, kj::mv(socket),
                           kj::refcounted<Serving>(timer, self, driver, kj::mv(hash),
                                                   kj::mv(encoder), kj::mv(exit.fulfiller)));
  auto gone = connection->whenGone();
  return exit.promise.exclusiveJoin(kj::mv(gone))
      .then([connection = kj::mv(connection)](int code) mutable {
        connection = nullptr;
        // After what was given up has unwound, so that nothing of it is left to touch the driver.
        return kj::evalLast([code]() { return code; });
      });
}

}  // namespace praefectus
