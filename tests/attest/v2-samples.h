// What the tests of protocol v2 share: requests as documents that a test can bend before it writes
// them down, the vectors, and one observation.
#pragma once

#include "attest/v2/authority.h"
#include "ipc/desktop.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

namespace praefectus::attest::v2 {

using Doc = nlohmann::json;

// v2-vectors.json.
const Doc& vectors();

// Targets and verifications, as the vectors have them.
Doc elementTarget();
Doc pointTarget();
Doc noTarget();
Doc unverified();
Doc valueHashOf(const std::string& value);

// A whole request whose signature is 128 zeros.
Doc requestOf(Doc action, Doc target, Doc verification = unverified());
// One of every kind of action, each as v2 allows it, with every optional member there.
const std::vector<Doc>& everyKind();
Doc requestOfKind(const std::string& kind);
// The request of a vector, with its grant and signature.
Doc requestOf(const Doc& vector);

Result<ActionRequest> read(const std::string& text);
inline Result<ActionRequest> read(const Doc& request) { return read(request.dump()); }
// Of a request that reads.
std::string hashOf(const Doc& request);

// Gives the request the grant that belongs to it, bent by `change` before it is signed.
Doc allowed(Doc request, const std::function<void(AuthorityGrant&)>& change = nullptr);
KeyRing sampleRing();
kj::Array<PinnedKey> onePinnedKey();
// Of a request that holds.
Verified verified(const Doc& request);

// A window at (-20, 100) of 400 by 300 pixels, with a button and a field.
Observation sampleObservation();
// A request's target for it.
Doc targetFor(const Fence& fence);
Doc targetFor(const Coordinates& point);

inline std::string spelled(kj::StringPtr text) { return std::string(text.begin(), text.size()); }

}  // namespace praefectus::attest::v2
