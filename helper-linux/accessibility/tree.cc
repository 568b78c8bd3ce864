#include "helper-linux/accessibility/tree.h"

#include "helper-linux/accessibility/cache.h"
#include "helper-linux/accessibility/lanes.h"
#include "ipc/bounds.h"

namespace praefectus::accessibility {
namespace {

class TreeReader {
 public:
  TreeReader(Objects& objects, kj::Timer& timer, const Toolkit& toolkit, TreeBounds limits)
      : objects(objects), timer(timer), toolkit(toolkit), limits(limits) {
    // Some of the time is kept for the details of what was found.
    auto now = timer.now();
    until = now + (limits.deadline - now) * 2 / 3;
  }

  kj::Promise<Tree> read(const ObjectRef& window) {
    add(window.clone(), 0, 0, 0);
    // Asked before the cache, so that an application that is long about its cache still answers.
    auto first = timed(readBasics(objects, *tree.nodes[0], callDeadline()));
    return both(kj::mv(first), readCache()).then([this]() -> kj::Promise<Tree> {
      if (tree.nodes[0]->fault == Fault::LATE) return kj::mv(tree);
      tree.nodes[0]->cached = cache.holds(tree.nodes[0]->ref.path);
      return grow(0).then([this]() { return finish(); });
    });
  }

  kj::Promise<Tree> readFrom(kj::ArrayPtr<Step> way, uint32_t first) {
    for (auto& step : way) {
      uint32_t index = static_cast<uint32_t>(tree.nodes.size());
      add(kj::mv(step.ref), index == 0 ? 0 : index - 1, static_cast<uint16_t>(index),
          step.position);
    }
    tree.below = static_cast<uint32_t>(way.size() - 1);
    for (auto& node : tree.nodes) node->childrenCut = node.get() != tree.nodes.back().get();
    auto basics = timed(forEach(pointers(0), [this](Node& node) { return ask(node); }));
    return both(kj::mv(basics), readCache()).then([this, first]() -> kj::Promise<Tree> {
      Node& top = *tree.nodes.back();
      if (top.fault == Fault::LATE) return finish();
      firstChild = first;
      return grow(tree.below).then([this]() { return finish(); });
    });
  }

 private:
  static kj::Promise<void> both(kj::Promise<void> a, kj::Promise<void> b) {
    auto parts = kj::heapArrayBuilder<kj::Promise<void>>(2);
    parts.add(kj::mv(a));
    parts.add(kj::mv(b));
    return kj::joinPromises(parts.finish());
  }

  kj::TimePoint callDeadline() const {
    return busy ? until : kj::min(until, timer.now() + bounds::CALL);
  }
  bool outOfTime() const { return timer.now() >= until; }

  // An application that takes its time is not asked so much at once that its last answers are late.
  kj::Promise<void> timed(kj::Promise<void> first) {
    return first.then([this, begun = timer.now(), nodes = tree.nodes.size()]() {
      auto each = (timer.now() - begun) / static_cast<int64_t>(nodes);
      constexpr auto WAIT = bounds::CALL / 2;
      if (each * static_cast<int64_t>(WIDTH) > WAIT) {
        width = static_cast<size_t>(kj::max(int64_t{1}, WAIT / each));
      }
    });
  }

  kj::Promise<void> ask(Node& node) {
    if (!outOfTime()) return readBasics(objects, node, callDeadline());
    node.fault = Fault::LATE;
    return kj::READY_NOW;
  }

  kj::Promise<void> readCache() {
    kj::StringPtr bus = tree.nodes[0]->ref.bus;
    return objects.listenTo(bus, callDeadline())
        .then([this, bus](bool told) {
          tree.told = told;
          return objects.cache(bus, callDeadline());
        })
        .then([this, bus](dbus::Reply&& reply) {
          bool taken = cache.take(reply, bus);
          // It goes on working at our question, and answers the next ones after that.
          busy = reply.end == dbus::End::LATE;
          bool useless = reply.end == dbus::End::REPLIED || busy;
          if (!taken && useless) objects.doWithoutCache(bus);
        });
  }

  void add(ObjectRef ref, uint32_t parent, uint16_t depth, uint32_t position) {
    seen.insert(kj::str(ref.path));
    auto node = kj::heap<Node>();
    node->ref = kj::mv(ref);
    node->parent = parent;
    node->depth = depth;
    node->position = position;
    place(kj::mv(node));
  }

  kj::Vector<Node*> pointers(size_t begin) {
    kj::Vector<Node*> out;
    for (size_t i = begin; i < tree.nodes.size(); ++i) out.add(tree.nodes[i].get());
    return out;
  }

  // Reads the children of the nodes from `begin` on, adds them, and goes on with those; then with
  // what was put off because it is hidden.
  kj::Promise<void> grow(size_t begin) {
    size_t end = tree.nodes.size();
    if (begin == end) {
      if (putOff.empty()) return kj::READY_NOW;
      hiddenToo = true;
      auto late = kj::mv(putOff);
      putOff = kj::Vector<kj::Own<Node>>();
      for (auto& node : late) place(kj::mv(node));
      return tree.nodes.size() == end ? kj::Promise<void>(kj::READY_NOW) : grow(end);
    }
    if (outOfTime()) return stop(begin);
    found = kj::Vector<kj::Own<Node>>();
    kj::Vector<Node*> asked;
    levelBegin = begin;
    lists = kj::heapArray<kj::Vector<ObjectRef>>(end - begin);
    for (size_t i = begin; i < end; ++i) {
      Node& node = *tree.nodes[i];
      if (!takeCached(node)) asked.add(&node);
    }
    return forEach(
               kj::mv(asked), [this](Node& node) { return askChildren(node); }, width)
        .then([this, begin, end]() {
          for (size_t i = begin; i < end; ++i) addCandidates(static_cast<uint32_t>(i));
          kj::Vector<Node*> unknown;
          for (auto& node : found) {
            if (!node->known && !cache.fill(*node)) unknown.add(node.get());
          }
          return forEach(
              kj::mv(unknown), [this](Node& node) { return ask(node); }, width);
        })
        .then([this, end]() {
          for (auto& node : found) {
            if (hiddenToo || mayShow(*node, toolkit) || node->fault != Fault::NONE) {
              place(kj::mv(node));
            } else {
              putOff.add(kj::mv(node));
            }
          }
          return grow(end);
        });
  }

  // No time is left to look below the nodes from `begin` on.
  kj::Promise<void> stop(size_t begin) {
    tree.cuts.time = true;
    for (size_t i = begin; i < tree.nodes.size(); ++i) {
      tree.nodes[i]->childrenCut = tree.nodes[i]->childCount != 0;
    }
    for (auto& node : putOff) tree.nodes[node->parent]->childrenCut = true;
    return kj::READY_NOW;
  }

  kj::Vector<ObjectRef>& listOf(const Node& node) { return lists[node.index - levelBegin]; }

  bool takeCached(Node& node) {
    if (node.fault == Fault::LATE) {
      node.childrenCut = true;
      return true;
    }
    KJ_IF_MAYBE (paths, cache.childrenOf(node)) {
      auto& list = listOf(node);
      for (auto& path : *paths) list.add(ObjectRef{kj::str(node.ref.bus), kj::mv(path)});
      return true;
    }
    return false;
  }

  kj::Promise<void> askChildren(Node& node) {
    // Some caches count no children where there are some: the object itself has the last word.
    auto counted = objects.childCount(node.ref, callDeadline());
    return counted.then([this, &node](Answered<int32_t>&& count) -> kj::Promise<void> {
      busy = false;
      node.childCount = count.value.orDefault(-1);
      if (count.value == nullptr) node.fault = count.silent() ? Fault::LATE : Fault::UNREADABLE;
      // No object has a negative number of children; one that says so does not know.
      if (node.childCount < 0) node.childrenCut = true;
      if (node.childCount <= 0) return kj::READY_NOW;
      if (static_cast<uint32_t>(node.childCount) > bounds::CHILDREN) {
        if (isBelow(node)) return askOneByOne(node);
        node.fault = Fault::SKIPPED;
        node.childrenCut = true;
        return kj::READY_NOW;
      }
      return objects.children(node.ref, callDeadline())
          .then([this, &node](Answered<kj::Vector<ObjectRef>>&& children) {
            KJ_IF_MAYBE (list, children.value) {
              listOf(node) = kj::mv(*list);
            } else {
              node.fault = children.silent() ? Fault::LATE : Fault::UNREADABLE;
            }
          });
    });
  }

  bool isBelow(const Node& node) const { return firstChild != nullptr && node.index == tree.below; }

  // The children that fit, each by its place.
  kj::Promise<void> askOneByOne(Node& node) {
    uint32_t first = KJ_ASSERT_NONNULL(firstChild);
    uint32_t count = static_cast<uint32_t>(node.childCount);
    uint32_t wanted = kj::min(room(), count - kj::min(first, count));
    listBegin = first;
    if (wanted < count - kj::min(first, count)) {
      node.childrenCut = true;
      tree.cuts.elements = true;
    }
    return askFrom(node, first, first + wanted);
  }

  // Some at a time, for as long as there is time. What did not answer is left out, and said to be.
  kj::Promise<void> askFrom(Node& node, uint32_t begin, uint32_t end) {
    if (begin == end) return kj::READY_NOW;
    if (outOfTime()) {
      node.childrenCut = true;
      tree.cuts.time = true;
      return kj::READY_NOW;
    }
    uint32_t next = begin + kj::min(end - begin, static_cast<uint32_t>(4 * width));
    kj::Vector<kj::Promise<Answered<ObjectRef>>> asked;
    for (uint32_t i = begin; i < next; ++i) {
      asked.add(objects.childAt(node.ref, i, callDeadline()));
    }
    return kj::joinPromises(asked.releaseAsArray())
        .then([this, &node, next, end](kj::Array<Answered<ObjectRef>>&& answers) {
          for (auto& answer : answers) {
            auto& slot = listOf(node).add();
            KJ_IF_MAYBE (ref, answer.value) {
              slot = kj::mv(*ref);
            } else {
              node.childrenCut = true;
              if (answer.silent()) tree.cuts.time = true;
            }
          }
          return askFrom(node, next, end);
        });
  }

  uint32_t room() const {
    return limits.elements - kj::min(limits.elements, static_cast<uint32_t>(tree.nodes.size()));
  }

  // Turns the listed children of a node into candidates. What is in the cache costs nothing to
  // know; of what has to be asked no more is taken than there is room for.
  void addCandidates(uint32_t parent) {
    Node& above = *tree.nodes[parent];
    auto& children = listOf(above);
    if (children.empty()) return;
    if (above.depth >= limits.depth + tree.nodes[tree.below]->depth) {
      tree.cuts.depth = true;
      above.childrenCut = true;
      return;
    }
    size_t skip = isBelow(above) && listBegin == nullptr ? KJ_ASSERT_NONNULL(firstChild) : 0;
    if (skip > 0) above.childrenCut = true;
    for (size_t i = skip; i < children.size(); ++i) {
      ObjectRef& child = children[i];
      // An object embedded from another process is that process's, and not part of this window's.
      bool ours = child.bus == above.ref.bus;
      if (!ours) above.childrenCut = true;
      if (!ours || seen.contains(child.path)) continue;  // A tree that loops must not loop us.
      bool free = cache.holds(child.path);
      if (!free && found.size() >= room()) {
        leaveOut(above);
        break;
      }
      seen.insert(kj::str(child.path));
      auto node = kj::heap<Node>();
      node->ref = kj::mv(child);
      node->parent = parent;
      node->depth = static_cast<uint16_t>(above.depth + 1);
      node->position = static_cast<uint32_t>(i);
      if (isBelow(above)) node->position += listBegin.orDefault(0);
      found.add(kj::mv(node));
    }
  }

  void place(kj::Own<Node> node) {
    if (room() == 0) {
      leaveOut(*tree.nodes[node->parent]);
      return;
    }
    node->index = static_cast<uint32_t>(tree.nodes.size());
    tree.nodes.add(kj::mv(node));
  }

  void leaveOut(Node& parent) {
    parent.childrenCut = true;
    tree.cuts.elements = true;
  }

  kj::Promise<Tree> finish() {
    until = limits.deadline;
    return readDetailsFrom(0).then([this]() {
      if (outOfTime()) tree.cuts.time = true;
      return kj::mv(tree);
    });
  }

  // GTK 4 does not say what is hidden with its parent, so its levels are read one after the other,
  // and nothing is asked of what stands in something that does not show. The others are read in one
  // go.
  kj::Promise<void> readDetailsFrom(size_t begin) {
    size_t end = begin;
    kj::Vector<Node*> level;
    for (; end < tree.nodes.size(); ++end) {
      Node& node = *tree.nodes[end];
      bool levels = toolkit.isGtk4() && node.depth != tree.nodes[begin]->depth;
      if (levels) break;
      bool answers = node.fault == Fault::NONE || node.fault == Fault::SKIPPED;
      bool above = !toolkit.isGtk4() || end == 0 || isShowing(*tree.nodes[node.parent], toolkit);
      if (answers && above && mayShow(node, toolkit)) level.add(&node);
    }
    auto reading = forEach(
        kj::mv(level),
        [this](Node& node) -> kj::Promise<void> {
          if (!outOfTime()) return readDetails(objects, toolkit, node, callDeadline());
          node.fault = Fault::LATE;
          return kj::READY_NOW;
        },
        width);
    if (end == tree.nodes.size()) return reading;
    return reading.then([this, end]() { return readDetailsFrom(end); });
  }

  Objects& objects;
  kj::Timer& timer;
  const Toolkit& toolkit;
  TreeBounds limits;
  ItemCache cache;
  Tree tree;
  kj::HashSet<kj::String> seen;
  size_t levelBegin = 0;
  kj::Array<kj::Vector<ObjectRef>> lists;  // Children of each node of the level.
  kj::Vector<kj::Own<Node>> found;         // Of the whole level.
  kj::Vector<kj::Own<Node>> putOff;        // Hidden ones, for later.
  bool hiddenToo = false;
  size_t width = WIDTH;
  bool busy = false;  // With a question of ours that was given up.
  kj::TimePoint until = kj::origin<kj::TimePoint>();
  kj::Maybe<uint32_t> firstChild;  // When reading below a node: its first child that is wanted,
  kj::Maybe<uint32_t> listBegin;   // and the place of its first child that is listed.
};

}  // namespace

kj::Promise<Tree> readTree(Objects& objects, kj::Timer& timer, const ObjectRef& window,
                           const Toolkit& toolkit, TreeBounds bounds) {
  auto reader = kj::heap<TreeReader>(objects, timer, toolkit, bounds);
  auto reading = reader->read(window);
  return reading.attach(kj::mv(reader));
}

kj::Promise<Tree> readBelow(Objects& objects, kj::Timer& timer, kj::Array<Step> way, uint32_t first,
                            const Toolkit& toolkit, TreeBounds bounds) {
  auto reader = kj::heap<TreeReader>(objects, timer, toolkit, bounds);
  auto reading = reader->readFrom(way, first);
  return reading.attach(kj::mv(reader), kj::mv(way));
}

}  // namespace praefectus::accessibility
