// doctor: does the real thing once, on this desktop, with a window of its own.
//
// A health report that only looks at what is installed has been green while nothing worked. Here a
// probe window is opened, read, written to, and asked for its own record of what it received.
#include "supervisor/cli/commands.h"
#include "supervisor/cli/hints.h"
#include "supervisor/cli/keeper.h"
#include "supervisor/cli/own-host.h"
#include "supervisor/cli/receipt-text.h"
#include "supervisor/ledger/reader.h"

#include <kj/debug.h>

#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::cli {
namespace {

constexpr kj::StringPtr TEXT = "praefectus doctor"_kj;
constexpr uint64_t WAIT_MS = 15'000;

uint64_t nowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

constexpr kj::StringPtr WAYLAND =
    "This is a Wayland session: only X11 (and Xwayland) windows, those of DISPLAY, can be seen."_kj;

bool isWayland() {
  const char* display = getenv("WAYLAND_DISPLAY");
  return display != nullptr && display[0] != '\0';
}

Failure wrong(kj::StringPtr code, kj::String message, kj::StringPtr advice) {
  return {ExitCode::FAILED, kj::str(code), kj::mv(message), kj::str(advice)};
}

kj::String probeProgram() {
  auto whole = ownProgram();
  auto program =
      kj::str(whole.slice(0, KJ_ASSERT_NONNULL(whole.findLast('/'))), "/praefectus-probe");
  if (access(program.cStr(), X_OK) != 0) {
    throw wrong("probe_missing"_kj,
                kj::str("the probe window's program is not installed beside this one"),
                "Build or install praefectus-probe."_kj);
  }
  return program;
}

kj::Vector<kj::String> desktopEnvironment() {
  kj::Vector<kj::String> out;
  for (const char* name :
       {"DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "HOME", "PATH"}) {
    const char* value = getenv(name);
    if (value != nullptr) out.add(kj::str(name, "=", value));
  }
  out.add(kj::str("LANG=C.UTF-8"));
  out.add(kj::str("GDK_BACKEND=x11"));
  return out;
}

class Doctor {
 public:
  Report run() {
    const char* display = getenv("DISPLAY");
    if (display == nullptr || display[0] == '\0') {
      throw wrong("no_display"_kj, kj::str("DISPLAY is not set: there is no desktop to look at"),
                  isWayland() ? WAYLAND : hintFor(RefusalCode::NO_DISPLAY));
    }
    auto program = probeProgram();
    OwnHost own;
    passed("supervisor", "started, with a throw-away ledger and key");

    auto helper = own.wait(own.session().capabilities());
    passed("helper",
           kj::str(helper.identity.name, " ", helper.identity.release, ", attested and running"));
    for (auto& capability : helper.capabilities) {
      if (!capability.available) {
        throw wrong(nameOf(capability.why),
                    kj::str(capability.name, " does not work here: ", meaningOf(capability.why)),
                    hintFor(capability.why));
      }
    }
    passed("desktop", kj::str(helper.capabilities.size(), " capabilities tried, all work"));
    if (!own.host().info().acting) {
      throw wrong("desktop_busy"_kj, kj::str("another supervisor acts on this desktop"),
                  hintFor(RefusalCode::DESKTOP_BUSY));
    }
    operate(own, program);
    Report report;
    report.data = {{"checks", checks}};
    if (isWayland()) report.data["note"] = WAYLAND.cStr();
    report.text = kj::str(kj::strArray(lines, ""), "\nPraefectus works on this desktop.\n",
                          isWayland() ? kj::str(WAYLAND, "\n") : kj::str());
    return report;
  }

 private:
  void passed(kj::StringPtr name, kj::StringPtr what) {
    auto title = kj::str(name);
    while (title.size() < 12) title = kj::str(title, " ");
    lines.add(kj::str("  ok  ", title, what, "\n"));
    checks.push_back({{"name", name.cStr()}, {"ok", true}, {"said", json(what)}});
  }

  void operate(OwnHost& own, kj::StringPtr program) {
    TemporaryFolder folder;
    auto keeperFolder = kj::str(folder.path(), "/probe");
    KJ_SYSCALL(mkdir(keeperFolder.cStr(), 0700));
    auto record = kj::str(folder.path(), "/record");
    auto output = kj::str(folder.path(), "/output");
    int fd;
    KJ_SYSCALL(fd = open(output.cStr(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    kj::AutoCloseFd outputFd(fd);

    Keeper keeper(keeperFolder);
    auto environment = desktopEnvironment();
    auto pointers = KJ_MAP(entry, environment)->kj::StringPtr { return entry; };
    kj::StringPtr arguments[] = {program, "--record"_kj, record, "--no-focus"_kj};
    pid_t probe = keeper.start({kj::arrayPtr(arguments, 4), pointers, fd});

    auto window = waitForWindow(own, probe);
    auto seen = own.wait(own.session().observe(window, true));
    passed("reading", kj::str("the probe window: ", seen.elements.size(),
                              " elements and a picture, in ", seen.elapsedMs, " ms"));

    auto outcome =
        own.wait(own.session().execute(own.session().setValue(seen, entryOf(seen), TEXT)));
    if (outcome.receipt.terminal != Terminal::SUCCEEDED) {
      throw wrong("not_verified"_kj,
                  kj::str("a text was set and ended as ", receiptSentence(outcome.receipt),
                          "; desktop ", nameOf(outcome.receipt.context)),
                  "Leave mouse and keyboard alone for a moment and try again."_kj);
    }
    passed("acting", kj::str("set a text: ", receiptSentence(outcome.receipt)));
    if (!contains(textOf(record), kj::str(hex(TEXT.asBytes()), "\n"))) {
      throw wrong("effect_missing"_kj,
                  kj::str("the window has no record of the text that was read back"), ""_kj);
    }
    passed("effect",
           "the window's own record has it; pointer, focus and window order were left alone");

    auto reader = orFail(ledger::LedgerReader::open(own.ledger()));
    auto checked = orFail(reader->verify(own.host().info().receiptKey));
    if (checked.findings.size() > 0)
      throw wrong("ledger_damaged"_kj, kj::str("the ledger does not verify"), ""_kj);
    passed("ledger", kj::str(counted(checked.receipts, "receipt"), ", signed and chained"));
    keeper.end(probe);
  }

  static WindowRef waitForWindow(OwnHost& own, pid_t probe) {
    uint64_t end = nowMs() + WAIT_MS;
    bool appeared = false;
    do {
      auto desktop = own.wait(own.session().list());
      for (auto& window : desktop.windows) {
        if (window.ref.process.pid != static_cast<uint32_t>(probe)) continue;
        appeared = true;
        if (window.accessible) return window.ref;
      }
    } while (nowMs() < end);
    throw appeared ? wrong("accessibility_off"_kj,
                           kj::str("the probe window opened but offers no accessibility tree"),
                           hintFor(RefusalCode::ACCESSIBILITY_OFF))
                   : wrong("no_window"_kj, kj::str("the probe window did not open in 15 s"),
                           hintFor(RefusalCode::NO_DISPLAY));
  }

  static const Element& entryOf(const Observation& seen) {
    for (auto& element : seen.elements) {
      if (element.settable && !element.secure && element.role == "text") return element;
    }
    throw wrong("unreadable"_kj, kj::str("the probe window's text field was not found"), ""_kj);
  }

  static kj::String textOf(kj::StringPtr path) {
    int fd = open(path.cStr(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return kj::str();
    return kj::FdInputStream(kj::AutoCloseFd(fd)).readAllText();
  }

  static bool contains(kj::StringPtr text, kj::StringPtr part) {
    return strstr(text.cStr(), part.cStr()) != nullptr;
  }

  kj::Vector<kj::String> lines;
  Json checks = Json::array();
};

}  // namespace

Report doctor(Arguments arguments) {
  Options(arguments, nullptr, 0);
  return Doctor().run();
}

}  // namespace praefectus::cli
