// Measures what an observation costs beside what others need for the same tree, and holds it to its
// gates. JSON on standard output, progress on standard error; exit 1 when a gate fails.
#include "attest/digest.h"
#include "tests/bench/covered-window.h"
#include "tests/bench/measure.h"
#include "tests/bench/system-calls.h"
#include "tests/bench/walks.h"
#include "tests/helper-linux/applications.h"
#include "tests/helper-linux/call-counter.h"

#include <kj/debug.h>
#include <kj/main.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include <signal.h>

namespace praefectus::bench {
namespace {

using tests::CallCounter;
using tests::HelperClient;
using tests::Recipe;
using tests::Running;

constexpr kj::StringPtr PARTS[] = {"mousepad"_kj, "gtk4-demo"_kj, "featherpad"_kj, "chromium"_kj,
                                   "calc"_kj,     "change"_kj,    "capture"_kj,    "idle"_kj};

// What one application is compared with, as a part of each; 0 for not at all.
struct Comparison {
  const Recipe* recipe;
  double items = 0;     // G: its own Cache.GetItems.
  double cached = 0;    // L: libatspi, cache on.
  double uncached = 0;  // U: libatspi, cache off.
  double single = 0;    // O: one D-Bus call at a time.
  // Whether the helper keeps a copy of its windows (helper-linux/accessibility/mirror.h). The
  // others are read in full each time, and it is said what that costs.
  bool kept = false;
  unsigned rounds = 15;
};
const Comparison COMPARISONS[] = {
    {.recipe = &tests::MOUSEPAD, .items = 4, .cached = 1. / 4, .uncached = 1. / 20, .kept = true},
    {.recipe = &tests::GTK4_DEMO, .cached = 1. / 2, .uncached = 1. / 10},
    {.recipe = &tests::FEATHERPAD, .cached = 1. / 4},
    {.recipe = &tests::CHROMIUM, .cached = 1. / 8, .rounds = 7},
    {.recipe = &tests::CALC, .single = 1. / 6, .rounds = 7},
};
constexpr double UNCHANGED = 0.25, UNCHANGED_CALLS = 10, CHANGED = 0.35;

// One kind of reading, over all rounds.
struct Series {
  Samples times;
  std::set<size_t> elements;
  size_t cut = 0;
  void add(const Reading& reading) {
    times.add(reading.time);
    elements.insert(reading.elements);
    if (reading.cut) ++cut;
  }
};

Reading observe(HelperClient& helper, const WindowRef& window) {
  Reading out;
  kj::Maybe<tests::Observed> seen;
  out.time = timeOf([&]() {
    auto answer = helper.observe(window, tests::everything());
    if (answer.ok()) seen = kj::mv(*answer);
  });
  auto& observed = KJ_REQUIRE_NONNULL(seen, "the window was not observed").seen;
  auto& cuts = observed.cuts;
  out.cut = cuts.elements || cuts.depth || cuts.time;
  out.elements = observed.elements.size();
  return out;
}

// A helper that has said hello and listed the desktop, as a session's is before it observes.
class FreshHelper {
 public:
  explicit FreshHelper(const PrivateDesktop& desktop) : client(desktop.environment()) {
    client.hello();
    KJ_REQUIRE(client.list().ok());
  }
  HelperClient client;
};

Running start(PrivateDesktop& desktop, const Recipe& recipe) {
  HelperClient helper(desktop.environment());
  helper.hello();
  return tests::open(desktop, helper, recipe);
}

void note(Report& report, const std::string& name, const Series& series) {
  if (series.elements.empty()) return;
  report.note(name, series.times);
  report.note(name + ", elements at least", static_cast<double>(*series.elements.begin()), "");
  report.note(name + ", elements at most", static_cast<double>(*series.elements.rbegin()), "");
}

class ObservationPart {
 public:
  ObservationPart(PrivateDesktop& desktop, Report& report, const Comparison& comparison)
      : desktop(desktop), report(report), comparison(comparison), others(desktop.environment()) {}

  void run() {
    name = comparison.recipe->name.cStr();
    auto running = start(desktop, *comparison.recipe);
    window = running.window;
    auto process = static_cast<pid_t>(window.process.pid);
    application = others.applicationOf(process);
    root = others.windowOf(application, comparison.recipe->title);
    others.listen(application);
    for (unsigned round = 0; round < comparison.rounds; ++round) takeRound(round, process);
    countCalls();
    desktop.end(running.leader);
    judge();
  }

 private:
  void takeRound(unsigned round, pid_t process) {
    auto title = comparison.recipe->title;
    auto surroundings = desktop.environment();
    items.add(others.items(application));
    {
      FreshHelper helper(desktop);
      full.add(observe(helper.client, window));
      unchanged.add(observe(helper.client, window));
    }
    if (comparison.cached > 0) cached.add(walkByLibatspi(surroundings, process, title, true));
    // It takes seconds.
    if (comparison.uncached > 0 && round % 3 == 0)
      uncached.add(walkByLibatspi(surroundings, process, title, false));
    if (comparison.single > 0) single.add(others.walk(root));
  }

  // Apart, since whoever watches the bus slows it.
  void countCalls() {
    FreshHelper helper(desktop);
    CallCounter counter(desktop.environment());
    auto process = helper.client.pid();
    counter.callsOf(process);
    observe(helper.client, window);
    fullCalls = tests::sumOf(counter.callsOf(process));
    observe(helper.client, window);
    unchangedCalls = tests::sumOf(counter.callsOf(process));
  }

  void judge() {
    note(report, name + ", full observation", full);
    note(report, name + ", unchanged observation", unchanged);
    note(report, name + ", its own items (G)", items);
    note(report, name + ", libatspi with its cache (L)", cached);
    note(report, name + ", libatspi without (U)", uncached);
    note(report, name + ", one call at a time (O)", single);
    report.note(name + ", D-Bus calls of a full observation", fullCalls, "");
    report.gate({name + ", observations that were cut",
                 static_cast<double>(full.cut + unchanged.cut), 0, ""});
    gate("full / G", items, comparison.items);
    gate("full / L", cached, comparison.cached);
    gate("full / U", uncached, comparison.uncached);
    gate("full / O", single, comparison.single);
    auto again = name + ", D-Bus calls of an unchanged observation";
    if (!comparison.kept) {
      report.note(again, unchangedCalls, "");
      return;
    }
    report.gate({name + ", unchanged / full", unchanged.times.median() / full.times.median(),
                 UNCHANGED, ""});
    report.gate({again, unchangedCalls + 0., UNCHANGED_CALLS, ""});
  }

  void gate(const char* what, const Series& against, double limit) {
    if (limit == 0) return;
    report.gate({name + ", " + what, full.times.median() / against.times.median(), limit, ""});
  }

  PrivateDesktop& desktop;
  Report& report;
  const Comparison& comparison;
  OneAtATime others;
  std::string name;
  WindowRef window;
  Place application, root;
  Series items, full, unchanged, cached, uncached, single;
  unsigned fullCalls = 0, unchangedCalls = 0;
};

// A GTK 3 window of ours about as large as an editor's, one label of which has another text when it
// is told to.
class ChangePart {
 public:
  ChangePart(PrivateDesktop& desktop, Report& report)
      : desktop(desktop), report(report), record(kj::str(desktop.folder(), "/labels.record")) {}

  void run() {
    constexpr unsigned ROUNDS = 31;
    kj::StringPtr arguments[] = {PRAEFECTUS_BIN "/praefectus-changing"_kj, "--record"_kj, record,
                                 "--labels"_kj, "300"_kj};
    Recipe recipe{.name = "labels"_kj, .arguments = arguments};
    auto running = start(desktop, recipe);
    for (unsigned round = 0; round < ROUNDS; ++round) takeRound(running);
    note(report, "300 labels, full observation", full);
    note(report, "300 labels, one of them changed", changed);
    report.gate(
        {"one label changed / full", changed.times.median() / full.times.median(), CHANGED, ""});
    desktop.end(running.leader);
  }

 private:
  void takeRound(const Running& running) {
    FreshHelper helper(desktop);
    full.add(observe(helper.client, running.window));
    size_t before = lines();
    KJ_SYSCALL(kill(running.leader, SIGUSR1));
    while (lines() == before) continue;
    auto text =
        before % 2 == 0 ? "Before"_kj : "After"_kj;  // The first line says that it is ready.
    changed.add(observe(helper.client, running.window));
    auto seen = helper.client.observe(running.window);
    KJ_REQUIRE(seen.ok() && seen->has("label", text), "the change was not seen");
  }

  size_t lines() const {
    size_t count = 0;
    std::ifstream file(record.cStr());
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }

  PrivateDesktop& desktop;
  Report& report;
  kj::String record;
  Series full, changed;
};

void measureObservation(const Comparison& comparison, Report& report) {
  PrivateDesktop desktop;
  ObservationPart(desktop, report, comparison).run();
}

void measureChange(Report& report) {
  PrivateDesktop desktop;
  ChangePart(desktop, report).run();
}

void measureCapture(Report& report) {
  constexpr unsigned ROUNDS = 200;
  CoveredWindow window(1280, 800);
  Samples ours, floor;
  for (unsigned round = 0; round < ROUNDS; ++round) {
    floor.add(timeOf([&]() { window.byPlainCapture(); }));
    ours.add(timeOf([&]() { window.byCamera(); }));
  }
  report.note("capture of a covered window with its hash", ours);
  report.note("XShmGetImage and BLAKE2b", floor);
  report.gate({"capture / (XShmGetImage + BLAKE2b)", ours.median() / floor.median(), 1.3, ""});
}

void measureIdle(Report& report) {
  constexpr unsigned SECONDS = 10;
  PrivateDesktop desktop;
  kj::StringPtr arguments[] = {PRAEFECTUS_BIN "/praefectus-probe"_kj, "--no-focus"_kj};
  auto running = start(desktop, Recipe{.name = "probe"_kj, .arguments = arguments});
  FreshHelper helper(desktop);
  observe(helper.client, running.window);
  auto calls = systemCallsOf(helper.client.pid(), SECONDS, desktop.folder());
  for (auto& call : calls) tell("  " + call);
  report.gate(
      {"system calls in 10 s while nothing changes", static_cast<double>(calls.size()), 0, ""});
}

class Main {
 public:
  explicit Main(kj::ProcessContext& context) : context(context) {}

  kj::MainFunc get() {
    return kj::MainBuilder(context, "desktop-bench",
                           "Measures an observation of real applications beside other readers.")
        .expectZeroOrMoreArgs("<part>", KJ_BIND_METHOD(*this, addPart))
        .callAfterParsing(KJ_BIND_METHOD(*this, run))
        .build();
  }

 private:
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
    Report report;
    for (auto& comparison : COMPARISONS) {
      measure(comparison.recipe->name, [&]() { measureObservation(comparison, report); });
    }
    measure("change", [&]() { measureChange(report); });
    measure("capture", [&]() { measureCapture(report); });
    measure("idle", [&]() { measureIdle(report); });
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
  std::set<kj::StringPtr> parts;
};

}  // namespace
}  // namespace praefectus::bench

int main(int argc, char* argv[]) {
  kj::TopLevelProcessContext context(argv[0]);
  praefectus::bench::Main mainObject(context);
  return kj::runMainAndExit(context, mainObject.get(), argc, argv);
}
