// Every limit on what a peer, an application or a file may bring, in one table. A request above a
// limit is refused, not clamped, unless the line says cut. Pauses between two looks, and settings
// of a library, stand beside their use.
#pragma once

#include <kj/time.h>

#include <cstddef>
#include <cstdint>

namespace praefectus::bounds {

// Messages. Cap'n Proto's own default would accept 64 MiB.
constexpr size_t MESSAGE_BYTES = 1u << 20;
constexpr size_t MESSAGE_WORDS = MESSAGE_BYTES / 8;
constexpr size_t SEGMENTS = 512;
// Words that may be read of one received message, which is read more than once: by the strict
// reader, by the method, by a copy. Also what a message that points at one thing many times can
// cost us.
constexpr size_t TRAVERSAL_WORDS = 8 * MESSAGE_WORDS;
// Calls received on one connection and not yet answered. Beyond it nothing more is read.
constexpr size_t CALL_WORDS = 8 * MESSAGE_WORDS;
constexpr int NESTING = 32;
// Answers that a peer has not read. Beyond it the connection ends at the peer's next message.
constexpr size_t UNREAD_BYTES = 16 * MESSAGE_BYTES;
// No descriptor is ever accepted over a channel.
constexpr unsigned DESCRIPTORS = 0;
constexpr size_t SIGNED_BODY_BYTES = 64u << 10;
constexpr size_t ACTION_BYTES = 576u << 10;
constexpr size_t IN_FLIGHT = 1024;  // Operations, over all sessions.
constexpr size_t SESSIONS = 16;
// For the life of one supervisor.
constexpr size_t SESSION_NAMES = 65'536;
constexpr size_t TURNS = 65'536;  // Over all sessions.
constexpr size_t STOPS = 4096;    // Stopped turns that are remembered.

// Grants. What is signed is counted in 53 bits, which every language has.
constexpr int64_t SIGNED_TIME_MS = 1ll << 53;
constexpr uint64_t POLICY_GENERATION = 1ull << 53;
constexpr size_t REVOCATIONS = 65'536;  // Kept, over all issuers.
constexpr int64_t GRANT_LIFE_MS = 24ll * 3600 * 1000;
constexpr int64_t MUTATION_LEASE_MS = 60'000;
constexpr int64_t READ_LEASE_MS = 300'000;
constexpr size_t LEASES = 64;  // Open in one session.
constexpr size_t TASK_STEPS = 1000;
constexpr uint32_t READ_USES = 1000;
constexpr size_t READ_GRANTS_REMEMBERED = 4096;

// Actions.
constexpr uint32_t ACTION_TIMEOUT_MS = 120'000;
constexpr size_t ACTION_NAME_BYTES = 128;
constexpr size_t VALUE_BYTES = 16'384;  // Also of typed and pasted text, and of what is opened.
constexpr uint32_t CLICKS = 3;
constexpr uint32_t PRESSES = 100;
constexpr uint32_t DELAY_MS = 1000;
constexpr size_t KEY_BYTES = 64;
constexpr uint32_t KEYS = 8;
constexpr uint32_t SCROLL_STEPS = 100;
constexpr uint32_t SELECTION = 1'048'576;  // Characters: start and length together.
constexpr size_t APPLICATION_NAME_BYTES = 256;
constexpr size_t CLIPBOARD_BYTES = 512u << 10;  // Half of what one message may carry.
constexpr int32_t COORDINATE = 65'535;
constexpr uint32_t REGION_SIDE = 16'384;
constexpr uint32_t EXPECTATIONS = 16;

// Observation. Elements, depth and text are cut, each with its own flag.
// A request may ask for more elements and text than usual, up to the limit.
constexpr uint32_t ELEMENTS = 1500;
constexpr uint32_t ELEMENTS_LIMIT = 5000;
constexpr uint32_t DEPTH = 64;
constexpr uint32_t TEXT_BYTES = 500;
constexpr uint32_t TEXT_LIMIT = 16'384;
// What is kept of a name, longer than what can be shown of it.
constexpr size_t NAME_BYTES = 20'000;
constexpr uint32_t URL_BYTES = 2048;
constexpr size_t PATH_BYTES = 1024;  // Of an object's path, or a page's id of it. Beyond it: empty.
constexpr uint32_t MONITORS = 32;
constexpr uint32_t ACTIONS = 32;     // Names of one element's actions; cut.
constexpr uint32_t CHILDREN = 3000;  // A node that claims more is not descended into (`skipped`).
constexpr uint32_t APPLICATIONS = 256;
constexpr uint32_t WINDOWS = 512;
constexpr size_t PICTURE_BYTES = 64u << 20;
constexpr size_t PICTURE_CHUNK = 512u << 10;
constexpr uint64_t HELD_PIXEL_BYTES = 512u << 20;  // Of pictures held by a peer, not yet PNG.

// What a helper reads besides. A larger bus message is dropped unread, and what it answered ends as
// late; the largest seen is the item cache of a 5,000-node web page, about 1 MB.
constexpr size_t BUS_MESSAGE_BYTES = 32u << 20;
constexpr uint64_t PIXEL_BYTES = 256u << 20;
constexpr uint64_t IMAGE_BYTES = 64u << 20;  // One helper's file.

// Time. A wall clock that has moved by more than this against the time since boot is not believed.
constexpr int64_t CLOCK_JUMP_MS = 60'000;

// Frames.
constexpr kj::Duration FRAME_LIFE = 30 * kj::SECONDS;
constexpr size_t FRAMES_REMEMBERED = 8;

// Waits.
constexpr kj::Duration HELLO = 10 * kj::SECONDS;
constexpr kj::Duration SPAWN = 5 * kj::SECONDS;
constexpr kj::Duration READ =
    20 * kj::SECONDS;  // list, observe, capabilities, as the supervisor waits
constexpr kj::Duration WALK = 6 * kj::SECONDS;     // one tree walk inside the helper
constexpr kj::Duration CALL = 2 * kj::SECONDS;     // one accessibility call
constexpr kj::Duration CONNECT = 5 * kj::SECONDS;  // display or bus, at helper start
constexpr kj::Duration SETTLE =
    500 * kj::MILLISECONDS;  // readback waits this long for an effect to show
constexpr kj::Duration LEDGER =
    30 * kj::SECONDS;                            // one commit; a device that needs longer is broken
constexpr kj::Duration CLOSE = 3 * kj::SECONDS;  // helper end: close the socket, then SIGKILL

// Restarts: consecutive failed starts of one session's helper before it is left alone.
constexpr unsigned STARTS = 3;

}  // namespace praefectus::bounds
