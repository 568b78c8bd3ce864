// The command line as scripts and people meet it: one envelope, four exit codes, help everywhere.
#include "supervisor/cli/private-desktop.h"
#include "tests/cli/program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::tests {
namespace {

std::vector<std::string> environmentOf(const PrivateDesktop& desktop) {
  std::vector<std::string> out;
  for (auto& entry : desktop.environment()) out.push_back(entry.cStr());
  return out;
}

const std::vector<std::vector<std::string>> COMMANDS = {
    {"demo"},
    {"apps"},
    {"windows"},
    {"observe"},
    {"screenshot"},
    {"capabilities"},
    {"status"},
    {"verify"},
    {"doctor"},
    {"execute"},
    {"keys", "make"},
    {"keys", "list"},
    {"keys", "show"},
    {"grant", "show"},
    {"receipts", "list"},
    {"receipts", "show"},
    {"receipts", "export"},
    {"ledger", "report"},
    {"ledger", "check"},
    {"ledger", "backup"},
    {"ledger", "restore"},
    {"ledger", "archive"},
    {"ledger", "import"},
    {"ledger", "adopt"},
    {"ledger", "rotate"},
    {"ledger", "clock"},
};

TEST(Cli, everyCommandExplainsItself) {
  auto general = praefectus({"--help"});
  EXPECT_EQ(general.exit, 0);
  EXPECT_EQ(general.err, "");
  for (auto& words : COMMANDS) {
    auto command = words.size() == 1 ? words[0] : words[0] + " " + words[1];
    EXPECT_NE(general.out.find("  " + command + " "), std::string::npos) << command;
    auto asked = words;
    asked.push_back("--help");
    auto help = praefectus(asked);
    EXPECT_EQ(help.exit, 0) << command;
    EXPECT_EQ(help.out.rfind("praefectus " + command, 0), 0u) << help.out;
    asked.push_back("--json");
    auto json = envelope(praefectus(asked));
    EXPECT_EQ(json["ok"], true);
    EXPECT_EQ(json["data"]["command"], command);
  }
}

TEST(Cli, aGroupOfCommandsExplainsItsCommands) {
  for (const std::vector<std::string>& asked :
       {std::vector<std::string>{"keys", "--help"}, {"help", "keys"}}) {
    auto help = praefectus(asked);
    EXPECT_EQ(help.exit, 0);
    for (auto command : {"keys make NAME", "keys list", "keys show NAME"}) {
      EXPECT_NE(help.out.find(command), std::string::npos) << help.out;
    }
    EXPECT_EQ(help.out.find("praefectus grant"), std::string::npos) << help.out;
  }
  auto alone = praefectus({"keys"});
  EXPECT_EQ(alone.exit, 2);
  EXPECT_NE(alone.err.find("make, list, show"), std::string::npos) << alone.err;
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
      {"observe", "0x1", "--elements", "0"},
      {"observe", "0x1", "--elements", "5001"},
      {"observe", "0x1", "--depth=65"},
      {"observe", "0x1", "--text-bytes=16385"},
      {"observe", "0x1", "--time-ms=6001"},
      {"observe", "0x1", "--time-ms=1s"},
      {"observe", "0x1", "--below=5000"},
      {"observe", "0x1", "--below=x"},
      {"observe", "0x1", "--first=1"},
      {"observe", "0x1", "--again=301"},
      {"observe", "0x1", "--below=1", "--again=1"},
      {"status"},
      {"status", "--ledger"},
      {"status", "--ledger", "-x"},
      {"status", "--ledger", "a", "--ledger", "b"},
      {"verify", "--ledger", "a", "--key", "zz"},
      {"verify", "--ledger", "a", "--head", "1:zz"},
      {"status", "--ledger", "a", "not an id"},
      {"status", "--ledger", "a", "--list", "operation"},
      {"status", "--ledger="},
      {"status", "--ledger=a", "--list=yes"},
      {"demo", "--keep"},
      {"help", "nonsense"},
      {"keys"},
      {"keys", "nonsense"},
      {"keys", "nonsense", "--help"},
      {"keys", "make"},
      {"keys", "make", "a name"},
      {"keys", "make", ".hidden"},
      {"keys", "make", "../outside"},
      {"keys", "make", "with:colon"},
      {"keys", "make", "name"},  // Without HOME there is no default folder.
      {"keys", "show"},
      {"keys", "list", "name"},
      {"grant", "show"},
      {"grant", "show", "file", "--key", "zz"},
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

TEST(Cli, wrongUsageNamesTheWordAndShowsHowTheCommandIsUsed) {
  auto command = praefectus({"non\033sense"});
  EXPECT_NE(command.err.find("non\uFFFDsense"), std::string::npos) << command.err;
  auto option = praefectus({"verify", "--unknown=1"});
  EXPECT_NE(option.err.find("--unknown"), std::string::npos) << option.err;
  EXPECT_NE(option.err.find("praefectus verify --ledger FOLDER"), std::string::npos) << option.err;
  auto json = envelope(praefectus({"observe", "--json"}));
  EXPECT_NE(json["error"]["hint"].get<std::string>().find("praefectus observe WINDOW"),
            std::string::npos);
}

TEST(Cli, executeIsUsageWithTheReason) {
  auto ran = praefectus({"execute", "--json"});
  EXPECT_EQ(ran.exit, 2);
  auto json = envelope(ran);
  EXPECT_EQ(json["error"]["code"], "usage");
  EXPECT_NE(json["error"]["message"].get<std::string>().find("independent authority"),
            std::string::npos);
}

TEST(Cli, outputThatCannotBeWrittenExitsWithOne) {
  const std::vector<std::vector<std::string>> outputs = {
      {"--help"},         {"--help", "--json"},       {"nonsense", "--json"},
      {"capabilities"},   {"capabilities", "--json"}, {"demo"},
      {"demo", "--json"},
  };
  for (auto& arguments : outputs) {
    auto ran = praefectus(arguments, NO_DESKTOP, "/dev/full");
    EXPECT_EQ(ran.exit, 1) << arguments[0] << " " << arguments.back() << ": " << ran.err;
  }
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

TEST(Cli, theDoctorNamesAMissingAccessibilityBus) {
  PrivateDesktop::Options without;
  without.accessibility = false;
  PrivateDesktop desktop(without);
  auto doctor = praefectus({"doctor", "--json"}, environmentOf(desktop));
  EXPECT_EQ(doctor.exit, 3);
  EXPECT_EQ(envelope(doctor)["error"]["code"], "no_accessibility_bus");
}

TEST(Cli, capabilitiesSayWhatDoesNotWorkAndWhy) {
  auto ran = praefectus({"capabilities", "--json"});
  EXPECT_EQ(ran.exit, 0);
  auto json = envelope(ran);
  EXPECT_EQ(json["data"]["health"], "unavailable");
  EXPECT_EQ(json["data"]["acting"], false);
  for (auto& capability : json["data"]["capabilities"]) {
    EXPECT_EQ(capability["available"], false);
    EXPECT_EQ(capability["why"], "no_display");
  }
}

TEST(Cli, aLedgerThatIsNotThereIsRefusedByName) {
  for (const char* command : {"status", "verify"}) {
    auto ran = praefectus({command, "--ledger", "/nonexistent", "--json"});
    EXPECT_EQ(ran.exit, 3);
    auto json = envelope(ran);
    EXPECT_EQ(json["error"]["code"], "ledger_foreign");
    EXPECT_NE(json["error"]["hint"].get<std::string>().find("0700"), std::string::npos);
  }
}

TEST(Cli, aLedgerWithoutItsLogIsRefusedWithTheRemedy) {
  Folder folder;
  std::ofstream(folder.file("ledger.db")) << std::string(4096, 'x');
  auto json = envelope(praefectus({"verify", "--ledger=" + folder.path(), "--json"}));
  EXPECT_EQ(json["error"]["code"], "ledger_foreign");
  EXPECT_NE(json["error"]["hint"].get<std::string>().find("ledger.db-wal is missing"),
            std::string::npos);
}

TEST(Cli, theDemoNeverWritesIntoAFolderThatIsThere) {
  Folder folder;
  auto there = praefectus({"demo", "--keep", folder.path(), "--json"});
  EXPECT_EQ(there.exit, 3);
  EXPECT_EQ(envelope(there)["error"]["code"], "folder_exists");
  auto nowhere = praefectus({"demo", "--keep", folder.file("no/where"), "--json"});
  EXPECT_EQ(nowhere.exit, 3);
  EXPECT_EQ(envelope(nowhere)["error"]["code"], "folder_failed");
}

// Every element of the text stands under its parent: the last line above it that is indented less.
void expectTree(const std::string& text, const Json& elements) {
  std::vector<std::pair<size_t, size_t>> above;  // Indentation and number.
  size_t found = 0;
  for (auto& line : linesOf(text)) {
    auto indent = line.find_first_not_of(' ');
    if (indent == std::string::npos || !isdigit(static_cast<unsigned char>(line[indent]))) continue;
    size_t number = std::stoul(line.substr(indent));
    while (!above.empty() && above.back().first >= indent) above.pop_back();
    if (number > 0) {
      ASSERT_FALSE(above.empty()) << line;
      EXPECT_EQ(above.back().second, elements[number]["parent"].get<size_t>()) << line;
    }
    above.emplace_back(indent, number);
    ++found;
  }
  EXPECT_EQ(found, elements.size());
}

// Less of the same window than all of it, and what has changed in it.
void expectPartsOfReading(const std::string& id, const Json& whole,
                          const std::vector<std::string>& environment) {
  auto read = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"observe", id});
    options.push_back("--json");
    return envelope(praefectus(options, environment))["data"];
  };
  auto few = read({"--elements", "2"});
  EXPECT_EQ(few["elements"].size(), 2u);
  EXPECT_EQ(few["cut"]["elements"], true);
  EXPECT_TRUE(few["elements"][0]["children_cut"] == true ||
              few["elements"][1]["children_cut"] == true);

  auto below = read({"--below", "0"});
  EXPECT_EQ(below["elements"].size(), whole.size());
  auto later = read({"--below", "0", "--first", "1000000"});
  EXPECT_EQ(later["elements"].size(), 1u) << later;
  auto none = praefectus({"observe", id, "--below", "4999", "--json"}, environment);
  EXPECT_EQ(envelope(none)["error"]["code"], "target_missing");

  auto text = praefectus({"observe", id, "--again", "1"}, environment);
  EXPECT_NE(text.out.find("\nsince frame 1: 0 gone, 0 new, "), std::string::npos) << text.out;
  auto same = read({"--again", "1"});
  EXPECT_EQ(same["gone"], Json::array());
  for (auto& element : same["elements"]) EXPECT_EQ(element["change"], "same") << element;
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
  auto desktopSeen = envelope(praefectus({"windows", "--json"}, environment))["data"];
  EXPECT_EQ(desktopSeen["monitors"].size(), 1u);
  EXPECT_NE(desktopSeen["lock"], "locked");
  for (auto& window : desktopSeen["windows"]) {
    if (window["id"] == id) {
      EXPECT_EQ(window["kind"], "normal");
    }
  }
  auto apps = envelope(praefectus({"apps", "--json"}, environment));
  bool listed = false;
  for (auto& app : apps["data"]["applications"])
    listed |= app["pid"] == probe && app["state"] == "ready";
  EXPECT_TRUE(listed);

  auto png = folder.file("window.png");
  auto seen = envelope(praefectus({"observe", id, "--png", png, "--json"}, environment));
  ASSERT_EQ(seen["ok"], true);
  bool button = false;
  for (auto& element : seen["data"]["elements"]) {
    button |= element["name"] == "Record" && element["role"] == "push button";
    EXPECT_EQ(element["change"], "unknown");
  }
  EXPECT_TRUE(button);
  EXPECT_EQ(seen["data"]["content"], "elements");
  EXPECT_EQ(seen["data"]["picture"]["width"], seen["data"]["window"]["bounds"]["width"]);
  EXPECT_EQ(contents(png).substr(1, 3), "PNG");
  auto text = praefectus({"observe", id}, environment);
  EXPECT_NE(text.out.find("push button \"Record\""), std::string::npos);
  expectTree(text.out, seen["data"]["elements"]);
  expectPartsOfReading(id, seen["data"]["elements"], environment);
  auto again = praefectus({"observe", id, "--png", png, "--json"}, environment);
  EXPECT_EQ(again.exit, 1);
  EXPECT_EQ(envelope(again)["error"]["code"], "output_failed");
  auto missing = praefectus({"observe", "0x1", "--json"}, environment);
  EXPECT_EQ(envelope(missing)["error"]["code"], "target_missing");

  auto doctor = praefectus({"doctor", "--json"}, environment);
  EXPECT_EQ(doctor.exit, 0) << doctor.out << doctor.err;
  EXPECT_EQ(envelope(doctor)["ok"], true);
}

// What a program leaves running when it has ended. The kernel makes this process the parent of
// every descendant that loses its own, whatever session or group it is in (prctl(2),
// PR_SET_CHILD_SUBREAPER).
class LeftBehind {
 public:
  LeftBehind() { adopt(1); }
  ~LeftBehind() { adopt(0); }
  LeftBehind(const LeftBehind&) = delete;

  // Our children that run at this moment. Those that have ended are buried.
  std::vector<pid_t> now() {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::vector<pid_t> found;
    std::error_code gone;
    for (auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
      pid_t pid = atoi(entry.path().filename().c_str());
      if (pid > 0 && parentOf(pid) == getpid()) found.push_back(pid);
    }
    return found;
  }

  // The names of those that are still there when all that were ending had 20 s to do so.
  std::string forGood() {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::vector<pid_t> found;
    while (!(found = now()).empty() && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    std::string names;
    for (pid_t pid : found) names += contents("/proc/" + std::to_string(pid) + "/comm");
    return names;
  }

 private:
  static void adopt(unsigned long on) {
    if (prctl(PR_SET_CHILD_SUBREAPER, on, 0, 0, 0) != 0) throw std::runtime_error("prctl");
  }
  // Field 4 of /proc/PID/stat; the name before it may contain anything, so from the last bracket
  // on.
  static pid_t parentOf(pid_t pid) {
    auto stat = contents("/proc/" + std::to_string(pid) + "/stat");
    auto after = stat.rfind(')');
    if (after == std::string::npos || stat.size() < after + 5) return 0;
    return atoi(stat.c_str() + after + 4);
  }
};

TEST(Demo, aProcessThatIsLeftRunningWouldBeSeen) {
  LeftBehind left;
  EXPECT_EQ(left.forGood(), "");
  auto ran = run({"/bin/sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!"});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  auto found = left.now();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(std::to_string(found[0]), linesOf(ran.out)[0]);
  kill(found[0], SIGKILL);
  EXPECT_EQ(left.forGood(), "");
}

// As somebody who may write the file and has no key would.
void forgeReceipts(const std::string& ledger) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open((ledger + "/ledger.db").c_str(), &database), SQLITE_OK);
  // Or closing would remove the log, without which there is no ledger.
  sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  EXPECT_EQ(sqlite3_exec(database,
                         "DROP TRIGGER ending_fixed;"
                         "UPDATE ending SET signature = zeroblob(64)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
}

TEST(Demo, everyStepHoldsAndNothingIsLeftRunning) {
  LeftBehind left;
  Folder folder;
  auto kept = folder.file("kept");
  auto ran = praefectus({"demo", "--json", "--keep", kept});
  EXPECT_EQ(left.forGood(), "");
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
  auto head = std::to_string(status["data"]["sequence"].get<uint64_t>()) + ":" +
              status["data"]["head"].get<std::string>();
  auto ledger = kept + "/ledger";
  EXPECT_EQ(
      praefectus({"verify", "--ledger", ledger, "--key", json["data"]["key"], "--head", head}).exit,
      0);
  auto cut = praefectus({"verify", "--ledger", ledger, "--head", "9" + head, "--json"});
  EXPECT_EQ(cut.exit, 3);
  EXPECT_EQ(envelope(cut)["error"]["code"], "ledger_damaged");
  auto list = envelope(praefectus({"status", "--ledger", ledger, "--list", "--json"}))["data"];
  EXPECT_EQ(list["operations"].size(), status["data"]["operations"]);
  EXPECT_EQ(list["operations"][0]["sequence"], status["data"]["sequence"]);
  std::string operation = json["data"]["operation"];
  auto ended = envelope(praefectus({"status", "--ledger", ledger, operation, "--json"}))["data"];
  EXPECT_EQ(ended["state"], "ended");
  EXPECT_EQ(ended["receipt"]["terminal"], "succeeded");
  auto unknown = praefectus({"status", "--ledger", ledger, "never-used", "--json"});
  EXPECT_EQ(unknown.exit, 0);
  EXPECT_EQ(envelope(unknown)["data"]["state"], "unknown");
  EXPECT_EQ(status["data"]["open"], 0);
  EXPECT_GT(status["data"]["operations"], 3);

  forgeReceipts(ledger);
  auto forged = praefectus({"status", "--ledger", ledger, operation, "--json"});
  EXPECT_EQ(forged.exit, 3);
  EXPECT_EQ(envelope(forged)["error"]["code"], "record_damaged");
}

}  // namespace
}  // namespace praefectus::tests
