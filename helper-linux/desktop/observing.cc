#include "helper-linux/desktop/observing.h"

#include "helper-linux/desktop/identity.h"
#include "helper-linux/desktop/process.h"
#include "ipc/bounds.h"

namespace praefectus::desktop {

using accessibility::Node;
using accessibility::Tree;
using Seen = Result<Observation>;

Observing::Observing(Link& link, kj::Timer& timer, WindowRef window, FrameId id, uint64_t epoch,
                     bool picture)
    : link(link),
      timer(timer),
      window(window),
      picture(picture),
      begun(timer.now()),
      frame(kj::refcounted<ObservedFrame>()) {
  frame->id = id;
  frame->epoch = epoch;
  frame->window = window;
}

kj::Promise<Seen> Observing::run() {
  auto found = findWindow();
  if (!found.ok()) return Seen(found.refusal());
  return findAccessible().then([this](Result<Done>&& accessible) -> kj::Promise<Seen> {
    if (!accessible.ok()) return Seen(accessible.refusal());
    auto deadline = timer.now() + bounds::WALK;
    return prepareCamera()
        .then([this, deadline]() {
          return readTree(frame->bus->objects, timer, root, frame->toolkit, deadline);
        })
        .then([this](Tree&& tree) { return describe(kj::mv(tree)); });
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
  frame->bounds = top->bounds;
  frame->topology = display->topology();
  return Done();
}

kj::Promise<Result<Done>> Observing::findAccessible() {
  return link.bus().then([this](Result<kj::Own<Bus>>&& bus) -> kj::Promise<Result<Done>> {
    if (!bus.ok()) return Result<Done>(bus.refusal());
    frame->bus = kj::mv(*bus);
    return accessibility::readApplications(frame->bus->objects, window.process.pid,
                                           timer.now() + bounds::CALL)
        .then([this](kj::Maybe<Applications>&& found) { return choose(kj::mv(found)); });
  });
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
    return Refusal{RefusalCode::CAPTURE_FAILED, "The application does not offer this window yet."};
  }
  return Refusal{RefusalCode::NO_ACCESSIBILITY_BUS, "The registry does not answer."};
}

kj::Promise<void> Observing::prepareCamera() {
  if (!picture) return kj::READY_NOW;
  auto camera = link.camera();
  if (!camera.ok()) return kj::READY_NOW;
  return (*camera)->prepare(top->id);
}

Seen Observing::describe(Tree tree) {
  Node& first = *tree.nodes[0];
  if (first.fault == Fault::LATE) {
    return Refusal{RefusalCode::NOT_ANSWERING, "The application does not answer."};
  }
  if (first.fault == Fault::UNREADABLE) {
    return Refusal{RefusalCode::CAPTURE_FAILED, "The window went away while it was read."};
  }
  auto mapping = mappingOf(frame->toolkit, first.extents.orDefault(Rect()), *top);

  Observation out;
  out.frame.id = frame->id;
  out.frame.epoch = frame->epoch;
  out.frame.window = window;
  out.frame.title = kj::str(top->title);
  out.frame.bounds = frame->bounds;
  out.frame.topology = frame->topology;
  out.cuts = tree.cuts;
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    auto element = elementOf(tree, i, mapping);
    if (element.fault != Fault::NONE) ++out.faults;
    Node& node = *tree.nodes[i];
    frame->records.add(Record{kj::mv(node.ref), node.parent, node.position, element.digest});
    out.elements.add(kj::mv(element));
  }
  auto pictured = takePicture(out);
  if (!pictured.ok()) return pictured.refusal();
  out.elapsedMs = static_cast<uint32_t>((timer.now() - begun) / kj::MILLISECONDS);
  return kj::mv(out);
}

Element Observing::elementOf(const Tree& tree, size_t index, const Mapping& mapping) {
  const Node& node = *tree.nodes[index];
  Element out;
  out.parent = node.parent;
  out.depth = node.depth;
  out.position = node.position;
  out.role = kj::str(accessibility::roleName(node.role));
  out.name = kj::str(node.name);
  out.states = accessibility::wireStates(node.stateBits);
  for (auto& action : node.actions) out.actions.add(kj::str(action));
  KJ_IF_MAYBE (extents, node.extents) out.bounds = mapped(mapping, *extents);
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
  out.fault = node.fault;

  kj::Vector<uint32_t> roles;
  for (size_t at = index; at != 0 && roles.size() < ANCESTOR_ROLES;) {
    at = tree.nodes[at]->parent;
    roles.add(tree.nodes[at]->role);
  }
  out.digest = elementDigest(frame->id, window.process, node, roles);
  return out;
}

Result<Done> Observing::takePicture(Observation& out) {
  if (!picture) return Done();
  auto camera = link.camera();
  if (!camera.ok()) return camera.refusal();
  KJ_IF_MAYBE (png, (*camera)->take(top->id)) {
    out.picture = kj::mv(png->bytes);
    out.pictureWidth = png->width;
    out.pictureHeight = png->height;
    return Done();
  }
  return Refusal{RefusalCode::CAPTURE_FAILED, "The window has no picture."};
}

}  // namespace praefectus::desktop
