@0xa6f0b3d7e81c4925;
# One action, whole: what is to be done, to what, how sure the host wants to be, and for how long it may
# take. Its canonical bytes are hashed, and the hash stands in the grant, so changing any bit of this
# struct needs a new signature.

using Cxx = import "/capnp/c++.capnp";
using Words = import "words.capnp";
$Cxx.namespace("praefectus::wire");

struct Action {
  blind @0 :Data;
  # 32 random bytes drawn by the host and kept by nobody. The ledger keeps the action's hash; without
  # this a reader of the ledger could find a short text by hashing every candidate.

  timeoutMs @1 :UInt32;
  # Time allowed from admission to readback, 1 to 120000. Counted on a clock that does not step and
  # does not stop in suspend (CLOCK_BOOTTIME).

  verification @2 :Verification;
  target @3 :Target;

  union {
    list @4 :Void;
    # Read: applications and windows. Target: desktop. Class metadataRead.

    observe @5 :Observe;
    # Read: one window as a tree of elements, and a new frame. Target: window. Class metadataRead, or
    # screenshotRead when it asks for a picture.

    invoke @6 :Invoke;
    # Mutation: one action that the element itself offers. Target: element. Class semanticMutation.

    setValue @7 :SetValue;
    # Mutation: replaces the whole value of an editable element. Target: element. Class semanticMutation.
  }
}

enum Verification {
  strongest @0;  # Success only when readback confirms; anything less ends as outcomeUnknown.
  none @1;       # The host accepts "sent"; success may be unverified, and the receipt says so.
}

struct Target {
  union {
    desktop @0 :Void;
    window @1 :Words.WindowRef;
    element @2 :ElementRef;
  }
}

struct ElementRef {
  # An element of one frame. It is the live object that was observed, or it is refused: there is no
  # search by name, index or position.
  window @0 :Words.WindowRef;
  frame @1 :Data;      # The frame's id, 16 bytes.
  epoch @2 :UInt64;
  element @3 :UInt32;  # Position in that observation's element list.
  digest @4 :Data;     # The element's digest as observed, 32 bytes: proves the host means what it saw.
}

struct Observe {
  picture @0 :Bool;
}

struct Invoke {
  name @0 :Text;  # Exactly one of the names in the element's `actions`; 1 to 128 bytes.
}

struct SetValue {
  text @0 :Text;  # 0 to 16384 bytes of UTF-8. For a slider or spin button, a decimal number.
}
