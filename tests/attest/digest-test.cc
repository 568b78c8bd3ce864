#include "attest/digest.h"

#include <gtest/gtest.h>

#include <string>

namespace praefectus::attest {
namespace {

std::string spelled(const Hash& hash) { return hex(bytesOf(hash)).cStr(); }

kj::Array<kj::byte> counting(size_t size) {
  auto out = kj::heapArray<kj::byte>(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<kj::byte>(i);
  return out;
}

class DigestTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialize(); }
};

// Made with another implementation: Python's hashlib.blake2b(…, digest_size=32).
TEST_F(DigestTest, itIsBlake2bOf256Bits) {
  EXPECT_EQ(spelled(digestOf(nullptr)),
            "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(spelled(digestOf("abc"_kj.asBytes())),
            "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  EXPECT_EQ(spelled(digestOf(counting(256))),
            "39a7eb9fedc19aabc83425c6755dd90e6f9d0c804964a1f4aaeea3b9fb599835");
}

TEST_F(DigestTest, aKeyMakesItAnotherFunctionAndAnEmptyKeyDoesNot) {
  EXPECT_EQ(spelled(keyedDigest(counting(32), "abc"_kj.asBytes())),
            "d63a32d3e44738d7907f964316c241adaba0abfeabc32349677578a15a203f7f");
  EXPECT_NE(keyedDigest(counting(32), nullptr), keyedDigest(counting(33), nullptr));
  EXPECT_EQ(keyedDigest(nullptr, "abc"_kj.asBytes()), digestOf("abc"_kj.asBytes()));
}

TEST_F(DigestTest, aKeyTooShortToBeOneIsACallersMistake) {
  EXPECT_ANY_THROW(keyedDigest(counting(15), nullptr));
  EXPECT_NO_THROW(keyedDigest(counting(16), nullptr));
  EXPECT_NO_THROW(keyedDigest(counting(64), nullptr));
  EXPECT_ANY_THROW(keyedDigest(counting(65), nullptr));
}

TEST_F(DigestTest, piecesAddUpToTheWhole) {
  auto all = counting(1000);
  Digest pieces;
  pieces.add(all.slice(0, 1)).add(all.slice(1, 129)).add(all.slice(129, 1000));
  EXPECT_EQ(pieces.finish(), digestOf(all));
}

TEST_F(DigestTest, sizedPiecesKeepTheirBorders) {
  auto one = Digest().addSized("ab"_kj).addSized("c"_kj).finish();
  auto other = Digest().addSized("a"_kj).addSized("bc"_kj).finish();
  EXPECT_NE(one, other);
  EXPECT_EQ(Digest().addSized("ab"_kj).finish(), Digest().addNumber(2).add("ab"_kj).finish());
}

TEST_F(DigestTest, aNumberIsEightBytesFromTheLow) {
  kj::byte spelledOut[] = {0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01};
  EXPECT_EQ(Digest().addNumber(0x0102030405060708).finish(), digestOf(spelledOut));
}

TEST_F(DigestTest, aLabelKeepsKindsApart) {
  EXPECT_NE(labelledDigest("a", "bc"_kj.asBytes()), labelledDigest("ab", "c"_kj.asBytes()));
  EXPECT_EQ(labelledDigest("a", "bc"_kj.asBytes()), digestOf(Bytes("a\0bc"_kj.asBytes())));
  EXPECT_EQ(actionHash("x"_kj.asBytes()), labelledDigest("praefectus/action/v1", "x"_kj.asBytes()));
}

TEST_F(DigestTest, equalHashesAreTheSameAndAnyBitMatters) {
  auto hash = digestOf("abc"_kj.asBytes());
  EXPECT_TRUE(same(hash, hash));
  for (size_t bit = 0; bit < 256; ++bit) {
    auto other = hash;
    other[bit / 8] = static_cast<kj::byte>(other[bit / 8] ^ (1u << (bit % 8)));
    EXPECT_FALSE(same(hash, other));
  }
}

TEST_F(DigestTest, randomBytesDoNotRepeat) {
  auto a = random<32>(), b = random<32>();
  EXPECT_NE(a, b);
  EXPECT_NE(a, Hash{});
}

}  // namespace
}  // namespace praefectus::attest
