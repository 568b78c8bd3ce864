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

// The example with the rig's desktop, and a key and a ledger of its own.
Ran runExample(Rig& rig) {
  std::vector<std::string> environment;
  for (auto& entry : rig.desktop.environment()) environment.push_back(entry.cStr());
  return run({PRAEFECTUS_BIN "/readme-example", rig.folder.file("its-key"),
              rig.folder.file("its-ledger"), "greeting-1"},
             environment);
}

TEST(Readme, itsExampleSetsATextOnARealWindow) {
  Rig rig;
  rig.stop();  // One desktop has one actor.
  auto ran = runExample(rig);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out, "succeeded, verified\n");
  auto lines = rig.recorded("text");
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.back().find(hex("Hello from an agent."_kj.asBytes()).cStr()), std::string::npos);
}

TEST(Readme, itsExampleRunAgainAnswersTheSameAndActsNoMore) {
  Rig rig;
  rig.stop();
  auto first = runExample(rig);
  auto written = rig.recorded("text").size();
  auto second = runExample(rig);
  EXPECT_EQ(second.exit, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(rig.recorded("text").size(), written);
}

TEST(Readme, whileOneSupervisorActsAnotherMayOnlyRead) {
  Rig rig;
  auto seen = rig.look();
  auto request = rig.session->setValue(seen, Rig::entry(seen), "The desktop is mine.");
  rig.need(rig.session->execute(request));
  auto ran = runExample(rig);
  EXPECT_EQ(ran.exit, 3);
  EXPECT_EQ(ran.err, "refused: Another supervisor acts on this desktop.\n");
}

}  // namespace
}  // namespace praefectus::tests
