#include "ipc/desktop.h"

#include "ipc/bounds.h"

#include <capnp/schema.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace praefectus {
namespace {

constexpr kj::StringPtr REPLACEMENT = "\xEF\xBF\xBD"_kj;  // U+FFFD

// Applications say anything. What goes on the wire is text, and no longer than the bound.
struct Clean {
  kj::String text;
  bool cut;
};

// Bytes of the character at the beginning of `rest`, or 0 when there is no well-formed one.
size_t characterAt(kj::ArrayPtr<const char> rest) {
  char piece[5] = {};
  for (size_t size = 1; size <= 4 && size <= rest.size(); ++size) {
    piece[size - 1] = rest[size - 1];
    if (isText(kj::StringPtr(piece, size))) return size;
  }
  return 0;
}

Clean clean(kj::StringPtr from) {
  kj::Vector<char> out(std::min<size_t>(from.size(), bounds::TEXT_BYTES) + 1);
  auto rest = from.asArray();
  while (rest.size() > 0) {
    size_t size = characterAt(rest);
    auto character = size == 0 ? REPLACEMENT.asArray() : rest.slice(0, size);
    if (out.size() + character.size() > bounds::TEXT_BYTES) break;
    out.addAll(character);
    rest = rest.slice(std::max<size_t>(size, 1), rest.size());
  }
  return {kj::heapString(out.asPtr()), rest.size() > 0};
}

// An action name is an argument of `invoke`, so it is whole or it is not there.
bool isActionName(kj::StringPtr name) {
  return name.size() >= 1 && name.size() <= bounds::ACTION_NAME_BYTES && isText(name);
}

// An element as it goes on the wire.
struct CleanElement {
  const Element& from;
  kj::String role, name;
  kj::Maybe<kj::String> value;
  kj::Vector<kj::StringPtr> actions;
  bool cut = false;

  explicit CleanElement(const Element& element) : from(element) {
    role = take(element.role);
    name = take(element.name);
    if (!element.secure) {
      KJ_IF_MAYBE (text, element.value) value = take(*text);
    }
    for (auto& action : element.actions) {
      bool fits = isActionName(action) && actions.size() < bounds::ACTIONS;
      if (fits) actions.add(action);
      if (!fits) cut = true;
    }
    if (element.textCut) cut = true;
  }

  // Words of its encoding: sections, texts and lists, each rounded up.
  size_t words() const {
    auto node = capnp::Schema::from<wire::Element>().getProto().getStruct();
    auto rect = capnp::Schema::from<wire::Rect>().getProto().getStruct();
    size_t sum = size_t{node.getDataWordCount()} + node.getPointerCount();
    sum += rect.getDataWordCount() + textWords(role) + textWords(name) + sizeof(Hash) / 8;
    sum += wordsFor(2 * capnp::Schema::from<State>().getEnumerants().size());
    sum += actions.size();
    for (auto& action : actions) sum += textWords(action);
    KJ_IF_MAYBE (text, value) sum += textWords(*text);
    return sum;
  }

 private:
  kj::String take(kj::StringPtr text) {
    auto cleaned = clean(text);
    if (cleaned.cut) cut = true;
    return kj::mv(cleaned.text);
  }

  static size_t wordsFor(size_t bytes) { return (bytes + 7) / 8; }
  static size_t textWords(kj::StringPtr text) { return wordsFor(text.size() + 1); }
};

// Half a message, less what surrounds the elements: frame, flags, list headers.
constexpr size_t ELEMENT_WORDS = bounds::MESSAGE_WORDS / 2 - 1024;

// The elements that fit. Parents come before their children, so any prefix is a tree.
kj::Vector<CleanElement> thatFit(kj::ArrayPtr<const Element> elements) {
  kj::Vector<CleanElement> out;
  size_t words = 0;
  for (auto& element : elements) {
    if (out.size() == bounds::ELEMENTS) break;
    CleanElement cleaned(element);
    words += cleaned.words();
    if (words > ELEMENT_WORDS) break;
    out.add(kj::mv(cleaned));
  }
  return out;
}

// Bits beyond the last enumerant have no meaning on the wire.
kj::Vector<State> listOf(States states) {
  kj::Vector<State> out;
  auto count = capnp::Schema::from<State>().getEnumerants().size();
  for (capnp::uint i = 0; i < count; ++i) {
    auto state = static_cast<State>(i);
    if (states.has(state)) out.add(state);
  }
  return out;
}

void writeStates(States from, capnp::List<State>::Builder to) {
  auto states = listOf(from);
  for (capnp::uint i = 0; i < states.size(); ++i) to.set(i, states[i]);
}

void write(const CleanElement& cleaned, wire::Element::Builder to) {
  auto& from = cleaned.from;
  to.setParent(from.parent);
  to.setDepth(from.depth);
  to.setPosition(from.position);
  to.setRole(cleaned.role);
  to.setName(cleaned.name);
  auto stateCount = static_cast<capnp::uint>(listOf(from.states).size());
  writeStates(from.states, to.initStates(stateCount));
  auto actions = to.initActions(static_cast<capnp::uint>(cleaned.actions.size()));
  for (capnp::uint i = 0; i < actions.size(); ++i) actions.set(i, cleaned.actions[i]);
  KJ_IF_MAYBE (bounds, from.bounds) {
    to.setHasBounds(true);
    praefectus::write(*bounds, to.initBounds());
  }
  KJ_IF_MAYBE (value, cleaned.value) {
    to.setHasValue(true);
    to.setValue(*value);
  }
  to.setSettable(from.settable && !from.secure);
  to.setSecure(from.secure);
  to.setTextCut(cleaned.cut);
  to.setFault(from.fault);
  to.setDigest(bytesOf(from.digest));
}

void write(const Process& from, wire::Process::Builder to) {
  to.setPid(from.pid);
  to.setStart(from.start);
}

void addNumber(kj::Vector<kj::byte>& to, uint64_t number) {
  for (int i = 0; i < 8; ++i) to.add(static_cast<kj::byte>(number >> (8 * i)));
}

// The role's length stands before it, so that ("a", "bc") and ("ab", "c") differ.
kj::Array<kj::byte> labelBytes(kj::StringPtr role, kj::StringPtr name) {
  kj::Vector<kj::byte> out;
  addNumber(out, role.size());
  out.addAll(role.asBytes());
  out.addAll(name.asBytes());
  return out.releaseAsArray();
}

// As a set: in order and without repetition, 8 bytes each.
kj::Array<kj::byte> windowBytes(kj::ArrayPtr<const uint64_t> windows) {
  auto sorted = kj::heapArray(windows);
  std::sort(sorted.begin(), sorted.end());
  auto end = std::unique(sorted.begin(), sorted.end());
  kj::Vector<kj::byte> out;
  for (auto window = sorted.begin(); window != end; ++window) addNumber(out, *window);
  return out.releaseAsArray();
}

void write(const Sight& from, const Hash& nonce, KeyedHash& hash, wire::Sight::Builder to) {
  auto hashed = [&](Bytes bytes) { return hash(bytesOf(nonce), bytes); };
  to.setPresent(from.present);
  auto stateCount = static_cast<capnp::uint>(listOf(from.states).size());
  writeStates(from.states, to.initStates(stateCount));
  auto value = to.initValue();
  if (from.value.is<kj::String>()) value.setText(bytesOf(hashed(valueBytes(from.value))));
  if (from.value.is<double>()) value.setNumber(bytesOf(hashed(valueBytes(from.value))));
  KJ_IF_MAYBE (role, from.role) {
    KJ_IF_MAYBE (name, from.name) to.setLabel(bytesOf(hashed(labelBytes(*role, *name))));
  }
  to.setWindowPresent(from.windowPresent);
  to.setProcessRunning(from.processRunning);
  auto windows = windowBytes(from.windows);
  to.setWindows(bytesOf(hashed(windows)));
  to.setWindowCount(static_cast<uint32_t>(windows.size() / sizeof(uint64_t)));
  KJ_IF_MAYBE (pixels, from.region) to.setRegion(bytesOf(hashed(*pixels)));
}

void write(const Watch& from, wire::Watch::Builder to) {
  to.setWatching(from.watching);
  to.setPointerMoved(from.pointerMoved);
  to.setFocusChanged(from.focusChanged);
  to.setStackingChanged(from.stackingChanged);
}

Process read(wire::Process::Reader from) { return {from.getPid(), from.getStart()}; }

Application read(wire::Application::Reader from) {
  return {read(from.getProcess()), kj::str(from.getName()), kj::str(from.getToolkit()),
          from.getState()};
}

Window read(wire::Window::Reader from) {
  Window to;
  to.ref = praefectus::read(from.getRef());
  to.title = kj::str(from.getTitle());
  to.bounds = praefectus::read(from.getBounds());
  to.visible = from.getVisible();
  to.active = from.getActive();
  to.stacking = from.getStacking();
  to.accessible = from.getAccessible();
  return to;
}

template <size_t N>
std::array<kj::byte, N> readFixed(Bytes from) {
  auto bytes = fixed<N>(from);
  KJ_REQUIRE(bytes != nullptr, "a digest or id has the wrong length");
  return KJ_ASSERT_NONNULL(bytes);
}

Frame read(wire::Frame::Reader from) {
  Frame to;
  to.id = readFixed<16>(from.getId());
  to.epoch = from.getEpoch();
  to.window = praefectus::read(from.getWindow());
  to.title = kj::str(from.getTitle());
  to.bounds = praefectus::read(from.getBounds());
  to.scale = from.getScale();
  to.topology = readFixed<32>(from.getTopology());
  return to;
}

Element read(wire::Element::Reader from) {
  Element to;
  to.parent = from.getParent();
  to.depth = from.getDepth();
  to.position = from.getPosition();
  to.role = kj::str(from.getRole());
  to.name = kj::str(from.getName());
  for (auto state : from.getStates()) to.states.set(state);
  for (auto action : from.getActions()) to.actions.add(kj::str(action));
  if (from.getHasBounds()) to.bounds = praefectus::read(from.getBounds());
  if (from.getHasValue()) to.value = kj::str(from.getValue());
  to.settable = from.getSettable();
  to.secure = from.getSecure();
  to.textCut = from.getTextCut();
  to.fault = from.getFault();
  to.digest = readFixed<32>(from.getDigest());
  return to;
}

}  // namespace

void write(const Desktop& from, wire::Desktop::Builder to) {
  bool cut = from.cut || from.applications.size() > bounds::APPLICATIONS ||
             from.windows.size() > bounds::WINDOWS;
  auto bounded = [&](kj::StringPtr text) {
    auto cleaned = clean(text);
    if (cleaned.cut) cut = true;
    return kj::mv(cleaned.text);
  };

  to.setDisplay(bounded(from.display));
  auto applications = to.initApplications(
      static_cast<capnp::uint>(std::min<size_t>(from.applications.size(), bounds::APPLICATIONS)));
  for (capnp::uint i = 0; i < applications.size(); ++i) {
    auto& application = from.applications[i];
    write(application.process, applications[i].initProcess());
    applications[i].setName(bounded(application.name));
    applications[i].setToolkit(bounded(application.toolkit));
    applications[i].setState(application.state);
  }
  auto windows = to.initWindows(
      static_cast<capnp::uint>(std::min<size_t>(from.windows.size(), bounds::WINDOWS)));
  for (capnp::uint i = 0; i < windows.size(); ++i) {
    auto& window = from.windows[i];
    praefectus::write(window.ref, windows[i].initRef());
    windows[i].setTitle(bounded(window.title));
    praefectus::write(window.bounds, windows[i].initBounds());
    windows[i].setVisible(window.visible);
    windows[i].setActive(window.active);
    windows[i].setStacking(window.stacking);
    windows[i].setAccessible(window.accessible);
  }
  to.setCut(cut);
}

void write(const Observation& from, wire::Observation::Builder to) {
  auto fitting = thatFit(from.elements);
  auto title = clean(from.frame.title);
  bool textCut = from.cuts.text || title.cut;
  uint32_t faults = 0;

  auto elements = to.initElements(static_cast<capnp::uint>(fitting.size()));
  for (capnp::uint i = 0; i < elements.size(); ++i) {
    write(fitting[i], elements[i]);
    if (fitting[i].cut) textCut = true;
    if (fitting[i].from.fault != Fault::NONE) ++faults;
  }

  auto frame = to.initFrame();
  frame.setId(bytesOf(from.frame.id));
  frame.setEpoch(from.frame.epoch);
  praefectus::write(from.frame.window, frame.initWindow());
  frame.setTitle(title.text);
  praefectus::write(from.frame.bounds, frame.initBounds());
  frame.setScale(from.frame.scale);
  frame.setTopology(bytesOf(from.frame.topology));

  auto cuts = to.initCuts();
  cuts.setElements(from.cuts.elements || fitting.size() < from.elements.size());
  cuts.setDepth(from.cuts.depth);
  cuts.setText(textCut);
  cuts.setTime(from.cuts.time);
  to.setFaults(faults);
  to.setElapsedMs(from.elapsedMs);
  to.setHasPicture(from.picture != nullptr);
}

void write(const Facts& from, const Hash& nonce, KeyedHash& hash, wire::Facts::Builder to) {
  write(from.before, nonce, hash, to.initBefore());
  write(from.after, nonce, hash, to.initAfter());
  to.setAnswer(from.answer);
  write(from.watch, to.initWatch());
  to.setSettledMs(from.settledMs);
}

void write(kj::ArrayPtr<const Capability> from, capnp::List<wire::Capability>::Builder to) {
  for (capnp::uint i = 0; i < to.size(); ++i) {
    to[i].setName(from[i].name);
    to[i].setAvailable(from[i].available);
    if (!from[i].available) to[i].setWhy(from[i].why);
  }
}

Desktop read(wire::Desktop::Reader from) {
  Desktop to;
  to.display = kj::str(from.getDisplay());
  for (auto application : from.getApplications()) to.applications.add(read(application));
  for (auto window : from.getWindows()) to.windows.add(read(window));
  to.cut = from.getCut();
  return to;
}

Observation read(wire::Observation::Reader from) {
  Observation to;
  to.frame = read(from.getFrame());
  for (auto element : from.getElements()) {
    bool isRoot = to.elements.size() == 0;
    KJ_REQUIRE(isRoot ? element.getParent() == 0 : element.getParent() < to.elements.size(),
               "an element comes before its parent");
    to.elements.add(read(element));
  }
  auto cuts = from.getCuts();
  to.cuts = {cuts.getElements(), cuts.getDepth(), cuts.getText(), cuts.getTime()};
  to.faults = from.getFaults();
  to.elapsedMs = from.getElapsedMs();
  return to;
}

kj::Array<kj::byte> valueBytes(const Value& value) {
  kj::Vector<kj::byte> out;
  if (value.is<kj::String>()) out.addAll(value.get<kj::String>().asBytes());
  if (value.is<double>()) {
    // Zero has two spellings and one meaning.
    double number = value.get<double>() + 0.0;
    uint64_t bits;
    static_assert(sizeof(bits) == sizeof(number));
    memcpy(&bits, &number, sizeof(bits));
    addNumber(out, bits);
  }
  return out.releaseAsArray();
}

kj::Maybe<double> parseNumber(kj::StringPtr text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  if (error != std::errc() || end != text.end() || !std::isfinite(number)) return nullptr;
  return number;
}

}  // namespace praefectus
