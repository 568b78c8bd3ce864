// An application's item cache (org.a11y.atspi.Cache.GetItems): all its objects in one reply.
#pragma once

#include "helper-linux/accessibility/node.h"

#include <kj/map.h>

namespace praefectus::accessibility {

class ItemCache {
 public:
  // Takes a GetItems reply; whether it was one. Another layout than at-spi2-atk's and GTK 4's
  // (Qt's, for one) leaves the cache empty: everything is then walked.
  bool take(const dbus::Reply& reply, kj::StringPtr bus);

  bool holds(kj::StringPtr path) const { return items.find(path) != nullptr; }

  // Fills the basics of a node that the cache knows.
  bool fill(Node& node) const;

  // The children of an object in their order; nothing when the cache does not hold all of them with
  // an order that has no holes.
  kj::Maybe<kj::Vector<kj::String>> childrenOf(const Node& node) const;

 private:
  struct Item {
    uint32_t role = 0;
    kj::String name;
    uint64_t stateBits = 0;
    Interfaces interfaces = 0;
    int32_t childCount = -1;
  };
  struct Child {
    int32_t index;
    kj::String path;
  };

  kj::HashMap<kj::String, Item> items;                  // By path.
  kj::HashMap<kj::String, kj::Vector<Child>> children;  // By the parent's path.
};

}  // namespace praefectus::accessibility
