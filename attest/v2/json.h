// JSON as protocol v2 needs it: read strictly, kept with its kinds, written in one canonical form.
//
// Strict means that two readers cannot disagree about what a text says: no key twice in one object,
// no number but an integer, no invalid UTF-8, no byte before or after the one value.
#pragma once

#include "ipc/words.h"

#include <kj/map.h>
#include <kj/one-of.h>
#include <kj/vector.h>

namespace praefectus::attest::v2 {

struct Json {
  struct Null {};
  using Array = kj::Vector<Json>;
  using Object = kj::TreeMap<kj::String, Json>;  // Iterates by the UTF-8 bytes of the keys.

  // Integers are int64_t when they are negative and uint64_t otherwise, so that each has one kind.
  kj::OneOf<Null, bool, int64_t, uint64_t, kj::String, Array, Object> value = Null();
};

struct JsonLimits {
  size_t bytes;  // Of the text.
  size_t depth;  // Arrays and objects inside one another.
  size_t nodes;  // Values of every kind, the outermost included.
};

// Exactly one value, with blanks around it at most.
// Refuses: UNSUPPORTED_NUMBER for anything with a fraction or an exponent, beyond int64_t and
// uint64_t, or minus zero; MALFORMED for a text that is not JSON, a repeated key, a byte order
// mark, and beyond a limit.
Result<Json> readJson(kj::ArrayPtr<const char> text, const JsonLimits& limits);

// The canonical form: UTF-8 without blanks; keys sorted by their UTF-8 bytes, at every depth;
// integers in decimal. In strings only the quote, the backslash and what lies below 0x20 is
// escaped: \b \t \n \f \r, the others as \u00 and two lower-case hexadecimal digits.
kj::String canonical(const Json& json);

// The parts of which canonical texts are made when there is no Json value behind them.
kj::String canonicalText(kj::StringPtr text);
kj::String canonicalArray(kj::ArrayPtr<const kj::String> parts);
using CanonicalMembers = kj::TreeMap<kj::String, kj::String>;  // From keys to canonical texts.
kj::String canonicalObject(const CanonicalMembers& members);

// SHA-256 in lower-case hexadecimal, as v2 spells every hash. Unblinded: whoever sees the hash of a
// short text can find the text by trying, so none of these may be written down or logged.
kj::String sha256(Bytes bytes);
inline kj::String sha256(kj::StringPtr text) { return sha256(text.asBytes()); }

}  // namespace praefectus::attest::v2
