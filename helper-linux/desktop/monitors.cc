#include "helper-linux/desktop/monitors.h"

#include "attest/digest.h"

#include <algorithm>

namespace praefectus::desktop {

Monitors::Monitors() : key(attest::random<32>()) {}

kj::Vector<Monitor> Monitors::list(const x11::Layout& layout) const {
  kj::Vector<Monitor> out(layout.monitors.size());
  for (auto& seen : layout.monitors) {
    out.add(Monitor{idOf(layout, seen), seen.bounds, seen.primary});
  }
  return out;
}

kj::Maybe<Rect> Monitors::find(const x11::Layout& layout, const MonitorId& id) const {
  for (auto& seen : layout.monitors) {
    if (idOf(layout, seen) == id) return seen.bounds;
  }
  return nullptr;
}

MonitorId Monitors::idOf(const x11::Layout& layout, const x11::MonitorSeen& monitor) const {
  attest::Digest digest(bytesOf(key));
  digest.add(bytesOf(layout.topology)).addNumber(monitor.name);
  auto whole = digest.finish();
  MonitorId out;
  std::copy_n(whole.begin(), out.size(), out.begin());
  return out;
}

}  // namespace praefectus::desktop
