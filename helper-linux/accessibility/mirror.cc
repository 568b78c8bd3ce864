#include "helper-linux/accessibility/mirror.h"

#include "helper-linux/accessibility/cache.h"
#include "helper-linux/accessibility/lanes.h"
#include "ipc/bounds.h"
#include "ipc/rect.h"

namespace praefectus::accessibility {
namespace {

constexpr size_t WINDOWS = 4;
constexpr size_t SILENT_CHANGERS = 256;
// Between two comparisons with the application's own word.
constexpr kj::Duration AUDIT = 30 * kj::SECONDS;

constexpr kj::StringPtr OBJECT_EVENT = "org.a11y.atspi.Event.Object"_kj;
constexpr kj::StringPtr CACHE = "org.a11y.atspi.Cache"_kj;

// Whether the application's cache says of a node what was read of it.
bool saysTheSame(const ItemCache& said, const Node& node, size_t children) {
  Node now;
  now.ref = node.ref.clone();
  if (!said.fill(now)) return false;
  bool same = now.role == node.role && now.name == node.name && now.stateBits == node.stateBits &&
              now.interfaces == node.interfaces;
  KJ_IF_MAYBE (listed, said.childrenOf(now)) {
    same = same && (node.childrenCut || listed->size() == children);
  }
  return same;
}

// The detail of an event: "showing", "accessible-name".
kj::StringPtr detailOf(const dbus::Message& signal) {
  kj::StringPtr out;
  if (!signal.signature.startsWith("s")) return out;
  auto broken = kj::runCatchingExceptions([&]() { out = signal.body().text(); });
  return broken == nullptr ? out : kj::StringPtr();
}

}  // namespace

// What is known of a window, and what its application said of it since.
struct Mirror::Kept {
  Copy copy;
  ObjectRef window;
  bool whole = false;    // There is a tree.
  bool unsure = false;   // Something happened that only a full reading can follow.
  bool reading = false;  // Being brought up to date; when that is given up, nobody knows.
  kj::HashMap<kj::String, uint32_t> places;
  kj::HashSet<uint32_t> changed;  // To be read again, without what is below.
  kj::HashSet<uint32_t> moved;    // Their extents and those of all below.
  kj::Maybe<kj::TimePoint> audited;

  // A change of the window itself may make it another window's.
  void change(uint32_t index) {
    if (index == 0) unsure = true;
    if (!changed.contains(index)) changed.insert(index);
  }

  // Parents come before their children.
  void changeAllBelow(uint32_t top) {
    auto isBelow = kj::heapArray<bool>(copy.tree.nodes.size());
    for (auto& node : copy.tree.nodes) {
      isBelow[node->index] = node->index == top || (node->index != 0 && isBelow[node->parent]);
      if (isBelow[node->index] && node->index != top) change(node->index);
    }
  }

  // What stands where something was drawn, and what is hidden in it and may have come to light.
  void change(kj::ArrayPtr<const Rect> drawn) {
    auto& nodes = copy.tree.nodes;
    auto touched = kj::heapArray<bool>(nodes.size());
    for (auto& node : nodes) {
      bool hidden = !mayShow(*node, copy.toolkit);
      touched[node->index] = hidden && node->index != 0 && touched[node->parent];
      KJ_IF_MAYBE (extents, node->extents) {
        for (auto& rect : drawn) {
          touched[node->index] = touched[node->index] || intersect(*extents, rect);
        }
      }
      if (touched[node->index] && !changed.contains(node->index)) changed.insert(node->index);
    }
  }

  void hear(const dbus::Message& signal) {
    if (!whole) {
      // Being read for the first time: whatever changed meanwhile may have been read before.
      unsure = unsure || signal.interface == OBJECT_EVENT;
      return;
    }
    if (signal.interface == CACHE) {
      hearCache(signal);
    } else if (signal.interface == OBJECT_EVENT) {
      KJ_IF_MAYBE (index, places.find(signal.path)) hearObject(signal, *index);
    }
  }

  void hearObject(const dbus::Message& signal, uint32_t index) {
    auto detail = detailOf(signal);
    if (signal.member == "StateChanged") {
      bool appears = detail == "showing" || detail == "visible" || detail == "defunct";
      if (appears) unsure = true;
      change(index);
      if (detail == "sensitive" || detail == "enabled") changeAllBelow(index);
    } else if (signal.member == "PropertyChange") {
      if (detail == "accessible-parent") unsure = true;
      change(index);
    } else if (signal.member == "TextChanged" || signal.member == "AttributesChanged") {
      change(index);
    } else if (signal.member == "BoundsChanged") {
      if (!moved.contains(index)) moved.insert(index);
    } else if (signal.member == "SelectionChanged" || signal.member == "VisibleDataChanged") {
      change(index);
      changeAllBelow(index);
    } else if (signal.member == "ChildrenChanged" || signal.member == "ModelChanged") {
      unsure = true;
    }
  }

  // Objects that enter or leave an application's cache are often no news, only asked for late.
  void hearCache(const dbus::Message& signal) {
    bool gone = signal.member == "RemoveAccessible";
    auto broken = kj::runCatchingExceptions([&]() {
      auto body = signal.body();
      body.structure();
      auto object = readObject(body);
      bool known = places.find(object.path) != nullptr;
      if (gone) {
        unsure = unsure || known;
        return;
      }
      readObject(body);
      bool ours = places.find(readObject(body).path) != nullptr;
      unsure = unsure || (ours && !known);
    });
    if (broken != nullptr) unsure = true;
  }
};

Mirror::Mirror(Objects& objects, kj::Timer& timer) : objects(objects), timer(timer) {}
Mirror::~Mirror() noexcept(false) = default;

Mirror::Kept* Mirror::find(uint64_t key) {
  for (auto& kept : windows) {
    if (kept->copy.key == key) return kept.get();
  }
  return nullptr;
}

void Mirror::drop(uint64_t key) {
  for (size_t i = 0; i < windows.size(); ++i) {
    if (windows[i]->copy.key != key) continue;
    for (size_t j = i; j + 1 < windows.size(); ++j) windows[j] = kj::mv(windows[j + 1]);
    windows.removeLast();
    return;
  }
}

// It stays where it is: a reading that goes on may be looking at it.
void Mirror::distrust(uint64_t key) {
  if (auto kept = find(key)) kept->unsure = true;
}

void Mirror::begin(uint64_t key, const ObjectRef& window, const Toolkit& toolkit) {
  auditing = nullptr;
  drop(key);
  if (!toolkit.tellsChanges() || silentChangers.contains(window.bus)) return;
  if (windows.size() >= WINDOWS) drop(windows[0]->copy.key);
  auto kept = kj::heap<Kept>();
  kept->copy.key = key;
  kept->window = window.clone();
  windows.add(kj::mv(kept));
}

kj::Maybe<Mirror::Copy&> Mirror::keep(uint64_t key, const Toolkit& toolkit, TreeBounds bounds,
                                      Tree& tree) {
  auto kept = find(key);
  if (kept == nullptr) return nullptr;
  kept->copy.toolkit = toolkit.clone();
  kept->copy.elements = bounds.elements;
  kept->copy.depth = bounds.depth;
  kept->copy.tree = kj::mv(tree);
  kept->whole = true;
  auto& read = kept->copy.tree;
  for (auto& node : read.nodes) {
    // What was not read whole, by our bounds or by a fault, is read anew each time.
    if (node->fault != Fault::NONE) kept->unsure = true;
    kept->places.insert(kj::str(node->ref.path), node->index);
  }
  if (read.cuts.time || !read.told) kept->unsure = true;
  return kept->copy;
}

const Mirror::Copy* Mirror::copyOf(uint64_t key) {
  auto kept = find(key);
  return kept == nullptr || !kept->whole ? nullptr : &kept->copy;
}

kj::Promise<kj::Maybe<Mirror::Copy&>> Mirror::refresh(uint64_t key, TreeBounds bounds,
                                                      kj::Vector<Rect> drawn) {
  using Found = kj::Maybe<Copy&>;
  auditing = nullptr;
  auto kept = find(key);
  bool usable = kept != nullptr && kept->whole && !kept->unsure && !kept->reading &&
                kept->copy.elements == bounds.elements && kept->copy.depth == bounds.depth;
  if (!usable) return Found(nullptr);
  kept->reading = true;
  kept->change(drawn);
  auto deadline = kj::min(bounds.deadline, timer.now() + bounds::CALL);
  // Whatever the application said before it answers has been heard by then.
  return objects.states(kept->window, deadline)
      .then([this, kept, bounds](Answered<uint64_t>&& states) -> kj::Promise<bool> {
        KJ_IF_MAYBE (bits, states.value) {
          bool same = *bits == kept->copy.tree.nodes[0]->stateBits;
          if (same && !kept->unsure) return readAgain(*kept, bounds);
        }
        return false;
      })
      .then([kept](bool done) -> Found {
        kept->reading = false;
        if (done && !kept->unsure) return kept->copy;
        kept->unsure = true;
        return nullptr;
      });
}

kj::Promise<bool> Mirror::readAgain(Kept& kept, TreeBounds bounds) {
  auto& nodes = kept.copy.tree.nodes;
  if ((kept.changed.size() + kept.moved.size()) * 2 > nodes.size()) return false;
  auto deadline = [this, bounds]() { return kj::min(bounds.deadline, timer.now() + bounds::CALL); };
  kj::Vector<Node*> asked;
  for (auto& node : nodes) {
    if (kept.changed.contains(node->index) || kept.moved.contains(node->index)) {
      asked.add(node.get());
    }
  }
  auto changed = kj::mv(kept.changed);
  kept.changed = kj::HashSet<uint32_t>();
  kept.moved.clear();
  auto places = kj::heapArray<kj::Maybe<Rect>>(nodes.size());
  for (auto& node : nodes) places[node->index] = node->extents;

  auto reading =
      forEach(kj::mv(asked), [this, &kept, changed = kj::mv(changed), deadline](Node& node) {
        if (changed.contains(node.index)) return readNode(kept, node, deadline());
        return mayShow(node, kept.copy.toolkit)
                   ? readExtents(objects, kept.copy.toolkit, node, deadline())
                   : kj::Promise<void>(kj::READY_NOW);
      });
  return reading
      .then([this, &kept, deadline, places = kj::mv(places)]() {
        // What is below an element that moved may have moved with it.
        auto& all = kept.copy.tree.nodes;
        auto isMoved = kj::heapArray<bool>(all.size());
        kj::Vector<Node*> below;
        for (auto& node : all) {
          bool above = node->index != 0 && isMoved[node->parent];
          isMoved[node->index] = above || places[node->index] != node->extents;
          if (above && mayShow(*node, kept.copy.toolkit)) below.add(node.get());
        }
        return forEach(kj::mv(below), [this, &kept, deadline](Node& node) {
          return readExtents(objects, kept.copy.toolkit, node, deadline());
        });
      })
      .then([&kept]() {
        for (auto& node : kept.copy.tree.nodes) {
          if (node->fault != Fault::NONE) return false;
        }
        return true;
      });
}

kj::Promise<void> Mirror::readNode(Kept& kept, Node& node, kj::TimePoint deadline) {
  auto children = node.childCount;
  bool showed = mayShow(node, kept.copy.toolkit);
  return readBasics(objects, node, deadline)
      .then([this, &kept, &node, children, showed, deadline]() -> kj::Promise<void> {
        bool shows = mayShow(node, kept.copy.toolkit);
        // What shows stands before what is hidden, so it has another place now.
        if (node.childCount != children || shows != showed) kept.unsure = true;
        if (node.fault != Fault::NONE) return kj::READY_NOW;
        return readDetails(objects, kept.copy.toolkit, node, deadline);
      });
}

void Mirror::audit(uint64_t key) {
  auto kept = find(key);
  if (kept == nullptr || kept->unsure || kept->window.bus.size() == 0) return;
  bool due = kept->audited.map([this](kj::TimePoint at) { return timer.now() - at >= AUDIT; })
                 .orDefault(true);
  if (!due) return;
  kept->audited = timer.now();
  auditing = objects.cache(kept->window.bus, timer.now() + bounds::CALL)
                 .then([this, key](dbus::Reply&& reply) {
                   auto known = find(key);
                   if (known != nullptr && !known->unsure) compare(*known, reply);
                 })
                 .eagerlyEvaluate(nullptr);
}

void Mirror::compare(Kept& kept, const dbus::Reply& reply) {
  ItemCache said;
  if (!said.take(reply, kept.window.bus)) return;
  auto children = kj::heapArray<size_t>(kept.copy.tree.nodes.size());
  for (auto& node : kept.copy.tree.nodes) {
    children[node->index] = 0;
    if (node->index != 0) ++children[node->parent];
  }
  for (auto& node : kept.copy.tree.nodes) {
    // What it has told of is no secret. What its cache never had was asked for by itself.
    bool told = kept.changed.contains(node->index);
    if (told || !node->cached || saysTheSame(said, *node, children[node->index])) continue;
    if (silentChangers.size() >= SILENT_CHANGERS) silentChangers.clear();
    if (!silentChangers.contains(kept.window.bus)) silentChangers.insert(kj::str(kept.window.bus));
    kept.unsure = true;
    return;
  }
}

void Mirror::hear(const dbus::Message& signal) {
  for (auto& kept : windows) {
    if (kept->window.bus == signal.sender) kept->hear(signal);
  }
}

}  // namespace praefectus::accessibility
