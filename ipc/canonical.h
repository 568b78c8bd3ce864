// Canonical Cap'n Proto: one segment, no table, one byte sequence for one meaning.
//
// Signed bodies and actions travel as canonical bytes. They are parsed where they stand, and
// encoded again only to compare, so what was signed is what is read.
#pragma once

#include "ipc/bounds.h"
#include "ipc/strict.h"

#include <capnp/message.h>
#include <capnp/serialize.h>

namespace praefectus {

// The canonical bytes of a struct.
template <typename Reader>
kj::Array<kj::byte> canonicalBytes(Reader reader) {
  kj::Array<capnp::word> words = capnp::canonicalize(reader);
  return kj::heapArray(words.asBytes());
}

// A canonical struct of type T in its own aligned memory. Movable; the reader stays valid.
template <typename T>
class Canonical {
 public:
  // Refuses: MALFORMED when the bytes are not one canonical segment of at most `limit` bytes with a
  // struct at its root; UNKNOWN_FIELD as checkStrict does.
  static Result<Canonical> parse(Bytes bytes, size_t limit) {
    if (bytes.size() == 0 || bytes.size() % sizeof(capnp::word) != 0 || bytes.size() > limit) {
      return Refusal{RefusalCode::MALFORMED, "The body is empty, oversize or not whole words."};
    }
    Canonical out;
    out.words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
    memcpy(out.words.begin(), bytes.begin(), bytes.size());
    bool ok = false;
    KJ_IF_MAYBE (broken, kj::runCatchingExceptions([&]() {
                   out.segments = kj::heapArray<kj::ArrayPtr<const capnp::word>>(1);
                   out.segments[0] = out.words;
                   capnp::ReaderOptions options;
                   options.nestingLimit = bounds::NESTING;
                   out.message = kj::heap<capnp::SegmentArrayMessageReader>(out.segments, options);
                   ok = out.message->isCanonical();
                 })) {
      (void)broken;
      ok = false;
    }
    if (!ok) return Refusal{RefusalCode::MALFORMED, "The body is not canonical."};
    auto checked = checkStrict(out.get());
    if (!checked.ok()) return checked.refusal();
    // Cap'n Proto's own check masks one bit in the head of a list of structs. Anything that it lets
    // through and would not write itself is a second form of one meaning.
    if (canonicalBytes(out.get()) != bytes) {
      return Refusal{RefusalCode::MALFORMED, "The body is not canonical."};
    }
    return kj::mv(out);
  }

  typename T::Reader get() const { return message->template getRoot<T>(); }
  Bytes bytes() const { return words.asBytes(); }

  Canonical(Canonical&&) = default;
  Canonical& operator=(Canonical&&) = default;

 private:
  Canonical() = default;
  kj::Array<capnp::word> words;
  kj::Array<kj::ArrayPtr<const capnp::word>> segments;
  // Reading a root counts traversed words, so capnp does not call it const.
  mutable kj::Own<capnp::SegmentArrayMessageReader> message;
};

}  // namespace praefectus
