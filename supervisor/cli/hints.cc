#include "supervisor/cli/hints.h"

namespace praefectus::cli {
namespace {

struct Hint {
  RefusalCode code;
  kj::StringPtr text;
};

constexpr Hint HINTS[] = {
    {RefusalCode::NO_DISPLAY,
     "Check DISPLAY and XAUTHORITY, or try `praefectus demo`, which brings its own desktop."_kj},
    {RefusalCode::NO_ACCESSIBILITY_BUS,
     "Install at-spi2-core and check DBUS_SESSION_BUS_ADDRESS."_kj},
    {RefusalCode::ACCESSIBILITY_OFF,
     "Check that accessibility is on: org.a11y.Status IsEnabled, and no NO_AT_BRIDGE."_kj},
    {RefusalCode::NOT_ANSWERING, "The application is busy or stopped; try again later."_kj},
    {RefusalCode::WARMING_UP, "Try again in a moment."_kj},
    {RefusalCode::CAPTURE_FAILED, "The window may be hidden or closing; try again."_kj},
    {RefusalCode::TARGET_MISSING, "`praefectus windows` lists the windows."_kj},
    {RefusalCode::TARGET_CHANGED, "The window changed meanwhile; try again."_kj},
    {RefusalCode::TIMEOUT, "The application is busy or stopped; try again later."_kj},
    {RefusalCode::BUSY, "Try again in a moment."_kj},
    {RefusalCode::DESKTOP_BUSY, "End the agent that uses this desktop, then try again."_kj},
    {RefusalCode::SCREEN_LOCKED, "Unlock the screen, then try again."_kj},
    {RefusalCode::SERVICE_UNAVAILABLE,
     "Are praefectus-supervisor and praefectus-desktop-linux installed beside this program?"_kj},
    {RefusalCode::SERVICE_MISMATCH,
     "The helper and its manifest must come from the same build as the ledger's pinned "
     "publisher."_kj},
    {RefusalCode::LEDGER_FOREIGN,
     "Is this the folder that was given to create? It must be yours and mode 0700."_kj},
    {RefusalCode::LEDGER_BUSY, "End the other program that uses this ledger, then try again."_kj},
    {RefusalCode::LEDGER_MOVED,
     "If this is the ledger now, and no other copy of it is in use: `praefectus ledger adopt`."_kj},
    {RefusalCode::CLOCK_UNTRUSTED,
     "Set the clock right; if it is right, `praefectus ledger clock --accept`."_kj},
    {RefusalCode::OPERATION_ARCHIVED,
     "If it was archived, give that file in place of the ledger's folder; if its id was taken over "
     "(`praefectus ledger import`), look there."_kj},
    {RefusalCode::RECORD_DAMAGED,
     "Run `praefectus verify`: it names every place that does not hold."_kj},
    {RefusalCode::LEDGER_POISONED, "Check the disk (full, read-only, failing), then try again."_kj},
};

}  // namespace

kj::StringPtr hintFor(RefusalCode code) {
  for (auto& hint : HINTS) {
    if (hint.code == code) return hint.text;
  }
  return ""_kj;
}

}  // namespace praefectus::cli
