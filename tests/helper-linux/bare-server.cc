#include "tests/helper-linux/bare-server.h"

#include <kj/debug.h>
#include <kj/io.h>
#include <kj/vector.h>

#include <cstdlib>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::tests {
namespace {

constexpr int ANNOUNCEMENT = 3;

pid_t start(int pipe, kj::StringPtr without) {
  const char* arguments[] = {"Xvfb",       "-displayfd",   "3",    "-screen",  "0",
                             "640x400x24", "-nolisten",    "tcp",  "-noreset", "-ac",
                             "-extension", without.cStr(), nullptr};
  if (without.size() == 0) arguments[10] = nullptr;
  pid_t pid = fork();
  if (pid != 0) return pid;
  int parked = fcntl(pipe, F_DUPFD, 10);
  dup2(parked, ANNOUNCEMENT);
  close(parked);
  int nowhere = open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2}) dup2(nowhere, fd);
  execvp(arguments[0], const_cast<char**>(arguments));
  _exit(127);
}

}  // namespace

BareServer::BareServer(kj::StringPtr without) {
  int ends[2];
  KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
  kj::AutoCloseFd reading(ends[0]);
  {
    kj::AutoCloseFd writing(ends[1]);
    process = start(writing, without);
    KJ_REQUIRE(process > 0);
  }
  // It says its number when it takes connections, and then ends the line.
  kj::Vector<char> number;
  for (char c = 0; ::read(reading, &c, 1) == 1 && c != '\n';) number.add(c);
  KJ_REQUIRE(number.size() > 0, "Xvfb did not come up");
  name = kj::str(':', number);
}

BareServer::~BareServer() {
  kill(process, SIGTERM);
  waitpid(process, nullptr, 0);
}

}  // namespace praefectus::tests
