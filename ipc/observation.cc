// An observation on its way: what is cut, withheld and said once for all, and how it is read again.
#include "ipc/bounds.h"
#include "ipc/clean.h"
#include "ipc/desktop.h"

#include <capnp/schema.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace praefectus {
namespace {

size_t wordsFor(size_t bytes) { return (bytes + 7) / 8; }
size_t textWords(size_t bytes) { return wordsFor(bytes + 1); }

// One bit for each enumerant. Bits beyond the last have no meaning on the wire.
template <typename Enum>
uint64_t known() {
  static const uint64_t bits =
      (uint64_t{1} << capnp::Schema::from<Enum>().getEnumerants().size()) - 1;
  return bits;
}

size_t elementSections() {
  static const size_t words = [] {
    auto node = capnp::Schema::from<wire::Element>().getProto().getStruct();
    return size_t{node.getDataWordCount()} + node.getPointerCount();
  }();
  return words;
}

// 7/8 of a message, less what surrounds the elements: frame, monitors, what is gone, list headers.
constexpr size_t ELEMENT_WORDS = bounds::MESSAGE_WORDS / 8 * 7 - 4096;

// Names that are whole or not there: of a role, and of an action, which is an argument of `invoke`.
class WordTable {
 public:
  // A word's place, or nothing when it is none. `added` grows by what it newly takes of the
  // message.
  kj::Maybe<uint16_t> placeOf(kj::StringPtr word, size_t& added) {
    auto [row, isNew] = places.try_emplace(std::string_view(word.begin(), word.size()));
    if (isNew) {
      row->second = {word.size() <= bounds::ACTION_NAME_BYTES && isText(word),
                     static_cast<uint16_t>(words.size())};
      if (row->second.fits) {
        words.add(word);
        added += 1 + textWords(word.size());
      }
    }
    if (!row->second.fits) return nullptr;
    return row->second.at;
  }

  size_t size() const { return words.size(); }
  // Forgets the latest; nothing may be asked for after it.
  void truncate(size_t to) { words.truncate(to); }
  void write(capnp::List<capnp::Text>::Builder to) const {
    for (capnp::uint i = 0; i < to.size(); ++i) to.set(i, words[i]);
  }

 private:
  struct Place {
    bool fits;
    uint16_t at;
  };
  std::unordered_map<std::string_view, Place> places;
  kj::Vector<kj::StringPtr> words;
};
// Each word takes two of the message's at least, so places cannot run out.
static_assert(ELEMENT_WORDS / 2 <= 65'536);

// An object's path or a page's id: a part of one would be another's.
kj::StringPtr wholeOrEmpty(kj::StringPtr from, bool& cut) {
  if (from.size() <= bounds::PATH_BYTES && isText(from)) return from;
  cut = true;
  return "";
}

// An element as it goes on the wire.
struct CleanElement {
  const Element* from = nullptr;
  Clean name;
  kj::Maybe<Clean> value;
  kj::StringPtr path, domId;
  uint16_t role = 0;
  size_t actions = 0;  // How many of Fitting::actions are its own.
  bool cut = false, childrenCut = false;
};

// What all paths begin with, to the end of a part of the path. Something is left of each.
kj::String startOf(kj::ArrayPtr<const Element> elements) {
  kj::Maybe<kj::ArrayPtr<const char>> common;
  for (auto& element : elements) {
    bool cut = false;
    auto path = wholeOrEmpty(element.path, cut).asArray();
    if (path.size() == 0) continue;
    path = path.slice(0, path.size() - 1);
    KJ_IF_MAYBE (so, common) {
      auto differs = std::mismatch(so->begin(), so->end(), path.begin(), path.end()).first;
      common = so->slice(0, static_cast<size_t>(differs - so->begin()));
    } else {
      common = path;
    }
  }
  auto end = common.orDefault(nullptr);
  while (end.size() > 0 && end.back() != '/') end = end.slice(0, end.size() - 1);
  return kj::heapString(end);
}

// The elements that fit, as they go on the wire.
class Fitting {
 public:
  explicit Fitting(const Observation& observation)
      : seen(observation), start(startOf(observation.elements)) {
    elements.reserve(std::min<size_t>(seen.elements.size(), bounds::ELEMENTS_LIMIT));
    size_t used = textWords(start.size());
    for (auto& element : seen.elements) {
      if (elements.size() == bounds::ELEMENTS_LIMIT) break;
      size_t known = table.size();
      used += add(element);
      if (used <= ELEMENT_WORDS) continue;
      elements.removeLast();
      table.truncate(known);
      break;
    }
    for (auto& left : seen.elements.slice(elements.size(), seen.elements.size())) {
      if (left.parent < elements.size()) elements[left.parent].childrenCut = true;
    }
  }

  void write(wire::Observation::Builder to) const {
    to.setPathStart(start);
    table.write(to.initWords(static_cast<capnp::uint>(table.size())));
    auto digests = to.initDigests(static_cast<capnp::uint>(elements.size() * sizeof(Hash)));
    auto list = to.initElements(static_cast<capnp::uint>(elements.size()));
    auto action = actions.begin();
    for (capnp::uint i = 0; i < list.size(); ++i) {
      auto& element = elements[i];
      write(element, list[i]);
      auto names = list[i].initActions(static_cast<capnp::uint>(element.actions));
      for (capnp::uint k = 0; k < names.size(); ++k) names.set(k, *action++);
      memcpy(digests.begin() + i * sizeof(Hash), element.from->digest.data(), sizeof(Hash));
    }
  }

  size_t size() const { return elements.size(); }
  bool textCut() const {
    return std::any_of(elements.begin(), elements.end(), [](auto& each) { return each.cut; });
  }
  size_t faults() const {
    return static_cast<size_t>(std::count_if(elements.begin(), elements.end(), [](auto& each) {
      return each.from->fault != Fault::NONE;
    }));
  }

 private:
  // The words of its encoding: sections, digest, texts and lists, each rounded up.
  size_t add(const Element& from) {
    CleanElement to;
    to.from = &from;
    to.name = clean(from.name, seen.textBytes);
    to.cut = from.textCut || to.name.cut;
    to.childrenCut = from.childrenCut;
    to.path = wholeOrEmpty(from.path, to.cut);
    to.domId = wholeOrEmpty(from.domId, to.cut);
    if (to.path.size() > 0) to.path = to.path.slice(start.size());
    size_t words = elementSections() + sizeof(Hash) / 8;
    words += textWords(to.name.text.size()) + textWords(to.path.size());
    words += textWords(to.domId.size());
    KJ_IF_MAYBE (value, from.value) {
      if (!from.secure) {
        auto cleaned = clean(*value, seen.textBytes);
        to.cut = to.cut || cleaned.cut;
        words += textWords(cleaned.text.size());
        to.value = kj::mv(cleaned);
      }
    }
    KJ_IF_MAYBE (role, table.placeOf(from.role, words)) {
      to.role = *role;
    } else {
      to.role = KJ_ASSERT_NONNULL(table.placeOf("", words));
      to.cut = true;
    }
    for (auto& name : from.actions) add(name, to, words);
    words += wordsFor(to.actions * sizeof(uint16_t));
    elements.add(kj::mv(to));
    return words;
  }

  void add(kj::StringPtr action, CleanElement& to, size_t& words) {
    // LibreOffice's menus offer actions without a name: there is nothing to ask for them by.
    if (action.size() == 0) return;
    if (to.actions < bounds::ACTIONS) {
      KJ_IF_MAYBE (word, table.placeOf(action, words)) {
        actions.add(*word);
        ++to.actions;
        return;
      }
    }
    to.cut = true;
  }

  static void write(const CleanElement& cleaned, wire::Element::Builder to) {
    auto& from = *cleaned.from;
    to.setParent(from.parent);
    to.setPosition(from.position);
    to.setDepth(from.depth);
    to.setRole(cleaned.role);
    to.setStates(from.states.bits & known<State>());
    to.setFaces(static_cast<uint32_t>(from.faces.bits & known<Face>()));
    to.setChildren(from.children);
    KJ_IF_MAYBE (bounds, from.bounds) {
      to.setHasBounds(true);
      to.setX(bounds->x);
      to.setY(bounds->y);
      to.setWidth(bounds->width);
      to.setHeight(bounds->height);
    }
    to.setFault(from.fault);
    to.setChange(from.change);
    to.setSettable(from.settable && !from.secure);
    to.setSecure(from.secure);
    to.setTextCut(cleaned.cut);
    to.setChildrenCut(cleaned.childrenCut);
    to.setShows(from.shows);
    setText(cleaned.name.text, [&](auto text) { to.setName(text); });
    setText(cleaned.path, [&](auto text) { to.setPath(text); });
    setText(cleaned.domId, [&](auto text) { to.setDomId(text); });
    KJ_IF_MAYBE (value, cleaned.value) {
      to.setHasValue(true);
      setText(value->text, [&](auto text) { to.setValue(text); });
    }
  }

  // An empty text is no pointer, which reads the same.
  template <typename Set>
  static void setText(kj::StringPtr text, Set set) {
    if (text.size() > 0) set(text);
  }

  const Observation& seen;
  kj::String start;
  kj::Vector<CleanElement> elements;
  kj::Vector<uint16_t> actions;  // Of all elements, in their order.
  WordTable table;
};

// True when the text had to be cut.
bool write(const Frame& from, size_t elements, wire::Frame::Builder to) {
  auto title = clean(from.title, bounds::TEXT_BYTES);
  bool cut = title.cut;
  to.setId(bytesOf(from.id));
  to.setEpoch(from.epoch);
  praefectus::write(from.window, to.initWindow());
  to.setTitle(title.text);
  praefectus::write(from.bounds, to.initBounds());
  to.setScale(from.scale);
  to.setTopology(bytesOf(from.topology));
  auto monitors = std::min<size_t>(from.monitors.size(), bounds::MONITORS);
  praefectus::write(from.monitors.slice(0, monitors),
                    to.initMonitors(static_cast<capnp::uint>(monitors)));
  KJ_IF_MAYBE (page, from.page) {
    if (page->element >= elements) return cut;
    auto url = clean(page->url, bounds::URL_BYTES);
    to.setHasPage(true);
    auto out = to.initPage();
    out.setUrl(url.text);
    out.setDocument(bytesOf(page->document));
    out.setElement(page->element);
    cut = cut || url.cut;
  }
  return cut;
}

template <size_t N>
std::array<kj::byte, N> fixedOf(Bytes from) {
  return KJ_REQUIRE_NONNULL(fixed<N>(from), "a digest or id has the wrong length");
}

kj::Maybe<FrameId> frameIdOf(Bytes from) {
  if (from.size() == 0) return nullptr;
  return fixedOf<sizeof(FrameId)>(from);
}

Frame read(wire::Frame::Reader from, size_t elements) {
  Frame to;
  to.id = fixedOf<sizeof(FrameId)>(from.getId());
  to.epoch = from.getEpoch();
  to.window = praefectus::read(from.getWindow());
  to.title = kj::str(from.getTitle());
  to.bounds = praefectus::read(from.getBounds());
  to.scale = from.getScale();
  to.topology = fixedOf<sizeof(Hash)>(from.getTopology());
  to.monitors = praefectus::read(from.getMonitors());
  if (from.getHasPage()) {
    auto page = from.getPage();
    KJ_REQUIRE(page.getElement() < elements, "the page is none of the elements");
    to.page =
        Page{kj::str(page.getUrl()), fixedOf<sizeof(Hash)>(page.getDocument()), page.getElement()};
  }
  return to;
}

// What elements refer to. Bounded, because each may be copied for every element.
struct Shared {
  kj::StringPtr pathStart;
  kj::Array<kj::StringPtr> words;

  explicit Shared(wire::Observation::Reader from)
      : pathStart(from.getPathStart()),
        words(KJ_MAP(word, from.getWords()) { return kj::StringPtr(word); }) {
    KJ_REQUIRE(pathStart.size() <= bounds::PATH_BYTES, "the start of the paths is too long");
    for (auto word : words) {
      KJ_REQUIRE(word.size() <= bounds::ACTION_NAME_BYTES, "a word is too long");
    }
  }

  kj::String word(uint16_t at) const {
    KJ_REQUIRE(at < words.size(), "there is no such word");
    return kj::heapString(words[at]);
  }
};

Element read(wire::Element::Reader from, Bytes digest, const Shared& shared) {
  Element to;
  to.parent = from.getParent();
  to.position = from.getPosition();
  to.depth = from.getDepth();
  to.role = shared.word(from.getRole());
  to.name = kj::heapString(from.getName());
  if (from.getPath().size() > 0) to.path = kj::str(shared.pathStart, from.getPath());
  to.domId = kj::heapString(from.getDomId());
  to.states.bits = from.getStates();
  to.faces.bits = from.getFaces();
  KJ_REQUIRE((to.states.bits & ~known<State>()) == 0, "there is no such state");
  KJ_REQUIRE((to.faces.bits & ~known<Face>()) == 0, "there is no such interface");
  to.children = from.getChildren();
  auto actions = from.getActions();
  KJ_REQUIRE(actions.size() <= bounds::ACTIONS, "an element has too many actions");
  for (auto action : actions) to.actions.add(shared.word(action));
  if (from.getHasBounds()) {
    to.bounds = Rect{from.getX(), from.getY(), from.getWidth(), from.getHeight()};
  }
  if (from.getHasValue()) to.value = kj::heapString(from.getValue());
  to.settable = from.getSettable();
  to.secure = from.getSecure();
  to.textCut = from.getTextCut();
  to.childrenCut = from.getChildrenCut();
  to.shows = from.getShows();
  to.change = from.getChange();
  to.fault = from.getFault();
  to.digest = fixedOf<sizeof(Hash)>(digest);
  return to;
}

}  // namespace

void write(const Observation& from, wire::Observation::Builder to) {
  Fitting fitting(from);
  fitting.write(to);
  bool titleCut = write(from.frame, fitting.size(), to.initFrame());

  auto cuts = to.initCuts();
  cuts.setElements(from.cuts.elements || fitting.size() < from.elements.size());
  cuts.setDepth(from.cuts.depth);
  cuts.setText(from.cuts.text || titleCut || fitting.textCut());
  cuts.setTime(from.cuts.time);
  to.setFaults(static_cast<uint32_t>(fitting.faults()));
  to.setElapsedMs(from.elapsedMs);
  to.setContent(from.content);
  // When it was cut away itself, the last of its ancestors that is listed stands for it.
  to.setBelow(std::min(from.below, static_cast<uint32_t>(std::max<size_t>(fitting.size(), 1) - 1)));
  KJ_IF_MAYBE (before, from.before) to.setBefore(bytesOf(*before));
  auto gone = std::min<size_t>(from.gone.size(), bounds::ELEMENTS_LIMIT);
  auto list = to.initGone(static_cast<capnp::uint>(gone));
  for (capnp::uint i = 0; i < list.size(); ++i) list.set(i, from.gone[i]);
  KJ_IF_MAYBE (picture, from.picture) {
    to.setHasPicture(true);
    praefectus::write(*picture, to.initPicture());
  }
}

Observation read(wire::Observation::Reader from) {
  Observation to;
  Shared shared(from);
  auto elements = from.getElements();
  Bytes digests = from.getDigests();
  KJ_REQUIRE(elements.size() <= bounds::ELEMENTS_LIMIT, "there are too many elements");
  KJ_REQUIRE(digests.size() == elements.size() * sizeof(Hash), "each element has one digest");
  to.elements.reserve(elements.size());
  for (auto element : elements) {
    auto at = to.elements.size();
    KJ_REQUIRE(at == 0 ? element.getParent() == 0 : element.getParent() < at,
               "an element comes before its parent");
    auto digest = digests.slice(at * sizeof(Hash), (at + 1) * sizeof(Hash));
    to.elements.add(read(element, digest, shared));
  }
  to.frame = read(from.getFrame(), elements.size());
  auto cuts = from.getCuts();
  to.cuts = {cuts.getElements(), cuts.getDepth(), cuts.getText(), cuts.getTime()};
  to.faults = from.getFaults();
  to.elapsedMs = from.getElapsedMs();
  to.content = from.getContent();
  to.below = from.getBelow();
  KJ_REQUIRE(to.below == 0 || to.below < elements.size(), "it is below none of the elements");
  to.before = frameIdOf(from.getBefore());
  for (auto index : from.getGone()) to.gone.add(index);
  if (from.getHasPicture()) to.picture = praefectus::read(from.getPicture());
  return to;
}

void write(const PictureInfo& from, wire::PictureInfo::Builder to) {
  to.setWidth(from.width);
  to.setHeight(from.height);
  to.setScale(from.scale);
  to.setX(from.x);
  to.setY(from.y);
  to.setPixels(bytesOf(from.pixels));
  KJ_IF_MAYBE (frame, from.frame) to.setFrame(bytesOf(*frame));
}

PictureInfo read(wire::PictureInfo::Reader from) {
  return {from.getWidth(),
          from.getHeight(),
          from.getScale(),
          from.getX(),
          from.getY(),
          fixedOf<sizeof(Hash)>(from.getPixels()),
          frameIdOf(from.getFrame())};
}

}  // namespace praefectus
