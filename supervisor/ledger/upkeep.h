// What a person does to a ledger that no supervisor has open, and what can be asked of one beside a
// supervisor.
//
// Whatever changes a ledger locks its folder for as long, as a supervisor does, and is one commit:
// done as a whole or not at all. In all that follows a deed refuses what Ledger::open refuses
// (LEDGER_BUSY, LEDGER_MOVED, LEDGER_FOREIGN), and then nothing has changed; LEDGER_POISONED means
// that the device failed, that the ledger is whole, and that only a look at it (`takeInventory`)
// can tell whether it was done. What an earlier supervisor left open stays open until the next one
// settles it.
#pragma once

#include "supervisor/ledger/clock-memory.h"
#include "supervisor/ledger/reader.h"

#include <kj/io.h>

namespace praefectus::ledger {

// How far a deed has come: a step's name ("copying", "verifying", "archiving", "removing"), and how
// much of it is done, of how much. Called now and then.
using Telling = kj::Function<void(kj::StringPtr step, uint64_t done, uint64_t all)>;

// ---- Who the ledger is

// Says that this file is the ledger now, wherever it lies: a new incarnation, for which no grant
// was signed yet. Nothing else about it changes.
//
// A copy that is older than the last adoption counts again from where it stands, to an incarnation
// whose grants are in use elsewhere. Whoever knows a higher one states it: the new one is above
// both. Refuses: POLICY_FORBIDDEN when that is more than 1000 ahead. Never LEDGER_MOVED.
Result<LedgerId> adopt(kj::StringPtr folder, Moment now, uint32_t above = 0);

// A new key for receipts, told by an event that the old one signs; the old one is then gone. What
// it signed still counts, and the ledger's id stays. A power cut at any moment leaves a ledger that
// opens with the one key or the other.
Result<attest::PublicKey> rotateKey(kj::StringPtr folder, Moment now);

// Says that the wall clock is right, whatever is on record. Grants that had expired by the clock
// before are valid again when this one is behind it.
Result<Done> acceptClock(kj::StringPtr folder, Moment now);

// ---- Copies

struct Copied {
  Summary summary;        // Of the copy.
  uint64_t findings = 0;  // What does not hold in it, as in the original; see LedgerReader::verify.
};

// Copies a ledger, receipt key included, as it is at one moment. A supervisor may have it and goes
// on. The copy is verified and on the device when this returns; it lies elsewhere, so it serves
// nobody until it is adopted. A damaged ledger is copied as it is.
// Refuses: LEDGER_FOREIGN too when there is something at `to`.
Result<Copied> backUp(kj::StringPtr folder, kj::StringPtr to, Telling tell);

// Makes a ledger of a backup, which stays as it is: the copy is adopted (see there for `above`)
// before it appears in its place.
Result<Copied> restore(kj::StringPtr backup, kj::StringPtr folder, Moment now, uint32_t above,
                       Telling tell);

// ---- Old operations

struct ArchiveMade {
  uint64_t operations = 0;   // That were moved.
  uint64_t through = 0;      // The last place of the chain that was.
  Hash digest{};             // BLAKE2b-256 of the file.
  uint64_t bytesBefore = 0;  // Of the database.
  uint64_t bytesAfter = 0;   // The same as before when the space could not be given back.
};

// Moves what ended before that time (Unix milliseconds) to a new file: the part of the chain before
// the first operation that is open or ended later, and as much less that none in it ended outside.
// Their ids stay here and are never used again. The file is a database of the same format with all
// events in it, which LedgerReader::open reads and verifies by itself; it is verified and on the
// device before anything is removed here. A power cut at any moment leaves the operations here, or
// there and not here. Nothing when there is nothing to move; then there is no file either.
//
// Refuses: LEDGER_FOREIGN too when something is at `file` or it cannot be put there; RECORD_DAMAGED
// when what was written does not verify: then nothing was removed, and there is no file.
Result<kj::Maybe<ArchiveMade>> archive(kj::StringPtr folder, int64_t before, kj::StringPtr file,
                                       Moment now, Telling tell);

struct ImportMade {
  uint64_t taken = 0;    // Ids that are protected from now on.
  uint64_t already = 0;  // That were protected before.
  uint64_t conflicts = 0;
  kj::Vector<kj::String> conflicting;  // Ids of operations of this ledger; at most 100.
  bool torn = false;  // The last line had no end. If it said something whole, that was taken too.
};
struct BadLine {
  uint64_t number;  // From 1.
};

// Takes over the ids of a ledger of protocol v2, so that none is ever used here: JSON lines, each a
// claim or a terminal, as its engine writes them. Nothing but the ids is kept, since v2's hashes
// tell short texts to whoever tries. A line that is not such a record refuses all of it, and
// nothing is taken. Doing it again changes nothing.
Result<kj::OneOf<ImportMade, BadLine>> importV2(kj::StringPtr folder, kj::InputStream& lines,
                                                Moment now);

// ---- Looking

struct Counted {
  kj::StringPtr what;
  uint64_t count;
};

// A receipt key and since when it signs.
struct KeySpan {
  attest::PublicKey key{};
  uint64_t after = 0;  // Place of the event that stated it; 0 for the first.
};

struct ArchiveNoted {
  uint64_t place = 0;  // Of the event.
  int64_t at = 0;
  uint64_t operations = 0, through = 0;
  Hash digest{};
};

struct Inventory {
  Summary summary;
  kj::Vector<Counted> terminals;  // Every terminal, in the order of words.capnp.
  uint64_t quarantined = 0;
  uint64_t retiredHere = 0;       // Ids whose record was archived.
  uint64_t retiredElsewhere = 0;  // Ids taken over from another format.
  kj::Vector<Counted> events;     // By kind, those that there are.
  kj::Vector<KeySpan> keys;       // Oldest first.
  kj::Vector<ArchiveNoted> archives;
  kj::Maybe<int64_t> firstAt, lastAt;  // Of claims and endings that are here.
  uint64_t databaseBytes = 0, logBytes = 0;
  bool moved = false;  // It lies where no event says that it does.
};

// Counts everything as of one moment. Reads only, also beside a supervisor; signatures are not
// checked, but an event that does not hold is left out. Refuses: as LedgerReader::open.
Result<Inventory> takeInventory(kj::StringPtr folder);

// Verification, and besides it what Folder::own asks of the folder and its files, and that the
// receipt key is this ledger's. Reads only, also beside a supervisor.
Result<Report> check(kj::StringPtr folder, kj::Maybe<attest::PublicKey> trusted, Telling tell);

}  // namespace praefectus::ledger
