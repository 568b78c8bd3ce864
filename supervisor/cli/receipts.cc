// receipts list, show, export: what a ledger has signed, for a person and for a file.
#include "supervisor/cli/files.h"
#include "supervisor/cli/operations.h"
#include "supervisor/cli/progress.h"
#include "supervisor/cli/receipt-text.h"

#include <algorithm>

namespace praefectus::cli {
namespace {

constexpr uint64_t LISTED = 100;
constexpr uint64_t LISTED_AT_MOST = 100'000;
constexpr size_t NAME_CHARACTERS = 200;  // Of a file that NAME_MAX allows, with all that is added.

Options listOptions(Arguments arguments) {
  return Options(arguments, kj::arrayPtr(FILTER_SPECS, kj::size(FILTER_SPECS)), 0);
}

Options exportOptions(Arguments arguments) {
  kj::Vector<Options::Spec> specs;
  for (auto& spec : FILTER_SPECS) specs.add(spec);
  specs.add(Options::Spec{"--to"_kj, true});
  return Options(arguments, specs, 1);
}

bool filters(const Options& options) {
  return std::any_of(std::begin(FILTER_SPECS), std::end(FILTER_SPECS),
                     [&](auto& spec) { return spec.name != "--ledger" && options.has(spec.name); });
}

struct Sealed {
  attest::Receipt receipt;
  attest::Envelope envelope;
};

Sealed receiptOf(OpenedLedger& ledger, kj::StringPtr operation) {
  auto known = ledger.look(operation);
  KJ_IF_MAYBE (receipt, known.receipt) {
    return {kj::mv(*receipt), kj::mv(KJ_ASSERT_NONNULL(known.sealed))};
  }
  throw Failure{ExitCode::FAILED, kj::str("no_receipt"),
                kj::str(known.seen ? "the operation is open: it has no receipt yet"
                                   : "this ledger has never seen that operation"),
                kj::str()};
}

// What `verify FILE` wants beside the file.
kj::String keyFor(const OpenedLedger& ledger, const attest::Receipt& receipt) {
  return hex(bytesOf(KJ_ASSERT_NONNULL(ledger.keyNamed(receipt.keyId))));
}

Report exportOne(OpenedLedger& ledger, kj::StringPtr operation, kj::StringPtr file) {
  auto sealed = receiptOf(ledger, operation);
  writeNewFile(file, attest::envelopeBytes(sealed.envelope));
  auto key = keyFor(ledger, sealed.receipt);
  Report report;
  report.data = {{"files", Json::array({json(printable(file))})},
                 {"keys", Json::array({key.cStr()})}};
  report.text = kj::str("wrote ", printable(file), "\n", "To check it:\n  praefectus verify ",
                        printable(file), " \\\n    --key ", key, "\n");
  return report;
}

// The place in the chain comes first: it makes the name the only one, and puts files in order.
kj::String fileNameOf(const attest::Receipt& receipt) {
  auto place = kj::str(receipt.sequence);
  auto zeros = kj::heapString(place.size() < 10 ? 10 - place.size() : 0);
  memset(zeros.begin(), '0', zeros.size());
  auto name = receipt.operation.slice(0, kj::min(receipt.operation.size(), NAME_CHARACTERS));
  return kj::str(zeros, place, "-", name, ".receipt");
}

Report exportAll(OpenedLedger& ledger, ledger::Filter filter, kj::StringPtr folder) {
  auto shown = filter.limit;
  filter.limit = shown + 1;  // To know whether there are more.
  auto found = orFail(ledger.reader().list(filter));
  bool cut = found.size() > shown;
  if (cut) found.resize(shown);
  makeFolder(folder);

  Progress progress;
  Json files = Json::array(), keys = Json::array();
  uint64_t done = 0, damaged = 0, open = 0;
  for (auto& listed : found) {
    progress.at("exporting"_kj, done++, found.size());
    KJ_IF_MAYBE (sealed, listed.ended) {
      KJ_IF_MAYBE (receipt, ledger.read(*sealed, listed.operation)) {
        auto file = kj::str(folder, "/", fileNameOf(*receipt));
        writeNewFile(file, attest::envelopeBytes(*sealed));
        files.push_back(json(printable(file)));
        Json key = keyFor(ledger, *receipt).cStr();
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
        continue;
      }
      ++damaged;
    } else if (listed.damaged) {
      ++damaged;
    } else {
      ++open;
    }
  }
  Report report;
  report.data = {
      {"files", files}, {"keys", keys}, {"open", open}, {"damaged", damaged}, {"cut", cut}};
  kj::Vector<kj::String> lines;
  lines.add(kj::str("wrote ", counted(files.size(), "receipt"), " into ", printable(folder)));
  for (auto& key : keys) lines.add(kj::str("  --key ", key.get<std::string>().c_str()));
  if (open > 0) lines.add(kj::str(counted(open, "operation"), " open: no receipt yet"));
  if (cut) lines.add(kj::str("these are the newest ", shown, "; --until reaches further back"));
  if (damaged > 0) {
    auto failed = damagedReceipt();
    report.ok = false;
    report.code = kj::mv(failed.code);
    report.message = kj::str(counted(damaged, "receipt"), " left out: the record is damaged");
    report.hint = kj::mv(failed.advice);
    lines.add(kj::str(report.message, "\n  ", report.hint));
  }
  report.text = kj::str(kj::strArray(lines, "\n"), "\n");
  return report;
}

}  // namespace

Report receiptsList(Arguments arguments) {
  auto options = listOptions(arguments);
  auto filter = filterOf(options, LISTED, LISTED_AT_MOST);
  OpenedLedger ledger(options);
  return listOperations(ledger, kj::mv(filter));
}

Report receiptsShow(Arguments arguments) {
  constexpr Options::Spec SPECS[] = {{"--ledger"_kj, true}};
  Options options(arguments, kj::arrayPtr(SPECS, 1), 1);
  KJ_IF_MAYBE (operation, operationOf(options)) {
    OpenedLedger ledger(options);
    auto sealed = receiptOf(ledger, *operation);
    Report report;
    report.data = {{"receipt", receiptJson(sealed.receipt)}};
    report.text = receiptText(sealed.receipt);
    return report;
  }
  throw usage(kj::str("which operation? `praefectus receipts list` lists them"));
}

Report receiptsExport(Arguments arguments) {
  auto options = exportOptions(arguments);
  auto operation = operationOf(options);
  auto filter = filterOf(options, LISTED_AT_MOST, LISTED_AT_MOST);
  if (operation != nullptr && filters(options)) {
    throw usage(kj::str("either an operation or a filter, not both"));
  }
  KJ_IF_MAYBE (to, options.value("--to")) {
    OpenedLedger ledger(options);
    KJ_IF_MAYBE (id, operation) return exportOne(ledger, *id, *to);
    return exportAll(ledger, kj::mv(filter), *to);
  }
  throw usage(kj::str("where to? --to FILE for one operation, --to FOLDER for all that match"));
}

}  // namespace praefectus::cli
