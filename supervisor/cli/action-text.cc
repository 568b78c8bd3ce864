#include "supervisor/cli/action-text.h"

#include <capnp/schema.h>

namespace praefectus::cli {
namespace {

// ---- Words for the schema's enumerants.

kj::StringPtr stateName(State state) {
  static const auto enumerants = capnp::Schema::from<State>().getEnumerants();
  return enumerants[static_cast<uint>(state)].getProto().getName();
}

kj::StringPtr nameOf(Button button) {
  switch (button) {
    case Button::LEFT:
      return "left"_kj;
    case Button::RIGHT:
      return "right"_kj;
    case Button::MIDDLE:
      return "middle"_kj;
  }
  return "unknown"_kj;
}

kj::StringPtr nameOf(Direction direction) {
  switch (direction) {
    case Direction::UP:
      return "up"_kj;
    case Direction::DOWN:
      return "down"_kj;
    case Direction::LEFT:
      return "left"_kj;
    case Direction::RIGHT:
      return "right"_kj;
  }
  return "unknown"_kj;
}

kj::StringPtr nameOf(wire::ControlApplication::Operation operation) {
  switch (operation) {
    case wire::ControlApplication::Operation::LAUNCH:
      return "launch"_kj;
    case wire::ControlApplication::Operation::SWITCH:
      return "switch"_kj;
    case wire::ControlApplication::Operation::QUIT:
      return "quit"_kj;
  }
  return "unknown"_kj;
}

kj::StringPtr nameOf(wire::ControlWindow::Operation operation) {
  switch (operation) {
    case wire::ControlWindow::Operation::FOCUS:
      return "focus"_kj;
    case wire::ControlWindow::Operation::CLOSE:
      return "close"_kj;
    case wire::ControlWindow::Operation::MINIMIZE:
      return "minimize"_kj;
  }
  return "unknown"_kj;
}

kj::String times(uint32_t count) { return count == 1 ? kj::str("once") : kj::str(count, " times"); }

kj::String every(uint32_t delayMs) {
  return delayMs == 0 ? kj::str() : kj::str(", ", durationText(delayMs), " apart");
}

kj::String lengthText(kj::StringPtr text) {
  return kj::str("(", counted(text.size(), "byte"), " of text)");
}

void describeText(kj::StringPtr text, Page& page) {
  page.quote("text"_kj, text);
  page.line(""_kj, lengthText(text));
}

kj::String frameText(const FrameId& frame, uint64_t epoch) {
  return kj::str("frame ", hex(bytesOf(frame)), ", number ", epoch, " of its session");
}

// ---- What is to be done: a sentence, and what it leaves out.

void describeAct(const ListAct&, Page& page) {
  page.line("does", "lists the applications and windows of the desktop; changes nothing");
}
void describeAct(const ObserveAct& act, Page& page) {
  page.line("does", kj::str("reads ", act.below == nullptr ? "the window" : "a part of the window",
                            " as a tree of elements",
                            act.picture ? " and takes a picture of it" : "", "; changes nothing"));
  KJ_IF_MAYBE (below, act.below) {
    page.line("below", kj::str("element ", below->element, ", from its child ", below->first,
                               " on (counted from 0)"));
    page.line("as seen in", frameText(below->frame, below->epoch));
  }
  page.line("at most",
            kj::str(counted(act.elements, "element"), ", ", counted(act.depth, "level"), ", ",
                    counted(act.textBytes, "byte"), " of each text, ", act.timeMs, " ms"));
}
void describeAct(const ScreenshotAct&, Page& page) {
  page.line("does", "takes a picture; changes nothing");
}
void describeAct(const InvokeRequest& act, Page& page) {
  page.line("does", "asks the element to do the one of its own actions that has this name");
  page.quote("name", act.name);
}
void describeAct(const SetValueRequest& act, Page& page) {
  page.line("does", "replaces the whole value of the element by this text");
  describeText(act.text, page);
}
void describeAct(const SelectTextRequest& act, Page& page) {
  page.line("does", act.length == 0
                        ? kj::str("places the caret after character ", act.start)
                        : kj::str("selects ", counted(act.length, "character"), ", from character ",
                                  act.start, " on (counted from 0)"));
}
void describeAct(const SecondaryRequest& act, Page& page) {
  page.line("does", "asks the element for the secondary action of this name");
  page.quote("name", act.name);
}
void describeAct(const ClickRequest& act, Page& page) {
  page.line("does",
            kj::str("clicks ", times(act.count), " with the ", nameOf(act.button), " button"));
}
void describeAct(const ScrollRequest& act, Page& page) {
  page.line("does",
            kj::str("scrolls ", nameOf(act.direction), " by ", counted(act.amount, "step")));
}
void describeAct(const MoveRequest&, Page& page) {
  page.line("does", "moves the pointer to the point");
}
void describeAct(const DragRequest& act, Page& page) {
  page.line("does", kj::str("presses the ", nameOf(act.button), " button at the point, moves to x ",
                            act.toX, ", y ", act.toY, " of the same frame, and lets go"));
}
void describeAct(const TypeTextRequest& act, Page& page) {
  page.line("does", kj::str(act.clear ? "removes what is there, then types" : "types",
                            " this text, key by key", every(act.delayMs),
                            act.pressReturn ? ", and then presses Return" : ""));
  describeText(act.text, page);
}
void describeAct(const PressRequest& act, Page& page) {
  page.line("does", kj::str("presses this key ", times(act.count),
                            act.count > 1 ? every(act.delayMs) : kj::str()));
  page.quote("key", act.key);
}
void describeAct(const HotkeyRequest& act, Page& page) {
  page.line("does", "presses these keys together");
  kj::StringPtr label = "keys"_kj;
  for (auto& key : act.keys) {
    page.quote(label, key);
    label = ""_kj;
  }
}
void describeAct(const PasteRequest& act, Page& page) {
  page.line("does", "pastes this text");
  describeText(act.text, page);
}
void describeAct(const ApplicationRequest& act, Page& page) {
  switch (act.operation) {
    case wire::ControlApplication::Operation::LAUNCH:
      page.line("does", "starts this application");
      break;
    case wire::ControlApplication::Operation::SWITCH:
      page.line("does", "switches to this application");
      break;
    case wire::ControlApplication::Operation::QUIT:
      page.line("does", "asks this application to quit");
      break;
  }
  page.quote("name", act.name);
}
void describeAct(const WindowRequest& act, Page& page) {
  switch (act.operation) {
    case wire::ControlWindow::Operation::FOCUS:
      page.line("does", "brings the window to the front and gives it the focus");
      break;
    case wire::ControlWindow::Operation::CLOSE:
      page.line("does", "asks the window to close");
      break;
    case wire::ControlWindow::Operation::MINIMIZE:
      page.line("does", "minimizes the window");
      break;
  }
}
void describeAct(const OpenRequest& act, Page& page) {
  page.line("does", kj::str("opens this file or address",
                            act.application.size() == 0 ? " with your own choice of application"
                                                        : " with the named application",
                            act.noFocus ? ", without giving it the focus" : ""));
  page.quote("what", act.what);
  if (act.application.size() > 0) page.quote("with", act.application);
}
void describeAct(const ClipboardWriteRequest& act, Page& page) {
  page.line("does", "puts this text on the clipboard, in place of what is there");
  describeText(act.text, page);
}
void describeAct(const ZoomAct& act, Page& page) {
  page.line("does", kj::str("takes a picture from the point to x ", act.toX, ", y ", act.toY,
                            " of the same frame; changes nothing"));
}

Json parametersOf(const ListAct&) { return Json::object(); }
Json parametersOf(const ObserveAct& act) {
  Json out = {{"picture", act.picture},
              {"elements", act.elements},
              {"depth", act.depth},
              {"text_bytes", act.textBytes},
              {"time_ms", act.timeMs}};
  KJ_IF_MAYBE (below, act.below) {
    out["below"] = {{"frame", hex(bytesOf(below->frame)).cStr()},
                    {"epoch", below->epoch},
                    {"element", below->element},
                    {"digest", hex(bytesOf(below->digest)).cStr()},
                    {"first", below->first}};
  }
  return out;
}
Json parametersOf(const ScreenshotAct&) { return Json::object(); }
Json parametersOf(const InvokeRequest& act) { return {{"name", json(act.name)}}; }
Json parametersOf(const SetValueRequest& act) { return {{"text", json(act.text)}}; }
Json parametersOf(const SelectTextRequest& act) {
  return {{"start", act.start}, {"length", act.length}};
}
Json parametersOf(const SecondaryRequest& act) { return {{"name", json(act.name)}}; }
Json parametersOf(const ClickRequest& act) {
  return {{"button", nameOf(act.button).cStr()}, {"count", act.count}};
}
Json parametersOf(const ScrollRequest& act) {
  return {{"direction", nameOf(act.direction).cStr()}, {"amount", act.amount}};
}
Json parametersOf(const MoveRequest&) { return Json::object(); }
Json parametersOf(const DragRequest& act) {
  return {{"button", nameOf(act.button).cStr()}, {"to_x", act.toX}, {"to_y", act.toY}};
}
Json parametersOf(const TypeTextRequest& act) {
  return {{"text", json(act.text)},
          {"clear", act.clear},
          {"press_return", act.pressReturn},
          {"delay_ms", act.delayMs}};
}
Json parametersOf(const PressRequest& act) {
  return {{"key", json(act.key)}, {"count", act.count}, {"delay_ms", act.delayMs}};
}
Json parametersOf(const HotkeyRequest& act) {
  Json keys = Json::array();
  for (auto& key : act.keys) keys.push_back(json(key));
  return {{"keys", keys}};
}
Json parametersOf(const PasteRequest& act) { return {{"text", json(act.text)}}; }
Json parametersOf(const ApplicationRequest& act) {
  return {{"operation", nameOf(act.operation).cStr()}, {"name", json(act.name)}};
}
Json parametersOf(const WindowRequest& act) {
  return {{"operation", nameOf(act.operation).cStr()}};
}
Json parametersOf(const OpenRequest& act) {
  return {
      {"what", json(act.what)}, {"application", json(act.application)}, {"no_focus", act.noFocus}};
}
Json parametersOf(const ClipboardWriteRequest& act) { return {{"text", json(act.text)}}; }
Json parametersOf(const ZoomAct& act) { return {{"to_x", act.toX}, {"to_y", act.toY}}; }

// Calls `each` with the alternative that is there.
template <typename OneOf, typename Each>
struct Visit;
template <typename... Types, typename Each>
struct Visit<kj::OneOf<Types...>, Each> {
  static void on(const kj::OneOf<Types...>& value, Each& each) {
    (visitIf<Types>(value, each), ...);
  }

 private:
  template <typename Type>
  static void visitIf(const kj::OneOf<Types...>& value, Each& each) {
    if (value.template is<Type>()) each(value.template get<Type>());
  }
};
template <typename OneOf, typename Each>
void visit(const OneOf& value, Each&& each) {
  Visit<OneOf, std::remove_reference_t<Each>>::on(value, each);
}

// ---- To what, and with what proof.

void describeTarget(const DesktopTarget&, Page& page) { page.line("to", "the whole desktop"); }
void describeTarget(const WindowRef& window, Page& page) { page.line("to", windowText(window)); }
void describeTarget(const ElementTarget& target, Page& page) {
  page.line("to", kj::str("element ", target.element, " of ", windowText(target.window)));
  page.line("as seen in", frameText(target.frame, target.epoch));
}
void describeTarget(const PointTarget& target, Page& page) {
  page.line("to",
            kj::str("the point x ", target.x, ", y ", target.y, " of ", windowText(target.window)));
  page.line("as seen in", frameText(target.frame, target.epoch));
}
void describeTarget(const MonitorTarget& target, Page& page) {
  page.line("to", kj::str("monitor ", hex(bytesOf(target.id)), ", whatever it shows"));
}

Json targetJson(const DesktopTarget&) { return {{"kind", "desktop"}}; }
Json targetJson(const WindowRef& window) {
  return {{"kind", "window"}, {"window", windowRefJson(window)}};
}
Json targetJson(const ElementTarget& target) {
  return {{"kind", "element"},
          {"window", windowRefJson(target.window)},
          {"frame", hex(bytesOf(target.frame)).cStr()},
          {"epoch", target.epoch},
          {"element", target.element},
          {"digest", hex(bytesOf(target.digest)).cStr()}};
}
Json targetJson(const PointTarget& target) {
  return {{"kind", "point"},
          {"window", windowRefJson(target.window)},
          {"frame", hex(bytesOf(target.frame)).cStr()},
          {"epoch", target.epoch},
          {"x", target.x},
          {"y", target.y}};
}
Json targetJson(const MonitorTarget& target) {
  return {{"kind", "monitor"}, {"monitor", hex(bytesOf(target.id)).cStr()}};
}

void describeProof(const StrongestProof&, Page& page) {
  page.line("proof", "the strongest that this kind of action has");
}
void describeProof(const NoProof&, Page& page) {
  page.line("proof", "none: that it was sent is enough");
}
void describeProof(const ValueProof& proof, Page& page) {
  page.line("proof", "the value, read back, is this text");
  page.quote("", proof.text);
}
void describeProof(const StateProof& proof, Page& page) {
  auto states = KJ_MAP(one, proof.expected) {
    return kj::str(one.holds ? "" : "not ", stateName(one.state));
  };
  page.line("proof", kj::str("read back, the element is ", kj::strArray(states, ", ")));
}
void describeProof(const AppearsProof&, Page& page) {
  page.line("proof", "the application has one window more");
}
void describeProof(const DisappearsProof&, Page& page) {
  page.line("proof", "the target, or its window, is gone");
}
void describeProof(const RegionProof& proof, Page& page) {
  page.line("proof",
            kj::str("the picture changes within ", proof.region.width, " x ", proof.region.height,
                    " pixels at x ", proof.region.x, ", y ", proof.region.y, " of the window"));
}

Json proofJson(const Verification& verification) {
  Json out = {{"kind", praefectus::nameOf(verification.kind()).cStr()}};
  auto& content = verification.content;
  if (content.is<ValueProof>()) out["text"] = json(content.get<ValueProof>().text);
  if (content.is<StateProof>()) {
    Json states = Json::object();
    for (auto& one : content.get<StateProof>().expected) {
      states[stateName(one.state).cStr()] = one.holds;
    }
    out["states"] = states;
  }
  if (content.is<RegionProof>()) {
    auto& region = content.get<RegionProof>().region;
    out["region"] = {
        {"x", region.x}, {"y", region.y}, {"width", region.width}, {"height", region.height}};
  }
  return out;
}

}  // namespace

kj::String windowText(const WindowRef& window) {
  if (window == WindowRef()) return kj::str("the whole desktop");
  auto which =
      window.window == 0 ? kj::str("any window") : kj::str("window 0x", kj::hex(window.window));
  return kj::str(which, " of process ", window.process.pid, " (started at tick ",
                 window.process.start, ")");
}

Json windowRefJson(const WindowRef& window) {
  if (window == WindowRef()) return nullptr;
  return {{"id", kj::str("0x", kj::hex(window.window)).cStr()},
          {"pid", window.process.pid},
          {"process_start", window.process.start}};
}

void describe(const Action& action, Page& page) {
  page.line("action", action.kind());
  visit(action.act, [&](auto& act) { describeAct(act, page); });
  visit(action.target, [&](auto& target) { describeTarget(target, page); });
  visit(action.verification.content, [&](auto& proof) { describeProof(proof, page); });
  page.line("within", durationText(action.timeoutMs));
  page.line("manner", action.mode == Mode::BACKGROUND_ONLY
                          ? "in the background: pointer, focus and window order stay as they are"
                          : "you may notice it, as far as the rights allow");
}

Json actionJson(const Action& action) {
  Json parameters, target;
  visit(action.act, [&](auto& act) { parameters = parametersOf(act); });
  visit(action.target, [&](auto& to) { target = targetJson(to); });
  return {{"kind", action.kind().cStr()},
          {"action_class", praefectus::nameOf(action.actionClass()).cStr()},
          {"parameters", parameters},
          {"target", target},
          {"proof", proofJson(action.verification)},
          {"risk", praefectus::nameOf(action.safety).cStr()},
          {"mode", praefectus::nameOf(action.mode).cStr()},
          {"timeout_ms", action.timeoutMs}};
}

}  // namespace praefectus::cli
