// What the supervisor and its ledger sign: receipts that do not contradict themselves, refusals,
// events, and the chain that they stand in.
#include "tests/attest/bodies.h"

#include <gtest/gtest.h>

#include <string>

namespace praefectus::attest {
namespace {

std::string open(const Envelope& envelope) {
  return outcome(openReceipt(receiptKey().publicKey(), envelope));
}

template <typename Edit>
std::string receiptWith(Edit&& change) {
  auto receipt = sampleReceipt();
  change(receipt);
  return open(seal(receipt, receiptKey()));
}

// A receipt that nothing was sent for.
void becomes(Receipt& receipt, Terminal terminal) {
  receipt.terminal = terminal;
  receipt.effect = Effect::NONE;
  receipt.route = Route::NONE;
  receipt.evidence = {Verdict::UNKNOWN, Method::NONE, Source::SAME_PROCESS, 0, 0};
  receipt.context = ContextState::UNWATCHED;
  if (terminal == Terminal::REJECTED) receipt.refusal = RefusalCode::TARGET_CHANGED;
}

void becomesUnknown(Receipt& receipt) {
  receipt.terminal = Terminal::OUTCOME_UNKNOWN;
  receipt.effect = Effect::UNKNOWN;
}

class ReceiptTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialize(); }
};

TEST_F(ReceiptTest, aRefusalIsKeptEvenWhenItsNumberIsZero) {
  auto receipt = sampleReceipt();
  becomes(receipt, Terminal::REJECTED);
  receipt.refusal = RefusalCode::PERMISSION_MISSING;
  auto got = openReceipt(receiptKey().publicKey(), seal(receipt, receiptKey()));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(KJ_ASSERT_NONNULL(got->refusal), RefusalCode::PERMISSION_MISSING);
}

TEST_F(ReceiptTest, anAuditorNeedsTheVeryKeyThatSigned) {
  auto envelope = seal(sampleReceipt(), receiptKey());
  EXPECT_EQ(open(envelope), "ok");
  EXPECT_EQ(outcome(openReceipt(issuerKey().publicKey(), envelope)), "policy_denied");
  EXPECT_EQ(receiptWith([](Receipt& r) { r.keyId = kj::str("0123456789abcdef"); }),
            "policy_denied");
  EXPECT_EQ(receiptWith([](Receipt& r) { r.issuer = kj::str("host"); }), "policy_denied");
}

TEST_F(ReceiptTest, placesAndTimesHaveBounds) {
  using Edit = void (*)(Receipt&);
  std::pair<const char*, Edit> broken[] = {
      {"incarnation", [](Receipt& r) { r.ledger.incarnation = 0; }},
      {"policyGeneration", [](Receipt& r) { r.policyGeneration = 0; }},
      {"sequence", [](Receipt& r) { r.sequence = 0; }},
      {"claimedAt", [](Receipt& r) { r.claimedAt = -1; }},
      {"settledAt", [](Receipt& r) { r.settledAt = -1; }},
      {"units", [](Receipt& r) { r.evidence.unitsDone = 2; }},
  };
  for (auto& [name, change] : broken) EXPECT_EQ(receiptWith(change), "malformed") << name;
  EXPECT_EQ(receiptWith([](Receipt& r) { r.sequence = 1; }), "ok");
  // The wall clock may have been set back between the two.
  EXPECT_EQ(receiptWith([](Receipt& r) { r.settledAt = r.claimedAt - 1000; }), "ok");
}

TEST_F(ReceiptTest, warningsAreBounded) {
  auto with = [](size_t count) {
    return receiptWith([&](Receipt& r) {
      for (size_t i = 0; i < count; ++i) r.warnings.add(Warning::UNVERIFIED);
    });
  };
  EXPECT_EQ(with(16), "ok");
  EXPECT_EQ(with(17), "malformed");
}

TEST_F(ReceiptTest, aHelperIsNamedExactlyWhenOneWasInvolved) {
  EXPECT_EQ(receiptWith([](Receipt& r) { r.helper.generation = 0; }), "malformed");
  EXPECT_EQ(receiptWith([](Receipt& r) { r.helper.name = kj::str(""); }), "malformed");
  EXPECT_EQ(receiptWith([](Receipt& r) {
              becomes(r, Terminal::EXPIRED_BEFORE_EFFECT);
              r.helper = HelperIdentity();
            }),
            "ok");
}

TEST_F(ReceiptTest, aSuccessIsBorneOut) {
  using Edit = void (*)(Receipt&);
  std::tuple<const char*, Edit, const char*> rows[] = {
      {"as it is", [](Receipt&) {}, "ok"},
      {"sent, no proof asked for",
       [](Receipt& r) {
         r.proof = Proof::NONE;
         r.effect = Effect::EXECUTED_UNVERIFIED;
         r.evidence.verdict = Verdict::UNVERIFIABLE;
       },
       "ok"},
      {"found though no proof was asked for", [](Receipt& r) { r.proof = Proof::NONE; }, "ok"},
      {"permitted to disturb", [](Receipt& r) { r.context = ContextState::PERMITTED; }, "ok"},
      {"unverified is not verified", [](Receipt& r) { r.evidence.verdict = Verdict::UNVERIFIABLE; },
       "malformed"},
      {"partial is no success", [](Receipt& r) { r.evidence.verdict = Verdict::PARTIAL; },
       "malformed"},
      {"a suspected no-op is none",
       [](Receipt& r) { r.evidence.verdict = Verdict::SUSPECTED_NOOP; }, "malformed"},
      {"unknown is none", [](Receipt& r) { r.evidence.verdict = Verdict::UNKNOWN; }, "malformed"},
      {"nor without an effect", [](Receipt& r) { r.effect = Effect::NONE; }, "malformed"},
      {"nor with an unknown one", [](Receipt& r) { r.effect = Effect::UNKNOWN; }, "malformed"},
      {"nor when nothing was sent", [](Receipt& r) { r.route = Route::NONE; }, "malformed"},
      {"nor over a breached context", [](Receipt& r) { r.context = ContextState::BREACHED; },
       "malformed"},
      {"nor with a refusal", [](Receipt& r) { r.refusal = RefusalCode::TIMEOUT; }, "malformed"},
      {"nor unclaimed", [](Receipt& r) { r.claimedAt = 0; }, "malformed"},
      {"nor to be repeated", [](Receipt& r) { r.retrySafe = true; }, "malformed"},
  };
  for (auto& [name, change, expected] : rows) EXPECT_EQ(receiptWith(change), expected) << name;
}

TEST_F(ReceiptTest, whereNothingWasSentNothingHappened) {
  for (auto terminal : {Terminal::REJECTED, Terminal::FAILED, Terminal::CANCELLED_BEFORE_EFFECT,
                        Terminal::EXPIRED_BEFORE_EFFECT}) {
    auto name = nameOf(terminal);
    EXPECT_EQ(receiptWith([&](Receipt& r) {
                becomes(r, terminal);
                r.retrySafe = true;
              }),
              "ok")
        << name.cStr();
    EXPECT_EQ(receiptWith([&](Receipt& r) {
                becomes(r, terminal);
                r.claimedAt = 0;
              }),
              "ok")
        << name.cStr();
    for (auto effect : {Effect::VERIFIED, Effect::EXECUTED_UNVERIFIED, Effect::UNKNOWN}) {
      EXPECT_EQ(receiptWith([&](Receipt& r) {
                  becomes(r, terminal);
                  r.effect = effect;
                }),
                "malformed")
          << name.cStr();
    }
    EXPECT_EQ(receiptWith([&](Receipt& r) {
                becomes(r, terminal);
                r.route = Route::ACCESSIBILITY;
              }),
              "malformed")
        << name.cStr();
  }
}

TEST_F(ReceiptTest, aRejectionSaysWhy) {
  EXPECT_EQ(receiptWith([](Receipt& r) {
              becomes(r, Terminal::REJECTED);
              r.refusal = nullptr;
            }),
            "malformed");
}

TEST_F(ReceiptTest, aRefusalCodeWithoutTheMarkIsHiddenContent) {
  EXPECT_EQ(outcomeWith<wire::Receipt>(
                "receipt", [](wire::Receipt::Builder r) { r.setRefusal(RefusalCode::TIMEOUT); }),
            "malformed");
}

TEST_F(ReceiptTest, onlyWhoAskedForNoProofGetsAnUnverifiedSuccess) {
  for (auto proof : {Proof::STRONGEST, Proof::NONE, Proof::VALUE, Proof::STATE, Proof::APPEARS,
                     Proof::DISAPPEARS, Proof::REGION_CHANGED}) {
    auto as = [&](Effect effect, Verdict verdict) {
      return receiptWith([&](Receipt& r) {
        r.proof = proof;
        r.effect = effect;
        r.evidence.verdict = verdict;
      });
    };
    EXPECT_EQ(as(Effect::VERIFIED, Verdict::CONFIRMED), "ok") << nameOf(proof).cStr();
    EXPECT_EQ(as(Effect::EXECUTED_UNVERIFIED, Verdict::UNVERIFIABLE),
              proof == Proof::NONE ? "ok" : "malformed")
        << nameOf(proof).cStr();
  }
}

TEST_F(ReceiptTest, aDisturbanceIsPermittedByRightsAlone) {
  auto permitted = [](Mode mode, Rights rights) {
    return receiptWith([&](Receipt& r) {
      r.mode = mode;
      r.rights = rights;
      r.context = ContextState::PERMITTED;
    });
  };
  EXPECT_EQ(permitted(Mode::INTERACTIVE, {.focus = true}), "ok");
  EXPECT_EQ(permitted(Mode::INTERACTIVE, {.userPointer = true}), "ok");
  EXPECT_EQ(permitted(Mode::INTERACTIVE, {}), "malformed");
  EXPECT_EQ(permitted(Mode::INTERACTIVE, {.ownPointer = true, .irreversible = true}), "malformed");
  EXPECT_EQ(permitted(Mode::BACKGROUND_ONLY, {.focus = true, .userPointer = true}), "malformed");
  // What was not permitted is never a success, whatever the rights.
  EXPECT_EQ(receiptWith([](Receipt& r) {
              r.rights = {.focus = true, .ownPointer = true, .userPointer = true};
              r.context = ContextState::BREACHED;
            }),
            "malformed");
}

TEST_F(ReceiptTest, itsBodyCanBeMadeAgainFromItsFields) {
  for (auto& receipt : {sampleReceipt(), sampleRejection()}) {
    EXPECT_EQ(bodyOf(receipt), seal(receipt, receiptKey()).body);
  }
}

TEST_F(ReceiptTest, anUnknownOutcomeIsNeverSafeToRepeat) {
  EXPECT_EQ(receiptWith(becomesUnknown), "ok");
  EXPECT_EQ(receiptWith([](Receipt& r) {
              becomesUnknown(r);
              r.retrySafe = true;
            }),
            "malformed");
  for (auto effect : {Effect::NONE, Effect::VERIFIED, Effect::EXECUTED_UNVERIFIED}) {
    EXPECT_EQ(receiptWith([&](Receipt& r) {
                becomesUnknown(r);
                r.effect = effect;
              }),
              "malformed");
  }
  // Recovery knows neither the way nor the evidence.
  EXPECT_EQ(receiptWith([](Receipt& r) {
              becomesUnknown(r);
              r.route = Route::NONE;
              r.evidence = Evidence();
              r.context = ContextState::UNWATCHED;
              r.warnings.add(Warning::RECOVERED);
            }),
            "ok");
}

// ---- Refusals

TEST_F(ReceiptTest, aRefusalSaysThatNothingWasSentUnlessNobodyKnows) {
  for (uint16_t i = 0; i < capnp::Schema::from<RefusalCode>().getEnumerants().size(); ++i) {
    auto code = static_cast<RefusalCode>(i);
    bool unknown = code == RefusalCode::OUTCOME_UNKNOWN || code == RefusalCode::LEDGER_POISONED ||
                   code == RefusalCode::OPERATION_ARCHIVED || code == RefusalCode::RECORD_DAMAGED;
    for (bool dispatched : {false, true}) {
      EXPECT_EQ(outcomeWith<wire::Refused>("refused",
                                           [&](wire::Refused::Builder r) {
                                             r.setCode(code);
                                             r.setDispatched(dispatched);
                                           }),
                dispatched == unknown ? "ok" : "malformed")
          << nameOf(code).cStr();
    }
  }
}

TEST_F(ReceiptTest, aRefusalHasAPlaceAndATime) {
  auto with = [](uint64_t sequence, int64_t at) {
    return outcomeWith<wire::Refused>("refused", [=](wire::Refused::Builder r) {
      r.setSequence(sequence);
      r.setAt(at);
    });
  };
  EXPECT_EQ(with(1, 0), "ok");
  EXPECT_EQ(with(0, 0), "malformed");
  EXPECT_EQ(with(1, -1), "malformed");
}

// ---- Events

template <typename Edit>
std::string event(const std::string& which, Edit&& edit) {
  return outcomeWith<wire::LedgerEvent>("event/" + which, edit);
}

TEST_F(ReceiptTest, anEventHasAPlaceAndATime) {
  using Event = wire::LedgerEvent::Builder;
  EXPECT_EQ(event("started", [](Event e) { e.setSequence(0); }), "malformed");
  EXPECT_EQ(event("started", [](Event e) { e.setSequence(1); }), "ok");
  EXPECT_EQ(event("started", [](Event e) { e.setAt(-1); }), "malformed");
  EXPECT_EQ(event("started", [](Event e) { e.setAt(0); }), "ok");
}

TEST_F(ReceiptTest, aLedgerIsCreatedOnceAtItsFirstPlace) {
  using Event = wire::LedgerEvent::Builder;
  EXPECT_EQ(event("created", [](Event e) { e.setSequence(2); }), "malformed");
  EXPECT_EQ(event("created", [](Event e) { e.getLedger().setIncarnation(2); }), "malformed");
}

TEST_F(ReceiptTest, anAdoptedLedgerLivesAgain) {
  using Event = wire::LedgerEvent::Builder;
  EXPECT_EQ(event("adopted", [](Event e) { e.getLedger().setIncarnation(1); }), "malformed");
  EXPECT_EQ(event("adopted", [](Event e) { e.getLedger().setIncarnation(3); }), "ok");
}

TEST_F(ReceiptTest, aClockReadingHasAWallTime) {
  using Event = wire::LedgerEvent::Builder;
  EXPECT_EQ(event("started", [](Event e) { e.getStarted().setWallMs(0); }), "malformed");
  EXPECT_EQ(event("started", [](Event e) { e.getStarted().setWallMs(1); }), "ok");
  EXPECT_EQ(event("started", [](Event e) { e.getStarted().setBootMs(0); }), "ok");
  EXPECT_EQ(event("clock-accepted", [](Event e) { e.getClockAccepted().setWallMs(-1); }),
            "malformed");
}

TEST_F(ReceiptTest, anEventSpeaksOfPlacesBeforeItsOwn) {
  using Event = wire::LedgerEvent::Builder;
  for (auto [place, expected] : {std::pair<uint64_t, const char*>{0, "malformed"},
                                 {1, "ok"},
                                 {10, "ok"},
                                 {11, "malformed"},
                                 {12, "malformed"}}) {
    auto at = place;
    EXPECT_EQ(event("quarantined", [=](Event e) { e.setQuarantined(at); }), expected) << at;
    EXPECT_EQ(event("archived", [=](Event e) { e.getArchived().setThrough(at); }), expected) << at;
  }
}

TEST_F(ReceiptTest, aRevocationInAnEventHasTheFormOfAnEnvelope) {
  using Event = wire::LedgerEvent::Builder;
  EXPECT_EQ(event("revoked", [](Event e) { e.initRevoked(); }), "malformed");
  EXPECT_EQ(event("revoked", [](Event e) { e.getRevoked().disownBody(); }), "malformed");
  EXPECT_EQ(event("revoked", [](Event e) { e.getRevoked().initSignature(63); }), "malformed");
  // It comes out as the very envelope that went in.
  auto opened = openEvent(receiptKey().publicKey(), bodyNamed("event/revoked").sample());
  auto& inside = opened->what.get<Envelope>();
  auto revocation = openRevocation(sampleRing(), inside);
  ASSERT_TRUE(revocation.ok());
  EXPECT_EQ(revocation->what.get<RevokedOperation>().operation, "operation-1");
}

// ---- The chain

TEST_F(ReceiptTest, everyPartOfALinkCounts) {
  Head head{7, digestOf("a link"_kj.asBytes())};
  auto content = digestOf("a body"_kj.asBytes());
  auto link = extend(head, Step::ENDING, "operation-1", content);
  EXPECT_EQ(link.sequence, 8u);
  EXPECT_EQ(extend(head, Step::ENDING, "operation-1", content), link);
  Hash others[] = {
      extend({8, head.link}, Step::ENDING, "operation-1", content).link,
      extend({7, content}, Step::ENDING, "operation-1", content).link,
      extend(head, Step::CLAIM, "operation-1", content).link,
      extend(head, Step::EVENT, "operation-1", content).link,
      extend(head, Step::ENDING, "operation-2", content).link,
      extend(head, Step::ENDING, "", content).link,
      extend(head, Step::ENDING, "operation-1", head.link).link,
  };
  for (auto& other : others) EXPECT_NE(other, link.link);
}

TEST_F(ReceiptTest, aLinkIsTheDigestThatTheSchemaStates) {
  Head head{7, digestOf("a link"_kj.asBytes())};
  auto content = digestOf("a body"_kj.asBytes());
  kj::Vector<kj::byte> bytes;
  auto number = [&](uint64_t n) {
    for (int i = 0; i < 8; ++i) bytes.add(static_cast<kj::byte>(n >> (8 * i)));
  };
  bytes.addAll(bytesOf(head.link));
  number(8);
  number(6);
  bytes.addAll("ending"_kj.asBytes());
  number(11);
  bytes.addAll("operation-1"_kj.asBytes());
  bytes.addAll(bytesOf(content));
  EXPECT_EQ(extend(head, Step::ENDING, "operation-1", content).link,
            labelledDigest("praefectus/link/v1", bytes));
}

TEST_F(ReceiptTest, aReceiptSaysWhereTheChainStandsAfterIt) {
  auto receipt = sampleReceipt();
  auto body = bodyOf(receipt);
  EXPECT_EQ(headAfter(receipt, body),
            extend({2, receipt.previous}, Step::ENDING, "operation-1", digestOf(body)));
}

}  // namespace
}  // namespace praefectus::attest
