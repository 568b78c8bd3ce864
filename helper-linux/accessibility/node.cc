#include "helper-linux/accessibility/node.h"

#include <climits>

namespace praefectus::accessibility {
namespace {

constexpr uint32_t SETTABLE_NUMBERS[] = {role::DIAL, role::SCROLL_BAR, role::SLIDER,
                                         role::SPIN_BUTTON};

// Stores an answer, or notes why there is none.
template <typename T, typename Store>
kj::Promise<void> into(Node& node, kj::Promise<Answered<T>> asked, Store store) {
  return asked.then([&node, store = kj::mv(store)](Answered<T>&& answer) mutable {
    KJ_IF_MAYBE (value, answer.value) {
      store(kj::mv(*value));
    } else {
      // Silence is said even when another answer was an error.
      if (node.fault != Fault::LATE) {
        node.fault = answer.silent() ? Fault::LATE : Fault::UNREADABLE;
      }
    }
  });
}

// GTK 3 answers INT_MIN for what is not on screen, and toolkits answer empty rectangles.
bool isReal(const Rect& rect) {
  return rect.x != INT_MIN && rect.y != INT_MIN && rect.width > 0 && rect.height > 0;
}

// GTK 4 says of every box and label that it has actions, those of whatever holds it; what takes
// them itself can have the focus. Chromium says the same of every run of text in a page, which is
// no element of the page.
bool mayAct(const Node& node, const Toolkit& toolkit) {
  if (toolkit.isGtk4() && !node.has(state::FOCUSABLE)) return false;
  if (toolkit.isChromium() && node.role == role::STATIC) return false;
  return node.offers(ACTION);
}

kj::Promise<void> readText(Objects& objects, const ObjectRef& object, Node& node,
                           kj::TimePoint deadline) {
  return objects.characterCount(object, deadline)
      .then([&objects, &object, &node, deadline](Answered<int32_t>&& count) -> kj::Promise<void> {
        KJ_IF_MAYBE (characters, count.value) {
          node.characters = *characters;
          node.valueCut = *characters > CHARACTERS;
          int32_t end = node.valueCut ? CHARACTERS : -1;
          return into(node, objects.text(object, end, deadline),
                      [&node](kj::String&& text) { node.value = kj::mv(text); });
        }
        node.fault = count.silent() ? Fault::LATE : Fault::UNREADABLE;
        return kj::READY_NOW;
      });
}

// A GTK 4 entry's outer object answers with an empty text whatever it shows; its inner text object
// tells the truth. When there is none to ask, an empty answer proves nothing and is not a value.
kj::Promise<void> readInnerText(Objects& objects, Node& node, kj::TimePoint deadline) {
  return objects.childAt(node.ref, 0, deadline)
      .then([&objects, &node, deadline](Answered<ObjectRef>&& inner) -> kj::Promise<void> {
        node.value = NoValue();
        KJ_IF_MAYBE (found, inner.value) {
          auto object = kj::heap<ObjectRef>(kj::mv(*found));
          auto reading = objects.interfaces(*object, deadline)
                             .then([&objects, &node, &object = *object,
                                    deadline](Answered<uint32_t>&& faces) -> kj::Promise<void> {
                               if ((faces.value.orDefault(0) & TEXT) == 0) return kj::READY_NOW;
                               return readText(objects, object, node, deadline);
                             });
          return reading.attach(kj::mv(object));
        }
        return kj::READY_NOW;
      });
}

}  // namespace

Valued valuedAs(const Node& node) {
  if (node.isSecure()) return Valued::NOTHING;
  if (node.offers(VALUE)) return Valued::NUMBER;
  if (node.offers(TEXT) && (node.offers(EDITABLE_TEXT) || node.has(state::EDITABLE))) {
    return Valued::TEXT;
  }
  return Valued::NOTHING;
}

bool holdsValue(const Node& node) {
  switch (valuedAs(node)) {
    case Valued::NOTHING:
      return false;
    case Valued::TEXT:
      return node.offers(EDITABLE_TEXT);
    case Valued::NUMBER:
      for (uint32_t role : SETTABLE_NUMBERS) {
        if (node.role == role) return true;
      }
      return false;
  }
  return false;
}

bool isUsable(const Node& node, const Toolkit& toolkit) {
  return node.has(state::SENSITIVE) && (node.has(state::ENABLED) || toolkit.isGtk4());
}

bool isSettable(const Node& node, const Toolkit& toolkit) {
  if (!holdsValue(node) || !isUsable(node, toolkit) || node.has(state::READ_ONLY)) return false;
  return valuedAs(node) == Valued::NUMBER || node.has(state::EDITABLE);
}

bool mayShow(const Node& node, const Toolkit& toolkit) {
  return node.has(toolkit.isGtk4() ? state::VISIBLE : state::SHOWING);
}

bool isShowing(const Node& node, const Toolkit& toolkit) {
  // What has no place of its own is as visible as what is in it.
  bool placed = node.extents != nullptr || !node.offers(COMPONENT);
  if (toolkit.isGtk4()) return node.has(state::VISIBLE) && placed;
  return node.has(state::SHOWING);
}

kj::Promise<void> readBasics(Objects& objects, Node& node, kj::TimePoint deadline) {
  auto parts = kj::heapArrayBuilder<kj::Promise<void>>(5);
  parts.add(into(node, objects.role(node.ref, deadline), [&](uint32_t role) { node.role = role; }));
  parts.add(into(node, objects.name(node.ref, deadline),
                 [&](kj::String&& name) { node.name = kj::mv(name); }));
  parts.add(into(node, objects.states(node.ref, deadline),
                 [&](uint64_t bits) { node.stateBits = bits; }));
  parts.add(into(node, objects.interfaces(node.ref, deadline),
                 [&](uint32_t bits) { node.interfaces = bits; }));
  parts.add(into(node, objects.childCount(node.ref, deadline),
                 [&](int32_t count) { node.childCount = count; }));
  return kj::joinPromises(parts.finish()).then([&node]() { node.known = true; });
}

kj::Promise<void> readExtents(Objects& objects, const Toolkit& toolkit, Node& node,
                              kj::TimePoint deadline) {
  node.extents = nullptr;
  if (!node.offers(COMPONENT)) return kj::READY_NOW;
  return into(node, objects.extents(node.ref, toolkit.space(), deadline), [&](Rect rect) {
    if (isReal(rect)) node.extents = rect;
  });
}

kj::Promise<void> readValue(Objects& objects, const Toolkit& toolkit, Node& node,
                            kj::TimePoint deadline) {
  node.value = NoValue();
  node.valueCut = false;
  switch (valuedAs(node)) {
    case Valued::NOTHING:
      return kj::READY_NOW;
    case Valued::NUMBER:
      return into(node, objects.number(node.ref, deadline),
                  [&](double number) { node.value = number; });
    case Valued::TEXT:
      break;
  }
  auto outer = readText(objects, node.ref, node, deadline);
  if (!toolkit.isGtk4()) return outer;
  return outer.then([&objects, &node, deadline]() -> kj::Promise<void> {
    if (node.value.is<kj::String>() && node.value.get<kj::String>() == "") {
      return readInnerText(objects, node, deadline);
    }
    return kj::READY_NOW;
  });
}

kj::Promise<void> readDetails(Objects& objects, const Toolkit& toolkit, Node& node,
                              kj::TimePoint deadline) {
  node.extents = nullptr;
  node.actions.clear();
  node.value = NoValue();
  node.accessibleId = kj::String();
  node.domId = kj::String();
  if (!mayShow(node, toolkit)) return kj::READY_NOW;
  kj::Vector<kj::Promise<void>> parts(4);
  parts.add(readExtents(objects, toolkit, node, deadline));
  if (mayAct(node, toolkit)) {
    auto names = toolkit.isGtk4() ? objects.actionsOfGtk4(node.ref, deadline)
                                  : objects.actions(node.ref, deadline);
    parts.add(into(node, kj::mv(names),
                   [&](kj::Vector<kj::String>&& found) { node.actions = kj::mv(found); }));
  }
  parts.add(readValue(objects, toolkit, node, deadline));
  bool actionable = mayAct(node, toolkit) || node.offers(EDITABLE_TEXT | VALUE);
  if (actionable && toolkit.isChromium()) {
    parts.add(into(node, objects.domId(node.ref, deadline),
                   [&](kj::String&& id) { node.domId = kj::mv(id); }));
  }
  if (actionable && toolkit.hasIds()) {
    // Many objects have no such property: that is no fault of theirs.
    parts.add(objects.accessibleId(node.ref, deadline).then([&node](Answered<kj::String>&& answer) {
      KJ_IF_MAYBE (id, answer.value) node.accessibleId = kj::mv(*id);
    }));
  }
  return kj::joinPromises(parts.releaseAsArray()).then([&toolkit, &node]() {
    if (isShowing(node, toolkit)) return;
    node.actions.clear();
    node.value = NoValue();
  });
}

}  // namespace praefectus::accessibility
