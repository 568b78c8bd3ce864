// What the strange application is made of: its accessible objects, and what its mode changes in
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace strange {

enum class Mode {
  PLAIN,
  HUGE_TREE,      // A hundred thousand labels besides.
  DEEP,           // Panels in panels, ten thousand of them.
  WIDE,           // A sheet of 2^30 cells. Asked for all of them, the process dies.
  SLOW,           // Four hundred labels, and every answer takes its time.
  DIES,           // The process ends in the middle of being read.
  FREEZES,        // The process stops itself there; SIGCONT resumes it.
  MUTE,           // The odd object never answers.
  ODD_ERROR,      // It answers everything with an error.
  ODD_SIGNATURE,  // It answers everything with values of other types.
  ODD_TEXT,       // It answers with a text that is not one; the bus cuts off who sends that.
  ODD_SIZE,       // Its name has 40 MB.
  ODD_LOOP,       // Its child is the window that it is in.
  ODD_SELF,       // It is its own child.
  ODD_FOREIGN,    // Its child is an object of another process.
  ODD_EXTENTS,    // It is as large as numbers go, and as far away.
  RENAME,         // SIGUSR1: the button gets another name.
  DISABLE,        // the button is disabled.
  FLOOD,          // the label is renamed fifty thousand times.
  ADD,            // a label comes last.
  REMOVE,         // the button is removed.
  REPLACE,        // a button just like it takes its place, under a new path.
  GHOST,          // the same, and the old one goes on answering as though it were there.
  DETACH,         // the panel is taken out of its window, and with what it holds goes on answering.
  RENUMBER,       // a new first child moves every other one by one.
  RECYCLE,        // the rows of the list stand for other rows, under the same paths.
  NAVIGATE,       // another page in another document, with objects of its own and the same ids.
  NAVIGATE_WITHIN,  // another address, and nothing else.
  RELOAD,           // the same address in another document; its button has the path of the old one.
  RELOAD_ANEW,      // the same, but every object has another path.
  REBORN,           // the page's button is a new object with the same id, role, name and place.
  REBORN_TWICE,     // and a second one with that id stands beside it.
  REBORN_FAR,       // and that second one stands behind two thousand others.
  REBORN_RENAMED,   // as REBORN, but it says something else.
};

// Nothing for a name that is none.
const Mode* modeNamed(const std::string& name);

// What the item cache says.
enum class Cache {
  WHOLE,   // As at-spi2-atk does.
  NONE,    // There is none.
  COUNT,   // The panel has another number of children.
  REPEAT,  // One path stands for two objects.
  HOLES,   // The panel's children are numbered with a hole.
  LAYOUT,  // Qt's layout.
};
const Cache* cacheNamed(const std::string& name);

struct Options {
  Mode mode = Mode::PLAIN;
  Cache cache = Cache::WHOLE;
  std::string title = "Strange";
  std::string toolkit = "Strange";
  std::string toolkitVersion = "1.0";
  std::string record;
  unsigned windows = 1;
  unsigned place = 0;        // Of the first window: three in a row, from the left.
  unsigned pauseMs = 20;     // Mode SLOW.
  unsigned after = 5;        // Mode DIES: the call about an element at which it does.
  bool silent = false;       // No change is told by an event.
  bool silentStart = false;  // No window is offered until the first SIGUSR1, which changes no more.
  bool empty = false;        // Windows without anything in them.
};

// AT-SPI's numbers.
namespace role {
constexpr uint32_t FRAME = 23, LABEL = 29, LIST = 31, LIST_ITEM = 32, PANEL = 39,
                   PASSWORD_TEXT = 40, PUSH_BUTTON = 43, SLIDER = 51, TABLE = 55, TABLE_CELL = 56,
                   TEXT = 61, APPLICATION = 75, DOCUMENT_WEB = 95;
}

enum Face : unsigned {
  COMPONENT = 1,
  ACTION = 2,
  TEXT = 4,
  EDITABLE_TEXT = 8,
  VALUE = 16,
  DOCUMENT = 32,
  APPLICATION = 64
};

constexpr int32_t WIDTH = 400, HEIGHT = 300;

struct Object {
  std::string path;
  std::string parent;  // Empty for the application.
  uint32_t role = 0;
  std::string name;
  uint64_t states = 0;
  unsigned faces = 0;
  std::vector<std::string> children;
  int32_t claimed = -1;  // Children that it says it has, when that is not their number.
  std::string id;        // In its page.
  std::string address;   // Of a page.
  std::string text;
  double number = 0;
  int32_t x = 0, y = 0, width = WIDTH, height = HEIGHT;

  int32_t childCount() const {
    return claimed >= 0 ? claimed : static_cast<int32_t>(children.size());
  }
};

struct Event {
  enum class Kind { NAME, STATE, ADDED, REMOVED, LOADED };
  Kind kind;
  std::string source;
  std::string detail;  // The new name, or the state's.
  int32_t number = 0;  // Child's index, or whether the state holds.
  std::string child;
};

class Scene {
 public:
  explicit Scene(const Options& options);

  static const std::string ROOT;

  // Nothing for what is not there, or no longer.
  Object* find(const std::string& path);
  const std::unordered_map<std::string, Object>& all() const { return objects; }
  std::string childAt(const Object& object, int32_t index);
  int32_t indexOf(const Object& object);
  const std::string& odd() const { return oddPath; }

  // Does what the mode says, and tells what a toolkit would tell of it.
  std::vector<Event> change();
  // Offers the windows that were held back.
  std::vector<Event> offerWindows();

  std::string titleOf(unsigned window) const;

 private:
  std::string newPath();
  Object made(uint32_t role, const std::string& name, unsigned faces) const;
  Object& at(const std::string& path) { return objects.at(path); }
  // The three ways in which the tree changes; each is told.
  void insert(const std::string& parent, size_t index, Object object);
  void remove(std::string path);
  void rename(const std::string& path, const std::string& name);

  std::string add(const std::string& parent, uint32_t role, const std::string& name,
                  unsigned faces = 0);
  void addWindow();
  void fill(const std::string& window);
  void addMany(const std::string& window);
  void addOdd();
  void addPage(const std::string& window);
  void disableButton();
  void replaceButton(bool ghost);
  void detachPanel();
  void recycle();
  // Puts another document in the page's place, with objects like those of the old one.
  void load(const std::string& address, bool samePaths);
  void rebear(const std::string& name);
  void addSecond();  // With the same id.

  const Options& options;
  std::unordered_map<std::string, Object> objects;
  uint32_t lastNumber = 0;
  std::string panel, button, list, page, oddPath;
  std::vector<Event> told;
};

}  // namespace strange
