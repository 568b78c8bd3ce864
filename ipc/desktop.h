// What a platform's Driver returns: plain values of schema/desktop.capnp and schema/helper.capnp.
//
// A driver reports what it saw. Bounds and redaction are applied once, by the encoder in
// desktop.cc: text is cut at bounds::TEXT_BYTES on a character boundary, a secure element loses its
// value whatever the driver put there, and observations that exceed a message are cut, each with
// its flag.
#pragma once

#include "ipc/schema/desktop.capnp.h"
#include "ipc/schema/helper.capnp.h"
#include "ipc/words.h"

#include <kj/function.h>
#include <kj/vector.h>

namespace praefectus {

using wire::AppState;
using wire::Fault;
using wire::Health;
using wire::State;

// A set of accessibility states; bit n is the enumerant n of wire::State.
struct States {
  uint64_t bits = 0;
  bool has(State state) const { return (bits >> static_cast<unsigned>(state)) & 1; }
  void set(State state) { bits |= uint64_t{1} << static_cast<unsigned>(state); }
  bool operator==(const States&) const = default;
};

struct Application {
  Process process;
  kj::String name;
  kj::String toolkit;
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
};

struct Desktop {
  kj::String display;
  kj::Vector<Application> applications;
  kj::Vector<Window> windows;
  bool cut = false;
};

struct Element {
  uint32_t parent = 0;
  uint16_t depth = 0;
  uint32_t position = 0;
  kj::String role;
  kj::String name;
  States states;
  kj::Vector<kj::String> actions;
  kj::Maybe<Rect> bounds;
  kj::Maybe<kj::String> value;
  bool settable = false;
  bool secure = false;
  bool textCut = false;
  Fault fault = Fault::NONE;
  Hash digest{};
};

struct Cuts {
  bool elements = false, depth = false, text = false, time = false;
};

struct Frame {
  FrameId id{};
  uint64_t epoch = 0;
  WindowRef window;
  kj::String title;
  Rect bounds;
  uint32_t scale = 1000;
  Hash topology{};
};

struct Observation {
  Frame frame;
  kj::Vector<Element> elements;
  Cuts cuts;
  uint32_t faults = 0;
  uint32_t elapsedMs = 0;
  kj::Maybe<kj::Array<kj::byte>> picture;  // PNG; `width` and `height` below belong to it.
  uint32_t pictureWidth = 0, pictureHeight = 0;
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
// Cuts elements so that the encoding fits in half a message, and says so.
void write(const Observation& from, wire::Observation::Builder to);
void write(const Facts& from, const Hash& nonce, KeyedHash& hash, wire::Facts::Builder to);
void write(kj::ArrayPtr<const Capability> from, capnp::List<wire::Capability>::Builder to);

// Host side. The message has passed the strict reader.
// Throws: when an id or digest has the wrong length, or an element comes before its parent.
Desktop read(wire::Desktop::Reader from);
Observation read(wire::Observation::Reader from);

// The bytes that a keyed value hash covers: of a text its UTF-8, of a number 8 bytes little-endian.
kj::Array<kj::byte> valueBytes(const Value& value);
// A decimal number that is the whole text and finite, or nothing.
kj::Maybe<double> parseNumber(kj::StringPtr text);

}  // namespace praefectus
