// The writing half of action.h.
#include "ipc/action.h"
#include "ipc/canonical.h"

namespace praefectus {
namespace {

void write(const ElementTarget& from, wire::ElementRef::Builder to) {
  praefectus::write(from.window, to.initWindow());
  to.setFrame(bytesOf(from.frame));
  to.setEpoch(from.epoch);
  to.setElement(from.element);
  to.setDigest(bytesOf(from.digest));
}

void write(const PointTarget& from, wire::PointRef::Builder to) {
  praefectus::write(from.window, to.initWindow());
  to.setFrame(bytesOf(from.frame));
  to.setEpoch(from.epoch);
  to.setX(from.x);
  to.setY(from.y);
}

void write(const Target& from, wire::Target::Builder to) {
  KJ_SWITCH_ONEOF(from) {
    KJ_CASE_ONEOF(desktop, DesktopTarget) { to.setDesktop(); }
    KJ_CASE_ONEOF(window, WindowRef) { praefectus::write(window, to.initWindow()); }
    KJ_CASE_ONEOF(element, ElementTarget) { write(element, to.initElement()); }
    KJ_CASE_ONEOF(point, PointTarget) { write(point, to.initPoint()); }
    KJ_CASE_ONEOF(monitor, MonitorTarget) { to.setMonitor(bytesOf(monitor.id)); }
  }
}

void write(const StateProof& from, wire::Verification::Builder to) {
  auto list = to.initState(static_cast<capnp::uint>(from.expected.size()));
  for (capnp::uint i = 0; i < list.size(); ++i) {
    list[i].setState(from.expected[i].state);
    list[i].setHolds(from.expected[i].holds);
  }
}

void write(const Verification& from, wire::Verification::Builder to) {
  KJ_SWITCH_ONEOF(from.content) {
    KJ_CASE_ONEOF(proof, StrongestProof) { to.setStrongest(); }
    KJ_CASE_ONEOF(proof, NoProof) { to.setNone(); }
    KJ_CASE_ONEOF(proof, ValueProof) { to.setValue(proof.text); }
    KJ_CASE_ONEOF(proof, StateProof) { write(proof, to); }
    KJ_CASE_ONEOF(proof, AppearsProof) { to.setAppears(); }
    KJ_CASE_ONEOF(proof, DisappearsProof) { to.setDisappears(); }
    KJ_CASE_ONEOF(proof, RegionProof) { praefectus::write(proof.region, to.initRegionChanged()); }
  }
}

void write(const SelectTextRequest& from, wire::SelectText::Builder to) {
  to.setStart(from.start);
  to.setLength(from.length);
}

void write(const ClickRequest& from, wire::Click::Builder to) {
  to.setButton(from.button);
  to.setCount(from.count);
}

void write(const ScrollRequest& from, wire::Scroll::Builder to) {
  to.setDirection(from.direction);
  to.setAmount(from.amount);
}

void write(const DragRequest& from, wire::Drag::Builder to) {
  to.setButton(from.button);
  to.setToX(from.toX);
  to.setToY(from.toY);
}

void write(const TypeTextRequest& from, wire::TypeText::Builder to) {
  to.setText(from.text);
  to.setClear(from.clear);
  to.setPressReturn(from.pressReturn);
  to.setDelayMs(from.delayMs);
}

void write(const PressRequest& from, wire::Press::Builder to) {
  to.setKey(from.key);
  to.setCount(from.count);
  to.setDelayMs(from.delayMs);
}

void write(const HotkeyRequest& from, wire::Hotkey::Builder to) {
  auto keys = to.initKeys(static_cast<capnp::uint>(from.keys.size()));
  for (capnp::uint i = 0; i < keys.size(); ++i) keys.set(i, from.keys[i]);
}

void write(const ApplicationRequest& from, wire::ControlApplication::Builder to) {
  to.setOperation(from.operation);
  to.setName(from.name);
}

void write(const OpenRequest& from, wire::Open::Builder to) {
  to.setWhat(from.what);
  to.setApplication(from.application);
  to.setNoFocus(from.noFocus);
}

void write(const ZoomAct& from, wire::Zoom::Builder to) {
  to.setToX(from.toX);
  to.setToY(from.toY);
}

void write(const Below& from, wire::Below::Builder to) {
  to.setFrame(bytesOf(from.frame));
  to.setEpoch(from.epoch);
  to.setElement(from.element);
  to.setDigest(bytesOf(from.digest));
  to.setFirst(from.first);
}

// The usual bound has one spelling, so that a request has one hash.
uint32_t asked(uint32_t bound, uint32_t usual) { return bound == usual ? 0 : bound; }

void write(const Act& from, wire::Action::Builder to) {
  KJ_SWITCH_ONEOF(from) {
    KJ_CASE_ONEOF(act, ListAct) { to.setList(); }
    KJ_CASE_ONEOF(act, ObserveAct) { praefectus::write(act, to.initObserve()); }
    KJ_CASE_ONEOF(act, ScreenshotAct) { to.setScreenshot(); }
    KJ_CASE_ONEOF(act, InvokeRequest) { to.initInvoke().setName(act.name); }
    KJ_CASE_ONEOF(act, SetValueRequest) { to.initSetValue().setText(act.text); }
    KJ_CASE_ONEOF(act, SelectTextRequest) { write(act, to.initSelectText()); }
    KJ_CASE_ONEOF(act, SecondaryRequest) { to.initSecondary().setName(act.name); }
    KJ_CASE_ONEOF(act, ClickRequest) { write(act, to.initClick()); }
    KJ_CASE_ONEOF(act, ScrollRequest) { write(act, to.initScroll()); }
    KJ_CASE_ONEOF(act, MoveRequest) { to.setMove(); }
    KJ_CASE_ONEOF(act, DragRequest) { write(act, to.initDrag()); }
    KJ_CASE_ONEOF(act, TypeTextRequest) { write(act, to.initTypeText()); }
    KJ_CASE_ONEOF(act, PressRequest) { write(act, to.initPress()); }
    KJ_CASE_ONEOF(act, HotkeyRequest) { write(act, to.initHotkey()); }
    KJ_CASE_ONEOF(act, PasteRequest) { to.initPaste().setText(act.text); }
    KJ_CASE_ONEOF(act, ApplicationRequest) { write(act, to.initApplication()); }
    KJ_CASE_ONEOF(act, WindowRequest) { to.initWindow().setOperation(act.operation); }
    KJ_CASE_ONEOF(act, OpenRequest) { write(act, to.initOpen()); }
    KJ_CASE_ONEOF(act, ClipboardWriteRequest) { to.initClipboardWrite().setText(act.text); }
    KJ_CASE_ONEOF(act, ZoomAct) { write(act, to.initZoom()); }
  }
}

}  // namespace

void write(const ObserveAct& from, wire::Observe::Builder to) {
  const ObserveAct usual;
  to.setPicture(from.picture);
  to.setElements(asked(from.elements, usual.elements));
  to.setDepth(asked(from.depth, usual.depth));
  to.setTextBytes(asked(from.textBytes, usual.textBytes));
  to.setTimeMs(asked(from.timeMs, usual.timeMs));
  to.initPart();
  KJ_IF_MAYBE (below, from.below) write(*below, to.getPart().initBelow());
}

void write(const Action& action, wire::Action::Builder to) {
  to.setBlind(bytesOf(action.blind));
  to.setTimeoutMs(action.timeoutMs);
  to.setMode(action.mode);
  to.setSafety(action.safety);
  write(action.verification, to.initVerification());
  write(action.target, to.initTarget());
  write(action.act, to);
}

kj::Array<kj::byte> encode(const Action& action) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Action>();
  write(action, root);
  return canonicalBytes(root.asReader());
}

}  // namespace praefectus
