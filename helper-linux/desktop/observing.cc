#include "helper-linux/desktop/observing.h"

#include "attest/digest.h"
#include "helper-linux/desktop/identity.h"
#include "helper-linux/desktop/process.h"
#include "ipc/bounds.h"

#include <algorithm>

namespace praefectus::desktop {
namespace {

using accessibility::Answered;
using accessibility::Mirror;
using accessibility::Node;
using accessibility::Step;
using accessibility::Tree;
using accessibility::TreeBounds;
using Seen = Result<Observation>;

// A browser makes the elements of its page only when it is first asked for any, and a moment later.
constexpr unsigned PAGE_LOOKS = 6;
constexpr kj::Duration PAGE_PAUSE = 150 * kj::MILLISECONDS;

// Everything that a host is shown of an element. Two that differ are a change.
Hash appearanceOf(const Element& element) {
  attest::Digest digest;
  digest.addSized(element.role).addSized(element.name).addSized(element.domId);
  digest.addNumber(element.states.bits).addNumber(element.faces.bits).addNumber(element.children);
  digest.addNumber(element.position).addNumber(static_cast<uint64_t>(element.fault));
  digest.addNumber(element.actions.size());
  for (auto& action : element.actions) digest.addSized(action);
  KJ_IF_MAYBE (value, element.value) digest.addSized(*value);
  KJ_IF_MAYBE (bounds, element.bounds) {
    for (int32_t each : {bounds->x, bounds->y}) digest.addNumber(static_cast<uint64_t>(each));
    digest.addNumber(bounds->width).addNumber(bounds->height);
  }
  return digest.finish();
}

kj::HashMap<kj::StringPtr, uint32_t> placesOf(const ObservedFrame& frame) {
  kj::HashMap<kj::StringPtr, uint32_t> out;
  for (size_t i = 0; i < frame.records.size(); ++i) {
    out.upsert(frame.records[i].ref.path, static_cast<uint32_t>(i), [](uint32_t&, uint32_t&&) {});
  }
  return out;
}

kj::Maybe<uint32_t> pageIn(const Tree& tree, const accessibility::Toolkit& toolkit) {
  for (auto& node : tree.nodes) {
    if (node->isPage() && accessibility::mayShow(*node, toolkit)) return node->index;
  }
  return nullptr;
}

// An open menu is a window of its own. GTK 3 has its items in the tree of the window that opened it, and
// says where they are in the menu.
bool isElsewhere(const Tree& tree, const Node& node) {
  for (const Node* at = &node; at->index != 0; at = tree.nodes[at->parent].get()) {
    auto above = tree.nodes[at->parent]->role;
    bool opens = above == accessibility::role::MENU ||
                 (at->role == accessibility::role::MENU && above == accessibility::role::COMBO_BOX);
    if (opens || at->role == accessibility::role::POPUP_MENU) return true;
  }
  return false;
}

constexpr Refusal SCREEN_LOCKED{RefusalCode::SCREEN_LOCKED, "The person's session is locked."_kj};

// A page of the browser's own has nothing to load.
bool isBlank(kj::StringPtr url) { return url.startsWith("about:"); }

}  // namespace

Observing::Observing(Link& link, kj::Timer& timer, WindowRef window, FrameId id, uint64_t epoch,
                     ObserveAct request, kj::Maybe<kj::Own<ObservedFrame>> before)
    : link(link),
      timer(timer),
      window(window),
      request(kj::mv(request)),
      before(kj::mv(before)),
      begun(timer.now()),
      frame(kj::refcounted<ObservedFrame>()) {
  frame->id = id;
  frame->epoch = epoch;
  frame->window = window;
  frame->elements = this->request.elements;
  frame->depth = this->request.depth;
}

TreeBounds Observing::treeBounds() {
  auto time = request.timeMs * kj::MILLISECONDS;
  return {request.elements, request.depth,
          kj::min(begun + bounds::CALL + time, timer.now() + time)};
}

kj::Promise<Seen> Observing::run() {
  auto found = findWindow();
  if (!found.ok()) return Seen(found.refusal());
  return link.lock().then([this](Lock lock) -> kj::Promise<Seen> {
    if (lock == Lock::LOCKED) return Seen(SCREEN_LOCKED);
    return observe().then([this](Seen&& seen) {
      // It may have been locked while it was read.
      return link.lock().then([seen = kj::mv(seen)](Lock now) mutable -> Seen {
        if (now == Lock::LOCKED) return SCREEN_LOCKED;
        return kj::mv(seen);
      });
    });
  });
}

kj::Promise<Seen> Observing::observe() {
  return link.bus().then([this](Result<kj::Own<Bus>>&& bus) -> kj::Promise<Seen> {
    if (!bus.ok()) return Seen(bus.refusal());
    frame->bus = kj::mv(*bus);
    KJ_IF_MAYBE (below, request.below) return observeBelow(*below);
    return observeWhole();
  });
}

Result<Done> Observing::findWindow() {
  auto opened = link.display();
  if (!opened.ok()) return opened.refusal();
  display = kj::mv(*opened);
  bool cut;
  tops = display->topLevels(cut);
  for (auto& each : tops) {
    if (each.id == window.window) top = &each;
  }
  uint64_t start = startOf(window.process.pid).orDefault(0);
  if (top == nullptr || start == 0) {
    return Refusal{RefusalCode::TARGET_MISSING, "There is no such window."};
  }
  if (top->pid != window.process.pid || start != window.process.start) {
    return Refusal{RefusalCode::TARGET_CHANGED, "The window belongs to another process."};
  }
  auto layout = display->layout();
  frame->bounds = top->bounds;
  frame->topology = layout.topology;
  screen = layout.screen;
  monitors = link.monitors().list(layout);
  return Done();
}

// ---- The whole window ------------------------------------------------------------------------

kj::Promise<Seen> Observing::observeWhole() {
  KJ_IF_MAYBE (drawn, drawnSince()) {
    return frame->bus->mirror.refresh(window.window, treeBounds(), kj::mv(*drawn))
        .then([this](kj::Maybe<Mirror::Copy&> copy) -> kj::Promise<Seen> {
          KJ_IF_MAYBE (known, copy) {
            frame->toolkit = known->toolkit.clone();
            return show(known->tree).then([this](Seen&& seen) {
              frame->bus->mirror.audit(window.window);
              return kj::mv(seen);
            });
          }
          return observeFull();
        });
  }
  return observeFull();
}

// Where the application has drawn since the mirror's copy was shown, in its toolkit's coordinates;
// nothing when that is not known, or the copy cannot be of this window any more.
kj::Maybe<kj::Vector<Rect>> Observing::drawnSince() {
  auto copy = frame->bus->mirror.copyOf(window.window);
  if (copy == nullptr) return nullptr;
  auto& first = *copy->tree.nodes[0];
  auto stated = first.extents.orDefault(Rect());
  auto drawing = link.drawing();
  bool sees = drawing.ok() && x11::isInSight(*top, tops, screen);
  // Another title or size may mean that another accessible window is this one now.
  if (!sees || first.name != top->title || !fitsSize(stated, *top)) return nullptr;
  auto scale = mappingOf(copy->toolkit, stated, *top);
  return (*drawing)->take(top->id).map([&](kj::Vector<Rect>&& pixels) {
    kj::Vector<Rect> out;
    for (auto& rect : pixels) out.add(unmapped(scale, rect));
    return out;
  });
}

kj::Promise<Seen> Observing::observeFull() {
  return findAccessible().then([this](Result<Done>&& accessible) -> kj::Promise<Seen> {
    if (!accessible.ok()) return Seen(accessible.refusal());
    if (frame->toolkit.tellsChanges()) {
      // Before the reading, so that nothing drawn meanwhile is missed.
      auto drawing = link.drawing();
      if (drawing.ok()) (*drawing)->watch(top->id);
    }
    frame->bus->mirror.begin(window.window, root, frame->toolkit);
    return readUntilPage().then([this](Tree&& tree) {
      KJ_IF_MAYBE (copy,
                   frame->bus->mirror.keep(window.window, frame->toolkit, treeBounds(), tree)) {
        return show(copy->tree);
      }
      return show(*read.emplace(kj::heap(kj::mv(tree))));
    });
  });
}

kj::Promise<Result<Done>> Observing::findAccessible() {
  return accessibility::readApplications(frame->bus->objects, window.process.pid,
                                         timer.now() + bounds::CALL)
      .then([this](kj::Maybe<Applications>&& found) { return choose(kj::mv(found)); });
}

Result<Done> Observing::choose(kj::Maybe<Applications> found) {
  KJ_IF_MAYBE (applications, found) {
    auto fitting = matches(*top, tops, *applications);
    if (fitting.size() == 1) {
      frame->toolkit = kj::mv(fitting[0].application->toolkit);
      root = kj::mv(fitting[0].window->ref);
      return Done();
    }
    if (fitting.size() > 1) {
      return Refusal{RefusalCode::AMBIGUOUS_TARGET, "Several accessible windows fit this window."};
    }
    for (auto& application : *applications) {
      if (!application->answering) {
        return Refusal{RefusalCode::NOT_ANSWERING, "The application does not answer."};
      }
    }
    if (applications->empty()) {
      return Refusal{RefusalCode::ACCESSIBILITY_OFF, "The application offers no tree."};
    }
    if (!top->managed) {
      return Refusal{RefusalCode::ACCESSIBILITY_OFF, "What is in it is in its owner's tree."};
    }
    return Refusal{RefusalCode::WARMING_UP, "The application does not offer this window yet."};
  }
  return Refusal{RefusalCode::NO_ACCESSIBILITY_BUS, "The registry does not answer."};
}

// A browser's first answer may lack the page. Once it was waited for in vain, this window is known
// to offer none.
kj::Promise<Tree> Observing::readUntilPage() {
  auto& pageless = frame->bus->pageless;
  bool waits = frame->toolkit.isChromium() && !pageless.contains(window.window);
  struct Reading {
    Observing& self;
    unsigned looks;
    TreeBounds limits;  // Of all looks together.
    kj::Promise<Tree> run() {
      auto reading =
          readTree(self.frame->bus->objects, self.timer, self.root, self.frame->toolkit, limits);
      return reading.then([this](Tree&& tree) -> kj::Promise<Tree> {
        bool page = pageIn(tree, self.frame->toolkit) != nullptr;
        bool whole = tree.nodes[0]->fault == Fault::NONE && !tree.cuts.time;
        if (page || !whole || --looks == 0) return kj::mv(tree);
        return self.timer.afterDelay(PAGE_PAUSE).then([this]() { return run(); });
      });
    }
  };
  auto reading = kj::heap<Reading>(Reading{*this, waits ? PAGE_LOOKS : 1, treeBounds()});
  auto tree = reading->run();
  return tree.attach(kj::mv(reading)).then([this, waits](Tree&& read) {
    bool page = pageIn(read, frame->toolkit) != nullptr;
    auto& known = frame->bus->pageless;
    if (waits && !page && known.size() < bounds::WINDOWS) known.insert(window.window);
    return kj::mv(read);
  });
}

// ---- A part of it ----------------------------------------------------------------------------

kj::Promise<Seen> Observing::observeBelow(const Below& below) {
  KJ_IF_MAYBE (held, before) {
    auto& known = **held;
    if (known.id != below.frame) {
      return Seen(Refusal{RefusalCode::STALE_FRAME, "The frame is not the last one."});
    }
    if (known.epoch != below.epoch) {
      return Seen(Refusal{RefusalCode::STALE_EPOCH, "The frame has another epoch."});
    }
    if (!(known.window == window)) {
      return Seen(Refusal{RefusalCode::TARGET_MISMATCH, "The frame shows another window."});
    }
    bool hers = below.element < known.records.size() &&
                known.records[below.element].observed == below.digest;
    if (!hers || known.bus.get() != frame->bus.get()) {
      return Seen(Refusal{RefusalCode::STALE_FRAME, "The frame has no such element."});
    }
    frame->toolkit = known.toolkit.clone();
    return lookAt(known, below.element, timer.now() + bounds::CALL)
        .then([this, &known, element = below.element,
               first = below.first](kj::Own<Look>&& look) -> kj::Promise<Seen> {
          auto there = checkThere(*look);
          if (!there.ok()) return Seen(there.refusal());
          auto same = checkSame(known, element, *look);
          if (!same.ok()) return Seen(same.refusal());
          kj::Vector<Step> way;
          for (uint32_t at = element;; at = known.records[at].parent) {
            way.add(Step{known.records[at].ref.clone(), known.records[at].position});
            if (at == 0) break;
          }
          std::reverse(way.begin(), way.end());
          return readBelow(frame->bus->objects, timer, way.releaseAsArray(), first, frame->toolkit,
                           treeBounds())
              .then([this](Tree&& tree) { return show(*read.emplace(kj::heap(kj::mv(tree)))); });
        });
  }
  return Seen(Refusal{RefusalCode::STALE_FRAME, "There is no frame."});
}

// ---- What it shows ---------------------------------------------------------------------------

kj::Promise<Seen> Observing::show(const Tree& tree) {
  page = pageIn(tree, frame->toolkit);
  auto address = kj::Promise<void>(kj::READY_NOW);
  KJ_IF_MAYBE (index, page) {
    auto& document = *tree.nodes[*index];
    address = frame->bus->objects.documentUrl(document.ref, timer.now() + bounds::CALL)
                  .then([this, &document](Answered<kj::String>&& answer) {
                    url = kj::mv(answer.value).orDefault(kj::String());
                    frame->page =
                        PageRecord{document.ref.clone(), pageDigest(frame->id, document.ref, url)};
                  });
  }
  return address.then([this]() { return prepareCamera(); }).then([this, &tree]() {
    return describe(tree);
  });
}

kj::Promise<void> Observing::prepareCamera() {
  if (!request.picture) return kj::READY_NOW;
  auto camera = link.camera();
  if (!camera.ok()) return kj::READY_NOW;
  return (*camera)->prepare(top->id);
}

Seen Observing::describe(const Tree& tree) {
  const Node& first = *tree.nodes[0];
  // What it answered before it fell silent is shown.
  if (first.fault == Fault::LATE && tree.nodes.size() == 1) {
    return Refusal{RefusalCode::NOT_ANSWERING, "The application does not answer."};
  }
  if (first.fault == Fault::UNREADABLE && tree.nodes.size() == 1) {
    return Refusal{RefusalCode::TARGET_MISSING, "The window went away while it was read."};
  }
  mapping = mappingOf(frame->toolkit, first.extents.orDefault(Rect()), *top);

  Observation out;
  out.frame.id = frame->id;
  out.frame.epoch = frame->epoch;
  out.frame.window = window;
  out.frame.title = kj::str(top->title);
  out.frame.bounds = frame->bounds;
  out.frame.topology = frame->topology;
  out.frame.monitors = kj::mv(monitors);
  out.cuts = tree.cuts;
  out.textBytes = request.textBytes;
  out.content = contentOf(tree);
  out.below = tree.below;
  out.elements.reserve(tree.nodes.size());
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    auto element = elementOf(tree, i, out);
    if (element.fault != Fault::NONE) ++out.faults;
    out.elements.add(kj::mv(element));
  }
  KJ_IF_MAYBE (index, page) {
    KJ_IF_MAYBE (record, frame->page) {
      out.frame.page = Page{kj::str(url), record->digest, *index};
    }
  }
  describeChanges(out);
  auto pictured = takePicture(out);
  if (!pictured.ok()) return pictured.refusal();
  out.elapsedMs = static_cast<uint32_t>((timer.now() - begun) / kj::MILLISECONDS);
  return kj::mv(out);
}

Content Observing::contentOf(const Tree& tree) const {
  KJ_IF_MAYBE (index, page) {
    const Node& document = *tree.nodes[*index];
    bool bare = document.childCount <= 0 && !isBlank(url);
    bool loads = document.has(accessibility::state::BUSY) || bare;
    return loads ? Content::PAGE_LOADING : Content::ELEMENTS;
  }
  // A page may stand in what is missing.
  bool all = request.below == nullptr && !tree.cuts.time;
  for (auto& node : tree.nodes) {
    if (node->fault != Fault::NONE || node->childrenCut) all = false;
  }
  auto& first = *tree.nodes[0];
  // A browser's dialogs have no page.
  bool browses = frame->toolkit.isChromium() && first.role == accessibility::role::FRAME;
  if (browses && all) return Content::PAGE_OFF;
  bool empty = tree.nodes.size() == 1 && first.childCount == 0;
  return empty && all ? Content::EMPTY : Content::ELEMENTS;
}

Element Observing::elementOf(const Tree& tree, size_t index, Observation& seen) {
  const Node& node = *tree.nodes[index];
  Element out;
  out.parent = node.parent;
  out.depth = node.depth;
  out.position = node.position;
  out.role = kj::str(accessibility::roleName(node.role));
  out.name = kj::str(node.name);
  out.path = kj::str(node.ref.path);
  out.domId = kj::str(node.domId);
  out.states = accessibility::wireStates(node.stateBits);
  out.faces.bits = node.interfaces;
  out.children = static_cast<uint32_t>(kj::max(0, node.childCount));
  for (auto& action : node.actions) out.actions.add(kj::str(action));
  KJ_IF_MAYBE (extents, node.extents) {
    if (!isElsewhere(tree, node)) out.bounds = mapped(mapping, *extents);
  }
  // The window's own extents may include the window manager's frame.
  if (index == 0) out.bounds = Rect{0, 0, top->bounds.width, top->bounds.height};
  KJ_SWITCH_ONEOF(node.value) {
    KJ_CASE_ONEOF(text, kj::String) { out.value = kj::str(text); }
    KJ_CASE_ONEOF(number, double) { out.value = kj::str(number); }
    KJ_CASE_ONEOF(nothing, NoValue) {}
  }
  out.textCut = node.valueCut;
  out.settable = accessibility::isSettable(node, frame->toolkit);
  out.secure = node.isSecure();
  out.childrenCut = node.childrenCut;
  // GTK 4 does not say it of what stands in a hidden part.
  bool above = index == 0 || !frame->toolkit.isGtk4() || seen.elements[node.parent].shows;
  out.shows = top->visible && above && accessibility::isShowing(node, frame->toolkit);
  out.fault = node.fault;

  kj::Vector<uint32_t> roles;
  for (size_t at = index; at != 0 && roles.size() < ANCESTOR_ROLES;) {
    at = tree.nodes[at]->parent;
    roles.add(tree.nodes[at]->role);
  }
  Record record;
  record.ref = node.ref.clone();
  record.parent = node.parent;
  record.position = node.position;
  record.recognized = recognizedBy(frame->id, node, roles);
  record.observed = elementDigest(frame->id, window.process, node.ref, record.recognized);
  record.digest = record.observed;
  record.appearance = appearanceOf(out);
  record.domId = kj::str(node.domId);
  record.complete = node.fault == Fault::NONE && !node.childrenCut;
  record.isPage = node.isPage();
  out.digest = record.observed;
  frame->records.add(kj::mv(record));
  return out;
}

// What is not there is gone, and what was not there is new, only where the element above it was
// read whole: a part that was cut, or late, says nothing of what is in it.
void Observing::describeChanges(Observation& out) {
  KJ_IF_MAYBE (held, before) {
    auto& earlier = **held;
    if (!(earlier.window == window) || earlier.bus.get() != frame->bus.get()) return;
    out.before = earlier.id;
    auto was = placesOf(earlier), is = placesOf(*frame);
    for (size_t i = 0; i < out.elements.size(); ++i) {
      auto& record = frame->records[i];
      auto& change = out.elements[i].change;
      KJ_IF_MAYBE (at, was.find(record.ref.path)) {
        bool same = earlier.records[*at].appearance == record.appearance;
        change = same ? Change::SAME : Change::CHANGED;
        continue;
      }
      if (i == 0) continue;
      bool above = out.elements[record.parent].change == Change::ADDED;
      KJ_IF_MAYBE (parent, was.find(frame->records[record.parent].ref.path)) {
        above = earlier.records[*parent].complete;
      }
      change = above ? Change::ADDED : Change::UNKNOWN;
    }
    auto gone = kj::heapArray<bool>(earlier.records.size());
    for (size_t i = 0; i < gone.size(); ++i) {
      auto& record = earlier.records[i];
      gone[i] = false;
      if (i == 0 || is.find(record.ref.path) != nullptr) continue;
      gone[i] = gone[record.parent];
      KJ_IF_MAYBE (parent, is.find(earlier.records[record.parent].ref.path)) {
        gone[i] = frame->records[*parent].complete;
      }
      if (gone[i]) out.gone.add(static_cast<uint32_t>(i));
    }
  }
}

Result<Done> Observing::takePicture(Observation& out) {
  if (!request.picture) return Done();
  auto camera = link.camera();
  if (!camera.ok()) return camera.refusal();
  KJ_IF_MAYBE (taken, (*camera)->take(top->id)) {
    bool same =
        taken->info.width == frame->bounds.width && taken->info.height == frame->bounds.height;
    if (!same) {
      return Refusal{RefusalCode::TARGET_CHANGED, "The window was resized while it was read."};
    }
    taken->info.frame = frame->id;
    out.picture = kj::mv(taken->info);
    out.pixels = kj::mv(taken->pixels);
    return Done();
  }
  return Refusal{RefusalCode::CAPTURE_FAILED, "The window has no picture."};
}

}  // namespace praefectus::desktop
