#include "helper-linux/x11/display.h"

#include "ipc/bounds.h"

#include <kj/debug.h>

#include <X11/Xauth.h>
#include <xcb/composite.h>
#include <xcb/damage.h>
#include <xcb/randr.h>
#include <xcb/res.h>
#include <xcb/xinput.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace praefectus::x11 {
namespace {

constexpr kj::StringPtr ATOM_NAMES[ATOMS] = {
    "_NET_ACTIVE_WINDOW"_kj,
    "_NET_CLIENT_LIST_STACKING"_kj,
    "_NET_WM_PID"_kj,
    "_NET_WM_NAME"_kj,
    "_NET_WM_STATE"_kj,
    "_NET_WM_STATE_HIDDEN"_kj,
    "_NET_WM_STATE_MODAL"_kj,
    "_NET_WM_WINDOW_TYPE"_kj,
    "_NET_WM_WINDOW_TYPE_NORMAL"_kj,
    "_NET_WM_WINDOW_TYPE_DIALOG"_kj,
    "_NET_WM_WINDOW_TYPE_UTILITY"_kj,
    "_NET_WM_WINDOW_TYPE_TOOLBAR"_kj,
    "_NET_WM_WINDOW_TYPE_MENU"_kj,
    "_NET_WM_WINDOW_TYPE_DROPDOWN_MENU"_kj,
    "_NET_WM_WINDOW_TYPE_POPUP_MENU"_kj,
    "_NET_WM_WINDOW_TYPE_COMBO"_kj,
    "_NET_WM_WINDOW_TYPE_TOOLTIP"_kj,
    "_NET_WM_WINDOW_TYPE_NOTIFICATION"_kj,
    "_NET_WM_WINDOW_TYPE_SPLASH"_kj,
    "_NET_WM_WINDOW_TYPE_DOCK"_kj,
    "_NET_WM_WINDOW_TYPE_DESKTOP"_kj,
    "WM_STATE"_kj,
    "_NET_FRAME_EXTENTS"_kj,
    "_GTK_FRAME_EXTENTS"_kj,
    "UTF8_STRING"_kj,
    "COMPOUND_TEXT"_kj,
    "AT_SPI_BUS"_kj,
    "XTEST Device"_kj,
};

// The socket that the alarm cuts. shutdown(2) is safe in a signal handler.
volatile std::sig_atomic_t guarded = -1;

void cut(int) {
  int saved = errno;
  if (guarded >= 0) shutdown(guarded, SHUT_RDWR);
  errno = saved;
}

void alarmIn(kj::Duration delay) {
  itimerval timer{};
  timer.it_value.tv_sec = delay / kj::SECONDS;
  timer.it_value.tv_usec = (delay % kj::SECONDS) / kj::MICROSECONDS;
  KJ_SYSCALL(setitimer(ITIMER_REAL, &timer, nullptr));
}

// The display's number in ":7" or "unix:7.0"; nothing for a display of another machine.
kj::Maybe<kj::String> numberIn(kj::StringPtr name) {
  KJ_IF_MAYBE (colon, name.findFirst(':')) {
    auto host = name.slice(0, *colon);
    if (host.size() != 0 && kj::str(host) != "unix") return nullptr;
    kj::Vector<char> digits;
    for (char c : name.slice(*colon + 1)) {
      if (c == '.') break;
      if (c < '0' || c > '9' || digits.size() > 5) return nullptr;
      digits.add(c);
    }
    if (digits.empty()) return nullptr;
    return kj::str(digits);
  }
  return nullptr;
}

int connectTo(kj::StringPtr number) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto path = kj::str("/tmp/.X11-unix/X", number);
  if (path.size() >= sizeof(address.sun_path)) return -1;
  memcpy(address.sun_path, path.begin(), path.size());
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

Xauth* authFor(kj::StringPtr number) {
  static char cookie[] = "MIT-MAGIC-COOKIE-1";
  char* types[] = {cookie};
  const int lengths[] = {static_cast<int>(sizeof(cookie)) - 1};
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return XauGetBestAuthByAddr(FamilyLocal, static_cast<unsigned short>(strlen(host)), host,
                              static_cast<unsigned short>(number.size()), number.cStr(), 1, types,
                              lengths);
}

}  // namespace

Display::Waiting::Waiting(const Display& display) {
  guarded = display.fd;
  alarmIn(bounds::CALL);
}

Display::Waiting::~Waiting() noexcept(false) {
  alarmIn(0 * kj::SECONDS);
  guarded = -1;
}

Display::Display(kj::StringPtr name) : displayName(kj::str(name)) {
  struct sigaction action {};
  action.sa_handler = cut;
  action.sa_flags = SA_RESTART;
  KJ_SYSCALL(sigaction(SIGALRM, &action, nullptr));
}

Display::~Display() noexcept(false) {
  if (connection != nullptr) xcb_disconnect(connection);
}

kj::Maybe<kj::Own<Display>> Display::open(kj::StringPtr name) {
  auto display = kj::refcounted<Display>(name);
  if (!display->connect()) return nullptr;
  return kj::mv(display);
}

bool Display::connect() {
  KJ_IF_MAYBE (number, numberIn(displayName)) {
    fd = connectTo(*number);
    if (fd < 0) return false;
    Xauth* auth = authFor(*number);
    KJ_DEFER(if (auth != nullptr) XauDisposeAuth(auth));
    xcb_auth_info_t info{};
    if (auth != nullptr) {
      info = {auth->name_length, auth->name, auth->data_length, auth->data};
    }
    Waiting waiting(*this);
    connection = xcb_connect_to_fd(fd, auth != nullptr ? &info : nullptr);
    if (xcb_connection_has_error(connection) != 0) return false;
    auto screens = xcb_setup_roots_iterator(xcb_get_setup(connection));
    if (screens.rem == 0) return false;
    rootWindow = screens.data->root;
    internAtoms();
    findExtensions();
    return xcb_connection_has_error(connection) == 0;
  }
  return false;
}

void Display::internAtoms() {
  xcb_intern_atom_cookie_t cookies[ATOMS];
  for (unsigned i = 0; i < ATOMS; ++i) {
    cookies[i] = xcb_intern_atom(connection, 0, static_cast<uint16_t>(ATOM_NAMES[i].size()),
                                 ATOM_NAMES[i].cStr());
  }
  for (unsigned i = 0; i < ATOMS; ++i) {
    Freed reply(xcb_intern_atom_reply(connection, cookies[i], nullptr));
    if (reply) atoms[i] = reply->atom;
  }
}

void Display::findExtensions() {
  auto present = [this](xcb_extension_t& extension) {
    auto data = xcb_get_extension_data(connection, &extension);
    return data != nullptr && data->present != 0 ? data : nullptr;
  };
  for (auto extension :
       {&xcb_composite_id, &xcb_damage_id, &xcb_randr_id, &xcb_res_id, &xcb_input_id}) {
    xcb_prefetch_extension_data(connection, extension);
  }
  // A server answers an extension's requests only after it was told our version.
  if (present(xcb_composite_id) != nullptr) {
    Freed reply(xcb_composite_query_version_reply(
        connection, xcb_composite_query_version(connection, 0, 4), nullptr));
    composite = bool(reply);
  }
  if (auto data = present(xcb_damage_id)) {
    Freed reply(xcb_damage_query_version_reply(
        connection, xcb_damage_query_version(connection, 1, 1), nullptr));
    damage = bool(reply);
    firstDamageEvent = data->first_event;
  }
  if (present(xcb_randr_id) != nullptr) {
    Freed reply(xcb_randr_query_version_reply(connection, xcb_randr_query_version(connection, 1, 5),
                                              nullptr));
    randr = reply && (reply->major_version > 1 || reply->minor_version >= 5);
  }
  if (present(xcb_res_id) != nullptr) {
    Freed reply(
        xcb_res_query_version_reply(connection, xcb_res_query_version(connection, 1, 2), nullptr));
    resource = reply && (reply->server_major > 1 || reply->server_minor >= 2);
  }
  if (auto data = present(xcb_input_id)) {
    Freed reply(xcb_input_xi_query_version_reply(
        connection, xcb_input_xi_query_version(connection, 2, 2), nullptr));
    input = bool(reply);
    inputMajor = data->major_opcode;
  }
}

kj::Maybe<uint32_t> Display::serverProcess() const {
  ucred peer{};
  socklen_t size = sizeof(peer);
  bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0;
  if (!known) return nullptr;
  return static_cast<uint32_t>(peer.pid);
}

bool Display::alive() {
  if (xcb_connection_has_error(connection) != 0) return false;
  Waiting waiting(*this);
  Freed reply(xcb_get_input_focus_reply(connection, xcb_get_input_focus(connection), nullptr));
  return bool(reply);
}

}  // namespace praefectus::x11
