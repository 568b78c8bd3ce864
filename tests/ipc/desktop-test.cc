#include "ipc/desktop.h"

#include "ipc/bounds.h"
#include "ipc/strict.h"
#include "tests/ipc/refusals.h"

#include <capnp/message.h>

#include <cmath>

namespace praefectus {
namespace {

kj::String repeated(kj::StringPtr piece, size_t times) {
  return kj::strArray(kj::repeat(piece, times), "");
}

Element element(kj::StringPtr name) {
  Element out;
  out.role = kj::str("entry");
  out.name = kj::str(name);
  out.digest.fill(5);
  return out;
}

// What was observed as it arrives; the strict reader has passed it.
struct Arrived {
  capnp::MallocMessageBuilder message;
  wire::Observation::Reader wire;
  Observation value;

  explicit Arrived(const Observation& from) {
    auto root = message.initRoot<wire::Observation>();
    write(from, root);
    wire = root.asReader();
    EXPECT_EQ(outcome(checkStrict(wire)), "ok");
    value = read(wire);
  }
};

Observation oneElement(Element only) {
  Observation seen;
  seen.frame.id.fill(1);
  seen.elements.add(kj::mv(only));
  return seen;
}

TEST(Desktop, anObservationIsReadAsItWasWritten) {
  Observation seen;
  seen.frame.id.fill(1);
  seen.frame.epoch = 9;
  seen.frame.window = {{3, 4}, 5};
  seen.frame.title = kj::str("Grüße");
  seen.frame.bounds = {-1, -2, 3, 4};
  seen.frame.scale = 2000;
  seen.frame.topology.fill(6);
  seen.elements.add(element("root"));
  auto child = element("child");
  child.depth = 1;
  child.position = 2;
  child.states.set(State::ENABLED);
  child.states.set(State::READ_ONLY);
  child.actions.add(kj::str("click"));
  child.bounds = Rect{1, 2, 3, 4};
  child.value = kj::str("value");
  child.settable = true;
  child.fault = Fault::LATE;
  seen.elements.add(kj::mv(child));
  seen.cuts.time = true;
  seen.elapsedMs = 12;

  Arrived arrived(seen);
  auto& back = arrived.value;
  EXPECT_EQ(back.frame.id, seen.frame.id);
  EXPECT_EQ(back.frame.epoch, 9u);
  EXPECT_EQ(back.frame.window, seen.frame.window);
  EXPECT_EQ(back.frame.title, "Grüße"_kj);
  EXPECT_EQ(back.frame.bounds, seen.frame.bounds);
  EXPECT_EQ(back.frame.scale, 2000u);
  EXPECT_EQ(back.frame.topology, seen.frame.topology);
  ASSERT_EQ(back.elements.size(), 2u);
  auto& second = back.elements[1];
  EXPECT_EQ(second.name, "child"_kj);
  EXPECT_EQ(second.depth, 1u);
  EXPECT_EQ(second.position, 2u);
  EXPECT_EQ(second.states, seen.elements[1].states);
  ASSERT_EQ(second.actions.size(), 1u);
  EXPECT_EQ(second.actions[0], "click"_kj);
  EXPECT_EQ(KJ_ASSERT_NONNULL(second.bounds), (Rect{1, 2, 3, 4}));
  EXPECT_EQ(KJ_ASSERT_NONNULL(second.value), "value"_kj);
  EXPECT_TRUE(second.settable);
  EXPECT_FALSE(second.textCut);
  EXPECT_EQ(second.fault, Fault::LATE);
  EXPECT_EQ(second.digest, seen.elements[1].digest);
  EXPECT_TRUE(back.elements[0].value == nullptr);
  EXPECT_TRUE(back.elements[0].bounds == nullptr);
  EXPECT_EQ(back.faults, 1u);
  EXPECT_EQ(back.elapsedMs, 12u);
  EXPECT_TRUE(back.cuts.time);
  EXPECT_FALSE(back.cuts.elements || back.cuts.text || back.cuts.depth);
  EXPECT_FALSE(arrived.wire.getHasPicture());
}

TEST(Desktop, aSecureElementLosesItsValueWhateverTheDriverPutThere) {
  auto password = element("Password");
  password.secure = true;
  password.settable = true;
  password.value = kj::str("hunter2");
  Arrived arrived(oneElement(kj::mv(password)));
  auto wire = arrived.wire.getElements()[0];
  EXPECT_TRUE(wire.getSecure());
  EXPECT_FALSE(wire.getHasValue());
  EXPECT_FALSE(wire.hasValue());
  EXPECT_FALSE(wire.getSettable());
  for (auto segment : arrived.message.getSegmentsForOutput()) {
    auto bytes = segment.asChars();
    EXPECT_EQ(std::string(bytes.begin(), bytes.size()).find("hunter2"), std::string::npos);
  }
}

TEST(Desktop, longTextIsCutOnACharactersBoundaryAndSaysSo) {
  Arrived whole(oneElement(element(repeated("a", bounds::TEXT_BYTES))));
  EXPECT_EQ(whole.value.elements[0].name.size(), bounds::TEXT_BYTES);
  EXPECT_FALSE(whole.value.elements[0].textCut);
  EXPECT_FALSE(whole.value.cuts.text);

  Arrived cut(oneElement(element(repeated("a", bounds::TEXT_BYTES + 1))));
  EXPECT_EQ(cut.value.elements[0].name.size(), bounds::TEXT_BYTES);
  EXPECT_TRUE(cut.value.elements[0].textCut);
  EXPECT_TRUE(cut.value.cuts.text);

  // 500 is not a multiple of three.
  Arrived euros(oneElement(element(repeated("€", 200))));
  EXPECT_EQ(euros.value.elements[0].name, repeated("€", 166));
  EXPECT_TRUE(euros.value.elements[0].textCut);

  auto valued = element("name");
  valued.value = repeated("b", bounds::TEXT_BYTES + 1);
  Arrived value(oneElement(kj::mv(valued)));
  EXPECT_EQ(KJ_ASSERT_NONNULL(value.value.elements[0].value).size(), bounds::TEXT_BYTES);
  EXPECT_TRUE(value.value.elements[0].textCut);
}

TEST(Desktop, whatIsNotTextIsReplacedSoThatItAlwaysArrives) {
  Arrived arrived(oneElement(element("a\xFFz\xE2\x82")));
  EXPECT_EQ(arrived.value.elements[0].name, "a\uFFFDz\uFFFD\uFFFD"_kj);
  Element nul = element("");
  nul.name = kj::heapString("a\0b", 3);
  Arrived second(oneElement(kj::mv(nul)));
  EXPECT_EQ(second.value.elements[0].name, "a\uFFFDb"_kj);
  // Replacements count against the bound as well.
  Arrived third(oneElement(element(repeated("\xFF", bounds::TEXT_BYTES))));
  EXPECT_LE(third.value.elements[0].name.size(), bounds::TEXT_BYTES);
  EXPECT_TRUE(third.value.elements[0].textCut);
}

TEST(Desktop, anActionNameIsWholeOrAbsent) {
  auto offering = element("button");
  offering.actions.add(kj::str("click"));
  offering.actions.add(repeated("a", bounds::ACTION_NAME_BYTES));
  offering.actions.add(repeated("a", bounds::ACTION_NAME_BYTES + 1));
  offering.actions.add(kj::str("\xFF"));
  offering.actions.add(kj::str(""));
  Arrived arrived(oneElement(kj::mv(offering)));
  EXPECT_EQ(arrived.value.elements[0].actions.size(), 2u);
  EXPECT_TRUE(arrived.value.elements[0].textCut);

  auto eager = element("many");
  for (uint32_t i = 0; i <= bounds::ACTIONS; ++i) eager.actions.add(kj::str("a", i));
  Arrived many(oneElement(kj::mv(eager)));
  EXPECT_EQ(many.value.elements[0].actions.size(), bounds::ACTIONS);
  EXPECT_TRUE(many.value.cuts.text);
}

TEST(Desktop, statesBeyondTheSchemaDoNotArrive) {
  auto odd = element("odd");
  odd.states.bits = ~uint64_t{0};
  Arrived arrived(oneElement(kj::mv(odd)));
  EXPECT_EQ(arrived.value.elements[0].states.bits, (uint64_t{1} << 41) - 1);
}

TEST(Desktop, elementsEndAtTheirBoundAndSaySo) {
  auto observed = [](size_t count) {
    Observation seen;
    for (size_t i = 0; i < count; ++i) seen.elements.add(element("x"));
    return seen;
  };
  Arrived all(observed(bounds::ELEMENTS));
  EXPECT_EQ(all.value.elements.size(), bounds::ELEMENTS);
  EXPECT_FALSE(all.value.cuts.elements);
  Arrived cut(observed(bounds::ELEMENTS + 1));
  EXPECT_EQ(cut.value.elements.size(), bounds::ELEMENTS);
  EXPECT_TRUE(cut.value.cuts.elements);
}

TEST(Desktop, anObservationFitsInHalfAMessage) {
  Observation seen;
  seen.frame.title = repeated("t", 5000);
  for (uint32_t i = 0; i < bounds::ELEMENTS; ++i) {
    auto large = element(repeated("n", bounds::TEXT_BYTES));
    large.role = repeated("r", bounds::TEXT_BYTES);
    large.value = repeated("v", bounds::TEXT_BYTES);
    large.bounds = Rect{1, 2, 3, 4};
    large.states.bits = ~uint64_t{0};
    for (uint32_t k = 0; k < bounds::ACTIONS; ++k) {
      large.actions.add(repeated("a", bounds::ACTION_NAME_BYTES));
    }
    seen.elements.add(kj::mv(large));
  }
  Arrived arrived(seen);
  auto words = arrived.wire.totalSize().wordCount;
  EXPECT_LE(words, bounds::MESSAGE_WORDS / 2);
  EXPECT_GT(words, bounds::MESSAGE_WORDS / 2 - 4096);
  EXPECT_TRUE(arrived.value.cuts.elements);
  EXPECT_GT(arrived.value.elements.size(), 10u);
}

TEST(Desktop, anElementBeforeItsParentIsNoTree) {
  Observation seen;
  seen.elements.add(element("root"));
  seen.elements.add(element("child"));
  seen.elements[1].parent = 1;
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Observation>();
  write(seen, root);
  EXPECT_ANY_THROW(read(root.asReader()));
  root.getElements()[1].setParent(0);
  EXPECT_NO_THROW(read(root.asReader()));
  root.getElements()[0].setParent(1);
  EXPECT_ANY_THROW(read(root.asReader()));
  root.getElements()[0].setParent(0);
  root.getElements()[1].initDigest(31);
  EXPECT_ANY_THROW(read(root.asReader()));
}

TEST(Desktop, aListOfWindowsIsReadAsWrittenAndCutAtItsBounds) {
  Desktop desktop;
  desktop.display = kj::str(":7");
  desktop.applications.add(Application{{1, 2}, kj::str("app"), kj::str("gtk"), AppState::READY});
  desktop.windows.add(Window{{{1, 2}, 3}, kj::str("title"), {1, 2, 3, 4}, true, false, 5, true});
  auto passed = [](const Desktop& from) {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::Desktop>();
    write(from, root);
    EXPECT_EQ(outcome(checkStrict(root.asReader())), "ok");
    EXPECT_LT(root.totalSize().wordCount, bounds::MESSAGE_WORDS - 1024);
    return read(root.asReader());
  };
  auto back = passed(desktop);
  EXPECT_EQ(back.display, ":7"_kj);
  ASSERT_EQ(back.applications.size(), 1u);
  EXPECT_EQ(back.applications[0].process, (Process{1, 2}));
  EXPECT_EQ(back.applications[0].toolkit, "gtk"_kj);
  ASSERT_EQ(back.windows.size(), 1u);
  EXPECT_EQ(back.windows[0].ref, desktop.windows[0].ref);
  EXPECT_EQ(back.windows[0].title, "title"_kj);
  EXPECT_TRUE(back.windows[0].visible);
  EXPECT_FALSE(back.windows[0].active);
  EXPECT_EQ(back.windows[0].stacking, 5u);
  EXPECT_FALSE(back.cut);

  auto longText = repeated("w", 1000);
  for (size_t i = 0; i < bounds::WINDOWS; ++i) {
    desktop.windows.add(Window{{{1, 2}, 3}, kj::str(longText), {}, true, false, 5, true});
    desktop.applications.add(Application{{1, 2}, kj::str(longText), kj::str(longText)});
  }
  back = passed(desktop);
  EXPECT_EQ(back.windows.size(), bounds::WINDOWS);
  EXPECT_EQ(back.applications.size(), bounds::APPLICATIONS);
  EXPECT_TRUE(back.cut);
}

// Stands for the real one: differs when key or message differ.
Hash fakeHash(Bytes key, Bytes message) {
  Hash out{};
  uint64_t state = 14695981039346656037ull;
  auto stir = [&](Bytes bytes) {
    for (auto byte : bytes) state = (state ^ byte) * 1099511628211ull;
    state = (state ^ bytes.size()) * 1099511628211ull;
  };
  stir(key);
  stir(message);
  memcpy(out.data(), &state, sizeof(state));
  return out;
}

struct FactsOnWire {
  capnp::MallocMessageBuilder message;
  wire::Facts::Reader wire;
  FactsOnWire(const Facts& from, const Hash& nonce) {
    KeyedHash hash = fakeHash;
    auto root = message.initRoot<wire::Facts>();
    write(from, nonce, hash, root);
    wire = root.asReader();
    EXPECT_EQ(outcome(checkStrict(wire)), "ok");
  }
};

Hash nonceOf(kj::byte fill) {
  Hash nonce;
  nonce.fill(fill);
  return nonce;
}

TEST(Desktop, factsCarryValuesOnlyAsKeyedHashes) {
  Facts facts;
  facts.before.value = kj::str("secret");
  facts.after.value = 12.5;
  facts.before.present = true;
  facts.before.states.set(State::ENABLED);
  facts.before.role = kj::str("entry");
  facts.before.name = kj::str("PIN");
  facts.answer = wire::Answer::ACCEPTED;
  facts.watch.watching = true;
  facts.watch.focusChanged = true;
  facts.settledMs = 3;
  auto nonce = nonceOf(9);
  FactsOnWire on(facts, nonce);
  auto before = on.wire.getBefore();
  EXPECT_TRUE(before.getPresent());
  EXPECT_EQ(before.getStates()[0], State::ENABLED);
  EXPECT_EQ(before.getValue().getText(),
            bytesOf(fakeHash(bytesOf(nonce), kj::StringPtr("secret").asBytes())));
  EXPECT_EQ(before.getLabel().size(), 32u);
  EXPECT_EQ(on.wire.getAfter().getValue().getNumber(),
            bytesOf(fakeHash(bytesOf(nonce), valueBytes(Value(12.5)))));
  EXPECT_EQ(on.wire.getAfter().getLabel().size(), 0u);
  EXPECT_EQ(on.wire.getAnswer(), wire::Answer::ACCEPTED);
  EXPECT_TRUE(on.wire.getWatch().getWatching());
  EXPECT_TRUE(on.wire.getWatch().getFocusChanged());
  EXPECT_FALSE(on.wire.getWatch().getPointerMoved());
  EXPECT_EQ(on.wire.getSettledMs(), 3u);

  FactsOnWire otherNonce(facts, nonceOf(8));
  EXPECT_NE(otherNonce.wire.getBefore().getValue().getText(), before.getValue().getText());
  EXPECT_NE(otherNonce.wire.getBefore().getLabel(), before.getLabel());
}

TEST(Desktop, aSetOfWindowsHashesTheSameInAnyOrder) {
  auto hashed = [](std::initializer_list<uint64_t> windows) {
    Facts facts;
    for (auto window : windows) facts.before.windows.add(window);
    FactsOnWire on(facts, nonceOf(1));
    return kj::heapArray(on.wire.getBefore().getWindows());
  };
  EXPECT_EQ(hashed({1, 2, 3}), hashed({3, 1, 2, 1}));
  EXPECT_NE(hashed({1, 2, 3}), hashed({1, 2}));
  EXPECT_NE(hashed({}), hashed({0}));
}

TEST(Desktop, windowsAreCountedAsASet) {
  auto counted = [](std::initializer_list<uint64_t> windows) {
    Facts facts;
    for (auto window : windows) facts.after.windows.add(window);
    FactsOnWire on(facts, nonceOf(1));
    return on.wire.getAfter().getWindowCount();
  };
  EXPECT_EQ(counted({}), 0u);
  EXPECT_EQ(counted({7}), 1u);
  EXPECT_EQ(counted({3, 1, 2, 1}), 3u);
}

TEST(Desktop, pixelsTravelAsAKeyedHashOrNotAtAll) {
  auto hashed = [](kj::StringPtr pixels, kj::byte nonce) {
    Facts facts;
    facts.after.region = kj::heapArray(pixels.asBytes());
    FactsOnWire on(facts, nonceOf(nonce));
    EXPECT_EQ(on.wire.getBefore().getRegion().size(), 0u);
    EXPECT_EQ(on.wire.getAfter().getRegion(),
              bytesOf(fakeHash(bytesOf(nonceOf(nonce)), pixels.asBytes())));
    return kj::heapArray(on.wire.getAfter().getRegion());
  };
  EXPECT_EQ(hashed("red", 1), hashed("red", 1));
  EXPECT_NE(hashed("red", 1), hashed("blue", 1));
  EXPECT_NE(hashed("red", 1), hashed("red", 2));
  // None of it is a region too: it was read.
  EXPECT_EQ(hashed("", 1).size(), sizeof(Hash));
}

TEST(Desktop, roleAndNameDoNotRunTogetherInALabel) {
  auto label = [](kj::StringPtr role, kj::StringPtr name) {
    Facts facts;
    facts.before.role = kj::str(role);
    facts.before.name = kj::str(name);
    FactsOnWire on(facts, nonceOf(1));
    return kj::heapArray(on.wire.getBefore().getLabel());
  };
  EXPECT_EQ(label("ab", "c"), label("ab", "c"));
  EXPECT_NE(label("ab", "c"), label("a", "bc"));
}

TEST(Desktop, aNumberIsTheWholeText) {
  EXPECT_EQ(KJ_ASSERT_NONNULL(parseNumber("12")), 12);
  EXPECT_EQ(KJ_ASSERT_NONNULL(parseNumber("-0.5")), -0.5);
  EXPECT_EQ(KJ_ASSERT_NONNULL(parseNumber("1e3")), 1000);
  for (auto bad : {"", " 1", "1 ", "+1", "1,5", "0x10", "inf", "nan", "1e999", "12a", "--1"}) {
    EXPECT_TRUE(parseNumber(bad) == nullptr) << bad;
  }
}

TEST(Desktop, aNumberHashesByItsValue) {
  EXPECT_EQ(valueBytes(Value(0.0)), valueBytes(Value(-0.0)));
  EXPECT_NE(valueBytes(Value(1.0)), valueBytes(Value(2.0)));
  const kj::byte one[] = {0, 0, 0, 0, 0, 0, 0xF0, 0x3F};
  EXPECT_EQ(valueBytes(Value(1.0)), kj::arrayPtr(one, 8));
  EXPECT_EQ(valueBytes(Value(kj::str("ä"))), kj::StringPtr("ä").asBytes());
  EXPECT_EQ(valueBytes(Value(NoValue())).size(), 0u);
}

}  // namespace
}  // namespace praefectus
