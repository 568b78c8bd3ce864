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
// else proves nothing, since the application may format, filter or still be working on it. An
// element that is gone, or was replaced by another, has no value at all.
attest::Evidence judgeValue(kj::StringPtr asked, const Hash& nonce, wire::Facts::Reader facts) {
  if (!facts.getBefore().getPresent() || !facts.getAfter().getPresent()) {
    return evidence(Verdict::UNKNOWN, Method::NONE);
  }
  auto kind = facts.getAfter().getValue().which();
  Value requested = NoValue();
  switch (kind) {
    case wire::ValueFact::NONE:
      return evidence(Verdict::UNVERIFIABLE, Method::NONE);
    case wire::ValueFact::TEXT:
      requested = kj::str(asked);
      break;
    case wire::ValueFact::NUMBER:
      KJ_IF_MAYBE (number, parseNumber(asked)) {
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

bool holds(const StateProof& proof, States states) {
  for (auto& each : proof.expected) {
    if (states.has(each.state) != each.holds) return false;
  }
  return true;
}

// States that were right before are no sign that the action did anything, whether or not they are
// right after.
attest::Evidence judgeStates(const StateProof& proof, wire::Facts::Reader facts) {
  if (!facts.getBefore().getPresent() || !facts.getAfter().getPresent()) {
    return evidence(Verdict::UNKNOWN, Method::NONE);
  }
  States was = statesOf(facts.getBefore());
  States is = statesOf(facts.getAfter());
  if (holds(proof, is)) {
    return evidence(holds(proof, was) ? Verdict::UNVERIFIABLE : Verdict::CONFIRMED,
                    Method::STATE_READBACK);
  }
  return evidence(was == is ? Verdict::SUSPECTED_NOOP : Verdict::UNVERIFIABLE,
                  Method::STATE_READBACK);
}

bool windowsWereRead(wire::Facts::Reader facts) {
  auto read = [](wire::Sight::Reader sight) { return sight.getWindows().size() == sizeof(Hash); };
  return read(facts.getBefore()) && read(facts.getAfter());
}

// A set that is another one but no larger lost a window too: whose is the new one?
attest::Evidence judgeAppears(wire::Facts::Reader facts) {
  auto before = facts.getBefore();
  auto after = facts.getAfter();
  if (!windowsWereRead(facts) || !before.getProcessRunning() || !after.getProcessRunning()) {
    return evidence(Verdict::UNKNOWN, Method::NONE);
  }
  if (equal(before.getWindows(), after.getWindows())) {
    return evidence(Verdict::SUSPECTED_NOOP, Method::TREE_DELTA);
  }
  bool grew = after.getWindowCount() > before.getWindowCount();
  return evidence(grew ? Verdict::CONFIRMED : Verdict::UNVERIFIABLE, Method::TREE_DELTA);
}

// Gone from an application that runs. A crash takes everything along and proves nothing, and an
// application that does not answer looks like an element that is gone.
attest::Evidence judgeDisappears(const Target& target, wire::Facts::Reader facts) {
  auto before = facts.getBefore();
  auto after = facts.getAfter();
  bool ofElement = target.is<ElementTarget>();
  bool wasThere = ofElement ? before.getPresent() : before.getWindowPresent();
  if (!wasThere || !after.getProcessRunning()) return evidence(Verdict::UNKNOWN, Method::NONE);
  if (before.getWindowPresent() && !after.getWindowPresent()) {
    return evidence(Verdict::CONFIRMED, Method::TREE_DELTA);
  }
  if (!ofElement || after.getPresent()) {
    return evidence(Verdict::SUSPECTED_NOOP, Method::TREE_DELTA);
  }
  if (facts.getAnswer() == wire::Answer::SILENT) return evidence(Verdict::UNKNOWN, Method::NONE);
  return evidence(Verdict::CONFIRMED, Method::TREE_DELTA);
}

// Pixels where the window was, once it is gone, are another window's.
attest::Evidence judgeRegion(wire::Facts::Reader facts) {
  auto before = facts.getBefore();
  auto after = facts.getAfter();
  bool read = before.getRegion().size() == sizeof(Hash) && after.getRegion().size() == sizeof(Hash);
  if (!read || !before.getWindowPresent() || !after.getWindowPresent()) {
    return evidence(Verdict::UNKNOWN, Method::NONE);
  }
  bool same = equal(before.getRegion(), after.getRegion());
  return evidence(same ? Verdict::SUSPECTED_NOOP : Verdict::CONFIRMED, Method::PIXEL_DELTA);
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
  if (!before.getPresent() || !windowsWereRead(facts)) {
    return evidence(Verdict::UNKNOWN, Method::NONE);
  }
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

// The strongest that the kind has by itself.
attest::Evidence judgeKind(const Act& act, const Hash& nonce, wire::Facts::Reader facts) {
  KJ_IF_MAYBE (set, act.tryGet<SetValueRequest>()) return judgeValue(set->text, nonce, facts);
  if (act.is<InvokeRequest>()) return judgeInvoke(facts);
  return evidence(Verdict::UNVERIFIABLE, Method::NONE);
}

attest::Evidence judgeProof(const Action& action, const Hash& nonce, wire::Facts::Reader facts) {
  KJ_SWITCH_ONEOF(action.verification.content) {
    KJ_CASE_ONEOF(proof, StrongestProof) { return judgeKind(action.act, nonce, facts); }
    KJ_CASE_ONEOF(proof, NoProof) { return judgeKind(action.act, nonce, facts); }
    KJ_CASE_ONEOF(proof, ValueProof) { return judgeValue(proof.text, nonce, facts); }
    KJ_CASE_ONEOF(proof, StateProof) { return judgeStates(proof, facts); }
    KJ_CASE_ONEOF(proof, AppearsProof) { return judgeAppears(facts); }
    KJ_CASE_ONEOF(proof, DisappearsProof) { return judgeDisappears(action.target, facts); }
    KJ_CASE_ONEOF(proof, RegionProof) { return judgeRegion(facts); }
  }
  KJ_UNREACHABLE;
}

Watch watchOf(wire::Watch::Reader from) {
  return {from.getWatching(), from.getPointerMoved(), from.getFocusChanged(),
          from.getStackingChanged()};
}

// What was seen counts also when the watch did not last; what nobody watched is never preserved.
ContextState contextOf(const Terms& asked, const Watch& watch) {
  bool raised = watch.focusChanged || watch.stackingChanged;
  bool allowed = (!watch.pointerMoved || asked.rights.userPointer) &&
                 (!raised || asked.rights.focus) && asked.mode == Mode::INTERACTIVE;
  bool changed = watch.pointerMoved || raised;
  if (changed && !allowed) return ContextState::BREACHED;
  if (!watch.watching) return ContextState::UNWATCHED;
  return changed ? ContextState::PERMITTED : ContextState::PRESERVED;
}

struct Row {
  bool proofAsked;  // Any but NONE.
  Verdict verdict;
  Terminal terminal;
  Effect effect;
};

constexpr Row TABLE[] = {
    {true, Verdict::CONFIRMED, Terminal::SUCCEEDED, Effect::VERIFIED},
    {true, Verdict::PARTIAL, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {true, Verdict::UNVERIFIABLE, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {true, Verdict::SUSPECTED_NOOP, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {true, Verdict::UNKNOWN, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {false, Verdict::CONFIRMED, Terminal::SUCCEEDED, Effect::VERIFIED},
    {false, Verdict::PARTIAL, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {false, Verdict::UNVERIFIABLE, Terminal::SUCCEEDED, Effect::EXECUTED_UNVERIFIED},
    {false, Verdict::SUSPECTED_NOOP, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
    {false, Verdict::UNKNOWN, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN},
};

constexpr Row rowFor(bool proofAsked, Verdict verdict) {
  for (auto& row : TABLE) {
    if (row.proofAsked == proofAsked && row.verdict == verdict) return row;
  }
  return {proofAsked, verdict, Terminal::OUTCOME_UNKNOWN, Effect::UNKNOWN};
}

}  // namespace

Judgement judge(const Action& action, const Hash& nonce, wire::Facts::Reader facts) {
  KJ_REQUIRE(action.isMutation(), "a read has no evidence");
  Judgement out;
  out.watch = watchOf(facts.getWatch());
  out.declined =
      facts.getAnswer() == wire::Answer::DECLINED || facts.getAnswer() == wire::Answer::ERROR;
  out.evidence = judgeProof(action, nonce, facts);
  // A control that says no, with nothing to show otherwise, most likely did nothing. Its word alone
  // never makes a success, and here it does not make an unverified one either.
  if (out.declined && out.evidence.verdict == Verdict::UNVERIFIABLE) {
    out.evidence.verdict = Verdict::SUSPECTED_NOOP;
  }
  return out;
}

ledger::Ending endingFor(const Terms& asked, const Judgement& judgement, Interruption interruption,
                         int64_t wallMs) {
  Row row = rowFor(asked.proof != Proof::NONE, judgement.evidence.verdict);
  ledger::Ending ending;
  ending.terminal = row.terminal;
  ending.effect = row.effect;
  ending.route = Route::ACCESSIBILITY;
  ending.evidence = judgement.evidence;
  ending.context = contextOf(asked, judgement.watch);
  ending.at = wallMs;
  if (judgement.declined) ending.warnings.add(Warning::CONTROL_DECLINED);
  if (ending.context == ContextState::UNWATCHED) ending.warnings.add(Warning::CONTEXT_UNWATCHED);
  if (interruption == Interruption::CANCELLED_OR_LATE) {
    ending.warnings.add(Warning::LATE_AFTER_DISPATCH);
  }
  // An action that nobody watched is not known to have left the person's desktop alone.
  bool keptToTerms =
      ending.context == ContextState::PRESERVED || ending.context == ContextState::PERMITTED;
  if (!keptToTerms || interruption != Interruption::NONE) {
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
