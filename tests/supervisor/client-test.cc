// What the host library takes from a supervisor, which it does not take at its word.
#include "supervisor/client/client.h"

#include <gtest/gtest.h>

#include <string>

namespace praefectus::client {
namespace {

struct Refused {
  std::string code;
  bool proof;
};

// What a host is told by a supervisor that refuses with such a proof, and whether it kept one.
Refused refusedWith(kj::StringPtr forgery) {
  attest::initialize();
  auto io = kj::setupAsyncIo();
  const kj::String environment[] = {kj::str("FORGERY=", forgery)};
  Options options;
  options.ledger = "/nowhere";
  options.supervisor = PRAEFECTUS_BIN "/forging-supervisor";
  options.environment = kj::arrayPtr(environment, 1);
  Authority authority("host", attest::SigningKey::generate());
  auto host = Host::start(io, options, authority).wait(io.waitScope);
  KJ_REQUIRE(host.ok(), host.refusal().detail);
  auto opened = (*host)->open("session-1", "turn-1", Leasing::BY_HAND).wait(io.waitScope);
  KJ_REQUIRE(opened.ok(), opened.refusal().detail);
  auto listed = (*opened)->list().wait(io.waitScope);
  KJ_REQUIRE(!listed.ok());
  return {nameOf(listed.refusal().code).cStr(), (*opened)->lastRefusal() != nullptr};
}

TEST(Client, aProvenRefusalIsToldAndItsProofIsKept) {
  auto refused = refusedWith("good");
  EXPECT_EQ(refused.code, "lease_missing");
  EXPECT_TRUE(refused.proof);
}

TEST(Client, aRefusalThatIsNotProvenByTheLedgerForThisSessionRequestAndCodeIsAMismatch) {
  for (auto forgery :
       {"none", "signature", "body", "key", "ledger", "session", "code", "request"}) {
    auto refused = refusedWith(forgery);
    EXPECT_EQ(refused.code, "service_mismatch") << forgery;
    EXPECT_FALSE(refused.proof) << forgery;
  }
}

}  // namespace
}  // namespace praefectus::client
