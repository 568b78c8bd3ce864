#include "tests/cli/program.h"

#include <gtest/gtest.h>

namespace praefectus::tests {

const std::vector<std::string> NO_DESKTOP = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TMPDIR=/tmp"};

Ran praefectus(std::vector<std::string> arguments, const std::vector<std::string>& environment,
               const std::string& output) {
  arguments.insert(arguments.begin(), PRAEFECTUS_BIN "/praefectus");
  return run(arguments, environment, output);
}

Json envelope(const Ran& ran) {
  auto lines = linesOf(ran.out);
  EXPECT_EQ(lines.size(), 1u) << ran.out;
  auto json = Json::parse(ran.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << ran.out;
  return json;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace praefectus::tests
