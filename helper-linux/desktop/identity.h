// Who an element is: one digest, made by one function, for the observation that records it and for
// the check right before an effect.
#pragma once

#include "helper-linux/accessibility/node.h"

namespace praefectus::desktop {

constexpr size_t ANCESTOR_ROLES = 8;

// A digest over everything that makes this element this one: live object (bus name and path),
// process and its start, role, name, accessible id, action names in sorted order, roles of up to 8
// ancestors (nearest first), place among its siblings, and the whole value of what a person could
// set. Keyed with the frame's id, so that digests of two frames never compare and no value can be
// guessed from one.
Hash elementDigest(const FrameId& frame, const Process& process, const accessibility::Node& node,
                   kj::ArrayPtr<const uint32_t> ancestorRoles);

}  // namespace praefectus::desktop
