// Measures what an operation costs beside what it cannot do without, and holds it to its gates.
// JSON on standard output, progress on standard error; exit 1 when a gate fails.
#include "tests/bench/parts.h"
#include "tests/bench/storage-meter.h"

#include <kj/main.h>

#include <cstdio>
#include <filesystem>
#include <set>

namespace praefectus::bench {
namespace {

constexpr kj::StringPtr PARTS[] = {"operation"_kj, "storage"_kj, "sessions"_kj, "stall"_kj,
                                   "growth"_kj,    "opening"_kj, "service"_kj};

class Main {
 public:
  explicit Main(kj::ProcessContext& context) : context(context) {}

  kj::MainFunc get() {
    return kj::MainBuilder(context, "ledger-bench",
                           "Measures an operation, from submission to receipt, beside its terms.")
        .addOptionWithArg({"place"}, KJ_BIND_METHOD(*this, setPlace), "<folder>",
                          "where the ledgers lie; its file system is the one that is measured")
        .expectZeroOrMoreArgs("<part>", KJ_BIND_METHOD(*this, addPart))
        .callAfterParsing(KJ_BIND_METHOD(*this, run))
        .build();
  }

 private:
  kj::MainBuilder::Validity setPlace(kj::StringPtr folder) {
    place = folder;
    return true;
  }

  kj::MainBuilder::Validity addPart(kj::StringPtr name) {
    for (auto part : PARTS) {
      if (part == name) {
        parts.insert(part);
        return true;
      }
    }
    return kj::str("parts are: ", kj::strArray(PARTS, ", "));
  }

  kj::MainBuilder::Validity run() {
    attest::initialize();
    startCounting();
    Places places{kj::str(place, "/scratch"), kj::str(place, "/kept")};
    std::filesystem::create_directories(places.kept.cStr());
    Report report;
    {
      Stand stand(places.scratch);
      measure("operation", [&]() { measureOperation(stand, places, report); });
      measure("storage", [&]() { measureStorage(stand, report); });
      measure("sessions", [&]() { measureSessions(stand, report); });
      measure("stall", [&]() { measureStall(stand, report); });
      measure("growth", [&]() { measureGrowth(stand.wait(), places, report); });
      measure("opening", [&]() { measureOpening(places, report); });
      measure("service", [&]() { measureService(stand.loop(), places, report); });
    }
    puts(report.json().c_str());
    fflush(stdout);  // KJ leaves without.
    if (!report.passes()) context.exitError("a gate has failed");
    return true;
  }

  template <typename Part>
  void measure(kj::StringPtr name, Part&& part) {
    if (!parts.empty() && parts.count(name) == 0) return;
    tell(name.cStr());
    part();
  }

  kj::ProcessContext& context;
  kj::StringPtr place = PRAEFECTUS_BENCH_PLACE;
  std::set<kj::StringPtr> parts;
};

}  // namespace
}  // namespace praefectus::bench

int main(int argc, char* argv[]) {
  kj::TopLevelProcessContext context(argv[0]);
  praefectus::bench::Main mainObject(context);
  return kj::runMainAndExit(context, mainObject.get(), argc, argv);
}
