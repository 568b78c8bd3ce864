#include "supervisor/cli/opened-ledger.h"

#include "supervisor/cli/hints.h"

#include <unistd.h>

namespace praefectus::cli {
namespace {

kj::StringPtr folderOf(const Options& options) {
  KJ_IF_MAYBE (folder, options.value("--ledger")) return *folder;
  throw usage(kj::str("--ledger FOLDER is needed"));
}

// A missing log has its own remedy, and a person who used a shell on the ledger needs to hear it.
kj::StringPtr remedyFor(kj::StringPtr folder) {
  bool database = access(kj::str(folder, "/ledger.db").cStr(), F_OK) == 0;
  bool log = access(kj::str(folder, "/ledger.db-wal").cStr(), F_OK) == 0;
  if (!database || log) return hintFor(RefusalCode::LEDGER_FOREIGN);
  return "ledger.db-wal is missing, and commits may have gone with it. Copy it from where this "
         "copy came from. Only if a sqlite3 shell removed it from a ledger at rest: put an empty "
         "file of mode 0600 in its place, then `praefectus verify`."_kj;
}

kj::Own<ledger::LedgerReader> openLedger(kj::StringPtr folder) {
  auto reader = ledger::LedgerReader::open(folder);
  if (reader.ok()) return kj::mv(*reader);
  auto failed = failure(reader.refusal());
  if (reader.refusal().code == RefusalCode::LEDGER_FOREIGN) {
    failed.advice = kj::str(remedyFor(folder));
  }
  throw failed;
}

}  // namespace

OpenedLedger::OpenedLedger(const Options& options)
    : opened(openLedger(folderOf(options))), keys(orFail(opened->receiptKeys())) {}

kj::Maybe<const attest::PublicKey&> OpenedLedger::keyNamed(kj::StringPtr keyId) const {
  for (auto& key : keys) {
    if (attest::keyIdOf(key) == keyId) return key;
  }
  return nullptr;
}

kj::Maybe<attest::Receipt> OpenedLedger::read(const attest::Envelope& sealed,
                                              kj::StringPtr operation) const {
  KJ_IF_MAYBE (key, keyNamed(sealed.keyId)) {
    auto receipt = attest::openReceipt(*key, sealed);
    if (receipt.ok() && receipt->operation == operation) return kj::mv(*receipt);
  }
  return nullptr;
}

OpenedLedger::Known OpenedLedger::look(kj::StringPtr operation) {
  Known out;
  auto found = orFail(opened->receipt(operation));
  KJ_IF_MAYBE (claimed, found) {
    out.seen = true;
    KJ_IF_MAYBE (sealed, *claimed) {
      out.receipt = read(*sealed, operation);
      if (out.receipt == nullptr) throw damagedReceipt();
      out.sealed = kj::mv(*sealed);
    }
  }
  return out;
}

Failure damagedReceipt() {
  return {ExitCode::FAILED, kj::str("ledger_damaged"),
          kj::str("the ledger holds a receipt that does not carry its signature"),
          kj::str("Run `praefectus verify`: it names every place that does not hold.")};
}

kj::Maybe<kj::StringPtr> operationOf(const Options& options) {
  if (options.positional().size() == 0) return nullptr;
  auto operation = options.positional()[0];
  if (isIdentifier(operation)) return operation;
  throw usage(kj::str("an operation id is 1 to 256 of A-Z a-z 0-9 . _ : -"));
}

}  // namespace praefectus::cli
