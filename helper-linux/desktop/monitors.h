// The ids by which a session names monitors: drawn by this helper, valid for one layout, and nobody
// else's.
#pragma once

#include "helper-linux/x11/display.h"

namespace praefectus::desktop {

class Monitors {
 public:
  Monitors();
  KJ_DISALLOW_COPY(Monitors);

  // In the server's order; the same layout has the same ids for as long as this helper lives.
  kj::Vector<Monitor> list(const x11::Layout& layout) const;
  // Where the monitor of this id stands, in root coordinates. Nothing for an id of another layout,
  // of another helper, or that nobody ever listed.
  kj::Maybe<Rect> find(const x11::Layout& layout, const MonitorId& id) const;

 private:
  MonitorId idOf(const x11::Layout& layout, const x11::MonitorSeen& monitor) const;

  std::array<kj::byte, 32> key;
};

}  // namespace praefectus::desktop
