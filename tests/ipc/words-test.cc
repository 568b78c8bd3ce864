#include "ipc/words.h"

#include <capnp/schema.h>

#include <gtest/gtest.h>

#include <string>

namespace praefectus {
namespace {

TEST(Words, everyRefusalCodeHasItsNameAndOneLineOfMeaning) {
  auto enumerants = capnp::Schema::from<RefusalCode>().getEnumerants();
  ASSERT_GE(enumerants.size(), 31u);
  for (auto enumerant : enumerants) {
    auto code = static_cast<RefusalCode>(enumerant.getOrdinal());
    EXPECT_NE(nameOf(code), "unknown"_kj);
    EXPECT_GT(meaningOf(code).size(), 10u) << nameOf(code).cStr();
    EXPECT_EQ(meaningOf(code)[meaningOf(code).size() - 1], '.') << nameOf(code).cStr();
  }
  EXPECT_EQ(nameOf(RefusalCode::STALE_FRAME), "stale_frame"_kj);
  EXPECT_EQ(adviceOn(RefusalCode::STALE_FRAME), wire::Advice::OBSERVE_AGAIN);
  EXPECT_EQ(adviceOn(RefusalCode::MALFORMED), wire::Advice::CORRECT);
}

TEST(Words, aValueBeyondTheSchemaIsNamedUnknown) {
  EXPECT_EQ(nameOf(static_cast<RefusalCode>(9999)), "unknown"_kj);
  EXPECT_EQ(nameOf(static_cast<Terminal>(77)), "unknown"_kj);
  EXPECT_EQ(nameOf(Terminal::CANCELLED_BEFORE_EFFECT), "cancelled_before_effect"_kj);
}

TEST(Words, hexGoesThereAndBackAndTakesNothingElse) {
  const kj::byte bytes[] = {0x00, 0x7f, 0xff};
  EXPECT_EQ(hex(kj::arrayPtr(bytes, 3)), "007fff"_kj);
  EXPECT_EQ(hex(KJ_ASSERT_NONNULL(unhex("007fff"))), "007fff"_kj);
  for (auto bad : {"0", "0g", "FF", " 00", "0x00"}) EXPECT_TRUE(unhex(bad) == nullptr) << bad;
}

TEST(Words, anIdentifierIsOneTo256OfItsAlphabet) {
  EXPECT_TRUE(isIdentifier("aZ09._:-"));
  EXPECT_FALSE(isIdentifier(""));
  EXPECT_FALSE(isIdentifier("a b"));
  EXPECT_FALSE(isIdentifier("a/b"));
  EXPECT_FALSE(isIdentifier("\xC3\xA4"));
  EXPECT_TRUE(isIdentifier(std::string(256, 'a').c_str()));
  EXPECT_FALSE(isIdentifier(std::string(257, 'a').c_str()));
}

TEST(Words, textIsWellFormedUtf8WithoutNul) {
  for (auto good : {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                    "\xEF\xBF\xBD", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(isText(good)) << good;
  }
  for (auto bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\x80", "\xED\xA0\x80",
                   "\xF0\x8F\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC2", "\xE2\x82",
                   "\xF0\x9F\x98", "\xFF", "a\xC3"}) {
    EXPECT_FALSE(isText(bad)) << bad;
  }
  EXPECT_FALSE(isText(kj::StringPtr("a\0b", 3)));
}

TEST(Words, aFixedArrayTakesExactlyItsLength) {
  const kj::byte bytes[33] = {1, 2, 3};
  EXPECT_TRUE(fixed<32>(kj::arrayPtr(bytes, 31)) == nullptr);
  EXPECT_TRUE(fixed<32>(kj::arrayPtr(bytes, 33)) == nullptr);
  EXPECT_EQ(KJ_ASSERT_NONNULL(fixed<32>(kj::arrayPtr(bytes, 32)))[2], 3);
}

}  // namespace
}  // namespace praefectus
