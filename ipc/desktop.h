// What a platform's Driver returns: plain values of schema/desktop.capnp and schema/helper.capnp.
//
// A driver reports what it saw. Bounds and redaction are applied once, by the encoder: text is cut
// at the request's bound on a character boundary, a secure element loses its value whatever the
// driver put there, and observations that exceed a message are cut, each with its flag.
#pragma once

#include "ipc/bounds.h"
#include "ipc/schema/desktop.capnp.h"
#include "ipc/schema/helper.capnp.h"
#include "ipc/words.h"

#include <kj/function.h>
#include <kj/vector.h>

namespace praefectus {

using wire::AppState;
using wire::Change;
using wire::Content;
using wire::Face;
using wire::Fault;
using wire::Health;
using wire::Lock;
using wire::State;
using wire::WindowKind;

// A set of accessibility states; bit n is the enumerant n of wire::State.
struct States {
  uint64_t bits = 0;
  bool has(State state) const { return (bits >> static_cast<unsigned>(state)) & 1; }
  void set(State state) { bits |= uint64_t{1} << static_cast<unsigned>(state); }
  bool operator==(const States&) const = default;
};

// The interfaces an object offers; bit n is the enumerant n of wire::Face.
struct Faces {
  uint32_t bits = 0;
  bool has(Face face) const { return (bits >> static_cast<unsigned>(face)) & 1; }
  void set(Face face) { bits |= uint32_t{1} << static_cast<unsigned>(face); }
  bool operator==(const Faces&) const = default;
};

struct Application {
  Process process;
  kj::String name;
  kj::String toolkit, version;
  AppState state = AppState::READY;
};

struct Window {
  WindowRef ref;
  kj::String title;
  Rect bounds;
  bool visible = false;
  bool active = false;
  uint32_t stacking = 0;
  bool accessible = false;
  WindowKind kind = WindowKind::NORMAL;
  uint64_t owner = 0;
  bool modal = false;
  bool managed = true;
};

using MonitorId = std::array<kj::byte, 16>;

struct Monitor {
  MonitorId id{};
  Rect bounds;
  bool primary = false;
  uint32_t scale = 1000;
};

struct Desktop {
  kj::String display;
  kj::Vector<Application> applications;
  kj::Vector<Window> windows;
  bool cut = false;
  kj::Vector<Monitor> monitors;
  Hash topology{};
  Lock lock = Lock::UNKNOWN;
};

struct Element {
  uint32_t parent = 0;
  uint16_t depth = 0;
  uint32_t position = 0;
  kj::String role;
  kj::String name;
  kj::String path;
  kj::String domId;
  States states;
  Faces faces;
  uint32_t children = 0;
  kj::Vector<kj::String> actions;
  kj::Maybe<Rect> bounds;
  kj::Maybe<kj::String> value;
  bool settable = false;
  bool secure = false;
  bool textCut = false;
  bool childrenCut = false;
  bool shows = false;
  Change change = Change::UNKNOWN;
  Fault fault = Fault::NONE;
  Hash digest{};
};

struct Cuts {
  bool elements = false, depth = false, text = false, time = false;
};

struct Page {
  kj::String url;
  Hash document{};
  uint32_t element = 0;
};

struct Frame {
  FrameId id{};
  uint64_t epoch = 0;
  WindowRef window;
  kj::String title;
  Rect bounds;
  uint32_t scale = 1000;
  Hash topology{};
  kj::Vector<Monitor> monitors;
  kj::Maybe<Page> page;
};

// What is below one element of the session's last frame.
struct Below {
  FrameId frame{};
  uint64_t epoch = 0;
  uint32_t element = 0;
  Hash digest{};
  uint32_t first = 0;  // Its children from this one on.
};

// How a window is to be read: the twin of action.capnp's Observe, with its bounds filled in.
struct ObserveAct {
  bool picture = false;
  uint32_t elements = bounds::ELEMENTS;
  uint32_t depth = bounds::DEPTH;
  uint32_t textBytes = bounds::TEXT_BYTES;
  uint32_t timeMs = bounds::WALK / kj::MILLISECONDS;
  kj::Maybe<Below> below = nullptr;
};

// What the pixels of a picture are, and where.
struct PictureInfo {
  uint32_t width = 0, height = 0;
  uint32_t scale = 1000;
  int32_t x = 0, y = 0;
  Hash pixels{};
  kj::Maybe<FrameId> frame;
};

// Pixels as they were captured: rows from the top, 4 bytes each, blue, green, red, 0. A PNG is made
// of them when somebody asks for it.
struct Picture {
  PictureInfo info;
  kj::Array<kj::byte> pixels;
};

struct Observation {
  Frame frame;
  kj::Vector<Element> elements;
  Cuts cuts;
  uint32_t textBytes =
      bounds::TEXT_BYTES;  // The bound that names and values are cut at on the wire.
  uint32_t faults = 0;
  uint32_t elapsedMs = 0;
  Content content = Content::ELEMENTS;
  uint32_t below = 0;
  kj::Maybe<FrameId> before;
  kj::Vector<uint32_t> gone;
  kj::Maybe<PictureInfo> picture;
  kj::Maybe<kj::Array<kj::byte>> pixels;  // In the helper: what `picture` describes.
  kj::Maybe<kj::Array<kj::byte>> png;     // In the host: the same, as it was fetched.
};

struct Capability {
  kj::StringPtr name;  // A literal, as desktop.capnp lists them.
  bool available = false;
  RefusalCode why{};
};

// A value, in the clear inside the helper only. The encoder turns it into a keyed hash.
struct NoValue {};
using Value = kj::OneOf<NoValue, kj::String, double>;

struct Sight {
  bool present = false;
  States states;
  Value value = NoValue();
  kj::Maybe<kj::String> role;  // With `name`: hashed together as the label.
  kj::Maybe<kj::String> name;
  bool windowPresent = false;
  kj::Vector<uint64_t> windows;  // Window ids of the process, any order.
  bool processRunning = false;
  // Pixels of the region that the action names, in any form that differs when they do.
  kj::Maybe<kj::Array<kj::byte>> region;
};

struct Watch {
  bool watching = false, pointerMoved = false, focusChanged = false, stackingChanged = false;
};

struct Facts {
  Sight before, after;
  wire::Answer answer = wire::Answer::SILENT;
  Watch watch;
  uint32_t settledMs = 0;
};

// BLAKE2b-256, keyed, or plain when the key is empty; given by whoever owns the hash (attest), so
// that ipc needs no cryptography.
using KeyedHash = kj::Function<Hash(Bytes key, Bytes message)>;

void write(const Desktop& from, wire::Desktop::Builder to);
// Cuts elements so that the encoding fits in a message, and says so.
void write(const Observation& from, wire::Observation::Builder to);
void write(const Facts& from, const Hash& nonce, KeyedHash& hash, wire::Facts::Builder to);
void write(kj::ArrayPtr<const Capability> from, capnp::List<wire::Capability>::Builder to);
void write(const PictureInfo& from, wire::PictureInfo::Builder to);
void write(kj::ArrayPtr<const Monitor> from, capnp::List<wire::Monitor>::Builder to);

// Host side. The message has passed the strict reader.
// Throws: when an id or digest has the wrong length, an element comes before its parent, something
// refers to a word or an element that is not there, or a set has a bit that means nothing.
Desktop read(wire::Desktop::Reader from);
Observation read(wire::Observation::Reader from);
PictureInfo read(wire::PictureInfo::Reader from);
kj::Vector<Monitor> read(capnp::List<wire::Monitor>::Reader from);

// The bytes that a keyed value hash covers: of a text its UTF-8, of a number 8 bytes little-endian.
kj::Array<kj::byte> valueBytes(const Value& value);
// A decimal number that is the whole text and finite, or nothing.
kj::Maybe<double> parseNumber(kj::StringPtr text);

}  // namespace praefectus
