// apps, windows, observe, capabilities: what a person or a script can see of a desktop.
#include "supervisor/cli/annotation.h"
#include "supervisor/cli/commands.h"
#include "supervisor/cli/files.h"
#include "supervisor/cli/observing.h"
#include "supervisor/cli/own-host.h"

#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

namespace praefectus::cli {
namespace {

kj::StringPtr healthName(Health health) {
  switch (health) {
    case Health::HEALTHY:
      return "healthy"_kj;
    case Health::DEGRADED:
      return "degraded"_kj;
    case Health::UNAVAILABLE:
      return "unavailable"_kj;
    case Health::NOT_RUN:
      return "not_run"_kj;
  }
  return "unknown"_kj;
}

kj::String idText(uint64_t window) { return kj::str("0x", kj::hex(window)); }

kj::String rectText(const Rect& rect) {
  return kj::str(rect.width, "x", rect.height, rect.x < 0 ? "" : "+", rect.x, rect.y < 0 ? "" : "+",
                 rect.y);
}

Json windowJson(const Window& window) {
  return {{"id", idText(window.ref.window).cStr()},
          {"pid", window.ref.process.pid},
          {"process_start", window.ref.process.start},
          {"title", json(printable(window.title))},
          {"bounds", rectJson(window.bounds)},
          {"visible", window.visible},
          {"active", window.active},
          {"stacking", window.stacking},
          {"accessible", window.accessible},
          {"kind", wordFor(window.kind).cStr()},
          {"owner", window.owner == 0 ? Json(nullptr) : Json(idText(window.owner).cStr())},
          {"modal", window.modal},
          {"managed", window.managed}};
}

template <typename... Cells>
kj::Vector<kj::String> cells(Cells&&... texts) {
  kj::Vector<kj::String> out;
  (out.add(kj::str(kj::fwd<Cells>(texts))), ...);
  return out;
}

// What the kernel calls a process; empty when it has gone.
kj::String processName(uint32_t pid) {
  int fd = open(kj::str("/proc/", pid, "/comm").cStr(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return kj::str();
  char name[64];
  kj::AutoCloseFd file(fd);
  ssize_t size = ::read(file, name, sizeof(name));
  while (size > 0 && name[size - 1] == '\n') --size;
  return size <= 0 ? kj::str() : printable(kj::heapString(name, static_cast<size_t>(size)));
}

kj::String applicationName(const Application& app) {
  if (app.name.size() > 0) return printable(app.name);
  auto process = processName(app.process.pid);
  return process.size() == 0 ? kj::str() : kj::str("[", process, "]");
}

kj::String toolkitText(const Application& app) {
  auto gap = app.version.size() == 0 ? "" : " ";
  return printable(kj::str(app.toolkit, gap, app.version));
}

kj::String windowState(const Window& window) {
  auto state = !window.visible ? "hidden"_kj : window.active ? "active"_kj : "visible"_kj;
  auto modal = window.modal ? "modal "_kj : ""_kj;
  auto kind = window.kind == WindowKind::NORMAL && !window.modal && window.owner == 0
                  ? kj::str()
                  : kj::str(", ", modal, wordFor(window.kind));
  auto owner = window.owner == 0 ? kj::str() : kj::str(" of ", idText(window.owner));
  return kj::str(state, kind, owner, window.accessible ? "" : ", no tree");
}

kj::String monitorText(size_t number, const Monitor& monitor) {
  auto scale = monitor.scale == 1000 ? kj::str() : kj::str(", scale ", monitor.scale / 1000.0);
  return kj::str("monitor ", number, "  ", rectText(monitor.bounds),
                 monitor.primary ? ", primary" : "", scale, "\n");
}

// What a person would not see of the list by looking at it.
kj::String aroundText(const Desktop& desktop) {
  kj::Vector<kj::String> lines;
  if (desktop.monitors.size() > 0) lines.add(kj::str("\n"));
  size_t number = 0;
  for (auto& monitor : desktop.monitors) lines.add(monitorText(++number, monitor));
  if (desktop.lock == Lock::LOCKED) {
    lines.add(kj::str("The session is locked: nothing is read or done until it is unlocked.\n"));
  }
  if (desktop.cut) lines.add(kj::str("(more exist than are listed)\n"));
  return kj::strArray(lines, "");
}

}  // namespace

Report apps(Arguments arguments) {
  Options(arguments, nullptr, 0);
  OwnHost own;
  auto desktop = own.wait(own.session().list());
  constexpr kj::StringPtr HEADS[] = {"PID"_kj, "STATE"_kj, "TOOLKIT"_kj, "NAME"_kj};
  Table table(kj::arrayPtr(HEADS, 4));
  Json list = Json::array();
  for (auto& app : desktop.applications) {
    table.row(cells(app.process.pid, wordFor(app.state), toolkitText(app), applicationName(app)));
    list.push_back({{"pid", app.process.pid},
                    {"process_start", app.process.start},
                    {"name", json(printable(app.name))},
                    {"toolkit", json(printable(app.toolkit))},
                    {"toolkit_version", json(printable(app.version))},
                    {"state", wordFor(app.state).cStr()}});
  }
  Report report;
  report.data = {{"applications", list}, {"cut", desktop.cut}};
  report.text = kj::str(table.str(), desktop.cut ? "(more exist than are listed)\n" : "");
  return report;
}

Report windows(Arguments arguments) {
  Options(arguments, nullptr, 0);
  OwnHost own;
  auto desktop = own.wait(own.session().list());
  constexpr kj::StringPtr HEADS[] = {"WINDOW"_kj, "PID"_kj, "GEOMETRY"_kj, "STATE"_kj, "TITLE"_kj};
  Table table(kj::arrayPtr(HEADS, 5));
  Json list = Json::array();
  // The list comes bottom first; a person looks from the top.
  for (size_t i = desktop.windows.size(); i-- > 0;) {
    auto& window = desktop.windows[i];
    table.row(cells(idText(window.ref.window), window.ref.process.pid, rectText(window.bounds),
                    windowState(window), printable(window.title)));
    list.push_back(windowJson(window));
  }
  Report report;
  report.data = {{"display", json(desktop.display)},
                 {"windows", list},
                 {"monitors", monitorsJson(desktop.monitors)},
                 {"lock", wordFor(desktop.lock).cStr()},
                 {"cut", desktop.cut}};
  report.text = kj::str(table.str(), aroundText(desktop));
  return report;
}

Report observe(Arguments arguments) {
  auto specs = kj::Vector<Options::Spec>();
  specs.add(Options::Spec{"--png"_kj, true});
  specs.add(Options::Spec{"--annotate"_kj, false});
  specs.addAll(kj::ArrayPtr<const Options::Spec>(READING));
  Options options(arguments, specs, 1);
  if (options.positional().size() != 1)
    throw usage(kj::str("which window? `praefectus windows` lists them"));
  if (options.has("--annotate") && !options.has("--png")) {
    throw usage(kj::str("--annotate draws on the picture that --png saves"));
  }
  uint64_t id = windowId(options.positional()[0]);
  Reader reader(options);

  OwnHost own;
  auto desktop = own.wait(own.session().list());
  auto& window = windowIn(desktop, id);
  auto reading = reader.read(own, window.ref, options.has("--png"));
  auto& seen = reading.seen;
  KJ_IF_MAYBE (png, seen.png) {
    auto drawn = options.has("--annotate") ? annotated(*png, seen) : kj::mv(*png);
    writeNewFile(KJ_ASSERT_NONNULL(options.value("--png")), drawn);
  }

  Report report;
  report.data = observationJson(seen);
  report.data["window"] = windowJson(window);
  report.text = kj::str(reading.text, "(", counted(seen.elements.size(), "element"), " read in ",
                        seen.elapsedMs, " ms)\n");
  return report;
}

Report capabilities(Arguments arguments) {
  Options(arguments, nullptr, 0);
  OwnHost own;
  auto helper = own.wait(own.session().capabilities());
  bool allWork = true;
  for (auto& capability : helper.capabilities) allWork &= capability.available;
  constexpr kj::StringPtr HEADS[] = {"CAPABILITY"_kj, "WORKS"_kj, "WHY NOT"_kj};
  Table table(kj::arrayPtr(HEADS, allWork ? 2 : 3));
  Json list = Json::array();
  for (auto& capability : helper.capabilities) {
    Json one = {{"name", capability.name.cStr()}, {"available", capability.available}};
    if (capability.available) {
      table.row(cells(capability.name, "yes"));
    } else {
      auto why = nameOf(capability.why);
      auto sentence = meaningOf(capability.why);
      table.row(cells(capability.name, "no", kj::str(why, ": ", sentence)));
      one["why"] = why.cStr();
      one["means"] = sentence.cStr();
    }
    list.push_back(one);
  }
  // Holding the desktop's lock is worth nothing where there is no desktop.
  bool acting = own.host().info().acting && helper.health != Health::UNAVAILABLE;
  Report report;
  report.data = {{"helper",
                  {{"name", json(helper.identity.name)},
                   {"release", json(helper.identity.release)},
                   {"digest", hex(bytesOf(helper.identity.digest)).cStr()},
                   {"generation", helper.identity.generation},
                   {"pid", helper.pid}}},
                 {"health", healthName(helper.health).cStr()},
                 {"acting", acting},
                 {"capabilities", list}};
  report.text = kj::str("helper  ", helper.identity.name, " ", helper.identity.release, ", ",
                        healthName(helper.health), "\n", "acting  ", acting ? "yes" : "no", "\n\n",
                        table.str());
  return report;
}

}  // namespace praefectus::cli
