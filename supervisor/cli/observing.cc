#include "supervisor/cli/observing.h"

#include "ipc/bounds.h"
#include "supervisor/client/outline.h"

#include <charconv>

namespace praefectus::cli {
namespace {

constexpr uint32_t AGAIN_SECONDS = 300;

// The value of an option that counts something; nothing when it was not given.
kj::Maybe<uint32_t> number(const Options& options, kj::StringPtr name, uint32_t least,
                           uint32_t most) {
  KJ_IF_MAYBE (text, options.value(name)) {
    uint32_t value = 0;
    auto [end, error] = std::from_chars(text->begin(), text->end(), value);
    if (error != std::errc() || end != text->end() || value < least || value > most) {
      throw usage(kj::str(name, " is a number from ", least, " to ", most));
    }
    return value;
  }
  return nullptr;
}

kj::StringPtr stateWord(State state) {
  static const auto enumerants = capnp::Schema::from<State>().getEnumerants();
  return enumerants[static_cast<capnp::uint>(state)].getProto().getName();
}

template <typename Enum, typename Set, typename Word>
Json setJson(const Set& set, Word word) {
  Json out = Json::array();
  for (auto enumerant : capnp::Schema::from<Enum>().getEnumerants()) {
    auto each = static_cast<Enum>(enumerant.getOrdinal());
    if (set.has(each)) out.push_back(kj::str(word(each)).cStr());
  }
  return out;
}

Json elementJson(size_t index, const Element& element) {
  Json actions = Json::array();
  for (auto& action : element.actions) actions.push_back(json(printable(action)));
  Json out = {{"element", index},
              {"parent", element.parent},
              {"position", element.position},
              {"depth", element.depth},
              {"role", json(printable(element.role))},
              {"name", json(printable(element.name))},
              {"states", setJson<State>(element.states, stateWord)},
              {"interfaces", setJson<Face>(element.faces, wordFor<Face>)},
              {"actions", actions},
              {"shows", element.shows},
              {"settable", element.settable},
              {"secure", element.secure},
              {"children", element.children},
              {"children_cut", element.childrenCut},
              {"text_cut", element.textCut},
              {"fault", element.fault != Fault::NONE},
              {"change", wordFor(element.change).cStr()},
              {"path", json(printable(element.path))},
              {"digest", hex(bytesOf(element.digest)).cStr()}};
  if (element.fault != Fault::NONE) out["fault_kind"] = wordFor(element.fault).cStr();
  if (element.domId.size() > 0) out["dom_id"] = json(printable(element.domId));
  KJ_IF_MAYBE (bounds, element.bounds) out["bounds"] = rectJson(*bounds);
  KJ_IF_MAYBE (value, element.value) out["value"] = json(printable(*value));
  return out;
}

}  // namespace

Json pictureJson(const PictureInfo& picture) {
  return {{"width", picture.width}, {"height", picture.height},
          {"scale", picture.scale}, {"x", picture.x},
          {"y", picture.y},         {"pixels", hex(bytesOf(picture.pixels)).cStr()}};
}

uint64_t windowId(kj::StringPtr text) {
  char* end = nullptr;
  unsigned long long id = strtoull(text.cStr(), &end, 0);
  if (text.size() == 0 || *end != '\0' || id == 0) {
    throw usage(kj::str("a window id is a number, such as 0x1400003"));
  }
  return id;
}

const Window& windowIn(const Desktop& desktop, uint64_t id) {
  for (auto& window : desktop.windows) {
    if (window.ref.window == id) return window;
  }
  throw failure({RefusalCode::TARGET_MISSING, "There is no such window."_kj});
}

Json rectJson(const Rect& rect) {
  return {{"x", rect.x}, {"y", rect.y}, {"width", rect.width}, {"height", rect.height}};
}

Json monitorsJson(kj::ArrayPtr<const Monitor> monitors) {
  Json out = Json::array();
  for (auto& monitor : monitors) {
    out.push_back({{"id", hex(bytesOf(monitor.id)).cStr()},
                   {"bounds", rectJson(monitor.bounds)},
                   {"primary", monitor.primary},
                   {"scale", monitor.scale}});
  }
  return out;
}

Json observationJson(const Observation& seen) {
  Json elements = Json::array();
  for (size_t i = 0; i < seen.elements.size(); ++i) {
    elements.push_back(elementJson(i, seen.elements[i]));
  }
  Json out = {{"frame", hex(bytesOf(seen.frame.id)).cStr()},
              {"epoch", seen.frame.epoch},
              {"scale", seen.frame.scale},
              {"topology", hex(bytesOf(seen.frame.topology)).cStr()},
              {"monitors", monitorsJson(seen.frame.monitors)},
              {"content", wordFor(seen.content).cStr()},
              {"elements", elements},
              {"below", seen.below},
              {"cut",
               {{"elements", seen.cuts.elements},
                {"depth", seen.cuts.depth},
                {"text", seen.cuts.text},
                {"time", seen.cuts.time}}},
              {"faults", seen.faults},
              {"elapsed_ms", seen.elapsedMs}};
  KJ_IF_MAYBE (page, seen.frame.page) {
    out["page"] = {{"url", json(printable(page->url))},
                   {"document", hex(bytesOf(page->document)).cStr()},
                   {"element", page->element}};
  }
  KJ_IF_MAYBE (before, seen.before) {
    out["before"] = hex(bytesOf(*before)).cStr();
    out["gone"] = Json::array();
    for (uint32_t index : seen.gone) out["gone"].push_back(index);
  }
  KJ_IF_MAYBE (picture, seen.picture) out["picture"] = pictureJson(*picture);
  return out;
}

Reader::Reader(const Options& options)
    : below(number(options, "--below", 0, bounds::ELEMENTS_LIMIT - 1)),
      again(number(options, "--again", 1, AGAIN_SECONDS)) {
  auto take = [&](kj::StringPtr name, uint32_t limit, uint32_t& to) {
    to = number(options, name, 1, limit).orDefault(to);
  };
  take("--elements", bounds::ELEMENTS_LIMIT, usual.elements);
  take("--depth", bounds::DEPTH, usual.depth);
  take("--text-bytes", bounds::TEXT_LIMIT, usual.textBytes);
  take("--time-ms", bounds::WALK / kj::MILLISECONDS, usual.timeMs);
  KJ_IF_MAYBE (from, number(options, "--first", 0, UINT32_MAX)) {
    if (below == nullptr) throw usage(kj::str("--first goes with --below"));
    first = *from;
  }
  if (below != nullptr && again != nullptr) {
    throw usage(kj::str("--again compares whole windows, not what is --below"));
  }
}

Observation Reader::look(OwnHost& own, const WindowRef& window, ObserveAct act) const {
  return own.wait(own.session().observe(own.session().actOn(window, kj::mv(act))));
}

Reading Reader::read(OwnHost& own, const WindowRef& window, bool picture) const {
  auto last = usual;
  last.picture = picture;
  if (below == nullptr && again == nullptr) {
    auto seen = look(own, window, last);
    auto text = client::outline(seen);
    return {kj::mv(seen), kj::mv(text)};
  }
  // What --below names is looked for in all of the window; the bounds are for what is below it.
  ObserveAct all;
  all.elements = bounds::ELEMENTS_LIMIT;
  auto earlier = look(own, window, below == nullptr ? usual : all);
  KJ_IF_MAYBE (element, below) {
    if (*element >= earlier.elements.size()) {
      throw failure({RefusalCode::TARGET_MISSING, "There is no such element."_kj});
    }
    last.below = Below{earlier.frame.id, earlier.frame.epoch, *element,
                       earlier.elements[*element].digest, first};
  }
  KJ_IF_MAYBE (seconds, again) own.pause(*seconds * kj::SECONDS);
  auto seen = look(own, window, kj::mv(last));
  kj::String text;
  if (again != nullptr) {
    // When they cannot be compared, the whole says more than nothing.
    KJ_IF_MAYBE (changes, client::outlineOfChanges(earlier, seen)) text = kj::mv(*changes);
  }
  if (text.size() == 0) text = client::outline(seen);
  return {kj::mv(seen), kj::mv(text)};
}

}  // namespace praefectus::cli
