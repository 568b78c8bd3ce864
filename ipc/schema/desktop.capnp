@0xf29a7c4610d8be35;
# What is seen: applications, windows, one window's elements, and the frame that ties them to a moment.
# Written by a helper, checked and passed on by the supervisor, read by the host. Never stored.

using Cxx = import "/capnp/c++.capnp";
using Words = import "words.capnp";
$Cxx.namespace("praefectus::wire");

enum AppState {
  # Empty, silent and absent are different answers.
  ready @0;              # Answers, with a window.
  warmingUp @1;          # Registered, not yet any window.
  accessibilityOff @2;   # Owns a window but offers no tree.
  notAnswering @3;       # Did not answer in time.
  unregistered @4;       # On the accessibility bus, but not in its registry: it offers no tree to anybody.
}

struct Application {
  process @0 :Words.Process;
  name @1 :Text;
  toolkit @2 :Text;
  state @3 :AppState;
  version @4 :Text;        # Of the toolkit.
}

enum WindowKind {
  # What its owner says it is (_NET_WM_WINDOW_TYPE), or what it does.
  normal @0; dialog @1; utility @2; menu @3; tooltip @4; notification @5; splash @6; dock @7; desktop @8;
  popup @9;   # Mapped past the window manager (override-redirect) without a kind of its own: popovers, lists of combo boxes.
}

struct Window {
  ref @0 :Words.WindowRef;
  title @1 :Text;
  bounds @2 :Words.Rect;   # Client area, in root coordinates.
  visible @3 :Bool;        # Mapped and not minimized.
  active @4 :Bool;         # Named by _NET_ACTIVE_WINDOW.
  stacking @5 :UInt32;     # 0 is the bottom of the stack.
  accessible @6 :Bool;     # Matched to exactly one accessible window.
  kind @7 :WindowKind;
  owner @8 :UInt64;        # The window that this one belongs to (a dialog's, a menu's); 0 for none.
  modal @9 :Bool;          # Blocks its owner.
  managed @10 :Bool;       # The window manager lists it. Menus, popovers and tooltips pass by it.
}

struct Monitor {
  # One part of the desktop that is a screen of its own.
  id @0 :Data;             # 16 bytes, drawn by the helper. Another layout has other ids; nobody else's are accepted.
  bounds @1 :Words.Rect;   # In root coordinates; origins may be negative.
  primary @2 :Bool;
  scale @3 :UInt32;        # Thousandths: 1000 is one pixel a unit of root coordinates.
}

enum Lock {
  # Whether the person's session is locked.
  unknown @0;    # Nobody on this desktop says.
  unlocked @1;
  locked @2;     # Neither observed nor acted on: screenLocked.
}

struct Desktop {
  display @0 :Text;
  applications @1 :List(Application);
  windows @2 :List(Window);
  cut @3 :Bool;            # More existed than the bounds allow.
  monitors @4 :List(Monitor);
  topology @5 :Data;       # BLAKE2b-256 of the monitors' layout, 32 bytes.
  lock @6 :Lock;
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

enum Face {
  # The interfaces of an accessible object, by AT-SPI's names.
  action @0; application @1; collection @2; component @3; document @4; editableText @5; hyperlink @6;
  hypertext @7; image @8; selection @9; table @10; tableCell @11; text @12; value @13;
}

enum Fault {
  none @0;
  unreadable @1;    # The application answered with an error for this element.
  late @2;          # The application did not answer for this element in time.
  skipped @3;       # Too many children to fetch safely; they are not listed. `below` reads them in parts.
}

enum Change {
  # Against the session's last frame of the same window.
  unknown @0;   # There is none to compare with.
  same @1;
  added @2;
  changed @3;   # The same live object; name, states, actions, value or place differ.
}

struct Element {
  # Texts that many elements share stand once, in the observation's `words`.
  parent @0 :UInt32;       # Index in the list; the root (index 0) names itself.
  position @1 :UInt32;     # Index among its parent's children.
  depth @2 :UInt16;
  role @3 :UInt16;         # Word. AT-SPI's role name, such as "push button".
  states @4 :UInt64;       # Bit n is the enumerant n of State.
  faces @5 :UInt32;        # Bit n is the enumerant n of Face.
  children @6 :UInt32;     # As many as the element says it has, listed here or not.
  x @7 :Int32;             # With y, width and height: relative to the window's client area. Only where something
  y @8 :Int32;             # shows, see hasBounds.
  width @9 :UInt32;
  height @10 :UInt32;
  fault @11 :Fault;
  change @12 :Change;
  hasBounds @13 :Bool;
  hasValue @14 :Bool;
  settable @15 :Bool;      # `setValue` applies.
  secure @16 :Bool;        # A password field: neither read nor written.
  textCut @17 :Bool;       # Name or value was longer than the bound.
  childrenCut @18 :Bool;   # Not all of its children are listed.
  shows @19 :Bool;         # A person can see it, or could where no other window covers it.
  name @20 :Text;
  path @21 :Text;          # The object's path on its application's bus connection, after the observation's `pathStart`.
  actions @22 :List(UInt16);  # Words: the names that `invoke` accepts; read for showing elements.
  value @23 :Text;         # Text of an editable element or number of a slider; never of a secure one.
  domId @24 :Text;         # The id that a web page gave the element; empty for none.
}

struct Cuts {
  # What the bounds left out, each said on its own. A cut tree is not a small tree.
  elements @0 :Bool;
  depth @1 :Bool;
  text @2 :Bool;
  time @3 :Bool;
}

enum Content {
  # What the tree is, so that little is not taken for nothing.
  elements @0;       # As many as `cuts` and the faults say.
  empty @1;          # The window answers, and has nothing in it.
  pageOff @2;        # A browser's window whose page offers no elements: its accessibility for pages is off.
  pageLoading @3;    # A page that is still arriving.
}

struct Page {
  # The document that a web window shows. Left or reloaded, it is another one: pageTargetChanged.
  url @0 :Text;            # At most 2048 bytes; cut.
  document @1 :Data;       # BLAKE2b-256 of the live document object and its whole URL, keyed with the frame's id.
  element @2 :UInt32;      # The document among the elements.
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
  monitors @7 :List(Monitor);  # The monitors of that layout.
  hasPage @8 :Bool;
  page @9 :Page;
}

struct PictureInfo {
  # A picture of a window, or of a monitor. Its PNG is made when it is first asked for.
  width @0 :UInt32;
  height @1 :UInt32;
  scale @2 :UInt32;        # Thousandths, as in Frame.
  x @3 :Int32;             # Where its first pixel is: in the window's client area, or in root coordinates for a monitor.
  y @4 :Int32;
  pixels @5 :Data;
  # BLAKE2b-256, 32 bytes, of the pixels: rows from the top, 4 bytes each: blue, green, red, 0. Two pictures that look
  # the same have the same. The helper that took it vouches for it; the supervisor decodes no picture, and checks that
  # frame, place and size are as asked for, and that the PNG says this size. Whoever decodes the PNG can check this too.
  frame @6 :Data;          # The frame it belongs to, 16 bytes; empty for one without.
}

interface Picture {
  # Lives as long as the capability is held.
  info @0 () -> (info :PictureInfo);
  png @1 () -> (size :UInt64, digest :Data);
  # Bytes of the PNG, and their BLAKE2b-256, 32 bytes. It is made now. Size 0: there is none, since it would be larger
  # than 64 MiB or the helper that took the picture has ended.
  read @2 (offset :UInt64) -> (bytes :Data);
  # At most 512 KiB of the PNG from `offset`; empty at and beyond the end.
}

struct Observation {
  frame @0 :Frame;
  elements @1 :List(Element);
  cuts @2 :Cuts;
  faults @3 :UInt32;       # How many elements carry a fault.
  elapsedMs @4 :UInt32;
  hasPicture @5 :Bool;
  picture @6 :PictureInfo;
  content @7 :Content;
  words @8 :List(Text);
  pathStart @9 :Text;
  digests @10 :Data;       # 32 bytes for each element, in their order: what an ElementRef must repeat.
  below @11 :UInt32;       # The element whose children were asked for; its ancestors stand before it, alone. 0: the window.
  before @12 :Data;        # The frame that `change` and `gone` compare with, 16 bytes; empty for none.
  gone @13 :List(UInt32);  # Elements of that frame, by their index there, that are no more.
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
