@0xe05b18f7c9d3624a;
# What a host says to the supervisor, over the socket it gave the supervisor at start (descriptor 3).
# The bootstrap capability is Supervisor. One connection is one host; the kernel says who it is.

using Cxx = import "/capnp/c++.capnp";
using Words = import "words.capnp";
using Action = import "action.capnp".Action;
using Signed = import "signed.capnp".Signed;
using Seen = import "desktop.capnp";
using HelperStatus = import "helper.capnp".HelperStatus;
$Cxx.namespace("praefectus::wire");

struct SupervisorInfo {
  protocol @0 :UInt16;
  release @1 :Text;
  ledger @2 :Words.LedgerId;     # The audience to sign grants for.
  receiptKey @3 :Data;           # Ed25519 public key, 32 bytes.
  subject @4 :Text;              # Who the kernel says the host is: "uid:0".
  acting @5 :Bool;
  # Whether no other supervisor acted on this desktop at this moment. The first mutation takes it for
  # good; while another one has it, mutations are desktopBusy.
  recovered @6 :UInt32;          # Operations found open at this start and settled as outcomeUnknown.
}

interface Supervisor {
  hello @0 (protocol :UInt16) -> (result :HelloResult);
  # First call. Any other call before it is refused as unsupportedVersion.

  open @1 (session :Text, turn :Text) -> (result :OpenResult, session :Session);
  # Opens a session under a host-chosen id. At most 16 are live; the rest are `busy`.

  status @2 (operation :Text) -> (result :StatusResult);
  # What the ledger knows of an operation. Reads only.
}

struct HelloResult { union { info @0 :SupervisorInfo; refusal @1 :Words.Refusal; } }
struct OpenResult { union { opened @0 :Void; refusal @1 :Words.Refusal; } }

struct StatusResult {
  union {
    unknown @0 :Void;       # Never claimed here.
    open @1 :Void;          # Claimed, not ended.
    ended @2 :Signed;       # Its receipt.
    refusal @3 :Words.Refusal;
  }
}

struct Submission {
  grant @0 :Signed;
  action @1 :Data;  # The canonical bytes of an Action, whose hash the grant names.
}

interface Session {
  # Requests of one session are served in order; sessions do not wait for each other.

  capabilities @0 () -> (result :CapabilitiesResult);

  list @1 (submission :Submission) -> (result :DesktopResult);
  observe @2 (submission :Submission) -> (result :SeenResult, picture :Seen.Picture);

  execute @3 (submission :Submission, progress :Progress) -> (result :ExecuteResult);
  # One mutation, at most once. The same id with the same action answers the recorded receipt, whatever
  # has expired since; with another action it is operationConflict. `progress` may be null.

  cancel @4 (operation :Text) -> (found :Bool);
  # Withdraws an operation of this session that is in flight. Before its effect was sent it ends as
  # cancelledBeforeEffect; after, it goes on and ends as outcomeUnknown. Idempotent.

  close @5 () -> ();
  # Ends the session and its helper. Operations in flight are withdrawn as by cancel, and settled.
}

struct CapabilitiesResult { union { helper @0 :HelperStatus; refusal @1 :Words.Refusal; } }
struct DesktopResult { union { desktop @0 :Seen.Desktop; refusal @1 :Words.Refusal; } }
struct SeenResult { union { observation @0 :Seen.Observation; refusal @1 :Words.Refusal; } }

struct ExecuteResult { union { outcome @0 :Outcome; refusal @1 :Words.Refusal; } }

struct Outcome {
  receipt @0 :Signed;
  replayed @1 :Bool;          # Recorded earlier; nothing was dispatched by this call.
  fresh :union {
    none @2 :Void;                      # Replayed, unknown, or not performed: observe when you need to.
    observation @3 :Seen.Observation;   # The same window after the action, with its new frame.
    refusal @4 :Words.Refusal;          # Why the window could not be read again.
  }
}

interface Progress {
  reached @0 (stage :Words.Stage) -> ();
  # Told, never waited for: a slow or dead listener changes nothing.
}
