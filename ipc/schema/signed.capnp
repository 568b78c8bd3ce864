@0xc83e5d2b90f1a746;
# Everything that carries a signature. A signed body is canonical Cap'n Proto (one segment, no segment
# table); the signature is Ed25519 over `label ‖ body`, the label naming the kind of body so that a
# signature over one can never pass for another:
#
#   "praefectus/lease/v1\0"       Lease           issuer key       made by the host
#   "praefectus/grant/v1\0"       Grant           issuer key       made by the host
#   "praefectus/task-grant/v1\0"  TaskGrant       issuer key       made by the host
#   "praefectus/revocation/v1\0"  Revocation      issuer key       made by the host
#   "praefectus/manifest/v1\0"    HelperManifest  publisher key    made at build time
#   "praefectus/receipt/v1\0"     Receipt         receipt key      made by the supervisor
#   "praefectus/refusal/v1\0"     Refused         receipt key      made by the supervisor
#   "praefectus/event/v1\0"       LedgerEvent     receipt key      made by the ledger
#
# The signature is checked over the bytes as received, before they are parsed. The signature
# is never checked over an encoding of ours. Digests are BLAKE2b-256; the hash of an action is that of
# "praefectus/action/v1\0" ‖ canonical Action.
#
# What the host's bodies have in common: `audience` is the ledger that may serve them, in its present
# incarnation; `subject` is the peer they are for, "uid:" and the connected peer's user id;
# `policyGeneration` must equal the issuer's present one, which begins at 1 and is raised by a
# Revocation; times are Unix milliseconds, `notBefore` inclusive, `expires` exclusive. Identifiers are 1
# to 256 of A-Z a-z 0-9 . _ : -

using Cxx = import "/capnp/c++.capnp";
using Words = import "words.capnp";
$Cxx.namespace("praefectus::wire");

struct Signed {
  # Issuer and key id say which pinned key to try. They must equal the body's own.
  body @0 :Data;
  issuer @1 :Text;
  keyId @2 :Text;
  signature @3 :Data;  # 64 bytes.
}

struct Lease {
  # Opens classes of actions on one target for one turn. A grant is served only under an open lease
  # that covers it: the lease is what a person said yes to, the grant is one step of it.
  version @0 :UInt16;             # protocolVersion
  issuer @1 :Text;
  keyId @2 :Text;
  audience @3 :Words.LedgerId;
  subject @4 :Text;
  session @5 :Text;
  turn @6 :Text;
  lease @7 :Text;                 # Its id; receipts name it.
  policyGeneration @8 :UInt64;
  classes @9 :List(Words.ActionClass);
  # 1 to 6, in order, each once. A class that is not listed is not open.
  target @10 :Words.WindowRef;
  # One window; with `window` 0, any window of that process; all zero, the whole desktop.
  frame @11 :Data;
  # 16 bytes: ends with this frame, as soon as another is taken or an action spends it. Or empty.
  notBefore @12 :Int64;
  expires @13 :Int64;
  # With a mutation among its classes at most 60 s after notBefore, else at most 300 s.
}

struct Grant {
  # A host's permission for one operation. Every field is compared; none is a hint.
  version @0 :UInt16;             # protocolVersion
  issuer @1 :Text;
  keyId @2 :Text;
  audience @3 :Words.LedgerId;
  subject @4 :Text;
  session @5 :Text;
  turn @6 :Text;
  operation @7 :Text;             # Operation id; one id is one operation for the life of the ledger.
  policyGeneration @8 :UInt64;
  actionHash @9 :Data;            # 32 bytes.
  actionClass @10 :Words.ActionClass;
  risk @11 :Words.Safety;         # The action's own `safety`.
  target @12 :Words.WindowRef;    # The window acted on; all zero for the whole desktop.
  frame @13 :Data;                # The frame that the action refers to, 16 bytes; else empty.
  rights @14 :Words.Rights;
  notBefore @15 :Int64;
  expires @16 :Int64;             # At most 24 hours after notBefore.
  uses @17 :UInt32;
  # Mutations: exactly 1. Reads, which change nothing and are not recorded: 1 to 1000, counted in memory.
}

struct TaskGrant {
  # A host's permission for one task: a plan of steps in one folder. Each step is an operation whose
  # authority is this grant and its index.
  version @0 :UInt16;
  issuer @1 :Text;
  keyId @2 :Text;
  audience @3 :Words.LedgerId;
  subject @4 :Text;
  session @5 :Text;
  turn @6 :Text;
  task @7 :Text;                  # Its id, as a grant's operation.
  policyGeneration @8 :UInt64;
  rootDevice @9 :UInt64;          # The folder, by device and inode (stat(2)).
  rootInode @10 :UInt64;
  planHash @11 :Data;             # 32 bytes.
  steps @12 :List(Data);          # Each step's action hash, 32 bytes; 1 to 1000.
  undo @13 :Bool;                 # The steps undo those of an earlier task.
  risk @14 :Words.Safety;
  rights @15 :Words.Rights;
  notBefore @16 :Int64;
  expires @17 :Int64;             # At most 24 hours after notBefore.
}

struct Revocation {
  # Takes back what its issuer has signed, from the moment it is durable. It is kept, so that a restart
  # does not bring back what was revoked.
  version @0 :UInt16;
  issuer @1 :Text;
  keyId @2 :Text;
  audience @3 :Words.LedgerId;
  subject @4 :Text;
  revocation @5 :Text;            # Its id. The same one again changes nothing.
  issuedAt @6 :Int64;
  union {
    operation @7 :Text;           # The grant for this operation or task.
    lease @8 :Text;               # This lease.
    turn @9 :Turn;                # Every lease and grant of this turn.
    generation @10 :UInt64;
    # The policy generation that is valid from now on, higher than before: voids all of the issuer's
    # leases and grants that state another one.
  }
  struct Turn { session @0 :Text; turn @1 :Text; }
}

struct HelperManifest {
  # What a helper image is. The expected digest comes from here and from nowhere else.
  version @0 :UInt16;
  issuer @1 :Text;                # The publisher.
  keyId @2 :Text;
  name @3 :Text;
  release @4 :Text;
  role @5 :Words.Role;
  platform @6 :Text;              # "linux-x86_64"
  protocol @7 :UInt16;
  digest @8 :Data;                # BLAKE2b-256 of the file, 32 bytes.
  size @9 :UInt64;                # Bytes.
}

struct HelperIdentity {
  name @0 :Text;
  release @1 :Text;
  digest @2 :Data;
  generation @3 :UInt64;  # Counts the helpers this supervisor has started; 0 when none was involved.
}

struct Evidence {
  verdict @0 :Words.Verdict;
  method @1 :Words.Method;
  source @2 :Words.Source;
  unitsDone @3 :UInt32;
  unitsAsked @4 :UInt32;
}

struct Receipt {
  # What happened to one operation, signed by the ledger that remembers it. Holds hashes and words
  # only: no text, title, label or coordinate.
  version @0 :UInt16;
  issuer @1 :Text;                  # "ledger"
  keyId @2 :Text;                   # The receipt key's id: first 16 hex digits of its BLAKE2b-256.
  ledger @3 :Words.LedgerId;

  operation @4 :Text;               # What was asked.
  actionHash @5 :Data;
  actionClass @6 :Words.ActionClass;
  kind @7 :Text;                    # "invoke", "set_value"
  mode @8 :Words.Mode;
  risk @9 :Words.Safety;
  proof @10 :Words.Proof;
  rights @11 :Words.Rights;

  grantIssuer @12 :Text;            # By whose authority.
  grantKeyId @13 :Text;
  grantHash @14 :Data;              # BLAKE2b-256 of the grant's body.
  policyGeneration @15 :UInt64;
  lease @16 :Text;                  # The lease that covered it.
  subject @17 :Text;
  session @18 :Text;
  turn @19 :Text;

  helper @20 :HelperIdentity;       # By which helper, and how.
  route @21 :Words.Route;

  terminal @22 :Words.Terminal;     # With what end.
  effect @23 :Words.Effect;
  hasRefusal @24 :Bool;
  refusal @25 :Words.RefusalCode;   # Meaningful when hasRefusal: why it was rejected or failed.
  retrySafe @26 :Bool;              # Whether asking again under a new id cannot do it twice.
  evidence @27 :Evidence;
  context @28 :Words.ContextState;
  warnings @29 :List(Words.Warning);

  claimedAt @30 :Int64;             # Unix milliseconds; 0 when it was never claimed.
  settledAt @31 :Int64;
  sequence @32 :UInt64;             # Position in the ledger's chain, from 1.
  previous @33 :Data;               # The chain link before this one, 32 bytes.
}

struct Refused {
  # What a supervisor says of one request that it did not carry out: signed at once, kept by nobody but
  # the host. It speaks of this request, and of nothing that was asked before or after.
  version @0 :UInt16;
  issuer @1 :Text;                  # "ledger"
  keyId @2 :Text;
  ledger @3 :Words.LedgerId;
  subject @4 :Text;
  session @5 :Text;                 # Empty when it concerns no session.
  sequence @6 :UInt64;              # Counts the refusals of this session in this supervisor, from 1.
  request @7 :Data;
  # Which request, as it was received: BLAKE2b-256("praefectus/request/v1\0" ‖ grant's body ‖ its
  # signature ‖ action), 32 bytes. Empty for a call that submits nothing.
  operation @8 :Text;
  # Empty as long as the request was not proven to be its issuer's: whoever may name an operation then.
  code @9 :Words.RefusalCode;
  dispatched @10 :Bool;
  # False: this request dispatched nothing. True: that is not known, since the very same request may have
  # come before; so with outcomeUnknown, ledgerPoisoned, operationArchived and recordDamaged.
  at @11 :Int64;
}

struct LedgerEvent {
  # What happened to the ledger itself. Takes a place in its chain like every claim and ending.
  version @0 :UInt16;
  issuer @1 :Text;                  # "ledger"
  keyId @2 :Text;                   # The key that was valid before this event.
  ledger @3 :Words.LedgerId;        # The incarnation that is valid from this event on.
  sequence @4 :UInt64;
  previous @5 :Data;
  at @6 :Int64;

  union {
    created @7 :Place;              # Always at place 1.
    adopted @8 :Place;              # A person said that this is the ledger now. Voids earlier grants.
    started @9 :Start;              # A supervisor opened it.
    clockAccepted @10 :Start;       # A person said that the wall clock is right.
    keyRotated @11 :Data;           # The receipt public key that is valid after this event, 32 bytes.
    revoked @12 :Signed;            # What an issuer took back.
    archived @13 :Archive;
    imported @14 :Import;
    quarantined @15 :UInt64;        # The place of a claim whose record is damaged.
  }

  struct Place {
    device @0 :UInt64;              # Of the database file (stat(2)).
    inode @1 :UInt64;
    machine @2 :Data;               # BLAKE2b-256, keyed with the ledger's id, of /etc/machine-id; 32 bytes.
  }
  struct Start {
    wallMs @0 :Int64;
    bootMs @1 :UInt64;              # CLOCK_BOOTTIME at the same moment.
    boot @2 :Data;                  # As `machine`, of /proc/sys/kernel/random/boot_id.
  }
  struct Archive {
    through @0 :UInt64;             # The last place that was moved.
    link @1 :Data;                  # Its link, 32 bytes: the chain goes on from here.
    operations @2 :UInt64;
    digest @3 :Data;                # BLAKE2b-256 of the archive file.
  }
  struct Import {
    operations @0 :UInt64;          # Ids taken over; they are never served here.
    source @1 :Text;                # "protocol-v2"
  }
}
