// A window's title as text, whatever encoding its client wrote it in.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

namespace praefectus::x11 {

enum class Encoding {
  UTF8,      // UTF8_STRING, as _NET_WM_NAME has it.
  LATIN1,    // STRING.
  COMPOUND,  // COMPOUND_TEXT: Latin-1 with other character sets announced inside.
};

// Up to the first NUL. Never throws: what cannot be decoded stands as '?', one for each byte or
// character. Bytes that claim to be UTF-8 and are not are taken for Latin-1. `cut` when there were
// more bytes, and the last character may be a part of one.
kj::String titleFrom(Encoding encoding, kj::ArrayPtr<const char> bytes, bool cut = false);

}  // namespace praefectus::x11
