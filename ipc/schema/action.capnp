@0xa6f0b3d7e81c4925;
# One action, whole: what is to be done, to what, how sure the host wants to be, and for how long it may
# take. Its canonical bytes are hashed, and the hash stands in the grant, so changing any bit of this
# struct needs a new signature.
#
# This is the whole vocabulary. What a helper can do on its platform is what it advertises
# (desktop.capnp, Capability); a kind that it does not advertise is refused as unsupportedAction before
# anything is written.

using Cxx = import "/capnp/c++.capnp";
using Words = import "words.capnp";
using State = import "desktop.capnp".State;
$Cxx.namespace("praefectus::wire");

struct Action {
  blind @0 :Data;
  # 32 random bytes drawn by the host and kept by nobody. The ledger keeps the action's hash; without
  # this a reader of the ledger could find a short text by hashing every candidate.

  timeoutMs @1 :UInt32;
  # Time allowed from admission to readback, 1 to 120000. Counted on a clock that does not step and
  # does not stop in suspend (CLOCK_BOOTTIME).

  mode @2 :Words.Mode;
  safety @3 :Words.Safety;
  verification @4 :Verification;
  target @5 :Target;

  union {
    # Reads. Nothing is proven of them, and their safety is `reversible`.

    list @6 :Void;
    # Applications and windows. Target: desktop. Class metadataRead.

    observe @7 :Observe;
    # One window as a tree of elements, and a new frame. Target: window. Class metadataRead, or
    # screenshotRead when it asks for a picture.

    screenshot @8 :Void;
    # A picture without a tree and without a frame. Target: window or monitor. Class screenshotRead.

    # Mutations of what an element means. Class semanticMutation.

    invoke @9 :Invoke;
    # One action that the element itself offers. Target: element.

    setValue @10 :SetValue;
    # Replaces the whole value of an editable element. Target: element.

    selectText @11 :SelectText;
    # Target: element.

    secondary @12 :Secondary;
    # One of the named secondary actions that the element offers. Target: element.

    # Mutations by a pointer. Class pointerMutation.

    click @13 :Click;
    # Target: element or point.

    scroll @14 :Scroll;
    # Target: element.

    move @15 :Void;
    # Target: point.

    drag @16 :Drag;
    # From the target, a point, to another point of the same frame.

    # Mutations by a keyboard. Class keyboardMutation. Target: element.

    typeText @17 :TypeText;
    press @18 :Press;
    hotkey @19 :Hotkey;
    paste @20 :Paste;

    # Mutations of the desktop. Class semanticMutation.

    application @21 :ControlApplication;
    # Target: desktop.

    window @22 :ControlWindow;
    # Target: window.

    open @23 :Open;
    # Target: desktop.

    clipboardWrite @24 :ClipboardWrite;
    # Target: desktop.

    zoom @25 :Zoom;
    # A read: a part of a frame's window as a picture. Target: point. Class screenshotRead.
  }
}

struct Verification {
  # What is to be proven (Words.Proof). More than `none` and `strongest` needs a target that can be read
  # back: value and state an element, the others an element, a point or a window.
  union {
    strongest @0 :Void;
    none @1 :Void;
    value @2 :Text;               # 0 to 16384 bytes. Compared as a keyed hash.
    state @3 :List(Expectation);  # 1 to 16, each state once.
    appears @4 :Void;
    disappears @5 :Void;
    regionChanged @6 :Words.Rect;
    # Part of the window, in its client area: a corner from 0 to 65535, sides of 1 to 16384 pixels.
  }
}

struct Expectation {
  state @0 :State;
  holds @1 :Bool;
}

struct Target {
  union {
    desktop @0 :Void;
    window @1 :Words.WindowRef;
    element @2 :ElementRef;
    point @3 :PointRef;
    monitor @4 :Data;    # The id of a monitor as listed, 16 bytes.
  }
}

struct ElementRef {
  # An element of one frame. It is the live object that was observed, or it is refused: there is no
  # search by name, index or position.
  window @0 :Words.WindowRef;
  frame @1 :Data;      # The frame's id, 16 bytes.
  epoch @2 :UInt64;
  element @3 :UInt32;  # Position in that observation's element list, 0 to 4999.
  digest @4 :Data;     # The element's digest as observed, 32 bytes: proves the host means what it saw.
}

struct PointRef {
  # A point of one frame. It means something only there; there is no point of "the screen".
  window @0 :Words.WindowRef;
  frame @1 :Data;      # The frame's id, 16 bytes.
  epoch @2 :UInt64;
  x @3 :Int32;         # Pixels in the frame's client area, from its corner; each 0 to 65535.
  y @4 :Int32;
}

struct Observe {
  # Zero is the usual bound, and its one spelling. A request above a limit is malformed, not clamped.
  picture @0 :Bool;
  elements @1 :UInt32;      # At most this many: 1 to 5000, usually 1500.
  depth @2 :UInt32;         # 1 to 64, usually 64.
  textBytes @3 :UInt32;     # Of a name or a value: 1 to 16384, usually 500.
  timeMs @4 :UInt32;        # For reading the tree: 1 to 6000, usually 6000.
  part :union {
    whole @5 :Void;
    below @6 :Below;
  }
}

struct Below {
  # What is below one element of the session's last frame. That frame is of the action's target, is
  # current, and is the one the grant names; the reading's own frame then takes its place.
  frame @0 :Data;      # The frame's id, 16 bytes.
  epoch @1 :UInt64;
  element @2 :UInt32;  # 0 to 4999.
  digest @3 :Data;     # As observed, 32 bytes.
  first @4 :UInt32;    # Its children from this one on: goes on where an earlier reading was cut.
}

struct Zoom {
  # From the target, the one corner, to any other corner, both inside the frame's client area; each 0 to
  # 65535. Both belong to what is shown: from a point to itself is one pixel.
  toX @0 :Int32;
  toY @1 :Int32;
}

struct Invoke {
  name @0 :Text;  # Exactly one of the names in the element's `actions`; 1 to 128 bytes.
}

struct SetValue {
  text @0 :Text;  # 0 to 16384 bytes of UTF-8. For a slider or spin button, a decimal number.
}

struct SelectText {
  start @0 :UInt32;   # In characters.
  length @1 :UInt32;  # 0 places the caret. Start and length together at most 1048576.
}

struct Secondary {
  name @0 :Text;
  # show_menu, show_default_ui, show_alternate_ui, increment, decrement, confirm, cancel, pick.
}

struct Click {
  button @0 :Words.Button;
  count @1 :UInt32;  # 1 to 3
}

struct Scroll {
  direction @0 :Words.Direction;
  amount @1 :UInt32;  # 1 to 100 steps of the control's own size.
}

struct Drag {
  button @0 :Words.Button;
  toX @1 :Int32;  # As in PointRef.
  toY @2 :Int32;
}

struct TypeText {
  text @0 :Text;        # 1 to 16384 bytes.
  clear @1 :Bool;       # Removes what is there first.
  pressReturn @2 :Bool;
  delayMs @3 :UInt32;   # Between two characters, 0 to 1000.
}

struct Press {
  key @0 :Text;         # 1 to 64 bytes.
  count @1 :UInt32;     # 1 to 100
  delayMs @2 :UInt32;   # Between two presses, 0 to 1000.
}

struct Hotkey {
  keys @0 :List(Text);  # 1 to 8 keys of 1 to 64 bytes, pressed together.
}

struct Paste {
  text @0 :Text;        # 1 to 16384 bytes.
}

struct ControlApplication {
  operation @0 :Operation;
  name @1 :Text;        # 1 to 256 bytes.
  enum Operation { launch @0; switch @1; quit @2; }
}

struct ControlWindow {
  operation @0 :Operation;
  enum Operation { focus @0; close @1; minimize @2; }
}

struct Open {
  what @0 :Text;          # A file or an address; 1 to 16384 bytes.
  application @1 :Text;   # 1 to 256 bytes; empty for the person's own choice.
  noFocus @2 :Bool;
}

struct ClipboardWrite {
  text @0 :Text;        # 0 to 524288 bytes: half of what one message may carry.
}
