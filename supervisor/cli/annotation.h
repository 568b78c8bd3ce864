// An observation's elements drawn on its picture, for a person to look at.
#pragma once

#include "ipc/desktop.h"

namespace praefectus::cli {

// The picture of `seen`, a PNG again, with a box around every element that shows and can be acted
// on, and its number. Throws when `png` is no PNG.
kj::Array<kj::byte> annotated(Bytes png, const Observation& seen);

}  // namespace praefectus::cli
