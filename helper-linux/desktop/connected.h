// The processes on the accessibility bus, registered or not.
#pragma once

#include "helper-linux/desktop/link.h"

namespace praefectus::desktop {

// Asks the bus, no application. At most 1024 connections; those that go away meanwhile
// are left out, and so is everything when the bus does not answer by `deadline`.
kj::Promise<kj::Vector<uint32_t>> connectedProcesses(Bus& bus, kj::TimePoint deadline);

}  // namespace praefectus::desktop
