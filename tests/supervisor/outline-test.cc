// What a model is given to read: one line for each element, and only what matters of it.
#include "supervisor/client/outline.h"

#include <gtest/gtest.h>

#include <string>

namespace praefectus::client {
namespace {

Element element(uint32_t parent, kj::StringPtr role, kj::StringPtr name = "") {
  Element out;
  out.parent = parent;
  out.role = kj::str(role);
  out.name = kj::str(name);
  out.states.set(State::ENABLED);
  out.states.set(State::SENSITIVE);
  out.shows = true;
  return out;
}

Observation observed() {
  Observation seen;
  seen.frame.id.fill(7);
  seen.frame.epoch = 7;
  seen.frame.title = kj::str("Letter");
  seen.frame.bounds = {10, 20, 800, 600};
  seen.elements.add(element(0, "frame", "Letter"));
  return seen;
}

// The place in its list. Its path, by which it is known again, is its role and name.
uint32_t add(Observation& to, Element from) {
  uint32_t position = 0;
  for (size_t i = 1; i < to.elements.size(); ++i) {
    if (to.elements[i].parent == from.parent) ++position;
  }
  from.position = position;
  if (from.path.size() == 0) from.path = kj::str("/", from.role, "/", from.name);
  ++to.elements[from.parent].children;
  to.elements.add(kj::mv(from));
  return static_cast<uint32_t>(to.elements.size() - 1);
}

std::string textOf(const Observation& seen) { return outline(seen).cStr(); }

std::string lineOf(Element only) {
  Observation seen;
  seen.elements.add(kj::mv(only));
  auto text = textOf(seen);
  return text.substr(text.find('\n') + 1);
}

std::string stateful(std::initializer_list<State> states) {
  auto box = element(0, "box");
  for (auto state : states) box.states.set(state);
  return lineOf(kj::mv(box));
}

// The lines of the header, without those of elements, of which there is one.
std::string headOf(const Observation& seen) {
  auto text = textOf(seen);
  return text.substr(0, text.rfind("0 frame"));
}

// ---- One line for each element ---------------------------------------------------------------

TEST(Outline, elementsStandUnderTheirParentsWithTheirOwnNumbers) {
  auto seen = observed();
  auto bar = add(seen, element(0, "tool bar"));
  auto entry = element(0, "entry", "Subject");
  entry.value = kj::str("Re: offer");
  entry.settable = true;
  entry.states.set(State::FOCUSED);
  entry.states.set(State::EDITABLE);
  entry.actions.add(kj::str("activate"));
  entry.domId = kj::str("subject");
  entry.bounds = Rect{-8, 40, 300, 24};
  add(seen, kj::mv(entry));
  auto button = element(bar, "push button", "Save");
  button.actions.add(kj::str("click"));
  button.actions.add(kj::str("show menu"));
  add(seen, kj::mv(button));
  EXPECT_EQ(textOf(seen),
            "window \"Letter\" 800x600, frame 7\n"
            "0 frame \"Letter\"\n"
            "  1 tool bar\n"
            "    3 push button \"Save\" (click, show menu)\n"
            "  2 entry \"Subject\" = \"Re: offer\" [focused, settable] (activate) #subject -8,40 "
            "300x24\n");
}

TEST(Outline, anEmptyValueIsAValue) {
  auto entry = element(0, "entry");
  entry.value = kj::str();
  EXPECT_EQ(lineOf(kj::mv(entry)), "0 entry = \"\"\n");
}

TEST(Outline, onlyStatesThatMatterAreSaid) {
  EXPECT_EQ(stateful({State::FOCUSABLE, State::VISIBLE, State::SHOWING, State::OPAQUE}), "0 box\n");
  EXPECT_EQ(stateful({State::CHECKABLE, State::CHECKED}), "0 box [checked]\n");
  EXPECT_EQ(stateful({State::EXPANDABLE, State::EXPANDED}), "0 box [expanded]\n");
  EXPECT_EQ(stateful({State::EXPANDABLE}), "0 box [collapsed]\n");
  EXPECT_EQ(stateful({State::EDITABLE, State::REQUIRED}), "0 box [required, editable]\n");
  EXPECT_EQ(stateful({State::IS_DEFAULT, State::HAS_POPUP}), "0 box [default, has popup]\n");
}

TEST(Outline, disabledAndHiddenAreSaidWhereTheyBegin) {
  auto seen = observed();
  auto group = element(0, "panel");
  group.states = States();
  group.shows = false;
  auto outer = add(seen, kj::mv(group));
  auto inner = element(outer, "label");
  inner.states = States();
  inner.shows = false;
  add(seen, kj::mv(inner));
  add(seen, element(outer, "push button"));
  EXPECT_EQ(textOf(seen),
            "window \"Letter\" 800x600, frame 7\n"
            "0 frame \"Letter\"\n"
            "  1 panel [disabled, hidden]\n"
            "    2 label\n"
            "    3 push button [enabled, shows]\n");
}

TEST(Outline, aSecureElementIsSaidToBeOne) {
  auto field = element(0, "password text", "PIN");
  field.secure = true;
  EXPECT_EQ(lineOf(kj::mv(field)), "0 password text \"PIN\" [secure]\n");
}

TEST(Outline, actionsThatNearlyAllAcceptAreSaidOnce) {
  auto seen = observed();
  for (int i = 0; i < 5; ++i) {
    auto each = element(0, "section");
    each.actions.add(kj::str("doDefault"));
    add(seen, kj::mv(each));
  }
  auto own = element(0, "link");
  own.actions.add(kj::str("jump"));
  add(seen, kj::mv(own));
  // Of what does not show no actions are read.
  auto hidden = element(0, "label");
  hidden.shows = false;
  add(seen, kj::mv(hidden));
  auto text = textOf(seen);
  EXPECT_TRUE(text.find("\nactions of what shows, unless it has its own: (doDefault)\n0 frame "
                        "\"Letter\" ()\n  1 section\n") != std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("  5 section\n  6 link (jump)\n  7 label [hidden]\n")) << text;
  // A few are no rule.
  seen.elements[1].actions.clear();
  EXPECT_EQ(textOf(seen).find("unless"), std::string::npos);
}

// ---- What applications say -------------------------------------------------------------------

TEST(Outline, noTextEndsItsLineOrItsQuotationMarks) {
  auto text = "a\"b\\c\nd\r\te\x01\u202E\u200B\U000E0041\u2028z";
  auto quoted = "\"a\\\"b\\\\c\\nd\\r\\te\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDz\"";
  auto box = element(0, text, text);
  box.value = kj::str(text);
  box.actions.add(kj::str(text));
  box.domId = kj::str(text);
  auto q = std::string(quoted);
  EXPECT_EQ(lineOf(kj::mv(box)), "0 " + q + " " + q + " = " + q + " (" + q + ") #" + q + "\n");
  auto seen = observed();
  seen.frame.title = kj::str(text);
  seen.frame.page = Page{kj::str(text), {}, 0};
  EXPECT_EQ(headOf(seen), "window " + q + " 800x600, frame 7\npage " + q + "\n");
}

TEST(Outline, lettersOfAllScriptsStayWhatTheyAre) {
  auto text = "Grüße, 世界, می‌خواهم, 👩‍💻";
  EXPECT_EQ(lineOf(element(0, "label", text)), "0 label \"" + std::string(text) + "\"\n");
}

TEST(Outline, anActionOrRoleThatIsNoPlainWordIsQuoted) {
  auto button = element(0, "");
  button.actions.add(kj::str("click)"));
  EXPECT_EQ(lineOf(kj::mv(button)), "0 unknown (\"click)\")\n");
}

// ---- What is not there -----------------------------------------------------------------------

TEST(Outline, whatWasCutIsSaidInWords) {
  auto seen = observed();
  seen.cuts = {true, true, true, true};
  seen.faults = 2;
  EXPECT_EQ(headOf(seen),
            "window \"Letter\" 800x600, frame 7\n"
            "cut: not all elements are listed; not all levels are listed; not all texts are whole; "
            "there was no time for all\n"
            "2 elements could not be read whole\n");
}

TEST(Outline, littleIsNotTakenForNothing) {
  auto seen = observed();
  auto said = [&](Content content) {
    seen.content = content;
    return headOf(seen).substr(headOf(observed()).size());
  };
  EXPECT_EQ(said(Content::ELEMENTS), "");
  EXPECT_EQ(said(Content::EMPTY), "empty: the window answers, and has nothing in it\n");
  EXPECT_EQ(said(Content::PAGE_OFF), "page off: the browser offers no elements of its page\n");
  EXPECT_EQ(said(Content::PAGE_LOADING), "page loading: it is still arriving, read it again\n");
}

TEST(Outline, aFaultIsSaidAtItsElement) {
  auto box = element(0, "box", "a");
  box.textCut = true;
  EXPECT_EQ(lineOf(kj::mv(box)), "0 box \"a\" [text cut]\n");
  auto late = element(0, "box");
  late.fault = Fault::LATE;
  EXPECT_EQ(lineOf(kj::mv(late)), "0 box [did not answer in time]\n");
  auto unreadable = element(0, "box");
  unreadable.fault = Fault::UNREADABLE;
  EXPECT_EQ(lineOf(kj::mv(unreadable)), "0 box [could not be read]\n");
}

TEST(Outline, childrenThatAreNotListedAreCountedAndSaidHowToRead) {
  auto table = element(0, "table");
  table.fault = Fault::SKIPPED;
  table.children = 5000;
  EXPECT_EQ(lineOf(kj::mv(table)), "0 table [5000 children not listed: read below 0]\n");

  auto seen = observed();
  auto list = add(seen, element(0, "list"));
  add(seen, element(list, "list item", "first"));
  add(seen, element(list, "list item", "second"));
  seen.elements[list].childrenCut = true;
  auto said = [&](uint32_t children) {
    seen.elements[list].children = children;
    auto text = textOf(seen);
    auto line = text.find("1 list");
    return text.substr(line, text.find('\n', line) - line);
  };
  EXPECT_EQ(said(40), "1 list [38 children not listed: read below 1 from 2]");
  EXPECT_EQ(said(3), "1 list [1 child not listed: read below 1 from 2]");
  // It said something else when it was asked for their number.
  EXPECT_EQ(said(1), "1 list [more children not listed: read below 1 from 2]");
}

TEST(Outline, childrenStandInTheirParentsOrderWhateverTheListsIs) {
  auto seen = observed();
  auto list = add(seen, element(0, "list"));
  for (uint32_t position : {1, 4, 0}) {
    auto at = add(seen, element(list, "list item"));
    seen.elements[at].position = position;
  }
  seen.elements[list].children = 6;
  seen.elements[list].childrenCut = true;
  EXPECT_EQ(textOf(seen),
            "window \"Letter\" 800x600, frame 7\n"
            "0 frame \"Letter\"\n"
            "  1 list [3 children not listed: read below 1 from 2]\n"
            "    4 list item\n"
            "    2 list item\n"
            "    3 list item\n");
}

TEST(Outline, aReadingBelowAnElementSaysWhereItBeginsAndEnds) {
  auto seen = observed();
  seen.elements[0].childrenCut = true;
  seen.below = add(seen, element(0, "list"));
  auto& list = seen.elements[seen.below];
  list.childrenCut = true;
  list.children = 5000;
  for (uint32_t position : {1500, 1501}) {
    auto at = add(seen, element(seen.below, "list item"));
    seen.elements[at].position = position;
  }
  seen.elements[seen.below].children = 5000;
  EXPECT_EQ(textOf(seen),
            "window \"Letter\" 800x600, frame 7\n"
            "only what is below 1, after its ancestors\n"
            "0 frame \"Letter\"\n"
            "  1 list [begins at child 1500] [3498 children not listed: read below 1 from 1502]\n"
            "    2 list item\n"
            "    3 list item\n");
}

TEST(Outline, anObservationWithoutElementsIsItsHead) {
  Observation seen;
  EXPECT_EQ(textOf(seen), "window \"\" 0x0, frame 0\n");
}

// ---- What is different -----------------------------------------------------------------------

// Two buttons and a list of two, and the same a moment later, when nothing has changed.
struct Moments {
  Observation before = observed(), now = observed();

  Moments() {
    for (auto seen : {&before, &now}) {
      add(*seen, element(0, "push button", "One"));
      add(*seen, element(0, "push button", "Two"));
      auto list = add(*seen, element(0, "list"));
      add(*seen, element(list, "list item", "a"));
      add(*seen, element(list, "list item", "b"));
    }
    now.frame.id.fill(8);
    now.frame.epoch = 8;
    now.before = before.frame.id;
    for (auto& each : now.elements) each.change = Change::SAME;
  }

  std::string said() {
    KJ_IF_MAYBE (text, outlineOfChanges(before, now)) {
      std::string all = text->cStr();
      return all.substr(all.find("since"));
    }
    return "nothing";
  }
};

TEST(OutlineOfChanges, whereNothingChangedNothingIsListed) {
  Moments moments;
  EXPECT_EQ(moments.said(), "since frame 7: 0 gone, 0 new, 0 changed, 6 as before\n");
}

TEST(OutlineOfChanges, itBeginsAsAnOutlineDoes) {
  Moments moments;
  moments.now.cuts.time = true;
  auto text = KJ_ASSERT_NONNULL(outlineOfChanges(moments.before, moments.now));
  EXPECT_TRUE(text.startsWith(
      "window \"Letter\" 800x600, frame 8\ncut: there was no time for all\nsince frame 7: "))
      << text.cStr();
}

TEST(OutlineOfChanges, aChangedElementSaysWhatItWas) {
  Moments moments;
  auto& one = moments.now.elements[1];
  one.change = Change::CHANGED;
  one.name = kj::str("Eins");
  one.value = kj::str("5");
  one.states.set(State::PRESSED);
  one.bounds = Rect{1, 2, 3, 4};
  auto& two = moments.before.elements[2];
  two.actions.add(kj::str("click"));
  two.states.set(State::CHECKED);
  moments.now.elements[2].change = Change::CHANGED;
  EXPECT_EQ(moments.said(),
            "since frame 7: 0 gone, 0 new, 2 changed, 4 as before\n"
            "~ 1 push button \"Eins\" = \"5\" [pressed] 1,2 3x4; was \"One\" without value [] "
            "without place\n"
            "~ 2 push button \"Two\"; was [checked] (click)\n");
}

TEST(OutlineOfChanges, newElementsSayWhereTheyAreAndOldOnesTheirNewNumbers) {
  Moments moments;
  // A group with a button in it comes before the list.
  auto& now = moments.now;
  now.elements.clear();
  now.elements.add(element(0, "frame", "Letter"));
  add(now, element(0, "push button", "One"));
  add(now, element(0, "push button", "Two"));
  auto panel = add(now, element(0, "panel", "New"));
  auto list = add(now, element(0, "list"));
  auto inner = add(now, element(panel, "push button", "Inner"));
  add(now, element(list, "list item", "a"));
  add(now, element(list, "list item", "b"));
  for (auto& each : now.elements) each.change = Change::SAME;
  now.elements[panel].change = now.elements[inner].change = Change::ADDED;
  EXPECT_EQ(moments.said(),
            "since frame 7: 0 gone, 2 new, 0 changed, 6 as before\n"
            "+ 3 in 0 panel \"New\"\n"
            "  + 5 push button \"Inner\"\n"
            "= 4 was 3\n"
            "= 6..7 were 4..5\n");
}

TEST(OutlineOfChanges, whatIsGoneIsSaidAsItWas) {
  Moments moments;
  auto& now = moments.now;
  auto kept = kj::mv(now.elements);
  now.elements.clear();
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i != 2) now.elements.add(kj::mv(kept[i]));
  }
  now.elements[3].parent = now.elements[4].parent = 2;
  now.gone.add(2);
  EXPECT_EQ(moments.said(),
            "since frame 7: 1 gone, 0 new, 0 changed, 5 as before\n"
            "- 2 push button \"Two\"\n"
            "= 2..4 were 3..5\n");
}

TEST(OutlineOfChanges, elementsOfOnePathAreKnownByTheirOrder) {
  Moments moments;
  for (auto seen : {&moments.before, &moments.now}) {
    for (auto& each : seen->elements) each.path = kj::str();
  }
  moments.now.gone.add(1);
  auto kept = kj::mv(moments.now.elements);
  moments.now.elements.clear();
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i != 1) moments.now.elements.add(kj::mv(kept[i]));
  }
  moments.now.elements[3].parent = moments.now.elements[4].parent = 2;
  EXPECT_EQ(moments.said(),
            "since frame 7: 1 gone, 0 new, 0 changed, 5 as before\n"
            "- 1 push button \"One\"\n"
            "= 1..4 were 2..5\n");
}

TEST(OutlineOfChanges, whatWasNotComparedHasNoDifference) {
  Moments other;
  other.now.before = FrameId{9};
  EXPECT_EQ(other.said(), "nothing");
  Moments first;
  first.now.before = nullptr;
  EXPECT_EQ(first.said(), "nothing");
  Moments unknown;
  unknown.now.elements[2].change = Change::UNKNOWN;
  EXPECT_EQ(unknown.said(), "nothing");
  Moments beyond;
  beyond.now.gone.add(6);
  EXPECT_EQ(beyond.said(), "nothing");
  Moments strange;
  strange.now.elements[2].path = kj::str("/of/nobody");
  EXPECT_EQ(strange.said(), "nothing");
}

}  // namespace
}  // namespace praefectus::client
