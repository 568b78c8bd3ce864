// What supervisor and launcher say to each other: packets of two fixed shapes, with descriptors.
//
// Both ends are the same image on the same machine, so the shapes are plain structs; neither end
// takes a packet of any other length, mark or number of descriptors, and drops the other for
// sending one.
#pragma once

#include "ipc/words.h"

#include <kj/io.h>
#include <kj/vector.h>

#include <type_traits>

namespace praefectus::launch {

// Live children of one launcher; more are refused.
constexpr size_t CHILDREN = 64;

constexpr uint32_t REQUEST_MARK = 0x51554552;
constexpr uint32_t REPORT_MARK = 0x54524f50;

// Supervisor to launcher, with two descriptors: the sealed image, and the child's socket.
struct Request {
  uint32_t mark = REQUEST_MARK;
  uint32_t role = 0;
  uint64_t ticket = 0;  // Names this start, and the child, in every report on it.
  uint64_t generation = 0;
  int64_t deadline = 0;     // Nanoseconds of CLOCK_MONOTONIC; a request taken up later is refused.
  char name[256 + 8] = {};  // argv[0]; an identifier, NUL-terminated.
};

enum class Tiding : uint32_t { STARTED = 1, REFUSED = 2, EXITED = 3 };

// Launcher to supervisor; with one descriptor, the child's pidfd, when it is STARTED.
struct Report {
  uint32_t mark = REPORT_MARK;
  Tiding tiding{};
  uint64_t ticket = 0;
  uint32_t pid = 0;
  int32_t code = 0;  // EXITED: exit code or signal number.
  uint32_t signalled = 0;
  uint32_t reserved = 0;
};

// No padding: nothing of the sender's memory travels along.
static_assert(std::has_unique_object_representations_v<Request>);
static_assert(std::has_unique_object_representations_v<Report>);

enum class Sent { YES, FULL, CLOSED };
enum class Received { PACKET, NOTHING, CLOSED, BROKEN };

// FULL when the socket does not block and has no room.
Sent sendPacket(int socket, Bytes packet, std::initializer_list<int> descriptors);

// NOTHING when the socket does not block and is empty; BROKEN when the packet has another length
// than `packet`, or more descriptors than fit. Descriptors are close-on-exec.
Received receivePacket(int socket, kj::ArrayPtr<kj::byte> packet,
                       kj::Vector<kj::AutoCloseFd>& descriptors);

template <typename Shape>
Bytes bytesOfPacket(const Shape& shape) {
  return kj::arrayPtr(&shape, 1).asBytes();
}

}  // namespace praefectus::launch
