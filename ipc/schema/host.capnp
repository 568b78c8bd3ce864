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
  receiptKey @3 :Data;           # Ed25519 public key that signs now, 32 bytes.
  subject @4 :Text;              # Who the kernel says the host is: "uid:0".
  acting @5 :Bool;
  # Whether no other supervisor acted on this desktop at this moment. The first mutation takes it for
  # good; while another one has it, mutations are desktopBusy.
  recovered @6 :UInt32;          # Operations found open at this start and settled as outcomeUnknown.
  clockTrusted @7 :Bool;         # False: mutations are clockUntrusted until the clock agrees again.
  head @8 :Head;                 # Where the ledger stands.
  formerKeys @9 :List(Data);     # Receipt keys before that one, oldest first: old receipts have theirs.
  policies @10 :List(Policy);    # The present policy generation of each pinned issuer.
}

struct Policy {
  issuer @0 :Text;
  generation @1 :UInt64;         # What leases and grants have to state.
}

struct Head {
  # One place of the ledger's chain and the link there. A host that keeps the last one it saw finds out
  # when a ledger was set back.
  sequence @0 :UInt64;
  link @1 :Data;                 # 32 bytes.
}

struct HostRefusal {
  # Why nothing was done, in words and as proof.
  refusal @0 :Words.Refusal;
  proof @1 :Signed;              # A signed Refused. Empty when there is no ledger that could sign.
}

interface Supervisor {
  hello @0 (protocol :UInt16, seen :Head) -> (result :HelloResult);
  # First call, and only once. Any other call before it is refused as unsupportedVersion. `seen` is the last head that
  # the host knows of this ledger, or empty (sequence 0); a ledger that does not contain it is
  # ledgerRolledBack, and every later call is refused as that.

  open @1 (session :Text) -> (result :DoneResult, session :Session);
  # Opens a session under a host-chosen id. At most 16 are live; the rest are `busy`. One that is live
  # cannot be opened again: operationConflict. The next session of a name goes on where the last one was:
  # turns that had begun stay begun, and signed refusals are counted on.

  status @2 (operation :Text) -> (result :StatusResult);
  # What the ledger knows of an operation. Reads only.

  stop @3 (session :Text, turn :Text) -> ();
  # The person's stop of one turn, begun or not. What was not sent yet ends unsent, nothing more is done
  # in this turn, and it cannot begin any more: userStopped. What was sent goes on and ends as
  # outcomeUnknown. Another turn may begin. Needs no authority and no session.

  revoke @4 (revocation :Signed) -> (result :DoneResult);
  # Takes back leases and grants. Durable when it is answered; what has not been sent by then is not. At
  # most 65536 are kept; the next is `busy`.
}

struct HelloResult { union { info @0 :SupervisorInfo; refusal @1 :HostRefusal; } }
struct DoneResult { union { done @0 :Void; refusal @1 :HostRefusal; } }

struct StatusResult {
  union {
    unknown @0 :Void;       # Never claimed here.
    open @1 :Void;          # Claimed, not ended.
    ended @2 :Signed;       # Its receipt.
    refusal @3 :HostRefusal;
  }
}

struct Submission {
  grant @0 :Signed;
  action @1 :Data;  # The canonical bytes of an Action, whose hash the grant names.
}

interface Session {
  # Requests of one session are served in order; sessions do not wait for each other.

  capabilities @0 () -> (result :CapabilitiesResult);
  # Needs no turn.

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

  beginTurn @6 (turn :Text) -> (result :DoneResult);
  # Ends the turn before, if there is one, and begins this one. A turn begins once for
  # each session name while this supervisor lives: operationConflict. Without a turn nothing is read or done: noActiveTurn.

  endTurn @7 () -> ();
  # Ends the turn and its leases. Operations in flight are withdrawn as by cancel. Idempotent.

  openLease @8 (lease :Signed) -> (result :DoneResult);
  # Opens what the lease allows, until it expires, its frame or turn ends, it is revoked, or the helper
  # that it was opened under ends. At most 64 are open in a session. One whose time begins before this
  # supervisor did is policyDenied: a restart brings none back.

  capture @9 (submission :Submission) -> (result :CapturedResult, picture :Seen.Picture);
  # A screenshot, or a zoom into the session's frame.
}

struct CapabilitiesResult { union { helper @0 :HelperStatus; refusal @1 :HostRefusal; } }
struct DesktopResult { union { desktop @0 :Seen.Desktop; refusal @1 :HostRefusal; } }
struct SeenResult { union { observation @0 :Seen.Observation; refusal @1 :HostRefusal; } }

struct CapturedResult { union { picture @0 :Seen.PictureInfo; refusal @1 :HostRefusal; } }

struct ExecuteResult { union { outcome @0 :Outcome; refusal @1 :HostRefusal; } }

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
