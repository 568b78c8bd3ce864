#include "supervisor/cli/operations.h"

#include "supervisor/cli/receipt-text.h"

#include <charconv>
#include <ctime>

namespace praefectus::cli {
namespace {

constexpr Terminal TERMINALS[] = {
    Terminal::SUCCEEDED,
    Terminal::REJECTED,
    Terminal::FAILED,
    Terminal::CANCELLED_BEFORE_EFFECT,
    Terminal::EXPIRED_BEFORE_EFFECT,
    Terminal::OUTCOME_UNKNOWN,
};

template <typename Number>
kj::Maybe<Number> numberIn(kj::StringPtr text) {
  Number out = 0;
  auto parsed = std::from_chars(text.begin(), text.end(), out);
  if (parsed.ec != std::errc() || parsed.ptr != text.end()) return nullptr;
  return out;
}

kj::Maybe<kj::String> identifierOf(const Options& options, kj::StringPtr name) {
  KJ_IF_MAYBE (text, options.value(name)) {
    if (!isIdentifier(*text)) throw usage(kj::str(name, " is 1 to 256 of A-Z a-z 0-9 . _ : -"));
    return kj::str(*text);
  }
  return nullptr;
}

kj::Maybe<Terminal> terminalOf(const Options& options) {
  KJ_IF_MAYBE (text, options.value("--terminal")) {
    for (auto terminal : TERMINALS) {
      if (nameOf(terminal) == *text) return terminal;
    }
    auto names = KJ_MAP(terminal, TERMINALS) { return nameOf(terminal); };
    throw usage(kj::str("--terminal is one of: ", kj::strArray(names, ", ")));
  }
  return nullptr;
}

kj::Maybe<int64_t> momentOf(const Options& options, kj::StringPtr name) {
  KJ_IF_MAYBE (text, options.value(name)) {
    auto moment = cli::momentOf(*text);
    if (moment != nullptr) return moment;
    throw usage(kj::str(name, " is a time such as 2026-11-30 or 2026-11-30T15:40:11"));
  }
  return nullptr;
}

uint64_t limitOf(const Options& options, uint64_t otherwise, uint64_t most) {
  KJ_IF_MAYBE (text, options.value("--limit")) {
    KJ_IF_MAYBE (number, numberIn<uint64_t>(*text)) {
      if (*number >= 1 && *number <= most) return *number;
    }
    throw usage(kj::str("--limit is a number from 1 to ", most));
  }
  return otherwise;
}

// A date that the calendar does not have is no date, rather than a day of the next month.
kj::Maybe<int64_t> secondsOf(const tm& stated, bool utc) {
  tm found = stated;
  found.tm_isdst = -1;
  time_t seconds = utc ? timegm(&found) : mktime(&found);
  if (found.tm_mday != stated.tm_mday || found.tm_mon != stated.tm_mon) return nullptr;
  return seconds;
}

// What a list says of one operation.
struct Line {
  kj::StringPtr state;
  kj::Maybe<attest::Receipt> receipt;
  int64_t at;
};

Line lineOf(const OpenedLedger& ledger, const ledger::Listed& listed) {
  if (listed.damaged) return {"damaged"_kj, nullptr, 0};
  KJ_IF_MAYBE (sealed, listed.ended) {
    auto receipt = ledger.read(*sealed, listed.operation);
    if (receipt == nullptr) return {"damaged"_kj, nullptr, listed.claimedAt};
    auto& ended = KJ_ASSERT_NONNULL(receipt);
    auto at = ended.settledAt;
    auto name = nameOf(ended.terminal);
    return {name, kj::mv(receipt), at};
  }
  return {"open"_kj, nullptr, listed.claimedAt};
}

Json lineJson(const ledger::Listed& listed, const Line& line) {
  bool ended = line.receipt != nullptr;
  return {{"operation", json(listed.operation)},
          {"kind", json(listed.kind)},
          {"session", json(listed.session)},
          {"turn", json(listed.turn)},
          {"state", ended ? "ended" : line.state.cStr()},
          {"terminal", ended ? Json(line.state.cStr()) : Json()},
          {"at_ms", line.at},
          {"sequence", listed.sequence}};
}

}  // namespace

kj::Maybe<int64_t> momentOf(kj::StringPtr text) {
  KJ_IF_MAYBE (number, numberIn<int64_t>(text)) return *number;
  bool utc = text.endsWith("Z");
  auto body = kj::heapString(text.slice(0, text.size() - (utc ? 1 : 0)));
  for (auto format :
       {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"}) {
    tm stated{};
    const char* end = strptime(body.cStr(), format, &stated);
    if (end == nullptr || *end != '\0') continue;
    return secondsOf(stated, utc).map([](int64_t seconds) { return seconds * 1000; });
  }
  return nullptr;
}

ledger::Filter filterOf(const Options& options, uint64_t limit, uint64_t most) {
  ledger::Filter filter;
  filter.session = identifierOf(options, "--session"_kj);
  filter.turn = identifierOf(options, "--turn"_kj);
  filter.kind = identifierOf(options, "--kind"_kj);
  filter.terminal = terminalOf(options);
  filter.since = momentOf(options, "--since"_kj);
  filter.until = momentOf(options, "--until"_kj);
  filter.limit = limitOf(options, limit, most);
  return filter;
}

Report listOperations(OpenedLedger& ledger, ledger::Filter filter) {
  auto shown = filter.limit;
  filter.limit = shown + 1;  // To know whether there are more.
  auto found = orFail(ledger.reader().list(filter));
  bool cut = found.size() > shown;
  if (cut) found.resize(shown);

  constexpr kj::StringPtr HEADS[] = {"OPERATION"_kj, "KIND"_kj, "ENDED"_kj, "TIME"_kj};
  Table table(kj::arrayPtr(HEADS, 4));
  Json list = Json::array();
  size_t damaged = 0;
  for (auto& listed : found) {
    auto line = lineOf(ledger, listed);
    if (line.state == "damaged") ++damaged;
    kj::Vector<kj::String> cells;
    cells.add(printable(listed.operation));
    cells.add(printable(listed.kind));
    cells.add(kj::str(line.state));
    cells.add(line.at == 0 ? kj::String() : timeText(line.at));
    table.row(kj::mv(cells));
    list.push_back(lineJson(listed, line));
  }
  Report report;
  report.data = {{"operations", list}, {"cut", cut}};
  report.text = found.size() == 0 ? kj::str("no such operation in this ledger\n") : table.str();
  if (cut) {
    report.text = kj::str(report.text, "(the newest ", shown, "; there are more)\n");
  }
  if (damaged > 0) {
    auto failed = damagedReceipt();
    report.ok = false;
    report.code = kj::mv(failed.code);
    report.message =
        kj::str("the ledger's record of ", counted(damaged, "operation"), " is damaged");
    report.hint = kj::mv(failed.advice);
    report.text = kj::str(report.text, report.message, "\n  ", report.hint, "\n");
  }
  return report;
}

}  // namespace praefectus::cli
