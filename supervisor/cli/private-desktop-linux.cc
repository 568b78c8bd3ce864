#include "supervisor/cli/private-desktop.h"

#include "supervisor/cli/keeper.h"

#include <kj/debug.h>
#include <kj/exception.h>

#include <dbus/dbus.h>
#include <xcb/xcb.h>
#include <xcb/xcbext.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus {

namespace {

constexpr int START_MS = 15'000;
constexpr size_t SOCKET_PATH_BYTES =
    60;  // sun_path has 108, and buses add names of their own below us.
constexpr size_t READY_LINE_BYTES = 512;

// Everything a desktop is made of, and where Debian keeps it.
struct Part {
  kj::StringPtr program;
  kj::StringPtr package;
};
constexpr Part X_SERVER{"Xvfb"_kj, "xvfb"_kj};
constexpr Part BUS{"dbus-daemon"_kj, "dbus"_kj};
constexpr Part WINDOW_MANAGER{"openbox"_kj, "openbox"_kj};
constexpr Part ACCESSIBILITY{"/usr/libexec/at-spi-bus-launcher"_kj, "at-spi2-core"_kj};

constexpr kj::StringPtr PATH[] = {"/usr/bin"_kj, "/bin"_kj};

// A bus that starts no service on demand: the only way to be sure that no accessibility bus
// appears, since any application that asks for one would otherwise start it. (The address is given
// on its command line; without a line here dbus-daemon refuses the file.)
constexpr kj::StringPtr BARE_BUS = R"(<busconfig>
  <type>session</type>
  <listen>unix:tmpdir=/tmp</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
)"_kj;

// A message for a person: no file, line or condition of ours in its text.
[[noreturn]] void fail(kj::String message) {
  kj::throwFatalException(
      kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::mv(message)));
}

// One deadline for all of the start.
class Deadline {
 public:
  Deadline() : end(now() + START_MS) {}
  int left() const {
    int64_t rest = end - now();
    return rest > 0 ? static_cast<int>(rest) : 0;
  }
  // Whether `descriptor` has something to read (or has been closed) before the end.
  bool readable(int descriptor) const {
    for (;;) {
      pollfd waiting{descriptor, POLLIN, 0};
      int n = poll(&waiting, 1, left());
      if (n > 0) return true;
      if (n == 0) return false;
      KJ_ASSERT(errno == EINTR, "poll failed", errno);
    }
  }

 private:
  static int64_t now() {
    timespec time{};
    clock_gettime(CLOCK_BOOTTIME, &time);
    return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
  }
  int64_t end;
};

// The absolute path of an executable, or nothing.
kj::Maybe<kj::String> find(kj::StringPtr program) {
  auto executable = [](kj::StringPtr path) {
    struct stat file;
    return stat(path.cStr(), &file) == 0 && S_ISREG(file.st_mode) && access(path.cStr(), X_OK) == 0;
  };
  if (program.startsWith("/")) {
    if (executable(program)) return kj::heapString(program);
    return nullptr;
  }
  for (kj::StringPtr folder : PATH) {
    auto path = kj::str(folder, "/", program);
    if (executable(path)) return kj::mv(path);
  }
  return nullptr;
}

kj::String need(const Part& part) {
  KJ_IF_MAYBE (path, find(part.program)) {
    return kj::mv(*path);
  }
  fail(kj::str(part.program, " is missing: install ", part.package));
}

void makeFolder(kj::StringPtr path) { KJ_SYSCALL(mkdir(path.cStr(), 0700), path); }

// A folder of our own, below TMPDIR unless sockets in it would have too long a name.
kj::String makeRoot() {
  const char* wished = getenv("TMPDIR");
  kj::StringPtr parent = wished == nullptr ? "/tmp"_kj : kj::StringPtr(wished);
  if (!parent.startsWith("/") || parent.size() > SOCKET_PATH_BYTES) parent = "/tmp"_kj;
  auto path = kj::str(parent, "/praefectus-XXXXXX");
  if (mkdtemp(path.begin()) == nullptr) KJ_FAIL_SYSCALL("mkdtemp", errno, parent);
  for (auto part : {"home", "home/.config", "home/.cache", "home/.local", "home/.local/share",
                    "run", "output"}) {
    makeFolder(kj::str(path, "/", part));
  }
  return path;
}

kj::AutoCloseFd create(kj::StringPtr path) {
  int descriptor;
  KJ_SYSCALL(
      descriptor = open(path.cStr(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600),
      path);
  return kj::AutoCloseFd(descriptor);
}

// What a program must show to the X server. Without it every local user could read and press
// everything here: the server's socket lies in a folder that is open to all.
using Cookie = std::array<char, 16>;
constexpr kj::StringPtr COOKIE_KIND = "MIT-MAGIC-COOKIE-1"_kj;

Cookie newCookie() {
  Cookie cookie;
  KJ_ASSERT(getrandom(cookie.data(), cookie.size(), 0) == ssize_t{cookie.size()});
  return cookie;
}

// One authority file for the server and for the programs, in the form of Xau(3): a family, then
// four counted strings (address, display number, kind, data), big-endian. The server chooses its
// number only after it has read the file, so the entry is for any address (FamilyWild) and any
// number.
void writeAuthority(kj::StringPtr path, const Cookie& cookie) {
  kj::Vector<kj::byte> entry;
  auto number = [&entry](size_t value) {
    entry.add(static_cast<kj::byte>(value >> 8));
    entry.add(static_cast<kj::byte>(value));
  };
  auto counted = [&](kj::ArrayPtr<const char> text) {
    number(text.size());
    entry.addAll(text.asBytes());
  };
  constexpr size_t FAMILY_WILD = 65'535;
  number(FAMILY_WILD);
  counted(nullptr);
  counted(nullptr);
  counted(COOKIE_KIND.asArray());
  counted(kj::arrayPtr(cookie.data(), cookie.size()));
  auto file = create(path);
  kj::FdOutputStream(file.get()).write(entry.begin(), entry.size());
}

struct Pipe {
  kj::AutoCloseFd in;
  kj::AutoCloseFd out;
};

Pipe makePipe() {
  int ends[2];
  KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
  return {kj::AutoCloseFd(ends[0]), kj::AutoCloseFd(ends[1])};
}

// What a program says on its ready descriptor, without the line's end; nothing when it closes the
// descriptor (it ended), says too much, or the time is up.
kj::Maybe<kj::String> readLine(int descriptor, const Deadline& deadline) {
  kj::Vector<char> line;
  while (line.size() < READY_LINE_BYTES && deadline.readable(descriptor)) {
    char next;
    ssize_t n;
    KJ_SYSCALL(n = read(descriptor, &next, 1));
    if (n == 0) return nullptr;
    if (next == '\n') return kj::heapString(line.begin(), line.size());
    line.add(next);
  }
  return nullptr;
}

// The last line that a part of the desktop printed; no application has run yet.
kj::String lastWords(kj::StringPtr output) {
  int descriptor;
  KJ_SYSCALL(descriptor = open(output.cStr(), O_RDONLY | O_CLOEXEC), output);
  kj::AutoCloseFd file(descriptor);
  char tail[READY_LINE_BYTES];
  off_t size = lseek(file, 0, SEEK_END);
  off_t from = size > off_t{sizeof(tail)} ? size - off_t{sizeof(tail)} : 0;
  ssize_t n = pread(file, tail, sizeof(tail), from);
  std::string_view text(tail, n > 0 ? static_cast<size_t>(n) : 0);
  while (text.ends_with('\n')) text.remove_suffix(1);
  text = text.substr(text.rfind('\n') + 1);  // No line end: npos + 1 is the beginning.
  return text.empty() ? kj::str("it said nothing") : kj::heapString(text.data(), text.size());
}

// Frees what C libraries hand out.
struct Free {
  void operator()(void* memory) const { free(memory); }
  void operator()(xcb_connection_t* connection) const { xcb_disconnect(connection); }
  void operator()(DBusMessage* message) const { dbus_message_unref(message); }
  void operator()(DBusConnection* connection) const {
    dbus_connection_close(connection);
    dbus_connection_unref(connection);
  }
};
template <typename T>
using Freed = std::unique_ptr<T, Free>;

// Our own look at the X server, for the one thing that it must say before applications may come.
class Screen {
 public:
  Screen(kj::StringPtr display, const Cookie& cookie) : connection(connect(display, cookie)) {
    if (xcb_connection_has_error(connection.get()) != 0) fail(kj::str("Xvfb takes no connection"));
    root = xcb_setup_roots_iterator(xcb_get_setup(connection.get())).data->root;
  }

  // Window managers set this property when they have taken the screen over.
  void awaitWindowManager(const Deadline& deadline) {
    constexpr kj::StringPtr NAME = "_NET_SUPPORTING_WM_CHECK"_kj;
    auto* c = connection.get();
    const uint32_t events = XCB_EVENT_MASK_PROPERTY_CHANGE;
    xcb_change_window_attributes(c, root, XCB_CW_EVENT_MASK, &events);
    auto atom = reply<xcb_intern_atom_reply_t>(
        xcb_intern_atom(c, 0, static_cast<uint16_t>(NAME.size()), NAME.cStr()).sequence, deadline);
    for (;;) {
      auto property = reply<xcb_get_property_reply_t>(
          xcb_get_property(c, 0, root, atom->atom, XCB_ATOM_WINDOW, 0, 1).sequence, deadline);
      if (property->length > 0) return;
      awaitEvent(deadline);
    }
  }

 private:
  // Given by hand: XAUTHORITY of our own process belongs to the person's desktop, if to any.
  static xcb_connection_t* connect(kj::StringPtr display, const Cookie& cookie) {
    Cookie data = cookie;
    auto kind = kj::heapString(COOKIE_KIND);
    xcb_auth_info_t shown{static_cast<int>(kind.size()), kind.begin(),
                          static_cast<int>(data.size()), data.data()};
    return xcb_connect_to_display_with_auth_info(display.cStr(), &shown, nullptr);
  }

  template <typename T>
  Freed<T> reply(unsigned sequence, const Deadline& deadline) {
    xcb_flush(connection.get());
    void* answer = nullptr;
    xcb_generic_error_t* error = nullptr;
    while (xcb_poll_for_reply(connection.get(), sequence, &answer, &error) == 0) wait(deadline);
    free(error);
    if (answer == nullptr) fail(kj::str("Xvfb has gone"));
    return Freed<T>(static_cast<T*>(answer));
  }

  void awaitEvent(const Deadline& deadline) {
    for (;;) {
      Freed<xcb_generic_event_t> event(xcb_poll_for_event(connection.get()));
      if (event != nullptr) return;
      wait(deadline);
    }
  }

  void wait(const Deadline& deadline) {
    if (xcb_connection_has_error(connection.get()) != 0) fail(kj::str("Xvfb has gone"));
    if (!deadline.readable(xcb_get_file_descriptor(connection.get()))) {
      fail(kj::str("openbox did not take the screen in time"));
    }
  }

  Freed<xcb_connection_t> connection;
  xcb_window_t root;
};

// Our own look at the session bus.
class Bus {
 public:
  Bus(kj::StringPtr address, const Deadline& deadline)
      : deadline(deadline), connection(dbus_connection_open_private(address.cStr(), nullptr)) {
    if (connection == nullptr) fail(kj::str("dbus-daemon takes no connection"));
    dbus_connection_set_exit_on_disconnect(connection.get(), 0);
    call(message("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello"));
  }

  // Asking for its address starts the accessibility bus, which also writes the address on the root
  // window.
  kj::String startAccessibility() {
    auto answer = call(message(A11Y, A11Y_PATH, "org.a11y.Bus", "GetAddress"));
    const char* address = nullptr;
    if (!dbus_message_get_args(answer.get(), nullptr, DBUS_TYPE_STRING, &address,
                               DBUS_TYPE_INVALID)) {
      fail(kj::str("org.a11y.Bus gives no address"));
    }
    return kj::str(address);
  }

  // The first application would start the registry; a reader that comes before it should find one.
  void startRegistry() {
    auto start = message("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                         "StartServiceByName");
    const char* name = "org.a11y.atspi.Registry";
    const dbus_uint32_t flags = 0;
    dbus_message_append_args(start.get(), DBUS_TYPE_STRING, &name, DBUS_TYPE_UINT32, &flags,
                             DBUS_TYPE_INVALID);
    call(kj::mv(start));
  }

  // Some toolkits look at this once, as they start: it must be true before the first application.
  void enableAccessibility() {
    auto set = message(A11Y, A11Y_PATH, "org.freedesktop.DBus.Properties", "Set");
    const char* interface = "org.a11y.Status";
    const char* property = "IsEnabled";
    const dbus_bool_t enabled = 1;
    DBusMessageIter arguments, variant;
    dbus_message_append_args(set.get(), DBUS_TYPE_STRING, &interface, DBUS_TYPE_STRING, &property,
                             DBUS_TYPE_INVALID);
    dbus_message_iter_init_append(set.get(), &arguments);
    KJ_ASSERT(dbus_message_iter_open_container(&arguments, DBUS_TYPE_VARIANT, "b", &variant) &&
              dbus_message_iter_append_basic(&variant, DBUS_TYPE_BOOLEAN, &enabled) &&
              dbus_message_iter_close_container(&arguments, &variant));
    call(kj::mv(set));
  }

 private:
  static constexpr const char* A11Y = "org.a11y.Bus";
  static constexpr const char* A11Y_PATH = "/org/a11y/bus";

  static Freed<DBusMessage> message(const char* name, const char* path, const char* interface,
                                    const char* method) {
    Freed<DBusMessage> made(dbus_message_new_method_call(name, path, interface, method));
    KJ_ASSERT(made != nullptr, "out of memory");
    return made;
  }

  Freed<DBusMessage> call(Freed<DBusMessage> request) {
    DBusError error = DBUS_ERROR_INIT;
    Freed<DBusMessage> answer(dbus_connection_send_with_reply_and_block(
        connection.get(), request.get(), deadline.left(), &error));
    if (answer != nullptr) return answer;
    auto why = kj::str(error.message == nullptr ? "no answer" : error.message);
    dbus_error_free(&error);
    fail(kj::str(dbus_message_get_interface(request.get()), ".",
                 dbus_message_get_member(request.get()), ": ", why));
  }

  const Deadline& deadline;
  Freed<DBusConnection> connection;
};

}  // namespace

struct PrivateDesktop::Parts {
  explicit Parts(const Options& options);

  // Starts one part with its own output file.
  Program start(const Part& part, kj::ArrayPtr<const kj::StringPtr> options, int ready = -1,
                bool last = false);
  Program startProgram(kj::String path, kj::ArrayPtr<const kj::StringPtr> arguments,
                       kj::ArrayPtr<const kj::StringPtr> extra, int ready, bool last);
  void startScreen(const Options& options);
  void startBus(const Options& options);
  void setEnvironment();

  Deadline deadline;
  kj::String folder;
  Keeper keeper;
  Cookie cookie = newCookie();
  kj::String display;
  kj::Vector<kj::String> environment;
  unsigned outputs = 0;
};

PrivateDesktop::Parts::Parts(const Options& options) : folder(makeRoot()), keeper(folder) {
  startScreen(options);
  startBus(options);
  if (options.windowManager) {
    start(WINDOW_MANAGER, {"--sm-disable"_kj});
    Screen(display, cookie).awaitWindowManager(deadline);
  }
  if (options.accessibility) {
    Bus bus(kj::str("unix:path=", folder, "/run/bus"), deadline);
    auto address = bus.startAccessibility();
    bus.enableAccessibility();
    Bus(address, deadline).startRegistry();
  }
}

void PrivateDesktop::Parts::setEnvironment() {
  auto set = [this](kj::StringPtr name, kj::StringPtr value) {
    environment.add(kj::str(name, "=", value));
  };
  set("DBUS_SESSION_BUS_ADDRESS", kj::str("unix:path=", folder, "/run/bus"));
  // What this machine knows of the person's own session, locked or not, is not about this desktop:
  // its programs look for a system's bus where there is none.
  set("DBUS_SYSTEM_BUS_ADDRESS", kj::str("unix:path=", folder, "/run/system-bus"));
  set("XDG_RUNTIME_DIR", kj::str(folder, "/run"));
  set("HOME", kj::str(folder, "/home"));
  set("XDG_CONFIG_HOME", kj::str(folder, "/home/.config"));
  set("XDG_CACHE_HOME", kj::str(folder, "/home/.cache"));
  set("XDG_DATA_HOME", kj::str(folder, "/home/.local/share"));
  set("XDG_SESSION_TYPE", "x11");
  set("GDK_BACKEND", "x11");
  set("QT_QPA_PLATFORM", "xcb");
  set("LANG", "C.UTF-8");
  set("PATH", "/usr/bin:/bin");
  // Settings are files below XDG_CONFIG_HOME, not a service with a memory of its own.
  set("GSETTINGS_BACKEND", "keyfile");
}

void PrivateDesktop::Parts::startScreen(const Options& options) {
  setEnvironment();
  auto authority = kj::str(folder, "/run/xauthority");
  writeAuthority(authority, cookie);
  environment.add(kj::str("XAUTHORITY=", authority));
  // Xvfb looks for a free number itself and says which; asking it for one would be a race.
  auto said = makePipe();
  auto size = kj::str(options.width, "x", options.height, "x24");
  auto server = start(X_SERVER,
                      {"-displayfd"_kj, "3"_kj, "-screen"_kj, "0"_kj, size, "-nolisten"_kj,
                       "tcp"_kj, "-noreset"_kj, "-auth"_kj, authority},
                      said.out, true);
  said.out = nullptr;
  KJ_IF_MAYBE (number, readLine(said.in, deadline)) {
    display = kj::str(":", *number);
    environment.add(kj::str("DISPLAY=", display));
  } else {
    fail(kj::str("Xvfb did not come up: ", lastWords(server.output)));
  }
}

void PrivateDesktop::Parts::startBus(const Options& options) {
  auto said = makePipe();
  auto configuration = kj::str("--session");
  if (!options.accessibility) {
    auto path = kj::str(folder, "/run/bus.conf");
    auto file = create(path);
    kj::FdOutputStream(file.get()).write(BARE_BUS.begin(), BARE_BUS.size());
    configuration = kj::str("--config-file=", path);
  }
  auto address = kj::str("--address=unix:path=", folder, "/run/bus");
  auto bus =
      start(BUS, {configuration, "--nofork"_kj, "--nopidfile"_kj, address, "--print-address=3"_kj},
            said.out);
  said.out = nullptr;
  if (readLine(said.in, deadline) == nullptr) {
    fail(kj::str("dbus-daemon did not come up: ", lastWords(bus.output)));
  }
}

PrivateDesktop::Program PrivateDesktop::Parts::start(const Part& part,
                                                     kj::ArrayPtr<const kj::StringPtr> options,
                                                     int ready, bool last) {
  kj::Vector<kj::StringPtr> arguments;
  arguments.add(part.program);
  arguments.addAll(options);
  return startProgram(need(part), arguments, nullptr, ready, last);
}

PrivateDesktop::Program PrivateDesktop::Parts::startProgram(
    kj::String path, kj::ArrayPtr<const kj::StringPtr> arguments,
    kj::ArrayPtr<const kj::StringPtr> extra, int ready, bool last) {
  kj::StringPtr name = arguments[0];
  KJ_IF_MAYBE (slash, name.findLast('/')) {
    name = name.slice(*slash + 1);
  }
  auto output = kj::str(folder, "/output/", ++outputs, "-", name, ".log");
  auto file = create(output);

  kj::Vector<kj::StringPtr> given;
  given.add(path);
  given.addAll(arguments.slice(1, arguments.size()));
  kj::Vector<kj::StringPtr> surroundings;
  for (auto& variable : environment) surroundings.add(variable);
  surroundings.addAll(extra);
  pid_t pid = keeper.start({given, surroundings, file.get(), ready, last});
  return {pid, kj::mv(output)};
}

PrivateDesktop::PrivateDesktop(Options options) {
  // Everything is looked for before anything is started: the first missing package is the whole
  // story.
  need(X_SERVER);
  need(BUS);
  if (options.windowManager) need(WINDOW_MANAGER);
  if (options.accessibility) need(ACCESSIBILITY);
  parts = kj::heap<Parts>(options);
}

PrivateDesktop::~PrivateDesktop() noexcept(false) {}

kj::StringPtr PrivateDesktop::display() const { return parts->display; }

kj::StringPtr PrivateDesktop::folder() const { return parts->folder; }

kj::ArrayPtr<const kj::String> PrivateDesktop::environment() const {
  return parts->environment.asPtr();
}

PrivateDesktop::Program PrivateDesktop::run(kj::ArrayPtr<const kj::StringPtr> arguments,
                                            kj::ArrayPtr<const kj::StringPtr> extraEnvironment) {
  KJ_REQUIRE(arguments.size() > 0, "nothing to run");
  KJ_IF_MAYBE (path, find(arguments[0])) {
    return parts->startProgram(kj::mv(*path), arguments, extraEnvironment, -1, false);
  }
  fail(kj::str(arguments[0], " is missing"));
}

void PrivateDesktop::end(pid_t pid) { parts->keeper.end(pid); }

}  // namespace praefectus
