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
constexpr WindowRef WINDOW = {{4242, 987654}, 7};

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

// A grant, its action and a lease that belong together, and the place where they are presented.
struct Presented {
  SetClock clock;
  TimeKeeper time;
  NoHelpers helpers;
  ledger::Revocations revocations;
  LedgerId ledger;
  kj::Own<Session> session;
  Action action;
  attest::Grant grant;
  attest::Lease lease;

  explicit Presented(ledger::ClockMemory memory = {NOW, nullptr}) : time(clock, memory) {
    attest::initialize();
    ledger = {attest::digestOf("a ledger"_kj.asBytes()), 1};
    session = kj::refcounted<Session>(1, kj::str("session-1"), clock, helpers);
    KJ_ASSERT(session->beginTurn(kj::str("turn-1")).ok());
    auto drawn = session->frames.draw();
    action.blind.fill(7);
    action.timeoutMs = 10'000;
    action.target = ElementTarget{WINDOW, drawn.id, drawn.epoch, 1, {}};
    action.act = InvokeRequest{kj::str("press")};
    addressTo(grant);
    grant.operation = kj::str("operation-1");
    grant.actionHash = attest::actionHash(encode(action));
    grant.actionClass = ActionClass::SEMANTIC_MUTATION;
    grant.target = WINDOW;
    grant.frame = drawn.id;
    addressTo(lease);
    lease.lease = kj::str("lease-1");
    lease.classes = {ActionClass::SEMANTIC_MUTATION};
    // Helper generation 0: no helper is alive in these tests.
    session->frames.taken(drawn, WINDOW, 0);
  }

  template <typename Body>
  void addressTo(Body& body) {
    body.issuer = kj::str("host");
    body.audience = ledger;
    body.subject = kj::str(SUBJECT);
    body.session = kj::str("session-1");
    body.turn = kj::str("turn-1");
    body.notBefore = NOW;
    body.expires = NOW + 60'000;
  }

  // The grant follows the action.
  void sign() {
    grant.actionHash = attest::actionHash(encode(action));
    grant.actionClass = action.actionClass();
    grant.risk = action.safety;
    grant.target = action.window();
    grant.frame = nullptr;
    KJ_IF_MAYBE (frame, action.frame()) grant.frame = frame->id;
  }

  Result<Approved> matched() {
    return match(kj::mv(grant), encode(action), {ledger, SUBJECT}, *session);
  }

  // What each step says, the later ones only after a yes.
  std::string admitted() {
    auto said = [](const auto& result) {
      return std::string(nameOf(result.refusal().code).cStr());
    };
    auto opened = admitLease(kj::mv(lease), {}, {ledger, SUBJECT}, *session, revocations, time);
    if (!opened.ok()) return "lease: " + said(opened);
    auto approved = matched();
    if (!approved.ok()) return "match: " + said(approved);
    auto covering = admit(approved->grant, *session, revocations, time);
    if (!covering.ok()) return "admit: " + said(covering);
    EXPECT_EQ(*covering, "lease-1"_kj);
    auto fit = admitMutation(approved->action, *session, time);
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
      {"action's target", [](Presented& on) { on.action.target.get<ElementTarget>().element = 2; }},
      {"action's name", [](Presented& on) { on.action.act = InvokeRequest{kj::str("Press")}; }},
      {"action's blind", [](Presented& on) { on.action.blind[0] ^= 1; }},
      {"action's timeout", [](Presented& on) { ++on.action.timeoutMs; }},
      {"verification", [](Presented& on) { on.action.verification = Verification::none(); }},
      {"process", [](Presented& on) { ++on.grant.target.process.pid; }},
      {"process's start", [](Presented& on) { ++on.grant.target.process.start; }},
      {"window", [](Presented& on) { ++on.grant.target.window; }},
      {"no window", [](Presented& on) { on.grant.target = {}; }},
      {"action's mode", [](Presented& on) { on.action.mode = Mode::BACKGROUND_ONLY; }},
      {"action's safety", [](Presented& on) { on.action.safety = Safety::EXTERNAL; }},
      {"risk", [](Presented& on) { on.grant.risk = Safety::EXTERNAL; }},
      {"frame",
       [](Presented& on) {
         KJ_ASSERT_NONNULL(on.grant.frame)[0] ^= 1;
       }},
      {"no frame", [](Presented& on) { on.grant.frame = nullptr; }},
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

TEST(Admission, whatCannotBeUndoneNeedsTheRightToIt) {
  for (bool right : {false, true}) {
    Presented on;
    on.action.safety = Safety::DESTRUCTIVE;
    on.sign();
    on.grant.rights.irreversible = right;
    EXPECT_EQ(on.admitted(), right ? "ok" : "match: policy_denied");
  }
}

TEST(Admission, aPictureNeedsAGrantForPictures) {
  for (bool picture : {false, true}) {
    for (auto granted : {ActionClass::METADATA_READ, ActionClass::SCREENSHOT_READ}) {
      Presented on;
      on.action.target = WINDOW;
      on.action.act = ObserveAct{picture};
      on.sign();
      on.grant.actionClass = granted;
      bool fits = picture == (granted == ActionClass::SCREENSHOT_READ);
      EXPECT_EQ(on.matched().ok(), fits);
    }
  }
}

TEST(Admission, bytesThatAreNoActionAreMalformedEvenWhenSigned) {
  Presented on;
  auto bytes = encode(on.action);
  auto cut = kj::heapArray<kj::byte>(bytes.slice(0, bytes.size() - 8));
  on.grant.actionHash = attest::actionHash(cut);
  auto matched = match(kj::mv(on.grant), kj::mv(cut), {on.ledger, SUBJECT}, *on.session);
  ASSERT_FALSE(matched.ok());
  EXPECT_EQ(matched.refusal().code, RefusalCode::MALFORMED);
}

TEST(Admission, aGrantIsValidFromItsBeginningToBeforeItsEnd) {
  const std::pair<int64_t, const char*> times[] = {{NOW - 1, "admit: policy_denied"},
                                                   {NOW, "ok"},
                                                   {NOW + 9'999, "ok"},
                                                   {NOW + 10'000, "admit: policy_denied"},
                                                   {NOW + 10'001, "admit: policy_denied"}};
  for (auto& [time, expected] : times) {
    Presented on({NOW - 1000, nullptr});
    on.clock.wall = time;
    on.grant.expires = NOW + 10'000;
    on.lease.notBefore = NOW - 1;
    EXPECT_EQ(on.admitted(), expected) << time - NOW;
  }
}

TEST(Admission, anotherTurnIsRefusedOnlyWhenTheOperationIsNew) {
  Presented on;
  on.grant.turn = kj::str("turn-2");
  EXPECT_EQ(on.admitted(), "admit: policy_denied");
}

TEST(Admission, betweenTurnsNothingIsAdmitted) {
  Presented on;
  on.session->endTurn();
  EXPECT_EQ(on.admitted(), "lease: no_active_turn");
  Presented next;
  EXPECT_EQ(admit(next.grant, *on.session, on.revocations, on.time).refusal().code,
            RefusalCode::NO_ACTIVE_TURN);
}

TEST(Admission, withoutALeaseNothingIsAdmitted) {
  Presented on;
  EXPECT_EQ(admit(on.grant, *on.session, on.revocations, on.time).refusal().code,
            RefusalCode::LEASE_MISSING);
}

TEST(Admission, aClockThatJumpedAdmitsReadsAndNoMutation) {
  Presented on({NOW, ledger::Moment{NOW, BOOT}});
  on.clock.wall = NOW + 60'001;
  EXPECT_EQ(on.admitted(), "mutation: clock_untrusted");
}

TEST(Admission, aClosedSessionAdmitsNothingNew) {
  Presented on;
  on.session->closed = true;
  EXPECT_EQ(on.admitted(), "lease: no_active_session");
  Presented later;
  EXPECT_EQ(later.admitted(), "ok");
  later.session->closed = true;
  Presented next;
  auto grant = next.matched();
  EXPECT_EQ(admit(grant->grant, *later.session, later.revocations, later.time).refusal().code,
            RefusalCode::NO_ACTIVE_SESSION);
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
