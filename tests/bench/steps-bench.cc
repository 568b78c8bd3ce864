// Single steps of an operation, by Google Benchmark.
#include "ipc/action.h"
#include "supervisor/ledger/chain.h"
#include "tests/attest/samples.h"

#include <benchmark/benchmark.h>

namespace praefectus::bench {
namespace {

using attest::Envelope;

Envelope grant() { return attest::seal(attest::sampleGrant(), attest::issuerKey()); }
Envelope receipt() { return attest::seal(attest::sampleReceipt(), attest::receiptKey()); }

void verifyAGrant(benchmark::State& state) {
  auto envelope = grant();
  auto key = attest::issuerKey().publicKey();
  for (auto _ : state) {
    bool holds = attest::verify(key, attest::GRANT_LABEL, envelope.body, envelope.signature);
    benchmark::DoNotOptimize(holds);
  }
}
BENCHMARK(verifyAGrant);

// With its form and its bounds.
void openAGrant(benchmark::State& state) {
  auto envelope = grant();
  auto ring = attest::sampleRing();
  for (auto _ : state) {
    auto opened = attest::openGrant(ring, envelope);
    benchmark::DoNotOptimize(opened);
  }
}
BENCHMARK(openAGrant);

void signAReceipt(benchmark::State& state) {
  auto envelope = receipt();
  auto key = attest::receiptKey();
  for (auto _ : state) {
    auto signature = key.sign(attest::RECEIPT_LABEL, envelope.body);
    benchmark::DoNotOptimize(signature);
  }
}
BENCHMARK(signAReceipt);

// With its canonical bytes.
void sealAReceipt(benchmark::State& state) {
  auto value = attest::sampleReceipt();
  auto key = attest::receiptKey();
  for (auto _ : state) {
    auto envelope = attest::seal(value, key);
    benchmark::DoNotOptimize(envelope);
  }
}
BENCHMARK(sealAReceipt);

void hash(benchmark::State& state) {
  auto bytes = kj::heapArray<kj::byte>(static_cast<size_t>(state.range(0)));
  memset(bytes.begin(), 0x5a, bytes.size());
  for (auto _ : state) {
    auto digest = attest::digestOf(bytes);
    benchmark::DoNotOptimize(digest);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(hash)->Arg(256)->Arg(4096)->Arg(5 << 20);

void decodeAnAction(benchmark::State& state) {
  Action action;
  action.blind = attest::random<32>();
  action.timeoutMs = 15'000;
  action.target = ElementTarget{{{4242, 987'654}, 1}, attest::random<16>(), 1, 2, Hash{}};
  action.act = SetValueRequest{kj::str("thirty characters of some text")};
  auto bytes = encode(action);
  for (auto _ : state) {
    auto decoded = decodeAction(bytes);
    benchmark::DoNotOptimize(decoded);
  }
}
BENCHMARK(decodeAnAction);

void chainAnEnding(benchmark::State& state) {
  auto envelope = receipt();
  attest::Head head;
  for (auto _ : state) {
    head = attest::extend(head, attest::Step::ENDING, "op-0123456789ab-0123456789abcdef0123",
                          attest::digestOf(envelope.body));
    benchmark::DoNotOptimize(head);
  }
}
BENCHMARK(chainAnEnding);

}  // namespace
}  // namespace praefectus::bench

int main(int argc, char** argv) {
  praefectus::attest::initialize();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
