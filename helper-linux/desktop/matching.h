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
// place as far as those decide; of several applications of one process, then, those with anything
// in them. One is a match; none or several are not. The only one that fits stands there once for
// each X window that has the same claim to it, and not at all when another has a better one.
kj::Vector<Match> matches(const x11::TopLevel& window, kj::ArrayPtr<const x11::TopLevel> all,
                          Applications& applications);

// From a toolkit's own coordinates to pixels of the client area. Toolkits that scale speak in
// units of `factor` pixels; GTK 4 does not count the shadow that it draws around itself.
struct Mapping {
  int32_t factor = 1;
  int32_t x = 0, y = 0;
};
// Whether a toolkit that states these extents of its window can mean a window of this size.
bool fitsSize(const Rect& rootExtents, const x11::TopLevel& window);
Mapping mappingOf(const accessibility::Toolkit& toolkit, const Rect& rootExtents,
                  const x11::TopLevel& window);
Rect mapped(const Mapping& mapping, const Rect& extents);
// The smallest rectangle of the toolkit's that holds these pixels.
Rect unmapped(const Mapping& mapping, const Rect& pixels);

}  // namespace praefectus::desktop
