#include "attest/v2/request.h"

#include "attest/v2/object.h"

#include <kj/encoding.h>

#include <algorithm>
#include <limits>

namespace praefectus::attest::v2 {
namespace {

// ---- Bounds that v2 fixes, beside those that stand at a member below.

constexpr size_t TEXT_BYTES = 16'384;
constexpr size_t CLIPBOARD_BYTES = 1u << 20;
constexpr uint32_t DELAY_MS = 1000;
constexpr uint64_t SELECTION = 1'048'576;

constexpr size_t EXPECTED_NODES = 4096;
constexpr size_t EXPECTED_DEPTH = 32;  // Arrays and objects around a value.
constexpr size_t EXPECTED_BYTES = 64u << 10;

// The request and its verification are two objects around `expected`; the innermost value of
// `expected` may be one more. The request has far fewer than 128 values of its own. A clipboard
// text of which every byte is escaped takes six times its size.
constexpr JsonLimits REQUEST_LIMITS = {8u << 20, 2 + EXPECTED_DEPTH + 1, EXPECTED_NODES + 128};

// ---- Words, in the order of their enumerations and variants.

constexpr Words<3> BUTTONS = {"left"_kj, "right"_kj, "middle"_kj};
constexpr Words<4> DIRECTIONS = {"up"_kj, "down"_kj, "left"_kj, "right"_kj};
constexpr Words<2> MODES = {"interactive"_kj, "background_only"_kj};
constexpr Words<3> SAFETIES = {"reversible"_kj, "external"_kj, "destructive"_kj};
constexpr Words<3> APPLICATION_OPERATIONS = {"launch"_kj, "switch"_kj, "quit"_kj};
constexpr Words<3> WINDOW_OPERATIONS = {"focus"_kj, "close"_kj, "minimize"_kj};
constexpr Words<8> SECONDARY_NAMES = {
    "AXShowMenu"_kj,  "AXShowDefaultUI"_kj, "AXShowAlternateUI"_kj, "AXIncrement"_kj,
    "AXDecrement"_kj, "AXConfirm"_kj,       "AXCancel"_kj,          "AXPick"_kj};

constexpr Words<3> TARGETS = {"none"_kj, "coordinates"_kj, "element"_kj};
constexpr Words<4> VERIFICATIONS = {"none"_kj, "snapshot_changed"_kj, "target_state"_kj,
                                    "target_value_hash"_kj};
constexpr Words<17> ACTIONS = {"invoke"_kj,
                               "click"_kj,
                               "type_text"_kj,
                               "press"_kj,
                               "paste"_kj,
                               "hotkey"_kj,
                               "scroll"_kj,
                               "move"_kj,
                               "drag"_kj,
                               "select_text"_kj,
                               "perform_secondary_action"_kj,
                               "set_value"_kj,
                               "screenshot"_kj,
                               "application"_kj,
                               "window"_kj,
                               "open"_kj,
                               "clipboard_write"_kj};

kj::ArrayPtr<const kj::StringPtr> kindsOf(const Target*) { return TARGETS; }
kj::ArrayPtr<const kj::StringPtr> kindsOf(const Verification*) { return VERIFICATIONS; }
kj::ArrayPtr<const kj::StringPtr> kindsOf(const Action*) { return ACTIONS; }

// The targets that each kind of action may have, in the order of ACTIONS.
enum Legal : unsigned { NOTHING = 1, POINT = 2, ELEMENT = 4 };
constexpr unsigned LEGAL_TARGETS[] = {
    ELEMENT,          // invoke
    ELEMENT | POINT,  // click
    ELEMENT,          // type_text
    ELEMENT,          // press
    ELEMENT,          // paste
    ELEMENT,          // hotkey
    ELEMENT,          // scroll
    ELEMENT | POINT,  // move
    POINT,            // drag
    ELEMENT,          // select_text
    ELEMENT,          // perform_secondary_action
    ELEMENT,          // set_value
    NOTHING,          // screenshot
    NOTHING,          // application
    NOTHING,          // window
    NOTHING,          // open
    NOTHING,          // clipboard_write
};
static_assert(std::size(LEGAL_TARGETS) == std::size(ACTIONS));

// ---- Members that are more than a text, a number or a word.

struct Extent {
  size_t nodes = 0, depth = 0, bytes = 0;
};

void measure(const Json& json, size_t depth, Extent& extent) {
  ++extent.nodes;
  extent.depth = kj::max(extent.depth, depth);
  if (json.value.is<Json::Array>()) {
    for (auto& item : json.value.get<Json::Array>()) measure(item, depth + 1, extent);
  } else if (json.value.is<Json::Object>()) {
    for (auto& member : json.value.get<Json::Object>()) {
      extent.bytes += member.key.size();
      measure(member.value, depth + 1, extent);
    }
  } else if (json.value.is<kj::String>()) {
    extent.bytes += json.value.get<kj::String>().size();
  } else {
    extent.bytes += canonical(json).size();
  }
}

void readExpected(Reader& v, Json& to) {
  auto json = v.take("expected");
  if (json == nullptr) return v.refuse("The expected state is missing.");
  Extent extent;
  measure(*json, 0, extent);
  if (extent.nodes > EXPECTED_NODES || extent.depth > EXPECTED_DEPTH ||
      extent.bytes > EXPECTED_BYTES) {
    return v.refuse("The expected state is too large.");
  }
  to = kj::mv(*json);
}

void readSignature(Reader& v, Signature& to) {
  kj::String digits;
  v.text("signature", digits, 2 * to.size(), 2 * to.size());
  auto decoded = kj::decodeHex(digits);
  if (decoded.hadErrors || decoded.size() != to.size()) {
    return v.refuse("A signature is not 128 hexadecimal digits.");
  }
  std::copy(decoded.begin(), decoded.end(), to.begin());
}

// U+0000 to U+001F, and U+007F to U+009F, of which the upper ones are two bytes of UTF-8.
bool hasControlCharacter(kj::StringPtr text) {
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<kj::byte>(text[i]), next = static_cast<kj::byte>(text.cStr()[i + 1]);
    if (byte < 0x20 || byte == 0x7F || (byte == 0xC2 && 0x80 <= next && next <= 0x9F)) return true;
  }
  return false;
}

// ---- The members of every struct.

// Objects that say by `kind` which of several structs they are.
template <typename Variants>
struct Tagged;

template <typename Variants>
void readTagged(Reader& v, kj::StringPtr name, Variants& to) {
  v.members(name, [&](Reader& inner) { Tagged<Variants>::read(inner, to); });
}

template <typename V>
void visit(V&, Visited<V, NoTarget>&) {}

template <typename V>
void visit(V& v, Visited<V, Coordinates>& it) {
  constexpr auto LEAST = std::numeric_limits<int64_t>::min();
  constexpr auto MOST = std::numeric_limits<int64_t>::max();
  v.number("x", it.x, LEAST, MOST);
  v.number("y", it.y, LEAST, MOST);
  v.text("display_id", it.displayId, 1, NAME_BYTES);
  v.text("display_geometry_hash", it.displayGeometryHash, HASH_DIGITS, HASH_DIGITS);
  v.text("snapshot_id", it.snapshotId, 1, NAME_BYTES);
  v.text("snapshot_content_hash", it.snapshotContentHash, HASH_DIGITS, HASH_DIGITS);
  if constexpr (V::READS) {
    if (hasControlCharacter(it.snapshotId)) {
      v.refuse("A snapshot's id has a control character.");
    }
  }
}

template <typename V>
void visitFence(V& v, Visited<V, Fence>& it) {
  v.hash("observation_id", it.observationId);
  v.number("generation", it.generation, 1, std::numeric_limits<uint64_t>::max());
  v.hash("provenance_hash", it.provenanceHash);
  v.hash("element_id", it.elementId);
  v.hash("fingerprint_hash", it.fingerprintHash);
}

// v2 puts the five members of a fence into an object of their own.
template <typename V>
void visit(V& v, Visited<V, Fence>& it) {
  v.members("target", [&](auto& inner) { visitFence(inner, it); });
}

template <typename V>
void visit(V&, Visited<V, Invoke>&) {}

template <typename V>
void visit(V& v, Visited<V, Click>& it) {
  v.word("button", it.button, BUTTONS);
  v.number("count", it.count, 1, 3);
  v.flag("allow_coordinate_fallback", it.allowCoordinateFallback);
}

template <typename V>
void visit(V& v, Visited<V, TypeText>& it) {
  v.text("text", it.text, 1, TEXT_BYTES);
  v.flag("clear", it.clear);
  v.flag("press_return", it.pressReturn);
  v.maybeNumber("delay_ms", it.delayMs, 0, DELAY_MS);
}

template <typename V>
void visit(V& v, Visited<V, Press>& it) {
  v.text("key", it.key, 1, 64);
  v.number("count", it.count, 1, 100);
  v.maybeNumber("delay_ms", it.delayMs, 0, DELAY_MS);
}

template <typename V>
void visit(V& v, Visited<V, Paste>& it) {
  v.text("text", it.text, 1, TEXT_BYTES);
}

template <typename V>
void visit(V& v, Visited<V, Hotkey>& it) {
  v.texts("keys", it.keys, 1, 8, 1, 64);
}

template <typename V>
void visit(V& v, Visited<V, Scroll>& it) {
  v.word("direction", it.direction, DIRECTIONS);
  v.number("amount", it.amount, 1, 100);
}

template <typename V>
void visit(V&, Visited<V, Move>&) {}

// Where a drag ends is a whole target, of which only a point will do.
void visitEnd(Reader& v, Coordinates& to) {
  Target target;
  readTagged(v, "to", target);
  if (!target.is<Coordinates>()) return v.refuse("A drag does not end at a point.");
  to = kj::mv(target.get<Coordinates>());
}

void visitEnd(Writer& v, const Coordinates& to) {
  v.members("to", [&](Writer& inner) {
    inner.add("kind", canonicalText(TARGETS[1]));
    visit(inner, to);
  });
}

template <typename V>
void visit(V& v, Visited<V, Drag>& it) {
  visitEnd(v, it.to);
  v.word("button", it.button, BUTTONS);
}

template <typename V>
void visit(V& v, Visited<V, SelectText>& it) {
  constexpr auto MOST = std::numeric_limits<uint32_t>::max();
  v.number("start", it.start, 0, MOST);
  v.number("length", it.length, 0, MOST);
  if constexpr (V::READS) {
    if (uint64_t{it.start} + it.length > SELECTION) {
      v.refuse("The selection ends too far from the text's beginning.");
    }
  }
}

template <typename V>
void visit(V& v, Visited<V, SecondaryAction>& it) {
  v.word("name", it.name, SECONDARY_NAMES);
}

template <typename V>
void visit(V& v, Visited<V, SetValue>& it) {
  v.text("value", it.value, 0, TEXT_BYTES);
}

template <typename V>
void visit(V& v, Visited<V, Screenshot>& it) {
  v.text("path", it.path, 1, 4096);
  if constexpr (V::READS) {
    if (!it.path.startsWith("/") || !it.path.endsWith(".png")) {
      v.refuse("A picture's path is not absolute or does not end in .png.");
    }
  }
}

template <typename V>
void visit(V& v, Visited<V, Application>& it) {
  v.word("operation", it.operation, APPLICATION_OPERATIONS);
  v.text("name", it.name, 1, 256);
}

template <typename V>
void visit(V& v, Visited<V, Window>& it) {
  v.word("operation", it.operation, WINDOW_OPERATIONS);
  v.text("app", it.app, 1, 256);
  v.maybeText("title", it.title, 1, 1024);
  if constexpr (V::READS) {
    if (it.operation != wire::ControlWindow::Operation::FOCUS && it.title == nullptr) {
      v.refuse("Only focus may leave the window's title out.");
    }
  }
}

template <typename V>
void visit(V& v, Visited<V, Open>& it) {
  v.text("target", it.target, 1, TEXT_BYTES);
  v.maybeText("app", it.app, 1, 256);
  v.flag("no_focus", it.noFocus);
}

template <typename V>
void visit(V& v, Visited<V, ClipboardWrite>& it) {
  v.text("text", it.text, 0, CLIPBOARD_BYTES);
}

template <typename V>
void visit(V&, Visited<V, NoVerification>&) {}

template <typename V>
void visit(V&, Visited<V, SnapshotChanged>&) {}

template <typename V>
void visit(V& v, Visited<V, TargetState>& it) {
  if constexpr (V::READS) {
    readExpected(v, it.expected);
  } else {
    v.add("expected", canonical(it.expected));
  }
}

template <typename V>
void visit(V& v, Visited<V, TargetValueHash>& it) {
  v.hash("sha256", it.sha256);
}

template <typename V>
void visit(V& v, Visited<V, AuthorityGrant>& it) {
  v.version("protocol_version");
  v.text("issuer", it.issuer, 0, NAME_BYTES);
  v.text("key_id", it.keyId, 0, NAME_BYTES);
  v.text("operation_id", it.operation, 0, NAME_BYTES);
  v.text("subject", it.subject, 0, NAME_BYTES);
  v.text("session_id", it.session, 0, NAME_BYTES);
  v.word("risk", it.risk, SAFETIES);
  v.number("expires_at_ms", it.expiresMs, 1, std::numeric_limits<int64_t>::max());
  v.text("policy_generation", it.policyGeneration, 0, NAME_BYTES);
  v.text("action_hash", it.actionHash, 0, NAME_BYTES);
}

// Never written: v2 hashes a request as an array, and signs the grant alone.
void visit(Reader& v, SignedAuthority& it) {
  v.members("grant", [&](Reader& inner) { visit(inner, it.grant); });
  readSignature(v, it.signature);
}

void visit(Reader& v, ActionRequest& it) {
  // Versions first: what follows may be a later version's.
  v.version("protocol_version");
  v.version("action_version");
  v.version("target_version");
  v.version("verification_version");
  v.name("operation_id", it.operation);
  v.name("subject", it.subject);
  v.name("session_id", it.session);
  v.members("authority", [&](Reader& inner) { visit(inner, it.authority); });
  readTagged(v, "action", it.action);
  readTagged(v, "target", it.target);
  v.word("interaction_mode", it.mode, MODES);
  v.number("deadline_at_ms", it.deadlineMs, 1, std::numeric_limits<int64_t>::max());
  readTagged(v, "verification", it.verification);
  v.word("safety", it.safety, SAFETIES);
}

template <typename... Ts>
struct Tagged<kj::OneOf<Ts...>> {
  using Variants = kj::OneOf<Ts...>;

  static void read(Reader& v, Variants& to) {
    size_t wanted = v.indexOf("kind", kindsOf(&to)), index = 0;
    ((index++ == wanted && (visit(v, to.template init<Ts>()), true)) || ...);
  }

  static kj::String write(const Variants& from) {
    Writer out;
    size_t index = 0;
    (add<Ts>(out, from, index++), ...);
    return out.finish();
  }

 private:
  template <typename T>
  static void add(Writer& out, const Variants& from, size_t index) {
    if (!from.template is<T>()) return;
    out.add("kind", canonicalText(kindsOf(&from)[index]));
    visit(out, from.template get<T>());
  }
};

template <typename Variants>
kj::String write(const Variants& from) {
  return Tagged<Variants>::write(from);
}

// ---- What a whole request must fulfil.

Refusal malformed(kj::StringPtr detail) { return {RefusalCode::MALFORMED, detail}; }

unsigned kindOf(const Target& target) {
  if (target.is<Coordinates>()) return POINT;
  return target.is<Fence>() ? ELEMENT : NOTHING;
}

bool provesItsValue(const ActionRequest& request) {
  bool sets = request.action.is<SetValue>();
  if (sets != request.verification.is<TargetValueHash>()) return false;
  return !sets || request.verification.get<TargetValueHash>().sha256 ==
                      sha256(request.action.get<SetValue>().value);
}

kj::Maybe<Refusal> checkWhole(const ActionRequest& request) {
  unsigned legal = LEGAL_TARGETS[static_cast<size_t>(request.action.which())];
  if ((legal & kindOf(request.target)) == 0) {
    return malformed("The target does not suit the kind of action.");
  }
  if (legal == NOTHING && !request.verification.is<NoVerification>()) {
    return malformed("An action without a target cannot be verified.");
  }
  if (!provesItsValue(request)) {
    return malformed("The value's hash is missing, is another value's, or has no value to prove.");
  }
  return nullptr;
}

}  // namespace

bool isName(kj::StringPtr text) {
  return isIdentifier(text) && std::find(text.begin(), text.end(), '.') == text.end();
}

Result<ActionRequest> readRequest(kj::ArrayPtr<const char> text) {
  auto json = readJson(text, REQUEST_LIMITS);
  if (!json.ok()) return json.refusal();
  ActionRequest request;
  Reader reader(*json);
  visit(reader, request);
  KJ_IF_MAYBE (why, reader.finish()) return *why;
  KJ_IF_MAYBE (why, checkWhole(request)) return *why;
  return kj::mv(request);
}

kj::String canonicalAction(const ActionRequest& request) {
  auto version = [] { return kj::str(VERSION); };
  kj::String parts[] = {version(),
                        version(),
                        version(),
                        version(),
                        canonicalText(request.subject),
                        canonicalText(request.session),
                        write(request.action),
                        write(request.target),
                        canonicalText(MODES[static_cast<size_t>(request.mode)]),
                        kj::str(request.deadlineMs),
                        write(request.verification),
                        canonicalText(SAFETIES[static_cast<size_t>(request.safety)])};
  return canonicalArray(parts);
}

kj::String actionHash(const ActionRequest& request) { return sha256(canonicalAction(request)); }

kj::String canonicalGrant(const AuthorityGrant& grant) {
  Writer out;
  visit(out, grant);
  return out.finish();
}

}  // namespace praefectus::attest::v2
