#include "supervisor/client/client.h"

#include <kj/async-io.h>

#include <iostream>

// Sets the text of the first editable field of the topmost window that can be read.
int main(int argc, char* argv[]) {
  using namespace praefectus;
  if (argc != 2) return 2;
  attest::initialize();
  auto io = kj::setupAsyncIo();

  // The host's own identity. A real host keeps its key (SigningKey::save, load) and asks a person.
  client::Authority authority("my-agent", attest::SigningKey::generate());

  // A new ledger pins that key for good; a supervisor then serves it, and this desktop.
  client::Options options;
  options.ledger = argv[1];
  if (!client::createLedger(options, authority).ok()) return 3;
  auto host = client::Host::start(io, options, authority).wait(io.waitScope);
  if (!host.ok()) return 3;
  auto session = (*host)->open("session-1", "turn-1").wait(io.waitScope);
  if (!session.ok()) return 3;

  // Reading: the windows, then one of them as a tree of elements.
  auto desktop = (*session)->list().wait(io.waitScope);
  if (!desktop.ok()) return 3;
  const Window* top = nullptr;
  for (auto& window : desktop->windows) {
    if (window.visible && window.accessible) top = &window;  // Bottom first, so the last one wins.
  }
  if (top == nullptr) return 3;
  auto seen = (*session)->observe(top->ref).wait(io.waitScope);
  if (!seen.ok()) return 3;

  // Acting: on an element of that observation, and on nothing else.
  for (auto& element : seen->elements) {
    if (!element.settable || element.secure || element.role != "text") continue;
    auto request = (*session)->setValue(*seen, element, "Hello from an agent.");
    auto outcome = (*session)->execute(request).wait(io.waitScope);
    if (!outcome.ok()) {
      std::cerr << "refused: " << outcome.refusal().detail.cStr() << "\n";
      return 3;
    }
    std::cout << nameOf(outcome->receipt.terminal).cStr() << ", "
              << nameOf(outcome->receipt.effect).cStr() << "\n";
    return outcome->receipt.terminal == Terminal::SUCCEEDED ? 0 : 3;
  }
  return 3;
}
