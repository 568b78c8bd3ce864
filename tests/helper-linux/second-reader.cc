// A second reader: one window of an application as libatspi sees it, which shares no code with the
// helper. The tests compare the two, the desktop bench times them against each other.
//
//   praefectus-second-reader PID [--title TITLE] [--cache on|off] [--repeat N] [--time]
//
// One line of JSON for each element, breadth first, the window first:
//   path, parent (path), role, name, states (names), interfaces (short names), children (their
//   number), index (in the parent), and extents ([x, y, width, height], window coordinates; absent
//   without a Component).
// With --time instead one line for each of N walks over all of these: {"seconds", "elements"}. The
// search for the window comes before and is not in the time; libatspi begins to fill its cache
// there.
//
// Exit code: 0 done, 1 no such window on the accessibility bus, 2 usage.
#include <atspi/atspi.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

// A spreadsheet that is asked for all its cells takes gigabytes of memory and does not come back.
constexpr gint CHILDREN = 3000;

struct Unref {
  void operator()(gpointer object) const { g_object_unref(object); }
};
template <typename T>
using Ref = std::unique_ptr<T, Unref>;
using Object = Ref<AtspiAccessible>;

struct Options {
  guint pid = 0;
  const char* title = nullptr;
  bool cached = true;
  unsigned repeat = 1;
  bool timed = false;
};

struct Element {
  std::string path, parent;
  AtspiRole role = ATSPI_ROLE_INVALID;
  std::string name;
  std::vector<std::string> states;
  std::vector<std::string> interfaces;
  gint children = 0;
  gint index = 0;
  bool placed = false;
  AtspiRect extents{};
};

std::string taken(gchar* text) {
  std::string out = text == nullptr ? "" : text;
  g_free(text);
  return out;
}

// What libatspi cannot read is left as it is; the comparison then shows it.
template <typename Read>
auto quietly(Read&& read) {
  GError* error = nullptr;
  auto out = read(&error);
  g_clear_error(&error);
  return out;
}

std::string pathOf(AtspiAccessible* object) { return ATSPI_OBJECT(object)->path; }

std::vector<std::string> statesOf(AtspiAccessible* object) {
  std::vector<std::string> out;
  Ref<AtspiStateSet> set(atspi_accessible_get_state_set(object));
  if (set == nullptr) return out;
  GArray* states = atspi_state_set_get_states(set.get());
  auto names = static_cast<GEnumClass*>(g_type_class_ref(ATSPI_TYPE_STATE_TYPE));
  for (guint i = 0; i < states->len; ++i) {
    auto* name =
        g_enum_get_value(names, static_cast<gint>(g_array_index(states, AtspiStateType, i)));
    out.push_back(name == nullptr ? "unknown" : name->value_nick);
  }
  g_type_class_unref(names);
  g_array_free(states, TRUE);
  return out;
}

std::vector<std::string> interfacesOf(AtspiAccessible* object) {
  std::vector<std::string> out;
  GArray* names = atspi_accessible_get_interfaces(object);
  if (names == nullptr) return out;
  for (guint i = 0; i < names->len; ++i) out.push_back(taken(g_array_index(names, gchar*, i)));
  g_array_free(names, TRUE);
  return out;
}

// GTK 3 complains on its standard error when an object without a Component is asked for its place.
void readPlace(AtspiAccessible* object, Element& element) {
  Ref<AtspiComponent> component(atspi_accessible_get_component_iface(object));
  if (component == nullptr) return;
  AtspiRect* place = quietly([&](GError** error) {
    return atspi_component_get_extents(component.get(), ATSPI_COORD_TYPE_WINDOW, error);
  });
  if (place == nullptr) return;
  element.placed = true;
  element.extents = *place;
  g_free(place);
}

Element read(AtspiAccessible* object, std::string parent, gint index) {
  Element out;
  out.path = pathOf(object);
  out.parent = std::move(parent);
  out.index = index;
  out.role = quietly([&](GError** error) { return atspi_accessible_get_role(object, error); });
  out.name =
      taken(quietly([&](GError** error) { return atspi_accessible_get_name(object, error); }));
  out.states = statesOf(object);
  out.interfaces = interfacesOf(object);
  out.children =
      quietly([&](GError** error) { return atspi_accessible_get_child_count(object, error); });
  readPlace(object, out);
  return out;
}

Object childOf(AtspiAccessible* object, gint index) {
  return Object(quietly(
      [&](GError** error) { return atspi_accessible_get_child_at_index(object, index, error); }));
}

std::vector<Element> walk(AtspiAccessible* window) {
  struct Place {
    Object object;
    std::string parent;
    gint index;
  };
  std::vector<Element> out;
  std::set<std::string> met{pathOf(window)};
  std::deque<Place> ahead;
  ahead.push_back({Object(ATSPI_ACCESSIBLE(g_object_ref(window))), "", 0});
  while (!ahead.empty()) {
    auto here = std::move(ahead.front());
    ahead.pop_front();
    auto element = read(here.object.get(), std::move(here.parent), here.index);
    if (element.children <= CHILDREN) {
      for (gint i = 0; i < element.children; ++i) {
        auto child = childOf(here.object.get(), i);
        if (child == nullptr || !met.insert(pathOf(child.get())).second) continue;
        ahead.push_back({std::move(child), element.path, i});
      }
    }
    out.push_back(std::move(element));
  }
  return out;
}

// TITLE is a part of the window's name.
bool isMeant(AtspiAccessible* window, const Options& options) {
  if (options.title == nullptr) return true;
  auto name =
      taken(quietly([&](GError** error) { return atspi_accessible_get_name(window, error); }));
  return name.find(options.title) != std::string::npos;
}

Object findWindow(AtspiAccessible* desktop, const Options& options) {
  gint applications =
      quietly([&](GError** error) { return atspi_accessible_get_child_count(desktop, error); });
  for (gint i = 0; i < applications; ++i) {
    auto application = childOf(desktop, i);
    if (application == nullptr) continue;
    guint pid = quietly(
        [&](GError** error) { return atspi_accessible_get_process_id(application.get(), error); });
    if (pid != options.pid) continue;
    gint windows = quietly(
        [&](GError** error) { return atspi_accessible_get_child_count(application.get(), error); });
    for (gint j = 0; j < windows; ++j) {
      auto window = childOf(application.get(), j);
      if (window != nullptr && isMeant(window.get(), options)) return window;
    }
  }
  return nullptr;
}

void print(const nlohmann::ordered_json& line) {
  // An application may name things in bytes that are no UTF-8.
  puts(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

nlohmann::ordered_json jsonOf(const Element& element) {
  auto role = taken(atspi_role_get_name(element.role));
  nlohmann::ordered_json out = {{"path", element.path},
                                {"parent", element.parent},
                                {"role", role},
                                {"name", element.name},
                                {"states", element.states},
                                {"interfaces", element.interfaces},
                                {"children", element.children},
                                {"index", element.index}};
  auto& at = element.extents;
  if (element.placed) out["extents"] = {at.x, at.y, at.width, at.height};
  return out;
}

void time(AtspiAccessible* window) {
  auto begin = std::chrono::steady_clock::now();
  size_t elements = walk(window).size();
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  print({{"seconds", taken.count()}, {"elements", elements}});
}

bool parse(int argc, char** argv, Options& options) {
  if (argc < 2) return false;
  options.pid = static_cast<guint>(strtoul(argv[1], nullptr, 10));
  for (int i = 2; i < argc; ++i) {
    bool more = i + 1 < argc;
    if (strcmp(argv[i], "--time") == 0) {
      options.timed = true;
    } else if (strcmp(argv[i], "--title") == 0 && more) {
      options.title = argv[++i];
    } else if (strcmp(argv[i], "--repeat") == 0 && more) {
      options.repeat = static_cast<unsigned>(strtoul(argv[++i], nullptr, 10));
    } else if (strcmp(argv[i], "--cache") == 0 && more) {
      ++i;
      options.cached = strcmp(argv[i], "on") == 0;
      if (!options.cached && strcmp(argv[i], "off") != 0) return false;
    } else {
      return false;
    }
  }
  return options.pid != 0;
}

// Only after libatspi has taken the application's items, which it asked for when it met the
// application: without a cache it would wait for an answer within an answer, for ever. Answers come
// in order, so two that cannot come from a cache are enough.
void turnCacheOff(AtspiAccessible* desktop, AtspiAccessible* window) {
  Element unused;
  for (int i = 0; i < 2; ++i) readPlace(window, unused);
  Ref<AtspiAccessible> application(
      quietly([&](GError** error) { return atspi_accessible_get_application(window, error); }));
  atspi_accessible_set_cache_mask(desktop, ATSPI_CACHE_NONE);
  atspi_accessible_set_cache_mask(application.get(), ATSPI_CACHE_NONE);
}

int run(const Options& options) {
  Object desktop(atspi_get_desktop(0));
  // Without being asked to, libatspi caches only inside its own main loop.
  atspi_accessible_set_cache_mask(desktop.get(), ATSPI_CACHE_DEFAULT);
  auto window = findWindow(desktop.get(), options);
  if (window == nullptr) {
    fprintf(stderr, "praefectus-second-reader: no such window\n");
    return 1;
  }
  if (!options.cached) turnCacheOff(desktop.get(), window.get());
  if (options.timed) {
    for (unsigned i = 0; i < options.repeat; ++i) time(window.get());
    return 0;
  }
  for (auto& element : walk(window.get())) print(jsonOf(element));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    fprintf(stderr,
            "usage: praefectus-second-reader PID [--title TITLE] [--cache on|off] [--repeat N] "
            "[--time]\n");
    return 2;
  }
  atspi_init();
  int result = run(options);
  atspi_exit();
  return result;
}
