@0xc83e5d2b90f1a746;
# Everything that carries a signature. A signed body is canonical Cap'n Proto (one segment, no segment
# table); the signature is Ed25519 over `label ‖ body`, the label naming the kind of body so that a
# signature over one can never pass for another:
#
#   "praefectus/grant/v1\0"      Grant           issuer key       made by the host
#   "praefectus/manifest/v1\0"   HelperManifest  publisher key    made at build time
#   "praefectus/receipt/v1\0"    Receipt         receipt key      made by the supervisor
#
# The signature is checked over the bytes as received, before they are parsed. They are never encoded
# again to be checked. Digests are BLAKE2b-256; the hash of an action is that of
# "praefectus/action/v1\0" ‖ canonical Action.

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

struct Grant {
  # A host's permission for one operation. Every field is compared; none is a hint.
  version @0 :UInt16;             # protocolVersion
  issuer @1 :Text;                # Identifiers: 1 to 256 of A-Z a-z 0-9 . _ : -
  keyId @2 :Text;
  audience @3 :Words.LedgerId;    # The ledger that may serve it, in its present incarnation.
  subject @4 :Text;               # The peer it is for: "uid:" and the connected peer's user id.
  session @5 :Text;
  turn @6 :Text;
  operation @7 :Text;             # Operation id; one id is one operation for the life of the ledger.
  actionHash @8 :Data;            # 32 bytes.
  actionClass @9 :Words.ActionClass;
  target @10 :Words.WindowRef;    # The window acted on; all zero for a read of the whole desktop.
  notBefore @11 :Int64;           # Unix milliseconds, inclusive.
  expires @12 :Int64;             # Unix milliseconds, exclusive; at most 24 hours after notBefore.
  uses @13 :UInt32;
  # Mutations: exactly 1. Reads, which change nothing and are not recorded: 1 to 1000, counted in memory.
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

  operation @4 :Text;
  actionHash @5 :Data;
  actionClass @6 :Words.ActionClass;
  kind @7 :Text;                    # "invoke", "set_value"

  grantIssuer @8 :Text;             # By whose authority.
  grantKeyId @9 :Text;
  grantHash @10 :Data;              # BLAKE2b-256 of the grant's body.
  subject @11 :Text;
  session @12 :Text;
  turn @13 :Text;

  helper @14 :HelperIdentity;
  route @15 :Words.Route;

  terminal @16 :Words.Terminal;
  effect @17 :Words.Effect;
  hasRefusal @18 :Bool;
  refusal @19 :Words.RefusalCode;   # Meaningful when hasRefusal: why it was rejected or failed.
  retrySafe @20 :Bool;              # Whether asking again under a new id cannot do it twice.
  evidence @21 :Evidence;
  context @22 :Words.ContextState;
  warnings @23 :List(Words.Warning);

  claimedAt @24 :Int64;             # Unix milliseconds; 0 when it was never claimed.
  settledAt @25 :Int64;
  sequence @26 :UInt64;             # Position in the ledger's chain, from 1.
  previous @27 :Data;               # The chain link before this one, 32 bytes.
}
