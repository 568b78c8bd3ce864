// Judging: from raw facts before and after to evidence, and from evidence to a terminal. Pure.
//
// Nothing here asks whether a call "returned OK". A helper reports what was there; this table alone
// decides what that proves.
#pragma once

#include "attest/signed.h"
#include "ipc/action.h"
#include "ipc/schema/helper.capnp.h"
#include "supervisor/ledger/ledger.h"

namespace praefectus {

struct Judgement {
  attest::Evidence evidence;
  Watch watch;
  bool declined = false;  // The control itself said that it did nothing. A warning, never evidence.
};

// What the facts prove about this mutation, by the proof that it asks for. `nonce` is the one the
// facts' hashes are keyed with.
Judgement judge(const Action& action, const Hash& nonce, wire::Facts::Reader facts);

// What came between dispatch and judgement.
enum class Interruption : uint8_t { NONE, CANCELLED_OR_LATE };

// What was asked and allowed, as far as the ending depends on it.
struct Terms {
  Proof proof{};
  Mode mode{};
  Rights rights;
};

// The only way from evidence to a terminal, and the table of it is in judge.cc. A change of the
// person's context that the rights allow in interactive mode is PERMITTED and leaves success as it
// is; in background mode none is.
ledger::Ending endingFor(const Terms& asked, const Judgement& judgement, Interruption interruption,
                         int64_t wallMs);

// The endings without facts.
ledger::Ending rejected(RefusalCode code, int64_t wallMs);  // Live target refused; nothing sent.
ledger::Ending notSent(RefusalCode code, int64_t wallMs);   // No byte of perform left us.
ledger::Ending cancelledBeforeEffect(int64_t wallMs);
ledger::Ending expiredBeforeEffect(int64_t wallMs);
ledger::Ending lost(Warning why, int64_t wallMs);  // Sent, or perhaps; nobody can know.

}  // namespace praefectus
