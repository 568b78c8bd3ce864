#include "attest/v2/mapping.h"

#include "ipc/bounds.h"
#include "tests/attest/v2-samples.h"
#include "tests/ipc/refusals.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace praefectus::attest::v2 {
namespace {

constexpr uint32_t BUTTON = 1, FIELD = 2;
constexpr int64_t DEADLINE = 1893456000000, NOW = DEADLINE - 5000;

class V2Mapping : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialize(); }
  V2Mapping() { blind.fill(9); }
  ~V2Mapping() noexcept override = default;

  Doc element(uint32_t index) { return targetFor(fenceOf(seen, index)); }
  Doc point(int64_t x, int64_t y) { return targetFor(coordinatesOf(seen, x, y)); }

  // The request of that kind, on the field or at (0, 150), which is (20, 50) in the window.
  Doc here(const std::string& kind) {
    auto request = requestOfKind(kind);
    if (request["target"]["kind"] == "element") request["target"] = element(FIELD);
    if (request["target"]["kind"] == "coordinates") request["target"] = point(0, 150);
    if (kind == "drag") request["action"]["to"] = point(10, 160);
    return request;
  }

  Result<praefectus::Action> mapped(const Doc& request, int64_t now = NOW) {
    return actionOf(verified(allowed(request)), seen, now, blind);
  }
  praefectus::Action action(const Doc& request) {
    auto result = mapped(request);
    KJ_REQUIRE(result.ok(), result.refusal().detail);
    return kj::mv(*result);
  }
  template <typename T>
  T act(const Doc& request) {
    auto made = action(request);
    return kj::mv(made.act.get<T>());
  }

  Observation seen = sampleObservation();
  Hash blind;
};

TEST_F(V2Mapping, whatTheActionSaysBesidesItsKindIsTheRequests) {
  auto request = here("press");
  auto made = action(request);
  EXPECT_EQ(made.blind, blind);
  EXPECT_EQ(made.timeoutMs, 5000u);
  EXPECT_EQ(made.mode, wire::Mode::INTERACTIVE);
  EXPECT_EQ(made.safety, wire::Safety::REVERSIBLE);

  request["interaction_mode"] = "background_only";
  request["safety"] = "destructive";
  made = action(request);
  EXPECT_EQ(made.mode, wire::Mode::BACKGROUND_ONLY);
  EXPECT_EQ(made.safety, wire::Safety::DESTRUCTIVE);
  request["safety"] = "external";
  EXPECT_EQ(action(request).safety, wire::Safety::EXTERNAL);
}

TEST_F(V2Mapping, anElementAndAPointAreThoseOfTheFrame) {
  auto made = action(here("press"));
  ASSERT_TRUE(made.target.is<ElementTarget>());
  auto& onElement = made.target.get<ElementTarget>();
  EXPECT_EQ(onElement.element, FIELD);
  EXPECT_EQ(onElement.digest, seen.elements[FIELD].digest);
  EXPECT_EQ(onElement.frame, seen.frame.id);

  made = action(here("move"));
  ASSERT_TRUE(made.target.is<PointTarget>());
  auto& atPoint = made.target.get<PointTarget>();
  EXPECT_EQ(std::pair(atPoint.x, atPoint.y), std::pair(20, 50));
  EXPECT_EQ(atPoint.epoch, seen.frame.epoch);
}

TEST_F(V2Mapping, aClickIsOneOnAnElementOrAPoint) {
  auto request = here("click");
  request["action"]["button"] = "middle";
  auto click = act<ClickRequest>(request);
  EXPECT_EQ(click.button, wire::Button::MIDDLE);
  EXPECT_EQ(click.count, 2u);
  request["target"] = element(BUTTON);
  EXPECT_TRUE(action(request).target.is<ElementTarget>());
}

TEST_F(V2Mapping, typingPressingAndPastingKeepTheirParameters) {
  auto type = act<TypeTextRequest>(here("type_text"));
  EXPECT_EQ(spelled(type.text), "h\u00e9");
  EXPECT_TRUE(type.clear);
  EXPECT_FALSE(type.pressReturn);
  EXPECT_EQ(type.delayMs, 5u);
  auto undelayed = here("type_text");
  undelayed["action"].erase("delay_ms");
  undelayed["action"]["clear"] = false;
  undelayed["action"]["press_return"] = true;
  type = act<TypeTextRequest>(undelayed);
  EXPECT_EQ(type.delayMs, 0u);
  EXPECT_FALSE(type.clear);
  EXPECT_TRUE(type.pressReturn);

  auto request = here("press");
  request["action"]["count"] = 7;
  auto press = act<PressRequest>(request);
  EXPECT_EQ(spelled(press.key), "Return");
  EXPECT_EQ(press.count, 7u);
  EXPECT_EQ(press.delayMs, 5u);

  EXPECT_EQ(spelled(act<PasteRequest>(here("paste")).text), "a text");
  auto hotkey = act<HotkeyRequest>(here("hotkey"));
  ASSERT_EQ(hotkey.keys.size(), 2u);
  EXPECT_EQ(spelled(hotkey.keys[0]), "ctrl");
  EXPECT_EQ(spelled(hotkey.keys[1]), "s");
}

TEST_F(V2Mapping, scrollingAndSelectingKeepTheirParameters) {
  for (auto& [name, direction] :
       {std::pair("up", wire::Direction::UP), std::pair("down", wire::Direction::DOWN),
        std::pair("left", wire::Direction::LEFT), std::pair("right", wire::Direction::RIGHT)}) {
    auto request = here("scroll");
    request["action"]["direction"] = name;
    auto scroll = act<ScrollRequest>(request);
    EXPECT_EQ(scroll.direction, direction);
    EXPECT_EQ(scroll.amount, 3u);
  }
  auto select = act<SelectTextRequest>(here("select_text"));
  EXPECT_EQ(select.start, 2u);
  EXPECT_EQ(select.length, 3u);
}

TEST_F(V2Mapping, secondaryActionsHaveOurNames) {
  for (auto& [theirs, ours] :
       std::vector<std::pair<std::string, std::string>>{{"AXShowMenu", "show_menu"},
                                                        {"AXShowDefaultUI", "show_default_ui"},
                                                        {"AXShowAlternateUI", "show_alternate_ui"},
                                                        {"AXIncrement", "increment"},
                                                        {"AXDecrement", "decrement"},
                                                        {"AXConfirm", "confirm"},
                                                        {"AXCancel", "cancel"},
                                                        {"AXPick", "pick"}}) {
    auto request = here("perform_secondary_action");
    request["action"]["name"] = theirs;
    EXPECT_EQ(spelled(act<SecondaryRequest>(request).name), ours);
  }
}

TEST_F(V2Mapping, aDragIsWithinOneFrame) {
  auto request = here("drag");
  request["action"]["to"] = point(379, 399);
  auto drag = act<DragRequest>(request);
  EXPECT_EQ(std::pair(drag.toX, drag.toY), std::pair(399, 299));
  EXPECT_EQ(drag.button, wire::Button::LEFT);

  request["action"]["to"] = point(380, 399);
  EXPECT_EQ(outcome(mapped(request)), "invalid_coordinate");
  for (auto field :
       {"display_id", "display_geometry_hash", "snapshot_id", "snapshot_content_hash"}) {
    request["action"]["to"] = point(0, 150);
    request["action"]["to"][field] = std::string(64, 'b');
    EXPECT_EQ(outcome(mapped(request)), "stale_frame") << field;
  }
}

TEST_F(V2Mapping, aMoveGoesToAPoint) {
  EXPECT_TRUE(action(here("move")).act.is<MoveRequest>());
  auto request = here("move");
  request["target"] = element(BUTTON);
  EXPECT_EQ(outcome(mapped(request)), "unsupported_action");
}

TEST_F(V2Mapping, whatHasNoTargetNeedsNoObservation) {
  auto mappedBlindly = [&](const Doc& request) {
    return actionOf(verified(allowed(request)), nullptr, NOW, blind);
  };
  auto application = mappedBlindly(requestOfKind("application"));
  ASSERT_TRUE(application.ok()) << outcome(application);
  EXPECT_TRUE(application->target.is<DesktopTarget>());
  auto& launch = application->act.get<ApplicationRequest>();
  EXPECT_EQ(launch.operation, wire::ControlApplication::Operation::LAUNCH);
  EXPECT_EQ(spelled(launch.name), "editor");

  auto opened = mappedBlindly(requestOfKind("open"));
  ASSERT_TRUE(opened.ok()) << outcome(opened);
  auto& open = opened->act.get<OpenRequest>();
  EXPECT_EQ(spelled(open.what), "https://example.com");
  EXPECT_EQ(spelled(open.application), "browser");
  EXPECT_TRUE(open.noFocus);
  auto unnamed = requestOfKind("open");
  unnamed["action"].erase("app");
  EXPECT_EQ(spelled(act<OpenRequest>(unnamed).application), "");

  auto written = mappedBlindly(requestOfKind("clipboard_write"));
  ASSERT_TRUE(written.ok()) << outcome(written);
  EXPECT_EQ(spelled(written->act.get<ClipboardWriteRequest>().text), "a text");

  EXPECT_EQ(outcome(mappedBlindly(here("press"))), "no_active_frame");
  EXPECT_EQ(outcome(mappedBlindly(here("move"))), "no_active_frame");
}

TEST_F(V2Mapping, everyOperationOnAnApplicationIsItsOwn) {
  using Operation = wire::ControlApplication::Operation;
  for (auto& [name, operation] :
       {std::pair("launch", Operation::LAUNCH), std::pair("switch", Operation::SWITCH),
        std::pair("quit", Operation::QUIT)}) {
    auto request = here("application");
    request["action"]["operation"] = name;
    EXPECT_EQ(act<ApplicationRequest>(request).operation, operation);
  }
}

TEST_F(V2Mapping, whatNeedsALookAtTheDesktopIsUnsupported) {
  EXPECT_EQ(outcome(mapped(here("window"))), "unsupported_action");
  EXPECT_EQ(outcome(mapped(here("screenshot"))), "unsupported_action");
}

TEST_F(V2Mapping, aClipboardTextFitsIntoAMessage) {
  auto request = here("clipboard_write");
  request["action"]["text"] = std::string(bounds::CLIPBOARD_BYTES, 'x');
  EXPECT_EQ(outcome(mapped(request)), "ok");
  request["action"]["text"] = std::string(bounds::CLIPBOARD_BYTES + 1, 'x');
  EXPECT_EQ(outcome(mapped(request)), "unsupported_action");
}

// ---- Which of an element's actions `invoke` means.

TEST_F(V2Mapping, invokeMeansTheOneActionThatCanBeMeant) {
  auto invoked = [&](std::vector<std::string> actions) {
    seen.elements[BUTTON].actions.clear();
    for (auto& action : actions) seen.elements[BUTTON].actions.add(kj::str(action.c_str()));
    auto result = mapped(requestOf({{"kind", "invoke"}}, element(BUTTON)));
    return result.ok() ? spelled(result->act.get<InvokeRequest>().name) : outcome(result);
  };
  EXPECT_EQ(invoked({"click"}), "click");
  EXPECT_EQ(invoked({"toggle"}), "toggle");
  EXPECT_EQ(invoked({"show menu", "press"}), "press");
  EXPECT_EQ(invoked({"activate", "show menu"}), "activate");
  EXPECT_EQ(invoked({}), "unsupported_action");
  EXPECT_EQ(invoked({"toggle", "expand"}), "unsupported_action");
  EXPECT_EQ(invoked({"click", "press"}), "unsupported_action");
  EXPECT_EQ(invoked({"Click", "show menu"}), "unsupported_action");
}

// ---- Proofs.

TEST_F(V2Mapping, noProofAskedForIsNoneGiven) {
  EXPECT_EQ(action(here("press")).verification.kind(), Proof::NONE);
}

TEST_F(V2Mapping, aChangedSnapshotAsksForTheStrongestProof) {
  EXPECT_EQ(action(here("type_text")).verification.kind(), Proof::STRONGEST);
}

TEST_F(V2Mapping, aValueIsProvenByItself) {
  auto made = action(here("set_value"));
  EXPECT_EQ(spelled(made.act.get<SetValueRequest>().text), "a value");
  ASSERT_EQ(made.verification.kind(), Proof::VALUE);
  EXPECT_EQ(spelled(made.verification.content.get<ValueProof>().text), "a value");
}

TEST_F(V2Mapping, anExpectedStateIsOneOfOurs) {
  auto request = here("scroll");
  request["verification"]["expected"] = {{"checked", true}, {"multi_line", false}};
  auto made = action(request);
  ASSERT_EQ(made.verification.kind(), Proof::STATE);
  auto& expected = made.verification.content.get<StateProof>().expected;
  ASSERT_EQ(expected.size(), 2u);
  EXPECT_EQ(expected[0].state, State::CHECKED);
  EXPECT_TRUE(expected[0].holds);
  EXPECT_EQ(expected[1].state, State::MULTI_LINE);
  EXPECT_FALSE(expected[1].holds);
}

TEST_F(V2Mapping, anyOtherExpectedStateIsUnsupported) {
  Doc seventeen = Doc::object();
  for (auto name : {"active", "armed", "busy", "checked", "collapsed", "defunct", "editable",
                    "enabled", "expandable", "expanded", "focusable", "focused", "horizontal",
                    "iconified", "modal", "multi_line", "opaque"}) {
    seventeen[name] = true;
  }
  auto request = here("scroll");
  for (auto& expected :
       {Doc(nullptr), Doc("checked"), Doc::array({"checked"}), Doc::object(), seventeen,
        Doc({{"checked", 1}}), Doc({{"checked", nullptr}}), Doc({{"no_such_state", true}}),
        Doc({{"multiLine", true}}), Doc({{"multi_Line", true}}), Doc({{"multi__line", true}}),
        Doc({{"checked_", true}}), Doc({{"", true}})}) {
    request["verification"]["expected"] = expected;
    EXPECT_EQ(outcome(mapped(request)), "unsupported_action") << expected;
  }
  seventeen.erase("opaque");
  request["verification"]["expected"] = seventeen;
  EXPECT_EQ(outcome(mapped(request)), "ok");
}

TEST_F(V2Mapping, aPointHasNoStateToExpect) {
  auto request = here("click");
  request["verification"] = {{"kind", "target_state"}, {"expected", {{"checked", true}}}};
  EXPECT_EQ(outcome(mapped(request)), "unsupported_action");
}

// ---- Refusals.

TEST_F(V2Mapping, timeIsWhatIsLeftOfRequestAndGrant) {
  EXPECT_EQ(mapped(here("press"), DEADLINE - 1)->timeoutMs, 1u);
  EXPECT_EQ(outcome(mapped(here("press"), DEADLINE)), "timeout");
  EXPECT_EQ(outcome(mapped(here("press"), std::numeric_limits<int64_t>::max())), "timeout");
  EXPECT_EQ(mapped(here("press"), 0)->timeoutMs, bounds::ACTION_TIMEOUT_MS);
  auto brief = allowed(here("press"), [](auto& grant) { grant.expiresMs = NOW + 40; });
  auto made = actionOf(verified(brief), seen, NOW, blind);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->timeoutMs, 40u);
  EXPECT_EQ(outcome(actionOf(verified(brief), seen, NOW + 40, blind)), "timeout");
}

TEST_F(V2Mapping, everyFieldOfAFenceIsLookedAt) {
  for (auto& [field, refusal] :
       std::vector<std::pair<std::string, std::string>>{{"observation_id", "stale_frame"},
                                                        {"provenance_hash", "target_changed"},
                                                        {"element_id", "target_changed"},
                                                        {"fingerprint_hash", "target_changed"}}) {
    auto request = here("press");
    request["target"]["target"][field] = std::string(64, 'd');
    EXPECT_EQ(outcome(mapped(request)), refusal) << field;
  }
  auto request = here("press");
  request["target"]["target"]["generation"] = 5;
  EXPECT_EQ(outcome(mapped(request)), "stale_frame");
}

TEST_F(V2Mapping, aPointOfAnotherSnapshotIsStale) {
  auto request = here("move");
  request["target"] = pointTarget();
  EXPECT_EQ(outcome(mapped(request)), "stale_frame");
}

TEST_F(V2Mapping, aRedactionMarkIsNotTyped) {
  auto request = here("paste");
  request["action"]["text"] = "<text:12>";
  EXPECT_EQ(outcome(mapped(request)), "withheld_value_replayed");
}

TEST_F(V2Mapping, anActionIsNeverWithoutItsBlind) {
  blind.fill(0);
  EXPECT_EQ(outcome(mapped(here("press"))), "malformed");
}

// So that every kind has been through the whole road at least once.
TEST_F(V2Mapping, everyKindIsMappedOrRefusedByName) {
  size_t made = 0;
  for (auto& each : everyKind()) {
    std::string kind = each["action"]["kind"];
    auto request = here(kind);
    if (kind == "invoke") request["target"] = element(BUTTON);
    auto result = mapped(request);
    bool refused = kind == "window" || kind == "screenshot";
    EXPECT_EQ(outcome(result), refused ? "unsupported_action" : "ok") << kind;
    if (result.ok()) {
      ++made;
      auto ours = kind == "perform_secondary_action" ? "secondary" : kind;
      EXPECT_EQ(spelled(result->kind()), ours);
    }
  }
  EXPECT_EQ(made, 15u);
}

}  // namespace
}  // namespace praefectus::attest::v2
