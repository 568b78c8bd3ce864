// One element as read from its application. The same reading serves the observation that records an
// element and the check that compares it later, so the two cannot disagree on what they looked at.
#pragma once

#include "helper-linux/accessibility/objects.h"
#include "helper-linux/accessibility/vocabulary.h"

namespace praefectus::accessibility {

// What differs between toolkits and matters to a rule.
struct Toolkit {
  kj::String name;
  kj::String version;

  Toolkit clone() const { return {kj::str(name), kj::str(version)}; }

  // GTK 4 names itself "GTK", GTK 3 "gtk".
  bool isGtk4() const { return name == "GTK" && version.startsWith("4"); }
  // Qt 5 means to move a rectangle into the window and moves its left and upper edges instead, the
  // latter to a wrong place, so Qt is asked where things are on the screen.
  CoordinateSpace space() const {
    return name == "Qt" ? CoordinateSpace::SCREEN : CoordinateSpace::WINDOW;
  }
  // GTK 3 tells of most changes of what an observation holds (mirror.h says what it keeps to
  // itself). The others do not tell enough.
  bool tellsChanges() const { return name == "gtk" && version.startsWith("3"); }
  // GTK's accessible ids were always empty and Qt 5 has no such property: not worth a call each.
  bool hasIds() const { return name != "gtk" && name != "GTK" && name != "Qt" && !isChromium(); }
  // Electron too.
  bool isChromium() const { return name == "Chromium"; }
};

struct Node {
  ObjectRef ref;
  uint32_t index = 0;  // Its own in the tree, and its parent's.
  uint32_t parent = 0;
  uint16_t depth = 0;
  uint32_t position = 0;

  // Basics: what every element answers.
  bool known = false;
  bool cached = false;  // As its application's cache has it.
  uint32_t role = 0;
  kj::String name;
  uint64_t stateBits = 0;
  Interfaces interfaces = 0;
  int32_t childCount = -1;

  // Details, read where they mean something.
  kj::Vector<kj::String> actions;
  kj::Maybe<Rect> extents;  // In the toolkit's own coordinates, of Toolkit::space.
  Value value = NoValue();
  bool valueCut = false;  // `value` holds only the beginning of a very long text.
  int32_t characters = 0;
  kj::String accessibleId;
  kj::String domId;

  bool childrenCut = false;  // Not all of its children were read.
  Fault fault = Fault::NONE;

  bool has(unsigned bit) const { return (stateBits >> bit) & 1; }
  bool offers(Interfaces face) const { return (interfaces & face) != 0; }
  bool isSecure() const { return role == role::PASSWORD_TEXT; }
  bool isPage() const { return role == role::DOCUMENT_WEB; }
};

// Characters of an editable text that are read; a longer one has no value to compare.
constexpr int32_t CHARACTERS = 65'536;

enum class Valued { NOTHING, TEXT, NUMBER };

// What kind of value an element has. A spin button has both a text and a number: the number is
// meant.
Valued valuedAs(const Node& node);

// Whether the element keeps a value that a person could set, able to be set at this moment or not.
bool holdsValue(const Node& node);

// Whether `setValue` applies: an editable text, or a number that a person can set (a progress bar
// has a number too). Never a password.
bool isSettable(const Node& node, const Toolkit& toolkit);

// Whether it reacts at all. GTK 4 has no ENABLED beside SENSITIVE.
bool isUsable(const Node& node, const Toolkit& toolkit);

// Whether a person can see it: the one rule for all toolkits. GTK 4 never sets SHOWING on ordinary
// widgets, so there it is VISIBLE with a real size.
bool isShowing(const Node& node, const Toolkit& toolkit);

// Whether it may be showing, as far as the basics tell.
bool mayShow(const Node& node, const Toolkit& toolkit);

// Reads role, name, states, interfaces and child count, all at once. A silent application leaves
// the fault LATE, an error UNREADABLE.
kj::Promise<void> readBasics(Objects& objects, Node& node, kj::TimePoint deadline);

// Reads extents, actions, value and id of a node whose basics are known, where it may be showing.
// A secure element's text is never asked for.
kj::Promise<void> readDetails(Objects& objects, const Toolkit& toolkit, Node& node,
                              kj::TimePoint deadline);

// Only the place, again.
kj::Promise<void> readExtents(Objects& objects, const Toolkit& toolkit, Node& node,
                              kj::TimePoint deadline);

// Only the value, again.
kj::Promise<void> readValue(Objects& objects, const Toolkit& toolkit, Node& node,
                            kj::TimePoint deadline);

}  // namespace praefectus::accessibility
