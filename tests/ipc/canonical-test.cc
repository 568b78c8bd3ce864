#include "ipc/canonical.h"

#include "ipc/schema/signed.capnp.h"
#include "tests/ipc/newer.capnp.h"
#include "tests/ipc/refusals.h"

namespace praefectus {
namespace {

using Grant = Canonical<wire::Grant>;

void fillGrant(wire::Grant::Builder grant) {
  const kj::byte bytes[32] = {9, 8, 7};
  grant.setVersion(1);
  grant.setIssuer("host");
  grant.setKeyId("key-1");
  grant.initAudience().setKey(kj::arrayPtr(bytes, 32));
  grant.getAudience().setIncarnation(1);
  grant.setSubject("uid:0");
  grant.setSession("s");
  grant.setTurn("t");
  grant.setOperation("op");
  grant.setActionHash(kj::arrayPtr(bytes, 32));
  grant.setActionClass(wire::ActionClass::SEMANTIC_MUTATION);
  auto target = grant.initTarget();
  target.initProcess().setPid(4);
  target.setWindow(5);
  grant.setNotBefore(1);
  grant.setExpires(2);
  grant.setUses(1);
}

kj::Array<kj::byte> grantBytes() {
  capnp::MallocMessageBuilder message;
  fillGrant(message.initRoot<wire::Grant>());
  return canonicalBytes(message.getRoot<wire::Grant>().asReader());
}

TEST(Canonical, whatWasWrittenIsRead) {
  auto bytes = grantBytes();
  auto grant = Grant::parse(bytes, bounds::SIGNED_BODY_BYTES);
  ASSERT_EQ(outcome(grant), "ok");
  EXPECT_EQ(grant->get().getOperation(), "op"_kj);
  EXPECT_EQ(grant->bytes(), bytes);
  // A moved one still reads its own memory.
  auto moved = kj::mv(*grant);
  EXPECT_EQ(moved.get().getSubject(), "uid:0"_kj);
}

TEST(Canonical, anEmptyAnOversizeAndAnUnevenBodyAreMalformed) {
  auto bytes = grantBytes();
  EXPECT_EQ(outcome(Grant::parse(nullptr, 100)), "malformed");
  EXPECT_EQ(outcome(Grant::parse(bytes, bytes.size())), "ok");
  EXPECT_EQ(outcome(Grant::parse(bytes, bytes.size() - 1)), "malformed");
  EXPECT_EQ(outcome(Grant::parse(bytes.slice(0, bytes.size() - 1), bytes.size())), "malformed");
}

TEST(Canonical, trailingWordsAndMissingWordsAreMalformed) {
  auto bytes = grantBytes();
  auto longer = kj::heapArray<kj::byte>(bytes.size() + 8);
  std::fill(longer.begin(), longer.end(), kj::byte{0});
  std::copy(bytes.begin(), bytes.end(), longer.begin());
  EXPECT_EQ(outcome(Grant::parse(longer, longer.size())), "malformed");
  for (size_t size = 8; size < bytes.size(); size += 8) {
    EXPECT_EQ(outcome(Grant::parse(bytes.slice(0, size), bytes.size())), "malformed") << size;
  }
}

TEST(Canonical, aWellFormedMessageInAnotherOrderIsMalformed) {
  // The same grant, its fields written from the last to the first: the same meaning, other bytes.
  capnp::MallocMessageBuilder message;
  auto grant = message.initRoot<wire::Grant>();
  grant.setTurn("t");
  grant.setSession("s");
  auto segments = message.getSegmentsForOutput();
  ASSERT_EQ(segments.size(), 1u);
  auto bytes = segments[0].asBytes();
  EXPECT_EQ(outcome(Grant::parse(bytes, bounds::SIGNED_BODY_BYTES)), "malformed");
}

TEST(Canonical, aCanonicalBodyOfANewerSchemaIsUnknown) {
  capnp::MallocMessageBuilder message;
  auto newer = message.initRoot<newer::PlainNewer>();
  newer.setText("text");
  newer.setExtraNumber(1);
  auto bytes = canonicalBytes(newer.asReader());
  EXPECT_EQ(outcome(Canonical<newer::PlainNewer>::parse(bytes, 1024)), "ok");
  EXPECT_EQ(outcome(Canonical<newer::Plain>::parse(bytes, 1024)), "unknown_field");
}

// One meaning has one form: a body that still passes after a change means something else, and is
// itself the one form of that.
template <typename T>
void expectOneForm(kj::Array<kj::byte> bytes) {
  size_t passed = 0, refused = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<kj::byte>(1u << bit % 8);
    auto body = Canonical<T>::parse(bytes, bounds::SIGNED_BODY_BYTES);
    if (body.ok()) {
      ++passed;
      EXPECT_EQ(canonicalBytes(body->get()), bytes) << bit;
    } else {
      ++refused;
    }
    bytes[bit / 8] ^= static_cast<kj::byte>(1u << bit % 8);
  }
  EXPECT_GT(passed, 0u);
  EXPECT_GT(refused, 0u);
}

TEST(Canonical, noSingleBitCanBeTurnedWithoutARefusalOrAnotherMeaning) {
  expectOneForm<wire::Grant>(grantBytes());
}

// The head of a list of structs has a bit that Cap'n Proto reads past.
TEST(Canonical, noBitOfAListCanBeTurnedEither) {
  capnp::MallocMessageBuilder message;
  auto plain = message.initRoot<newer::Plain>();
  auto items = plain.initItems(2);
  items[0].setNumber(1);
  items[1].setText("text");
  plain.initFlags(3).set(1, true);
  plain.initColors(2).set(1, newer::Color::GREEN);
  plain.initTexts(2).set(1, "more");
  expectOneForm<newer::Plain>(canonicalBytes(plain.asReader()));
}

}  // namespace
}  // namespace praefectus
