#include "helper-linux/x11/title.h"

#include "ipc/words.h"

#include <cstring>

namespace praefectus::x11 {
namespace {

constexpr char ESCAPE = '\x1b';
constexpr char UNKNOWN = '?';
constexpr size_t UTF8_TAIL = 3;  // The most bytes of a character that lacks its last one.

void addLatin1(kj::Vector<char>& out, char c) {
  auto code = static_cast<unsigned char>(c);
  if (code < 0x80) {
    out.add(c);
  } else {
    out.add(static_cast<char>(0xc0 | (code >> 6)));
    out.add(static_cast<char>(0x80 | (code & 0x3f)));
  }
}

kj::String fromLatin1(kj::ArrayPtr<const char> bytes) {
  kj::Vector<char> out(bytes.size() + 1);
  for (char c : bytes) addLatin1(out, c);
  out.add('\0');
  return kj::String(out.releaseAsArray());
}

// A reader of compound text (X Consortium Standard "Compound Text Encoding"). It knows the sets
// that need no table: ASCII, Latin-1, and UTF-8 between its own marks.
class Compound {
 public:
  explicit Compound(kj::ArrayPtr<const char> bytes) : bytes(bytes) {}

  kj::String read() {
    while (at < bytes.size()) {
      char c = bytes[at];
      if (c == ESCAPE) {
        takeEscape();
      } else if (utf8) {
        out.add(c);
        ++at;
      } else {
        takeCharacter(c);
      }
    }
    out.add('\0');
    auto text = kj::String(out.releaseAsArray());
    if (isText(text)) return text;
    return kj::str(KJ_MAP(c, text) { return static_cast<signed char>(c) < 0 ? UNKNOWN : c; });
  }

 private:
  // ESC, intermediate bytes 02/00 to 02/15, one final byte.
  void takeEscape() {
    size_t end = at + 1;
    while (end < bytes.size() && bytes[end] >= 0x20 && bytes[end] <= 0x2f) ++end;
    if (end >= bytes.size()) {
      at = bytes.size();
      return;
    }
    auto intermediate = bytes.slice(at + 1, end);
    char final = bytes[end];
    at = end + 1;
    auto is = [&](kj::StringPtr text) { return intermediate == text.asArray(); };
    if (is("%"_kj)) {
      utf8 = final == 'G';  // And '@' returns from it.
    } else if (is("%/"_kj)) {
      skipExtended();
    } else if (is("("_kj)) {
      left = final == 'B' ? Set::KNOWN : Set::FOREIGN;
    } else if (is("-"_kj)) {
      right = final == 'A' ? Set::KNOWN : Set::FOREIGN;
    } else if (intermediate.size() > 0 && intermediate[0] == '$') {
      bool isRight = intermediate[intermediate.size() - 1] == ')';
      (isRight ? right : left) = Set::FOREIGN_PAIRS;
    }
  }

  // A segment in a set of another standard: two bytes with its length, of seven bits each.
  void skipExtended() {
    if (at + 2 > bytes.size()) {
      at = bytes.size();
      return;
    }
    size_t length = (static_cast<size_t>(bytes[at] & 0x7f) << 7) | (bytes[at + 1] & 0x7f);
    at = kj::min(bytes.size(), at + 2 + length);
    out.add(UNKNOWN);
  }

  void takeCharacter(char c) {
    bool isRight = static_cast<signed char>(c) < 0;
    Set set = isRight ? right : left;
    // Spaces and controls are the same in every set.
    bool plain = !isRight && static_cast<unsigned char>(c) <= 0x20;
    if (set == Set::KNOWN || plain) {
      addLatin1(out, c);
      ++at;
    } else {
      out.add(UNKNOWN);
      at = kj::min(bytes.size(), at + (set == Set::FOREIGN_PAIRS ? 2 : 1));
    }
  }

  enum class Set { KNOWN, FOREIGN, FOREIGN_PAIRS };

  kj::ArrayPtr<const char> bytes;
  kj::Vector<char> out;
  size_t at = 0;
  Set left = Set::KNOWN, right = Set::KNOWN;  // Of bytes without and with the eighth bit.
  bool utf8 = false;
};

}  // namespace

kj::String titleFrom(Encoding encoding, kj::ArrayPtr<const char> bytes, bool cut) {
  auto text = bytes.slice(0, strnlen(bytes.begin(), bytes.size()));
  switch (encoding) {
    case Encoding::UTF8:
      for (size_t drop = 0; drop <= (cut ? UTF8_TAIL : 0) && drop <= text.size(); ++drop) {
        auto out = kj::str(text.slice(0, text.size() - drop));
        if (isText(out)) return out;
      }
      return fromLatin1(text);
    case Encoding::LATIN1:
      return fromLatin1(text);
    case Encoding::COMPOUND:
      return Compound(text).read();
  }
  return kj::String();
}

}  // namespace praefectus::x11
