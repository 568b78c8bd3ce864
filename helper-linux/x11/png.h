// Pixels as a PNG, for whoever wants a file.
#pragma once

#include "ipc/desktop.h"

namespace praefectus::x11 {

// Of pixels as a Picture has them. Nothing when it would be larger than bounds::PICTURE_BYTES.
kj::Maybe<kj::Array<kj::byte>> encodePng(const PictureInfo& info, Bytes pixels);

}  // namespace praefectus::x11
