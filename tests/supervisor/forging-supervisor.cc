// Stands where a supervisor should, and refuses everything with a proof that is wrong in the way
// that FORGERY names; "good" is what an honest one says.
#include "attest/signed.h"
#include "ipc/channel.h"
#include "ipc/schema/host.capnp.h"

#include <kj/async-io.h>

#include <cstdlib>

namespace praefectus {
namespace {

constexpr int SOCKET = 3;

struct Forger {
  kj::StringPtr forgery;
  attest::SigningKey key = attest::SigningKey::generate();
  attest::SigningKey strangersKey = attest::SigningKey::generate();
  LedgerId ledger{attest::digestOf("a ledger"_kj.asBytes()), 1};
  uint64_t refusals = 0;

  attest::Envelope proof(kj::StringPtr session, wire::Submission::Reader asked) {
    bool strange = forgery == "key";
    auto& signer = strange ? strangersKey : key;
    attest::Refused refused;
    refused.issuer = kj::str("ledger");
    refused.keyId = attest::keyIdOf(signer.publicKey());
    refused.ledger = ledger;
    if (forgery == "ledger") ++refused.ledger.incarnation;
    refused.subject = kj::str("uid:0");
    refused.session = kj::str(forgery == "session"_kj ? "session-2"_kj : session);
    refused.sequence = ++refusals;
    auto grant = attest::readEnvelope(asked.getGrant());
    KJ_REQUIRE(grant.ok());
    refused.request = attest::requestHash(*grant, asked.getAction());
    if (forgery == "request") refused.request = attest::digestOf("another"_kj.asBytes());
    refused.code = forgery == "code" ? RefusalCode::BUSY : RefusalCode::LEASE_MISSING;
    refused.at = 1;
    auto sealed = attest::seal(refused, signer);
    if (forgery == "signature") sealed.signature[0] ^= 1;
    if (forgery == "body") sealed.body.back() ^= 1;
    if (forgery == "none") sealed = attest::Envelope();
    return sealed;
  }

  void refuse(wire::HostRefusal::Builder to, kj::StringPtr session,
              wire::Submission::Reader asked) {
    write(Refusal{RefusalCode::LEASE_MISSING, "No."_kj}, to.initRefusal());
    attest::write(proof(session, asked), to.initProof());
  }
};

class SessionPort final : public wire::Session::Server {
 public:
  SessionPort(Forger& forger, kj::String id) : forger(forger), id(kj::mv(id)) {}

  kj::Promise<void> beginTurn(BeginTurnContext context) override {
    context.getResults().initResult().setDone();
    return kj::READY_NOW;
  }
  kj::Promise<void> list(ListContext context) override {
    forger.refuse(context.getResults().initResult().initRefusal(), id,
                  context.getParams().getSubmission());
    return kj::READY_NOW;
  }

 private:
  Forger& forger;
  kj::String id;
};

class SupervisorPort final : public wire::Supervisor::Server {
 public:
  explicit SupervisorPort(Forger& forger) : forger(forger) {}

  kj::Promise<void> hello(HelloContext context) override {
    auto info = context.getResults().initResult().initInfo();
    info.setProtocol(wire::PROTOCOL_VERSION);
    write(forger.ledger, info.initLedger());
    info.setReceiptKey(bytesOf(forger.key.publicKey()));
    info.setSubject("uid:0");
    info.initHead().setLink(bytesOf(Hash()));
    return kj::READY_NOW;
  }
  kj::Promise<void> open(OpenContext context) override {
    auto id = kj::str(context.getParams().getSession());
    auto results = context.getResults();
    results.initResult().setDone();
    results.setSession(kj::heap<SessionPort>(forger, kj::mv(id)));
    return kj::READY_NOW;
  }

 private:
  Forger& forger;
};

}  // namespace
}  // namespace praefectus

int main() {
  using namespace praefectus;
  attest::initialize();
  auto io = kj::setupAsyncIo();
  Forger forger{getenv("FORGERY")};
  Channel channel(*io.lowLevelProvider, kj::AutoCloseFd(SOCKET), kj::heap<SupervisorPort>(forger));
  channel.onDisconnect().wait(io.waitScope);
  return EXIT_SUCCESS;
}
