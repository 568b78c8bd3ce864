#include "supervisor/client/client.h"

#include <kj/async-io.h>

#include <filesystem>
#include <iostream>

using namespace praefectus;

// A refusal says why in a fixed sentence. The refused call dispatched nothing, unless its code is
// OUTCOME_UNKNOWN: run this again, then, and it asks what became of the operation.
int refused(const Refusal& refusal) {
  std::cerr << "refused: " << refusal.detail.cStr() << "\n";
  return 3;
}

// OUTCOME_UNKNOWN as the end of an operation means: look at the window before asking for another.
int ended(const attest::Receipt& receipt) {
  std::cout << nameOf(receipt.terminal).cStr() << ", " << nameOf(receipt.effect).cStr() << "\n";
  return receipt.terminal == Terminal::SUCCEEDED ? 0 : 3;
}

// my-host KEY-FILE LEDGER-FOLDER OPERATION
// Sets the text of the first editable field of the topmost window that can be read: at most once
// for each OPERATION, however often it is run.
int main(int argc, char* argv[]) {
  if (argc != 4) return 2;
  attest::initialize();
  auto io = kj::setupAsyncIo();

  // The host's own identity, made once. A real host also asks a person.
  if (!std::filesystem::exists(argv[1])) attest::SigningKey::generate().save(argv[1]);
  auto key = attest::SigningKey::load(argv[1]);
  if (!key.ok()) return refused(key.refusal());
  client::Authority authority("my-agent", kj::mv(*key));

  // A ledger is made once too, and pins that key for good.
  client::Options options;
  options.ledger = argv[2];
  if (!std::filesystem::exists(argv[2])) {
    auto made = client::createLedger(options, authority);
    if (!made.ok()) return refused(made.refusal());
  }

  // A supervisor then serves this ledger, and the desktop that our environment names.
  auto host = client::Host::start(io, options, authority).wait(io.waitScope);
  if (!host.ok()) return refused(host.refusal());

  // A host that was interrupted asks before it acts. This start has already settled what the last
  // one left open.
  auto status = (*host)->status(argv[3]).wait(io.waitScope);
  if (!status.ok()) return refused(status.refusal());
  if (status->is<attest::Receipt>()) return ended(status->get<attest::Receipt>());

  // Reading: the windows, then one of them as a tree of elements.
  auto session = (*host)->open("session-1", "turn-1").wait(io.waitScope);
  if (!session.ok()) return refused(session.refusal());
  auto desktop = (*session)->list().wait(io.waitScope);
  if (!desktop.ok()) return refused(desktop.refusal());
  const Window* top = nullptr;
  for (auto& window : desktop->windows) {
    if (window.visible && window.accessible) top = &window;  // Bottom first, so the last one wins.
  }
  if (top == nullptr) {
    std::cerr << "no window to read\n";
    return 3;
  }
  auto seen = (*session)->observe(top->ref).wait(io.waitScope);
  if (!seen.ok()) return refused(seen.refusal());

  // Acting: on an element of that observation, and on nothing else.
  client::How how;
  how.operation = kj::StringPtr(argv[3]);
  for (auto& element : seen->elements) {
    if (!element.settable || element.secure || element.role != "text") continue;
    auto request = (*session)->setValue(*seen, element, "Hello from an agent.", kj::mv(how));
    auto outcome = (*session)->execute(request).wait(io.waitScope);
    return outcome.ok() ? ended(outcome->receipt) : refused(outcome.refusal());
  }
  std::cerr << "no field to write in\n";
  return 3;
}
