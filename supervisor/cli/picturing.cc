// screenshot: what a window, a part of one, or a monitor looks like.
#include "supervisor/cli/commands.h"
#include "supervisor/cli/files.h"
#include "supervisor/cli/observing.h"
#include "supervisor/cli/own-host.h"

#include <cstdio>
#include <cstdlib>

namespace praefectus::cli {
namespace {

const Monitor& monitorIn(const Desktop& desktop, uint32_t number) {
  if (number > desktop.monitors.size()) {
    throw failure({RefusalCode::TARGET_MISSING, "There is no such monitor."_kj});
  }
  return desktop.monitors[number - 1];
}

uint32_t monitorNumber(kj::StringPtr text) {
  char* end = nullptr;
  unsigned long number = strtoul(text.cStr(), &end, 10);
  if (*end != '\0' || number == 0 || number > bounds::MONITORS) {
    throw usage(kj::str("--monitor is a number that `praefectus windows` prints"));
  }
  return static_cast<uint32_t>(number);
}

// As X spells a place: "300x200+10+20".
Rect partFrom(kj::StringPtr text) {
  Rect part;
  int end = 0;
  int found = sscanf(text.cStr(), "%5ux%5u%*1[+]%5d%*1[+]%5d%n", &part.width, &part.height, &part.x,
                     &part.y, &end);
  bool whole = found == 4 && static_cast<size_t>(end) == text.size();
  if (!whole || part.width == 0 || part.height == 0 || part.x < 0 || part.y < 0) {
    throw usage(kj::str("--part is WIDTHxHEIGHT+X+Y in the window, such as 300x200+10+20"));
  }
  return part;
}

}  // namespace

Report screenshot(Arguments arguments) {
  constexpr Options::Spec SPECS[] = {
      {"--png"_kj, true}, {"--monitor"_kj, true}, {"--part"_kj, true}};
  Options options(arguments, kj::ArrayPtr<const Options::Spec>(SPECS), 1);
  auto windows = options.positional();
  auto monitor = options.value("--monitor").map(monitorNumber);
  auto part = options.value("--part").map(partFrom);
  if (windows.size() + (monitor == nullptr ? 0 : 1) != 1) {
    throw usage(kj::str("which window or --monitor? `praefectus windows` lists them"));
  }
  if (monitor != nullptr && part != nullptr) throw usage(kj::str("--part is of a window"));
  if (!options.has("--png")) throw usage(kj::str("into which file? --png names a new one"));
  uint64_t id = windows.size() == 1 ? windowId(windows[0]) : 0;

  OwnHost own;
  auto& session = own.session();
  auto desktop = own.wait(session.list());
  auto take = [&]() {
    KJ_IF_MAYBE (number, monitor) {
      return own.wait(session.screenshot(monitorIn(desktop, *number).id));
    }
    auto& window = windowIn(desktop, id);
    KJ_IF_MAYBE (asked, part)
      return own.wait(session.zoom(own.wait(session.observe(window.ref)), *asked));
    return own.wait(session.screenshot(window.ref));
  };
  auto taken = take();
  writeNewFile(KJ_ASSERT_NONNULL(options.value("--png")), taken.png);

  Report report;
  report.data = pictureJson(taken.info);
  report.text = kj::str(taken.info.width, "x", taken.info.height, " pixels, BLAKE2b-256 ",
                        hex(bytesOf(taken.info.pixels)), "\n");
  return report;
}

}  // namespace praefectus::cli
