// Numbers, what they are compared with, and the report they end up in.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace praefectus::bench {

// Of the steady clock, and the processor time of the calling thread. Microseconds, as every time
// here.
double now();
double processorTime();
// Of all threads of the process, and of another process.
double processorTimeOfAll();
double processorTimeOf(pid_t pid);

class Samples {
 public:
  void add(double sample) { all.push_back(sample); }
  size_t count() const { return all.size(); }
  // 0 is the least, 0.5 the median. Throws when there are none.
  double quantile(double part) const;
  double median() const { return quantile(0.5); }

 private:
  std::vector<double> all;
};

// How long the deed takes.
template <typename Deed>
double timeOf(Deed&& deed) {
  double begin = now();
  deed();
  return now() - begin;
}

struct Gate {
  std::string name;
  double measured = 0, limit = 0;
  std::string unit;
  bool atLeast = false;  // The limit is a floor and not a ceiling.
  bool passes() const { return atLeast ? measured >= limit : measured <= limit; }
};

class Report {
 public:
  // Both are told on standard error at once.
  void gate(Gate gate);
  void note(std::string name, double value, std::string unit);
  void note(const std::string& name, const Samples& samples);  // Median, least and 99th percentile.

  bool passes() const;
  std::string json() const;

 private:
  struct Note {
    std::string name;
    double value;
    std::string unit;
  };
  std::vector<Gate> gates;
  std::vector<Note> notes;
};

// What goes on, on standard error.
void tell(const std::string& line);

}  // namespace praefectus::bench
