#include "tests/support/run.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace praefectus::tests {
namespace {

constexpr int MOST_MS = 120'000;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  }
  ~Pipe() {
    closeEnd(0);
    closeEnd(1);
  }
  void closeEnd(int end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
  int ends[2];
};

}  // namespace

Ran run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
        const std::string& output) {
  Pipe out, err;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  if (output.empty()) {
    posix_spawn_file_actions_adddup2(&files, out.ends[1], 1);
  } else {
    posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&files, err.ends[1], 2);
  auto argv = pointers(arguments);
  auto env = pointers(environment);
  pid_t pid;
  int failed = posix_spawnp(&pid, argv[0], &files, nullptr, argv.data(),
                            environment.empty() ? environ : env.data());
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::runtime_error("cannot run " + arguments[0]);
  out.closeEnd(1);
  err.closeEnd(1);

  Ran ran;
  pollfd watched[2] = {{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}};
  std::string* texts[2] = {&ran.out, &ran.err};
  int open = 2;
  while (open > 0) {
    int ready = poll(watched, 2, MOST_MS);
    if (ready == 0) kill(pid, SIGKILL);
    if (ready <= 0) break;
    for (int i = 0; i < 2; ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      char piece[4096];
      ssize_t size = read(watched[i].fd, piece, sizeof(piece));
      if (size > 0) {
        texts[i]->append(piece, static_cast<size_t>(size));
      } else {
        watched[i].fd = -1;
        --open;
      }
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ran.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

Folder::Folder() {
  char pattern[] = "/tmp/praefectus-test-XXXXXX";
  if (mkdtemp(pattern) == nullptr) throw std::runtime_error("mkdtemp");
  name = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(name, ignored);
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

bool isAlive(pid_t pid) {
  // A zombie has ended; only its parent has not looked yet.
  auto stat = contents("/proc/" + std::to_string(pid) + "/stat");
  auto after = stat.rfind(')');
  return after != std::string::npos && stat.size() > after + 2 && stat[after + 2] != 'Z';
}

}  // namespace praefectus::tests
