// A private desktop with one application on it, and what that application wrote down.
#pragma once

#include "supervisor/cli/private-desktop.h"
#include "tests/helper-linux/helper-client.h"

#include <functional>
#include <string>
#include <vector>

namespace praefectus::tests {

// Looks until `holds` or until 15 s are over; whether it held.
bool eventually(const std::function<bool()>& holds);

// "" when nothing was refused.
std::string nameOf(const kj::Maybe<RefusalCode>& refusal);

class Desk {
 public:
  // Starts the probe in the given mode and waits until the helper sees it with its tree.
  explicit Desk(kj::StringPtr mode = "plain", PrivateDesktop::Options options = {});

  // Another application, by its command line; waits for a window that belongs to it.
  WindowRef open(kj::ArrayPtr<const kj::StringPtr> arguments);

  PrivateDesktop desktop;
  HelperClient helper;
  WindowRef probe;

  // Lines of the probe's record; those that begin with `word`.
  std::vector<std::string> record() const;
  std::vector<std::string> recorded(const std::string& word) const;
  // SIGUSR1 to the probe, and wait until it did what its mode says.
  void change();
  void stop();  // SIGSTOP, and wait until it is stopped.
  void resume();

  Observed observe();
  // The window of this process, when the helper lists exactly one.
  kj::Maybe<WindowRef> windowOf(uint32_t pid, bool accessible = true);

 private:
  kj::String recordPath;
};

}  // namespace praefectus::tests
