// That an observation holds what is there, of real applications: compared, element by element, with
// what an independent reader finds.
#include "tests/helper-linux/applications.h"
#include "tests/helper-linux/second-reading.h"

#include <kj/debug.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <capnp/schema.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace praefectus::tests {
namespace {

using Words = std::set<std::string>;

// What both readers can say of an element.
struct Sight {
  std::string path, role, name;
  Words states, interfaces;
  size_t children = 0;
  bool operator==(const Sight&) const = default;
};
// By their place in the tree: each ancestor's position among its siblings.
using Sights = std::map<std::string, Sight>;

// The wire's "multiLine" is AT-SPI's "multi-line".
std::string hyphenated(kj::StringPtr word) {
  std::string out;
  for (char letter : word) {
    if (std::isupper(static_cast<unsigned char>(letter))) out += '-';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return out;
}

template <typename Word>
std::vector<std::string> wordsOf() {
  std::vector<std::string> out;
  for (auto each : capnp::Schema::from<Word>().getEnumerants()) {
    out.push_back(hyphenated(each.getProto().getName()));
  }
  return out;
}

Words namesOf(uint64_t bits, const std::vector<std::string>& words) {
  Words out;
  for (size_t i = 0; i < words.size(); ++i) {
    if ((bits >> i) & 1) out.insert(words[i]);
  }
  return out;
}

Sights sightsOf(const Observation& seen) {
  auto states = wordsOf<State>(), faces = wordsOf<Face>();
  Sights out;
  std::vector<std::string> places;
  for (auto& element : seen.elements) {
    places.push_back(
        places.empty() ? "" : places[element.parent] + std::to_string(element.position) + "/");
    out[places.back()] = {element.path.cStr(),
                          element.role.cStr(),
                          element.name.cStr(),
                          namesOf(element.states.bits, states),
                          namesOf(element.faces.bits, faces),
                          element.children};
  }
  return out;
}

// Only the words that the wire has.
Words knownOf(const nlohmann::json& given, const std::vector<std::string>& words) {
  Words out;
  for (auto& each : given) {
    // Interfaces are "EditableText" here.
    auto word = hyphenated(each.get<std::string>().c_str());
    if (word[0] == '-') word.erase(0, 1);
    if (std::find(words.begin(), words.end(), word) != words.end()) out.insert(word);
  }
  return out;
}

Sights sightsOf(const std::string& lines) {
  auto states = wordsOf<State>(), faces = wordsOf<Face>();
  Sights out;
  std::map<std::string, std::string> places;  // By path.
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    auto element = nlohmann::json::parse(line);
    std::string path = element["path"], parent = element["parent"];
    auto& place = places[path];
    if (!parent.empty()) {
      place = places.at(parent) + std::to_string(element["index"].get<int>()) + "/";
    }
    out[place] = {path,
                  element["role"],
                  element["name"],
                  knownOf(element["states"], states),
                  knownOf(element["interfaces"], faces),
                  element["children"]};
  }
  return out;
}

std::string printed(const Sight& sight) {
  std::string out = sight.path + " " + sight.role + " \"" + sight.name + "\"";
  for (auto& each : sight.states) out += " " + each;
  out += " |";
  for (auto& each : sight.interfaces) out += " " + each;
  return out + " | " + std::to_string(sight.children);
}

// For a person, when they differ.
std::string differences(const Sights& ours, const Sights& theirs) {
  std::string out;
  for (auto& [place, sight] : ours) {
    auto other = theirs.find(place);
    if (other == theirs.end()) {
      out += place + " only we have: " + printed(sight) + "\n";
    } else if (!(other->second == sight)) {
      out += place + "\n  we:   " + printed(sight) + "\n  they: " + printed(other->second) + "\n";
    }
  }
  for (auto& [place, sight] : theirs) {
    if (ours.count(place) == 0) out += place + " we lack: " + printed(sight) + "\n";
  }
  return out;
}

struct Subject {
  const char* name;
  const Recipe& recipe;
  // Qt 6 gives the cells of its tables new paths whenever it likes.
  bool renumbers = false;
};

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

void forgetPaths(Sights& sights) {
  for (auto& each : sights) each.second.path.clear();
}

class Complete : public testing::TestWithParam<Subject> {};

TEST_P(Complete, holdsTheElementsRolesNamesStatesAndInterfacesThatAnotherReaderFinds) {
  auto& recipe = GetParam().recipe;
  PrivateDesktop desktop;
  HelperClient helper(desktop.environment());
  helper.hello();
  auto running = open(desktop, helper, recipe);

  auto ours = [&]() {
    auto request = everything();
    request.textBytes = bounds::TEXT_LIMIT;
    auto answer = helper.observe(running.window, request);
    KJ_REQUIRE(answer.ok(), nameOf(answer.refusal().code));
    auto& cuts = answer->seen.cuts;
    EXPECT_FALSE(cuts.elements || cuts.depth);
    EXPECT_FALSE(cuts.time);
    return sightsOf(answer->seen);
  };
  auto theirs = [&]() {
    kj::StringPtr options[] = {"--cache"_kj, "off"_kj};
    auto process = static_cast<pid_t>(running.window.process.pid);
    return sightsOf(secondReading(desktop.environment(), process, recipe.title, options));
  };
  // Applications change by themselves. What we see before and after the other reader looks has to
  // be the same, and then it has to be what that one sees.
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (;;) {
    auto before = ours(), other = theirs(), after = ours();
    if (GetParam().renumbers) {
      for (auto* each : {&before, &other, &after}) forgetPaths(*each);
    }
    if (before == after && before == other) {
      EXPECT_GT(before.size(), 20u);
      return;
    }
    if (std::chrono::steady_clock::now() < end) continue;
    FAIL() << differences(after, other);
  }
}

INSTANTIATE_TEST_SUITE_P(Applications, Complete,
                         testing::Values(Subject{"mousepad", MOUSEPAD},
                                         Subject{"galculator", GALCULATOR},
                                         Subject{"gtk4Demo", GTK4_DEMO},
                                         Subject{"gnomeTextEditor", TEXT_EDITOR},
                                         Subject{"featherpad", FEATHERPAD}, Subject{"kcalc", KCALC},
                                         Subject{"designer", DESIGNER, true},
                                         Subject{"chromium", CHROMIUM_FORM}, Subject{"calc", CALC}),
                         [](auto& each) { return each.param.name; });

}  // namespace
}  // namespace praefectus::tests
