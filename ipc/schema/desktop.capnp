@0xf29a7c4610d8be35;
# What is seen: applications, windows, one window's elements, and the frame that ties them to a moment.
# Written by a helper, checked and passed on by the supervisor, read by the host. Never stored.

using Cxx = import "/capnp/c++.capnp";
using Words = import "words.capnp";
$Cxx.namespace("praefectus::wire");

enum AppState {
  # Empty, silent and absent are different answers.
  ready @0;              # Answers, with a tree.
  warmingUp @1;          # Registered, not yet any window.
  accessibilityOff @2;   # Owns a window but offers no tree.
  notAnswering @3;       # Did not answer in time.
}

struct Application {
  process @0 :Words.Process;
  name @1 :Text;
  toolkit @2 :Text;
  state @3 :AppState;
}

struct Window {
  ref @0 :Words.WindowRef;
  title @1 :Text;
  bounds @2 :Words.Rect;   # Client area, in root coordinates.
  visible @3 :Bool;        # Mapped and not minimized.
  active @4 :Bool;         # Named by _NET_ACTIVE_WINDOW.
  stacking @5 :UInt32;     # 0 is the bottom of the stack.
  accessible @6 :Bool;     # Matched to exactly one accessible window.
}

struct Desktop {
  display @0 :Text;
  applications @1 :List(Application);
  windows @2 :List(Window);
  cut @3 :Bool;            # More existed than the bounds allow.
}

enum State {
  # The accessibility states a host can act on, by AT-SPI's names.
  active @0; armed @1; busy @2; checked @3; collapsed @4; defunct @5; editable @6; enabled @7;
  expandable @8; expanded @9; focusable @10; focused @11; horizontal @12; iconified @13; modal @14;
  multiLine @15; multiselectable @16; opaque @17; pressed @18; resizable @19; selectable @20;
  selected @21; sensitive @22; showing @23; singleLine @24; stale @25; transient @26; vertical @27;
  visible @28; managesDescendants @29; indeterminate @30; required @31; truncated @32; animated @33;
  invalidEntry @34; selectableText @35; isDefault @36; visited @37; checkable @38; hasPopup @39;
  readOnly @40;
}

enum Fault {
  none @0;
  unreadable @1;    # The application answered with an error for this element.
  late @2;          # The application did not answer for this element in time.
  skipped @3;       # Too many children to fetch safely; they are not listed.
}

struct Element {
  parent @0 :UInt32;       # Index in the list; the root (index 0) names itself.
  depth @1 :UInt16;
  position @2 :UInt32;     # Index among its parent's children.
  role @3 :Text;           # AT-SPI's role name, such as "push button".
  name @4 :Text;
  states @5 :List(State);
  actions @6 :List(Text);  # Names that `invoke` accepts; read for showing elements.
  hasBounds @7 :Bool;
  bounds @8 :Words.Rect;   # Relative to the window's client area.
  hasValue @9 :Bool;
  value @10 :Text;         # Text of an editable element or number of a slider; never of a secure one.
  settable @11 :Bool;      # `setValue` applies.
  secure @12 :Bool;        # A password field: neither read nor written.
  textCut @13 :Bool;       # Name or value was longer than the bound.
  fault @14 :Fault;
  digest @15 :Data;        # 32 bytes; what an ElementRef must repeat.
}

struct Cuts {
  # What the bounds left out, each said on its own. A cut tree is not a small tree.
  elements @0 :Bool;
  depth @1 :Bool;
  text @2 :Bool;
  time @3 :Bool;
}

struct Frame {
  # A moment of one window. Coordinates and elements mean something only inside it. It is usable for
  # 30 seconds; the session's next observation, and any mutation that was claimed, spends it.
  id @0 :Data;             # 16 random bytes, drawn by the supervisor.
  epoch @1 :UInt64;        # Counts the session's frames, from 1.
  window @2 :Words.WindowRef;
  title @3 :Text;
  bounds @4 :Words.Rect;   # The window's client area in root coordinates.
  scale @5 :UInt32;        # Thousandths; 1000 is one picture pixel a desktop pixel.
  topology @6 :Data;       # BLAKE2b-256 of the monitors' layout, 32 bytes.
}

struct PictureInfo {
  width @0 :UInt32;
  height @1 :UInt32;
  size @2 :UInt64;         # Bytes of PNG.
  digest @3 :Data;         # BLAKE2b-256 of the PNG bytes, 32 bytes.
}

interface Picture {
  # A picture too large for one message, read in pieces. Lives as long as the capability is held.
  info @0 () -> (info :PictureInfo);
  read @1 (offset :UInt64) -> (bytes :Data);
  # At most 512 KiB from `offset`; empty at and beyond the end.
}

struct Observation {
  frame @0 :Frame;
  elements @1 :List(Element);
  cuts @2 :Cuts;
  faults @3 :UInt32;       # How many elements carry a fault.
  elapsedMs @4 :UInt32;
  hasPicture @5 :Bool;
}

struct Capability {
  # What works here now: tried by the helper, not assumed from what is installed.
  name @0 :Text;
  # "list", "observe", "picture"; a kind of action, spelled as in receipts ("set_value"); or a way of
  # proving one, "proof_" and its name ("proof_appears").
  available @1 :Bool;
  why @2 :Words.RefusalCode;  # Meaningful when not available.
}

enum Health { healthy @0; degraded @1; unavailable @2; notRun @3; }
