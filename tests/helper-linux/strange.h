// A private desktop with the strange application on it (strange-app.cc), and what that wrote down.
#pragma once

#include "tests/helper-linux/desk.h"

#include <thread>

namespace praefectus::tests {

// One strange application. Its options are those of its command line, but --record.
class Strange {
 public:
  // Starts it and waits until it says that it is ready.
  Strange(PrivateDesktop& desktop, const std::vector<std::string>& options);

  pid_t pid() const { return process; }
  // Whether the process that was started is there and has not ended.
  bool isRunning() const;

  std::vector<std::string> record() const;
  std::vector<std::string> recorded(const std::string& word) const;
  // Paths of what was pressed, in order.
  std::vector<std::string> pressed() const { return recorded("pressed"); }

  // SIGUSR1, and wait until it did what its mode says.
  void change();
  // How often it was asked for anything since the last count.
  size_t countCalls();
  void stop();  // SIGSTOP, and wait until it is stopped.
  void resume();

  // Waits until `helper` lists its one window, and can read it when `accessible`.
  WindowRef window(HelperClient& helper, bool accessible = true) const;

 private:
  std::string recordPath;
  pid_t process;
};

struct StrangeDesk {
  explicit StrangeDesk(const std::vector<std::string>& options);

  Observed observe();
  // Prepares to press, and does when that is not refused; the refusal of either.
  std::string press(const Observed& from, uint32_t element);

  PrivateDesktop desktop;
  HelperClient helper;
  Strange app;
  WindowRef window;
};

// Runs it in a thread of its own, beside the test, where another helper may have its event loop;
// over when this is destroyed.
class Beside {
 public:
  explicit Beside(std::function<void()> run) : thread(std::move(run)) {}
  ~Beside() { wait(); }
  KJ_DISALLOW_COPY(Beside);

  void wait() {
    if (thread.joinable()) thread.join();
  }

 private:
  std::thread thread;
};

// All that an observation says of its elements, one line each, but for what differs from frame to
// frame.
std::vector<std::string> linesOf(const Observed& seen);

// Whether the process is stopped by a signal.
bool isStopped(pid_t pid);

}  // namespace praefectus::tests
