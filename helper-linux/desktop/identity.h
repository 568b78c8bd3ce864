// Who an element is: one digest, made by one function, for the observation that records it and for
// the check right before an effect.
#pragma once

#include "helper-linux/accessibility/node.h"

namespace praefectus::desktop {

constexpr size_t ANCESTOR_ROLES = 8;

// What a person would know an element by: role, name, accessible id, id in its page, action names
// in sorted order, roles of up to 8 ancestors (nearest first), place among its siblings, and the
// value of what a person could set (of a text its first 65,536 characters, and how many it has).
// Keyed with the frame's id, so that digests of two frames
// never compare and no value can be guessed from one.
Hash recognizedBy(const FrameId& frame, const accessibility::Node& node,
                  kj::ArrayPtr<const uint32_t> ancestorRoles);

// Everything that makes this element this one: what it is recognized by, the live object (bus name
// and path), and its process with its start.
Hash elementDigest(const FrameId& frame, const Process& process,
                   const accessibility::ObjectRef& object, const Hash& recognized);

// The live document of a page and its address, keyed with the frame's id.
Hash pageDigest(const FrameId& frame, const accessibility::ObjectRef& document, kj::StringPtr url);

}  // namespace praefectus::desktop
