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

Hash hashOf(kj::byte fill) {
  Hash hash;
  hash.fill(fill);
  return hash;
}

Monitor monitor() { return {MonitorId{1, 2}, {-1920, 0, 1920, 1080}, true, 2000}; }

void expectSame(kj::ArrayPtr<const Monitor> left, kj::ArrayPtr<const Monitor> right) {
  ASSERT_EQ(left.size(), right.size());
  for (auto i : kj::indices(left)) {
    EXPECT_EQ(left[i].id, right[i].id);
    EXPECT_EQ(left[i].bounds, right[i].bounds);
    EXPECT_EQ(left[i].primary, right[i].primary);
    EXPECT_EQ(left[i].scale, right[i].scale);
  }
}

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
  seen.frame.monitors.add(monitor());
  seen.frame.page = Page{kj::str("https://example.org/"), hashOf(8), 1};
  seen.elements.add(element("root"));
  auto child = element("child");
  child.depth = 1;
  child.position = 2;
  child.states.set(State::ENABLED);
  child.states.set(State::READ_ONLY);
  child.faces.set(Face::ACTION);
  child.faces.set(Face::VALUE);
  child.path = kj::str("/org/a11y/7");
  child.domId = kj::str("submit");
  child.children = 5000;
  child.childrenCut = true;
  child.shows = true;
  child.change = Change::CHANGED;
  child.actions.add(kj::str("click"));
  child.bounds = Rect{1, 2, 3, 4};
  child.value = kj::str("value");
  child.settable = true;
  child.fault = Fault::LATE;
  seen.elements.add(kj::mv(child));
  seen.cuts.time = true;
  seen.elapsedMs = 12;
  seen.content = Content::PAGE_LOADING;
  seen.below = 1;
  seen.before = FrameId{7, 8};
  seen.gone.add(3);
  seen.gone.add(4999);
  seen.picture = PictureInfo{30, 40, 2000, -5, 6, hashOf(9), FrameId{1}};

  Arrived arrived(seen);
  auto& back = arrived.value;
  EXPECT_EQ(back.frame.id, seen.frame.id);
  EXPECT_EQ(back.frame.epoch, 9u);
  EXPECT_EQ(back.frame.window, seen.frame.window);
  EXPECT_EQ(back.frame.title, "Grüße"_kj);
  EXPECT_EQ(back.frame.bounds, seen.frame.bounds);
  EXPECT_EQ(back.frame.scale, 2000u);
  EXPECT_EQ(back.frame.topology, seen.frame.topology);
  expectSame(back.frame.monitors, seen.frame.monitors);
  auto& page = KJ_ASSERT_NONNULL(back.frame.page);
  EXPECT_EQ(page.url, "https://example.org/"_kj);
  EXPECT_EQ(page.document, hashOf(8));
  EXPECT_EQ(page.element, 1u);
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
  EXPECT_EQ(second.faces, seen.elements[1].faces);
  EXPECT_EQ(second.path, "/org/a11y/7"_kj);
  EXPECT_EQ(second.domId, "submit"_kj);
  EXPECT_EQ(second.children, 5000u);
  EXPECT_TRUE(second.childrenCut);
  EXPECT_TRUE(second.shows);
  EXPECT_EQ(second.change, Change::CHANGED);
  EXPECT_EQ(back.elements[0].path, ""_kj);
  EXPECT_FALSE(back.elements[0].childrenCut || back.elements[0].shows);
  EXPECT_EQ(second.digest, seen.elements[1].digest);
  EXPECT_TRUE(back.elements[0].value == nullptr);
  EXPECT_TRUE(back.elements[0].bounds == nullptr);
  EXPECT_EQ(back.faults, 1u);
  EXPECT_EQ(back.elapsedMs, 12u);
  EXPECT_TRUE(back.cuts.time);
  EXPECT_FALSE(back.cuts.elements || back.cuts.text || back.cuts.depth);
  EXPECT_EQ(back.content, Content::PAGE_LOADING);
  EXPECT_EQ(back.below, 1u);
  EXPECT_EQ(KJ_ASSERT_NONNULL(back.before), (FrameId{7, 8}));
  EXPECT_EQ(back.gone.asPtr(), seen.gone.asPtr());
  auto& picture = KJ_ASSERT_NONNULL(back.picture);
  EXPECT_EQ(picture.width, 30u);
  EXPECT_EQ(picture.height, 40u);
  EXPECT_EQ(picture.scale, 2000u);
  EXPECT_EQ(picture.x, -5);
  EXPECT_EQ(picture.y, 6);
  EXPECT_EQ(picture.pixels, hashOf(9));
  EXPECT_EQ(KJ_ASSERT_NONNULL(picture.frame), FrameId{1});
}

TEST(Desktop, whatIsNotThereIsNotRead) {
  Arrived arrived(oneElement(element("only")));
  EXPECT_TRUE(arrived.value.picture == nullptr);
  EXPECT_TRUE(arrived.value.before == nullptr);
  EXPECT_TRUE(arrived.value.frame.page == nullptr);
  EXPECT_EQ(arrived.value.below, 0u);
  EXPECT_EQ(arrived.value.content, Content::ELEMENTS);
  EXPECT_EQ(arrived.value.elements[0].change, Change::UNKNOWN);
}

TEST(Desktop, whatManyElementsShareStandsOnce) {
  Observation seen;
  for (auto number : {1, 22, 333}) {
    auto button = element("b");
    button.role = kj::str("push button");
    button.path = kj::str("/org/a11y/atspi/accessible/", number);
    button.actions.add(kj::str("click"));
    seen.elements.add(kj::mv(button));
  }
  Arrived arrived(seen);
  EXPECT_EQ(arrived.wire.getPathStart(), "/org/a11y/atspi/accessible/");
  ASSERT_EQ(arrived.wire.getWords().size(), 2u);
  EXPECT_EQ(arrived.wire.getElements()[2].getPath(), "333");
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(arrived.value.elements[i].role, "push button"_kj);
    EXPECT_EQ(arrived.value.elements[i].path, seen.elements[i].path);
    EXPECT_EQ(arrived.value.elements[i].actions[0], "click"_kj);
  }
}

TEST(Desktop, pathsThatShareLittleOrNothingArriveWhole) {
  auto pathsOf = [](std::initializer_list<kj::StringPtr> paths) {
    Observation seen;
    for (auto path : paths) {
      seen.elements.add(element("x"));
      seen.elements.back().path = kj::str(path);
    }
    Arrived arrived(seen);
    for (size_t i = 0; i < paths.size(); ++i) {
      EXPECT_EQ(arrived.value.elements[i].path, paths.begin()[i]);
    }
    return kj::str(arrived.wire.getPathStart());
  };
  EXPECT_EQ(pathsOf({"/a/b1", "/a/b2"}), "/a/"_kj);
  EXPECT_EQ(pathsOf({"/a/b", "/a/b/c"}), "/a/"_kj);
  EXPECT_EQ(pathsOf({"/a/b", "", "/a/c"}), "/a/"_kj);
  EXPECT_EQ(pathsOf({"/", "/a"}), ""_kj);
  EXPECT_EQ(pathsOf({"/a/", "/a/b"}), "/"_kj);
  EXPECT_EQ(pathsOf({"/a/b", "none"}), ""_kj);
  EXPECT_EQ(pathsOf({"", ""}), ""_kj);
}

TEST(Desktop, aPathAndAPagesIdAreWholeOrEmpty) {
  auto longest = repeated("p", bounds::PATH_BYTES);
  auto fits = element("fits");
  fits.path = kj::str(longest);
  fits.domId = kj::str(longest);
  Arrived whole(oneElement(kj::mv(fits)));
  EXPECT_EQ(whole.value.elements[0].path, longest);
  EXPECT_EQ(whole.value.elements[0].domId, longest);
  EXPECT_FALSE(whole.value.cuts.text);
  for (auto& bad : {kj::str(longest, "p"), kj::str("\xFF")}) {
    auto pathed = element("path");
    pathed.path = kj::str(bad);
    Arrived path(oneElement(kj::mv(pathed)));
    EXPECT_EQ(path.value.elements[0].path, ""_kj);
    EXPECT_TRUE(path.value.elements[0].textCut && path.value.cuts.text);
    auto identified = element("id");
    identified.domId = kj::str(bad);
    Arrived id(oneElement(kj::mv(identified)));
    EXPECT_EQ(id.value.elements[0].domId, ""_kj);
    EXPECT_TRUE(id.value.elements[0].textCut && id.value.cuts.text);
  }
}

TEST(Desktop, aRoleIsWholeOrEmpty) {
  auto odd = element("odd");
  odd.role = repeated("r", bounds::ACTION_NAME_BYTES + 1);
  Arrived arrived(oneElement(kj::mv(odd)));
  EXPECT_EQ(arrived.value.elements[0].role, ""_kj);
  EXPECT_TRUE(arrived.value.elements[0].textCut);
}

TEST(Desktop, theRequestSaysHowMuchTextThereIs) {
  auto wordy = [](uint32_t bound) {
    auto seen = oneElement(element(repeated("n", 20'000)));
    seen.elements[0].value = repeated("v", 20'000);
    seen.textBytes = bound;
    return seen;
  };
  for (uint32_t bound : {1u, 40u, 16'384u}) {
    Arrived arrived(wordy(bound));
    EXPECT_EQ(arrived.value.elements[0].name.size(), bound);
    EXPECT_EQ(KJ_ASSERT_NONNULL(arrived.value.elements[0].value).size(), bound);
    EXPECT_TRUE(arrived.value.elements[0].textCut);
  }
}

TEST(Desktop, aPagesAddressIsCutAt2048Bytes) {
  auto seen = oneElement(element("document"));
  seen.frame.page = Page{repeated("u", 2048), hashOf(1), 0};
  Arrived whole(seen);
  EXPECT_FALSE(whole.value.cuts.text);
  seen.frame.page = Page{repeated("u", 2049), hashOf(1), 0};
  Arrived cut(seen);
  EXPECT_EQ(KJ_ASSERT_NONNULL(cut.value.frame.page).url.size(), 2048u);
  EXPECT_TRUE(cut.value.cuts.text);
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

TEST(Desktop, statesAndInterfacesBeyondTheSchemaDoNotArrive) {
  auto odd = element("odd");
  odd.states.bits = ~uint64_t{0};
  odd.faces.bits = ~uint32_t{0};
  Arrived arrived(oneElement(kj::mv(odd)));
  EXPECT_EQ(arrived.value.elements[0].states.bits, (uint64_t{1} << 41) - 1);
  EXPECT_EQ(arrived.value.elements[0].faces.bits, (1u << 14) - 1);
}

TEST(Desktop, elementsEndAtTheirBoundAndSaySo) {
  auto observed = [](size_t count) {
    Observation seen;
    for (size_t i = 0; i < count; ++i) seen.elements.add(element("x"));
    return seen;
  };
  Arrived all(observed(5000));
  EXPECT_EQ(all.value.elements.size(), 5000u);
  EXPECT_FALSE(all.value.cuts.elements);
  EXPECT_FALSE(all.value.elements[0].childrenCut);
  Arrived cut(observed(5001));
  EXPECT_EQ(cut.value.elements.size(), 5000u);
  EXPECT_TRUE(cut.value.cuts.elements);
  // They are all the first one's children.
  EXPECT_TRUE(cut.value.elements[0].childrenCut);
  EXPECT_FALSE(cut.value.elements[1].childrenCut);
}

TEST(Desktop, anObservationFitsInAMessage) {
  Observation seen;
  seen.frame.title = repeated("t", 5000);
  for (size_t i = 0; i < 2 * bounds::MONITORS; ++i) seen.frame.monitors.add(monitor());
  for (uint32_t i = 0; i < 2 * bounds::ELEMENTS_LIMIT; ++i) seen.gone.add(i);
  seen.frame.page = Page{repeated("u", 5000), {}, 0};
  seen.picture = PictureInfo{};
  for (uint32_t i = 0; i < bounds::ELEMENTS; ++i) {
    auto large = element(repeated("n", bounds::TEXT_BYTES));
    large.role = kj::str(repeated("r", bounds::ACTION_NAME_BYTES - 8), i);
    large.path = kj::str(repeated("/p", 100), i);
    large.domId = repeated("d", i % bounds::PATH_BYTES);
    large.value = repeated("v", bounds::TEXT_BYTES);
    large.bounds = Rect{1, 2, 3, 4};
    large.states.bits = ~uint64_t{0};
    for (uint32_t k = 0; k < bounds::ACTIONS; ++k) {
      large.actions.add(kj::str(repeated("a", bounds::ACTION_NAME_BYTES - 8), i % 50));
    }
    seen.elements.add(kj::mv(large));
  }
  Arrived arrived(seen);
  auto words = arrived.wire.totalSize().wordCount;
  EXPECT_LE(words, bounds::MESSAGE_WORDS / 8 * 7);
  EXPECT_GT(words, bounds::MESSAGE_WORDS / 8 * 7 - 4096);
  EXPECT_EQ(arrived.value.frame.monitors.size(), bounds::MONITORS);
  EXPECT_EQ(arrived.value.gone.size(), bounds::ELEMENTS_LIMIT);
  EXPECT_TRUE(arrived.value.cuts.elements);
  EXPECT_GT(arrived.value.elements.size(), 10u);
}

// An observation of two elements, changed on the wire.
template <typename Alter>
void expectRefused(Alter alter) {
  Observation seen;
  seen.frame.page = Page{kj::str("https://example.org/"), {}, 1};
  for (auto name : {"root", "child"}) {
    seen.elements.add(element(name));
    seen.elements.back().path = kj::str("/a/", name);
    seen.elements.back().actions.add(kj::str("click"));
  }
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Observation>();
  write(seen, root);
  EXPECT_NO_THROW(read(root.asReader()));
  alter(root);
  EXPECT_ANY_THROW(read(root.asReader()));
}

using Wire = wire::Observation::Builder;

TEST(Desktop, anElementBeforeItsParentIsNoTree) {
  expectRefused([](Wire to) { to.getElements()[1].setParent(1); });
  expectRefused([](Wire to) { to.getElements()[0].setParent(1); });
}

TEST(Desktop, everyElementHasADigest) {
  expectRefused([](Wire to) { to.initDigests(63); });
  expectRefused([](Wire to) { to.initDigests(32); });
  expectRefused([](Wire to) { to.initDigests(96); });
}

TEST(Desktop, whatRefersToNothingIsRefused) {
  expectRefused([](Wire to) { to.getElements()[1].setRole(2); });
  expectRefused([](Wire to) { to.getElements()[1].initActions(1).set(0, 2); });
  expectRefused([](Wire to) { to.getFrame().getPage().setElement(2); });
  expectRefused([](Wire to) { to.setBelow(2); });
  expectRefused([](Wire to) { to.initBefore(15); });
}

TEST(Desktop, aBitThatMeansNothingIsRefused) {
  expectRefused([](Wire to) { to.getElements()[1].setStates(uint64_t{1} << 41); });
  expectRefused([](Wire to) { to.getElements()[1].setFaces(1u << 14); });
}

// What stands once is copied for each element, so that a small message could become a large value.
TEST(Desktop, whatElementsShareIsBounded) {
  expectRefused(
      [](Wire to) { to.getWords().set(0, repeated("w", bounds::ACTION_NAME_BYTES + 1).cStr()); });
  expectRefused([](Wire to) { to.setPathStart(repeated("p", bounds::PATH_BYTES + 1)); });
  expectRefused([](Wire to) { to.getElements()[1].initActions(bounds::ACTIONS + 1); });
  expectRefused([](Wire to) {
    to.initElements(bounds::ELEMENTS_LIMIT + 1);
    to.initDigests((bounds::ELEMENTS_LIMIT + 1) * sizeof(Hash));
  });
}

TEST(Desktop, whatTheElementsLackIsNotReferredTo) {
  // The page's document is beyond what fits, and so is the element that was asked for.
  Observation seen;
  for (size_t i = 0; i < 3; ++i) seen.elements.add(element(repeated("n", 1u << 19)));
  seen.textBytes = 1u << 19;
  seen.frame.page = Page{kj::str("https://example.org/"), {}, 2};
  seen.below = 2;
  Arrived arrived(seen);
  ASSERT_EQ(arrived.value.elements.size(), 1u);
  EXPECT_TRUE(arrived.value.frame.page == nullptr);
  EXPECT_EQ(arrived.value.below, 0u);
  EXPECT_TRUE(arrived.value.cuts.elements);
}

TEST(Desktop, aListOfWindowsIsReadAsWrittenAndCutAtItsBounds) {
  Desktop desktop;
  desktop.display = kj::str(":7");
  desktop.applications.add(
      Application{{1, 2}, kj::str("app"), kj::str("gtk"), kj::str("4.8"), AppState::UNREGISTERED});
  desktop.windows.add(Window{{{1, 2}, 3},
                             kj::str("title"),
                             {1, 2, 3, 4},
                             true,
                             false,
                             5,
                             true,
                             WindowKind::POPUP,
                             77,
                             true,
                             false});
  desktop.monitors.add(monitor());
  desktop.topology = hashOf(4);
  desktop.lock = Lock::LOCKED;
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
  EXPECT_EQ(back.applications[0].version, "4.8"_kj);
  EXPECT_EQ(back.applications[0].state, AppState::UNREGISTERED);
  ASSERT_EQ(back.windows.size(), 1u);
  EXPECT_EQ(back.windows[0].ref, desktop.windows[0].ref);
  EXPECT_EQ(back.windows[0].title, "title"_kj);
  EXPECT_TRUE(back.windows[0].visible);
  EXPECT_FALSE(back.windows[0].active);
  EXPECT_EQ(back.windows[0].stacking, 5u);
  EXPECT_EQ(back.windows[0].kind, WindowKind::POPUP);
  EXPECT_EQ(back.windows[0].owner, 77u);
  EXPECT_TRUE(back.windows[0].modal);
  EXPECT_FALSE(back.windows[0].managed);
  expectSame(back.monitors, desktop.monitors);
  EXPECT_EQ(back.topology, hashOf(4));
  EXPECT_EQ(back.lock, Lock::LOCKED);
  EXPECT_FALSE(back.cut);

  auto longText = repeated("w", 1000);
  for (size_t i = 0; i < bounds::WINDOWS; ++i) {
    desktop.windows.add(Window{{{1, 2}, 3}, kj::str(longText), {}, true, false, 5, true});
    desktop.applications.add(
        Application{{1, 2}, kj::str(longText), kj::str(longText), kj::str(longText)});
    desktop.monitors.add(monitor());
  }
  back = passed(desktop);
  EXPECT_EQ(back.windows.size(), bounds::WINDOWS);
  EXPECT_EQ(back.applications.size(), bounds::APPLICATIONS);
  EXPECT_EQ(back.monitors.size(), bounds::MONITORS);
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
