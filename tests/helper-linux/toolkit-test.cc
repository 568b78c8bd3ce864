// What toolkits are known to do to those who read them, each against the real application.
#include "tests/helper-linux/applications.h"
#include "tests/helper-linux/bus-service.h"
#include "tests/helper-linux/call-counter.h"
#include "tests/helper-linux/desk.h"
#include "tests/helper-linux/screen.h"

#include <kj/debug.h>

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include <signal.h>

namespace praefectus::tests {
namespace {

class Stage {
 public:
  Stage() : helper(desktop.environment()) { helper.hello(); }

  Running open(const Recipe& recipe) { return tests::open(desktop, helper, recipe); }
  Observed observe(const WindowRef& window) { return observe(window, everything()); }
  Observed observe(const WindowRef& window, const ObserveAct& request) {
    auto seen = helper.observe(window, request);
    KJ_REQUIRE(seen.ok(), nameOf(seen.refusal().code));
    return kj::mv(*seen);
  }
  AppState stateOf(const WindowRef& window) {
    auto listed = helper.list();
    KJ_REQUIRE(listed.ok());
    for (auto& each : listed->applications) {
      if (each.process == window.process) return each.state;
    }
    KJ_FAIL_REQUIRE("the application is not listed");
  }

  PrivateDesktop desktop;
  HelperClient helper;
};

std::string contentOf(kj::StringPtr path) {
  std::ifstream file(path.cStr());
  return {std::istreambuf_iterator<char>(file), {}};
}

bool isRunning(const WindowRef& window) {
  auto status = contentOf(kj::str("/proc/", window.process.pid, "/stat"));
  auto end = status.rfind(')');
  return end != std::string::npos && status.compare(end, 3, ") Z") != 0;
}

size_t residentBytesOf(const WindowRef& window) {
  std::istringstream statm(contentOf(kj::str("/proc/", window.process.pid, "/statm")));
  size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * 4096;
}

// What an application printed while something was done to it.
template <typename Deed>
std::string printedDuring(const Running& application, Deed&& deed) {
  auto before = contentOf(application.output).size();
  deed();
  return contentOf(application.output).substr(before);
}

const Element* elementOf(const Observed& seen, kj::StringPtr role) {
  for (auto& each : seen.seen.elements) {
    if (each.role == role) return &each;
  }
  return nullptr;
}

// Properties.GetAll of an accessible object ends a Qt 5 program.
TEST(Toolkit, qt5SurvivesBeingRead) {
  Stage stage;
  auto editor = stage.open(FEATHERPAD);
  CallCounter counter(stage.desktop.environment());
  auto seen = stage.observe(editor.window);
  EXPECT_GT(seen.seen.elements.size(), 100u);
  EXPECT_EQ(seen.seen.faults, 0u);
  auto calls = counter.callsOf(stage.helper.pid());
  EXPECT_GT(sumOf(calls), 0u);
  EXPECT_EQ(calls.count("GetAll"), 0u);
  EXPECT_TRUE(isRunning(editor.window));
}

// GetChildren of a sheet has taken 23 GB and the program with it.
TEST(Toolkit, aSheetIsSkippedAndTheSpreadsheetUnharmed) {
  constexpr size_t GIGABYTE = 1u << 30;
  Stage stage;
  auto calc = stage.open(CALC);
  auto seen = stage.observe(calc.window);
  size_t skipped = 0;
  for (auto& each : seen.seen.elements) {
    if (each.fault != Fault::SKIPPED) continue;
    ++skipped;
    EXPECT_EQ(each.role, "table");
    EXPECT_GT(each.children, bounds::CHILDREN);
    EXPECT_TRUE(each.childrenCut);
  }
  EXPECT_EQ(skipped, 1u);
  EXPECT_EQ(seen.seen.faults, skipped);
  EXPECT_LT(residentBytesOf(calc.window), GIGABYTE);
  auto again = stage.observe(calc.window);
  EXPECT_EQ(again.seen.elements.size(), seen.seen.elements.size());
}

// GTK 4 warns of every question for screen coordinates.
TEST(Toolkit, gtk4IsNeverAskedForWhatItWarnsOf) {
  Stage stage;
  auto demo = stage.open(GTK4_DEMO);
  auto said = printedDuring(demo, [&]() {
    EXPECT_TRUE(stage.helper.list().ok());
    stage.observe(demo.window);
  });
  EXPECT_EQ(said, "");
  EXPECT_EQ(contentOf(demo.output).find("coord"), std::string::npos);
}

// GTK 3 says CRITICAL when an object without a Component is asked for its place.
TEST(Toolkit, gtk3IsNeverAskedForWhatItDoesNotHave) {
  Stage stage;
  auto editor = stage.open(MOUSEPAD);
  auto said = printedDuring(editor, [&]() {
    EXPECT_TRUE(stage.helper.list().ok());
    stage.observe(editor.window);
  });
  EXPECT_EQ(said, "");
  EXPECT_EQ(contentOf(editor.output).find("CRITICAL"), std::string::npos);
}

// A browser offers its page only once it is read, and its document before anything is in it.
TEST(Toolkit, aPageThatIsNotThereYetIsNotTakenForAnEmptyOne) {
  Stage stage;
  CHROMIUM_AS_IT_IS.prepare(stage.desktop.folder());
  auto browser = stage.desktop.run(CHROMIUM_AS_IT_IS.arguments);
  auto early = CHROMIUM_AS_IT_IS;
  early.title = "";
  auto window = awaitWindow(stage.helper, browser.pid, early);
  EXPECT_TRUE(eventually([&]() {
    auto seen = stage.helper.observe(window);
    if (!seen.ok()) return false;
    auto* document = elementOf(*seen, "document web");
    if (document == nullptr || document->children == 0) {
      EXPECT_NE(seen->seen.content, Content::ELEMENTS) << seen->seen.elements.size();
      EXPECT_NE(seen->seen.content, Content::EMPTY) << seen->seen.elements.size();
    }
    return seen->has("heading", "Rows") && seen->seen.content == Content::ELEMENTS;
  }));
}

// Presses one button of the page, and then asks for another as it was observed before: the code of
// the first refusal.
std::string refusedAfter(const char* pressed, const char* asked) {
  Stage stage;
  auto browser = stage.open(CHROMIUM_FORM);
  auto seen = stage.observe(browser.window);
  auto target = seen.find("push button", asked);
  stage.helper.invoke(seen, seen.find("push button", pressed), "press");
  std::string code;
  EXPECT_TRUE(eventually([&]() {
    code = nameOf(stage.helper.prepareInvoke(seen, target, "press"));
    return !code.empty();
  }));
  return code;
}

TEST(Toolkit, anElementOfAPageThatWasReloadedIsRefused) {
  EXPECT_EQ(refusedAfter("Again", "Leave"), "page_target_changed");
}

TEST(Toolkit, anElementOfAPageThatWasLeftIsRefused) {
  EXPECT_EQ(refusedAfter("Leave", "Again"), "page_target_changed");
}

// The same id in the same place, in another document.
TEST(Toolkit, anElementOfAFrameThatWasLoadedAnewIsNotTakenForTheOldOne) {
  auto code = refusedAfter("Renew", "Deep");
  EXPECT_TRUE(code == "target_changed" || code == "target_missing" || code == "page_target_changed")
      << code;
}

TEST(Toolkit, aPasswordOnAPageIsSecureAndHasNoValue) {
  Stage stage;
  auto browser = stage.open(CHROMIUM_FORM);
  auto seen = stage.observe(browser.window);
  EXPECT_STREQ(seen.at(seen.find("entry", "Name")).value.orDefault(kj::String()).cStr(), "Ada");
  auto* password = elementOf(seen, "password text");
  ASSERT_NE(password, nullptr);
  EXPECT_TRUE(password->secure);
  EXPECT_TRUE(password->value == nullptr);
  for (auto& each : seen.seen.elements) {
    EXPECT_EQ(strstr(each.name.cStr(), "hunter2"), nullptr) << each.role.cStr();
    KJ_IF_MAYBE (value, each.value) EXPECT_EQ(strstr(value->cStr(), "hunter2"), nullptr);
  }
}

// It looks at the switch once, as it starts.
TEST(Toolkit, aBrowserStartedWithoutAccessibilitySaysSo) {
  Stage stage;
  SwitchWatch(stage.desktop).set(false);
  CHROMIUM.prepare(stage.desktop.folder());
  auto browser = stage.desktop.run(CHROMIUM.arguments);
  auto unreadable = CHROMIUM;
  unreadable.accessible = false;
  auto window = awaitWindow(stage.helper, browser.pid, unreadable);
  EXPECT_EQ(stage.stateOf(window), AppState::ACCESSIBILITY_OFF);
  auto seen = stage.helper.observe(window);
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::ACCESSIBILITY_OFF);
}

TEST(Toolkit, anApplicationOnTheBusButNotInTheRegistryIsToldFromOneThatIsNotThere) {
  Stage stage;
  auto factory = stage.open(WIDGET_FACTORY);
  EXPECT_EQ(stage.stateOf(factory.window), AppState::UNREGISTERED);
  auto seen = stage.helper.observe(factory.window);
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::ACCESSIBILITY_OFF);
}

TEST(Toolkit, aTerminalWithoutATreeSaysSo) {
  Stage stage;
  auto terminal = stage.open(XTERM);
  EXPECT_EQ(stage.stateOf(terminal.window), AppState::ACCESSIBILITY_OFF);
  auto seen = stage.helper.observe(terminal.window);
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.refusal().code, RefusalCode::ACCESSIBILITY_OFF);
}

// As a person does, where the focus is in the window.
void type(const Stage& stage, const Running& application, std::initializer_list<const char*> keys) {
  useAuthorityOf(stage.desktop);
  Screen screen(stage.desktop.display());
  screen.focus(application.window.window);
  for (auto key : keys) screen.type(key, false);
}

constexpr kj::StringPtr ENTRY_DEMO[] = {"gtk4-demo"_kj, "--run=entry_undo"_kj};
constexpr kj::StringPtr PASSWORD_DEMO[] = {"gtk4-demo"_kj, "--run=password_entry"_kj};

// The object of a GTK 4 entry answers with an empty text whatever it shows: that is no value.
TEST(Toolkit, aGtk4EntryNeverHasAnotherTextThanItShows) {
  Stage stage;
  auto demo = stage.open(Recipe{.name = "entry demo"_kj, .arguments = ENTRY_DEMO});
  type(stage, demo, {"a", "b", "c"});
  auto seen = stage.observe(demo.window);
  auto* entry = elementOf(seen, "text");
  ASSERT_NE(entry, nullptr);
  EXPECT_TRUE(entry->settable);
  KJ_IF_MAYBE (value, entry->value) EXPECT_STREQ(value->cStr(), "abc");
}

TEST(Toolkit, aGtk4PasswordIsSecureAndHasNoValue) {
  Stage stage;
  auto demo = stage.open(Recipe{.name = "password demo"_kj, .arguments = PASSWORD_DEMO});
  type(stage, demo, {"s", "e", "c"});
  auto seen = stage.observe(demo.window);
  auto* password = elementOf(seen, "password text");
  ASSERT_NE(password, nullptr);
  EXPECT_TRUE(password->secure);
  for (auto& each : seen.seen.elements) {
    EXPECT_TRUE(each.value == nullptr) << each.role.cStr();
    EXPECT_EQ(strstr(each.name.cStr(), "sec"), nullptr) << each.role.cStr();
  }
}

// A text of as many bytes as the bound is whole, and one more is cut, between characters.
TEST(Toolkit, aTextIsCutOnlyWhenItIsLongerThanTheBound) {
  Stage stage;
  auto path = kj::str(stage.desktop.folder(), "/text");
  std::string text = "€uro " + std::string(80, 'x') + " €";
  std::ofstream(path.cStr()) << text;
  kj::StringPtr arguments[] = {"mousepad"_kj, path};
  auto editor = stage.open(Recipe{.name = "mousepad"_kj, .arguments = arguments});
  auto textAt = [&](size_t bytes) {
    auto request = everything();
    request.textBytes = static_cast<uint32_t>(bytes);
    auto seen = stage.observe(editor.window, request);
    for (auto& each : seen.seen.elements) {
      if (each.role == "text" && each.states.has(State::MULTI_LINE)) {
        return std::pair(std::string(each.value.orDefault(kj::String()).cStr()), each.textCut);
      }
    }
    KJ_FAIL_REQUIRE("there is no text");
  };
  EXPECT_EQ(textAt(text.size()), std::pair(text, false));
  EXPECT_EQ(textAt(text.size() - 1), std::pair(text.substr(0, text.size() - 3), true));
}

}  // namespace
}  // namespace praefectus::tests
