// Deaths at every place that matters, by SIGKILL, with the real application as witness. Whatever
// dies, an effect happens at most once, and nobody says that it happened, or that it did not,
// without knowing.
#include "supervisor/ledger/reader.h"
#include "tests/scenario/rig.h"

#include <csignal>

namespace praefectus::tests {
namespace {

size_t effects(Rig& rig) { return rig.recorded("check").size(); }

client::Request toggle(Rig& rig, const Observation& seen) {
  auto& check = Rig::named(seen, "check box", "Check");
  return rig.session->invoke(seen, check, check.actions[0]);
}

pid_t helperPid(Rig& rig) { return static_cast<pid_t>(rig.need(rig.session->capabilities()).pid); }

void expectUnknown(const attest::Receipt& receipt) {
  EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_EQ(receipt.effect, Effect::UNKNOWN);
  EXPECT_FALSE(receipt.retrySafe);
}

void expectLedgerHolds(Rig& rig) {
  auto reader = ledger::LedgerReader::open(kj::StringPtr(rig.ledger.c_str(), rig.ledger.size()));
  ASSERT_TRUE(reader.ok());
  auto report = (*reader)->verify(nullptr);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->findings.size(), 0u);
}

// The probe stops itself inside the press, before it writes it down: the effect is on its way, and
// everything waits. SIGCONT lets it land.
bool isStopped(pid_t pid) {
  auto stat = contents("/proc/" + std::to_string(pid) + "/stat");
  auto after = stat.rfind(')');
  return after != std::string::npos && stat.size() > after + 2 && stat[after + 2] == 'T';
}

client::Request press(Rig& rig, const Observation& seen) {
  auto& button = Rig::named(seen, "push button", "Record");
  return rig.session->invoke(seen, button, button.actions[0]);
}

TEST(Crash, aHelperKilledInTheMiddleLeavesAnUnknownOutcomeThatIsNeverSentAgain) {
  Rig rig("freeze");
  auto seen = rig.look();
  auto request = press(rig, seen);
  pid_t helper = helperPid(rig);
  auto answer = rig.sendUntil(request, wire::Stage::CLAIMED);
  ASSERT_TRUE(eventually([&] { return isStopped(rig.probe); }));
  EXPECT_TRUE(rig.recorded("record").empty());
  kill(helper, SIGKILL);
  auto outcome = rig.need(kj::mv(answer));
  expectUnknown(outcome.receipt);
  EXPECT_EQ(rig.refusalOf(rig.session->execute(press(rig, seen))), "reobserve_required");
  auto again = rig.need(rig.session->execute(request));
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.receipt.terminal, Terminal::OUTCOME_UNKNOWN);

  // "Did not happen" would have been wrong; a second press would have been worse.
  kill(rig.probe, SIGCONT);
  ASSERT_TRUE(rig.waitForRecord("record", 1));
  auto fresh = rig.look();
  EXPECT_EQ(rig.recorded("record").size(), 1u);

  // A new observation opens the way again, with a new helper.
  EXPECT_NE(helperPid(rig), helper);
  auto set = rig.session->setValue(fresh, Rig::entry(fresh), "after");
  EXPECT_EQ(rig.need(rig.session->execute(set)).receipt.terminal, Terminal::SUCCEEDED);
  expectLedgerHolds(rig);
}

TEST(Crash, anApplicationThatDiesOfAPressIsNotASuccess) {
  Rig rig("crash");
  auto seen = rig.look();
  auto outcome = rig.need(rig.session->execute(press(rig, seen)));
  expectUnknown(outcome.receipt);
  EXPECT_EQ(rig.recorded("record").size(), 1u);
}

TEST(Crash, aHelperKilledBeforeTheClaimLeavesNothingBehind) {
  Rig rig;
  auto seen = rig.look();
  pid_t helper = helperPid(rig);
  kill(helper, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !isAlive(helper); }));
  auto request = toggle(rig, seen);
  auto refusal = rig.refusalOf(rig.session->execute(request));
  EXPECT_TRUE(refusal == "stale_frame" || refusal == "service_unavailable") << refusal;
  EXPECT_TRUE(rig.need(rig.host->status(request.operation)).is<client::OperationUnknown>());
  EXPECT_EQ(effects(rig), 0u);
}

TEST(Crash, aHelperThatHangsIsEndedAtTheDeadlineAndTheOutcomeIsUnknown) {
  Rig rig("freeze");
  auto seen = rig.look();
  client::How how;
  how.timeoutMs = 1500;
  auto& button = Rig::named(seen, "push button", "Record");
  auto request = rig.session->invoke(seen, button, button.actions[0], how);
  pid_t helper = helperPid(rig);
  auto answer = rig.sendUntil(request, wire::Stage::CLAIMED);
  ASSERT_TRUE(eventually([&] { return isStopped(rig.probe); }));
  kill(helper, SIGSTOP);
  auto outcome = rig.need(kj::mv(answer));
  expectUnknown(outcome.receipt);
  EXPECT_TRUE(eventually([&] { return !isAlive(helper); }));
  kill(rig.probe, SIGCONT);
  ASSERT_TRUE(rig.waitForRecord("record", 1));
  EXPECT_EQ(rig.recorded("record").size(), 1u);
}

TEST(Crash, aSupervisorKilledAfterTheClaimIsSettledAsUnknownByTheNextOne) {
  Rig rig("freeze");
  auto seen = rig.look();
  auto request = press(rig, seen);
  pid_t helper = helperPid(rig);
  auto answer = rig.sendUntil(request, wire::Stage::CLAIMED);
  ASSERT_TRUE(eventually([&] { return isStopped(rig.probe); }));
  kill(rig.host->supervisorPid(), SIGKILL);
  auto gone = rig.wait(kj::mv(answer));
  ASSERT_FALSE(gone.ok());
  EXPECT_STREQ(nameOf(gone.refusal().code).cStr(), "outcome_unknown");
  rig.stop();
  EXPECT_TRUE(eventually([&] { return !isAlive(helper); })) << "a helper outlived its supervisor";
  kill(rig.probe, SIGCONT);

  rig.start();
  EXPECT_EQ(rig.host->info().recovered, 1u);
  auto status = rig.need(rig.host->status(request.operation));
  ASSERT_TRUE(status.is<attest::Receipt>());
  expectUnknown(status.get<attest::Receipt>());
  auto again = rig.need(rig.session->execute(request));
  EXPECT_TRUE(again.replayed);
  ASSERT_TRUE(rig.waitForRecord("record", 1));
  rig.look();
  EXPECT_EQ(rig.recorded("record").size(), 1u);
  expectLedgerHolds(rig);
}

TEST(Crash, aSupervisorKilledBeforeTheClaimHasDoneNothing) {
  Rig rig;
  auto seen = rig.look();
  auto request = toggle(rig, seen);
  kill(rig.probe, SIGSTOP);  // Preparing now waits for the application.
  auto answer = rig.session->execute(request);
  EXPECT_FALSE(answer.poll(rig.io.waitScope));
  kill(rig.host->supervisorPid(), SIGKILL);
  EXPECT_FALSE(rig.wait(kj::mv(answer)).ok());
  rig.stop();
  kill(rig.probe, SIGCONT);
  rig.start();
  EXPECT_EQ(rig.host->info().recovered, 0u);
  EXPECT_TRUE(rig.need(rig.host->status(request.operation)).is<client::OperationUnknown>());
  rig.look();
  EXPECT_EQ(effects(rig), 0u);
}

// How far an operation has come when its supervisor is killed.
enum class Moment { SENT, PREPARED, CLAIMED };

kj::Promise<Result<client::Outcome>> sendUntil(Rig& rig, const client::Request& request,
                                               Moment moment) {
  switch (moment) {
    case Moment::SENT: {
      auto answer = rig.session->execute(request);
      EXPECT_FALSE(answer.poll(rig.io.waitScope));  // Whatever could be written is written.
      return answer;
    }
    case Moment::PREPARED:
      return rig.sendUntil(request, wire::Stage::PREPARED);
    case Moment::CLAIMED:
      return rig.sendUntil(request, wire::Stage::CLAIMED);
  }
  KJ_UNREACHABLE;
}

TEST(Crash, aSupervisorKilledAtAnyMomentNeverLeavesASecondEffect) {
  constexpr Moment MOMENTS[] = {Moment::SENT, Moment::PREPARED, Moment::CLAIMED};
  Rig rig;
  size_t unknown = 0, recovered = 0;
  for (int round = 0; round < 12; ++round) {
    auto moment = MOMENTS[round % 3];
    SCOPED_TRACE(kj::str("round ", round).cStr());
    auto seen = rig.look();
    auto before = effects(rig);
    auto request = toggle(rig, seen);
    auto answer = sendUntil(rig, request, moment);
    kill(rig.host->supervisorPid(), SIGKILL);
    // An answer that came before the kill is as good as any.
    auto answered = rig.wait(kj::mv(answer)).ok();
    rig.stop();
    rig.start();
    recovered += rig.host->info().recovered;
    auto status = rig.need(rig.host->status(request.operation));
    rig.look();  // The probe has answered since: what was on its way has landed.
    auto after = effects(rig);
    EXPECT_FALSE(status.is<client::OperationOpen>());
    EXPECT_LE(after, before + 1);
    if (!status.is<attest::Receipt>()) {
      // What the ledger does not know never happened.
      ++unknown;
      EXPECT_EQ(after, before);
      EXPECT_NE(moment, Moment::CLAIMED);
      EXPECT_FALSE(answered);
      continue;
    }
    auto& receipt = status.get<attest::Receipt>();
    if (receipt.terminal == Terminal::SUCCEEDED) {
      EXPECT_EQ(after, before + 1);
    }
    if (receipt.terminal == Terminal::REJECTED) {
      EXPECT_EQ(after, before);
    }
    auto again = rig.need(rig.session->execute(request));
    EXPECT_TRUE(again.replayed);
    EXPECT_EQ(again.receipt.terminal, receipt.terminal);
    rig.look();
    EXPECT_EQ(effects(rig), after);
  }
  EXPECT_GE(unknown, 1u) << "no supervisor was killed before its claim";
  EXPECT_GE(recovered, 1u) << "no supervisor was killed after its claim";
  expectLedgerHolds(rig);
}

TEST(Crash, aHostThatDiesLeavesItsOperationSettledAndNoProcessBehind) {
  Rig rig;
  rig.stop();
  auto key = rig.folder.file("issuer.key");
  rig.authority.key().save(kj::StringPtr(key.c_str(), key.size()));
  std::vector<std::string> environment;
  for (auto& entry : rig.desktop.environment()) environment.push_back(entry.cStr());
  auto host =
      run({PRAEFECTUS_BIN "/dying-host", rig.ledger, key, std::to_string(rig.probe), "orphan"},
          environment);
  ASSERT_EQ(host.exit, 128 + SIGKILL) << host.err;
  auto pids = linesOf(host.out);
  ASSERT_EQ(pids.size(), 2u);
  for (auto& pid : pids) {
    EXPECT_TRUE(eventually([&] { return !isAlive(std::stoi(pid)); })) << "left behind: " << pid;
  }

  auto reader = ledger::LedgerReader::open(kj::StringPtr(rig.ledger.c_str(), rig.ledger.size()));
  ASSERT_TRUE(reader.ok());
  auto found = (*reader)->receipt("orphan");
  ASSERT_TRUE(found.ok());
  ASSERT_TRUE(*found != nullptr) << "the claim is not in the ledger";
  EXPECT_TRUE(KJ_ASSERT_NONNULL(*found) != nullptr) << "the operation was left open";
  EXPECT_LE(effects(rig), 1u);
}

}  // namespace
}  // namespace praefectus::tests
