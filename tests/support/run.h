// Runs a program to its end and keeps what it said.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace praefectus::tests {

struct Ran {
  int exit = -1;  // Exit code; 128 + signal when it was killed.
  std::string out, err;
};

// `environment` is the whole of it; ours when empty. `output`, when given, is opened in place of
// standard output. Killed after two minutes.
Ran run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
        const std::string& output = "");

// A folder of the test's own, 0700, removed with all that is in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  const std::string& path() const { return name; }
  std::string file(const std::string& leaf) const { return name + "/" + leaf; }

 private:
  std::string name;
};

std::string contents(const std::string& path);
std::vector<std::string> linesOf(const std::string& text);
bool isAlive(pid_t pid);

}  // namespace praefectus::tests
