// Applications say anything. What goes on the wire is text, and no longer than its bound.
#pragma once

#include "ipc/words.h"

namespace praefectus {

// Points into what it was made of, unless something had to be changed.
struct Clean {
  kj::StringPtr text;
  bool cut = false;
  kj::String own;  // What `text` then points at.
};

// At most `bound` bytes, cut on a character's boundary; what is not UTF-8 is replaced by U+FFFD.
Clean clean(kj::StringPtr from, size_t bound);

}  // namespace praefectus
