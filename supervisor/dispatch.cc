#include "supervisor/dispatch.h"

#include "ipc/bounds.h"
#include "ipc/strict.h"

#include <sys/socket.h>

namespace praefectus {
namespace {

constexpr Refusal GONE = {RefusalCode::SERVICE_UNAVAILABLE,
                          "The helper ended before it answered."_kj};
constexpr Refusal SLOW = {RefusalCode::SERVICE_UNAVAILABLE,
                          "The helper did not answer in time."_kj};
constexpr Refusal NONSENSE = {RefusalCode::SERVICE_MISMATCH, "The helper broke the protocol."_kj};

// Strict readers throw for a helper's nonsense, so that the one place that knows the process
// (guarded) decides what it means.
template <typename Reader>
void requireStrict(Reader reader) {
  auto checked = checkStrict(reader);
  if (!checked.ok()) KJ_FAIL_REQUIRE("the helper's answer is not of its schema");
}

// Every refusal promises that nothing was sent, but for one that promises nothing: a helper has no
// use for that word, and one that says it is not believed.
RefusalCode codeFrom(wire::Refusal::Reader refusal) {
  KJ_REQUIRE(refusal.getCode() != RefusalCode::OUTCOME_UNKNOWN, "a refusal that promises nothing");
  return refusal.getCode();
}

// A refusal as the helper sent it, with our own sentence: its text is not passed on.
Refusal refusalFrom(wire::Refusal::Reader refusal) {
  auto code = codeFrom(refusal);
  return {code, meaningOf(code)};
}

}  // namespace

HelperLink::HelperLink(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, kj::AutoCloseFd socket,
                       kj::Own<launch::Child> childParam, attest::HelperIdentity self)
    : timer(timer),
      self(kj::mv(self)),
      child(kj::mv(childParam)),
      channel(io, kj::mv(socket)),
      helper(channel.bootstrap().castAs<wire::Helper>()),
      watch(channel.onDisconnect()
                .then([this]() { running = false; }, [this](kj::Exception&&) { running = false; })
                .eagerlyEvaluate(nullptr)) {}

HelperLink::~HelperLink() noexcept(false) {}

uint32_t HelperLink::pid() const { return child->pid(); }

void HelperLink::kill() {
  running = false;
  child->kill();
}

kj::Promise<Result<kj::Own<HelperLink>>> HelperLink::start(kj::LowLevelAsyncIoProvider& io,
                                                           kj::Timer& timer,
                                                           launch::Launcher& launcher,
                                                           const attest::Image& image,
                                                           uint64_t generation) {
  int pair[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
  kj::AutoCloseFd ours(pair[0]), theirs(pair[1]);
  attest::HelperIdentity self{kj::str(image.manifest().name), kj::str(image.manifest().release),
                              image.digest(), generation};

  return launcher.start(image, generation, kj::mv(theirs))
      .then([&io, &timer, &image, ours = kj::mv(ours),
             self = kj::mv(self)](Result<kj::Own<launch::Child>> started) mutable
            -> kj::Promise<Result<kj::Own<HelperLink>>> {
        if (!started.ok()) return Result<kj::Own<HelperLink>>(started.refusal());
        auto link = kj::heap<HelperLink>(io, timer, kj::mv(ours), kj::mv(*started), kj::mv(self));
        auto request = link->helper.helloRequest();
        request.setProtocol(wire::PROTOCOL_VERSION);
        kj::Promise<Result<Done>> hello = request.send().then(
            [&image, self = link.get()](capnp::Response<wire::Helper::HelloResults>&& answer) {
              requireStrict(wire::Helper::HelloResults::Reader(answer));
              return self->compareHello(answer.getHello(), image);
            });
        auto compared = link->guarded(kj::mv(hello), bounds::HELLO);
        return compared.then(
            [link = kj::mv(link)](Result<Done> same) mutable -> Result<kj::Own<HelperLink>> {
              if (same.ok()) return kj::mv(link);
              link->kill();
              return same.refusal();
            });
      });
}

Result<Done> HelperLink::compareHello(wire::HelperHello::Reader hello,
                                      const attest::Image& image) const {
  auto& manifest = image.manifest();
  bool same = hello.getName() == manifest.name && hello.getRelease() == manifest.release &&
              hello.getRole() == manifest.role && hello.getProtocol() == manifest.protocol &&
              hello.getProtocol() == wire::PROTOCOL_VERSION && hello.getPid() == child->pid() &&
              hello.getGeneration() == self.generation &&
              hello.getMaxElements() == bounds::ELEMENTS && hello.getMaxDepth() == bounds::DEPTH &&
              hello.getMaxTextBytes() == bounds::TEXT_BYTES;
  if (same) return Done{};
  return Refusal{RefusalCode::SERVICE_MISMATCH, "The helper's hello differs from its manifest."_kj};
}

// One deadline and one classification for every call that has no effect yet: a helper that is late,
// gone or talking nonsense is ended, and the caller gets the word for it.
template <typename T>
kj::Promise<Result<T>> HelperLink::guarded(kj::Promise<Result<T>> call, kj::Duration within) {
  kj::Promise<Result<T>> late = timer.afterDelay(within).then([this]() -> Result<T> {
    kill();
    return SLOW;
  });
  return call
      .catch_([this](kj::Exception&& problem) -> Result<T> {
        bool gone = problem.getType() == kj::Exception::Type::DISCONNECTED;
        kill();
        return gone ? GONE : NONSENSE;
      })
      .exclusiveJoin(kj::mv(late));
}

kj::Promise<Result<StatusHeld>> HelperLink::status(kj::Duration within) {
  kj::Promise<Result<StatusHeld>> call = helper.capabilitiesRequest().send().then(
      [this](capnp::Response<wire::Helper::CapabilitiesResults>&& answer) -> Result<StatusHeld> {
        requireStrict(wire::Helper::CapabilitiesResults::Reader(answer));
        StatusHeld held;
        auto status = held.message->initRoot<wire::HelperStatus>();
        auto identity = status.initIdentity();
        identity.setName(self.name);
        identity.setRelease(self.release);
        identity.setDigest(bytesOf(self.digest));
        identity.setGeneration(self.generation);
        status.setPid(pid());
        status.setHealth(answer.getHealth());
        status.setCapabilities(answer.getCapabilities());
        return kj::mv(held);
      });
  return guarded(kj::mv(call), within);
}

kj::Promise<Result<DesktopHeld>> HelperLink::list(kj::Duration within) {
  kj::Promise<Result<DesktopHeld>> call = helper.listRequest().send().then(
      [](capnp::Response<wire::Helper::ListResults>&& answer) -> Result<DesktopHeld> {
        requireStrict(wire::Helper::ListResults::Reader(answer));
        auto result = answer.getResult();
        if (result.isRefusal()) return refusalFrom(result.getRefusal());
        DesktopHeld held;
        held.message->setRoot(result.getDesktop());
        return kj::mv(held);
      });
  return guarded(kj::mv(call), within);
}

kj::Promise<Result<ObservationHeld>> HelperLink::observe(const WindowRef& window,
                                                         const FrameId& frame, uint64_t epoch,
                                                         bool picture, kj::Duration within) {
  auto request = helper.observeRequest();
  write(window, request.initWindow());
  request.setFrame(bytesOf(frame));
  request.setEpoch(epoch);
  request.setPicture(picture);
  kj::Promise<Result<ObservationHeld>> call = request.send().then(
      [window, frame, epoch,
       picture](capnp::Response<wire::Helper::ObserveResults>&& answer) -> Result<ObservationHeld> {
        requireStrict(wire::Helper::ObserveResults::Reader(answer));
        auto result = answer.getResult();
        if (result.isRefusal()) return refusalFrom(result.getRefusal());
        auto seen = result.getObservation();
        // The frame is ours; a helper that answers with another one is talking about something
        // else.
        auto said = seen.getFrame();
        KJ_REQUIRE(said.getId().asBytes() == bytesOf(frame) && said.getEpoch() == epoch &&
                   read(said.getWindow()) == window &&
                   seen.getHasPicture() == answer.hasPicture() &&
                   (picture || !answer.hasPicture()));
        ObservationHeld held;
        held.message->setRoot(seen);
        if (answer.hasPicture()) held.picture = answer.getPicture();
        return kj::mv(held);
      });
  return guarded(kj::mv(call), within);
}

kj::Promise<Result<PreparedHandle>> HelperLink::prepare(const Action& action, const Hash& nonce,
                                                        kj::Duration within) {
  auto request = helper.prepareRequest();
  write(action, request.initAction());
  request.setNonce(bytesOf(nonce));
  kj::Promise<Result<PreparedHandle>> call = request.send().then(
      [](capnp::Response<wire::Helper::PrepareResults>&& answer) -> Result<PreparedHandle> {
        requireStrict(wire::Helper::PrepareResults::Reader(answer));
        auto result = answer.getResult();
        if (result.isRefusal()) return refusalFrom(result.getRefusal());
        KJ_REQUIRE(answer.hasPrepared());
        return PreparedHandle(answer.getPrepared());
      });
  return guarded(kj::mv(call), within);
}

kj::Promise<Performed> HelperLink::perform(PreparedHandle prepared, kj::Duration within) {
  uint64_t before = channel.written();
  auto request = prepared.client.performRequest();
  kj::Promise<Performed> call = request.send().then(
      [](capnp::Response<wire::Prepared::PerformResults>&& answer) -> Performed {
        requireStrict(wire::Prepared::PerformResults::Reader(answer));
        auto result = answer.getResult();
        if (result.isRefusal()) return RefusedBySelf{codeFrom(result.getRefusal())};
        FactsHeld held;
        held.message->setRoot(result.getFacts());
        return kj::mv(held);
      });
  kj::Promise<Performed> late = timer.afterDelay(within).then([this]() -> Performed {
    kill();
    return Lost{.late = true};
  });
  return call
      .catch_([this, before](kj::Exception&&) -> Performed {
        // Ending the helper first makes sure that what was not sent by now never will be.
        kill();
        if (channel.written() == before) return NothingSent{};
        return Lost{};
      })
      .exclusiveJoin(kj::mv(late));
}

}  // namespace praefectus
