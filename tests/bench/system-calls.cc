#include "tests/bench/system-calls.h"

#include <kj/debug.h>

#include <chrono>
#include <fstream>
#include <thread>

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace praefectus::bench {
namespace {

constexpr auto ATTACHING = std::chrono::seconds(5);

bool isTraced(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("TracerPid:", 0) == 0) return line != "TracerPid:\t0";
  }
  return false;
}

}  // namespace

std::vector<std::string> systemCallsOf(pid_t process, unsigned seconds, kj::StringPtr folder) {
  auto record = kj::str(folder, "/system-calls");
  auto pid = kj::str(process);
  const char* arguments[] = {"strace", "-f", "-qq", "-o", record.cStr(), "-p", pid.cStr(), nullptr};
  pid_t strace;
  KJ_REQUIRE(posix_spawnp(&strace, arguments[0], nullptr, nullptr,
                          const_cast<char* const*>(arguments), environ) == 0,
             "strace cannot be started");
  auto end = std::chrono::steady_clock::now() + ATTACHING;
  while (!isTraced(process)) {
    KJ_REQUIRE(std::chrono::steady_clock::now() < end, "strace did not attach");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // The time that is looked at, not a wait for something.
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  kill(strace, SIGINT);
  KJ_SYSCALL(waitpid(strace, nullptr, 0));

  std::vector<std::string> out;
  std::ifstream file(record.cStr());
  for (std::string line; std::getline(file, line);) {
    if (line.find("<detached ...>") == std::string::npos) out.push_back(line);
  }
  return out;
}

}  // namespace praefectus::bench
