@0xd1a95f4e0c7b2a61;
# The words every process uses: refusal codes, terminals, evidence, and the small values that several
# messages share. Both ends of every channel read this page; nothing on the wire means anything else.
#
# Rules of this folder
# * Nothing unknown is ignored. A received struct with a bit or pointer that its schema does not
#   declare, an unknown enumerant or an unknown union tag is refused as `unknownField` (ipc/strict.h).
# * Fields have no defaults, so that a zero on the wire is a zero in the reader's hand.
# * Spelled in text (JSON, terminal), every enumerant is snake_case: `staleFrame` reads `stale_frame`.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("praefectus::wire");

const protocolVersion :UInt16 = 1;
# Compared for equality in every hello. There is no negotiation: a peer of another version is refused.

enum Advice {
  observeAgain @0;   # Nothing was done. Observe again and act on the new frame.
  askAgain @1;       # Nothing was done. A new grant, or a person, is needed first.
  retryLater @2;     # Nothing was done. The same request may be sent again when the cause is gone.
  correct @3;        # Nothing was done. The request itself is wrong; sending it again changes nothing.
  giveUp @4;         # Nothing was done and nothing the host can do will change the answer.
}

annotation means @0xb4cdd0d0f4dd2c11 (enumerant) :Text;
annotation advice @0xe7b2c4d81bd5a320 (enumerant) :Advice;

enum RefusalCode {
  # Why something was not done. A refusal promises that the call it answers dispatched no effect;
  # outcomeUnknown alone promises nothing.

  permissionMissing @0 $means("The system does not let the helper use accessibility here.") $advice(askAgain);
  permissionPending @1 $means("The system is still waiting for a person to answer its permission prompt.") $advice(retryLater);
  policyDenied @2 $means("The grant does not allow this: signature, key, subject, session, turn, time or action differ.") $advice(askAgain);
  policyForbidden @3 $means("No grant can allow this.") $advice(giveUp);
  invalidCoordinate @4 $means("The point is not inside the picture that the frame was taken from.") $advice(correct);
  captureFailed @5 $means("The window could not be read or pictured.") $advice(retryLater);
  sensitivityBlocked @6 $means("The target is a password field or belongs to a protected application.") $advice(giveUp);
  unsupportedAction @7 $means("The target does not offer this action.") $advice(observeAgain);
  aborted @8 $means("The request was withdrawn before anything was sent.") $advice(askAgain);
  timeout @9 $means("The target did not answer within the deadline; nothing was sent to it.") $advice(retryLater);
  noActiveFrame @10 $means("This session has not observed anything yet.") $advice(observeAgain);
  noActiveSession @11 $means("The session is closed or was never opened.") $advice(correct);
  staleFrame @12 $means("The frame is spent, expired or unknown.") $advice(observeAgain);
  staleEpoch @13 $means("A newer observation replaced this frame.") $advice(observeAgain);
  targetMissing @14 $means("The target no longer exists.") $advice(observeAgain);
  ambiguousTarget @15 $means("More than one object fits; none was chosen.") $advice(observeAgain);
  targetChanged @16 $means("The target is there but is no longer what was observed.") $advice(observeAgain);
  targetMismatch @17 $means("The named window or application is not the one that was observed.") $advice(correct);
  withheldValueReplayed @18 $means("The text is a redaction mark, not a value.") $advice(correct);
  targetOccluded @19 $means("Another window covers the target.") $advice(observeAgain);
  pageTargetChanged @20 $means("The page was reloaded or left since the observation.") $advice(observeAgain);
  duplicateAction @21 $means("This very action was already dispatched from this frame.") $advice(observeAgain);
  userIntervened @22 $means("The person used the desktop meanwhile.") $advice(observeAgain);
  reobserveRequired @23 $means("The outcome of the previous action is unknown; observe before acting.") $advice(observeAgain);
  screenLocked @24 $means("The screen is locked.") $advice(retryLater);
  blockedUrl @25 $means("The page is on the blocked list.") $advice(giveUp);
  userStopped @26 $means("The person stopped this turn.") $advice(askAgain);
  serviceUnavailable @27 $means("The helper is not running or stopped before anything was sent.") $advice(retryLater);
  serviceMismatch @28 $means("The helper is not the attested one, or broke the protocol.") $advice(giveUp);
  outcomeUnknown @29 $means("Whether the effect happened cannot be known.") $advice(observeAgain);
  dispatchRefused @30 $means("The control itself refused when it was asked.") $advice(observeAgain);

  # Ours, beyond the contract's list.
  unknownField @31 $means("The message has a field, tag or enumerant that this version does not know.") $advice(correct);
  malformed @32 $means("The message is not well formed, not canonical, or out of bounds.") $advice(correct);
  unsupportedVersion @33 $means("The message states another protocol version.") $advice(correct);
  operationConflict @34 $means("This operation id was already used for another action.") $advice(correct);
  busy @35 $means("A limit on sessions or requests in flight is reached.") $advice(retryLater);
  desktopBusy @36 $means("Another supervisor acts on this desktop; reading is possible, acting is not.") $advice(retryLater);
  noDisplay @37 $means("There is no display to connect to.") $advice(retryLater);
  noAccessibilityBus @38 $means("There is no accessibility bus on this desktop.") $advice(retryLater);
  notAnswering @39 $means("The application does not answer.") $advice(retryLater);
  accessibilityOff @40 $means("The application is running but offers no accessibility tree.") $advice(giveUp);
  ledgerForeign @41 $means("The ledger is not one that this program and this user may use.") $advice(giveUp);
  ledgerBusy @42 $means("Another supervisor holds this ledger.") $advice(retryLater);
  ledgerPoisoned @43 $means("A write to the ledger failed; it must be opened again before anything is dispatched.") $advice(giveUp);
  grantSpent @44 $means("Every use of this grant is used up.") $advice(askAgain);
  targetDisabled @45 $means("The target is disabled.") $advice(observeAgain);
  targetHidden @46 $means("The target is not showing.") $advice(observeAgain);
  noActiveTurn @47 $means("No turn is active in this session.") $advice(correct);
  leaseMissing @48 $means("No open lease covers this class of action on this target.") $advice(askAgain);
  revoked @49 $means("The grant, the lease or its policy was revoked.") $advice(askAgain);
  clockUntrusted @50 $means("The wall clock jumped; nothing is done until it agrees again or a person accepts it.") $advice(retryLater);
  ledgerMoved @51 $means("The ledger is not where it was made; a person has to adopt it first.") $advice(giveUp);
  ledgerRolledBack @52 $means("The ledger does not contain what this host has already seen of it.") $advice(giveUp);
  operationArchived @53 $means("This operation id was used; its record is in an archive or in the ledger that it came from.") $advice(correct);
  recordDamaged @54 $means("The ledger's record of this operation is damaged; it is never sent again.") $advice(giveUp);
  unsupportedNumber @55 $means("A number is not an integer of at most 64 bits.") $advice(correct);
  warmingUp @56 $means("The application is still starting: it does not offer this window yet.") $advice(retryLater);
}

enum Terminal {
  # How an operation ended. Recorded once, never changed.
  succeeded @0;              # The effect happened, with the evidence the receipt states.
  rejected @1;               # The live target was refused; nothing was sent.
  failed @2;                 # Nothing reached the helper's process; safe to ask for again under a new id.
  cancelledBeforeEffect @3;  # Withdrawn in time; nothing was sent.
  expiredBeforeEffect @4;    # The deadline or the grant ran out in time; nothing was sent.
  outcomeUnknown @5;         # It may or may not have happened. Never sent again by us.
}

enum Effect {
  none @0;                # Nothing was sent.
  verified @1;            # Read back and found as asked.
  executedUnverified @2;  # Sent; the grant asked for no proof and none was found.
  unknown @3;             # Sent, or perhaps sent, and not proven.
}

enum Verdict {
  # What the facts before and after show. The supervisor's judgement, never a helper's.
  confirmed @0;
  partial @1;         # unitsDone of unitsAsked
  unverifiable @2;    # Nothing observable belongs to this action.
  suspectedNoop @3;   # What should have changed did not.
  unknown @4;         # The facts are missing or contradict one another.
}

enum Method {
  none @0;
  valueReadback @1;
  selectionReadback @2;
  stateReadback @3;
  focusReadback @4;
  geometryReadback @5;
  treeDelta @6;
  pixelDelta @7;
  fileImage @8;
}

enum Source {
  sameProcess @0;   # The helper that acted also read back.
  witness @1;       # A second process read back.
}

enum ContextState {
  # What the watch over the whole action saw of the person's pointer, focus and window order.
  unwatched @0;   # There was no watch, so preservation is not proven.
  preserved @1;
  breached @2;    # Pointer, focus, active window or stacking order changed; never a success.
  permitted @3;   # The same, as far as the grant's rights allow it.
}

enum Route {
  none @0;            # Nothing was sent.
  accessibility @1;   # A method call on the live accessible object.
}

enum ActionClass {
  # What a person approves. A grant for one class never serves another.
  metadataRead @0;
  screenshotRead @1;
  pointerMutation @2;
  keyboardMutation @3;
  semanticMutation @4;
  fileMutation @5;
}

enum Mode {
  # Whether the person may notice.
  interactive @0;      # What the grant's rights allow may be used.
  backgroundOnly @1;   # Pointer, focus and stacking stay as they are, whatever the rights.
}

enum Safety {
  # What it would take to undo the action, as the host judges it. The grant must say the same.
  reversible @0;
  external @1;      # Leaves the desktop: sends, publishes, pays.
  destructive @2;   # Cannot be undone. Needs the grant's right `irreversible`.
}

enum Proof {
  # What the host wants to see before it calls the action done.
  strongest @0;      # The strongest that the action has by itself.
  none @1;           # "Sent" is enough; success may be unverified, and the receipt says so.
  value @2;          # The target's whole value, read back, is the stated text.
  state @3;          # The target's states, read back, are the stated ones.
  appears @4;        # The target's application has one window more.
  disappears @5;     # The target, or its window, is gone.
  regionChanged @6;  # The pixels of the stated part of the window are others.
}

enum Button { left @0; right @1; middle @2; }
enum Direction { up @0; down @1; left @2; right @3; }

enum Role { desktop @0; files @1; presenter @2; }

enum Stage {
  # How far an operation has come, as told to a host that listens.
  prepared @0;   # The live target was validated; nothing is written.
  claimed @1;    # The claim is durable; the effect is about to be sent.
}

enum Warning {
  unverified @0;            # The grant asked for no proof; success means "sent", not "seen".
  recovered @1;             # Settled at a later start: the supervisor ended while the operation was open.
  controlDeclined @2;       # The control answered that it did not do it; the facts were judged all the same.
  lateAfterDispatch @3;     # The deadline passed, or a cancellation came, after the effect was sent.
  helperLost @4;            # The helper ended while the operation was open.
  contextUnwatched @5;      # No watch was possible on pointer, focus and stacking.
}

struct Refusal {
  code @0 :RefusalCode;
  detail @1 :Text;
  # A fixed sentence chosen by code; never text from an application or a model. At most 256 bytes.
}

struct Process {
  pid @0 :UInt32;
  start @1 :UInt64;
  # Start time in clock ticks since boot, field 22 of /proc/PID/stat (proc(5)). Pid and start name one
  # process for as long as the machine is up; a pid alone does not.
}

struct WindowRef {
  process @0 :Process;
  window @1 :UInt64;   # X11 window id.
}

struct Rect {
  # Physical pixels. Origins may be negative (a monitor to the left or above); sizes are not.
  x @0 :Int32;
  y @1 :Int32;
  width @2 :UInt32;
  height @3 :UInt32;
}

struct Rights {
  # What a grant allows beyond the action itself. All off unless a person said yes.
  focus @0 :Bool;         # The input focus, the active window and the stacking order may change.
  ownPointer @1 :Bool;    # A pointer of our own, which is not the person's, may be used.
  userPointer @2 :Bool;   # The person's pointer may be moved.
  irreversible @3 :Bool;  # The effect may be one that cannot be undone.
}

struct LedgerId {
  # Names one ledger in one life: the audience of grants.
  key @0 :Data;            # BLAKE2b-256 of the ledger's first receipt public key; 32 bytes.
  incarnation @1 :UInt32;  # 1 at creation.
}
