// What hosts sign: leases, grants, task grants, revocations.
#include "attest/body.h"

namespace praefectus::attest {
namespace {

constexpr kj::StringPtr BAD_FRAME = "A frame's id does not have 16 bytes."_kj;
constexpr kj::StringPtr BAD_POLICY = "The policy generation is zero or out of bounds."_kj;
constexpr kj::StringPtr BAD_TIME = "The time is out of bounds."_kj;

// ---- What lease, grant and task grant have in common.

template <typename Value, typename Builder>
void writeScope(const Value& from, Builder to) {
  write(from.audience, to.initAudience());
  to.setSubject(from.subject);
  to.setSession(from.session);
  to.setTurn(from.turn);
  to.setPolicyGeneration(from.policyGeneration);
  to.setNotBefore(from.notBefore);
  to.setExpires(from.expires);
}

bool isTime(int64_t ms) { return ms >= 0 && ms <= bounds::SIGNED_TIME_MS; }

template <typename Value, typename Reader>
Result<Done> readScope(Reader from, Value& to) {
  bool good = true;
  to.audience = ledgerIn(from.getAudience(), good);
  to.subject = kj::str(from.getSubject());
  to.session = kj::str(from.getSession());
  to.turn = kj::str(from.getTurn());
  to.policyGeneration = from.getPolicyGeneration();
  to.notBefore = from.getNotBefore();
  to.expires = from.getExpires();
  if (!good) return malformed(BAD_HASH);
  if (!areIdentifiers({to.subject, to.session, to.turn})) return malformed(BAD_NAME);
  if (to.policyGeneration < 1 || to.policyGeneration > bounds::POLICY_GENERATION) {
    return malformed(BAD_POLICY);
  }
  if (!isTime(to.notBefore) || !isTime(to.expires)) return malformed(BAD_TIME);
  return Done{};
}

template <typename Value>
bool livesWithin(const Value& body, int64_t most) {
  int64_t life = body.expires - body.notBefore;
  return life > 0 && life <= most;
}

template <typename Builder>
void writeFrame(const kj::Maybe<FrameId>& from, Builder to) {
  KJ_IF_MAYBE (frame, from) to.setFrame(bytesOf(*frame));
}

// False when it is neither absent nor a frame's id.
bool readFrame(Bytes from, kj::Maybe<FrameId>& to) {
  if (from.size() == 0) return true;
  to = fixed<16>(from);
  return to != nullptr;
}

// ---- Lease

constexpr unsigned CLASSES = static_cast<unsigned>(ActionClass::FILE_MUTATION) + 1;

template <typename Each>
void forEachIn(const Classes& classes, Each&& each) {
  for (unsigned i = 0; i < CLASSES; ++i) {
    auto c = static_cast<ActionClass>(i);
    if (classes.has(c)) each(c);
  }
}

void writeBody(const Lease& from, wire::Lease::Builder to) {
  writeScope(from, to);
  to.setLease(from.lease);
  capnp::uint count = 0;
  forEachIn(from.classes, [&](ActionClass) { ++count; });
  auto classes = to.initClasses(count);
  capnp::uint i = 0;
  forEachIn(from.classes, [&](ActionClass c) { classes.set(i++, c); });
  write(from.target, to.initTarget());
  writeFrame(from.frame, to);
}

bool opensMutation(const Classes& classes) {
  bool out = false;
  forEachIn(classes, [&](ActionClass c) { out = out || isMutation(c); });
  return out;
}

// In order and each once: then one set has one encoding.
bool readClasses(capnp::List<ActionClass>::Reader from, Classes& to) {
  unsigned next = 0;
  for (auto c : from) {
    if (static_cast<unsigned>(c) < next) return false;
    next = static_cast<unsigned>(c) + 1;
    to.add(c);
  }
  return !to.empty();
}

Result<Done> readBody(wire::Lease::Reader from, Lease& to) {
  auto scope = readScope(from, to);
  if (!scope.ok()) return scope.refusal();
  to.lease = kj::str(from.getLease());
  to.target = read(from.getTarget());
  if (!isIdentifier(to.lease)) return malformed(BAD_NAME);
  if (!readClasses(from.getClasses(), to.classes)) {
    return malformed("The lease's classes are none, repeated or out of order.");
  }
  if (!readFrame(from.getFrame(), to.frame)) return malformed(BAD_FRAME);
  if (!livesWithin(to,
                   opensMutation(to.classes) ? bounds::MUTATION_LEASE_MS : bounds::READ_LEASE_MS)) {
    return malformed("The lease's time is empty or longer than its classes allow.");
  }
  return Done{};
}

// ---- Grant

void writeBody(const Grant& from, wire::Grant::Builder to) {
  writeScope(from, to);
  to.setOperation(from.operation);
  to.setActionHash(bytesOf(from.actionHash));
  to.setActionClass(from.actionClass);
  to.setRisk(from.risk);
  write(from.target, to.initTarget());
  writeFrame(from.frame, to);
  write(from.rights, to.initRights());
  to.setUses(from.uses);
}

Result<Done> readBody(wire::Grant::Reader from, Grant& to) {
  auto scope = readScope(from, to);
  if (!scope.ok()) return scope.refusal();
  bool good = true;
  to.operation = kj::str(from.getOperation());
  to.actionHash = hashIn(from.getActionHash(), good);
  to.actionClass = from.getActionClass();
  to.risk = from.getRisk();
  to.target = read(from.getTarget());
  to.rights = read(from.getRights());
  to.uses = from.getUses();

  if (!good) return malformed(BAD_HASH);
  if (!isIdentifier(to.operation)) return malformed(BAD_NAME);
  if (!readFrame(from.getFrame(), to.frame)) return malformed(BAD_FRAME);
  if (!livesWithin(to, bounds::GRANT_LIFE_MS)) {
    return malformed("The grant's time is empty or longer than 24 hours.");
  }
  uint32_t most = isMutation(to.actionClass) ? 1 : bounds::READ_USES;
  if (to.uses < 1 || to.uses > most) return malformed("The number of uses is out of bounds.");
  return Done{};
}

// ---- Task grant

void writeBody(const TaskGrant& from, wire::TaskGrant::Builder to) {
  writeScope(from, to);
  to.setTask(from.task);
  to.setRootDevice(from.rootDevice);
  to.setRootInode(from.rootInode);
  to.setPlanHash(bytesOf(from.planHash));
  auto steps = to.initSteps(static_cast<capnp::uint>(from.steps.size()));
  for (capnp::uint i = 0; i < steps.size(); ++i) steps.set(i, bytesOf(from.steps[i]));
  to.setUndo(from.undo);
  to.setRisk(from.risk);
  write(from.rights, to.initRights());
}

Result<Done> readBody(wire::TaskGrant::Reader from, TaskGrant& to) {
  auto scope = readScope(from, to);
  if (!scope.ok()) return scope.refusal();
  bool good = true;
  to.task = kj::str(from.getTask());
  to.rootDevice = from.getRootDevice();
  to.rootInode = from.getRootInode();
  to.planHash = hashIn(from.getPlanHash(), good);
  to.undo = from.getUndo();
  to.risk = from.getRisk();
  to.rights = read(from.getRights());

  auto steps = from.getSteps();
  if (steps.size() < 1 || steps.size() > bounds::TASK_STEPS) {
    return malformed("The number of steps is out of bounds.");
  }
  for (auto step : steps) to.steps.add(hashIn(step, good));
  if (!good) return malformed(BAD_HASH);
  if (!isIdentifier(to.task)) return malformed(BAD_NAME);
  if (to.rootInode == 0) return malformed("The root folder is not named.");
  if (!livesWithin(to, bounds::GRANT_LIFE_MS)) {
    return malformed("The grant's time is empty or longer than 24 hours.");
  }
  return Done{};
}

// ---- Revocation

void writeBody(const Revocation& from, wire::Revocation::Builder to) {
  write(from.audience, to.initAudience());
  to.setSubject(from.subject);
  to.setRevocation(from.revocation);
  to.setIssuedAt(from.issuedAt);
  KJ_SWITCH_ONEOF(from.what) {
    KJ_CASE_ONEOF(grant, RevokedOperation) { to.setOperation(grant.operation); }
    KJ_CASE_ONEOF(lease, RevokedLease) { to.setLease(lease.lease); }
    KJ_CASE_ONEOF(turn, RevokedTurn) {
      auto names = to.initTurn();
      names.setSession(turn.session);
      names.setTurn(turn.turn);
    }
    KJ_CASE_ONEOF(generation, RevokedGeneration) { to.setGeneration(generation.valid); }
  }
}

Result<Done> readBody(wire::Revocation::Reader from, Revocation& to) {
  bool good = true;
  to.audience = ledgerIn(from.getAudience(), good);
  to.subject = kj::str(from.getSubject());
  to.revocation = kj::str(from.getRevocation());
  to.issuedAt = from.getIssuedAt();
  if (!good) return malformed(BAD_HASH);
  good = areIdentifiers({to.subject, to.revocation});
  switch (from.which()) {
    case wire::Revocation::OPERATION:
      good = good && isIdentifier(from.getOperation());
      to.what = RevokedOperation{kj::str(from.getOperation())};
      break;
    case wire::Revocation::LEASE:
      good = good && isIdentifier(from.getLease());
      to.what = RevokedLease{kj::str(from.getLease())};
      break;
    case wire::Revocation::TURN: {
      auto turn = from.getTurn();
      good = good && areIdentifiers({turn.getSession(), turn.getTurn()});
      to.what = RevokedTurn{kj::str(turn.getSession()), kj::str(turn.getTurn())};
      break;
    }
    case wire::Revocation::GENERATION:
      if (from.getGeneration() < 2) return malformed("A policy generation is raised to 2 or more.");
      if (from.getGeneration() > bounds::POLICY_GENERATION) return malformed(BAD_POLICY);
      to.what = RevokedGeneration{from.getGeneration()};
      break;
  }
  if (!good) return malformed(BAD_NAME);
  if (!isTime(to.issuedAt)) return malformed(BAD_TIME);
  return Done{};
}

constexpr auto WRITE = [](const auto& from, auto to) { writeBody(from, to); };
constexpr auto READ = [](auto from, auto& to) { return readBody(from, to); };

template <typename Value, typename Wire>
Result<Value> openWith(const KeyRing& ring, kj::StringPtr label, const Envelope& envelope) {
  auto checked = ring.check(Purpose::ISSUER, label, envelope);
  if (!checked.ok()) return checked.refusal();
  return openAs<Value, Wire>(envelope, READ);
}

}  // namespace

bool isMutation(ActionClass actionClass) {
  return actionClass != ActionClass::METADATA_READ && actionClass != ActionClass::SCREENSHOT_READ;
}

Envelope seal(const Lease& lease, const SigningKey& key) {
  return sealAs<wire::Lease>(LEASE_LABEL, lease, key, WRITE);
}
Envelope seal(const Grant& grant, const SigningKey& key) {
  return sealAs<wire::Grant>(GRANT_LABEL, grant, key, WRITE);
}
Envelope seal(const TaskGrant& grant, const SigningKey& key) {
  return sealAs<wire::TaskGrant>(TASK_GRANT_LABEL, grant, key, WRITE);
}
Envelope seal(const Revocation& revocation, const SigningKey& key) {
  return sealAs<wire::Revocation>(REVOCATION_LABEL, revocation, key, WRITE);
}

Result<Lease> openLease(const KeyRing& ring, const Envelope& envelope) {
  return openWith<Lease, wire::Lease>(ring, LEASE_LABEL, envelope);
}

Result<Grant> openGrant(const KeyRing& ring, const Envelope& envelope) {
  auto grant = openWith<Grant, wire::Grant>(ring, GRANT_LABEL, envelope);
  if (grant.ok()) grant->hash = digestOf(envelope.body);
  return grant;
}

kj::String operationNamed(Bytes body) {
  auto parsed = Canonical<wire::Grant>::parse(body, bounds::SIGNED_BODY_BYTES);
  if (!parsed.ok()) return kj::str();
  auto operation = parsed->get().getOperation();
  return isIdentifier(operation) ? kj::str(operation) : kj::str();
}

Result<TaskGrant> openTaskGrant(const KeyRing& ring, const Envelope& envelope) {
  auto grant = openWith<TaskGrant, wire::TaskGrant>(ring, TASK_GRANT_LABEL, envelope);
  if (grant.ok()) grant->hash = digestOf(envelope.body);
  return grant;
}

Result<Revocation> openRevocation(const KeyRing& ring, const Envelope& envelope) {
  return openWith<Revocation, wire::Revocation>(ring, REVOCATION_LABEL, envelope);
}

}  // namespace praefectus::attest
