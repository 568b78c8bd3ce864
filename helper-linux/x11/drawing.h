// What an application has drawn in a window since somebody looked: the server's own account, which
// needs no word of the application. Nothing arrives by itself: a window at rest, and one that never
// is, cost nothing until the next question.
#pragma once

#include "helper-linux/x11/display.h"

namespace praefectus::x11 {

class Drawing {
 public:
  // Takes a connection of its own, whose events nobody else waits for.
  explicit Drawing(kj::Own<Display> display);
  KJ_DISALLOW_COPY(Drawing);

  bool works() const;

  // Keeps account of a window from now on, of at most as many at once as are mirrored. Ended with
  // our connection.
  void watch(xcb_window_t window);

  // Where something was drawn since the last question, in the window's client area; at least the
  // smallest rectangles that hold it. Nothing when there is no account of this window. What another
  // window covers is not drawn, so it says nothing of that (see isInSight).
  kj::Maybe<kj::Vector<Rect>> take(xcb_window_t window);

 private:
  struct Account {
    xcb_window_t window;
    uint32_t damage;
  };
  void end(size_t index);

  kj::Own<Display> display;
  bool regions = false;
  kj::Vector<Account> accounts;  // The oldest is first.
};

// Whether nothing hides any part of the window: it is mapped, wholly on the screen, and no other
// one that shows lies above it. `all` is bottom first, and `window` one of it.
bool isInSight(const TopLevel& window, kj::ArrayPtr<const TopLevel> all, const Rect& screen);

}  // namespace praefectus::x11
