#include "tests/bench/bulk.h"

#include "tests/bench/measure.h"
#include "tests/bench/stand.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::bench {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t CHUNK = 100'000;  // Operations in one transaction.
// Before every id that is made later, and after the year 2023.
constexpr uint64_t FIRST_TIME_MS = 1'700'000'000'000;

class Connection {
 public:
  explicit Connection(kj::StringPtr file) {
    KJ_REQUIRE(sqlite3_open_v2(file.cStr(), &connection, SQLITE_OPEN_READWRITE, nullptr) ==
               SQLITE_OK);
  }
  ~Connection() noexcept { sqlite3_close(connection); }
  KJ_DISALLOW_COPY(Connection);

  void run(kj::StringPtr script) {
    KJ_REQUIRE(sqlite3_exec(connection, script.cStr(), nullptr, nullptr, nullptr) == SQLITE_OK,
               sqlite3_errmsg(connection), script);
  }

  // The first column of every row.
  kj::Vector<kj::String> column(kj::StringPtr query) {
    sqlite3_stmt* statement = nullptr;
    KJ_REQUIRE(sqlite3_prepare_v2(connection, query.cStr(), -1, &statement, nullptr) == SQLITE_OK,
               sqlite3_errmsg(connection));
    KJ_DEFER(sqlite3_finalize(statement));
    kj::Vector<kj::String> out;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      out.add(kj::str(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0))));
    }
    return out;
  }

  uint64_t number(kj::StringPtr query) { return column(query)[0].parseAs<uint64_t>(); }

 private:
  sqlite3* connection = nullptr;
};

// Claims in one place, their endings in the next.
void fill(Connection& into, uint64_t firstPlace, uint64_t operations) {
  auto source =
      kj::str("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ",
              operations, ") SELECT ");
  into.run("BEGIN");
  into.run(kj::str(
      "INSERT INTO operation (place, id, action_hash, action_class, kind, mode, risk, proof, "
      "rights, grant_hash, authority, helper, helper_generation, claimed_at, link) ",
      source, firstPlace, " + 2 * i, printf('op-%012x-%s', ", FIRST_TIME_MS + firstPlace,
      " + i, lower(hex(randomblob(10)))), randomblob(32), 'semantic_mutation', 'set_value', "
      "'interactive', 'reversible', 'strongest', '', randomblob(32), 1, 1, 1, ",
      FIRST_TIME_MS + firstPlace, " + i, randomblob(32) FROM n"));
  into.run(kj::str(
      "INSERT INTO ending (place, operation, terminal, effect, refusal, retry_safe, route, "
      "verdict, method, source, units_done, units_asked, context, warnings, settled_at, previous, "
      "link, signature) ",
      source, firstPlace + 1, " + 2 * i, ", firstPlace,
      " + 2 * i, 'succeeded', 'verified', NULL, "
      "0, 'accessibility', 'confirmed', 'value_readback', 'same_process', 1, 1, 'preserved', '', ",
      FIRST_TIME_MS + firstPlace, " + i, randomblob(32), randomblob(32), randomblob(64) FROM n"));
  into.run("COMMIT");
}

void fillWhole(kj::StringPtr folder, uint64_t rows) {
  auto file = kj::str(folder, "/ledger.db");
  Connection into(file);
  auto triggers = into.column("SELECT sql FROM sqlite_schema WHERE type = 'trigger'");
  for (auto& name : into.column("SELECT name FROM sqlite_schema WHERE type = 'trigger'")) {
    into.run(kj::str("DROP TRIGGER ", name));
  }
  // Without a log: what breaks here is made again from its beginning.
  into.run(
      "PRAGMA journal_mode = DELETE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
      "PRAGMA ignore_check_constraints = ON; PRAGMA cache_size = -65536;");
  into.run(
      "INSERT INTO authority (id, issuer, key_id, policy_generation, lease, subject, session, "
      "turn) VALUES (1, 'host', '0123456789abcdef', 1, 'lease-1', 'uid:1000', 'session-1', "
      "'turn-1');"
      "INSERT INTO helper (id, name, release, digest) VALUES (1, 'praefectus-desktop-linux', "
      "'0.1.0', randomblob(32));");
  auto first = into.number("SELECT max(place) + 1 FROM event");
  auto operations = rows / 2;
  for (uint64_t done = 0; done < operations;) {
    auto some = std::min(CHUNK, operations - done);
    fill(into, first + 2 * done, some);
    done += some;
    if (done % (10 * CHUNK) == 0) tell("       " + std::to_string(2 * done) + " rows written");
  }
  into.run(kj::str("UPDATE mark SET place = ", first + 2 * operations, ", operations = ",
                   operations, ", latest = ", FIRST_TIME_MS + first + 2 * operations));
  for (auto& trigger : triggers) into.run(trigger);
  into.run("PRAGMA journal_mode = WAL");
}

// As the ledger makes it: of its full size, all zeros.
void makeLog(kj::StringPtr path, size_t size) {
  int fd;
  KJ_SYSCALL(fd = ::open(path.cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), path);
  kj::AutoCloseFd file(fd);
  auto zeros = kj::heapArray<kj::byte>(size);
  memset(zeros.begin(), 0, size);
  kj::FdOutputStream(file.get()).write(zeros.begin(), size);
  KJ_SYSCALL(fsync(file));
}

void makeAnew(kj::StringPtr folder, uint64_t rows) {
  fs::remove_all(folder.cStr());
  attest::KeyRing ring;
  auto issuer = attest::SigningKey::generate();
  ring.add(attest::Purpose::ISSUER, "host", attest::keyIdOf(issuer.publicKey()),
           issuer.publicKey());
  KJ_REQUIRE(ledger::Ledger::create(folder, ring, moment()).ok());
  auto log = kj::str(folder, "/ledger.db-wal");
  auto logSize = fs::file_size(log.cStr());
  fillWhole(folder, rows);
  makeLog(log, logSize);
  fs::remove(kj::str(folder, "/ledger.db-shm").cStr());
  // Only a finished one is good for the next run.
  auto opened = ledger::Ledger::open(folder, moment());
  KJ_REQUIRE(opened.ok(), opened.refusal().detail);
}

bool isThere(kj::StringPtr folder) {
  return fs::exists(folder.cStr()) && ledger::Ledger::open(folder, moment()).ok();
}

}  // namespace

kj::String ledgerOf(kj::StringPtr place, uint64_t rows) {
  auto folder = kj::str(place, "/", rows, "-rows");
  if (isThere(folder)) return folder;
  tell("       making a ledger of " + std::to_string(rows) + " rows");
  makeAnew(folder, rows);
  return folder;
}

}  // namespace praefectus::bench
