#include "supervisor/judge.h"

#include "attest/digest.h"

namespace praefectus {
namespace {

using wire::State;

bool equal(capnp::Data::Reader a, capnp::Data::Reader b) { return a.asBytes() == b.asBytes(); }

States statesOf(wire::Sight::Reader sight) {
  States states;
  for (auto state : sight.getStates()) states.set(state);
  return states;
}

attest::Evidence evidence(Verdict verdict, Method method) {
  uint32_t done = verdict == Verdict::CONFIRMED ? 1 : 0;
  return {verdict, method, Source::SAME_PROCESS, done, 1};
}

// A value fact's hash when it is of the asked kind, or null.
kj::Maybe<Hash> valueOf(wire::Sight::Reader sight, wire::ValueFact::Which kind) {
  auto fact = sight.getValue();
  if (fact.which() != kind) return nullptr;
  return fixed<32>(fact.isText() ? fact.getText() : fact.getNumber());
}

// Equal to what was asked: confirmed. Equal to what was there before: nothing happened. Anything
// else proves nothing, since the application may format, filter or still be working on it.
attest::Evidence judgeSetValue(const SetValueRequest& asked, const Hash& nonce,
                               wire::Facts::Reader facts) {
  if (!facts.getBefore().getPresent() || !facts.getAfter().getPresent()) {
    return evidence(Verdict::UNKNOWN, Method::NONE);
  }
  auto kind = facts.getAfter().getValue().which();
  Value requested = NoValue();
  switch (kind) {
    case wire::ValueFact::NONE:
      return evidence(Verdict::UNVERIFIABLE, Method::NONE);
    case wire::ValueFact::TEXT:
      requested = kj::str(asked.text);
      break;
    case wire::ValueFact::NUMBER:
      KJ_IF_MAYBE (number, parseNumber(asked.text)) {
        requested = *number;
        break;
      }
      return evidence(Verdict::UNKNOWN, Method::VALUE_READBACK);
  }
  Hash wanted = attest::keyedDigest(bytesOf(nonce), valueBytes(requested));
  KJ_IF_MAYBE (after, valueOf(facts.getAfter(), kind)) {
    if (attest::same(*after, wanted)) return evidence(Verdict::CONFIRMED, Method::VALUE_READBACK);
    KJ_IF_MAYBE (before, valueOf(facts.getBefore(), kind)) {
      if (attest::same(*before, *after)) {
        return evidence(Verdict::SUSPECTED_NOOP, Method::VALUE_READBACK);
      }
    }
    return evidence(Verdict::UNVERIFIABLE, Method::VALUE_READBACK);
  }
  return evidence(Verdict::UNKNOWN, Method::VALUE_READBACK);
}

// States that belong to what a control means. Focused, active, pressed and armed come and go with
// the act of pressing and prove nothing.
constexpr State MEANINGFUL[] = {State::CHECKED,  State::EXPANDED, State::COLLAPSED,
                                State::SELECTED, State::ENABLED,  State::SENSITIVE,
                                State::SHOWING,  State::VISIBLE,  State::INDETERMINATE};

bool meaningfulChange(States before, States after) {
  for (State state : MEANINGFUL) {
    if (before.has(state) != after.has(state)) return true;
  }
  return false;
}

// Only changes of the control itself, or of its process's windows, are attributed to the act. A
// change elsewhere in the tree (a clock, a counter) is not.
attest::Evidence judgeInvoke(wire::Facts::Reader facts) {
  auto before = facts.getBefore();
  auto after = facts.getAfter();
  bool windowsRead =
      before.getWindows().size() == sizeof(Hash) && after.getWindows().size() == sizeof(Hash);
  if (!before.getPresent() || !windowsRead) return evidence(Verdict::UNKNOWN, Method::NONE);
  // A window that is gone because its application crashed is no sign that the press did its work.
  if (!after.getProcessRunning()) return evidence(Verdict::UNKNOWN, Method::NONE);
  if (before.getWindowPresent() && !after.getWindowPresent()) {
    return evidence(Verdict::CONFIRMED, Method::TREE_DELTA);
  }
  if (!equal(before.getWindows(), after.getWindows())) {
    return evidence(Verdict::CONFIRMED, Method::TREE_DELTA);
  }
  if (!after.getPresent()) {
    // An application that does not answer looks like an element that is gone.
    bool silent = facts.getAnswer() == wire::Answer::SILENT;
    return silent ? evidence(Verdict::UNKNOWN, Method::NONE)
                  : evidence(Verdict::CONFIRMED, Method::TREE_DELTA);
  }

  States was = statesOf(before);
  States is = statesOf(after);
  if (meaningfulChange(was, is)) return evidence(Verdict::CONFIRMED, Method::STATE_READBACK);
  if (before.getLabel().size() > 0 && after.getLabel().size() > 0 &&
      !equal(before.getLabel(), after.getLabel())) {
    return evidence(Verdict::CONFIRMED, Method::STATE_READBACK);
  }
  // A check box that stayed as it was did not do what a press does. One that was checked before may
  // be a radio button, for which staying checked is right.
  if (was.has(State::CHECKABLE) && !was.has(State::CHECKED)) {
    return evidence(Verdict::SUSPECTED_NOOP, Method::STATE_READBACK);
  }
  return evidence(Verdict::UNVERIFIABLE, Method::NONE);
}

ContextState contextOf(wire::Watch::Reader watch) {
  if (watch.getPointerMoved() || watch.getFocusChanged() || watch.getStackingChanged()) {
    return ContextState::BREACHED;
  }
  return watch.getWatching() ? ContextState::PRESERVED : ContextState::UNWATCHED;
}

struct Row {
  Verification asked;
  Verdict verdict;
  Terminal terminal;
  Effect effect;
};

constexpr Row TABLE[] = {
    {Verification::STRONGEST, Verdict::CONFIRMED, Terminal::SUCCEEDED, Effect::VERIFIED},
    {Verification::STRONGEST, Verdict::PARTIAL, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::STRONGEST, Verdict::UNVERIFIABLE, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::STRONGEST, Verdict::SUSPECTED_NOOP, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::STRONGEST, Verdict::UNKNOWN, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::NONE, Verdict::CONFIRMED, Terminal::SUCCEEDED, Effect::VERIFIED},
    {Verification::NONE, Verdict::PARTIAL, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::NONE, Verdict::UNVERIFIABLE, Terminal::SUCCEEDED, Effect::EXECUTED_UNVERIFIED},
    {Verification::NONE, Verdict::SUSPECTED_NOOP, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {Verification::NONE, Verdict::UNKNOWN, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
};

constexpr Row rowFor(Verification asked, Verdict verdict) {
  for (auto& row : TABLE) {
    if (row.asked == asked && row.verdict == verdict) return row;
  }
  return {asked, verdict, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN};
}

}  // namespace

Judgement judge(const Action& action, const Hash& nonce, wire::Facts::Reader facts) {
  Judgement out;
  out.context = contextOf(facts.getWatch());
  out.declined =
      facts.getAnswer() == wire::Answer::DECLINED || facts.getAnswer() == wire::Answer::ERROR;
  KJ_SWITCH_ONEOF(action.act) {
    KJ_CASE_ONEOF(set, SetValueRequest) { out.evidence = judgeSetValue(set, nonce, facts); }
    KJ_CASE_ONEOF(invoke, InvokeRequest) { out.evidence = judgeInvoke(facts); }
    KJ_CASE_ONEOF(list, ListAct) { KJ_FAIL_REQUIRE("a read has no evidence"); }
    KJ_CASE_ONEOF(observe, ObserveAct) { KJ_FAIL_REQUIRE("a read has no evidence"); }
  }
  // A control that says no, with nothing to show otherwise, most likely did nothing. Its word alone
  // never makes a success, and here it does not make an unverified one either.
  if (out.declined && out.evidence.verdict == Verdict::UNVERIFIABLE) {
    out.evidence.verdict = Verdict::SUSPECTED_NOOP;
  }
  return out;
}

ledger::Ending endingFor(Verification asked, const Judgement& judgement, Interruption interruption,
                         int64_t wallMs) {
  Row row = rowFor(asked, judgement.evidence.verdict);
  ledger::Ending ending;
  ending.terminal = row.terminal;
  ending.effect = row.effect;
  ending.route = Route::ACCESSIBILITY;
  ending.evidence = judgement.evidence;
  ending.context = judgement.context;
  ending.at = wallMs;
  if (judgement.declined) ending.warnings.add(Warning::CONTROL_DECLINED);
  if (judgement.context == ContextState::UNWATCHED) ending.warnings.add(Warning::CONTEXT_UNWATCHED);
  if (interruption == Interruption::CANCELLED_OR_LATE) {
    ending.warnings.add(Warning::LATE_AFTER_DISPATCH);
  }
  // An action that nobody watched is not known to have left the person's desktop alone.
  if (judgement.context != ContextState::PRESERVED || interruption != Interruption::NONE) {
    ending.terminal = Terminal::OUTCOME_UNKNOWN;
    ending.effect = Effect::UNKNOWN;
  }
  if (ending.effect == Effect::EXECUTED_UNVERIFIED) ending.warnings.add(Warning::UNVERIFIED);
  return ending;
}

namespace {

ledger::Ending withoutEffect(Terminal terminal, kj::Maybe<RefusalCode> code, bool retrySafe,
                             int64_t wallMs) {
  ledger::Ending ending;
  ending.terminal = terminal;
  ending.effect = Effect::NONE;
  ending.refusal = code;
  ending.retrySafe = retrySafe;
  ending.evidence = {Verdict::UNKNOWN, Method::NONE, Source::SAME_PROCESS, 0, 0};
  ending.at = wallMs;
  return ending;
}

}  // namespace

ledger::Ending rejected(RefusalCode code, int64_t wallMs) {
  return withoutEffect(Terminal::REJECTED, code, true, wallMs);
}

ledger::Ending notSent(RefusalCode code, int64_t wallMs) {
  return withoutEffect(Terminal::FAILED, code, true, wallMs);
}

ledger::Ending cancelledBeforeEffect(int64_t wallMs) {
  return withoutEffect(Terminal::CANCELLED_BEFORE_EFFECT, nullptr, true, wallMs);
}

ledger::Ending expiredBeforeEffect(int64_t wallMs) {
  return withoutEffect(Terminal::EXPIRED_BEFORE_EFFECT, nullptr, true, wallMs);
}

ledger::Ending lost(Warning why, int64_t wallMs) {
  ledger::Ending ending;
  ending.terminal = Terminal::OUTCOME_UNKNOWN;
  ending.effect = Effect::UNKNOWN;
  ending.route = Route::ACCESSIBILITY;
  ending.evidence = {Verdict::UNKNOWN, Method::NONE, Source::SAME_PROCESS, 0, 1};
  ending.warnings.add(why);
  ending.at = wallMs;
  return ending;
}

}  // namespace praefectus
