// status, verify, execute: the ledger, seen from outside; and the command that is not there.
#include "supervisor/cli/commands.h"
#include "supervisor/cli/receipt-text.h"
#include "supervisor/ledger/reader.h"

namespace praefectus::cli {
namespace {

kj::StringPtr ledgerOf(const Options& options) {
  KJ_IF_MAYBE (folder, options.value("--ledger")) return *folder;
  throw usage(kj::str("--ledger FOLDER is needed"));
}

Json summaryJson(const ledger::Summary& summary) {
  return {{"operations", summary.operations},
          {"open", summary.open},
          {"sequence", summary.sequence},
          {"head", hex(bytesOf(summary.head)).cStr()},
          {"ledger", hex(bytesOf(summary.id.key)).cStr()},
          {"incarnation", summary.id.incarnation},
          {"receipt_key", hex(bytesOf(summary.receiptKey)).cStr()}};
}

kj::String summaryText(const ledger::Summary& summary) {
  return kj::str("ledger       ", hex(bytesOf(summary.id.key)), " (incarnation ",
                 summary.id.incarnation, ")\n", "receipt key  ", hex(bytesOf(summary.receiptKey)),
                 "\n", "operations   ", summary.operations, ", ", summary.open, " open\n",
                 "head         ", summary.sequence, " ", hex(bytesOf(summary.head)), "\n");
}

}  // namespace

Report status(Arguments arguments) {
  constexpr Options::Spec SPECS[] = {{"--ledger"_kj, true}};
  Options options(arguments, kj::arrayPtr(SPECS, 1), 1);
  auto reader = orFail(ledger::LedgerReader::open(ledgerOf(options)));
  auto summary = orFail(reader->summary());
  Report report;
  if (options.positional().size() == 0) {
    report.data = summaryJson(summary);
    report.text = summaryText(summary);
    return report;
  }
  auto found = orFail(reader->receipt(options.positional()[0]));
  KJ_IF_MAYBE (claimed, found) {
    KJ_IF_MAYBE (sealed, *claimed) {
      auto receipt = orFail(attest::openReceipt(summary.receiptKey, *sealed));
      report.data = {{"state", "ended"}, {"receipt", receiptJson(receipt)}};
      report.text = receiptText(receipt);
    } else {
      report.data = {{"state", "open"}};
      report.text =
          kj::str("claimed and not ended: in flight, or to be settled at the next start\n");
    }
  } else {
    report.data = nullptr;
    report.text = kj::str("this ledger has never seen that operation\n");
  }
  return report;
}

Report verify(Arguments arguments) {
  constexpr Options::Spec SPECS[] = {{"--ledger"_kj, true}, {"--key"_kj, true}};
  Options options(arguments, kj::arrayPtr(SPECS, 2), 0);
  kj::Maybe<attest::PublicKey> trusted;
  KJ_IF_MAYBE (text, options.value("--key")) {
    KJ_IF_MAYBE (bytes, unhex(*text)) trusted = fixed<32>(*bytes);
    if (trusted == nullptr) throw usage(kj::str("--key is 64 lower-case hexadecimal digits"));
  }
  auto reader = orFail(ledger::LedgerReader::open(ledgerOf(options)));
  auto checked = orFail(reader->verify(trusted));

  Report report;
  Json findings = Json::array();
  kj::Vector<kj::String> lines;
  for (auto& finding : checked.findings) {
    findings.push_back({{"sequence", finding.sequence}, {"what", finding.what.cStr()}});
    lines.add(finding.sequence == 0 ? kj::str("  whole file: ", finding.what, "\n")
                                    : kj::str("  at ", finding.sequence, ": ", finding.what, "\n"));
  }
  report.data = {{"summary", summaryJson(checked.summary)},
                 {"receipts", checked.receipts},
                 {"trusted_key", trusted != nullptr},
                 {"findings", findings}};
  report.ok = checked.findings.size() == 0;
  if (report.ok) {
    report.text = kj::str(
        summaryText(checked.summary), "verified     ", checked.receipts,
        " receipts; the chain is whole\n",
        trusted == nullptr
            ? "             consistent; to prove origin, give the key you trust with --key\n"
            : "");
  } else {
    report.code = kj::str("ledger_damaged");
    report.message = kj::str("the ledger does not hold: ", checked.findings.size(), " findings");
    report.text =
        kj::str(summaryText(checked.summary), report.message, "\n", kj::strArray(lines, ""));
  }
  return report;
}

Report execute(Arguments) {
  throw usage(kj::str(
      "execute is not available here: a process of the same user cannot establish an "
      "independent authority from a file the caller selects. Hosts link supervisor/client."));
}

}  // namespace praefectus::cli
