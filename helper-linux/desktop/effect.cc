#include "helper-linux/desktop/effect.h"

#include "helper-linux/x11/watch.h"
#include "ipc/bounds.h"

#include <algorithm>

namespace praefectus::desktop {
namespace {

using accessibility::Node;
using Performed = Result<Facts>;

// Between two looks at the effect. Most show at once; the slowest seen took a quarter of a second.
constexpr kj::Duration LOOK = 15 * kj::MILLISECONDS;

// States that come and go with the touch of a control and say nothing about its effect.
constexpr State PASSING[] = {State::ACTIVE, State::ARMED, State::BUSY, State::FOCUSED,
                             State::PRESSED};

uint64_t lasting(States states) {
  for (State each : PASSING) states.bits &= ~(uint64_t{1} << static_cast<unsigned>(each));
  return states.bits;
}

Sight sightOf(Look& look, WindowSight window) {
  Sight out;
  out.present = !look.silent && look.attached && look.node.fault == Fault::NONE;
  out.windowPresent = window.present;
  out.processRunning = window.running;
  out.windows = kj::mv(window.windows);
  if (!out.present) return out;
  out.states = accessibility::wireStates(look.node.stateBits);
  // The beginning of a long text is not its value.
  if (!look.node.valueCut) out.value = kj::mv(look.node.value);
  out.role = kj::str(accessibility::roleName(look.node.role));
  out.name = kj::mv(look.node.name);
  return out;
}

bool sameWindows(const kj::Vector<uint64_t>& a, const kj::Vector<uint64_t>& b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

bool sameValue(const Value& a, const Value& b) { return valueBytes(a) == valueBytes(b); }

bool isValue(const Value& value, kj::StringPtr text) {
  if (value.is<double>()) {
    return parseNumber(text)
        .map([&](double asked) { return asked == value.get<double>(); })
        .orDefault(false);
  }
  return value.is<kj::String>() && value.get<kj::String>() == text;
}

bool holds(const StateProof& proof, States states) {
  return std::all_of(proof.expected.begin(), proof.expected.end(),
                     [&](const Expectation& each) { return states.has(each.state) == each.holds; });
}

}  // namespace

// One performance, from the watch's beginning to its end.
class Effect::Running {
 public:
  Running(Effect& effect, kj::Own<x11::Display> display)
      : effect(effect), watch(kj::mv(display), effect.timer) {}

  kj::Promise<Performed> run() {
    return effect.checker.check(*effect.frame, effect.action, Refind::NEVER)
        .then([this](Result<kj::Own<CheckedTarget>>&& target) -> kj::Promise<Performed> {
          if (!target.ok()) return Performed(target.refusal());
          // From here on something is sent: only Facts may be answered.
          return enter(kj::mv(*target));
        });
  }

 private:
  kj::Promise<Performed> enter(kj::Own<CheckedTarget> target) {
    auto sent = effect.send(target->look->node);
    facts.before = sightOf(*target->look, kj::mv(target->window));
    return sent
        .then([this](wire::Answer answer) {
          facts.answer = answer;
          sentAt = effect.timer.now();
          return readBack(false);
        })
        .then([this]() -> Performed {
          facts.settledMs = static_cast<uint32_t>((effect.timer.now() - sentAt) / kj::MILLISECONDS);
          facts.watch = watch.finish();
          return kj::mv(facts);
        });
  }

  // Looks until the effect shows at two looks in a row, so that one which is taken back at once is
  // not mistaken for one that lasts, or until the time to settle is over.
  kj::Promise<void> readBack(bool shown) {
    auto deadline = effect.timer.now() + bounds::CALL;
    auto element = effect.action.target.get<ElementTarget>().element;
    return lookAt(*effect.frame, element, deadline)
        .then([this, shown](kj::Own<Look>&& look) -> kj::Promise<void> {
          bool silent = look->silent;
          facts.after = sightOf(*look, effect.checker.windowSight(effect.frame->window));
          bool shows = effect.shows(facts.before, facts.after);
          // An application that fell silent is not asked again: whatever its control replied,
          // nobody saw the outcome.
          if (silent) facts.answer = wire::Answer::SILENT;
          if (silent || (shows && shown)) return kj::READY_NOW;
          if (effect.timer.now() - sentAt >= bounds::SETTLE) return kj::READY_NOW;
          return effect.timer.afterDelay(LOOK).then([this, shows]() { return readBack(shows); });
        });
  }

  Effect& effect;
  x11::ContextWatch watch;
  Facts facts;
  kj::TimePoint sentAt = kj::origin<kj::TimePoint>();
};

kj::Promise<Result<Done>> Effect::check() {
  return checker.check(*frame, action, Refind::ONCE)
      .then([](Result<kj::Own<CheckedTarget>>&& target) -> Result<Done> {
        if (!target.ok()) return target.refusal();
        return Done();
      });
}

kj::Promise<Performed> Effect::perform() {
  auto display = link.display();
  if (!display.ok()) return Performed(display.refusal());
  auto running = kj::heap<Running>(*this, kj::mv(*display));
  auto done = running->run();
  return done.attach(kj::mv(running));
}

kj::Promise<wire::Answer> Effect::send(const Node& node) {
  auto& objects = frame->bus->objects;
  auto deadline = timer.now() + bounds::CALL;
  KJ_IF_MAYBE (invoke, action.act.tryGet<InvokeRequest>()) {
    // The check found the name exactly once, in this very list.
    int32_t index = 0;
    while (node.actions[static_cast<size_t>(index)] != invoke->name) ++index;
    return objects.doAction(node.ref, index, deadline);
  }
  auto& text = action.act.get<SetValueRequest>().text;
  if (accessibility::valuedAs(node) == accessibility::Valued::TEXT) {
    return objects.setText(node.ref, text, deadline);
  }
  return objects.setNumber(node.ref, KJ_ASSERT_NONNULL(parseNumber(text)), deadline);
}

// What held before the effect shows nothing by still holding: a control may be slow to leave it.
bool Effect::shows(const Sight& before, const Sight& after) const {
  KJ_SWITCH_ONEOF(action.verification.content) {
    KJ_CASE_ONEOF(proof, ValueProof) {
      return isValue(after.value, proof.text) && !isValue(before.value, proof.text);
    }
    KJ_CASE_ONEOF(proof, StateProof) {
      return after.present && holds(proof, after.states) && !holds(proof, before.states);
    }
    KJ_CASE_ONEOF(proof, AppearsProof) { return after.windows.size() > before.windows.size(); }
    KJ_CASE_ONEOF(proof, DisappearsProof) { return !after.present || !after.windowPresent; }
    KJ_CASE_ONEOF(proof, RegionProof) { KJ_FAIL_REQUIRE("a proof that is not offered"); }
    KJ_CASE_ONEOF(proof, StrongestProof) { return showsChange(before, after); }
    KJ_CASE_ONEOF(proof, NoProof) { return showsChange(before, after); }
  }
  KJ_UNREACHABLE;
}

bool Effect::showsChange(const Sight& before, const Sight& after) const {
  KJ_IF_MAYBE (set, action.act.tryGet<SetValueRequest>()) return isValue(after.value, set->text);
  return before.present != after.present || before.windowPresent != after.windowPresent ||
         lasting(before.states) != lasting(after.states) || before.name != after.name ||
         !sameValue(before.value, after.value) || !sameWindows(before.windows, after.windows);
}

}  // namespace praefectus::desktop
