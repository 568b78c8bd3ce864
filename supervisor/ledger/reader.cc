#include "supervisor/ledger/reader.h"

#include "supervisor/ledger/audit.h"
#include "supervisor/ledger/folder.h"

#include <sys/stat.h>

namespace praefectus::ledger {
namespace {

class OpenReader final : public LedgerReader {
 public:
  explicit OpenReader(kj::Own<Database> database)
      : database(kj::mv(database)),
        identity(readIdentity(*this->database)),
        book(*this->database, identity) {}

  Result<Summary> summary() override {
    return asOfNow<Summary>([this]() -> Result<Summary> { return readSummary(); });
  }

  Result<kj::Maybe<kj::Maybe<attest::Envelope>>> receipt(kj::StringPtr operation) override {
    using Answer = kj::Maybe<kj::Maybe<attest::Envelope>>;
    return asOfNow<Answer>([&]() { return readReceipt(operation); });
  }

  Result<kj::Vector<Listed>> list(const Filter& filter) override {
    using Answer = kj::Vector<Listed>;
    return asOfNow<Answer>([&]() -> Result<Answer> { return readList(filter); });
  }

  Result<kj::Vector<attest::PublicKey>> receiptKeys() override {
    using Answer = kj::Vector<attest::PublicKey>;
    return asOfNow<Answer>([this]() -> Result<Answer> {
      Answer keys;
      for (auto& era : identity.eras) {
        if (keys.size() == 0 || keys.back() != era.key) keys.add(era.key);
      }
      return kj::mv(keys);
    });
  }

  Result<kj::Maybe<Hash>> linkAt(uint64_t sequence) override {
    using Answer = kj::Maybe<Hash>;
    return asOfNow<Answer>([&]() -> Result<Answer> { return book.linkAt(sequence); });
  }

  Result<Report> verify(kj::Maybe<attest::PublicKey> trusted,
                        kj::Maybe<Progress> progress) override {
    return asOfNow<Report>([&]() -> Result<Report> {
      Report report;
      audit(*database, trusted, progress, report);
      KJ_IF_MAYBE (trouble, kj::runCatchingExceptions([&]() { report.summary = readSummary(); })) {
        if (trouble->getType() != kj::Exception::Type::FAILED) {
          kj::throwFatalException(kj::mv(*trouble));
        }
        report.findings.add(Finding{0, kj::str("The ledger does not say where it ends.")});
      }
      return kj::mv(report);
    });
  }

 private:
  // A tool may have begun another era since the last look.
  template <typename T, typename Deed>
  Result<T> asOfNow(Deed&& deed) {
    return refusingTrouble<T>([&]() -> Result<T> {
      identity = readIdentity(*database);
      return deed();
    });
  }

  Summary readSummary() {
    Snapshot moment(*database);
    return summaryOf(*database, book, identity);
  }

  Result<kj::Maybe<kj::Maybe<attest::Envelope>>> readReceipt(kj::StringPtr operation) {
    using Answer = kj::Maybe<kj::Maybe<attest::Envelope>>;
    auto found = book.find(operation, nullptr);
    KJ_SWITCH_ONEOF(found) {
      KJ_CASE_ONEOF(unknown, Unknown) { return Answer(); }
      KJ_CASE_ONEOF(conflict, Conflict) { KJ_UNREACHABLE; }  // There is nothing to differ from.
      KJ_CASE_ONEOF(open, Open) { return Answer(kj::Maybe<attest::Envelope>()); }
      KJ_CASE_ONEOF(receipt, attest::Envelope) {
        return Answer(kj::Maybe<attest::Envelope>(kj::mv(receipt)));
      }
      KJ_CASE_ONEOF(elsewhere, Elsewhere) { return ARCHIVED; }
      KJ_CASE_ONEOF(damaged, Damaged) { return DAMAGED; }
    }
    KJ_UNREACHABLE;
  }

  // From the end, and only as far as the limit when nothing is filtered out.
  kj::Vector<Listed> readList(const Filter& filter) {
    Statement statement(
        *database,
        recordsByOperation("WHERE (?1 IS NULL OR session = ?1) AND (?2 IS NULL OR turn = ?2) "
                           "AND (?3 IS NULL OR o.kind = ?3) AND (?4 IS NULL OR terminal = ?4) "
                           "AND (?5 IS NULL OR coalesce(claimed_at, settled_at) >= ?5) "
                           "AND (?6 IS NULL OR coalesce(claimed_at, settled_at) < ?6) "
                           "ORDER BY o.place DESC LIMIT ?7"));
    auto terminal = filter.terminal.map([](Terminal each) { return nameOf(each); });
    auto rows = statement.rows(filter.session, filter.turn, filter.kind, terminal, filter.since,
                               filter.until, filter.limit);
    kj::Vector<Listed> out;
    while (rows.next()) out.add(listed(rows));
    return out;
  }

  Listed listed(const Rows& rows) {
    Listed out;
    KJ_IF_MAYBE (damaged, kj::runCatchingExceptions([&]() { describe(readRecord(rows), out); })) {
      (void)damaged;
      out.operation = kj::str(rows.text(OPERATION_ID));
      out.sequence = static_cast<uint64_t>(rows.number(OPERATION_PLACE));
      out.damaged = true;
    }
    return out;
  }

  void describe(const Record& record, Listed& out) {
    out.operation = kj::str(record.claim.operation);
    out.kind = kj::str(record.claim.kind);
    out.session = kj::str(record.claim.session);
    out.turn = kj::str(record.claim.turn);
    out.sequence = record.place;
    out.claimedAt = record.claim.at;
    KJ_IF_MAYBE (ended, record.ended) {
      out.sequence = ended->place;
      out.ended = envelopeOf(record, *ended, identity.at(ended->place));
    }
  }

  kj::Own<Database> database;
  Identity identity;
  Book book;
};

// An archive has events from behind its own part of the chain too.
attest::Head lastOfChain(Database& database, Book& book) {
  if (!isArchive(database)) return book.head();
  auto place = static_cast<uint64_t>(database.number("SELECT place - 1 FROM mark"));
  return {place, KJ_REQUIRE_NONNULL(book.linkAt(place), "an archive without its end")};
}

bool isFile(kj::StringPtr path) {
  struct stat info;
  return lstat(path.cStr(), &info) == 0 && S_ISREG(info.st_mode);
}

Result<kj::Own<LedgerReader>> openArchive(kj::StringPtr file) {
  return refusingTrouble<kj::Own<LedgerReader>>([&]() -> Result<kj::Own<LedgerReader>> {
    auto database = kj::heap<Database>(file, Database::Mode::READ);
    if (!isArchive(*database)) {
      return Refusal{RefusalCode::LEDGER_FOREIGN, "The file is not an archive of this version."};
    }
    return kj::Own<LedgerReader>(kj::heap<OpenReader>(kj::mv(database)));
  });
}

}  // namespace

// From the mark on, where everything before it is counted already.
Summary summaryOf(Database& database, Book& book, const Identity& identity) {
  Statement statement(
      database,
      "SELECT operations + (SELECT count(*) FROM operation WHERE place >= mark.place), "
      "(SELECT count(*) FROM operation o WHERE o.place >= mark.place AND NOT EXISTS (SELECT 1 "
      "FROM ending WHERE operation = o.place)) FROM mark");
  auto rows = statement.rows();
  KJ_REQUIRE(rows.next());
  auto head = lastOfChain(database, book);
  Summary out;
  out.operations = static_cast<uint64_t>(rows.number(0));
  out.open = static_cast<uint64_t>(rows.number(1));
  out.sequence = head.sequence;
  out.head = head.link;
  out.id = identity.present().id;
  out.receiptKey = identity.present().key;
  return out;
}

Result<kj::Vector<Listed>> LedgerReader::recent(uint64_t limit) {
  Filter filter;
  filter.limit = limit;
  return list(filter);
}

Result<kj::Own<LedgerReader>> LedgerReader::open(kj::StringPtr path) {
  if (isFile(path)) return openArchive(path);
  auto folder = Folder::view(path);
  if (!folder.ok()) return folder.refusal();
  return refusingTrouble<kj::Own<LedgerReader>>([&]() -> Result<kj::Own<LedgerReader>> {
    auto database = kj::heap<Database>(folder->path(DATABASE_FILE), Database::Mode::READ);
    if (!isLedger(*database)) {
      return Refusal{RefusalCode::LEDGER_FOREIGN, "The database is not a ledger of this version."};
    }
    return kj::Own<LedgerReader>(kj::heap<OpenReader>(kj::mv(database)));
  });
}

}  // namespace praefectus::ledger
