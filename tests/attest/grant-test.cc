#include "attest/signed.h"
#include "ipc/bounds.h"
#include "ipc/canonical.h"
#include "tests/attest/samples.h"
#include "tests/ipc/refusals.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace praefectus::attest {
namespace {

using std::string;

string open(const Envelope& envelope) { return outcome(openGrant(sampleRing(), envelope)); }

// A grant as the sample, with `change` made to the message before it is signed.
template <typename Change>
Envelope changed(Change&& change) {
  auto body = seal(sampleGrant(), issuerKey()).body;
  auto good = Canonical<wire::Grant>::parse(body, bounds::SIGNED_BODY_BYTES);
  KJ_ASSERT(good.ok());
  capnp::MallocMessageBuilder message;
  message.setRoot(good->get());
  auto root = message.getRoot<wire::Grant>();
  change(root);
  return signedAs(GRANT_LABEL, issuerKey(), "host", canonicalBytes(root.asReader()));
}

Envelope rawGrant(Bytes body) { return signedAs(GRANT_LABEL, issuerKey(), "host", body); }

void flip(kj::byte& byte, size_t bit) { byte = static_cast<kj::byte>(byte ^ (1u << bit)); }

class GrantTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialize(); }
};

TEST_F(GrantTest, whatWasSealedIsWhatIsOpened) {
  auto asked = sampleGrant();
  auto envelope = seal(asked, issuerKey());
  auto result = openGrant(sampleRing(), envelope);
  ASSERT_TRUE(result.ok()) << result.refusal().detail.cStr();
  auto& got = *result;
  EXPECT_EQ(got.issuer, asked.issuer);
  EXPECT_EQ(got.keyId, asked.keyId);
  EXPECT_EQ(got.audience, asked.audience);
  EXPECT_EQ(got.subject, asked.subject);
  EXPECT_EQ(got.session, asked.session);
  EXPECT_EQ(got.turn, asked.turn);
  EXPECT_EQ(got.operation, asked.operation);
  EXPECT_EQ(got.actionHash, asked.actionHash);
  EXPECT_EQ(got.actionClass, asked.actionClass);
  EXPECT_EQ(got.target, asked.target);
  EXPECT_EQ(got.notBefore, asked.notBefore);
  EXPECT_EQ(got.expires, asked.expires);
  EXPECT_EQ(got.uses, asked.uses);
  EXPECT_EQ(got.hash, digestOf(envelope.body));
}

TEST_F(GrantTest, sealingIsDeterministic) {
  auto one = seal(sampleGrant(), issuerKey()), other = seal(sampleGrant(), issuerKey());
  EXPECT_EQ(one.body, other.body);
  EXPECT_EQ(one.signature, other.signature);
}

TEST_F(GrantTest, everyBitOfTheBodyIsSigned) {
  auto envelope = seal(sampleGrant(), issuerKey());
  auto ring = sampleRing();
  for (size_t at = 0; at < envelope.body.size(); ++at) {
    for (size_t bit = 0; bit < 8; ++bit) {
      flip(envelope.body[at], bit);
      EXPECT_EQ(outcome(openGrant(ring, envelope)), "policy_denied") << at << '.' << bit;
      flip(envelope.body[at], bit);
    }
  }
  EXPECT_EQ(open(envelope), "ok");
}

TEST_F(GrantTest, everyFieldIsSigned) {
  const Signature signature = seal(sampleGrant(), issuerKey()).signature;
  std::pair<const char*, void (*)(wire::Grant::Builder)> fields[] = {
      {"version", [](wire::Grant::Builder g) { g.setVersion(2); }},
      {"issuer", [](wire::Grant::Builder g) { g.setIssuer("host2"); }},
      {"keyId", [](wire::Grant::Builder g) { g.setKeyId("k"); }},
      {"audience", [](wire::Grant::Builder g) { g.getAudience().setIncarnation(2); }},
      {"ledger", [](wire::Grant::Builder g) { g.getAudience().getKey()[0] ^= 1; }},
      {"subject", [](wire::Grant::Builder g) { g.setSubject("uid:0"); }},
      {"session", [](wire::Grant::Builder g) { g.setSession("session-2"); }},
      {"turn", [](wire::Grant::Builder g) { g.setTurn("turn-2"); }},
      {"operation", [](wire::Grant::Builder g) { g.setOperation("operation-2"); }},
      {"actionHash", [](wire::Grant::Builder g) { g.getActionHash()[31] ^= 1; }},
      {"class", [](wire::Grant::Builder g) { g.setActionClass(ActionClass::FILE_MUTATION); }},
      {"process", [](wire::Grant::Builder g) { g.getTarget().getProcess().setPid(1); }},
      {"start", [](wire::Grant::Builder g) { g.getTarget().getProcess().setStart(1); }},
      {"window", [](wire::Grant::Builder g) { g.getTarget().setWindow(1); }},
      {"notBefore", [](wire::Grant::Builder g) { g.setNotBefore(1); }},
      {"expires", [](wire::Grant::Builder g) { g.setExpires(g.getExpires() + 1); }},
      {"uses", [](wire::Grant::Builder g) { g.setUses(2); }},
  };
  // One for each field of the schema, nested ones apart: a field added there must be added here.
  EXPECT_EQ(capnp::Schema::from<wire::Grant>().getFields().size() + 3, std::size(fields));
  for (auto& [name, change] : fields) {
    auto envelope = changed(change);
    envelope.signature = signature;
    EXPECT_EQ(open(envelope), "policy_denied") << name;
  }
}

TEST_F(GrantTest, aSignatureOfZerosIsNone) {
  auto envelope = seal(sampleGrant(), issuerKey());
  envelope.signature = {};
  EXPECT_EQ(open(envelope), "policy_denied");
}

TEST_F(GrantTest, anotherKeysSignatureIsRefused) {
  EXPECT_EQ(open(seal(sampleGrant(), publisherKey())), "policy_denied");
  EXPECT_EQ(open(seal(sampleGrant(), keyNumber(77))), "policy_denied");
}

TEST_F(GrantTest, anEmptyRingOpensNothing) {
  EXPECT_EQ(outcome(openGrant(KeyRing(), seal(sampleGrant(), issuerKey()))), "policy_denied");
}

TEST_F(GrantTest, theEnvelopeMustNameTheBodysOwnKey) {
  // Both names are pinned for the same key, so that the signature holds under either.
  auto ring = sampleRing();
  auto pub = issuerKey().publicKey();
  ring.add(Purpose::ISSUER, "host2", keyIdOf(pub), pub);
  ring.add(Purpose::ISSUER, "host", "other-id", pub);
  auto good = seal(sampleGrant(), issuerKey());
  auto otherIssuer = good.clone(), otherKeyId = good.clone();
  otherIssuer.issuer = kj::str("host2");
  otherKeyId.keyId = kj::str("other-id");
  EXPECT_EQ(outcome(openGrant(ring, good)), "ok");
  EXPECT_EQ(outcome(openGrant(ring, otherIssuer)), "policy_denied");
  EXPECT_EQ(outcome(openGrant(ring, otherKeyId)), "policy_denied");
}

TEST_F(GrantTest, aSignatureOverOneKindNeverPassesForAnother) {
  auto body = seal(sampleGrant(), issuerKey()).body;
  for (auto label : {MANIFEST_LABEL, RECEIPT_LABEL, "praefectus/action/v1"_kj, ""_kj}) {
    EXPECT_EQ(open(signedAs(label, issuerKey(), "host", body)), "policy_denied") << label.cStr();
  }
  // Nor does a body of another kind, though the right key signed it as a grant.
  auto manifest = sampleManifest("image"_kj.asBytes());
  manifest.issuer = kj::str("host");
  manifest.keyId = keyIdOf(issuerKey().publicKey());
  EXPECT_NE(open(rawGrant(seal(manifest, issuerKey()).body)), "ok");
  EXPECT_NE(open(rawGrant(seal(sampleReceipt(), issuerKey()).body)), "ok");
}

TEST_F(GrantTest, whatIsNotCanonicalIsRefusedThoughSigned) {
  auto body = seal(sampleGrant(), issuerKey()).body;
  EXPECT_EQ(open(rawGrant(body)), "ok");
  EXPECT_EQ(open(rawGrant(notCanonical(body))), "malformed");
  EXPECT_EQ(open(rawGrant(body.slice(0, body.size() - 8))), "malformed");
  EXPECT_EQ(open(rawGrant(body.slice(0, body.size() - 1))), "malformed");
  EXPECT_EQ(open(rawGrant(nullptr)), "malformed");
  auto random = kj::heapArray<kj::byte>(256);
  for (int i = 0; i < 1000; ++i) {
    attest::random(random);
    EXPECT_NE(open(rawGrant(random)), "ok");
  }
}

TEST_F(GrantTest, whatIsUnknownIsRefusedThoughSigned) {
  auto body = seal(sampleGrant(), issuerKey()).body;
  EXPECT_EQ(open(rawGrant(withOneMoreWord(body))), "unknown_field");
  EXPECT_EQ(open(rawGrant(withOneMorePointer(body))), "unknown_field");
  auto unknownClass =
      changed([](wire::Grant::Builder g) { g.setActionClass(static_cast<ActionClass>(6)); });
  EXPECT_EQ(open(unknownClass), "unknown_field");
}

TEST_F(GrantTest, anOversizeBodyIsRefusedThoughSigned) {
  auto envelope = changed([](wire::Grant::Builder g) {
    g.setTurn(kj::str(kj::repeat('t', bounds::SIGNED_BODY_BYTES)));
  });
  EXPECT_EQ(open(envelope), "malformed");
}

TEST_F(GrantTest, anotherProtocolVersionIsRefusedByName) {
  EXPECT_EQ(open(changed([](wire::Grant::Builder g) { g.setVersion(0); })), "unsupported_version");
  EXPECT_EQ(open(changed([](wire::Grant::Builder g) { g.setVersion(2); })), "unsupported_version");
}

TEST_F(GrantTest, namesAreIdentifiers) {
  using Set = void (*)(wire::Grant::Builder, kj::StringPtr);
  std::pair<const char*, Set> names[] = {
      {"subject", [](wire::Grant::Builder g, kj::StringPtr text) { g.setSubject(text); }},
      {"session", [](wire::Grant::Builder g, kj::StringPtr text) { g.setSession(text); }},
      {"turn", [](wire::Grant::Builder g, kj::StringPtr text) { g.setTurn(text); }},
      {"operation", [](wire::Grant::Builder g, kj::StringPtr text) { g.setOperation(text); }},
  };
  auto longest = kj::str(kj::repeat('a', 256)), longer = kj::str(kj::repeat('a', 257));
  std::pair<kj::StringPtr, const char*> texts[] = {
      {"a"_kj, "ok"},          {"A.z_0:-"_kj, "ok"},         {longest, "ok"},
      {""_kj, "malformed"},    {longer, "malformed"},        {"a b"_kj, "malformed"},
      {"a/b"_kj, "malformed"}, {"\xC3\xA9"_kj, "malformed"},
  };
  for (auto& [name, set] : names) {
    for (auto& [text, expected] : texts) {
      EXPECT_EQ(
          open(changed([&, put = set, value = text](wire::Grant::Builder g) { put(g, value); })),
          expected)
          << name << " " << text.cStr();
    }
  }
}

TEST_F(GrantTest, hashesHave32Bytes) {
  auto hash = kj::heapArray<kj::byte>(33);
  memset(hash.begin(), 7, hash.size());
  for (size_t size : {0, 31, 32, 33}) {
    const char* expected = size == 32 ? "ok" : "malformed";
    EXPECT_EQ(open(changed([&](wire::Grant::Builder g) { g.setActionHash(hash.slice(0, size)); })),
              expected);
    EXPECT_EQ(
        open(changed([&](wire::Grant::Builder g) { g.getAudience().setKey(hash.slice(0, size)); })),
        expected);
  }
}

TEST_F(GrantTest, anAudienceHasAnIncarnation) {
  EXPECT_EQ(open(changed([](wire::Grant::Builder g) { g.getAudience().setIncarnation(0); })),
            "malformed");
  EXPECT_EQ(open(changed([](wire::Grant::Builder g) { g.disownAudience(); })), "malformed");
}

TEST_F(GrantTest, aLifeIsLongerThanNothingAndNoLongerThanADay) {
  constexpr int64_t DAY = 24ll * 3600 * 1000;
  constexpr int64_t MIN = std::numeric_limits<int64_t>::min();
  constexpr int64_t MAX = std::numeric_limits<int64_t>::max();
  struct {
    int64_t notBefore, expires;
    const char* expected;
  } lives[] = {
      {0, 1, "ok"},
      {0, DAY, "ok"},
      {MAX - DAY, MAX, "ok"},
      {0, 0, "malformed"},
      {0, DAY + 1, "malformed"},
      {1, 0, "malformed"},
      {MIN, MAX, "malformed"},
      {MAX, MIN, "malformed"},
  };
  for (auto& life : lives) {
    EXPECT_EQ(open(changed([&](wire::Grant::Builder g) {
                g.setNotBefore(life.notBefore);
                g.setExpires(life.expires);
              })),
              life.expected)
        << life.notBefore << " " << life.expires;
  }
}

TEST_F(GrantTest, aMutationHasOneUseAndAReadUpToAThousand) {
  for (auto actionClass : {ActionClass::METADATA_READ, ActionClass::SCREENSHOT_READ,
                           ActionClass::POINTER_MUTATION, ActionClass::KEYBOARD_MUTATION,
                           ActionClass::SEMANTIC_MUTATION, ActionClass::FILE_MUTATION}) {
    bool reads = actionClass <= ActionClass::SCREENSHOT_READ;
    for (auto [uses, expected] : {std::pair<uint32_t, bool>{0, false},
                                  {1, true},
                                  {2, reads},
                                  {1000, reads},
                                  {1001, false},
                                  {0xFFFFFFFF, false}}) {
      EXPECT_EQ(open(changed([&, count = uses](wire::Grant::Builder g) {
                  g.setActionClass(actionClass);
                  g.setUses(count);
                })),
                expected ? "ok" : "malformed")
          << nameOf(actionClass).cStr() << " " << uses;
    }
  }
}

// ---- Envelopes as they travel

TEST_F(GrantTest, anEnvelopeSurvivesItsFileForm) {
  auto envelope = seal(sampleGrant(), issuerKey());
  auto again = envelopeFrom(envelopeBytes(envelope));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->body, envelope.body);
  EXPECT_EQ(again->issuer, envelope.issuer);
  EXPECT_EQ(again->keyId, envelope.keyId);
  EXPECT_EQ(again->signature, envelope.signature);
  EXPECT_EQ(open(*again), "ok");
}

TEST_F(GrantTest, anEnvelopeFileIsCanonicalAndKnown) {
  auto file = envelopeBytes(seal(sampleGrant(), issuerKey()));
  EXPECT_EQ(outcome(envelopeFrom(notCanonical(file))), "malformed");
  EXPECT_EQ(outcome(envelopeFrom(withOneMoreWord(file))), "unknown_field");
  EXPECT_EQ(outcome(envelopeFrom(withOneMorePointer(file))), "unknown_field");
  EXPECT_EQ(outcome(envelopeFrom(nullptr)), "malformed");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_EQ(outcome(envelopeFrom(file.slice(0, size))), "malformed") << size;
  }
}

TEST_F(GrantTest, anEnvelopeHasItsFormAndBounds) {
  auto good = seal(sampleGrant(), issuerKey());
  using Change = void (*)(wire::Signed::Builder);
  std::pair<Change, const char*> changes[] = {
      {[](wire::Signed::Builder) {}, "ok"},
      {[](wire::Signed::Builder s) { s.initBody(bounds::SIGNED_BODY_BYTES); }, "ok"},
      {[](wire::Signed::Builder s) { s.initBody(bounds::SIGNED_BODY_BYTES + 1); }, "malformed"},
      {[](wire::Signed::Builder s) { s.initBody(0); }, "malformed"},
      {[](wire::Signed::Builder s) { s.initSignature(63); }, "malformed"},
      {[](wire::Signed::Builder s) { s.initSignature(65); }, "malformed"},
      {[](wire::Signed::Builder s) { s.disownSignature(); }, "malformed"},
      {[](wire::Signed::Builder s) { s.setIssuer("ho st"); }, "malformed"},
      {[](wire::Signed::Builder s) { s.setKeyId(""); }, "malformed"},
  };
  for (auto& [change, expected] : changes) {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::Signed>();
    write(good, root);
    change(root);
    EXPECT_EQ(outcome(readEnvelope(root.asReader())), expected);
  }
}

}  // namespace
}  // namespace praefectus::attest
