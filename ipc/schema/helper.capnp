@0x9b41e6a0d3c85f72;
# What the supervisor says to a helper. A helper reads the desktop, and carries out one prepared action;
# it has no word for success. It returns what was there before and after, and the supervisor judges.
#
# Phases: hello once, then any number of list, observe and prepare; a prepared action performs once.
# Anything out of phase ends the connection (ipc/helper-server.h).

using Cxx = import "/capnp/c++.capnp";
using Words = import "words.capnp";
using Action = import "action.capnp".Action;
using Observe = import "action.capnp".Observe;
using Seen = import "desktop.capnp";
$Cxx.namespace("praefectus::wire");

struct HelperHello {
  # Every field is compared with the manifest, the launcher's report or our own bounds; of the
  # capabilities their names and order, since whether they work changes.
  name @0 :Text;
  release @1 :Text;
  role @2 :Words.Role;
  protocol @3 :UInt16;
  pid @4 :UInt32;
  generation @5 :UInt64;
  maxElements @6 :UInt32;
  maxDepth @7 :UInt32;
  maxTextBytes @8 :UInt32;
  capabilities @9 :List(Seen.Capability);
}

struct ValueFact {
  # A value without the value: BLAKE2b-256 keyed with the nonce that `prepare` carried.
  union {
    none @0 :Void;      # The element has no value to read, or it could not be read.
    text @1 :Data;      # Of the whole text's UTF-8 bytes; 32 bytes.
    number @2 :Data;    # Of the number as 8 bytes, IEEE 754 little-endian; 32 bytes.
  }
}

struct Sight {
  # The target as it was at one moment.
  present @0 :Bool;                 # The live object answered and is still in its window.
  states @1 :List(Seen.State);
  value @2 :ValueFact;
  label @3 :Data;                   # Keyed hash of role and name, 32 bytes; empty when not read.
  windowPresent @4 :Bool;
  windows @5 :Data;                 # Keyed hash of the process's set of window ids, 32 bytes.
  processRunning @6 :Bool;
  # The same process, by pid and start time, had not ended, and its windows could be listed. Without
  # it, a window that is not there says nothing.
  windowCount @7 :UInt32;           # How many windows the process has; meaningful with `windows`.
  region @8 :Data;
  # Keyed hash of the pixels in the region that the action names, 32 bytes; empty when not read.
}

enum Answer {
  # What the control's own method replied. Never evidence.
  accepted @0;
  declined @1;
  error @2;
  silent @3;   # No reply in time.
}

struct Watch {
  # The person's desktop over the whole action, from before revalidation to after readback.
  watching @0 :Bool;          # The watch was in place from beginning to end.
  pointerMoved @1 :Bool;      # The core pointer moved without a raw motion event of a device.
  focusChanged @2 :Bool;      # Input focus or _NET_ACTIVE_WINDOW changed, even if it changed back.
  stackingChanged @3 :Bool;   # _NET_CLIENT_LIST_STACKING changed its order.
}

struct Facts {
  before @0 :Sight;
  after @1 :Sight;
  answer @2 :Answer;
  watch @3 :Watch;
  settledMs @4 :UInt32;   # How long readback waited for the effect to show.
}

struct HelperStatus {
  # One running helper, as the supervisor tells its host.
  identity @0 :import "signed.capnp".HelperIdentity;
  pid @1 :UInt32;
  health @2 :Seen.Health;
  capabilities @3 :List(Seen.Capability);
}

interface Helper {
  hello @0 (protocol :UInt16) -> (hello :HelperHello);
  # A protocol other than the helper's own is answered truthfully and then ends the helper (exit 78).

  capabilities @1 () -> (capabilities :List(Seen.Capability), health :Seen.Health);
  # Probed at the moment of the call.

  list @2 () -> (result :ListResult);

  observe @3 (window :Words.WindowRef, frame :Data, epoch :UInt64, request :Observe)
      -> (result :ObserveResult, picture :Seen.Picture);
  # Keeps the live objects under the given frame; the session's earlier frame is forgotten.

  prepare @4 (action :Action, nonce :Data) -> (result :PrepareResult, prepared :Prepared);
  # Resolves the target to the live object and checks it. Changes nothing, focus included. `nonce` is
  # 32 bytes and keys every hash in the facts.

  capture @5 (action :Action) -> (result :CaptureResult, picture :Seen.Picture);
  # A screenshot or a zoom. Changes nothing and spends no frame.
}

struct ListResult { union { desktop @0 :Seen.Desktop; refusal @1 :Words.Refusal; } }
struct ObserveResult { union { observation @0 :Seen.Observation; refusal @1 :Words.Refusal; } }
struct CaptureResult { union { picture @0 :Seen.PictureInfo; refusal @1 :Words.Refusal; } }
struct PrepareResult { union { ready @0 :Void; refusal @1 :Words.Refusal; } }
struct PerformResult { union { facts @0 :Facts; refusal @1 :Words.Refusal; } }

interface Prepared {
  # One validated action on one live object. Letting go of it does nothing.
  perform @0 () -> (result :PerformResult);
  # Checks the target once more, enters the effect, reads back. No arguments: nothing can be swapped
  # between approval and effect. A refusal means that nothing was sent. Works once.
}
