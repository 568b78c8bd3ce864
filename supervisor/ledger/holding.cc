#include "supervisor/ledger/holding.h"

namespace praefectus::ledger {

constexpr Refusal OTHER_KEY{RefusalCode::LEDGER_FOREIGN,
                            "The receipt key is not this ledger's."_kj};

Result<attest::SigningKey> receiptKeyIn(const Folder& folder, const attest::PublicKey& present) {
  auto key = attest::SigningKey::load(folder.path(KEY_FILE));
  if (!key.ok() || key->publicKey() == present) return key;
  auto next = attest::SigningKey::load(folder.path(NEXT_KEY_FILE));
  if (next.ok() && next->publicKey() == present) return next;
  return OTHER_KEY;
}

Result<kj::Own<Holding>> Holding::take(kj::StringPtr path, const Machine& machine, Moved allowed) {
  auto folder = Folder::own(path);
  if (!folder.ok()) return folder.refusal();
  auto key = attest::SigningKey::load(folder->path(KEY_FILE));
  if (!key.ok()) return key.refusal();

  return refusingTrouble<kj::Own<Holding>>([&]() -> Result<kj::Own<Holding>> {
    auto out = kj::heap<Holding>(kj::mv(*folder), kj::mv(*key));
    auto read = out->read(machine, allowed);
    if (!read.ok()) return read.refusal();
    out->writing = kj::heap<Database>(out->folder.path(DATABASE_FILE), Database::Mode::WRITE);
    out->scribe = kj::heap<Scribe>(*out->writing, out->identity, out->key, out->memory);
    return kj::mv(out);
  });
}

// Through a connection that only reads, so that a foreign file stays as it was.
Result<Done> Holding::read(const Machine& machine, Moved allowed) {
  auto file = folder.path(DATABASE_FILE);
  reading = kj::heap<Database>(file, Database::Mode::READ);
  if (!isLedger(*reading)) {
    return Refusal{RefusalCode::LEDGER_FOREIGN, "The database is not a ledger of this version."};
  }
  if (!hasOurRules(*reading)) {
    return Refusal{RefusalCode::LEDGER_FOREIGN,
                   "The ledger's constraints or triggers were changed."};
  }
  identity = readIdentity(*reading);
  bool cutShort = identity.present().key != key.publicKey();
  if (cutShort) {
    auto next = receiptKeyIn(folder, identity.present().key);
    if (!next.ok()) return next.refusal();
    key = kj::mv(*next);
  }
  memory = readMemory(*reading, identity);
  moved = !(memory.place == placeOf(file, identity.present().id, machine));
  if (moved && allowed == Moved::REFUSED) {
    return Refusal{RefusalCode::LEDGER_MOVED,
                   "The ledger is not where it was made or adopted; a person has to adopt it."};
  }
  if (cutShort) onDevice([this]() { folder.replace(KEY_FILE, NEXT_KEY_FILE); });
  return Done();
}

ClockMemory Holding::clockMemory(const Machine& machine) const {
  ClockMemory out;
  out.floorMs = scribe->floor();
  KJ_IF_MAYBE (reading, memory.lastReading) {
    auto boot = readingOf(Moment(), identity.present().id, machine).boot;
    if (reading->boot == boot) out.sameBoot = Moment{reading->wallMs, reading->bootMs};
  }
  return out;
}

}  // namespace praefectus::ledger
