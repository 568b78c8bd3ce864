// A host that is killed the moment its operation has been claimed. Prints the pids of its
// supervisor and helper first.
//
//   dying-host LEDGER KEYFILE PID-OF-PROBE OPERATION
#include "supervisor/client/client.h"

#include <csignal>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

int main(int argc, char* argv[]) {
  using namespace praefectus;
  if (argc != 5) return 2;
  attest::initialize();
  auto io = kj::setupAsyncIo();
  client::Authority authority("test-host", kj::mv(*attest::SigningKey::load(argv[2])));
  client::Options options;
  options.ledger = argv[1];
  auto host = client::Host::start(io, options, authority).wait(io.waitScope);
  auto session = (*host)->open("session-1", "turn-1").wait(io.waitScope);
  auto desktop = (*session)->list().wait(io.waitScope);
  for (auto& window : desktop->windows) {
    if (window.ref.process.pid != static_cast<uint32_t>(atoi(argv[3]))) continue;
    auto seen = (*session)->observe(window.ref).wait(io.waitScope);
    auto& check = *client::find(*seen, "check box", "Check")[0];
    client::How how;
    how.operation = kj::StringPtr(argv[4]);
    auto request = (*session)->invoke(*seen, check, check.actions[0], how);
    auto helper = (*session)->capabilities().wait(io.waitScope);
    std::cout << (*host)->supervisorPid() << "\n" << helper->pid << "\n" << std::flush;
    auto answer =
        (*session)->execute(request, kj::Function<void(wire::Stage)>([](wire::Stage stage) {
                              if (stage == wire::Stage::CLAIMED) kill(getpid(), SIGKILL);
                            }));
    (void)answer.wait(io.waitScope);
  }
  return 1;
}
