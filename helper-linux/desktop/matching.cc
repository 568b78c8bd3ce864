#include "helper-linux/desktop/matching.h"

#include <climits>

namespace praefectus::desktop {
namespace {

using accessibility::AccessibleWindow;

constexpr int32_t LARGEST_FACTOR = 4;

struct Size {
  int64_t width, height;
};

// The sizes that an accessible window may state for this X window: its client area, with the window
// manager's frame (GTK 3), or without the shadow that it draws itself (GTK 4).
std::array<Size, 3> possibleSizes(const x11::TopLevel& top) {
  int64_t width = top.bounds.width, height = top.bounds.height;
  return {
      Size{width, height},
      Size{width + top.frameLeft + top.frameRight, height + top.frameTop + top.frameBottom},
      Size{width - top.marginLeft - top.marginRight, height - top.marginTop - top.marginBottom}};
}

// The factor by which the extents fit one of the possible sizes, or nothing.
kj::Maybe<int32_t> factorOf(const Rect& extents, const x11::TopLevel& top) {
  for (int32_t factor = 1; factor <= LARGEST_FACTOR; ++factor) {
    for (auto& size : possibleSizes(top)) {
      // A size that the factor does not divide was rounded by the toolkit, up or down.
      auto fits = [factor](int64_t pixels, int64_t stated) {
        return stated * factor > pixels - factor && stated * factor < pixels + factor;
      };
      if (fits(size.width, extents.width) && fits(size.height, extents.height)) return factor;
    }
  }
  return nullptr;
}

bool sizeFits(const AccessibleWindow& window, const x11::TopLevel& top) {
  KJ_IF_MAYBE (extents, window.extents) return factorOf(*extents, top) != nullptr;
  return false;
}

bool placeFits(const AccessibleWindow& window, const x11::TopLevel& top) {
  KJ_IF_MAYBE (screen, window.screen) {
    int64_t x = screen->x, y = screen->y;
    bool client = x == top.bounds.x && y == top.bounds.y;
    bool frame =
        x == int64_t{top.bounds.x} - top.frameLeft && y == int64_t{top.bounds.y} - top.frameTop;
    return client || frame;
  }
  return false;
}

template <typename Fits>
kj::Vector<Match> only(kj::ArrayPtr<const Match> from, Fits fits) {
  kj::Vector<Match> out;
  for (auto& match : from) {
    if (fits(*match.window)) out.add(match);
  }
  return out;
}

// The windows that `top` may be at all, by title; else, some toolkits name their windows otherwise
// than X does, by size among those that no X window has a claim to by its title. What passes the
// window manager by has the program's name for a title, which says nothing.
kj::Vector<Match> candidates(const x11::TopLevel& top, kj::ArrayPtr<const x11::TopLevel> all,
                             kj::ArrayPtr<const Match> ofProcess) {
  if (top.managed) {
    auto titled = only(ofProcess, [&](auto& window) { return window.title == top.title; });
    if (!titled.empty()) return titled;
  }
  return only(ofProcess, [&](auto& window) {
    for (auto& other : all) {
      if (other.managed && other.pid == top.pid && other.title == window.title) return false;
    }
    return sizeFits(window, top);
  });
}

// Of several, those that size, place and content speak for, where they speak for any.
kj::Vector<Match> narrowed(kj::Vector<Match> fitting, const x11::TopLevel& top) {
  auto narrow = [&fitting](auto fits) {
    if (fitting.size() < 2) return;
    auto fewer = only(fitting, fits);
    if (!fewer.empty()) fitting = kj::mv(fewer);
  };
  narrow([&](auto& window) { return sizeFits(window, top); });
  narrow([&](auto& window) { return placeFits(window, top); });
  narrow([](auto& window) { return window.children.orDefault(0) > 0; });
  return fitting;
}

// How well a window fits in what only one of several X windows can have.
int strength(const AccessibleWindow& window, const x11::TopLevel& top) {
  return (top.managed ? 4 : 0) + (sizeFits(window, top) ? 2 : 0) + (placeFits(window, top) ? 1 : 0);
}

int32_t clamped(int64_t value) {
  return static_cast<int32_t>(kj::max(int64_t{INT_MIN}, kj::min(int64_t{INT_MAX}, value)));
}

uint32_t clampedSize(int64_t value) {
  return static_cast<uint32_t>(kj::max(int64_t{0}, kj::min(int64_t{INT_MAX}, value)));
}

}  // namespace

kj::Vector<Match> matches(const x11::TopLevel& top, kj::ArrayPtr<const x11::TopLevel> all,
                          Applications& applications) {
  kj::Vector<Match> ofProcess;
  for (auto& application : applications) {
    if (application->pid != top.pid) continue;
    for (auto& window : application->windows) ofProcess.add(Match{application, &window});
  }
  auto fitting = narrowed(candidates(top, all, ofProcess), top);
  if (fitting.size() != 1) return fitting;
  auto only = fitting[0];
  for (auto& rival : all) {
    if (rival.id == top.id || rival.pid != top.pid) continue;
    bool claims = false;
    for (auto& each : candidates(rival, all, ofProcess))
      claims = claims || each.window == only.window;
    if (!claims) continue;
    int ours = strength(*only.window, top), theirs = strength(*only.window, rival);
    if (theirs > ours) return {};
    if (theirs == ours) fitting.add(only);
  }
  return fitting;
}

bool fitsSize(const Rect& rootExtents, const x11::TopLevel& top) {
  return factorOf(rootExtents, top) != nullptr;
}

Mapping mappingOf(const accessibility::Toolkit& toolkit, const Rect& rootExtents,
                  const x11::TopLevel& top) {
  Mapping out;
  out.factor = factorOf(rootExtents, top).orDefault(1);
  if (toolkit.space() == accessibility::CoordinateSpace::SCREEN) {
    bool known = rootExtents.width > 0;
    out.x = clamped(known ? -int64_t{rootExtents.x} * out.factor : -int64_t{top.bounds.x});
    out.y = clamped(known ? -int64_t{rootExtents.y} * out.factor : -int64_t{top.bounds.y});
    return out;
  }
  if (!toolkit.isGtk4()) return out;
  bool stated = top.marginLeft + top.marginTop > 0;
  // Under a window manager that takes no shadows, GTK 4 draws the same plain border on all sides.
  auto border = [&out](uint32_t outer, uint32_t inner) {
    int64_t rest = int64_t{outer} - int64_t{inner} * out.factor;
    return clamped(kj::max(int64_t{0}, rest / 2));
  };
  out.x = stated ? clamped(int64_t{top.marginLeft}) : border(top.bounds.width, rootExtents.width);
  out.y = stated ? clamped(int64_t{top.marginTop}) : border(top.bounds.height, rootExtents.height);
  return out;
}

Rect mapped(const Mapping& mapping, const Rect& extents) {
  int64_t factor = mapping.factor;
  return {clamped(extents.x * factor + mapping.x), clamped(extents.y * factor + mapping.y),
          clampedSize(extents.width * factor), clampedSize(extents.height * factor)};
}

Rect unmapped(const Mapping& mapping, const Rect& pixels) {
  int64_t factor = mapping.factor;
  auto floor = [factor](int64_t value) {
    return value >= 0 ? value / factor : -((-value + factor - 1) / factor);
  };
  int64_t left = floor(int64_t{pixels.x} - mapping.x), top = floor(int64_t{pixels.y} - mapping.y);
  int64_t right = floor(int64_t{pixels.x} - mapping.x + pixels.width + factor - 1);
  int64_t bottom = floor(int64_t{pixels.y} - mapping.y + pixels.height + factor - 1);
  return {clamped(left), clamped(top), clampedSize(right - left), clampedSize(bottom - top)};
}

}  // namespace praefectus::desktop
