#include "ipc/action.h"

#include <algorithm>
#include <iterator>

namespace praefectus {
namespace {

// What a kind is called and what class it belongs to, in the order of the union in action.capnp.
struct Kind {
  kj::StringPtr name;
  ActionClass actionClass;
};
constexpr Kind KINDS[] = {
    {"list"_kj, ActionClass::METADATA_READ},
    {"observe"_kj, ActionClass::METADATA_READ},
    {"screenshot"_kj, ActionClass::SCREENSHOT_READ},
    {"invoke"_kj, ActionClass::SEMANTIC_MUTATION},
    {"set_value"_kj, ActionClass::SEMANTIC_MUTATION},
    {"select_text"_kj, ActionClass::SEMANTIC_MUTATION},
    {"secondary"_kj, ActionClass::SEMANTIC_MUTATION},
    {"click"_kj, ActionClass::POINTER_MUTATION},
    {"scroll"_kj, ActionClass::POINTER_MUTATION},
    {"move"_kj, ActionClass::POINTER_MUTATION},
    {"drag"_kj, ActionClass::POINTER_MUTATION},
    {"type_text"_kj, ActionClass::KEYBOARD_MUTATION},
    {"press"_kj, ActionClass::KEYBOARD_MUTATION},
    {"hotkey"_kj, ActionClass::KEYBOARD_MUTATION},
    {"paste"_kj, ActionClass::KEYBOARD_MUTATION},
    {"application"_kj, ActionClass::SEMANTIC_MUTATION},
    {"window"_kj, ActionClass::SEMANTIC_MUTATION},
    {"open"_kj, ActionClass::SEMANTIC_MUTATION},
    {"clipboard_write"_kj, ActionClass::SEMANTIC_MUTATION},
    {"zoom"_kj, ActionClass::SCREENSHOT_READ},
};

// Act stands in the schema's order, so its tag is the row.
const Kind& kindOf(const Act& act) { return KINDS[static_cast<size_t>(act.which())]; }

constexpr bool standsAt(Act::Tag tag, wire::Action::Which which) {
  return static_cast<unsigned>(tag) == static_cast<unsigned>(which);
}
static_assert(standsAt(Act::tagFor<ListAct>(), wire::Action::LIST));
static_assert(standsAt(Act::tagFor<InvokeRequest>(), wire::Action::INVOKE));
static_assert(standsAt(Act::tagFor<ClickRequest>(), wire::Action::CLICK));
static_assert(standsAt(Act::tagFor<TypeTextRequest>(), wire::Action::TYPE_TEXT));
static_assert(standsAt(Act::tagFor<ClipboardWriteRequest>(), wire::Action::CLIPBOARD_WRITE));
static_assert(standsAt(Act::tagFor<ZoomAct>(), wire::Action::ZOOM));
static_assert(std::size(KINDS) == wire::Action::ZOOM + 1);

// So do proofs.
static_assert(static_cast<unsigned>(Verification::Content::tagFor<RegionProof>()) ==
              static_cast<unsigned>(Proof::REGION_CHANGED));

}  // namespace

Proof Verification::kind() const { return static_cast<Proof>(content.which()); }

Verification Verification::none() {
  Verification out;
  out.content = NoProof();
  return out;
}

Verification Verification::clone() const {
  Verification out;
  KJ_SWITCH_ONEOF(content) {
    KJ_CASE_ONEOF(proof, StrongestProof) { out.content = proof; }
    KJ_CASE_ONEOF(proof, NoProof) { out.content = proof; }
    KJ_CASE_ONEOF(proof, ValueProof) { out.content = ValueProof{kj::str(proof.text)}; }
    KJ_CASE_ONEOF(proof, StateProof) {
      StateProof copy;
      copy.expected.addAll(proof.expected);
      out.content = kj::mv(copy);
    }
    KJ_CASE_ONEOF(proof, AppearsProof) { out.content = proof; }
    KJ_CASE_ONEOF(proof, DisappearsProof) { out.content = proof; }
    KJ_CASE_ONEOF(proof, RegionProof) { out.content = proof; }
  }
  return out;
}

ActionClass Action::actionClass() const {
  bool pictured = act.is<ObserveAct>() && act.get<ObserveAct>().picture;
  return pictured ? ActionClass::SCREENSHOT_READ : kindOf(act).actionClass;
}

bool Action::isMutation() const {
  auto its = actionClass();
  return its != ActionClass::METADATA_READ && its != ActionClass::SCREENSHOT_READ;
}

kj::StringPtr Action::kind() const { return kindOf(act).name; }

WindowRef Action::window() const {
  KJ_SWITCH_ONEOF(target) {
    KJ_CASE_ONEOF(desktop, DesktopTarget) { return WindowRef(); }
    KJ_CASE_ONEOF(window, WindowRef) { return window; }
    KJ_CASE_ONEOF(element, ElementTarget) { return element.window; }
    KJ_CASE_ONEOF(point, PointTarget) { return point.window; }
    KJ_CASE_ONEOF(monitor, MonitorTarget) { return WindowRef(); }
  }
  KJ_UNREACHABLE;
}

Rect regionOf(const PointTarget& from, const ZoomAct& to) {
  auto [left, right] = std::minmax(from.x, to.toX);
  auto [top, bottom] = std::minmax(from.y, to.toY);
  return {left, top, static_cast<uint32_t>(right - left) + 1,
          static_cast<uint32_t>(bottom - top) + 1};
}

kj::Maybe<Action::InFrame> Action::frame() const {
  KJ_IF_MAYBE (element, target.tryGet<ElementTarget>()) {
    return InFrame{element->frame, element->epoch};
  }
  KJ_IF_MAYBE (point, target.tryGet<PointTarget>()) return InFrame{point->frame, point->epoch};
  KJ_IF_MAYBE (observe, act.tryGet<ObserveAct>()) {
    KJ_IF_MAYBE (below, observe->below) return InFrame{below->frame, below->epoch};
  }
  return nullptr;
}

kj::ArrayPtr<const kj::StringPtr> actionKinds() {
  static const auto names = KJ_MAP(kind, KINDS) { return kind.name; };
  return names;
}

}  // namespace praefectus
