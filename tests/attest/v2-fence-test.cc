#include "attest/v2/fence.h"

#include "tests/attest/v2-samples.h"
#include "tests/ipc/refusals.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace praefectus::attest::v2 {
namespace {

constexpr uint32_t BUTTON = 1, FIELD = 2;

// The name of the refusal and its sentence, or "ok".
template <typename T>
std::string told(const Result<T>& result) {
  return result.ok() ? "ok" : outcome(result) + ": " + spelled(result.refusal().detail);
}

void forge(kj::String& hash) { hash[0] = hash[0] == 'f' ? '0' : 'f'; }

std::string all(const Fence& fence) {
  return spelled(kj::str(fence.observationId, fence.generation, fence.provenanceHash,
                         fence.elementId, fence.fingerprintHash));
}

TEST(V2Fence, itLeadsBackToTheElementThatWasSeen) {
  auto seen = sampleObservation();
  for (uint32_t i = 0; i < seen.elements.size(); ++i) {
    auto target = elementOf(fenceOf(seen, i), seen);
    ASSERT_TRUE(target.ok()) << told(target);
    EXPECT_EQ(target->window, seen.frame.window);
    EXPECT_EQ(target->frame, seen.frame.id);
    EXPECT_EQ(target->epoch, seen.frame.epoch);
    EXPECT_EQ(target->element, i);
    EXPECT_EQ(target->digest, seen.elements[i].digest);
  }
}

TEST(V2Fence, itIsAFenceThatARequestMayHave) {
  auto seen = sampleObservation();
  auto request = requestOf({{"kind", "invoke"}}, targetFor(fenceOf(seen, BUTTON)));
  EXPECT_EQ(outcome(read(request)), "ok");
  request = requestOf({{"kind", "move"}}, targetFor(coordinatesOf(seen, 0, 0)));
  EXPECT_EQ(outcome(read(request)), "ok");
}

// Made by hand from the header's description, with Python's hashlib and json.
TEST(V2Fence, itsHashesAreThoseThatTheHeaderDescribes) {
  auto seen = sampleObservation();
  auto fence = fenceOf(seen, BUTTON);
  EXPECT_EQ(spelled(fence.observationId),
            "60514c727f5bae753364689cec578c61ba411b9bdcfdf6814cb3a699ab8e5b65");
  EXPECT_EQ(fence.generation, 4u);
  EXPECT_EQ(spelled(fence.provenanceHash),
            "a6ac368e5be5dc42e8e0b36d76cc4b7967b23cc8356569d1fbb963b8dc009a95");
  EXPECT_EQ(spelled(fence.elementId),
            "b1d2374307014ec9881294362fa6176876cb20642f6bde05edcafb77de2abb44");
  EXPECT_EQ(spelled(fence.fingerprintHash),
            "4a83e9d9a4acf2665704a4d47da842f88313d9e504d8aca59a130311e63e6d0e");
}

TEST(V2Fence, itIsTheSameEachTimeAndAnotherForEachElement) {
  auto seen = sampleObservation();
  EXPECT_EQ(all(fenceOf(seen, BUTTON)), all(fenceOf(sampleObservation(), BUTTON)));
  // Two elements that are alike in everything but their place.
  seen.elements[FIELD].role = kj::str(seen.elements[BUTTON].role);
  seen.elements[FIELD].name = kj::str(seen.elements[BUTTON].name);
  seen.elements[FIELD].digest = seen.elements[BUTTON].digest;
  auto button = fenceOf(seen, BUTTON), field = fenceOf(seen, FIELD);
  EXPECT_EQ(button.observationId, field.observationId);
  EXPECT_EQ(button.provenanceHash, field.provenanceHash);
  EXPECT_NE(button.elementId, field.elementId);
  EXPECT_NE(button.fingerprintHash, field.fingerprintHash);
}

TEST(V2Fence, eachOfTheFiveFieldsIsComparedAndNamed) {
  auto seen = sampleObservation();
  struct Case {
    std::function<void(Fence&)> forging;
    std::string refusal;
  };
  for (auto& each : std::vector<Case>{{[](Fence& fence) { forge(fence.observationId); },
                                       "stale_frame: The element is of another observation."},
                                      {[](Fence& fence) { ++fence.generation; },
                                       "stale_frame: The observation's generation is another."},
                                      {[](Fence& fence) { forge(fence.provenanceHash); },
                                       "target_changed: The observation's provenance is another."},
                                      {[](Fence& fence) { forge(fence.elementId); },
                                       "target_changed: The observation has no such element."},
                                      {[](Fence& fence) { forge(fence.fingerprintHash); },
                                       "target_changed: The element's fingerprint is another."}}) {
    auto fence = fenceOf(seen, BUTTON);
    each.forging(fence);
    EXPECT_EQ(told(elementOf(fence, seen)), each.refusal);
  }
}

TEST(V2Fence, theNameOfOneElementDoesNotFitAnother) {
  auto seen = sampleObservation();
  auto fence = fenceOf(seen, BUTTON);
  fence.fingerprintHash = kj::str(fenceOf(seen, FIELD).fingerprintHash);
  EXPECT_EQ(outcome(elementOf(fence, seen)), "target_changed");
}

// What a later observation of the same window may say differently.
TEST(V2Fence, whatChangedIsRefused) {
  using Change = std::function<void(Observation&)>;
  auto fence = fenceOf(sampleObservation(), BUTTON);
  auto point = coordinatesOf(sampleObservation(), 0, 150);
  auto after = [&](const Change& change) {
    auto seen = sampleObservation();
    change(seen);
    return outcome(elementOf(fence, seen)) + " " + outcome(pointOf(point, seen));
  };
  EXPECT_EQ(after([](Observation&) {}), "ok ok");
  EXPECT_EQ(after([](Observation& seen) { ++seen.frame.id[0]; }), "stale_frame stale_frame");
  EXPECT_EQ(after([](Observation& seen) { ++seen.frame.window.window; }),
            "stale_frame stale_frame");
  EXPECT_EQ(after([](Observation& seen) { ++seen.frame.epoch; }), "stale_frame ok");
  EXPECT_EQ(after([](Observation& seen) { ++seen.frame.window.process.pid; }), "target_changed ok");
  EXPECT_EQ(after([](Observation& seen) { ++seen.frame.window.process.start; }),
            "target_changed ok");
  EXPECT_EQ(after([](Observation& seen) { ++seen.frame.topology[0]; }),
            "target_changed stale_frame");
  for (auto& change : std::vector<Change>{
           [](Observation& seen) { seen.elements[BUTTON].role = kj::str("check box"); },
           [](Observation& seen) { seen.elements[BUTTON].name = kj::str("Cancel"); },
           [](Observation& seen) { seen.elements[BUTTON].settable = true; },
           [](Observation& seen) { seen.elements[BUTTON].actions[0] = kj::str("press"); },
           [](Observation& seen) { seen.elements[BUTTON].actions.add(kj::str("press")); },
           [](Observation& seen) { ++seen.elements[BUTTON].digest[0]; },
           [](Observation& seen) { seen.elements.truncate(BUTTON); }}) {
    EXPECT_EQ(after(change), "target_changed stale_frame");
  }
  EXPECT_EQ(after([](Observation& seen) { seen.elements.truncate(FIELD); }), "ok stale_frame");
  EXPECT_EQ(after([](Observation& seen) { seen.png = kj::heapArray<kj::byte>(1); }),
            "ok stale_frame");
}

TEST(V2Fence, thereIsNoneForAnElementThatWasNotSeen) {
  auto seen = sampleObservation();
  EXPECT_ANY_THROW(fenceOf(seen, static_cast<uint32_t>(seen.elements.size())));
}

TEST(V2Point, itLiesInTheWindowOrIsRefused) {
  auto seen = sampleObservation();  // From (-20, 100), 400 by 300.
  auto at = [&](int64_t x, int64_t y) {
    auto point = pointOf(coordinatesOf(seen, x, y), seen);
    return point.ok() ? spelled(kj::str(point->x, ' ', point->y)) : outcome(point);
  };
  EXPECT_EQ(at(-20, 100), "0 0");
  EXPECT_EQ(at(0, 150), "20 50");
  EXPECT_EQ(at(379, 399), "399 299");
  for (auto& [x, y] : std::vector<std::pair<int64_t, int64_t>>{{-21, 100},
                                                               {-20, 99},
                                                               {380, 399},
                                                               {379, 400},
                                                               {INT64_MIN, 100},
                                                               {INT64_MAX, 100},
                                                               {0, INT64_MIN},
                                                               {0, INT64_MAX}}) {
    EXPECT_EQ(at(x, y), "invalid_coordinate") << x << " " << y;
  }
}

TEST(V2Point, itIsOfTheFrameThatWasSeen) {
  auto seen = sampleObservation();
  auto point = pointOf(coordinatesOf(seen, 0, 150), seen);
  ASSERT_TRUE(point.ok());
  EXPECT_EQ(point->window, seen.frame.window);
  EXPECT_EQ(point->frame, seen.frame.id);
  EXPECT_EQ(point->epoch, seen.frame.epoch);
}

TEST(V2Point, eachNameOfItsSnapshotIsComparedAndNamed) {
  auto seen = sampleObservation();
  struct Case {
    kj::String Coordinates::*field;
    std::string sentence;
  };
  for (auto& each :
       {Case{&Coordinates::displayId, "The point is of another display."},
        Case{&Coordinates::displayGeometryHash, "The displays lie otherwise."},
        Case{&Coordinates::snapshotId, "The point is of another snapshot."},
        Case{&Coordinates::snapshotContentHash, "The snapshot's content is another."}}) {
    auto point = coordinatesOf(seen, 0, 150);
    forge(point.*each.field);
    EXPECT_EQ(told(pointOf(point, seen)), "stale_frame: " + each.sentence);
  }
}

TEST(V2Point, aPictureBelongsToTheSnapshot) {
  std::set<std::string> contents;
  auto seen = sampleObservation();
  contents.insert(spelled(coordinatesOf(seen, 0, 0).snapshotContentHash));
  seen.png = kj::heapArray<kj::byte>("one"_kj.asBytes());
  contents.insert(spelled(coordinatesOf(seen, 0, 0).snapshotContentHash));
  seen.png = kj::heapArray<kj::byte>("two"_kj.asBytes());
  contents.insert(spelled(coordinatesOf(seen, 0, 0).snapshotContentHash));
  EXPECT_EQ(contents.size(), 3u);
}

// SHA-256 of 64 times "a", a zero byte, and "b".
TEST(V2OpaqueId, itDependsOnBothOfItsInputs) {
  auto observation = std::string(64, 'a'), other = std::string(64, 'b');
  auto id = spelled(opaqueId(observation.c_str(), "b"));
  EXPECT_EQ(id, "91e1566c8c9d8bc2816a47452982f9db2887543b188d19179a20560c0d62493d");
  EXPECT_NE(spelled(opaqueId(other.c_str(), "b")), id);
  EXPECT_NE(spelled(opaqueId(observation.c_str(), "c")), id);
}

TEST(V2OpaqueId, itTakesNothingThatIsNoId) {
  auto observation = std::string(64, 'a');
  for (auto& bad : {std::string(), std::string(63, 'a'), std::string(65, 'a'), std::string(66, 'a'),
                    std::string(64, 'A'), std::string(64, 'g')}) {
    EXPECT_ANY_THROW(opaqueId(bad.c_str(), "b")) << bad;
  }
  EXPECT_NO_THROW(opaqueId(observation.c_str(), std::string(512, 'b').c_str()));
  EXPECT_ANY_THROW(opaqueId(observation.c_str(), std::string(513, 'b').c_str()));
  EXPECT_ANY_THROW(opaqueId(observation.c_str(), ""));
  EXPECT_ANY_THROW(opaqueId(observation.c_str(), kj::StringPtr("b\0c", 3)));
}

}  // namespace
}  // namespace praefectus::attest::v2
