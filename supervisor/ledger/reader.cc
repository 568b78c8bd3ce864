#include "supervisor/ledger/reader.h"

#include "supervisor/ledger/book.h"
#include "supervisor/ledger/database.h"
#include "supervisor/ledger/folder.h"

namespace praefectus::ledger {
namespace {

constexpr size_t FINDINGS = 100;
// Places read under one snapshot. A snapshot held for long keeps the writer's log from being used
// again.
constexpr uint64_t PLACES_AT_ONCE = 256;

bool sameHelper(const attest::HelperIdentity& a, const attest::HelperIdentity& b) {
  return a.name == b.name && a.release == b.release && a.digest == b.digest &&
         a.generation == b.generation;
}

// Whether two receipts agree in everything that the operation's row and the chain determine.
bool sameOrigin(const attest::Receipt& a, const attest::Receipt& b) {
  return a.ledger == b.ledger && a.operation == b.operation && a.actionHash == b.actionHash &&
         a.actionClass == b.actionClass && a.kind == b.kind && a.grantIssuer == b.grantIssuer &&
         a.grantKeyId == b.grantKeyId && a.grantHash == b.grantHash && a.subject == b.subject &&
         a.session == b.session && a.turn == b.turn && sameHelper(a.helper, b.helper) &&
         a.claimedAt == b.claimedAt;
}

// Goes through the chain from its beginning and notes what does not hold.
class Audit {
 public:
  Audit(Database& database, const Identity& identity, kj::Maybe<attest::PublicKey> trusted)
      : database(database),
        identity(identity),
        receiptKey(trusted.orDefault(identity.receiptKey)),
        head{0, genesis(identity.id, identity.receiptKey, identity.ring)} {}

  void run(Report& into) {
    report = &into;
    KJ_IF_MAYBE (trouble, kj::runCatchingExceptions([this]() { checkAll(); })) {
      if (trouble->getType() != kj::Exception::Type::FAILED)
        kj::throwFatalException(kj::mv(*trouble));
      note(last + 1, "From this place on the ledger cannot be read.");
    }
  }

 private:
  void checkAll() {
    checkFile();
    while (true) {
      auto links = linksAfter(database, last, PLACES_AT_ONCE);
      if (links.size() == 0) break;
      for (auto& link : links) checkPlace(link);
    }
    checkOperations();
  }

  void note(uint64_t sequence, kj::StringPtr what) {
    if (report->findings.size() < FINDINGS) report->findings.add(Finding{sequence, kj::str(what)});
  }

  void checkFile() {
    Statement statement(database, "PRAGMA integrity_check(1)");
    auto rows = statement.rows();
    if (!rows.next() || rows.text(0) != "ok") note(0, "The database's own structure is damaged.");
    if (!hasOurRules(database)) note(0, "The ledger's constraints or triggers were changed.");
    if (identity.id.key != attest::digestOf(bytesOf(identity.receiptKey))) {
      note(0, "The ledger's id is not that of its receipt key.");
    }
    if (receiptKey != identity.receiptKey) {
      note(0, "The ledger records another receipt key than the trusted one.");
    }
  }

  void checkPlace(const Link& link) {
    if (link.sequence != last + 1) note(link.sequence, "The place before this one is missing.");
    last = link.sequence;
    KJ_IF_MAYBE (record, link.record) {
      if (link.kind == nameOf(Step::CLAIM)) {
        checkClaim(link, *record);
      } else if (link.kind == nameOf(Step::ENDING)) {
        checkEnding(link, *record);
      } else {
        note(link.sequence, "The place is neither a claim nor an ending.");
      }
    } else {
      note(link.sequence, "The operation of this place is missing or damaged.");
    }
    // Goes on from what stands there, so that one change is reported once and not from there on.
    KJ_IF_MAYBE (stated, link.link) head = {link.sequence, *stated};
  }

  void checkClaim(const Link& link, const Record& record) {
    ++claims;
    if (isElsewhere(record.claimed, link)) {
      note(link.sequence, "The operation names another place for its claim.");
    }
    checkLink(link, Step::CLAIM, contentOf(record.claim));
  }

  void checkEnding(const Link& link, const Record& record) {
    ++endings;
    if (isElsewhere(record.ended, link)) {
      note(link.sequence, "The operation names another place for its ending.");
    }
    checkReceipt(link, record);
    checkLink(link, Step::ENDING, contentOf(link.receipt.asPtr()));
  }

  static bool isElsewhere(const kj::Maybe<uint64_t>& place, const Link& link) {
    KJ_IF_MAYBE (sequence, place) return *sequence != link.sequence;
    return true;
  }

  void checkLink(const Link& link, Step step, const Hash& content) {
    auto computed = extend(head, step, link.operation, content);
    KJ_IF_MAYBE (stated, link.link) {
      if (attest::same(*stated, computed.link)) return;
    }
    note(link.sequence, "The chain's link does not follow from its content.");
  }

  void checkReceipt(const Link& link, const Record& record) {
    auto signature = link.signature;
    KJ_IF_MAYBE (stated, signature) {
      attest::Envelope envelope{kj::heapArray<kj::byte>(link.receipt.asPtr()), kj::str("ledger"),
                                attest::keyIdOf(receiptKey), *stated};
      auto receipt = attest::openReceipt(receiptKey, envelope);
      if (receipt.ok()) return compare(*receipt, link, record);
    }
    note(link.sequence, "The receipt's signature or form does not hold.");
  }

  void compare(const attest::Receipt& receipt, const Link& link, const Record& record) {
    auto expected = receiptFor(record.claim, identity, head);
    bool inPlace = receipt.sequence == link.sequence && receipt.previous == expected.previous;
    bool sameEnding = praefectus::nameOf(receipt.terminal) == link.terminal;
    if (!inPlace) note(link.sequence, "The receipt was made for another place of the chain.");
    if (!sameOrigin(receipt, expected))
      note(link.sequence, "The receipt differs from its operation.");
    if (!sameEnding) note(link.sequence, "The receipt states another ending than the ledger.");
    if (inPlace && sameEnding && sameOrigin(receipt, expected)) ++report->receipts;
  }

  // Each place was found to be named by its operation. That every operation's places exist takes
  // two more looks: none lies behind the end, and as many operations name one as there are places.
  void checkOperations() {
    auto behind = count(
        "SELECT count(*) FROM operation, (SELECT coalesce(max(sequence), 0) AS last FROM chain) "
        "WHERE claimed > last OR ended > last");
    auto claimed = count(kj::str("SELECT count(*) FROM operation WHERE claimed <= ", last));
    auto ended = count(kj::str("SELECT count(*) FROM operation WHERE ended <= ", last));
    if (behind > 0 || claimed != claims || ended != endings) {
      note(0, "An operation names a place that the chain does not have.");
    }
  }

  uint64_t count(kj::StringPtr query) { return static_cast<uint64_t>(database.number(query)); }

  Database& database;
  const Identity& identity;
  attest::PublicKey receiptKey;
  Head head;
  uint64_t last = 0, claims = 0, endings = 0;
  Report* report = nullptr;
};

class OpenReader final : public LedgerReader {
 public:
  OpenReader(kj::Own<Database> database, Identity identity)
      : database(kj::mv(database)),
        identity(kj::mv(identity)),
        book(*this->database, this->identity) {}

  Result<Summary> summary() override {
    return refusingTrouble<Summary>([this]() -> Result<Summary> { return readSummary(); });
  }

  Result<kj::Maybe<kj::Maybe<attest::Envelope>>> receipt(kj::StringPtr operation) override {
    using Answer = kj::Maybe<kj::Maybe<attest::Envelope>>;
    return refusingTrouble<Answer>([&]() -> Result<Answer> { return readReceipt(operation); });
  }

  Result<kj::Vector<Listed>> recent(uint64_t limit) override {
    using Answer = kj::Vector<Listed>;
    return refusingTrouble<Answer>([&]() -> Result<Answer> { return readRecent(limit); });
  }

  Result<kj::Maybe<Hash>> linkAt(uint64_t sequence) override {
    using Answer = kj::Maybe<Hash>;
    return refusingTrouble<Answer>([&]() -> Result<Answer> { return readLink(sequence); });
  }

  Result<Report> verify(kj::Maybe<attest::PublicKey> trusted) override {
    return refusingTrouble<Report>([&]() -> Result<Report> {
      Report report;
      Audit(*database, identity, trusted).run(report);
      report.summary = readSummary();
      return kj::mv(report);
    });
  }

 private:
  // One statement, so that a ledger at work shows one moment.
  Summary readSummary() {
    Statement statement(*database,
                        "SELECT (SELECT count(*) FROM operation), "
                        "(SELECT count(*) FROM operation WHERE ended IS NULL), sequence, link "
                        "FROM (SELECT 1) LEFT JOIN chain ON sequence = "
                        "(SELECT max(sequence) FROM chain)");
    auto rows = statement.rows();
    KJ_REQUIRE(rows.next());
    Summary out;
    out.operations = static_cast<uint64_t>(rows.number(0));
    out.open = static_cast<uint64_t>(rows.number(1));
    out.sequence = static_cast<uint64_t>(rows.number(2));
    out.head =
        rows.isNull(3) ? genesis(identity.id, identity.receiptKey, identity.ring) : rows.hash(3);
    out.id = identity.id;
    out.receiptKey = identity.receiptKey;
    return out;
  }

  kj::Maybe<kj::Maybe<attest::Envelope>> readReceipt(kj::StringPtr operation) {
    KJ_IF_MAYBE (record, book.record(operation)) {
      KJ_IF_MAYBE (ended, record->ended) {
        return kj::Maybe<attest::Envelope>(book.receipt(*ended));
      }
      return kj::Maybe<attest::Envelope>();
    }
    return nullptr;
  }

  // From the chain's end, and CROSS JOIN keeps it so (the outer table is the left one): the cost is
  // that of what is listed, not of what is old.
  kj::Vector<Listed> readRecent(uint64_t limit) {
    Statement statement(*database,
                        "SELECT o.id, o.kind, sequence, claimed_at, ended FROM chain c "
                        "CROSS JOIN operation o ON o.id = c.operation "
                        "WHERE sequence = coalesce(ended, claimed) ORDER BY sequence DESC LIMIT ?");
    auto rows = statement.rows(limit);
    kj::Vector<Listed> out;
    while (rows.next()) {
      Listed one;
      one.operation = kj::str(rows.text(0));
      one.kind = kj::str(rows.text(1));
      one.sequence = static_cast<uint64_t>(rows.number(2));
      one.claimedAt = rows.number(3);
      if (!rows.isNull(4)) one.ended = book.receipt(one.sequence);
      out.add(kj::mv(one));
    }
    return out;
  }

  kj::Maybe<Hash> readLink(uint64_t sequence) {
    if (sequence == 0) return genesis(identity.id, identity.receiptKey, identity.ring);
    Statement statement(*database, "SELECT link FROM chain WHERE sequence = ?");
    auto rows = statement.rows(sequence);
    if (!rows.next()) return nullptr;
    return rows.hash(0);
  }

  kj::Own<Database> database;
  Identity identity;
  Book book;
};

}  // namespace

Result<kj::Own<LedgerReader>> LedgerReader::open(kj::StringPtr path) {
  auto folder = Folder::view(path);
  if (!folder.ok()) return folder.refusal();
  return refusingTrouble<kj::Own<LedgerReader>>([&]() -> Result<kj::Own<LedgerReader>> {
    auto database = kj::heap<Database>(folder->path(DATABASE_FILE), Database::Mode::READ);
    if (!isLedger(*database)) {
      return Refusal{RefusalCode::LEDGER_FOREIGN, "The database is not a ledger of this version."};
    }
    auto identity = readIdentity(*database);
    return kj::Own<LedgerReader>(kj::heap<OpenReader>(kj::mv(database), kj::mv(identity)));
  });
}

}  // namespace praefectus::ledger
