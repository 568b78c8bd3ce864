// The strange application: an ordinary client of the display with a window, which speaks AT-SPI by
// itself, so that it can do on command what no toolkit does on command.
//
//   praefectus-strange [--record FILE] [--mode MODE] [--cache CACHE] [--title TITLE]
//       [--toolkit NAME] [--toolkit-version VERSION] [--windows N] [--place N] [--pause MS]
//       [--after CALLS] [--silent] [--silent-start] [--empty]
//
// strange-scene.h says what the modes and caches are. One line for each thing that was done to it:
//   ready                      its windows are on screen and the registry knows it
//   pressed <path>             a button or a row
//   text <path> <hex>          a text was set
//   value <path> <number>      a number was set
//   asked-secret <path>        somebody wanted to know what the password field holds
//   fetched-all <path>         somebody wanted all cells of the sheet: it dies of that
//   fetched-properties <path>  somebody wanted all properties at once: it dies of that, as Qt does
//   changed                    SIGUSR1 has done what the mode says
//   asked <member> <times>     how often each member was asked for, since the last such lines
//   counted                    SIGUSR2 has written all of those
//
// Nothing happens by time, but in mode slow. It ends with the process that started it.
#include "tests/helper-linux/strange-bus.h"

#include <xcb/xcb.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace strange {
namespace {

[[noreturn]] void fail(const char* what) {
  fprintf(stderr, "praefectus-strange: %s\n", what);
  exit(1);
}

constexpr int AGAIN_MS = 100;

class Record {
 public:
  explicit Record(const std::string& path) {
    if (path.empty()) return;
    file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) fail("no record");
  }
  void note(const std::string& line) {
    auto text = line + "\n";
    if (file >= 0 && write(file, text.data(), text.size()) < 0) fail("no record");
  }

 private:
  int file = -1;
};

// The windows on the display, each in a place of its own. They do nothing, and take no focus.
class Screen {
 public:
  explicit Screen(unsigned firstPlace)
      : connection(xcb_connect(nullptr, nullptr)), place(firstPlace) {
    if (xcb_connection_has_error(connection) != 0) fail("no display");
    root = xcb_setup_roots_iterator(xcb_get_setup(connection)).data->root;
  }
  ~Screen() { xcb_disconnect(connection); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void open(const std::string& title) {
    xcb_window_t window = xcb_generate_id(connection);
    uint32_t values[] = {0xffffff, XCB_EVENT_MASK_STRUCTURE_NOTIFY};
    auto x = static_cast<int16_t>(20 + place % 3 * 420),
         y = static_cast<int16_t>(40 + place / 3 * 350);
    ++place;
    xcb_create_window(connection, XCB_COPY_FROM_PARENT, window, root, x, y, WIDTH, HEIGHT, 0,
                      XCB_WINDOW_CLASS_INPUT_OUTPUT, XCB_COPY_FROM_PARENT,
                      XCB_CW_BACK_PIXEL | XCB_CW_EVENT_MASK, values);
    auto utf8 = atom("UTF8_STRING");
    set(window, XCB_ATOM_WM_NAME, XCB_ATOM_STRING, 8, title.size(), title.data());
    set(window, atom("_NET_WM_NAME"), utf8, 8, title.size(), title.data());
    auto pid = static_cast<uint32_t>(getpid());
    set(window, atom("_NET_WM_PID"), XCB_ATOM_CARDINAL, 32, 1, &pid);
    // ICCCM's WM_NORMAL_HINTS: the program's position, one size and no other.
    constexpr uint32_t POSITION = 4, LEAST = 16, MOST = 32;
    uint32_t size[18] = {POSITION | LEAST | MOST, 0, 0, 0, 0, WIDTH, HEIGHT, WIDTH, HEIGHT};
    set(window, XCB_ATOM_WM_NORMAL_HINTS, XCB_ATOM_WM_SIZE_HINTS, 32, 18, size);
    // WM_HINTS: no input.
    uint32_t hints[9] = {1, 0};
    set(window, XCB_ATOM_WM_HINTS, XCB_ATOM_WM_HINTS, 32, 9, hints);
    xcb_map_window(connection, window);
    windows.push_back(window);
    xcb_flush(connection);
  }

  // A window manager that is still starting has been seen to lose a request, so each is repeated
  // until it is granted.
  void waitUntilMapped() {
    for (size_t mapped = 0; mapped < windows.size();) {
      while (xcb_generic_event_t* event = xcb_poll_for_event(connection)) {
        if ((event->response_type & 0x7f) == XCB_MAP_NOTIFY) ++mapped;
        free(event);
      }
      if (xcb_connection_has_error(connection) != 0) fail("the display is gone");
      pollfd waiting{descriptor(), POLLIN, 0};
      if (mapped == windows.size() || poll(&waiting, 1, AGAIN_MS) > 0) continue;
      for (auto window : windows) xcb_map_window(connection, window);
      xcb_flush(connection);
    }
  }

  Point placeOfFirst() {
    auto asked = xcb_translate_coordinates(connection, windows[0], root, 0, 0);
    auto* answer = xcb_translate_coordinates_reply(connection, asked, nullptr);
    if (answer == nullptr) fail("the display is gone");
    Point out{answer->dst_x, answer->dst_y};
    free(answer);
    return out;
  }

  int descriptor() const { return xcb_get_file_descriptor(connection); }
  void turn() {
    while (xcb_generic_event_t* event = xcb_poll_for_event(connection)) free(event);
    if (xcb_connection_has_error(connection) != 0) exit(0);
  }

 private:
  xcb_atom_t atom(const char* name) {
    auto asked = xcb_intern_atom(connection, 0, static_cast<uint16_t>(strlen(name)), name);
    auto* answer = xcb_intern_atom_reply(connection, asked, nullptr);
    if (answer == nullptr) fail("the display is gone");
    xcb_atom_t out = answer->atom;
    free(answer);
    return out;
  }
  void set(xcb_window_t window, xcb_atom_t property, xcb_atom_t type, uint8_t bits, size_t count,
           const void* data) {
    xcb_change_property(connection, XCB_PROP_MODE_REPLACE, window, property, type, bits,
                        static_cast<uint32_t>(count), data);
  }

  xcb_connection_t* connection;
  unsigned place;
  xcb_window_t root = 0;
  std::vector<xcb_window_t> windows;
};

int takeSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

int run(const Options& options) {
  int signals = takeSignals();
  Record record(options.record);
  Scene scene(options);
  Screen screen(options.place);
  AccessibilityBus bus(
      options, scene, [&](const std::string& line) { record.note(line); },
      [&] { return screen.placeOfFirst(); });
  for (unsigned i = 0; i < options.windows; ++i) screen.open(scene.titleOf(i));
  screen.waitUntilMapped();
  bus.embed();
  record.note("ready");

  bool offered = !options.silentStart;
  for (;;) {
    short wanted = bus.wantsToWrite() ? POLLIN | POLLOUT : POLLIN;
    pollfd waiting[] = {
        {signals, POLLIN, 0}, {screen.descriptor(), POLLIN, 0}, {bus.descriptor(), wanted, 0}};
    if (poll(waiting, 3, -1) < 0 && errno != EINTR) fail("poll");
    screen.turn();
    bus.turn();
    signalfd_siginfo signal;
    while (read(signals, &signal, sizeof(signal)) == sizeof(signal)) {
      if (signal.ssi_signo == SIGUSR2) {
        bus.noteCounts();
        record.note("counted");
        continue;
      }
      bus.tell(offered ? scene.change() : scene.offerWindows());
      offered = true;
      bus.turn();
      record.note("changed");
    }
  }
}

// Exits with 2 when the command line is not one.
Options parse(int argc, char** argv) {
  enum Option {
    RECORD,
    MODE,
    CACHE_KIND,
    TITLE,
    TOOLKIT,
    VERSION,
    WINDOWS,
    PLACE,
    PAUSE,
    AFTER,
    SILENT,
    SILENT_START,
    EMPTY
  };
  const option known[] = {{"record", required_argument, nullptr, RECORD},
                          {"mode", required_argument, nullptr, MODE},
                          {"cache", required_argument, nullptr, CACHE_KIND},
                          {"title", required_argument, nullptr, TITLE},
                          {"toolkit", required_argument, nullptr, TOOLKIT},
                          {"toolkit-version", required_argument, nullptr, VERSION},
                          {"windows", required_argument, nullptr, WINDOWS},
                          {"place", required_argument, nullptr, PLACE},
                          {"pause", required_argument, nullptr, PAUSE},
                          {"after", required_argument, nullptr, AFTER},
                          {"silent", no_argument, nullptr, SILENT},
                          {"silent-start", no_argument, nullptr, SILENT_START},
                          {"empty", no_argument, nullptr, EMPTY},
                          {nullptr, 0, nullptr, 0}};
  Options out;
  auto number = [] { return static_cast<unsigned>(strtoul(optarg, nullptr, 10)); };
  for (int each; (each = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    switch (each) {
      case RECORD:
        out.record = optarg;
        break;
      case MODE:
        if (modeNamed(optarg) == nullptr) exit(2);
        out.mode = *modeNamed(optarg);
        break;
      case CACHE_KIND:
        if (cacheNamed(optarg) == nullptr) exit(2);
        out.cache = *cacheNamed(optarg);
        break;
      case TITLE:
        out.title = optarg;
        break;
      case TOOLKIT:
        out.toolkit = optarg;
        break;
      case VERSION:
        out.toolkitVersion = optarg;
        break;
      case WINDOWS:
        out.windows = number();
        break;
      case PLACE:
        out.place = number();
        break;
      case PAUSE:
        out.pauseMs = number();
        break;
      case AFTER:
        out.after = number();
        break;
      case SILENT:
        out.silent = true;
        break;
      case SILENT_START:
        out.silentStart = true;
        break;
      case EMPTY:
        out.empty = true;
        break;
      default:
        exit(2);
    }
  }
  return out;
}

}  // namespace
}  // namespace strange

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return strange::run(strange::parse(argc, argv));
}
