#include "attest/v2/request.h"

#include "tests/attest/v2-samples.h"
#include "tests/ipc/refusals.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace praefectus::attest::v2 {
namespace {

using Pointer = Doc::json_pointer;

std::string reading(const Doc& request) { return outcome(read(request)); }

// The request with one member replaced.
Doc with(Doc request, const std::string& pointer, Doc value) {
  request[Pointer(pointer)] = std::move(value);
  return request;
}

Doc without(Doc request, const std::string& pointer) {
  Pointer at(pointer);
  request[at.parent_pointer()].erase(at.back());
  return request;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  auto at = text.find(what);
  KJ_REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

// Pointers to every object of a document and to every member that holds none, itself included.
struct Places {
  std::vector<std::string> objects, members;
};

void collect(const Doc& doc, const std::string& at, Places& places) {
  if (doc.is_object()) {
    places.objects.push_back(at);
    for (auto& [key, value] : doc.items()) collect(value, at + "/" + key, places);
  } else {
    places.members.push_back(at);
  }
}

Places placesIn(const Doc& doc) {
  Places places;
  collect(doc, "", places);
  return places;
}

bool isOptional(const std::string& pointer) {
  return pointer.ends_with("/delay_ms") || pointer == "/action/app" || pointer == "/action/title";
}

// ---- Vectors.

TEST(V2Request, eachVectorHasTheSameBytesAndHash) {
  ASSERT_EQ(vectors()["vectors"].size(), 6u);
  for (auto& vector : vectors()["vectors"]) {
    auto request = read(requestOf(vector));
    ASSERT_TRUE(request.ok()) << vector["name"] << ": " << outcome(request);
    EXPECT_EQ(spelled(canonicalAction(*request)), vector["action_array_canonical"]);
    EXPECT_EQ(spelled(actionHash(*request)), vector["action_hash"]);
    EXPECT_EQ(spelled(canonicalGrant(request->authority.grant)), vector["grant_canonical"]);
    EXPECT_EQ(spelled(hex(bytesOf(request->authority.signature))), vector["signature"]);
  }
}

// Another order of keys, blanks, and escapes where none are needed.
TEST(V2Request, layoutDoesNotChangeTheHash) {
  nlohmann::ordered_json backwards;
  auto request = requestOfKind("type_text");
  for (auto at = request.rbegin(); at != request.rend(); ++at) backwards[at.key()] = at.value();
  auto text = replaced(backwards.dump(4), "h\u00e9", "\\u0068\\u00E9");
  auto value = read(text);
  ASSERT_TRUE(value.ok()) << outcome(value);
  EXPECT_EQ(spelled(actionHash(*value)), hashOf(request));
}

TEST(V2Request, fractionsAreRefusedInTheExpectedStateToo) {
  auto request = with(requestOfKind("scroll"), "/verification/expected", "HERE");
  auto text = replaced(request.dump(), "\"HERE\"", vectors()["refused"]["expected"]);
  EXPECT_EQ(outcome(read(text)), "unsupported_number");
}

TEST(V2Request, noMemberIsAnythingButAnInteger) {
  for (auto& request : everyKind()) {
    for (auto& member : placesIn(request).members) {
      auto text = with(request, member, "HERE").dump();
      for (std::string number : {"2.0", "1e3", "-0", "18446744073709551616"}) {
        EXPECT_EQ(outcome(read(replaced(text, "\"HERE\"", number))), "unsupported_number")
            << member << " " << number;
      }
    }
  }
}

// ---- The hash.

TEST(V2Request, theHashDependsOnEverythingThatIsHashed) {
  auto request = requestOfKind("set_value");
  auto original = hashOf(request);
  EXPECT_EQ(hashOf(request), original);
  auto otherValue = with(request, "/action/value", "another");
  otherValue["verification"] = valueHashOf("another");
  for (auto& other :
       {with(request, "/subject", "subject-2"), with(request, "/session_id", "session-2"),
        otherValue, with(request, "/target/target/generation", 2),
        with(request, "/interaction_mode", "background_only"),
        with(request, "/deadline_at_ms", 1893456000001), with(request, "/safety", "external")}) {
    EXPECT_NE(hashOf(other), original) << other;
  }
  auto scroll = requestOfKind("scroll");
  EXPECT_NE(hashOf(with(scroll, "/verification", unverified())), hashOf(scroll));
  EXPECT_NE(hashOf(with(scroll, "/verification/expected/checked", false)), hashOf(scroll));
}

TEST(V2Request, theHashDoesNotDependOnTheOperationOrItsAuthority) {
  auto request = requestOfKind("invoke");
  auto original = hashOf(request);
  EXPECT_EQ(hashOf(with(request, "/operation_id", "op-2")), original);
  EXPECT_EQ(hashOf(with(request, "/authority/signature", std::string(128, 'f'))), original);
  EXPECT_EQ(hashOf(with(request, "/authority/grant/issuer", "host-2")), original);
}

TEST(V2Request, theKindsOfActionAndTargetAreHashed) {
  EXPECT_NE(hashOf(requestOf({{"kind", "invoke"}}, elementTarget())),
            hashOf(requestOf({{"kind", "move"}}, elementTarget())));
  EXPECT_NE(hashOf(requestOf({{"kind", "move"}}, pointTarget())),
            hashOf(requestOf({{"kind", "move"}}, elementTarget())));
}

// ---- Form.

TEST(V2Request, everyKindOfActionIsRead) {
  ASSERT_EQ(everyKind().size(), 17u);
  for (auto& request : everyKind()) EXPECT_EQ(reading(request), "ok") << request;
}

// Other implementations let them pass where a kind has no members of its own.
TEST(V2Request, anUnknownKeyIsRefusedInEveryObject) {
  for (auto& request : everyKind()) {
    for (auto& object : placesIn(request).objects) {
      if (object == "/verification/expected") continue;
      EXPECT_EQ(reading(with(request, object + "/extra", nullptr)), "unknown_field")
          << request["action"]["kind"] << " " << object;
    }
  }
}

TEST(V2Request, aKeyThatStandsTwiceIsRefusedInEveryObject) {
  for (auto& request : everyKind()) {
    for (auto& object : placesIn(request).objects) {
      auto twice = with(with(request, object + "/zz-one", 1), object + "/zz-two", 1);
      EXPECT_EQ(outcome(read(replaced(twice.dump(), "zz-two", "zz-one"))), "malformed") << object;
    }
  }
}

TEST(V2Request, everyMemberIsNeededUnlessItIsOptional) {
  for (auto& request : everyKind()) {
    auto places = placesIn(request);
    for (auto& members : {places.members, places.objects}) {
      for (auto& member : members) {
        if (member.empty() || member.starts_with("/verification/expected/")) continue;
        bool free = isOptional(member) && request["action"]["kind"] != "window";
        EXPECT_EQ(reading(without(request, member)), free ? "ok" : "malformed") << member;
      }
    }
  }
}

TEST(V2Request, noMemberTakesAnotherKindOfValue) {
  for (auto& request : everyKind()) {
    for (auto& member : placesIn(request).members) {
      if (member.starts_with("/verification/expected")) continue;
      for (auto& wrong : {Doc::object(), Doc::array(), Doc(true), Doc("?"), Doc(7)}) {
        if (wrong.type() == request[Pointer(member)].type() ||
            (wrong.is_number() && request[Pointer(member)].is_number())) {
          continue;
        }
        EXPECT_EQ(reading(with(request, member, wrong)), "malformed") << member << " " << wrong;
      }
    }
  }
}

TEST(V2Request, whatIsLeftOutHashesAsNull) {
  auto type = requestOfKind("type_text"), press = requestOfKind("press"),
       open = requestOfKind("open");
  for (auto& [request, member] :
       {std::pair(type, "/action/delay_ms"), std::pair(press, "/action/delay_ms"),
        std::pair(open, "/action/app")}) {
    EXPECT_EQ(hashOf(without(request, member)), hashOf(with(request, member, nullptr)));
    EXPECT_NE(hashOf(without(request, member)), hashOf(request));
  }
  auto focus = with(requestOfKind("window"), "/action/operation", "focus");
  EXPECT_EQ(hashOf(without(focus, "/action/title")), hashOf(with(focus, "/action/title", nullptr)));
  EXPECT_NE(hashOf(without(focus, "/action/title")), hashOf(focus));
}

TEST(V2Request, anOptionalMemberIsNotNothingOfAnotherKind) {
  EXPECT_EQ(reading(with(requestOfKind("open"), "/action/app", "")), "malformed");
  EXPECT_EQ(reading(with(requestOfKind("open"), "/action/app", false)), "malformed");
  EXPECT_EQ(reading(with(requestOfKind("press"), "/action/delay_ms", "5")), "malformed");
}

TEST(V2Request, anUnknownWordIsRefused) {
  auto click = requestOfKind("click"), scroll = requestOfKind("scroll");
  for (auto& request :
       {with(click, "/action/kind", "fly"), with(click, "/action/kind", "Click"),
        with(click, "/action/kind", ""), with(click, "/action/button", "middle "),
        with(scroll, "/action/direction", "Down"), with(click, "/target/kind", "window"),
        with(click, "/verification/kind", "strongest"), with(click, "/safety", "unknown"),
        with(click, "/authority/grant/risk", "none"),
        with(requestOfKind("application"), "/action/operation", "kill"),
        with(requestOfKind("window"), "/action/operation", "maximize")}) {
    EXPECT_EQ(reading(request), "unknown_field") << request;
  }
}

TEST(V2Request, theModeOfRecoveredRecordsIsNoRequests) {
  auto request = requestOfKind("invoke");
  EXPECT_EQ(reading(with(request, "/interaction_mode", "interactive")), "ok");
  EXPECT_EQ(reading(with(request, "/interaction_mode", "background_only")), "ok");
  EXPECT_EQ(reading(with(request, "/interaction_mode", "unknown")), "unknown_field");
}

TEST(V2Request, everyWordThatExistsIsRead) {
  for (auto button : {"left", "right", "middle"}) {
    EXPECT_EQ(reading(with(requestOfKind("click"), "/action/button", button)), "ok");
  }
  for (auto direction : {"up", "down", "left", "right"}) {
    EXPECT_EQ(reading(with(requestOfKind("scroll"), "/action/direction", direction)), "ok");
  }
  for (auto safety : {"reversible", "external", "destructive"}) {
    EXPECT_EQ(reading(with(requestOfKind("click"), "/safety", safety)), "ok");
  }
  for (auto operation : {"launch", "switch", "quit"}) {
    EXPECT_EQ(reading(with(requestOfKind("application"), "/action/operation", operation)), "ok");
  }
  for (auto operation : {"focus", "close", "minimize"}) {
    EXPECT_EQ(reading(with(requestOfKind("window"), "/action/operation", operation)), "ok");
  }
}

TEST(V2Request, everyVersionIsTwo) {
  for (auto member : {"/protocol_version", "/action_version", "/target_version",
                      "/verification_version", "/authority/grant/protocol_version"}) {
    auto request = requestOfKind("invoke");
    for (int64_t version : {0, 1, 3, 70000}) {
      EXPECT_EQ(reading(with(request, member, version)), "unsupported_version") << member;
    }
    EXPECT_EQ(reading(with(request, member, "2")), "malformed") << member;
    EXPECT_EQ(reading(with(request, member, -2)), "malformed") << member;
  }
}

// So that a later version's host hears about the version, not about the first member it added.
TEST(V2Request, anotherVersionIsSaidBeforeAnUnknownKey) {
  auto request = with(requestOfKind("invoke"), "/novelty", 1);
  EXPECT_EQ(reading(with(request, "/protocol_version", 3)), "unsupported_version");
}

TEST(V2Request, oneRequestIsOneObject) {
  for (auto text : {"[]", "null", "1", "\"\"", "{}", ""}) {
    EXPECT_EQ(outcome(read(std::string(text))), "malformed") << text;
  }
}

// ---- Bounds, each from both sides.

struct Bound {
  std::string kind, member;
  Doc inside, outside;
};

std::string x(size_t size) { return std::string(size, 'x'); }

const std::vector<Bound> BOUNDS = {
    {"click", "/action/count", 1, 0},
    {"click", "/action/count", 3, 4},
    {"click", "/action/count", 3, -1},
    {"type_text", "/action/text", x(1), ""},
    {"type_text", "/action/text", x(16384), x(16385)},
    {"type_text", "/action/delay_ms", 0, -1},
    {"type_text", "/action/delay_ms", 1000, 1001},
    {"press", "/action/key", x(1), ""},
    {"press", "/action/key", x(64), x(65)},
    {"press", "/action/count", 1, 0},
    {"press", "/action/count", 100, 101},
    {"press", "/action/delay_ms", 1000, 1001},
    {"paste", "/action/text", x(1), ""},
    {"paste", "/action/text", x(16384), x(16385)},
    {"hotkey", "/action/keys", {"a"}, Doc::array()},
    {"hotkey", "/action/keys", Doc(8, "a"), Doc(9, "a")},
    {"hotkey", "/action/keys/0", x(1), ""},
    {"hotkey", "/action/keys/1", x(64), x(65)},
    {"scroll", "/action/amount", 1, 0},
    {"scroll", "/action/amount", 100, 101},
    {"select_text", "/action/length", 0, -1},
    {"select_text", "/action/length", 1048574, 1048575},
    {"select_text", "/action/start", 1048573, 1048574},
    // Together they would be small again in 32 bits.
    {"select_text", "/action/start", 0, 4294967295},
    {"select_text", "/action/start", 0, 4294967296},
    {"screenshot", "/action/path", "/" + x(4091) + ".png", "/" + x(4092) + ".png"},
    {"screenshot", "/action/path", "/a.png", "a.png"},
    {"screenshot", "/action/path", "/a.png", "/a.jpg"},
    {"screenshot", "/action/path", "/a.png", ""},
    {"application", "/action/name", x(1), ""},
    {"application", "/action/name", x(256), x(257)},
    {"window", "/action/app", x(1), ""},
    {"window", "/action/app", x(256), x(257)},
    {"window", "/action/title", x(1), ""},
    {"window", "/action/title", x(1024), x(1025)},
    {"open", "/action/target", x(1), ""},
    {"open", "/action/target", x(16384), x(16385)},
    {"open", "/action/app", x(1), ""},
    {"open", "/action/app", x(256), x(257)},
    {"clipboard_write", "/action/text", "", Doc::array()},
    {"clipboard_write", "/action/text", x(1u << 20), x((1u << 20) + 1)},
    {"invoke", "/deadline_at_ms", 1, 0},
    {"invoke", "/deadline_at_ms", std::numeric_limits<int64_t>::max(), uint64_t{1} << 63},
    {"invoke", "/authority/grant/expires_at_ms", 1, 0},
    {"invoke", "/authority/grant/expires_at_ms", 1, -1},
    {"invoke", "/target/target/generation", 1, 0},
    {"invoke", "/target/target/generation", std::numeric_limits<uint64_t>::max(), -1},
    {"move", "/target/x", std::numeric_limits<int64_t>::min(), uint64_t{1} << 63},
    {"move", "/target/y", std::numeric_limits<int64_t>::max(), uint64_t{1} << 63},
    {"move", "/target/display_id", x(1), ""},
    {"move", "/target/display_id", x(256), x(257)},
    {"move", "/target/snapshot_id", x(1), ""},
    {"move", "/target/snapshot_id", x(256), x(257)},
    // Of these two v2 fixes the length alone.
    {"move", "/target/display_geometry_hash", x(64), x(63)},
    {"move", "/target/display_geometry_hash", x(64), x(65)},
    {"move", "/target/snapshot_content_hash", x(64), x(63)},
    {"move", "/target/snapshot_content_hash", x(64), x(65)},
    {"drag", "/action/to/display_geometry_hash", x(64), ""},
    {"drag", "/action/to/display_geometry_hash", x(64), x(63)},
    {"drag", "/action/to/snapshot_content_hash", x(64), x(63)},
    {"drag", "/action/to/snapshot_id", x(256), x(257)},
    {"invoke", "/authority/signature", std::string(128, 'F'), std::string(127, 'f')},
    {"invoke", "/authority/signature", std::string(128, '0'), std::string(130, '0')},
    {"invoke", "/authority/signature", std::string(128, '0'), std::string(128, 'g')},
    {"invoke", "/authority/signature", std::string(128, '0'), std::string(127, '0') + " "},
};

TEST(V2Request, everyBoundHoldsFromBothSides) {
  for (auto& bound : BOUNDS) {
    auto request = requestOfKind(bound.kind);
    EXPECT_EQ(reading(with(request, bound.member, bound.inside)), "ok")
        << bound.kind << bound.member;
    EXPECT_EQ(reading(with(request, bound.member, bound.outside)), "malformed")
        << bound.kind << bound.member << " " << bound.outside.dump().substr(0, 40);
  }
}

TEST(V2Request, aValueMayBeEmptyAndIsBounded) {
  auto setting = [](const std::string& value) {
    return requestOf({{"kind", "set_value"}, {"value", value}}, elementTarget(),
                     valueHashOf(value));
  };
  EXPECT_EQ(reading(setting("")), "ok");
  EXPECT_EQ(reading(setting(x(16384))), "ok");
  EXPECT_EQ(reading(setting(x(16385))), "malformed");
}

// Text is counted in bytes: this is two.
TEST(V2Request, sizesAreBytesNotCharacters) {
  std::string text;
  for (int i = 0; i < 32; ++i) text += "\u00e9";
  EXPECT_EQ(reading(with(requestOfKind("press"), "/action/key", text)), "ok");
  EXPECT_EQ(reading(with(requestOfKind("press"), "/action/key", text + "a")), "malformed");
}

TEST(V2Request, namesAreOneTo256OfAFewCharacters) {
  for (auto member : {"/operation_id", "/subject", "/session_id"}) {
    auto request = requestOfKind("invoke");
    for (auto& good : {x(1), x(256), std::string("Az09-_:")}) {
      EXPECT_EQ(reading(with(request, member, good)), "ok") << member << good;
    }
    for (auto& bad : {x(0), x(257), std::string("a.b"), std::string("a b"), std::string("a/b"),
                      std::string("\u00e9"), std::string("a\n")}) {
      EXPECT_EQ(reading(with(request, member, bad)), "malformed") << member << bad;
    }
  }
}

TEST(V2Request, theHashesOfAFenceAreLowerCaseHexadecimal) {
  for (auto member : {"/target/target/observation_id", "/target/target/provenance_hash",
                      "/target/target/element_id", "/target/target/fingerprint_hash"}) {
    auto request = requestOfKind("invoke");
    EXPECT_EQ(reading(with(request, member, std::string(64, 'a'))), "ok") << member;
    for (auto& bad : {std::string(64, 'A'), std::string(64, 'g'), std::string(63, 'a'),
                      std::string(65, 'a'), std::string(), std::string(63, 'a') + " "}) {
      EXPECT_EQ(reading(with(request, member, bad)), "malformed") << member << bad;
    }
  }
}

TEST(V2Request, aSnapshotsIdHasNoControlCharacters) {
  for (auto id : {"\u0001", "a\nb", "\u007f", "\u0080", "a\u009f"}) {
    EXPECT_EQ(reading(with(requestOfKind("move"), "/target/snapshot_id", id)), "malformed");
    EXPECT_EQ(reading(with(requestOfKind("drag"), "/action/to/snapshot_id", id)), "malformed");
  }
  for (auto id : {"a b", "\u00a0", "\u00e9\u00c2", "\U0001F600"}) {
    EXPECT_EQ(reading(with(requestOfKind("move"), "/target/snapshot_id", id)), "ok") << id;
  }
}

TEST(V2Request, noTextHasANul) {
  std::string text("a\0b", 3);
  for (auto& [kind, member] :
       {std::pair("type_text", "/action/text"), std::pair("press", "/action/key"),
        std::pair("hotkey", "/action/keys/0"), std::pair("clipboard_write", "/action/text"),
        std::pair("open", "/action/app")}) {
    EXPECT_EQ(reading(with(requestOfKind(kind), member, text)), "malformed") << kind;
  }
}

TEST(V2Request, theEightSecondaryActionsAreTheOnlyOnes) {
  auto named = [](const std::string& name) {
    return reading(with(requestOfKind("perform_secondary_action"), "/action/name", name));
  };
  for (auto name : {"AXShowMenu", "AXShowDefaultUI", "AXShowAlternateUI", "AXIncrement",
                    "AXDecrement", "AXConfirm", "AXCancel", "AXPick"}) {
    EXPECT_EQ(named(name), "ok") << name;
  }
  for (auto name : {"AXPress", "axshowmenu", "AXSHOWMENU", " AXPick", "AXPick ", "AXPick,AXCancel",
                    "", "ShowMenu"}) {
    EXPECT_EQ(named(name), "unknown_field") << name;
  }
  EXPECT_EQ(named(std::string("AXPick\0", 7)), "malformed");
}

TEST(V2Request, onlyFocusMayLeaveTheTitleOut) {
  auto window = requestOfKind("window");
  for (auto operation : {"focus", "close", "minimize"}) {
    auto untitled = without(with(window, "/action/operation", operation), "/action/title");
    EXPECT_EQ(reading(untitled), operation == std::string("focus") ? "ok" : "malformed");
  }
}

TEST(V2Request, theExpectedStateIsBounded) {
  auto expecting = [](Doc expected) {
    return reading(with(requestOfKind("scroll"), "/verification/expected", std::move(expected)));
  };
  for (auto& any : {Doc(nullptr), Doc(true), Doc("x"), Doc(-1), Doc::array(), Doc::object()}) {
    EXPECT_EQ(expecting(any), "ok") << any;
  }
  EXPECT_EQ(expecting(Doc(4095, 0)), "ok");
  EXPECT_EQ(expecting(Doc(4096, 0)), "malformed");

  auto nested = [](size_t around, Doc inmost) {
    for (size_t i = 0; i < around; ++i) {
      inmost = i % 2 == 0 ? Doc::array({inmost}) : Doc({{"a", inmost}});
    }
    return inmost;
  };
  for (auto& inmost : {Doc(1), Doc::array(), Doc::object()}) {
    EXPECT_EQ(expecting(nested(32, inmost)), "ok");
    EXPECT_EQ(expecting(nested(33, inmost)), "malformed");
  }

  EXPECT_EQ(expecting(x(65536)), "ok");
  EXPECT_EQ(expecting(x(65537)), "malformed");
  EXPECT_EQ(expecting({{x(65530), "123456"}}), "ok");
  EXPECT_EQ(expecting({{x(65530), "1234567"}}), "malformed");
  EXPECT_EQ(expecting({{x(65530), 123456}}), "ok");
  EXPECT_EQ(expecting({{x(65530), 1234567}}), "malformed");
}

// Every byte of it escaped, the largest text still fits in a request.
TEST(V2Request, aRequestIsAtMostEightMebibytes) {
  auto full = with(requestOfKind("clipboard_write"), "/action/text", std::string(1u << 20, '\x01'));
  EXPECT_EQ(reading(full), "ok");
  auto text = full.dump();
  text.resize(8u << 20, ' ');
  EXPECT_EQ(outcome(read(text)), "ok");
  EXPECT_EQ(outcome(read(text + ' ')), "malformed");
}

// ---- What must suit what.

TEST(V2Request, eachKindOfActionHasItsTargets) {
  using Kinds = std::vector<std::string>;
  const std::vector<std::pair<Kinds, Kinds>> LEGAL = {
      {{"click", "move"}, {"element", "coordinates"}},
      {{"drag"}, {"coordinates"}},
      {{"invoke", "type_text", "press", "paste", "hotkey", "scroll", "select_text",
        "perform_secondary_action", "set_value"},
       {"element"}},
      {{"screenshot", "application", "window", "open", "clipboard_write"}, {"none"}}};
  size_t seen = 0;
  for (auto& [kinds, targets] : LEGAL) {
    for (auto& kind : kinds) {
      for (auto& target : {elementTarget(), pointTarget(), noTarget()}) {
        bool legal = std::find(targets.begin(), targets.end(), target["kind"]) != targets.end();
        auto request = requestOfKind(kind);
        request["target"] = target;
        EXPECT_EQ(reading(request), legal ? "ok" : "malformed") << kind << target["kind"];
      }
      ++seen;
    }
  }
  EXPECT_EQ(seen, everyKind().size());
}

TEST(V2Request, aDragEndsAtAPoint) {
  EXPECT_EQ(reading(with(requestOfKind("drag"), "/action/to", pointTarget())), "ok");
  EXPECT_EQ(reading(with(requestOfKind("drag"), "/action/to", elementTarget())), "malformed");
  EXPECT_EQ(reading(with(requestOfKind("drag"), "/action/to", noTarget())), "malformed");
}

TEST(V2Request, whatHasNoTargetCannotBeVerified) {
  for (auto kind : {"screenshot", "application", "window", "open", "clipboard_write"}) {
    auto request = requestOfKind(kind);
    EXPECT_EQ(reading(with(request, "/verification", unverified())), "ok") << kind;
    for (auto& verification :
         {Doc({{"kind", "snapshot_changed"}}), Doc({{"kind", "target_state"}, {"expected", 1}}),
          valueHashOf("a text")}) {
      EXPECT_EQ(reading(with(request, "/verification", verification)), "malformed") << kind;
    }
  }
}

TEST(V2Request, settingAValueIsProvenByThatValuesHash) {
  auto request = requestOfKind("set_value");
  EXPECT_EQ(reading(request), "ok");
  for (auto& verification : {unverified(), Doc({{"kind", "snapshot_changed"}}),
                             Doc({{"kind", "target_state"}, {"expected", "a value"}}),
                             valueHashOf("another value"), valueHashOf("")}) {
    EXPECT_EQ(reading(with(request, "/verification", verification)), "malformed") << verification;
  }
  auto upper = spelled(sha256("a value"_kj));
  for (auto& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_EQ(reading(with(request, "/verification/sha256", upper)), "malformed");
}

TEST(V2Request, aValuesHashProvesNothingElse) {
  for (auto& request : everyKind()) {
    if (request["action"]["kind"] == "set_value") continue;
    EXPECT_EQ(reading(with(request, "/verification", valueHashOf("a text"))), "malformed")
        << request["action"]["kind"];
  }
}

}  // namespace
}  // namespace praefectus::attest::v2
