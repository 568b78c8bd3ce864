#include "tests/attest/bodies.h"

#include <limits>

namespace praefectus::attest {
namespace {

using capnp::DynamicEnum;
using capnp::DynamicList;
using capnp::DynamicStruct;
using capnp::DynamicValue;
using capnp::schema::Type;

// ---- The table

template <typename Value>
using OpenInRing = Result<Value> (*)(const KeyRing&, const Envelope&);
template <typename Value>
using OpenWithKey = Result<Value> (*)(const PublicKey&, const Envelope&);

template <typename Wire, typename Make, typename Open>
Body row(std::string name, kj::StringPtr label, Purpose purpose, Make make, Open open) {
  return {
      kj::mv(name),
      label,
      purpose,
      capnp::Schema::from<Wire>(),
      [=] { return seal(make(), keyFor(purpose)); },
      [=](const KeyRing& ring, const Envelope& envelope) { return outcome(open(ring, envelope)); },
      [=](const Envelope& envelope) {
        auto opened = open(sampleRing(), envelope);
        KJ_REQUIRE(opened.ok(), opened.refusal().detail);
        return seal(*opened, keyFor(purpose));
      }};
}

template <typename Wire, typename Value, typename Make>
Body inRing(std::string name, kj::StringPtr label, Purpose purpose, Make make,
            OpenInRing<Value> open) {
  return row<Wire>(kj::mv(name), label, purpose, make, open);
}

template <typename Wire, typename Value, typename Make>
Body withKey(std::string name, kj::StringPtr label, Make make, OpenWithKey<Value> open) {
  return row<Wire>(kj::mv(name), label, Purpose::RECEIPT, make,
                   [=](const KeyRing& ring, const Envelope& envelope) -> Result<Value> {
                     for (auto& entry : ring.entries()) {
                       if (entry.purpose == Purpose::RECEIPT) return open(entry.key, envelope);
                     }
                     return Refusal{RefusalCode::POLICY_DENIED, "No receipt key is pinned."};
                   });
}

template <typename Make>
Body lease(std::string name, Make make) {
  return inRing<wire::Lease>(name, LEASE_LABEL, Purpose::ISSUER, make, openLease);
}
template <typename Make>
Body grant(std::string name, Make make) {
  return inRing<wire::Grant>(name, GRANT_LABEL, Purpose::ISSUER, make, openGrant);
}
template <typename Make>
Body receipt(std::string name, Make make) {
  return withKey<wire::Receipt>(name, RECEIPT_LABEL, make, openReceipt);
}
template <typename Make>
Body refused(std::string name, Make make) {
  return withKey<wire::Refused>(name, REFUSAL_LABEL, make, openRefused);
}
template <typename Make>
Body revocation(std::string name, Make makeWhat) {
  return inRing<wire::Revocation>(
      name, REVOCATION_LABEL, Purpose::ISSUER,
      [=] {
        auto body = sampleRevocation();
        body.what = makeWhat();
        return body;
      },
      openRevocation);
}
template <typename Make>
Body event(std::string name, Make makeWhat) {
  return withKey<wire::LedgerEvent>(
      name, EVENT_LABEL,
      [=] {
        auto body = sampleEvent();
        body.what = makeWhat();
        if (body.what.template is<Created>()) {
          body.sequence = 1;
          body.ledger.incarnation = 1;
        }
        return body;
      },
      openEvent);
}

Hash hashOf(kj::StringPtr text) { return digestOf(text.asBytes()); }

LedgerPlace place() { return {64'769, 262'147, hashOf("a machine")}; }

Lease leaseOfReads() {
  auto lease = sampleLease();
  lease.classes = {ActionClass::METADATA_READ, ActionClass::SCREENSHOT_READ};
  lease.target = {};
  lease.frame = nullptr;
  lease.expires = lease.notBefore + bounds::READ_LEASE_MS;
  return lease;
}

Grant grantOfReads() {
  auto grant = sampleGrant();
  grant.actionClass = ActionClass::SCREENSHOT_READ;
  grant.risk = Safety::REVERSIBLE;
  grant.target = {};
  grant.frame = nullptr;
  grant.rights = {};
  grant.uses = bounds::READ_USES;
  return grant;
}

Manifest manifestForLinux() {
  auto manifest = sampleManifest("an image"_kj.asBytes());
  manifest.platform = kj::str("linux-x86_64");
  return manifest;
}

Receipt recovered() {
  auto receipt = sampleReceipt();
  receipt.route = Route::NONE;
  receipt.terminal = Terminal::OUTCOME_UNKNOWN;
  receipt.effect = Effect::UNKNOWN;
  receipt.evidence = {};
  receipt.evidence.verdict = Verdict::UNKNOWN;
  receipt.context = ContextState::UNWATCHED;
  receipt.warnings.add(Warning::RECOVERED);
  receipt.warnings.add(Warning::HELPER_LOST);
  return receipt;
}

Receipt permitted() {
  auto receipt = sampleReceipt();
  receipt.proof = Proof::NONE;
  receipt.effect = Effect::EXECUTED_UNVERIFIED;
  receipt.evidence = {Verdict::UNVERIFIABLE, Method::NONE, Source::WITNESS, 0, 1};
  receipt.context = ContextState::PERMITTED;
  receipt.warnings.add(Warning::UNVERIFIED);
  return receipt;
}

Refused unread() {
  auto refused = sampleRefused();
  refused.session = kj::str();
  refused.request = nullptr;
  refused.operation = kj::str();
  refused.code = RefusalCode::MALFORMED;
  return refused;
}

Refused unknown() {
  auto refused = sampleRefused();
  refused.code = RefusalCode::OUTCOME_UNKNOWN;
  return refused;
}

std::vector<Body> table() {
  return {
      lease("lease", sampleLease),
      lease("lease/reads", leaseOfReads),
      grant("grant", sampleGrant),
      grant("grant/reads", grantOfReads),
      inRing<wire::TaskGrant>("task-grant", TASK_GRANT_LABEL, Purpose::ISSUER, sampleTaskGrant,
                              openTaskGrant),
      revocation("revocation/operation", [] { return RevokedOperation{kj::str("operation-1")}; }),
      revocation("revocation/lease", [] { return RevokedLease{kj::str("lease-1")}; }),
      revocation("revocation/turn",
                 [] {
                   return RevokedTurn{kj::str("session-1"), kj::str("turn-1")};
                 }),
      revocation("revocation/generation", [] { return RevokedGeneration{5}; }),
      inRing<wire::HelperManifest>("manifest", MANIFEST_LABEL, Purpose::PUBLISHER, manifestForLinux,
                                   openManifest),
      receipt("receipt", sampleReceipt),
      receipt("receipt/rejected", sampleRejection),
      receipt("receipt/recovered", recovered),
      receipt("receipt/permitted", permitted),
      refused("refused", sampleRefused),
      refused("refused/unread", unread),
      refused("refused/unknown", unknown),
      event("event/created", [] { return Created{place()}; }),
      event("event/adopted", [] { return Adopted{place()}; }),
      event("event/started",
            [] {
              return Started{{1'800'000'000'001, 86'400'000, hashOf("a boot")}};
            }),
      event("event/clock-accepted",
            [] {
              return ClockAccepted{{1'800'000'000'002, 90'000'000, hashOf("a boot")}};
            }),
      event("event/key-rotated", [] { return KeyRotated{keyNumber(4).publicKey()}; }),
      event("event/revoked", [] { return seal(sampleRevocation(), issuerKey()); }),
      event("event/archived",
            [] {
              return Archived{10, hashOf("a link"), 4, hashOf("an archive")};
            }),
      event("event/imported",
            [] {
              return Imported{17, kj::str("protocol-v2")};
            }),
      event("event/quarantined", [] { return Quarantined{8}; }),
  };
}

// ---- Places

std::string below(const std::string& prefix, kj::StringPtr name) {
  return prefix.empty() ? name.cStr() : prefix + "." + name.cStr();
}

void visitStruct(DynamicStruct::Builder at, const std::string& prefix,
                 const std::function<void(Place&)>& visit);

void visitList(DynamicList::Builder list, const std::string& prefix,
               const std::function<void(Place&)>& visit) {
  for (capnp::uint i = 0; i < list.size(); ++i) {
    Place place{below(prefix, kj::str(i)), list.getSchema().getElementType(), list[i].asReader(),
                [=](const DynamicValue::Reader& value) mutable { list.set(i, value); }};
    visit(place);
  }
}

void visitField(DynamicStruct::Builder at, capnp::StructSchema::Field field,
                const std::string& prefix, const std::function<void(Place&)>& visit) {
  auto path = below(prefix, field.getProto().getName());
  auto type = field.getType();
  if (type.isVoid()) return;
  if (type.isStruct()) {
    visitStruct(at.get(field).as<DynamicStruct>(), path, visit);
    return;
  }
  Place place{path, type, at.get(field).asReader(),
              [=](const DynamicValue::Reader& value) mutable { at.set(field, value); }};
  visit(place);
  if (type.isList()) visitList(at.get(field).as<DynamicList>(), path, visit);
}

void visitStruct(DynamicStruct::Builder at, const std::string& prefix,
                 const std::function<void(Place&)>& visit) {
  for (auto field : at.getSchema().getNonUnionFields()) visitField(at, field, prefix, visit);
  auto members = at.getSchema().getUnionFields();
  if (members.size() == 0) return;
  auto member = KJ_ASSERT_NONNULL(at.which());
  visitField(at, member, prefix, visit);
  // The tag as a place of its own: setting it clears the next member, whatever the value.
  auto next = members[(member.getProto().getDiscriminantValue() + 1) % members.size()];
  Place tag{below(prefix, "union"), Type::VOID, capnp::VOID,
            [=](const DynamicValue::Reader&) mutable { at.clear(next); }};
  visit(tag);
}

// The same list with one element more.
void grow(Place& place) {
  capnp::MallocMessageBuilder message;
  auto old = place.value.as<DynamicList>();
  auto longer = message.initRoot<capnp::AnyPointer>().initAs<DynamicList>(place.type.asList(),
                                                                          old.size() + 1);
  for (capnp::uint i = 0; i < old.size(); ++i) longer.set(i, old[i]);
  place.set(longer.asReader());
}

kj::Array<kj::byte> canonicalFrom(capnp::MallocMessageBuilder& message) {
  auto root = message.getRoot<capnp::AnyPointer>().getAs<capnp::AnyStruct>();
  return kj::heapArray<kj::byte>(root.asReader().canonicalize().asBytes());
}

}  // namespace

const std::vector<Body>& bodies() {
  static const std::vector<Body> TABLE = table();
  return TABLE;
}

const Body& bodyNamed(const std::string& name) {
  for (auto& kind : bodies()) {
    if (kind.name == name) return kind;
  }
  KJ_FAIL_REQUIRE("no such body", name.c_str());
}

Envelope signedAs(const Body& kind, Bytes body) {
  return signedAs(kind.label, keyFor(kind.purpose), issuerFor(kind.purpose), body);
}

void forEachPlace(DynamicStruct::Builder root, const std::function<void(Place&)>& visit) {
  visitStruct(root, "", visit);
}

std::vector<Change> changes(const Body& kind, const std::function<void(Place&)>& change) {
  auto sample = kind.sample();
  auto words = kj::heapArray<capnp::word>(sample.body.size() / sizeof(capnp::word));
  memcpy(words.asBytes().begin(), sample.body.begin(), sample.body.size());
  kj::ArrayPtr<const capnp::word> segments[] = {words};
  capnp::SegmentArrayMessageReader from(kj::arrayPtr(segments, 1));

  std::vector<Change> out;
  for (size_t wanted = 0;; ++wanted) {
    capnp::MallocMessageBuilder message;
    message.setRoot(from.getRoot<DynamicStruct>(kind.schema));
    size_t seen = 0;
    forEachPlace(message.getRoot<DynamicStruct>(kind.schema), [&](Place& place) {
      if (seen++ != wanted) return;
      out.push_back({place.path, nullptr});
      change(place);
    });
    if (seen <= wanted) return out;
    out.back().body = canonicalFrom(message);
  }
}

void alter(Place& place) {
  switch (place.type.which()) {
    case Type::BOOL:
      return place.set(!place.value.as<bool>());
    case Type::UINT16:
    case Type::UINT32:
    case Type::UINT64:
      return place.set(place.value.as<uint64_t>() + 1);
    case Type::INT64:
      return place.set(place.value.as<int64_t>() + 1);
    case Type::ENUM: {
      auto word = place.value.as<DynamicEnum>();
      auto count = word.getSchema().getEnumerants().size();
      return place.set(
          DynamicEnum(word.getSchema(), static_cast<uint16_t>((word.getRaw() + 1) % count)));
    }
    case Type::TEXT:
      return place.set(capnp::Text::Reader(kj::str(place.value.as<capnp::Text>(), "x")));
    case Type::DATA: {
      auto data = kj::heapArray<kj::byte>(place.value.as<capnp::Data>());
      if (data.size() == 0) data = kj::heapArray<kj::byte>({1});
      data.back() ^= 1;
      return place.set(capnp::Data::Reader(data));
    }
    case Type::LIST:
      return grow(place);
    case Type::VOID:
      return place.set(capnp::VOID);
    default:
      KJ_FAIL_ASSERT("no body has such a field", place.path.c_str());
  }
}

}  // namespace praefectus::attest
