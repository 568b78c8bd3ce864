// Serves host.capnp: calls become values, values become answers. One connection, one host.
#pragma once

#include "ipc/channel.h"
#include "ipc/schema/host.capnp.h"
#include "supervisor/supervisor.h"

namespace praefectus {

// The bootstrap capability for a host on this supervisor.
wire::Supervisor::Client servePort(Supervisor& supervisor);

// The bootstrap capability when there is no usable ledger: says so in hello, and does nothing else.
wire::Supervisor::Client serveRefusal(Refusal why);

}  // namespace praefectus
