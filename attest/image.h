// A helper image: the very bytes that were hashed are the bytes that run.
#pragma once

#include "attest/signed.h"

#include <kj/io.h>

namespace praefectus::attest {

// A copy of an executable in sealed memory: nobody can write, grow, shrink or unseal it any more.
class Image {
 public:
  const Hash& digest() const { return hash; }
  uint64_t size() const { return bytes; }
  int fd() const { return memory.get(); }
  const Manifest& manifest() const { return stated; }

  // Copies the file once, seals the copy, hashes the copy, and compares it with the manifest beside
  // the file (`path` + ".manifest"). The file itself is never looked at again.
  //
  // Refuses: SERVICE_UNAVAILABLE when file or manifest is absent or unreadable; SERVICE_MISMATCH
  // when signature, role, platform, protocol, size or digest differ.
  static Result<kj::Own<Image>> attest(const KeyRing& ring, Role role, kj::StringPtr path);

 private:
  kj::AutoCloseFd memory;
  Hash hash{};
  uint64_t bytes = 0;
  Manifest stated;
};

// "linux-x86_64"
kj::StringPtr platform();

}  // namespace praefectus::attest
