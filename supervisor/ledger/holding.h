// A ledger in the hands of the one process that may write it: what the supervisor's ledger and the
// tools of upkeep both begin with.
#pragma once

#include "supervisor/ledger/book.h"
#include "supervisor/ledger/folder.h"
#include "supervisor/ledger/place.h"

namespace praefectus::ledger {

// The log is used again from its beginning once this many pages are in it, and is made in that
// size: overwriting costs the device half of what growing does. A frame is a page and 24 bytes
// (SQLite, "WAL-mode file format").
constexpr uint64_t LOG_PAGES = 1000;
constexpr size_t LOG_BYTES = 32 + LOG_PAGES * (4096 + 24);

// The key that signs now. A rotation that a power cut interrupted has it under its other name.
// Refuses: LEDGER_FOREIGN.
Result<attest::SigningKey> receiptKeyIn(const Folder& folder, const attest::PublicKey& present);

class Holding {
 public:
  enum class Moved { REFUSED, ACCEPTED };

  // Locks the folder and finds out who the ledger is. A ledger that is refused stays as it was.
  // Nothing is written, not even what is open is settled; only a rotation of the key that was cut
  // short is finished.
  // Refuses: as Ledger::open does; LEDGER_MOVED only when `moved` says so.
  static Result<kj::Own<Holding>> take(kj::StringPtr folder, const Machine& machine, Moved moved);

  Holding(Folder folder, attest::SigningKey key) : folder(kj::mv(folder)), key(kj::mv(key)) {}

  // What is known of time. `sameBoot` is of this machine's present boot only.
  ClockMemory clockMemory(const Machine& machine) const;

  Folder folder;
  attest::SigningKey key;
  kj::Own<Database> reading;  // For reads beside the one who writes.
  Identity identity;
  Memory memory;       // As of taking.
  bool moved = false;  // Whether it lies where no event says that it does.
  kj::Own<Database> writing;
  kj::Own<Scribe> scribe;

 private:
  Result<Done> read(const Machine& machine, Moved allowed);
};

// Ledger::open on a machine of that name and boot.
Result<kj::Own<Ledger>> openOn(const Machine& machine, kj::StringPtr folder, Moment now);

}  // namespace praefectus::ledger
