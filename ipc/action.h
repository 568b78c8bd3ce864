// One action as a value: the twin of schema/action.capnp, with the bounds that hold for it.
#pragma once

#include "ipc/desktop.h"
#include "ipc/schema/action.capnp.h"

namespace praefectus {

using wire::Button;
using wire::Direction;

// Where an element was seen. It is the live object of that moment, or it is refused.
struct ElementTarget {
  WindowRef window;
  FrameId frame{};
  uint64_t epoch = 0;
  uint32_t element = 0;
  Hash digest{};
};

// A pixel of one frame's client area.
struct PointTarget {
  WindowRef window;
  FrameId frame{};
  uint64_t epoch = 0;
  int32_t x = 0, y = 0;
};

// A monitor by the id that a helper drew for it.
struct MonitorTarget {
  MonitorId id{};
};

struct DesktopTarget {};
using Target = kj::OneOf<DesktopTarget, WindowRef, ElementTarget, PointTarget, MonitorTarget>;

// ---- What is to be done. Bounds stand in action.capnp.

struct ListAct {};
// ObserveAct stands in desktop.h, beside what it asks for.
struct ScreenshotAct {};

struct InvokeRequest {
  kj::String name;
};
struct SetValueRequest {
  kj::String text;
};
struct SelectTextRequest {
  uint32_t start = 0, length = 0;  // Characters.
};
struct SecondaryRequest {
  kj::String name;
};
struct ClickRequest {
  Button button{};
  uint32_t count = 1;
};
struct ScrollRequest {
  Direction direction{};
  uint32_t amount = 1;
};
struct MoveRequest {};
struct DragRequest {
  Button button{};
  int32_t toX = 0, toY = 0;  // In the target's frame.
};
struct TypeTextRequest {
  kj::String text;
  bool clear = false, pressReturn = false;
  uint32_t delayMs = 0;
};
struct PressRequest {
  kj::String key;
  uint32_t count = 1, delayMs = 0;
};
struct HotkeyRequest {
  kj::Vector<kj::String> keys;
};
struct PasteRequest {
  kj::String text;
};
struct ApplicationRequest {
  wire::ControlApplication::Operation operation{};
  kj::String name;
};
struct WindowRequest {
  wire::ControlWindow::Operation operation{};
};
struct OpenRequest {
  kj::String what, application;
  bool noFocus = false;
};
struct ClipboardWriteRequest {
  kj::String text;
};
// From the target's point to the other corner, both inside the frame's client area.
struct ZoomAct {
  int32_t toX = 0, toY = 0;
};
// What it shows: both corners belong to it.
Rect regionOf(const PointTarget& from, const ZoomAct& to);

using Act =
    kj::OneOf<ListAct, ObserveAct, ScreenshotAct, InvokeRequest, SetValueRequest, SelectTextRequest,
              SecondaryRequest, ClickRequest, ScrollRequest, MoveRequest, DragRequest,
              TypeTextRequest, PressRequest, HotkeyRequest, PasteRequest, ApplicationRequest,
              WindowRequest, OpenRequest, ClipboardWriteRequest, ZoomAct>;

// ---- What is to be proven of it.

struct Expectation {
  State state{};
  bool holds = true;
};
struct StrongestProof {};
struct NoProof {};
struct ValueProof {
  kj::String text;
};
struct StateProof {
  kj::Vector<Expectation> expected;
};
struct AppearsProof {};
struct DisappearsProof {};
struct RegionProof {
  Rect region;
};

class Verification {
 public:
  using Content = kj::OneOf<StrongestProof, NoProof, ValueProof, StateProof, AppearsProof,
                            DisappearsProof, RegionProof>;
  Content content = StrongestProof();

  Verification() = default;
  Verification(Verification&&) = default;
  Verification& operator=(Verification&&) = default;
  Verification(const Verification& other) : Verification(other.clone()) {}
  Verification& operator=(const Verification& other) { return *this = other.clone(); }

  Proof kind() const;

  static Verification strongest() { return {}; }
  static Verification none();
  Verification clone() const;
};

struct Action {
  Hash blind{};
  uint32_t timeoutMs = 0;
  Mode mode = Mode::INTERACTIVE;
  Safety safety = Safety::REVERSIBLE;
  Verification verification;
  Target target = DesktopTarget();
  Act act = ListAct();

  bool isMutation() const;
  ActionClass actionClass() const;
  kj::StringPtr kind() const;  // The schema's name in snake_case: "list", "set_value".

  // All zero for the whole desktop, and for a monitor, which shows windows of anybody.
  WindowRef window() const;
  // The frame that an element, a point, or the element to read below belongs to; else nothing.
  struct InFrame {
    FrameId id;
    uint64_t epoch;
  };
  kj::Maybe<InFrame> frame() const;
};

// Every kind of action, in the schema's order.
kj::ArrayPtr<const kj::StringPtr> actionKinds();

// The canonical bytes; what the host signs the hash of and what travels.
kj::Array<kj::byte> encode(const Action& action);

// Refuses: MALFORMED and UNKNOWN_FIELD as Canonical does; MALFORMED when a bound of action.capnp is
// broken, or target or verification do not suit the kind; WITHHELD_VALUE_REPLAYED when a text is
// one of our redaction marks (<text:N>, <point>, <value>, <N items>).
Result<Action> decodeAction(Bytes canonical);

// The same checks on a message received from the supervisor (helper side).
Result<Action> readAction(wire::Action::Reader reader);
void write(const Action& action, wire::Action::Builder to);

// Of a message that has passed the strict reader. Refuses: MALFORMED when a bound is broken.
Result<ObserveAct> readObserve(wire::Observe::Reader from);
void write(const ObserveAct& from, wire::Observe::Builder to);

}  // namespace praefectus
