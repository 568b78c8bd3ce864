#include "supervisor/ledger/book.h"

#include "supervisor/ledger/schema.h"
#include "supervisor/ledger/spelling.h"

namespace praefectus::ledger {
namespace {

using attest::extend;
using attest::Head;
using attest::Step;

constexpr int64_t APPLICATION = 0x50524C47;
constexpr int64_t FORMAT = 2;
constexpr kj::StringPtr ISSUER = "ledger"_kj;
// The mark moves when it can by this many places: often enough for a start, seldom enough that a
// commit does not notice.
constexpr uint64_t STRIDE = 512;
// Names that are remembered; a turn of a session is one.
constexpr size_t NAMES = 1024;

// In the order of `readEvent`.
constexpr kj::StringPtr EVENT = "place, kind, about, at, body, link, signature"_kj;

// In the order of `readRecord`.
constexpr kj::StringPtr RECORD =
    "o.place, o.link, o.id, action_hash, action_class, o.kind, mode, risk, proof, rights, "
    "grant_hash, helper_generation, claimed_at, issuer, key_id, policy_generation, lease, subject, "
    "session, turn, name, release, digest, e.place, terminal, effect, refusal, retry_safe, route, "
    "verdict, method, source, units_done, units_asked, context, warnings, settled_at, previous, "
    "e.link, signature"_kj;
constexpr kj::StringPtr NAMES_OF_OPERATION =
    "LEFT JOIN authority a ON a.id = o.authority LEFT JOIN helper h ON h.id = o.helper "_kj;

kj::Maybe<uint64_t> placeIn(const Rows& rows, int column) {
  if (rows.isNull(column)) return nullptr;
  return static_cast<uint64_t>(rows.number(column));
}

EventRow readEvent(const Rows& rows) {
  EventRow out;
  out.place = static_cast<uint64_t>(rows.number(0));
  out.kind = kj::str(rows.text(1));
  out.about = placeIn(rows, 2);
  out.at = rows.number(3);
  out.body = kj::heapArray(rows.bytes(4));
  out.link = fixed<32>(rows.bytes(5));
  out.signature = fixed<64>(rows.bytes(6));
  return out;
}

kj::Vector<EventRow> eventsOf(Database& database, kj::StringPtr which) {
  Statement statement(database, kj::str("SELECT ", EVENT, " FROM event ", which));
  auto rows = statement.rows();
  kj::Vector<EventRow> out;
  while (rows.next()) out.add(readEvent(rows));
  return out;
}

// The last event of one of these kinds.
kj::Maybe<EventRow> lastOf(Database& database, std::initializer_list<kj::StringPtr> kinds) {
  kj::Maybe<EventRow> out;
  for (auto kind : kinds) {
    auto found = eventsOf(database, kj::str("WHERE place = (SELECT max(place) FROM event "
                                            "WHERE kind = '",
                                            kind, "')"));
    for (auto& each : found) {
      KJ_IF_MAYBE (before, out) {
        if (before->place > each.place) continue;
      }
      out = kj::mv(each);
    }
  }
  return out;
}

attest::LedgerEvent trusted(const EventRow& row, const Identity& identity) {
  auto event = row.open(identity.at(row.place).key);
  KJ_REQUIRE(event.ok(), "an event that does not hold", event.refusal().detail);
  return kj::mv(*event);
}

kj::String rulesOf(Database& database) {
  Statement statement(database,
                      "SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY name");
  auto rows = statement.rows();
  kj::Vector<kj::String> rules;
  while (rows.next()) rules.add(kj::str(rows.text(0), ' ', rows.text(1), ' ', rows.text(2)));
  return kj::strArray(rules, "\n");
}

attest::Purpose purposeOf(int64_t number) {
  using attest::Purpose;
  for (auto purpose : {Purpose::ISSUER, Purpose::PUBLISHER, Purpose::RECEIPT}) {
    if (static_cast<int64_t>(purpose) == number) return purpose;
  }
  KJ_FAIL_REQUIRE("a purpose that does not exist");
}

// Throws when the number is not one of the type's.
template <typename T>
T numberIn(const Rows& rows, int column) {
  auto number = rows.number(column);
  auto out = static_cast<T>(number);
  KJ_REQUIRE(static_cast<int64_t>(out) == number, "a number out of its bounds");
  return out;
}

Claim readClaim(const Rows& rows, int column) {
  Claim claim;
  claim.operation = kj::str(rows.text(column++));
  claim.actionHash = rows.hash(column++);
  claim.actionClass = enumerantOf<ActionClass>(rows.text(column++));
  claim.kind = kj::str(rows.text(column++));
  claim.mode = enumerantOf<Mode>(rows.text(column++));
  claim.risk = enumerantOf<Safety>(rows.text(column++));
  claim.proof = enumerantOf<Proof>(rows.text(column++));
  claim.rights = rightsIn(rows.text(column++));
  claim.grantHash = rows.hash(column++);
  claim.helper.generation = static_cast<uint64_t>(rows.number(column++));
  claim.at = rows.number(column++);
  claim.grantIssuer = kj::str(rows.text(column++));
  claim.grantKeyId = kj::str(rows.text(column++));
  claim.policyGeneration = static_cast<uint64_t>(rows.number(column++));
  claim.lease = kj::str(rows.text(column++));
  claim.subject = kj::str(rows.text(column++));
  claim.session = kj::str(rows.text(column++));
  claim.turn = kj::str(rows.text(column++));
  claim.helper.name = kj::str(rows.text(column++));
  claim.helper.release = kj::str(rows.text(column++));
  if (!rows.isNull(column)) claim.helper.digest = rows.hash(column);
  return claim;
}

Ended readEnded(const Rows& rows, int column) {
  Ended out;
  auto& ending = out.ending;
  out.place = static_cast<uint64_t>(rows.number(column++));
  ending.terminal = enumerantOf<Terminal>(rows.text(column++));
  ending.effect = enumerantOf<Effect>(rows.text(column++));
  if (!rows.isNull(column)) ending.refusal = enumerantOf<RefusalCode>(rows.text(column));
  ++column;
  ending.retrySafe = numberIn<bool>(rows, column++);
  ending.route = enumerantOf<Route>(rows.text(column++));
  ending.evidence.verdict = enumerantOf<Verdict>(rows.text(column++));
  ending.evidence.method = enumerantOf<Method>(rows.text(column++));
  ending.evidence.source = enumerantOf<Source>(rows.text(column++));
  ending.evidence.unitsDone = numberIn<uint32_t>(rows, column++);
  ending.evidence.unitsAsked = numberIn<uint32_t>(rows, column++);
  ending.context = enumerantOf<ContextState>(rows.text(column++));
  ending.warnings = warningsIn(rows.text(column++));
  ending.at = rows.number(column++);
  out.previous = rows.hash(column++);
  out.link = rows.hash(column++);
  out.signature = KJ_REQUIRE_NONNULL(fixed<64>(rows.bytes(column)), "a signature of another size");
  return out;
}

}  // namespace

const Era& Identity::at(uint64_t place) const {
  size_t i = eras.size() - 1;
  while (i > 0 && eras[i].after >= place) --i;
  return eras[i];
}

void Identity::take(const attest::LedgerEvent& event) {
  KJ_IF_MAYBE (rotated, event.what.tryGet<attest::KeyRotated>()) {
    eras.add(Era{event.sequence, event.ledger, rotated->next, attest::keyIdOf(rotated->next)});
  }
  if (event.what.is<attest::Adopted>()) {
    eras.add(Era{event.sequence, event.ledger, present().key, kj::str(present().keyId)});
  }
}

bool isLedger(Database& database) {
  return database.number("PRAGMA application_id") == APPLICATION &&
         database.number("PRAGMA user_version") == FORMAT;
}

bool isArchive(Database& database) {
  return database.number("PRAGMA application_id") == ARCHIVE_FILE &&
         database.number("PRAGMA user_version") == FORMAT;
}

bool hasOurRules(Database& database) {
  Database fresh(nullptr, Database::Mode::SCRATCH);
  fresh.execute(SCHEMA);
  return rulesOf(database) == rulesOf(fresh);
}

Identity readIdentity(Database& database) {
  Identity out;
  {
    Statement ledger(database, "SELECT receipt_key FROM ledger");
    auto rows = ledger.rows();
    KJ_REQUIRE(rows.next(), "a ledger that does not say which");
    out.firstKey = rows.hash(0);
  }
  Statement ring(database,
                 "SELECT purpose, issuer, key_id, key FROM ring ORDER BY purpose, issuer, key_id");
  auto keys = ring.rows();
  while (keys.next()) {
    out.ring.add(purposeOf(keys.number(0)), keys.text(1), keys.text(2), keys.hash(3));
  }
  out.eras.add(Era{0,
                   {attest::digestOf(bytesOf(out.firstKey)), 1},
                   out.firstKey,
                   attest::keyIdOf(out.firstKey)});
  for (auto& row : eventsOf(database, "WHERE kind IN ('adopted', 'key_rotated') ORDER BY place")) {
    auto event = row.open(out.present().key);
    if (event.ok()) out.take(*event);
  }
  return out;
}

void found(Database& database, const attest::PublicKey& firstKey, const attest::KeyRing& keys) {
  database.execute(SCHEMA);
  Statement ring(database, "INSERT INTO ring (purpose, issuer, key_id, key) VALUES (?, ?, ?, ?)");
  for (auto& entry : keys.entries()) {
    ring.run(static_cast<int64_t>(entry.purpose), entry.issuer, entry.keyId, entry.key);
  }
  Statement ledger(database, "INSERT INTO ledger (only, receipt_key) VALUES (1, ?)");
  ledger.run(firstKey);
  database.execute("INSERT INTO mark (only, place, operations, latest) VALUES (1, 1, 0, 0)");
}

Result<attest::LedgerEvent> EventRow::open(const attest::PublicKey& key) const {
  KJ_IF_MAYBE (stated, signature) {
    attest::Envelope envelope{kj::heapArray<kj::byte>(body.asPtr()), kj::str(ISSUER),
                              attest::keyIdOf(key), *stated};
    return attest::openEvent(key, envelope);
  }
  return Refusal{RefusalCode::MALFORMED, "The signature does not have 64 bytes."};
}

kj::StringPtr kindOf(const EventContent& what) {
  KJ_SWITCH_ONEOF(what) {
    KJ_CASE_ONEOF(created, attest::Created) { return "created"; }
    KJ_CASE_ONEOF(adopted, attest::Adopted) { return "adopted"; }
    KJ_CASE_ONEOF(started, attest::Started) { return "started"; }
    KJ_CASE_ONEOF(accepted, attest::ClockAccepted) { return "clock_accepted"; }
    KJ_CASE_ONEOF(rotated, attest::KeyRotated) { return "key_rotated"; }
    KJ_CASE_ONEOF(revoked, attest::Envelope) { return "revoked"; }
    KJ_CASE_ONEOF(archived, attest::Archived) { return "archived"; }
    KJ_CASE_ONEOF(imported, attest::Imported) { return "imported"; }
    KJ_CASE_ONEOF(quarantined, attest::Quarantined) { return "quarantined"; }
  }
  KJ_UNREACHABLE;
}

kj::Maybe<uint64_t> aboutOf(const EventContent& what) {
  KJ_IF_MAYBE (archived, what.tryGet<attest::Archived>()) return archived->through;
  KJ_IF_MAYBE (quarantined, what.tryGet<attest::Quarantined>()) return quarantined->claim;
  return nullptr;
}

kj::Vector<EventRow> eventsBetween(Database& database, uint64_t first, uint64_t last) {
  return eventsOf(database,
                  kj::str("WHERE place BETWEEN ", first, " AND ", last, " ORDER BY place"));
}

kj::Vector<EventRow> eventsOfKind(Database& database, kj::StringPtr kind) {
  return eventsOf(database, kj::str("WHERE kind = '", kind, "' ORDER BY place"));
}

Memory readMemory(Database& database, const Identity& identity) {
  Memory out;
  auto placed = trusted(
      KJ_REQUIRE_NONNULL(lastOf(database, {"created", "adopted"}), "a ledger without a beginning"),
      identity);
  KJ_IF_MAYBE (created, placed.what.tryGet<attest::Created>()) out.place = created->place;
  KJ_IF_MAYBE (adopted, placed.what.tryGet<attest::Adopted>()) out.place = adopted->place;
  KJ_REQUIRE(placed.ledger == identity.present().id, "an incarnation that no event states");

  // A damaged reading of the clocks is none: the latest time on record still holds, and an audit
  // names the row. A damaged revocation or adoption is not passed over, since that would give back
  // what was taken away.
  auto damage = kj::runCatchingExceptions([&]() {
    KJ_IF_MAYBE (row, lastOf(database, {"started", "clock_accepted"})) {
      auto event = trusted(*row, identity);
      KJ_IF_MAYBE (started, event.what.tryGet<attest::Started>()) out.lastReading = started->clock;
      KJ_IF_MAYBE (accepted, event.what.tryGet<attest::ClockAccepted>()) {
        out.lastReading = accepted->clock;
      }
    }
  });
  KJ_IF_MAYBE (trouble, damage) {
    if (trouble->getType() != kj::Exception::Type::FAILED)
      kj::throwFatalException(kj::mv(*trouble));
  }
  KJ_IF_MAYBE (row, lastOf(database, {"clock_accepted"})) out.acceptedAt = row->place;

  for (auto& row : eventsOf(database, "WHERE kind = 'revoked' ORDER BY place")) {
    auto event = trusted(row, identity);
    auto& envelope = KJ_REQUIRE_NONNULL(event.what.tryGet<attest::Envelope>(), "not a revocation");
    auto revocation = attest::openRevocation(identity.ring, envelope);
    KJ_REQUIRE(revocation.ok(), "a revocation that does not hold", revocation.refusal().detail);
    out.revocations.add(kj::mv(*revocation));
  }
  return out;
}

kj::String recordsByOperation(kj::StringPtr condition) {
  return kj::str("SELECT ", RECORD,
                 " FROM operation o LEFT JOIN ending e ON e.operation = o.place ",
                 NAMES_OF_OPERATION, condition);
}

kj::String recordsByEnding(kj::StringPtr condition) {
  return kj::str("SELECT ", RECORD,
                 " FROM ending e LEFT JOIN operation o ON o.place = e.operation ",
                 NAMES_OF_OPERATION, condition);
}

Record readRecord(const Rows& rows, Part part) {
  Record out;
  out.place = static_cast<uint64_t>(rows.number(OPERATION_PLACE));
  if (!rows.isNull(CLAIM_LINK)) out.link = rows.hash(CLAIM_LINK);
  out.claim = readClaim(rows, OPERATION_ID);
  KJ_REQUIRE((out.claim.at == 0) == (out.link == nullptr), "a claim without its link");
  if (part == Part::ALL && !rows.isNull(ENDING_PLACE)) out.ended = readEnded(rows, ENDING_PLACE);
  return out;
}

attest::Receipt receiptOf(const Claim& claim, const Ending& ending, const Head& before,
                          const Era& era) {
  attest::Receipt out;
  out.issuer = kj::str(ISSUER);
  out.keyId = kj::str(era.keyId);
  out.ledger = era.id;
  out.operation = kj::str(claim.operation);
  out.actionHash = claim.actionHash;
  out.actionClass = claim.actionClass;
  out.kind = kj::str(claim.kind);
  out.mode = claim.mode;
  out.risk = claim.risk;
  out.proof = claim.proof;
  out.rights = claim.rights;
  out.grantIssuer = kj::str(claim.grantIssuer);
  out.grantKeyId = kj::str(claim.grantKeyId);
  out.grantHash = claim.grantHash;
  out.policyGeneration = claim.policyGeneration;
  out.lease = kj::str(claim.lease);
  out.subject = kj::str(claim.subject);
  out.session = kj::str(claim.session);
  out.turn = kj::str(claim.turn);
  out.helper = claim.helper.clone();
  out.route = ending.route;
  out.terminal = ending.terminal;
  out.effect = ending.effect;
  out.refusal = ending.refusal;
  out.retrySafe = ending.retrySafe;
  out.evidence = ending.evidence;
  out.context = ending.context;
  out.warnings.addAll(ending.warnings);
  out.claimedAt = claim.at;
  out.settledAt = ending.at;
  out.sequence = before.sequence + 1;
  out.previous = before.link;
  return out;
}

attest::Envelope envelopeOf(const Record& record, const Ended& ended, const Era& era) {
  Head before{ended.place - 1, ended.previous};
  return {attest::bodyOf(receiptOf(record.claim, ended.ending, before, era)), kj::str(ISSUER),
          kj::str(era.keyId), ended.signature};
}

Book::Book(Database& database, const Identity& identity)
    : identity(identity),
      selectHead(database,
                 "SELECT max(coalesce((SELECT max(place) FROM operation), 0), "
                 "coalesce((SELECT max(place) FROM ending), 0), "
                 "coalesce((SELECT max(place) FROM event), 0))"),
      selectLink(database,
                 "SELECT link FROM operation WHERE place = ?1 AND link IS NOT NULL "
                 "UNION ALL SELECT link FROM ending WHERE place = ?1 "
                 "UNION ALL SELECT link FROM event WHERE place = ?1"),
      selectArchived(
          database, kj::str("SELECT ", EVENT, " FROM event WHERE kind = 'archived' AND about = ?")),
      selectRecord(database, recordsByOperation("WHERE o.id = ?")),
      selectQuarantined(database, "SELECT 1 FROM event WHERE kind = 'quarantined' AND about = ?"),
      selectRetired(database, "SELECT action_hash FROM retired WHERE id = ?"),
      selectRetiredLink(database, "SELECT link FROM retired WHERE place = ?") {}

Head Book::head() {
  uint64_t place = 0;
  {
    auto rows = selectHead.rows();
    KJ_REQUIRE(rows.next());
    place = static_cast<uint64_t>(rows.number(0));
  }
  Head out{place, {}};
  KJ_IF_MAYBE (damaged, kj::runCatchingExceptions([&]() {
                 KJ_IF_MAYBE (link, linkAt(place)) out.link = *link;
               })) {
    if (damaged->getType() != kj::Exception::Type::FAILED) {
      kj::throwFatalException(kj::mv(*damaged));
    }
  }
  return out;
}

kj::Maybe<Hash> Book::linkAt(uint64_t place) {
  if (place == 0) return genesis(identity.firstKey, identity.ring);
  if (place > static_cast<uint64_t>(INT64_MAX)) return nullptr;
  {
    auto rows = selectLink.rows(place);
    if (rows.next()) return rows.hash(0);
  }
  KJ_IF_MAYBE (link, archivedThrough(place)) return *link;
  auto rows = selectRetiredLink.rows(place);
  if (!rows.next()) return nullptr;
  return rows.hash(0);
}

// An archive states, signed, the link of the last place that it took.
kj::Maybe<Hash> Book::archivedThrough(uint64_t place) {
  auto rows = selectArchived.rows(place);
  if (!rows.next()) return nullptr;
  auto row = readEvent(rows);
  auto event = trusted(row, identity);
  KJ_IF_MAYBE (archived, event.what.tryGet<attest::Archived>()) return archived->link;
  return nullptr;
}

Found Book::find(kj::StringPtr operation, kj::Maybe<const Hash&> actionHash) {
  kj::Maybe<Found> found;
  KJ_IF_MAYBE (trouble, kj::runCatchingExceptions([&]() {
                 auto rows = selectRecord.rows(operation);
                 found =
                     rows.next() ? describe(rows, actionHash) : findRetired(operation, actionHash);
               })) {
    // A device that does not answer is another matter than a row that says nothing.
    if (trouble->getType() != kj::Exception::Type::FAILED) {
      kj::throwFatalException(kj::mv(*trouble));
    }
    return Damaged();
  }
  return kj::mv(KJ_ASSERT_NONNULL(found));
}

Found Book::describe(const Rows& rows, kj::Maybe<const Hash&> actionHash) {
  auto record = readRecord(rows);
  KJ_IF_MAYBE (ended, record.ended) {
    auto& era = identity.at(ended->place);
    auto receipt = envelopeOf(record, *ended, era);
    if (!attest::verify(era.key, attest::RECEIPT_LABEL, receipt.body, receipt.signature)) {
      return Damaged();
    }
    KJ_IF_MAYBE (asked, actionHash) {
      if (!attest::same(*asked, record.claim.actionHash)) return Conflict();
    }
    return kj::mv(receipt);
  }
  if (selectQuarantined.rows(record.place).next()) return Damaged();
  KJ_IF_MAYBE (asked, actionHash) {
    if (!attest::same(*asked, record.claim.actionHash)) return Conflict();
  }
  return Open();
}

Found Book::findRetired(kj::StringPtr operation, kj::Maybe<const Hash&> actionHash) {
  auto rows = selectRetired.rows(operation);
  if (!rows.next()) return Unknown();
  KJ_IF_MAYBE (asked, actionHash) {
    if (!rows.isNull(0) && !attest::same(*asked, rows.hash(0))) return Conflict();
  }
  return Elsewhere();
}

bool Book::follows(const Record& record) {
  KJ_IF_MAYBE (link, record.link) {
    KJ_IF_MAYBE (before, linkAt(record.place - 1)) {
      auto computed = extend({record.place - 1, *before}, Step::CLAIM, record.claim.operation,
                             contentOf(record.claim));
      return attest::same(computed.link, *link);
    }
  }
  return false;
}

Scribe::Scribe(Database& database, Identity& identity, const attest::SigningKey& key,
               const Memory& memory)
    : book(database, identity),
      identity(identity),
      key(&key),
      last(book.head()),
      selectUsed(database,
                 "SELECT 1 FROM operation WHERE id = ?1 UNION ALL "
                 "SELECT 1 FROM retired WHERE id = ?1"),
      selectOpen(database, recordsByOperation(
                               "WHERE o.place >= ? AND e.place IS NULL AND NOT EXISTS (SELECT 1 "
                               "FROM event WHERE kind = 'quarantined' AND about = o.place) "
                               "ORDER BY o.place")),
      insertOperation(
          database,
          "INSERT INTO operation (place, id, action_hash, action_class, kind, mode, risk, proof, "
          "rights, grant_hash, authority, helper, helper_generation, claimed_at, link) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      insertEnding(
          database,
          "INSERT INTO ending (place, operation, terminal, effect, refusal, retry_safe, route, "
          "verdict, method, source, units_done, units_asked, context, warnings, settled_at, "
          "previous, link, signature) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
          "?)"),
      insertEvent(database,
                  kj::str("INSERT INTO event (", EVENT, ") VALUES (?, ?, ?, ?, ?, ?, ?)")),
      insertAuthority(database,
                      "INSERT INTO authority (id, issuer, key_id, policy_generation, lease, "
                      "subject, session, turn) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"),
      insertHelper(database, "INSERT INTO helper (id, name, release, digest) VALUES (?, ?, ?, ?)"),
      updateMark(database,
                 "UPDATE mark SET place = ?1, latest = ?2, operations = operations + (SELECT "
                 "count(*) FROM operation WHERE place >= mark.place AND place < ?1)") {
  lastAuthority = database.number("SELECT coalesce(max(id), 0) FROM authority");
  lastHelper = database.number("SELECT coalesce(max(id), 0) FROM helper");
  for (auto& each : memory.revocations) revocations.add(each);
  mark = static_cast<uint64_t>(database.number("SELECT place FROM mark"));
  // A mark that stands behind the last acceptance was made after it, with times from then on.
  if (mark > memory.acceptedAt) note(database.number("SELECT latest FROM mark"));
  auto from = kj::max(mark, memory.acceptedAt);
  note(database.number(
      kj::str("SELECT coalesce(max(settled_at), 0) FROM ending WHERE place >= ", from)));
  note(database.number(kj::str("SELECT coalesce(max(at), 0) FROM event WHERE place >= ", from)));
  readPending(memory.acceptedAt);
}

bool Scribe::claim(Claim claim) {
  if (selectUsed.rows(claim.operation).next()) return false;
  auto next = extend(last, Step::CLAIM, claim.operation, contentOf(claim));
  insert(claim, next.link);
  last = next;
  note(claim.at);
  openPlaces.insert(last.sequence);
  auto operation = kj::str(claim.operation);
  open.insert(kj::mv(operation), Open{last.sequence, kj::mv(claim)});
  return true;
}

kj::Maybe<Result<attest::Envelope>> Scribe::settle(kj::StringPtr operation, const Ending& ending) {
  KJ_IF_MAYBE (claimed, open.find(operation)) {
    auto place = claimed->place;
    auto receipt = end(claimed->claim, place, ending);
    openPlaces.erase(place);
    open.erase(operation);
    moveMark(STRIDE);
    return Result<attest::Envelope>(kj::mv(receipt));
  }
  auto found = book.find(operation, nullptr);
  KJ_SWITCH_ONEOF(found) {
    KJ_CASE_ONEOF(receipt, attest::Envelope) { return Result<attest::Envelope>(kj::mv(receipt)); }
    KJ_CASE_ONEOF(unknown, Unknown) { return nullptr; }
    KJ_CASE_ONEOF(elsewhere, Elsewhere) { return Result<attest::Envelope>(ARCHIVED); }
    KJ_CASE_ONEOF(damaged, Damaged) { return Result<attest::Envelope>(DAMAGED); }
    KJ_CASE_ONEOF(conflict, Conflict) {}
    KJ_CASE_ONEOF(claimed, ledger::Open) {}
  }
  KJ_FAIL_ASSERT("an open operation that is not known to be open");
}

Result<attest::Envelope> Scribe::conclude(const Claim& claim, const Ending& ending) {
  if (selectUsed.rows(claim.operation).next()) {
    auto found = book.find(claim.operation, claim.actionHash);
    KJ_IF_MAYBE (receipt, found.tryGet<attest::Envelope>()) return kj::mv(*receipt);
    return Refusal{RefusalCode::OPERATION_CONFLICT, "This operation id was already used."};
  }
  insert(claim, nullptr);
  auto receipt = end(claim, last.sequence + 1, ending);
  moveMark(STRIDE);
  return kj::mv(receipt);
}

void Scribe::revoke(const attest::Revocation& revocation, attest::Envelope envelope, int64_t at) {
  if (revocations.has(revocation.issuer, revocation.revocation)) return;
  append(kj::mv(envelope), at);
  revocations.add(revocation);
}

void Scribe::append(EventContent what, int64_t at) {
  auto& era = identity.present();
  KJ_REQUIRE(key->publicKey() == era.key, "an event signed with another key than the present one");
  attest::LedgerEvent event;
  event.issuer = kj::str(ISSUER);
  event.keyId = kj::str(era.keyId);
  event.ledger = era.id;
  if (what.is<attest::Adopted>()) ++event.ledger.incarnation;
  event.sequence = last.sequence + 1;
  event.previous = last.link;
  event.at = at;
  event.what = kj::mv(what);

  auto sealed = attest::seal(event, *key);
  auto next = extend(last, Step::EVENT, nullptr, attest::digestOf(sealed.body));
  insertEvent.run(next.sequence, kindOf(event.what), aboutOf(event.what), at, sealed.body.asPtr(),
                  next.link, sealed.signature);
  last = next;
  identity.take(event);
  if (event.what.is<attest::ClockAccepted>()) latest = 0;
  note(at);
}

void Scribe::readPending(uint64_t acceptedAt) {
  auto rows = selectOpen.rows(mark);
  while (rows.next()) {
    Pending each{static_cast<uint64_t>(rows.number(0)), nullptr};
    KJ_IF_MAYBE (damaged, kj::runCatchingExceptions([&]() {
                   auto record = readRecord(rows);
                   if (book.follows(record)) each.intact = kj::mv(record.claim);
                 })) {
      // A device that does not answer says nothing of the record.
      if (damaged->getType() != kj::Exception::Type::FAILED) {
        kj::throwFatalException(kj::mv(*damaged));
      }
    }
    KJ_IF_MAYBE (claim, each.intact) {
      if (each.place > acceptedAt) note(claim->at);
    }
    pending.add(kj::mv(each));
  }
}

Recovered Scribe::recover(const Ending& ending) {
  Recovered out;
  for (auto& each : pending) {
    KJ_IF_MAYBE (claim, each.intact) {
      end(*claim, each.place, ending);
      ++out.settled;
    } else {
      append(attest::Quarantined{each.place}, ending.at);
      ++out.quarantined;
    }
  }
  pending.clear();
  moveMark(1);
  return out;
}

attest::Envelope Scribe::end(const Claim& claim, uint64_t operation, const Ending& ending) {
  auto& era = identity.present();
  KJ_REQUIRE(key->publicKey() == era.key, "a receipt signed with another key than the present one");
  auto sealed = attest::seal(receiptOf(claim, ending, last, era), *key);
  auto next = extend(last, Step::ENDING, claim.operation, attest::digestOf(sealed.body));
  auto& evidence = ending.evidence;
  insertEnding.run(next.sequence, operation, nameOf(ending.terminal), nameOf(ending.effect),
                   ending.refusal.map([](RefusalCode code) { return nameOf(code); }),
                   int64_t{ending.retrySafe}, nameOf(ending.route), nameOf(evidence.verdict),
                   nameOf(evidence.method), nameOf(evidence.source), uint64_t{evidence.unitsDone},
                   uint64_t{evidence.unitsAsked}, nameOf(ending.context), wordsOf(ending.warnings),
                   ending.at, last.link, next.link, sealed.signature);
  last = next;
  note(ending.at);
  return sealed;
}

void Scribe::insert(const Claim& claim, kj::Maybe<Hash> link) {
  kj::Maybe<int64_t> claimedAt;
  if (link != nullptr) claimedAt = claim.at;
  insertOperation.run(last.sequence + 1, claim.operation, claim.actionHash,
                      nameOf(claim.actionClass), claim.kind, nameOf(claim.mode), nameOf(claim.risk),
                      nameOf(claim.proof), wordsOf(claim.rights), claim.grantHash,
                      authorityOf(claim), helperOf(claim), claim.helper.generation, claimedAt,
                      link);
}

int64_t Scribe::authorityOf(const Claim& claim) {
  // Identifiers have no spaces.
  auto names = kj::str(claim.grantIssuer, ' ', claim.grantKeyId, ' ', claim.policyGeneration, ' ',
                       claim.lease, ' ', claim.subject, ' ', claim.session, ' ', claim.turn);
  KJ_IF_MAYBE (known, authorities.find(names)) return *known;
  if (authorities.size() >= NAMES) authorities.clear();
  insertAuthority.run(++lastAuthority, claim.grantIssuer, claim.grantKeyId, claim.policyGeneration,
                      claim.lease, claim.subject, claim.session, claim.turn);
  authorities.insert(kj::mv(names), lastAuthority);
  return lastAuthority;
}

kj::Maybe<int64_t> Scribe::helperOf(const Claim& claim) {
  auto& helper = claim.helper;
  if (helper.generation == 0) return nullptr;
  auto names = kj::str(helper.name, ' ', helper.release, ' ', hex(bytesOf(helper.digest)));
  KJ_IF_MAYBE (known, helpers.find(names)) return *known;
  if (helpers.size() >= NAMES) helpers.clear();
  insertHelper.run(++lastHelper, helper.name, helper.release, helper.digest);
  helpers.insert(kj::mv(names), lastHelper);
  return lastHelper;
}

// Moves it as far as it can go, when that is at least `stride` places.
void Scribe::moveMark(uint64_t stride) {
  auto next = last.sequence + 1;
  if (!openPlaces.empty()) next = *openPlaces.begin();
  if (!pending.empty()) next = pending.front().place;
  if (next < mark + stride) return;
  updateMark.run(next, latest);
  mark = next;
}

}  // namespace praefectus::ledger
