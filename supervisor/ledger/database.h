// SQLite, held by its lifetime: a connection, a prepared statement, one run of it, a transaction.
// The only header of this room that knows what a database is, and database.cc the only file that
// includes SQLite's.
//
// Every error is an exception; its type says what kind of trouble it is (see `typeOf` in
// database.cc):
//   OVERLOADED    somebody else holds the file
//   DISCONNECTED  the device or the system failed: full, unreadable, out of memory
//   FAILED        the content is damaged, foreign, or broke a rule of schema.sql
// Texts are SQLite's fixed ones, never a value.
#pragma once

#include "ipc/words.h"

#include <kj/exception.h>
#include <kj/function.h>

struct sqlite3;
struct sqlite3_stmt;

namespace praefectus::ledger {

// What trouble at opening or reading means to whoever asked: LEDGER_BUSY, LEDGER_POISONED (the
// storage does not work) or LEDGER_FOREIGN.
Refusal refusalFor(const kj::Exception& trouble);

// What the deed answers, or the refusal for what it threw.
template <typename T, typename Deed>
Result<T> refusingTrouble(Deed&& deed) {
  kj::Maybe<Result<T>> out;
  KJ_IF_MAYBE (trouble, kj::runCatchingExceptions([&]() { out = deed(); })) {
    return refusalFor(*trouble);
  }
  return kj::mv(KJ_ASSERT_NONNULL(out));
}

// Work on files beside SQLite: whatever fails there is the device's failure.
template <typename Work>
auto onDevice(Work&& work) {
  try {
    return work();
  } catch (const kj::Exception& trouble) {
    kj::throwFatalException(kj::Exception(kj::Exception::Type::DISCONNECTED, trouble.getFile(),
                                          trouble.getLine(), kj::str(trouble.getDescription())));
  }
}

class Database {
 public:
  enum class Mode {
    CREATE,   // Makes the content of an existing empty file.
    WRITE,    // The one writer.
    READ,     // Leaves database and write-ahead log as they are, also when it is the last to close.
    SCRATCH,  // In memory; `path` is not used.
    ARCHIVE,  // Makes the content of an existing empty file, all by itself: nothing is beside it,
              // and nothing is on the device before the caller flushes it.
  };
  Database(kj::StringPtr path, Mode mode);
  ~Database() noexcept;
  KJ_DISALLOW_COPY(Database);

  // Runs a script without results.
  void execute(kj::StringPtr script);
  // The number that a query without parameters answers.
  int64_t number(kj::StringPtr query);

  // From now on keeps this connection's place in the write-ahead log between its transactions,
  // which saves four of a commit's six locks. For the one writer: when somebody else has written
  // meanwhile, its next transaction fails.
  void stay();

  // Copies what has been committed from the write-ahead log into the database, as far as no reader
  // is in the way, and flushes it. The log is used again from its beginning, never cut.
  void checkpoint();
  // The same, and then cuts the log to nothing, unless a reader is in the way.
  void emptyLog();

  // Copies all of it, as it is at this moment, into an empty database, while a writer goes on. For
  // a connection that reads. Tells the pages done, of how many.
  void copyInto(Database& empty, kj::Function<void(uint64_t done, uint64_t all)> tell);

  // Gives the space of what was removed back to the file system, once the log is emptied. Needs as
  // much again as is left, for as long as it takes.
  void compact();

  // Pages in the write-ahead log after the last commit of this connection.
  uint64_t logPages() const { return pagesInLog; }

 private:
  friend class Statement;
  void leave();

  sqlite3* connection = nullptr;
  sqlite3_stmt* kept = nullptr;  // A read that is never finished.
  uint64_t pagesInLog = 0;
};

// One run of a statement: its rows. The statement is free again when this ends, and with it the
// snapshot that a reader held.
class Rows {
 public:
  explicit Rows(sqlite3_stmt* statement) : statement(statement) {}
  Rows(Rows&& other) : statement(other.statement) { other.statement = nullptr; }
  ~Rows() noexcept;
  KJ_DISALLOW_COPY(Rows);

  // Steps to the next row; false behind the last one.
  bool next();

  // Columns of the present row, from 0. Text and bytes are valid until the next step.
  bool isNull(int column) const;
  int64_t number(int column) const;
  kj::StringPtr text(int column) const;
  Bytes bytes(int column) const;
  // Throws when it does not have 32 bytes.
  Hash hash(int column) const;

 private:
  friend class Statement;
  sqlite3_stmt* statement;
};

class Statement {
 public:
  Statement(Database& database, kj::StringPtr query);
  ~Statement() noexcept;
  KJ_DISALLOW_COPY(Statement);

  // Parameters in their order. Copied.
  template <typename... Values>
  Rows rows(const Values&... values) {
    int position = 0;
    (bind(++position, values), ...);
    return Rows(statement);
  }
  // For what answers no rows.
  template <typename... Values>
  void run(const Values&... values) {
    auto result = rows(values...);
    KJ_ASSERT(!result.next());
  }
  // The same with the columns of another statement's row, of the same database or another one.
  void runWith(const Rows& row);

 private:
  void bind(int position, int64_t value);
  void bind(int position, uint64_t value);
  void bind(int position, kj::StringPtr value);
  void bind(int position, Bytes value);
  void bind(int position, const Hash& value) { bind(position, bytesOf(value)); }
  void bind(int position, const std::array<kj::byte, 64>& value) { bind(position, bytesOf(value)); }
  void bind(int position, decltype(nullptr));
  template <typename T>
  void bind(int position, const kj::Maybe<T>& value) {
    KJ_IF_MAYBE (present, value) {
      bind(position, *present);
    } else {
      bind(position, nullptr);
    }
  }

  sqlite3_stmt* statement = nullptr;
};

// Everything read while it lives shows one moment. For a connection that reads.
class Snapshot {
 public:
  explicit Snapshot(Database& database);
  ~Snapshot() noexcept;
  KJ_DISALLOW_COPY(Snapshot);

 private:
  Database& database;
};

// Everything written while it lives is one commit, or nothing.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction() noexcept;  // Rolls back what was not committed.
  KJ_DISALLOW_COPY(Transaction);

  // Durable when it returns. When it throws, the content may be on disk all the same.
  void commit();

 private:
  Database& database;
  bool open = true;
};

}  // namespace praefectus::ledger
