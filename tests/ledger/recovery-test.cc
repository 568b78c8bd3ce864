// Whatever moment a supervisor dies in: every claim it was told of is there, every ending it was
// told of is there unchanged, and nothing stays open.
#include "tests/ledger/fixture.h"

#include <map>
#include <string>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

kj::String fingerprint(const attest::Envelope& envelope) {
  return hex(bytesOf(attest::digestOf(envelope.body)));
}

// Claims, settles and concludes, and says aloud what it was promised.
void work(kj::StringPtr folder, int output, int operations) {
  Running ledger(folder);
  for (int i = 0; i < operations; ++i) {
    auto id = kj::str("op-", i);
    if (!ledger.claims(id)) KJ_FAIL_REQUIRE("not claimed");
    say(output, kj::str("claimed ", id));
    if (i % 3 == 2) continue;  // Stays open.
    auto receipt = ledger.settles(id);
    say(output, kj::str("ended ", id, ' ', fingerprint(receipt)));
    auto other = ledger.concludes(kj::str("unclaimed-", i));
    say(output, kj::str("ended unclaimed-", i, ' ', fingerprint(other)));
  }
}

// What was promised, in the words of `work`.
struct Promised {
  std::map<std::string, std::string> claimed, ended;
  void hear(kj::StringPtr line) {
    std::string text = line.cStr();
    auto first = text.find(' '), second = text.find(' ', first + 1);
    auto id = text.substr(first + 1, second == std::string::npos ? second : second - first - 1);
    if (text.rfind("claimed", 0) == 0) {
      claimed[id] = "";
    } else {
      ended[id] = text.substr(second + 1);
    }
  }
};

void expectKept(kj::StringPtr folder, const Promised& promised) {
  {
    Running ledger(folder);
    for (auto& [id, nothing] : promised.claimed) {
      auto found = ledger->find(id.c_str());
      ASSERT_TRUE(found.ok() && found->is<attest::Envelope>()) << id;
      auto receipt = opened(*ledger.operator->(), found->get<attest::Envelope>());
      if (promised.ended.count(id) == 0 && receipt.terminal != Terminal::SUCCEEDED) {
        EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN) << id;
        EXPECT_FALSE(receipt.retrySafe) << id;
      }
      EXPECT_FALSE(ledger.claims(id.c_str())) << id;
    }
    for (auto& [id, hash] : promised.ended) {
      auto found = ledger->find(id.c_str());
      ASSERT_TRUE(found.ok() && found->is<attest::Envelope>()) << id;
      EXPECT_EQ(fingerprint(found->get<attest::Envelope>()), hash.c_str()) << id;
    }
  }
  EXPECT_EQ(findingsIn(folder), "");
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->summary()->open, 0u);
}

TEST(Recovery, aClaimWithoutATerminalRecoversAsOutcomeUnknown) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("op-1"));
  }
  Running ledger(folder, NOW + 1000);
  EXPECT_EQ(ledger->recovered().settled, 1u);
  auto found = ledger->find("op-1", hashNamed("an action"));
  ASSERT_TRUE(found->is<attest::Envelope>());
  auto receipt = opened(*ledger.operator->(), found->get<attest::Envelope>());
  EXPECT_EQ(receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_EQ(receipt.effect, Effect::UNKNOWN);
  EXPECT_FALSE(receipt.retrySafe);
  EXPECT_EQ(receipt.evidence.verdict, Verdict::UNKNOWN);
  EXPECT_EQ(receipt.context, ContextState::UNWATCHED);
  ASSERT_EQ(receipt.warnings.size(), 1u);
  EXPECT_EQ(receipt.warnings[0], Warning::RECOVERED);
  EXPECT_EQ(receipt.helper.digest, hashNamed("an image"));
  EXPECT_EQ(receipt.helper.generation, 3u);
  EXPECT_EQ(receipt.claimedAt, NOW);
  EXPECT_EQ(receipt.settledAt, NOW + 1000);
}

TEST(Recovery, whatWasRecoveredStaysAsItWasRecovered) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("op-1"));
  }
  kj::String first;
  for (int start = 0; start < 3; ++start) {
    Running ledger(folder, NOW + start);
    EXPECT_EQ(ledger->recovered().settled, start == 0 ? 1u : 0u);
    auto found = ledger->find("op-1");
    ASSERT_TRUE(found->is<attest::Envelope>());
    auto now = fingerprint(found->get<attest::Envelope>());
    if (start == 0) first = kj::str(now);
    EXPECT_EQ(now, first);
    EXPECT_EQ(fingerprint(ledger.settles("op-1")), first);
  }
}

TEST(Recovery, manyOpenClaimsAreSettledInOneStart) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    kj::Vector<kj::Promise<Result<Done>>> claims;
    for (int i = 0; i < 2500; ++i) claims.add(ledger->claim(claimOf(kj::str("op-", i))));
    for (auto& claim : claims) ASSERT_TRUE(claim.wait(ledger.wait()).ok());
  }
  Running ledger(folder);
  EXPECT_EQ(ledger->recovered().settled, 2500u);
}

// Kills at every write, flush and cut from opening to closing, before it and after it.
TEST(Recovery, aKillAtAnyWriteBreaksNoPromise) {
  TemporaryFolder place(fastPlace());
  auto pattern = makeLedger(place);
  for (auto fault : {Fault::KILL_BEFORE, Fault::KILL_AFTER}) {
    uint64_t n = 1;
    for (bool killed = true; killed; ++n) {
      TemporaryFolder each(fastPlace());
      auto folder = each / "ledger";
      copyLedger(pattern, folder);
      OtherProcess other([&](int output) {
        FaultyVfs disk;
        disk.arm(fault, n);
        work(folder, output, 4);
      });
      Promised promised;
      while (true) {
        KJ_IF_MAYBE (line, other.line())
          promised.hear(*line);
        else
          break;
      }
      int status = other.wait();
      ASSERT_TRUE(status == 0 || status == -SIGKILL) << status;
      killed = status != 0;
      ASSERT_NO_FATAL_FAILURE(expectKept(folder, promised)) << "killed at " << n;
    }
    EXPECT_GT(n, 20u);  // The sweep went through the work, not past it.
  }
}

TEST(Recovery, aKillDuringRecoveryIsRecoveredFrom) {
  TemporaryFolder place(fastPlace());
  auto pattern = makeLedger(place);
  Promised promised;
  {
    OtherProcess other([&](int output) {
      work(pattern, output, 6);
      raise(SIGKILL);
    });
    while (true) {
      KJ_IF_MAYBE (line, other.line())
        promised.hear(*line);
      else
        break;
    }
    other.wait();
  }
  ASSERT_EQ(promised.claimed.size(), 6u);
  uint64_t n = 1;
  for (bool killed = true; killed; ++n) {
    TemporaryFolder each(fastPlace());
    auto folder = each / "ledger";
    copyLedger(pattern, folder);
    OtherProcess other([&](int) {
      FaultyVfs disk;
      disk.arm(Fault::KILL_AFTER, n);
      Running ledger(folder);
    });
    killed = other.wait() == -SIGKILL;
    ASSERT_NO_FATAL_FAILURE(expectKept(folder, promised)) << "killed at " << n;
  }
  EXPECT_GT(n, 3u);
}

// From outside, and so at moments that nobody chose.
TEST(Recovery, aKillInTheMiddleOfWorkBreaksNoPromise) {
  TemporaryFolder place(fastPlace());
  auto pattern = makeLedger(place);
  for (int lines = 1; lines <= 60; lines += 3) {
    TemporaryFolder each(fastPlace());
    auto folder = each / "ledger";
    copyLedger(pattern, folder);
    OtherProcess other([&](int output) { work(folder, output, 1000); });
    Promised promised;
    for (int i = 0; i < lines; ++i) promised.hear(KJ_ASSERT_NONNULL(other.line()));
    other.kill();
    while (true) {
      KJ_IF_MAYBE (line, other.line())
        promised.hear(*line);
      else
        break;
    }
    EXPECT_EQ(other.wait(), -SIGKILL);
    ASSERT_NO_FATAL_FAILURE(expectKept(folder, promised));
  }
}

TEST(Recovery, aKillDuringCreationLeavesNothingThatPassesForALedger) {
  uint64_t n = 1;
  for (bool killed = true; killed; ++n) {
    TemporaryFolder place(fastPlace());
    auto folder = place / "ledger";
    OtherProcess other([&](int) {
      FaultyVfs disk;
      disk.arm(Fault::KILL_AFTER, n);
      if (!Ledger::create(folder, sampleRing(), momentAt(NOW)).ok()) KJ_FAIL_REQUIRE("not created");
    });
    int status = other.wait();
    killed = status == -SIGKILL;
    ASSERT_TRUE(killed || status == 0) << status;
    if (killed) {
      EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");
      EXPECT_TRUE(Ledger::create(folder, sampleRing(), momentAt(NOW)).ok());
    }
    EXPECT_EQ(outcomeOfOpening(folder), "ok");
  }
  EXPECT_GT(n, 5u);
}

}  // namespace
}  // namespace praefectus::test
