// How a Result reads in a test's expectation.
#pragma once

#include "ipc/words.h"

#include <gtest/gtest.h>

#include <string>

namespace praefectus {

// "ok", or the refusal's name.
template <typename T>
std::string outcome(const Result<T>& result) {
  return result.ok() ? "ok" : std::string(nameOf(result.refusal().code).cStr());
}

}  // namespace praefectus
