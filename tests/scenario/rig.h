// A private desktop, the probe on it, and a real host: client library, supervisor, launcher,
// helper.
#pragma once

#include "supervisor/cli/private-desktop.h"
#include "supervisor/client/client.h"
#include "tests/support/run.h"

#include <gtest/gtest.h>

#include <functional>

namespace praefectus::tests {

// What stands in the probe's window, when a test cares.
struct Words {
  std::string title = "Praefectus Probe", label = "Check";
};

class Rig {
 public:
  explicit Rig(std::string mode = "plain", Words words = {});
  ~Rig();

  client::Options options();
  // (Re)starts the supervisor on this rig's ledger.
  void start();
  void stop();
  kj::Own<client::Session> openSession(kj::StringPtr id, kj::StringPtr turn = "turn-1");

  // Waits until the window of `pid` is listed with its tree.
  WindowRef windowOf(pid_t pid);
  Observation look() { return look(*session); }
  Observation look(client::Session& with);

  void settle();

  // Sends, and returns when the stage is reached; the answer is still to come.
  kj::Promise<Result<client::Outcome>> sendUntil(const client::Request& request, wire::Stage stage);

  template <typename T>
  T wait(kj::Promise<T> promise) {
    return promise.wait(io.waitScope);
  }
  // The value, or a failed test that names the refusal.
  template <typename T>
  T need(kj::Promise<Result<T>> promise) {
    auto result = promise.wait(io.waitScope);
    if (!result.ok()) {
      ADD_FAILURE() << "refused: " << nameOf(result.refusal().code).cStr() << ": "
                    << result.refusal().detail.cStr();
      throw std::runtime_error("refused");
    }
    return kj::mv(*result);
  }
  // The refusal's name, or what was answered instead.
  std::string refusalOf(kj::Promise<Result<client::Outcome>> answer);

  // What the probe wrote down: lines that begin with `word`.
  std::vector<std::string> recorded(const std::string& word = "");
  // Waits until the probe has written `count` such lines.
  bool waitForRecord(const std::string& word, size_t count);
  void change();  // SIGUSR1, and wait until the probe did what its mode says.

  // The text entry, the Record button, the check box and so on of the probe.
  static const Element& entry(const Observation& seen);
  static const Element& named(const Observation& seen, kj::StringPtr role, kj::StringPtr name);

  Folder folder;
  PrivateDesktop desktop;
  kj::AsyncIoContext io;
  client::Authority authority;
  std::string ledger;
  kj::Own<client::Host> host;
  kj::Own<client::Session> session;
  pid_t probe = 0;
  std::string recordPath;
  WindowRef window;
};

// Looks until it holds, for 20 s at most.
bool eventually(const std::function<bool()>& holds);

}  // namespace praefectus::tests
