// status, verify, execute: the ledger, seen from outside; and the command that is not there.
#include "supervisor/cli/commands.h"
#include "supervisor/cli/hints.h"
#include "supervisor/cli/receipt-text.h"
#include "supervisor/ledger/reader.h"

#include <charconv>

#include <unistd.h>

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
                 "head         ", summary.sequence, ":", hex(bytesOf(summary.head)), "\n");
}

kj::Maybe<Hash> hashOf(kj::StringPtr text) {
  KJ_IF_MAYBE (bytes, unhex(text)) return fixed<32>(*bytes);
  return nullptr;
}

// A missing log has its own remedy, and a person who used a shell on the ledger needs to hear it.
kj::StringPtr remedyFor(kj::StringPtr folder) {
  bool database = access(kj::str(folder, "/ledger.db").cStr(), F_OK) == 0;
  bool log = access(kj::str(folder, "/ledger.db-wal").cStr(), F_OK) == 0;
  if (!database || log) return hintFor(RefusalCode::LEDGER_FOREIGN);
  return "ledger.db-wal is missing, and commits may have gone with it. Copy it from where this "
         "copy "
         "came from. Only if a sqlite3 shell removed it from a ledger at rest: put an empty file "
         "of "
         "mode 0600 in its place, then `praefectus verify`."_kj;
}

kj::Own<ledger::LedgerReader> openLedger(kj::StringPtr folder) {
  auto reader = ledger::LedgerReader::open(folder);
  if (reader.ok()) return kj::mv(*reader);
  auto failed = failure(reader.refusal());
  if (reader.refusal().code == RefusalCode::LEDGER_FOREIGN)
    failed.advice = kj::str(remedyFor(folder));
  throw failed;
}

kj::Maybe<kj::StringPtr> operationOf(const Options& options) {
  if (options.positional().size() == 0) return nullptr;
  auto operation = options.positional()[0];
  if (options.has("--list")) throw usage(kj::str("either an operation or --list, not both"));
  if (!isIdentifier(operation)) {
    throw usage(kj::str("an operation id is 1 to 256 of A-Z a-z 0-9 . _ : -"));
  }
  return operation;
}

// A receipt that this ledger's key did not sign is not repeated as if it had been.
attest::Receipt opened(const attest::PublicKey& key, const attest::Envelope& sealed,
                       kj::StringPtr operation) {
  auto receipt = attest::openReceipt(key, sealed);
  if (receipt.ok() && receipt->operation == operation) return kj::mv(*receipt);
  throw Failure{ExitCode::FAILED, kj::str("ledger_damaged"),
                kj::str("the ledger holds a receipt that does not carry its signature"),
                kj::str("Run `praefectus verify`: it names every place that does not hold.")};
}

Report operationReport(ledger::LedgerReader& reader, const ledger::Summary& summary,
                       kj::StringPtr operation) {
  Report report;
  auto found = orFail(reader.receipt(operation));
  KJ_IF_MAYBE (claimed, found) {
    KJ_IF_MAYBE (sealed, *claimed) {
      auto receipt = opened(summary.receiptKey, *sealed, operation);
      report.data = {{"state", "ended"}, {"receipt", receiptJson(receipt)}};
      report.text = receiptText(receipt);
    } else {
      report.data = {{"state", "open"}};
      report.text =
          kj::str("claimed and not ended: in flight, or to be settled at the next start\n");
    }
  } else {
    report.data = {{"state", "unknown"}};
    report.text = kj::str("this ledger has never seen that operation\n");
  }
  return report;
}

constexpr uint64_t LISTED = 100;

Report listReport(ledger::LedgerReader& reader, const ledger::Summary& summary) {
  auto recent = orFail(reader.recent(LISTED + 1));
  bool cut = recent.size() > LISTED;
  if (cut) recent.resize(LISTED);
  constexpr kj::StringPtr HEADS[] = {"OPERATION"_kj, "KIND"_kj, "ENDED"_kj, "TIME"_kj};
  Table table(kj::arrayPtr(HEADS, 4));
  Json list = Json::array();
  for (auto& one : recent) {
    kj::StringPtr terminal = "open"_kj;
    int64_t at = one.claimedAt;
    KJ_IF_MAYBE (sealed, one.ended) {
      auto receipt = opened(summary.receiptKey, *sealed, one.operation);
      terminal = nameOf(receipt.terminal);
      at = receipt.settledAt;
    }
    kj::Vector<kj::String> cells;
    for (kj::StringPtr cell : {one.operation.asPtr(), one.kind.asPtr(), terminal}) {
      cells.add(kj::str(cell));
    }
    cells.add(timeText(at));
    table.row(kj::mv(cells));
    list.push_back({{"operation", json(one.operation)},
                    {"kind", json(one.kind)},
                    {"terminal", one.ended == nullptr ? Json() : Json(terminal.cStr())},
                    {"at_ms", at},
                    {"sequence", one.sequence}});
  }
  Report report;
  report.data = {{"operations", list}, {"cut", cut}};
  report.text = kj::str(table.str(), cut ? kj::str("(the newest ", LISTED, " of ",
                                                   summary.operations, " operations)\n")
                                         : kj::str());
  return report;
}

// A head that somebody noted: "SEQUENCE:HASH".
struct Noted {
  uint64_t sequence;
  Hash link;
};

kj::Maybe<Noted> headOf(const Options& options) {
  KJ_IF_MAYBE (text, options.value("--head")) {
    KJ_IF_MAYBE (colon, text->findFirst(':')) {
      KJ_IF_MAYBE (link, hashOf(text->slice(*colon + 1))) {
        Noted out{0, *link};
        auto end = text->begin() + *colon;
        auto parsed = std::from_chars(text->begin(), end, out.sequence);
        // SQLite's integers end at 2^63.
        bool whole = parsed.ec == std::errc() && parsed.ptr == end;
        if (whole && out.sequence < uint64_t{1} << 63) return out;
      }
    }
    throw usage(kj::str("--head is SEQUENCE:HASH, as `praefectus status` prints it"));
  }
  return nullptr;
}

void checkHead(ledger::LedgerReader& reader, const Noted& head,
               kj::Vector<ledger::Finding>& findings) {
  auto link = orFail(reader.linkAt(head.sequence));
  KJ_IF_MAYBE (stated, link) {
    if (attest::same(*stated, head.link)) return;
  }
  findings.add(ledger::Finding{
      head.sequence, kj::str("The head noted earlier is not here: cut off, or another chain.")});
}

}  // namespace

Report status(Arguments arguments) {
  constexpr Options::Spec SPECS[] = {{"--ledger"_kj, true}, {"--list"_kj, false}};
  Options options(arguments, kj::arrayPtr(SPECS, 2), 1);
  auto folder = ledgerOf(options);
  auto operation = operationOf(options);
  auto reader = openLedger(folder);
  auto summary = orFail(reader->summary());
  KJ_IF_MAYBE (id, operation) return operationReport(*reader, summary, *id);
  if (options.has("--list")) return listReport(*reader, summary);
  Report report;
  report.data = summaryJson(summary);
  report.text = kj::str(summaryText(summary),
                        "The chain was not checked here; `praefectus verify` does that.\n");
  return report;
}

Report verify(Arguments arguments) {
  constexpr Options::Spec SPECS[] = {
      {"--ledger"_kj, true}, {"--key"_kj, true}, {"--head"_kj, true}};
  Options options(arguments, kj::arrayPtr(SPECS, 3), 0);
  auto folder = ledgerOf(options);
  kj::Maybe<attest::PublicKey> trusted;
  KJ_IF_MAYBE (text, options.value("--key")) {
    trusted = hashOf(*text);
    if (trusted == nullptr) throw usage(kj::str("--key is 64 lower-case hexadecimal digits"));
  }
  auto noted = headOf(options);
  auto reader = openLedger(folder);
  auto checked = orFail(reader->verify(trusted));
  KJ_IF_MAYBE (head, noted) checkHead(*reader, *head, checked.findings);

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
        summaryText(checked.summary), "verified     ", counted(checked.receipts, "receipt"),
        "; the chain is whole up to position ", checked.summary.sequence, "\n",
        noted != nullptr ? "             the head noted earlier is part of it\n" : "",
        trusted == nullptr
            ? "             consistent; to prove origin, give the key you trust with --key\n"
            : "",
        "An end that was cut off cannot be seen without a head kept elsewhere",
        noted == nullptr ? " (--head).\n" : "; yours was.\n");
  } else {
    report.code = kj::str("ledger_damaged");
    report.message =
        kj::str("the ledger does not hold: ", counted(checked.findings.size(), "finding"));
    report.hint = kj::str(
        "Let no agent go on with this ledger; keep it as it is, and compare it with a copy you "
        "trust.");
    report.text = kj::str(summaryText(checked.summary), report.message, "\n",
                          kj::strArray(lines, ""), "  ", report.hint, "\n");
  }
  return report;
}

Report execute(Arguments) {
  auto failure =
      usage(kj::str("execute is not available here: a process of the same user cannot establish an "
                    "independent authority from a file the caller selects"));
  failure.advice = kj::str("Hosts that hold a pinned key link supervisor/client.");
  throw failure;
}

}  // namespace praefectus::cli
