// Which accessible window is which X window, and how a title is read: on values, without a desktop.
#include "helper-linux/desktop/matching.h"
#include "helper-linux/x11/title.h"

#include <gtest/gtest.h>

namespace praefectus::desktop {
namespace {

using accessibility::AccessibleApplication;
using accessibility::AccessibleWindow;
using x11::TopLevel;

constexpr uint32_t PID = 100;

struct Scene {
  kj::Vector<TopLevel> tops;
  Applications applications;

  TopLevel& top(kj::StringPtr title, uint32_t width, int32_t x = 0) {
    auto& out = tops.add();
    out.id = static_cast<xcb_window_t>(tops.size());
    out.pid = PID;
    out.title = kj::str(title);
    out.bounds = {x, 0, width, 100};
    return out;
  }
  AccessibleApplication& application(uint32_t pid = PID) {
    auto& out = *applications.add(kj::heap<AccessibleApplication>());
    out.pid = pid;
    return out;
  }
  static AccessibleWindow& window(AccessibleApplication& of, kj::StringPtr title, uint32_t width,
                                  int32_t children = 1) {
    auto& out = of.windows.add();
    out.title = kj::str(title);
    out.extents = Rect{0, 0, width, 100};
    out.children = children;
    return out;
  }
  kj::Vector<Match> of(size_t index) { return matches(tops[index], tops, applications); }
};

TEST(Matching, ofSeveralApplicationsOfOneProcessThePopulatedOneIsMeant) {
  Scene scene;
  scene.top("Editor", 300);
  Scene::window(scene.application(), "Editor", 300, 0);
  auto& populated = Scene::window(scene.application(), "Editor", 300, 5);
  auto found = scene.of(0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].window, &populated);
}

TEST(Matching, twoPopulatedOnesAreAmbiguousUnlessTheWindowDecides) {
  Scene scene;
  scene.top("Editor", 300);
  Scene::window(scene.application(), "Editor", 300);
  auto& other = Scene::window(scene.application(), "Editor", 300);
  EXPECT_EQ(scene.of(0).size(), 2u);
  other.extents = Rect{0, 0, 299, 100};
  EXPECT_EQ(scene.of(0).size(), 1u) << "only one has its size";
}

TEST(Matching, anotherProcessesWindowsNeverFit) {
  Scene scene;
  scene.top("Editor", 300);
  Scene::window(scene.application(PID + 1), "Editor", 300);
  EXPECT_EQ(scene.of(0).size(), 0u);
}

TEST(Matching, theOnlyAccessibleWindowIsNotTakenForBothOfTwoEqualOnes) {
  Scene scene;
  scene.top("Editor", 300);
  scene.top("Editor", 300, 400);
  Scene::window(scene.application(), "Editor", 300);
  EXPECT_EQ(scene.of(0).size(), 2u);
  EXPECT_EQ(scene.of(1).size(), 2u);
}

TEST(Matching, theOnlyAccessibleWindowBelongsToTheOneWhoseSizeItHas) {
  Scene scene;
  scene.top("Editor", 300);
  scene.top("Editor", 500);
  Scene::window(scene.application(), "Editor", 500);
  EXPECT_EQ(scene.of(0).size(), 0u) << "its own has not come yet";
  EXPECT_EQ(scene.of(1).size(), 1u);
}

TEST(Matching, placesTellEqualWindowsApart) {
  Scene scene;
  scene.top("Editor", 300);
  scene.top("Editor", 300, 400);
  auto& application = scene.application();
  Scene::window(application, "Editor", 300);
  Scene::window(application, "Editor", 300);
  application.windows[0].screen = Rect{400, 0, 300, 100};
  application.windows[1].screen = Rect{0, 0, 300, 100};
  ASSERT_EQ(scene.of(0).size(), 1u);
  EXPECT_EQ(scene.of(0)[0].window, &application.windows[1]);
  ASSERT_EQ(scene.of(1).size(), 1u);
  EXPECT_EQ(scene.of(1)[0].window, &application.windows[0]);
}

TEST(Matching, aMenuNeedsTheSizeAndNeverAManagedWindowsElements) {
  Scene scene;
  scene.top("Editor", 300);
  auto& menu = scene.top("Editor", 120);
  menu.managed = false;
  auto& application = scene.application();
  Scene::window(application, "Editor", 300);
  EXPECT_EQ(scene.of(1).size(), 0u) << "its title is the program's, and says nothing";
  EXPECT_EQ(scene.of(0).size(), 1u);
  Scene::window(application, "", 120);
  ASSERT_EQ(scene.of(1).size(), 1u);
  EXPECT_EQ(scene.of(1)[0].window, &application.windows[1]);
  EXPECT_EQ(scene.of(0).size(), 1u);
}

TEST(Mapping, movesWhatQtSaysOfTheScreenIntoTheWindow) {
  Scene scene;
  auto& top = scene.top("KCalc", 300, 506);
  top.bounds.y = 263;
  accessibility::Toolkit qt{kj::str("Qt"), kj::str("5.15.8")};
  auto mapping = mappingOf(qt, Rect{506, 263, 300, 100}, top);
  EXPECT_EQ(mapped(mapping, Rect{516, 283, 40, 30}), (Rect{10, 20, 40, 30}));
  EXPECT_EQ(mapped(mappingOf(qt, Rect(), top), Rect{516, 283, 40, 30}), (Rect{10, 20, 40, 30}))
      << "also when the window does not say where it is";
  auto scaled = mappingOf(qt, Rect{253, 131, 150, 50}, top);
  EXPECT_EQ(mapped(scaled, Rect{258, 141, 20, 15}), (Rect{10, 20, 40, 30}));
}

TEST(Title, isUtf8WhateverItWasWrittenIn) {
  using x11::Encoding;
  using x11::titleFrom;
  auto of = [](Encoding encoding, kj::StringPtr bytes) { return titleFrom(encoding, bytes); };
  EXPECT_STREQ(of(Encoding::UTF8, "Caf\xc3\xa9 \xf0\x9f\x98\x80").cStr(),
               "Caf\xc3\xa9 \xf0\x9f\x98\x80");
  EXPECT_STREQ(of(Encoding::UTF8, "Caf\xe9!").cStr(), "Caf\xc3\xa9!") << "a claim that is not true";
  EXPECT_STREQ(titleFrom(Encoding::UTF8, "Caf\xc3\xa9 \xf0\x9f\x98"_kj, true).cStr(),
               "Caf\xc3\xa9 ");
  EXPECT_STREQ(of(Encoding::LATIN1, "Caf\xe9").cStr(), "Caf\xc3\xa9");
  EXPECT_STREQ(of(Encoding::COMPOUND, "Caf\xe9").cStr(), "Caf\xc3\xa9");
  EXPECT_STREQ(of(Encoding::COMPOUND, "\x1b%G\xe4\xbd\xa0\x1b%@ hi").cStr(), "\xe4\xbd\xa0 hi");
  EXPECT_STREQ(of(Encoding::COMPOUND, "a\x1b$(B\x46\x7c\x4b\x5c\x1b(Bz").cStr(), "a??z")
      << "a set of two bytes a character that needs a table";
  EXPECT_STREQ(of(Encoding::COMPOUND, "a\x1b-L\xd0\x1b-A\xe9").cStr(), "a?\xc3\xa9");
  EXPECT_STREQ(of(Encoding::COMPOUND, "a\x1b").cStr(), "a");
  EXPECT_STREQ(of(Encoding::COMPOUND, "a\x1b%/1\x80").cStr(), "a");
  char cut[] = {'a', 'b', '\0', 'c'};
  EXPECT_STREQ(titleFrom(Encoding::LATIN1, kj::arrayPtr(cut, sizeof(cut))).cStr(), "ab");
}

}  // namespace
}  // namespace praefectus::desktop
