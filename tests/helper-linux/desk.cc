#include "tests/helper-linux/desk.h"

#include "tests/helper-linux/screen.h"

#include <kj/debug.h>

#include <chrono>
#include <fstream>
#include <thread>

#include <signal.h>

namespace praefectus::tests {

bool eventually(const std::function<bool()>& holds) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string nameOf(const kj::Maybe<RefusalCode>& refusal) {
  KJ_IF_MAYBE (code, refusal) return praefectus::nameOf(*code).cStr();
  return "";
}

Desk::Desk(kj::StringPtr mode, PrivateDesktop::Options options)
    : desktop(options),
      helper(desktop.environment()),
      recordPath(kj::str(desktop.folder(), "/probe.record")) {
  useAuthorityOf(desktop);
  helper.hello();
  kj::StringPtr arguments[] = {PRAEFECTUS_BIN "/praefectus-probe"_kj, "--record"_kj, recordPath,
                               "--mode"_kj, mode};
  probe = open(arguments);
  KJ_REQUIRE(eventually([this]() { return recorded("ready").size() == 1; }));
}

WindowRef Desk::open(kj::ArrayPtr<const kj::StringPtr> arguments) {
  auto pid = static_cast<uint32_t>(desktop.run(arguments).pid);
  kj::Maybe<WindowRef> found;
  KJ_REQUIRE(eventually([&]() {
               found = windowOf(pid);
               return found != nullptr;
             }),
             "the application did not come up", arguments[0]);
  auto window = KJ_ASSERT_NONNULL(found);
  // It goes on arranging itself after it is on screen, and what changes meanwhile is rightly
  // refused: two looks that show the same are enough.
  kj::String before;
  KJ_REQUIRE(eventually([&]() {
               auto now = helper.observe(window);
               if (!now.ok()) return false;
               auto& at = now->seen.frame.bounds;
               auto elements = KJ_MAP(element, now->seen.elements) {
                 return kj::str(element.role, element.name, element.states.bits);
               };
               auto after = kj::str(at.x, ' ', at.y, ' ', at.width, ' ', at.height, elements);
               bool same = after == before;
               before = kj::mv(after);
               return same;
             }),
             "the application did not come to rest", arguments[0]);
  return window;
}

kj::Maybe<WindowRef> Desk::windowOf(uint32_t pid, bool accessible) {
  auto listed = helper.list();
  if (!listed.ok()) return nullptr;
  kj::Maybe<WindowRef> found;
  for (auto& window : listed->windows) {
    if (window.ref.process.pid != pid || window.accessible != accessible) continue;
    if (found != nullptr) return nullptr;
    found = window.ref;
  }
  return found;
}

std::vector<std::string> Desk::record() const {
  std::vector<std::string> out;
  std::ifstream file(recordPath.cStr());
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

std::vector<std::string> Desk::recorded(const std::string& word) const {
  std::vector<std::string> out;
  for (auto& line : record()) {
    if (line.rfind(word, 0) == 0) out.push_back(line);
  }
  return out;
}

void Desk::change() {
  size_t before = recorded("changed").size();
  KJ_SYSCALL(kill(static_cast<pid_t>(probe.process.pid), SIGUSR1));
  KJ_REQUIRE(eventually([&]() { return recorded("changed").size() > before; }));
}

void Desk::stop() {
  KJ_SYSCALL(kill(static_cast<pid_t>(probe.process.pid), SIGSTOP));
  KJ_REQUIRE(eventually([this]() {
    std::ifstream stat("/proc/" + std::to_string(probe.process.pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    auto end = text.rfind(')');
    return end != std::string::npos && text.compare(end, 3, ") T") == 0;
  }));
}

void Desk::resume() { KJ_SYSCALL(kill(static_cast<pid_t>(probe.process.pid), SIGCONT)); }

Observed Desk::observe() {
  auto seen = helper.observe(probe);
  KJ_REQUIRE(seen.ok(), praefectus::nameOf(seen.refusal().code));
  return kj::mv(*seen);
}

}  // namespace praefectus::tests
