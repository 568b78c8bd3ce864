#include "attest/v2/json.h"

#include "tests/ipc/refusals.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace praefectus::attest::v2 {
namespace {

constexpr JsonLimits LIMITS = {1000, 8, 100};

Result<Json> read(const std::string& text, const JsonLimits& limits = LIMITS) {
  return readJson(kj::arrayPtr(text.data(), text.size()), limits);
}

// The canonical form, or the refusal's name.
std::string rewritten(const std::string& text) {
  auto json = read(text);
  if (!json.ok()) return outcome(json);
  auto out = canonical(*json);
  return std::string(out.begin(), out.size());
}

TEST(V2Json, everyKindOfValueIsWrittenWithoutBlanks) {
  EXPECT_EQ(rewritten(" { \"a\" : [ null , true , false , 0 , -7 , \"x\" , { } , [ ] ] } \n"),
            "{\"a\":[null,true,false,0,-7,\"x\",{},[]]}");
  EXPECT_EQ(rewritten("null"), "null");
  EXPECT_EQ(rewritten("\"\""), "\"\"");
}

// In UTF-16, which other canonical forms sort by, U+1F600 would come before U+FFEE.
TEST(V2Json, keysAreSortedByTheirUtf8BytesAtEveryDepth) {
  EXPECT_EQ(rewritten("{\"b\":1,\"\\ud83d\\ude00\":2,\"a\":{\"z\":1,\"y\":2},\"\\uffee\":3,\"\":4,"
                      "\"A\":5,\"aa\":6}"),
            "{\"\":4,\"A\":5,\"a\":{\"y\":2,\"z\":1},\"aa\":6,\"b\":1,\"\xEF\xBF\xAE\":3,"
            "\"\xF0\x9F\x98\x80\":2}");
}

TEST(V2Json, listsKeepTheirOrder) { EXPECT_EQ(rewritten("[3,1,2]"), "[3,1,2]"); }

TEST(V2Json, onlyQuoteBackslashAndControlCharactersAreEscaped) {
  EXPECT_EQ(rewritten("\"\\b\\t\\n\\f\\r\\\"\\\\\\/\""), "\"\\b\\t\\n\\f\\r\\\"\\\\/\"");
  EXPECT_EQ(rewritten("\"\\u0000\\u0001\\u000B\\u001f\\u007f\\u00e9\""),
            "\"\\u0000\\u0001\\u000b\\u001f\x7F\xC3\xA9\"");
  EXPECT_EQ(rewritten("{\"\\n\":1}"), "{\"\\n\":1}");
}

// U+00E9, and e with U+0301.
TEST(V2Json, textIsNotNormalized) {
  EXPECT_NE(rewritten("\"\\u00e9\""), rewritten("\"e\\u0301\""));
}

TEST(V2Json, integersOfSixtyFourBitsKeepEveryDigit) {
  for (auto number : {"0", "1", "-1", "9007199254740993", "9223372036854775807",
                      "-9223372036854775808", "18446744073709551615"}) {
    EXPECT_EQ(rewritten(number), number);
  }
}

TEST(V2Json, everyOtherNumberIsUnsupportedWhereverItStands) {
  for (std::string number :
       {"1.0", "0.1", "-0.0", "1e16", "1E2", "1e-7", "-0", "18446744073709551616",
        "-9223372036854775809", "123456789012345678901234567890", "1e999", "-1e999"}) {
    EXPECT_EQ(rewritten(number), "unsupported_number") << number;
    EXPECT_EQ(rewritten("{\"a\":[{\"b\":" + number + "}]}"), "unsupported_number") << number;
  }
  EXPECT_EQ(rewritten(std::string(400, '9')), "unsupported_number");
}

TEST(V2Json, whatIsNotExactlyOneJsonValueIsRefused) {
  using namespace std::string_literals;
  for (auto& text : {""s,       " "s,       "{"s,       "[1,]"s,      "{\"a\":1,}"s,
                     "{a:1}"s,  "'a'"s,     "01"s,      "+1"s,        ".5"s,
                     "1."s,     "-"s,       "NaN"s,     "Infinity"s,  "nul"s,
                     "True"s,   "1 2"s,     "{}{}"s,    "{} x"s,      "{}\0"s,
                     "{}\0x"s,  "\0{}"s,    "// c\n1"s, "/* c */1"s,  "\xEF\xBB\xBF{}"s,
                     "\"\n\""s, "\"\t\""s,  "\"\\x\""s, "\"\\u12\""s, "\"a"s,
                     "[1"s,     "{\"a\"}"s, "{1:2}"s}) {
    EXPECT_EQ(rewritten(text), "malformed") << text;
  }
}

TEST(V2Json, textThatIsNotUtf8IsRefused) {
  for (std::string bytes : {"\x80", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xFF",
                            "\xE2\x82", "\\ud800", "\\udc00", "\\ud800\\u0041"}) {
    EXPECT_EQ(rewritten("\"" + bytes + "\""), "malformed") << bytes;
    EXPECT_EQ(rewritten("{\"" + bytes + "\":1}"), "malformed") << bytes;
  }
}

TEST(V2Json, aKeyStandsOnceInAnObject) {
  for (auto text : {"{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":2,\"a\":3}", "[{\"x\":{\"a\":1,\"a\":2}}]",
                    "{\"a\":1,\"\\u0061\":2}", "{\"\":1,\"\":2}"}) {
    EXPECT_EQ(rewritten(text), "malformed") << text;
  }
  EXPECT_EQ(rewritten("[{\"a\":1},{\"a\":{\"a\":2}}]"), "[{\"a\":1},{\"a\":{\"a\":2}}]");
}

TEST(V2Json, lengthDepthAndCountAreBounded) {
  EXPECT_EQ(outcome(read("\"" + std::string(998, 'x') + "\"")), "ok");
  EXPECT_EQ(outcome(read("\"" + std::string(999, 'x') + "\"")), "malformed");

  auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(outcome(read(nested(8))), "ok");
  EXPECT_EQ(outcome(read(nested(9))), "malformed");
  EXPECT_EQ(outcome(read("{\"a\":" + nested(7) + "}")), "ok");
  EXPECT_EQ(outcome(read("{\"a\":" + nested(8) + "}")), "malformed");
  // Nesting beyond any stack, if the limits allowed for it.
  EXPECT_EQ(outcome(read(std::string(1u << 20, '['), {2u << 20, 8, 100})), "malformed");

  auto counted = [](size_t items) {
    std::string text = "[0";
    for (size_t i = 1; i < items; ++i) text += ",0";
    return text + "]";
  };
  EXPECT_EQ(outcome(read(counted(99))), "ok");
  EXPECT_EQ(outcome(read(counted(100))), "malformed");
}

// FIPS 180-4's example, and the digest of nothing.
TEST(V2Json, hashesAreSha256) {
  EXPECT_EQ(std::string(sha256("abc"_kj).cStr()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(std::string(sha256(""_kj).cStr()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace praefectus::attest::v2
