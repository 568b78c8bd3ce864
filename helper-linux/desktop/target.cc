#include "helper-linux/desktop/target.h"

#include "helper-linux/accessibility/tree.h"
#include "helper-linux/desktop/identity.h"
#include "helper-linux/desktop/process.h"
#include "ipc/bounds.h"

namespace praefectus::desktop {
namespace {

using accessibility::Answered;
using accessibility::Node;
using accessibility::ObjectRef;
using Checked = Result<kj::Own<CheckedTarget>>;

// Indexes of an element's ancestors, nearest first; the window is last.
kj::Vector<uint32_t> chainOf(const ObservedFrame& frame, uint32_t element) {
  kj::Vector<uint32_t> out;
  while (element != 0) {
    element = frame.records[element].parent;
    out.add(element);
  }
  return out;
}

// Whether each object of the chain still says that the next one is its parent.
kj::Promise<bool> isAttached(ObservedFrame& frame, uint32_t element,
                             kj::ArrayPtr<const uint32_t> chain, kj::TimePoint deadline) {
  kj::Vector<kj::Promise<bool>> links;
  uint32_t child = element;
  for (uint32_t parent : chain) {
    auto& expected = frame.records[parent].ref;
    links.add(frame.bus->objects.parent(frame.records[child].ref, deadline)
                  .then([&expected](Answered<ObjectRef>&& answer) {
                    KJ_IF_MAYBE (found, answer.value) return *found == expected;
                    return false;
                  }));
    child = parent;
  }
  return kj::joinPromises(links.releaseAsArray()).then([](kj::Array<bool>&& holds) {
    for (bool each : holds) {
      if (!each) return false;
    }
    return true;
  });
}

kj::Promise<bool> isInPlace(ObservedFrame& frame, uint32_t element, kj::TimePoint deadline) {
  // The window's own place among the application's windows is no part of what it is.
  if (element == 0) return true;
  auto& record = frame.records[element];
  return frame.bus->objects.childAt(frame.records[record.parent].ref, record.position, deadline)
      .then([&record](Answered<ObjectRef>&& answer) {
        KJ_IF_MAYBE (found, answer.value) return *found == record.ref;
        return false;
      });
}

kj::Promise<void> readAncestorRoles(ObservedFrame& frame, kj::ArrayPtr<const uint32_t> chain,
                                    Look& look, kj::TimePoint deadline) {
  auto nearest = chain.slice(0, kj::min(chain.size(), ANCESTOR_ROLES));
  auto roles = KJ_MAP(ancestor, nearest) {
    return frame.bus->objects.role(frame.records[ancestor].ref, deadline);
  };
  return kj::joinPromises(kj::mv(roles)).then([&look](kj::Array<Answered<uint32_t>>&& answers) {
    for (auto& answer : answers) look.ancestorRoles.add(answer.value.orDefault(0));
  });
}

Result<Done> checkUsable(const ObservedFrame& frame, const Look& look) {
  auto& node = look.node;
  if (node.isSecure()) {
    return Refusal{RefusalCode::SENSITIVITY_BLOCKED, "The element is a password field."};
  }
  if (!accessibility::isShowing(node, frame.toolkit)) {
    return Refusal{RefusalCode::TARGET_HIDDEN, "The element is not showing."};
  }
  if (!accessibility::isUsable(node, frame.toolkit))
    return Refusal{RefusalCode::TARGET_DISABLED, "The element is disabled."};
  return Done();
}

Result<Done> checkInvoke(const Node& node, const InvokeRequest& asked) {
  size_t offered = 0;
  for (auto& name : node.actions) offered += name == asked.name ? 1 : 0;
  if (offered == 0) {
    return Refusal{RefusalCode::UNSUPPORTED_ACTION, "The element does not offer this action."};
  }
  if (offered > 1) {
    return Refusal{RefusalCode::AMBIGUOUS_TARGET, "The element offers this name twice."};
  }
  return Done();
}

// What the element would take, and what it could be read back as.
Result<Done> checkValue(const Node& node, kj::StringPtr text) {
  bool number = accessibility::valuedAs(node) == accessibility::Valued::NUMBER;
  if (number && parseNumber(text) == nullptr) {
    return Refusal{RefusalCode::MALFORMED, "The element's value is a decimal number."};
  }
  return Done();
}

Result<Done> checkAsked(const Node& node, const accessibility::Toolkit& toolkit,
                        const Action& asked) {
  KJ_IF_MAYBE (proof, asked.verification.content.tryGet<ValueProof>()) {
    auto readable = checkValue(node, proof->text);
    if (!readable.ok()) return readable.refusal();
  }
  KJ_IF_MAYBE (invoke, asked.act.tryGet<InvokeRequest>()) return checkInvoke(node, *invoke);
  if (!accessibility::isSettable(node, toolkit)) {
    return Refusal{RefusalCode::UNSUPPORTED_ACTION, "The element's value cannot be set."};
  }
  return checkValue(node, asked.act.get<SetValueRequest>().text);
}

constexpr Refusal MISSING{RefusalCode::TARGET_MISSING,
                          "The element is no longer in its window."_kj};
constexpr Refusal CHANGED{RefusalCode::TARGET_CHANGED, "The element is not what was observed."_kj};

kj::Vector<uint32_t> rolesAbove(const accessibility::Tree& tree, uint32_t index) {
  kj::Vector<uint32_t> out;
  while (index != 0 && out.size() < ANCESTOR_ROLES) {
    index = tree.nodes[index]->parent;
    out.add(tree.nodes[index]->role);
  }
  return out;
}

// Gives the record of `element`, and those of its ancestors, the objects of `tree` that stand in
// the same places. Whether there are as many.
bool adopt(ObservedFrame& frame, uint32_t element, accessibility::Tree& tree, uint32_t index) {
  kj::Vector<kj::Tuple<uint32_t, uint32_t>> pairs;
  uint32_t from = element, to = index;
  while (from != 0 && to != 0) {
    pairs.add(kj::tuple(from, to));
    from = frame.records[from].parent;
    to = tree.nodes[to]->parent;
  }
  if (from != 0 || to != 0) return false;
  for (auto& pair : pairs) {
    auto& record = frame.records[kj::get<0>(pair)];
    // A frame of the page that was loaded anew holds other elements, whatever their ids.
    if (record.isPage && !(record.ref == tree.nodes[kj::get<1>(pair)]->ref)) return false;
  }
  for (auto& pair : pairs) {
    auto& record = frame.records[kj::get<0>(pair)];
    record.ref = tree.nodes[kj::get<1>(pair)]->ref.clone();
    record.digest = elementDigest(frame.id, frame.window.process, record.ref, record.recognized);
  }
  frame.records[element].foundAgain = true;
  return true;
}

}  // namespace

Result<Done> checkThere(const Look& look) {
  if (look.silent) {
    return Refusal{RefusalCode::NOT_ANSWERING, "The application does not answer."};
  }
  bool gone = look.node.fault != Fault::NONE || look.node.has(accessibility::state::DEFUNCT);
  if (gone || !look.attached) return MISSING;
  return Done();
}

Result<Done> checkSame(const ObservedFrame& frame, uint32_t element, const Look& look) {
  auto recognized = recognizedBy(frame.id, look.node, look.ancestorRoles);
  auto digest = elementDigest(frame.id, frame.window.process, look.node.ref, recognized);
  if (digest != frame.records[element].digest) return CHANGED;
  return Done();
}

kj::Promise<kj::Own<Look>> lookAt(ObservedFrame& frame, uint32_t element, kj::TimePoint deadline) {
  auto look = kj::heap<Look>();
  auto& seen = *look;
  auto& record = frame.records[element];
  seen.node.ref = record.ref.clone();
  auto chain = chainOf(frame, element);

  kj::Vector<kj::Promise<void>> parts;
  parts.add(readBasics(frame.bus->objects, seen.node, deadline)
                .then([&frame, &seen, deadline]() -> kj::Promise<void> {
                  seen.silent = seen.node.fault == Fault::LATE;
                  if (seen.node.fault != Fault::NONE) return kj::READY_NOW;
                  return readDetails(frame.bus->objects, frame.toolkit, seen.node, deadline);
                }));
  parts.add(readAncestorRoles(frame, chain, seen, deadline));
  parts.add(isAttached(frame, element, chain, deadline).then([&seen](bool attached) {
    seen.attached = attached;
  }));
  parts.add(
      isInPlace(frame, element, deadline).then([&seen](bool inPlace) { seen.inPlace = inPlace; }));
  return kj::joinPromises(parts.releaseAsArray())
      .then([look = kj::mv(look), position = record.position]() mutable {
        look->silent = look->silent || look->node.fault == Fault::LATE;
        // No list of children is this long: an element elsewhere has another digest.
        look->node.position = look->inPlace ? position : UINT32_MAX;
        return kj::mv(look);
      });
}

WindowSight TargetCheck::windowSight(const WindowRef& window) {
  WindowSight out;
  auto display = link.display();
  if (!display.ok()) return out;
  bool cut;
  for (auto& top : (*display)->topLevels(cut)) {
    if (top.pid != window.process.pid) continue;
    if (top.managed) out.windows.add(top.id);
    if (top.id == window.window) out.present = true;
  }
  // Asked after the windows: a process that was ending while they were listed is not taken to run.
  out.running = startOf(window.process.pid)
                    .map([&](uint64_t start) { return start == window.process.start; })
                    .orDefault(false);
  return out;
}

Result<WindowSight> TargetCheck::checkWindow(const ObservedFrame& frame) {
  auto& process = frame.window.process;
  KJ_IF_MAYBE (start, startOf(process.pid)) {
    if (*start != process.start) {
      return Refusal{RefusalCode::TARGET_MISSING, "The process has ended; its number was reused."};
    }
  } else {
    return Refusal{RefusalCode::TARGET_MISSING, "The process has ended."};
  }
  auto display = link.display();
  if (!display.ok()) return display.refusal();
  if ((*display)->topology() != frame.topology) {
    return Refusal{RefusalCode::TARGET_CHANGED, "The monitors have changed."};
  }
  WindowSight out;
  bool cut;
  for (auto& top : (*display)->topLevels(cut)) {
    if (top.id == frame.window.window) {
      out.present = true;
      if (top.pid != process.pid) {
        return Refusal{RefusalCode::TARGET_CHANGED, "The window belongs to another process."};
      }
      if (!top.visible) return Refusal{RefusalCode::TARGET_HIDDEN, "The window is not showing."};
      if (top.bounds != frame.bounds) {
        return Refusal{RefusalCode::TARGET_CHANGED, "The window was moved or resized."};
      }
    } else if (top.pid == process.pid && top.modal && top.visible) {
      return Refusal{RefusalCode::TARGET_OCCLUDED, "A modal dialog blocks the window."};
    }
    if (top.pid == process.pid && top.managed) out.windows.add(top.id);
  }
  if (!out.present) return Refusal{RefusalCode::TARGET_MISSING, "The window is gone."};
  out.running = true;
  return kj::mv(out);
}

kj::Promise<Checked> TargetCheck::check(ObservedFrame& frame, const Action& asked, Refind refind) {
  if (!frame.current) return Checked(Refusal{RefusalCode::STALE_FRAME, "The frame is spent."});
  auto& target = asked.target.get<ElementTarget>();
  if (target.element >= frame.records.size() ||
      frame.records[target.element].observed != target.digest) {
    return Checked(Refusal{RefusalCode::STALE_FRAME, "The frame has no such element."});
  }
  if (frame.bus->objects.lost()) {
    return Checked(Refusal{RefusalCode::NO_ACCESSIBILITY_BUS, "The accessibility bus is gone."});
  }
  return link.lock()
      .then([this, &frame](Lock lock) -> kj::Promise<Result<Done>> {
        if (lock != Lock::LOCKED) return checkPage(frame);
        return Result<Done>(Refusal{RefusalCode::SCREEN_LOCKED, "The person's session is locked."});
      })
      .then([this, &frame, &asked, refind](Result<Done>&& page) {
        if (!page.ok()) return kj::Promise<Checked>(page.refusal());
        return checkElement(frame, asked, refind);
      });
}

kj::Promise<Checked> TargetCheck::checkElement(ObservedFrame& frame, const Action& asked,
                                               Refind refind) {
  auto window = checkWindow(frame);
  if (!window.ok()) return Checked(window.refusal());
  auto element = asked.target.get<ElementTarget>().element;
  return lookAt(frame, element, timer.now() + bounds::CALL)
      .then([this, &frame, &asked, element, refind,
             window = kj::mv(*window)](kj::Own<Look>&& look) mutable -> kj::Promise<Checked> {
        auto there = checkThere(*look);
        auto& record = frame.records[element];
        bool lost = !there.ok() && there.refusal().code == RefusalCode::TARGET_MISSING;
        if (lost && refind == Refind::ONCE && record.domId.size() > 0 && !record.foundAgain) {
          return findAgain(frame, element).then([this, &frame, &asked](Result<Done>&& found) {
            if (!found.ok()) return kj::Promise<Checked>(found.refusal());
            return checkElement(frame, asked, Refind::NEVER);
          });
        }
        if (!there.ok()) return Checked(there.refusal());
        // Hidden or disabled is said as that, though it often changes what the element offers too.
        auto usable = checkUsable(frame, *look);
        if (!usable.ok()) return Checked(usable.refusal());
        auto same = checkSame(frame, element, *look);
        if (!same.ok()) return Checked(same.refusal());
        auto offered = checkAsked(look->node, frame.toolkit, asked);
        if (!offered.ok()) return Checked(offered.refusal());
        auto checked = kj::heap<CheckedTarget>();
        checked->look = kj::mv(look);
        checked->window = kj::mv(window);
        return Checked(kj::mv(checked));
      });
}

kj::Promise<Result<Done>> TargetCheck::checkPage(ObservedFrame& frame) {
  KJ_IF_MAYBE (page, frame.page) {
    return frame.bus->objects.documentUrl(page->ref, timer.now() + bounds::CALL)
        .then([&frame, page](Answered<kj::String>&& url) -> Result<Done> {
          if (url.silent()) {
            return Refusal{RefusalCode::NOT_ANSWERING, "The application does not answer."};
          }
          KJ_IF_MAYBE (text, url.value) {
            if (pageDigest(frame.id, page->ref, *text) == page->digest) return Done();
          }
          return Refusal{RefusalCode::PAGE_TARGET_CHANGED, "The page was reloaded or left."};
        });
  }
  return Result<Done>(Done());
}

kj::Promise<Result<Done>> TargetCheck::findAgain(ObservedFrame& frame, uint32_t element) {
  accessibility::TreeBounds limits{frame.elements, frame.depth, timer.now() + bounds::CALL};
  return accessibility::readTree(frame.bus->objects, timer, frame.records[0].ref, frame.toolkit,
                                 limits)
      .then([&frame, element](accessibility::Tree&& tree) -> Result<Done> {
        // Where not all was read, nobody knows whether there is another one.
        if (tree.cuts.elements || tree.cuts.depth || tree.cuts.time) return MISSING;
        auto& record = frame.records[element];
        kj::Maybe<uint32_t> found;
        for (auto& node : tree.nodes) {
          if (node->domId != record.domId) continue;
          if (found != nullptr) {
            return Refusal{RefusalCode::AMBIGUOUS_TARGET, "Several elements have this id."};
          }
          found = node->index;
        }
        KJ_IF_MAYBE (index, found) {
          auto roles = rolesAbove(tree, *index);
          bool same = recognizedBy(frame.id, *tree.nodes[*index], roles) == record.recognized;
          if (!same || !adopt(frame, element, tree, *index)) return CHANGED;
          return Done();
        }
        return MISSING;
      });
}

}  // namespace praefectus::desktop
