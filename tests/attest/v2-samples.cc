#include "tests/attest/v2-samples.h"

#include <algorithm>
#include <array>
#include <fstream>

namespace praefectus::attest::v2 {
namespace {

constexpr int64_t DEADLINE = 1893456000000;

std::array<kj::byte, 32> seed() {
  std::array<kj::byte, 32> out;
  out.fill(7);
  return out;
}

std::string digits(char digit) { return std::string(64, digit); }

kj::String owned(const std::string& text) { return kj::heapString(text.data(), text.size()); }

Doc grantFor(const std::string& hash) {
  return {
      {"protocol_version", 2},  {"issuer", "host-1"},        {"key_id", "key-1"},
      {"operation_id", "op-1"}, {"subject", "subject-1"},    {"session_id", "session-1"},
      {"risk", "reversible"},   {"expires_at_ms", DEADLINE}, {"policy_generation", "generation-1"},
      {"action_hash", hash}};
}

}  // namespace

const Doc& vectors() {
  static const Doc all =
      Doc::parse(std::ifstream(PRAEFECTUS_SOURCE "/tests/attest/v2-vectors.json"));
  return all;
}

Doc elementTarget() {
  return {{"kind", "element"},
          {"target",
           {{"observation_id", digits('0')},
            {"generation", 1},
            {"provenance_hash", digits('1')},
            {"element_id", digits('2')},
            {"fingerprint_hash", digits('3')}}}};
}

Doc pointTarget() {
  return {{"kind", "coordinates"},
          {"x", -5},
          {"y", 240},
          {"display_id", "display-1"},
          {"display_geometry_hash", digits('c')},
          {"snapshot_id", "native-a"},
          {"snapshot_content_hash", digits('b')}};
}

Doc noTarget() { return {{"kind", "none"}}; }
Doc unverified() { return {{"kind", "none"}}; }

Doc valueHashOf(const std::string& value) {
  return {{"kind", "target_value_hash"}, {"sha256", spelled(sha256(owned(value)))}};
}

Doc requestOf(Doc action, Doc target, Doc verification) {
  return {{"protocol_version", 2},
          {"action_version", 2},
          {"target_version", 2},
          {"verification_version", 2},
          {"operation_id", "op-1"},
          {"subject", "subject-1"},
          {"session_id", "session-1"},
          {"authority", {{"grant", grantFor(digits('0'))}, {"signature", std::string(128, '0')}}},
          {"action", std::move(action)},
          {"target", std::move(target)},
          {"interaction_mode", "interactive"},
          {"deadline_at_ms", DEADLINE},
          {"verification", std::move(verification)},
          {"safety", "reversible"}};
}

const std::vector<Doc>& everyKind() {
  static const std::vector<Doc> all = {
      requestOf({{"kind", "invoke"}}, elementTarget()),
      requestOf({{"kind", "click"},
                 {"button", "right"},
                 {"count", 2},
                 {"allow_coordinate_fallback", false}},
                pointTarget()),
      requestOf({{"kind", "type_text"},
                 {"text", "h\u00e9"},
                 {"clear", true},
                 {"press_return", false},
                 {"delay_ms", 5}},
                elementTarget(), {{"kind", "snapshot_changed"}}),
      requestOf({{"kind", "press"}, {"key", "Return"}, {"count", 1}, {"delay_ms", 5}},
                elementTarget()),
      requestOf({{"kind", "paste"}, {"text", "a text"}}, elementTarget()),
      requestOf({{"kind", "hotkey"}, {"keys", {"ctrl", "s"}}}, elementTarget()),
      requestOf({{"kind", "scroll"}, {"direction", "down"}, {"amount", 3}}, elementTarget(),
                {{"kind", "target_state"}, {"expected", {{"checked", true}}}}),
      requestOf({{"kind", "move"}}, pointTarget()),
      requestOf({{"kind", "drag"}, {"to", pointTarget()}, {"button", "left"}}, pointTarget()),
      requestOf({{"kind", "select_text"}, {"start", 2}, {"length", 3}}, elementTarget()),
      requestOf({{"kind", "perform_secondary_action"}, {"name", "AXShowMenu"}}, elementTarget()),
      requestOf({{"kind", "set_value"}, {"value", "a value"}}, elementTarget(),
                valueHashOf("a value")),
      requestOf({{"kind", "screenshot"}, {"path", "/tmp/a.png"}}, noTarget()),
      requestOf({{"kind", "application"}, {"operation", "launch"}, {"name", "editor"}}, noTarget()),
      requestOf(
          {{"kind", "window"}, {"operation", "close"}, {"app", "editor"}, {"title", "a title"}},
          noTarget()),
      requestOf({{"kind", "open"},
                 {"target", "https://example.com"},
                 {"app", "browser"},
                 {"no_focus", true}},
                noTarget()),
      requestOf({{"kind", "clipboard_write"}, {"text", "a text"}}, noTarget())};
  return all;
}

Doc requestOfKind(const std::string& kind) {
  auto& all = everyKind();
  auto found = std::find_if(all.begin(), all.end(),
                            [&](const Doc& each) { return each["action"]["kind"] == kind; });
  KJ_REQUIRE(found != all.end(), kind.c_str());
  return *found;
}

Doc requestOf(const Doc& vector) {
  auto array = Doc::parse(vector["action_array_canonical"].get<std::string>());
  auto request = requestOf(array[6], array[7], array[10]);
  request["interaction_mode"] = array[8];
  request["authority"]["grant"] = Doc::parse(vector["grant_canonical"].get<std::string>());
  request["authority"]["signature"] = vector["signature"];
  return request;
}

Result<ActionRequest> read(const std::string& text) {
  return readRequest(kj::arrayPtr(text.data(), text.size()));
}

std::string hashOf(const Doc& request) {
  auto value = read(request);
  KJ_REQUIRE(value.ok(), request.dump().c_str());
  return spelled(actionHash(*value));
}

Doc allowed(Doc request, const std::function<void(AuthorityGrant&)>& change) {
  auto value = read(request);
  KJ_REQUIRE(value.ok(), request.dump().c_str());
  auto& grant = value->authority.grant;
  grant.actionHash = actionHash(*value);
  grant.operation = kj::str(value->operation);
  grant.subject = kj::str(value->subject);
  grant.session = kj::str(value->session);
  grant.risk = value->safety;
  if (change) change(grant);
  request["authority"]["grant"] = Doc::parse(canonicalGrant(grant).cStr());
  request["authority"]["signature"] = spelled(hex(bytesOf(signGrant(grant, bytesOf(seed())))));
  return request;
}

kj::Array<PinnedKey> onePinnedKey() {
  auto bytes = KJ_ASSERT_NONNULL(unhex(owned(vectors()["public_key"])));
  auto keys = kj::heapArray<PinnedKey>(1);
  keys[0] = {kj::str("host-1"), kj::str("key-1"), kj::str("generation-1"),
             KJ_ASSERT_NONNULL(fixed<32>(bytes))};
  return keys;
}

KeyRing sampleRing() { return kj::mv(*KeyRing::of(onePinnedKey())); }

Verified verified(const Doc& request) {
  auto value = read(request);
  KJ_REQUIRE(value.ok(), request.dump().c_str());
  auto held = sampleRing().verify(kj::mv(*value));
  KJ_REQUIRE(held.ok(), held.refusal().detail);
  return kj::mv(*held);
}

Observation sampleObservation() {
  Observation seen;
  seen.frame.id.fill(0xab);
  seen.frame.epoch = 4;
  seen.frame.window = {{4242, 987654}, 0x1400003};
  seen.frame.bounds = {-20, 100, 400, 300};
  seen.frame.topology = digestOf("two monitors"_kj.asBytes());
  auto add = [&](kj::StringPtr role, kj::StringPtr name) -> Element& {
    auto& element = seen.elements.add();
    element.role = kj::str(role);
    element.name = kj::str(name);
    element.digest = digestOf(role.asBytes());
    return element;
  };
  add("frame", "A window");
  add("push button", "OK").actions.add(kj::str("click"));
  add("text", "Name").settable = true;
  return seen;
}

Doc targetFor(const Fence& fence) {
  return {{"kind", "element"},
          {"target",
           {{"observation_id", spelled(fence.observationId)},
            {"generation", fence.generation},
            {"provenance_hash", spelled(fence.provenanceHash)},
            {"element_id", spelled(fence.elementId)},
            {"fingerprint_hash", spelled(fence.fingerprintHash)}}}};
}

Doc targetFor(const Coordinates& point) {
  return {{"kind", "coordinates"},
          {"x", point.x},
          {"y", point.y},
          {"display_id", spelled(point.displayId)},
          {"display_geometry_hash", spelled(point.displayGeometryHash)},
          {"snapshot_id", spelled(point.snapshotId)},
          {"snapshot_content_hash", spelled(point.snapshotContentHash)}};
}

}  // namespace praefectus::attest::v2
