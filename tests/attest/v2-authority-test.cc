#include "attest/v2/authority.h"

#include "tests/attest/v2-samples.h"
#include "tests/ipc/refusals.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace praefectus::attest::v2 {
namespace {

class V2Authority : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialize(); }
};

constexpr auto NOT_THIS = "The grant is not for this request.";
constexpr auto NO_NAME = "A name in the grant is not a name.";
constexpr auto NO_KEY = "The grant's key is not pinned.";
constexpr auto OTHER_POLICY = "The grant is of another policy generation.";
constexpr auto NO_SIGNATURE = "The signature does not hold.";

// "ok", or the sentence of the denial; nothing but a denial may come of verifying.
std::string verdict(const Doc& request, const KeyRing& ring) {
  auto value = read(request);
  KJ_REQUIRE(value.ok(), request.dump().c_str());
  auto held = ring.verify(kj::mv(*value));
  if (held.ok()) return "ok";
  EXPECT_EQ(held.refusal().code, RefusalCode::POLICY_DENIED);
  return spelled(held.refusal().detail);
}
std::string verdict(const Doc& request) { return verdict(request, sampleRing()); }

PinnedKey pinned(kj::StringPtr issuer, kj::StringPtr keyId, kj::StringPtr policy) {
  auto key = onePinnedKey()[0].key;
  return {kj::str(issuer), kj::str(keyId), kj::str(policy), key};
}

template <typename... Keys>
Result<KeyRing> ringOf(Keys&&... keys) {
  auto all = kj::heapArrayBuilder<PinnedKey>(sizeof...(keys));
  (all.add(kj::mv(keys)), ...);
  return KeyRing::of(all.finish());
}

kj::Array<kj::byte> vectorSeed() {
  auto seed = kj::heapArray<kj::byte>(32);
  memset(seed.begin(), 7, seed.size());
  return seed;
}

TEST_F(V2Authority, eachVectorsSignatureHolds) {
  for (auto& vector : vectors()["vectors"]) {
    EXPECT_EQ(verdict(requestOf(vector)), "ok") << vector["name"];
  }
}

TEST_F(V2Authority, signingAVectorsGrantGivesItsSignature) {
  for (auto& vector : vectors()["vectors"]) {
    auto request = read(requestOf(vector));
    ASSERT_TRUE(request.ok());
    auto signature = signGrant(request->authority.grant, vectorSeed());
    EXPECT_EQ(spelled(hex(bytesOf(signature))), vector["signature"]) << vector["name"];
  }
}

TEST_F(V2Authority, everyKindOfActionCanBeAllowed) {
  for (auto& request : everyKind()) EXPECT_EQ(verdict(allowed(request)), "ok") << request;
}

TEST_F(V2Authority, aSignatureMayBeSpelledInEitherCase) {
  auto request = requestOf(vectors()["vectors"][0]);
  auto digits = request["authority"]["signature"].get<std::string>();
  for (auto& c : digits) c = static_cast<char>(std::toupper(c));
  request["authority"]["signature"] = digits;
  EXPECT_EQ(verdict(request), "ok");
}

TEST_F(V2Authority, anEmptyRingDeniesEverything) {
  auto ring = ringOf();
  ASSERT_TRUE(ring.ok());
  for (auto& vector : vectors()["vectors"]) EXPECT_EQ(verdict(requestOf(vector), *ring), NO_KEY);
}

TEST_F(V2Authority, aRingHoldsEachKeyIdOfAnIssuerOnce) {
  EXPECT_EQ(outcome(ringOf(pinned("h", "k", "p"), pinned("h", "k", "p"))), "malformed");
  EXPECT_EQ(outcome(ringOf(pinned("h", "k", "p"), pinned("x", "k", "p"), pinned("h", "k", "q"))),
            "malformed");
  EXPECT_EQ(outcome(ringOf(pinned("h", "k", "p"), pinned("h", "k2", "p"), pinned("h2", "k", "p"))),
            "ok");
}

TEST_F(V2Authority, aRingHoldsNothingWithoutAName) {
  auto tooLong = std::string(257, 'x');
  for (kj::StringPtr bad : {""_kj, "a.b"_kj, "a b"_kj, kj::StringPtr(tooLong.c_str())}) {
    EXPECT_EQ(outcome(ringOf(pinned(bad, "k", "p"))), "malformed") << bad.cStr();
    EXPECT_EQ(outcome(ringOf(pinned("h", bad, "p"))), "malformed") << bad.cStr();
    EXPECT_EQ(outcome(ringOf(pinned("h", "k", bad))), "malformed") << bad.cStr();
  }
}

// What is signed stays as it was; what is asked for differs.
TEST_F(V2Authority, aRequestThatWasChangedAfterSigningIsDenied) {
  auto signedFor = [](Doc request, const std::string& member, Doc value) {
    request = allowed(request);
    request[Doc::json_pointer(member)] = std::move(value);
    return request;
  };
  auto scroll = requestOfKind("scroll"), type = requestOfKind("type_text");
  for (auto& request :
       {signedFor(scroll, "/action/amount", 4), signedFor(scroll, "/action/direction", "up"),
        signedFor(scroll, "/target/target/element_id", std::string(64, 'e')),
        signedFor(scroll, "/target/target/generation", 2),
        signedFor(scroll, "/verification/expected/checked", false),
        signedFor(scroll, "/verification", unverified()),
        signedFor(scroll, "/interaction_mode", "background_only"),
        signedFor(scroll, "/deadline_at_ms", 1893456000001),
        signedFor(scroll, "/subject", "subject-2"), signedFor(scroll, "/session_id", "session-2"),
        signedFor(scroll, "/operation_id", "op-2"), signedFor(scroll, "/safety", "external"),
        signedFor(type, "/action/text", "another text"),
        signedFor(type, "/action/delay_ms", nullptr)}) {
    EXPECT_EQ(verdict(request), NOT_THIS) << request;
  }
}

TEST_F(V2Authority, aGrantForSomethingElseIsDeniedHoweverWellItIsSigned) {
  using Change = std::function<void(AuthorityGrant&)>;
  for (auto& change :
       std::vector<Change>{[](AuthorityGrant& grant) { grant.operation = kj::str("op-2"); },
                           [](AuthorityGrant& grant) { grant.subject = kj::str("subject-2"); },
                           [](AuthorityGrant& grant) { grant.session = kj::str("session-2"); },
                           [](AuthorityGrant& grant) { grant.risk = wire::Safety::DESTRUCTIVE; },
                           [](AuthorityGrant& grant) { grant.actionHash = kj::str(""); },
                           [](AuthorityGrant& grant) { grant.actionHash[0] ^= 1; },
                           // The same hash in capitals is another text.
                           [](AuthorityGrant& grant) {
                             for (auto& c : grant.actionHash)
                               c = static_cast<char>(std::toupper(c));
                           }}) {
    EXPECT_EQ(verdict(allowed(requestOfKind("invoke"), change)), NOT_THIS);
  }
}

TEST_F(V2Authority, aKeyThatIsNotPinnedIsDenied) {
  auto request = requestOfKind("invoke");
  EXPECT_EQ(verdict(allowed(request, [](auto& grant) { grant.issuer = kj::str("host-2"); })),
            NO_KEY);
  EXPECT_EQ(verdict(allowed(request, [](auto& grant) { grant.keyId = kj::str("key-2"); })), NO_KEY);
}

TEST_F(V2Authority, aRotatedPolicyIsDenied) {
  auto ring = ringOf(pinned("host-1", "key-1", "generation-2"));
  ASSERT_TRUE(ring.ok());
  EXPECT_EQ(verdict(requestOf(vectors()["vectors"][0]), *ring), OTHER_POLICY);
  EXPECT_EQ(verdict(allowed(requestOfKind("invoke"),
                            [](auto& grant) { grant.policyGeneration = kj::str("generation-2"); })),
            OTHER_POLICY);
}

TEST_F(V2Authority, anotherKeysSignatureIsDenied) {
  auto keys = onePinnedKey();
  keys[0].key = SigningKey::generate().publicKey();
  auto ring = KeyRing::of(kj::mv(keys));
  ASSERT_TRUE(ring.ok());
  EXPECT_EQ(verdict(requestOf(vectors()["vectors"][0]), *ring), NO_SIGNATURE);
}

TEST_F(V2Authority, whatTheGrantSaysIsSigned) {
  auto request = allowed(requestOfKind("invoke"));
  EXPECT_EQ(verdict(request), "ok");
  request["authority"]["grant"]["expires_at_ms"] = 1893456000001;
  EXPECT_EQ(verdict(request), NO_SIGNATURE);
}

TEST_F(V2Authority, aSignatureOfZerosIsDenied) {
  auto request = requestOf(vectors()["vectors"][0]);
  request["authority"]["signature"] = std::string(128, '0');
  EXPECT_EQ(verdict(request), NO_SIGNATURE);
}

TEST_F(V2Authority, everyDigitOfASignatureMatters) {
  auto request = requestOf(vectors()["vectors"][0]);
  auto good = request["authority"]["signature"].get<std::string>();
  for (size_t i = 0; i < good.size(); ++i) {
    auto other = good;
    other[i] = good[i] == '0' ? '1' : '0';
    request["authority"]["signature"] = other;
    EXPECT_EQ(verdict(request), NO_SIGNATURE) << i;
  }
}

// Under a key of small order one signature would hold for very many bodies.
TEST_F(V2Authority, aKeyOfSmallOrderAllowsNothing) {
  auto keys = onePinnedKey();
  keys[0].key = PublicKey{1};
  auto ring = KeyRing::of(kj::mv(keys));
  ASSERT_TRUE(ring.ok());
  auto request = allowed(requestOfKind("invoke"));
  request["authority"]["signature"] = "01" + std::string(126, '0');
  EXPECT_EQ(verdict(request, *ring), NO_SIGNATURE);
}

// With S replaced by S + L the equation still holds.
TEST_F(V2Authority, aSecondSpellingOfASignatureIsDenied) {
  constexpr kj::byte L[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                              0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
                              0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};
  auto value = read(requestOf(vectors()["vectors"][0]));
  ASSERT_TRUE(value.ok());
  auto& signature = value->authority.signature;
  unsigned carry = 0;
  for (size_t i = 0; i < 32; ++i) {
    carry += static_cast<unsigned>(signature[32 + i]) + L[i];
    signature[32 + i] = static_cast<kj::byte>(carry);
    carry >>= 8;
  }
  EXPECT_EQ(outcome(sampleRing().verify(kj::mv(*value))), "policy_denied");
}

// Everything is wrong with it; each repair uncovers the next check.
TEST_F(V2Authority, theChecksComeInTheirOrder) {
  auto request = allowed(requestOfKind("invoke"), [](AuthorityGrant& grant) {
    grant.subject = kj::str("subject-2");
    grant.issuer = kj::str("not a name");
    grant.policyGeneration = kj::str("generation-2");
  });
  request["authority"]["signature"] = std::string(128, '0');
  auto& grant = request["authority"]["grant"];
  EXPECT_EQ(verdict(request), NOT_THIS);
  grant["subject"] = "subject-1";
  EXPECT_EQ(verdict(request), NO_NAME);
  grant["issuer"] = "host-2";
  EXPECT_EQ(verdict(request), NO_KEY);
  grant["issuer"] = "host-1";
  EXPECT_EQ(verdict(request), OTHER_POLICY);
  grant["policy_generation"] = "generation-1";
  EXPECT_EQ(verdict(request), NO_SIGNATURE);
  EXPECT_EQ(verdict(allowed(request)), "ok");
}

TEST_F(V2Authority, everyNameOfTheGrantMustBeOne) {
  for (std::string bad : {"", "a.b", "a b"}) {
    auto name = [&] { return kj::heapString(bad.data(), bad.size()); };
    EXPECT_EQ(
        verdict(allowed(requestOfKind("invoke"), [&](auto& grant) { grant.issuer = name(); })),
        NO_NAME);
    EXPECT_EQ(verdict(allowed(requestOfKind("invoke"), [&](auto& grant) { grant.keyId = name(); })),
              NO_NAME);
    EXPECT_EQ(verdict(allowed(requestOfKind("invoke"),
                              [&](auto& grant) { grant.policyGeneration = name(); })),
              NO_NAME);
  }
}

TEST_F(V2Authority, theDeadlineIsTheSoonerOfTheTwo) {
  auto until = [](int64_t deadline, int64_t expiry) {
    auto request = requestOfKind("invoke");
    request["deadline_at_ms"] = deadline;
    return verified(allowed(request, [&](auto& grant) { grant.expiresMs = expiry; })).deadlineMs();
  };
  EXPECT_EQ(until(1000, 2000), 1000);
  EXPECT_EQ(until(2000, 1000), 1000);
  // Long ago, and still verified: the clock is somebody else's.
  EXPECT_EQ(until(1, 1), 1);
}

TEST_F(V2Authority, whatWasVerifiedKeepsItsHash) {
  auto& vector = vectors()["vectors"][0];
  EXPECT_EQ(spelled(verified(requestOf(vector)).actionHash()), vector["action_hash"]);
}

}  // namespace
}  // namespace praefectus::attest::v2
