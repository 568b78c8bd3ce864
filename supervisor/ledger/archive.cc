// Old operations on their way from a ledger to a file of their own.
#include "supervisor/ledger/audit.h"
#include "supervisor/ledger/deed.h"
#include "supervisor/ledger/schema.h"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::ledger {
namespace {

constexpr kj::StringPtr ARCHIVING = "archiving"_kj;
constexpr kj::StringPtr VERIFYING = "verifying"_kj;
constexpr kj::StringPtr REMOVING = "removing"_kj;
constexpr size_t PIECE = 1u << 20;
constexpr Refusal OCCUPIED{RefusalCode::LEDGER_FOREIGN, "Something is already there."_kj};
constexpr Refusal NO_PLACE{RefusalCode::LEDGER_FOREIGN,
                           "The archive's file cannot be put there."_kj};

// What is to be moved: the places behind `after` and up to `through`.
struct Part {
  uint64_t after = 0, through = 0, operations = 0;
};

// Goes through the operations in the order of their claims. Where one begins and all before it have
// ended already, the chain can be cut.
Part settledBefore(Database& database, int64_t before) {
  Part out;
  out.after = static_cast<uint64_t>(
      database.number("SELECT coalesce(max(about), 0) FROM event WHERE kind = 'archived'"));
  Statement statement(database,
                      "SELECT o.place, e.place, e.settled_at FROM operation o "
                      "LEFT JOIN ending e ON e.operation = o.place WHERE o.place > ? "
                      "AND NOT EXISTS (SELECT 1 FROM event WHERE kind = 'quarantined' "
                      "AND about = o.place) ORDER BY o.place");
  auto rows = statement.rows(out.after);
  uint64_t reach = out.after, seen = 0;
  while (rows.next()) {
    if (reach < static_cast<uint64_t>(rows.number(0))) {
      out.through = reach;
      out.operations = seen;
    }
    if (rows.isNull(1) || rows.number(2) >= before) return out;
    reach = kj::max(reach, static_cast<uint64_t>(rows.number(1)));
    ++seen;
  }
  out.through = reach;
  out.operations = seen;
  return out;
}

// A file in the making beside its final place. Removed again unless it was published.
class NewFile {
 public:
  explicit NewFile(kj::StringPtr destination)
      : destination(kj::str(destination)), place(kj::str(destination, ".XXXXXX")) {
    int fd;
    KJ_SYSCALL(fd = mkostemp(place.begin(), O_CLOEXEC));
    kj::AutoCloseFd file(fd);
    KJ_SYSCALL(fchmod(file, 0600));
  }
  ~NewFile() noexcept { unlink(place.cStr()); }
  KJ_DISALLOW_COPY(NewFile);

  kj::StringPtr path() const { return place; }

  void flush() const {
    auto file = open();
    KJ_SYSCALL(fsync(file));
  }

  Hash digest() const {
    kj::FdInputStream input(open());
    auto piece = kj::heapArray<kj::byte>(PIECE);
    attest::Digest out;
    while (size_t size = input.tryRead(piece.begin(), 1, piece.size())) {
      out.add(piece.slice(0, size));
    }
    return out.finish();
  }

  // A second name, unlike rename(2), replaces nothing. Refuses: LEDGER_FOREIGN.
  Result<Done> publish() const {
    if (link(place.cStr(), destination.cStr()) != 0) return errno == EEXIST ? OCCUPIED : NO_PLACE;
    KJ_SYSCALL(unlink(place.cStr()));
    kj::String folder = kj::str(".");
    KJ_IF_MAYBE (slash, destination.findLast('/')) {
      folder = *slash == 0 ? kj::str("/") : kj::heapString(destination.slice(0, *slash));
    }
    int fd;
    KJ_SYSCALL(fd = ::open(folder.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    kj::AutoCloseFd held(fd);
    KJ_SYSCALL(fsync(held));
    return Done();
  }

 private:
  kj::AutoCloseFd open() const {
    int fd;
    KJ_SYSCALL(fd = ::open(place.cStr(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    return kj::AutoCloseFd(fd);
  }

  kj::String destination, place;
};

bool isThere(kj::StringPtr path) {
  struct stat info;
  return lstat(path.cStr(), &info) == 0;
}

// ---- Writing it

// Takes the triggers away, which want every place in its order, and answers them.
kj::Vector<kj::String> takeTriggers(Database& database) {
  kj::Vector<kj::String> names, rules;
  {
    Statement statement(database, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'");
    auto rows = statement.rows();
    while (rows.next()) {
      names.add(kj::str(rows.text(0)));
      rules.add(kj::str(rows.text(1)));
    }
  }
  for (auto& name : names) database.execute(kj::str("DROP TRIGGER ", name));
  return rules;
}

// Copies rows of one table of that many columns.
void copyRows(Database& from, Database& to, kj::StringPtr table, size_t columns,
              kj::StringPtr which) {
  Statement select(from, kj::str("SELECT * FROM ", table, " ", which));
  auto places = kj::strArray(kj::repeat("?"_kj, columns), ", ");
  Statement insert(to, kj::str("INSERT INTO ", table, " VALUES (", places, ")"));
  auto rows = select.rows();
  while (rows.next()) insert.runWith(rows);
}

// A ledger's tables, but no ledger: nobody opens it for writing.
void foundArchive(Database& database) {
  database.execute(SCHEMA);
  database.execute(kj::str("PRAGMA application_id = ", ARCHIVE_FILE));
}

// Behind its last place, with the times since the clock was accepted last before it.
void putMark(Database& source, Database& archive, uint64_t through) {
  auto operations = source.number(
      kj::str("SELECT operations + (SELECT count(*) FROM operation WHERE place <= ", through,
              ") - (SELECT count(*) FROM operation WHERE place < mark.place) FROM mark"));
  auto within = kj::str("place <= ", through,
                        " AND place >= coalesce((SELECT max(place) FROM event WHERE kind = "
                        "'clock_accepted' AND place <= ",
                        through, "), 0)");
  auto latest = archive.number(
      kj::str("SELECT max(at) FROM (SELECT at FROM event WHERE ", within,
              " UNION ALL SELECT settled_at FROM ending WHERE ", within,
              " UNION ALL SELECT coalesce(claimed_at, 0) FROM operation WHERE ", within, ")"));
  Statement mark(archive, "INSERT INTO mark (only, place, operations, latest) VALUES (1, ?, ?, ?)");
  mark.run(through + 1, operations, latest);
}

// All events, so that the file says by itself who the ledger is and with which link its first place
// goes on; the ids that other archives hold are none of its business.
void fill(Database& archive, Holding& holding, const Part& part) {
  auto& source = *holding.reading;
  foundArchive(archive);
  // A row that is damaged and put aside comes along as it is.
  archive.execute("PRAGMA ignore_check_constraints = ON");
  auto rules = takeTriggers(archive);
  auto within = kj::str("WHERE place <= ", part.through);
  copyRows(source, archive, "ring", 4, "");
  copyRows(source, archive, "ledger", 2, "");
  copyRows(source, archive, "authority", 8,
           kj::str("WHERE id IN (SELECT authority FROM operation ", within, ")"));
  copyRows(source, archive, "helper", 4,
           kj::str("WHERE id IN (SELECT helper FROM operation ", within, ")"));
  copyRows(source, archive, "operation", 15, within);
  copyRows(source, archive, "ending", 18, within);
  copyRows(source, archive, "event", 7, "");
  putMark(source, archive, part.through);
  for (auto& rule : rules) archive.execute(rule);
}

void write(const NewFile& file, Holding& holding, const Part& part) {
  Database archive(file.path(), Database::Mode::ARCHIVE);
  Transaction transaction(archive);
  fill(archive, holding, part);
  transaction.commit();
}

// Whether all that is in it holds. What a start found damaged and put aside is damaged here too.
bool verifies(kj::StringPtr file, Telling& tell) {
  Database archive(file, Database::Mode::READ);
  Report report;
  kj::Maybe<LedgerReader::Progress> progress =
      LedgerReader::Progress([&](uint64_t done, uint64_t all) { tell(VERIFYING, done, all); });
  audit(archive, nullptr, progress, report);
  Statement quarantined(archive, "SELECT 1 FROM event WHERE kind = 'quarantined' AND about = ?");
  for (auto& finding : report.findings) {
    if (!quarantined.rows(finding.sequence).next()) return false;
  }
  return true;
}

// ---- Removing what it holds

void moveMark(Database& database, uint64_t place, int64_t latest) {
  Statement update(database,
                   "UPDATE mark SET place = ?1, latest = ?2, operations = operations + (SELECT "
                   "count(*) FROM operation WHERE place >= mark.place AND place < ?1) "
                   "WHERE place < ?1");
  update.run(place, latest);
}

void remove(Holding& holding, const Part& part, const Hash& digest, int64_t at) {
  auto& database = *holding.writing;
  auto link = KJ_REQUIRE_NONNULL(Book(database, holding.identity).linkAt(part.through));
  Transaction transaction(database);
  moveMark(database, part.through + 1, holding.scribe->floor());
  holding.scribe->append(attest::Archived{part.through, link, part.operations, digest}, at);
  // In this order, which the triggers want.
  Statement(database,
            "INSERT INTO retired (id, action_hash, place, link) SELECT o.id, o.action_hash, "
            "e.place, e.link FROM operation o JOIN ending e ON e.operation = o.place "
            "WHERE o.place > ?1 AND o.place <= ?2")
      .run(part.after, part.through);
  Statement(database, "DELETE FROM ending WHERE place > ?1 AND place <= ?2")
      .run(part.after, part.through);
  Statement(database,
            "DELETE FROM operation WHERE place > ?1 AND place <= ?2 AND NOT EXISTS (SELECT 1 FROM "
            "event WHERE kind = 'quarantined' AND about = operation.place)")
      .run(part.after, part.through);
  transaction.commit();
}

uint64_t sizeOf(Database& database) {
  return static_cast<uint64_t>(database.number("PRAGMA page_count") *
                               database.number("PRAGMA page_size"));
}

// What was moved is moved, also when there is no room to make the rest smaller.
void giveSpaceBack(Database& database) {
  KJ_IF_MAYBE (trouble, kj::runCatchingExceptions([&]() {
                 database.compact();
                 database.emptyLog();
               })) {
    (void)trouble;
  }
}

Result<kj::Maybe<ArchiveMade>> archiveFrom(Holding& holding, int64_t before, kj::StringPtr path,
                                           int64_t at, Telling& tell) {
  using Answer = kj::Maybe<ArchiveMade>;
  auto part = settledBefore(*holding.reading, before);
  if (part.operations == 0) return Answer();
  if (isThere(path)) return OCCUPIED;

  kj::Maybe<NewFile> making;
  if (kj::runCatchingExceptions([&]() { making.emplace(path); }) != nullptr) return NO_PLACE;
  auto& file = KJ_ASSERT_NONNULL(making);
  tell(ARCHIVING, 0, part.operations);
  write(file, holding, part);
  onDevice([&]() { file.flush(); });
  tell(ARCHIVING, part.operations, part.operations);
  if (!verifies(file.path(), tell)) {
    return Refusal{RefusalCode::RECORD_DAMAGED,
                   "What would be archived does not verify; nothing was moved."};
  }

  ArchiveMade out;
  out.operations = part.operations;
  out.through = part.through;
  out.digest = onDevice([&]() { return file.digest(); });
  auto published = onDevice([&]() { return file.publish(); });
  if (!published.ok()) return published.refusal();

  tell(REMOVING, 0, part.operations);
  out.bytesBefore = sizeOf(*holding.writing);
  remove(holding, part, out.digest, at);
  giveSpaceBack(*holding.writing);
  out.bytesAfter = sizeOf(*holding.writing);
  tell(REMOVING, part.operations, part.operations);
  return Answer(kj::mv(out));
}

}  // namespace

Result<kj::Maybe<ArchiveMade>> archive(kj::StringPtr folder, int64_t before, kj::StringPtr file,
                                       Moment now, Telling tell) {
  auto machine = thisMachine();
  return onLedger<kj::Maybe<ArchiveMade>>(
      folder, machine, Holding::Moved::REFUSED, [&](Holding& holding) {
        return archiveFrom(holding, before, file, timeToRecord(holding, machine, now), tell);
      });
}

}  // namespace praefectus::ledger
