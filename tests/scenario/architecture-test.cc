// The shape of the tree, read from the tree: who may include whom, which package lives in which
// room, what the shipped executables link. The rules are tables; each row brings a sample that
// breaks it, so that a rule which has stopped seeing anything is itself a failing test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace praefectus {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string_view>;

struct Source {
  std::string path;  // From the root, with slashes.
  std::string text;
};

// ---- the tables
// ------------------------------------------------------------------------------------

// What the files of a room may include of ours. The first room whose `path` begins a file's path is
// the file's; `never` wins over `may`. All are prefixes.
struct Room {
  std::string_view path;
  Texts may;
  Texts never;
  std::string_view broken;  // An include that the room must not have.
};

const std::vector<Room> ROOMS = {
    {"ipc/", {"ipc/"}, {}, "attest/digest.h"},
    // Another protocol's requests, made of and mapped to what we see and do.
    {"attest/v2/",
     {"attest/", "ipc/schema/", "ipc/words.h", "ipc/action.h", "ipc/desktop.h", "ipc/bounds.h"},
     {"ipc/schema/host.", "ipc/schema/helper."},
     "ipc/channel.h"},
    // What is proven needs the words and the canonical form, never a channel.
    {"attest/",
     {"attest/", "ipc/schema/", "ipc/words.h", "ipc/action.h", "ipc/canonical.h", "ipc/strict.h",
      "ipc/bounds.h"},
     {"attest/v2/", "ipc/schema/host.", "ipc/schema/helper."},
     "ipc/channel.h"},
    {"supervisor/task/",
     {"supervisor/task/", "ipc/schema/", "ipc/words.h", "ipc/action.h", "ipc/bounds.h"},
     {},
     "supervisor/ledger/ledger.h"},
    {"supervisor/ledger/",
     {"supervisor/ledger/", "supervisor/task/", "attest/", "ipc/"},
     {"ipc/channel.h", "ipc/driver.h", "ipc/helper-server.h"},
     "supervisor/launch/launcher.h"},
    {"supervisor/launch/",
     {"supervisor/launch/", "attest/", "ipc/"},
     {"ipc/channel.h", "ipc/driver.h", "ipc/helper-server.h"},
     "supervisor/ledger/ledger.h"},
    {"supervisor/client/",
     {"supervisor/client/", "attest/", "ipc/"},
     {},
     "supervisor/supervisor.h"},
    // The command line reads a ledger off line and cares for one at rest; it never records in one.
    {"supervisor/cli/",
     {"supervisor/cli/", "supervisor/client/", "supervisor/ledger/reader.h",
      "supervisor/ledger/upkeep.h", "attest/", "ipc/"},
     {},
     "supervisor/ledger/ledger.h"},
    {"supervisor/",
     {"supervisor/", "attest/", "ipc/"},
     {"supervisor/client/", "supervisor/cli/"},
     "helper-linux/driver.h"},
    {"helper-linux/", {"helper-linux/", "ipc/", "attest/digest.h"}, {}, "attest/keyring.h"},
    {"helper-macos/", {"helper-macos/", "ipc/", "attest/digest.h"}, {}, "supervisor/judge.h"},
    {"helper-windows/",
     {"helper-windows/", "ipc/", "attest/digest.h"},
     {},
     "helper-linux/driver.h"},
    {"tests/", {"tests/", "ipc/", "attest/", "supervisor/", "helper-"}, {}, "elsewhere/thing.h"},
};

// One package, one room.
struct Package {
  std::string_view name;
  Texts headers;  // Prefixes of what stands between the angle brackets.
  Texts homes;    // Prefixes of paths.
};

const std::vector<Package> PACKAGES = {
    {"SQLite", {"sqlite3"}, {"supervisor/ledger/", "tests/"}},
    {"Boost", {"boost/"}, {"supervisor/launch/spawn-linux.cc"}},
    {"libsodium", {"sodium"}, {"attest/"}},
    {"GoogleTest", {"gtest/", "gmock/"}, {"tests/"}},
    {"D-Bus", {"dbus/"}, {"helper-linux/", "supervisor/cli/", "tests/"}},
    {"X11", {"xcb/", "X11/"}, {"helper-linux/", "supervisor/cli/", "tests/"}},
    {"JSON", {"nlohmann/"}, {"attest/v2/json.cc", "supervisor/cli/", "tests/"}},
    {"GTK", {"gtk/", "gdk/", "glib", "gio/", "atk/"}, {"helper-linux/probe/", "tests/"}},
    {"libatspi", {"atspi/"}, {"tests/"}},
    {"PNG", {"png.h", "zlib.h"}, {"helper-linux/", "supervisor/cli/", "tests/"}},
    {"Cap'n Proto's RPC",
     {"capnp/rpc", "capnp/ez-rpc", "capnp/serialize-async"},
     {"ipc/", "supervisor/host-port", "supervisor/dispatch", "supervisor/client/", "tests/"}},
    {"Linux itself",
     {"linux/", "sys/prctl.h", "sys/epoll.h", "sys/eventfd.h", "sys/signalfd.h", "sys/syscall.h",
      "sys/mman.h", "sys/random.h"},
     {"helper-linux/", "tests/", "*-linux.cc"}},
};

// What no line of certain files may say.
struct Ban {
  std::string_view promise;
  std::string_view endings;  // Of paths, separated by blanks; empty: every file.
  std::regex line;
  Source broken;
};

// Put together here so that this file does not break its own rule.
const std::string WORK_PLACE = std::string("/wo") + "rk/";
const std::string SHARED_FOLDER = std::string("../") + "shared";

const std::vector<Ban> BANS = {
    {"no file knows where it was written",
     "",
     std::regex(WORK_PLACE + "|" + SHARED_FOLDER),
     {"README.md", "see " + SHARED_FOLDER + "/design.md"}},
    {"a header opens no namespace for its readers",
     ".h",
     std::regex(R"(^\s*using\s+namespace\b)"),
     {"ipc/sample.h", "using namespace kj;"}},
    {"the platform is chosen by CMake, not by the preprocessor",
     ".h .cc",
     std::regex(R"(^\s*#\s*(if|ifdef|ifndef|elif)\b.*(__linux__|__APPLE__|_WIN32|__unix__))"),
     {"ipc/sample.cc", "#ifdef __linux__"}},
    {"there is one way of guarding a header",
     ".h",
     std::regex(R"(^\s*#\s*ifndef\s+\w+_H_?\b)"),
     {"ipc/sample.h", "#ifndef PRAEFECTUS_SAMPLE_H_"}},
    {"thing names say what a thing is",
     ".h",
     std::regex(R"(^\s*(class|struct)\s+\w*(Manager|Util|Utils|Impl|Base)\b)"),
     {"ipc/sample.h", "class ChannelManager {"}},
    {"types are TitleCase",
     ".h .cc",
     std::regex(R"(^\s*(class|struct|enum class)\s+[a-z]\w*\s*(:[^:].*)?\{)"),
     {"ipc/sample.cc", "struct channel {"}},
};

const std::set<std::string> TOP_LEVEL = {
    "CMakeLists.txt",
    "supervisor",
    "helper-macos",
    "helper-windows",
    "helper-linux",
    "ipc",
    "attest",
    "tests",
    "README.md",
    "CMakePresets.json",
    ".clang-format",
    ".clang-tidy",
    ".gitignore",
    ".ci",
    ".github",
    "LICENSE",
    "dev",
    ".git",
};

// Libraries by which a process reaches a desktop.
const std::regex DESKTOP_LIBRARY(
    R"(lib(X11|xcb|Xau|dbus|wayland|gtk|gdk|atk|atspi|glib|gio)[-.\w]*\.so)");

// ---- judging one file
// ------------------------------------------------------------------------------

bool beginsWithAny(std::string_view text, const Texts& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool isCode(std::string_view path) { return path.ends_with(".h") || path.ends_with(".cc"); }

template <typename See>
void forEachLine(const Source& source, See&& see) {
  size_t number = 1;
  for (size_t from = 0; from < source.text.size(); ++number) {
    size_t end = std::min(source.text.find('\n', from), source.text.size());
    see(number, source.text.substr(from, end - from));
    from = end + 1;
  }
}

struct Include {
  size_t line;
  std::string name;
  bool ours;  // "in quotes"
};

std::vector<Include> includesOf(const Source& source) {
  static const std::regex INCLUDE(R"re(^\s*#\s*include\s*(["<])([^">]+)[">].*)re");
  std::vector<Include> found;
  forEachLine(source, [&](size_t number, const std::string& line) {
    std::smatch match;
    if (std::regex_match(line, match, INCLUDE)) {
      found.push_back({number, match[2].str(), match[1].str() == "\""});
    }
  });
  return found;
}

std::string at(const Source& source, size_t line) {
  return source.path + ":" + std::to_string(line) + ": ";
}

std::vector<std::string> wrongDirections(const Source& source) {
  std::vector<std::string> found;
  auto room = std::find_if(ROOMS.begin(), ROOMS.end(), [&](const Room& candidate) {
    return source.path.starts_with(candidate.path);
  });
  if (room == ROOMS.end()) return {source.path + ": code outside of every room"};
  for (auto& include : includesOf(source)) {
    if (!include.ours) continue;
    if (!beginsWithAny(include.name, room->may) || beginsWithAny(include.name, room->never)) {
      found.push_back(at(source, include.line) + std::string(room->path) + " may not include " +
                      include.name);
    }
  }
  return found;
}

bool isHome(std::string_view path, const Package& package) {
  return std::any_of(package.homes.begin(), package.homes.end(), [&](std::string_view home) {
    return home.starts_with("*") ? path.ends_with(home.substr(1)) : path.starts_with(home);
  });
}

std::vector<std::string> strayPackages(const Source& source) {
  std::vector<std::string> found;
  for (auto& include : includesOf(source)) {
    for (auto& package : PACKAGES) {
      if (beginsWithAny(include.name, package.headers) && !isHome(source.path, package)) {
        found.push_back(at(source, include.line) + std::string(package.name) +
                        " does not live here: " + include.name);
      }
    }
  }
  return found;
}

bool concerns(const Ban& ban, std::string_view path) {
  if (ban.endings.empty()) return true;
  std::string_view rest = ban.endings;
  for (;;) {
    size_t blank = rest.find(' ');
    if (path.ends_with(rest.substr(0, blank))) return true;
    if (blank == std::string_view::npos) return false;
    rest.remove_prefix(blank + 1);
  }
}

std::vector<std::string> bannedLines(const Source& source, const Ban& ban) {
  std::vector<std::string> found;
  if (!concerns(ban, source.path)) return found;
  forEachLine(source, [&](size_t number, const std::string& line) {
    if (std::regex_search(line, ban.line)) {
      found.push_back(at(source, number) + std::string(ban.promise));
    }
  });
  return found;
}

bool isGuarded(const Source& header) {
  bool guarded = false;
  forEachLine(header, [&](size_t, const std::string& line) { guarded |= line == "#pragma once"; });
  return guarded;
}

// A file is kebab-case, so that no two names differ by their case alone.
bool isWellNamed(const std::string& path) {
  static const std::regex NAME(
      R"([a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9+]+)+|README\.md|CMakeLists\.txt|[a-z-]+)");
  return std::regex_match(path.substr(path.rfind('/') + 1), NAME);
}

// Every folder with something in it may be the one that a newcomer opens: each must say what it is.
std::set<std::string> foldersWithoutReadme(const std::vector<Source>& tree) {
  std::set<std::string> folders, described;
  for (auto& source : tree) {
    if (source.path.starts_with(".")) continue;
    for (size_t end = source.path.find('/'); end != std::string::npos;
         end = source.path.find('/', end + 1)) {
      folders.insert(source.path.substr(0, end));
    }
    if (source.path.ends_with("/README.md")) {
      described.insert(source.path.substr(0, source.path.rfind('/')));
    }
  }
  std::set<std::string> missing;
  std::set_difference(folders.begin(), folders.end(), described.begin(), described.end(),
                      std::inserter(missing, missing.end()));
  return missing;
}

bool mayStandAtTheTop(const std::string& name) {
  return TOP_LEVEL.contains(name) || name.starts_with("build");
}

// ---- the tree
// --------------------------------------------------------------------------------------

std::vector<Source> readTree() {
  std::vector<Source> tree;
  const fs::path root = PRAEFECTUS_SOURCE;
  for (fs::recursive_directory_iterator at(root), end; at != end; ++at) {
    auto name = at->path().filename().string();
    if (at.depth() == 0 && (name == ".git" || name.starts_with("build"))) {
      at.disable_recursion_pending();
      continue;
    }
    if (!at->is_regular_file() || at->is_symlink()) continue;
    std::ifstream file(at->path(), std::ios::binary);
    tree.push_back({fs::relative(at->path(), root).generic_string(),
                    std::string(std::istreambuf_iterator<char>(file), {})});
  }
  return tree;
}

const std::vector<Source>& tree() {
  static const std::vector<Source> TREE = readTree();
  return TREE;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (auto& line : lines) text += line + "\n";
  return text;
}

template <typename Judge>
std::string overCode(Judge&& judge) {
  std::string all;
  for (auto& source : tree()) {
    if (isCode(source.path)) all += joined(judge(source));
  }
  return all;
}

// What a program prints; the program is one of binutils' or libc's and its argument a file of the
// build.
std::string printed(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char part[4096];
  for (size_t n; (n = fread(part, 1, sizeof(part), pipe)) > 0;) text.append(part, n);
  pclose(pipe);
  return text;
}

std::string binary(const std::string& name) { return std::string(PRAEFECTUS_BIN) + "/" + name; }

// ---- the promises
// ----------------------------------------------------------------------------------

TEST(Architecture, theTreeWasReallyRead) {
  size_t code = std::count_if(tree().begin(), tree().end(),
                              [](const Source& source) { return isCode(source.path); });
  EXPECT_GT(code, 50u);
}

TEST(Architecture, includesFollowTheDirections) { EXPECT_EQ(overCode(wrongDirections), ""); }

TEST(Architecture, aWrongIncludeIsSeenInEveryRoom) {
  for (auto& room : ROOMS) {
    Source sample{std::string(room.path) + "sample.cc",
                  "#include \"" + std::string(room.broken) + "\"\n"};
    EXPECT_EQ(wrongDirections(sample).size(), 1u) << room.path;
  }
  EXPECT_EQ(wrongDirections({"common/sample.cc", ""}).size(), 1u);
}

TEST(Architecture, onePackageLivesInOneRoom) { EXPECT_EQ(overCode(strayPackages), ""); }

TEST(Architecture, aStrayPackageIsSeen) {
  for (auto& package : PACKAGES) {
    for (auto header : package.headers) {
      Source sample{"supervisor/judge.cc", "#include <" + std::string(header) + ">\n"};
      EXPECT_EQ(strayPackages(sample).size(), 1u) << header;
    }
  }
}

TEST(Architecture, noLineSaysWhatIsBanned) {
  std::string all;
  for (auto& ban : BANS) {
    for (auto& source : tree()) all += joined(bannedLines(source, ban));
  }
  EXPECT_EQ(all, "");
}

TEST(Architecture, aBannedLineIsSeen) {
  for (auto& ban : BANS) {
    EXPECT_EQ(bannedLines(ban.broken, ban).size(), 1u) << ban.promise;
    EXPECT_EQ(bannedLines({ban.broken.path, "an innocent line\n"}, ban).size(), 0u) << ban.promise;
  }
}

TEST(Architecture, everyHeaderIsGuarded) {
  for (auto& source : tree()) {
    if (source.path.ends_with(".h")) {
      EXPECT_TRUE(isGuarded(source)) << source.path;
    }
  }
  EXPECT_FALSE(isGuarded({"ipc/sample.h", "// #pragma once\n"}));
}

TEST(Architecture, filesAreKebabCase) {
  for (auto& source : tree()) {
    if (source.path.find('/') != std::string::npos && !source.path.starts_with(".")) {
      EXPECT_TRUE(isWellNamed(source.path)) << source.path;
    }
  }
  EXPECT_FALSE(isWellNamed("ipc/helper_server.cc"));
  EXPECT_FALSE(isWellNamed("ipc/HelperServer.cc"));
}

TEST(Architecture, everyFolderOpensWithAReadme) {
  EXPECT_EQ(foldersWithoutReadme(tree()), std::set<std::string>());
  EXPECT_EQ(foldersWithoutReadme({{"ipc/README.md", ""},
                                  {"ipc/schema/words.capnp", ""},
                                  {"supervisor/ledger/ledger.h", ""},
                                  {"tests/README.md", ""},
                                  {"tests/ipc/CMakeLists.txt", ""},
                                  {"dev", ""}}),
            (std::set<std::string>{"ipc/schema", "supervisor", "supervisor/ledger", "tests/ipc"}));
}

TEST(Architecture, theTopLevelIsFixed) {
  for (auto& entry : fs::directory_iterator(PRAEFECTUS_SOURCE)) {
    EXPECT_TRUE(mayStandAtTheTop(entry.path().filename().string())) << entry.path();
  }
  EXPECT_FALSE(mayStandAtTheTop("docs"));
  EXPECT_FALSE(mayStandAtTheTop("common"));
}

TEST(Architecture, theSupervisorLinksNothingOfTheDesktop) {
  auto libraries = printed("ldd '" + binary("praefectus-supervisor") + "'");
  EXPECT_NE(libraries.find("libc.so"), std::string::npos) << libraries;
  EXPECT_FALSE(std::regex_search(libraries, DESKTOP_LIBRARY)) << libraries;
}

TEST(Architecture, aDesktopLibraryIsSeen) {
  EXPECT_TRUE(std::regex_search("libxcb.so.1 => /lib/libxcb.so.1", DESKTOP_LIBRARY));
  EXPECT_TRUE(std::regex_search("libdbus-1.so.3", DESKTOP_LIBRARY));
  EXPECT_FALSE(
      std::regex_search("libsqlite3.so.0 libcapnp-rpc-0.9.2.so libc.so.6", DESKTOP_LIBRARY));
}

// One file, so that its digest is the whole of what runs.
TEST(Architecture, theDesktopHelperIsOneStaticFile) {
  auto headers = printed("readelf --wide --program-headers --dynamic '" +
                         binary("praefectus-desktop-linux") + "'");
  EXPECT_NE(headers.find("LOAD"), std::string::npos) << headers;
  EXPECT_EQ(headers.find("INTERP"), std::string::npos) << headers;
  EXPECT_EQ(headers.find("(NEEDED)"), std::string::npos) << headers;
}

}  // namespace
}  // namespace praefectus
