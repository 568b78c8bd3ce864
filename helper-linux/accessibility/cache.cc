#include "helper-linux/accessibility/cache.h"

namespace praefectus::accessibility {
namespace {

// Object, application, parent, index in parent, child count, interfaces, name, role, description,
// states.
constexpr kj::StringPtr LAYOUT = "a((so)(so)(so)iiassusau)"_kj;

}  // namespace

bool ItemCache::take(const dbus::Reply& reply, kj::StringPtr bus) {
  auto read = reply.decode(LAYOUT, [this, bus](dbus::Reader& reader) {
    kj::HashSet<kj::String> repeated;
    size_t end = reader.array(8);
    while (reader.more(end)) {
      reader.structure();
      ObjectRef object = readObject(reader);
      readObject(reader);
      ObjectRef parent = readObject(reader);
      int32_t index = reader.int32();
      Item item;
      item.childCount = reader.int32();
      item.interfaces = readInterfaces(reader);
      item.name = readName(reader);
      item.role = reader.uint32();
      reader.text();
      item.stateBits = readStates(reader);
      if (object.bus != bus) continue;
      // Of a path that stands for two objects nothing is believed: it is asked itself.
      bool again = items.erase(object.path) || repeated.contains(object.path);
      if (again) {
        if (!repeated.contains(object.path)) repeated.insert(kj::mv(object.path));
        continue;
      }
      if (parent.bus == bus) {
        auto& siblings = children.findOrCreate(parent.path, [&]() {
          return kj::HashMap<kj::String, kj::Vector<Child>>::Entry{kj::str(parent.path), {}};
        });
        siblings.add(Child{index, kj::str(object.path)});
      }
      items.insert(kj::mv(object.path), kj::mv(item));
    }
    return true;
  });
  if (read == nullptr) {
    items.clear();
    children.clear();
  }
  return read != nullptr;
}

bool ItemCache::fill(Node& node) const {
  KJ_IF_MAYBE (item, items.find(node.ref.path)) {
    node.role = item->role;
    node.name = kj::str(item->name);
    node.stateBits = item->stateBits;
    node.interfaces = item->interfaces;
    node.childCount = item->childCount;
    node.known = true;
    node.cached = true;
    return true;
  }
  return false;
}

kj::Maybe<kj::Vector<kj::String>> ItemCache::childrenOf(const Node& node) const {
  kj::Vector<kj::String> out;
  KJ_IF_MAYBE (known, children.find(node.ref.path)) {
    if (node.childCount < 0 || known->size() != static_cast<size_t>(node.childCount)) {
      return nullptr;
    }
    auto order = kj::heapArray<const Child*>(known->size());
    for (auto& slot : order) slot = nullptr;
    for (auto& child : *known) {
      if (child.index < 0 || child.index >= node.childCount) return nullptr;
      if (order[static_cast<size_t>(child.index)] != nullptr) return nullptr;
      order[static_cast<size_t>(child.index)] = &child;
    }
    for (auto child : order) out.add(kj::str(child->path));
    return kj::mv(out);
  }
  if (node.childCount == 0 && items.find(node.ref.path) != nullptr) return kj::mv(out);
  return nullptr;
}

}  // namespace praefectus::accessibility
