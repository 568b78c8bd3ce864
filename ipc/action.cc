#include "ipc/action.h"

#include "ipc/canonical.h"

#include <algorithm>
#include <string_view>

namespace praefectus {
namespace {

Refusal malformed(kj::StringPtr detail) { return {RefusalCode::MALFORMED, detail}; }

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

bool isZero(const Hash& hash) {
  return std::all_of(hash.begin(), hash.end(), [](kj::byte byte) { return byte == 0; });
}

// An all-zero window is how a grant says "the whole desktop", so no window may look like that.
bool namesWindow(const WindowRef& window) { return window.process.pid != 0 && window.window != 0; }

Result<Done> readTarget(wire::Target::Reader from, Action& to) {
  switch (from.which()) {
    case wire::Target::DESKTOP:
      return Done();
    case wire::Target::WINDOW:
      to.window = read(from.getWindow());
      break;
    case wire::Target::ELEMENT: {
      auto element = from.getElement();
      to.window = read(element.getWindow());
      auto frame = fixed<16>(element.getFrame());
      auto digest = fixed<32>(element.getDigest());
      if (frame == nullptr) return malformed("The frame id is not 16 bytes.");
      if (digest == nullptr) return malformed("The element's digest is not 32 bytes.");
      if (element.getEpoch() == 0) return malformed("The epoch is zero.");
      if (element.getElement() >= bounds::ELEMENTS) {
        return malformed("The element's index is beyond the bound.");
      }
      to.element = {to.window, KJ_ASSERT_NONNULL(frame), element.getEpoch(), element.getElement(),
                    KJ_ASSERT_NONNULL(digest)};
      break;
    }
  }
  if (!namesWindow(to.window)) return malformed("The target names no window.");
  return Done();
}

Result<InvokeRequest> readInvoke(wire::Invoke::Reader from) {
  auto name = from.getName();
  if (name.size() < 1 || name.size() > bounds::ACTION_NAME_BYTES || !isText(name)) {
    return malformed("The action's name is empty, too long or not text.");
  }
  return InvokeRequest{kj::str(name)};
}

Result<SetValueRequest> readSetValue(wire::SetValue::Reader from) {
  auto text = from.getText();
  if (text.size() > bounds::VALUE_BYTES || !isText(text)) {
    return malformed("The value is too long or not text.");
  }
  if (isRedactionMark(text)) {
    return Refusal{RefusalCode::WITHHELD_VALUE_REPLAYED, "The text is a redaction mark."};
  }
  return SetValueRequest{kj::str(text)};
}

Result<Done> readAct(wire::Action::Reader from, Action& to) {
  switch (from.which()) {
    case wire::Action::LIST:
      to.act = ListAct();
      return Done();
    case wire::Action::OBSERVE:
      to.act = ObserveAct{from.getObserve().getPicture()};
      return Done();
    case wire::Action::INVOKE: {
      auto invoke = readInvoke(from.getInvoke());
      if (!invoke.ok()) return invoke.refusal();
      to.act = kj::mv(*invoke);
      return Done();
    }
    case wire::Action::SET_VALUE: {
      auto setValue = readSetValue(from.getSetValue());
      if (!setValue.ok()) return setValue.refusal();
      to.act = kj::mv(*setValue);
      return Done();
    }
  }
  return Refusal{RefusalCode::UNKNOWN_FIELD, "The action is of an unknown kind."};
}

// What each kind of action acts on, in the order of the union in action.capnp.
wire::Target::Which targetOf(wire::Action::Which kind) {
  switch (kind) {
    case wire::Action::LIST:
      return wire::Target::DESKTOP;
    case wire::Action::OBSERVE:
      return wire::Target::WINDOW;
    case wire::Action::INVOKE:
    case wire::Action::SET_VALUE:
      return wire::Target::ELEMENT;
  }
  KJ_UNREACHABLE;
}

wire::Action::Which whichOf(const Action& action) {
  if (action.act.is<ObserveAct>()) return wire::Action::OBSERVE;
  if (action.act.is<InvokeRequest>()) return wire::Action::INVOKE;
  if (action.act.is<SetValueRequest>()) return wire::Action::SET_VALUE;
  return wire::Action::LIST;
}

void writeTarget(const Action& from, wire::Target::Builder to) {
  switch (targetOf(whichOf(from))) {
    case wire::Target::DESKTOP:
      to.setDesktop();
      return;
    case wire::Target::WINDOW:
      write(from.window, to.initWindow());
      return;
    case wire::Target::ELEMENT: {
      auto element = to.initElement();
      write(from.element.window, element.initWindow());
      element.setFrame(bytesOf(from.element.frame));
      element.setEpoch(from.element.epoch);
      element.setElement(from.element.element);
      element.setDigest(bytesOf(from.element.digest));
      return;
    }
  }
}

void writeAct(const Action& from, wire::Action::Builder to) {
  if (from.act.is<ListAct>()) {
    to.setList();
  } else if (from.act.is<ObserveAct>()) {
    to.initObserve().setPicture(from.act.get<ObserveAct>().picture);
  } else if (from.act.is<InvokeRequest>()) {
    to.initInvoke().setName(from.act.get<InvokeRequest>().name);
  } else if (from.act.is<SetValueRequest>()) {
    to.initSetValue().setText(from.act.get<SetValueRequest>().text);
  }
}

}  // namespace

ActionClass Action::actionClass() const {
  if (isMutation()) return ActionClass::SEMANTIC_MUTATION;
  bool pictured = act.is<ObserveAct>() && act.get<ObserveAct>().picture;
  return pictured ? ActionClass::SCREENSHOT_READ : ActionClass::METADATA_READ;
}

kj::StringPtr Action::kind() const {
  switch (whichOf(*this)) {
    case wire::Action::LIST:
      return "list";
    case wire::Action::OBSERVE:
      return "observe";
    case wire::Action::INVOKE:
      return "invoke";
    case wire::Action::SET_VALUE:
      return "set_value";
  }
  KJ_UNREACHABLE;
}

void write(const Action& action, wire::Action::Builder to) {
  to.setBlind(bytesOf(action.blind));
  to.setTimeoutMs(action.timeoutMs);
  to.setVerification(action.verification);
  writeTarget(action, to.initTarget());
  writeAct(action, to);
}

kj::Array<kj::byte> encode(const Action& action) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Action>();
  write(action, root);
  return canonicalBytes(root.asReader());
}

Result<Action> readAction(wire::Action::Reader reader) {
  auto strict = checkStrict(reader);
  if (!strict.ok()) return strict.refusal();

  Action action;
  KJ_IF_MAYBE (blind, fixed<32>(reader.getBlind())) {
    action.blind = *blind;
  } else {
    return malformed("The blind is not 32 bytes.");
  }
  if (isZero(action.blind)) return malformed("The blind is all zero.");
  action.timeoutMs = reader.getTimeoutMs();
  if (action.timeoutMs < 1 || action.timeoutMs > bounds::ACTION_TIMEOUT_MS) {
    return malformed("The timeout is zero or too long.");
  }
  action.verification = reader.getVerification();

  if (reader.getTarget().which() != targetOf(reader.which())) {
    return malformed("The target does not suit the kind of action.");
  }
  auto target = readTarget(reader.getTarget(), action);
  if (!target.ok()) return target.refusal();
  auto act = readAct(reader, action);
  if (!act.ok()) return act.refusal();
  return kj::mv(action);
}

Result<Action> decodeAction(Bytes canonical) {
  auto parsed = Canonical<wire::Action>::parse(canonical, bounds::ACTION_BYTES);
  if (!parsed.ok()) return parsed.refusal();
  return readAction(parsed->get());
}

}  // namespace praefectus
