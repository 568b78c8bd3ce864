// Real applications from Debian, started on a private desktop so that they are accessible as root,
// and quiet: no first-run dialogs, no tips, nothing that changes by itself.
#pragma once

#include "supervisor/cli/private-desktop.h"
#include "tests/helper-linux/helper-client.h"

#include <sys/types.h>

namespace praefectus::tests {

// How one of them is started. Its working directory is the desktop's folder.
struct Recipe {
  kj::StringPtr name;
  kj::ArrayPtr<const kj::StringPtr> arguments;
  kj::ArrayPtr<const kj::StringPtr> environment = nullptr;
  kj::StringPtr title = ""_kj;  // What its window's title contains, where it opens others besides.
  kj::StringPtr content = ""_kj;  // The name of an element that is there when all is.
  bool accessible = true;         // Whether it has a tree.
  void (*prepare)(kj::StringPtr folder) = nullptr;  // Writes the files that it needs.
};

extern const Recipe MOUSEPAD, GALCULATOR;    // GTK 3
extern const Recipe GTK4_DEMO, TEXT_EDITOR;  // GTK 4
extern const Recipe FEATHERPAD, KCALC;       // Qt 5
extern const Recipe DESIGNER;                // Qt 6
extern const Recipe CHROMIUM;                // A page of 1,500 rows.
extern const Recipe CHROMIUM_FORM;           // A page with one control of each kind.
extern const Recipe CHROMIUM_AS_IT_IS;  // The same, not told to offer its page to accessibility.
extern const Recipe CALC;               // LibreOffice, with an empty sheet.
extern const Recipe XTERM;              // No tree at all.
extern const Recipe WIDGET_FACTORY;     // GTK 4, on the bus but never registered.

struct Running {
  pid_t leader;       // What was started; ends with PrivateDesktop::end, its children too.
  WindowRef window;   // As the helper lists it. Its process may be a child of the leader.
  kj::String output;  // Path of what it prints.
};

// Starts an application and waits for its window and, when it is accessible, until its tree has not
// changed for a while; at most 40 s each. Throws when it does not come up or come to rest.
Running open(PrivateDesktop& desktop, HelperClient& helper, const Recipe& recipe);

// As much as one observation may hold.
ObserveAct everything();

// The parts of `open`.
WindowRef awaitWindow(HelperClient& helper, pid_t leader, const Recipe& recipe);
void awaitRest(HelperClient& helper, const WindowRef& window, const Recipe& recipe);

}  // namespace praefectus::tests
