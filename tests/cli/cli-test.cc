// The command line as scripts and people meet it: one envelope, four exit codes, help everywhere.
#include "supervisor/cli/private-desktop.h"
#include "tests/support/run.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace praefectus::tests {
namespace {

using Json = nlohmann::json;

const std::string PROGRAM = PRAEFECTUS_BIN "/praefectus";
const std::vector<std::string> NO_DESKTOP = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TMPDIR=/tmp"};

Ran praefectus(std::vector<std::string> arguments, const std::vector<std::string>& environment = NO_DESKTOP,
               const std::string& output = "") {
  arguments.insert(arguments.begin(), PROGRAM);
  return run(arguments, environment, output);
}

// The one line on standard output.
Json envelope(const Ran& ran) {
  auto lines = linesOf(ran.out);
  EXPECT_EQ(lines.size(), 1u) << ran.out;
  auto json = Json::parse(ran.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << ran.out;
  return json;
}

std::vector<std::string> environmentOf(const PrivateDesktop& desktop) {
  std::vector<std::string> out;
  for (auto& entry : desktop.environment()) out.push_back(entry.cStr());
  return out;
}

const std::vector<std::string> COMMANDS = {"demo",         "apps",   "windows", "observe", "capabilities",
                                           "status",       "verify", "doctor",  "execute"};

TEST(Cli, everyCommandExplainsItself) {
  auto general = praefectus({"--help"});
  EXPECT_EQ(general.exit, 0);
  EXPECT_EQ(general.err, "");
  for (auto& command : COMMANDS) {
    EXPECT_NE(general.out.find(command), std::string::npos) << command;
    auto help = praefectus({command, "--help"});
    EXPECT_EQ(help.exit, 0) << command;
    EXPECT_EQ(help.out.rfind("praefectus " + command, 0), 0u) << help.out;
    auto json = envelope(praefectus({command, "--help", "--json"}));
    EXPECT_EQ(json["ok"], true);
  }
}

TEST(Cli, wrongUsageExitsWithTwoAndSaysUsage) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"nonsense"},
      {"apps", "extra"},
      {"apps", "--unknown"},
      {"observe"},
      {"observe", "not-a-number"},
      {"observe", "0x1", "--png"},
      {"status"},
      {"status", "--ledger"},
      {"status", "--ledger", "-x"},
      {"status", "--ledger", "a", "--ledger", "b"},
      {"verify", "--ledger", "a", "--key", "zz"},
      {"demo", "--keep"},
      {"help", "nonsense"},
  };
  for (auto arguments : wrong) {
    auto text = praefectus(arguments);
    EXPECT_EQ(text.exit, 2);
    EXPECT_EQ(text.out, "");
    EXPECT_NE(text.err, "");
    arguments.push_back("--json");
    auto ran = praefectus(arguments);
    EXPECT_EQ(ran.exit, 2);
    EXPECT_EQ(ran.err, "");
    auto json = envelope(ran);
    EXPECT_EQ(json["ok"], false);
    EXPECT_EQ(json["error"]["code"], "usage");
    EXPECT_FALSE(json["error"]["message"].get<std::string>().empty());
  }
}

TEST(Cli, executeIsUsageWithTheReason) {
  auto ran = praefectus({"execute", "--json"});
  EXPECT_EQ(ran.exit, 2);
  auto json = envelope(ran);
  EXPECT_EQ(json["error"]["code"], "usage");
  EXPECT_NE(json["error"]["message"].get<std::string>().find("independent authority"), std::string::npos);
}

TEST(Cli, outputThatCannotBeWrittenExitsWithOne) {
  EXPECT_EQ(praefectus({"--help"}, NO_DESKTOP, "/dev/full").exit, 1);
  EXPECT_EQ(praefectus({"--help", "--json"}, NO_DESKTOP, "/dev/full").exit, 1);
  EXPECT_EQ(praefectus({"nonsense", "--json"}, NO_DESKTOP, "/dev/full").exit, 1);
}

TEST(Cli, withoutADisplayReadingIsRefusedByName) {
  for (const char* command : {"apps", "windows"}) {
    auto ran = praefectus({command, "--json"});
    EXPECT_EQ(ran.exit, 3);
    EXPECT_EQ(envelope(ran)["error"]["code"], "no_display");
  }
  auto doctor = praefectus({"doctor", "--json"});
  EXPECT_EQ(doctor.exit, 3);
  EXPECT_EQ(envelope(doctor)["error"]["code"], "no_display");
}

TEST(Cli, capabilitiesSayWhatDoesNotWorkAndWhy) {
  auto ran = praefectus({"capabilities", "--json"});
  EXPECT_EQ(ran.exit, 0);
  auto json = envelope(ran);
  EXPECT_EQ(json["data"]["health"], "unavailable");
  for (auto& capability : json["data"]["capabilities"]) {
    EXPECT_EQ(capability["available"], false);
    EXPECT_EQ(capability["why"], "no_display");
  }
}

TEST(Cli, aLedgerThatIsNotThereIsRefusedByName) {
  for (const char* command : {"status", "verify"}) {
    auto ran = praefectus({command, "--ledger", "/nonexistent", "--json"});
    EXPECT_EQ(ran.exit, 3);
    EXPECT_EQ(envelope(ran)["error"]["code"], "ledger_foreign");
  }
}

TEST(Cli, aDesktopCanBeReadAndTheDoctorActsOnIt) {
  PrivateDesktop desktop;
  Folder folder;
  auto environment = environmentOf(desktop);
  kj::StringPtr command[] = {PRAEFECTUS_BIN "/praefectus-probe"};
  pid_t probe = desktop.run(kj::arrayPtr(command, 1)).pid;

  std::string id;
  for (int looks = 0; looks < 100 && id.empty(); ++looks) {
    auto listed = envelope(praefectus({"windows", "--json"}, environment));
    for (auto& window : listed["data"]["windows"]) {
      if (window["pid"] == probe && window["accessible"] == true) id = window["id"];
    }
  }
  ASSERT_FALSE(id.empty());
  auto apps = envelope(praefectus({"apps", "--json"}, environment));
  bool listed = false;
  for (auto& app : apps["data"]["applications"]) listed |= app["pid"] == probe && app["state"] == "ready";
  EXPECT_TRUE(listed);

  auto png = folder.file("window.png");
  auto seen = envelope(praefectus({"observe", id, "--png", png, "--json"}, environment));
  ASSERT_EQ(seen["ok"], true);
  bool button = false;
  for (auto& element : seen["data"]["elements"]) button |= element["name"] == "Record";
  EXPECT_TRUE(button);
  EXPECT_EQ(contents(png).substr(1, 3), "PNG");
  auto text = praefectus({"observe", id}, environment);
  EXPECT_NE(text.out.find("push button \"Record\""), std::string::npos);
  auto missing = praefectus({"observe", "0x1", "--json"}, environment);
  EXPECT_EQ(envelope(missing)["error"]["code"], "target_missing");

  auto doctor = praefectus({"doctor", "--json"}, environment);
  EXPECT_EQ(doctor.exit, 0) << doctor.out << doctor.err;
  EXPECT_EQ(envelope(doctor)["ok"], true);
}

TEST(Demo, everyStepHoldsAndNothingIsLeftRunning) {
  Folder folder;
  auto kept = folder.file("kept");
  auto ran = praefectus({"demo", "--json", "--keep", kept});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  auto json = Json::parse(linesOf(ran.out).back());
  EXPECT_EQ(json["ok"], true);
  EXPECT_GE(json["steps"].size(), 10u);
  for (auto& step : json["steps"]) EXPECT_EQ(step["ok"], true) << step;
  for (auto& picture : json["data"]["pictures"]) {
    EXPECT_EQ(contents(picture.get<std::string>()).substr(1, 3), "PNG");
  }
  EXPECT_NE(contents(kept + "/before.png"), contents(kept + "/after.png"));

  auto verified = envelope(praefectus({"verify", "--ledger", kept + "/ledger", "--json"}));
  EXPECT_EQ(verified["ok"], true);
  auto status = envelope(praefectus({"status", "--ledger", kept + "/ledger", "--json"}));
  EXPECT_EQ(status["data"]["open"], 0);
  EXPECT_GT(status["data"]["operations"], 3);
}

}  // namespace
}  // namespace praefectus::tests
