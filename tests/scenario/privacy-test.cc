// What is kept of an action, and what is not. Marks are put wherever something private could leak
// from: typed text, a value, a title, a label, a picture, the host's secrets; then every byte that
// is left behind is searched for them.
#include "tests/scenario/rig.h"

#include <csignal>
#include <filesystem>
#include <set>
#include <string_view>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::tests {
namespace {

namespace fs = std::filesystem;

constexpr char TITLE[] = "Mark-of-the-title-4711";
constexpr char LABEL[] = "Mark-of-the-label-4712";
constexpr char TYPED[] = "Mark-of-the-typed-text-4713";
constexpr char REFUSED[] = "Mark-of-a-refused-text-4714";
constexpr char LOST[] = "Mark-of-a-lost-text-4715";

// Standard error of this process, and so of every process it starts, as a file.
class ErrorsTo {
 public:
  explicit ErrorsTo(const std::string& path) : saved(dup(2)) {
    int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(file, 2);
    close(file);
  }
  ~ErrorsTo() {
    dup2(saved, 2);
    close(saved);
  }

 private:
  int saved;
};

// A text the way it may stand in a file: as it is, in UTF-16, in hexadecimal.
std::vector<std::string> spellings(std::string_view text) {
  std::string wide;
  for (char c : text) {
    wide.push_back(c);
    wide.push_back(0);
  }
  auto bytes = kj::arrayPtr(reinterpret_cast<const kj::byte*>(text.data()), text.size());
  return {std::string(text), wide, hex(bytes).cStr()};
}

struct Kept {
  std::string name, bytes;
};

// Everything in the folder, and that file.
std::vector<Kept> keptIn(const std::string& folder, const std::string& file) {
  std::vector<Kept> out;
  for (auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) out.push_back({entry.path(), contents(entry.path())});
  }
  out.push_back({file, contents(file)});
  return out;
}

std::vector<std::string> placesOf(std::string_view mark, const std::vector<Kept>& kept) {
  std::vector<std::string> found;
  for (auto& spelling : spellings(mark)) {
    for (auto& each : kept) {
      if (each.bytes.find(spelling) != std::string::npos) found.push_back(each.name);
    }
  }
  return found;
}

TEST(Privacy, nothingThatWasTypedSeenOrNamedIsInTheLedgerItsLogsOrStandardError) {
  Folder own;
  auto errors = own.file("errors");
  std::vector<Kept> kept;
  std::vector<std::string> marks = {TITLE, LABEL, TYPED, REFUSED, LOST};
  {
    ErrorsTo file(errors);
    Rig rig("plain", {TITLE, LABEL});
    auto seen = rig.need(rig.session->observe(rig.window, true));
    ASSERT_STREQ(seen.frame.title.cStr(), TITLE);
    auto& picture = KJ_ASSERT_NONNULL(seen.png);
    // The pixels themselves, from behind the file's header.
    marks.push_back(std::string(reinterpret_cast<const char*>(picture.begin()) + 64, 48));

    rig.need(rig.session->execute(rig.session->setValue(seen, Rig::entry(seen), TYPED)));
    seen = rig.look();
    auto& box = Rig::named(seen, "check box", LABEL);
    rig.need(rig.session->execute(rig.session->invoke(seen, box, box.actions[0])));

    // Refused: by the frame, by the grant, by the bytes.
    auto stale = rig.session->setValue(seen, Rig::entry(seen), REFUSED);
    EXPECT_EQ(rig.refusalOf(rig.session->execute(stale)), "stale_frame");
    seen = rig.look();
    auto tampered = rig.session->setValue(seen, Rig::entry(seen), REFUSED);
    tampered.action[tampered.action.size() - 1] ^= 1;
    EXPECT_EQ(rig.refusalOf(rig.session->execute(tampered)), "policy_denied");

    // Lost: the supervisor dies with the text in hand, and the next one settles it.
    seen = rig.look();
    auto lost =
        rig.sendUntil(rig.session->setValue(seen, Rig::entry(seen), LOST), wire::Stage::CLAIMED);
    kill(rig.host->supervisorPid(), SIGABRT);
    EXPECT_FALSE(lost.wait(rig.io.waitScope).ok());
    rig.stop();
    rig.start();
    rig.stop();
    kept = keptIn(rig.ledger, errors);

    // That the search can find: the application's own record has what was typed.
    auto record = keptIn(rig.ledger, rig.recordPath);
    EXPECT_FALSE(placesOf(TYPED, record).empty());
  }
  for (auto& mark : marks) {
    EXPECT_EQ(placesOf(mark, kept), std::vector<std::string>()) << mark.substr(0, 32);
  }
}

// How a child of ours ended, which is left for whoever waits for it: CLD_KILLED or CLD_DUMPED.
int endOf(pid_t child) {
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  return info.si_code;
}

TEST(Privacy, noCoreDumpIsWrittenByTheSupervisorOrAHelper) {
  Folder own;
  rlimit before, all{RLIM_INFINITY, RLIM_INFINITY};
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &before), 0);
  all.rlim_max = before.rlim_max;
  all.rlim_cur = before.rlim_max;
  if (all.rlim_max == 0) GTEST_SKIP() << "this user may not write core dumps at all";
  ASSERT_EQ(setrlimit(RLIMIT_CORE, &all), 0);
  KJ_DEFER(setrlimit(RLIMIT_CORE, &before));

  // An ordinary child would leave one.
  pid_t ordinary = fork();
  if (ordinary == 0) {
    if (chdir(own.path().c_str()) == 0) raise(SIGQUIT);
    _exit(1);
  }
  EXPECT_EQ(endOf(ordinary), CLD_DUMPED);
  waitpid(ordinary, nullptr, 0);

  Rig rig("plain", {TITLE, LABEL});
  auto helper = static_cast<pid_t>(rig.need(rig.session->capabilities()).pid);
  auto limits = contents("/proc/" + std::to_string(helper) + "/limits");
  auto at = limits.find("Max core file size");
  ASSERT_NE(at, std::string::npos);
  auto line = limits.substr(at, limits.find('\n', at) - at);
  EXPECT_EQ(line.find_first_not_of(' ', 18), line.find('0')) << line;
  auto supervisor = rig.host->supervisorPid();
  ASSERT_EQ(kill(supervisor, SIGQUIT), 0);
  EXPECT_EQ(endOf(supervisor), CLD_KILLED);
}

// ---- The search for a four-digit PIN ------------------------------------------------------------

std::string pinOf(unsigned number) {
  auto digits = std::to_string(number);
  return std::string(4 - digits.size(), '0') + digits;
}

Bytes bytesIn(std::string_view text) {
  return Bytes(reinterpret_cast<const kj::byte*>(text.data()), text.size());
}

// Every 32 bytes that stand anywhere.
std::set<Hash> windowsOf(const std::vector<Kept>& kept) {
  std::set<Hash> out;
  for (auto& each : kept) {
    for (size_t i = 0; i + sizeof(Hash) <= each.bytes.size(); ++i) {
      Hash hash;
      memcpy(hash.data(), each.bytes.data() + i, sizeof(hash));
      out.insert(hash);
    }
  }
  return out;
}

// The action as an attacker would build it who knows everything but the text and the blind.
Hash guess(Bytes action, std::string_view pin, const Hash& blind) {
  auto decoded = decodeAction(action);
  KJ_REQUIRE(decoded.ok());
  decoded->blind = blind;
  decoded->act = SetValueRequest{kj::heapString(pin.data(), pin.size())};
  return attest::actionHash(encode(*decoded));
}

TEST(Privacy, noFourDigitPinIsRecoveredByTryingThemAll) {
  constexpr std::string_view PIN = "4831";
  Rig rig;
  auto seen = rig.look();
  auto request =
      rig.session->setValue(seen, Rig::entry(seen), kj::heapString(PIN.data(), PIN.size()));
  auto receipt = rig.need(rig.session->execute(request)).receipt;
  Hash blind = decodeAction(request.action)->blind;
  rig.stop();
  auto kept = keptIn(rig.ledger, rig.ledger + "/ledger.db");
  auto stored = windowsOf(kept);

  // The attacker finds it with the blind, which nobody keeps: so the search below is one that
  // finds.
  EXPECT_EQ(stored.count(guess(request.action, PIN, blind)), 1u);
  EXPECT_EQ(stored.count(blind), 0u);

  // Without it: every candidate, plain, labelled, and keyed with everything the ledger does keep.
  Hash one{};
  one[0] = 1;
  const Hash keys[] = {one,
                       receipt.ledger.key,
                       receipt.actionHash,
                       receipt.grantHash,
                       receipt.previous,
                       receipt.helper.digest};
  size_t found = 0;
  for (unsigned i = 0; i < 10'000; ++i) {
    auto pin = pinOf(i);
    found += stored.count(attest::digestOf(bytesIn(pin)));
    found += stored.count(attest::labelledDigest("praefectus/action/v1", bytesIn(pin)));
    for (auto& key : keys) {
      found += stored.count(attest::keyedDigest(bytesOf(key), bytesIn(pin)));
      found += stored.count(guess(request.action, pin, key));
    }
  }
  EXPECT_EQ(found, 0u);
}

}  // namespace
}  // namespace praefectus::tests
