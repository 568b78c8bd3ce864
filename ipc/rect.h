// What two rectangles have to do with one another.
#pragma once

#include "ipc/words.h"

namespace praefectus {

// Whether they have a pixel in common. Counted in 64 bits: applications state any numbers.
inline bool intersect(const Rect& a, const Rect& b) {
  auto apart = [](int64_t from, int64_t size, int64_t otherFrom, int64_t otherSize) {
    return from + size <= otherFrom || otherFrom + otherSize <= from;
  };
  return !apart(a.x, a.width, b.x, b.width) && !apart(a.y, a.height, b.y, b.height);
}

}  // namespace praefectus
