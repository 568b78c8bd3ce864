#include "supervisor/ledger/database.h"

#include <sqlite3.h>

namespace praefectus::ledger {
namespace {

// A reader that opens after a crash rebuilds the log's index and holds everybody up for that long.
constexpr int BUSY_MS = 2000;
// Nothing here is near it; a database that says otherwise is not ours.
constexpr int VALUE_BYTES = 1 << 20;
// Copied between two looks at how far it is: 16 MiB.
constexpr int PAGES_AT_ONCE = 4096;

kj::Exception::Type typeOf(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return kj::Exception::Type::OVERLOADED;
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_NOMEM:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_NOLFS:
    case SQLITE_PROTOCOL:
      return kj::Exception::Type::DISCONNECTED;
    default:
      return kj::Exception::Type::FAILED;
  }
}

[[noreturn]] void fail(int code) {
  kj::throwFatalException(
      kj::Exception(typeOf(code), __FILE__, __LINE__,
                    kj::str("sqlite: ", sqlite3_errstr(code), " (", code, ")")));
  KJ_UNREACHABLE;
}

void check(int code) {
  if (code != SQLITE_OK) fail(code);
}

int flagsFor(Database::Mode mode) {
  // One thread uses a connection at a time, so SQLite's own mutexes guard nothing.
  constexpr int COMMON = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  switch (mode) {
    case Database::Mode::CREATE:
    case Database::Mode::WRITE:
    case Database::Mode::ARCHIVE:
      return COMMON | SQLITE_OPEN_READWRITE;
    case Database::Mode::READ:
      return COMMON | SQLITE_OPEN_READONLY;
    case Database::Mode::SCRATCH:
      return COMMON | SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY;
  }
  KJ_UNREACHABLE;
}

// What every connection gets: a file that was tampered with may give wrong answers, but runs
// nothing.
constexpr char DISTRUST[] =
    "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"
    "PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = ON;";

kj::StringPtr settingsFor(Database::Mode mode) {
  switch (mode) {
    case Database::Mode::CREATE:
      return "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";
    case Database::Mode::WRITE:
      // KiB. Commits come back to the last pages only; a larger cache would fill with all others.
      return "PRAGMA synchronous = FULL; PRAGMA cache_size = -512;";
    case Database::Mode::READ:
      return "PRAGMA query_only = ON;";
    case Database::Mode::SCRATCH:
      return "";
    case Database::Mode::ARCHIVE:
      return "PRAGMA page_size = 4096; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;";
  }
  KJ_UNREACHABLE;
}

int rememberLogPages(void* to, sqlite3*, const char*, int pages) {
  *static_cast<uint64_t*>(to) = static_cast<uint64_t>(pages);
  return SQLITE_OK;
}

}  // namespace

Refusal refusalFor(const kj::Exception& trouble) {
  switch (trouble.getType()) {
    case kj::Exception::Type::OVERLOADED:
      return {RefusalCode::LEDGER_BUSY, "Another program holds the ledger's database."};
    case kj::Exception::Type::DISCONNECTED:
      return {RefusalCode::LEDGER_POISONED, "The ledger's storage does not work."};
    case kj::Exception::Type::FAILED:
    case kj::Exception::Type::UNIMPLEMENTED:
      return {RefusalCode::LEDGER_FOREIGN, "The ledger is damaged or not of this format."};
  }
  KJ_UNREACHABLE;
}

Database::Database(kj::StringPtr path, Mode mode) {
  int code = sqlite3_open_v2(mode == Mode::SCRATCH ? ":memory:" : path.cStr(), &connection,
                             flagsFor(mode), nullptr);
  KJ_ON_SCOPE_FAILURE(sqlite3_close(connection));
  check(code);

  for (int option :
       {SQLITE_DBCONFIG_DQS_DML, SQLITE_DBCONFIG_DQS_DDL, SQLITE_DBCONFIG_ENABLE_VIEW}) {
    check(sqlite3_db_config(connection, option, 0, nullptr));
  }
  // Closing a database copies the log into it and removes the log. A reader must not, and the
  // writer does the first in its own time and the second never: overwriting a log costs half of
  // growing one.
  for (int option : {SQLITE_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE}) {
    check(sqlite3_db_config(connection, option, 1, nullptr));
  }
  sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, VALUE_BYTES);
  sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
  check(sqlite3_busy_timeout(connection, BUSY_MS));
  // Also takes the place of automatic checkpoints, which would run inside somebody's commit.
  sqlite3_wal_hook(connection, &rememberLogPages, &pagesInLog);
  if (mode != Mode::SCRATCH) {
    int persist = 1;
    check(sqlite3_file_control(connection, "main", SQLITE_FCNTL_PERSIST_WAL, &persist));
  }
  execute(DISTRUST);
  execute(settingsFor(mode));
}

Database::~Database() noexcept {
  sqlite3_finalize(kept);
  sqlite3_close(connection);
}

void Database::execute(kj::StringPtr script) {
  check(sqlite3_exec(connection, script.cStr(), nullptr, nullptr, nullptr));
}

int64_t Database::number(kj::StringPtr query) {
  Statement statement(*this, query);
  auto rows = statement.rows();
  KJ_REQUIRE(rows.next());
  return rows.number(0);
}

// A statement between two rows holds the connection's read lock; committing beside it is allowed
// (SQLite, "COMMIT may be attempted while read statements are pending").
void Database::stay() {
  if (kept == nullptr) {
    check(sqlite3_prepare_v3(connection, "SELECT 1 FROM ledger", -1, SQLITE_PREPARE_PERSISTENT,
                             &kept, nullptr));
  }
  int code = sqlite3_step(kept);
  if (code != SQLITE_ROW) fail(code);
}

void Database::leave() { check(sqlite3_reset(kept)); }

void Database::checkpoint() {
  bool stays = kept != nullptr;
  if (stays) leave();
  int code =
      sqlite3_wal_checkpoint_v2(connection, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if ((code & 0xff) != SQLITE_BUSY) check(code);
  if (stays) stay();
}

void Database::emptyLog() {
  int code =
      sqlite3_wal_checkpoint_v2(connection, "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if ((code & 0xff) != SQLITE_BUSY) check(code);
}

// A read that has begun keeps the copy from beginning anew whenever the writer commits.
void Database::copyInto(Database& empty, kj::Function<void(uint64_t done, uint64_t all)> tell) {
  Snapshot moment(*this);
  tell(0, static_cast<uint64_t>(number("PRAGMA page_count")));
  auto copying = sqlite3_backup_init(empty.connection, "main", connection, "main");
  if (copying == nullptr) fail(sqlite3_extended_errcode(empty.connection));
  KJ_DEFER(sqlite3_backup_finish(copying));  // Answers what the last step did.
  int code = SQLITE_OK;
  while (code == SQLITE_OK) {
    code = sqlite3_backup_step(copying, PAGES_AT_ONCE);
    auto all = static_cast<uint64_t>(sqlite3_backup_pagecount(copying));
    tell(all - static_cast<uint64_t>(sqlite3_backup_remaining(copying)), all);
  }
  if (code != SQLITE_DONE) fail(code);
}

// Inside, SQLite attaches a database of its own, which is too large for memory if this one is.
void Database::compact() {
  sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 1);
  KJ_DEFER(sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0));
  execute("PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY;");
}

Rows::~Rows() noexcept {
  if (statement == nullptr) return;
  // Answers the last step's error once more; it was thrown when it happened.
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
}

bool Rows::next() {
  int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(code);
  return false;
}

bool Rows::isNull(int column) const {
  return sqlite3_column_type(statement, column) == SQLITE_NULL;
}

int64_t Rows::number(int column) const { return sqlite3_column_int64(statement, column); }

kj::StringPtr Rows::text(int column) const {
  auto begin = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  if (begin == nullptr) return "";
  return kj::StringPtr(begin, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
}

Bytes Rows::bytes(int column) const {
  auto begin = static_cast<const kj::byte*>(sqlite3_column_blob(statement, column));
  if (begin == nullptr) return nullptr;
  return Bytes(begin, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
}

Hash Rows::hash(int column) const {
  return KJ_REQUIRE_NONNULL(fixed<32>(bytes(column)), "a hash of another length");
}

Statement::Statement(Database& database, kj::StringPtr query) {
  check(sqlite3_prepare_v3(database.connection, query.begin(), static_cast<int>(query.size()) + 1,
                           SQLITE_PREPARE_PERSISTENT, &statement, nullptr));
}

Statement::~Statement() noexcept { sqlite3_finalize(statement); }

void Statement::runWith(const Rows& row) {
  for (int i = 0; i < sqlite3_column_count(row.statement); ++i) {
    check(sqlite3_bind_value(statement, i + 1, sqlite3_column_value(row.statement, i)));
  }
  KJ_ASSERT(!Rows(statement).next());
}

void Statement::bind(int position, int64_t value) {
  check(sqlite3_bind_int64(statement, position, value));
}

void Statement::bind(int position, uint64_t value) {
  KJ_REQUIRE(value <= static_cast<uint64_t>(INT64_MAX));
  bind(position, static_cast<int64_t>(value));
}

void Statement::bind(int position, kj::StringPtr value) {
  check(sqlite3_bind_text64(statement, position, value.begin(), value.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
}

void Statement::bind(int position, Bytes value) {
  check(sqlite3_bind_blob64(statement, position, value.begin(), value.size(), SQLITE_TRANSIENT));
}

void Statement::bind(int position, decltype(nullptr)) {
  check(sqlite3_bind_null(statement, position));
}

Snapshot::Snapshot(Database& database) : database(database) { database.execute("BEGIN"); }

Snapshot::~Snapshot() noexcept {
  KJ_IF_MAYBE (ended, kj::runCatchingExceptions([this]() { database.execute("COMMIT"); })) {
    (void)ended;
  }
}

Transaction::Transaction(Database& database) : database(database) {
  database.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() noexcept {
  if (!open) return;
  // After a failure SQLite may have rolled back by itself, and then this fails without harm.
  KJ_IF_MAYBE (ended, kj::runCatchingExceptions([this]() { database.execute("ROLLBACK"); })) {
    (void)ended;
  }
}

void Transaction::commit() {
  database.execute("COMMIT");
  open = false;
}

}  // namespace praefectus::ledger
