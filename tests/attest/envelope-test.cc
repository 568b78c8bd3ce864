// Envelopes as they travel.
#include "tests/attest/bodies.h"

#include <gtest/gtest.h>

namespace praefectus::attest {
namespace {

class EnvelopeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialize(); }
};

TEST_F(EnvelopeTest, everyEnvelopeSurvivesItsFileForm) {
  for (auto& kind : bodies()) {
    SCOPED_TRACE(kind.name);
    auto envelope = kind.sample();
    auto again = envelopeFrom(envelopeBytes(envelope));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->body, envelope.body);
    EXPECT_EQ(again->issuer, envelope.issuer);
    EXPECT_EQ(again->keyId, envelope.keyId);
    EXPECT_EQ(again->signature, envelope.signature);
    EXPECT_EQ(kind.open(sampleRing(), *again), "ok");
  }
}

TEST_F(EnvelopeTest, anEnvelopeFileIsCanonicalAndKnown) {
  auto file = envelopeBytes(seal(sampleGrant(), issuerKey()));
  EXPECT_EQ(outcome(envelopeFrom(notCanonical(file))), "malformed");
  EXPECT_EQ(outcome(envelopeFrom(withOneMoreWord(file))), "unknown_field");
  EXPECT_EQ(outcome(envelopeFrom(withOneMorePointer(file))), "unknown_field");
  EXPECT_EQ(outcome(envelopeFrom(nullptr)), "malformed");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_EQ(outcome(envelopeFrom(file.slice(0, size))), "malformed") << size;
  }
}

TEST_F(EnvelopeTest, anEnvelopeHasItsFormAndBounds) {
  auto good = seal(sampleGrant(), issuerKey());
  using Edit = void (*)(wire::Signed::Builder);
  std::pair<Edit, const char*> edits[] = {
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
  for (auto& [edit, expected] : edits) {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::Signed>();
    write(good, root);
    edit(root);
    EXPECT_EQ(outcome(readEnvelope(root.asReader())), expected);
  }
}

}  // namespace
}  // namespace praefectus::attest
