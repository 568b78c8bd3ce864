// What the ledger's tests share: a folder that goes away, operations to record, another process to
// do it in, and a way into the file behind the ledger's back.
#pragma once

#include "supervisor/ledger/holding.h"
#include "supervisor/ledger/ledger.h"
#include "supervisor/ledger/reader.h"
#include "tests/support/faulty-vfs.h"

#include <kj/async-io.h>
#include <kj/function.h>
#include <kj/io.h>

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <sys/types.h>

namespace praefectus::test {

using ledger::Claim;
using ledger::Ending;
using ledger::Found;
using ledger::Ledger;
using ledger::LedgerReader;

constexpr int64_t NOW = 1'700'000'000'000;

// A moment of a boot in which nobody set the clock.
constexpr ledger::Moment momentAt(int64_t wallMs) {
  return {wallMs, static_cast<uint64_t>(wallMs - NOW + 1'000'000)};
}

// A private folder, removed with all it holds.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(kj::StringPtr where = "/tmp");
  ~TemporaryFolder() noexcept;
  KJ_DISALLOW_COPY(TemporaryFolder);
  kj::String operator/(kj::StringPtr name) const { return kj::str(path, '/', name); }

 private:
  kj::String path;
};

// Memory in place of a disk, for tests that open hundreds of ledgers. Their faults are made, not
// met.
kj::StringPtr fastPlace();

kj::Array<kj::byte> readWhole(kj::StringPtr path);
void writeWhole(kj::StringPtr path, Bytes content);
void copyFolder(kj::StringPtr from, kj::StringPtr to);
// Says that a ledger that was moved is the ledger now.
void adopt(kj::StringPtr folder);
// A copy that was adopted.
void copyLedger(kj::StringPtr from, kj::StringPtr to);

// A ring with one issuer and one publisher, and the issuer's key.
attest::KeyRing sampleRing();
attest::SigningKey issuerKey();
Hash hashNamed(kj::StringPtr name);
Claim claimOf(kj::StringPtr operation, kj::StringPtr action = "an action");
// As claimOf, but no helper was involved.
Claim unclaimed(kj::StringPtr operation, kj::StringPtr action = "an action");
Ending success();
Ending refusal();

// A ledger with its event loop. One at a time in a thread.
class Running {
 public:
  explicit Running(kj::StringPtr folder, int64_t now = NOW);
  Ledger* operator->() { return ledger.get(); }
  kj::WaitScope& wait() { return io.waitScope; }
  void close() { ledger = nullptr; }

  bool claims(kj::StringPtr operation);                 // Whether the claim was accepted.
  attest::Envelope settles(kj::StringPtr operation);    // As a success; throws when refused.
  attest::Envelope concludes(kj::StringPtr operation);  // As a refusal.

 private:
  kj::AsyncIoContext io;
  kj::Own<Ledger> ledger;
};

// Makes a ledger with the sample ring, and answers its folder.
kj::String makeLedger(const TemporaryFolder& in);
attest::Receipt opened(Ledger& ledger, const attest::Envelope& envelope);
// The refusal's name of opening, or "ok".
kj::StringPtr outcomeOfOpening(kj::StringPtr folder, int64_t now = NOW);
// What does not hold in the ledger, one line each.
kj::String findingsIn(kj::StringPtr folder);

// Runs the deed in a forked process, which ends without returning: 0 when it went well, 1 when it
// threw.
class OtherProcess {
 public:
  explicit OtherProcess(kj::Function<void(int output)> deed);
  ~OtherProcess() noexcept;
  KJ_DISALLOW_COPY(OtherProcess);

  // The next line it wrote; nothing at its end.
  kj::Maybe<kj::String> line();
  void kill();
  // The exit code, or minus the signal's number. At most a minute.
  int wait();

 private:
  pid_t pid;
  kj::AutoCloseFd input;
  kj::Maybe<int> status;
};
void say(int output, kj::StringPtr line);

// The database as any program of the user can open it.
class BackDoor {
 public:
  explicit BackDoor(kj::StringPtr folder, int flags = SQLITE_OPEN_READWRITE);
  ~BackDoor() noexcept;
  KJ_DISALLOW_COPY(BackDoor);
  // SQLite's answer, and what it said.
  int run(kj::StringPtr script);
  kj::StringPtr said() const { return message; }
  // Every row, columns joined by '|'.
  kj::Vector<kj::String> rows(kj::StringPtr query);

 private:
  sqlite3* connection = nullptr;
  kj::String message;
};

// Opens the back door, takes all triggers and constraints away, changes something, puts them back.
void tamper(kj::StringPtr folder, kj::StringPtr change);

}  // namespace praefectus::test
