#include "ipc/action.h"

#include "ipc/canonical.h"
#include "tests/ipc/refusals.h"

#include <capnp/dynamic.h>

#include <set>
#include <string>
#include <vector>

namespace praefectus {
namespace {

using Strings = std::vector<std::string>;

Hash hashOf(kj::byte fill) {
  Hash hash;
  hash.fill(fill);
  return hash;
}

kj::String repeated(kj::StringPtr piece, size_t times) {
  return kj::strArray(kj::repeat(piece, times), "");
}

// ---- Actions to begin from -------------------------------------------------------------------

WindowRef window() { return {{12, 34}, 56}; }

ElementTarget element() {
  ElementTarget to;
  to.window = window();
  to.frame.fill(3);
  to.epoch = 1;
  to.element = 2;
  to.digest = hashOf(4);
  return to;
}

PointTarget point() {
  PointTarget to;
  to.window = window();
  to.frame.fill(3);
  to.epoch = 1;
  to.x = 7;
  to.y = 8;
  return to;
}

MonitorTarget monitor() {
  MonitorTarget to;
  to.id.fill(5);
  return to;
}

Action acting(Target target, Act act) {
  Action action;
  action.blind = hashOf(7);
  action.timeoutMs = 1000;
  action.target = kj::mv(target);
  action.act = kj::mv(act);
  return action;
}

HotkeyRequest hotkey(std::initializer_list<kj::StringPtr> keys) {
  HotkeyRequest request;
  for (auto key : keys) request.keys.add(kj::str(key));
  return request;
}

Action list() { return acting(DesktopTarget(), ListAct()); }
Action observe(ObserveAct act = ObserveAct()) { return acting(window(), kj::mv(act)); }
Action invoke(kj::StringPtr name) { return acting(element(), InvokeRequest{kj::str(name)}); }
Action setValue(kj::StringPtr text) { return acting(element(), SetValueRequest{kj::str(text)}); }
Action mutation() { return invoke("click"); }

// One of every kind, in the schema's order, each field with a value that its neighbour has not.
kj::Vector<Action> samples() {
  kj::Vector<Action> out;
  out.add(list());
  out.add(observe(ObserveAct{true}));
  out.add(acting(window(), ScreenshotAct()));
  out.add(invoke("click"));
  out.add(setValue("Grüße"));
  out.add(acting(element(), SelectTextRequest{5, 6}));
  out.add(acting(element(), SecondaryRequest{kj::str("show_menu")}));
  out.add(acting(point(), ClickRequest{Button::RIGHT, 2}));
  out.add(acting(element(), ScrollRequest{Direction::DOWN, 9}));
  out.add(acting(point(), MoveRequest()));
  out.add(acting(point(), DragRequest{Button::MIDDLE, 21, 22}));
  out.add(acting(element(), TypeTextRequest{kj::str("text"), true, false, 3}));
  out.add(acting(element(), PressRequest{kj::str("Return"), 2, 3}));
  out.add(acting(element(), hotkey({"Control", "c"})));
  out.add(acting(element(), PasteRequest{kj::str("pasted")}));
  out.add(acting(DesktopTarget(),
                 ApplicationRequest{wire::ControlApplication::Operation::QUIT, kj::str("editor")}));
  out.add(acting(window(), WindowRequest{wire::ControlWindow::Operation::CLOSE}));
  out.add(acting(DesktopTarget(), OpenRequest{kj::str("/a/file"), kj::str("viewer"), true}));
  out.add(acting(DesktopTarget(), ClipboardWriteRequest{kj::str("copied")}));
  out.add(acting(point(), ZoomAct{23, 24}));
  return out;
}

ObserveAct below() {
  ObserveAct act;
  act.below = Below{element().frame, 1, 2, hashOf(4), 9};
  return act;
}

// Forms of some kinds that their samples do not show.
kj::Vector<Action> otherForms() {
  kj::Vector<Action> out;
  out.add(observe(ObserveAct{false, 5000, 63, 16'383, 5999, nullptr}));
  out.add(observe(below()));
  out.add(acting(monitor(), ScreenshotAct()));
  return out;
}

StateProof states(std::initializer_list<Expectation> expected) {
  StateProof proof;
  proof.expected.addAll(expected);
  return proof;
}

Action proving(Action action, Verification::Content content) {
  action.verification.content = kj::mv(content);
  return action;
}

// One of every proof, in the schema's order.
std::vector<Verification> proofs() {
  std::vector<Verification> out(7);
  out[1].content = NoProof();
  out[2].content = ValueProof{kj::str("shown")};
  out[3].content = states({{State::CHECKED, true}, {State::FOCUSED, false}});
  out[4].content = AppearsProof();
  out[5].content = DisappearsProof();
  out[6].content = RegionProof{{1, 2, 3, 4}};
  return out;
}

std::string decoded(const Action& action) { return outcome(decodeAction(encode(action))); }

// A valid action, changed on the wire.
template <typename Change>
std::string changed(const Action& action, Change&& change) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Action>();
  write(action, root);
  change(root);
  auto direct = outcome(readAction(root.asReader()));
  EXPECT_EQ(direct, outcome(decodeAction(canonicalBytes(root.asReader()))));
  return direct;
}

// How a kind of action fares with each of these texts in the place of its own.
using WithText = kj::Function<Act(kj::String)>;
std::string withText(Target target, WithText& make, kj::StringPtr text) {
  return decoded(acting(kj::mv(target), make(kj::str(text))));
}

// A text's bounds on both sides, and that it is text.
void expectBounds(Target target, size_t least, size_t most, WithText make) {
  auto said = [&](kj::StringPtr text) { return withText(target, make, text); };
  EXPECT_EQ(said(""), least == 0 ? "ok" : "malformed");
  EXPECT_EQ(said(repeated("a", least)), "ok");
  EXPECT_EQ(said(repeated("a", most)), "ok");
  EXPECT_EQ(said(repeated("a", most + 1)), "malformed");
  // Bytes are counted, not characters.
  EXPECT_EQ(said(repeated("ä", most / 2)), "ok");
  EXPECT_EQ(said(repeated("ä", most / 2 + 1)), "malformed");
  EXPECT_EQ(said("\xFF"), "malformed");
  EXPECT_EQ(said(kj::StringPtr("a\0b", 3)), "malformed");
}

// ---- What an action is -----------------------------------------------------------------------

TEST(Action, everyKindIsNamedAsInTheSchema) {
  auto fields = capnp::Schema::from<wire::Action>().getUnionFields();
  auto kinds = actionKinds();
  auto all = samples();
  ASSERT_EQ(kinds.size(), fields.size());
  ASSERT_EQ(kinds.size(), all.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::string camel;
    for (size_t at = 0; at < kinds[i].size(); ++at) {
      bool upper = kinds[i][at] == '_';
      if (upper) ++at;
      camel += static_cast<char>(upper ? kinds[i][at] - 'a' + 'A' : kinds[i][at]);
    }
    EXPECT_EQ(camel, fields[static_cast<capnp::uint>(i)].getProto().getName().cStr());
    EXPECT_EQ(all[i].kind(), kinds[i]);
  }
}

TEST(Action, theClassFollowsFromTheKind) {
  const Strings classes = {
      "metadata_read",     "screenshot_read",   "screenshot_read",   "semantic_mutation",
      "semantic_mutation", "semantic_mutation", "semantic_mutation", "pointer_mutation",
      "pointer_mutation",  "pointer_mutation",  "pointer_mutation",  "keyboard_mutation",
      "keyboard_mutation", "keyboard_mutation", "keyboard_mutation", "semantic_mutation",
      "semantic_mutation", "semantic_mutation", "semantic_mutation", "screenshot_read"};
  auto all = samples();
  ASSERT_EQ(classes.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(nameOf(all[i].actionClass()), classes[i].c_str()) << all[i].kind().cStr();
    EXPECT_EQ(all[i].isMutation(), classes[i].ends_with("mutation")) << all[i].kind().cStr();
  }
  EXPECT_EQ(observe().actionClass(), ActionClass::METADATA_READ);
}

TEST(Action, theWindowAndTheFrameAreThoseThatItRefersTo) {
  EXPECT_EQ(list().window(), WindowRef());
  EXPECT_TRUE(list().frame() == nullptr);
  EXPECT_EQ(observe().window(), window());
  EXPECT_TRUE(observe().frame() == nullptr);
  for (auto& target : {Target(element()), Target(point())}) {
    auto action = acting(target, ClickRequest{});
    EXPECT_EQ(action.window(), window());
    auto frame = KJ_ASSERT_NONNULL(action.frame());
    EXPECT_EQ(frame.id, element().frame);
    EXPECT_EQ(frame.epoch, 1u);
  }
  // A reading below an element refers to that element's frame, and takes another.
  EXPECT_EQ(observe(below()).window(), window());
  EXPECT_EQ(KJ_ASSERT_NONNULL(observe(below()).frame()).id, element().frame);
  EXPECT_EQ(KJ_ASSERT_NONNULL(observe(below()).frame()).epoch, 1u);
  EXPECT_EQ(acting(monitor(), ScreenshotAct()).window(), WindowRef());
  EXPECT_TRUE(acting(monitor(), ScreenshotAct()).frame() == nullptr);
}

TEST(Action, aProofIsNamedAsInTheSchema) {
  auto all = proofs();
  auto fields = capnp::Schema::from<wire::Verification>().getUnionFields();
  auto words = capnp::Schema::from<Proof>().getEnumerants();
  ASSERT_EQ(all.size(), fields.size());
  ASSERT_EQ(all.size(), words.size());
  for (size_t i = 0; i < all.size(); ++i) {
    auto at = static_cast<capnp::uint>(i);
    EXPECT_EQ(all[i].kind(), static_cast<Proof>(i));
    EXPECT_EQ(all[i].clone().kind(), all[i].kind());
    EXPECT_EQ(fields[at].getProto().getName(), words[at].getProto().getName());
  }
  EXPECT_EQ(Verification::strongest().kind(), Proof::STRONGEST);
  EXPECT_EQ(Verification::none().kind(), Proof::NONE);
}

// ---- On the wire -----------------------------------------------------------------------------

// Together with the next test: what is written has its place, and what is read is what was written.
TEST(Action, everyFieldHasItsPlaceInTheSchema) {
  const Strings acts = {
      "list = void",
      "observe = (picture = true, elements = 0, depth = 0, textBytes = 0, timeMs = 0, "
      "part = (whole = void))",
      "screenshot = void",
      "invoke = (name = \"click\")",
      "setValue = (text = \"Grüße\")",
      "selectText = (start = 5, length = 6)",
      "secondary = (name = \"show_menu\")",
      "click = (button = right, count = 2)",
      "scroll = (direction = down, amount = 9)",
      "move = void",
      "drag = (button = middle, toX = 21, toY = 22)",
      "typeText = (text = \"text\", clear = true, pressReturn = false, delayMs = 3)",
      "press = (key = \"Return\", count = 2, delayMs = 3)",
      "hotkey = (keys = [\"Control\", \"c\"])",
      "paste = (text = \"pasted\")",
      "application = (operation = quit, name = \"editor\")",
      "window = (operation = close)",
      "open = (what = \"/a/file\", application = \"viewer\", noFocus = true)",
      "clipboardWrite = (text = \"copied\")",
      "zoom = (toX = 23, toY = 24)",
  };
  const Strings verifications = {
      "strongest = void",
      "none = void",
      "value = \"shown\"",
      "state = [(state = checked, holds = true), (state = focused, holds = false)]",
      "appears = void",
      "disappears = void",
      "regionChanged = (x = 1, y = 2, width = 3, height = 4)",
  };
  auto onWire = [](const Action& action) {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::Action>();
    write(action, root);
    return std::string(kj::str(root.asReader()).cStr());
  };
  auto all = samples();
  ASSERT_EQ(acts.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(onWire(all[i]).ends_with(", " + acts[i] + ")")) << onWire(all[i]);
  }
  auto kinds = proofs();
  ASSERT_EQ(verifications.size(), kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    auto action = mutation();
    action.verification = kinds[i].clone();
    EXPECT_NE(onWire(action).find("verification = (" + verifications[i] + ")"), std::string::npos)
        << onWire(action);
  }
  auto action = mutation();
  action.mode = Mode::BACKGROUND_ONLY;
  action.safety = Safety::DESTRUCTIVE;
  EXPECT_NE(onWire(action).find("timeoutMs = 1000, mode = backgroundOnly, safety = destructive"),
            std::string::npos);
  const std::string place = "(window = (process = (pid = 12, start = 34), window = 56), frame = \"";
  EXPECT_NE(onWire(action).find("target = (element = " + place), std::string::npos);
  EXPECT_NE(onWire(action).find("epoch = 1, element = 2, digest = \""), std::string::npos);
  auto pointed = onWire(acting(point(), MoveRequest()));
  EXPECT_NE(pointed.find("target = (point = " + place), std::string::npos) << pointed;
  EXPECT_NE(pointed.find("epoch = 1, x = 7, y = 8"), std::string::npos);
  auto forms = otherForms();
  EXPECT_NE(onWire(forms[0]).find("elements = 5000, depth = 63, textBytes = 16383, timeMs = 5999"),
            std::string::npos);
  EXPECT_NE(onWire(forms[1]).find("part = (below = (frame = \""), std::string::npos);
  EXPECT_NE(onWire(forms[1]).find("epoch = 1, element = 2, digest = \""), std::string::npos);
  EXPECT_NE(onWire(forms[1]).find("first = 9)"), std::string::npos);
  EXPECT_NE(onWire(forms[2]).find("target = (monitor = \""), std::string::npos);
}

TEST(Action, everyKindIsReadAsItWasWritten) {
  auto expectSame = [](const Action& action) {
    auto bytes = encode(action);
    auto back = decodeAction(bytes);
    ASSERT_EQ(outcome(back), "ok") << action.kind().cStr();
    EXPECT_EQ(encode(*back), bytes) << action.kind().cStr();
    EXPECT_EQ(back->kind(), action.kind());
    EXPECT_EQ(back->window(), action.window());
  };
  for (auto& action : samples()) expectSame(action);
  for (auto& action : otherForms()) expectSame(action);
  for (auto& proof : proofs()) {
    for (auto mode : {Mode::INTERACTIVE, Mode::BACKGROUND_ONLY}) {
      for (auto safety : {Safety::REVERSIBLE, Safety::EXTERNAL, Safety::DESTRUCTIVE}) {
        auto action = mutation();
        action.verification = proof.clone();
        action.mode = mode;
        action.safety = safety;
        expectSame(action);
      }
    }
  }
  expectSame(setValue(""));
}

// ---- Every field counts ----------------------------------------------------------------------

// Alters the n-th leaf of a message. `path` says which that was; it stays empty beyond the last.
class Alteration {
 public:
  Alteration(capnp::DynamicStruct::Builder in, size_t leaf) : left(leaf) { walk(in, ""); }
  std::string path;

 private:
  using Set = kj::FunctionParam<void(const capnp::DynamicValue::Reader&)>;

  void walk(capnp::DynamicStruct::Builder in, const std::string& prefix) {
    auto visit = [&](capnp::StructSchema::Field field) {
      step(in.get(field), prefix + field.getProto().getName().cStr(),
           [&](const capnp::DynamicValue::Reader& to) { in.set(field, to); });
    };
    for (auto field : in.getSchema().getNonUnionFields()) visit(field);
    KJ_IF_MAYBE (active, in.which()) visit(*active);
  }

  void step(capnp::DynamicValue::Builder value, const std::string& at, Set set) {
    if (value.getType() == capnp::DynamicValue::STRUCT) {
      walk(value.as<capnp::DynamicStruct>(), at + ".");
    } else if (value.getType() == capnp::DynamicValue::LIST) {
      auto items = value.as<capnp::DynamicList>();
      for (capnp::uint i = 0; i < items.size(); ++i) {
        step(items[i], at, [&](const capnp::DynamicValue::Reader& to) { items.set(i, to); });
      }
    } else if (value.getType() != capnp::DynamicValue::VOID && left-- == 0) {
      path = at;
      alter(value, set);
    }
  }

  static void alter(capnp::DynamicValue::Builder value, Set& set) {
    switch (value.getType()) {
      case capnp::DynamicValue::BOOL:
        return set(!value.as<bool>());
      case capnp::DynamicValue::INT:
        return set(value.as<int64_t>() + 1);
      case capnp::DynamicValue::UINT:
        return set(value.as<uint64_t>() + 1);
      case capnp::DynamicValue::ENUM: {
        auto was = value.as<capnp::DynamicEnum>();
        auto next = (was.getRaw() + 1u) % was.getSchema().getEnumerants().size();
        return set(capnp::DynamicEnum(was.getSchema(), static_cast<uint16_t>(next)));
      }
      case capnp::DynamicValue::TEXT: {
        auto longer = kj::str(value.as<capnp::Text>().asString(), 'x');
        return set(capnp::Text::Reader(longer));
      }
      case capnp::DynamicValue::DATA:
        value.as<capnp::Data>()[0] ^= 1;
        return;
      default:
        ADD_FAILURE() << "a kind of field that this test cannot alter";
    }
  }

  size_t left;
};

// What is hashed is the canonical bytes. Each altered leaf gives others, and what they are read as
// is written as those very bytes: no field is dropped, swapped or guessed on the way.
void expectEveryLeafToCount(const Action& action) {
  auto bytes = encode(action);
  std::string last;
  for (size_t leaf = 0;; ++leaf) {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::Action>();
    write(action, root);
    Alteration alteration(root, leaf);
    if (alteration.path.empty()) {
      EXPECT_GE(leaf, 4u) << "blind, timeout, mode, safety";
      return;
    }
    auto altered = canonicalBytes(root.asReader());
    EXPECT_NE(altered, bytes) << alteration.path;
    auto back = decodeAction(altered);
    bool isOfAct = alteration.path == "mode" || alteration.path == "safety";
    bool refused = alteration.path == "secondary.name" || (isOfAct && !action.isMutation());
    EXPECT_EQ(outcome(back), refused ? "malformed" : "ok") << alteration.path;
    if (!back.ok()) continue;
    EXPECT_EQ(encode(*back), altered) << alteration.path;
  }
}

TEST(Action, everyFieldChangesTheBytesAndIsReadBack) {
  for (auto& action : samples()) expectEveryLeafToCount(action);
  expectEveryLeafToCount(observe(ObserveAct{true, 20, 3, 40, 100, nullptr}));
  expectEveryLeafToCount(observe(below()));
  expectEveryLeafToCount(acting(monitor(), ScreenshotAct()));
  for (auto& proof : proofs()) {
    auto action = mutation();
    action.verification = proof.clone();
    expectEveryLeafToCount(action);
  }
}

// Every bit counts: whatever bit is turned, the bytes are refused or stand for another action.
TEST(Action, noSingleBitIsWithoutMeaning) {
  auto actions = samples();
  for (auto& action : otherForms()) actions.add(kj::mv(action));
  for (auto& proof : proofs()) {
    actions.add(mutation());
    actions.back().verification = proof.clone();
  }
  for (auto& action : actions) {
    auto bytes = encode(action);
    size_t passed = 0, refused = 0;
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      auto& byte = bytes[bit / 8];
      byte ^= static_cast<kj::byte>(1u << bit % 8);
      auto back = decodeAction(bytes);
      EXPECT_TRUE(!back.ok() || encode(*back) == bytes) << action.kind().cStr() << bit;
      ++(back.ok() ? passed : refused);
      byte ^= static_cast<kj::byte>(1u << bit % 8);
    }
    EXPECT_GT(passed, 0u);
    EXPECT_GT(refused, 0u);
  }
}

// ---- What goes together ----------------------------------------------------------------------

// The kinds that each kind of target suits, written down a second time.
const std::set<std::string> OF_THE_DESKTOP = {"list", "application", "open", "clipboard_write"};
const std::set<std::string> OF_A_WINDOW = {"observe", "screenshot", "window"};
const std::set<std::string> OF_AN_ELEMENT = {"invoke", "set_value", "select_text", "secondary",
                                             "click",  "scroll",    "type_text",   "press",
                                             "hotkey", "paste"};
const std::set<std::string> OF_A_POINT = {"click", "move", "drag", "zoom"};
const std::set<std::string> OF_A_MONITOR = {"screenshot"};

struct TargetRow {
  Target target;
  const std::set<std::string>& kinds;
  const std::set<std::string> proofs;
};

std::vector<TargetRow> targetRows() {
  const std::set<std::string> always = {"strongest", "none"};
  const std::set<std::string> outer = {"strongest", "none", "appears", "disappears",
                                       "region_changed"};
  const std::set<std::string> all = {"strongest", "none",       "value",         "state",
                                     "appears",   "disappears", "region_changed"};
  return {{DesktopTarget(), OF_THE_DESKTOP, always},
          {window(), OF_A_WINDOW, outer},
          {element(), OF_AN_ELEMENT, all},
          {point(), OF_A_POINT, outer},
          {monitor(), OF_A_MONITOR, always}};
}

TEST(Action, theTargetSuitsTheKind) {
  for (auto& row : targetRows()) {
    for (auto& action : samples()) {
      action.target = row.target;
      std::string expected = row.kinds.count(action.kind().cStr()) ? "ok" : "malformed";
      EXPECT_EQ(decoded(action), expected) << action.kind().cStr();
    }
  }
}

TEST(Action, theProofSuitsTheTargetAndNothingIsProvenOfARead) {
  for (auto& row : targetRows()) {
    for (auto& action : samples()) {
      action.target = row.target;
      for (auto& proof : proofs()) {
        action.verification = proof.clone();
        std::string name = nameOf(proof.kind()).cStr();
        bool suits = row.kinds.count(action.kind().cStr()) && row.proofs.count(name) &&
                     (action.isMutation() || name == "strongest");
        EXPECT_EQ(decoded(action), suits ? "ok" : "malformed") << action.kind().cStr() << name;
      }
    }
  }
}

TEST(Action, aReadHasNoModeOrSafetyOfItsOwn) {
  for (auto& action : samples()) {
    std::string expected = action.isMutation() ? "ok" : "malformed";
    action.mode = Mode::BACKGROUND_ONLY;
    EXPECT_EQ(decoded(action), expected);
    action.mode = Mode::INTERACTIVE;
    for (auto safety : {Safety::EXTERNAL, Safety::DESTRUCTIVE}) {
      action.safety = safety;
      EXPECT_EQ(decoded(action), expected);
    }
    action.safety = Safety::REVERSIBLE;
    EXPECT_EQ(decoded(action), "ok");
  }
}

// ---- Bounds of every action ------------------------------------------------------------------

TEST(Action, theBlindIs32BytesAndNotAllZero) {
  Action action = mutation();
  action.blind = hashOf(0);
  EXPECT_EQ(decoded(action), "malformed");
  action.blind[31] = 1;
  EXPECT_EQ(decoded(action), "ok");
  const kj::byte bytes[33] = {1};
  for (size_t size : {0, 31, 33}) {
    EXPECT_EQ(changed(mutation(), [&](auto to) { to.setBlind(kj::arrayPtr(bytes, size)); }),
              "malformed");
  }
}

TEST(Action, theTimeoutIsOneTo120000Milliseconds) {
  Action action = mutation();
  for (auto [ms, expected] : {std::pair{0u, "malformed"}, std::pair{1u, "ok"},
                              std::pair{120'000u, "ok"}, std::pair{120'001u, "malformed"}}) {
    action.timeoutMs = ms;
    EXPECT_EQ(decoded(action), expected) << ms;
  }
}

// ---- Bounds of targets -----------------------------------------------------------------------

std::string aimedAt(Target target) {
  Act act = target.is<WindowRef>() ? Act(ObserveAct()) : Act(ClickRequest());
  return decoded(acting(kj::mv(target), kj::mv(act)));
}

TEST(Action, aTargetNamesItsWindow) {
  for (auto ref : {WindowRef(), WindowRef{{0, 34}, 56}, WindowRef{{12, 34}, 0}}) {
    auto ofElement = element();
    auto ofPoint = point();
    ofElement.window = ofPoint.window = ref;
    EXPECT_EQ(aimedAt(ref), "malformed");
    EXPECT_EQ(aimedAt(ofElement), "malformed");
    EXPECT_EQ(aimedAt(ofPoint), "malformed");
  }
  EXPECT_EQ(aimedAt(WindowRef{{1, 0}, 1}), "ok");
}

TEST(Action, anElementIsNamedInFull) {
  const kj::byte bytes[33] = {1};
  auto withFrame = [&](size_t size) {
    return changed(mutation(), [&](auto to) {
      to.getTarget().getElement().setFrame(kj::arrayPtr(bytes, size));
    });
  };
  auto withDigest = [&](size_t size) {
    return changed(mutation(), [&](auto to) {
      to.getTarget().getElement().setDigest(kj::arrayPtr(bytes, size));
    });
  };
  EXPECT_EQ(withFrame(15), "malformed");
  EXPECT_EQ(withFrame(16), "ok");
  EXPECT_EQ(withFrame(17), "malformed");
  EXPECT_EQ(withDigest(31), "malformed");
  EXPECT_EQ(withDigest(32), "ok");
  EXPECT_EQ(withDigest(33), "malformed");
  auto target = element();
  target.epoch = 0;
  EXPECT_EQ(aimedAt(target), "malformed");
  target = element();
  target.element = 4999;
  EXPECT_EQ(aimedAt(target), "ok");
  target.element = 5000;
  EXPECT_EQ(aimedAt(target), "malformed");
}

TEST(Action, aPointBelongsToAFrame) {
  const kj::byte bytes[17] = {1};
  for (size_t size : {0, 15, 17}) {
    EXPECT_EQ(
        changed(acting(point(), MoveRequest()),
                [&](auto to) { to.getTarget().getPoint().setFrame(kj::arrayPtr(bytes, size)); }),
        "malformed");
  }
  auto target = point();
  target.epoch = 0;
  EXPECT_EQ(aimedAt(target), "malformed");
}

TEST(Action, aMonitorIsNamedBy16Bytes) {
  const kj::byte bytes[17] = {1};
  auto named = [&](size_t size) {
    return changed(acting(monitor(), ScreenshotAct()),
                   [&](auto to) { to.getTarget().setMonitor(kj::arrayPtr(bytes, size)); });
  };
  EXPECT_EQ(named(0), "malformed");
  EXPECT_EQ(named(15), "malformed");
  EXPECT_EQ(named(16), "ok");
  EXPECT_EQ(named(17), "malformed");
}

// What a point or a region's corner may be, on either axis.
constexpr std::pair<int32_t, const char*> COORDINATES[] = {
    {INT32_MIN, "malformed"}, {-1, "malformed"},     {0, "ok"},
    {65'535, "ok"},           {65'536, "malformed"}, {INT32_MAX, "malformed"}};

TEST(Action, aCoordinateIsFromZeroTo65535) {
  for (auto [number, expected] : COORDINATES) {
    auto across = point(), down = point();
    across.x = number;
    down.y = number;
    EXPECT_EQ(aimedAt(across), expected) << number;
    EXPECT_EQ(aimedAt(down), expected) << number;
    EXPECT_EQ(decoded(acting(point(), DragRequest{Button::LEFT, number, 0})), expected) << number;
    EXPECT_EQ(decoded(acting(point(), DragRequest{Button::LEFT, 0, number})), expected) << number;
    EXPECT_EQ(decoded(acting(point(), ZoomAct{number, 0})), expected) << number;
    EXPECT_EQ(decoded(acting(point(), ZoomAct{0, number})), expected) << number;
    EXPECT_EQ(decoded(proving(mutation(), RegionProof{{number, 0, 1, 1}})), expected) << number;
    EXPECT_EQ(decoded(proving(mutation(), RegionProof{{0, number, 1, 1}})), expected) << number;
  }
}

// ---- Bounds of proofs ------------------------------------------------------------------------

TEST(Action, aRegionHasSidesOfOneTo16384Pixels) {
  for (auto [side, expected] : {std::pair{0u, "malformed"}, std::pair{1u, "ok"},
                                std::pair{16'384u, "ok"}, std::pair{16'385u, "malformed"}}) {
    EXPECT_EQ(decoded(proving(mutation(), RegionProof{{0, 0, side, 1}})), expected);
    EXPECT_EQ(decoded(proving(mutation(), RegionProof{{0, 0, 1, side}})), expected);
  }
}

TEST(Action, oneTo16StatesAreExpectedEachOnce) {
  auto expecting = [](size_t count) {
    StateProof proof;
    for (size_t i = 0; i < count; ++i) proof.expected.add(Expectation{static_cast<State>(i), true});
    return decoded(proving(mutation(), kj::mv(proof)));
  };
  EXPECT_EQ(expecting(0), "malformed");
  EXPECT_EQ(expecting(1), "ok");
  EXPECT_EQ(expecting(16), "ok");
  EXPECT_EQ(expecting(17), "malformed");
  for (bool holds : {true, false}) {
    auto twice = states({{State::CHECKED, true}, {State::ENABLED, true}, {State::CHECKED, holds}});
    EXPECT_EQ(decoded(proving(mutation(), kj::mv(twice))), "malformed");
  }
  EXPECT_EQ(decoded(proving(mutation(), states({{State::READ_ONLY, false}}))), "ok");
}

TEST(Action, aProvenValueIsUpTo16384BytesOfText) {
  auto proven = [](kj::StringPtr text) {
    return decoded(proving(mutation(), ValueProof{kj::str(text)}));
  };
  EXPECT_EQ(proven(""), "ok");
  EXPECT_EQ(proven(repeated("a", 16'384)), "ok");
  EXPECT_EQ(proven(repeated("a", 16'385)), "malformed");
  EXPECT_EQ(proven("\xC3"), "malformed");
}

// ---- Bounds of readings ----------------------------------------------------------------------

// The usual bound is written as zero and in no other way.
void expectBound(uint32_t ObserveAct::*bound, uint32_t usual, uint32_t limit,
                 kj::Function<void(wire::Observe::Builder, uint32_t)> set) {
  auto asked = [&](uint32_t number) {
    return changed(observe(), [&](auto to) { set(to.getObserve(), number); });
  };
  EXPECT_EQ(asked(0), "ok");
  EXPECT_EQ(asked(1), "ok");
  EXPECT_EQ(asked(limit), limit == usual ? "malformed" : "ok");
  EXPECT_EQ(asked(limit + 1), "malformed");
  EXPECT_EQ(asked(UINT32_MAX), "malformed");
  EXPECT_EQ(asked(usual), "malformed");
  auto act = decodeAction(encode(observe()))->act.get<ObserveAct>();
  EXPECT_EQ(act.*bound, usual);
  ObserveAct least;
  least.*bound = 1;
  EXPECT_EQ(decodeAction(encode(observe(least)))->act.get<ObserveAct>().*bound, 1u);
}

TEST(Action, eachBoundOfAReadingIsZeroForTheUsualAndHasALimit) {
  expectBound(&ObserveAct::elements, 1500, 5000, [](auto to, auto n) { to.setElements(n); });
  expectBound(&ObserveAct::depth, 64, 64, [](auto to, auto n) { to.setDepth(n); });
  expectBound(&ObserveAct::textBytes, 500, 16'384, [](auto to, auto n) { to.setTextBytes(n); });
  expectBound(&ObserveAct::timeMs, 6000, 6000, [](auto to, auto n) { to.setTimeMs(n); });
}

TEST(Action, whatIsReadBelowIsNamedInFull) {
  const kj::byte bytes[33] = {1};
  auto with = [&](auto change) {
    return changed(observe(below()),
                   [&](auto to) { change(to.getObserve().getPart().getBelow()); });
  };
  EXPECT_EQ(with([](auto) {}), "ok");
  for (size_t size : {0, 15, 17}) {
    EXPECT_EQ(with([&](auto to) { to.setFrame(kj::arrayPtr(bytes, size)); }), "malformed");
  }
  for (size_t size : {0, 31, 33}) {
    EXPECT_EQ(with([&](auto to) { to.setDigest(kj::arrayPtr(bytes, size)); }), "malformed");
  }
  EXPECT_EQ(with([](auto to) { to.setEpoch(0); }), "malformed");
  EXPECT_EQ(with([](auto to) { to.setElement(4999); }), "ok");
  EXPECT_EQ(with([](auto to) { to.setElement(5000); }), "malformed");
  EXPECT_EQ(with([](auto to) { to.setFirst(UINT32_MAX); }), "ok");
}

// ---- Bounds of each kind ---------------------------------------------------------------------

TEST(Action, eachTextHasItsBounds) {
  expectBounds(element(), 1, 128, [](kj::String text) { return InvokeRequest{kj::mv(text)}; });
  expectBounds(element(), 0, 16'384, [](kj::String text) { return SetValueRequest{kj::mv(text)}; });
  expectBounds(element(), 1, 16'384, [](kj::String text) {
    return TypeTextRequest{kj::mv(text), false, false, 0};
  });
  expectBounds(element(), 1, 64, [](kj::String text) { return PressRequest{kj::mv(text), 1, 0}; });
  expectBounds(element(), 1, 64, [](kj::String text) { return hotkey({"Control", text}); });
  expectBounds(element(), 1, 16'384, [](kj::String text) { return PasteRequest{kj::mv(text)}; });
  expectBounds(DesktopTarget(), 1, 256, [](kj::String text) {
    return ApplicationRequest{wire::ControlApplication::Operation::LAUNCH, kj::mv(text)};
  });
  expectBounds(DesktopTarget(), 1, 16'384, [](kj::String text) {
    return OpenRequest{kj::mv(text), kj::str(), false};
  });
  expectBounds(DesktopTarget(), 0, 256, [](kj::String text) {
    return OpenRequest{kj::str("what"), kj::mv(text), false};
  });
  expectBounds(DesktopTarget(), 0, 524'288,
               [](kj::String text) { return ClipboardWriteRequest{kj::mv(text)}; });
}

TEST(Action, aRedactionMarkIsNoContent) {
  auto said = [](kj::StringPtr text) {
    Strings out;
    out.push_back(decoded(setValue(text)));
    out.push_back(decoded(acting(element(), TypeTextRequest{kj::str(text), false, false, 0})));
    out.push_back(decoded(acting(element(), PasteRequest{kj::str(text)})));
    out.push_back(decoded(acting(DesktopTarget(), ClipboardWriteRequest{kj::str(text)})));
    out.push_back(decoded(proving(mutation(), ValueProof{kj::str(text)})));
    return out;
  };
  for (auto mark : {"<text:18>", "<text:0>", "<point>", "<value>", "<2 items>", "<1 item>"}) {
    EXPECT_EQ(said(mark), Strings(5, "withheld_value_replayed")) << mark;
  }
  for (auto text : {"<text:>", "<text:1a>", " <text:18>", "<text:18> ", "<points>", "< items>",
                    "<two items>", "<value", "value", "<text:18", "<>"}) {
    EXPECT_EQ(said(text), Strings(5, "ok")) << text;
  }
  // A mark stands for content only; a control's action may be named as it likes.
  EXPECT_EQ(decoded(invoke("<value>")), "ok");
}

TEST(Action, aSecondaryActionIsOneOfEight) {
  auto said = [](kj::StringPtr name) {
    return decoded(acting(element(), SecondaryRequest{kj::str(name)}));
  };
  for (auto name : {"show_menu", "show_default_ui", "show_alternate_ui", "increment", "decrement",
                    "confirm", "cancel", "pick"}) {
    EXPECT_EQ(said(name), "ok") << name;
    EXPECT_EQ(said(kj::str(name, ' ')), "malformed");
    EXPECT_EQ(said(kj::str(' ', name)), "malformed");
    EXPECT_EQ(said(kj::str(name, ",cancel")), "malformed");
    auto upper = kj::str(name);
    upper[0] = static_cast<char>(upper[0] - 'a' + 'A');
    EXPECT_EQ(said(upper), "malformed");
  }
  EXPECT_EQ(said(""), "malformed");
  EXPECT_EQ(said("press"), "malformed");
  EXPECT_EQ(said("AXPick"), "malformed");
  EXPECT_EQ(said(kj::StringPtr("pick\0", 5)), "malformed");
}

TEST(Action, aSelectionEndsAt1048576Characters) {
  auto said = [](uint32_t start, uint32_t length) {
    return decoded(acting(element(), SelectTextRequest{start, length}));
  };
  EXPECT_EQ(said(0, 0), "ok");
  EXPECT_EQ(said(0, 1'048'576), "ok");
  EXPECT_EQ(said(1'048'576, 0), "ok");
  EXPECT_EQ(said(1'048'575, 1), "ok");
  EXPECT_EQ(said(0, 1'048'577), "malformed");
  EXPECT_EQ(said(1'048'577, 0), "malformed");
  EXPECT_EQ(said(1'048'576, 1), "malformed");
  // The sum does not begin again at zero.
  EXPECT_EQ(said(UINT32_MAX, 1), "malformed");
  EXPECT_EQ(said(UINT32_MAX, UINT32_MAX), "malformed");
}

// A count that is at least one: 0, 1, the most, and one more.
void expectCount(Target target, uint32_t most, kj::Function<Act(uint32_t)> make) {
  for (auto [count, expected] :
       {std::pair{0u, "malformed"}, std::pair{1u, "ok"}, std::pair{most, "ok"},
        std::pair{most + 1, "malformed"}, std::pair{UINT32_MAX, "malformed"}}) {
    EXPECT_EQ(decoded(acting(target, make(count))), expected) << count;
  }
}

TEST(Action, eachCountHasItsBounds) {
  expectCount(element(), 3, [](uint32_t count) { return ClickRequest{Button::LEFT, count}; });
  expectCount(element(), 100, [](uint32_t count) { return PressRequest{kj::str("a"), count, 0}; });
  expectCount(element(), 100, [](uint32_t count) { return ScrollRequest{Direction::UP, count}; });
  expectCount(element(), 8, [](uint32_t count) {
    HotkeyRequest request;
    for (uint32_t i = 0; i < std::min(count, 100u); ++i) request.keys.add(kj::str("a"));
    return request;
  });
}

TEST(Action, aDelayIsUpToOneSecond) {
  for (auto [ms, expected] : {std::pair{0u, "ok"}, std::pair{1000u, "ok"},
                              std::pair{1001u, "malformed"}, std::pair{UINT32_MAX, "malformed"}}) {
    EXPECT_EQ(decoded(acting(element(), TypeTextRequest{kj::str("a"), false, false, ms})),
              expected);
    EXPECT_EQ(decoded(acting(element(), PressRequest{kj::str("a"), 1, ms})), expected);
  }
}

TEST(Action, noKeyOfSeveralMayBeMissing) {
  EXPECT_EQ(decoded(acting(element(), hotkey({"", "c"}))), "malformed");
  EXPECT_EQ(decoded(acting(element(), hotkey({"c", ""}))), "malformed");
  EXPECT_EQ(decoded(acting(element(), hotkey({repeated("c", 65), "c"}))), "malformed");
}

// ---- What is no action -----------------------------------------------------------------------

TEST(Action, whatTheSchemaDoesNotKnowIsRefused) {
  EXPECT_EQ(changed(mutation(), [](auto to) { to.setMode(static_cast<Mode>(2)); }),
            "unknown_field");
  EXPECT_EQ(changed(mutation(), [](auto to) { to.setSafety(static_cast<Safety>(3)); }),
            "unknown_field");
  EXPECT_EQ(
      changed(proving(mutation(), states({{State::CHECKED, true}})),
              [](auto to) { to.getVerification().getState()[0].setState(static_cast<State>(41)); }),
      "unknown_field");
  auto click = []() { return acting(point(), ClickRequest()); };
  EXPECT_EQ(changed(click(), [](auto to) { to.getClick().setButton(static_cast<Button>(3)); }),
            "unknown_field");
  EXPECT_EQ(changed(acting(element(), ScrollRequest()),
                    [](auto to) { to.getScroll().setDirection(static_cast<Direction>(4)); }),
            "unknown_field");
  // A union whose tag was turned while its content stayed.
  EXPECT_EQ(changed(observe(), [](auto to) { to.setInvoke(to.initInvoke()); }), "malformed");
}

TEST(Action, textThatIsNotTextOnTheWireIsRefused) {
  auto withNul = kj::StringPtr("a\0b", 3);
  EXPECT_EQ(changed(setValue("x"), [&](auto to) { to.getSetValue().setText(withNul); }),
            "malformed");
  EXPECT_EQ(changed(acting(element(), hotkey({"x"})),
                    [&](auto to) { to.getHotkey().getKeys().set(0, withNul); }),
            "malformed");
}

TEST(Action, oversizeAndForeignBytesAreMalformed) {
  auto bytes = kj::heapArray<kj::byte>(bounds::ACTION_BYTES + 8);
  std::fill(bytes.begin(), bytes.end(), kj::byte{0});
  EXPECT_EQ(outcome(decodeAction(bytes)), "malformed");
  EXPECT_EQ(outcome(decodeAction(nullptr)), "malformed");
  EXPECT_EQ(outcome(decodeAction(kj::StringPtr("{\"action\":").asBytes())), "malformed");
}

}  // namespace
}  // namespace praefectus
