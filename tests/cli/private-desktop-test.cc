// The private desktop: what it starts, what it needs, and above all that nothing of it stays.
#include "supervisor/cli/private-desktop.h"

#include <kj/debug.h>

#include <gtest/gtest.h>
#include <xcb/xcb.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus {
namespace {

std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool exists(const std::string& path) {
  struct stat file;
  return lstat(path.c_str(), &file) == 0;
}

// Every live process whose environment names the folder: they are the desktop's, whoever started
// them.
std::set<pid_t> processesOf(const std::string& folder) {
  std::set<pid_t> found;
  DIR* processes = opendir("/proc");
  while (dirent* entry = readdir(processes)) {
    pid_t pid = atoi(entry->d_name);
    std::string home = "HOME=" + folder + "/home";
    if (pid > 0 && contentOf("/proc/" + std::string(entry->d_name) + "/environ").find(home) !=
                       std::string::npos) {
      found.insert(pid);
    }
  }
  closedir(processes);
  return found;
}

// Whether a process ends within the time a test may take.
bool ends(pid_t pid) {
  int handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (handle < 0) return true;
  pollfd waiting{handle, POLLIN, 0};
  int n = poll(&waiting, 1, 20'000);
  close(handle);
  return n == 1;
}

// Looks again and again until `holds`, for at most 20 s: for facts that no descriptor announces.
template <typename Holds>
bool eventually(Holds&& holds) {
  for (int look = 0; look < 2'000; ++look) {
    if (holds()) return true;
    timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  return false;
}

PrivateDesktop::Program shell(PrivateDesktop& desktop, kj::StringPtr script) {
  return desktop.run({"sh"_kj, "-c"_kj, script});
}

std::string outputAtEnd(const PrivateDesktop::Program& program) {
  EXPECT_TRUE(ends(program.pid));
  return contentOf(program.output.cStr());
}

// Runs `act` in a child process and returns its exit code; the child leaves without any clean-up.
template <typename Act>
int inChild(Act&& act) {
  pid_t child = fork();
  if (child == 0) _exit(act());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(PrivateDesktop, aProgramFindsDisplayBusAndAccessibility) {
  PrivateDesktop desktop;
  EXPECT_TRUE(desktop.display().startsWith(":"));
  auto root = shell(desktop, "xprop -root _NET_SUPPORTING_WM_CHECK AT_SPI_BUS");
  auto seen = outputAtEnd(root);
  EXPECT_NE(seen.find("window id"), std::string::npos) << seen;
  EXPECT_NE(seen.find("unix:path="), std::string::npos) << seen;
  auto enabled = desktop.run({"dbus-send"_kj, "--print-reply"_kj, "--dest=org.a11y.Bus"_kj,
                              "/org/a11y/bus"_kj, "org.freedesktop.DBus.Properties.Get"_kj,
                              "string:org.a11y.Status"_kj, "string:IsEnabled"_kj});
  EXPECT_NE(outputAtEnd(enabled).find("boolean true"), std::string::npos);
}

TEST(PrivateDesktop, itsFolderAndFilesAreForTheOwnerAlone) {
  PrivateDesktop desktop;
  struct stat file;
  ASSERT_EQ(stat(desktop.folder().cStr(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0700u);
  auto program = shell(desktop, "echo x > \"$HOME/made\"");
  outputAtEnd(program);
  ASSERT_EQ(stat((std::string(desktop.folder().cStr()) + "/home/made").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

// Whether a process of user `user` gets a connection, with the authority file named to it or not.
bool reachesTheScreen(const PrivateDesktop& desktop, uid_t user, bool named) {
  constexpr int NO_OTHER_USER = 2;
  int outcome = inChild([&]() {
    if (user != geteuid() && setresuid(user, user, user) != 0) return NO_OTHER_USER;
    setenv("HOME", "/nonexistent", 1);
    unsetenv("XAUTHORITY");
    constexpr kj::StringPtr NAME = "XAUTHORITY="_kj;
    for (auto& variable : desktop.environment()) {
      if (!named || !variable.startsWith(NAME)) continue;
      setenv("XAUTHORITY", variable.slice(NAME.size()).cStr(), 1);
    }
    xcb_connection_t* connection = xcb_connect(desktop.display().cStr(), nullptr);
    int error = xcb_connection_has_error(connection);
    xcb_disconnect(connection);
    return error == 0 ? 1 : 0;
  });
  EXPECT_NE(outcome, NO_OTHER_USER);
  return outcome == 1;
}

TEST(PrivateDesktop, itsScreenIsClosedToWhoeverCannotReadItsAuthority) {
  PrivateDesktop desktop;
  EXPECT_TRUE(reachesTheScreen(desktop, geteuid(), true));
  EXPECT_FALSE(reachesTheScreen(desktop, geteuid(), false));
  auto authority = std::string(desktop.folder().cStr()) + "/run/xauthority";
  struct stat file;
  ASSERT_EQ(stat(authority.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST(PrivateDesktop, itsScreenIsClosedToOtherUsers) {
  constexpr uid_t NOBODY = 65'534;
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  PrivateDesktop desktop;
  EXPECT_FALSE(reachesTheScreen(desktop, NOBODY, true));
  EXPECT_FALSE(reachesTheScreen(desktop, NOBODY, false));
}

TEST(PrivateDesktop, programsInheritNeitherEnvironmentNorDescriptors) {
  setenv("PRAEFECTUS_SECRET", "do not pass on", 1);
  int leaky = open("/dev/null", O_RDONLY);  // No O_CLOEXEC, on purpose.
  ASSERT_GE(leaky, 3);
  PrivateDesktop desktop;
  auto environment = shell(desktop, "env; readlink /proc/self/fd/0; ls /proc/$$/fd");
  auto seen = outputAtEnd(environment);
  close(leaky);
  unsetenv("PRAEFECTUS_SECRET");
  EXPECT_EQ(seen.find("PRAEFECTUS_SECRET"), std::string::npos);
  EXPECT_NE(seen.find("/dev/null\n0\n1\n2\n"), std::string::npos) << seen;
}

TEST(PrivateDesktop, everythingHasGoneWhenItIsDestroyed) {
  std::string folder;
  std::set<pid_t> before;
  {
    PrivateDesktop desktop;
    folder = desktop.folder().cStr();
    // A stopped program, and one that has left its session and its parent.
    auto stopped = desktop.run({"sleep"_kj, "1000"_kj});
    kill(stopped.pid, SIGSTOP);
    auto left = shell(desktop, "setsid -f sleep 1001; setsid -f sh -c 'setsid -f sleep 1002'");
    EXPECT_TRUE(ends(left.pid));
    before = processesOf(folder);
    EXPECT_GE(before.size(), 7u);  // X, bus, manager, launcher, second bus, three sleepers
  }
  EXPECT_EQ(processesOf(folder), std::set<pid_t>());
  EXPECT_FALSE(exists(folder));
}

TEST(PrivateDesktop, theXServersSocketGoesWithIt) {
  std::string socket;
  {
    PrivateDesktop desktop;
    socket = "/tmp/.X11-unix/X" + std::string(desktop.display().cStr() + 1);
    EXPECT_TRUE(exists(socket));
  }
  EXPECT_FALSE(exists(socket));
}

TEST(PrivateDesktop, everythingHasGoneWhenItsOwnerIsKilled) {
  int line[2];
  ASSERT_EQ(pipe2(line, O_CLOEXEC), 0);
  pid_t owner = fork();
  if (owner == 0) {
    PrivateDesktop desktop;
    shell(desktop, "setsid -f sleep 1003");
    kj::FdOutputStream(line[1]).write(desktop.folder().begin(), desktop.folder().size());
    close(line[1]);
    for (;;) pause();
  }
  close(line[1]);
  char name[256];
  std::string folder;
  for (ssize_t n; (n = read(line[0], name, sizeof(name))) > 0;) folder.append(name, size_t(n));
  close(line[0]);
  ASSERT_FALSE(folder.empty());
  EXPECT_TRUE(eventually([&] { return processesOf(folder).size() >= 6; }));
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_TRUE(eventually([&] { return processesOf(folder).empty() && !exists(folder); }));
}

TEST(PrivateDesktop, endTakesTheWholeSessionOfAProgram) {
  PrivateDesktop desktop;
  auto other = desktop.run({"sleep"_kj, "1004"_kj});
  // Ignores SIGTERM, and so does its child: only SIGKILL helps.
  auto program = shell(desktop, "trap '' TERM; sleep 1005 & echo $!; wait");
  std::string child;
  ASSERT_TRUE(eventually([&] {
    child = contentOf(program.output.cStr());
    return !child.empty() && child.back() == '\n';
  }));
  desktop.end(program.pid);
  EXPECT_FALSE(exists("/proc/" + std::to_string(program.pid)));
  EXPECT_TRUE(ends(std::stoi(child)));
  EXPECT_EQ(kill(other.pid, 0), 0);
  desktop.end(program.pid);  // Gone already: nothing happens.
  EXPECT_EQ(kill(other.pid, 0), 0);
}

TEST(PrivateDesktop, endLeavesStrangersAlone) {
  PrivateDesktop desktop;
  pid_t stranger = fork();
  if (stranger == 0) {
    setsid();
    for (;;) pause();
  }
  desktop.end(stranger);
  desktop.end(1);
  EXPECT_EQ(waitpid(stranger, nullptr, WNOHANG), 0);
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
}

TEST(PrivateDesktop, twoDesktopsAreStrangersToEachOther) {
  PrivateDesktop first, second;
  EXPECT_NE(first.display(), second.display());
  EXPECT_NE(first.folder(), second.folder());
}

TEST(PrivateDesktop, withoutAccessibilityNoApplicationCanStartIt) {
  PrivateDesktop::Options options;
  options.accessibility = false;
  PrivateDesktop desktop(options);
  auto asked = desktop.run({"dbus-send"_kj, "--print-reply"_kj, "--dest=org.a11y.Bus"_kj,
                            "/org/a11y/bus"_kj, "org.a11y.Bus.GetAddress"_kj});
  EXPECT_NE(outputAtEnd(asked).find("ServiceUnknown"), std::string::npos);
}

TEST(PrivateDesktop, aProgramThatIsNotThereIsNamed) {
  PrivateDesktop desktop;
  auto problem = kj::runCatchingExceptions([&] { desktop.run({"no-such-program"_kj}); });
  KJ_IF_MAYBE (e, problem) {
    EXPECT_STREQ(e->getDescription().cStr(), "no-such-program is missing");
  } else {
    FAIL() << "it was started";
  }
}

TEST(PrivateDesktop, aMissingServerIsNamedWithItsPackage) {
  constexpr int NO_NAMESPACE = 42, RIGHT = 0, WRONG = 1;
  int outcome = inChild([] {
    // A mount namespace of our own, in which the X server is an empty file.
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("/dev/null", "/usr/bin/Xvfb", nullptr, MS_BIND, nullptr) != 0) {
      return NO_NAMESPACE;
    }
    auto problem = kj::runCatchingExceptions([] { PrivateDesktop desktop; });
    KJ_IF_MAYBE (e, problem) {
      return e->getDescription() == "Xvfb is missing: install xvfb" ? RIGHT : WRONG;
    }
    return WRONG;
  });
  if (outcome == NO_NAMESPACE) GTEST_SKIP() << "no mount namespace to be had here";
  EXPECT_EQ(outcome, RIGHT);
}

TEST(PrivateDesktop, aServerThatDiesAtItsStartLeavesNothing) {
  char parent[] = "/tmp/praefectus-test-XXXXXX";
  ASSERT_NE(mkdtemp(parent), nullptr);
  setenv("TMPDIR", parent, 1);
  PrivateDesktop::Options impossible;
  impossible.width = 0;
  auto problem = kj::runCatchingExceptions([&] { PrivateDesktop desktop(impossible); });
  unsetenv("TMPDIR");
  KJ_IF_MAYBE (e, problem) {
    EXPECT_TRUE(e->getDescription().startsWith("Xvfb did not come up: "))
        << e->getDescription().cStr();
  } else {
    ADD_FAILURE() << "a screen without width came up";
  }
  EXPECT_EQ(rmdir(parent), 0) << "something is left in it";
}

}  // namespace
}  // namespace praefectus
