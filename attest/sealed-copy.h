// What the image check needs from the operating system: a copy of a file that nobody can change.
#pragma once

#include "ipc/words.h"

#include <kj/io.h>

namespace praefectus::attest {

struct SealedCopy {
  kj::AutoCloseFd memory;
  kj::Array<const kj::byte> contents;  // A view of that very memory.
};

// Opens the file once, copies what it holds into memory that is then sealed. Links in the last
// component, other things than regular files, and files of more than `limit` bytes are refused.
// Refuses: SERVICE_UNAVAILABLE.
Result<SealedCopy> sealedCopy(kj::StringPtr path, uint64_t limit);

// A small file as it is, under the same rules.
Result<kj::Array<kj::byte>> smallFile(kj::StringPtr path, uint64_t limit);

}  // namespace praefectus::attest
