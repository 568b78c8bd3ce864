// Many nodes, some of them at a time.
#pragma once

#include "helper-linux/accessibility/node.h"

namespace praefectus::accessibility {

// Each node has up to five calls in flight; more nodes at once gave no further speed.
constexpr size_t WIDTH = 32;

template <typename Read>
class Lanes {
 public:
  Lanes(kj::Vector<Node*> nodes, Read read) : nodes(kj::mv(nodes)), read(kj::mv(read)) {}

  kj::Promise<void> run(size_t width) {
    kj::Vector<kj::Promise<void>> lanes;
    for (size_t lane = 0; lane < kj::min(width, nodes.size()); ++lane) lanes.add(runLane());
    return kj::joinPromises(lanes.releaseAsArray());
  }

 private:
  kj::Promise<void> runLane() {
    if (next >= nodes.size()) return kj::READY_NOW;
    Node& node = *nodes[next++];
    return read(node).then([this]() { return runLane(); });
  }

  kj::Vector<Node*> nodes;
  Read read;
  size_t next = 0;
};

// Runs `read(Node&)` on each of `nodes`, `width` at a time. They stay where they are until it
// resolves.
template <typename Read>
kj::Promise<void> forEach(kj::Vector<Node*> nodes, Read read, size_t width = WIDTH) {
  if (nodes.empty()) return kj::READY_NOW;
  auto lanes = kj::heap<Lanes<Read>>(kj::mv(nodes), kj::mv(read));
  auto running = lanes->run(width);
  return running.attach(kj::mv(lanes));
}

}  // namespace praefectus::accessibility
