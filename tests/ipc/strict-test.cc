#include "ipc/strict.h"

#include "ipc/bounds.h"
#include "tests/ipc/newer.capnp.h"
#include "tests/ipc/refusals.h"

#include <capnp/message.h>
#include <capnp/serialize.h>

namespace praefectus {
namespace {

using newer::Color;
using newer::ColorNewer;
using newer::Deep;
using newer::Plain;
using newer::PlainNewer;

// Pointers of Plain in the order of its sections.
enum Place : capnp::uint { TEXT, DATA, FLAGS, COLORS, TEXTS, ITEMS, ITEM, THING, LABEL, BEYOND };
constexpr capnp::uint DATA_WORDS = 2;

// What the strict reader says of a message once it has been on a wire.
template <typename T>
std::string seenAs(capnp::MessageBuilder& message,
                   capnp::ReaderOptions options = capnp::ReaderOptions()) {
  auto words = capnp::messageToFlatArray(message);
  capnp::FlatArrayMessageReader received(words, options);
  return outcome(checkStrict(received.getRoot<T>()));
}

template <typename Fill>
std::string newerSeenAsPlain(Fill&& fill) {
  capnp::MallocMessageBuilder message;
  fill(message.initRoot<PlainNewer>());
  return seenAs<Plain>(message);
}

template <typename Fill>
std::string plain(Fill&& fill) {
  capnp::MallocMessageBuilder message;
  fill(message.initRoot<Plain>());
  return seenAs<Plain>(message);
}

// A Plain by its raw sections, for what no schema would let us build.
template <typename Fill>
std::string raw(Fill&& fill) {
  capnp::MallocMessageBuilder message;
  auto root = message.getRoot<capnp::AnyPointer>().initAsAnyStruct(DATA_WORDS, BEYOND + 1);
  fill(root.getDataSection(), root.getPointerSection());
  return seenAs<Plain>(message);
}

void fillAll(Plain::Builder plain) {
  plain.setFlag(true);
  plain.setColor(Color::GREEN);
  plain.setText("Grüße");
  plain.setData(kj::StringPtr("\xFF").asBytes());
  plain.initFlags(9).set(8, true);
  plain.initColors(3).set(1, Color::GREEN);
  plain.initTexts(2).set(0, "one");
  plain.initItems(2)[1].setText("item");
  plain.initItem().setNumber(7);
  plain.initPair().setLeft(1);
  plain.getPair().setRight("right");
}

TEST(Strict, aMessageOfTheSameSchemaPasses) {
  EXPECT_EQ(plain([](Plain::Builder) {}), "ok");
  EXPECT_EQ(plain(fillAll), "ok");
  EXPECT_EQ(plain([](Plain::Builder p) { p.setCount(~uint64_t{0}); }), "ok");
  EXPECT_EQ(plain([](Plain::Builder p) { p.setLabel("label"); }), "ok");
}

TEST(Strict, aNewerMessageThatUsesNothingNewPasses) {
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) {
              p.setFlag(true);
              p.setText("text");
              p.initItems(2)[1].setText("item");
            }),
            "ok");
}

TEST(Strict, aNewFieldInSpareBitsIsUnknown) {
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.setSecondFlag(true); }),
            "unknown_field");
}

TEST(Strict, aNewFieldInANewWordIsUnknown) {
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.setExtraNumber(1); }), "unknown_field");
}

TEST(Strict, aNewPointerIsUnknownEvenWhenItIsEmpty) {
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.setExtraText("x"); }), "unknown_field");
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.setExtraText(""); }), "unknown_field");
}

TEST(Strict, aNewFieldOfANestedStructIsUnknown) {
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.initItem().setFlag(true); }),
            "unknown_field");
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.initItem().setMore("x"); }),
            "unknown_field");
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.initItems(2)[1].setFlag(true); }),
            "unknown_field");
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.initItems(2)[1].setMore("x"); }),
            "unknown_field");
}

TEST(Strict, anUnknownEnumerantIsUnknownInAFieldAndInAList) {
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.setColor(ColorNewer::GREEN); }), "ok");
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.setColor(ColorNewer::BLUE); }),
            "unknown_field");
  EXPECT_EQ(
      newerSeenAsPlain([](PlainNewer::Builder p) { p.initColors(3).set(2, ColorNewer::GREEN); }),
      "ok");
  EXPECT_EQ(
      newerSeenAsPlain([](PlainNewer::Builder p) { p.initColors(3).set(2, ColorNewer::BLUE); }),
      "unknown_field");
}

TEST(Strict, anUnknownUnionTagIsUnknown) {
  EXPECT_EQ(newerSeenAsPlain([](PlainNewer::Builder p) { p.setOther(); }), "unknown_field");
}

// The tag stands in bits 32 to 47 of Plain's first word, the count and the group's number in its
// second.
TEST(Strict, dataBehindAnInactiveUnionMemberIsUnknown) {
  EXPECT_EQ(raw([](auto data, auto) { data[8] = 1; }), "unknown_field");
  auto tag = [](kj::ArrayPtr<kj::byte> data, Plain::Which which) {
    capnp::MallocMessageBuilder sample;
    auto built = sample.initRoot<Plain>();
    if (which == Plain::COUNT) built.setCount(0);
    if (which == Plain::LABEL) built.setLabel("");
    if (which == Plain::PAIR) built.initPair();
    auto from = capnp::toAny(built.asReader()).getDataSection();
    std::copy(from.begin(), from.end(), data.begin());
  };
  auto withTag = [&](Plain::Which which, size_t byte) {
    return raw([&](auto data, auto) {
      tag(data, which);
      data[byte] = 1;
    });
  };
  EXPECT_EQ(withTag(Plain::COUNT, 8), "ok");
  EXPECT_EQ(withTag(Plain::COUNT, 15), "ok");
  EXPECT_EQ(withTag(Plain::LABEL, 8), "unknown_field");
  EXPECT_EQ(withTag(Plain::PAIR, 11), "ok");
  EXPECT_EQ(withTag(Plain::PAIR, 12), "unknown_field");
}

TEST(Strict, aPointerBehindAnInactiveUnionMemberIsUnknown) {
  EXPECT_EQ(raw([](auto, auto pointers) { pointers[LABEL].template setAs<capnp::Text>("hidden"); }),
            "unknown_field");
}

TEST(Strict, aPointerOfTheWrongKindIsMalformed) {
  auto textAt = [](Place place) {
    return raw([&](auto, auto pointers) { pointers[place].template setAs<capnp::Text>("x"); });
  };
  EXPECT_EQ(textAt(TEXT), "ok");
  EXPECT_EQ(textAt(DATA), "ok");
  for (auto place : {FLAGS, COLORS, TEXTS, ITEMS, ITEM, THING}) {
    EXPECT_EQ(textAt(place), "malformed") << place;
  }
  auto structAt = [](Place place) {
    return raw([&](auto, auto pointers) { pointers[place].initAsAnyStruct(1, 1); });
  };
  EXPECT_EQ(structAt(ITEM), "ok");
  for (auto place : {TEXT, DATA, FLAGS, COLORS, TEXTS, ITEMS, THING}) {
    EXPECT_EQ(structAt(place), "malformed") << place;
  }
  auto structsAt = [](Place place) {
    return raw([&](auto, auto pointers) { pointers[place].initAsListOfAnyStruct(1, 1, 2); });
  };
  EXPECT_EQ(structsAt(ITEMS), "ok");
  for (auto place : {TEXT, DATA, FLAGS, COLORS, TEXTS, ITEM, THING}) {
    EXPECT_EQ(structsAt(place), "malformed") << place;
  }
}

TEST(Strict, aListElementOfTheWrongKindIsMalformed) {
  EXPECT_EQ(raw([](auto, auto pointers) {
              auto texts = pointers[TEXTS].initAsAnyList(capnp::ElementSize::POINTER, 2);
              texts.template as<capnp::List<capnp::AnyPointer>>()[1].initAsAnyStruct(1, 0);
            }),
            "malformed");
}

TEST(Strict, aCapabilityBelongsOnlyWhereTheSchemaHasOne) {
  capnp::MallocMessageBuilder message;
  capnp::BuilderCapabilityTable table;
  auto root = table.imbue(message.getRoot<capnp::AnyPointer>()).initAsAnyStruct(DATA_WORDS, BEYOND);
  auto check = [&]() { return outcome(checkStrict(root.asReader().as<Plain>())); };
  auto pointers = root.getPointerSection();
  newer::Echo::Client client(KJ_EXCEPTION(FAILED, "not called"));
  for (auto place : {TEXT, DATA, FLAGS, COLORS, TEXTS, ITEMS, ITEM}) {
    pointers[place].setAs<newer::Echo>(client);
    EXPECT_EQ(check(), "unknown_field") << place;
    pointers[place].clear();
  }
  pointers[THING].setAs<newer::Echo>(client);
  EXPECT_EQ(check(), "ok");
}

TEST(Strict, textIsUtf8ThatEndsInNul) {
  auto text = [](kj::ArrayPtr<const char> bytes) {
    return raw(
        [&](auto, auto pointers) { pointers[TEXT].template setAs<capnp::Data>(bytes.asBytes()); });
  };
  EXPECT_EQ(text(kj::arrayPtr("abc", 4)), "ok");
  EXPECT_EQ(text(kj::arrayPtr("", 1)), "ok");
  EXPECT_EQ(text(kj::arrayPtr("abc", 3)), "malformed");
  EXPECT_EQ(text(kj::arrayPtr("a\0c", 4)), "malformed");
  EXPECT_EQ(text(kj::arrayPtr("\xFF\0", 2)), "malformed");
  EXPECT_EQ(text(nullptr), "malformed");
}

TEST(Strict, textInAListIsCheckedToo) {
  EXPECT_EQ(raw([](auto, auto pointers) {
              auto texts = pointers[TEXTS].initAsAnyList(capnp::ElementSize::POINTER, 2);
              texts.template as<capnp::List<capnp::AnyPointer>>()[1].template setAs<capnp::Data>(
                  kj::StringPtr("open").asBytes());
            }),
            "malformed");
}

TEST(Strict, spareBitsOfABitListAreZero) {
  capnp::MallocMessageBuilder message;
  message.initRoot<Plain>().initFlags(3).set(2, true);
  auto words = capnp::messageToFlatArray(message);
  // The list is the last word of the message; bit 3 is the first that no element uses.
  auto last = words.asBytes().slice(words.asBytes().size() - 8, words.asBytes().size());
  ASSERT_EQ(last[0], 4);
  auto check = [&]() {
    capnp::FlatArrayMessageReader received(words);
    return outcome(checkStrict(received.getRoot<Plain>()));
  };
  EXPECT_EQ(check(), "ok");
  last[0] = 4 | 8;
  EXPECT_EQ(check(), "unknown_field");
}

TEST(Strict, nestingEndsAtItsBound) {
  auto chain = [](int length) {
    capnp::MallocMessageBuilder message;
    auto at = message.initRoot<Deep>();
    for (int i = 0; i < length; ++i) at = at.initNext();
    capnp::ReaderOptions options;
    options.nestingLimit = 1000;
    return seenAs<Deep>(message, options);
  };
  EXPECT_EQ(chain(bounds::NESTING), "ok");
  EXPECT_EQ(chain(bounds::NESTING + 1), "malformed");
  EXPECT_EQ(chain(300), "malformed");
}

TEST(Strict, aListOfListsIsCheckedToItsLeaves) {
  capnp::MallocMessageBuilder message;
  auto outer = message.initRoot<Deep>().initList(1);
  outer.init(0, 1).init(0, 1).set(0, "leaf");
  EXPECT_EQ(seenAs<Deep>(message), "ok");
  auto leaf = message.getRoot<Deep>().getList()[0][0];
  EXPECT_EQ(leaf[0].asReader(), "leaf"_kj);
  leaf[0].begin()[1] = '\xFF';
  EXPECT_EQ(seenAs<Deep>(message), "malformed");
}

TEST(Strict, aPointerOutOfTheMessageIsMalformed) {
  capnp::MallocMessageBuilder message;
  message.initRoot<Plain>().setText("text");
  auto words = capnp::messageToFlatArray(message);
  // Table word, root pointer, two words of data, then the pointer to the text.
  words.asBytes()[(1 + 1 + DATA_WORDS) * 8 + 2] ^= 0x40;
  capnp::FlatArrayMessageReader received(words);
  EXPECT_EQ(outcome(checkStrict(received.getRoot<Plain>())), "malformed");
}

TEST(Strict, aSmallMessageThatClaimsToBeLargeIsMalformed) {
  // One word said to be 2^29 - 1 structs without any content.
  capnp::MallocMessageBuilder message;
  auto root = message.getRoot<capnp::AnyPointer>().initAsAnyStruct(DATA_WORDS, BEYOND);
  root.getPointerSection()[ITEMS].initAsListOfAnyStruct(0, 0, (1u << 29) - 1);
  EXPECT_EQ(seenAs<Plain>(message), "malformed");
}

// Every bit of a valid message is turned once: whatever it hits, there is an answer and no crash.
TEST(Strict, noSingleBitOfAMessageLeadsAnywhereElse) {
  capnp::MallocMessageBuilder message;
  fillAll(message.initRoot<Plain>());
  auto words = capnp::messageToFlatArray(message);
  auto bytes = words.asBytes();
  size_t passed = 0, refused = 0;
  for (size_t bit = 64; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<kj::byte>(1u << bit % 8);
    KJ_IF_MAYBE (broken, kj::runCatchingExceptions([&]() {
                   capnp::FlatArrayMessageReader received(words);
                   checkStrict(received.getRoot<Plain>()).ok() ? ++passed : ++refused;
                 })) {
      // The root pointer itself is read before the strict reader is asked.
      EXPECT_LT(bit, 128u) << broken->getDescription().cStr();
    }
    bytes[bit / 8] ^= static_cast<kj::byte>(1u << bit % 8);
  }
  EXPECT_GT(passed, 0u);
  EXPECT_GT(refused, passed);
}

}  // namespace
}  // namespace praefectus
