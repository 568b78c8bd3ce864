// The published vectors: every signed body, action and link of the tests' samples, for implementers
// in other languages. tests/vectors/README.md says what they mean.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace praefectus::attest {

using Json = nlohmann::ordered_json;

Json vectors();
// As it stands in the file.
std::string spelledOut(const Json& vectors);

// tests/vectors/signed-v1.json
std::string vectorFile();

}  // namespace praefectus::attest
