#include "tests/helper-linux/applications.h"

#include "tests/helper-linux/screen.h"

#include <kj/debug.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include <unistd.h>

namespace praefectus::tests {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto PATIENCE = seconds(40);
constexpr auto BETWEEN_LOOKS = milliseconds(40);
// An application that loads pauses while it does; one that is done goes on doing nothing.
constexpr auto REST = milliseconds(400);

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  KJ_REQUIRE(file.good(), "cannot write", path.c_str());
}

constexpr kj::StringPtr PAGE_TITLE = "Fifteen hundred rows"_kj;

// The title comes when the page is there, and a little later, since what is there reaches the
// accessibility of the browser only then.
std::string titledWhenLoaded(kj::StringPtr title) {
  return std::string("<script>addEventListener('load',()=>setTimeout(()=>document.title='") +
         title.cStr() + "',1000))</script>";
}

// Three elements for each row.
void writePage(kj::StringPtr folder) {
  constexpr unsigned ROWS = 1500;
  std::string page =
      "<!doctype html><html lang=en><head><meta charset=utf-8><title>Loading</title>" +
      titledWhenLoaded(PAGE_TITLE) +
      "</head><body><h1>Rows</h1><p><button id=press>Press</button><input id=field "
      "aria-label=Field value=text></p><table>";
  for (unsigned row = 1; row <= ROWS; ++row) {
    page += "<tr><td>Row " + std::to_string(row) + "</td></tr>\n";
  }
  write(std::string(folder.cStr()) + "/page.html", page + "</table></body></html>\n");
}

constexpr kj::StringPtr FORM_TITLE = "One of each"_kj;

void writeForm(kj::StringPtr folder) {
  write(std::string(folder.cStr()) + "/form.html",
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Loading</title>" +
            titledWhenLoaded(FORM_TITLE) +
            "</head><body><h1>Form</h1><p>Some <a href='#there'>text</a> to read.</p><form>"
            "<label>Name <input id=name value=Ada></label>"
            "<label>Password <input id=password type=password value=hunter2></label>"
            "<label><input type=checkbox checked>Agree</label>"
            "<label><input type=radio name=one checked>This</label>"
            "<label><input type=radio name=one>That</label>"
            "<label>Level <input type=range min=0 max=100 value=40></label>"
            "<label>Choice <select><option>First<option selected>Second</select></label>"
            "<textarea aria-label=Long>Two\nlines</textarea><button id=send disabled>Send</button>"
            "</form><ul><li>One<li>Two</ul><table><tr><th>Head<th>Other<tr><td>Cell<td>Cell</table>"
            "<details><summary>More</summary>Hidden</details>"
            "<button id=again onclick='location.reload()'>Again</button>"
            "<button id=leave onclick='location.href=\"page.html\"'>Leave</button>"
            "<button id=renew onclick='inner.srcdoc=inner.srcdoc'>Renew</button>"
            "<iframe id=inner srcdoc='<button id=deep>Deep</button>'></iframe>"
            "<p>The end</p></body></html>\n");
}

// A profile that has seen the tip of the day and the notes of the release.
void writeOfficeProfile(kj::StringPtr folder) {
  auto profile = std::string(folder.cStr()) + "/home/.config/libreoffice/4/user";
  std::filesystem::create_directories(profile);
  auto item = [](const char* path, const char* name, const char* value) {
    return std::string("<item oor:path=\"/org.openoffice.") + path + "\"><prop oor:name=\"" + name +
           "\" oor:op=\"fuse\"><value>" + value + "</value></prop></item>";
  };
  write(profile + "/registrymodifications.xcu",
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><oor:items "
        "xmlns:oor=\"http://openoffice.org/2001/registry\" "
        "xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" "
        "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">" +
            item("Office.Common/Misc", "ShowTipOfTheDay", "false") +
            item("Office.Common/Misc", "FirstRun", "false") +
            item("Setup/Product", "WhatsNew", "false") +
            item("Setup/Product", "LastTimeDonateShown", "4102444800") +
            item("Setup/Product", "LastTimeGetInvolvedShown", "4102444800") + "</oor:items>\n");
}

constexpr kj::StringPtr MOUSEPAD_ARGUMENTS[] = {"mousepad"_kj};
constexpr kj::StringPtr GALCULATOR_ARGUMENTS[] = {"galculator"_kj};
constexpr kj::StringPtr GTK4_DEMO_ARGUMENTS[] = {"gtk4-demo"_kj};
constexpr kj::StringPtr TEXT_EDITOR_ARGUMENTS[] = {"gnome-text-editor"_kj};
constexpr kj::StringPtr FEATHERPAD_ARGUMENTS[] = {"featherpad"_kj, "--standalone"_kj};
constexpr kj::StringPtr KCALC_ARGUMENTS[] = {"kcalc"_kj};
constexpr kj::StringPtr DESIGNER_ARGUMENTS[] = {"/usr/lib/qt6/bin/designer"_kj};
constexpr kj::StringPtr CHROMIUM_ARGUMENTS[] = {"chromium"_kj,
                                                "--no-sandbox"_kj,
                                                "--force-renderer-accessibility"_kj,
                                                "--no-first-run"_kj,
                                                "--user-data-dir=chromium"_kj,
                                                "--password-store=basic"_kj,
                                                "--disable-gpu"_kj,
                                                "--disable-background-networking"_kj,
                                                "page.html"_kj};
constexpr kj::StringPtr FORM_ARGUMENTS[] = {"chromium"_kj,
                                            "--no-sandbox"_kj,
                                            "--force-renderer-accessibility"_kj,
                                            "--no-first-run"_kj,
                                            "--user-data-dir=chromium"_kj,
                                            "--password-store=basic"_kj,
                                            "--disable-gpu"_kj,
                                            "--disable-background-networking"_kj,
                                            "form.html"_kj};
constexpr kj::StringPtr PLAIN_CHROMIUM_ARGUMENTS[] = {"chromium"_kj,
                                                      "--no-sandbox"_kj,
                                                      "--no-first-run"_kj,
                                                      "--user-data-dir=chromium-plain"_kj,
                                                      "--password-store=basic"_kj,
                                                      "--disable-gpu"_kj,
                                                      "--disable-background-networking"_kj,
                                                      "page.html"_kj};
constexpr kj::StringPtr CALC_ARGUMENTS[] = {"soffice"_kj, "--calc"_kj, "--norestore"_kj,
                                            "--nologo"_kj, "--nofirststartwizard"_kj};
constexpr kj::StringPtr OFFICE_ENVIRONMENT[] = {"SAL_USE_VCLPLUGIN=gtk3"_kj};
constexpr kj::StringPtr XTERM_ARGUMENTS[] = {"xterm"_kj, "-e"_kj, "/bin/cat"_kj};
constexpr kj::StringPtr WIDGET_FACTORY_ARGUMENTS[] = {"gtk4-widget-factory"_kj};

bool within(Clock::duration time, const std::function<bool()>& holds) {
  auto end = Clock::now() + time;
  while (!holds()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(BETWEEN_LOOKS);
  }
  return true;
}

// Everything that a program starts stays in the session that it leads.
bool belongs(uint32_t pid, pid_t leader) { return getsid(static_cast<pid_t>(pid)) == leader; }

kj::Maybe<WindowRef> findWindow(HelperClient& helper, pid_t leader, const Recipe& recipe) {
  auto listed = helper.list();
  if (!listed.ok()) return nullptr;
  kj::Maybe<WindowRef> found;
  for (auto& window : listed->windows) {
    if (!window.visible || window.accessible != recipe.accessible) continue;
    if (strstr(window.title.cStr(), recipe.title.cStr()) == nullptr) continue;
    if (!belongs(window.ref.process.pid, leader)) continue;
    if (found != nullptr) return nullptr;
    found = window.ref;
  }
  return found;
}

bool has(const Observation& seen, kj::StringPtr name) {
  if (name.size() == 0) return true;
  for (auto& element : seen.elements) {
    if (element.name == name) return true;
  }
  return false;
}

// By the X server alone: a browser that is read while it loads keeps its page out of its item cache
// for good.
bool hasTitle(Screen& screen, kj::StringPtr title) {
  for (auto window : screen.windows("_NET_CLIENT_LIST")) {
    if (screen.title(window).find(title.cStr()) != std::string::npos) return true;
  }
  return false;
}

void awaitTitle(const PrivateDesktop& desktop, const Recipe& recipe) {
  if (recipe.title.size() == 0) return;
  useAuthorityOf(desktop);
  Screen screen(desktop.display());
  KJ_REQUIRE(within(PATIENCE, [&]() { return hasTitle(screen, recipe.title); }),
             "the application did not come up", recipe.name);
}

// What a look shows, for comparison with the next.
kj::String shown(const Observation& seen) {
  auto& at = seen.frame.bounds;
  auto elements = KJ_MAP(element, seen.elements) {
    return kj::str(element.role, '\t', element.name, '\t', element.states.bits, '\n');
  };
  return kj::str(at.x, ' ', at.y, ' ', at.width, ' ', at.height, '\n', kj::strArray(elements, ""));
}

}  // namespace

const Recipe MOUSEPAD{.name = "mousepad"_kj, .arguments = MOUSEPAD_ARGUMENTS};
const Recipe GALCULATOR{.name = "galculator"_kj, .arguments = GALCULATOR_ARGUMENTS};
const Recipe GTK4_DEMO{.name = "gtk4-demo"_kj, .arguments = GTK4_DEMO_ARGUMENTS};
const Recipe TEXT_EDITOR{.name = "gnome-text-editor"_kj, .arguments = TEXT_EDITOR_ARGUMENTS};
const Recipe FEATHERPAD{.name = "featherpad"_kj, .arguments = FEATHERPAD_ARGUMENTS};
const Recipe KCALC{.name = "kcalc"_kj, .arguments = KCALC_ARGUMENTS};
const Recipe DESIGNER{.name = "designer"_kj, .arguments = DESIGNER_ARGUMENTS};
const Recipe CHROMIUM{.name = "chromium"_kj,
                      .arguments = CHROMIUM_ARGUMENTS,
                      .title = PAGE_TITLE,
                      .content = "Row 1500"_kj,
                      .prepare = &writePage};
const Recipe CHROMIUM_FORM{.name = "chromium"_kj,
                           .arguments = FORM_ARGUMENTS,
                           .title = FORM_TITLE,
                           .content = "The end"_kj,
                           .prepare = &writeForm};
const Recipe CHROMIUM_AS_IT_IS{.name = "chromium"_kj,
                               .arguments = PLAIN_CHROMIUM_ARGUMENTS,
                               .title = PAGE_TITLE,
                               .prepare = &writePage};
const Recipe CALC{.name = "calc"_kj,
                  .arguments = CALC_ARGUMENTS,
                  .environment = OFFICE_ENVIRONMENT,
                  .title = "Calc"_kj,
                  .prepare = &writeOfficeProfile};
const Recipe XTERM{.name = "xterm"_kj, .arguments = XTERM_ARGUMENTS, .accessible = false};
const Recipe WIDGET_FACTORY{
    .name = "gtk4-widget-factory"_kj, .arguments = WIDGET_FACTORY_ARGUMENTS, .accessible = false};

ObserveAct everything() {
  ObserveAct out;
  out.elements = bounds::ELEMENTS_LIMIT;
  return out;
}

WindowRef awaitWindow(HelperClient& helper, pid_t leader, const Recipe& recipe) {
  kj::Maybe<WindowRef> found;
  KJ_REQUIRE(within(PATIENCE,
                    [&]() {
                      found = findWindow(helper, leader, recipe);
                      return found != nullptr;
                    }),
             "the application did not come up", recipe.name);
  return KJ_ASSERT_NONNULL(found);
}

void awaitRest(HelperClient& helper, const WindowRef& window, const Recipe& recipe) {
  kj::String before;
  auto since = Clock::now();
  KJ_REQUIRE(within(PATIENCE,
                    [&]() {
                      auto seen = helper.observe(window, everything());
                      auto now = seen.ok() ? shown(seen->seen) : kj::String();
                      bool arrived = seen.ok() && has(seen->seen, recipe.content);
                      if (!arrived || now != before) since = Clock::now();
                      before = kj::mv(now);
                      return Clock::now() - since >= REST;
                    }),
             "the application did not come to rest", recipe.name);
}

Running open(PrivateDesktop& desktop, HelperClient& helper, const Recipe& recipe) {
  if (recipe.prepare != nullptr) recipe.prepare(desktop.folder());
  auto program = desktop.run(recipe.arguments, recipe.environment);
  KJ_ON_SCOPE_FAILURE(desktop.end(program.pid));
  awaitTitle(desktop, recipe);
  auto window = awaitWindow(helper, program.pid, recipe);
  if (recipe.accessible) awaitRest(helper, window, recipe);
  return {program.pid, window, kj::mv(program.output)};
}

}  // namespace praefectus::tests
