// apps, windows, observe, capabilities: what a person or a script can see of a desktop.
#include "supervisor/cli/commands.h"
#include "supervisor/cli/files.h"
#include "supervisor/cli/own-host.h"

#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

namespace praefectus::cli {
namespace {

kj::StringPtr stateName(AppState state) {
  switch (state) {
    case AppState::READY:
      return "ready"_kj;
    case AppState::WARMING_UP:
      return "warming_up"_kj;
    case AppState::ACCESSIBILITY_OFF:
      return "accessibility_off"_kj;
    case AppState::NOT_ANSWERING:
      return "not_answering"_kj;
  }
  return "unknown"_kj;
}

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

Json rectJson(const Rect& rect) {
  return {{"x", rect.x}, {"y", rect.y}, {"width", rect.width}, {"height", rect.height}};
}

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
          {"accessible", window.accessible}};
}

template <typename... Cells>
kj::Vector<kj::String> cells(Cells&&... texts) {
  kj::Vector<kj::String> out;
  (out.add(kj::str(kj::fwd<Cells>(texts))), ...);
  return out;
}

uint64_t windowId(kj::StringPtr text) {
  char* end = nullptr;
  unsigned long long id = strtoull(text.cStr(), &end, 0);
  if (text.size() == 0 || *end != '\0' || id == 0) {
    throw usage(kj::str("a window id is a number, such as 0x1400003"));
  }
  return id;
}

kj::StringPtr stateWord(State state) {
  static const auto enumerants = capnp::Schema::from<State>().getEnumerants();
  return enumerants[static_cast<uint>(state)].getProto().getName();
}

// The states that tell a reader something; "visible" and the like are the ordinary case.
kj::String statesText(const Element& element) {
  constexpr State TOLD[] = {State::FOCUSED, State::CHECKED, State::SELECTED, State::EXPANDED,
                            State::PRESSED, State::MODAL,   State::READ_ONLY};
  kj::Vector<kj::String> words;
  if (!element.states.has(State::SENSITIVE)) words.add(kj::str("disabled"));
  if (!element.states.has(State::SHOWING)) words.add(kj::str("hidden"));
  for (State state : TOLD) {
    if (element.states.has(state)) words.add(kj::str(stateWord(state)));
  }
  if (element.secure) words.add(kj::str("secure"));
  if (element.settable) words.add(kj::str("settable"));
  if (element.fault != Fault::NONE) words.add(kj::str("fault"));
  return words.size() == 0 ? kj::str() : kj::str(" [", kj::strArray(words, " "), "]");
}

kj::String elementLine(size_t index, const Element& element, size_t depth) {
  auto indent = kj::heapString(2 * depth);
  memset(indent.begin(), ' ', indent.size());
  auto actions = element.actions.size() == 0
                     ? kj::str()
                     : kj::str("  (", kj::strArray(element.actions, ", "), ")");
  kj::String value = kj::str();
  KJ_IF_MAYBE (text, element.value) value = kj::str(" = \"", printable(*text), "\"");
  return kj::str(indent, "e", index, " ", element.role, " \"", printable(element.name), "\"", value,
                 statesText(element), printable(actions), "\n");
}

// Elements are listed breadth first; a person reads a tree, so each is printed under its parent.
// The numbers are the places in the list, as everywhere else.
kj::String treeText(kj::ArrayPtr<const Element> elements) {
  struct Place {
    size_t index, depth;
  };
  auto children = kj::heapArray<kj::Vector<size_t>>(elements.size());
  kj::Vector<Place> waiting;
  // From the end, since what is put down last is taken up first.
  for (size_t i = elements.size(); i-- > 0;) {
    if (i > 0 && elements[i].parent < i) {
      children[elements[i].parent].add(i);
    } else {
      waiting.add(Place{i, 0});
    }
  }
  kj::Vector<kj::String> lines;
  while (waiting.size() > 0) {
    auto place = waiting.back();
    waiting.removeLast();
    lines.add(elementLine(place.index, elements[place.index], place.depth));
    for (size_t child : children[place.index]) waiting.add(Place{child, place.depth + 1});
  }
  return kj::strArray(lines, "");
}

Json elementJson(size_t index, const Element& element) {
  Json states = Json::array();
  for (auto enumerant : capnp::Schema::from<State>().getEnumerants()) {
    auto state = static_cast<State>(enumerant.getOrdinal());
    if (element.states.has(state)) states.push_back(enumerant.getProto().getName().cStr());
  }
  Json actions = Json::array();
  for (auto& action : element.actions) actions.push_back(json(printable(action)));
  Json out = {{"element", index},
              {"parent", element.parent},
              {"depth", element.depth},
              {"role", json(element.role)},
              {"name", json(printable(element.name))},
              {"states", states},
              {"actions", actions},
              {"settable", element.settable},
              {"secure", element.secure},
              {"fault", element.fault != Fault::NONE},
              {"digest", hex(bytesOf(element.digest)).cStr()}};
  KJ_IF_MAYBE (bounds, element.bounds) out["bounds"] = rectJson(*bounds);
  KJ_IF_MAYBE (value, element.value) out["value"] = json(printable(*value));
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

kj::String windowState(const Window& window) {
  auto state = !window.visible ? "hidden"_kj : window.active ? "active"_kj : "visible"_kj;
  return kj::str(state, window.accessible ? "" : ", no tree");
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
    table.row(
        cells(app.process.pid, stateName(app.state), printable(app.toolkit), applicationName(app)));
    list.push_back({{"pid", app.process.pid},
                    {"process_start", app.process.start},
                    {"name", json(printable(app.name))},
                    {"toolkit", json(printable(app.toolkit))},
                    {"state", stateName(app.state).cStr()}});
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
  report.data = {{"display", json(desktop.display)}, {"windows", list}, {"cut", desktop.cut}};
  report.text = kj::str(table.str(), desktop.cut ? "(more exist than are listed)\n" : "");
  return report;
}

Report observe(Arguments arguments) {
  constexpr Options::Spec SPECS[] = {{"--png"_kj, true}};
  Options options(arguments, kj::arrayPtr(SPECS, 1), 1);
  if (options.positional().size() != 1)
    throw usage(kj::str("which window? `praefectus windows` lists them"));
  uint64_t id = windowId(options.positional()[0]);

  OwnHost own;
  auto desktop = own.wait(own.session().list());
  const Window* wanted = nullptr;
  for (auto& window : desktop.windows) {
    if (window.ref.window == id) wanted = &window;
  }
  if (wanted == nullptr)
    throw failure({RefusalCode::TARGET_MISSING, "There is no such window."_kj});
  bool picture = options.has("--png");
  auto seen = own.wait(own.session().observe(wanted->ref, picture));
  KJ_IF_MAYBE (png, seen.picture) writeNewFile(KJ_ASSERT_NONNULL(options.value("--png")), *png);

  Json elements = Json::array();
  for (size_t i = 0; i < seen.elements.size(); ++i) {
    elements.push_back(elementJson(i, seen.elements[i]));
  }
  kj::Vector<kj::String> cuts;
  if (seen.cuts.elements) cuts.add(kj::str("elements"));
  if (seen.cuts.depth) cuts.add(kj::str("depth"));
  if (seen.cuts.text) cuts.add(kj::str("text"));
  if (seen.cuts.time) cuts.add(kj::str("time"));
  Report report;
  report.data = {{"frame", hex(bytesOf(seen.frame.id)).cStr()},
                 {"window", windowJson(*wanted)},
                 {"elements", elements},
                 {"cut",
                  {{"elements", seen.cuts.elements},
                   {"depth", seen.cuts.depth},
                   {"text", seen.cuts.text},
                   {"time", seen.cuts.time}}},
                 {"faults", seen.faults},
                 {"elapsed_ms", seen.elapsedMs}};
  report.text = kj::str(
      treeText(seen.elements), counted(seen.elements.size(), "element"), " in ", seen.elapsedMs,
      " ms", cuts.size() > 0 ? kj::str("; cut: ", kj::strArray(cuts, ", ")) : kj::str(),
      seen.faults > 0 ? kj::str("; ", seen.faults, " could not be read whole") : kj::str(), "\n");
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
