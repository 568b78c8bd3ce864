#include "supervisor/cli/ledger-text.h"

#include "supervisor/cli/page.h"
#include "supervisor/cli/receipt-text.h"

namespace praefectus::cli {
namespace {

void describe(const ledger::Summary& summary, Page& page) {
  page.line("ledger", hex(bytesOf(summary.id.key)));
  page.line("", kj::str("incarnation ", summary.id.incarnation));
  page.line("receipt key", hex(bytesOf(summary.receiptKey)));
  page.line("operations", kj::str(summary.operations, ", ", summary.open, " open"));
  page.word("head", kj::str(summary.sequence, ":", hex(bytesOf(summary.head))));
}

Json countsJson(kj::ArrayPtr<const ledger::Counted> counts) {
  Json out = Json::object();
  for (auto& one : counts) out[one.what.cStr()] = one.count;
  return out;
}

void describe(kj::StringPtr label, kj::ArrayPtr<const ledger::Counted> counts, Page& page) {
  for (auto& one : counts) {
    if (one.count == 0) continue;
    page.line(label, kj::str(one.count, " ", one.what));
    label = ""_kj;
  }
}

void describeKeys(const ledger::Inventory& inventory, Page& page) {
  kj::StringPtr label = "signed by"_kj;
  for (auto& span : inventory.keys) {
    page.line(label, hex(bytesOf(span.key)));
    page.line(
        "", span.after == 0 ? kj::str("from the beginning") : kj::str("after place ", span.after));
    label = ""_kj;
  }
}

void describeArchives(const ledger::Inventory& inventory, Page& page) {
  kj::StringPtr label = "archived"_kj;
  for (auto& archive : inventory.archives) {
    page.line(label, kj::str(timeText(archive.at), ": ", counted(archive.operations, "operation"),
                             ", up to place ", archive.through));
    page.line("", hex(bytesOf(archive.digest)));
    label = ""_kj;
  }
}

constexpr kj::StringPtr OTHER_KEY =
    "Signed with another key than the one given: is it the right one?"_kj;

bool has(kj::ArrayPtr<const attest::PublicKey> keys, const attest::PublicKey& key) {
  for (auto& each : keys) {
    if (each == key) return true;
  }
  return false;
}

// The ledger holds by itself, and the key that was given is not the one to see that with.
Report otherKey(const ledger::Report& checked, kj::ArrayPtr<const attest::PublicKey> keys,
                const attest::PublicKey& given) {
  Report report;
  Json findings = Json::array();
  report.ok = false;
  report.code = kj::str("other_key");
  if (has(keys, given)) {
    report.message = kj::str("This is ",
                             given == checked.summary.receiptKey ? "the ledger's present key"_kj
                                                                 : "a later key of the ledger"_kj,
                             ", which has signed nothing in it yet; the whole of it is checked "
                             "with the first one: ",
                             hex(bytesOf(keys[0])));
  } else {
    report.message = kj::str(OTHER_KEY);
    report.hint =
        kj::str("If it is, this is not the ledger that you know: let no agent go on with it.");
    findings.push_back({{"sequence", 0}, {"what", OTHER_KEY.cStr()}});
  }
  report.data = {{"summary", summaryJson(checked.summary)},
                 {"receipts", 0},
                 {"events", 0},
                 {"trusted_key", true},
                 {"findings", findings}};
  report.text = kj::str(summaryText(checked.summary), report.message, "\n");
  if (report.hint.size() > 0) report.text = kj::str(report.text, "  ", report.hint, "\n");
  return report;
}

Json inventoryJson(const ledger::Inventory& inventory) {
  Json keys = Json::array(), archives = Json::array();
  for (auto& span : inventory.keys) {
    keys.push_back({{"key", hex(bytesOf(span.key)).cStr()}, {"after", span.after}});
  }
  for (auto& archive : inventory.archives) {
    archives.push_back({{"place", archive.place},
                        {"at_ms", archive.at},
                        {"operations", archive.operations},
                        {"through", archive.through},
                        {"digest", hex(bytesOf(archive.digest)).cStr()}});
  }
  Json out = {
      {"summary", summaryJson(inventory.summary)},
      {"terminals", countsJson(inventory.terminals)},
      {"quarantined", inventory.quarantined},
      {"retired", {{"archived", inventory.retiredHere}, {"imported", inventory.retiredElsewhere}}},
      {"events", countsJson(inventory.events)},
      {"keys", keys},
      {"archives", archives},
      {"first_ms", nullptr},
      {"last_ms", nullptr},
      {"database_bytes", inventory.databaseBytes},
      {"log_bytes", inventory.logBytes},
      {"moved", inventory.moved}};
  KJ_IF_MAYBE (first, inventory.firstAt) out["first_ms"] = *first;
  KJ_IF_MAYBE (last, inventory.lastAt) out["last_ms"] = *last;
  return out;
}

}  // namespace

Json summaryJson(const ledger::Summary& summary) {
  return {{"operations", summary.operations},
          {"open", summary.open},
          {"sequence", summary.sequence},
          {"head", hex(bytesOf(summary.head)).cStr()},
          {"head_argument", kj::str(summary.sequence, ":", hex(bytesOf(summary.head))).cStr()},
          {"ledger", hex(bytesOf(summary.id.key)).cStr()},
          {"incarnation", summary.id.incarnation},
          {"receipt_key", hex(bytesOf(summary.receiptKey)).cStr()}};
}

kj::String summaryText(const ledger::Summary& summary) {
  Page page;
  describe(summary, page);
  return page.str();
}

Report verdict(const ledger::Report& checked, bool trusted, bool noted) {
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
                 {"events", checked.events},
                 {"trusted_key", trusted},
                 {"findings", findings}};
  report.ok = checked.findings.size() == 0;
  if (report.ok) {
    Page page;
    describe(checked.summary, page);
    page.line(
        "verified",
        kj::str(counted(checked.receipts, "receipt"), " and ", counted(checked.events, "event"),
                "; the chain is whole up to position ", checked.summary.sequence));
    if (noted) page.line("", "the head noted earlier is part of it");
    if (!trusted) page.line("", "consistent; to prove origin, give the key you trust with --key");
    page.say(
        noted ? "An end that was cut off cannot be seen without a head kept elsewhere; yours "
                "was."
              : "An end that was cut off cannot be seen without a head kept elsewhere (--head).");
    report.text = page.str();
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

Report judge(Check check, ledger::LedgerReader& reader, const kj::Maybe<attest::PublicKey>& trusted,
             bool noted) {
  auto checked = check(trusted);
  KJ_IF_MAYBE (key, trusted) {
    auto keys = orFail(reader.receiptKeys());
    if (checked.findings.size() > 0 && *key != keys[0]) {
      auto alone = check(nullptr);
      if (alone.findings.size() == 0) return otherKey(alone, keys, *key);
      if (!has(keys, *key)) alone.findings.add(ledger::Finding{0, kj::str(OTHER_KEY)});
      checked = kj::mv(alone);
    }
  }
  return verdict(checked, trusted != nullptr, noted);
}

Report inventoryReport(const ledger::Inventory& inventory) {
  Page page;
  describe(inventory.summary, page);
  if (inventory.moved) {
    page.line("CAUTION", "it is not where it was made or adopted: no supervisor will serve it");
  }
  page.gap();
  describe("ended", inventory.terminals, page);
  if (inventory.quarantined > 0) {
    page.line("quarantined",
              kj::str(counted(inventory.quarantined, "operation"), ", whose record is damaged"));
  }
  KJ_IF_MAYBE (first, inventory.firstAt) page.line("first", timeText(*first));
  KJ_IF_MAYBE (last, inventory.lastAt) page.line("last", timeText(*last));
  if (inventory.retiredHere > 0) {
    page.line("elsewhere", kj::str(counted(inventory.retiredHere, "operation"), " in archives"));
  }
  if (inventory.retiredElsewhere > 0) {
    page.line("elsewhere", kj::str(counted(inventory.retiredElsewhere, "id"),
                                   " taken over from another ledger"));
  }
  page.gap();
  describe("events", inventory.events, page);
  describeKeys(inventory, page);
  describeArchives(inventory, page);
  page.gap();
  page.line("size", kj::str(counted(inventory.databaseBytes, "byte"), ", and a log of ",
                            inventory.logBytes));
  page.say("Nothing was checked here; `praefectus ledger check` does that.");
  Report report;
  report.text = page.str();
  report.data = inventoryJson(inventory);
  return report;
}

}  // namespace praefectus::cli
