// What there is in a ledger, and whether it holds.
#include "supervisor/ledger/audit.h"
#include "supervisor/ledger/deed.h"

#include <capnp/schema.h>

#include <sys/stat.h>

namespace praefectus::ledger {
namespace {

constexpr kj::StringPtr VERIFYING = "verifying"_kj;
constexpr kj::StringPtr EVENT_KINDS[] = {"created"_kj,        "adopted"_kj,     "started"_kj,
                                         "clock_accepted"_kj, "key_rotated"_kj, "revoked"_kj,
                                         "archived"_kj,       "imported"_kj,    "quarantined"_kj};

uint64_t countOf(Database& database, kj::StringPtr query) {
  return static_cast<uint64_t>(database.number(query));
}

kj::Vector<Counted> terminalsIn(Database& database) {
  kj::Vector<Counted> out;
  auto words = capnp::Schema::from<Terminal>().getEnumerants().size();
  for (capnp::uint i = 0; i < words; ++i) out.add(Counted{nameOf(static_cast<Terminal>(i)), 0});
  Statement all(database, "SELECT terminal, count(*) FROM ending GROUP BY terminal");
  auto rows = all.rows();
  while (rows.next()) {
    for (auto& each : out) {
      if (each.what == rows.text(0)) each.count = static_cast<uint64_t>(rows.number(1));
    }
  }
  return out;
}

kj::Vector<Counted> eventsIn(Database& database) {
  kj::Vector<Counted> out;
  for (auto kind : EVENT_KINDS) {
    auto count = countOf(database, kj::str("SELECT count(*) FROM event WHERE kind = '", kind, "'"));
    if (count > 0) out.add(Counted{kind, count});
  }
  return out;
}

kj::Vector<KeySpan> keysOf(const Identity& identity) {
  kj::Vector<KeySpan> out;
  for (auto& era : identity.eras) {
    if (out.empty() || out.back().key != era.key) out.add(KeySpan{era.key, era.after});
  }
  return out;
}

kj::Vector<ArchiveNoted> archivesIn(Database& database, const Identity& identity) {
  kj::Vector<ArchiveNoted> out;
  for (auto& row : eventsOfKind(database, "archived")) {
    auto event = row.open(identity.at(row.place).key);
    if (!event.ok()) continue;
    KJ_IF_MAYBE (archived, event->what.tryGet<attest::Archived>()) {
      out.add(ArchiveNoted{row.place, event->at, archived->operations, archived->through,
                           archived->digest});
    }
  }
  return out;
}

kj::Maybe<int64_t> timeIn(Database& database, kj::StringPtr query) {
  Statement statement(database, query);
  auto rows = statement.rows();
  if (!rows.next() || rows.isNull(0)) return nullptr;
  return rows.number(0);
}

uint64_t bytesOf(kj::StringPtr file) {
  struct stat info;
  KJ_SYSCALL(stat(file.cStr(), &info));
  return static_cast<uint64_t>(info.st_size);
}

Inventory countAll(const Folder& folder, Database& database) {
  Inventory out;
  auto identity = readIdentity(database);
  Book book(database, identity);
  out.summary = summaryOf(database, book, identity);
  out.terminals = terminalsIn(database);
  out.events = eventsIn(database);
  out.quarantined = countOf(database, "SELECT count(*) FROM event WHERE kind = 'quarantined'");
  out.retiredHere = countOf(database, "SELECT count(*) FROM retired WHERE action_hash IS NOT NULL");
  out.retiredElsewhere =
      countOf(database, "SELECT count(*) FROM retired WHERE action_hash IS NULL");
  out.keys = keysOf(identity);
  out.archives = archivesIn(database, identity);
  out.firstAt = timeIn(database,
                       "SELECT min(coalesce(claimed_at, settled_at)) FROM operation o "
                       "LEFT JOIN ending e ON e.operation = o.place");
  out.lastAt = timeIn(database,
                      "SELECT max(coalesce(settled_at, claimed_at)) FROM operation o "
                      "LEFT JOIN ending e ON e.operation = o.place");
  auto file = folder.path(DATABASE_FILE);
  out.databaseBytes = bytesOf(file);
  out.logBytes = bytesOf(folder.path(LOG_FILE));
  out.moved = !(readMemory(database, identity).place ==
                placeOf(file, identity.present().id, thisMachine()));
  return out;
}

}  // namespace

Result<Inventory> takeInventory(kj::StringPtr path) {
  auto folder = Folder::view(path);
  if (!folder.ok()) return folder.refusal();
  return refusingTrouble<Inventory>([&]() -> Result<Inventory> {
    Database database(folder->path(DATABASE_FILE), Database::Mode::READ);
    if (!isLedger(database)) return Refusal{RefusalCode::LEDGER_FOREIGN, NOT_A_LEDGER};
    Snapshot moment(database);
    return countAll(*folder, database);
  });
}

Result<Report> check(kj::StringPtr path, kj::Maybe<attest::PublicKey> trusted, Telling tell) {
  auto folder = Folder::view(path);
  if (!folder.ok()) return folder.refusal();
  auto reader = LedgerReader::open(path);
  if (!reader.ok()) return reader.refusal();
  auto report = (*reader)->verify(trusted, LedgerReader::Progress([&](uint64_t done, uint64_t all) {
                                    tell(VERIFYING, done, all);
                                  }));
  if (!report.ok()) return report;
  for (auto fault : Folder::faults(path)) report->findings.add(Finding{0, kj::str(fault)});
  auto key = receiptKeyIn(*folder, report->summary.receiptKey);
  if (!key.ok()) report->findings.add(Finding{0, kj::str(key.refusal().detail)});
  return report;
}

}  // namespace praefectus::ledger
