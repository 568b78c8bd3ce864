// The reading half of action.h: every bound of action.capnp stands here, and nowhere else.
#include "ipc/action.h"
#include "ipc/canonical.h"

#include <algorithm>
#include <string_view>

namespace praefectus {
namespace {

Refusal malformed(kj::StringPtr detail) { return {RefusalCode::MALFORMED, detail}; }

// ---- Texts -----------------------------------------------------------------------------------

// Whether `text` is `before`, one or more digits, `after`, and nothing else.
bool isNumbered(std::string_view text, std::string_view before, std::string_view after) {
  if (text.size() <= before.size() + after.size()) return false;
  if (!text.starts_with(before) || !text.ends_with(after)) return false;
  text.remove_prefix(before.size());
  text.remove_suffix(after.size());
  return std::all_of(text.begin(), text.end(), [](char c) { return '0' <= c && c <= '9'; });
}

// What our own output shows in place of a withheld value. A model that copies one back into an
// action would overwrite the person's text with it.
bool isRedactionMark(kj::StringPtr text) {
  std::string_view mark(text.begin(), text.size());
  return mark == "<point>" || mark == "<value>" || isNumbered(mark, "<text:", ">") ||
         isNumbered(mark, "<", " items>") || isNumbered(mark, "<", " item>");
}

bool isTextOf(kj::StringPtr text, size_t least, size_t most) {
  return text.size() >= least && text.size() <= most && isText(text);
}

// What is called by a name: an action, a key, an application.
Result<kj::String> readName(kj::StringPtr name, size_t most) {
  if (!isTextOf(name, 1, most)) return malformed("A name is empty, too long or not text.");
  return kj::str(name);
}

// What ends up in a control or the clipboard.
Result<kj::String> readContent(kj::StringPtr text, size_t least, size_t most) {
  if (!isTextOf(text, least, most)) return malformed("A text is empty, too long or not text.");
  if (isRedactionMark(text)) {
    return Refusal{RefusalCode::WITHHELD_VALUE_REPLAYED, "The text is a redaction mark."};
  }
  return kj::str(text);
}

template <typename Request>
Result<Request> readContentOf(kj::StringPtr text, size_t least, size_t most) {
  auto content = readContent(text, least, most);
  if (!content.ok()) return content.refusal();
  return Request{kj::mv(*content)};
}

// ---- Numbers ---------------------------------------------------------------------------------

bool isWithin(uint32_t number, uint32_t least, uint32_t most) {
  return least <= number && number <= most;
}

bool isPoint(int32_t x, int32_t y) {
  auto fits = [](int32_t each) { return 0 <= each && each <= bounds::COORDINATE; };
  return fits(x) && fits(y);
}

bool isZero(const Hash& hash) {
  return std::all_of(hash.begin(), hash.end(), [](kj::byte byte) { return byte == 0; });
}

// ---- Targets ---------------------------------------------------------------------------------

// An all-zero window is how a grant says "the whole desktop", so no window may look like that.
Result<WindowRef> readWindow(wire::WindowRef::Reader from) {
  auto window = read(from);
  if (window.process.pid == 0 || window.window == 0) {
    return malformed("The target names no window.");
  }
  return window;
}

// Frame and epoch are the same fields wherever something of a frame is named.
template <typename From, typename To>
Result<Done> readFrame(From from, To& to) {
  KJ_IF_MAYBE (frame, fixed<16>(from.getFrame())) {
    to.frame = *frame;
  } else {
    return malformed("The frame id is not 16 bytes.");
  }
  to.epoch = from.getEpoch();
  if (to.epoch == 0) return malformed("The epoch is zero.");
  return Done();
}

// So are index and digest wherever it is an element.
template <typename From, typename To>
Result<Done> readNamed(From from, To& to) {
  KJ_IF_MAYBE (digest, fixed<32>(from.getDigest())) {
    to.digest = *digest;
  } else {
    return malformed("The element's digest is not 32 bytes.");
  }
  to.element = from.getElement();
  if (to.element >= bounds::ELEMENTS_LIMIT) {
    return malformed("The element's index is beyond the bound.");
  }
  return Done();
}

template <typename To, typename From>
Result<To> readInWindow(From from) {
  To to;
  auto window = readWindow(from.getWindow());
  if (!window.ok()) return window.refusal();
  to.window = *window;
  auto framed = readFrame(from, to);
  if (!framed.ok()) return framed.refusal();
  return to;
}

Result<Target> readElement(wire::ElementRef::Reader from) {
  auto element = readInWindow<ElementTarget>(from);
  if (!element.ok()) return element.refusal();
  auto named = readNamed(from, *element);
  if (!named.ok()) return named.refusal();
  return Target(*element);
}

Result<Target> readPoint(wire::PointRef::Reader from) {
  auto point = readInWindow<PointTarget>(from);
  if (!point.ok()) return point.refusal();
  point->x = from.getX();
  point->y = from.getY();
  if (!isPoint(point->x, point->y)) return malformed("The point is beyond the bound.");
  return Target(*point);
}

Result<Target> readMonitor(Bytes id) {
  KJ_IF_MAYBE (monitor, fixed<16>(id)) return Target(MonitorTarget{*monitor});
  return malformed("The monitor's id is not 16 bytes.");
}

Result<Target> readTarget(wire::Target::Reader from) {
  switch (from.which()) {
    case wire::Target::DESKTOP:
      return Target(DesktopTarget());
    case wire::Target::WINDOW: {
      auto window = readWindow(from.getWindow());
      if (!window.ok()) return window.refusal();
      return Target(*window);
    }
    case wire::Target::ELEMENT:
      return readElement(from.getElement());
    case wire::Target::POINT:
      return readPoint(from.getPoint());
    case wire::Target::MONITOR:
      return readMonitor(from.getMonitor());
  }
  return Refusal{RefusalCode::UNKNOWN_FIELD, "The target is of an unknown kind."};
}

// A set of kinds of target.
using Targets = unsigned;
constexpr Targets only(wire::Target::Which which) { return 1u << which; }
constexpr Targets DESKTOP = only(wire::Target::DESKTOP), WINDOW = only(wire::Target::WINDOW),
                  ELEMENT = only(wire::Target::ELEMENT), POINT = only(wire::Target::POINT),
                  MONITOR = only(wire::Target::MONITOR);

Targets targetsOf(wire::Action::Which kind) {
  switch (kind) {
    case wire::Action::LIST:
    case wire::Action::APPLICATION:
    case wire::Action::OPEN:
    case wire::Action::CLIPBOARD_WRITE:
      return DESKTOP;
    case wire::Action::SCREENSHOT:
      return WINDOW | MONITOR;
    case wire::Action::OBSERVE:
    case wire::Action::WINDOW:
      return WINDOW;
    case wire::Action::INVOKE:
    case wire::Action::SET_VALUE:
    case wire::Action::SELECT_TEXT:
    case wire::Action::SECONDARY:
    case wire::Action::SCROLL:
    case wire::Action::TYPE_TEXT:
    case wire::Action::PRESS:
    case wire::Action::HOTKEY:
    case wire::Action::PASTE:
      return ELEMENT;
    case wire::Action::CLICK:
      return ELEMENT | POINT;
    case wire::Action::MOVE:
    case wire::Action::DRAG:
    case wire::Action::ZOOM:
      return POINT;
  }
  return 0;
}

// What can be read back of each kind of target.
Targets targetsOf(wire::Verification::Which proof) {
  switch (proof) {
    case wire::Verification::STRONGEST:
    case wire::Verification::NONE:
      return DESKTOP | WINDOW | ELEMENT | POINT | MONITOR;
    case wire::Verification::VALUE:
    case wire::Verification::STATE:
      return ELEMENT;
    case wire::Verification::APPEARS:
    case wire::Verification::DISAPPEARS:
    case wire::Verification::REGION_CHANGED:
      return WINDOW | ELEMENT | POINT;
  }
  return 0;
}

// ---- Proofs ----------------------------------------------------------------------------------

Result<StateProof> readStates(capnp::List<wire::Expectation>::Reader from) {
  if (!isWithin(from.size(), 1, bounds::EXPECTATIONS)) {
    return malformed("The expected states are none or too many.");
  }
  StateProof proof;
  States named;
  for (auto each : from) {
    if (named.has(each.getState())) return malformed("A state is expected twice.");
    named.set(each.getState());
    proof.expected.add(Expectation{each.getState(), each.getHolds()});
  }
  return kj::mv(proof);
}

Result<RegionProof> readRegion(wire::Rect::Reader from) {
  auto region = read(from);
  if (!isPoint(region.x, region.y) || !isWithin(region.width, 1, bounds::REGION_SIDE) ||
      !isWithin(region.height, 1, bounds::REGION_SIDE)) {
    return malformed("The region is empty or beyond the bound.");
  }
  return RegionProof{region};
}

// `to` becomes what was read, whatever alternative of it that is.
template <typename To, typename T>
Result<Done> store(Result<T> from, To& to) {
  if (!from.ok()) return from.refusal();
  to = kj::mv(*from);
  return Done();
}

Result<Done> readVerification(wire::Verification::Reader from, Verification::Content& to) {
  switch (from.which()) {
    case wire::Verification::STRONGEST:
      to = StrongestProof();
      return Done();
    case wire::Verification::NONE:
      to = NoProof();
      return Done();
    case wire::Verification::VALUE:
      return store(readContentOf<ValueProof>(from.getValue(), 0, bounds::VALUE_BYTES), to);
    case wire::Verification::STATE:
      return store(readStates(from.getState()), to);
    case wire::Verification::APPEARS:
      to = AppearsProof();
      return Done();
    case wire::Verification::DISAPPEARS:
      to = DisappearsProof();
      return Done();
    case wire::Verification::REGION_CHANGED:
      return store(readRegion(from.getRegionChanged()), to);
  }
  return Refusal{RefusalCode::UNKNOWN_FIELD, "The verification is of an unknown kind."};
}

// ---- Kinds -----------------------------------------------------------------------------------

Result<InvokeRequest> readInvoke(wire::Invoke::Reader from) {
  auto name = readName(from.getName(), bounds::ACTION_NAME_BYTES);
  if (!name.ok()) return name.refusal();
  return InvokeRequest{kj::mv(*name)};
}

Result<SelectTextRequest> readSelectText(wire::SelectText::Reader from) {
  if (uint64_t{from.getStart()} + from.getLength() > bounds::SELECTION) {
    return malformed("The selection is beyond the bound.");
  }
  return SelectTextRequest{from.getStart(), from.getLength()};
}

// The pressing itself is no secondary action, it is `invoke`.
constexpr kj::StringPtr SECONDARY_NAMES[] = {
    "show_menu"_kj,
    "show_default_ui"_kj,
    "show_alternate_ui"_kj,
    "increment"_kj,
    "decrement"_kj,
    "confirm"_kj,
    "cancel"_kj,
    "pick"_kj,
};

Result<SecondaryRequest> readSecondary(wire::Secondary::Reader from) {
  for (auto name : SECONDARY_NAMES) {
    if (from.getName() == name) return SecondaryRequest{kj::str(name)};
  }
  return malformed("The secondary action is none of those there are.");
}

Result<ClickRequest> readClick(wire::Click::Reader from) {
  if (!isWithin(from.getCount(), 1, bounds::CLICKS)) return malformed("No or too many clicks.");
  return ClickRequest{from.getButton(), from.getCount()};
}

Result<ScrollRequest> readScroll(wire::Scroll::Reader from) {
  if (!isWithin(from.getAmount(), 1, bounds::SCROLL_STEPS)) {
    return malformed("No or too many steps.");
  }
  return ScrollRequest{from.getDirection(), from.getAmount()};
}

Result<DragRequest> readDrag(wire::Drag::Reader from) {
  if (!isPoint(from.getToX(), from.getToY())) return malformed("The point is beyond the bound.");
  return DragRequest{from.getButton(), from.getToX(), from.getToY()};
}

Result<TypeTextRequest> readTypeText(wire::TypeText::Reader from) {
  auto text = readContent(from.getText(), 1, bounds::VALUE_BYTES);
  if (!text.ok()) return text.refusal();
  if (from.getDelayMs() > bounds::DELAY_MS) return malformed("The delay is too long.");
  return TypeTextRequest{kj::mv(*text), from.getClear(), from.getPressReturn(), from.getDelayMs()};
}

Result<PressRequest> readPress(wire::Press::Reader from) {
  auto key = readName(from.getKey(), bounds::KEY_BYTES);
  if (!key.ok()) return key.refusal();
  if (!isWithin(from.getCount(), 1, bounds::PRESSES)) return malformed("No or too many presses.");
  if (from.getDelayMs() > bounds::DELAY_MS) return malformed("The delay is too long.");
  return PressRequest{kj::mv(*key), from.getCount(), from.getDelayMs()};
}

Result<HotkeyRequest> readHotkey(wire::Hotkey::Reader from) {
  auto keys = from.getKeys();
  if (!isWithin(keys.size(), 1, bounds::KEYS)) return malformed("No or too many keys.");
  HotkeyRequest out;
  for (auto each : keys) {
    auto key = readName(each, bounds::KEY_BYTES);
    if (!key.ok()) return key.refusal();
    out.keys.add(kj::mv(*key));
  }
  return kj::mv(out);
}

Result<ApplicationRequest> readApplication(wire::ControlApplication::Reader from) {
  auto name = readName(from.getName(), bounds::APPLICATION_NAME_BYTES);
  if (!name.ok()) return name.refusal();
  return ApplicationRequest{from.getOperation(), kj::mv(*name)};
}

Result<OpenRequest> readOpen(wire::Open::Reader from) {
  auto what = readName(from.getWhat(), bounds::VALUE_BYTES);
  if (!what.ok()) return what.refusal();
  if (!isTextOf(from.getApplication(), 0, bounds::APPLICATION_NAME_BYTES)) {
    return malformed("The application's name is too long or not text.");
  }
  return OpenRequest{kj::mv(*what), kj::str(from.getApplication()), from.getNoFocus()};
}

Result<ZoomAct> readZoom(wire::Zoom::Reader from) {
  if (!isPoint(from.getToX(), from.getToY())) return malformed("The point is beyond the bound.");
  return ZoomAct{from.getToX(), from.getToY()};
}

// A bound of a reading: zero leaves `to` what it usually is. Another spelling of the same would
// give the same request two hashes.
Result<Done> readBound(uint32_t asked, uint32_t limit, uint32_t& to) {
  if (asked == 0) return Done();
  if (asked > limit) return malformed("A bound of the reading is beyond its limit.");
  if (asked == to) return malformed("A usual bound is written as zero.");
  to = asked;
  return Done();
}

Result<Below> readBelow(wire::Below::Reader from) {
  Below to;
  auto sound = readFrame(from, to);
  if (!sound.ok()) return sound.refusal();
  sound = readNamed(from, to);
  if (!sound.ok()) return sound.refusal();
  to.first = from.getFirst();
  return to;
}

Result<Done> readAct(wire::Action::Reader from, Act& to) {
  switch (from.which()) {
    case wire::Action::LIST:
      to = ListAct();
      return Done();
    case wire::Action::OBSERVE:
      return store(readObserve(from.getObserve()), to);
    case wire::Action::SCREENSHOT:
      to = ScreenshotAct();
      return Done();
    case wire::Action::INVOKE:
      return store(readInvoke(from.getInvoke()), to);
    case wire::Action::SET_VALUE:
      return store(
          readContentOf<SetValueRequest>(from.getSetValue().getText(), 0, bounds::VALUE_BYTES), to);
    case wire::Action::SELECT_TEXT:
      return store(readSelectText(from.getSelectText()), to);
    case wire::Action::SECONDARY:
      return store(readSecondary(from.getSecondary()), to);
    case wire::Action::CLICK:
      return store(readClick(from.getClick()), to);
    case wire::Action::SCROLL:
      return store(readScroll(from.getScroll()), to);
    case wire::Action::MOVE:
      to = MoveRequest();
      return Done();
    case wire::Action::DRAG:
      return store(readDrag(from.getDrag()), to);
    case wire::Action::TYPE_TEXT:
      return store(readTypeText(from.getTypeText()), to);
    case wire::Action::PRESS:
      return store(readPress(from.getPress()), to);
    case wire::Action::HOTKEY:
      return store(readHotkey(from.getHotkey()), to);
    case wire::Action::PASTE:
      return store(readContentOf<PasteRequest>(from.getPaste().getText(), 1, bounds::VALUE_BYTES),
                   to);
    case wire::Action::APPLICATION:
      return store(readApplication(from.getApplication()), to);
    case wire::Action::WINDOW:
      to = WindowRequest{from.getWindow().getOperation()};
      return Done();
    case wire::Action::OPEN:
      return store(readOpen(from.getOpen()), to);
    case wire::Action::CLIPBOARD_WRITE:
      return store(readContentOf<ClipboardWriteRequest>(from.getClipboardWrite().getText(), 0,
                                                        bounds::CLIPBOARD_BYTES),
                   to);
    case wire::Action::ZOOM:
      return store(readZoom(from.getZoom()), to);
  }
  return Refusal{RefusalCode::UNKNOWN_FIELD, "The action is of an unknown kind."};
}

// ---- The whole -------------------------------------------------------------------------------

Result<Done> checkTogether(wire::Action::Reader from) {
  auto target = only(from.getTarget().which());
  if ((targetsOf(from.which()) & target) == 0) {
    return malformed("The target does not suit the kind of action.");
  }
  if ((targetsOf(from.getVerification().which()) & target) == 0) {
    return malformed("The verification does not suit the target.");
  }
  return Done();
}

// A read has one way to be asked for, so that nothing in it promises what nobody keeps.
Result<Done> checkRead(const Action& action) {
  bool plain = action.mode == Mode::INTERACTIVE && action.safety == Safety::REVERSIBLE &&
               action.verification.kind() == Proof::STRONGEST;
  if (action.isMutation() || plain) return Done();
  return malformed("A read has no mode, safety or verification of its own.");
}

}  // namespace

Result<ObserveAct> readObserve(wire::Observe::Reader from) {
  ObserveAct to;
  to.picture = from.getPicture();
  auto sound = readBound(from.getElements(), bounds::ELEMENTS_LIMIT, to.elements);
  if (sound.ok()) sound = readBound(from.getDepth(), bounds::DEPTH, to.depth);
  if (sound.ok()) sound = readBound(from.getTextBytes(), bounds::TEXT_LIMIT, to.textBytes);
  if (sound.ok()) sound = readBound(from.getTimeMs(), bounds::WALK / kj::MILLISECONDS, to.timeMs);
  if (!sound.ok()) return sound.refusal();
  switch (from.getPart().which()) {
    case wire::Observe::Part::WHOLE:
      return kj::mv(to);
    case wire::Observe::Part::BELOW: {
      auto below = readBelow(from.getPart().getBelow());
      if (!below.ok()) return below.refusal();
      to.below = *below;
      return kj::mv(to);
    }
  }
  return Refusal{RefusalCode::UNKNOWN_FIELD, "The part to observe is of an unknown kind."};
}

Result<Action> readAction(wire::Action::Reader from) {
  auto sound = checkStrict(from);
  if (!sound.ok()) return sound.refusal();

  Action action;
  KJ_IF_MAYBE (blind, fixed<32>(from.getBlind())) {
    action.blind = *blind;
  } else {
    return malformed("The blind is not 32 bytes.");
  }
  if (isZero(action.blind)) return malformed("The blind is all zero.");
  action.timeoutMs = from.getTimeoutMs();
  if (!isWithin(action.timeoutMs, 1, bounds::ACTION_TIMEOUT_MS)) {
    return malformed("The timeout is zero or too long.");
  }
  action.mode = from.getMode();
  action.safety = from.getSafety();

  sound = checkTogether(from);
  if (!sound.ok()) return sound.refusal();
  sound = store(readTarget(from.getTarget()), action.target);
  if (!sound.ok()) return sound.refusal();
  sound = readVerification(from.getVerification(), action.verification.content);
  if (!sound.ok()) return sound.refusal();
  sound = readAct(from, action.act);
  if (!sound.ok()) return sound.refusal();
  sound = checkRead(action);
  if (!sound.ok()) return sound.refusal();
  return kj::mv(action);
}

Result<Action> decodeAction(Bytes canonical) {
  auto parsed = Canonical<wire::Action>::parse(canonical, bounds::ACTION_BYTES);
  if (!parsed.ok()) return parsed.refusal();
  return readAction(parsed->get());
}

}  // namespace praefectus
