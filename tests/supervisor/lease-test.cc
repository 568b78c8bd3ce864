// What a lease opens, and everything that ends it. A grant alone does nothing, and a lease alone
// does nothing; no lease comes back to life.
#include "tests/support/workbench.h"

#include "ipc/bounds.h"

#include <gtest/gtest.h>

namespace praefectus::test {
namespace {

constexpr ActionClass CLASSES[] = {ActionClass::METADATA_READ,     ActionClass::SCREENSHOT_READ,
                                   ActionClass::POINTER_MUTATION,  ActionClass::KEYBOARD_MUTATION,
                                   ActionClass::SEMANTIC_MUTATION, ActionClass::FILE_MUTATION};
const attest::Classes SEMANTIC = {ActionClass::SEMANTIC_MUTATION};

// A session that has observed under a lease of one minute for everything, which then ended; what
// is opened from then on is opened by hand.
struct ByHand : Ready {
  explicit ByHand(const std::string& mode = "good") : Ready(mode) {
    leasing = false;
    session->leases.closeAll();
  }
  // Why it is refused, or "ok".
  std::string opens(attest::Classes classes, kj::StringPtr id = "by-hand", WindowRef target = {}) {
    auto asked = leaseFor(*session, classes, id);
    asked.target = target;
    return lease(*session, asked);
  }
  std::string press(kj::StringPtr operation) { return outcome(run(pressing(operation))); }
  std::string looks(kj::StringPtr id, const WindowRef& window = WINDOW) {
    return observing(*session, request(*session, look(window), id));
  }
};

// ---- Classes -----------------------------------------------------------------------------------

TEST(Lease, aLeaseForOneClassCoversNoOther) {
  SteppedClock clock;
  Frames frames(clock);
  ledger::Revocations revocations;
  const LeaseScope scope{frames, revocations, 0, 1'000};
  for (auto leased : CLASSES) {
    for (auto granted : CLASSES) {
      Leases leases;
      attest::Lease lease;
      lease.issuer = kj::str("host");
      lease.lease = kj::str("lease-1");
      lease.classes = {leased};
      lease.expires = 2'000;
      ASSERT_TRUE(leases.open(kj::mv(lease), {}, scope).ok());
      attest::Grant grant;
      grant.issuer = kj::str("host");
      grant.actionClass = granted;
      auto covering = leases.covering(grant, scope);
      EXPECT_EQ(covering.ok(), leased == granted);
      if (covering.ok()) continue;
      EXPECT_EQ(covering.refusal().code, RefusalCode::LEASE_MISSING);
    }
  }
}

// No kind of action is a file's, so that class has a column here and no row of its own.
TEST(Lease, aGrantOfOneClassIsServedUnderALeaseForThatClassAlone) {
  for (auto leased : CLASSES) {
    for (auto granted : CLASSES) {
      ByHand on("versatile");
      ASSERT_EQ(on.opens({leased}), "ok");
      Terms unproven{.proof = Proof::NONE};
      std::string said;
      auto acts = [&](Act act) {
        auto action = acting(on.seen, kj::mv(act), unproven);
        said = on.outcome(on.run(on.request(*on.session, action, "op-1")));
      };
      auto reads = [&](bool picture) {
        said = on.observing(*on.session, on.request(*on.session, look(WINDOW, picture), "op-1"));
      };
      auto before = on.record().size();
      switch (granted) {
        case ActionClass::METADATA_READ:
          reads(false);
          break;
        case ActionClass::SCREENSHOT_READ:
          reads(true);
          break;
        case ActionClass::POINTER_MUTATION:
          acts(ClickRequest());
          break;
        case ActionClass::KEYBOARD_MUTATION:
          acts(TypeTextRequest{kj::str("text")});
          break;
        case ActionClass::SEMANTIC_MUTATION:
          acts(InvokeRequest{kj::str("press")});
          break;
        case ActionClass::FILE_MUTATION:
          continue;
      }
      auto pair = std::string(nameOf(leased).cStr()) + " / " + nameOf(granted).cStr();
      if (leased == granted) {
        EXPECT_EQ(said.find("refused"), std::string::npos) << pair << ": " << said;
        EXPECT_NE(said, "lease_missing") << pair;
        EXPECT_GT(on.record().size(), before) << pair;
      } else {
        EXPECT_TRUE(said == "lease_missing" || said == "refused: lease_missing") << pair << said;
        EXPECT_EQ(on.record().size(), before) << pair << ": a helper was asked";
      }
    }
  }
}

TEST(Lease, oneLeaseMayOpenSeveralClasses) {
  ByHand on;
  ASSERT_EQ(on.opens({ActionClass::METADATA_READ, ActionClass::SEMANTIC_MUTATION}), "ok");
  EXPECT_EQ(on.looks("read"), "ok");
  EXPECT_EQ(on.press("op-1"), "refused: stale_epoch") << "covered, but the frame is an older one";
}

TEST(Lease, theReceiptNamesTheLeaseThatCoveredIt) {
  ByHand on;
  ASSERT_EQ(on.opens(SEMANTIC, "the-one"), "ok");
  EXPECT_EQ(on.receiptOf(*on.run(on.pressing("op-1"))).lease, "the-one"_kj);
}

// ---- Without one -------------------------------------------------------------------------------

TEST(Lease, ofSeveralTheOneThatEndsLastCoversAnOperation) {
  ByHand on;
  const std::pair<const char*, int64_t> lives[] = {
      {"middle", 20'000}, {"longest", 50'000}, {"shortest", 1'000}};
  for (auto& [id, life] : lives) {
    EXPECT_EQ(on.lease(*on.session, on.leaseFor(*on.session, SEMANTIC, id, life)), "ok");
  }
  EXPECT_EQ(on.receiptOf(*on.run(on.pressing("op-1"))).lease, "longest");
}

TEST(Lease, aGrantWithoutALeaseDoesNothingAndTheIdStaysUsable) {
  ByHand on;
  auto before = on.record().size();
  EXPECT_EQ(on.press("op-1"), "refused: lease_missing");
  EXPECT_EQ(on.looks("read"), "lease_missing");
  EXPECT_EQ(on.record().size(), before);
  EXPECT_EQ(on.known("op-1"), "unknown");
  ASSERT_EQ(on.opens(SEMANTIC), "ok");
  EXPECT_EQ(on.press("op-1"), "succeeded");
}

TEST(Lease, whatIsFreshAndNotApprovedIsRefusedAndWhatIsApprovedAndStaleToo) {
  ByHand on;
  EXPECT_EQ(on.press("op-1"), "refused: lease_missing") << "fresh";
  ASSERT_EQ(on.opens(SEMANTIC), "ok");
  on.session->frames.spend();
  EXPECT_EQ(on.press("op-1"), "refused: stale_frame") << "approved";
  EXPECT_EQ(on.effects(), 0u);
}

// ---- Whose it is -------------------------------------------------------------------------------

TEST(Lease, aLeaseThatIsNotForUsIsNotOpened) {
  struct Change {
    const char* name;
    std::function<void(attest::Lease&)> make;
    const char* expected = "policy_denied";
  };
  const Change changes[] = {
      {"another ledger", [](attest::Lease& lease) { lease.audience.key[0] ^= 1; }},
      {"another incarnation", [](attest::Lease& lease) { ++lease.audience.incarnation; }},
      {"another subject", [](attest::Lease& lease) { lease.subject = kj::str("uid:1"); }},
      {"another session", [](attest::Lease& lease) { lease.session = kj::str("session-2"); }},
      {"another turn", [](attest::Lease& lease) { lease.turn = kj::str("turn-2"); }},
      {"an unknown key", [](attest::Lease& lease) { lease.keyId = kj::str("0123456789abcdef"); }},
      {"an unknown issuer", [](attest::Lease& lease) { lease.issuer = kj::str("guest"); }},
      {"another policy", [](attest::Lease& lease) { ++lease.policyGeneration; }},
      {"the future", [](attest::Lease& lease) { lease.notBefore += 1, lease.expires += 1; }},
      {"the past",
       [](attest::Lease& lease) { lease.notBefore -= 60'000, lease.expires -= 60'000; }},
      {"too long", [](attest::Lease& lease) { ++lease.expires; }, "malformed"},
      {"no class", [](attest::Lease& lease) { lease.classes = {}; }, "malformed"},
  };
  ByHand on;
  for (auto& change : changes) {
    auto asked = on.leaseFor(*on.session, SEMANTIC, "lease-1");
    change.make(asked);
    EXPECT_EQ(on.lease(*on.session, asked), change.expected) << change.name;
    EXPECT_EQ(on.press("op-1"), "refused: lease_missing") << change.name;
  }
}

TEST(Lease, aTamperedLeaseIsNotOpened) {
  ByHand on;
  for (bool body : {false, true}) {
    auto sealed = on.seal(on.leaseFor(*on.session, SEMANTIC, "lease-1"));
    (body ? sealed.body.back() : sealed.signature[0]) ^= 1;
    auto opened = on.supervisor().openLease(*on.session, kj::mv(sealed));
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.refusal().code, RefusalCode::POLICY_DENIED);
  }
  EXPECT_EQ(on.press("op-1"), "refused: lease_missing");
}

TEST(Lease, aGrantIsNoLease) {
  ByHand on;
  auto grant = on.pressing("op-1").grant.clone();
  auto opened = on.supervisor().openLease(*on.session, kj::mv(grant));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.refusal().code, RefusalCode::POLICY_DENIED);
}

TEST(Lease, aLeaseOfOneSessionOpensNothingInAnother) {
  ByHand on;
  auto other = on.open("session-2");
  ASSERT_EQ(on.opens({ActionClass::METADATA_READ}), "ok");
  EXPECT_EQ(on.observing(*other, on.request(*other, look(), "read")), "lease_missing");
}

// ---- How many ----------------------------------------------------------------------------------

TEST(Lease, sixtyFourAreOpenAndTheNextIsBusyUntilOneHasEnded) {
  ByHand on;
  auto first = on.leaseFor(*on.session, SEMANTIC, "short", 1'000);
  ASSERT_EQ(on.lease(*on.session, first), "ok");
  for (size_t i = 1; i < bounds::LEASES; ++i) ASSERT_EQ(on.opens(SEMANTIC, kj::str("l-", i)), "ok");
  EXPECT_EQ(on.opens(SEMANTIC, "one-more"), "busy");
  EXPECT_EQ(on.opens(SEMANTIC, "l-1"), "ok") << "it is open already";
  on.pass(1 * kj::SECONDS);
  EXPECT_EQ(on.opens(SEMANTIC, "one-more"), "ok");
  EXPECT_EQ(on.opens(SEMANTIC, "and-another"), "busy");
}

TEST(Lease, theSameLeaseAgainChangesNothingAndAnotherOfItsIdIsAConflict) {
  ByHand on;
  auto asked = on.leaseFor(*on.session, SEMANTIC, "lease-1");
  for (size_t i = 0; i <= bounds::LEASES; ++i) EXPECT_EQ(on.lease(*on.session, asked), "ok");
  asked.classes = EVERYTHING;
  EXPECT_EQ(on.lease(*on.session, asked), "operation_conflict");
  EXPECT_EQ(on.looks("read"), "lease_missing") << "it did not widen the first";
}

// ---- Its target --------------------------------------------------------------------------------

TEST(Lease, aLeaseForAWindowServesThatWindowOfThatProcessAlone) {
  auto reborn = WINDOW, elsewhere = WINDOW;
  ++reborn.process.start;
  ++elsewhere.process.pid;
  ByHand on;
  ASSERT_EQ(on.opens({ActionClass::METADATA_READ}, "lease-1", WINDOW), "ok");
  EXPECT_EQ(on.looks("other", OTHER_WINDOW), "lease_missing");
  EXPECT_EQ(on.looks("reborn", reborn), "lease_missing");
  EXPECT_EQ(on.looks("elsewhere", elsewhere), "lease_missing");
  EXPECT_EQ(on.listing(*on.session, on.request(*on.session, survey(), "list")), "lease_missing");
  EXPECT_EQ(on.count("observe "), 1u) << "what the session began with";
  EXPECT_EQ(on.looks("same"), "ok");
}

TEST(Lease, aLeaseForAProcessServesAllWindowsOfThatVeryProcess) {
  auto reborn = WINDOW, process = WINDOW;
  ++reborn.process.start;
  process.window = 0;
  ByHand on;
  ASSERT_EQ(on.opens({ActionClass::METADATA_READ}, "lease-1", process), "ok");
  EXPECT_EQ(on.looks("one"), "ok");
  EXPECT_EQ(on.looks("two", OTHER_WINDOW), "ok");
  EXPECT_EQ(on.looks("reborn", reborn), "lease_missing");
  EXPECT_EQ(on.listing(*on.session, on.request(*on.session, survey(), "list")), "lease_missing");
}

TEST(Lease, aLeaseForTheDesktopServesAllOfIt) {
  ByHand on;
  ASSERT_EQ(on.opens({ActionClass::METADATA_READ}), "ok");
  EXPECT_EQ(on.looks("one"), "ok");
  EXPECT_EQ(on.looks("two", OTHER_WINDOW), "ok");
  EXPECT_EQ(on.listing(*on.session, on.request(*on.session, survey(), "list")), "ok");
}

// ---- Its frame ---------------------------------------------------------------------------------

struct InFrame : ByHand {
  explicit InFrame(const std::string& mode = "good") : ByHand(mode) {
    bound = leaseFor(*session, EVERYTHING, "in-frame");
    bound.frame = seen.frame.id;
  }
  std::string opensIt() { return lease(*session, bound); }
  attest::Lease bound;
};

TEST(Lease, aLeaseForAFrameServesAnActionOfItEvenAsThatSpendsTheFrame) {
  InFrame on;
  ASSERT_EQ(on.opensIt(), "ok");
  auto receipt = on.receiptOf(*on.run(on.pressing("op-1")));
  EXPECT_EQ(receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_EQ(receipt.lease, "in-frame"_kj);
}

TEST(Lease, aLeaseForAFrameEndsWhenAnActionHasSpentIt) {
  InFrame on;
  ASSERT_EQ(on.opensIt(), "ok");
  auto later = on.pressing("op-2");
  on.run(on.pressing("op-1"));
  EXPECT_EQ(on.outcome(on.run(later)), "refused: lease_missing");
  EXPECT_EQ(on.opensIt(), "stale_frame") << "and is not opened again";
}

TEST(Lease, aLeaseForAFrameEndsWithANewerObservation) {
  InFrame on;
  ASSERT_EQ(on.opensIt(), "ok");
  EXPECT_EQ(on.looks("look-1"), "ok") << "a read of no frame is served while the frame is current";
  EXPECT_EQ(on.looks("look-2"), "lease_missing");
  EXPECT_EQ(on.press("op-1"), "refused: lease_missing");
  EXPECT_EQ(on.opensIt(), "stale_frame");
}

TEST(Lease, aLeaseForAFrameEndsWhenTheFrameIsTooOld) {
  InFrame on;
  ASSERT_EQ(on.opensIt(), "ok");
  on.pass(30 * kj::SECONDS);
  EXPECT_EQ(on.press("op-1"), "refused: lease_missing");
  EXPECT_EQ(on.opensIt(), "stale_frame");
}

TEST(Lease, aLeaseForAFrameThatWasNeverDrawnHereIsStale) {
  InFrame on;
  KJ_ASSERT_NONNULL(on.bound.frame)[0] ^= 1;
  EXPECT_EQ(on.opensIt(), "stale_frame");
}

// ---- What ends it ------------------------------------------------------------------------------

TEST(Lease, theEndOfItsTurnEndsIt) {
  ByHand on;
  auto asked = on.leaseFor(*on.session, EVERYTHING, "lease-1");
  ASSERT_EQ(on.lease(*on.session, asked), "ok");
  on.supervisor().endTurn(*on.session);
  EXPECT_EQ(on.lease(*on.session, asked), "no_active_turn");
  ASSERT_TRUE(on.supervisor().beginTurn(*on.session, kj::str("turn-2")).ok());
  EXPECT_EQ(on.looks("read"), "lease_missing");
  EXPECT_EQ(on.lease(*on.session, asked), "policy_denied") << "it was for that turn";
}

TEST(Lease, theBeginningOfAnotherTurnEndsIt) {
  ByHand on;
  ASSERT_EQ(on.opens(EVERYTHING), "ok");
  ASSERT_TRUE(on.supervisor().beginTurn(*on.session, kj::str("turn-2")).ok());
  EXPECT_EQ(on.looks("read"), "lease_missing");
  EXPECT_EQ(on.press("op-1"), "refused: lease_missing");
}

TEST(Lease, theEndOfItsSessionEndsItForTheNextOneOfThatNameToo) {
  ByHand on;
  auto asked = on.leaseFor(*on.session, EVERYTHING, "lease-1");
  ASSERT_EQ(on.lease(*on.session, asked), "ok");
  on.supervisor().close(*on.session);
  auto again = on.supervisor().open(kj::str("session-1"));
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(on.supervisor().beginTurn(**again, kj::str("turn-1")).ok());
  EXPECT_EQ(on.lease(**again, asked), "no_active_turn");
  ASSERT_TRUE(on.supervisor().beginTurn(**again, kj::str("turn-2")).ok());
  EXPECT_EQ(on.lease(**again, asked), "policy_denied") << "it was for that turn";
  EXPECT_EQ(on.observing(**again, on.request(**again, look(), "read")), "lease_missing");
}

// The turns that had begun are forgotten with the supervisor that began them.
TEST(Lease, theEndOfItsSupervisorEndsItForTheNextOneToo) {
  ByHand on;
  auto asked = on.leaseFor(*on.session, EVERYTHING, "lease-1");
  ASSERT_EQ(on.lease(*on.session, asked), "ok");
  on.pass(1 * kj::MILLISECONDS);
  on.restart();
  auto again = on.open();
  EXPECT_EQ(on.lease(*again, asked), "policy_denied");
  EXPECT_EQ(on.observing(*again, on.request(*again, look(), "look-1")), "lease_missing");
  EXPECT_EQ(on.lease(*again, on.leaseFor(*again, EVERYTHING, "lease-1")), "ok") << "signed anew";
  EXPECT_EQ(on.observing(*again, on.request(*again, look(), "look-2")), "ok");
}

TEST(Lease, theEndOfTheHelperThatItWasOpenedUnderEndsItForGood) {
  ByHand on;
  auto asked = on.leaseFor(*on.session, EVERYTHING, "lease-1");
  ASSERT_EQ(on.lease(*on.session, asked), "ok");
  on.killNoticed(*on.session);
  EXPECT_EQ(on.looks("look-1"), "lease_missing");
  EXPECT_EQ(on.lease(*on.session, asked), "lease_missing") << "signed once, opened once";
  EXPECT_EQ(on.opens(EVERYTHING, "lease-2"), "ok");
  EXPECT_EQ(on.looks("look-1"), "ok") << "by another helper";
  EXPECT_EQ(on.lease(*on.session, asked), "lease_missing");
  EXPECT_EQ(on.helpers().starts, 2u);
}

TEST(Lease, leasesThatEndedWithTheirHelperDoNotCountAsOpen) {
  ByHand on;
  for (size_t i = 0; i < bounds::LEASES; ++i) ASSERT_EQ(on.opens(SEMANTIC, kj::str("l-", i)), "ok");
  on.killNoticed(*on.session);
  EXPECT_EQ(on.opens(SEMANTIC, "after"), "ok");
}

TEST(Lease, oneThatWasOpenedBeforeAnyHelperRanServesTheFirstOne) {
  Workbench on;
  on.leasing = false;
  auto session = on.open();
  ASSERT_EQ(on.lease(*session, on.leaseFor(*session, EVERYTHING, "lease-1")), "ok");
  EXPECT_EQ(on.observing(*session, on.request(*session, look(), "read")), "ok");
}

TEST(Lease, itsRevocationEndsIt) {
  ByHand on;
  auto asked = on.leaseFor(*on.session, EVERYTHING, "lease-1");
  ASSERT_EQ(on.lease(*on.session, asked), "ok");
  attest::Revocation revocation;
  revocation.revocation = kj::str("revocation-1");
  revocation.what = attest::RevokedLease{kj::str("lease-1")};
  ASSERT_EQ(on.revoke(on.seal(kj::mv(revocation))), "ok");
  EXPECT_EQ(on.looks("read"), "revoked");
  EXPECT_EQ(on.lease(*on.session, asked), "revoked");
  EXPECT_EQ(on.opens(EVERYTHING, "lease-2"), "ok");
  EXPECT_EQ(on.looks("read"), "ok");
}

TEST(Lease, oneWithAMutationLivesForAMinuteAndOneForReadsForFive) {
  struct Life {
    attest::Classes classes;
    int64_t ms;
  };
  const Life lives[] = {{EVERYTHING, 60'000},
                        {{ActionClass::METADATA_READ, ActionClass::SCREENSHOT_READ}, 300'000}};
  for (auto& life : lives) {
    ByHand on;
    EXPECT_EQ(on.lease(*on.session, on.leaseFor(*on.session, life.classes, "l-1", life.ms + 1)),
              "malformed");
    auto asked = on.leaseFor(*on.session, life.classes, "l-1", life.ms);
    ASSERT_EQ(on.lease(*on.session, asked), "ok");
    on.pass((life.ms - 1) * kj::MILLISECONDS);
    EXPECT_EQ(on.looks("look-1"), "ok");
    on.pass(1 * kj::MILLISECONDS);
    EXPECT_EQ(on.looks("look-2"), "lease_missing");
    EXPECT_EQ(on.lease(*on.session, asked), "policy_denied") << "expired";
  }
}

TEST(Lease, aWallClockThatIsSetBackDoesNotBringAnExpiredOneBack) {
  ByHand on;
  ASSERT_EQ(on.lease(*on.session, on.leaseFor(*on.session, EVERYTHING, "lease-1", 10'000)), "ok");
  on.pass(10 * kj::SECONDS);
  EXPECT_EQ(on.looks("read"), "lease_missing");
  on.clock.wall -= 30'000;
  EXPECT_EQ(on.looks("read"), "lease_missing");
}

// A read is admitted when it is asked for and again when its turn has come.
TEST(Lease, aReadInTheQueueWhoseLeaseEndsMeanwhileIsNotDone) {
  Ready on("waits-in-prepare");
  auto acting = on.begin(*on.session, on.pressing("op-1"));
  on.await("prepare ");
  auto reading = on.beginObserving(*on.session, on.request(*on.session, look(), "read"));
  on.session->leases.closeAll();
  on.signal(on.pids()[0]);
  EXPECT_EQ(on.outcome(on.wait(kj::mv(acting))), "refused: lease_missing");
  auto seen = on.wait(kj::mv(reading));
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::LEASE_MISSING);
  EXPECT_EQ(on.count("observe "), 1u);
}

// ---- Two issuers -------------------------------------------------------------------------------

TEST(Lease, oneIssuersLeaseServesNoOtherIssuersGrantWhateverItsName) {
  SteppedClock clock;
  Frames frames(clock);
  ledger::Revocations revocations;
  const LeaseScope scope{frames, revocations, 0, 1'000};
  Leases leases;
  attest::Lease lease;
  lease.issuer = kj::str("one");
  lease.lease = kj::str("lease-1");
  lease.classes = SEMANTIC;
  lease.expires = 2'000;
  ASSERT_TRUE(leases.open(kj::mv(lease), {}, scope).ok());
  attest::Grant grant;
  grant.issuer = kj::str("other");
  grant.actionClass = ActionClass::SEMANTIC_MUTATION;
  EXPECT_FALSE(leases.covering(grant, scope).ok());
  EXPECT_TRUE(leases.isOpen("one", "lease-1", scope));
  EXPECT_FALSE(leases.isOpen("other", "lease-1", scope));
}

}  // namespace
}  // namespace praefectus::test
