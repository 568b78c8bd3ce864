#include "attest/signed.h"

#include "ipc/bounds.h"
#include "ipc/canonical.h"

#include <capnp/message.h>

namespace praefectus::attest {
namespace {

constexpr kj::StringPtr LEDGER_ISSUER = "ledger"_kj;
constexpr size_t WARNINGS = 16;
// An envelope around the largest body: names, signature and pointers need less than this.
constexpr size_t ENVELOPE_BYTES = bounds::SIGNED_BODY_BYTES + 1024;

Refusal malformed(kj::StringPtr why) { return {RefusalCode::MALFORMED, why}; }
Refusal denied(kj::StringPtr why) { return {RefusalCode::POLICY_DENIED, why}; }

constexpr kj::StringPtr BAD_NAME = "A name is not an identifier of 1 to 256 characters."_kj;
constexpr kj::StringPtr BAD_HASH = "A digest does not have 32 bytes."_kj;

bool areIdentifiers(std::initializer_list<kj::StringPtr> texts) {
  for (auto text : texts) {
    if (!isIdentifier(text)) return false;
  }
  return true;
}

bool changesSomething(ActionClass actionClass) {
  switch (actionClass) {
    case ActionClass::METADATA_READ:
    case ActionClass::SCREENSHOT_READ:
      return false;
    case ActionClass::POINTER_MUTATION:
    case ActionClass::KEYBOARD_MUTATION:
    case ActionClass::SEMANTIC_MUTATION:
    case ActionClass::FILE_MUTATION:
      return true;
  }
  return true;
}

// ---- Value to wire

void writeBody(const Grant& from, wire::Grant::Builder to) {
  to.setVersion(wire::PROTOCOL_VERSION);
  to.setIssuer(from.issuer);
  to.setKeyId(from.keyId);
  write(from.audience, to.initAudience());
  to.setSubject(from.subject);
  to.setSession(from.session);
  to.setTurn(from.turn);
  to.setOperation(from.operation);
  to.setActionHash(bytesOf(from.actionHash));
  to.setActionClass(from.actionClass);
  write(from.target, to.initTarget());
  to.setNotBefore(from.notBefore);
  to.setExpires(from.expires);
  to.setUses(from.uses);
}

void writeBody(const Manifest& from, wire::HelperManifest::Builder to) {
  to.setVersion(wire::PROTOCOL_VERSION);
  to.setIssuer(from.issuer);
  to.setKeyId(from.keyId);
  to.setName(from.name);
  to.setRelease(from.release);
  to.setRole(from.role);
  to.setPlatform(from.platform);
  to.setProtocol(from.protocol);
  to.setDigest(bytesOf(from.digest));
  to.setSize(from.size);
}

void writePart(const HelperIdentity& from, wire::HelperIdentity::Builder to) {
  to.setName(from.name);
  to.setRelease(from.release);
  to.setDigest(bytesOf(from.digest));
  to.setGeneration(from.generation);
}

void writePart(const Evidence& from, wire::Evidence::Builder to) {
  to.setVerdict(from.verdict);
  to.setMethod(from.method);
  to.setSource(from.source);
  to.setUnitsDone(from.unitsDone);
  to.setUnitsAsked(from.unitsAsked);
}

void writeBody(const Receipt& from, wire::Receipt::Builder to) {
  to.setVersion(wire::PROTOCOL_VERSION);
  to.setIssuer(from.issuer);
  to.setKeyId(from.keyId);
  write(from.ledger, to.initLedger());
  to.setOperation(from.operation);
  to.setActionHash(bytesOf(from.actionHash));
  to.setActionClass(from.actionClass);
  to.setKind(from.kind);
  to.setGrantIssuer(from.grantIssuer);
  to.setGrantKeyId(from.grantKeyId);
  to.setGrantHash(bytesOf(from.grantHash));
  to.setSubject(from.subject);
  to.setSession(from.session);
  to.setTurn(from.turn);
  writePart(from.helper, to.initHelper());
  to.setRoute(from.route);
  to.setTerminal(from.terminal);
  to.setEffect(from.effect);
  KJ_IF_MAYBE (code, from.refusal) {
    to.setHasRefusal(true);
    to.setRefusal(*code);
  }
  to.setRetrySafe(from.retrySafe);
  writePart(from.evidence, to.initEvidence());
  to.setContext(from.context);
  auto warnings = to.initWarnings(static_cast<capnp::uint>(from.warnings.size()));
  for (capnp::uint i = 0; i < warnings.size(); ++i) warnings.set(i, from.warnings[i]);
  to.setClaimedAt(from.claimedAt);
  to.setSettledAt(from.settledAt);
  to.setSequence(from.sequence);
  to.setPrevious(bytesOf(from.previous));
}

// ---- Wire to value. Runs after the strict check, so kinds, text and enumerants are known to be
// good.

Hash hashIn(Bytes data, bool& good) {
  KJ_IF_MAYBE (hash, fixed<32>(data)) return *hash;
  good = false;
  return {};
}

LedgerId ledgerIn(wire::LedgerId::Reader from, bool& good) {
  KJ_IF_MAYBE (id, read(from)) {
    good = good && id->incarnation >= 1;
    return *id;
  }
  good = false;
  return {};
}

Result<Grant> readBody(wire::Grant::Reader from) {
  bool good = true;
  Grant out;
  out.issuer = kj::str(from.getIssuer());
  out.keyId = kj::str(from.getKeyId());
  out.audience = ledgerIn(from.getAudience(), good);
  out.subject = kj::str(from.getSubject());
  out.session = kj::str(from.getSession());
  out.turn = kj::str(from.getTurn());
  out.operation = kj::str(from.getOperation());
  out.actionHash = hashIn(from.getActionHash(), good);
  out.actionClass = from.getActionClass();
  out.target = read(from.getTarget());
  out.notBefore = from.getNotBefore();
  out.expires = from.getExpires();
  out.uses = from.getUses();

  if (!good) return malformed(BAD_HASH);
  if (!areIdentifiers({out.issuer, out.keyId, out.subject, out.session, out.turn, out.operation})) {
    return malformed(BAD_NAME);
  }
  int64_t life;
  if (__builtin_sub_overflow(out.expires, out.notBefore, &life) || life <= 0 ||
      life > bounds::GRANT_LIFE_MS) {
    return malformed("The grant's time is empty or longer than 24 hours.");
  }
  uint32_t most = changesSomething(out.actionClass) ? 1 : bounds::READ_USES;
  if (out.uses < 1 || out.uses > most) return malformed("The number of uses is out of bounds.");
  return kj::mv(out);
}

Result<Manifest> readBody(wire::HelperManifest::Reader from) {
  bool good = true;
  Manifest out;
  out.issuer = kj::str(from.getIssuer());
  out.keyId = kj::str(from.getKeyId());
  out.name = kj::str(from.getName());
  out.release = kj::str(from.getRelease());
  out.role = from.getRole();
  out.platform = kj::str(from.getPlatform());
  out.protocol = from.getProtocol();
  out.digest = hashIn(from.getDigest(), good);
  out.size = from.getSize();

  if (!good) return malformed(BAD_HASH);
  if (!areIdentifiers({out.issuer, out.keyId, out.name, out.release, out.platform})) {
    return malformed(BAD_NAME);
  }
  if (out.size < 1 || out.size > bounds::IMAGE_BYTES)
    return malformed("The size is out of bounds.");
  return kj::mv(out);
}

HelperIdentity readPart(wire::HelperIdentity::Reader from, bool& good) {
  HelperIdentity out;
  out.name = kj::str(from.getName());
  out.release = kj::str(from.getRelease());
  out.digest = hashIn(from.getDigest(), good);
  out.generation = from.getGeneration();
  return out;
}

Evidence readPart(wire::Evidence::Reader from) {
  return {from.getVerdict(), from.getMethod(), from.getSource(), from.getUnitsDone(),
          from.getUnitsAsked()};
}

// What may stand beside each terminal (design: "evidence → terminal, the only way there").
struct TerminalRule {
  Effect effect, orEffect;
  bool claimed;       // Only a claimed operation can end so.
  bool needsRefusal;  // The receipt has to say why.
  bool mayBeRetrySafe;
};

TerminalRule ruleFor(Terminal terminal) {
  switch (terminal) {
    case Terminal::SUCCEEDED:
      return {Effect::VERIFIED, Effect::EXECUTED_UNVERIFIED, true, false, false};
    case Terminal::REJECTED:
      return {Effect::NONE, Effect::NONE, false, true, true};
    case Terminal::FAILED:
    case Terminal::CANCELLED_BEFORE_EFFECT:
    case Terminal::EXPIRED_BEFORE_EFFECT:
      return {Effect::NONE, Effect::NONE, false, false, true};
    case Terminal::OUTCOME_UNKNOWN:
      return {Effect::UNKNOWN, Effect::UNKNOWN, true, false, false};
  }
  KJ_UNREACHABLE;
}

bool keepsRule(const Receipt& receipt) {
  auto rule = ruleFor(receipt.terminal);
  bool effectFits = receipt.effect == rule.effect || receipt.effect == rule.orEffect;
  return effectFits && (!rule.claimed || receipt.claimedAt > 0) &&
         (!rule.needsRefusal || receipt.refusal != nullptr) &&
         (rule.mayBeRetrySafe || !receipt.retrySafe);
}

// What each statement about the effect presupposes.
bool effectIsBorneOut(const Receipt& receipt) {
  bool success = receipt.refusal == nullptr && receipt.route != Route::NONE &&
                 receipt.context != ContextState::BREACHED;
  switch (receipt.effect) {
    case Effect::NONE:
      return receipt.route == Route::NONE;
    case Effect::VERIFIED:
      return success && receipt.evidence.verdict == Verdict::CONFIRMED;
    case Effect::EXECUTED_UNVERIFIED:
      return success && receipt.evidence.verdict == Verdict::UNVERIFIABLE;
    case Effect::UNKNOWN:
      return true;
  }
  KJ_UNREACHABLE;
}

bool helperIsWhole(const HelperIdentity& helper) {
  if (helper.generation != 0) return areIdentifiers({helper.name, helper.release});
  return helper.name.size() == 0 && helper.release.size() == 0 && helper.digest == Hash{};
}

bool agreesWithItself(const Receipt& receipt) {
  return keepsRule(receipt) && effectIsBorneOut(receipt) && helperIsWhole(receipt.helper) &&
         receipt.evidence.unitsDone <= receipt.evidence.unitsAsked;
}

Result<Receipt> readBody(wire::Receipt::Reader from) {
  bool good = true;
  Receipt out;
  out.issuer = kj::str(from.getIssuer());
  out.keyId = kj::str(from.getKeyId());
  out.ledger = ledgerIn(from.getLedger(), good);
  out.operation = kj::str(from.getOperation());
  out.actionHash = hashIn(from.getActionHash(), good);
  out.actionClass = from.getActionClass();
  out.kind = kj::str(from.getKind());
  out.grantIssuer = kj::str(from.getGrantIssuer());
  out.grantKeyId = kj::str(from.getGrantKeyId());
  out.grantHash = hashIn(from.getGrantHash(), good);
  out.subject = kj::str(from.getSubject());
  out.session = kj::str(from.getSession());
  out.turn = kj::str(from.getTurn());
  out.helper = readPart(from.getHelper(), good);
  out.route = from.getRoute();
  out.terminal = from.getTerminal();
  out.effect = from.getEffect();
  if (from.getHasRefusal()) out.refusal = from.getRefusal();
  out.retrySafe = from.getRetrySafe();
  out.evidence = readPart(from.getEvidence());
  out.context = from.getContext();
  out.claimedAt = from.getClaimedAt();
  out.settledAt = from.getSettledAt();
  out.sequence = from.getSequence();
  out.previous = hashIn(from.getPrevious(), good);

  if (!good) return malformed(BAD_HASH);
  if (!areIdentifiers({out.issuer, out.keyId, out.operation, out.kind, out.grantIssuer,
                       out.grantKeyId, out.subject, out.session, out.turn})) {
    return malformed(BAD_NAME);
  }
  if (from.getWarnings().size() > WARNINGS) return malformed("There are too many warnings.");
  for (auto warning : from.getWarnings()) out.warnings.add(warning);
  if (!from.getHasRefusal() && from.getRefusal() != RefusalCode{}) {
    return malformed("The receipt has a refusal code and says that it has none.");
  }
  if (out.sequence < 1 || out.claimedAt < 0 || out.settledAt < 0) {
    return malformed("The receipt's place or time is out of bounds.");
  }
  if (!agreesWithItself(out)) return malformed("The receipt contradicts itself.");
  return kj::mv(out);
}

// ---- Envelopes

template <typename Wire, typename Value>
Envelope sealAs(kj::StringPtr label, const Value& value, const SigningKey& key) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<Wire>();
  writeBody(value, root);
  auto body = canonicalBytes(root.asReader());
  auto signature = key.sign(label, body);
  return {kj::mv(body), kj::str(value.issuer), kj::str(value.keyId), signature};
}

// The part of opening that comes after the signature.
template <typename Value, typename Wire>
Result<Value> openAs(const Envelope& envelope) {
  auto parsed = Canonical<Wire>::parse(envelope.body, bounds::SIGNED_BODY_BYTES);
  if (!parsed.ok()) return parsed.refusal();
  auto body = parsed->get();
  if (body.getVersion() != wire::PROTOCOL_VERSION) {
    return Refusal{RefusalCode::UNSUPPORTED_VERSION, "The body states another protocol version."};
  }
  if (body.getIssuer() != envelope.issuer || body.getKeyId() != envelope.keyId) {
    return denied("The envelope names another key than the body.");
  }
  return readBody(body);
}

}  // namespace

HelperIdentity HelperIdentity::clone() const {
  return {kj::str(name), kj::str(release), digest, generation};
}

Envelope seal(const Grant& grant, const SigningKey& key) {
  return sealAs<wire::Grant>(GRANT_LABEL, grant, key);
}

Envelope seal(const Manifest& manifest, const SigningKey& key) {
  return sealAs<wire::HelperManifest>(MANIFEST_LABEL, manifest, key);
}

Envelope seal(const Receipt& receipt, const SigningKey& key) {
  return sealAs<wire::Receipt>(RECEIPT_LABEL, receipt, key);
}

Result<Grant> openGrant(const KeyRing& ring, const Envelope& envelope) {
  auto checked = ring.check(Purpose::ISSUER, GRANT_LABEL, envelope);
  if (!checked.ok()) return checked.refusal();
  auto grant = openAs<Grant, wire::Grant>(envelope);
  if (grant.ok()) grant->hash = digestOf(envelope.body);
  return grant;
}

Result<Manifest> openManifest(const KeyRing& ring, const Envelope& envelope) {
  auto checked = ring.check(Purpose::PUBLISHER, MANIFEST_LABEL, envelope);
  if (!checked.ok()) return checked.refusal();
  return openAs<Manifest, wire::HelperManifest>(envelope);
}

Result<Receipt> openReceipt(const PublicKey& key, const Envelope& envelope) {
  if (!verify(key, RECEIPT_LABEL, envelope.body, envelope.signature)) {
    return denied("The signature does not hold.");
  }
  if (envelope.issuer != LEDGER_ISSUER || envelope.keyId != keyIdOf(key)) {
    return denied("The envelope names another key than the one that signed.");
  }
  return openAs<Receipt, wire::Receipt>(envelope);
}

Result<Envelope> readEnvelope(wire::Signed::Reader from) {
  auto body = from.getBody();
  if (body.size() == 0 || body.size() > bounds::SIGNED_BODY_BYTES) {
    return malformed("The signed body is empty or oversize.");
  }
  if (!areIdentifiers({from.getIssuer(), from.getKeyId()})) return malformed(BAD_NAME);
  KJ_IF_MAYBE (signature, fixed<64>(from.getSignature())) {
    return Envelope{kj::heapArray<kj::byte>(body), kj::str(from.getIssuer()),
                    kj::str(from.getKeyId()), *signature};
  }
  return malformed("The signature does not have 64 bytes.");
}

void write(const Envelope& from, wire::Signed::Builder to) {
  to.setBody(from.body);
  to.setIssuer(from.issuer);
  to.setKeyId(from.keyId);
  to.setSignature(bytesOf(from.signature));
}

kj::Array<kj::byte> envelopeBytes(const Envelope& envelope) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Signed>();
  write(envelope, root);
  return canonicalBytes(root.asReader());
}

Result<Envelope> envelopeFrom(Bytes file) {
  auto parsed = Canonical<wire::Signed>::parse(file, ENVELOPE_BYTES);
  if (!parsed.ok()) return parsed.refusal();
  return readEnvelope(parsed->get());
}

}  // namespace praefectus::attest
