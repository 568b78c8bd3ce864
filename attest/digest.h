// BLAKE2b-256, keyed and not, and randomness. The only hash we make ourselves.
#pragma once

#include "ipc/words.h"

namespace praefectus::attest {

// Must be called once before anything else of this room. Throws when the library cannot start.
void initialize();

class Digest {
 public:
  Digest();
  explicit Digest(Bytes key);  // 16 to 64 bytes.
  Digest& add(Bytes bytes);
  Digest& add(kj::StringPtr text);
  // Adds a length-prefixed piece, so that ("ab","c") and ("a","bc") differ.
  Digest& addSized(Bytes bytes);
  Digest& addSized(kj::StringPtr text);
  Digest& addNumber(uint64_t number);  // 8 bytes, little-endian.
  Hash finish();                       // Once; the state is wiped.

 private:
  alignas(64) kj::byte state[384];
};

Hash digestOf(Bytes bytes);
// With a key of 16 to 64 bytes; with an empty one the plain digest.
Hash keyedDigest(Bytes key, Bytes bytes);
// Of `label ‖ NUL ‖ bytes`: a digest of one kind can never pass for another's.
Hash labelledDigest(kj::StringPtr label, Bytes bytes);
// The hash that grants name: label "praefectus/action/v1".
Hash actionHash(Bytes canonicalAction);

// Compares in constant time.
bool same(const Hash& a, const Hash& b);

void random(kj::ArrayPtr<kj::byte> out);
template <size_t N>
std::array<kj::byte, N> random() {
  std::array<kj::byte, N> out;
  random(kj::arrayPtr(out.data(), N));
  return out;
}

}  // namespace praefectus::attest
