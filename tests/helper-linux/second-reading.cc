#include "tests/helper-linux/second-reading.h"

#include <kj/debug.h>
#include <kj/io.h>
#include <kj/vector.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::tests {
namespace {

// A C program's list.
kj::Vector<char*> listOf(kj::ArrayPtr<const kj::StringPtr> texts) {
  kj::Vector<char*> out;
  for (auto& each : texts) out.add(const_cast<char*>(each.cStr()));
  out.add(nullptr);
  return out;
}

std::string outputOf(kj::ArrayPtr<const kj::StringPtr> arguments,
                     kj::ArrayPtr<const kj::StringPtr> environment) {
  int ends[2];
  KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
  kj::AutoCloseFd from(ends[0]), to(ends[1]);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, to, STDOUT_FILENO);
  pid_t child;
  int error = posix_spawn(&child, arguments[0].cStr(), &files, nullptr, listOf(arguments).begin(),
                          listOf(environment).begin());
  posix_spawn_file_actions_destroy(&files);
  to = nullptr;
  KJ_REQUIRE(error == 0, "cannot be started", arguments[0]);
  std::string out;
  char piece[4096];
  for (ssize_t n; (n = read(from, piece, sizeof(piece))) > 0;) {
    out.append(piece, static_cast<size_t>(n));
  }
  int status = 0;
  KJ_SYSCALL(waitpid(child, &status, 0));
  KJ_REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it failed", arguments[0]);
  return out;
}

}  // namespace

std::string secondReading(kj::ArrayPtr<const kj::String> environment, pid_t process,
                          kj::StringPtr title, kj::ArrayPtr<const kj::StringPtr> options) {
  auto pid = kj::str(process);
  kj::Vector<kj::StringPtr> arguments;
  for (kj::StringPtr each :
       {PRAEFECTUS_BIN "/praefectus-second-reader"_kj, kj::StringPtr(pid), "--title"_kj, title}) {
    arguments.add(each);
  }
  arguments.addAll(options);
  return outputOf(
      arguments, KJ_MAP(each, environment)->kj::StringPtr { return each; });
}

}  // namespace praefectus::tests
