// The helper's end of helper.capnp over any Driver: phases, bounds, deadlines and redaction, once.
#pragma once

#include "ipc/channel.h"
#include "ipc/driver.h"
#include "ipc/picture.h"
#include "ipc/schema/helper.capnp.h"

namespace praefectus {

struct HelperSelf {
  kj::StringPtr name;
  kj::StringPtr release;
  Role role;
  uint64_t generation;
};

// Serves `driver` on `socket` until the peer is gone or breaks the protocol. Returns the exit code:
// 0 peer gone, 1 protocol broken, 78 (EX_CONFIG, sysexits.h) another protocol version asked for.
//
// Phases, as a table in helper-server.cc: hello must come first and once; then capabilities, list,
// observe, capture and prepare in any number, one at a time each; a prepared action performs once,
// and a new observation voids it. Anything else ends the connection.
//
// Of a picture that nobody wants as PNG none is made.
//
// When it resolves, nothing of the connection is left that could touch the driver. Let it resolve:
// a perform in flight belongs to the event loop, and dropping this promise does not take it from
// there before the loop turns again.
kj::Promise<int> serveHelper(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer,
                             kj::AutoCloseFd socket, HelperSelf self, Driver& driver,
                             KeyedHash hash, PngEncoder encoder);

}  // namespace praefectus
