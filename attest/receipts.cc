// What the supervisor and its ledger sign: receipts, refusals, events; and the chain they stand in.
#include "attest/body.h"

namespace praefectus::attest {
namespace {

constexpr size_t WARNINGS = 16;

// ---- Receipt

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
  write(from.ledger, to.initLedger());
  to.setOperation(from.operation);
  to.setActionHash(bytesOf(from.actionHash));
  to.setActionClass(from.actionClass);
  to.setKind(from.kind);
  to.setMode(from.mode);
  to.setRisk(from.risk);
  to.setProof(from.proof);
  write(from.rights, to.initRights());
  to.setGrantIssuer(from.grantIssuer);
  to.setGrantKeyId(from.grantKeyId);
  to.setGrantHash(bytesOf(from.grantHash));
  to.setPolicyGeneration(from.policyGeneration);
  to.setLease(from.lease);
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
      return success && receipt.proof == Proof::NONE &&
             receipt.evidence.verdict == Verdict::UNVERIFIABLE;
    case Effect::UNKNOWN:
      return true;
  }
  KJ_UNREACHABLE;
}

// A disturbance can be permitted only by a right that covers one.
bool contextIsBorneOut(const Receipt& receipt) {
  return receipt.context != ContextState::PERMITTED ||
         (receipt.mode == Mode::INTERACTIVE &&
          (receipt.rights.focus || receipt.rights.userPointer));
}

bool helperIsWhole(const HelperIdentity& helper) {
  if (helper.generation != 0) return areIdentifiers({helper.name, helper.release});
  return helper.name.size() == 0 && helper.release.size() == 0 && helper.digest == Hash{};
}

bool agreesWithItself(const Receipt& receipt) {
  return keepsRule(receipt) && effectIsBorneOut(receipt) && contextIsBorneOut(receipt) &&
         helperIsWhole(receipt.helper) && receipt.evidence.unitsDone <= receipt.evidence.unitsAsked;
}

Result<Done> readBody(wire::Receipt::Reader from, Receipt& to) {
  bool good = true;
  to.ledger = ledgerIn(from.getLedger(), good);
  to.operation = kj::str(from.getOperation());
  to.actionHash = hashIn(from.getActionHash(), good);
  to.actionClass = from.getActionClass();
  to.kind = kj::str(from.getKind());
  to.mode = from.getMode();
  to.risk = from.getRisk();
  to.proof = from.getProof();
  to.rights = read(from.getRights());
  to.grantIssuer = kj::str(from.getGrantIssuer());
  to.grantKeyId = kj::str(from.getGrantKeyId());
  to.grantHash = hashIn(from.getGrantHash(), good);
  to.policyGeneration = from.getPolicyGeneration();
  to.lease = kj::str(from.getLease());
  to.subject = kj::str(from.getSubject());
  to.session = kj::str(from.getSession());
  to.turn = kj::str(from.getTurn());
  to.helper = readPart(from.getHelper(), good);
  to.route = from.getRoute();
  to.terminal = from.getTerminal();
  to.effect = from.getEffect();
  if (from.getHasRefusal()) to.refusal = from.getRefusal();
  to.retrySafe = from.getRetrySafe();
  to.evidence = readPart(from.getEvidence());
  to.context = from.getContext();
  to.claimedAt = from.getClaimedAt();
  to.settledAt = from.getSettledAt();
  to.sequence = from.getSequence();
  to.previous = hashIn(from.getPrevious(), good);

  if (!good) return malformed(BAD_HASH);
  if (!areIdentifiers({to.operation, to.kind, to.grantIssuer, to.grantKeyId, to.lease, to.subject,
                       to.session, to.turn})) {
    return malformed(BAD_NAME);
  }
  if (from.getWarnings().size() > WARNINGS) return malformed("There are too many warnings.");
  for (auto warning : from.getWarnings()) to.warnings.add(warning);
  if (!from.getHasRefusal() && from.getRefusal() != RefusalCode{}) {
    return malformed("The receipt has a refusal code and says that it has none.");
  }
  if (to.sequence < 1 || to.claimedAt < 0 || to.settledAt < 0 || to.policyGeneration < 1) {
    return malformed("The receipt's place, time or policy generation is out of bounds.");
  }
  if (!agreesWithItself(to)) return malformed("The receipt contradicts itself.");
  return Done{};
}

// ---- Refused

void writeBody(const Refused& from, wire::Refused::Builder to) {
  write(from.ledger, to.initLedger());
  to.setSubject(from.subject);
  to.setSession(from.session);
  to.setSequence(from.sequence);
  KJ_IF_MAYBE (request, from.request) to.setRequest(bytesOf(*request));
  to.setOperation(from.operation);
  to.setCode(from.code);
  to.setDispatched(from.dispatched());
  to.setAt(from.at);
}

bool isIdentifierOrEmpty(kj::StringPtr text) { return text.size() == 0 || isIdentifier(text); }

Result<Done> readBody(wire::Refused::Reader from, Refused& to) {
  bool good = true;
  to.ledger = ledgerIn(from.getLedger(), good);
  to.subject = kj::str(from.getSubject());
  to.session = kj::str(from.getSession());
  to.sequence = from.getSequence();
  if (from.hasRequest()) to.request = hashIn(from.getRequest(), good);
  to.operation = kj::str(from.getOperation());
  to.code = from.getCode();
  to.at = from.getAt();
  if (!good) return malformed(BAD_HASH);
  if (!isIdentifier(to.subject) || !isIdentifierOrEmpty(to.session) ||
      !isIdentifierOrEmpty(to.operation)) {
    return malformed(BAD_NAME);
  }
  if (to.sequence < 1 || to.at < 0) return malformed("The place or time is out of bounds.");
  if (from.getDispatched() != to.dispatched()) return malformed("The refusal contradicts itself.");
  return Done{};
}

// ---- Event

void writePart(const LedgerPlace& from, wire::LedgerEvent::Place::Builder to) {
  to.setDevice(from.device);
  to.setInode(from.inode);
  to.setMachine(bytesOf(from.machine));
}

void writePart(const ClockReading& from, wire::LedgerEvent::Start::Builder to) {
  to.setWallMs(from.wallMs);
  to.setBootMs(from.bootMs);
  to.setBoot(bytesOf(from.boot));
}

void writePart(const Archived& from, wire::LedgerEvent::Archive::Builder to) {
  to.setThrough(from.through);
  to.setLink(bytesOf(from.link));
  to.setOperations(from.operations);
  to.setDigest(bytesOf(from.digest));
}

void writeBody(const LedgerEvent& from, wire::LedgerEvent::Builder to) {
  write(from.ledger, to.initLedger());
  to.setSequence(from.sequence);
  to.setPrevious(bytesOf(from.previous));
  to.setAt(from.at);
  KJ_SWITCH_ONEOF(from.what) {
    KJ_CASE_ONEOF(created, Created) { writePart(created.place, to.initCreated()); }
    KJ_CASE_ONEOF(adopted, Adopted) { writePart(adopted.place, to.initAdopted()); }
    KJ_CASE_ONEOF(started, Started) { writePart(started.clock, to.initStarted()); }
    KJ_CASE_ONEOF(accepted, ClockAccepted) { writePart(accepted.clock, to.initClockAccepted()); }
    KJ_CASE_ONEOF(rotated, KeyRotated) { to.setKeyRotated(bytesOf(rotated.next)); }
    KJ_CASE_ONEOF(revocation, Envelope) { attest::write(revocation, to.initRevoked()); }
    KJ_CASE_ONEOF(archived, Archived) { writePart(archived, to.initArchived()); }
    KJ_CASE_ONEOF(imported, Imported) {
      auto part = to.initImported();
      part.setOperations(imported.operations);
      part.setSource(imported.source);
    }
    KJ_CASE_ONEOF(quarantined, Quarantined) { to.setQuarantined(quarantined.claim); }
  }
}

LedgerPlace readPart(wire::LedgerEvent::Place::Reader from, bool& good) {
  return {from.getDevice(), from.getInode(), hashIn(from.getMachine(), good)};
}

ClockReading readPart(wire::LedgerEvent::Start::Reader from, bool& good) {
  good = good && from.getWallMs() > 0;
  return {from.getWallMs(), from.getBootMs(), hashIn(from.getBoot(), good)};
}

bool readWhat(wire::LedgerEvent::Reader from, LedgerEvent& to) {
  bool good = true;
  switch (from.which()) {
    case wire::LedgerEvent::CREATED:
      to.what = Created{readPart(from.getCreated(), good)};
      return good && to.sequence == 1 && to.ledger.incarnation == 1;
    case wire::LedgerEvent::ADOPTED:
      to.what = Adopted{readPart(from.getAdopted(), good)};
      return good && to.ledger.incarnation > 1;
    case wire::LedgerEvent::STARTED:
      to.what = Started{readPart(from.getStarted(), good)};
      return good;
    case wire::LedgerEvent::CLOCK_ACCEPTED:
      to.what = ClockAccepted{readPart(from.getClockAccepted(), good)};
      return good;
    case wire::LedgerEvent::KEY_ROTATED:
      to.what = KeyRotated{hashIn(from.getKeyRotated(), good)};
      return good;
    case wire::LedgerEvent::REVOKED: {
      auto envelope = readEnvelope(from.getRevoked());
      if (!envelope.ok()) return false;
      to.what = kj::mv(*envelope);
      return true;
    }
    case wire::LedgerEvent::ARCHIVED: {
      auto part = from.getArchived();
      to.what = Archived{part.getThrough(), hashIn(part.getLink(), good), part.getOperations(),
                         hashIn(part.getDigest(), good)};
      return good && part.getThrough() >= 1 && part.getThrough() < to.sequence;
    }
    case wire::LedgerEvent::IMPORTED:
      to.what =
          Imported{from.getImported().getOperations(), kj::str(from.getImported().getSource())};
      return isIdentifier(from.getImported().getSource());
    case wire::LedgerEvent::QUARANTINED:
      to.what = Quarantined{from.getQuarantined()};
      return from.getQuarantined() >= 1 && from.getQuarantined() < to.sequence;
  }
  return false;
}

Result<Done> readBody(wire::LedgerEvent::Reader from, LedgerEvent& to) {
  bool good = true;
  to.ledger = ledgerIn(from.getLedger(), good);
  to.sequence = from.getSequence();
  to.previous = hashIn(from.getPrevious(), good);
  to.at = from.getAt();
  if (!good) return malformed(BAD_HASH);
  if (to.sequence < 1 || to.at < 0) return malformed("The place or time is out of bounds.");
  if (!readWhat(from, to)) return malformed("What the event states is out of bounds.");
  return Done{};
}

// ---- Opening with a public key alone

constexpr auto WRITE = [](const auto& from, auto to) { writeBody(from, to); };
constexpr auto READ = [](auto from, auto& to) { return readBody(from, to); };

template <typename Value, typename Wire>
Result<Value> openWith(const PublicKey& key, kj::StringPtr label, const Envelope& envelope) {
  if (!verify(key, label, envelope.body, envelope.signature)) {
    return denied("The signature does not hold.");
  }
  if (envelope.issuer != LEDGER_ISSUER || envelope.keyId != keyIdOf(key)) {
    return denied("The envelope names another key than the one that signed.");
  }
  return openAs<Value, Wire>(envelope, READ);
}

}  // namespace

HelperIdentity HelperIdentity::clone() const {
  return {kj::str(name), kj::str(release), digest, generation};
}

Envelope seal(const Receipt& receipt, const SigningKey& key) {
  return sealAs<wire::Receipt>(RECEIPT_LABEL, receipt, key, WRITE);
}
Envelope seal(const Refused& refused, const SigningKey& key) {
  return sealAs<wire::Refused>(REFUSAL_LABEL, refused, key, WRITE);
}
Envelope seal(const LedgerEvent& event, const SigningKey& key) {
  return sealAs<wire::LedgerEvent>(EVENT_LABEL, event, key, WRITE);
}

bool Refused::dispatched() const {
  return code == RefusalCode::OUTCOME_UNKNOWN || code == RefusalCode::LEDGER_POISONED ||
         code == RefusalCode::OPERATION_ARCHIVED || code == RefusalCode::RECORD_DAMAGED;
}

Hash requestHash(const Envelope& grant, Bytes action) {
  constexpr kj::byte NUL = 0;
  Digest digest;
  digest.add("praefectus/request/v1"_kj).add(Bytes(&NUL, 1));
  return digest.add(grant.body.asPtr()).add(bytesOf(grant.signature)).add(action).finish();
}

kj::Array<kj::byte> bodyOf(const Receipt& receipt) { return bodyAs<wire::Receipt>(receipt, WRITE); }

Result<Receipt> openReceipt(const PublicKey& key, const Envelope& envelope) {
  return openWith<Receipt, wire::Receipt>(key, RECEIPT_LABEL, envelope);
}
Result<Refused> openRefused(const PublicKey& key, const Envelope& envelope) {
  return openWith<Refused, wire::Refused>(key, REFUSAL_LABEL, envelope);
}
Result<LedgerEvent> openEvent(const PublicKey& key, const Envelope& envelope) {
  return openWith<LedgerEvent, wire::LedgerEvent>(key, EVENT_LABEL, envelope);
}

// ---- The chain

kj::StringPtr nameOf(Step step) {
  switch (step) {
    case Step::CLAIM:
      return "claim";
    case Step::ENDING:
      return "ending";
    case Step::EVENT:
      return "event";
  }
  KJ_UNREACHABLE;
}

Head extend(const Head& head, Step step, kj::StringPtr operation, const Hash& content) {
  constexpr kj::byte NUL = 0;
  Digest digest;
  digest.add("praefectus/link/v1"_kj).add(Bytes(&NUL, 1));
  digest.add(bytesOf(head.link)).addNumber(head.sequence + 1);
  digest.addSized(nameOf(step)).addSized(operation).add(bytesOf(content));
  return {head.sequence + 1, digest.finish()};
}

Head headAfter(const Receipt& receipt, Bytes body) {
  return extend({receipt.sequence - 1, receipt.previous}, Step::ENDING, receipt.operation,
                digestOf(body));
}

}  // namespace praefectus::attest
