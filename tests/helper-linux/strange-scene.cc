#include "tests/helper-linux/strange-scene.h"

#include <algorithm>
#include <iterator>

namespace strange {
namespace {

const std::map<std::string, Mode> MODES = {
    {"plain", Mode::PLAIN},
    {"huge", Mode::HUGE_TREE},
    {"deep", Mode::DEEP},
    {"wide", Mode::WIDE},
    {"slow", Mode::SLOW},
    {"dies", Mode::DIES},
    {"freezes", Mode::FREEZES},
    {"mute", Mode::MUTE},
    {"odd-error", Mode::ODD_ERROR},
    {"odd-signature", Mode::ODD_SIGNATURE},
    {"odd-text", Mode::ODD_TEXT},
    {"odd-size", Mode::ODD_SIZE},
    {"odd-loop", Mode::ODD_LOOP},
    {"odd-self", Mode::ODD_SELF},
    {"odd-foreign", Mode::ODD_FOREIGN},
    {"odd-extents", Mode::ODD_EXTENTS},
    {"rename", Mode::RENAME},
    {"disable", Mode::DISABLE},
    {"flood", Mode::FLOOD},
    {"add", Mode::ADD},
    {"remove", Mode::REMOVE},
    {"replace", Mode::REPLACE},
    {"ghost", Mode::GHOST},
    {"detach", Mode::DETACH},
    {"renumber", Mode::RENUMBER},
    {"recycle", Mode::RECYCLE},
    {"navigate", Mode::NAVIGATE},
    {"navigate-within", Mode::NAVIGATE_WITHIN},
    {"reload", Mode::RELOAD},
    {"reload-anew", Mode::RELOAD_ANEW},
    {"reborn", Mode::REBORN},
    {"reborn-twice", Mode::REBORN_TWICE},
    {"reborn-far", Mode::REBORN_FAR},
    {"reborn-renamed", Mode::REBORN_RENAMED},
};

const std::map<std::string, Cache> CACHES = {
    {"whole", Cache::WHOLE},   {"none", Cache::NONE},   {"count", Cache::COUNT},
    {"repeat", Cache::REPEAT}, {"holes", Cache::HOLES}, {"layout", Cache::LAYOUT},
};

template <typename T>
const T* named(const std::map<std::string, T>& all, const std::string& name) {
  auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

constexpr uint64_t bit(unsigned number) { return uint64_t{1} << number; }
constexpr uint64_t EDITABLE = bit(7), ENABLED = bit(8), FOCUSABLE = bit(11), SENSITIVE = bit(24),
                   SHOWING = bit(25), VISIBLE = bit(30), MANAGES_DESCENDANTS = bit(31);
constexpr uint64_t ORDINARY = ENABLED | SENSITIVE | SHOWING | VISIBLE;

const std::string PREFIX = "/org/a11y/atspi/accessible/";
const std::string CELL = PREFIX + "cell/";

constexpr int32_t CELLS = 1 << 30;
constexpr int HUGE_PANELS = 100, HUGE_LABELS = 1000, DEPTH = 10'000, SLOW_LABELS = 400, ROWS = 5,
              FLOOD = 50'000, FAR_LABELS = 2000;
constexpr size_t ODD_BYTES = 40u << 20;

const char* const HERE = "https://strange.example/here";
const char* const ELSEWHERE = "https://strange.example/elsewhere";

bool hasPage(Mode mode) { return mode >= Mode::NAVIGATE; }

bool hasOdd(Mode mode) { return mode >= Mode::MUTE && mode <= Mode::ODD_EXTENTS; }

}  // namespace

const Mode* modeNamed(const std::string& name) { return named(MODES, name); }
const Cache* cacheNamed(const std::string& name) { return named(CACHES, name); }

const std::string Scene::ROOT = PREFIX + "root";

Scene::Scene(const Options& options) : options(options) {
  Object root = made(role::APPLICATION, "praefectus-strange", APPLICATION);
  root.faces = APPLICATION;
  root.path = ROOT;
  objects.emplace(ROOT, std::move(root));
  if (!options.silentStart) offerWindows();
  told.clear();
}

std::vector<Event> Scene::offerWindows() {
  for (unsigned i = 0; i < options.windows; ++i) addWindow();
  return std::move(told);
}

std::string Scene::titleOf(unsigned window) const {
  return window == 0 ? options.title : options.title + " " + std::to_string(window + 1);
}

Object* Scene::find(const std::string& path) {
  auto found = objects.find(path);
  if (found != objects.end()) return &found->second;
  if (options.mode != Mode::WIDE || path.rfind(CELL, 0) != 0) return nullptr;
  auto cell = made(role::TABLE_CELL, "Cell " + path.substr(CELL.size()), COMPONENT);
  cell.path = path;
  cell.parent = list;
  return &objects.emplace(path, std::move(cell)).first->second;
}

std::string Scene::childAt(const Object& object, int32_t index) {
  if (index < 0 || index >= object.childCount()) return "";
  if (options.mode == Mode::WIDE && object.path == list) return CELL + std::to_string(index);
  return object.children[static_cast<size_t>(index)];
}

int32_t Scene::indexOf(const Object& object) {
  if (object.parent.empty()) return -1;
  if (object.path.rfind(CELL, 0) == 0) return std::stoi(object.path.substr(CELL.size()));
  auto& siblings = at(object.parent).children;
  auto found = std::find(siblings.begin(), siblings.end(), object.path);
  return found == siblings.end() ? -1 : static_cast<int32_t>(found - siblings.begin());
}

std::string Scene::newPath() { return PREFIX + std::to_string(++lastNumber); }

Object Scene::made(uint32_t role, const std::string& name, unsigned faces) const {
  Object out;
  out.role = role;
  out.name = name;
  out.faces = faces | COMPONENT;
  out.states = ORDINARY;
  if ((faces & (ACTION | VALUE | EDITABLE_TEXT)) != 0) out.states |= FOCUSABLE;
  if ((faces & EDITABLE_TEXT) != 0) out.states |= EDITABLE;
  return out;
}

void Scene::insert(const std::string& parent, size_t index, Object object) {
  if (object.path.empty()) object.path = newPath();
  object.parent = parent;
  auto path = object.path;
  objects.insert_or_assign(path, std::move(object));
  auto& siblings = at(parent).children;
  siblings.insert(siblings.begin() + static_cast<ptrdiff_t>(index), path);
  told.push_back({Event::Kind::ADDED, parent, "add", static_cast<int32_t>(index), path});
}

// By value: it may be named by the very list that it is taken from.
void Scene::remove(std::string path) {
  Object gone = at(path);
  while (!at(path).children.empty()) remove(at(path).children.back());
  auto index = indexOf(gone);
  auto& siblings = at(gone.parent).children;
  siblings.erase(siblings.begin() + index);
  objects.erase(path);
  told.push_back({Event::Kind::REMOVED, gone.parent, "remove", index, path});
}

void Scene::rename(const std::string& path, const std::string& name) {
  at(path).name = name;
  told.push_back({Event::Kind::NAME, path, name, 0, ""});
}

std::string Scene::add(const std::string& parent, uint32_t role, const std::string& name,
                       unsigned faces) {
  auto object = made(role, name, faces);
  auto index = at(parent).children.size();
  // Each in its own place, in rows and columns of the window.
  object.x = static_cast<int32_t>(index % 4) * 100;
  object.y = static_cast<int32_t>(index / 4 % 12) * 25;
  object.width = 90;
  object.height = 20;
  insert(parent, index, std::move(object));
  return at(parent).children.back();
}

void Scene::addWindow() {
  auto number = static_cast<unsigned>(at(ROOT).children.size());
  auto window = add(ROOT, role::FRAME, titleOf(number));
  auto& frame = at(window);
  frame.x = frame.y = 0;
  frame.width = WIDTH;
  frame.height = HEIGHT;
  if (!options.empty) fill(window);
}

void Scene::fill(const std::string& window) {
  panel = add(window, role::PANEL, "Controls");
  add(panel, role::LABEL, "Greeting");
  button = add(panel, role::PUSH_BUTTON, "Press", ACTION);
  add(panel, role::TEXT, "Text", TEXT | EDITABLE_TEXT);
  add(panel, role::SLIDER, "Slider", VALUE);
  auto secret = add(panel, role::PASSWORD_TEXT, "Password", TEXT | EDITABLE_TEXT);
  at(secret).text = "correct horse battery";
  // Two that nothing but their place tells apart.
  add(panel, role::PUSH_BUTTON, "Twin", ACTION);
  add(panel, role::PUSH_BUTTON, "Twin", ACTION);
  list = add(window, role::LIST, "Rows");
  for (int i = 1; i <= ROWS; ++i) {
    add(list, role::LIST_ITEM, "Row " + std::to_string(i), ACTION);
  }
  if (hasPage(options.mode)) addPage(window);
  if (hasOdd(options.mode)) addOdd();
  addMany(window);
}

void Scene::addMany(const std::string& window) {
  if (options.mode == Mode::HUGE_TREE) {
    for (int i = 0; i < HUGE_PANELS; ++i) {
      auto part = add(window, role::PANEL, "Part " + std::to_string(i));
      for (int j = 0; j < HUGE_LABELS; ++j) add(part, role::LABEL, "Label " + std::to_string(j));
    }
  }
  if (options.mode == Mode::DEEP) {
    auto parent = window;
    for (int i = 0; i < DEPTH; ++i) parent = add(parent, role::PANEL, std::to_string(i));
  }
  if (options.mode == Mode::SLOW) {
    for (int i = 0; i < SLOW_LABELS; ++i) {
      add(window, role::LABEL, "Slow " + std::to_string(i));
    }
  }
  if (options.mode == Mode::WIDE) {
    list = add(window, role::TABLE, "Sheet");
    at(list).states |= MANAGES_DESCENDANTS;
    at(list).claimed = CELLS;
  }
}

void Scene::addOdd() {
  oddPath = add(panel, role::PANEL, "Odd");
  add(panel, role::LABEL, "After");
  auto& odd = at(oddPath);
  if (options.mode == Mode::ODD_SIZE) odd.name = std::string(ODD_BYTES, 'o');
  if (options.mode == Mode::ODD_SELF) odd.children = {oddPath};
  if (options.mode == Mode::ODD_LOOP) odd.children = {at(panel).parent};
  if (options.mode == Mode::ODD_FOREIGN) odd.claimed = 1;
  if (options.mode == Mode::ODD_EXTENTS) odd.x = odd.y = odd.width = odd.height = INT32_MAX;
}

void Scene::addPage(const std::string& window) {
  page = add(window, role::DOCUMENT_WEB, "Page", DOCUMENT);
  at(page).address = HERE;
  add(page, role::LABEL, "Words");
  button = add(page, role::PUSH_BUTTON, "Go", ACTION);
  at(button).id = "go";
  add(page, role::LABEL, "More words");
}

std::vector<Event> Scene::change() {
  switch (options.mode) {
    case Mode::RENAME:
      rename(button, "Erase");
      break;
    case Mode::DISABLE:
      disableButton();
      break;
    case Mode::FLOOD:
      for (int i = 1; i <= FLOOD; ++i) {
        rename(at(panel).children[0], "Greeting " + std::to_string(i));
      }
      break;
    case Mode::ADD:
      add(panel, role::LABEL, "News");
      break;
    case Mode::REMOVE:
      remove(button);
      break;
    case Mode::REPLACE:
      replaceButton(false);
      break;
    case Mode::GHOST:
      replaceButton(true);
      break;
    case Mode::DETACH:
      detachPanel();
      break;
    case Mode::RENUMBER:
      insert(panel, 0, made(role::PUSH_BUTTON, "Cancel", ACTION));
      break;
    case Mode::RECYCLE:
      recycle();
      break;
    case Mode::NAVIGATE:
      load(ELSEWHERE, false);
      break;
    case Mode::NAVIGATE_WITHIN:
      at(page).address = ELSEWHERE;
      break;
    case Mode::RELOAD:
      load(HERE, true);
      break;
    case Mode::RELOAD_ANEW:
      load(HERE, false);
      break;
    case Mode::REBORN:
      rebear("Go");
      break;
    case Mode::REBORN_TWICE:
      rebear("Go");
      addSecond();
      break;
    case Mode::REBORN_FAR:
      rebear("Go");
      for (int i = 0; i < FAR_LABELS; ++i) add(page, role::LABEL, std::to_string(i));
      addSecond();
      break;
    case Mode::REBORN_RENAMED:
      rebear("Delete everything");
      break;
    case Mode::PLAIN:
    case Mode::HUGE_TREE:
    case Mode::DEEP:
    case Mode::WIDE:
    case Mode::SLOW:
    case Mode::DIES:
    case Mode::FREEZES:
    case Mode::MUTE:
    case Mode::ODD_ERROR:
    case Mode::ODD_SIGNATURE:
    case Mode::ODD_TEXT:
    case Mode::ODD_SIZE:
    case Mode::ODD_LOOP:
    case Mode::ODD_SELF:
    case Mode::ODD_FOREIGN:
    case Mode::ODD_EXTENTS:
      break;
  }
  return std::move(told);
}

void Scene::disableButton() {
  at(button).states &= ~(ENABLED | SENSITIVE);
  told.push_back({Event::Kind::STATE, button, "enabled", 0, ""});
  told.push_back({Event::Kind::STATE, button, "sensitive", 0, ""});
}

void Scene::replaceButton(bool ghost) {
  auto old = at(button);
  auto index = static_cast<size_t>(indexOf(old));
  remove(button);
  auto copy = old;
  copy.path = "";
  insert(old.parent, index, std::move(copy));
  if (ghost) objects.emplace(old.path, old);
  button = at(old.parent).children[index];
}

void Scene::detachPanel() {
  auto window = at(panel).parent;
  auto index = indexOf(at(panel));
  auto& siblings = at(window).children;
  siblings.erase(siblings.begin() + index);
  at(panel).parent = "";
  told.push_back({Event::Kind::REMOVED, window, "remove", index, panel});
}

void Scene::recycle() {
  for (size_t i = 0; i < ROWS; ++i) {
    rename(at(list).children[i], "Row " + std::to_string(i + 2));
  }
}

void Scene::load(const std::string& address, bool samePaths) {
  auto old = at(page);
  std::vector<Object> content;
  for (auto& child : old.children) content.push_back(at(child));
  auto index = static_cast<size_t>(indexOf(old));
  remove(page);
  auto fresh = old;
  fresh.path = page = newPath();
  fresh.address = address;
  fresh.children.clear();
  insert(old.parent, index, std::move(fresh));
  for (auto& each : content) {
    if (!samePaths) each.path = "";
    insert(page, at(page).children.size(), std::move(each));
  }
  told.push_back({Event::Kind::LOADED, page, "", 0, ""});
}

void Scene::rebear(const std::string& name) {
  replaceButton(false);
  at(button).name = name;
}

void Scene::addSecond() {
  auto second = at(button);
  second.path = "";
  insert(page, at(page).children.size(), std::move(second));
}

}  // namespace strange
