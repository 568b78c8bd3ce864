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

}  // namespace praefectus::cli
