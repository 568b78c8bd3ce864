// The shipped program, and what it answers.
#pragma once

#include "tests/support/run.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace praefectus::tests {

using Json = nlohmann::json;

// No display, no bus, no home.
extern const std::vector<std::string> NO_DESKTOP;

Ran praefectus(std::vector<std::string> arguments,
               const std::vector<std::string>& environment = NO_DESKTOP,
               const std::string& output = "");

// The one line on standard output; a failed expectation when it is not one line of JSON.
Json envelope(const Ran& ran);

bool has(const std::string& text, const std::string& part);

}  // namespace praefectus::tests
