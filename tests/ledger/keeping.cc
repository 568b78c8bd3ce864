#include "tests/ledger/keeping.h"

#include "supervisor/admission.h"

#include <kj/io.h>

#include <algorithm>

namespace praefectus::test {
namespace {

struct StoppedClock final : Clock {
  int64_t wallMs() const override { return NOW; }
  uint64_t bootMs() const override { return 1'000'000; }
};

struct NoHelpers final : HelperSource {
  kj::Promise<Result<kj::Own<HelperLink>>> startDesktopHelper() override {
    KJ_FAIL_REQUIRE("no helper is needed");
  }
};

}  // namespace

ledger::Telling silent() {
  return [](kj::StringPtr, uint64_t, uint64_t) {};
}

attest::Envelope does(Running& ledger, kj::StringPtr operation) {
  KJ_REQUIRE(ledger.claims(operation));
  return ledger.settles(operation);
}

void does(kj::StringPtr folder, kj::StringPtr operation) {
  Running ledger(folder);
  does(ledger, operation);
}

Result<kj::Maybe<ledger::ArchiveMade>> archiveBefore(kj::StringPtr folder, int64_t before,
                                                     kj::StringPtr file) {
  return ledger::archive(folder, before, file, momentAt(NOW), silent());
}

Result<kj::OneOf<ledger::ImportMade, ledger::BadLine>> import(kj::StringPtr folder,
                                                              kj::StringPtr lines) {
  kj::ArrayInputStream input(lines.asBytes());
  return ledger::importV2(folder, input, momentAt(NOW));
}

kj::String check(kj::StringPtr folder) {
  auto report = ledger::check(folder, nullptr, silent());
  if (!report.ok()) return kj::str(report.refusal().detail);
  return kj::strArray(
      KJ_MAP(finding, report->findings) { return kj::str(finding.sequence, ": ", finding.what); },
      "\n");
}

kj::Array<kj::byte> bytesIn(kj::StringPtr folder) {
  kj::Vector<kj::byte> out;
  for (auto name : {"/ledger.db", "/ledger.db-wal", "/receipt.key"}) {
    out.addAll(readWhole(kj::str(folder, name)));
  }
  return out.releaseAsArray();
}

bool holds(kj::ArrayPtr<const kj::byte> bytes, kj::StringPtr text) {
  return std::search(bytes.begin(), bytes.end(), text.asBytes().begin(), text.asBytes().end()) !=
         bytes.end();
}

std::string spelled(const kj::Vector<ledger::Counted>& counts) {
  return kj::strArray(
             KJ_MAP(each, counts) { return kj::str(each.what, " ", each.count); }, ", ")
      .cStr();
}

GrantSignedFor::GrantSignedFor(kj::StringPtr folder) : audience(Running(folder)->id()) {}

std::string GrantSignedFor::presentedTo(kj::StringPtr folder) const {
  constexpr kj::StringPtr SUBJECT = "uid:1000"_kj;
  constexpr WindowRef WINDOW{{4242, 987654}, 7};
  StoppedClock clock;
  NoHelpers helpers;
  auto session = kj::refcounted<Session>(1, kj::str("session-1"), clock, helpers);
  KJ_ASSERT(session->beginTurn(kj::str("turn-1")).ok());
  auto frame = session->frames.draw();
  session->frames.taken(frame, WINDOW, 0);
  Action action;
  action.blind.fill(7);
  action.timeoutMs = 10'000;
  action.target = ElementTarget{WINDOW, frame.id, frame.epoch, 1, {}};
  action.act = InvokeRequest{kj::str("press")};

  attest::Grant grant;
  grant.issuer = kj::str("host");
  grant.keyId = attest::keyIdOf(issuerKey().publicKey());
  grant.audience = audience;
  grant.subject = kj::str(SUBJECT);
  grant.session = kj::str("session-1");
  grant.turn = kj::str("turn-1");
  grant.operation = kj::str("operation-1");
  grant.actionHash = attest::actionHash(encode(action));
  grant.actionClass = ActionClass::SEMANTIC_MUTATION;
  grant.target = WINDOW;
  grant.frame = frame.id;
  grant.notBefore = NOW;
  grant.expires = NOW + 60'000;

  Running ledger(folder);
  auto received = attest::openGrant(ledger->ring(), attest::seal(grant, issuerKey()));
  KJ_REQUIRE(received.ok(), received.refusal().detail);
  auto matched = match(kj::mv(*received), encode(action), {ledger->id(), SUBJECT}, *session);
  return codeOf(matched).cStr();
}

}  // namespace praefectus::test
