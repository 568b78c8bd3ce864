// Operations of a ledger: which ones somebody asks for, and their list.
#pragma once

#include "supervisor/cli/opened-ledger.h"

namespace praefectus::cli {

// The options of every command that chooses operations: what they are named, and what they say.
// `--since` is inclusive, `--until` exclusive. Throws a usage Failure.
constexpr Options::Spec FILTER_SPECS[] = {
    {"--session"_kj, true}, {"--turn"_kj, true},  {"--kind"_kj, true},  {"--terminal"_kj, true},
    {"--since"_kj, true},   {"--until"_kj, true}, {"--limit"_kj, true}, {"--ledger"_kj, true}};
ledger::Filter filterOf(const Options& options, uint64_t limit, uint64_t most);

// Milliseconds since 1970: of "2026-11-30", "2026-11-30 15:40" or "2026-11-30T15:40:11" in our own
// zone, in UTC with a Z at its end; or a number of them. Nothing when it is none of these.
kj::Maybe<int64_t> momentOf(kj::StringPtr text);

// A line each, the one claimed last first. Not ok when one of them is damaged.
Report listOperations(OpenedLedger& ledger, ledger::Filter filter);

}  // namespace praefectus::cli
