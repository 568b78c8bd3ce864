#include "attest/signed.h"
#include "ipc/bounds.h"
#include "ipc/canonical.h"
#include "tests/attest/samples.h"
#include "tests/ipc/refusals.h"

#include <gtest/gtest.h>

#include <string>

namespace praefectus::attest {
namespace {

std::string open(const Envelope& envelope) {
  return outcome(openReceipt(receiptKey().publicKey(), envelope));
}

template <typename Change>
std::string outcomeWith(Change&& change) {
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

TEST_F(ReceiptTest, whatWasSealedIsWhatIsOpened) {
  auto said = sampleReceipt();
  said.warnings.add(Warning::CONTROL_DECLINED);
  said.warnings.add(Warning::LATE_AFTER_DISPATCH);
  auto result = openReceipt(receiptKey().publicKey(), seal(said, receiptKey()));
  ASSERT_TRUE(result.ok()) << result.refusal().detail.cStr();
  auto& got = *result;
  EXPECT_EQ(got.issuer, said.issuer);
  EXPECT_EQ(got.keyId, said.keyId);
  EXPECT_EQ(got.ledger, said.ledger);
  EXPECT_EQ(got.operation, said.operation);
  EXPECT_EQ(got.actionHash, said.actionHash);
  EXPECT_EQ(got.actionClass, said.actionClass);
  EXPECT_EQ(got.kind, said.kind);
  EXPECT_EQ(got.grantIssuer, said.grantIssuer);
  EXPECT_EQ(got.grantKeyId, said.grantKeyId);
  EXPECT_EQ(got.grantHash, said.grantHash);
  EXPECT_EQ(got.subject, said.subject);
  EXPECT_EQ(got.session, said.session);
  EXPECT_EQ(got.turn, said.turn);
  EXPECT_EQ(got.helper.name, said.helper.name);
  EXPECT_EQ(got.helper.release, said.helper.release);
  EXPECT_EQ(got.helper.digest, said.helper.digest);
  EXPECT_EQ(got.helper.generation, said.helper.generation);
  EXPECT_EQ(got.route, said.route);
  EXPECT_EQ(got.terminal, said.terminal);
  EXPECT_EQ(got.effect, said.effect);
  EXPECT_TRUE(got.refusal == nullptr);
  EXPECT_EQ(got.retrySafe, said.retrySafe);
  EXPECT_EQ(got.evidence.verdict, said.evidence.verdict);
  EXPECT_EQ(got.evidence.method, said.evidence.method);
  EXPECT_EQ(got.evidence.source, said.evidence.source);
  EXPECT_EQ(got.evidence.unitsDone, said.evidence.unitsDone);
  EXPECT_EQ(got.evidence.unitsAsked, said.evidence.unitsAsked);
  EXPECT_EQ(got.context, said.context);
  ASSERT_EQ(got.warnings.size(), 2u);
  EXPECT_EQ(got.warnings[0], Warning::CONTROL_DECLINED);
  EXPECT_EQ(got.warnings[1], Warning::LATE_AFTER_DISPATCH);
  EXPECT_EQ(got.claimedAt, said.claimedAt);
  EXPECT_EQ(got.settledAt, said.settledAt);
  EXPECT_EQ(got.sequence, said.sequence);
  EXPECT_EQ(got.previous, said.previous);
}

TEST_F(ReceiptTest, aRefusalIsKeptEvenWhenItsNumberIsZero) {
  auto receipt = sampleReceipt();
  becomes(receipt, Terminal::REJECTED);
  receipt.refusal = RefusalCode::PERMISSION_MISSING;
  auto got = openReceipt(receiptKey().publicKey(), seal(receipt, receiptKey()));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(KJ_ASSERT_NONNULL(got->refusal), RefusalCode::PERMISSION_MISSING);
}

TEST_F(ReceiptTest, everyBitOfTheBodyIsSigned) {
  auto envelope = seal(sampleReceipt(), receiptKey());
  auto pub = receiptKey().publicKey();
  for (size_t at = 0; at < envelope.body.size(); ++at) {
    for (size_t bit = 0; bit < 8; ++bit) {
      auto mask = static_cast<kj::byte>(1u << bit);
      envelope.body[at] ^= mask;
      EXPECT_EQ(outcome(openReceipt(pub, envelope)), "policy_denied") << at << '.' << bit;
      envelope.body[at] ^= mask;
    }
  }
}

TEST_F(ReceiptTest, anAuditorNeedsTheVeryKeyThatSigned) {
  auto envelope = seal(sampleReceipt(), receiptKey());
  EXPECT_EQ(open(envelope), "ok");
  EXPECT_EQ(outcome(openReceipt(issuerKey().publicKey(), envelope)), "policy_denied");
  EXPECT_EQ(outcomeWith([](Receipt& r) { r.keyId = kj::str("0123456789abcdef"); }),
            "policy_denied");
  EXPECT_EQ(outcomeWith([](Receipt& r) { r.issuer = kj::str("host"); }), "policy_denied");
}

TEST_F(ReceiptTest, aSignatureOverAnotherKindNeverPassesForAReceipts) {
  auto body = seal(sampleReceipt(), receiptKey()).body;
  EXPECT_EQ(open(signedAs(RECEIPT_LABEL, receiptKey(), "ledger", body)), "ok");
  EXPECT_EQ(open(signedAs(GRANT_LABEL, receiptKey(), "ledger", body)), "policy_denied");
  EXPECT_EQ(open(signedAs(MANIFEST_LABEL, receiptKey(), "ledger", body)), "policy_denied");
}

TEST_F(ReceiptTest, whatIsNotCanonicalOrUnknownIsRefusedThoughSigned) {
  auto body = seal(sampleReceipt(), receiptKey()).body;
  auto signAgain = [](Bytes bytes) {
    return open(signedAs(RECEIPT_LABEL, receiptKey(), "ledger", bytes));
  };
  EXPECT_EQ(signAgain(notCanonical(body)), "malformed");
  EXPECT_EQ(signAgain(withOneMoreWord(body)), "unknown_field");
  EXPECT_EQ(signAgain(withOneMorePointer(body)), "unknown_field");
}

TEST_F(ReceiptTest, namesPlacesAndTimesHaveBounds) {
  using Change = void (*)(Receipt&);
  std::pair<const char*, Change> broken[] = {
      {"operation", [](Receipt& r) { r.operation = kj::str(""); }},
      {"kind", [](Receipt& r) { r.kind = kj::str("set value"); }},
      {"grantIssuer", [](Receipt& r) { r.grantIssuer = kj::str("a/b"); }},
      {"grantKeyId", [](Receipt& r) { r.grantKeyId = kj::str(kj::repeat('k', 257)); }},
      {"subject", [](Receipt& r) { r.subject = kj::str(""); }},
      {"session", [](Receipt& r) { r.session = kj::str("\n"); }},
      {"turn", [](Receipt& r) { r.turn = kj::str(""); }},
      {"incarnation", [](Receipt& r) { r.ledger.incarnation = 0; }},
      {"sequence", [](Receipt& r) { r.sequence = 0; }},
      {"claimedAt", [](Receipt& r) { r.claimedAt = -1; }},
      {"settledAt", [](Receipt& r) { r.settledAt = -1; }},
      {"units", [](Receipt& r) { r.evidence.unitsDone = 2; }},
  };
  for (auto& [name, change] : broken) EXPECT_EQ(outcomeWith(change), "malformed") << name;
  EXPECT_EQ(outcomeWith([](Receipt& r) { r.sequence = 1; }), "ok");
  // The wall clock may have been set back between the two.
  EXPECT_EQ(outcomeWith([](Receipt& r) { r.settledAt = r.claimedAt - 1000; }), "ok");
}

TEST_F(ReceiptTest, warningsAreBounded) {
  auto with = [](size_t count) {
    return outcomeWith([&](Receipt& r) {
      for (size_t i = 0; i < count; ++i) r.warnings.add(Warning::UNVERIFIED);
    });
  };
  EXPECT_EQ(with(16), "ok");
  EXPECT_EQ(with(17), "malformed");
}

TEST_F(ReceiptTest, aHelperIsNamedExactlyWhenOneWasInvolved) {
  EXPECT_EQ(outcomeWith([](Receipt& r) { r.helper.generation = 0; }), "malformed");
  EXPECT_EQ(outcomeWith([](Receipt& r) { r.helper.name = kj::str(""); }), "malformed");
  EXPECT_EQ(outcomeWith([](Receipt& r) {
              becomes(r, Terminal::EXPIRED_BEFORE_EFFECT);
              r.helper = HelperIdentity();
            }),
            "ok");
}

TEST_F(ReceiptTest, aSuccessIsBorneOut) {
  using Change = void (*)(Receipt&);
  std::tuple<const char*, Change, const char*> rows[] = {
      {"as it is", [](Receipt&) {}, "ok"},
      {"sent, no proof asked for",
       [](Receipt& r) {
         r.effect = Effect::EXECUTED_UNVERIFIED;
         r.evidence.verdict = Verdict::UNVERIFIABLE;
       },
       "ok"},
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
  for (auto& [name, change, expected] : rows) EXPECT_EQ(outcomeWith(change), expected) << name;
}

TEST_F(ReceiptTest, whereNothingWasSentNothingHappened) {
  for (auto terminal : {Terminal::REJECTED, Terminal::FAILED, Terminal::CANCELLED_BEFORE_EFFECT,
                        Terminal::EXPIRED_BEFORE_EFFECT}) {
    auto name = nameOf(terminal);
    EXPECT_EQ(outcomeWith([&](Receipt& r) {
                becomes(r, terminal);
                r.retrySafe = true;
              }),
              "ok")
        << name.cStr();
    EXPECT_EQ(outcomeWith([&](Receipt& r) {
                becomes(r, terminal);
                r.claimedAt = 0;
              }),
              "ok")
        << name.cStr();
    for (auto effect : {Effect::VERIFIED, Effect::EXECUTED_UNVERIFIED, Effect::UNKNOWN}) {
      EXPECT_EQ(outcomeWith([&](Receipt& r) {
                  becomes(r, terminal);
                  r.effect = effect;
                }),
                "malformed")
          << name.cStr();
    }
    EXPECT_EQ(outcomeWith([&](Receipt& r) {
                becomes(r, terminal);
                r.route = Route::ACCESSIBILITY;
              }),
              "malformed")
        << name.cStr();
  }
}

TEST_F(ReceiptTest, aRejectionSaysWhy) {
  EXPECT_EQ(outcomeWith([](Receipt& r) {
              becomes(r, Terminal::REJECTED);
              r.refusal = nullptr;
            }),
            "malformed");
}

TEST_F(ReceiptTest, aRefusalCodeWithoutTheMarkIsHiddenContent) {
  auto body = seal(sampleReceipt(), receiptKey()).body;
  auto good = Canonical<wire::Receipt>::parse(body, bounds::SIGNED_BODY_BYTES);
  ASSERT_TRUE(good.ok());
  capnp::MallocMessageBuilder message;
  message.setRoot(good->get());
  auto root = message.getRoot<wire::Receipt>();
  root.setRefusal(RefusalCode::TIMEOUT);
  EXPECT_EQ(open(signedAs(RECEIPT_LABEL, receiptKey(), "ledger", canonicalBytes(root.asReader()))),
            "malformed");
}

TEST_F(ReceiptTest, anUnknownOutcomeIsNeverSafeToRepeat) {
  EXPECT_EQ(outcomeWith(becomesUnknown), "ok");
  EXPECT_EQ(outcomeWith([](Receipt& r) {
              becomesUnknown(r);
              r.retrySafe = true;
            }),
            "malformed");
  for (auto effect : {Effect::NONE, Effect::VERIFIED, Effect::EXECUTED_UNVERIFIED}) {
    EXPECT_EQ(outcomeWith([&](Receipt& r) {
                becomesUnknown(r);
                r.effect = effect;
              }),
              "malformed");
  }
  // Recovery knows neither the way nor the evidence.
  EXPECT_EQ(outcomeWith([](Receipt& r) {
              becomesUnknown(r);
              r.route = Route::NONE;
              r.evidence = Evidence();
              r.context = ContextState::UNWATCHED;
              r.warnings.add(Warning::RECOVERED);
            }),
            "ok");
}

}  // namespace
}  // namespace praefectus::attest
