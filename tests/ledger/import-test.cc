// A ledger of protocol v2: its ids are protected here for good, and nothing else of it is kept.
#include "tests/ledger/keeping.h"

#include <string>

namespace praefectus::test {
namespace {

using ledger::BadLine;
using ledger::ImportMade;

const std::string HASH(64, 'a');

std::string claim(const std::string& id, const std::string& more = "") {
  return "{\"kind\":\"claim\",\"operation_id\":\"" + id + "\",\"action_hash\":\"" + HASH +
         "\",\"claimed_at_ms\":1700000000000" + more + "}\n";
}

std::string terminal(const std::string& id, const std::string& kind = "succeeded") {
  return "{\"kind\":\"terminal\",\"acknowledgement\":{\"protocol_version\":2,\"operation_id\":\"" +
         id + "\",\"sequence\":2,\"action_hash\":\"" + HASH +
         "\",\"replayed\":false,\"state\":{\"kind\":\"" + kind +
         "\",\"receipt\":{\"backend\":\"praefectus-atspi2\",\"warnings\":[\"a remark\"]}}}}\n";
}

const std::string MODERN =
    ",\"action_name\":\"type_text\",\"delivery_route\":\"target_addressed\","
    "\"session_isolation\":\"shared_desktop\",\"interaction_mode\":\"interactive\"";

ImportMade made(kj::StringPtr folder, const std::string& lines) {
  auto imported = import(folder, lines.c_str());
  KJ_REQUIRE(imported.ok(), imported.refusal().detail);
  KJ_REQUIRE(imported->is<ImportMade>(), "a line was refused");
  return kj::mv(imported->get<ImportMade>());
}

// The number of the line that is refused; 0 when none is.
uint64_t badLine(kj::StringPtr folder, const std::string& lines) {
  auto imported = import(folder, lines.c_str());
  KJ_REQUIRE(imported.ok(), imported.refusal().detail);
  return imported->is<BadLine>() ? imported->get<BadLine>().number : 0;
}

TEST(Import, protectsEveryIdForEver) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto imported = made(folder, claim("v2-1") + terminal("v2-1") + claim("v2:2_-", MODERN) +
                                   "\n \r\n" + terminal("v2-3", "outcome_unknown"));
  EXPECT_EQ(imported.taken, 3u);
  EXPECT_EQ(imported.already, 0u);
  EXPECT_EQ(imported.conflicts, 0u);
  EXPECT_FALSE(imported.torn);
  Running ledger(folder);
  for (auto id : {"v2-1", "v2:2_-", "v2-3"}) {
    EXPECT_TRUE(ledger->find(id, hashNamed("an action"))->is<ledger::Elsewhere>()) << id;
    EXPECT_FALSE(ledger.claims(id)) << id;
    auto concluded = ledger->conclude(unclaimed(id), refusal()).wait(ledger.wait());
    EXPECT_EQ(codeOf(concluded), "operation_conflict") << id;
  }
  EXPECT_TRUE(ledger.claims("v2-4"));
  ledger.close();
  EXPECT_EQ(findingsIn(folder), "");
  auto inventory = ledger::takeInventory(folder);
  EXPECT_EQ(inventory->retiredElsewhere, 3u);
  EXPECT_EQ(spelled(inventory->events), "created 1, started 1, imported 1");
}

TEST(Import, twiceChangesNothing) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto lines = claim("v2-1") + terminal("v2-1") + claim("v2-2");
  EXPECT_EQ(made(folder, lines).taken, 2u);
  auto before = ledger::takeInventory(folder);
  auto again = made(folder, lines);
  EXPECT_EQ(again.taken, 0u);
  EXPECT_EQ(again.already, 2u);
  auto after = ledger::takeInventory(folder);
  EXPECT_EQ(after->summary.head, before->summary.head);
  EXPECT_EQ(after->retiredElsewhere, 2u);
  EXPECT_EQ(made(folder, lines + claim("v2-3")).taken, 1u);
}

TEST(Import, leavesAnOperationOfThisLedgerAsItIs) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  does(folder, "both");
  auto imported = made(folder, claim("both") + claim("v2-1"));
  EXPECT_EQ(imported.taken, 1u);
  EXPECT_EQ(imported.conflicts, 1u);
  ASSERT_EQ(imported.conflicting.size(), 1u);
  EXPECT_EQ(imported.conflicting[0], "both");
  EXPECT_TRUE(Running(folder)->find("both", hashNamed("an action"))->is<attest::Envelope>());
  EXPECT_EQ(findingsIn(folder), "");
}

TEST(Import, toleratesATornLastLineAndSaysSo) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto torn = claim("v2-2");
  torn.resize(torn.size() / 2);
  auto imported = made(folder, claim("v2-1") + torn);
  EXPECT_TRUE(imported.torn);
  EXPECT_EQ(imported.taken, 1u);

  // One that only lost its end says all it has to say: protecting an id harms nobody.
  auto unended = claim("v2-3");
  unended.pop_back();
  imported = made(folder, claim("v2-1") + unended);
  EXPECT_TRUE(imported.torn);
  EXPECT_EQ(imported.taken, 1u);
  EXPECT_TRUE(Running(folder)->find("v2-3")->is<ledger::Elsewhere>());
}

TEST(Import, refusesAllOfItForOneLineAndNamesTheLine) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  const std::string bad[] = {
      "{}\n",
      "[]\n",
      "not json\n",
      "{\"kind\":\"claim\"}\n",
      claim("no spaces"),
      claim(""),
      claim("v2-2", ",\"more\":1"),
      claim("v2-2", ",\"kind\":\"claim\""),
      "{\"kind\":\"claim\",\"operation_id\":\"v2-2\",\"action_hash\":\"aa\",\"claimed_at_ms\":1}\n",
      "{\"kind\":\"claim\",\"operation_id\":\"v2-2\",\"action_hash\":\"" + HASH +
          "\",\"claimed_at_ms\":\"1\"}\n",
      terminal("v2-2", "finished"),
      "{\"kind\":\"terminal\",\"acknowledgement\":{}}\n",
      "{\"kind\":\"terminal\",\"acknowledgement\":null}\n",
      std::string("\0\n", 2),
      "{\"kind\":\"claim\",\"operation_id\":\"" + std::string(2u << 20, 'x') + "\"}\n",
  };
  auto before = bytesIn(folder);
  for (auto& line : bad) {
    auto lines = claim("v2-1") + "\n" + line + claim("v2-3");
    kj::ArrayInputStream input(kj::arrayPtr(lines.data(), lines.size()).asBytes());
    auto imported = ledger::importV2(folder, input, momentAt(NOW));
    ASSERT_TRUE(imported.ok());
    ASSERT_TRUE(imported->is<BadLine>()) << line.substr(0, 80);
    EXPECT_EQ(imported->get<BadLine>().number, 3u) << line.substr(0, 80);
  }
  EXPECT_TRUE(bytesIn(folder) == before);
  EXPECT_TRUE(Running(folder)->find("v2-1")->is<ledger::Unknown>());
}

TEST(Import, refusesALineBehindATornOne) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto torn = claim("v2-1");
  torn.resize(torn.size() / 2);
  EXPECT_EQ(badLine(folder, torn + claim("v2-2")), 1u);
}

TEST(Import, keepsNoHashNoTextAndNoReceipt) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  made(folder, claim("v2-1", MODERN) + terminal("v2-1"));
  auto bytes = bytesIn(folder);
  EXPECT_TRUE(holds(bytes, "v2-1"));
  auto raw = kj::heapArray<char>(32);
  memset(raw.begin(), 0xaa, raw.size());
  EXPECT_FALSE(holds(bytes, kj::heapString(raw)));
  for (auto text : {HASH.c_str(), "type_text", "target_addressed", "praefectus-atspi2", "a remark",
                    "1700000000000"}) {
    EXPECT_FALSE(holds(bytes, text)) << text;
  }
  BackDoor file(folder, SQLITE_OPEN_READONLY);
  EXPECT_EQ(kj::strArray(file.rows("SELECT * FROM retired"), " "), "v2-1|||");
}

TEST(Import, ofNothingChangesNothing) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto before = bytesIn(folder);
  auto imported = made(folder, "");
  EXPECT_EQ(imported.taken + imported.already + imported.conflicts, 0u);
  EXPECT_TRUE(bytesIn(folder) == before);
}

}  // namespace
}  // namespace praefectus::test
