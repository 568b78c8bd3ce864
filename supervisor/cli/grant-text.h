// What a host asks for, or takes back, in words: for a person who is about to say yes, and for one
// who wants to know what was said yes to.
#pragma once

#include "attest/signed.h"
#include "supervisor/cli/page.h"
#include "supervisor/cli/report.h"

namespace praefectus::cli {

using Asked = kj::OneOf<attest::Grant, attest::Lease, attest::TaskGrant, attest::Revocation>;

// The heading, and what it allows. `nowMs` only says how its time stands to now.
void describe(const Asked& asked, int64_t nowMs, Page& page);
Json askedJson(const Asked& asked, int64_t nowMs);

// "only the focus", for receipts: the rights in words, empty when there is none.
kj::String rightsText(const Rights& rights);
Json rightsJson(const Rights& rights);

}  // namespace praefectus::cli
