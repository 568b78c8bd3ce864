// A real helper over a desktop in memory, or one that misbehaves. Its name chooses which (argv[0],
// which the launcher takes from the signed manifest); the table below says what each name means.
//
// It appends a line for everything that reaches it to the file that RECORD names, so that a test
// counts effects where they happened and not where they were asked for.
#include "attest/digest.h"
#include "ipc/action.h"
#include "ipc/bounds.h"
#include "ipc/helper-server.h"

#include <kj/async-unix.h>
#include <kj/debug.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace praefectus {
namespace {

constexpr int SOCKET = 3;

// WAITS goes on when SIGUSR2 comes; LEAVES does so too, and ends as soon as it has answered.
enum class Way : uint8_t {
  WORKS,
  REFUSES,
  WAITS,
  LEAVES,
  HANGS,
  DIES_BEFORE,
  DIES_AFTER,
  PROMISES_NOTHING,
};
enum class Shows : uint8_t { EFFECT, NO_CHANGE, NOTHING };
enum class Watched : uint8_t { KEPT, BREACHED, NOT };
// What is untrue on the wire. From NAME on, the helper is served by hand.
enum class Lie : uint8_t {
  NONE,
  SILENCE,
  GARBAGE,
  EXIT,
  NAME,
  RELEASE,
  ROLE,
  PROTOCOL,
  PID,
  GENERATION,
  ELEMENTS,
  DEPTH,
  TEXT,
  FIELD,
  NO_PICTURE,
  FOREIGN_OFFER,
  OFFER_TWICE,
  FRAME,
  PICTURE_FRAME,
  PICTURE_EMPTY,
  PICTURE_BYTES,
  PICTURE_SIZE,
  PREPARE,
  PERFORM,
};

struct Mode {
  const char* name;
  Lie lie = Lie::NONE;
  Way read = Way::WORKS;
  Way prepare = Way::WORKS;
  Way perform = Way::WORKS;
  Shows shows = Shows::EFFECT;
  bool versatile = false;  // Offers every kind and every proof, as no helper of one platform does.
  Watched watched = Watched::KEPT;
  bool fleeting = false;  // What was acted on under a name is gone under that name.
};

constexpr Mode MODES[] = {
    {.name = "good"},
    {.name = "silent-hello", .lie = Lie::SILENCE},
    {.name = "garbage-hello", .lie = Lie::GARBAGE},
    {.name = "exit-at-start", .lie = Lie::EXIT},
    {.name = "wrong-name", .lie = Lie::NAME},
    {.name = "wrong-release", .lie = Lie::RELEASE},
    {.name = "wrong-role", .lie = Lie::ROLE},
    {.name = "wrong-protocol", .lie = Lie::PROTOCOL},
    {.name = "wrong-pid", .lie = Lie::PID},
    {.name = "wrong-generation", .lie = Lie::GENERATION},
    {.name = "wrong-elements", .lie = Lie::ELEMENTS},
    {.name = "wrong-depth", .lie = Lie::DEPTH},
    {.name = "wrong-text", .lie = Lie::TEXT},
    {.name = "unknown-field-in-hello", .lie = Lie::FIELD},
    {.name = "offers-no-picture", .lie = Lie::NO_PICTURE},
    {.name = "offers-what-nobody-knows", .lie = Lie::FOREIGN_OFFER},
    {.name = "offers-one-thing-twice", .lie = Lie::OFFER_TWICE},
    {.name = "wrong-frame", .lie = Lie::FRAME},
    {.name = "picture-of-another-frame", .lie = Lie::PICTURE_FRAME},
    {.name = "picture-of-nothing", .lie = Lie::PICTURE_EMPTY},
    {.name = "picture-of-other-bytes", .lie = Lie::PICTURE_BYTES},
    {.name = "picture-of-another-size", .lie = Lie::PICTURE_SIZE},
    {.name = "nonsense-in-prepare", .lie = Lie::PREPARE},
    {.name = "nonsense-in-perform", .lie = Lie::PERFORM},
    {.name = "refuses-reads", .read = Way::REFUSES},
    {.name = "hangs-in-reads", .read = Way::HANGS},
    {.name = "waits-in-reads", .read = Way::WAITS},
    {.name = "refuses-prepare", .prepare = Way::REFUSES},
    {.name = "waits-in-prepare", .prepare = Way::WAITS},
    {.name = "hangs-in-prepare", .prepare = Way::HANGS},
    {.name = "dies-in-prepare", .prepare = Way::DIES_BEFORE},
    {.name = "refuses-perform", .perform = Way::REFUSES},
    {.name = "promises-nothing", .perform = Way::PROMISES_NOTHING},
    {.name = "waits-in-perform", .perform = Way::WAITS},
    {.name = "leaves-after-perform", .perform = Way::LEAVES},
    {.name = "hangs-in-perform", .perform = Way::HANGS},
    {.name = "dies-before-effect", .perform = Way::DIES_BEFORE},
    {.name = "dies-after-effect", .perform = Way::DIES_AFTER},
    {.name = "versatile", .versatile = true},
    {.name = "no-op", .shows = Shows::NO_CHANGE},
    {.name = "unverifiable", .shows = Shows::NOTHING},
    {.name = "breach", .watched = Watched::BREACHED},
    {.name = "unwatched", .watched = Watched::NOT},
    {.name = "fleeting", .fleeting = true},
};

const Mode& modeNamed(kj::StringPtr name) {
  for (auto& mode : MODES) {
    if (name == mode.name) return mode;
  }
  KJ_FAIL_REQUIRE("no such mode", name);
}

// One write for one line: lines of several helpers never mix.
void record(kj::StringPtr line) {
  const char* path = getenv("RECORD");
  KJ_REQUIRE(path != nullptr);
  int fd;
  KJ_SYSCALL(fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC));
  kj::AutoCloseFd file(fd);
  auto text = kj::str(line, '\n');
  kj::FdOutputStream(file.get()).write(text.begin(), text.size());
}

[[noreturn]] void die() {
  raise(SIGKILL);
  abort();
}

// What a line of the record says of an action: its name, its text, or else its kind.
kj::String nameOf(const Action& action) {
  KJ_IF_MAYBE (invoke, action.act.tryGet<InvokeRequest>()) return kj::str(invoke->name);
  KJ_IF_MAYBE (set, action.act.tryGet<SetValueRequest>()) return kj::str(set->text);
  return kj::str(action.kind());
}

constexpr kj::StringPtr READS[] = {"list"_kj, "observe"_kj, "picture"_kj};
constexpr kj::StringPtr FURTHER_READS[] = {"screenshot"_kj, "zoom"_kj};
constexpr kj::StringPtr MUTATIONS[] = {
    "invoke"_kj,      "set_value"_kj, "select_text"_kj, "secondary"_kj,
    "click"_kj,       "scroll"_kj,    "move"_kj,        "drag"_kj,
    "type_text"_kj,   "press"_kj,     "hotkey"_kj,      "paste"_kj,
    "application"_kj, "window"_kj,    "open"_kj,        "clipboard_write"_kj};
constexpr kj::StringPtr PROOFS[] = {"proof_value"_kj, "proof_state"_kj, "proof_appears"_kj,
                                    "proof_disappears"_kj, "proof_region_changed"_kj};

kj::Vector<Capability> offersOf(const Mode& mode) {
  kj::Vector<Capability> out;
  auto offer = [&](kj::StringPtr name) { out.add(Capability{name, true, {}}); };
  for (auto name : READS) offer(name);
  if (!mode.versatile) {
    for (auto name : {"invoke"_kj, "set_value"_kj}) offer(name);
    return out;
  }
  for (auto name : FURTHER_READS) offer(name);
  for (auto name : MUTATIONS) offer(name);
  for (auto name : PROOFS) offer(name);
  return out;
}

bool isOffered(const Mode& mode, const Action& action) {
  auto proof = action.verification.kind();
  bool plain = (action.act.is<InvokeRequest>() || action.act.is<SetValueRequest>()) &&
               (proof == Proof::STRONGEST || proof == Proof::NONE);
  return plain || mode.versatile;
}

// All of one grey.
Picture pictureOf(kj::Maybe<FrameId> frame, Rect part = {0, 0, 3, 2}) {
  Picture out;
  out.pixels = kj::heapArray<kj::byte>(size_t{part.width} * part.height * 4);
  memset(out.pixels.begin(), 0x80, out.pixels.size());
  out.info.width = part.width;
  out.info.height = part.height;
  out.info.x = part.x;
  out.info.y = part.y;
  out.info.pixels = attest::digestOf(out.pixels);
  out.info.frame = frame;
  return out;
}

// As much of a PNG as says its size (PNG, second edition, 5.2, 5.3 and 11.2.2).
kj::Maybe<kj::Array<kj::byte>> headOfPng(const PictureInfo& info, Bytes) {
  record("png");
  kj::Vector<kj::byte> out;
  out.addAll("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"_kj.asBytes());
  for (uint32_t side : {info.width, info.height}) {
    for (int shift : {24, 16, 8, 0}) out.add(static_cast<kj::byte>(side >> shift));
  }
  return out.releaseAsArray();
}

// A window with one check box and one entry.
class MemoryDriver final : public Driver {
 public:
  MemoryDriver(const Mode& mode, kj::UnixEventPort& port, kj::Timer& timer)
      : mode(mode), port(port), timer(timer) {}

  kj::Promise<kj::Vector<Capability>> capabilities() override { return offersOf(mode); }

  kj::Promise<Result<Desktop>> list() override {
    record("list");
    return goOn(mode.read).then([this]() -> Result<Desktop> {
      if (mode.read == Way::REFUSES) return Refusal{RefusalCode::NO_DISPLAY, "No display."};
      Desktop desktop;
      desktop.display = kj::str(":7");
      return kj::mv(desktop);
    });
  }

  kj::Promise<Result<Observation>> observe(WindowRef window, FrameId id, uint64_t epoch,
                                           ObserveAct request) override {
    record(kj::str("observe ", window.window, " ", epoch));
    frame = id;
    return goOn(mode.read).then([this, window, id, epoch, request]() -> Result<Observation> {
      if (mode.read == Way::REFUSES) return Refusal{RefusalCode::TARGET_MISSING, "No window."};
      Observation seen;
      seen.frame.id = id;
      seen.frame.epoch = epoch;
      seen.frame.window = window;
      for (auto role : {"frame"_kj, "check box"_kj, "text"_kj}) {
        Element element;
        element.role = kj::str(role);
        element.digest = attest::digestOf(role.asBytes());
        seen.elements.add(kj::mv(element));
      }
      if (request.picture) {
        auto picture = pictureOf(id);
        seen.picture = picture.info;
        seen.pixels = kj::mv(picture.pixels);
      }
      return kj::mv(seen);
    });
  }

  kj::Promise<Result<Picture>> capture(Action action) override {
    record(kj::str("capture ", action.kind()));
    return goOn(mode.read).then([this, action = kj::mv(action)]() -> Result<Picture> {
      if (!mode.versatile) return Refusal{RefusalCode::UNSUPPORTED_ACTION, "Not offered."};
      KJ_IF_MAYBE (aimedAt, action.frame()) {
        if (aimedAt->id != frame) return Refusal{RefusalCode::STALE_FRAME, "Another frame."};
        return pictureOf(frame,
                         regionOf(action.target.get<PointTarget>(), action.act.get<ZoomAct>()));
      }
      return pictureOf(nullptr);
    });
  }

  kj::Promise<Result<kj::Own<PreparedAction>>> prepare(Action action) override {
    record(kj::str("prepare ", nameOf(action)));
    if (!isOffered(mode, action)) {
      return Result<kj::Own<PreparedAction>>(
          Refusal{RefusalCode::UNSUPPORTED_ACTION, "Not offered."});
    }
    if (mode.prepare == Way::DIES_BEFORE) die();
    return goOn(mode.prepare)
        .then([this, action = kj::mv(action)]() mutable -> Result<kj::Own<PreparedAction>> {
          KJ_IF_MAYBE (aimedAt, action.frame()) {
            if (aimedAt->id != frame) return Refusal{RefusalCode::STALE_FRAME, "Another frame."};
          }
          if (gone.count(nameOf(action).cStr()) > 0) {
            return Refusal{RefusalCode::TARGET_MISSING, "Gone."};
          }
          if (mode.prepare == Way::REFUSES) {
            return Refusal{RefusalCode::TARGET_CHANGED, "Changed."};
          }
          return kj::Own<PreparedAction>(kj::heap<Prepared>(*this, kj::mv(action)));
        });
  }

 private:
  class Prepared final : public PreparedAction {
   public:
    Prepared(MemoryDriver& driver, Action action) : driver(driver), action(kj::mv(action)) {}

    kj::Promise<Result<Facts>> perform() override {
      auto how = driver.mode.perform;
      if (how == Way::DIES_BEFORE) die();
      if (how == Way::REFUSES) {
        return Result<Facts>(Refusal{RefusalCode::TARGET_CHANGED, "Changed."});
      }
      record(kj::str("effect ", nameOf(action)));
      if (driver.mode.fleeting) driver.gone.insert(nameOf(action).cStr());
      if (how == Way::DIES_AFTER) die();
      if (how == Way::PROMISES_NOTHING) {
        return Result<Facts>(Refusal{RefusalCode::OUTCOME_UNKNOWN, "Who knows."});
      }
      return driver.goOn(how).then([this]() -> Result<Facts> { return facts(); });
    }

   private:
    Facts facts() {
      Facts out;
      out.answer = wire::Answer::ACCEPTED;
      out.watch = {driver.mode.watched != Watched::NOT, false,
                   driver.mode.watched == Watched::BREACHED, false};
      for (auto sight : {&out.before, &out.after}) {
        sight->present = sight->windowPresent = sight->processRunning = true;
        sight->windows.add(7);
        sight->region = kj::heapArray("as it was"_kj.asBytes());
        if (action.act.is<SetValueRequest>()) sight->value = kj::str("what was there");
        if (driver.mode.shows != Shows::NOTHING) sight->states.set(State::CHECKABLE);
      }
      if (driver.mode.shows == Shows::EFFECT) {
        out.after.states.set(State::CHECKED);
        showEffect(out);
      }
      if (driver.mode.shows == Shows::NOTHING) out.after.value = NoValue();
      return out;
    }

    // What the act did, and then what it is to be proven by.
    void showEffect(Facts& facts) {
      KJ_IF_MAYBE (set, action.act.tryGet<SetValueRequest>()) {
        facts.after.value = kj::str(set->text);
      }
      KJ_SWITCH_ONEOF(action.verification.content) {
        KJ_CASE_ONEOF(proof, StrongestProof) {}
        KJ_CASE_ONEOF(proof, NoProof) {}
        KJ_CASE_ONEOF(proof, ValueProof) { facts.after.value = kj::str(proof.text); }
        KJ_CASE_ONEOF(proof, StateProof) { showStates(proof, facts); }
        KJ_CASE_ONEOF(proof, AppearsProof) { facts.after.windows.add(8); }
        KJ_CASE_ONEOF(proof, DisappearsProof) {
          facts.after.present = facts.after.windowPresent = false;
          facts.after.windows.clear();
        }
        KJ_CASE_ONEOF(proof, RegionProof) {
          facts.after.region = kj::heapArray("as it is"_kj.asBytes());
        }
      }
    }

    // Each expected state comes with the effect: the opposite was there before.
    static void showStates(const StateProof& proof, Facts& facts) {
      for (auto& each : proof.expected) {
        auto bit = uint64_t{1} << static_cast<unsigned>(each.state);
        auto& has = each.holds ? facts.after : facts.before;
        auto& lacks = each.holds ? facts.before : facts.after;
        has.states.bits |= bit;
        lacks.states.bits &= ~bit;
      }
    }

    MemoryDriver& driver;
    Action action;
  };

  kj::Promise<void> goOn(Way how) {
    if (how == Way::HANGS) return kj::NEVER_DONE;
    if (how != Way::WAITS && how != Way::LEAVES) return kj::READY_NOW;
    return port.onSignal(SIGUSR2).then([this, how](siginfo_t&&) {
      if (how != Way::LEAVES) return;
      // A timer comes after everything that can be written now.
      timer.afterDelay(1 * kj::MILLISECONDS)
          .then([]() { _exit(EXIT_SUCCESS); })
          .detach([](kj::Exception&&) {});
    });
  }

  const Mode& mode;
  kj::UnixEventPort& port;
  kj::Timer& timer;
  FrameId frame{};
  std::set<std::string> gone;
};

// Says what no reader of its schema can take for an answer: an enumerant of no version.
class SenselessPrepared final : public wire::Prepared::Server {
 public:
  kj::Promise<void> perform(PerformContext context) override {
    record("effect of nonsense");
    context.getResults().initResult().initFacts().setAnswer(static_cast<wire::Answer>(99));
    return kj::READY_NOW;
  }
};

class LyingPicture final : public wire::Picture::Server {
 public:
  LyingPicture(const Mode& mode, PictureInfo info) : mode(mode), info(kj::mv(info)) {}

  kj::Promise<void> png(PngContext context) override {
    auto png = made();
    context.getResults().setSize(png.size());
    context.getResults().setDigest(bytesOf(attest::digestOf(png)));
    return kj::READY_NOW;
  }
  kj::Promise<void> read(ReadContext context) override {
    auto png = made();
    if (mode.lie == Lie::PICTURE_BYTES) png.back() ^= 1;
    context.getResults().setBytes(png);
    return kj::READY_NOW;
  }

 private:
  kj::Array<kj::byte> made() {
    auto other = info;
    if (mode.lie == Lie::PICTURE_SIZE) ++other.height;
    return KJ_ASSERT_NONNULL(headOfPng(other, nullptr));
  }

  const Mode& mode;
  PictureInfo info;
};

// Made by hand, so that it can say what helper-server would not.
class Liar final : public wire::Helper::Server {
 public:
  Liar(const Mode& mode, uint64_t generation, MemoryDriver& driver)
      : mode(mode), generation(generation), driver(driver) {}

  kj::Promise<void> hello(HelloContext context) override {
    auto hello = context.getResults().initHello();
    hello.setName(mode.lie == Lie::NAME ? "another-helper" : mode.name);
    hello.setRelease(mode.lie == Lie::RELEASE ? "0.0.0" : PRAEFECTUS_RELEASE);
    hello.setRole(mode.lie == Lie::ROLE ? Role::FILES : Role::DESKTOP);
    hello.setProtocol(wire::PROTOCOL_VERSION + only(Lie::PROTOCOL));
    hello.setPid(static_cast<uint32_t>(getpid()) + only(Lie::PID));
    hello.setGeneration(generation + only(Lie::GENERATION));
    hello.setMaxElements(bounds::ELEMENTS + only(Lie::ELEMENTS));
    hello.setMaxDepth(bounds::DEPTH + only(Lie::DEPTH));
    hello.setMaxTextBytes(bounds::TEXT_BYTES + only(Lie::TEXT));
    auto offers = offersOf(mode);
    auto offered = hello.initCapabilities(static_cast<capnp::uint>(offers.size()));
    write(offers, offered);
    if (mode.lie == Lie::FIELD) offered[0].setWhy(static_cast<RefusalCode>(9999));
    if (mode.lie == Lie::NO_PICTURE) offered[2].setName("screenshot");
    if (mode.lie == Lie::FOREIGN_OFFER) offered[4].setName("everything");
    if (mode.lie == Lie::OFFER_TWICE) offered[4].setName("invoke");
    return kj::READY_NOW;
  }

  kj::Promise<void> observe(ObserveContext context) override {
    auto params = context.getParams();
    auto frame = KJ_REQUIRE_NONNULL(fixed<16>(params.getFrame()));
    if (mode.lie == Lie::FRAME) frame[0] ^= 1;
    ObserveAct request;
    request.picture = params.getRequest().getPicture();
    return driver.observe(read(params.getWindow()), frame, params.getEpoch(), kj::mv(request))
        .then([this, context](Result<Observation> seen) mutable {
          auto results = context.getResults();
          KJ_IF_MAYBE (info, seen->picture) {
            if (mode.lie == Lie::PICTURE_FRAME) info->frame = FrameId{};
            if (mode.lie == Lie::PICTURE_EMPTY) info->width = 0;
            results.setPicture(kj::heap<LyingPicture>(mode, *info));
          }
          write(*seen, results.initResult().initObservation());
        });
  }

  kj::Promise<void> prepare(PrepareContext context) override {
    record("prepare of nonsense");
    auto results = context.getResults();
    auto result = results.initResult();
    result.setReady();
    if (mode.lie == Lie::PREPARE) {
      // The union's tag.
      memset(capnp::toAny(result).getDataSection().begin(), 0x77, 2);
      return kj::READY_NOW;
    }
    results.setPrepared(kj::heap<SenselessPrepared>());
    return kj::READY_NOW;
  }

 private:
  uint16_t only(Lie lie) const { return mode.lie == lie ? 1 : 0; }

  const Mode& mode;
  uint64_t generation;
  MemoryDriver& driver;
};

// Until the supervisor has said something; what was asked for afterwards is never answered.
[[noreturn]] void keepSilent() {
  char byte;
  if (::read(SOCKET, &byte, 1) == 1) record("asked");
  for (;;) pause();
}

[[noreturn]] void talkGarbage() {
  std::array<kj::byte, 4096> bytes;
  bytes.fill(0xa5);
  kj::FdOutputStream(SOCKET).write(bytes.data(), bytes.size());
  for (;;) pause();
}

int serve(const Mode& mode, uint64_t generation) {
  attest::initialize();
  kj::UnixEventPort::captureSignal(SIGUSR2);
  auto io = kj::setupAsyncIo();
  auto& timer = io.provider->getTimer();
  MemoryDriver driver(mode, io.unixEventPort, timer);
  if (mode.lie >= Lie::NAME) {
    Channel channel(*io.lowLevelProvider, kj::AutoCloseFd(SOCKET),
                    kj::heap<Liar>(mode, generation, driver));
    channel.onDisconnect().wait(io.waitScope);
    return EXIT_SUCCESS;
  }
  HelperSelf self{mode.name, PRAEFECTUS_RELEASE, Role::DESKTOP, generation};
  auto hash = [](Bytes key, Bytes message) { return attest::keyedDigest(key, message); };
  return serveHelper(*io.lowLevelProvider, timer, kj::AutoCloseFd(SOCKET), self, driver, hash,
                     headOfPng)
      .wait(io.waitScope);
}

}  // namespace
}  // namespace praefectus

int main(int argc, char* argv[]) {
  using praefectus::Lie;
  alarm(300);  // Should a test fail to end it.
  if (argc != 5) return EXIT_FAILURE;
  auto& mode = praefectus::modeNamed(argv[0]);
  praefectus::record(kj::str("start ", getpid()));
  if (mode.lie == Lie::EXIT) return EXIT_SUCCESS;
  if (mode.lie == Lie::SILENCE) praefectus::keepSilent();
  if (mode.lie == Lie::GARBAGE) praefectus::talkGarbage();
  return praefectus::serve(mode, strtoull(argv[4], nullptr, 10));
}
