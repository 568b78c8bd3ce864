// How values are spelled in columns: the words of words.capnp in snake_case, several of them with a
// space between. Reading throws on anything else, so that a damaged word is noticed.
#pragma once

#include "ipc/words.h"

#include <capnp/schema.h>
#include <kj/vector.h>

namespace praefectus::ledger {

template <typename Enum>
Enum enumerantOf(kj::StringPtr word) {
  auto count = capnp::Schema::from<Enum>().getEnumerants().size();
  for (capnp::uint i = 0; i < count; ++i) {
    auto value = static_cast<Enum>(i);
    if (nameOf(value) == word) return value;
  }
  KJ_FAIL_REQUIRE("a word that is not in words.capnp");
}

kj::String wordsOf(const Rights& rights);
Rights rightsIn(kj::StringPtr words);

kj::String wordsOf(kj::ArrayPtr<const Warning> warnings);
kj::Vector<Warning> warningsIn(kj::StringPtr words);

}  // namespace praefectus::ledger
