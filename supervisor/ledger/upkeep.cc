#include "supervisor/ledger/upkeep.h"

#include "supervisor/ledger/deed.h"

namespace praefectus::ledger {
namespace {

// Each one that is passed over is an event.
constexpr uint32_t INCARNATIONS_AT_ONCE = 1000;

void checkpointIfPossible(Database& database) {
  // What is committed is durable in the log too.
  KJ_IF_MAYBE (trouble, kj::runCatchingExceptions([&]() { database.checkpoint(); })) {
    (void)trouble;
  }
}

}  // namespace

int64_t timeToRecord(const Holding& holding, const Machine& machine, const Moment& now) {
  auto memory = holding.clockMemory(machine);
  return memory.agrees(now) ? kj::max(memory.floorMs, now.wallMs) : memory.floorMs;
}

void record(Holding& holding, EventContent what, int64_t at) {
  Transaction transaction(*holding.writing);
  holding.scribe->append(kj::mv(what), at);
  transaction.commit();
  checkpointIfPossible(*holding.writing);
}

Result<LedgerId> adopt(kj::StringPtr folder, Moment now, uint32_t above) {
  auto machine = thisMachine();
  return onLedger<LedgerId>(
      folder, machine, Holding::Moved::ACCEPTED, [&](Holding& holding) -> Result<LedgerId> {
        auto& present = holding.identity.present().id;
        if (above > present.incarnation && above - present.incarnation > INCARNATIONS_AT_ONCE) {
          return Refusal{RefusalCode::POLICY_FORBIDDEN,
                         "The incarnation is too far ahead of the ledger's own."};
        }
        auto place = placeOf(holding.folder.path(DATABASE_FILE), present, machine);
        auto at = timeToRecord(holding, machine, now);
        Transaction transaction(*holding.writing);
        do {
          holding.scribe->append(attest::Adopted{place}, at);
        } while (holding.identity.present().id.incarnation <= above);
        transaction.commit();
        checkpointIfPossible(*holding.writing);
        return holding.identity.present().id;
      });
}

// The new key is on the device before the event that states it, and in its place only after: what
// lies between is finished by whoever takes the ledger next (see Holding).
Result<attest::PublicKey> rotateKey(kj::StringPtr folder, Moment now) {
  auto machine = thisMachine();
  return onLedger<attest::PublicKey>(
      folder, machine, Holding::Moved::REFUSED, [&](Holding& holding) -> Result<attest::PublicKey> {
        auto next = attest::SigningKey::generate();
        onDevice([&]() {
          holding.folder.remove(NEXT_KEY_FILE);
          next.save(holding.folder.path(NEXT_KEY_FILE));
        });
        record(holding, attest::KeyRotated{next.publicKey()}, timeToRecord(holding, machine, now));
        onDevice([&]() { holding.folder.replace(KEY_FILE, NEXT_KEY_FILE); });
        return next.publicKey();
      });
}

Result<Done> acceptClock(kj::StringPtr folder, Moment now) {
  auto machine = thisMachine();
  return onLedger<Done>(folder, machine, Holding::Moved::REFUSED,
                        [&](Holding& holding) -> Result<Done> {
                          auto reading = readingOf(now, holding.identity.present().id, machine);
                          record(holding, attest::ClockAccepted{reading}, now.wallMs);
                          return Done();
                        });
}

}  // namespace praefectus::ledger
