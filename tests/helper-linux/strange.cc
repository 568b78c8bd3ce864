#include "tests/helper-linux/strange.h"

#include <kj/debug.h>

#include <fstream>

#include <signal.h>

namespace praefectus::tests {
namespace {

// The letter of proc(5)'s third field; 0 when there is no such process.
char stateOf(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  auto end = text.rfind(") ");
  return end == std::string::npos ? '\0' : text[end + 2];
}

std::string nextRecord(PrivateDesktop& desktop) {
  static unsigned number = 0;
  return std::string(desktop.folder().cStr()) + "/strange-" + std::to_string(++number) + ".record";
}

pid_t start(PrivateDesktop& desktop, const std::string& record,
            const std::vector<std::string>& options) {
  kj::Vector<kj::StringPtr> arguments;
  arguments.add(PRAEFECTUS_BIN "/praefectus-strange"_kj);
  arguments.add("--record"_kj);
  arguments.add(record.c_str());
  for (auto& each : options) arguments.add(each.c_str());
  return desktop.run(arguments).pid;
}

std::string lineOf(const Element& element) {
  auto actions = kj::strArray(element.actions, ",");
  auto value = element.value.map([](const kj::String& text) { return kj::str("=", text); });
  auto at = element.bounds.orDefault(Rect());
  auto line = kj::str(element.depth, ' ', element.parent, ' ', element.position, ' ', element.role,
                      " '", element.name, "' ", element.path, ' ', element.domId, ' ',
                      element.states.bits, ' ', element.faces.bits, ' ', element.children, ' ',
                      actions, ' ', kj::mv(value).orDefault(kj::String()), ' ', at.x, ' ', at.y,
                      ' ', at.width, 'x', at.height, " fault ", static_cast<int>(element.fault));
  return line.cStr();
}

}  // namespace

std::vector<std::string> linesOf(const Observed& seen) {
  std::vector<std::string> out;
  for (auto& each : seen.seen.elements) out.push_back(lineOf(each));
  return out;
}

bool isStopped(pid_t pid) { return stateOf(pid) == 'T'; }

Strange::Strange(PrivateDesktop& desktop, const std::vector<std::string>& options)
    : recordPath(nextRecord(desktop)), process(start(desktop, recordPath, options)) {
  KJ_REQUIRE(eventually([this]() { return recorded("ready").size() == 1; }),
             "the strange application did not come up");
}

bool Strange::isRunning() const {
  char state = stateOf(process);
  return state != '\0' && state != 'Z' && state != 'X';
}

std::vector<std::string> Strange::record() const {
  std::vector<std::string> out;
  std::ifstream file(recordPath);
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

std::vector<std::string> Strange::recorded(const std::string& word) const {
  std::vector<std::string> out;
  for (auto& line : record()) {
    if (line == word) out.emplace_back();
    if (line.rfind(word + " ", 0) == 0) out.push_back(line.substr(word.size() + 1));
  }
  return out;
}

void Strange::change() {
  size_t before = recorded("changed").size();
  KJ_SYSCALL(kill(process, SIGUSR1));
  KJ_REQUIRE(eventually([&]() { return recorded("changed").size() > before; }));
}

size_t Strange::countCalls() {
  size_t counted = recorded("counted").size(), before = recorded("asked").size();
  KJ_SYSCALL(kill(process, SIGUSR2));
  KJ_REQUIRE(eventually([&]() { return recorded("counted").size() > counted; }));
  size_t out = 0;
  auto all = recorded("asked");
  for (size_t i = before; i < all.size(); ++i) out += std::stoul(all[i].substr(all[i].find(' ')));
  return out;
}

void Strange::stop() {
  KJ_SYSCALL(kill(process, SIGSTOP));
  KJ_REQUIRE(eventually([this]() { return isStopped(process); }));
}

void Strange::resume() { KJ_SYSCALL(kill(process, SIGCONT)); }

WindowRef Strange::window(HelperClient& helper, bool accessible) const {
  kj::Maybe<WindowRef> found;
  KJ_REQUIRE(eventually([&]() {
               auto listed = helper.list();
               if (!listed.ok()) return false;
               for (auto& window : listed->windows) {
                 bool ours = window.ref.process.pid == static_cast<uint32_t>(process);
                 if (ours && window.accessible == accessible) found = window.ref;
               }
               return found != nullptr;
             }),
             "the strange application's window is not listed");
  return KJ_ASSERT_NONNULL(found);
}

StrangeDesk::StrangeDesk(const std::vector<std::string>& options)
    : helper(desktop.environment()), app(desktop, options) {
  helper.hello();
  window = app.window(helper);
}

Observed StrangeDesk::observe() {
  auto seen = helper.observe(window);
  KJ_REQUIRE(seen.ok(), praefectus::nameOf(seen.refusal().code));
  return kj::mv(*seen);
}

std::string StrangeDesk::press(const Observed& from, uint32_t element) {
  return nameOf(helper.invoke(from, element, "click").refusal);
}

}  // namespace praefectus::tests
