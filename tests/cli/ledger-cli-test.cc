// What cannot be taken back is said first, and done only after a person's yes.
#include "tests/cli/program.h"
#include "tests/ledger/fixture.h"

#include <kj/io.h>

#include <gtest/gtest.h>

#include <filesystem>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::tests {
namespace {

using Words = std::vector<std::string>;

// A ledger with one operation, and a backup of it.
struct Asked {
  Asked() : folder(test::makeLedger(place).cStr()) {
    test::Running ledger(folder.c_str());
    KJ_ASSERT(ledger.claims("first"));
    ledger.settles("first");
    ledger.close();
    EXPECT_EQ(praefectus({"ledger", "backup", "--ledger", folder, "--to", beside("backup")}).exit,
              0);
  }
  std::string beside(const char* name) const { return (place / name).cStr(); }

  // The three commands, with what they need.
  std::vector<Words> commands() const {
    return {
        {"ledger", "adopt", "--ledger", folder},
        {"ledger", "restore", "--from", beside("backup"), "--ledger", beside("new")},
        {"ledger", "archive", "--ledger", folder, "--before", "2024-01-01", "--to", beside("old")}};
  }
  // What there is, as far as these commands could change it.
  std::string state() const {
    auto report = envelope(praefectus({"ledger", "report", "--ledger", folder, "--json"}));
    auto& summary = report["data"]["summary"];
    return summary["head"].get<std::string>() + (exists("new") ? " new" : "") +
           (exists("old") ? " old" : "");
  }

  test::TemporaryFolder place;
  std::string folder;

 private:
  bool exists(const char* name) const { return std::filesystem::exists(beside(name)); }
};

struct Talk {
  std::string said;
  int exit = -1;
};

// Runs the program on a terminal of its own, and types this line.
Talk onTerminal(const Words& arguments, const std::string& line) {
  int terminal = -1;
  pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  KJ_ASSERT(child >= 0);
  if (child == 0) {
    std::string program = PRAEFECTUS_BIN "/praefectus";
    std::vector<char*> words{program.data()};
    auto kept = arguments;
    for (auto& word : kept) words.push_back(word.data());
    words.push_back(nullptr);
    execv(program.c_str(), words.data());
    _exit(127);
  }
  kj::AutoCloseFd held(terminal);
  auto typed = line + "\n";
  kj::FdOutputStream(held.get()).write(typed.data(), typed.size());
  Talk out;
  char piece[1024];
  while (true) {
    auto size = ::read(held, piece, sizeof(piece));
    if (size <= 0) break;  // EIO once the other end is closed.
    out.said.append(piece, static_cast<size_t>(size));
  }
  int status = 0;
  KJ_SYSCALL(waitpid(child, &status, 0));
  out.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

TEST(Consent, whereNobodyCanBeAskedItHasToBeAmongTheWords) {
  Asked asked;
  auto before = asked.state();
  for (auto& command : asked.commands()) {
    auto ran = praefectus(command);
    EXPECT_EQ(ran.exit, 2) << command[1];
    EXPECT_TRUE(has(ran.err, "--yes")) << ran.err;
  }
  EXPECT_EQ(asked.state(), before);
  for (auto command : asked.commands()) {
    command.push_back("--yes");
    EXPECT_EQ(praefectus(command).exit, 0) << command[1];
    EXPECT_NE(asked.state(), before) << command[1];
    before = asked.state();
  }
}

TEST(Consent, onATerminalAnythingButYesDoesNothing) {
  Asked asked;
  auto before = asked.state();
  for (auto& command : asked.commands()) {
    for (auto answer : {"", "no", "y", "yes please"}) {
      auto talk = onTerminal(command, answer);
      EXPECT_EQ(talk.exit, 3) << command[1] << answer;
      EXPECT_TRUE(has(talk.said, "nothing was done")) << talk.said;
    }
  }
  EXPECT_EQ(asked.state(), before);
}

TEST(Consent, onATerminalIsAskedForInWords) {
  Asked asked;
  const char* words[] = {"void", "void", "moved"};
  size_t i = 0;
  for (auto& command : asked.commands()) {
    auto before = asked.state();
    auto talk = onTerminal(command, "yes");
    EXPECT_EQ(talk.exit, 0) << talk.said;
    EXPECT_TRUE(has(talk.said, words[i++])) << talk.said;
    EXPECT_NE(asked.state(), before) << command[1];
  }
}

TEST(Progress, isSeenOnATerminalAndNowhereElse) {
  Asked asked;
  Words check{"ledger", "check", "--ledger", asked.folder};
  EXPECT_TRUE(has(onTerminal(check, "").said, "verifying: "));
  auto ran = praefectus(check);
  EXPECT_EQ(ran.exit, 0);
  EXPECT_EQ(ran.err, "");
}

}  // namespace
}  // namespace praefectus::tests
