#include "helper-linux/accessibility/tree.h"

#include "helper-linux/accessibility/cache.h"
#include "ipc/bounds.h"

namespace praefectus::accessibility {
namespace {

// Nodes that are read at once. Each has up to five calls in flight; more gave no further speed.
constexpr size_t WIDTH = 32;

class TreeReader {
 public:
  TreeReader(Objects& objects, kj::Timer& timer, const Toolkit& toolkit, kj::TimePoint deadline)
      : objects(objects), timer(timer), toolkit(toolkit), deadline(deadline) {}

  kj::Promise<Tree> read(const ObjectRef& window) {
    auto root = kj::heap<Node>();
    root->ref = window.clone();
    seen.insert(kj::str(window.path));
    tree.nodes.add(kj::mv(root));
    Node& first = *tree.nodes[0];
    auto cached =
        objects.wakeCache(first.ref.bus, callDeadline())
            .then([this, &first]() { return objects.cache(first.ref.bus, callDeadline()); })
            .then([this, &first](dbus::Reply&& reply) { cache.take(reply, first.ref.bus); });
    auto both = kj::heapArrayBuilder<kj::Promise<void>>(2);
    both.add(kj::mv(cached));
    both.add(readBasics(objects, first, callDeadline()));
    return kj::joinPromises(both.finish())
        .then([this, &first]() -> kj::Promise<void> {
          if (first.fault != Fault::NONE) return kj::READY_NOW;
          return readLevel(0);
        })
        .then([this]() {
          return forEach(0, tree.nodes.size(), [this](Node& node) -> kj::Promise<void> {
            if (node.fault != Fault::NONE && node.fault != Fault::SKIPPED) return kj::READY_NOW;
            return readDetails(objects, toolkit, node, callDeadline());
          });
        })
        .then([this]() {
          if (timer.now() >= deadline) tree.cuts.time = true;
          return kj::mv(tree);
        });
  }

 private:
  kj::TimePoint callDeadline() const { return kj::min(deadline, timer.now() + bounds::CALL); }
  bool outOfTime() const { return timer.now() >= deadline; }

  // Reads the nodes from `begin` on (one depth), then adds their children and goes on with those.
  kj::Promise<void> readLevel(size_t begin) {
    size_t end = tree.nodes.size();
    if (begin == end) return kj::READY_NOW;
    found = kj::heapArray<kj::Vector<ObjectRef>>(end - begin);
    auto reading = forEach(begin, end, [this, begin](Node& node) {
      size_t slot = current - begin;
      auto basics = node.known || cache.fill(node) ? kj::Promise<void>(kj::READY_NOW)
                                                   : readBasics(objects, node, callDeadline());
      return basics.then([this, &node, slot]() { return readChildren(node, found[slot]); });
    });
    return reading.then([this, begin, end]() {
      for (size_t i = begin; i < end; ++i) addChildren(static_cast<uint32_t>(i), found[i - begin]);
      return readLevel(end);
    });
  }

  kj::Promise<void> readChildren(Node& node, kj::Vector<ObjectRef>& out) {
    if (node.fault != Fault::NONE) return kj::READY_NOW;
    KJ_IF_MAYBE (paths, cache.childrenOf(node)) {
      for (auto& path : *paths) out.add(ObjectRef{kj::str(node.ref.bus), kj::mv(path)});
      return kj::READY_NOW;
    }
    // Some caches count no children where there are some: the object itself has the last word.
    auto counted = objects.childCount(node.ref, callDeadline());
    return counted.then([this, &node, &out](Answered<int32_t>&& count) -> kj::Promise<void> {
      node.childCount = count.value.orDefault(-1);
      if (count.value == nullptr) node.fault = count.silent() ? Fault::LATE : Fault::UNREADABLE;
      if (node.childCount <= 0) return kj::READY_NOW;
      if (static_cast<uint32_t>(node.childCount) > bounds::CHILDREN) {
        node.fault = Fault::SKIPPED;
        return kj::READY_NOW;
      }
      return objects.children(node.ref, callDeadline())
          .then([&node, &out](Answered<kj::Vector<ObjectRef>>&& children) {
            KJ_IF_MAYBE (list, children.value) {
              out = kj::mv(*list);
            } else {
              node.fault = children.silent() ? Fault::LATE : Fault::UNREADABLE;
            }
          });
    });
  }

  void addChildren(uint32_t parent, kj::ArrayPtr<ObjectRef> children) {
    uint16_t depth = static_cast<uint16_t>(tree.nodes[parent]->depth + 1);
    if (children.size() > 0 && depth > bounds::DEPTH) {
      tree.cuts.depth = true;
      return;
    }
    for (size_t position = 0; position < children.size(); ++position) {
      ObjectRef& child = children[position];
      // An object embedded from another process is that process's, and not part of this window's.
      if (child.bus != tree.nodes[parent]->ref.bus) continue;
      if (outOfTime()) tree.cuts.time = true;
      if (tree.nodes.size() >= bounds::ELEMENTS) {
        tree.cuts.elements = true;
        return;
      }
      if (seen.contains(child.path)) continue;  // A tree that loops must not loop us.
      seen.insert(kj::str(child.path));
      auto node = kj::heap<Node>();
      node->ref = kj::mv(child);
      node->parent = parent;
      node->depth = depth;
      node->position = static_cast<uint32_t>(position);
      tree.nodes.add(kj::mv(node));
    }
  }

  // Runs `read` on the nodes [begin, end), WIDTH at a time; `current` is the index it is called
  // for.
  template <typename Read>
  kj::Promise<void> forEach(size_t begin, size_t end, Read read) {
    next = begin;
    auto shared = kj::heap<Read>(kj::mv(read));
    kj::Vector<kj::Promise<void>> lanes;
    for (size_t lane = 0; lane < kj::min(WIDTH, end - begin); ++lane) {
      lanes.add(runLane(end, *shared));
    }
    return kj::joinPromises(lanes.releaseAsArray()).attach(kj::mv(shared));
  }

  template <typename Read>
  kj::Promise<void> runLane(size_t end, Read& read) {
    if (next >= end) return kj::READY_NOW;
    current = next++;
    return read(*tree.nodes[current]).then([this, end, &read]() { return runLane(end, read); });
  }

  Objects& objects;
  kj::Timer& timer;
  const Toolkit& toolkit;
  kj::TimePoint deadline;
  ItemCache cache;
  Tree tree;
  kj::HashSet<kj::String> seen;
  kj::Array<kj::Vector<ObjectRef>> found;
  size_t next = 0;
  size_t current = 0;
};

}  // namespace

kj::Promise<Tree> readTree(Objects& objects, kj::Timer& timer, const ObjectRef& window,
                           const Toolkit& toolkit, kj::TimePoint deadline) {
  auto reader = kj::heap<TreeReader>(objects, timer, toolkit, deadline);
  auto reading = reader->read(window);
  return reading.attach(kj::mv(reader));
}

}  // namespace praefectus::accessibility
