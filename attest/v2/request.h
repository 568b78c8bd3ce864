// A request of protocol v2 as a value: what one may say, and the bytes that are hashed and signed.
//
// Hosts and plugins in the field speak this protocol. Its reading here is narrower than theirs in
// four ways: an unknown key is refused wherever it stands, numbers are integers (also inside
// `expected`), text has no NUL, and no file is looked at. Everything that is accepted hashes to
// what the other implementations make of it.
//
// The hashes of this room are v2's own: SHA-256, unblinded. They stay in memory; nothing here
// writes, and no ledger, log or error text may contain one.
#pragma once

#include "attest/keyring.h"
#include "attest/v2/json.h"
#include "ipc/schema/action.capnp.h"

namespace praefectus::attest::v2 {

// The one version of everything that has a version here.
constexpr uint16_t VERSION = 2;

// ---- What is acted on.

struct NoTarget {};

// A point of the whole desktop, of which a host has taken a snapshot. Hashes are 64 bytes of text
// that only the snapshot's maker understands.
struct Coordinates {
  int64_t x = 0, y = 0;
  kj::String displayId;            // 1 to 256 bytes.
  kj::String displayGeometryHash;  // 64 bytes.
  kj::String snapshotId;           // 1 to 256 bytes without control characters.
  kj::String snapshotContentHash;  // 64 bytes.
};

// An element of one observation. Hashes are 64 lower-case hexadecimal digits.
struct Fence {
  kj::String observationId;
  uint64_t generation = 0;  // At least 1.
  kj::String provenanceHash, elementId, fingerprintHash;
};

using Target = kj::OneOf<NoTarget, Coordinates, Fence>;

// ---- What is to be done. Sizes of text are in bytes.

struct Invoke {};
struct Click {
  wire::Button button{};
  uint32_t count = 0;  // 1 to 3.
  bool allowCoordinateFallback = false;
};
struct TypeText {
  kj::String text;  // 1 to 16384.
  bool clear = false, pressReturn = false;
  kj::Maybe<uint32_t> delayMs;  // At most 1000.
};
struct Press {
  kj::String key;      // 1 to 64.
  uint32_t count = 0;  // 1 to 100.
  kj::Maybe<uint32_t> delayMs;
};
struct Paste {
  kj::String text;  // 1 to 16384.
};
struct Hotkey {
  kj::Vector<kj::String> keys;  // 1 to 8, each of 1 to 64.
};
struct Scroll {
  wire::Direction direction{};
  uint32_t amount = 0;  // 1 to 100.
};
struct Move {};
struct Drag {
  Coordinates to;
  wire::Button button{};
};
struct SelectText {
  uint32_t start = 0, length = 0;  // Together at most 1048576.
};
enum class SecondaryName : uint8_t {
  SHOW_MENU,
  SHOW_DEFAULT_UI,
  SHOW_ALTERNATE_UI,
  INCREMENT,
  DECREMENT,
  CONFIRM,
  CANCEL,
  PICK
};
struct SecondaryAction {
  SecondaryName name{};
};
struct SetValue {
  kj::String value;  // 0 to 16384.
};
struct Screenshot {
  kj::String path;  // Absolute, ends in ".png", at most 4096.
};
struct Application {
  wire::ControlApplication::Operation operation{};
  kj::String name;  // 1 to 256.
};
struct Window {
  wire::ControlWindow::Operation operation{};
  kj::String app;               // 1 to 256.
  kj::Maybe<kj::String> title;  // 1 to 1024; always there unless the operation is focus.
};
struct Open {
  kj::String target;          // 1 to 16384.
  kj::Maybe<kj::String> app;  // 1 to 256.
  bool noFocus = false;
};
struct ClipboardWrite {
  kj::String text;  // 0 to 1 MiB.
};

using Action =
    kj::OneOf<Invoke, Click, TypeText, Press, Paste, Hotkey, Scroll, Move, Drag, SelectText,
              SecondaryAction, SetValue, Screenshot, Application, Window, Open, ClipboardWrite>;

// ---- What is to be proven of it.

struct NoVerification {};
struct SnapshotChanged {};
struct TargetState {
  Json expected;  // At most 4096 values, 32 deep, 64 KiB of keys and scalars.
};
struct TargetValueHash {
  kj::String sha256;  // Of the value to be set.
};

using Verification = kj::OneOf<NoVerification, SnapshotChanged, TargetState, TargetValueHash>;

// ---- Who allows it.

// Its names are checked when it is verified, after it is known to belong to the request.
struct AuthorityGrant {
  kj::String issuer, keyId, operation, subject, session;
  wire::Safety risk{};
  int64_t expiresMs = 0;  // Unix milliseconds, at least 1.
  kj::String policyGeneration, actionHash;
};

struct SignedAuthority {
  AuthorityGrant grant;
  Signature signature{};
};

struct ActionRequest {
  kj::String operation, subject, session;  // Identifiers, as `isName` says.
  SignedAuthority authority;
  Action action;
  Target target;
  wire::Mode mode{};
  int64_t deadlineMs = 0;  // Unix milliseconds, at least 1.
  Verification verification;
  wire::Safety safety{};
};

// 1 to 256 of A-Z a-z 0-9 - _ : (no full stop, unlike isIdentifier).
bool isName(kj::StringPtr text);

// Reads one request of at most 8 MiB. Optional members may be absent or null.
// Refuses: UNSUPPORTED_VERSION; UNKNOWN_FIELD for an unknown key, kind or word; UNSUPPORTED_NUMBER;
// MALFORMED for the rest: not JSON, something missing, a bound, or a target or verification that
// does not suit the kind of action.
Result<ActionRequest> readRequest(kj::ArrayPtr<const char> text);

// What is hashed: the canonical array of the four versions, subject, session, action, target, mode,
// deadline, verification and safety. The operation and the authority are not in it.
kj::String canonicalAction(const ActionRequest& request);
kj::String actionHash(const ActionRequest& request);

// What is signed: the canonical object of the grant's ten members.
kj::String canonicalGrant(const AuthorityGrant& grant);

}  // namespace praefectus::attest::v2
