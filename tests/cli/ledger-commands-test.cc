// ledger …: what a person does to a ledger at rest, through the shipped program.
#include "tests/cli/program.h"
#include "tests/ledger/fixture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>

namespace praefectus::tests {
namespace {

namespace fs = std::filesystem;
using test::NOW;

// A ledger with three operations that have ended, one of them refused.
class Kept {
 public:
  Kept() : path(test::makeLedger(place)) {
    test::Running ledger(path);
    for (auto operation : {"first", "second"}) {
      KJ_ASSERT(ledger.claims(operation));
      ledger.settles(operation);
    }
    ledger.concludes("third");
  }

  std::string folder() const { return path.cStr(); }
  std::string beside(const char* name) const { return (place / name).cStr(); }

  Ran ask(std::vector<std::string> arguments, const std::string& of = "") const {
    // Nobody is there to be asked.
    for (auto asking : {"adopt", "archive", "restore"}) {
      if (arguments[0] == asking) arguments.push_back("--yes");
    }
    arguments.insert(arguments.begin(), "ledger");
    arguments.insert(arguments.end(), {"--ledger", of.empty() ? folder() : of});
    return praefectus(arguments);
  }
  Json data(std::vector<std::string> arguments, const std::string& of = "") const {
    arguments.push_back("--json");
    auto ran = ask(arguments, of);
    EXPECT_EQ(ran.exit, 0) << ran.out;
    return envelope(ran)["data"];
  }
  std::string refused(std::vector<std::string> arguments, const std::string& of = "") const {
    arguments.push_back("--json");
    auto ran = ask(arguments, of);
    EXPECT_EQ(ran.exit, 3) << ran.out;
    return envelope(ran)["error"]["code"];
  }

 private:
  test::TemporaryFolder place;

 public:
  kj::String path;
};

size_t widestLine(const std::string& text) {
  size_t widest = 0;
  for (auto& line : linesOf(text)) widest = std::max(widest, line.size());
  return widest;
}

TEST(LedgerCommands, theReportCountsWhatIsThere) {
  Kept kept;
  auto data = kept.data({"report"});
  EXPECT_EQ(data["summary"]["operations"], 3);
  EXPECT_EQ(data["terminals"]["succeeded"], 2);
  EXPECT_EQ(data["terminals"]["rejected"], 1);
  EXPECT_EQ(data["events"]["created"], 1);
  EXPECT_EQ(data["keys"].size(), 1u);
  EXPECT_EQ(data["keys"][0]["key"], data["summary"]["receipt_key"]);
  EXPECT_EQ(data["first_ms"], NOW);
  EXPECT_EQ(data["moved"], false);
  EXPECT_GT(data["database_bytes"], 0);
  auto text = kept.ask({"report"}).out;
  for (auto part : {"2 succeeded", "1 rejected", "3, 0 open", "1 created"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  EXPECT_LE(widestLine(text), 80u) << text;
}

TEST(LedgerCommands, theHeadCanBeCopiedHoweverLongTheChainIs) {
  Kept kept;
  {
    test::Running ledger(kept.path);
    for (int i = 0; i < 100; ++i) ledger.concludes(kj::str("operation-", i));
  }
  auto summary = kept.data({"report"})["summary"];
  auto head =
      std::to_string(summary["sequence"].get<int>()) + ":" + summary["head"].get<std::string>();
  ASSERT_GT(head.size(), 67u);
  EXPECT_TRUE(has(praefectus({"status", "--ledger", kept.folder()}).out, head + "\n"));
  auto status = envelope(praefectus({"status", "--ledger", kept.folder(), "--json"}));
  EXPECT_EQ(status["data"]["head_argument"], head);
  EXPECT_EQ(praefectus({"verify", "--ledger", kept.folder(), "--head", head}).exit, 0);
}

TEST(LedgerCommands, theCheckFindsWhatVerificationDoesNotLookAt) {
  Kept kept;
  auto good = kept.data({"check"});
  EXPECT_EQ(good["findings"].size(), 0u);
  EXPECT_EQ(good["receipts"], 3);
  auto key = good["summary"]["receipt_key"].get<std::string>();
  EXPECT_EQ(kept.data({"check", "--key", key})["trusted_key"], true);
  chmod((kept.folder() + "/receipt.key").c_str(), 0644);
  EXPECT_EQ(praefectus({"verify", "--ledger", kept.folder()}).exit, 0);
  EXPECT_EQ(kept.refused({"check"}), "ledger_damaged");
}

TEST(LedgerCommands, aBackupIsAWholeLedgerThatServesNobodyYet) {
  Kept kept;
  auto copy = kept.beside("copy");
  auto data = kept.data({"backup", "--to", copy});
  EXPECT_EQ(data["summary"]["operations"], 3);
  EXPECT_EQ(data["findings"], 0);
  EXPECT_EQ(praefectus({"verify", "--ledger", copy}).exit, 0);
  EXPECT_STREQ(test::outcomeOfOpening(copy.c_str()).cStr(), "ledger_moved");
  EXPECT_EQ(kept.data({"report"}, copy)["moved"], true);
  EXPECT_EQ(kept.refused({"backup", "--to", copy}), "ledger_foreign");
}

TEST(LedgerCommands, aRestoredLedgerIsANewIncarnationAboveTheOneThatIsNamed) {
  Kept kept;
  kept.data({"backup", "--to", kept.beside("copy")});
  auto restored = kept.data({"restore", "--from", kept.beside("copy")}, kept.beside("new"));
  EXPECT_EQ(restored["summary"]["incarnation"], 2);
  EXPECT_STREQ(test::outcomeOfOpening(kept.beside("new").c_str()).cStr(), "ok");
  auto above =
      kept.data({"restore", "--from", kept.beside("copy"), "--above", "6"}, kept.beside("other"));
  EXPECT_EQ(above["summary"]["incarnation"], 7);
  EXPECT_EQ(kept.refused({"restore", "--from", kept.beside("copy")}), "ledger_foreign");
}

TEST(LedgerCommands, aMovedLedgerServesAgainOnceItIsAdopted) {
  Kept kept;
  auto moved = kept.beside("moved");
  test::copyFolder(kept.path, moved.c_str());
  EXPECT_EQ(kept.refused({"rotate"}, moved), "ledger_moved");
  auto ran = kept.ask({"rotate", "--json"}, moved);
  EXPECT_TRUE(has(envelope(ran)["error"]["hint"], "ledger adopt")) << ran.out;
  EXPECT_EQ(kept.data({"adopt"}, moved)["incarnation"], 2);
  EXPECT_STREQ(test::outcomeOfOpening(moved.c_str()).cStr(), "ok");
  EXPECT_EQ(kept.data({"adopt", "--above", "9"}, moved)["incarnation"], 10);
}

TEST(LedgerCommands, whatTheOldKeySignedIsStillShownAndExportedAfterARotation) {
  Kept kept;
  auto before = kept.data({"report"})["summary"]["receipt_key"].get<std::string>();
  auto after = kept.data({"rotate"})["receipt_key"].get<std::string>();
  EXPECT_NE(before, after);
  EXPECT_EQ(kept.data({"report"})["keys"].size(), 2u);
  auto shown =
      envelope(praefectus({"receipts", "show", "first", "--ledger", kept.folder(), "--json"}));
  EXPECT_EQ(shown["data"]["receipt"]["terminal"], "succeeded");
  auto list = envelope(praefectus({"receipts", "list", "--ledger", kept.folder(), "--json"}));
  EXPECT_EQ(list["ok"], true);

  auto file = kept.beside("first.receipt");
  auto exported = envelope(praefectus(
      {"receipts", "export", "first", "--to", file, "--ledger", kept.folder(), "--json"}));
  EXPECT_EQ(exported["data"]["keys"], (Json{before}));
  EXPECT_EQ(praefectus({"verify", file, "--key", before}).exit, 0);
  EXPECT_EQ(praefectus({"verify", file, "--key", after}).exit, 3);
}

TEST(LedgerCommands, aKeyThatIsNotTheOneToCheckWithIsToldFromDamage) {
  Kept kept;
  auto first = kept.data({"report"})["summary"]["receipt_key"].get<std::string>();
  auto later = kept.data({"rotate"})["receipt_key"].get<std::string>();
  EXPECT_TRUE(has(kept.ask({"rotate"}).out, "with the first key"));
  auto ask = [&](bool check, const std::string& key) {
    std::vector<std::string> words{"verify", "--ledger", kept.folder(), "--key", key, "--json"};
    if (check) words.insert(words.begin(), {"ledger", "check"});
    if (check) words.erase(words.begin() + 2);
    return praefectus(words);
  };
  for (bool check : {false, true}) {
    EXPECT_EQ(ask(check, first).exit, 0);
    auto present = kept.data({"report"})["summary"]["receipt_key"].get<std::string>();
    auto early = ask(check, present);
    EXPECT_EQ(early.exit, 3);
    EXPECT_EQ(envelope(early)["error"]["code"], "other_key") << early.out;
    EXPECT_TRUE(has(envelope(early)["error"]["message"], "present key")) << early.out;
    EXPECT_TRUE(has(envelope(early)["error"]["message"], first)) << early.out;
    auto wrong = ask(check, std::string(64, '1'));
    EXPECT_EQ(wrong.exit, 3);
    EXPECT_EQ(envelope(wrong)["error"]["code"], "other_key") << wrong.out;
    EXPECT_EQ(envelope(wrong)["data"]["findings"].size(), 1u) << wrong.out;
  }
  // It signed that another one follows.
  EXPECT_EQ(ask(false, later).exit, 0);
  chmod((kept.folder() + "/receipt.key").c_str(), 0644);
  auto damaged = envelope(ask(true, std::string(64, '1')));
  EXPECT_EQ(damaged["error"]["code"], "ledger_damaged");
  EXPECT_GE(damaged["data"]["findings"].size(), 2u);
  EXPECT_TRUE(has(damaged["data"]["findings"].back()["what"], "another key"));
}

// The private half of the key that signs receipts, before and after it was replaced.
TEST(LedgerCommands, noCommandPrintsTheReceiptKey) {
  Kept kept;
  std::string said;
  std::vector<std::string> secrets;
  auto note = [&] {
    auto line = contents(kept.folder() + "/receipt.key");
    secrets.push_back(line.substr(line.find(' ') + 1, 64));
    ASSERT_EQ(secrets.back().size(), 64u);
  };
  auto say = [&](std::vector<std::string> arguments) {
    auto ran = kept.ask(arguments);
    said += ran.out + ran.err;
    arguments.push_back("--json");
    ran = kept.ask(arguments);
    said += ran.out + ran.err;
  };
  note();
  for (int round = 0; round < 2; ++round) {
    say({"report"});
    say({"check"});
    say({"backup", "--to", kept.beside(round == 0 ? "a" : "b")});
    say({"rotate"});
    say({"adopt"});
    note();
  }
  auto shown = kept.data({"report"})["summary"]["receipt_key"].get<std::string>();
  EXPECT_TRUE(has(said, shown)) << "these are not its keys";
  for (auto& secret : secrets) {
    for (size_t from = 0; from + 8 <= secret.size(); ++from) {
      EXPECT_FALSE(has(said, secret.substr(from, 8))) << from;
    }
  }
}

TEST(LedgerCommands, whatIsArchivedIsReadFromItsFileAndItsIdsStayUsed) {
  Kept kept;
  auto file = kept.beside("old");
  auto none = kept.data({"archive", "--before", "2000-01-01", "--to", file});
  EXPECT_EQ(none["operations"], 0);
  EXPECT_FALSE(fs::exists(file));
  auto taken = kept.folder() + "/receipt.key";
  EXPECT_EQ(kept.refused({"archive", "--before", "2024-01-01", "--to", taken}), "ledger_foreign");
  auto data = kept.data({"archive", "--before", "2024-01-01", "--to", file});
  EXPECT_EQ(data["operations"], 3);
  EXPECT_EQ(praefectus({"verify", "--ledger", file}).exit, 0);
  auto there = envelope(praefectus({"receipts", "show", "first", "--ledger", file, "--json"}));
  EXPECT_EQ(there["data"]["receipt"]["operation"], "first");
  auto here = praefectus({"receipts", "show", "first", "--ledger", kept.folder(), "--json"});
  EXPECT_EQ(here.exit, 3);
  EXPECT_EQ(envelope(here)["error"]["code"], "operation_archived");
  auto report = kept.data({"report"});
  EXPECT_EQ(report["retired"]["archived"], 3);
  EXPECT_EQ(report["archives"][0]["digest"], data["digest"]);
}

TEST(LedgerCommands, aFileOfAnotherKindIsNotImported) {
  Kept kept;
  auto file = kept.beside("v2");
  std::ofstream(file) << "{\"no\":\"record\"}\n";
  auto ran = kept.ask({"import", "--from", file, "--json"});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_EQ(envelope(ran)["error"]["code"], "malformed");
  EXPECT_TRUE(has(envelope(ran)["error"]["message"], "line 1 ")) << ran.out;
  EXPECT_EQ(kept.refused({"import", "--from", kept.beside("nothing")}), "input_failed");
  std::ofstream(kept.beside("empty")) << "";
  EXPECT_EQ(kept.data({"import", "--from", kept.beside("empty")})["taken"], 0);
}

TEST(LedgerCommands, theClockIsAcceptedOnlyWhenThatIsSaid) {
  Kept kept;
  EXPECT_EQ(kept.ask({"clock"}).exit, 2);
  auto data = kept.data({"clock", "--accept"});
  EXPECT_GT(data["wall_ms"], NOW);
  EXPECT_EQ(kept.data({"report"})["events"]["clock_accepted"], 1);
}

TEST(LedgerCommands, aLedgerThatASupervisorHasIsLeftAlone) {
  Kept kept;
  test::Running supervisor(kept.path);
  for (const std::vector<std::string>& deed :
       {std::vector<std::string>{"adopt"},
        {"rotate"},
        {"clock", "--accept"},
        {"archive", "--before", "2024-01-01", "--to", kept.beside("old")}}) {
    EXPECT_EQ(kept.refused(deed), "ledger_busy") << deed[0];
  }
  // Looking and copying go on beside it.
  EXPECT_EQ(kept.data({"report"})["summary"]["operations"], 3);
  EXPECT_EQ(kept.data({"check"})["findings"].size(), 0u);
  EXPECT_EQ(kept.data({"backup", "--to", kept.beside("copy")})["findings"], 0);
}

TEST(LedgerCommands, everyCommandNeedsToKnowWhichLedgerAndWhat) {
  const std::vector<std::vector<std::string>> wrong = {
      {"ledger"},
      {"ledger", "nonsense", "--ledger", "a"},
      {"ledger", "report"},
      {"ledger", "check"},
      {"ledger", "check", "--ledger", "a", "--key", "zz"},
      {"ledger", "backup", "--ledger", "a"},
      {"ledger", "backup", "--to", "a"},
      {"ledger", "restore", "--ledger", "a"},
      {"ledger", "restore", "--from", "a"},
      {"ledger", "restore", "--from", "a", "--ledger", "b", "--above", "x"},
      {"ledger", "archive", "--ledger", "a", "--to", "b"},
      {"ledger", "archive", "--ledger", "a", "--before", "2024-01-01"},
      {"ledger", "archive", "--ledger", "a", "--before", "soon", "--to", "b"},
      {"ledger", "import", "--ledger", "a"},
      {"ledger", "adopt"},
      {"ledger", "adopt", "--ledger", "a", "--above", "-1"},
      {"ledger", "rotate"},
      {"ledger", "rotate", "--ledger", "a", "extra"},
      {"ledger", "clock", "--ledger", "a"},
  };
  for (auto arguments : wrong) {
    arguments.push_back("--json");
    auto ran = praefectus(arguments);
    EXPECT_EQ(ran.exit, 2) << ran.out;
    EXPECT_EQ(envelope(ran)["error"]["code"], "usage") << ran.out;
  }
}

TEST(LedgerCommands, aLedgerThatIsNotThereIsRefusedByName) {
  Kept kept;
  auto nowhere = kept.beside("nowhere");
  for (const std::vector<std::string>& deed :
       {std::vector<std::string>{"report"},
        {"check"},
        {"backup", "--to", kept.beside("copy")},
        {"adopt"},
        {"rotate"},
        {"clock", "--accept"},
        {"archive", "--before", "2024-01-01", "--to", kept.beside("old")}}) {
    EXPECT_EQ(kept.refused(deed, nowhere), "ledger_foreign") << deed[0];
  }
  EXPECT_FALSE(fs::exists(nowhere));
}

}  // namespace
}  // namespace praefectus::tests
