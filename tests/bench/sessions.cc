#include "tests/bench/parts.h"
#include "tests/bench/records.h"

#include <kj/vector.h>

namespace praefectus::bench {
namespace {

using Guests = kj::Vector<kj::Own<Guest>>;

Guests guestsOf(Stand& stand, size_t count) {
  Guests out;
  for (size_t i = 0; i < count; ++i) out.add(kj::heap<Guest>(stand, kj::str("session-", i), i + 1));
  return out;
}

// When everybody has left, a helper's end included.
void dismiss(Stand& stand, Guests& guests) {
  guests.clear();
  stand.supervisor().drained().wait(stand.wait());
}

// The processor time that was used so far, by whom.
struct Spent {
  double loop = 0, ledger = 0, helpers = 0;
};

Spent spentSoFar(kj::ArrayPtr<kj::Own<Guest>> guests) {
  Spent out;
  out.loop = processorTime();
  out.ledger = processorTimeOfAll() - out.loop;
  for (auto& guest : guests) {
    out.helpers += processorTimeOf(static_cast<pid_t>(guest->helper().pid()));
  }
  return out;
}

using Batch = kj::Vector<Submission>;

// One after the other, each when the one before has its receipt.
kj::Promise<void> work(Guest& guest, Batch& batch) {
  if (batch.empty()) return kj::READY_NOW;
  auto next = kj::mv(batch.back());
  batch.removeLast();
  return guest.submit(kj::mv(next)).then([&guest, &batch](kj::Own<Answer> answer) {
    guest.take(*answer);
    return work(guest, batch);
  });
}

// Operations a second of so many sessions, each with its own helper and window, all with their
// fresh observations. Signing is the host's and done before.
double rateOf(Stand& stand, kj::ArrayPtr<kj::Own<Guest>> guests, size_t each,
              Spent* spent = nullptr) {
  kj::Vector<Batch> batches;
  for (auto& guest : guests) {
    guest->renew();
    auto& batch = batches.add();
    for (size_t i = 0; i < each; ++i) batch.add(guest->focuses());
  }
  auto before = spentSoFar(guests);
  auto time = timeOf([&]() {
    auto all = kj::heapArrayBuilder<kj::Promise<void>>(guests.size());
    for (size_t i = 0; i < guests.size(); ++i) all.add(work(*guests[i], batches[i]));
    kj::joinPromises(all.finish()).wait(stand.wait());
  });
  auto operations = static_cast<double>(each * guests.size());
  if (spent != nullptr) {
    auto after = spentSoFar(guests);
    spent->loop += (after.loop - before.loop) / operations;
    spent->ledger += (after.ledger - before.ledger) / operations;
    spent->helpers += (after.helpers - before.helpers) / operations;
  }
  return operations / time * 1e6;
}

// Claims and settles in the ledger alone, one after the other.
kj::Promise<void> record(ledger::Ledger& ledger, size_t left) {
  if (left == 0) return kj::READY_NOW;
  auto id = newOperation();
  auto claim = claimOf(id);
  return ledger.claim(kj::mv(claim))
      .then([&ledger, id = kj::mv(id)](Result<Done> claimed) mutable {
        KJ_ASSERT(claimed.ok());
        return ledger.settle(kj::mv(id), success());
      })
      .then([&ledger, left](Result<attest::Envelope> receipt) {
        KJ_ASSERT(receipt.ok());
        return record(ledger, left - 1);
      });
}

double ledgerRateOf(Stand& stand, size_t sessions, size_t each) {
  auto time = timeOf([&]() {
    auto all = kj::heapArrayBuilder<kj::Promise<void>>(sessions);
    for (size_t i = 0; i < sessions; ++i) all.add(record(stand.ledger(), each));
    kj::joinPromises(all.finish()).wait(stand.wait());
  });
  return static_cast<double>(each * sessions) / time * 1e6;
}

// Fulfills when the claim is durable: from then on its helper keeps it.
class AtClaim final : public Listener {
 public:
  explicit AtClaim(kj::Own<kj::PromiseFulfiller<void>> there) : there(kj::mv(there)) {}
  void reached(wire::Stage stage) override {
    if (stage == wire::Stage::CLAIMED) there->fulfill();
  }

 private:
  kj::Own<kj::PromiseFulfiller<void>> there;
};

double rateBesideStalled(Stand& stand, kj::ArrayPtr<kj::Own<Guest>> guests, size_t each) {
  stand.helpers().name = "stalls"_kj;
  Guest stalled(stand, "stalled", 1000);
  stand.helpers().name = "answers"_kj;
  auto claimed = kj::newPromiseAndFulfiller<void>();
  auto stuck = stand.supervisor().execute(stalled.session(), stalled.focuses(),
                                          kj::heap<AtClaim>(kj::mv(claimed.fulfiller)));
  claimed.promise.wait(stand.wait());
  auto rate = rateOf(stand, guests, each);
  stalled.helper().kill();
  stuck.wait(stand.wait());
  return rate;
}

}  // namespace

void measureSessions(Stand& stand, Report& report) {
  constexpr int ROUNDS = 11;
  constexpr size_t OPERATIONS = 800;  // Of all sessions together, in one round of one number.
  auto guests = guestsOf(stand, 16);
  Samples rates[3], alone[3];
  Spent spent[3];  // Of an operation, summed over the rounds.
  constexpr size_t SESSIONS[] = {1, 8, 16};
  for (auto sessions : SESSIONS) rateOf(stand, guests.asPtr().slice(0, sessions), 20);
  for (int i = 0; i < ROUNDS; ++i) {
    for (size_t n = 0; n < 3; ++n) {
      auto some = guests.asPtr().slice(0, SESSIONS[n]);
      rates[n].add(rateOf(stand, some, OPERATIONS / SESSIONS[n], &spent[n]));
      alone[n].add(ledgerRateOf(stand, SESSIONS[n], OPERATIONS / SESSIONS[n]));
    }
  }
  dismiss(stand, guests);

  for (size_t n = 0; n < 3; ++n) {
    auto name = kj::str(SESSIONS[n], " session(s)");
    report.note(kj::str("rate of ", name).cStr(), rates[n].median(), "operations/s");
    auto note = [&](kj::StringPtr whose, double time) {
      report.note(kj::str("processor time of an operation, ", name, ", ", whose).cStr(),
                  time / ROUNDS, "us");
    };
    note("event loop", spent[n].loop);
    note("ledger", spent[n].ledger);
    note("helpers", spent[n].helpers);
    report.note(kj::str("rate of the ledger alone, ", name).cStr(), alone[n].median(),
                "operations/s");
  }
  report.note("the ledger alone, 8 sessions / 1 session", alone[1].median() / alone[0].median(),
              "times");
  report.note("the ledger alone, 16 sessions / 1 session", alone[2].median() / alone[0].median(),
              "times");
  report.gate(
      {"8 sessions / 1 session", rates[1].median() / rates[0].median(), 3.5, "times", true});
  report.gate({"16 sessions / 1 session", rates[2].median() / rates[0].median(), 6, "times", true});
}

void measureStall(Stand& stand, Report& report) {
  constexpr int ROUNDS = 15;
  constexpr size_t EACH = 100;
  auto guests = guestsOf(stand, 7);
  rateOf(stand, guests, EACH);
  Samples alone, beside;
  // Either one first, in turn.
  for (int i = 0; i < ROUNDS; ++i) {
    if (i % 2 == 0) alone.add(rateOf(stand, guests, EACH));
    beside.add(rateBesideStalled(stand, guests, EACH));
    if (i % 2 == 1) alone.add(rateOf(stand, guests, EACH));
  }
  dismiss(stand, guests);

  report.note("rate of 7 sessions", alone.median(), "operations/s");
  report.note("rate of 7 sessions beside a stalled one", beside.median(), "operations/s");
  report.gate(
      {"7 sessions, slowed by a stalled one", alone.median() / beside.median(), 1.3, "times"});
}

}  // namespace praefectus::bench
