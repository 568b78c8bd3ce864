#include "tests/bench/measure.h"

#include <kj/debug.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <thread>

#include <sys/utsname.h>

namespace praefectus::bench {
namespace {

double microseconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

std::string loadAverage() {
  std::ifstream file("/proc/loadavg");
  std::string one, five, fifteen;
  file >> one >> five >> fifteen;
  return one + " " + five + " " + fifteen;
}

std::string kernel() {
  utsname names;
  uname(&names);
  return std::string(names.sysname) + " " + names.release + " " + names.machine;
}

}  // namespace

double now() { return microseconds(CLOCK_MONOTONIC); }
double processorTime() { return microseconds(CLOCK_THREAD_CPUTIME_ID); }
double processorTimeOfAll() { return microseconds(CLOCK_PROCESS_CPUTIME_ID); }

double processorTimeOf(pid_t pid) {
  clockid_t clock;
  KJ_REQUIRE(clock_getcpuclockid(pid, &clock) == 0);
  return microseconds(clock);
}

double Samples::quantile(double part) const {
  KJ_REQUIRE(!all.empty(), "nothing was measured");
  auto sorted = all;
  auto place = static_cast<ptrdiff_t>(part * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + place, sorted.end());
  return sorted[static_cast<size_t>(place)];
}

void Report::gate(Gate gate) {
  char line[256];
  snprintf(line, sizeof(line), "  %-4s %-58s %10.3f %s %.3f %s", gate.passes() ? "pass" : "FAIL",
           gate.name.c_str(), gate.measured, gate.atLeast ? ">=" : "<=", gate.limit,
           gate.unit.c_str());
  tell(line);
  gates.push_back(std::move(gate));
}

void Report::note(std::string name, double value, std::string unit) {
  char line[256];
  snprintf(line, sizeof(line), "       %-58s %10.3f %s", name.c_str(), value, unit.c_str());
  tell(line);
  notes.push_back({std::move(name), value, std::move(unit)});
}

void Report::note(const std::string& name, const Samples& samples) {
  note(name, samples.median(), "us");
  note(name + ", least", samples.quantile(0), "us");
  note(name + ", 99th percentile", samples.quantile(0.99), "us");
}

bool Report::passes() const {
  return std::all_of(gates.begin(), gates.end(), [](const Gate& gate) { return gate.passes(); });
}

std::string Report::json() const {
  auto out = nlohmann::ordered_json::object();
  out["machine"] = {{"kernel", kernel()},
                    {"processors", std::thread::hardware_concurrency()},
                    {"load", loadAverage()}};
  out["gates"] = nlohmann::ordered_json::array();
  for (auto& each : gates) {
    out["gates"].push_back({{"name", each.name},
                            {"measured", rounded(each.measured)},
                            {each.atLeast ? "at_least" : "at_most", rounded(each.limit)},
                            {"unit", each.unit},
                            {"passes", each.passes()}});
  }
  out["measured"] = nlohmann::ordered_json::array();
  for (auto& each : notes) {
    out["measured"].push_back(
        {{"name", each.name}, {"value", rounded(each.value)}, {"unit", each.unit}});
  }
  out["passes"] = passes();
  return out.dump(2);
}

void tell(const std::string& line) { fprintf(stderr, "%s\n", line.c_str()); }

}  // namespace praefectus::bench
