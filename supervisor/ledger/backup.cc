// Copies of a whole ledger.
#include "supervisor/ledger/deed.h"

namespace praefectus::ledger {
namespace {

constexpr kj::StringPtr COPYING = "copying"_kj;
constexpr kj::StringPtr VERIFYING = "verifying"_kj;

Result<Done> copyInto(const Folder& from, const NewFolder& made, Telling& tell) {
  Database source(from.path(DATABASE_FILE), Database::Mode::READ);
  if (!isLedger(source)) return Refusal{RefusalCode::LEDGER_FOREIGN, NOT_A_LEDGER};
  onDevice([&]() { made.makeFile(DATABASE_FILE); });
  Database copy(made.path(DATABASE_FILE), Database::Mode::CREATE);
  source.copyInto(copy, [&](uint64_t done, uint64_t all) { tell(COPYING, done, all); });
  auto key = receiptKeyIn(from, readIdentity(copy).present().key);
  if (!key.ok()) return key.refusal();
  onDevice([&]() { key->save(made.path(KEY_FILE)); });
  return Done();
}

// Leaves all of it in the database, and the log of a new ledger.
void rest(const NewFolder& made) {
  Database(made.path(DATABASE_FILE), Database::Mode::WRITE).emptyLog();
  onDevice([&]() {
    made.blank(LOG_FILE, LOG_BYTES);
    made.remove(INDEX_FILE);
  });
}

Result<Copied> verified(const NewFolder& made, Telling& tell) {
  auto reader = LedgerReader::open(made.path(""));
  if (!reader.ok()) return reader.refusal();
  auto report = (*reader)->verify(nullptr, LedgerReader::Progress([&](uint64_t done, uint64_t all) {
                                    tell(VERIFYING, done, all);
                                  }));
  if (!report.ok()) return report.refusal();
  return Copied{report->summary, report->findings.size()};
}

// What a backup and a restored ledger have in common; `finish` is what is done to the copy before
// it appears in its place.
template <typename Finish>
Result<Copied> copyLedger(kj::StringPtr from, kj::StringPtr to, Telling& tell, Finish&& finish) {
  auto folder = Folder::view(from);
  if (!folder.ok()) return folder.refusal();
  return refusingTrouble<Copied>([&]() -> Result<Copied> {
    auto made = onDevice([&]() { return NewFolder::beside(to); });
    if (!made.ok()) return made.refusal();

    auto copied = copyInto(*folder, *made, tell);
    if (!copied.ok()) return copied.refusal();
    auto finished = finish(*made);
    if (!finished.ok()) return finished.refusal();
    rest(*made);
    auto out = verified(*made, tell);
    if (!out.ok()) return out.refusal();

    auto published = onDevice([&]() {
      made->remove(INDEX_FILE);
      return made->publish();
    });
    if (!published.ok()) return published.refusal();
    return out;
  });
}

}  // namespace

Result<Copied> backUp(kj::StringPtr folder, kj::StringPtr to, Telling tell) {
  return copyLedger(folder, to, tell, [](const NewFolder&) -> Result<Done> { return Done(); });
}

// The file keeps device and inode when its folder is renamed.
Result<Copied> restore(kj::StringPtr backup, kj::StringPtr folder, Moment now, uint32_t above,
                       Telling tell) {
  return copyLedger(backup, folder, tell, [&](const NewFolder& made) -> Result<Done> {
    auto adopted = adopt(made.path(""), now, above);
    if (!adopted.ok()) return adopted.refusal();
    return Done();
  });
}

}  // namespace praefectus::ledger
