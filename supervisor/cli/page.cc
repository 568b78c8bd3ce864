#include "supervisor/cli/page.h"

#include <kj/debug.h>

#include <ctime>

namespace praefectus::cli {
namespace {

constexpr size_t ROOM = Page::COLUMNS - Page::INDENT;

// How many bytes the character takes that begins here; the text is well-formed UTF-8.
size_t lengthOf(char first) {
  auto byte = static_cast<kj::byte>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

uint32_t codePoint(kj::ArrayPtr<const char> character) {
  auto first = static_cast<kj::byte>(character[0]);
  if (character.size() == 1) return first;
  uint32_t point = first & (0xFFu >> (character.size() + 1));
  for (char next : character.slice(1, character.size())) {
    point = point << 6 | (static_cast<kj::byte>(next) & 0x3Fu);
  }
  return point;
}

struct Range {
  uint32_t first, last;
};
// What takes no place on a screen, looks like an ordinary blank, or changes the order in which the
// rest is shown.
constexpr Range UNSEEN[] = {
    {0x00, 0x1F},     {0x7F, 0xA0},     {0xAD, 0xAD},       {0x34F, 0x34F},   {0x61C, 0x61C},
    {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F},   {0x2000, 0x200F}, {0x2028, 0x202F},
    {0x205F, 0x206F}, {0x3000, 0x3000}, {0x3164, 0x3164},   {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF},
};

bool isUnseen(uint32_t point) {
  for (auto& range : UNSEEN) {
    if (point >= range.first && point <= range.last) return true;
  }
  return false;
}

kj::String spelled(kj::ArrayPtr<const char> character) {
  switch (character[0]) {
    case '\n':
      return kj::str("\\n");
    case '\t':
      return kj::str("\\t");
    case '\r':
      return kj::str("\\r");
    case '"':
      return kj::str("\\\"");
    case '\\':
      return kj::str("\\\\");
  }
  auto point = codePoint(character);
  return isUnseen(point) ? kj::str("\\u{", kj::hex(point), "}") : kj::heapString(character);
}

size_t widthOf(kj::ArrayPtr<const char> text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); i += lengthOf(text[i])) ++count;
  return count;
}

// Where a text may be cut so that at most `room` characters come before; at least one does.
size_t cutAt(kj::ArrayPtr<const char> text, size_t room) {
  size_t bytes = 0;
  for (size_t count = 0; count < room && bytes < text.size(); ++count) {
    bytes = kj::min(bytes + lengthOf(text[bytes]), text.size());  // A file's name may be cut.
  }
  return bytes;
}

// The text in lines of at most `room` characters.
kj::Vector<kj::String> wrapped(kj::ArrayPtr<const char> text, size_t room) {
  kj::Vector<kj::String> out;
  while (widthOf(text) > room) {
    size_t end = cutAt(text, room);
    size_t blank = end;
    while (blank > 0 && text[blank] != ' ') --blank;
    if (blank > 0) {
      out.add(kj::heapString(text.slice(0, blank)));
      text = text.slice(blank + 1, text.size());
    } else {
      out.add(kj::heapString(text.slice(0, end)));
      text = text.slice(end, text.size());
    }
  }
  out.add(kj::heapString(text));
  return out;
}

}  // namespace

void Page::put(kj::StringPtr label, kj::Vector<kj::String> pieces) {
  for (auto& piece : pieces) {
    auto margin = kj::heapString(INDENT);
    memset(margin.begin(), ' ', INDENT);
    memcpy(margin.begin(), label.begin(), kj::min(label.size(), INDENT - 1));
    lines.add(kj::str(margin, piece));
    label = ""_kj;
  }
}

void Page::say(kj::StringPtr sentence) {
  for (auto& part : wrapped(sentence, COLUMNS)) lines.add(kj::mv(part));
}

void Page::line(kj::StringPtr label, kj::StringPtr text) { put(label, wrapped(text, ROOM)); }

void Page::word(kj::StringPtr label, kj::StringPtr text) {
  kj::Vector<kj::String> whole;
  whole.add(kj::str(text));
  put(label, kj::mv(whole));
}

void Page::quote(kj::StringPtr label, kj::StringPtr text) {
  kj::Vector<kj::String> pieces;
  kj::Vector<char> piece;
  piece.add('"');
  auto end = [&]() {
    piece.add('"');
    pieces.add(kj::heapString(piece.asPtr()));
    piece.clear();
    piece.add('"');
  };
  for (size_t i = 0; i < text.size();) {
    size_t length = kj::min(lengthOf(text[i]), text.size() - i);
    auto character = spelled(kj::ArrayPtr<const char>(text.begin() + i, length));
    if (widthOf(piece) + widthOf(character) >= ROOM) end();
    piece.addAll(character);
    if (text[i] == '\n' && i + length < text.size()) end();
    i += length;
  }
  end();
  put(label, kj::mv(pieces));
}

void Page::gap() { lines.add(kj::String()); }

kj::String Page::str() const {
  kj::Vector<char> out;
  for (auto& line : lines) {
    out.addAll(line);
    out.add('\n');
  }
  return kj::heapString(out.asPtr());
}

kj::String durationText(int64_t ms) {
  struct Unit {
    int64_t ms;
    kj::StringPtr name;
  };
  constexpr Unit UNITS[] = {{3'600'000, "h"_kj}, {60'000, "min"_kj}, {1000, "s"_kj}, {1, "ms"_kj}};
  kj::Vector<kj::String> parts;
  for (auto& unit : UNITS) {
    if (ms >= unit.ms) parts.add(kj::str(ms / unit.ms, " ", unit.name));
    ms %= unit.ms;
  }
  return parts.size() == 0 ? kj::str("0 s") : kj::strArray(parts, " ");
}

kj::String localTimeText(int64_t unixMs) {
  // Rounded down, so that a time before 1970 keeps a fraction that counts forward.
  int64_t fraction = ((unixMs % 1000) + 1000) % 1000;
  time_t seconds = (unixMs - fraction) / 1000;
  tm parts{};
  localtime_r(&seconds, &parts);
  char date[64], zone[16];
  strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &parts);
  strftime(zone, sizeof(zone), "%z", &parts);
  return kj::str(kj::StringPtr(date), ".", kj::str(1000 + fraction).slice(1), " ",
                 kj::StringPtr(zone));
}

}  // namespace praefectus::cli
