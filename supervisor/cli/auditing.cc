// status, verify, execute: the ledger, seen from outside; and the command that is not there.
#include "supervisor/cli/files.h"
#include "supervisor/cli/ledger-text.h"
#include "supervisor/cli/operations.h"
#include "supervisor/cli/page.h"
#include "supervisor/cli/progress.h"
#include "supervisor/cli/receipt-text.h"

#include "ipc/bounds.h"

#include <charconv>

namespace praefectus::cli {
namespace {

kj::Maybe<Hash> hashOf(kj::StringPtr text) {
  KJ_IF_MAYBE (bytes, unhex(text)) return fixed<32>(*bytes);
  return nullptr;
}

constexpr uint64_t LISTED = 100;

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
      head.sequence,
      kj::str("The head noted earlier is not here: cut off, archived, or another chain.")});
}

// ---- status

Report operationReport(OpenedLedger& ledger, kj::StringPtr operation) {
  auto known = ledger.look(operation);
  Report report;
  KJ_IF_MAYBE (receipt, known.receipt) {
    report.data = {{"state", "ended"}, {"receipt", receiptJson(*receipt)}};
    report.text = receiptText(*receipt);
  } else if (known.seen) {
    report.data = {{"state", "open"}};
    report.text = kj::str("claimed and not ended: in flight, or to be settled at the next start\n");
  } else {
    report.data = {{"state", "unknown"}};
    report.text = kj::str("this ledger has never seen that operation\n");
  }
  return report;
}

// ---- verify

ledger::Report check(ledger::LedgerReader& reader, const kj::Maybe<attest::PublicKey>& trusted) {
  Progress progress;
  return orFail(
      reader.verify(trusted, ledger::LedgerReader::Progress([&](uint64_t done, uint64_t all) {
                      progress.at("checking"_kj, done, all);
                    })));
}

Report verifyLedger(const Options& options, const kj::Maybe<attest::PublicKey>& trusted) {
  auto noted = headOf(options);
  OpenedLedger ledger(options);
  return judge(
      [&](const kj::Maybe<attest::PublicKey>& key) {
        auto checked = check(ledger.reader(), key);
        KJ_IF_MAYBE (head, noted) checkHead(ledger.reader(), *head, checked.findings);
        return checked;
      },
      ledger.reader(), trusted, noted != nullptr);
}

kj::String refusedText(const attest::Refused& refused) {
  Page page;
  page.line("refused", kj::str(nameOf(refused.code), ": ", meaningOf(refused.code)));
  page.line("operation", refused.operation.size() == 0 ? "not named"_kj : refused.operation);
  page.line("sent", refused.dispatched() ? "not known"_kj : "nothing, by this request"_kj);
  page.line("for", refused.subject);
  if (refused.session.size() > 0) {
    page.line("session", kj::str(refused.session, ", its refusal ", refused.sequence));
  }
  page.line("at", timeText(refused.at));
  return page.str();
}

Json refusedJson(const attest::Refused& refused) {
  return {{"code", nameOf(refused.code).cStr()},
          {"operation", json(refused.operation)},
          {"dispatched", refused.dispatched()},
          {"subject", json(refused.subject)},
          {"session", json(refused.session)},
          {"sequence", refused.sequence},
          {"at_ms", refused.at},
          {"ledger", hex(bytesOf(refused.ledger.key)).cStr()},
          {"incarnation", refused.ledger.incarnation}};
}

template <typename T>
T openedOrFail(Result<T> opened) {
  if (opened.ok()) return kj::mv(*opened);
  auto failed = failure(opened.refusal());
  failed.advice = kj::str("Is this the key that the ledger signed with at that time?");
  throw failed;
}

Report verifyFile(kj::StringPtr path, const attest::PublicKey& key) {
  auto sealed = orFail(attest::envelopeFrom(readFile(path, 2 * bounds::SIGNED_BODY_BYTES)));
  Report report;
  kj::String text;
  if (attest::verify(key, attest::REFUSAL_LABEL, sealed.body, sealed.signature)) {
    auto refused = openedOrFail(attest::openRefused(key, sealed));
    report.data = {{"kind", "refusal"}, {"refusal", refusedJson(refused)}};
    text = refusedText(refused);
  } else {
    auto receipt = openedOrFail(attest::openReceipt(key, sealed));
    report.data = {{"kind", "receipt"}, {"receipt", receiptJson(receipt)}};
    text = receiptText(receipt);
  }
  report.text = kj::str(text, "verified     signed by the key you gave, and unchanged since\n");
  return report;
}

}  // namespace

Report status(Arguments arguments) {
  constexpr Options::Spec SPECS[] = {{"--ledger"_kj, true}, {"--list"_kj, false}};
  Options options(arguments, kj::arrayPtr(SPECS, 2), 1);
  auto operation = operationOf(options);
  if (operation != nullptr && options.has("--list")) {
    throw usage(kj::str("either an operation or --list, not both"));
  }
  OpenedLedger ledger(options);
  KJ_IF_MAYBE (id, operation) return operationReport(ledger, *id);
  if (options.has("--list")) {
    ledger::Filter newest;
    newest.limit = LISTED;
    return listOperations(ledger, kj::mv(newest));
  }
  auto summary = orFail(ledger.reader().summary());
  Report report;
  report.data = summaryJson(summary);
  report.text = kj::str(summaryText(summary),
                        "The chain was not checked here; `praefectus verify` does that.\n");
  return report;
}

Report verify(Arguments arguments) {
  constexpr Options::Spec SPECS[] = {
      {"--ledger"_kj, true}, {"--key"_kj, true}, {"--head"_kj, true}};
  Options options(arguments, kj::arrayPtr(SPECS, 3), 1);
  auto trusted = trustedKey(options);
  if (options.positional().size() == 0) return verifyLedger(options, trusted);
  if (options.has("--ledger") || options.has("--head")) {
    throw usage(kj::str("either a file or --ledger FOLDER, not both"));
  }
  KJ_IF_MAYBE (key, trusted) return verifyFile(options.positional()[0], *key);
  throw usage(kj::str("a file is checked with the key you trust: --key HEX"));
}

Report execute(Arguments) {
  auto failure =
      usage(kj::str("execute is not available here: a process of the same user cannot establish an "
                    "independent authority from a file the caller selects"));
  failure.advice = kj::str("Hosts that hold a pinned key link supervisor/client.");
  throw failure;
}

}  // namespace praefectus::cli
