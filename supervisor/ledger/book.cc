#include "supervisor/ledger/book.h"

#include "supervisor/ledger/schema.h"

#include <capnp/schema.h>

namespace praefectus::ledger {
namespace {

constexpr int64_t APPLICATION = 0x50524C47;
constexpr int64_t FORMAT = 1;
constexpr kj::StringPtr ISSUER = "ledger"_kj;

// In the order of `readRecord` and of `insertOperation`.
constexpr kj::StringPtr RECORD =
    "id, action_hash, action_class, o.kind, grant_issuer, grant_key_id, grant_hash, subject, "
    "session, "
    "turn, helper_name, helper_release, helper_digest, helper_generation, claimed_at, claimed, "
    "ended"_kj;

template <typename Enum>
Enum enumerantOf(kj::StringPtr word) {
  auto count = capnp::Schema::from<Enum>().getEnumerants().size();
  for (capnp::uint i = 0; i < count; ++i) {
    auto value = static_cast<Enum>(i);
    if (praefectus::nameOf(value) == word) return value;
  }
  KJ_FAIL_REQUIRE("a word that is not in words.capnp");
}

kj::Maybe<uint64_t> place(const Rows& rows, int column) {
  if (rows.isNull(column)) return nullptr;
  return static_cast<uint64_t>(rows.number(column));
}

Record readRecord(const Rows& rows, int column) {
  Record out;
  auto& claim = out.claim;
  claim.operation = kj::str(rows.text(column++));
  claim.actionHash = rows.hash(column++);
  claim.actionClass = enumerantOf<ActionClass>(rows.text(column++));
  claim.kind = kj::str(rows.text(column++));
  claim.grantIssuer = kj::str(rows.text(column++));
  claim.grantKeyId = kj::str(rows.text(column++));
  claim.grantHash = rows.hash(column++);
  claim.subject = kj::str(rows.text(column++));
  claim.session = kj::str(rows.text(column++));
  claim.turn = kj::str(rows.text(column++));
  claim.helper.name = kj::str(rows.text(column++));
  claim.helper.release = kj::str(rows.text(column++));
  claim.helper.digest = rows.hash(column++);
  claim.helper.generation = static_cast<uint64_t>(rows.number(column++));
  claim.at = rows.number(column++);
  out.claimed = place(rows, column++);
  out.ended = place(rows, column++);
  return out;
}

// For an auditor, who wants to hear of every damaged row and not only of the first.
kj::Maybe<Record> intactRecord(const Rows& rows, int column) {
  if (rows.isNull(column)) return nullptr;
  kj::Maybe<Record> out;
  KJ_IF_MAYBE (damaged, kj::runCatchingExceptions([&]() { out = readRecord(rows, column); })) {
    (void)damaged;
    return nullptr;
  }
  return out;
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

}  // namespace

bool isLedger(Database& database) {
  return database.number("PRAGMA application_id") == APPLICATION &&
         database.number("PRAGMA user_version") == FORMAT;
}

bool hasOurRules(Database& database) {
  Database fresh(nullptr, Database::Mode::SCRATCH);
  fresh.execute(SCHEMA);
  return rulesOf(database) == rulesOf(fresh);
}

Identity readIdentity(Database& database) {
  Identity out;
  Statement ledger(database, "SELECT ledger_key, incarnation, receipt_key FROM ledger");
  auto rows = ledger.rows();
  KJ_REQUIRE(rows.next(), "a ledger that does not say which");
  out.id = {rows.hash(0), static_cast<uint32_t>(rows.number(1))};
  out.receiptKey = rows.hash(2);

  Statement ring(database,
                 "SELECT purpose, issuer, key_id, key FROM ring ORDER BY purpose, issuer, key_id");
  auto keys = ring.rows();
  while (keys.next()) {
    out.ring.add(purposeOf(keys.number(0)), keys.text(1), keys.text(2), keys.hash(3));
  }
  return out;
}

void found(Database& database, const Identity& identity) {
  Transaction transaction(database);
  database.execute(SCHEMA);
  Statement ring(database, "INSERT INTO ring (purpose, issuer, key_id, key) VALUES (?, ?, ?, ?)");
  for (auto& entry : identity.ring.entries()) {
    ring.run(static_cast<int64_t>(entry.purpose), entry.issuer, entry.keyId, entry.key);
  }
  Statement ledger(
      database,
      "INSERT INTO ledger (only, ledger_key, incarnation, receipt_key) VALUES (1, ?, ?, ?)");
  ledger.run(identity.id.key, uint64_t{identity.id.incarnation}, identity.receiptKey);
  transaction.commit();
}

Book::Book(Database& database, const Identity& identity)
    : identity(identity),
      receiptKeyId(attest::keyIdOf(identity.receiptKey)),
      selectHead(database, "SELECT sequence, link FROM chain ORDER BY sequence DESC LIMIT 1"),
      selectRecord(database, kj::str("SELECT ", RECORD, " FROM operation o WHERE id = ?")),
      selectReceipt(database, "SELECT receipt, signature FROM chain WHERE sequence = ?") {}

Head Book::head() {
  auto rows = selectHead.rows();
  if (!rows.next()) return {0, genesis(identity.id, identity.receiptKey, identity.ring)};
  return {static_cast<uint64_t>(rows.number(0)), rows.hash(1)};
}

kj::Maybe<Record> Book::record(kj::StringPtr operation) {
  auto rows = selectRecord.rows(operation);
  if (!rows.next()) return nullptr;
  return readRecord(rows, 0);
}

attest::Envelope Book::receipt(uint64_t sequence) {
  auto rows = selectReceipt.rows(sequence);
  KJ_REQUIRE(rows.next() && !rows.isNull(0), "an ending that is not in the chain");
  auto signature = KJ_REQUIRE_NONNULL(fixed<64>(rows.bytes(1)), "a signature of another length");
  return {kj::heapArray(rows.bytes(0)), kj::str(ISSUER), kj::str(receiptKeyId), signature};
}

Scribe::Scribe(Database& database, const Identity& identity, const attest::SigningKey& key)
    : book(database, identity),
      identity(identity),
      key(key),
      keyId(attest::keyIdOf(key.publicKey())),
      insertOperation(
          database,
          "INSERT INTO operation (id, action_hash, action_class, kind, grant_issuer, "
          "grant_key_id, grant_hash, subject, session, turn, helper_name, helper_release, "
          "helper_digest, helper_generation, claimed_at, claimed, ended) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      endOperation(database, "UPDATE operation SET ended = ? WHERE id = ?"),
      insertClaim(database,
                  "INSERT INTO chain (sequence, kind, operation, link) VALUES (?, 'claim', ?, ?)"),
      insertEnding(
          database,
          "INSERT INTO chain (sequence, kind, operation, link, terminal, receipt, signature) "
          "VALUES (?, 'ending', ?, ?, ?, ?, ?)"),
      selectOpen(database, "SELECT id FROM operation WHERE ended IS NULL LIMIT ?") {}

bool Scribe::claim(const Claim& claim) {
  if (book.record(claim.operation) != nullptr) return false;
  auto head = extend(book.head(), Step::CLAIM, claim.operation, contentOf(claim));
  insert(claim, head.sequence, nullptr);
  insertClaim.run(head.sequence, claim.operation, head.link);
  return true;
}

kj::Maybe<attest::Envelope> Scribe::settle(kj::StringPtr operation, const Ending& ending) {
  KJ_IF_MAYBE (known, book.record(operation)) {
    KJ_IF_MAYBE (ended, known->ended) return book.receipt(*ended);
    endOperation.run(book.head().sequence + 1, operation);
    return end(known->claim, ending);
  }
  return nullptr;
}

Result<attest::Envelope> Scribe::conclude(const Claim& claim, const Ending& ending) {
  KJ_IF_MAYBE (known, book.record(claim.operation)) {
    KJ_IF_MAYBE (ended, known->ended) {
      if (attest::same(known->claim.actionHash, claim.actionHash)) return book.receipt(*ended);
    }
    return Refusal{RefusalCode::OPERATION_CONFLICT, "This operation id was already used."};
  }
  insert(claim, nullptr, book.head().sequence + 1);
  return end(claim, ending);
}

kj::Array<kj::String> Scribe::openOperations(uint64_t limit) {
  kj::Vector<kj::String> out;
  auto rows = selectOpen.rows(limit);
  while (rows.next()) out.add(kj::str(rows.text(0)));
  return out.releaseAsArray();
}

void Scribe::insert(const Claim& claim, kj::Maybe<uint64_t> claimed, kj::Maybe<uint64_t> ended) {
  auto run = [&](auto claimedPlace, auto endedPlace) {
    insertOperation.run(claim.operation, claim.actionHash, praefectus::nameOf(claim.actionClass),
                        claim.kind, claim.grantIssuer, claim.grantKeyId, claim.grantHash,
                        claim.subject, claim.session, claim.turn, claim.helper.name,
                        claim.helper.release, claim.helper.digest, claim.helper.generation,
                        claim.at, claimedPlace, endedPlace);
  };
  KJ_IF_MAYBE (sequence, claimed) run(*sequence, nullptr);
  KJ_IF_MAYBE (sequence, ended) run(nullptr, *sequence);
}

// The operation's row names the next place already; this fills it.
attest::Envelope Scribe::end(const Claim& claim, const Ending& ending) {
  auto before = book.head();
  auto receipt = receiptFor(claim, identity, before);
  receipt.route = ending.route;
  receipt.terminal = ending.terminal;
  receipt.effect = ending.effect;
  receipt.refusal = ending.refusal;
  receipt.retrySafe = ending.retrySafe;
  receipt.evidence = ending.evidence;
  receipt.context = ending.context;
  receipt.warnings.addAll(ending.warnings);
  receipt.settledAt = ending.at;

  auto sealed = attest::seal(receipt, key);
  auto head = extend(before, Step::ENDING, claim.operation, contentOf(sealed.body.asPtr()));
  insertEnding.run(head.sequence, claim.operation, head.link, praefectus::nameOf(ending.terminal),
                   sealed.body.asPtr(), sealed.signature);
  return sealed;
}

kj::Vector<Link> linksAfter(Database& database, uint64_t sequence, uint64_t limit) {
  Statement statement(
      database,
      kj::str("SELECT c.sequence, c.kind, c.operation, link, terminal, receipt, signature, ",
              RECORD,
              " FROM chain c LEFT JOIN operation o ON o.id = c.operation "
              "WHERE c.sequence > ? ORDER BY c.sequence LIMIT ?"));
  auto rows = statement.rows(sequence, limit);
  kj::Vector<Link> out;
  while (rows.next()) {
    Link link;
    link.sequence = static_cast<uint64_t>(rows.number(0));
    link.kind = kj::str(rows.text(1));
    link.operation = kj::str(rows.text(2));
    link.link = fixed<32>(rows.bytes(3));
    link.terminal = kj::str(rows.text(4));
    link.receipt = kj::heapArray(rows.bytes(5));
    link.signature = fixed<64>(rows.bytes(6));
    link.record = intactRecord(rows, 7);
    out.add(kj::mv(link));
  }
  return out;
}

attest::Receipt receiptFor(const Claim& claim, const Identity& identity, const Head& before) {
  attest::Receipt out;
  out.issuer = kj::str(ISSUER);
  out.keyId = attest::keyIdOf(identity.receiptKey);
  out.ledger = identity.id;
  out.operation = kj::str(claim.operation);
  out.actionHash = claim.actionHash;
  out.actionClass = claim.actionClass;
  out.kind = kj::str(claim.kind);
  out.grantIssuer = kj::str(claim.grantIssuer);
  out.grantKeyId = kj::str(claim.grantKeyId);
  out.grantHash = claim.grantHash;
  out.subject = kj::str(claim.subject);
  out.session = kj::str(claim.session);
  out.turn = kj::str(claim.turn);
  out.helper = claim.helper.clone();
  out.claimedAt = claim.at;
  out.sequence = before.sequence + 1;
  out.previous = before.link;
  return out;
}

}  // namespace praefectus::ledger
