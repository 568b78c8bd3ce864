#include "ipc/helper-server.h"

#include "ipc/action.h"
#include "ipc/bounds.h"
#include "ipc/strict.h"
#include "tests/ipc/loop.h"
#include "tests/ipc/newer.capnp.h"
#include "tests/ipc/refusals.h"

#include <kj/timer.h>

namespace praefectus {
namespace {

constexpr kj::StringPtr PRIVATE = "what the person typed"_kj;

// A driver in memory, whose behaviour a test chooses.
class FakeDriver final : public Driver {
 public:
  enum class Mood { WORKS, REFUSES, THROWS, FAILS, SILENT };

  Mood mood = Mood::WORKS;
  Mood performMood = Mood::WORKS;
  kj::Vector<kj::String> lines;    // What it was asked to do.
  kj::Maybe<PictureInfo> picture;  // What it is to give, with pixels of any kind.
  kj::Maybe<Action> asked;         // By the last prepare.
  bool offersOnlyReading = false;
  uint32_t withdrawn = 0;  // Calls given up before they were answered.
  uint32_t alive = 0;      // Prepared actions.

  kj::Promise<kj::Vector<Capability>> capabilities() override {
    return answer<kj::Vector<Capability>>(mood, [this]() {
      kj::Vector<Capability> out;
      out.add(Capability{"list", true, {}});
      out.add(Capability{"invoke", !offersOnlyReading, RefusalCode::PERMISSION_MISSING});
      return out;
    });
  }

  kj::Promise<Result<Desktop>> list() override {
    return answer<Result<Desktop>>(mood, [this]() -> Result<Desktop> {
      if (mood == Mood::REFUSES) return Refusal{RefusalCode::NO_DISPLAY, "No display."};
      Desktop desktop;
      desktop.display = kj::str(":7");
      return kj::mv(desktop);
    });
  }

  kj::Promise<Result<Observation>> observe(WindowRef window, FrameId frame, uint64_t epoch,
                                           ObserveAct request) override {
    lines.add(kj::str("observe ", window.window, " ", frame[0], " ", epoch, " ", request.picture,
                      " ", request.elements));
    return answer<Result<Observation>>(mood, [=, this]() -> Result<Observation> {
      if (mood == Mood::REFUSES) return Refusal{RefusalCode::TARGET_MISSING, "No window."};
      Observation seen;
      seen.frame.id = frame;
      seen.frame.epoch = epoch;
      seen.frame.window = window;
      KJ_IF_MAYBE (info, picture) {
        seen.picture = *info;
        seen.pixels = pixelsOf(*info);
      }
      return kj::mv(seen);
    });
  }

  kj::Promise<Result<Picture>> capture(Action action) override {
    lines.add(kj::str("capture ", action.kind()));
    return answer<Result<Picture>>(mood, [this]() -> Result<Picture> {
      if (mood == Mood::REFUSES) return Refusal{RefusalCode::INVALID_COORDINATE, "Outside."};
      auto& info = KJ_ASSERT_NONNULL(picture);
      return Picture{info, pixelsOf(info)};
    });
  }

  kj::Promise<Result<kj::Own<PreparedAction>>> prepare(Action action) override {
    if (action.act.is<SetValueRequest>()) {
      lines.add(kj::str("prepare ", action.act.get<SetValueRequest>().text));
    } else {
      lines.add(kj::str("prepare ", action.kind(), ' ', nameOf(action.verification.kind())));
    }
    asked = kj::mv(action);
    return answer<Result<kj::Own<PreparedAction>>>(
        mood, [this]() -> Result<kj::Own<PreparedAction>> {
          if (mood == Mood::REFUSES) return Refusal{RefusalCode::TARGET_DISABLED, "Disabled."};
          return kj::Own<PreparedAction>(kj::heap<Prepared>(*this));
        });
  }

 private:
  class Prepared final : public PreparedAction {
   public:
    explicit Prepared(FakeDriver& owner) : driver(owner) { ++driver.alive; }
    ~Prepared() noexcept(false) override { --driver.alive; }
    kj::Promise<Result<Facts>> perform() override {
      driver.lines.add(kj::str("perform"));
      return driver.answer<Result<Facts>>(driver.performMood, [this]() -> Result<Facts> {
        if (driver.performMood == Mood::REFUSES) {
          return Refusal{RefusalCode::TARGET_CHANGED, "Changed."};
        }
        Facts facts;
        facts.after.value = kj::str(PRIVATE);
        facts.answer = wire::Answer::ACCEPTED;
        return kj::mv(facts);
      });
    }

   private:
    FakeDriver& driver;
  };

  static kj::Array<kj::byte> pixelsOf(const PictureInfo& info) {
    return kj::heapArray<kj::byte>(size_t{info.width} * info.height * 4);
  }

  template <typename T, typename Make>
  kj::Promise<T> answer(Mood how, Make&& make) {
    if (how == Mood::THROWS) KJ_FAIL_REQUIRE("thrown", PRIVATE);
    if (how == Mood::FAILS) return KJ_EXCEPTION(FAILED, "failed", PRIVATE);
    if (how == Mood::SILENT) {
      return kj::Promise<T>(kj::NEVER_DONE).attach(kj::defer([this]() { ++withdrawn; }));
    }
    return make();
  }
};

// Stands for the real one: shows that key and message both went in.
Hash fakeHash(Bytes key, Bytes message) {
  Hash out{};
  for (auto byte : key) out[0] = static_cast<kj::byte>(out[0] + byte);
  for (auto byte : message) out[1] = static_cast<kj::byte>(out[1] + byte);
  out[2] = static_cast<kj::byte>(message.size());
  return out;
}

kj::Maybe<kj::Array<kj::byte>> noPng(const PictureInfo&, Bytes) { return nullptr; }

PictureInfo pictured(uint32_t width, uint32_t height) {
  PictureInfo info;
  info.width = width;
  info.height = height;
  info.pixels[0] = 11;
  return info;
}

// A helper and its supervisor's end, on one loop and with a clock that the test turns.
struct Served {
  Loop loop;
  SocketPair sockets;
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};
  kj::TimePoint now = kj::origin<kj::TimePoint>();
  FakeDriver driver;
  kj::Maybe<kj::Array<kj::byte>> png;  // What the encoder makes.
  uint32_t encoded = 0;                // How often it was asked.
  kj::Maybe<int> exitCode;
  kj::Promise<void> serving = nullptr;
  kj::Own<Channel> channel;
  wire::Helper::Client helper = nullptr;

  Served() {
    HelperSelf self{"praefectus-helper", "1.2.3", wire::Role::DESKTOP, 42};
    PngEncoder encoder = [this](const PictureInfo&, Bytes) {
      ++encoded;
      return png.map([](kj::Array<kj::byte>& bytes) { return kj::heapArray(bytes.asPtr()); });
    };
    serving =
        serveHelper(loop.low(), timer, kj::mv(sockets.one), self, driver, fakeHash, kj::mv(encoder))
            .then([this](int code) { exitCode = code; })
            .eagerlyEvaluate(nullptr);
    channel = kj::heap<Channel>(loop.low(), kj::mv(sockets.other));
    helper = channel->bootstrap().castAs<wire::Helper>();
  }

  ~Served() noexcept(false) {
    peerLeaves();
    if (exitCode == nullptr) end();
  }

  void pass(kj::Duration duration) {
    loop.settle();
    now += duration;
    timer.advanceTo(now);
    loop.settle();
  }

  void peerLeaves() {
    helper = nullptr;
    channel = nullptr;
  }

  // The exit code once the helper has ended.
  int end() {
    kj::Promise<void> ended = kj::mv(serving);
    loop.wait(kj::mv(ended));
    return KJ_ASSERT_NONNULL(exitCode);
  }

  auto hello(uint16_t protocol = wire::PROTOCOL_VERSION) {
    auto request = helper.helloRequest();
    request.setProtocol(protocol);
    return request.send();
  }
  void greet() { loop.wait(hello()); }

  auto observe(bool picture = false, size_t frameBytes = 16) {
    auto request = helper.observeRequest();
    request.initWindow().setWindow(5);
    request.initFrame(static_cast<capnp::uint>(frameBytes))[0] = 9;
    request.setEpoch(3);
    request.initRequest().setPicture(picture);
    return request.send();
  }

  auto capture(const Action& action) {
    auto request = helper.captureRequest();
    write(action, request.initAction());
    return request.send();
  }

  auto prepare(const Action& action, size_t nonceBytes = 32) {
    auto request = helper.prepareRequest();
    write(action, request.initAction());
    request.initNonce(static_cast<capnp::uint>(nonceBytes))[0] = 1;
    return request.send();
  }

  wire::Prepared::Client prepared();
};

Action mutation() {
  Action action;
  action.blind.fill(7);
  action.timeoutMs = 1000;
  ElementTarget target;
  target.window = {{12, 34}, 56};
  target.epoch = 1;
  action.target = target;
  action.act = InvokeRequest{kj::str("click")};
  return action;
}

Action screenshot() {
  auto action = mutation();
  action.target = WindowRef{{12, 34}, 56};
  action.act = ScreenshotAct();
  return action;
}

wire::Prepared::Client Served::prepared() {
  auto answer = loop.wait(prepare(mutation()));
  EXPECT_TRUE(answer.getResult().isReady());
  return answer.getPrepared();
}

// What an answer says: "ok" for its good member, else the refusal's name.
template <typename Response>
std::string said(const Response& response) {
  EXPECT_EQ(outcome(checkStrict(response.getResult())), "ok");
  if (!response.getResult().isRefusal()) return "ok";
  EXPECT_GT(response.getResult().getRefusal().getDetail().size(), 0u);
  return nameOf(response.getResult().getRefusal().getCode()).cStr();
}

// How a call that fails ends, or nothing when it does not fail.
std::string complaint(Loop& loop, kj::Promise<void> call) {
  std::string text;
  loop.wait(call.catch_([&](kj::Exception&& why) { text = why.getDescription().cStr(); }));
  return text;
}

TEST(HelperServer, helloStatesWhoTheHelperIsAndWhatWorks) {
  Served on;
  on.driver.offersOnlyReading = true;
  auto answer = on.loop.wait(on.hello());
  auto hello = answer.getHello();
  EXPECT_EQ(outcome(checkStrict(hello)), "ok");
  EXPECT_EQ(hello.getName(), "praefectus-helper"_kj);
  EXPECT_EQ(hello.getRelease(), "1.2.3"_kj);
  EXPECT_EQ(hello.getRole(), wire::Role::DESKTOP);
  EXPECT_EQ(hello.getProtocol(), wire::PROTOCOL_VERSION);
  EXPECT_EQ(hello.getPid(), static_cast<uint32_t>(getpid()));
  EXPECT_EQ(hello.getGeneration(), 42u);
  EXPECT_EQ(hello.getMaxElements(), bounds::ELEMENTS);
  EXPECT_EQ(hello.getMaxDepth(), bounds::DEPTH);
  EXPECT_EQ(hello.getMaxTextBytes(), bounds::TEXT_BYTES);
  ASSERT_EQ(hello.getCapabilities().size(), 2u);
  EXPECT_TRUE(hello.getCapabilities()[0].getAvailable());
  EXPECT_FALSE(hello.getCapabilities()[1].getAvailable());
  EXPECT_EQ(hello.getCapabilities()[1].getWhy(), RefusalCode::PERMISSION_MISSING);
}

TEST(HelperServer, anotherProtocolIsAnsweredTruthfullyAndEndsTheHelper) {
  Served on;
  auto answer = on.loop.wait(on.hello(wire::PROTOCOL_VERSION + 1));
  EXPECT_EQ(answer.getHello().getProtocol(), wire::PROTOCOL_VERSION);
  on.pass(bounds::CLOSE);
  EXPECT_EQ(on.end(), 78);
}

TEST(HelperServer, anotherProtocolsPeerMayLeaveByItselfOrAskForNothingMore) {
  {
    Served on;
    on.loop.wait(on.hello(0));
    on.peerLeaves();
    EXPECT_EQ(on.end(), 78);
  }
  Served on;
  on.loop.wait(on.hello(0));
  EXPECT_NE(complaint(on.loop, on.helper.listRequest().send().ignoreResult()), "");
  EXPECT_EQ(on.end(), 78);
}

TEST(HelperServer, aPeerThatLeavesEndsTheHelperInPeace) {
  Served on;
  on.greet();
  on.peerLeaves();
  EXPECT_EQ(on.end(), 0);
}

TEST(HelperServer, nothingComesBeforeHello) {
  auto broken = [](auto call) {
    Served on;
    auto text = complaint(on.loop, call(on));
    EXPECT_NE(text, "");
    EXPECT_EQ(on.driver.lines.size(), 0u);
    return on.end();
  };
  EXPECT_EQ(broken([](Served& on) { return on.helper.listRequest().send().ignoreResult(); }), 1);
  EXPECT_EQ(broken([](Served& on) { return on.observe().ignoreResult(); }), 1);
  EXPECT_EQ(broken([](Served& on) { return on.prepare(mutation()).ignoreResult(); }), 1);
  EXPECT_EQ(
      broken([](Served& on) { return on.helper.capabilitiesRequest().send().ignoreResult(); }), 1);
}

TEST(HelperServer, helloComesOnce) {
  Served on;
  on.greet();
  EXPECT_NE(complaint(on.loop, on.hello().ignoreResult()), "");
  EXPECT_EQ(on.end(), 1);
}

TEST(HelperServer, aCallIsMadeOneAtATime) {
  Served on;
  on.greet();
  on.driver.mood = FakeDriver::Mood::SILENT;
  auto first = on.observe().ignoreResult().eagerlyEvaluate([](kj::Exception&&) {});
  on.loop.settle();
  EXPECT_NE(complaint(on.loop, on.observe().ignoreResult()), "");
  EXPECT_EQ(on.end(), 1);
}

TEST(HelperServer, aReadThatItsCallerWithdrewMakesRoomForTheNext) {
  Served on;
  on.greet();
  on.driver.mood = FakeDriver::Mood::SILENT;
  auto first = on.observe().ignoreResult().eagerlyEvaluate(nullptr);
  on.loop.settle();
  on.driver.mood = FakeDriver::Mood::WORKS;
  { auto dropped = kj::mv(first); }
  EXPECT_EQ(said(on.loop.wait(on.observe())), "ok");
  EXPECT_EQ(on.driver.withdrawn, 1u);
  EXPECT_TRUE(on.exitCode == nullptr);
}

TEST(HelperServer, anUnknownFieldOrMethodEndsTheConnection) {
  {
    Served on;
    on.greet();
    auto request = on.helper.typelessRequest(capnp::typeId<wire::Helper>(), 2, nullptr);
    request.initAsAnyStruct(1, 0).getDataSection()[0] = 1;
    auto text = complaint(on.loop, request.send().ignoreResult());
    EXPECT_EQ(on.end(), 1) << text;
  }
  Served on;
  on.greet();
  auto request = on.helper.typelessRequest(capnp::typeId<wire::Helper>(), 99, nullptr);
  request.initAsAnyStruct(0, 0);
  complaint(on.loop, request.send().ignoreResult());
  EXPECT_EQ(on.end(), 1);
}

TEST(HelperServer, bytesThatAreNoMessageEndTheHelper) {
  Loop loop;
  SocketPair sockets;
  kj::TimerImpl timer(kj::origin<kj::TimePoint>());
  FakeDriver driver;
  auto serving = serveHelper(loop.low(), timer, kj::mv(sockets.one),
                             {"n", "r", wire::Role::DESKTOP, 1}, driver, fakeHash, noPng);
  RawPeer peer(kj::mv(sockets.other));
  peer.send({~0u, ~0u});
  EXPECT_EQ(loop.wait(kj::mv(serving)), 1);
}

TEST(HelperServer, readingPassesTheDriversAnswerOn) {
  Served on;
  on.greet();
  auto listed = on.loop.wait(on.helper.listRequest().send());
  EXPECT_EQ(said(listed), "ok");
  EXPECT_EQ(listed.getResult().getDesktop().getDisplay(), ":7"_kj);
  auto seen = on.loop.wait(on.observe());
  EXPECT_EQ(said(seen), "ok");
  EXPECT_EQ(seen.getResult().getObservation().getFrame().getEpoch(), 3u);
  EXPECT_EQ(on.driver.lines[0], "observe 5 9 3 false 1500"_kj);
  EXPECT_FALSE(seen.hasPicture());

  on.driver.mood = FakeDriver::Mood::REFUSES;
  EXPECT_EQ(said(on.loop.wait(on.helper.listRequest().send())), "no_display");
  EXPECT_EQ(said(on.loop.wait(on.observe())), "target_missing");
  EXPECT_EQ(said(on.loop.wait(on.prepare(mutation()))), "target_disabled");
}

TEST(HelperServer, healthFollowsFromWhatWorksNow) {
  Served on;
  on.greet();
  auto health = [&]() { return on.loop.wait(on.helper.capabilitiesRequest().send()).getHealth(); };
  EXPECT_EQ(health(), Health::HEALTHY);
  on.driver.offersOnlyReading = true;
  EXPECT_EQ(health(), Health::DEGRADED);
  on.driver.mood = FakeDriver::Mood::THROWS;
  EXPECT_EQ(health(), Health::UNAVAILABLE);
  on.driver.mood = FakeDriver::Mood::SILENT;
  auto asked = on.helper.capabilitiesRequest().send();
  on.pass(bounds::CONNECT);
  EXPECT_EQ(on.loop.wait(kj::mv(asked)).getHealth(), Health::UNAVAILABLE);
}

TEST(HelperServer, aDriverThatNeverAnswersIsRefusedAtTheDeadline) {
  Served on;
  on.greet();
  on.driver.mood = FakeDriver::Mood::SILENT;
  auto listed = on.helper.listRequest().send();
  auto seen = on.observe();
  auto prepared = on.prepare(mutation());
  // A driver may use all of its own time.
  on.pass(bounds::WALK);
  EXPECT_EQ(on.driver.withdrawn, 0u);
  on.pass(bounds::READ - bounds::WALK - kj::MILLISECONDS);
  EXPECT_EQ(on.driver.withdrawn, 3u);
  EXPECT_EQ(said(on.loop.wait(kj::mv(listed))), "not_answering");
  EXPECT_EQ(said(on.loop.wait(kj::mv(seen))), "not_answering");
  EXPECT_EQ(said(on.loop.wait(kj::mv(prepared))), "not_answering");
  on.driver.mood = FakeDriver::Mood::WORKS;
  EXPECT_EQ(said(on.loop.wait(on.observe())), "ok");
}

TEST(HelperServer, aDriverThatThrowsWhileReadingIsRefusedWithoutItsText) {
  for (auto mood : {FakeDriver::Mood::THROWS, FakeDriver::Mood::FAILS}) {
    Served on;
    on.greet();
    on.driver.mood = mood;
    auto listed = on.loop.wait(on.helper.listRequest().send());
    EXPECT_EQ(said(listed), "capture_failed");
    EXPECT_EQ(std::string(listed.getResult().getRefusal().getDetail().cStr()).find(PRIVATE.cStr()),
              std::string::npos);
    EXPECT_EQ(said(on.loop.wait(on.observe())), "capture_failed");
    EXPECT_EQ(said(on.loop.wait(on.prepare(mutation()))), "not_answering");
  }
}

TEST(HelperServer, aFrameIs16BytesAndANonce32) {
  Served on;
  on.greet();
  EXPECT_EQ(said(on.loop.wait(on.observe(false, 15))), "malformed");
  EXPECT_EQ(said(on.loop.wait(on.observe(false, 17))), "malformed");
  EXPECT_EQ(said(on.loop.wait(on.prepare(mutation(), 31))), "malformed");
  EXPECT_EQ(said(on.loop.wait(on.prepare(mutation(), 33))), "malformed");
  EXPECT_EQ(on.driver.lines.size(), 0u);
}

TEST(HelperServer, onlyAValidMutationIsPrepared) {
  Served on;
  on.greet();
  Action action = mutation();
  action.timeoutMs = 0;
  EXPECT_EQ(said(on.loop.wait(on.prepare(action))), "malformed");
  action = mutation();
  action.act = SetValueRequest{kj::str("<text:18>")};
  EXPECT_EQ(said(on.loop.wait(on.prepare(action))), "withheld_value_replayed");
  // A read is valid, and still nothing to prepare.
  action.target = DesktopTarget();
  action.act = ListAct();
  EXPECT_EQ(said(on.loop.wait(on.prepare(action))), "malformed");
  action.act = ScreenshotAct();
  EXPECT_EQ(said(on.loop.wait(on.prepare(action))), "malformed");
  action.target = WindowRef{{12, 34}, 56};
  action.act = ObserveAct();
  EXPECT_EQ(said(on.loop.wait(on.prepare(action))), "malformed");
  EXPECT_EQ(on.driver.lines.size(), 0u);
  action = mutation();
  action.act = SetValueRequest{kj::str("text")};
  EXPECT_EQ(said(on.loop.wait(on.prepare(action))), "ok");
  EXPECT_EQ(on.driver.lines[0], "prepare text"_kj);
}

// Whether it can do a kind, and show a proof, is the driver's to say.
TEST(HelperServer, theDriverGetsTheWholeAction) {
  Served on;
  on.greet();
  PointTarget point;
  point.window = {{12, 34}, 56};
  point.epoch = 9;
  point.x = 1;
  point.y = 2;
  Action action = mutation();
  action.mode = Mode::BACKGROUND_ONLY;
  action.safety = Safety::EXTERNAL;
  action.verification.content = RegionProof{{1, 2, 3, 4}};
  action.target = point;
  action.act = DragRequest{Button::LEFT, 5, 6};
  EXPECT_EQ(said(on.loop.wait(on.prepare(action))), "ok");
  EXPECT_EQ(on.driver.lines[0], "prepare drag region_changed"_kj);
  EXPECT_EQ(encode(KJ_ASSERT_NONNULL(on.driver.asked)), encode(action));
}

TEST(HelperServer, aPreparedActionPerformsOnce) {
  Served on;
  on.greet();
  auto prepared = on.prepared();
  auto first = on.loop.wait(prepared.performRequest().send());
  EXPECT_EQ(said(first), "ok");
  auto facts = first.getResult().getFacts();
  EXPECT_EQ(facts.getAnswer(), wire::Answer::ACCEPTED);
  Hash nonce{};
  nonce[0] = 1;
  EXPECT_EQ(facts.getAfter().getValue().getText(),
            bytesOf(fakeHash(bytesOf(nonce), PRIVATE.asBytes())));
  EXPECT_EQ(said(on.loop.wait(prepared.performRequest().send())), "duplicate_action");
  EXPECT_EQ(on.driver.lines.size(), 2u);
}

TEST(HelperServer, aPreparedActionPerformsOnceEvenWhileItIsAtIt) {
  Served on;
  on.greet();
  auto prepared = on.prepared();
  on.driver.performMood = FakeDriver::Mood::SILENT;
  auto first = prepared.performRequest().send();
  on.loop.settle();
  EXPECT_EQ(said(on.loop.wait(prepared.performRequest().send())), "duplicate_action");
  EXPECT_TRUE(on.exitCode == nullptr);
}

TEST(HelperServer, twoActionsAreNotPerformedAtOnce) {
  Served on;
  on.greet();
  auto one = on.prepared();
  auto other = on.prepared();
  on.driver.performMood = FakeDriver::Mood::SILENT;
  auto first = one.performRequest().send().ignoreResult().eagerlyEvaluate([](kj::Exception&&) {});
  on.loop.settle();
  EXPECT_NE(complaint(on.loop, other.performRequest().send().ignoreResult()), "");
  EXPECT_EQ(on.end(), 1);
}

TEST(HelperServer, aNewObservationVoidsWhatWasPrepared) {
  Served on;
  on.greet();
  auto prepared = on.prepared();
  EXPECT_EQ(said(on.loop.wait(on.observe())), "ok");
  EXPECT_EQ(said(on.loop.wait(prepared.performRequest().send())), "stale_frame");
  // One that fails, too: what the driver still knows is not certain then.
  prepared = on.prepared();
  on.driver.mood = FakeDriver::Mood::REFUSES;
  EXPECT_EQ(said(on.loop.wait(on.observe())), "target_missing");
  EXPECT_EQ(said(on.loop.wait(prepared.performRequest().send())), "stale_frame");
  for (auto& line : on.driver.lines) EXPECT_NE(line, "perform"_kj);
}

TEST(HelperServer, aRefusalOfPerformIsPassedOn) {
  Served on;
  on.greet();
  auto prepared = on.prepared();
  on.driver.performMood = FakeDriver::Mood::REFUSES;
  EXPECT_EQ(said(on.loop.wait(prepared.performRequest().send())), "target_changed");
}

TEST(HelperServer, anExceptionOfPerformIsNeverARefusalAndKeepsItsText) {
  for (auto mood : {FakeDriver::Mood::THROWS, FakeDriver::Mood::FAILS}) {
    Served on;
    on.greet();
    auto prepared = on.prepared();
    on.driver.performMood = mood;
    auto text = complaint(on.loop, prepared.performRequest().send().ignoreResult());
    EXPECT_NE(text, "");
    EXPECT_EQ(text.find(PRIVATE.cStr()), std::string::npos) << text;
    EXPECT_TRUE(on.exitCode == nullptr);
  }
}

TEST(HelperServer, aPerformThatNeverEndsFailsAtTheActionsTimeout) {
  Served on;
  on.greet();
  auto prepared = on.prepared();
  on.driver.performMood = FakeDriver::Mood::SILENT;
  auto call = prepared.performRequest().send().ignoreResult().eagerlyEvaluate(nullptr);
  on.pass(999 * kj::MILLISECONDS);
  EXPECT_EQ(on.driver.withdrawn, 0u);
  on.pass(1 * kj::MILLISECONDS);
  EXPECT_EQ(on.driver.withdrawn, 1u);
  EXPECT_NE(complaint(on.loop, kj::mv(call)), "");
}

TEST(HelperServer, aPerformGoesOnWhenNobodyWaitsForIt) {
  Served on;
  on.greet();
  auto prepared = on.prepared();
  on.driver.performMood = FakeDriver::Mood::SILENT;
  {
    auto call = prepared.performRequest().send().ignoreResult().eagerlyEvaluate(nullptr);
    on.loop.settle();
  }
  on.loop.settle();
  EXPECT_EQ(on.driver.lines.back(), "perform"_kj);
  EXPECT_EQ(on.driver.withdrawn, 0u);
}

TEST(HelperServer, nothingOutlivesTheConnection) {
  Served on;
  on.greet();
  auto prepared = on.prepared();
  on.driver.performMood = FakeDriver::Mood::SILENT;
  auto call =
      prepared.performRequest().send().ignoreResult().eagerlyEvaluate([](kj::Exception&&) {});
  on.loop.settle();
  EXPECT_EQ(on.driver.alive, 1u);
  on.peerLeaves();
  EXPECT_EQ(on.end(), 0);
  EXPECT_EQ(on.driver.withdrawn, 1u);
  EXPECT_EQ(on.driver.alive, 0u);
}

TEST(HelperServer, aRequestToObserveIsPassedOnWithItsBounds) {
  Served on;
  on.greet();
  auto request = on.helper.observeRequest();
  request.initFrame(16);
  request.initRequest().setElements(20);
  EXPECT_EQ(said(on.loop.wait(request.send())), "ok");
  EXPECT_EQ(on.driver.lines[0], "observe 0 0 0 false 20"_kj);
  auto beyond = on.helper.observeRequest();
  beyond.initFrame(16);
  beyond.initRequest().setElements(bounds::ELEMENTS_LIMIT + 1);
  EXPECT_EQ(said(on.loop.wait(beyond.send())), "malformed");
  EXPECT_EQ(on.driver.lines.size(), 1u);
}

TEST(HelperServer, aPngIsMadeWhenItIsAskedForAndReadInPieces) {
  Served on;
  on.greet();
  auto png = kj::heapArray<kj::byte>(bounds::PICTURE_CHUNK + 10);
  for (auto i : kj::indices(png)) png[i] = static_cast<kj::byte>(i * 7);
  on.png = kj::heapArray(png.asPtr());
  on.driver.picture = pictured(3, 4);
  auto seen = on.loop.wait(on.observe(true));
  EXPECT_TRUE(seen.getResult().getObservation().getHasPicture());
  auto picture = seen.getPicture();
  auto info = on.loop.wait(picture.infoRequest().send());
  EXPECT_EQ(info.getInfo().getWidth(), 3u);
  EXPECT_EQ(info.getInfo().getHeight(), 4u);
  EXPECT_EQ(info.getInfo().getPixels()[0], 11);
  EXPECT_EQ(on.encoded, 0u) << "nobody asked for it yet";

  auto made = on.loop.wait(picture.pngRequest().send());
  EXPECT_EQ(made.getSize(), png.size());
  EXPECT_EQ(made.getDigest(), bytesOf(fakeHash(nullptr, png)));
  auto read = [&](uint64_t offset) {
    auto request = picture.readRequest();
    request.setOffset(offset);
    return kj::heapArray(on.loop.wait(request.send()).getBytes());
  };
  EXPECT_EQ(read(0), png.slice(0, bounds::PICTURE_CHUNK));
  EXPECT_EQ(read(bounds::PICTURE_CHUNK), png.slice(bounds::PICTURE_CHUNK, png.size()));
  EXPECT_EQ(read(png.size()).size(), 0u);
  EXPECT_EQ(read(~uint64_t{0}).size(), 0u);
  EXPECT_EQ(on.encoded, 1u);
}

TEST(HelperServer, aPictureWithoutAPngSaysSo) {
  Served on;
  on.greet();
  on.driver.picture = pictured(3, 4);
  auto picture = on.loop.wait(on.observe(true)).getPicture();
  auto made = on.loop.wait(picture.pngRequest().send());
  EXPECT_EQ(made.getSize(), 0u);
  EXPECT_FALSE(made.hasDigest());
  EXPECT_EQ(on.loop.wait(picture.readRequest().send()).getBytes().size(), 0u);
  EXPECT_EQ(on.encoded, 1u) << "it is not tried again";
}

TEST(HelperServer, aPictureThatWasNotAskedForIsNotGiven) {
  Served on;
  on.greet();
  on.driver.picture = pictured(3, 4);
  auto seen = on.loop.wait(on.observe(false));
  EXPECT_FALSE(seen.hasPicture());
  EXPECT_FALSE(seen.getResult().getObservation().getHasPicture());
  EXPECT_FALSE(seen.getResult().getObservation().hasPicture());
}

TEST(HelperServer, aScreenshotIsWhatTheDriverTook) {
  Served on;
  on.greet();
  on.driver.picture = pictured(3, 4);
  auto taken = on.loop.wait(on.capture(screenshot()));
  EXPECT_EQ(said(taken), "ok");
  EXPECT_EQ(taken.getResult().getPicture().getHeight(), 4u);
  auto info = on.loop.wait(taken.getPicture().infoRequest().send());
  EXPECT_EQ(info.getInfo().getWidth(), 3u);
  EXPECT_EQ(on.driver.lines[0], "capture screenshot"_kj);
  on.driver.mood = FakeDriver::Mood::REFUSES;
  EXPECT_EQ(said(on.loop.wait(on.capture(screenshot()))), "invalid_coordinate");
  on.driver.mood = FakeDriver::Mood::THROWS;
  EXPECT_EQ(said(on.loop.wait(on.capture(screenshot()))), "capture_failed");
}

TEST(HelperServer, onlyWhatTakesAPictureIsCaptured) {
  Served on;
  on.greet();
  EXPECT_EQ(said(on.loop.wait(on.capture(mutation()))), "malformed");
  auto listing = mutation();
  listing.target = DesktopTarget();
  listing.act = ListAct();
  EXPECT_EQ(said(on.loop.wait(on.capture(listing))), "malformed");
  auto monitor = screenshot();
  monitor.target = DesktopTarget();
  EXPECT_EQ(said(on.loop.wait(on.capture(monitor))), "malformed");
  EXPECT_EQ(on.driver.lines.size(), 0u);
}

TEST(HelperServer, aScreenshotVoidsNothingThatWasPrepared) {
  Served on;
  on.greet();
  on.driver.picture = pictured(3, 4);
  auto prepared = on.prepared();
  EXPECT_EQ(said(on.loop.wait(on.capture(screenshot()))), "ok");
  EXPECT_EQ(said(on.loop.wait(prepared.performRequest().send())), "ok");
}

TEST(HelperServer, holdsPicturesForItsPeerUpToABound) {
  Served on;
  on.greet();
  auto bytes = bounds::HELD_PIXEL_BYTES / 2;
  on.driver.picture = pictured(1024, static_cast<uint32_t>(bytes / 4 / 1024));
  static_assert(bounds::HELD_PIXEL_BYTES / 2 <= bounds::PIXEL_BYTES);
  auto one = on.loop.wait(on.capture(screenshot())).getPicture();
  kj::Maybe<wire::Picture::Client> two = on.loop.wait(on.capture(screenshot())).getPicture();
  on.driver.picture = pictured(1, 1);
  EXPECT_EQ(said(on.loop.wait(on.capture(screenshot()))), "capture_failed");
  EXPECT_EQ(said(on.loop.wait(on.observe(true))), "capture_failed");
  // One that has become a PNG is none any more; nor is one that was let go of.
  on.png = kj::heapArray<kj::byte>(1);
  on.loop.wait(one.pngRequest().send());
  EXPECT_EQ(said(on.loop.wait(on.capture(screenshot()))), "ok");
  two = nullptr;
  on.driver.picture = pictured(1024, static_cast<uint32_t>(bytes / 4 / 1024));
  EXPECT_EQ(said(on.loop.wait(on.capture(screenshot()))), "ok");
}

}  // namespace
}  // namespace praefectus
