// What holds for every kind of signed body.
#include "tests/attest/bodies.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace praefectus::attest {
namespace {

using std::string;

string open(const Body& kind, const Envelope& envelope) {
  return kind.open(sampleRing(), envelope);
}
string openBytes(const Body& kind, Bytes body) { return open(kind, signedAs(kind, body)); }

void flip(kj::byte& byte, size_t bit) { byte = static_cast<kj::byte>(byte ^ (1u << bit)); }

class SignedBody : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialize(); }
};

TEST_F(SignedBody, everyKindOfTheSchemaIsInTheTable) {
  // Each label once, and each tag of each union that a body itself has.
  std::set<string> labels;
  std::map<string, std::set<uint16_t>> tags;
  for (auto& kind : bodies()) {
    labels.insert(kind.label.cStr());
    auto sample = kind.sample();
    auto words = kj::heapArray<capnp::word>(sample.body.size() / sizeof(capnp::word));
    memcpy(words.asBytes().begin(), sample.body.begin(), sample.body.size());
    kj::ArrayPtr<const capnp::word> segments[] = {words};
    capnp::SegmentArrayMessageReader message(kj::arrayPtr(segments, 1));
    KJ_IF_MAYBE (member, message.getRoot<capnp::DynamicStruct>(kind.schema).which()) {
      tags[kind.label.cStr()].insert(member->getProto().getDiscriminantValue());
    }
  }
  EXPECT_EQ(labels, (std::set<string>{"praefectus/lease/v1", "praefectus/grant/v1",
                                      "praefectus/task-grant/v1", "praefectus/revocation/v1",
                                      "praefectus/manifest/v1", "praefectus/receipt/v1",
                                      "praefectus/refusal/v1", "praefectus/event/v1"}));
  EXPECT_EQ(tags["praefectus/revocation/v1"].size(),
            capnp::Schema::from<wire::Revocation>().getUnionFields().size());
  EXPECT_EQ(tags["praefectus/event/v1"].size(),
            capnp::Schema::from<wire::LedgerEvent>().getUnionFields().size());
}

TEST_F(SignedBody, whatWasSealedIsWhatIsOpened) {
  for (auto& kind : bodies()) {
    SCOPED_TRACE(kind.name);
    auto sample = kind.sample();
    ASSERT_EQ(open(kind, sample), "ok");
    auto again = kind.openedAndSealed(sample);
    EXPECT_EQ(again.body, sample.body);
    EXPECT_EQ(again.issuer, sample.issuer);
    EXPECT_EQ(again.keyId, sample.keyId);
    EXPECT_EQ(again.signature, sample.signature);
  }
}

TEST_F(SignedBody, sealingIsDeterministic) {
  for (auto& kind : bodies()) {
    auto one = kind.sample(), other = kind.sample();
    EXPECT_EQ(one.body, other.body) << kind.name;
    EXPECT_EQ(one.signature, other.signature) << kind.name;
  }
}

TEST_F(SignedBody, everyBitIsSigned) {
  for (auto& kind : bodies()) {
    SCOPED_TRACE(kind.name);
    auto envelope = kind.sample();
    auto ring = sampleRing();
    for (size_t at = 0; at < envelope.body.size(); ++at) {
      flip(envelope.body[at], at % 8);
      EXPECT_EQ(kind.open(ring, envelope), "policy_denied") << at;
      flip(envelope.body[at], at % 8);
    }
    for (auto& byte : envelope.signature) {
      flip(byte, 2);
      EXPECT_EQ(kind.open(ring, envelope), "policy_denied");
      flip(byte, 2);
    }
    EXPECT_EQ(kind.open(ring, envelope), "ok");
  }
}

TEST_F(SignedBody, everyFieldIsSigned) {
  for (auto& kind : bodies()) {
    auto envelope = kind.sample();
    auto changed = changes(kind, alter);
    EXPECT_GE(changed.size(), kind.schema.getNonUnionFields().size()) << kind.name;
    for (auto& change : changed) {
      ASSERT_NE(change.body, envelope.body) << kind.name << " " << change.path;
      auto forged = envelope.clone();
      forged.body = kj::mv(change.body);
      EXPECT_EQ(open(kind, forged), "policy_denied") << kind.name << " " << change.path;
    }
  }
}

TEST_F(SignedBody, everyFieldIsRefusedOrKept) {
  // Signed by the right key, a change is out of bounds, or it is there again when what was opened
  // is sealed: no field goes unread.
  for (auto& kind : bodies()) {
    size_t kept = 0;
    for (auto& change : changes(kind, alter)) {
      SCOPED_TRACE(kind.name + " " + change.path);
      auto envelope = signedAs(kind, change.body);
      if (open(kind, envelope) != "ok") continue;
      ++kept;
      EXPECT_EQ(kind.openedAndSealed(envelope).body, change.body);
    }
    EXPECT_GT(kept, 0u) << kind.name;
  }
}

TEST_F(SignedBody, theRightKeyIsOfTheRightPurpose) {
  for (auto& kind : bodies()) {
    for (auto other : {Purpose::ISSUER, Purpose::PUBLISHER, Purpose::RECEIPT}) {
      if (other == kind.purpose) continue;
      SCOPED_TRACE(kind.name + ", " + issuerFor(other).cStr());
      // Another key that the ring holds, under its own names and under those of the right one.
      auto sample = kind.sample();
      EXPECT_EQ(open(kind, signedAs(kind.label, keyFor(other), issuerFor(other), sample.body)),
                "policy_denied");
      auto forged = sample.clone();
      forged.signature = keyFor(other).sign(kind.label, sample.body);
      EXPECT_EQ(open(kind, forged), "policy_denied");
      // The very key, pinned for another purpose.
      KeyRing ring;
      ring.add(other, sample.issuer, sample.keyId, keyFor(kind.purpose).publicKey());
      EXPECT_EQ(kind.open(ring, sample), "policy_denied");
    }
  }
}

TEST_F(SignedBody, aStrangersSignatureAndNoneAreRefused) {
  for (auto& kind : bodies()) {
    auto sample = kind.sample();
    auto forged = sample.clone();
    forged.signature = keyNumber(77).sign(kind.label, sample.body);
    EXPECT_EQ(open(kind, forged), "policy_denied") << kind.name;
    forged.signature = {};
    EXPECT_EQ(open(kind, forged), "policy_denied") << kind.name;
    EXPECT_EQ(kind.open(KeyRing(), sample), "policy_denied") << kind.name;
  }
}

TEST_F(SignedBody, aSignatureOverOneKindNeverPassesForAnother) {
  size_t pairs = 0;
  for (auto& kind : bodies()) {
    auto sample = kind.sample();
    for (auto& other : bodies()) {
      if (other.label == kind.label) continue;
      ++pairs;
      SCOPED_TRACE(kind.name + " as " + other.name);
      // The right key over the right bytes, with the label of another kind.
      auto key = keyFor(kind.purpose);
      EXPECT_EQ(open(kind, signedAs(other.label, key, issuerFor(kind.purpose), sample.body)),
                "policy_denied");
      // What was truly signed as one kind, opened as another.
      EXPECT_EQ(open(other, sample), "policy_denied");
      // The bytes of one kind, truly signed as another: its names are another key's, its fields
      // are unknown there, or out of bounds.
      EXPECT_NE(openBytes(other, sample.body), "ok");
    }
    for (auto label : {"praefectus/action/v1"_kj, "praefectus/link/v1"_kj, ""_kj}) {
      EXPECT_EQ(
          open(kind, signedAs(label, keyFor(kind.purpose), issuerFor(kind.purpose), sample.body)),
          "policy_denied")
          << kind.name << " " << label.cStr();
    }
  }
  EXPECT_GT(pairs, 0u);
}

TEST_F(SignedBody, theEnvelopeMustNameTheBodysOwnKey) {
  for (auto& kind : bodies()) {
    SCOPED_TRACE(kind.name);
    // Other names are pinned for the same key too, so that the signature holds under either.
    auto ring = sampleRing();
    auto pub = keyFor(kind.purpose).publicKey();
    auto good = kind.sample();
    ring.add(kind.purpose, "another", good.keyId, pub);
    ring.add(kind.purpose, good.issuer, "another-id", pub);
    auto otherIssuer = good.clone(), otherKeyId = good.clone();
    otherIssuer.issuer = kj::str("another");
    otherKeyId.keyId = kj::str("another-id");
    EXPECT_EQ(kind.open(ring, good), "ok");
    EXPECT_EQ(kind.open(ring, otherIssuer), "policy_denied");
    EXPECT_EQ(kind.open(ring, otherKeyId), "policy_denied");
  }
}

TEST_F(SignedBody, theBodyMustNameTheEnvelopesKey) {
  for (auto& kind : bodies()) {
    for (auto& change : changes(kind, alter)) {
      if (change.path != "issuer" && change.path != "keyId") continue;
      EXPECT_EQ(openBytes(kind, change.body), "policy_denied") << kind.name << " " << change.path;
    }
  }
}

TEST_F(SignedBody, whatIsNotCanonicalIsRefusedThoughSigned) {
  for (auto& kind : bodies()) {
    SCOPED_TRACE(kind.name);
    auto body = kind.sample().body;
    EXPECT_EQ(openBytes(kind, body), "ok");
    EXPECT_EQ(openBytes(kind, notCanonical(body)), "malformed");
    EXPECT_EQ(openBytes(kind, body.slice(0, body.size() - 8)), "malformed");
    EXPECT_EQ(openBytes(kind, body.slice(0, body.size() - 1)), "malformed");
    EXPECT_EQ(openBytes(kind, nullptr), "malformed");
    auto random = kj::heapArray<kj::byte>(256);
    for (int i = 0; i < 100; ++i) {
      attest::random(random);
      EXPECT_NE(openBytes(kind, random), "ok");
    }
  }
}

TEST_F(SignedBody, noFlippedBitBehindTheSignatureIsLost) {
  // A bit that the right key signed is refused, or it is there again when what was opened is
  // sealed.
  for (auto& kind : bodies()) {
    auto body = kind.sample().body;
    for (size_t at = 0; at < body.size(); ++at) {
      flip(body[at], at % 8);
      auto envelope = signedAs(kind, body);
      if (open(kind, envelope) == "ok") {
        EXPECT_EQ(kind.openedAndSealed(envelope).body, body) << kind.name << " " << at;
      }
      flip(body[at], at % 8);
    }
  }
}

TEST_F(SignedBody, whatIsUnknownIsRefusedThoughSigned) {
  for (auto& kind : bodies()) {
    auto body = kind.sample().body;
    EXPECT_EQ(openBytes(kind, withOneMoreWord(body)), "unknown_field") << kind.name;
    // The last pointer of this one is absent: another is its frame.
    if (kind.name == "lease/reads") continue;
    EXPECT_EQ(openBytes(kind, withOneMorePointer(body)), "unknown_field") << kind.name;
  }
}

TEST_F(SignedBody, anUnknownWordIsRefusedThoughSigned) {
  size_t words = 0;
  for (auto& kind : bodies()) {
    auto unknown = [&](Place& place) {
      if (!place.type.isEnum()) return;
      auto schema = place.type.asEnum();
      place.set(capnp::DynamicEnum(schema, static_cast<uint16_t>(schema.getEnumerants().size())));
    };
    auto good = kind.sample().body;
    for (auto& change : changes(kind, unknown)) {
      if (change.body == good) continue;
      ++words;
      EXPECT_EQ(openBytes(kind, change.body), "unknown_field") << kind.name << " " << change.path;
    }
  }
  EXPECT_GT(words, 20u);
}

TEST_F(SignedBody, anOversizeBodyIsRefusedThoughSigned) {
  auto tooLong = kj::str(kj::repeat('t', bounds::SIGNED_BODY_BYTES));
  for (auto& kind : bodies()) {
    for (auto& change : changes(kind, [&](Place& place) {
           if (place.path == "issuer") place.set(capnp::Text::Reader(tooLong));
         })) {
      // Were it read at all, the names would differ: policy_denied.
      if (change.path != "issuer") continue;
      EXPECT_EQ(openBytes(kind, change.body), "malformed") << kind.name;
    }
  }
}

TEST_F(SignedBody, anotherProtocolVersionIsRefusedByName) {
  for (uint16_t version : {0, 2, 0xFFFF}) {
    for (auto& kind : bodies()) {
      for (auto& change : changes(kind, [&](Place& place) {
             if (place.path == "version") place.set(version);
           })) {
        if (change.path != "version") continue;
        EXPECT_EQ(openBytes(kind, change.body), "unsupported_version") << kind.name;
      }
    }
  }
}

// Texts that may be empty, and the names of the key, which stand in the envelope too.
bool isOptional(const string& name, const string& path) {
  return name.starts_with("refused") && (path == "session" || path == "operation");
}
bool namesTheKey(const string& path) { return path == "issuer" || path == "keyId"; }

TEST_F(SignedBody, everyNameIsAnIdentifier) {
  auto longest = kj::str(kj::repeat('a', 256)), longer = kj::str(kj::repeat('a', 257));
  std::pair<kj::StringPtr, const char*> texts[] = {
      {"a"_kj, "ok"},          {"A.z_0:-"_kj, "ok"},         {longest, "ok"},
      {""_kj, "malformed"},    {longer, "malformed"},        {"a b"_kj, "malformed"},
      {"a/b"_kj, "malformed"}, {"\xC3\xA9"_kj, "malformed"}, {"\n"_kj, "malformed"},
  };
  for (auto& kind : bodies()) {
    std::set<string> names;
    for (auto& [text, expected] : texts) {
      auto put = [&, value = text](Place& place) {
        if (!place.type.isText() || namesTheKey(place.path)) return;
        names.insert(place.path);
        place.set(capnp::Text::Reader(value));
      };
      for (auto& change : changes(kind, put)) {
        if (!names.contains(change.path)) continue;
        bool allowed = text.size() == 0 && isOptional(kind.name, change.path);
        EXPECT_EQ(openBytes(kind, change.body), allowed ? "ok" : expected)
            << kind.name << " " << change.path << " " << text.cStr();
      }
    }
    EXPECT_EQ(names.empty(), kind.label == EVENT_LABEL && kind.name != "event/imported" &&
                                 kind.name != "event/revoked")
        << kind.name;
  }
}

TEST_F(SignedBody, everyDigestHasItsLength) {
  // The one text of bytes without a fixed length is the body of a revocation inside an event.
  size_t digests = 0;
  for (auto& kind : bodies()) {
    auto good = kind.sample().body;
    for (int more : {-1, 1}) {
      auto resize = [&](Place& place) {
        if (!place.type.isData() || place.path == "revoked.body") return;
        auto data = place.value.as<capnp::Data>();
        auto other = kj::heapArray<kj::byte>(
            static_cast<size_t>(std::max<int64_t>(0, static_cast<int64_t>(data.size()) + more)));
        memset(other.begin(), 7, other.size());
        place.set(capnp::Data::Reader(other));
      };
      for (auto& change : changes(kind, resize)) {
        if (change.body == good) continue;
        bool nowEmpty = change.path == "frame" && more < 0 && kind.name.ends_with("/reads");
        ++digests;
        EXPECT_EQ(openBytes(kind, change.body), nowEmpty ? "ok" : "malformed")
            << kind.name << " " << change.path << " " << more;
      }
    }
  }
  EXPECT_GT(digests, 50u);
}

TEST_F(SignedBody, aLedgerHasAnIncarnation) {
  for (auto& kind : bodies()) {
    for (auto& change : changes(kind, [](Place& place) {
           if (place.path.ends_with("incarnation")) place.set(0);
         })) {
      if (!change.path.ends_with("incarnation")) continue;
      EXPECT_EQ(openBytes(kind, change.body), "malformed") << kind.name;
    }
  }
}

}  // namespace
}  // namespace praefectus::attest
