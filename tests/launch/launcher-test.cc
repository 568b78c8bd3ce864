#include "supervisor/launch/launcher.h"

#include "attest/publisher-key.h"
#include "supervisor/launch/packet.h"
#include "supervisor/launch/pidfd.h"

#include <kj/async-io.h>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::launch {
namespace {

constexpr auto LONG = 60 * kj::SECONDS;
constexpr int LONG_MS = 60'000;

// A folder of its own, gone with the test.
class Folder {
 public:
  Folder() {
    char pattern[] = "/tmp/praefectus-launch-XXXXXX";
    KJ_ASSERT(mkdtemp(pattern) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return path + "/" + name; }

 private:
  std::string path;
};

// A publisher and what it signs.
class Publisher {
 public:
  Publisher() : key(attest::SigningKey::generate()) {
    ring.add(attest::Purpose::PUBLISHER, "publisher", attest::keyIdOf(key.publicKey()),
             key.publicKey());
  }

  // Attests the bytes as a helper of that role, by way of a signed file.
  kj::Own<attest::Image> image(const std::string& bytes, Role role = Role::DESKTOP) {
    auto path = folder / "helper";
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    attest::Manifest manifest;
    manifest.issuer = kj::str("publisher");
    manifest.keyId = attest::keyIdOf(key.publicKey());
    manifest.name = kj::str("probe");
    manifest.release = kj::str("1");
    manifest.role = role;
    manifest.platform = kj::str(attest::platform());
    manifest.protocol = wire::PROTOCOL_VERSION;
    manifest.digest = attest::digestOf(kj::StringPtr(bytes.data(), bytes.size()).asBytes());
    manifest.size = bytes.size();
    auto file = attest::envelopeBytes(attest::seal(manifest, key));
    std::ofstream(path + ".manifest", std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(file.begin()), static_cast<ssize_t>(file.size()));
    auto image = attest::Image::attest(ring, role, path.c_str());
    KJ_ASSERT(image.ok(), image.refusal().detail);
    return kj::mv(*image);
  }

  std::string path() { return folder / "helper"; }

 private:
  Folder folder;
  attest::SigningKey key;
  attest::KeyRing ring;
};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

std::string probeBytes() { return contents(PRAEFECTUS_BIN "/launch-probe"); }

kj::Array<RoleEntry> desktopTable(std::vector<std::string> environment = {}) {
  auto variables = kj::heapArrayBuilder<kj::String>(environment.size());
  for (auto& variable : environment) variables.add(kj::str(variable.c_str()));
  auto table = kj::heapArrayBuilder<RoleEntry>(1);
  table.add(RoleEntry{Role::DESKTOP, variables.finish()});
  return table.finish();
}

// None when the process may not be looked into.
size_t descriptorsOf(const std::string& pid) {
  size_t count = 0;
  std::error_code denied;
  for (auto& entry : std::filesystem::directory_iterator("/proc/" + pid + "/fd", denied)) {
    (void)entry;
    ++count;
  }
  return count;
}

// Every child of the process, zombies included.
std::vector<pid_t> childrenOf(uint32_t parent) {
  std::vector<pid_t> found;
  for (auto& entry : std::filesystem::directory_iterator("/proc")) {
    auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    auto stat = contents("/proc/" + name + "/stat");
    auto close = stat.rfind(')');
    if (close == std::string::npos) continue;
    std::istringstream rest(stat.substr(close + 1));
    char state;
    uint32_t ppid = 0;
    rest >> state >> ppid;
    if (ppid == parent) found.push_back(std::stoi(name));
  }
  return found;
}

// A process that can be asked whether it is gone, whatever its number means by then.
class Watched {
 public:
  explicit Watched(uint32_t pid) : fd(openPidfd(static_cast<pid_t>(pid))) {
    KJ_ASSERT(fd.get() >= 0, "no such process");
  }
  bool goneWithin(int milliseconds) { return launch::goneWithin(fd, milliseconds); }
  bool ends() { return goneWithin(LONG_MS); }

 private:
  kj::AutoCloseFd fd;
};

struct Pair {
  kj::AutoCloseFd ours, theirs;
};

Pair socketPair(int type = SOCK_STREAM) {
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends));
  return {kj::AutoCloseFd(ends[0]), kj::AutoCloseFd(ends[1])};
}

// What a probe said about itself, line by line.
using Said = std::multimap<std::string, std::string>;

Said listen(int socket) {
  std::string text;
  while (text.size() < 5 || text.substr(text.size() - 5) != "\nend\n") {
    pollfd wait{socket, POLLIN, 0};
    KJ_ASSERT(poll(&wait, 1, LONG_MS) == 1, "the probe said nothing");
    char piece[4096];
    ssize_t n;
    KJ_SYSCALL(n = ::read(socket, piece, sizeof(piece)));
    KJ_ASSERT(n > 0, "the probe ended");
    text.append(piece, static_cast<size_t>(n));
  }
  Said said;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto equals = line.find('=');
    if (equals != std::string::npos) said.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return said;
}

std::vector<std::string> all(const Said& said, const std::string& key) {
  std::vector<std::string> values;
  for (auto [at, end] = said.equal_range(key); at != end; ++at) values.push_back(at->second);
  return values;
}

using Strings = std::vector<std::string>;

// The supervisor's side: forked before the event loop exists, as main does it.
class Station {
 public:
  explicit Station(kj::Array<RoleEntry> table = desktopTable())
      : socket(Launcher::fork(table, pid)),
        io(kj::setupAsyncIo()),
        launcher(Launcher::attach(io.unixEventPort, io.provider->getTimer(), kj::mv(socket), pid)) {
  }

  struct Probe {
    kj::Own<Child> child;
    kj::AutoCloseFd socket;
    Said said;
  };

  Probe startProbe(const attest::Image& image, uint64_t generation = 1) {
    auto pair = socketPair();
    auto started = wait(launcher->start(image, generation, kj::mv(pair.theirs)));
    KJ_ASSERT(started.ok(), started.refusal().detail);
    auto said = listen(pair.ours);
    return {kj::mv(*started), kj::mv(pair.ours), std::move(said)};
  }

  Result<kj::Own<Child>> tryStart(const attest::Image& image) {
    return wait(launcher->start(image, 1, socketPair().theirs));
  }

  template <typename T>
  T wait(kj::Promise<T> promise) {
    return io.provider->getTimer().timeoutAfter(LONG, kj::mv(promise)).wait(io.waitScope);
  }

  uint32_t pid = 0;

 private:
  kj::AutoCloseFd socket;

 public:
  kj::AsyncIoContext io;
  kj::Own<Launcher> launcher;
};

void expectRefused(const Result<kj::Own<Child>>& result) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.refusal().code, RefusalCode::SERVICE_UNAVAILABLE);
}

class LauncherTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { attest::initialize(); }
  ~LauncherTest() noexcept override {}
  Publisher publisher;
};

TEST_F(LauncherTest, aChildHasFourDescriptorsAndNoOther) {
  // Inherited by every fork, and not marked for exec: what a careless library would leave behind.
  std::vector<kj::AutoCloseFd> leaks;
  for (int number : {5, 9, 17, 40, 200}) {
    int fd;
    KJ_SYSCALL(fd = dup2(STDIN_FILENO, number));
    leaks.emplace_back(fd);
  }
  Station station;
  auto image = publisher.image(probeBytes());
  for (int i = 0; i < 3; ++i) {
    auto probe = station.startProbe(*image);
    EXPECT_EQ(all(probe.said, "fd"),
              (Strings{"0 /dev/null", "1 /dev/null", "2 /dev/null", "3 socket"}));
  }
}

TEST_F(LauncherTest, aChildsEnvironmentIsTheTablesAndNothingElse) {
  setenv("LD_PRELOAD_OF_A_STRANGER", "1", 1);
  Station station(desktopTable({"DISPLAY=:7", "LANG=C.UTF-8"}));
  auto image = publisher.image(probeBytes());
  auto probe = station.startProbe(*image);
  EXPECT_EQ(all(probe.said, "env"), (Strings{"DISPLAY=:7", "LANG=C.UTF-8"}));
  unsetenv("LD_PRELOAD_OF_A_STRANGER");
}

TEST_F(LauncherTest, aChildIsToldItsRoleAndGenerationAndNoMore) {
  Station station;
  auto image = publisher.image(probeBytes());
  auto probe = station.startProbe(*image, 18446744073709551615u);
  EXPECT_EQ(all(probe.said, "arg"),
            (Strings{"probe", "--role", "desktop", "--generation", "18446744073709551615"}));
}

TEST_F(LauncherTest, aChildStartsWithDefaultSignalsAndAnEmptyMask) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  {
    Station station;
    auto image = publisher.image(probeBytes());
    auto probe = station.startProbe(*image);
    EXPECT_EQ(all(probe.said, "SigBlk"), Strings{"0000000000000000"});
    EXPECT_EQ(all(probe.said, "SigIgn"), Strings{"0000000000000000"});
    EXPECT_EQ(all(probe.said, "SigCgt"), Strings{"0000000000000000"});
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  signal(SIGTERM, SIG_DFL);
}

TEST_F(LauncherTest, aChildIsASessionOfItsOwnThatCanGainNothing) {
  Station station;
  auto image = publisher.image(probeBytes());
  auto probe = station.startProbe(*image);
  EXPECT_EQ(all(probe.said, "pid"), Strings{std::to_string(probe.child->pid())});
  EXPECT_EQ(all(probe.said, "parent"), Strings{std::to_string(station.pid)});
  EXPECT_EQ(all(probe.said, "session"), Strings{"own"});
  EXPECT_EQ(all(probe.said, "group"), Strings{"own"});
  EXPECT_EQ(all(probe.said, "NoNewPrivs"), Strings{"1"});
  EXPECT_EQ(all(probe.said, "core"), Strings{"0 0"});
  EXPECT_EQ(all(probe.said, "cwd"), Strings{"/"});
  EXPECT_EQ(all(probe.said, "deathsig"), Strings{std::to_string(SIGKILL)});
  EXPECT_EQ(all(probe.said, "umask"), Strings{std::to_string(077)});
}

TEST_F(LauncherTest, theLauncherKeepsOneSocketAndNoRights) {
  Station station;
  auto image = publisher.image(probeBytes());
  auto probe = station.startProbe(*image);
  auto process = "/proc/" + std::to_string(station.pid);
  EXPECT_EQ(contents(process + "/comm"), "pf-launcher\n");
  EXPECT_NE(contents(process + "/status").find("NoNewPrivs:\t1\n"), std::string::npos);
  EXPECT_NE(contents(process + "/status").find("Threads:\t1\n"), std::string::npos);
  EXPECT_NE(contents(process + "/limits").find("Max core file size        0 "), std::string::npos);
  // Three times /dev/null, its socket, the supervisor's pidfd, the child's pidfd. Not dumpable, so
  // only root can look.
  EXPECT_EQ(descriptorsOf(std::to_string(station.pid)), geteuid() == 0 ? 6u : 0u);
}

TEST_F(LauncherTest, anImageThatCannotBeExecutedIsRefusedAndLeavesNoProcess) {
  Station station;
  auto script = std::string("#!/bin/sh\necho ran > /tmp/praefectus-launch-must-not-exist\n");
  for (auto& bytes : {std::string("no program at all"), script, probeBytes().substr(0, 40)}) {
    auto garbage = publisher.image(bytes);
    expectRefused(station.tryStart(*garbage));
    EXPECT_TRUE(childrenOf(station.pid).empty());
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/praefectus-launch-must-not-exist"));
  // And the launcher goes on.
  auto image = publisher.image(probeBytes());
  station.startProbe(*image);
}

TEST_F(LauncherTest, aRoleThatTheTableLacksIsRefused) {
  Station station;
  auto image = publisher.image(probeBytes(), Role::PRESENTER);
  expectRefused(station.tryStart(*image));
  EXPECT_TRUE(childrenOf(station.pid).empty());
}

// The launcher does not take the supervisor's word for it: bytes that could still change do not
// run.
TEST_F(LauncherTest, memoryThatIsNotSealedIsNeverExecuted) {
  uint32_t pid = 0;
  auto table = desktopTable();
  auto control = Launcher::fork(table, pid);
  auto bytes = probeBytes();
  int fd;
  KJ_SYSCALL(fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  kj::AutoCloseFd memory(fd);
  kj::FdOutputStream(memory.get()).write(bytes.data(), bytes.size());
  auto pair = socketPair();
  Request request;
  request.deadline = std::numeric_limits<int64_t>::max();
  sendPacket(control, bytesOfPacket(request), {memory.get(), pair.theirs.get()});

  pollfd wait{control, POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, LONG_MS), 1);
  Report report;
  kj::Vector<kj::AutoCloseFd> none;
  ASSERT_EQ(receivePacket(control, kj::arrayPtr(&report, 1).asBytes(), none), Received::PACKET);
  EXPECT_EQ(report.tiding, Tiding::REFUSED);
  control = nullptr;
  KJ_SYSCALL(waitpid(static_cast<pid_t>(pid), nullptr, 0));
}

TEST_F(LauncherTest, anImageChangedAfterHashingIsNeverExecuted) {
  Station station;
  auto image = publisher.image(probeBytes());
  std::ofstream(publisher.path(), std::ios::binary | std::ios::trunc) << "something else";
  auto probe = station.startProbe(*image);
  auto running = contents("/proc/" + std::to_string(probe.child->pid()) + "/exe");
  EXPECT_TRUE(attest::same(
      attest::digestOf(kj::StringPtr(running.data(), running.size()).asBytes()), image->digest()));
  EXPECT_EQ(running, probeBytes());
}

TEST_F(LauncherTest, howAChildEndedIsReported) {
  Station station;
  auto image = publisher.image(probeBytes());
  {
    auto probe = station.startProbe(*image);
    KJ_SYSCALL(::write(probe.socket, "x", 1));
    auto exit = station.wait(probe.child->onExit());
    EXPECT_EQ(exit.code, 7);
    EXPECT_FALSE(exit.signalled);
    // Asked again, and told to kill what is gone: both harmless.
    probe.child->kill();
    EXPECT_EQ(station.wait(probe.child->onExit()).code, 7);
  }
  auto probe = station.startProbe(*image);
  probe.child->kill();
  auto exit = station.wait(probe.child->onExit());
  EXPECT_EQ(exit.code, SIGKILL);
  EXPECT_TRUE(exit.signalled);
  EXPECT_TRUE(childrenOf(station.pid).empty());
}

// A supervisor that ignores SIGCHLD would have its children reaped by the kernel, and their ends
// lost.
TEST_F(LauncherTest, theLauncherReapsWhateverTheSupervisorDoesWithItsSignals) {
  signal(SIGCHLD, SIG_IGN);
  Station station;
  signal(SIGCHLD, SIG_DFL);
  auto image = publisher.image(probeBytes());
  auto probe = station.startProbe(*image);
  KJ_SYSCALL(::write(probe.socket, "x", 1));
  EXPECT_EQ(station.wait(probe.child->onExit()).code, 7);
}

TEST_F(LauncherTest, aChildThatIsLetGoIsKilled) {
  Station station;
  auto image = publisher.image(probeBytes());
  auto probe = station.startProbe(*image);
  Watched process(probe.child->pid());
  EXPECT_FALSE(process.goneWithin(0));
  probe.child = nullptr;
  EXPECT_TRUE(process.ends());
}

TEST_F(LauncherTest, aStartNobodyWaitsForLeavesNoProcess) {
  Station station;
  auto image = publisher.image(probeBytes());
  { auto abandoned = station.launcher->start(*image, 1, socketPair().theirs); }
  // Requests are served in order: when this one runs, the other was started and let go.
  auto probe = station.startProbe(*image);
  auto remaining = childrenOf(station.pid);
  for (auto pid : remaining) {
    if (static_cast<uint32_t>(pid) == probe.child->pid()) continue;
    EXPECT_TRUE(Watched(static_cast<uint32_t>(pid)).ends());
  }
}

TEST_F(LauncherTest, theLaunchersDeathEndsItsChildrenAndIsARefusal) {
  Station station;
  auto image = publisher.image(probeBytes());
  auto first = station.startProbe(*image);
  auto second = station.startProbe(*image);
  Watched one(first.child->pid()), other(second.child->pid());
  KJ_SYSCALL(kill(static_cast<pid_t>(station.pid), SIGKILL));
  EXPECT_TRUE(station.wait(first.child->onExit()).signalled);
  EXPECT_TRUE(station.wait(second.child->onExit()).signalled);
  EXPECT_TRUE(one.ends());
  EXPECT_TRUE(other.ends());
  expectRefused(station.tryStart(*image));
}

TEST_F(LauncherTest, aLauncherThatDiesWhileStartingIsARefusal) {
  Station station;
  auto image = publisher.image(probeBytes());
  KJ_SYSCALL(kill(static_cast<pid_t>(station.pid), SIGSTOP));
  auto starting = station.launcher->start(*image, 1, socketPair().theirs);
  KJ_SYSCALL(kill(static_cast<pid_t>(station.pid), SIGKILL));
  expectRefused(station.wait(kj::mv(starting)));
}

TEST_F(LauncherTest, aLauncherThatDoesNotAnswerIsARefusalAndStartsNothingLater) {
  Station station;
  auto image = publisher.image(probeBytes());
  KJ_SYSCALL(kill(static_cast<pid_t>(station.pid), SIGSTOP));
  auto late = socketPair();
  expectRefused(station.wait(station.launcher->start(*image, 1, kj::mv(late.theirs))));
  KJ_SYSCALL(kill(static_cast<pid_t>(station.pid), SIGCONT));
  auto probe = station.startProbe(*image);
  EXPECT_EQ(childrenOf(station.pid), std::vector<pid_t>{static_cast<pid_t>(probe.child->pid())});
  // The late one was never executed: its socket closed without a word.
  char byte;
  EXPECT_EQ(::read(late.ours, &byte, 1), 0);
}

TEST_F(LauncherTest, theSupervisorsDeathEndsLauncherAndChildren) {
  int tell[2];
  KJ_SYSCALL(pipe2(tell, O_CLOEXEC));
  kj::AutoCloseFd hear(tell[0]), say(tell[1]);
  auto image = publisher.image(probeBytes());
  pid_t supervisor;
  KJ_SYSCALL(supervisor = fork());
  if (supervisor == 0) {
    Station station;
    auto probe = station.startProbe(*image);
    uint32_t pids[] = {station.pid, probe.child->pid()};
    KJ_SYSCALL(::write(say, pids, sizeof(pids)));
    for (;;) pause();
  }
  uint32_t pids[2];
  ssize_t n;
  KJ_SYSCALL(n = ::read(hear, pids, sizeof(pids)));
  ASSERT_EQ(n, static_cast<ssize_t>(sizeof(pids)));
  Watched launcher(pids[0]), child(pids[1]);
  KJ_SYSCALL(kill(supervisor, SIGKILL));
  KJ_SYSCALL(waitpid(supervisor, nullptr, 0));
  EXPECT_TRUE(child.ends());
  EXPECT_TRUE(launcher.ends());
}

// Somebody else may hold a copy of the supervisor's socket; the launcher watches the process too.
TEST_F(LauncherTest, theSupervisorsDeathIsSeenThoughItsSocketStaysOpen) {
  auto pass = socketPair(SOCK_SEQPACKET);
  pid_t supervisor;
  KJ_SYSCALL(supervisor = fork());
  if (supervisor == 0) {
    auto table = desktopTable();
    Request carrier;
    uint32_t pid = 0;
    auto socket = Launcher::fork(table, pid);
    carrier.ticket = pid;
    sendPacket(pass.theirs, bytesOfPacket(carrier), {socket.get()});
    for (;;) pause();
  }
  Request carrier;
  kj::Vector<kj::AutoCloseFd> copies;
  ASSERT_EQ(receivePacket(pass.ours, kj::arrayPtr(&carrier, 1).asBytes(), copies),
            Received::PACKET);
  ASSERT_EQ(copies.size(), 1u);
  Watched launcher(static_cast<uint32_t>(carrier.ticket));
  KJ_SYSCALL(kill(supervisor, SIGKILL));
  KJ_SYSCALL(waitpid(supervisor, nullptr, 0));
  EXPECT_TRUE(launcher.ends());
}

TEST_F(LauncherTest, anEndedStationLeavesNoProcess) {
  // What the launcher did not reap would come to us.
  KJ_SYSCALL(prctl(PR_SET_CHILD_SUBREAPER, 1));
  auto image = publisher.image(probeBytes());
  auto station = kj::heap<Station>();
  auto probe = station->startProbe(*image);
  Watched launcher(station->pid), child(probe.child->pid());
  station->launcher = nullptr;
  EXPECT_TRUE(launcher.goneWithin(0));
  EXPECT_TRUE(child.ends());
  EXPECT_TRUE(station->wait(probe.child->onExit()).signalled);
  EXPECT_TRUE(childrenOf(static_cast<uint32_t>(getpid())).empty());
  KJ_SYSCALL(prctl(PR_SET_CHILD_SUBREAPER, 0));
}

TEST_F(LauncherTest, twoHundredStartsLeaveNothingBehind) {
  Station station;
  auto image = publisher.image(probeBytes());
  auto launcher = std::to_string(station.pid);
  auto once = [&]() {
    auto probe = station.startProbe(*image);
    probe.child->kill();
    station.wait(probe.child->onExit());
  };
  once();
  size_t oursBefore = descriptorsOf("self"), theirsBefore = descriptorsOf(launcher);
  for (int i = 0; i < 200; ++i) once();
  EXPECT_EQ(descriptorsOf("self"), oursBefore);
  EXPECT_EQ(descriptorsOf(launcher), theirsBefore);
  EXPECT_TRUE(childrenOf(station.pid).empty());
}

TEST_F(LauncherTest, childrenBeyondTheBoundAreRefused) {
  Station station;
  auto image = publisher.image(probeBytes());
  std::vector<Station::Probe> probes;
  for (size_t i = 0; i < CHILDREN; ++i) probes.push_back(station.startProbe(*image));
  expectRefused(station.tryStart(*image));
  probes.pop_back();
  // Room again as soon as the launcher has reaped the one that was let go.
  while (childrenOf(station.pid).size() == CHILDREN) sched_yield();
  probes.push_back(station.startProbe(*image));
}

// From the build to the process: signed by CMake, checked with the key that is compiled in.
TEST_F(LauncherTest, aHelperAsBuiltIsAttestedAndRuns) {
  attest::KeyRing ring;
  attest::PublicKey key;
  memcpy(key.data(), attest::PUBLISHER_KEY, key.size());
  ring.add(attest::Purpose::PUBLISHER, attest::PUBLISHER_ISSUER, attest::PUBLISHER_KEY_ID, key);
  auto image = attest::Image::attest(ring, Role::DESKTOP, PRAEFECTUS_BIN "/launch-probe");
  ASSERT_TRUE(image.ok()) << image.refusal().detail.cStr();
  EXPECT_EQ((*image)->manifest().name, "launch-probe");
  EXPECT_EQ((*image)->manifest().release, PRAEFECTUS_RELEASE);
  Station station;
  auto probe = station.startProbe(**image);
  EXPECT_EQ(all(probe.said, "arg").front(), "launch-probe");
}

TEST_F(LauncherTest, aMalformedRequestEndsTheLauncher) {
  Request wrongMark, unterminated, noDescriptors;
  wrongMark.mark = 0;
  memset(unterminated.name, 'a', sizeof(unterminated.name));
  for (auto request : {wrongMark, unterminated, noDescriptors}) {
    uint32_t pid = 0;
    auto table = desktopTable();
    auto socket = Launcher::fork(table, pid);
    Watched launcher(pid);
    bool bare = request.mark == REQUEST_MARK && request.name[0] == '\0';
    int fd = socket.get();
    if (bare) {
      sendPacket(socket, bytesOfPacket(request), {});
    } else {
      sendPacket(socket, bytesOfPacket(request), {fd, fd});
    }
    EXPECT_TRUE(launcher.ends());
    KJ_SYSCALL(waitpid(static_cast<pid_t>(pid), nullptr, 0));
  }
}

TEST_F(LauncherTest, aMalformedReportIsTheEndOfTheLauncher) {
  auto pair = socketPair(SOCK_SEQPACKET | SOCK_NONBLOCK);
  pid_t impostor;
  KJ_SYSCALL(impostor = fork());
  if (impostor == 0) {
    for (;;) pause();
  }
  Watched process(static_cast<uint32_t>(impostor));
  auto image = publisher.image(probeBytes());
  auto io = kj::setupAsyncIo();
  auto& timer = io.provider->getTimer();
  auto launcher =
      Launcher::attach(io.unixEventPort, timer, kj::mv(pair.ours), static_cast<uint32_t>(impostor));
  auto starting = launcher->start(*image, 1, socketPair().theirs);
  Report claimsWithoutProof;
  claimsWithoutProof.tiding = Tiding::STARTED;
  claimsWithoutProof.ticket = 1;
  sendPacket(pair.theirs, bytesOfPacket(claimsWithoutProof), {});
  expectRefused(timer.timeoutAfter(LONG, kj::mv(starting)).wait(io.waitScope));
  EXPECT_TRUE(process.ends());
}

}  // namespace
}  // namespace praefectus::launch
