#include "supervisor/ledger/audit.h"

#include <set>

namespace praefectus::ledger {
namespace {

using attest::extend;
using attest::Head;
using attest::Step;

constexpr size_t FINDINGS = 100;
// Places read under one snapshot. A snapshot held for long keeps the writer's log from being used
// again.
constexpr uint64_t PLACES_AT_ONCE = 256;

// A row with its place; the record is nothing when it is damaged or lacks a part.
struct Row {
  uint64_t place = 0;
  bool claimed = false;
  kj::Maybe<Hash> link;
  kj::Maybe<Record> record;
};

kj::Vector<Row> rowsOf(Database& database, kj::StringPtr query, Part part, uint64_t first,
                       uint64_t last) {
  int place = part == Part::CLAIM ? OPERATION_PLACE : ENDING_PLACE;
  int link = part == Part::CLAIM ? CLAIM_LINK : ENDING_LINK;
  Statement statement(database, query);
  auto rows = statement.rows(first, last);
  kj::Vector<Row> out;
  while (rows.next()) {
    Row row;
    row.place = static_cast<uint64_t>(rows.number(place));
    row.claimed = !rows.isNull(CLAIMED_AT);
    row.link = fixed<32>(rows.bytes(link));
    KJ_IF_MAYBE (damaged,
                 kj::runCatchingExceptions([&]() { row.record = readRecord(rows, part); })) {
      (void)damaged;
    }
    out.add(kj::mv(row));
  }
  return out;
}

// What stands in one place. An intact ledger has one of them, or an operation that was never
// claimed with its ending.
struct Standing {
  const Row* operation = nullptr;
  const Row* ending = nullptr;
  const EventRow* event = nullptr;
};

template <typename T>
const T* takeAt(const kj::Vector<T>& rows, size_t& next, uint64_t place) {
  return next < rows.size() && rows[next].place == place ? &rows[next++] : nullptr;
}

template <typename T>
uint64_t placeAt(const kj::Vector<T>& rows, size_t next) {
  return next < rows.size() ? rows[next].place : UINT64_MAX;
}

struct Mark {
  uint64_t place = 0, operations = 0;
  int64_t latest = 0;
};

class Audit {
 public:
  Audit(Database& database, kj::Maybe<attest::PublicKey> trusted, Report& report)
      : database(database),
        known(readIdentity(database)),
        selectRetiredLink(database, "SELECT link FROM retired WHERE place = ?"),
        trusted(trusted),
        report(report),
        head{0, genesis(known.firstKey, known.ring)} {
    KJ_IF_MAYBE (key, trusted) {
      stranger = true;
      for (auto& era : known.eras) stranger = stranger && era.key != *key;
    }
    known.eras.truncate(1);  // The others are found again on the way.
  }

  void run(kj::Maybe<LedgerReader::Progress>& progress) {
    KJ_IF_MAYBE (trouble, kj::runCatchingExceptions([&]() { checkAll(progress); })) {
      if (trouble->getType() != kj::Exception::Type::FAILED) {
        kj::throwFatalException(kj::mv(*trouble));
      }
      note(last + 1, "From this place on the ledger cannot be read.");
    }
  }

 private:
  void note(uint64_t sequence, kj::StringPtr what) {
    if (report.findings.size() < FINDINGS) report.findings.add(Finding{sequence, kj::str(what)});
  }

  void checkAll(kj::Maybe<LedgerReader::Progress>& progress) {
    checkFile();
    readBounds();
    auto all = lastPlace();
    while (checkSome()) {
      KJ_IF_MAYBE (tell, progress) (*tell)(last, kj::max(all, last));
    }
    checkMark();
    checkRetired();
    if (trusted != nullptr && !stranger && !vouched) {
      note(0, "Nothing in the ledger is signed with the trusted key.");
    }
    KJ_IF_MAYBE (tell, progress) (*tell)(last, last);
  }

  void checkFile() {
    Statement statement(database, "PRAGMA integrity_check(1)");
    auto rows = statement.rows();
    if (!rows.next() || rows.text(0) != "ok") note(0, "The database's own structure is damaged.");
    if (!hasOurRules(database)) note(0, "The ledger's constraints or triggers were changed.");
    if (stranger) note(0, "The ledger records another receipt key than the trusted one.");
  }

  // What the whole is measured by, as of now: places below the mark do not change any more.
  void readBounds() {
    Snapshot moment(database);
    Statement marks(database, "SELECT place, operations, latest FROM mark");
    auto rows = marks.rows();
    if (rows.next()) {
      mark = {static_cast<uint64_t>(rows.number(0)), static_cast<uint64_t>(rows.number(1)),
              rows.number(2)};
    } else {
      note(0, "The ledger has no mark.");
    }
    if (isArchive(database)) until = mark.place - 1;
    Statement away(database, "SELECT about FROM event WHERE kind = 'quarantined'");
    auto places = away.rows();
    while (places.next()) quarantined.insert(static_cast<uint64_t>(places.number(0)));
    archivedThrough = static_cast<uint64_t>(
        database.number("SELECT coalesce(max(about), 0) FROM event WHERE kind = 'archived'"));
    auto identity = readIdentity(database);
    KJ_IF_MAYBE (link, Book(database, identity).linkAt(archivedThrough)) {
      archiveHead = {archivedThrough, *link};
    }
  }

  uint64_t lastPlace() {
    return static_cast<uint64_t>(
        database.number("SELECT max(coalesce((SELECT max(place) FROM operation), 0), "
                        "coalesce((SELECT max(place) FROM ending), 0), "
                        "coalesce((SELECT max(place) FROM event), 0))"));
  }

  // The next few hundred places; false behind the end.
  bool checkSome() {
    kj::Vector<Row> operations, endings;
    kj::Vector<EventRow> events;
    {
      Snapshot moment(database);
      auto first = static_cast<uint64_t>(database.number(kj::str(
          "SELECT coalesce(min(p), 0) FROM (SELECT min(place) p FROM operation WHERE place > ",
          last, " UNION ALL SELECT min(place) FROM ending WHERE place > ", last,
          " UNION ALL SELECT min(place) FROM event WHERE place > ", last, ")")));
      if (first == 0) return false;
      auto until = first + PLACES_AT_ONCE - 1;
      operations =
          rowsOf(database, recordsByOperation("WHERE o.place BETWEEN ? AND ? ORDER BY o.place"),
                 Part::CLAIM, first, until);
      endings = rowsOf(database, recordsByEnding("WHERE e.place BETWEEN ? AND ? ORDER BY e.place"),
                       Part::ALL, first, until);
      events = eventsBetween(database, first, until);
    }
    size_t o = 0, e = 0, v = 0;
    while (true) {
      auto place =
          kj::min(placeAt(operations, o), kj::min(placeAt(endings, e), placeAt(events, v)));
      if (place == UINT64_MAX) return true;
      Standing here;
      here.operation = takeAt(operations, o, place);
      here.ending = takeAt(endings, e, place);
      here.event = takeAt(events, v, place);
      checkPlace(place, here);
    }
  }

  void checkPlace(uint64_t place, const Standing& here) {
    archived = place <= archivedThrough || place > until;
    if (!archived && last < archivedThrough) {
      last = archivedThrough;
      head = archiveHead;
    }
    if (!archived && place != last + 1) note(place, "The place before this one is missing.");
    last = place;
    bool claimed = here.operation != nullptr && here.operation->claimed;
    int taken = int{claimed} + int{here.ending != nullptr} + int{here.event != nullptr};
    if (here.operation != nullptr && !claimed && !isOf(here.ending, place)) {
      note(place, "The operation was neither claimed nor ended.");
    }
    if (taken > 1) note(place, "More than one row stands in this place.");
    if (here.operation != nullptr) countOperation(place);
    // Where a row stands that states no link, the chain goes on from what stood before it.
    if (claimed) checkClaim(*here.operation);
    if (here.ending != nullptr) checkEnding(*here.ending);
    if (here.event != nullptr) checkEvent(*here.event);
  }

  static bool isOf(const Row* ending, uint64_t place) {
    if (ending == nullptr) return false;
    KJ_IF_MAYBE (record, ending->record) return record->place == place;
    return true;
  }

  void countOperation(uint64_t place) {
    if (place < mark.place) ++operationsBelowMark;
    if (quarantined.count(place) > 0) {
      note(place, "The claim is quarantined: a start found its record damaged.");
    }
  }

  // Goes on from what stands there, so that one change is reported once and not from there on.
  void goOn(uint64_t place, const kj::Maybe<Hash>& stated, const kj::Maybe<Hash>& computed) {
    KJ_IF_MAYBE (content, computed) {
      bool same = false;
      KJ_IF_MAYBE (link, stated) same = attest::same(*link, *content);
      if (!same) note(place, "The chain's link does not follow from its content.");
    }
    head = {place, stated.orDefault(Hash{})};
  }

  void checkClaim(const Row& row) {
    KJ_IF_MAYBE (record, row.record) {
      // Of what was archived only rows are left whose neighbours are gone.
      if (archived) return;
      seeTime(row.place, record->claim.at);
      auto computed = extend(head, Step::CLAIM, record->claim.operation, contentOf(record->claim));
      goOn(row.place, row.link, computed.link);
    } else {
      note(row.place, "The operation of this place is missing or damaged.");
      goOn(row.place, row.link, nullptr);
    }
  }

  void checkEnding(const Row& row) {
    KJ_IF_MAYBE (record, row.record) {
      KJ_IF_MAYBE (ended, record->ended) {
        auto sealed = envelopeOf(*record, *ended, known.at(row.place));
        auto key = keyFor(row.place);
        bool holds = attest::openReceipt(key, sealed).ok();
        if (!holds) note(row.place, "The receipt's signature or form does not hold.");
        bool inPlace = attest::same(ended->previous, head.link);
        if (!inPlace) note(row.place, "The receipt was made for another place of the chain.");
        bool own = record->claim.at > 0 ? record->place < row.place : record->place == row.place;
        if (!own) note(row.place, "The ending stands before its operation.");
        if (holds && inPlace && own) ++report.receipts;
        vouch(holds, key);
        seeTime(row.place, ended->ending.at);
        goOn(row.place, row.link,
             extend(head, Step::ENDING, record->claim.operation, attest::digestOf(sealed.body))
                 .link);
        return;
      }
    }
    note(row.place, "The operation of this place is missing or damaged.");
    goOn(row.place, row.link, nullptr);
  }

  void checkEvent(const EventRow& row) {
    auto key = keyFor(row.place);
    auto event = row.open(key);
    if (!event.ok()) {
      note(row.place, "The event's signature or form does not hold.");
    } else {
      if (archived) {
        head = {row.place - 1, event->previous};
        compareRetired(head);
      }
      if (holdsInPlace(row, *event)) {
        ++report.events;
        follow(*event);
      } else {
        note(row.place, "The event differs from its row, or was made for another place.");
      }
      seeTime(row.place, event->at);
    }
    vouch(event.ok(), key);
    goOn(row.place, row.link, extend(head, Step::EVENT, nullptr, attest::digestOf(row.body)).link);
  }

  bool holdsInPlace(const EventRow& row, const attest::LedgerEvent& event) {
    auto expected = known.present().id;
    if (event.what.is<attest::Adopted>()) ++expected.incarnation;
    auto about = aboutOf(event.what);
    return event.sequence == row.place && attest::same(event.previous, head.link) &&
           event.ledger == expected && kindOf(event.what) == row.kind && event.at == row.at &&
           about == row.about;
  }

  void follow(const attest::LedgerEvent& event) {
    known.take(event);
    if (event.what.is<attest::ClockAccepted>()) {
      latestBelowMark = latest = 0;
      acceptedAt = event.sequence;
    }
    KJ_IF_MAYBE (archive, event.what.tryGet<attest::Archived>()) {
      operationsArchived += archive->operations;
      compareRetired({archive->through, archive->link});
    }
  }

  void seeTime(uint64_t place, int64_t at) {
    latest = kj::max(latest, at);
    if (place < mark.place) latestBelowMark = kj::max(latestBelowMark, at);
  }

  // Whose signature counts in this place.
  attest::PublicKey keyFor(uint64_t place) const {
    KJ_IF_MAYBE (key, trusted) {
      if (stranger) return *key;
    }
    return known.at(place).key;
  }

  void vouch(bool holds, const attest::PublicKey& by) {
    KJ_IF_MAYBE (key, trusted) vouched = vouched || (holds && by == *key);
  }

  void checkMark() {
    auto passed = database.number(kj::str(
        "SELECT count(*) FROM operation o WHERE o.place < ", mark.place,
        " AND NOT EXISTS (SELECT 1 FROM ending WHERE operation = o.place)"
        " AND NOT EXISTS (SELECT 1 FROM event WHERE kind = 'quarantined' AND about = o.place)"));
    if (passed > 0) note(0, "The mark passes an operation that is open.");
    if (mark.place > last + 1 || mark.operations != operationsBelowMark + operationsArchived) {
      note(0, "The mark does not count what lies before it.");
    }
    if (mark.place > acceptedAt && (mark.latest < latestBelowMark || mark.latest > latest)) {
      note(0, "The mark states another time than what was recorded.");
    }
  }

  // What a signed event says of a place counts, whatever is retired with it.
  void compareRetired(const Head& stated) {
    auto rows = selectRetiredLink.rows(stated.sequence);
    if (!rows.next()) return;
    bool same = false;
    KJ_IF_MAYBE (link, fixed<32>(rows.bytes(0))) same = attest::same(*link, stated.link);
    if (!same) note(stated.sequence, "The link kept of an archived ending is another one.");
  }

  // One ending for each operation that archives took, in their part of the chain, where nothing
  // stands any more. An archive keeps no ids of others.
  void checkRetired() {
    if (isArchive(database)) return;
    auto kept = database.number("SELECT count(*) FROM retired WHERE place IS NOT NULL");
    auto misplaced = database.number(kj::str(
        "SELECT count(*) FROM retired r WHERE place IS NOT NULL AND (place > ", archivedThrough,
        " OR EXISTS (SELECT 1 FROM ending WHERE place = r.place)"
        " OR EXISTS (SELECT 1 FROM event WHERE place = r.place)"
        " OR EXISTS (SELECT 1 FROM operation WHERE place = r.place))"));
    if (static_cast<uint64_t>(kept) != operationsArchived || misplaced > 0) {
      note(0, "The ids of archived operations are not those that the archives took.");
    }
  }

  Database& database;
  Identity known;  // As far as the audit has come.
  Statement selectRetiredLink;
  kj::Maybe<attest::PublicKey> trusted;
  Report& report;
  Head head, archiveHead;
  uint64_t last = 0, archivedThrough = 0, acceptedAt = 0;
  uint64_t until = UINT64_MAX;  // Last place of the chain that an archive has; then come events.
  uint64_t operationsBelowMark = 0, operationsArchived = 0;
  int64_t latestBelowMark = 0, latest = 0;
  Mark mark;
  std::set<uint64_t> quarantined;
  bool stranger = false, vouched = false, archived = false;
};

}  // namespace

void audit(Database& database, kj::Maybe<attest::PublicKey> trusted,
           kj::Maybe<LedgerReader::Progress>& progress, Report& report) {
  Audit(database, trusted, report).run(progress);
}

}  // namespace praefectus::ledger
