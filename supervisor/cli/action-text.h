// An action in words, for the person who decides about it. This is the one place that shows typed
// text, values, names and points: a decision about what is not shown would be none.
#pragma once

#include "ipc/action.h"
#include "supervisor/cli/page.h"
#include "supervisor/cli/report.h"

namespace praefectus::cli {

void describe(const Action& action, Page& page);
Json actionJson(const Action& action);

// "window 0x1400003 of process 4711 (started at tick 12345)", "any window of process …", "the whole
// desktop"
kj::String windowText(const WindowRef& window);
// Null for the whole desktop.
Json windowRefJson(const WindowRef& window);

}  // namespace praefectus::cli
