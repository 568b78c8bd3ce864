#include "tests/bench/parts.h"
#include "tests/bench/storage-meter.h"
#include "tests/bench/terms.h"

#include "ipc/bounds.h"

namespace praefectus::bench {
namespace {

constexpr int ROUNDS = 2000;
constexpr int WARM_UP = 50;

struct Terms {
  Samples flush, rpc, verify, sign, exchange;

  double wake() const { return exchange.median() / 2; }
  double floor() const {
    return 2 * flush.median() + 2 * rpc.median() + verify.median() + sign.median() + 4 * wake();
  }
};

// One of each in turn, so that all meet the same caches and the same noise.
class Interleaved {
 public:
  Interleaved(Stand& stand, const Places& places)
      : stand(stand),
        guest(stand, "session-1", 1),
        overwriting(kj::str(places.scratch, "/overwritten")),
        receipt(guest.carryOut(guest.writesClipboard())->receipt.clone()),
        grant(guest.writesClipboard().grant) {}

  void round() {
    guest.renew();
    auto writing = guest.writesClipboard();
    measure(onDesktop, writing);
    guest.observe();  // Whatever was done spends the frame.
    auto setting = guest.setsValue();
    measure(onElement, setting);
    terms.flush.add(timeOf([this]() { overwriting.once(); }));
    terms.rpc.add(timeOf(
        [this]() { KJ_ASSERT(guest.helper().status(bounds::READ).wait(stand.wait()).ok()); }));
    terms.verify.add(timeOf([this]() {
      KJ_ASSERT(attest::verify(stand.issuerKey().publicKey(), attest::GRANT_LABEL, grant.body,
                               grant.signature));
    }));
    terms.sign.add(
        timeOf([this]() { stand.issuerKey().sign(attest::RECEIPT_LABEL, receipt.body); }));
    terms.exchange.add(timeOf([this]() { other.exchange().wait(stand.wait()); }));
  }

  void restart() {
    terms = Terms();
    onDesktop = onElement = Samples();
  }

  Terms terms;
  Samples onDesktop, onElement;

 private:
  void measure(Samples& samples, Submission& submission) {
    kj::Own<Answer> answer;
    samples.add(timeOf([&]() { answer = guest.submit(kj::mv(submission)).wait(stand.wait()); }));
    guest.take(*answer);
  }

  Stand& stand;
  Guest guest;
  Overwriting overwriting;
  OtherThread other;
  attest::Envelope receipt, grant;
};

}  // namespace

void measureOperation(Stand& stand, const Places& places, Report& report) {
  Interleaved measuring(stand, places);
  for (int i = 0; i < WARM_UP; ++i) measuring.round();
  measuring.restart();
  for (int i = 0; i < ROUNDS; ++i) measuring.round();

  auto& terms = measuring.terms;
  report.note("F, overwrite and flush 4 KiB", terms.flush);
  report.note("R, exchange with the helper", terms.rpc);
  report.note("V, check of a grant's signature", terms.verify);
  report.note("S, signature of a receipt", terms.sign);
  report.note("W, wake of a thread", terms.wake(), "us");
  report.note("2F + 2R + V + S + 4W", terms.floor(), "us");
  report.note("operation on the desktop", measuring.onDesktop);
  report.note("operation on an element, with its fresh observation", measuring.onElement);
  report.gate({"operation on the desktop / (2F + 2R + V + S + 4W)",
               measuring.onDesktop.median() / terms.floor(), 1.3, "times"});
  report.gate({"operation on an element, fresh observation included / (2F + 2R + V + S + 4W)",
               measuring.onElement.median() / terms.floor(), 1.3, "times"});
}

void measureStorage(Stand& stand, Report& report) {
  constexpr int OPERATIONS = 10'000, CHUNK = 500;
  Guest guest(stand, "session-1", 1);
  for (int i = 0; i < WARM_UP; ++i) guest.carryOut(guest.writesClipboard());

  auto before = asked();
  for (int i = 0; i < OPERATIONS; ++i) {
    if (i % CHUNK == 0) guest.renew();
    guest.carryOut(guest.writesClipboard());
  }
  auto after = asked();
  auto perOperation = [&](uint64_t from, uint64_t to) {
    return static_cast<double>(to - from) / OPERATIONS;
  };
  report.gate({"device flushes of an operation, checkpoints included",
               perOperation(before.flushes, after.flushes), 2.05, "flushes"});
  report.gate({"system calls on the ledger's files, of an operation",
               perOperation(before.calls, after.calls), 24, "calls"});
}

}  // namespace praefectus::bench
