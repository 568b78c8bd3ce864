// Files that a person names: read whole within a bound, or made new and never written over.
#pragma once

#include "supervisor/cli/report.h"

#include <kj/array.h>

namespace praefectus::cli {

// The whole of a file or pipe. Throws a Failure `input_failed` when it cannot be read or holds more
// than `limit` bytes.
kj::Array<kj::byte> readFile(kj::StringPtr path, size_t limit);

// Makes a file (0600) and brings it to the device. Throws a Failure `output_failed` when something
// is there already or it cannot be written; what was begun is then removed.
void writeNewFile(kj::StringPtr path, Bytes bytes);

// Makes a folder (0700) unless it is there, and those missing on the way to it. Throws a Failure
// `folder_failed` when it cannot.
void makeFolder(kj::StringPtr path);

// Throws a Failure `folder_unsafe` when somebody else owns the folder, or may enter it, or it is a
// link. False when nothing is there.
bool isPrivateFolder(kj::StringPtr path);

}  // namespace praefectus::cli
