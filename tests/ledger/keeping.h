// What the tests of upkeep share beside the fixture.
#pragma once

#include "supervisor/ledger/upkeep.h"
#include "tests/ledger/fixture.h"

#include <string>

namespace praefectus::test {

ledger::Telling silent();

template <typename T>
kj::StringPtr codeOf(const Result<T>& result) {
  return result.ok() ? "ok"_kj : nameOf(result.refusal().code);
}

// Claims an operation and ends it as a success.
attest::Envelope does(Running& ledger, kj::StringPtr operation);
void does(kj::StringPtr folder, kj::StringPtr operation);

// The deeds, told to nobody.
Result<kj::Maybe<ledger::ArchiveMade>> archiveBefore(kj::StringPtr folder, int64_t before,
                                                     kj::StringPtr file);
Result<kj::OneOf<ledger::ImportMade, ledger::BadLine>> import(kj::StringPtr folder,
                                                              kj::StringPtr lines);
// What a check finds, one line each.
kj::String check(kj::StringPtr folder);

// Every byte of what is the ledger: database, log and key.
kj::Array<kj::byte> bytesIn(kj::StringPtr folder);
bool holds(kj::ArrayPtr<const kj::byte> bytes, kj::StringPtr text);
// "succeeded 3, rejected 1"
std::string spelled(const kj::Vector<ledger::Counted>& counts);

// A grant as a host signs it for whatever the ledger in that folder is now.
class GrantSignedFor {
 public:
  explicit GrantSignedFor(kj::StringPtr folder);
  // What admission says when it comes to the supervisor of the ledger in that folder.
  std::string presentedTo(kj::StringPtr folder) const;

 private:
  LedgerId audience;
};

}  // namespace praefectus::test
