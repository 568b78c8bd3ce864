// A real program that says what it was given: descriptors, environment, signals, arguments,
// session, limits. It writes one line for each to descriptor 3 and "end"; then it takes one byte at
// a time from there: 'x' exits with 7. When the socket closes it stays, so that only a kill can end
// it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char** environ;

namespace {

std::string report;

void say(const std::string& key, const std::string& value) { report += key + "=" + value + "\n"; }

std::string linkAt(const std::string& path) {
  char target[4096];
  ssize_t n = readlink(path.c_str(), target, sizeof(target));
  return n < 0 ? "?" : std::string(target, static_cast<size_t>(n));
}

void sayDescriptors() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) abort();
  std::vector<int> numbers;
  while (auto entry = readdir(folder)) {
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder)) {
      numbers.push_back(atoi(entry->d_name));
    }
  }
  closedir(folder);
  std::sort(numbers.begin(), numbers.end());
  for (int number : numbers) {
    auto target = linkAt("/proc/self/fd/" + std::to_string(number));
    say("fd", std::to_string(number) + " " + target.substr(0, target.find(':')));
  }
}

void sayStatus() {
  FILE* status = fopen("/proc/self/status", "re");
  if (status == nullptr) abort();
  char line[512];
  while (fgets(line, sizeof(line), status) != nullptr) {
    for (const char* wanted : {"SigBlk:\t", "SigIgn:\t", "SigCgt:\t", "NoNewPrivs:\t"}) {
      if (strncmp(line, wanted, strlen(wanted)) != 0) continue;
      std::string value(line + strlen(wanted));
      say(std::string(wanted).substr(0, strlen(wanted) - 2), value.substr(0, value.size() - 1));
    }
  }
  fclose(status);
}

void sayRest() {
  say("pid", std::to_string(getpid()));
  say("parent", std::to_string(getppid()));
  say("session", getsid(0) == getpid() ? "own" : "inherited");
  say("group", getpgid(0) == getpid() ? "own" : "inherited");
  say("cwd", linkAt("/proc/self/cwd"));
  rlimit core;
  getrlimit(RLIMIT_CORE, &core);
  say("core", std::to_string(core.rlim_cur) + " " + std::to_string(core.rlim_max));
  int signal = 0;
  prctl(PR_GET_PDEATHSIG, &signal);
  say("deathsig", std::to_string(signal));
  say("umask", std::to_string(umask(077)));
}

}  // namespace

int main(int argc, char* argv[]) {
  alarm(300);  // Should a test fail to end it.
  for (int i = 0; i < argc; ++i) say("arg", argv[i]);
  for (char** each = environ; *each != nullptr; ++each) say("env", *each);
  sayDescriptors();
  sayStatus();
  sayRest();
  report += "end\n";
  if (write(3, report.data(), report.size()) != static_cast<ssize_t>(report.size())) return 2;
  for (;;) {
    char command = 0;
    if (read(3, &command, 1) <= 0) break;
    if (command == 'x') return 7;
  }
  for (;;) pause();
}
