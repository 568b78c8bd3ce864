#include "tests/attest/vectors.h"

#include "ipc/action.h"
#include "ipc/bounds.h"
#include "tests/attest/bodies.h"

namespace praefectus::attest {
namespace {

using capnp::DynamicEnum;
using capnp::DynamicList;
using capnp::DynamicStruct;
using capnp::DynamicValue;
using capnp::schema::Type;

std::string hexOf(Bytes bytes) { return hex(bytes).cStr(); }
std::string hexOf(const Hash& hash) { return hexOf(bytesOf(hash)); }

// "staleFrame" as "stale_frame".
std::string snake(kj::StringPtr camel) {
  std::string out;
  for (char c : camel) {
    if (c >= 'A' && c <= 'Z') {
      out += '_';
      c = static_cast<char>(c - 'A' + 'a');
    }
    out += c;
  }
  return out;
}

// ---- A message as JSON

Json jsonOf(DynamicStruct::Reader from);

Json jsonOf(capnp::Type type, DynamicValue::Reader value) {
  switch (type.which()) {
    case Type::VOID:
      return nullptr;
    case Type::BOOL:
      return value.as<bool>();
    case Type::INT32:
      return value.as<int32_t>();
    case Type::UINT16:
    case Type::UINT32:
      return value.as<uint32_t>();
    case Type::INT64:
      return kj::str(value.as<int64_t>()).cStr();
    case Type::UINT64:
      return kj::str(value.as<uint64_t>()).cStr();
    case Type::ENUM:
      return snake(KJ_ASSERT_NONNULL(value.as<DynamicEnum>().getEnumerant()).getProto().getName());
    case Type::TEXT:
      return value.as<capnp::Text>().cStr();
    case Type::DATA:
      return hexOf(value.as<capnp::Data>());
    case Type::LIST: {
      auto out = Json::array();
      for (auto element : value.as<DynamicList>()) {
        out.push_back(jsonOf(type.asList().getElementType(), element));
      }
      return out;
    }
    case Type::STRUCT:
      return jsonOf(value.as<DynamicStruct>());
    default:
      KJ_FAIL_ASSERT("no vector has such a field");
  }
}

Json jsonOf(DynamicStruct::Reader from) {
  auto out = Json::object();
  for (auto field : from.getSchema().getFields()) {
    auto proto = field.getProto();
    bool inUnion = proto.getDiscriminantValue() != capnp::schema::Field::NO_DISCRIMINANT;
    if (inUnion && KJ_ASSERT_NONNULL(from.which()) != field) continue;
    out[proto.getName().cStr()] =
        from.has(field) ? jsonOf(field.getType(), from.get(field)) : Json(nullptr);
  }
  return out;
}

Json valuesOf(capnp::StructSchema schema, Bytes canonical) {
  auto words = kj::heapArray<capnp::word>(canonical.size() / sizeof(capnp::word));
  memcpy(words.asBytes().begin(), canonical.begin(), canonical.size());
  kj::ArrayPtr<const capnp::word> segments[] = {words};
  capnp::SegmentArrayMessageReader message(kj::arrayPtr(segments, 1));
  return jsonOf(message.getRoot<DynamicStruct>(schema));
}

// ---- Keys and bodies

struct NamedKey {
  const char* name;
  Purpose purpose;
  kj::byte seed;  // Each of its 32 bytes, as samples.cc has it.
};
constexpr NamedKey KEYS[] = {{"issuer", Purpose::ISSUER, 1},
                             {"publisher", Purpose::PUBLISHER, 2},
                             {"receipt", Purpose::RECEIPT, 3}};

Json keyVectors() {
  auto out = Json::array();
  for (auto& key : KEYS) {
    Hash seed;
    seed.fill(key.seed);
    auto pub = keyNumber(key.seed).publicKey();
    KJ_ASSERT(pub == keyFor(key.purpose).publicKey());
    out.push_back({{"name", key.name},
                   {"seed", hexOf(seed)},
                   {"publicKey", hexOf(bytesOf(pub))},
                   {"keyId", keyIdOf(pub).cStr()}});
  }
  return out;
}

std::string keyName(Purpose purpose) {
  for (auto& key : KEYS) {
    if (key.purpose == purpose) return key.name;
  }
  KJ_UNREACHABLE;
}

Json bodyVectors() {
  auto out = Json::array();
  for (auto& kind : bodies()) {
    auto envelope = kind.sample();
    out.push_back({{"name", kind.name},
                   {"struct", kind.schema.getShortDisplayName().cStr()},
                   {"label", kind.label.cStr()},
                   {"key", keyName(kind.purpose)},
                   {"values", valuesOf(kind.schema, envelope.body)},
                   {"body", hexOf(envelope.body)},
                   {"digest", hexOf(digestOf(envelope.body))},
                   {"signature", hexOf(bytesOf(envelope.signature))},
                   {"envelope", hexOf(envelopeBytes(envelope))}});
  }
  return out;
}

// ---- Actions

constexpr WindowRef WINDOW = {{4242, 987654}, 0x1400003};

FrameId frame() {
  FrameId id;
  id.fill(9);
  return id;
}
ElementTarget element() { return {WINDOW, frame(), 3, 17, digestOf("an element"_kj.asBytes())}; }
PointTarget point() { return {WINDOW, frame(), 3, 640, 65'535}; }

Action acting(Target target, Act act, Verification::Content proof = StrongestProof()) {
  Action action;
  action.blind = digestOf("a blind"_kj.asBytes());
  action.timeoutMs = 20'000;
  action.target = kj::mv(target);
  action.act = kj::mv(act);
  action.verification.content = kj::mv(proof);
  return action;
}

Action graver(Action action, Mode mode, Safety safety) {
  action.mode = mode;
  action.safety = safety;
  return action;
}

HotkeyRequest hotkey(std::initializer_list<kj::StringPtr> keys) {
  HotkeyRequest request;
  for (auto key : keys) request.keys.add(kj::str(key));
  return request;
}

StateProof states(std::initializer_list<Expectation> expected) {
  StateProof proof;
  proof.expected.addAll(expected);
  return proof;
}

ObserveAct bounded() {
  ObserveAct act;
  act.elements = bounds::ELEMENTS_LIMIT;
  act.depth = 3;
  act.textBytes = bounds::TEXT_LIMIT;
  act.timeMs = 250;
  return act;
}

ObserveAct below() {
  ObserveAct act;
  act.below = Below{frame(), 3, 17, digestOf("an element"_kj.asBytes()), 1500};
  return act;
}

MonitorTarget monitor() {
  MonitorTarget to;
  to.id.fill(8);
  return to;
}

InvokeRequest press() { return {kj::str("press")}; }

// One of every kind, then the proofs, targets and forms that these leave out.
kj::Vector<Action> actions() {
  using wire::ControlApplication;
  using wire::ControlWindow;
  kj::Vector<Action> out;
  out.add(acting(DesktopTarget(), ListAct()));
  out.add(acting(WINDOW, ObserveAct{true}));
  out.add(acting(WINDOW, ScreenshotAct()));
  out.add(acting(element(), press()));
  out.add(acting(element(), SetValueRequest{kj::str("Grüße, 世界")}));
  out.add(acting(element(), SelectTextRequest{5, 6}));
  out.add(acting(element(), SecondaryRequest{kj::str("show_menu")}));
  out.add(acting(element(), ClickRequest{Button::RIGHT, 2}));
  out.add(acting(element(), ScrollRequest{Direction::DOWN, 9}));
  out.add(acting(point(), MoveRequest()));
  out.add(acting(point(), DragRequest{Button::MIDDLE, 21, 22}));
  out.add(acting(element(), TypeTextRequest{kj::str("text"), true, true, 3}));
  out.add(acting(element(), PressRequest{kj::str("Return"), 2, 3}));
  out.add(acting(element(), hotkey({"Control", "Shift", "c"})));
  out.add(acting(element(), PasteRequest{kj::str("pasted")}));
  out.add(acting(DesktopTarget(),
                 ApplicationRequest{ControlApplication::Operation::QUIT, kj::str("editor")}));
  out.add(acting(WINDOW, WindowRequest{ControlWindow::Operation::MINIMIZE}));
  out.add(acting(DesktopTarget(), OpenRequest{kj::str("/a/file"), kj::str("viewer"), true}));
  out.add(acting(DesktopTarget(), ClipboardWriteRequest{kj::str("copied")}));
  out.add(acting(point(), ZoomAct{300, 400}));

  out.add(graver(acting(element(), press(), NoProof()), Mode::BACKGROUND_ONLY, Safety::EXTERNAL));
  out.add(graver(acting(point(), ClickRequest{Button::LEFT, 1}, RegionProof{{1, 2, 300, 400}}),
                 Mode::INTERACTIVE, Safety::DESTRUCTIVE));
  out.add(acting(element(), SetValueRequest{kj::str()}, ValueProof{kj::str()}));
  out.add(acting(element(), press(), states({{State::CHECKED, true}, {State::FOCUSED, false}})));
  out.add(acting(element(), press(), AppearsProof()));
  out.add(acting(WINDOW, WindowRequest{ControlWindow::Operation::CLOSE}, DisappearsProof()));
  out.add(acting(monitor(), ScreenshotAct()));
  out.add(acting(WINDOW, bounded()));
  out.add(acting(WINDOW, below()));
  return out;
}

Json actionVectors() {
  auto out = Json::array();
  for (auto& action : actions()) {
    auto bytes = encode(action);
    auto read = decodeAction(bytes);
    KJ_ASSERT(read.ok(), action.kind(), read.refusal().detail);
    out.push_back({{"name", kj::str(out.size(), " ", action.kind()).cStr()},
                   {"values", valuesOf(capnp::Schema::from<wire::Action>(), bytes)},
                   {"bytes", hexOf(bytes)},
                   {"hash", hexOf(actionHash(bytes))}});
  }
  return out;
}

// ---- Links

Json headOf(const Head& head) {
  return {{"sequence", kj::str(head.sequence).cStr()}, {"link", hexOf(head.link)}};
}

Json linkVector(const Head& before, Step step, kj::StringPtr operation, const Hash& content) {
  return {
      {"name", nameOf(step).cStr()}, {"before", headOf(before)},
      {"step", nameOf(step).cStr()}, {"operation", operation.cStr()},
      {"content", hexOf(content)},   {"after", headOf(extend(before, step, operation, content))}};
}

// A claim and its ending; the ending of the receipt above; an event; a place beyond 32 bits.
Json linkVectors() {
  Head head{1, digestOf("a link"_kj.asBytes())};
  auto row = digestOf("a claim's row"_kj.asBytes());
  auto receipt = sampleReceipt();
  auto claimed = extend(head, Step::CLAIM, "operation-1", row);
  auto ending = digestOf(bodyOf(receipt));
  Head before{receipt.sequence - 1, receipt.previous};
  KJ_ASSERT(extend(before, Step::ENDING, receipt.operation, ending) ==
            headAfter(receipt, bodyOf(receipt)));
  auto event = digestOf(bodyNamed("event/started").sample().body);
  auto out = Json::array();
  out.push_back(linkVector(head, Step::CLAIM, "operation-1", row));
  out.push_back(linkVector(claimed, Step::ENDING, "operation-1", ending));
  out.push_back(linkVector(before, Step::ENDING, receipt.operation, ending));
  out.push_back(linkVector({10, receipt.previous}, Step::EVENT, "", event));
  out.push_back(linkVector({uint64_t{1} << 40, head.link}, Step::CLAIM, "operation-2", row));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i]["name"] = kj::str(i, " ", out[i]["step"].get<std::string>().c_str()).cStr();
  }
  return out;
}

}  // namespace

Json vectors() {
  initialize();
  return {{"keys", keyVectors()},
          {"bodies", bodyVectors()},
          {"actions", actionVectors()},
          {"links", linkVectors()}};
}

std::string spelledOut(const Json& vectors) { return vectors.dump(1) + "\n"; }

std::string vectorFile() { return PRAEFECTUS_SOURCE "/tests/vectors/signed-v1.json"; }

}  // namespace praefectus::attest
