#include "attest/v2/fence.h"

namespace praefectus::attest::v2 {
namespace {

constexpr kj::StringPtr DISPLAY = "desktop"_kj;
constexpr size_t HASH_DIGITS = 64;
constexpr size_t BACKEND_ID_BYTES = 512;

template <typename... Parts>
kj::String hashOfArray(Parts&&... parts) {
  kj::String all[] = {kj::mv(parts)...};
  return sha256(canonicalArray(all));
}

kj::String number(uint64_t value) { return kj::str(value); }

kj::String observationIdOf(const Frame& frame) {
  return hashOfArray(number(VERSION), canonicalText(hex(bytesOf(frame.id))),
                     number(frame.window.window));
}

kj::String geometryOf(const Frame& frame) { return hex(bytesOf(frame.topology)); }

kj::String provenanceOf(const Frame& frame) {
  auto& process = frame.window.process;
  CanonicalMembers members;
  auto add = [&](kj::StringPtr name, kj::String part) {
    members.insert(kj::str(name), kj::mv(part));
  };
  add("backend", canonicalText("accessibility"));
  add("backend_name", canonicalText("praefectus"));
  add("process_id", number(process.pid));
  add("process_generation", canonicalText(number(process.start)));
  add("window_id", canonicalText(number(frame.window.window)));
  add("document_id", kj::str("null"));
  add("display_geometry_hash", canonicalText(geometryOf(frame)));
  add("host_opt_ins", kj::str("[]"));
  return canonicalObject(members);
}

kj::String provenanceHashOf(const Frame& frame, kj::StringPtr observationId) {
  return hashOfArray(number(VERSION), canonicalText(observationId), number(frame.epoch),
                     provenanceOf(frame));
}

kj::String elementIdOf(kj::StringPtr observationId, const Element& element, size_t position) {
  return opaqueId(observationId, kj::str(hex(bytesOf(element.digest)), ':', position));
}

kj::String fingerprintOf(kj::StringPtr elementId, const Element& element) {
  auto actions = KJ_MAP(action, element.actions) { return canonicalText(action); };
  return hashOfArray(canonicalText(elementId), canonicalText(element.role),
                     canonicalText(element.name), kj::str(element.settable ? "true" : "false"),
                     canonicalArray(actions));
}

kj::String contentOf(const Observation& observation, kj::StringPtr observationId) {
  kj::String picture = kj::str("null");
  KJ_IF_MAYBE (png, observation.png) picture = canonicalText(sha256(*png));
  kj::Vector<kj::String> fingerprints(observation.elements.size());
  for (size_t i = 0; i < observation.elements.size(); ++i) {
    auto& element = observation.elements[i];
    auto id = elementIdOf(observationId, element, i);
    fingerprints.add(canonicalText(fingerprintOf(id, element)));
  }
  return hashOfArray(canonicalText(observationId), kj::mv(picture), canonicalArray(fingerprints));
}

Refusal stale(kj::StringPtr why) { return {RefusalCode::STALE_FRAME, why}; }
Refusal changed(kj::StringPtr why) { return {RefusalCode::TARGET_CHANGED, why}; }

// Where `at` lies from `from`, when that is inside of `size`.
kj::Maybe<int32_t> inside(int64_t at, int32_t from, uint32_t size) {
  if (at < from || at >= int64_t{from} + size) return nullptr;
  return static_cast<int32_t>(at - from);
}

}  // namespace

Fence fenceOf(const Observation& observation, uint32_t element) {
  KJ_REQUIRE(element < observation.elements.size(), "there is no such element");
  auto& frame = observation.frame;
  auto id = observationIdOf(frame);
  auto provenance = provenanceHashOf(frame, id);
  auto elementId = elementIdOf(id, observation.elements[element], element);
  auto fingerprint = fingerprintOf(elementId, observation.elements[element]);
  return {kj::mv(id), frame.epoch, kj::mv(provenance), kj::mv(elementId), kj::mv(fingerprint)};
}

Coordinates coordinatesOf(const Observation& observation, int64_t x, int64_t y) {
  auto id = observationIdOf(observation.frame);
  auto content = contentOf(observation, id);
  return {x, y, kj::str(DISPLAY), geometryOf(observation.frame), kj::mv(id), kj::mv(content)};
}

Result<ElementTarget> elementOf(const Fence& fence, const Observation& observation) {
  auto& frame = observation.frame;
  auto id = observationIdOf(frame);
  if (fence.observationId != id) return stale("The element is of another observation.");
  if (fence.generation != frame.epoch) return stale("The observation's generation is another.");
  if (fence.provenanceHash != provenanceHashOf(frame, id)) {
    return changed("The observation's provenance is another.");
  }
  for (uint32_t i = 0; i < observation.elements.size(); ++i) {
    auto& element = observation.elements[i];
    if (fence.elementId != elementIdOf(id, element, i)) continue;
    if (fence.fingerprintHash != fingerprintOf(fence.elementId, element)) {
      return changed("The element's fingerprint is another.");
    }
    return ElementTarget{frame.window, frame.id, frame.epoch, i, element.digest};
  }
  return changed("The observation has no such element.");
}

Result<PointTarget> pointOf(const Coordinates& point, const Observation& observation) {
  auto& frame = observation.frame;
  auto id = observationIdOf(frame);
  if (point.displayId != DISPLAY) return stale("The point is of another display.");
  if (point.displayGeometryHash != geometryOf(frame)) return stale("The displays lie otherwise.");
  if (point.snapshotId != id) return stale("The point is of another snapshot.");
  if (point.snapshotContentHash != contentOf(observation, id)) {
    return stale("The snapshot's content is another.");
  }
  auto x = inside(point.x, frame.bounds.x, frame.bounds.width);
  auto y = inside(point.y, frame.bounds.y, frame.bounds.height);
  KJ_IF_MAYBE (across, x) {
    KJ_IF_MAYBE (down, y) return PointTarget{frame.window, frame.id, frame.epoch, *across, *down};
  }
  return Refusal{RefusalCode::INVALID_COORDINATE, "The point is not inside the window."};
}

kj::String opaqueId(kj::StringPtr observationId, kj::StringPtr backendId) {
  constexpr kj::byte NUL = 0;
  auto decoded = unhex(observationId);
  KJ_REQUIRE(decoded != nullptr && observationId.size() == HASH_DIGITS, "not an observation's id");
  KJ_REQUIRE(backendId.size() >= 1 && backendId.size() <= BACKEND_ID_BYTES && isText(backendId),
             "not a backend's id");
  kj::Vector<kj::byte> whole;
  whole.addAll(observationId.asBytes());
  whole.add(NUL);
  whole.addAll(backendId.asBytes());
  return sha256(whole.asPtr());
}

}  // namespace praefectus::attest::v2
