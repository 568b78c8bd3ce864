// receipts list, show, export, and verify of what was exported: a ledger's word, checked on the way
// out and again by whoever has only a file and a key.
#include "tests/cli/program.h"
#include "tests/ledger/fixture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::tests {
namespace {

namespace fs = std::filesystem;
using test::NOW;

// Five operations: "first" and "second" of one session, "third" open, "fourth" refused, "fifth" a
// day later.
class Recorded {
 public:
  Recorded() : path(test::makeLedger(place)) {
    test::Running ledger(path);
    receiptKey = hex(bytesOf(ledger->receiptKey())).cStr();
    record(ledger, "first", "session-1", "turn-1", "invoke", NOW, true);
    record(ledger, "second", "session-1", "turn-2", "set_value", NOW + 1000, true);
    record(ledger, "third", "session-2", "turn-1", "set_value", NOW + 2000, false);
    ledger.concludes("fourth");
    record(ledger, "fifth", "session-2", "turn-1", "invoke", NOW + DAY, true);
  }

  static constexpr int64_t DAY = 24 * 3600 * 1000;

  std::string folder() const { return path.cStr(); }
  std::string key() const { return receiptKey; }
  std::string beside(const char* name) const { return (place / name).cStr(); }

  Ran ask(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--ledger", folder()});
    return praefectus(arguments);
  }
  Json data(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    auto ran = ask(arguments);
    EXPECT_EQ(ran.exit, 0) << ran.out;
    return envelope(ran)["data"];
  }
  std::string listed(std::vector<std::string> filter) const {
    filter.insert(filter.begin(), {"receipts", "list"});
    std::string names;
    auto list = data(filter);
    for (auto& one : list["operations"]) {
      names += (names.empty() ? "" : " ") + one["operation"].get<std::string>();
    }
    return names;
  }
  std::string refused(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    auto ran = ask(arguments);
    EXPECT_EQ(ran.exit, 3) << ran.out;
    return envelope(ran)["error"]["code"];
  }

  // As somebody who may write the file and has no key would.
  void damage(const char* operation) const {
    test::BackDoor door(path);
    auto script = kj::str(
        "DROP TRIGGER ending_fixed; UPDATE ending SET signature = zeroblob(64) WHERE operation = "
        "(SELECT place FROM operation WHERE id = '",
        operation, "')");
    ASSERT_EQ(door.run(script), SQLITE_OK) << door.said().cStr();
  }

 private:
  static void record(test::Running& ledger, const char* operation, const char* session,
                     const char* turn, const char* kind, int64_t at, bool ends) {
    auto claim = test::claimOf(operation);
    claim.session = kj::str(session);
    claim.turn = kj::str(turn);
    claim.kind = kj::str(kind);
    claim.at = at;
    KJ_ASSERT(ledger->claim(kj::mv(claim)).wait(ledger.wait()).ok());
    if (!ends) return;
    auto ending = test::success();
    ending.at = at + 5;
    KJ_ASSERT(ledger->settle(kj::str(operation), kj::mv(ending)).wait(ledger.wait()).ok());
  }

  test::TemporaryFolder place;
  kj::String path;
  std::string receiptKey;
};

TEST(Receipts, theNewestOperationIsListedFirst) {
  Recorded recorded;
  EXPECT_EQ(recorded.listed({}), "fifth fourth third second first");
  auto list = recorded.data({"receipts", "list"});
  EXPECT_EQ(list["cut"], false);
  EXPECT_EQ(list["operations"][0]["terminal"], "succeeded");
  EXPECT_EQ(list["operations"][0]["session"], "session-2");
  EXPECT_EQ(list["operations"][0]["at_ms"], NOW + Recorded::DAY + 5);
  EXPECT_EQ(list["operations"][1]["terminal"], "rejected");
  EXPECT_EQ(list["operations"][2]["state"], "open");
  EXPECT_TRUE(list["operations"][2]["terminal"].is_null());
  EXPECT_EQ(recorded.data({"status", "--list"}), list);
}

TEST(Receipts, everyFilterLeavesOutWhatDoesNotMatch) {
  Recorded recorded;
  EXPECT_EQ(recorded.listed({"--session", "session-2"}), "fifth third");
  EXPECT_EQ(recorded.listed({"--session", "session-1", "--turn", "turn-2"}), "second");
  EXPECT_EQ(recorded.listed({"--kind", "invoke"}), "fifth first");
  EXPECT_EQ(recorded.listed({"--terminal", "rejected"}), "fourth");
  EXPECT_EQ(recorded.listed({"--terminal", "succeeded", "--kind", "set_value"}), "second");
  EXPECT_EQ(recorded.listed({"--session", "nobody"}), "");
  EXPECT_TRUE(has(recorded.ask({"receipts", "list", "--session", "nobody"}).out, "no such"));
}

TEST(Receipts, sinceIsInclusiveAndUntilIsNot) {
  Recorded recorded;
  auto at = [](int64_t ms) { return std::to_string(ms); };
  EXPECT_EQ(recorded.listed({"--since", at(NOW + 1000), "--until", at(NOW + 2000)}), "second");
  EXPECT_EQ(recorded.listed({"--since", at(NOW + 1001), "--until", at(NOW + 2001)}), "third");
  // NOW is 2023-11-14 22:13:20 UTC.
  EXPECT_EQ(recorded.listed({"--since", "2023-11-15"}), "fifth");
  EXPECT_EQ(recorded.listed({"--until", "2023-11-14T22:13:21Z"}), "fourth first");
  EXPECT_EQ(recorded.listed({"--since", "2023-11-14 22:13:21Z", "--until", "2023-11-14T22:14Z"}),
            "third second");
}

TEST(Receipts, aTimeWithoutZoneIsInOurs) {
  Recorded recorded;
  auto environment = NO_DESKTOP;
  environment.push_back("TZ=XYZ-5:30");
  auto ran = praefectus({"receipts", "list", "--ledger", recorded.folder(), "--json", "--since",
                         "2023-11-15T03:43:21"},
                        environment);
  EXPECT_EQ(envelope(ran)["data"]["operations"].size(), 3u) << ran.out;
}

TEST(Receipts, aListThatWasCutSaysSo) {
  Recorded recorded;
  auto list = recorded.data({"receipts", "list", "--limit", "2"});
  EXPECT_EQ(list["operations"].size(), 2u);
  EXPECT_EQ(list["cut"], true);
  EXPECT_TRUE(has(recorded.ask({"receipts", "list", "--limit", "2"}).out, "there are more"));
  EXPECT_EQ(recorded.data({"receipts", "list", "--limit", "5"})["cut"], false);
}

TEST(Receipts, aReceiptIsToldInWords) {
  Recorded recorded;
  auto ran = recorded.ask({"receipts", "show", "first"});
  EXPECT_EQ(ran.exit, 0);
  for (auto part :
       {"operation    first", "succeeded, verified by value_readback", "invoke (semantic_mutation)",
        "background_only, reversible, proof value", "rights       irreversible",
        "lease-1, policy "
        "generation 4",
        "session-1, turn turn-1", "2023-11-14 22:13:20.005 UTC"}) {
    EXPECT_TRUE(has(ran.out, part)) << part << "\n" << ran.out;
  }
  auto receipt = recorded.data({"receipts", "show", "first"})["receipt"];
  EXPECT_EQ(receipt["operation"], "first");
  EXPECT_EQ(receipt["mode"], "background_only");
  EXPECT_EQ(receipt["proof"], "value");
  EXPECT_EQ(receipt["rights"]["irreversible"], true);
  EXPECT_EQ(receipt["lease"], "lease-1");
  EXPECT_EQ(receipt["policy_generation"], 4);
  EXPECT_EQ(recorded.data({"status", "first"})["receipt"], receipt);
}

TEST(Receipts, whatHasNoReceiptIsNamed) {
  Recorded recorded;
  EXPECT_EQ(recorded.refused({"receipts", "show", "third"}), "no_receipt");
  EXPECT_TRUE(has(recorded.ask({"receipts", "show", "third"}).err, "open"));
  EXPECT_EQ(recorded.refused({"receipts", "show", "never-used"}), "no_receipt");
  EXPECT_TRUE(has(recorded.ask({"receipts", "show", "never-used"}).err, "never seen"));
  EXPECT_EQ(recorded.refused({"receipts", "export", "third", "--to", recorded.beside("x")}),
            "no_receipt");
  EXPECT_FALSE(fs::exists(recorded.beside("x")));
}

TEST(Receipts, anExportedReceiptNeedsNothingButThePublicKey) {
  Recorded recorded;
  auto file = recorded.beside("first.receipt");
  auto exported = recorded.data({"receipts", "export", "first", "--to", file});
  EXPECT_EQ(exported["keys"], (Json{recorded.key()}));
  fs::remove_all(recorded.folder());
  auto verified = praefectus({"verify", file, "--key", recorded.key(), "--json"});
  EXPECT_EQ(verified.exit, 0) << verified.out;
  auto data = envelope(verified)["data"];
  EXPECT_EQ(data["kind"], "receipt");
  EXPECT_EQ(data["receipt"]["operation"], "first");
  EXPECT_TRUE(has(praefectus({"verify", file, "--key", recorded.key()}).out, "verified"));
}

TEST(Receipts, anExportedReceiptIsNoGoodWithAnotherKeyOrAfterAnyChange) {
  Recorded recorded;
  auto file = recorded.beside("first.receipt");
  recorded.data({"receipts", "export", "first", "--to", file});
  auto verify = [&](const std::string& path, const std::string& key) {
    auto ran = praefectus({"verify", path, "--key", key, "--json"});
    EXPECT_EQ(ran.exit, 3) << ran.out;
    return envelope(ran)["error"]["code"];
  };
  EXPECT_EQ(verify(file, std::string(64, '0')), "policy_denied");
  auto bytes = contents(file);
  auto at = bytes.find("first");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 5, "worst");
  std::ofstream(recorded.beside("changed"), std::ios::binary) << bytes;
  EXPECT_EQ(verify(recorded.beside("changed"), recorded.key()), "policy_denied");
  std::ofstream(recorded.beside("cut"), std::ios::binary) << bytes.substr(0, bytes.size() - 8);
  EXPECT_EQ(verify(recorded.beside("cut"), recorded.key()), "malformed");
  EXPECT_EQ(verify(recorded.beside("nothing"), recorded.key()), "input_failed");
}

TEST(Receipts, aSignedRefusalIsVerifiedInTheSameWay) {
  Recorded recorded;
  test::TemporaryFolder place;
  auto folder = test::makeLedger(place);
  test::Running ledger(folder);
  attest::Refused refused;
  refused.subject = kj::str("uid:1000");
  refused.session = kj::str("session-1");
  refused.sequence = 1;
  refused.operation = kj::str("never-done");
  refused.code = RefusalCode::STALE_FRAME;
  refused.at = NOW;
  auto sealed = ledger->sign(kj::mv(refused));
  test::writeWhole(place / "refused", attest::envelopeBytes(sealed));
  std::string file = (place / "refused").cStr();
  std::string key = hex(bytesOf(ledger->receiptKey())).cStr();
  auto data = envelope(praefectus({"verify", file, "--key", key, "--json"}))["data"];
  EXPECT_EQ(data["kind"], "refusal");
  EXPECT_EQ(data["refusal"]["code"], "stale_frame");
  EXPECT_EQ(data["refusal"]["dispatched"], false);
  EXPECT_EQ(data["refusal"]["operation"], "never-done");
  EXPECT_EQ(praefectus({"verify", file, "--key", recorded.key()}).exit, 3);
}

TEST(Receipts, allThatMatchAreExportedEachAsAFileThatVerifies) {
  Recorded recorded;
  auto all = recorded.data({"receipts", "export", "--to", recorded.beside("deep/all")});
  EXPECT_EQ(all["files"].size(), 4u);
  EXPECT_EQ(all["open"], 1);
  EXPECT_EQ(all["damaged"], 0);
  std::string seen;
  for (auto& file : all["files"]) {
    struct stat info {};
    EXPECT_EQ(stat(file.get<std::string>().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    auto verified = envelope(praefectus({"verify", file, "--key", recorded.key(), "--json"}));
    EXPECT_EQ(verified["ok"], true) << file;
    seen += verified["data"]["receipt"]["operation"].get<std::string>() + " ";
  }
  EXPECT_EQ(seen, "fifth fourth second first ");

  auto some = recorded.data(
      {"receipts", "export", "--to", recorded.beside("some"), "--session", "session-2"});
  EXPECT_EQ(some["files"].size(), 1u);
}

TEST(Receipts, noExportWritesOverAFile) {
  Recorded recorded;
  auto file = recorded.beside("first.receipt");
  std::ofstream(file) << "mine";
  auto one = recorded.ask({"receipts", "export", "first", "--to", file, "--json"});
  EXPECT_EQ(one.exit, 1);
  EXPECT_EQ(envelope(one)["error"]["code"], "output_failed");
  EXPECT_EQ(contents(file), "mine");
  recorded.data({"receipts", "export", "--to", recorded.beside("all")});
  auto again = recorded.ask({"receipts", "export", "--to", recorded.beside("all"), "--json"});
  EXPECT_EQ(again.exit, 1);
  EXPECT_EQ(envelope(again)["error"]["code"], "output_failed");
  EXPECT_EQ(recorded.refused({"receipts", "export", "--to", file}), "folder_failed");
}

TEST(Receipts, aReceiptThatDoesNotCarryItsSignatureIsNotRepeated) {
  Recorded recorded;
  recorded.damage("second");
  EXPECT_EQ(recorded.refused({"receipts", "show", "second"}), "record_damaged");
  EXPECT_EQ(recorded.refused({"status", "second"}), "record_damaged");
  EXPECT_EQ(recorded.refused({"receipts", "export", "second", "--to", recorded.beside("x")}),
            "record_damaged");

  auto list = recorded.ask({"receipts", "list", "--json"});
  EXPECT_EQ(list.exit, 3);
  auto json = envelope(list);
  EXPECT_EQ(json["error"]["code"], "ledger_damaged");
  EXPECT_EQ(json["data"]["operations"][3]["operation"], "second");
  EXPECT_EQ(json["data"]["operations"][3]["state"], "damaged");
  EXPECT_TRUE(json["data"]["operations"][3]["terminal"].is_null());

  auto all = recorded.ask({"receipts", "export", "--to", recorded.beside("all"), "--json"});
  EXPECT_EQ(all.exit, 3);
  EXPECT_EQ(envelope(all)["error"]["code"], "ledger_damaged");
  EXPECT_EQ(envelope(all)["data"]["files"].size(), 3u);
  EXPECT_EQ(envelope(all)["data"]["damaged"], 1);
}

TEST(Receipts, wrongUsageIsSaidBeforeAnythingIsOpened) {
  const std::vector<std::vector<std::string>> wrong = {
      {"receipts", "list", "--terminal", "finished"},
      {"receipts", "list", "--since", "yesterday"},
      {"receipts", "list", "--since", "2023-02-30"},
      {"receipts", "list", "--since", "2023-02-03x"},
      {"receipts", "list", "--limit", "0"},
      {"receipts", "list", "--limit", "100001"},
      {"receipts", "list", "--limit", "1x"},
      {"receipts", "list", "--session", "a b"},
      {"receipts", "list", "operation"},
      {"receipts", "show"},
      {"receipts", "show", "a b"},
      {"receipts", "export", "operation"},
      {"receipts", "export"},
      {"receipts", "export", "operation", "--to", "x", "--kind", "invoke"},
      {"verify", "file", "--key", std::string(64, 'a')},
  };
  for (auto arguments : wrong) {
    arguments.insert(arguments.end(), {"--ledger", "/nonexistent", "--json"});
    auto ran = praefectus(arguments);
    EXPECT_EQ(ran.exit, 2) << ran.out;
    EXPECT_EQ(envelope(ran)["error"]["code"], "usage") << ran.out;
  }
  EXPECT_EQ(praefectus({"receipts", "list"}).exit, 2);
  EXPECT_EQ(praefectus({"receipts", "export", "--to", "x"}).exit, 2);
  EXPECT_EQ(praefectus({"verify", "file"}).exit, 2);
}

// ---- Progress

// What a program says on standard error when that is a terminal.
std::string saidToATerminal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), PRAEFECTUS_BIN "/praefectus");
  int terminal = -1;
  pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  std::string said;
  char piece[4096];
  // A terminal whose other end was closed reads as EIO (pty(7)).
  for (ssize_t n; (n = ::read(terminal, piece, sizeof(piece))) > 0;) {
    said.append(piece, static_cast<size_t>(n));
  }
  close(terminal);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << said;
  return said;
}

TEST(Progress, isSaidOnATerminalAndTakenAwayAgain) {
  Recorded recorded;
  auto verify = saidToATerminal({"verify", "--ledger", recorded.folder()});
  EXPECT_TRUE(has(verify, "checking: ")) << verify;
  EXPECT_TRUE(has(verify, " of ")) << verify;
  EXPECT_EQ(verify.substr(verify.size() - 2), " \r") << verify;
  auto all = saidToATerminal(
      {"receipts", "export", "--ledger", recorded.folder(), "--to", recorded.beside("all")});
  EXPECT_TRUE(has(all, "exporting: 0 of 5, 0 %")) << all;
}

TEST(Progress, isNotSaidWhereNobodyLooks) {
  Recorded recorded;
  EXPECT_EQ(recorded.ask({"verify"}).err, "");
  EXPECT_EQ(recorded.ask({"receipts", "export", "--to", recorded.beside("all")}).err, "");
}

}  // namespace
}  // namespace praefectus::tests
