#include "attest/v2/mapping.h"

#include "ipc/bounds.h"

#include <capnp/schema.h>

#include <algorithm>

namespace praefectus::attest::v2 {
namespace {

using Seen = kj::Maybe<const Observation&>;

Refusal unsupported(kj::StringPtr why) { return {RefusalCode::UNSUPPORTED_ACTION, why}; }

// ---- Targets.

template <typename T>
Result<praefectus::Target> whole(Result<T> target) {
  if (!target.ok()) return target.refusal();
  return praefectus::Target(*target);
}

Result<praefectus::Target> targetOf(const Target& target, Seen seen) {
  if (target.is<NoTarget>()) return praefectus::Target(DesktopTarget());
  KJ_IF_MAYBE (observation, seen) {
    if (target.is<Fence>()) return whole(elementOf(target.get<Fence>(), *observation));
    return whole(pointOf(target.get<Coordinates>(), *observation));
  }
  return Refusal{RefusalCode::NO_ACTIVE_FRAME, "There is no observation that the target is of."};
}

// ---- Kinds. The target is the mapped one and suits the kind, as v2 sees it.

struct Scene {
  const praefectus::Target& target;
  Seen seen;
};

Result<Act> actOf(const Invoke&, const Scene& scene) {
  constexpr kj::StringPtr PRIMARY[] = {"activate"_kj, "click"_kj, "press"_kj};
  auto index = scene.target.get<ElementTarget>().element;
  auto& actions = KJ_ASSERT_NONNULL(scene.seen).elements[index].actions;
  if (actions.size() == 1) return Act(InvokeRequest{kj::str(actions[0])});
  kj::Vector<kj::StringPtr> fitting;
  for (auto& action : actions) {
    if (std::find(std::begin(PRIMARY), std::end(PRIMARY), action) != std::end(PRIMARY)) {
      fitting.add(action);
    }
  }
  if (fitting.size() == 1) return Act(InvokeRequest{kj::str(fitting[0])});
  return unsupported("It is not certain which of the element's actions is meant.");
}

Result<Act> actOf(const Click& click, const Scene&) {
  return Act(ClickRequest{click.button, click.count});
}

Result<Act> actOf(const TypeText& type, const Scene&) {
  return Act(
      TypeTextRequest{kj::str(type.text), type.clear, type.pressReturn, type.delayMs.orDefault(0)});
}

Result<Act> actOf(const Press& press, const Scene&) {
  return Act(PressRequest{kj::str(press.key), press.count, press.delayMs.orDefault(0)});
}

Result<Act> actOf(const Paste& paste, const Scene&) {
  return Act(PasteRequest{kj::str(paste.text)});
}

Result<Act> actOf(const Hotkey& hotkey, const Scene&) {
  HotkeyRequest out;
  for (auto& key : hotkey.keys) out.keys.add(kj::str(key));
  return Act(kj::mv(out));
}

Result<Act> actOf(const Scroll& scroll, const Scene&) {
  return Act(ScrollRequest{scroll.direction, scroll.amount});
}

Result<Act> actOf(const Move&, const Scene& scene) {
  if (scene.target.is<PointTarget>()) return Act(MoveRequest());
  return unsupported("A pointer moves to a point, not to an element.");
}

Result<Act> actOf(const Drag& drag, const Scene& scene) {
  auto to = pointOf(drag.to, KJ_ASSERT_NONNULL(scene.seen));
  if (!to.ok()) return to.refusal();
  return Act(DragRequest{drag.button, to->x, to->y});
}

Result<Act> actOf(const SelectText& select, const Scene&) {
  return Act(SelectTextRequest{select.start, select.length});
}

Result<Act> actOf(const SecondaryAction& secondary, const Scene&) {
  // In the order of SecondaryName.
  constexpr kj::StringPtr NAMES[] = {"show_menu"_kj,
                                     "show_default_ui"_kj,
                                     "show_alternate_ui"_kj,
                                     "increment"_kj,
                                     "decrement"_kj,
                                     "confirm"_kj,
                                     "cancel"_kj,
                                     "pick"_kj};
  return Act(SecondaryRequest{kj::str(NAMES[static_cast<size_t>(secondary.name)])});
}

Result<Act> actOf(const SetValue& set, const Scene&) {
  return Act(SetValueRequest{kj::str(set.value)});
}

Result<Act> actOf(const Screenshot&, const Scene&) {
  return unsupported("A picture is handed to the host; it is not written to a path.");
}

Result<Act> actOf(const Application& application, const Scene&) {
  return Act(ApplicationRequest{application.operation, kj::str(application.name)});
}

Result<Act> actOf(const Window&, const Scene&) {
  return unsupported("A window is named by its own id here, not by application and title.");
}

Result<Act> actOf(const Open& open, const Scene&) {
  kj::StringPtr app = "";
  KJ_IF_MAYBE (name, open.app) app = *name;
  return Act(OpenRequest{kj::str(open.target), kj::str(app), open.noFocus});
}

Result<Act> actOf(const ClipboardWrite& write, const Scene&) {
  if (write.text.size() > bounds::CLIPBOARD_BYTES) {
    return unsupported("The clipboard's text is longer than one message carries.");
  }
  return Act(ClipboardWriteRequest{kj::str(write.text)});
}

template <typename... Ts>
Result<Act> anyActOf(const kj::OneOf<Ts...>& action, const Scene& scene) {
  kj::Maybe<Result<Act>> act;
  ((action.template is<Ts>() && (act = actOf(action.template get<Ts>(), scene), true)) || ...);
  return kj::mv(KJ_ASSERT_NONNULL(act));
}

// ---- Proofs.

// The state of this name in snake_case.
kj::Maybe<State> stateOf(kj::StringPtr snake) {
  kj::Vector<char> camel;
  for (size_t i = 0; i < snake.size(); ++i) {
    bool upper = snake[i] == '_' && i + 1 < snake.size();
    char c = upper ? snake[++i] : snake[i];
    if (c < 'a' || c > 'z') return nullptr;
    camel.add(upper ? static_cast<char>(c - 'a' + 'A') : c);
  }
  auto name = kj::heapString(camel);
  auto states = capnp::Schema::from<State>();
  KJ_IF_MAYBE (found, states.findEnumerantByName(name)) {
    return static_cast<State>(found->getOrdinal());
  }
  return nullptr;
}

Result<praefectus::Verification> stateProofOf(const Json& expected) {
  auto unknown = unsupported("The expected state is not made of states that are true or false.");
  if (!expected.value.is<Json::Object>()) return unknown;
  auto& members = expected.value.get<Json::Object>();
  if (members.size() < 1 || members.size() > bounds::EXPECTATIONS) return unknown;
  StateProof proof;
  for (auto& member : members) {
    auto state = stateOf(member.key);
    if (state == nullptr || !member.value.value.is<bool>()) return unknown;
    proof.expected.add(Expectation{KJ_ASSERT_NONNULL(state), member.value.value.get<bool>()});
  }
  praefectus::Verification out;
  out.content = kj::mv(proof);
  return kj::mv(out);
}

Result<praefectus::Verification> proofOf(const ActionRequest& request) {
  auto& asked = request.verification;
  if (asked.is<NoVerification>()) return praefectus::Verification::none();
  if (asked.is<SnapshotChanged>()) return praefectus::Verification::strongest();
  if (asked.is<TargetState>()) {
    if (request.target.is<Fence>()) return stateProofOf(asked.get<TargetState>().expected);
    return unsupported("Only an element has states that can be read back.");
  }
  praefectus::Verification out;
  out.content = ValueProof{kj::str(request.action.get<SetValue>().value)};
  return kj::mv(out);
}

}  // namespace

Result<praefectus::Action> actionOf(const Verified& verified, Seen seen, int64_t nowMs,
                                    const Hash& blind) {
  KJ_REQUIRE(nowMs >= 0, "a time before 1970");
  auto& request = verified.request();
  int64_t left = verified.deadlineMs() - nowMs;
  if (left <= 0) return Refusal{RefusalCode::TIMEOUT, "The request or its grant has run out."};
  auto target = targetOf(request.target, seen);
  if (!target.ok()) return target.refusal();
  auto act = anyActOf(request.action, {*target, seen});
  if (!act.ok()) return act.refusal();
  auto proof = proofOf(request);
  if (!proof.ok()) return proof.refusal();

  praefectus::Action action;
  action.blind = blind;
  action.timeoutMs = static_cast<uint32_t>(kj::min(left, int64_t{bounds::ACTION_TIMEOUT_MS}));
  action.mode = request.mode;
  action.safety = request.safety;
  action.verification = kj::mv(*proof);
  action.target = kj::mv(*target);
  action.act = kj::mv(*act);
  // Its own reader is the judge of an action's bounds, and of texts that must not be played back.
  return decodeAction(encode(action));
}

}  // namespace praefectus::attest::v2
