#include "tests/scenario/rig.h"

#include <chrono>
#include <csignal>
#include <thread>

namespace praefectus::tests {

bool eventually(const std::function<bool()>& holds) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    if (holds()) return true;
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return holds();
}

Rig::Rig(std::string mode, Words words)
    : io(kj::setupAsyncIo()),
      authority("test-host", (attest::initialize(), attest::SigningKey::generate())),
      ledger(folder.file("ledger")),
      recordPath(folder.file("record")) {
  kj::StringPtr command[] = {PRAEFECTUS_BIN "/praefectus-probe",
                             "--record",
                             recordPath.c_str(),
                             "--mode",
                             mode.c_str(),
                             "--title",
                             words.title.c_str(),
                             "--label",
                             words.label.c_str()};
  probe = desktop.run(kj::arrayPtr(command, kj::size(command))).pid;
  if (!client::createLedger(options(), authority).ok()) throw std::runtime_error("no ledger");
  start();
  window = windowOf(probe);
  settle();
}

// A toolkit goes on arranging a window after it is on screen; an element that changes meanwhile
// would rightly be refused. Two looks that show the same are enough.
void Rig::settle() {
  EXPECT_TRUE(waitForRecord("ready", 1));
  std::string before;
  EXPECT_TRUE(eventually([&] {
    auto now = session->observe(window).wait(io.waitScope);
    if (!now.ok()) return false;
    std::string after;
    for (auto& element : now->elements) {
      after += kj::str(element.role, element.name, element.states.bits, element.position).cStr();
    }
    bool same = after == before;
    before = after;
    return same;
  }));
}

Rig::~Rig() {
  kill(probe, SIGCONT);
  stop();
}

client::Options Rig::options() {
  client::Options out;
  out.ledger = kj::StringPtr(ledger.c_str(), ledger.size());
  out.supervisor = PRAEFECTUS_BIN "/praefectus-supervisor";
  out.environment = desktop.environment();
  return out;
}

void Rig::start() {
  host = need(client::Host::start(io, options(), authority));
  session = openSession("session-1");
}

void Rig::stop() {
  session = nullptr;
  host = nullptr;
}

kj::Own<client::Session> Rig::openSession(kj::StringPtr id, kj::StringPtr turn) {
  return need(host->open(id, turn));
}

WindowRef Rig::windowOf(pid_t pid) {
  WindowRef found;
  bool seen = eventually([&] {
    auto desktopNow = need(session->list());
    for (auto& candidate : desktopNow.windows) {
      if (candidate.ref.process.pid == static_cast<uint32_t>(pid) && candidate.accessible) {
        found = candidate.ref;
        return true;
      }
    }
    return false;
  });
  EXPECT_TRUE(seen) << "the window never appeared";
  return found;
}

Observation Rig::look(client::Session& with) { return need(with.observe(window)); }

kj::Promise<Result<client::Outcome>> Rig::sendUntil(const client::Request& request,
                                                    wire::Stage stage) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto answer = session->execute(
      request, kj::Function<void(wire::Stage)>(
                   [stage, told = kj::mv(paf.fulfiller)](wire::Stage reached) mutable {
                     if (reached == stage) told->fulfill();
                   }));
  auto late = io.provider->getTimer().afterDelay(20 * kj::SECONDS).then([] {
    KJ_FAIL_REQUIRE("the stage was never reached");
  });
  paf.promise.exclusiveJoin(kj::mv(late)).wait(io.waitScope);
  return answer;
}

std::string Rig::refusalOf(kj::Promise<Result<client::Outcome>> answer) {
  auto result = answer.wait(io.waitScope);
  if (result.ok()) return std::string("receipt: ") + nameOf(result->receipt.terminal).cStr();
  return nameOf(result.refusal().code).cStr();
}

std::vector<std::string> Rig::recorded(const std::string& word) {
  std::vector<std::string> out;
  for (auto& line : linesOf(contents(recordPath))) {
    if (line.compare(0, word.size(), word) == 0) out.push_back(line);
  }
  return out;
}

bool Rig::waitForRecord(const std::string& word, size_t count) {
  return eventually([&] { return recorded(word).size() >= count; });
}

void Rig::change() {
  size_t before = recorded("changed").size();
  kill(probe, SIGUSR1);
  EXPECT_TRUE(waitForRecord("changed", before + 1));
}

const Element& Rig::entry(const Observation& seen) {
  for (auto& element : seen.elements) {
    if (element.settable && !element.secure && element.role == "text") return element;
  }
  throw std::runtime_error("the probe has no entry");
}

const Element& Rig::named(const Observation& seen, kj::StringPtr role, kj::StringPtr name) {
  auto found = client::find(seen, role, name);
  if (found.size() != 1)
    throw std::runtime_error(kj::str(found.size(), " of ", role, " ", name).cStr());
  return *found[0];
}

}  // namespace praefectus::tests
