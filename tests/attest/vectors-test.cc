// The published vectors, and another implementation that reads them.
#include "tests/attest/vectors.h"

#include "ipc/schema/action.capnp.h"
#include "tests/attest/bodies.h"
#include "tests/support/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

namespace praefectus::attest {
namespace {

using std::string;

tests::Ran check(const string& file) {
  return tests::run({"python3", PRAEFECTUS_SOURCE "/tests/attest/check-vectors.py",
                     PRAEFECTUS_SOURCE "/ipc/schema", file});
}

tests::Ran checkCopy(const Json& vectors) {
  tests::Folder folder;
  auto copy = folder.file("copy.json");
  std::ofstream(copy) << vectors;
  return check(copy);
}

Json fileAsItIs() { return Json::parse(tests::contents(vectorFile())); }

// The last digit or letter becomes another.
void spoil(Json& value) {
  auto text = value.get<string>();
  if (text.empty()) text = "x";
  text.back() = text.back() == '0' ? '1' : '0';
  value = text;
}

TEST(Vectors, theFileIsWhatTheCodeMakes) {
  EXPECT_EQ(tests::contents(vectorFile()), spelledOut(vectors()))
      << "Meant? Then run vector-writer --write.";
}

TEST(Vectors, theFileHasEveryBodyAndEveryKindOfAction) {
  auto file = fileAsItIs();
  EXPECT_EQ(file["bodies"].size(), bodies().size());
  std::set<string> kinds, proofs, targets;
  for (auto& action : file["actions"]) {
    auto& values = action["values"];
    kinds.insert(std::prev(values.end()).key());
    proofs.insert(values["verification"].begin().key());
    targets.insert(values["target"].begin().key());
  }
  EXPECT_EQ(kinds.size(), capnp::Schema::from<wire::Action>().getUnionFields().size());
  EXPECT_EQ(proofs.size(), capnp::Schema::from<wire::Verification>().getUnionFields().size());
  EXPECT_EQ(targets.size(), capnp::Schema::from<wire::Target>().getUnionFields().size());
}

TEST(Vectors, anotherImplementationAgrees) {
  auto ran = check(vectorFile());
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
}

TEST(Vectors, anotherImplementationSeesWhateverIsOff) {
  struct {
    const char* section;
    const char* part;   // What is spoilt in a copy of each vector of the section.
    const char* fault;  // What is said of it, perhaps among other things.
  } rows[] = {
      {"keys", "/seed", "publicKey"},
      {"keys", "/publicKey", "publicKey"},
      {"keys", "/keyId", "keyId"},
      {"bodies", "/label", "label"},
      {"bodies", "/label", "signature"},
      {"bodies", "/values/keyId", "body"},
      {"bodies", "/body", "body"},
      {"bodies", "/body", "signature"},
      {"bodies", "/digest", "digest"},
      {"bodies", "/signature", "signature"},
      {"bodies", "/envelope", "envelope"},
      {"actions", "/values/blind", "bytes"},
      {"actions", "/bytes", "bytes"},
      {"actions", "/hash", "hash"},
      {"links", "/before/sequence", "after"},
      {"links", "/before/link", "after"},
      {"links", "/step", "after"},
      {"links", "/operation", "after"},
      {"links", "/content", "after"},
      {"links", "/after/sequence", "after"},
      {"links", "/after/link", "after"},
  };
  const auto good = fileAsItIs();
  auto file = good;
  std::map<string, string> faults;
  for (auto& row : rows) {
    for (auto& vector : good[row.section]) {
      auto copy = vector;
      copy["name"] = vector["name"].get<string>() + row.part + " " + row.fault;
      spoil(copy[Json::json_pointer(row.part)]);
      faults[string(row.section) + " " + copy["name"].get<string>()] = row.fault;
      file[row.section].push_back(copy);
    }
  }
  auto ran = checkCopy(file);
  EXPECT_EQ(ran.exit, 1) << ran.err;
  // Every spoilt copy is named with its fault, and nothing else is.
  for (auto& line : tests::linesOf(ran.out)) {
    auto colon = line.find(": ");
    auto found = faults.find(line.substr(0, colon));
    ASSERT_NE(found, faults.end()) << line;
    EXPECT_NE(line.find(found->second, colon), string::npos) << line;
    faults.erase(found);
  }
  EXPECT_EQ(faults.size(), 0u) << faults.begin()->first;
}

TEST(Vectors, anotherImplementationDemandsEveryFieldAndNoOther) {
  const auto good = fileAsItIs();
  auto file = good;
  std::set<string> expected;
  for (auto section : {"bodies", "actions"}) {
    auto vector = good[section][0];
    for (auto& [field, value] : good[section][0]["values"].items()) {
      auto copy = vector;
      copy["name"] = "without " + field;
      copy["values"].erase(field);
      file[section].push_back(copy);
      expected.insert(string(section) + " without " + field);
    }
    vector["name"] = "with another";
    vector["values"]["another"] = nullptr;
    file[section].push_back(vector);
    expected.insert(string(section) + " with another");
  }
  std::set<string> said;
  for (auto& line : tests::linesOf(checkCopy(file).out))
    said.insert(line.substr(0, line.find(':')));
  EXPECT_EQ(said, expected);
}

TEST(Vectors, anotherImplementationDemandsEverySectionAndEveryKindOfBody) {
  for (auto section : {"keys", "bodies", "actions", "links"}) {
    auto file = fileAsItIs();
    file[section] = Json::array();
    auto ran = checkCopy(file);
    EXPECT_EQ(ran.exit, 1);
    EXPECT_EQ(ran.out, string(section) + ": none\n");
  }
  auto file = fileAsItIs();
  auto& bodies = file["bodies"];
  bodies.erase(std::remove_if(bodies.begin(), bodies.end(),
                              [](const Json& body) { return body["struct"] == "Revocation"; }),
               bodies.end());
  auto ran = checkCopy(file);
  EXPECT_EQ(ran.exit, 1);
  EXPECT_EQ(ran.out, "bodies: no Revocation\n");
}

}  // namespace
}  // namespace praefectus::attest
