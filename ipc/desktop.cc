#include "ipc/desktop.h"

#include "ipc/bounds.h"
#include "ipc/clean.h"

#include <capnp/schema.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace praefectus {
namespace {

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
          kj::str(from.getVersion()), from.getState()};
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
  to.kind = from.getKind();
  to.owner = from.getOwner();
  to.modal = from.getModal();
  to.managed = from.getManaged();
  return to;
}

// All but its title, which is cut with the others.
void write(const Window& from, wire::Window::Builder to) {
  praefectus::write(from.ref, to.initRef());
  praefectus::write(from.bounds, to.initBounds());
  to.setVisible(from.visible);
  to.setActive(from.active);
  to.setStacking(from.stacking);
  to.setAccessible(from.accessible);
  to.setKind(from.kind);
  to.setOwner(from.owner);
  to.setModal(from.modal);
  to.setManaged(from.managed);
}

template <size_t N>
std::array<kj::byte, N> fixedOf(Bytes from) {
  return KJ_REQUIRE_NONNULL(fixed<N>(from), "a digest or id has the wrong length");
}

}  // namespace

void write(const Desktop& from, wire::Desktop::Builder to) {
  bool cut = from.cut;
  auto bounded = [&](kj::StringPtr text) {
    auto cleaned = clean(text, bounds::TEXT_BYTES);
    if (cleaned.cut) cut = true;
    return cleaned;
  };
  auto within = [&](size_t size, size_t bound) {
    if (size > bound) cut = true;
    return static_cast<capnp::uint>(std::min(size, bound));
  };

  to.setDisplay(bounded(from.display).text);
  auto applications = to.initApplications(within(from.applications.size(), bounds::APPLICATIONS));
  for (capnp::uint i = 0; i < applications.size(); ++i) {
    auto& application = from.applications[i];
    write(application.process, applications[i].initProcess());
    applications[i].setName(bounded(application.name).text);
    applications[i].setToolkit(bounded(application.toolkit).text);
    applications[i].setVersion(bounded(application.version).text);
    applications[i].setState(application.state);
  }
  auto windows = to.initWindows(within(from.windows.size(), bounds::WINDOWS));
  for (capnp::uint i = 0; i < windows.size(); ++i) {
    windows[i].setTitle(bounded(from.windows[i].title).text);
    write(from.windows[i], windows[i]);
  }
  auto monitors = within(from.monitors.size(), bounds::MONITORS);
  praefectus::write(from.monitors.slice(0, monitors), to.initMonitors(monitors));
  to.setTopology(bytesOf(from.topology));
  to.setLock(from.lock);
  to.setCut(cut);
}

void write(kj::ArrayPtr<const Monitor> from, capnp::List<wire::Monitor>::Builder to) {
  for (capnp::uint i = 0; i < to.size(); ++i) {
    to[i].setId(bytesOf(from[i].id));
    praefectus::write(from[i].bounds, to[i].initBounds());
    to[i].setPrimary(from[i].primary);
    to[i].setScale(from[i].scale);
  }
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
  to.monitors = read(from.getMonitors());
  to.topology = fixedOf<sizeof(Hash)>(from.getTopology());
  to.lock = from.getLock();
  return to;
}

kj::Vector<Monitor> read(capnp::List<wire::Monitor>::Reader from) {
  kj::Vector<Monitor> to;
  for (auto monitor : from) {
    to.add(Monitor{fixedOf<sizeof(MonitorId)>(monitor.getId()), read(monitor.getBounds()),
                   monitor.getPrimary(), monitor.getScale()});
  }
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
