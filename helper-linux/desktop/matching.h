// Which accessible window is which X window, and how their coordinates relate.
#pragma once

#include "helper-linux/accessibility/applications.h"
#include "helper-linux/x11/display.h"

namespace praefectus::desktop {

using Applications = kj::Vector<kj::Own<accessibility::AccessibleApplication>>;

struct Match {
  accessibility::AccessibleApplication* application;
  accessibility::AccessibleWindow* window;
};

// All accessible windows that fit `window`: of its process, then of its title, then of its size and
// place as far as those decide. One is a match; none or several are not. One process may hold
// several accessible applications: the windows of all of them count.
kj::Vector<Match> matches(const x11::TopLevel& window, kj::ArrayPtr<const x11::TopLevel> all,
                          Applications& applications);

// From a toolkit's window coordinates to pixels of the client area. Toolkits that scale speak in
// units of `factor` pixels; GTK 4 does not count the shadow that it draws around itself.
struct Mapping {
  int32_t factor = 1;
  int32_t x = 0, y = 0;
};
Mapping mappingOf(const accessibility::Toolkit& toolkit, const Rect& rootExtents,
                  const x11::TopLevel& window);
Rect mapped(const Mapping& mapping, const Rect& extents);

}  // namespace praefectus::desktop
