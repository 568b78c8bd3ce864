// What can be wrong around a supervisor: each has a named answer, dispatches nothing, and hangs
// nobody.
#include "ipc/channel.h"
#include "supervisor/ledger/reader.h"
#include "tests/scenario/rig.h"

#include <kj/debug.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::tests {
namespace {

namespace fs = std::filesystem;

std::string built(const char* file) { return std::string(PRAEFECTUS_BIN "/") + file; }

// The supervisor in a folder of the test's own, with a helper that says when it runs, to be damaged
// at will.
struct Installed {
  Installed() {
    fs::copy_file(built("praefectus-supervisor"), supervisor());
    fs::copy_file(built("trespasser"), helper());
    fs::copy_file(built("trespasser.manifest"), manifest());
  }
  // What the supervisor says of the helper, with HOME in this folder.
  std::string whyNot() const;
  bool trespassed() const { return fs::exists(folder.file("trespassed")); }
  std::string supervisor() const { return folder.file("praefectus-supervisor"); }
  std::string helper() const { return folder.file("praefectus-desktop-linux"); }
  std::string manifest() const { return helper() + ".manifest"; }
  Folder folder;
};

// A host without a desktop of its own.
struct Bare {
  explicit Bare(std::string supervisorPath = PRAEFECTUS_BIN "/praefectus-supervisor")
      : supervisor(kj::mv(supervisorPath)),
        io(kj::setupAsyncIo()),
        authority("test-host", (attest::initialize(), attest::SigningKey::generate())),
        ledger(folder.file("ledger")) {}

  client::Options options(kj::ArrayPtr<const kj::String> environment = nullptr) {
    client::Options out;
    out.ledger = kj::StringPtr(ledger.c_str(), ledger.size());
    out.supervisor = kj::StringPtr(supervisor.c_str(), supervisor.size());
    out.environment = environment;
    return out;
  }
  std::string startRefusal() {
    auto host = client::Host::start(io, options(), authority).wait(io.waitScope);
    return host.ok() ? "started" : nameOf(host.refusal().code).cStr();
  }
  // The first capability's reason on this desktop.
  std::string whyNot(kj::ArrayPtr<const kj::String> environment) {
    auto host = client::Host::start(io, options(environment), authority).wait(io.waitScope);
    if (!host.ok()) return nameOf(host.refusal().code).cStr();
    auto session = (*host)->open("session-1", "turn-1").wait(io.waitScope);
    auto helper = (*session)->capabilities().wait(io.waitScope);
    if (!helper.ok()) return nameOf(helper.refusal().code).cStr();
    auto listed = (*session)->list().wait(io.waitScope);
    for (auto& capability : helper->capabilities) {
      // A picture of what the screen shows needs a display and nothing else.
      if (capability.available && capability.name == "screenshot") continue;
      if (capability.available) return std::string("available: ") + capability.name.cStr();
      if (listed.ok() || listed.refusal().code != capability.why) return "list disagrees";
    }
    return nameOf(helper->capabilities[0].why).cStr();
  }

  Folder folder;
  std::string supervisor;
  kj::AsyncIoContext io;
  client::Authority authority;
  std::string ledger;
};

std::string Installed::whyNot() const {
  Bare bare(supervisor());
  EXPECT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  kj::String home[] = {kj::str("HOME=", folder.path().c_str())};
  return bare.whyNot(kj::arrayPtr(home, 1));
}

TEST(BadInput, aSecondSupervisorOnOneLedgerIsRefused) {
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  auto first = client::Host::start(bare.io, bare.options(), bare.authority).wait(bare.io.waitScope);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(bare.startRefusal(), "ledger_busy");
  // The first one is none the worse for it.
  EXPECT_TRUE((*first)->status("nothing").wait(bare.io.waitScope).ok());
}

TEST(BadInput, aLedgerThatIsNotOneIsRefusedByName) {
  Bare bare;
  EXPECT_EQ(bare.startRefusal(), "ledger_foreign");  // Absent.
  fs::create_directory(bare.ledger);
  chmod(bare.ledger.c_str(), 0700);
  EXPECT_EQ(bare.startRefusal(), "ledger_foreign");  // Empty.
  std::ofstream(bare.ledger + "/ledger.db") << "this is not a database";
  EXPECT_EQ(bare.startRefusal(), "ledger_foreign");
}

TEST(BadInput, aLedgerThatOthersCouldReadIsRefused) {
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  chmod(bare.ledger.c_str(), 0755);
  EXPECT_EQ(bare.startRefusal(), "ledger_foreign");
  chmod(bare.ledger.c_str(), 0700);
  EXPECT_EQ(bare.startRefusal(), "started");
}

struct Harm {
  const char* name;
  void (*harm)(Bare&);
};

class ForeignLedger : public testing::TestWithParam<Harm> {};

TEST_P(ForeignLedger, isRefusedByName) {
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  ASSERT_EQ(bare.startRefusal(), "started");
  GetParam().harm(bare);
  EXPECT_EQ(bare.startRefusal(), "ledger_foreign");
}

void cut(const std::string& file, uintmax_t part) {
  fs::resize_file(file, fs::file_size(file) / part);
}

INSTANTIATE_TEST_SUITE_P(
    Harm, ForeignLedger,
    testing::Values(
        Harm{"keyMissing", [](Bare& bare) { fs::remove(bare.ledger + "/receipt.key"); }},
        Harm{"keyOfAnotherLedger",
             [](Bare& bare) {
               auto other = bare.folder.file("other");
               auto options = bare.options();
               options.ledger = kj::StringPtr(other.c_str(), other.size());
               ASSERT_TRUE(client::createLedger(options, bare.authority).ok());
               fs::rename(other + "/receipt.key", bare.ledger + "/receipt.key");
             }},
        Harm{"keyReadableByOthers",
             [](Bare& bare) { chmod((bare.ledger + "/receipt.key").c_str(), 0644); }},
        Harm{"databaseCutInHalf", [](Bare& bare) { cut(bare.ledger + "/ledger.db", 2); }},
        Harm{"databaseCutToAFewBytes", [](Bare& bare) { cut(bare.ledger + "/ledger.db", 1000); }},
        Harm{"databaseEmptied",
             [](Bare& bare) { fs::resize_file(bare.ledger + "/ledger.db", 0); }}),
    [](auto& each) { return std::string(each.param.name); });

TEST(BadInput, anExistingFolderIsNotMadeALedger) {
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  auto again = client::createLedger(bare.options(), bare.authority);
  ASSERT_FALSE(again.ok());
  EXPECT_STREQ(nameOf(again.refusal().code).cStr(), "ledger_foreign");
}

TEST(BadInput, aMissingDisplayIsSaid) {
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  kj::String none[] = {kj::str("LANG=C.UTF-8")};
  EXPECT_EQ(bare.whyNot(kj::arrayPtr(none, 1)), "no_display");
  kj::String dead[] = {kj::str("DISPLAY=:9999")};
  EXPECT_EQ(bare.whyNot(kj::arrayPtr(dead, 1)), "no_display");
}

// A display that takes connections and never says a word.
struct MuteDisplay {
  MuteDisplay() : number(5000 + getpid() % 10000) {
    fs::create_directories("/tmp/.X11-unix");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    auto path = "/tmp/.X11-unix/X" + std::to_string(number);
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(socket, 8), 0);
    place = path;
  }
  ~MuteDisplay() {
    close(socket);
    fs::remove(place);
  }
  int number;
  int socket;
  std::string place;
};

TEST(BadInput, aDisplayThatNeverAnswersHangsNobody) {
  MuteDisplay mute;
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  kj::String environment[] = {kj::str("DISPLAY=:", mute.number)};
  EXPECT_EQ(bare.whyNot(kj::arrayPtr(environment, 1)), "no_display");
}

TEST(BadInput, aMissingAccessibilityBusIsSaid) {
  PrivateDesktop::Options without;
  without.accessibility = false;
  PrivateDesktop desktop(without);
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  EXPECT_EQ(bare.whyNot(desktop.environment()), "no_accessibility_bus");
}

TEST(BadInput, aSupervisorThatNoLongerAnswersHangsNobody) {
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  auto host = client::Host::start(bare.io, bare.options(), bare.authority).wait(bare.io.waitScope);
  ASSERT_TRUE(host.ok());
  kill((*host)->supervisorPid(), SIGSTOP);
  auto status = (*host)->status("nothing").wait(bare.io.waitScope);
  ASSERT_FALSE(status.ok());
  EXPECT_STREQ(nameOf(status.refusal().code).cStr(), "service_unavailable");
  kill((*host)->supervisorPid(), SIGKILL);
}

TEST(BadInput, aMissingSupervisorIsSaid) {
  Bare bare("/nonexistent/praefectus-supervisor");
  EXPECT_EQ(bare.startRefusal(), "service_unavailable");
}

struct Damage {
  const char* name;
  void (*harm)(const Installed&);
  const char* code;
};

class Provenance : public testing::TestWithParam<Damage> {};

// Without this one the others would show nothing: undamaged, it does run.
TEST(Trespasser, leavesItsTraceWhenItIsAttested) {
  Installed installed;
  EXPECT_NE(installed.whyNot(), "service_mismatch");
  EXPECT_TRUE(installed.trespassed());
}

TEST_P(Provenance, aHelperThatIsNotThePublishedOneNeverRuns) {
  Installed installed;
  GetParam().harm(installed);
  EXPECT_EQ(installed.whyNot(), GetParam().code);
  EXPECT_FALSE(installed.trespassed());
}

void flip(const std::string& path, std::streamoff offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  int byte = file.get();
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 1));
}

INSTANTIATE_TEST_SUITE_P(
    Damage, Provenance,
    testing::Values(
        // The last byte is of a table that nothing needs at run time.
        Damage{"oneByteOfTheHelper",
               [](const Installed& at) {
                 flip(at.helper(), static_cast<std::streamoff>(fs::file_size(at.helper())) - 1);
               },
               "service_mismatch"},
        Damage{"oneByteAppended",
               [](const Installed& at) { std::ofstream(at.helper(), std::ios::app) << "x"; },
               "service_mismatch"},
        Damage{"manifestEdited", [](const Installed& at) { flip(at.manifest(), 100); },
               "service_mismatch"},
        Damage{"manifestMissing", [](const Installed& at) { fs::remove(at.manifest()); },
               "service_unavailable"},
        Damage{"helperMissing", [](const Installed& at) { fs::remove(at.helper()); },
               "service_unavailable"},
        Damage{"anotherProgramInItsPlace",
               [](const Installed& at) {
                 fs::remove(at.manifest());
                 fs::copy_file(built("praefectus-desktop-linux.manifest"), at.manifest());
               },
               "service_mismatch"},
        Damage{"scriptInItsPlace",
               [](const Installed& at) {
                 fs::remove(at.helper());
                 std::ofstream(at.helper()) << "#!/bin/sh\ntouch \"$HOME/trespassed\"\n";
                 chmod(at.helper().c_str(), 0755);
               },
               "service_mismatch"},
        Damage{"symlinkInItsPlace",
               [](const Installed& at) {
                 fs::rename(at.helper(), at.helper() + ".real");
                 fs::create_symlink(at.helper() + ".real", at.helper());
               },
               "service_unavailable"}),
    [](auto& each) { return std::string(each.param.name); });

// The shipped supervisor with nothing of ours at the other end of its socket.
class RawHost {
 public:
  explicit RawHost(Bare& bare) : ledger(bare.ledger) {
    EXPECT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
    int pair[2];
    KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    socket = kj::AutoCloseFd(pair[0]);
    kj::AutoCloseFd theirs(pair[1]);
    // dup2 of a descriptor onto itself would leave close-on-exec set.
    int high;
    KJ_SYSCALL(high = fcntl(theirs, F_DUPFD_CLOEXEC, 10));
    kj::AutoCloseFd parked(high);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    KJ_DEFER(posix_spawn_file_actions_destroy(&files));
    posix_spawn_file_actions_adddup2(&files, high, 3);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    std::string program = built("praefectus-supervisor"), serve = "serve", option = "--ledger";
    char* arguments[] = {program.data(), serve.data(), option.data(), ledger.data(), nullptr};
    std::string language = "LANG=C.UTF-8";
    char* environment[] = {language.data(), nullptr};
    KJ_REQUIRE(posix_spawn(&pid, program.c_str(), &files, nullptr, arguments, environment) == 0);
  }
  ~RawHost() {
    if (pid == 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  RawHost(const RawHost&) = delete;

  kj::AutoCloseFd takeSocket() { return kj::mv(socket); }

  // A supervisor that has dropped us already takes no more.
  void say(const std::string& bytes) { send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void sayNoMore() { shutdown(socket, SHUT_WR); }

  // Reads whatever comes until the supervisor has dropped the connection, for 20 s at most.
  bool isDropped() {
    return eventually([&] {
      pollfd readable{socket, POLLIN, 0};
      if (poll(&readable, 1, 100) <= 0) return false;
      char piece[4096];
      return recv(socket, piece, sizeof(piece), MSG_DONTWAIT) <= 0;
    });
  }

  // Its exit status once it has ended by itself; 128 + signal when something ended it.
  int ended() {
    int status = 0;
    if (!eventually([&] { return waitpid(pid, &status, WNOHANG) == pid; })) return -1;
    pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  std::string ledger;
  kj::AutoCloseFd socket;
  pid_t pid = 0;
};

// Nothing was recorded, everything holds, and the next host is served.
void expectUntouched(Bare& bare) {
  {
    auto reader =
        ledger::LedgerReader::open(kj::StringPtr(bare.ledger.c_str(), bare.ledger.size()));
    ASSERT_TRUE(reader.ok());
    auto report = (*reader)->verify(nullptr);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->findings.size(), 0u);
    EXPECT_EQ(report->summary.operations, 0u);
  }
  auto next = client::Host::start(bare.io, bare.options(), bare.authority).wait(bare.io.waitScope);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ((*next)->info().recovered, 0u);
  EXPECT_TRUE((*next)->open("session-1", "turn-1").wait(bare.io.waitScope).ok());
  auto status = (*next)->status("nothing").wait(bare.io.waitScope);
  ASSERT_TRUE(status.ok());
  EXPECT_TRUE(status->is<client::OperationUnknown>());
}

std::string garbage(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, 0);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
  return bytes;
}

// The start of a message with one segment of so many words.
std::string header(uint32_t words) {
  std::string bytes(8, 0);
  for (size_t i = 0; i < 4; ++i) bytes[4 + i] = static_cast<char>(words >> (8 * i));
  return bytes;
}

struct Attack {
  const char* name;
  std::string bytes;
  bool leaves;  // Whether the host closes its end after it.
};

class RawBytes : public testing::TestWithParam<Attack> {};

TEST_P(RawBytes, endTheConnectionAndNothingElse) {
  Bare bare;
  RawHost host(bare);
  host.say(GetParam().bytes);
  if (GetParam().leaves) host.sayNoMore();
  EXPECT_TRUE(host.isDropped());
  EXPECT_EQ(host.ended(), 0);
  expectUntouched(bare);
}

INSTANTIATE_TEST_SUITE_P(
    Attack, RawBytes,
    testing::Values(Attack{"garbage", garbage(4096, 1), false},
                    Attack{"oneByteOfGarbage", garbage(1, 2), true},
                    Attack{"muchGarbage", garbage(100'000, 3), false},
                    Attack{"aFrameOfGarbage", header(64) + garbage(512, 4), false},
                    Attack{"anEmptyMessage", header(0), false},
                    Attack{"aMessageOfTwoMebibytes", header((2u << 20) / 8), false},
                    Attack{"aMessageCutShort", header(10) + std::string(24, 0), true},
                    Attack{"aHeaderCutShort", header(10).substr(0, 5), true}),
    [](auto& each) { return std::string(each.param.name); });

// hello with so many words of data, and the last of them not zero.
std::string answerToHello(wire::Supervisor::Client supervisor, uint16_t words,
                          kj::WaitScope& wait) {
  auto call = supervisor.typelessRequest(capnp::typeId<wire::Supervisor>(), 0, nullptr);
  auto data = call.initAsAnyStruct(words, 0).getDataSection();
  data[8 * (words - 1u)] = wire::PROTOCOL_VERSION;
  data[0] = wire::PROTOCOL_VERSION;
  return call.send()
      .then([](auto&&) { return std::string("served"); },
            [](kj::Exception&& no) { return std::string(no.getDescription().cStr()); })
      .wait(wait);
}

TEST(RawHost, aFieldThatTheSchemaDoesNotHaveIsNamed) {
  Bare bare;
  RawHost host(bare);
  {
    Channel channel(*bare.io.lowLevelProvider, host.takeSocket());
    auto supervisor = channel.bootstrap().castAs<wire::Supervisor>();
    auto refused = answerToHello(supervisor, 2, bare.io.waitScope);
    EXPECT_NE(refused.find("unknown_field"), std::string::npos) << refused;
    EXPECT_EQ(answerToHello(supervisor, 1, bare.io.waitScope), "served");
  }
  EXPECT_EQ(host.ended(), 0);
  expectUntouched(bare);
}

}  // namespace
}  // namespace praefectus::tests
