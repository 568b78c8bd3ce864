// v2's names for what one of our observations saw, and the way back from them.
//
// All are made from the observation alone, so that a host that hands them out and a reader that
// takes them in need to agree on nothing else:
//
//   observation_id    SHA-256 of the canonical array [2, frame id in hexadecimal, window id]
//   generation        the frame's epoch
//   provenance_hash   SHA-256 of [2, observation_id, generation, provenance]; provenance is v2's
//                     object: backend, backend_name, process_id, process_generation (start time),
//                     window_id, document_id (null), display_geometry_hash, host_opt_ins (none).
//                     v2's two wall-clock times are left out: a frame's age is counted on a clock
//                     that does not step, by the supervisor, and not by the name of the frame
//   element_id        SHA-256 of observation_id, one zero byte, and the element's digest in
//                     hexadecimal followed by ":" and its position in the list
//   fingerprint_hash  SHA-256 of [element_id, role, name, settable, actions]
//
// A fence that comes back whole proves that its holder means this element of this observation. That
// the live object is still that one is for the helper to find, by the digest in the target.
#pragma once

#include "attest/v2/request.h"
#include "ipc/action.h"
#include "ipc/desktop.h"

namespace praefectus::attest::v2 {

// `element` is a position in the observation's list. Throws when it is none.
Fence fenceOf(const Observation& observation, uint32_t element);

// The coordinates of a point of the desktop, to be given back with the point. v2 means one display;
// ours is the whole root window, "desktop". The snapshot is the observation; its content is the
// SHA-256 of [snapshot_id, the picture's SHA-256 or null, [every fingerprint_hash]].
// Root coordinates, in pixels of the desktop.
Coordinates coordinatesOf(const Observation& observation, int64_t x, int64_t y);

// Refuses: STALE_FRAME when the observation or its generation is another; TARGET_CHANGED when its
// provenance, the element or the element's fingerprint is. The detail says which.
Result<ElementTarget> elementOf(const Fence& fence, const Observation& observation);

// The same point in the frame's client area.
// Refuses: STALE_FRAME when display, geometry, snapshot or content is another; INVALID_COORDINATE
// when the point is not inside the window.
Result<PointTarget> pointOf(const Coordinates& point, const Observation& observation);

// An id that tells nothing: of `backendId`, in this observation only. Throws unless `observationId`
// is 64 lower-case hexadecimal digits and `backendId` has 1 to 512 bytes without a NUL.
kj::String opaqueId(kj::StringPtr observationId, kj::StringPtr backendId);

}  // namespace praefectus::attest::v2
