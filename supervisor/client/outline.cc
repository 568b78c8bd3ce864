#include "supervisor/client/outline.h"

#include <kj/vector.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace praefectus::client {
namespace {

// ---- Texts of applications -------------------------------------------------------------------

constexpr kj::StringPtr REPLACEMENT = "\uFFFD"_kj;

struct Character {
  uint32_t number;
  size_t bytes;
};

// The first character of `text`, which has passed isText.
Character characterAt(kj::ArrayPtr<const char> text) {
  auto byte = [&](size_t at) { return static_cast<kj::byte>(text[at]); };
  kj::byte lead = byte(0);
  size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  bytes = std::min(bytes, text.size());
  uint32_t number = bytes == 1 ? lead : lead & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) number = number << 6 | (byte(i) & 0x3F);
  return {number, bytes};
}

// Controls, separators of lines, marks that change the order of others, and what shows nothing at
// all, tags (U+E0000 on) included. The two joiners stay: scripts and emoji are spelled with them.
bool isUnseen(uint32_t number) {
  struct Range {
    uint32_t first, last;
  };
  constexpr Range UNSEEN[] = {{0x0, 0x1F},      {0x7F, 0x9F},     {0xAD, 0xAD},
                              {0x61C, 0x61C},   {0x180E, 0x180E}, {0x200B, 0x200B},
                              {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
                              {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF}};
  return std::any_of(std::begin(UNSEEN), std::end(UNSEEN), [&](const Range& range) {
    return range.first <= number && number <= range.last;
  });
}

kj::StringPtr escapeOf(uint32_t number) {
  switch (number) {
    case '"':
      return "\\\""_kj;
    case '\\':
      return "\\\\"_kj;
    case '\n':
      return "\\n"_kj;
    case '\r':
      return "\\r"_kj;
    case '\t':
      return "\\t"_kj;
    default:
      return isUnseen(number) ? REPLACEMENT : nullptr;
  }
}

kj::String quoted(kj::StringPtr text) {
  kj::Vector<char> out(text.size() + 2);
  out.add('"');
  auto rest = text.asArray();
  while (rest.size() > 0) {
    auto character = characterAt(rest);
    auto escape = escapeOf(character.number);
    out.addAll(escape == nullptr ? rest.slice(0, character.bytes) : escape.asArray());
    rest = rest.slice(character.bytes, rest.size());
  }
  out.add('"');
  return kj::heapString(out.asPtr());
}

// Roles and actions come from a toolkit and are plain words; another one is quoted like any text.
kj::String wordOf(kj::StringPtr text) {
  bool plain = text.size() > 0 && std::all_of(text.begin(), text.end(), [](char c) {
                 return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') ||
                        ('0' <= c && c <= '9') || c == ' ' || c == '-' || c == '_' || c == '.';
               });
  return plain ? kj::str(text) : quoted(text);
}

kj::String counted(uint64_t count, kj::StringPtr one, kj::StringPtr many) {
  return kj::str(count, " ", count == 1 ? one : many);
}

// ---- One element -----------------------------------------------------------------------------

// States that say something when they hold.
struct Told {
  State state;
  kj::StringPtr word;
};
constexpr Told TOLD[] = {{State::FOCUSED, "focused"_kj},      {State::CHECKED, "checked"_kj},
                         {State::INDETERMINATE, "partly"_kj}, {State::SELECTED, "selected"_kj},
                         {State::PRESSED, "pressed"_kj},      {State::EXPANDED, "expanded"_kj},
                         {State::IS_DEFAULT, "default"_kj},   {State::HAS_POPUP, "has popup"_kj},
                         {State::MODAL, "modal"_kj},          {State::BUSY, "busy"_kj},
                         {State::REQUIRED, "required"_kj},    {State::INVALID_ENTRY, "invalid"_kj},
                         {State::READ_ONLY, "read only"_kj},  {State::DEFUNCT, "defunct"_kj},
                         {State::ICONIFIED, "iconified"_kj}};

bool isEnabled(const Element& element) { return element.states.has(State::SENSITIVE); }

// An element's parent stands before it; the first one has none.
const Element* parentOf(const Observation& seen, size_t index) {
  auto parent = seen.elements[index].parent;
  return parent < index ? &seen.elements[parent] : nullptr;
}

kj::String statesOf(const Observation& seen, size_t index) {
  auto& element = seen.elements[index];
  auto parent = parentOf(seen, index);
  kj::Vector<kj::StringPtr> words;
  if (isEnabled(element) != (parent == nullptr || isEnabled(*parent))) {
    words.add(isEnabled(element) ? "enabled"_kj : "disabled"_kj);
  }
  if (element.shows != (parent == nullptr || parent->shows)) {
    words.add(element.shows ? "shows"_kj : "hidden"_kj);
  }
  for (auto& told : TOLD) {
    if (element.states.has(told.state)) words.add(told.word);
  }
  bool foldable = element.states.has(State::EXPANDABLE) || element.states.has(State::COLLAPSED);
  if (foldable && !element.states.has(State::EXPANDED)) words.add("collapsed"_kj);
  if (element.settable) {
    words.add("settable"_kj);
  } else if (element.states.has(State::EDITABLE)) {
    words.add("editable"_kj);
  }
  if (element.secure) words.add("secure"_kj);
  return kj::strArray(words, ", ");
}

kj::String actionsOf(const Element& element) {
  if (element.actions.size() == 0) return kj::String();
  auto words = KJ_MAP(action, element.actions) { return wordOf(action); };
  return kj::str("(", kj::strArray(words, ", "), ")");
}

// The actions that most of what shows accepts: a browser offers some on everything. Empty when
// there are none.
kj::String usualActionsOf(const Observation& seen) {
  std::unordered_map<std::string, size_t> counts;
  size_t showing = 0;
  for (auto& element : seen.elements) {
    if (!element.shows) continue;
    ++showing;
    ++counts[actionsOf(element).cStr()];
  }
  for (auto& [actions, count] : counts) {
    if (count > 4 && count > showing / 2) return kj::str(actions.c_str());
  }
  return kj::String();
}

// What a line says of an element, part by part; what is not there is empty.
struct Parts {
  kj::String name, value, states, actions, domId, place;
};

Parts partsOf(const Observation& seen, size_t index) {
  auto& element = seen.elements[index];
  Parts out;
  if (element.name.size() > 0) out.name = quoted(element.name);
  KJ_IF_MAYBE (value, element.value) out.value = kj::str("= ", quoted(*value));
  auto states = statesOf(seen, index);
  if (states.size() > 0) out.states = kj::str("[", states, "]");
  out.actions = actionsOf(element);
  if (element.domId.size() > 0) {
    auto word = wordOf(element.domId);
    out.domId = kj::str("#", word);
  }
  KJ_IF_MAYBE (bounds, element.bounds) {
    out.place = kj::str(bounds->x, ",", bounds->y, " ", bounds->width, "x", bounds->height);
  }
  return out;
}

kj::StringPtr faultText(Fault fault) {
  switch (fault) {
    case Fault::NONE:
    case Fault::SKIPPED:  // Said of its children.
      return nullptr;
    case Fault::UNREADABLE:
      return "[could not be read]"_kj;
    case Fault::LATE:
      return "[did not answer in time]"_kj;
  }
  return nullptr;
}

// ---- All of them -----------------------------------------------------------------------------

class Lines {
 public:
  Lines(const Observation& observation, kj::String usualActions)
      : seen(observation),
        usual(kj::mv(usualActions)),
        children(kj::heapArray<kj::Vector<uint32_t>>(seen.elements.size())) {
    for (uint32_t i = 1; i < seen.elements.size(); ++i) {
      if (seen.elements[i].parent < i) children[seen.elements[i].parent].add(i);
    }
    // A list may have what shows before what does not.
    for (auto& own : children) {
      std::stable_sort(own.begin(), own.end(), [this](uint32_t left, uint32_t right) {
        return seen.elements[left].position < seen.elements[right].position;
      });
    }
    for (uint32_t at = seen.below; 0 < at && at < seen.elements.size();) {
      at = seen.elements[at].parent;
      above.add(at);
    }
  }

  // Calls `each` with an element and its depth, each one under its parent.
  template <typename Each>
  void walk(Each each) const {
    struct Place {
      uint32_t index;
      size_t depth;
    };
    kj::Vector<Place> waiting;
    if (seen.elements.size() > 0) waiting.add(Place{0, 0});
    while (waiting.size() > 0) {
      auto place = waiting.back();
      waiting.removeLast();
      each(place.index, place.depth);
      auto& own = children[place.index];
      // From the end, since what is put down last is taken up first.
      for (size_t i = own.size(); i-- > 0;) waiting.add(Place{own[i], place.depth + 1});
    }
  }

  // Without the number and the end of the line.
  kj::String of(uint32_t index) const {
    auto& element = seen.elements[index];
    auto parts = partsOf(seen, index);
    if (usual.size() > 0 && element.shows) {
      parts.actions = parts.actions == usual      ? kj::String()
                      : parts.actions.size() == 0 ? kj::str("()")
                                                  : kj::mv(parts.actions);
    }
    kj::Vector<kj::StringPtr> words;
    auto role = element.role.size() == 0 ? kj::str("unknown") : wordOf(element.role);
    auto unlisted = unlistedOf(index);
    for (kj::StringPtr part :
         {kj::StringPtr(role), kj::StringPtr(parts.name), kj::StringPtr(parts.value),
          kj::StringPtr(parts.states), kj::StringPtr(parts.actions), kj::StringPtr(parts.domId),
          kj::StringPtr(parts.place), faultText(element.fault),
          element.textCut ? "[text cut]"_kj : kj::StringPtr(nullptr), kj::StringPtr(unlisted)}) {
      if (part.size() > 0) words.add(part);
    }
    return kj::strArray(words, " ");
  }

  kj::String head() const {
    kj::Vector<kj::String> out;
    auto& frame = seen.frame;
    out.add(kj::str("window ", quoted(frame.title), " ", frame.bounds.width, "x",
                    frame.bounds.height, ", frame ", frame.epoch));
    KJ_IF_MAYBE (page, frame.page) out.add(kj::str("page ", quoted(page->url)));
    if (seen.below > 0) {
      out.add(kj::str("only what is below ", seen.below, ", after its ancestors"));
    }
    auto content = contentText();
    if (content.size() > 0) out.add(kj::str(content));
    auto cuts = cutsText();
    if (cuts.size() > 0) out.add(kj::str("cut: ", cuts));
    if (usual.size() > 0) {
      out.add(kj::str("actions of what shows, unless it has its own: ", usual));
    }
    if (seen.faults > 0) {
      out.add(kj::str(counted(seen.faults, "element", "elements"), " could not be read whole"));
    }
    out.add(kj::str());
    return kj::strArray(out, "\n");
  }

 private:
  kj::StringPtr contentText() const {
    switch (seen.content) {
      case Content::ELEMENTS:
        return nullptr;
      case Content::EMPTY:
        return "empty: the window answers, and has nothing in it"_kj;
      case Content::PAGE_OFF:
        return "page off: the browser offers no elements of its page"_kj;
      case Content::PAGE_LOADING:
        return "page loading: it is still arriving, read it again"_kj;
    }
    return nullptr;
  }

  kj::String cutsText() const {
    kj::Vector<kj::StringPtr> out;
    if (seen.cuts.elements) out.add("not all elements are listed"_kj);
    if (seen.cuts.depth) out.add("not all levels are listed"_kj);
    if (seen.cuts.text) out.add("not all texts are whole"_kj);
    if (seen.cuts.time) out.add("there was no time for all"_kj);
    return kj::strArray(out, "; ");
  }

  // Children that the element says it has and the list has not.
  kj::String unlistedOf(uint32_t index) const {
    auto& element = seen.elements[index];
    // Of these only the one way down was asked for.
    if (std::find(above.begin(), above.end(), index) != above.end()) return kj::String();
    auto& own = children[index];
    // A reading below it may have been asked for from a later child on.
    uint32_t begin = 0;
    if (index == seen.below && index > 0 && own.size() > 0) begin = seen.elements[own[0]].position;
    auto beginning = begin == 0 ? kj::str() : kj::str("[begins at child ", begin, "]");
    if (!element.childrenCut && element.fault != Fault::SKIPPED) return beginning;
    uint32_t next = begin;  // The first that is not listed.
    for (uint32_t child : own) {
      if (seen.elements[child].position == next) ++next;
    }
    // An earlier reading has had what is before the beginning.
    bool ends = next >= element.children && own.size() > 0;
    if (ends && begin > 0 && element.fault == Fault::NONE) return beginning;
    auto listed = begin + own.size();
    auto count = element.children > listed ? counted(element.children - listed, "child", "children")
                                           : kj::str("more children");
    auto from = next == 0 ? kj::str() : kj::str(" from ", next);
    return kj::str(beginning, beginning.size() > 0 ? " " : "", "[", count,
                   " not listed: read below ", index, from, "]");
  }

  const Observation& seen;
  kj::String usual;  // Actions that a line leaves out.
  kj::Array<kj::Vector<uint32_t>> children;
  kj::Vector<uint32_t> above;  // Ancestors of the element whose children were asked for.
};

void addLine(kj::Vector<char>& to, size_t depth, kj::StringPtr line) {
  for (size_t i = 0; i < depth; ++i) to.addAll("  "_kj);
  to.addAll(line);
  to.add('\n');
}

// ---- What is different -----------------------------------------------------------------------

class Difference {
 public:
  Difference(const Observation& earlier, const Observation& later)
      : before(earlier), now(later), old(earlier, nullptr), lines(later, usualActionsOf(later)) {}

  kj::Maybe<kj::String> text() {
    if (!isComparison() || !match()) return nullptr;
    out.addAll(lines.head());
    addLine(out, 0, counts());
    for (uint32_t index : now.gone) addLine(out, 0, kj::str("- ", index, " ", old.of(index)));
    lines.walk([this](uint32_t index, size_t depth) { show(index, depth); });
    renumber();
    return kj::heapString(out.asPtr());
  }

 private:
  bool isComparison() const {
    KJ_IF_MAYBE (compared, now.before) {
      if (*compared != before.frame.id) return false;
    } else {
      return false;
    }
    auto known = [this](uint32_t index) { return index < before.elements.size(); };
    return std::all_of(now.gone.begin(), now.gone.end(), known) &&
           std::none_of(now.elements.begin(), now.elements.end(),
                        [](auto& element) { return element.change == Change::UNKNOWN; });
  }

  // Finds the earlier number of each element that is no new one. Those of one path stand in the
  // same order in both.
  bool match() {
    std::unordered_map<std::string_view, std::deque<uint32_t>> numbers;
    auto pathOf = [](const Element& element) {
      return std::string_view(element.path.begin(), element.path.size());
    };
    auto isGone = kj::heapArray<bool>(before.elements.size());
    std::fill(isGone.begin(), isGone.end(), false);
    for (uint32_t index : now.gone) isGone[index] = true;
    for (uint32_t i = 0; i < before.elements.size(); ++i) {
      if (!isGone[i]) numbers[pathOf(before.elements[i])].push_back(i);
    }
    for (auto& element : now.elements) {
      auto& same = numbers[pathOf(element)];
      if (element.change == Change::ADDED) {
        was.add(NEW);
      } else if (same.empty()) {
        return false;
      } else {
        was.add(same.front());
        same.pop_front();
      }
    }
    return true;
  }

  kj::String counts() const {
    auto count = [this](Change change) {
      return std::count_if(now.elements.begin(), now.elements.end(),
                           [&](auto& element) { return element.change == change; });
    };
    return kj::str("since frame ", before.frame.epoch, ": ", now.gone.size(), " gone, ",
                   count(Change::ADDED), " new, ", count(Change::CHANGED), " changed, ",
                   count(Change::SAME), " as before");
  }

  void show(uint32_t index, size_t depth) {
    auto& element = now.elements[index];
    if (element.change == Change::ADDED) {
      auto parent = element.parent;
      bool below = index > 0 && now.elements[parent].change == Change::ADDED;
      // Indented from the one that came with it and is in what was there before.
      if (!below) base = depth;
      auto in = below || index == 0 ? kj::str() : kj::str("in ", parent, " ");
      addLine(out, depth - base, kj::str("+ ", index, " ", in, lines.of(index)));
    }
    if (element.change == Change::CHANGED) {
      addLine(out, 0, kj::str("~ ", index, " ", lines.of(index), earlier(index)));
    }
  }

  // Those parts of its earlier line that now read otherwise.
  kj::String earlier(uint32_t index) const {
    auto then = partsOf(before, was[index]), present = partsOf(now, index);
    kj::Vector<kj::String> parts;
    auto compare = [&](kj::String Parts::*part, kj::StringPtr nothing) {
      if (then.*part != present.*part) {
        parts.add(kj::str((then.*part).size() == 0 ? nothing : kj::StringPtr(then.*part)));
      }
    };
    auto& role = before.elements[was[index]].role;
    if (role != now.elements[index].role) parts.add(wordOf(role));
    compare(&Parts::name, "\"\""_kj);
    compare(&Parts::value, "without value"_kj);
    compare(&Parts::states, "[]"_kj);
    compare(&Parts::actions, "()"_kj);
    compare(&Parts::domId, "without id"_kj);
    compare(&Parts::place, "without place"_kj);
    return parts.size() == 0 ? kj::String() : kj::str("; was ", kj::strArray(parts, " "));
  }

  // Runs of elements whose numbers moved alike.
  void renumber() {
    for (uint32_t i = 0; i < was.size();) {
      uint32_t end = i + 1;
      if (was[i] == NEW || was[i] == i) {
        i = end;
        continue;
      }
      while (end < was.size() && was[end] == was[i] + (end - i)) ++end;
      auto single = end - i == 1;
      addLine(
          out, 0,
          single ? kj::str("= ", i, " was ", was[i])
                 : kj::str("= ", i, "..", end - 1, " were ", was[i], "..", was[i] + (end - i) - 1));
      i = end;
    }
  }

  static constexpr uint32_t NEW = UINT32_MAX;

  const Observation& before;
  const Observation& now;
  Lines old, lines;
  kj::Vector<uint32_t> was;  // Of each element, its number in `before`, or NEW.
  size_t base = 0;
  kj::Vector<char> out;
};

}  // namespace

kj::String outline(const Observation& seen) {
  Lines lines(seen, usualActionsOf(seen));
  kj::Vector<char> out;
  out.addAll(lines.head());
  lines.walk([&](uint32_t index, size_t depth) {
    addLine(out, depth, kj::str(index, " ", lines.of(index)));
  });
  return kj::heapString(out.asPtr());
}

kj::Maybe<kj::String> outlineOfChanges(const Observation& before, const Observation& now) {
  return Difference(before, now).text();
}

}  // namespace praefectus::client
