// A receipt for a person, and for a program.
#pragma once

#include "attest/signed.h"
#include "supervisor/cli/report.h"

namespace praefectus::cli {

Json receiptJson(const attest::Receipt& receipt);
// Aligned lines, without the hashes that only a machine compares.
kj::String receiptText(const attest::Receipt& receipt);
// "succeeded, verified by value_readback"
kj::String receiptSentence(const attest::Receipt& receipt);
// "2026-11-30 15:40:11.123 UTC"
kj::String timeText(int64_t unixMs);

}  // namespace praefectus::cli
