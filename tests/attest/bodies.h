// Every kind of signed body in one table, so that a promise about all of them is one test: the
// value's type is forgotten, what can be done with it is not.
#pragma once

#include "ipc/canonical.h"
#include "tests/attest/samples.h"
#include "tests/ipc/refusals.h"

#include <capnp/dynamic.h>

#include <functional>
#include <string>
#include <vector>

namespace praefectus::attest {

struct Body {
  std::string name;  // The kind, and what is particular of this sample: "lease", "lease/reads".
  kj::StringPtr label;
  Purpose purpose;  // Of the key that signs it.
  capnp::StructSchema schema;
  std::function<Envelope()> sample;
  // How opening ends. Kinds that are opened with a public key alone find theirs in the ring too.
  std::function<std::string(const KeyRing&, const Envelope&)> open;
  // What the value that was opened is sealed as. Throws when it is refused.
  std::function<Envelope(const Envelope&)> openedAndSealed;
};

// A new kind of body, or another sample of one, is one line of this table.
const std::vector<Body>& bodies();
const Body& bodyNamed(const std::string& name);

// These bytes, signed as such a body.
Envelope signedAs(const Body& kind, Bytes body);

// One value in a message, wherever it stands. `set` takes a value of the type.
struct Place {
  std::string path;  // "target.process.pid", "steps.0"
  capnp::Type type;
  capnp::DynamicValue::Reader value;
  std::function<void(const capnp::DynamicValue::Reader&)> set;
};

// Visits every number, word, text, data and list in a struct, and the tag of every union.
void forEachPlace(capnp::DynamicStruct::Builder root, const std::function<void(Place&)>& visit);

// The sample's body with one place of it changed, for every place in turn.
struct Change {
  std::string path;
  kj::Array<kj::byte> body;
};
std::vector<Change> changes(const Body& kind, const std::function<void(Place&)>& change);
// To another value of its type.
void alter(Place& place);

// How the sample fares when its message is changed before it is signed.
template <typename Wire, typename Edit>
std::string outcomeWith(const std::string& name, Edit&& edit) {
  auto& kind = bodyNamed(name);
  auto sample = kind.sample();
  auto good = Canonical<Wire>::parse(sample.body, bounds::SIGNED_BODY_BYTES);
  KJ_ASSERT(good.ok());
  capnp::MallocMessageBuilder message;
  message.setRoot(good->get());
  auto root = message.getRoot<Wire>();
  edit(root);
  return kind.open(sampleRing(), signedAs(kind, canonicalBytes(root.asReader())));
}

}  // namespace praefectus::attest
