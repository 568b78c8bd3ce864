// Where options may stand on the command line, and how they may be written.
#include "tests/cli/program.h"

#include <gtest/gtest.h>

namespace praefectus::tests {
namespace {

TEST(Options, mayStandAnywhereAfterTheCommandInEitherSpelling) {
  auto expected = praefectus({"status", "--ledger", "/nonexistent", "op-1", "--json"});
  ASSERT_EQ(expected.exit, 3) << "understood, and refused for the ledger's sake";
  ASSERT_EQ(envelope(expected)["error"]["code"], "ledger_foreign");
  const std::vector<std::vector<std::string>> spellings = {
      {"status", "op-1", "--ledger", "/nonexistent", "--json"},
      {"status", "--ledger=/nonexistent", "op-1", "--json"},
      {"status", "op-1", "--json", "--ledger=/nonexistent"},
      {"status", "--json", "--ledger", "/nonexistent", "op-1"},
  };
  for (auto& words : spellings) {
    auto ran = praefectus(words);
    EXPECT_EQ(ran.exit, expected.exit) << words[1];
    EXPECT_EQ(ran.out, expected.out) << words[1];
    EXPECT_EQ(ran.err, "") << words[1];
  }
}

TEST(Options, doNotStandInForTheCommand) {
  for (auto words : {std::vector<std::string>{"--ledger", "/nonexistent", "status", "op-1"},
                     {"--ledger=/nonexistent", "status", "op-1"}}) {
    words.push_back("--json");
    auto ran = praefectus(words);
    EXPECT_EQ(ran.exit, 2);
    EXPECT_EQ(envelope(ran)["error"]["code"], "usage");
  }
}

}  // namespace
}  // namespace praefectus::tests
