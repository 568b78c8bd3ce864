// The README's example is the program that is built and run here.
#include "tests/scenario/rig.h"

namespace praefectus::tests {
namespace {

TEST(Readme, itsExampleIsTheProgramThatTheTestsBuild) {
  auto page = contents(PRAEFECTUS_SOURCE "/README.md");
  auto program = contents(PRAEFECTUS_SOURCE "/tests/scenario/readme-example.cc");
  ASSERT_FALSE(program.empty());
  EXPECT_NE(page.find("```cpp\n" + program + "```"), std::string::npos);
}

TEST(Readme, itsExampleSetsATextOnARealWindow) {
  Rig rig;
  std::vector<std::string> environment;
  for (auto& entry : rig.desktop.environment()) environment.push_back(entry.cStr());
  rig.stop();  // One desktop has one actor.
  auto ran = run({PRAEFECTUS_BIN "/readme-example", rig.folder.file("its-ledger")}, environment);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out, "succeeded, verified\n");
  auto lines = rig.recorded("text");
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.back().find(hex("Hello from an agent."_kj.asBytes()).cStr()), std::string::npos);
}

TEST(Readme, whileOneSupervisorActsAnotherMayOnlyRead) {
  Rig rig;
  std::vector<std::string> environment;
  for (auto& entry : rig.desktop.environment()) environment.push_back(entry.cStr());
  auto ran = run({PRAEFECTUS_BIN "/readme-example", rig.folder.file("its-ledger")}, environment);
  EXPECT_EQ(ran.exit, 3);
  EXPECT_EQ(ran.err, "refused: Another supervisor acts on this desktop.\n");
}

}  // namespace
}  // namespace praefectus::tests
