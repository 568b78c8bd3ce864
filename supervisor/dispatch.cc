#include "supervisor/dispatch.h"

#include "ipc/bounds.h"
#include "ipc/strict.h"

#include <capnp/schema.h>

#include <algorithm>
#include <iterator>

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

// What a helper may say no with: words about the desktop and the target. The others are ours
// (grants, sessions, the ledger) or promise nothing (outcomeUnknown); a helper that uses one is not
// believed.
constexpr bool isHelpersWord(RefusalCode code) {
  switch (code) {
    case RefusalCode::PERMISSION_MISSING:
    case RefusalCode::PERMISSION_PENDING:
    case RefusalCode::INVALID_COORDINATE:
    case RefusalCode::CAPTURE_FAILED:
    case RefusalCode::SENSITIVITY_BLOCKED:
    case RefusalCode::UNSUPPORTED_ACTION:
    case RefusalCode::STALE_FRAME:
    case RefusalCode::TARGET_MISSING:
    case RefusalCode::AMBIGUOUS_TARGET:
    case RefusalCode::TARGET_CHANGED:
    case RefusalCode::TARGET_MISMATCH:
    case RefusalCode::TARGET_OCCLUDED:
    case RefusalCode::TARGET_DISABLED:
    case RefusalCode::TARGET_HIDDEN:
    case RefusalCode::PAGE_TARGET_CHANGED:
    case RefusalCode::USER_INTERVENED:
    case RefusalCode::SCREEN_LOCKED:
    case RefusalCode::BLOCKED_URL:
    case RefusalCode::DISPATCH_REFUSED:
    case RefusalCode::MALFORMED:
    case RefusalCode::NO_DISPLAY:
    case RefusalCode::NO_ACCESSIBILITY_BUS:
    case RefusalCode::NOT_ANSWERING:
    case RefusalCode::ACCESSIBILITY_OFF:
    case RefusalCode::WARMING_UP:
      return true;
    case RefusalCode::POLICY_DENIED:
    case RefusalCode::POLICY_FORBIDDEN:
    case RefusalCode::ABORTED:
    case RefusalCode::TIMEOUT:
    case RefusalCode::NO_ACTIVE_FRAME:
    case RefusalCode::NO_ACTIVE_SESSION:
    case RefusalCode::STALE_EPOCH:
    case RefusalCode::WITHHELD_VALUE_REPLAYED:
    case RefusalCode::DUPLICATE_ACTION:
    case RefusalCode::REOBSERVE_REQUIRED:
    case RefusalCode::USER_STOPPED:
    case RefusalCode::SERVICE_UNAVAILABLE:
    case RefusalCode::SERVICE_MISMATCH:
    case RefusalCode::OUTCOME_UNKNOWN:
    case RefusalCode::UNKNOWN_FIELD:
    case RefusalCode::UNSUPPORTED_VERSION:
    case RefusalCode::OPERATION_CONFLICT:
    case RefusalCode::BUSY:
    case RefusalCode::DESKTOP_BUSY:
    case RefusalCode::LEDGER_FOREIGN:
    case RefusalCode::LEDGER_BUSY:
    case RefusalCode::LEDGER_POISONED:
    case RefusalCode::GRANT_SPENT:
    case RefusalCode::NO_ACTIVE_TURN:
    case RefusalCode::LEASE_MISSING:
    case RefusalCode::REVOKED:
    case RefusalCode::CLOCK_UNTRUSTED:
    case RefusalCode::LEDGER_MOVED:
    case RefusalCode::LEDGER_ROLLED_BACK:
    case RefusalCode::OPERATION_ARCHIVED:
    case RefusalCode::RECORD_DAMAGED:
    case RefusalCode::UNSUPPORTED_NUMBER:
      return false;
  }
  return false;
}

RefusalCode codeFrom(wire::Refusal::Reader refusal) {
  KJ_REQUIRE(isHelpersWord(refusal.getCode()), "a refusal that is not a helper's to give");
  return refusal.getCode();
}

constexpr kj::StringPtr READS[] = {"list"_kj, "observe"_kj, "picture"_kj};
constexpr kj::StringPtr FURTHER_READS[] = {"screenshot"_kj, "zoom"_kj};

bool needsOffer(Proof proof) { return proof != Proof::STRONGEST && proof != Proof::NONE; }
kj::String nameOfProof(Proof proof) { return kj::str("proof_", nameOf(proof)); }

// Everything that a helper can offer, in the order in which it says so: the reads that every one
// has, the others, further kinds of action, and ways to prove one.
kj::ArrayPtr<const kj::String> vocabulary() {
  static const auto words = [] {
    kj::Vector<kj::String> out;
    for (auto read : READS) out.add(kj::str(read));
    for (auto read : FURTHER_READS) out.add(kj::str(read));
    for (auto kind : actionKinds()) {
      if (std::find(out.begin(), out.end(), kind) == out.end()) out.add(kj::str(kind));
    }
    for (auto word : capnp::Schema::from<Proof>().getEnumerants()) {
      auto proof = static_cast<Proof>(word.getOrdinal());
      if (needsOffer(proof)) out.add(nameOfProof(proof));
    }
    return out.releaseAsArray();
  }();
  return words;
}

// The offers in our own spelling, or nothing when they are not ours, not in order, or lack a read.
kj::Maybe<kj::Vector<kj::StringPtr>> offersFrom(capnp::List<wire::Capability>::Reader said) {
  kj::Vector<kj::StringPtr> out;
  auto next = vocabulary().begin();
  for (auto capability : said) {
    next = std::find(next, vocabulary().end(), capability.getName());
    if (next == vocabulary().end()) return nullptr;
    out.add(*next++);
  }
  bool reads =
      out.size() >= std::size(READS) && std::equal(std::begin(READS), std::end(READS), out.begin());
  if (!reads) return nullptr;
  return kj::mv(out);
}

bool isOf(const PictureInfo& info, const FrameId& frame, int32_t x, int32_t y) {
  KJ_IF_MAYBE (own, info.frame) return *own == frame && info.x == x && info.y == y;
  return false;
}

// What a zoom is asked to show; nothing for a screenshot.
struct Region {
  FrameId frame;
  Rect bounds;
};
kj::Maybe<Region> zoomedBy(const Action& action) {
  KJ_IF_MAYBE (point, action.target.tryGet<PointTarget>()) {
    return Region{point->frame, regionOf(*point, action.act.get<ZoomAct>())};
  }
  return nullptr;
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

Result<Done> HelperLink::compareHello(wire::HelperHello::Reader hello, const attest::Image& image) {
  auto& manifest = image.manifest();
  bool same = hello.getName() == manifest.name && hello.getRelease() == manifest.release &&
              hello.getRole() == manifest.role && hello.getProtocol() == manifest.protocol &&
              hello.getProtocol() == wire::PROTOCOL_VERSION && hello.getPid() == child->pid() &&
              hello.getGeneration() == self.generation &&
              hello.getMaxElements() == bounds::ELEMENTS && hello.getMaxDepth() == bounds::DEPTH &&
              hello.getMaxTextBytes() == bounds::TEXT_BYTES;
  KJ_IF_MAYBE (found, offersFrom(hello.getCapabilities())) {
    offered = kj::mv(*found);
  } else {
    same = false;
  }
  if (same) return Done{};
  return Refusal{RefusalCode::SERVICE_MISMATCH, "The helper's hello differs from its manifest."_kj};
}

bool HelperLink::offers(kj::StringPtr capability) const {
  return std::find(offered.begin(), offered.end(), capability) != offered.end();
}

bool HelperLink::offers(const Action& action) const {
  auto proof = action.verification.kind();
  return offers(action.kind()) && (!needsOffer(proof) || offers(nameOfProof(proof)));
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
                                                         const ObserveAct& asked,
                                                         kj::Duration within) {
  auto request = helper.observeRequest();
  write(window, request.initWindow());
  request.setFrame(bytesOf(frame));
  request.setEpoch(epoch);
  write(asked, request.initRequest());
  kj::Promise<Result<ObservationHeld>> call = request.send().then(
      [this, window, frame, epoch, pictured = asked.picture](
          capnp::Response<wire::Helper::ObserveResults>&& answer) -> Result<ObservationHeld> {
        requireStrict(wire::Helper::ObserveResults::Reader(answer));
        auto result = answer.getResult();
        if (result.isRefusal()) return refusalFrom(result.getRefusal());
        auto seen = result.getObservation();
        // The frame is ours; a helper that answers with another one is talking about something
        // else.
        auto said = seen.getFrame();
        KJ_REQUIRE(said.getId().asBytes() == bytesOf(frame) && said.getEpoch() == epoch &&
                   read(said.getWindow()) == window);
        // Without a grant for pictures not even a picture's hash is passed on.
        KJ_REQUIRE(seen.getHasPicture() == answer.hasPicture() &&
                   seen.hasPicture() == answer.hasPicture() && (pictured || !answer.hasPicture()));
        ObservationHeld held;
        held.message->setRoot(seen);
        if (answer.hasPicture()) {
          held.picture = pictureFrom(seen.getPicture(), answer.getPicture());
          KJ_REQUIRE(isOf(KJ_ASSERT_NONNULL(held.picture).info, frame, 0, 0));
        }
        return kj::mv(held);
      });
  return guarded(kj::mv(call), within);
}

kj::Promise<Result<PictureHandle>> HelperLink::capture(const Action& action, kj::Duration within) {
  auto request = helper.captureRequest();
  write(action, request.initAction());
  kj::Promise<Result<PictureHandle>> call = request.send().then(
      [this, asked = zoomedBy(action)](
          capnp::Response<wire::Helper::CaptureResults>&& answer) -> Result<PictureHandle> {
        requireStrict(wire::Helper::CaptureResults::Reader(answer));
        auto result = answer.getResult();
        if (result.isRefusal()) return refusalFrom(result.getRefusal());
        KJ_REQUIRE(answer.hasPicture());
        auto taken = pictureFrom(result.getPicture(), answer.getPicture());
        KJ_IF_MAYBE (region, asked) {
          KJ_REQUIRE(isOf(taken.info, region->frame, region->bounds.x, region->bounds.y) &&
                     taken.info.width == region->bounds.width &&
                     taken.info.height == region->bounds.height);
        } else {
          KJ_REQUIRE(taken.info.frame == nullptr);
        }
        return kj::mv(taken);
      });
  return guarded(kj::mv(call), within);
}

// Fetched whole, within the deadline and under the strict reader, so that the host never talks to a
// helper.
kj::Promise<Result<kj::Maybe<Png>>> HelperLink::png(PictureHandle picture, kj::Duration within) {
  KJ_REQUIRE(picture.generation == generation());
  PlainHash hash = [](Bytes bytes) { return attest::digestOf(bytes); };
  auto call =
      fetchPng(kj::mv(picture.client), picture.info, kj::mv(hash)).then([](kj::Maybe<Png> png) {
        return Result<kj::Maybe<Png>>(kj::mv(png));
      });
  return guarded(kj::mv(call), within);
}

PictureHandle HelperLink::pictureFrom(wire::PictureInfo::Reader from,
                                      wire::Picture::Client client) const {
  auto info = read(from);
  KJ_REQUIRE(isPossible(info));
  return {kj::mv(info), generation(), kj::mv(client)};
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
