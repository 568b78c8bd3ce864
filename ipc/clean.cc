#include "ipc/clean.h"

#include <kj/vector.h>

#include <algorithm>

namespace praefectus {
namespace {

constexpr kj::StringPtr REPLACEMENT = "\xEF\xBF\xBD"_kj;  // U+FFFD

// Bytes of the character at the beginning of `rest`, or 0 when there is no well-formed one.
size_t characterAt(kj::ArrayPtr<const char> rest) {
  char piece[5] = {};
  for (size_t size = 1; size <= 4 && size <= rest.size(); ++size) {
    piece[size - 1] = rest[size - 1];
    if (isText(kj::StringPtr(piece, size))) return size;
  }
  return 0;
}

Clean whole(kj::StringPtr text) {
  Clean out;
  out.text = text;
  return out;
}

Clean owned(kj::String text, bool cut) {
  Clean out;
  out.own = kj::mv(text);
  out.text = out.own;
  out.cut = cut;
  return out;
}

// Character by character, for what is not text as it stands.
Clean replaced(kj::StringPtr from, size_t bound) {
  kj::Vector<char> out(std::min(from.size(), bound) + 1);
  auto rest = from.asArray();
  while (rest.size() > 0) {
    size_t size = characterAt(rest);
    auto character = size == 0 ? REPLACEMENT.asArray() : rest.slice(0, size);
    if (out.size() + character.size() > bound) break;
    out.addAll(character);
    rest = rest.slice(std::max<size_t>(size, 1), rest.size());
  }
  return owned(kj::heapString(out.asPtr()), rest.size() > 0);
}

// As much of a text as ends between two characters.
kj::String beginning(kj::StringPtr from, size_t bound) {
  auto isInside = [&](size_t at) { return (static_cast<kj::byte>(from[at]) & 0xC0) == 0x80; };
  size_t end = bound;
  while (end > 0 && bound - end < 3 && isInside(end)) --end;
  return kj::heapString(from.asArray().slice(0, end));
}

}  // namespace

Clean clean(kj::StringPtr from, size_t bound) {
  if (from.size() <= bound) {
    if (isText(from)) return whole(from);
  } else {
    auto cut = beginning(from, bound);
    if (isText(cut)) return owned(kj::mv(cut), true);
  }
  return replaced(from, bound);
}

}  // namespace praefectus
