#include "supervisor/admission.h"

#include "ipc/bounds.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace praefectus {
namespace {

constexpr kj::StringPtr SUBJECT = "uid:1000"_kj;
constexpr int64_t NOW = 1'900'000'000'000;
constexpr uint64_t BOOT = 5'000'000;

class SetClock final : public Clock {
 public:
  int64_t wallMs() const override { return wall; }
  uint64_t bootMs() const override { return boot; }
  int64_t wall = NOW;
  uint64_t boot = BOOT;
};

// Admission starts nothing.
class NoHelpers final : public HelperSource {
 public:
  kj::Promise<Result<kj::Own<HelperLink>>> startDesktopHelper() override {
    KJ_FAIL_REQUIRE("admission started a helper");
  }
};

// A grant and its action that belong together, and the place where they are presented.
struct Presented {
  SetClock clock;
  NoHelpers helpers;
  LedgerId ledger;
  kj::Own<Session> session;
  Action action;
  attest::Grant grant;

  Presented() {
    attest::initialize();
    ledger = {attest::digestOf("a ledger"_kj.asBytes()), 1};
    session = kj::refcounted<Session>(1, kj::str("session-1"), kj::str("turn-1"), clock, helpers);
    auto drawn = session->frames.draw();
    action.blind.fill(7);
    action.timeoutMs = 10'000;
    action.window = {{4242, 987654}, 7};
    action.element = {action.window, drawn.id, drawn.epoch, 1, {}};
    action.act = InvokeRequest{kj::str("press")};
    grant.audience = ledger;
    grant.subject = kj::str(SUBJECT);
    grant.session = kj::str("session-1");
    grant.turn = kj::str("turn-1");
    grant.operation = kj::str("operation-1");
    grant.actionHash = attest::actionHash(encode(action));
    grant.actionClass = ActionClass::SEMANTIC_MUTATION;
    grant.target = action.window;
    grant.notBefore = NOW;
    grant.expires = NOW + 60'000;
    // Helper generation 0: no helper is alive in these tests.
    session->frames.taken(drawn, action.window, 0);
  }

  // What each of the three steps says, the later ones only after a yes.
  std::string admitted() {
    auto said = [](const auto& result) {
      return std::string(nameOf(result.refusal().code).cStr());
    };
    auto matched = match(kj::mv(grant), encode(action), ledger, SUBJECT, *session);
    if (!matched.ok()) return "match: " + said(matched);
    auto aged = admit(*matched, *session, clock);
    if (!aged.ok()) return "admit: " + said(aged);
    auto fit = admitMutation(*matched, *session);
    if (!fit.ok()) return "mutation: " + said(fit);
    return "ok";
  }
};

TEST(Admission, whatBelongsTogetherIsAdmitted) { EXPECT_EQ(Presented().admitted(), "ok"); }

TEST(Admission, everyFieldThatNeverAgesIsCompared) {
  struct Field {
    const char* name;
    std::function<void(Presented&)> change;
  };
  const Field fields[] = {
      {"ledger's key", [](Presented& on) { on.grant.audience.key[31] ^= 1; }},
      {"ledger's incarnation", [](Presented& on) { ++on.grant.audience.incarnation; }},
      {"subject", [](Presented& on) { on.grant.subject = kj::str("uid:1001"); }},
      {"session", [](Presented& on) { on.grant.session = kj::str("session-2"); }},
      {"action's hash", [](Presented& on) { on.grant.actionHash[31] ^= 1; }},
      {"action's target", [](Presented& on) { on.action.element.element = 2; }},
      {"action's name", [](Presented& on) { on.action.act = InvokeRequest{kj::str("Press")}; }},
      {"action's blind", [](Presented& on) { on.action.blind[0] ^= 1; }},
      {"action's timeout", [](Presented& on) { ++on.action.timeoutMs; }},
      {"verification", [](Presented& on) { on.action.verification = Verification::NONE; }},
      {"process", [](Presented& on) { ++on.grant.target.process.pid; }},
      {"process's start", [](Presented& on) { ++on.grant.target.process.start; }},
      {"window", [](Presented& on) { ++on.grant.target.window; }},
      {"no window", [](Presented& on) { on.grant.target = {}; }},
  };
  for (auto& field : fields) {
    Presented on;
    field.change(on);
    EXPECT_EQ(on.admitted(), "match: policy_denied") << field.name;
  }
}

TEST(Admission, aGrantOfOneClassServesNoOther) {
  for (auto other :
       {ActionClass::METADATA_READ, ActionClass::SCREENSHOT_READ, ActionClass::POINTER_MUTATION,
        ActionClass::KEYBOARD_MUTATION, ActionClass::FILE_MUTATION}) {
    Presented on;
    on.grant.actionClass = other;
    EXPECT_EQ(on.admitted(), "match: policy_denied");
  }
}

TEST(Admission, aPictureNeedsAGrantForPictures) {
  for (bool picture : {false, true}) {
    for (auto granted : {ActionClass::METADATA_READ, ActionClass::SCREENSHOT_READ}) {
      Presented on;
      on.action.act = ObserveAct{picture};
      on.grant.actionHash = attest::actionHash(encode(on.action));
      on.grant.actionClass = granted;
      bool fits = picture == (granted == ActionClass::SCREENSHOT_READ);
      auto matched = match(kj::mv(on.grant), encode(on.action), on.ledger, SUBJECT, *on.session);
      EXPECT_EQ(matched.ok(), fits);
    }
  }
}

TEST(Admission, bytesThatAreNoActionAreMalformedEvenWhenSigned) {
  Presented on;
  auto bytes = encode(on.action);
  auto cut = kj::heapArray<kj::byte>(bytes.slice(0, bytes.size() - 8));
  on.grant.actionHash = attest::actionHash(cut);
  auto matched = match(kj::mv(on.grant), kj::mv(cut), on.ledger, SUBJECT, *on.session);
  ASSERT_FALSE(matched.ok());
  EXPECT_EQ(matched.refusal().code, RefusalCode::MALFORMED);
}

TEST(Admission, aGrantIsValidFromItsBeginningToBeforeItsEnd) {
  const std::pair<int64_t, const char*> times[] = {{NOW - 1, "admit: policy_denied"},
                                                   {NOW, "ok"},
                                                   {NOW + 59'999, "ok"},
                                                   {NOW + 60'000, "admit: policy_denied"},
                                                   {NOW + 60'001, "admit: policy_denied"}};
  for (auto& [time, expected] : times) {
    Presented on;
    on.clock.wall = time;
    EXPECT_EQ(on.admitted(), expected) << time - NOW;
  }
}

TEST(Admission, anotherTurnIsRefusedOnlyWhenTheOperationIsNew) {
  Presented on;
  on.grant.turn = kj::str("turn-2");
  EXPECT_EQ(on.admitted(), "admit: policy_denied");
}

TEST(Admission, aClosedSessionAdmitsNothingNew) {
  Presented on;
  on.session->closed = true;
  EXPECT_EQ(on.admitted(), "admit: no_active_session");
}

TEST(Admission, afterAnUnknownOutcomeNothingIsAdmittedBeforeAnObservation) {
  Presented on;
  on.session->mustObserve = true;
  EXPECT_EQ(on.admitted(), "mutation: reobserve_required");
}

TEST(Admission, aFrameThatIsNoLongerCurrentIsNotAdmitted) {
  Presented on;
  on.session->frames.spend();
  EXPECT_EQ(on.admitted(), "mutation: stale_frame");
}

TEST(Admission, anOperationIsOverAtItsTimeoutOrItsGrantsEndWhicheverComesFirst) {
  auto deadline = [](uint32_t timeoutMs, int64_t now) {
    Presented on;
    on.action.timeoutMs = timeoutMs;
    on.clock.wall = now;
    Approved approved{kj::mv(on.grant), kj::mv(on.action)};
    return deadlineOf(approved, on.clock) - BOOT;
  };
  EXPECT_EQ(deadline(10'000, NOW), 10'000u);
  EXPECT_EQ(deadline(120'000, NOW), 60'000u);
  EXPECT_EQ(deadline(10'000, NOW + 59'000), 1'000u);
  EXPECT_EQ(deadline(10'000, NOW + 60'000), 0u);
  EXPECT_EQ(deadline(10'000, NOW + 90'000), 0u) << "never before now";
}

}  // namespace
}  // namespace praefectus
