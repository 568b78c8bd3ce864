// What a ledger remembers of itself: where it lies, what time it was, what was taken back, which
// key signs, and what of it is damaged.
#include "tests/ledger/fixture.h"

#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

using ledger::ClockMemory;
using ledger::Holding;
using ledger::Machine;
using ledger::Moment;

constexpr int64_t MINUTE = 60'000;
constexpr int64_t DAY = 24 * 60 * MINUTE;

kj::StringPtr outcomeOn(const Machine& machine, kj::StringPtr folder, Moment now) {
  auto opened = ledger::openOn(machine, folder, now);
  return opened.ok() ? "ok"_kj : nameOf(opened.refusal().code);
}

uint64_t lastPlace(kj::StringPtr folder) {
  auto reader = LedgerReader::open(folder);
  KJ_REQUIRE(reader.ok());
  return (*reader)->summary()->sequence;
}

// As a tool does it: in one commit, while no supervisor has the ledger.
void keep(kj::StringPtr folder, kj::Function<void(Holding&)> deed) {
  auto taken = Holding::take(folder, ledger::thisMachine(), Holding::Moved::REFUSED);
  KJ_REQUIRE(taken.ok(), taken.refusal().detail);
  ledger::Transaction transaction(*(*taken)->writing);
  deed(**taken);
  transaction.commit();
}

// ---- Where

TEST(Place, aCopyIsMovedAndStaysAsItWas) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  copyFolder(folder, place / "copy");
  auto before = readWhole(place / "copy/ledger.db");
  EXPECT_EQ(outcomeOfOpening(place / "copy"), "ledger_moved");
  EXPECT_EQ(readWhole(place / "copy/ledger.db"), before);
  EXPECT_EQ(lastPlace(place / "copy"), 1u);
  EXPECT_EQ(outcomeOfOpening(folder), "ok");
}

TEST(Place, aFolderUnderAnotherNameIsNotMoved) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  KJ_SYSCALL(rename(folder.cStr(), (place / "renamed").cStr()));
  EXPECT_EQ(outcomeOfOpening(place / "renamed"), "ok");
}

TEST(Place, anotherMachineIsMovedAndAnotherBootIsNot) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto machine = ledger::thisMachine();
  EXPECT_EQ(outcomeOn({kj::str("another"), kj::str(machine.boot)}, folder, momentAt(NOW)),
            "ledger_moved");
  EXPECT_EQ(outcomeOn({kj::str(machine.name), kj::str("another")}, folder, momentAt(NOW)), "ok");
}

TEST(Place, anAdoptedLedgerIsAnotherIncarnationWithTheSamePast) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    ledger.concludes("before");
  }
  copyLedger(folder, place / "copy");
  {
    Running ledger(place / "copy");
    EXPECT_EQ(ledger->id().incarnation, 2u);
    auto before = ledger->find("before");
    ASSERT_TRUE(before->is<attest::Envelope>());
    EXPECT_EQ(opened(*ledger.operator->(), before->get<attest::Envelope>()).ledger.incarnation, 1u);
    auto after = opened(*ledger.operator->(), ledger.concludes("after"));
    EXPECT_EQ(after.ledger.incarnation, 2u);
    EXPECT_EQ(after.ledger.key, ledger->id().key);
  }
  EXPECT_EQ(findingsIn(place / "copy"), "");
}

// ---- When

TEST(ClockMemory, aClockAgreesWithinAMinuteOfWhatThisBootSays) {
  ClockMemory memory;
  memory.floorMs = NOW;
  memory.sameBoot = Moment{NOW - DAY, 1000};
  struct Case {
    int64_t wall;
    uint64_t boot;
    bool agrees;
  };
  uint64_t dayLater = 1000 + static_cast<uint64_t>(DAY);
  for (auto& each : {Case{NOW, dayLater, true}, Case{NOW + MINUTE, dayLater, true},
                     Case{NOW + MINUTE + 1, dayLater, false}, Case{NOW - MINUTE, dayLater, true},
                     Case{NOW - MINUTE - 1, dayLater, false}, Case{NOW + DAY, dayLater, false},
                     Case{NOW + DAY, dayLater + static_cast<uint64_t>(DAY), true},
                     // What was recorded is not later than now.
                     Case{NOW, 1000, true}, Case{NOW - MINUTE - 1, 1000, false}}) {
    EXPECT_EQ(memory.agrees({each.wall, each.boot}), each.agrees) << each.wall << " " << each.boot;
  }
}

TEST(ClockMemory, afterAnotherBootOnlyTheFloorIsKnown) {
  ClockMemory memory;
  memory.floorMs = NOW;
  EXPECT_TRUE(memory.agrees({NOW + 100 * DAY, 5}));
  EXPECT_TRUE(memory.agrees({NOW - MINUTE, 5}));
  EXPECT_FALSE(memory.agrees({NOW - MINUTE - 1, 5}));
}

TEST(Clock, aStartIsRecordedWhenTheClockAgreesAndNotWhenItJumped) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    EXPECT_TRUE(ledger->clockMemory().agrees(momentAt(NOW + 5)));
    EXPECT_FALSE(ledger->clockMemory().agrees({NOW + DAY, momentAt(NOW).bootMs}));
  }
  EXPECT_EQ(lastPlace(folder), 2u);
  for (int64_t jump : {DAY, -DAY, 2 * MINUTE, -2 * MINUTE}) {
    auto opened = Ledger::open(folder, {NOW + jump, momentAt(NOW).bootMs});
    ASSERT_TRUE(opened.ok());
    EXPECT_FALSE((*opened)->clockMemory().agrees({NOW + jump, momentAt(NOW).bootMs}));
    EXPECT_EQ((*opened)->head().sequence, 2u) << jump;
  }
  { Running ledger(folder, NOW + DAY); }  // Both clocks moved by a day.
  EXPECT_EQ(lastPlace(folder), 3u);
}

TEST(Clock, theFloorIsTheLatestTimeOnRecordWhereverItStands) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto floor = [&]() {
    auto taken = Holding::take(folder, ledger::thisMachine(), Holding::Moved::REFUSED);
    return (*taken)->scribe->floor();
  };
  EXPECT_EQ(floor(), NOW);
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("op-1"));
    auto late = claimOf("op-2");
    late.at = NOW + 9000;
    ASSERT_TRUE(ledger->claim(kj::mv(late)).wait(ledger.wait()).ok());
    ledger.settles("op-1");
  }
  EXPECT_EQ(floor(), NOW + 9000);  // Of an open claim.
  { Running ledger(folder, NOW + 7000); }
  EXPECT_EQ(floor(), NOW + 9000);
  {
    Running ledger(folder, NOW + 10'000);
    for (int i = 0; i < 1000; ++i) ledger.concludes(kj::str("later-", i));
  }
  EXPECT_EQ(floor(), NOW + 10'000);  // Behind the mark.
  EXPECT_EQ(findingsIn(folder), "");
}

TEST(Clock, whatIsRecoveredUnderAClockThatIsNotBelievedEndsAtTheFloor) {
  for (int64_t jump : {30 * DAY, -30 * DAY}) {
    TemporaryFolder place;
    auto folder = makeLedger(place);
    {
      Running ledger(folder);
      ASSERT_TRUE(ledger.claims("op-1"));
    }
    auto ledger = Ledger::open(folder, {NOW + jump, momentAt(NOW).bootMs});
    ASSERT_TRUE(ledger.ok());
    EXPECT_EQ((*ledger)->recovered().settled, 1u);
    auto found = (*ledger)->find("op-1");
    EXPECT_EQ(opened(**ledger, found->get<attest::Envelope>()).settledAt, NOW) << jump;
  }
}

TEST(Clock, anAcceptedClockIsWhereTimeGoesOnFrom) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder, NOW + DAY);  // A clock that was wrong by a day.
    for (int i = 0; i < 600; ++i) ledger.concludes(kj::str("op-", i));
  }
  Moment right{NOW, momentAt(NOW + DAY).bootMs};
  auto machine = ledger::thisMachine();
  keep(folder, [&](Holding& holding) {
    EXPECT_FALSE(holding.clockMemory(machine).agrees(right));
    auto reading = ledger::readingOf(right, holding.identity.present().id, machine);
    holding.scribe->append(attest::ClockAccepted{reading}, right.wallMs);
    EXPECT_EQ(holding.scribe->floor(), NOW);
  });
  for (int start = 0; start < 2; ++start) {
    auto ledger = Ledger::open(folder, right);
    ASSERT_TRUE(ledger.ok());
    EXPECT_TRUE((*ledger)->clockMemory().agrees(right));
    EXPECT_EQ((*ledger)->clockMemory().floorMs, NOW);
  }
  EXPECT_EQ(findingsIn(folder), "");
}

// ---- What was taken back

attest::Envelope revocationOf(kj::StringPtr id, kj::StringPtr operation,
                              const attest::SigningKey& key) {
  attest::Revocation revocation;
  revocation.issuer = kj::str("host");
  revocation.keyId = attest::keyIdOf(issuerKey().publicKey());
  revocation.audience = {hashNamed("a ledger"), 1};
  revocation.subject = kj::str("uid:1000");
  revocation.revocation = kj::str(id);
  revocation.issuedAt = NOW;
  revocation.what = attest::RevokedOperation{kj::str(operation)};
  return attest::seal(revocation, key);
}

attest::Grant grantFor(kj::StringPtr operation) {
  attest::Grant grant;
  grant.issuer = kj::str("host");
  grant.operation = kj::str(operation);
  grant.session = kj::str("session-1");
  grant.turn = kj::str("turn-1");
  return grant;
}

TEST(Revoked, whatWasTakenBackStaysSoAfterARestartAndIsKeptOnce) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    EXPECT_TRUE(ledger->revocations().check(grantFor("op-1")).ok());
    auto key = issuerKey();
    ASSERT_TRUE(ledger->revoke(revocationOf("r-1", "op-1", key), NOW).wait(ledger.wait()).ok());
    auto once = ledger->head().sequence;
    ASSERT_TRUE(ledger->revoke(revocationOf("r-1", "op-1", key), NOW).wait(ledger.wait()).ok());
    EXPECT_EQ(ledger->head().sequence, once);
  }
  for (int start = 0; start < 2; ++start) {
    Running ledger(folder);
    EXPECT_TRUE(ledger->revocations().has("host", "r-1"));
    auto checked = ledger->revocations().check(grantFor("op-1"));
    ASSERT_FALSE(checked.ok());
    EXPECT_EQ(checked.refusal().code, RefusalCode::REVOKED);
    EXPECT_TRUE(ledger->revocations().check(grantFor("op-2")).ok());
    auto before = ledger->head().sequence;
    ASSERT_TRUE(
        ledger->revoke(revocationOf("r-1", "op-1", issuerKey()), NOW).wait(ledger.wait()).ok());
    EXPECT_EQ(ledger->head().sequence, before);
  }
  EXPECT_EQ(findingsIn(folder), "");
}

TEST(Revoked, whatNoPinnedIssuerSignedIsNotKept) {
  TemporaryFolder place;
  Running ledger(makeLedger(place));
  auto stranger = attest::SigningKey::fromSeed(bytesOf(hashNamed("stranger")));
  auto before = ledger->head().sequence;
  EXPECT_FALSE(ledger->revoke(revocationOf("r-1", "op-1", stranger), NOW).wait(ledger.wait()).ok());
  EXPECT_EQ(ledger->head().sequence, before);
}

// A revocation that cannot be read might have been for what is asked for next.
TEST(Revoked, aDamagedRevocationIsNotForgotten) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    auto revocation = revocationOf("r-1", "op-1", issuerKey());
    ASSERT_TRUE(ledger->revoke(kj::mv(revocation), NOW).wait(ledger.wait()).ok());
  }
  tamper(folder, "UPDATE event SET signature = zeroblob(64) WHERE kind = 'revoked'");
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");
}

// ---- Which key

TEST(Key, aRotatedKeySignsFromThenOnAndTheFormerOnesStillCount) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  kj::Maybe<attest::PublicKey> first;
  {
    Running ledger(folder);
    first = ledger->receiptKey();
    ASSERT_TRUE(ledger.claims("before"));
    ledger.settles("before");
  }
  auto next = attest::SigningKey::fromSeed(bytesOf(hashNamed("the next key")));
  keep(folder, [&](Holding& holding) {
    holding.scribe->append(attest::KeyRotated{next.publicKey()}, NOW + 5);
  });
  EXPECT_EQ(outcomeOfOpening(folder), "ledger_foreign");  // With the key of before.

  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->verify(first)->findings.size(), 0u);
  // Anybody can name a key as the next one; only its owner can sign with it.
  EXPECT_EQ((*reader)->verify(next.publicKey())->findings.size(), 1u);

  unlink(kj::str(folder, "/receipt.key").cStr());
  next.save(kj::str(folder, "/receipt.key"));
  {
    Running ledger(folder);
    EXPECT_EQ(ledger->receiptKey(), next.publicKey());
    ASSERT_EQ(ledger->formerReceiptKeys().size(), 1u);
    EXPECT_EQ(ledger->formerReceiptKeys()[0], KJ_ASSERT_NONNULL(first));
    EXPECT_EQ(ledger->id().key, attest::digestOf(bytesOf(KJ_ASSERT_NONNULL(first))));
    auto before = ledger->find("before");
    ASSERT_TRUE(before->is<attest::Envelope>());
    auto& receipt = before->get<attest::Envelope>();
    EXPECT_TRUE(attest::openReceipt(KJ_ASSERT_NONNULL(first), receipt).ok());
    auto after = ledger.concludes("after");
    EXPECT_TRUE(attest::openReceipt(next.publicKey(), after).ok());
    auto refused = attest::Refused();
    refused.subject = kj::str("uid:1000");
    refused.sequence = 1;
    refused.code = RefusalCode::BUSY;
    refused.at = NOW;
    auto proof = attest::openRefused(next.publicKey(), ledger->sign(kj::mv(refused)));
    ASSERT_TRUE(proof.ok()) << proof.refusal().detail.cStr();
    EXPECT_TRUE(proof->ledger == ledger->id());
  }
  EXPECT_EQ((*reader)->verify(first)->findings.size(), 0u);
  EXPECT_EQ((*reader)->verify(next.publicKey())->findings.size(), 0u);
  EXPECT_EQ((*reader)->verify(next.publicKey())->receipts, 2u);
  EXPECT_EQ((*reader)->summary()->receiptKey, next.publicKey());
}

// ---- What is damaged

// Flips a bit of the first place in the database's file where these bytes stand.
void flip(kj::StringPtr folder, Bytes bytes) {
  {
    BackDoor door(folder);
    KJ_ASSERT(door.run("PRAGMA wal_checkpoint(TRUNCATE)") == SQLITE_OK);
  }
  auto path = kj::str(folder, "/ledger.db");
  auto whole = readWhole(path);
  std::string content(whole.asChars().begin(), whole.size());
  auto at = content.find(std::string(bytes.asChars().begin(), bytes.size()));
  KJ_ASSERT(at != std::string::npos);
  // In its place, since another file would be another ledger.
  int fd;
  KJ_SYSCALL(fd = open(path.cStr(), O_WRONLY | O_CLOEXEC));
  kj::AutoCloseFd file(fd);
  kj::byte flipped = whole[at] ^ 4;
  KJ_SYSCALL(pwrite(file, &flipped, 1, static_cast<off_t>(at)));
}

TEST(Quarantine, anOpenClaimWithAFlippedBitIsLeftAloneAndEverythingElseGoesOn) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    for (auto id : {"first", "damaged", "last"}) {
      auto claim = claimOf(id, id);
      ASSERT_TRUE(ledger->claim(kj::mv(claim)).wait(ledger.wait()).ok());
    }
  }
  flip(folder, bytesOf(hashNamed("damaged")));
  {
    Running ledger(folder);
    EXPECT_EQ(ledger->recovered().settled, 2u);
    EXPECT_EQ(ledger->recovered().quarantined, 1u);
    EXPECT_TRUE(ledger->find("damaged")->is<ledger::Damaged>());
    EXPECT_TRUE(ledger->find("damaged", hashNamed("damaged"))->is<ledger::Damaged>());
    EXPECT_TRUE(ledger->find("first")->is<attest::Envelope>());
    EXPECT_TRUE(ledger->find("last")->is<attest::Envelope>());
    EXPECT_FALSE(ledger.claims("damaged"));
    auto settled = ledger->settle(kj::str("damaged"), success()).wait(ledger.wait());
    ASSERT_FALSE(settled.ok());
    EXPECT_EQ(settled.refusal().code, RefusalCode::RECORD_DAMAGED);
    auto concluded = ledger->conclude(unclaimed("damaged"), refusal()).wait(ledger.wait());
    EXPECT_EQ(concluded.refusal().code, RefusalCode::OPERATION_CONFLICT);
    EXPECT_TRUE(ledger.claims("afterwards"));
    ledger.settles("afterwards");
  }
  Running again(folder);
  EXPECT_EQ(again->recovered().settled, 0u);
  EXPECT_EQ(again->recovered().quarantined, 0u);
  EXPECT_TRUE(again->find("damaged")->is<ledger::Damaged>());
  EXPECT_EQ(findingsIn(folder),
            "4: The claim is quarantined: a start found its record damaged.\n"
            "4: The chain's link does not follow from its content.");
  auto reader = LedgerReader::open(folder);
  EXPECT_EQ((*reader)->receipt("damaged").refusal().code, RefusalCode::RECORD_DAMAGED);
}

TEST(Quarantine, anyColumnOfAnOpenClaimThatWasChangedIsNoticed) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("op-1"));
  }
  auto pattern = place / "pattern";
  KJ_SYSCALL(rename(folder.cStr(), pattern.cStr()));
  size_t changes = 0;
  for (kj::StringPtr change : {"operation SET action_hash = zeroblob(32)"_kj,
                               "operation SET action_class = 'none'"_kj,
                               "operation SET kind = 'invoke'"_kj,
                               "operation SET mode = 'interactive'"_kj,
                               "operation SET risk = 'external'"_kj,
                               "operation SET proof = 'none'"_kj,
                               "operation SET rights = 'focus'"_kj,
                               "operation SET rights = 'other'"_kj,
                               "operation SET grant_hash = x''"_kj,
                               "operation SET authority = 7"_kj,
                               "operation SET helper = 7"_kj,
                               "operation SET helper_generation = 4"_kj,
                               "operation SET claimed_at = claimed_at + 1"_kj,
                               "operation SET claimed_at = NULL"_kj,
                               "operation SET link = zeroblob(32)"_kj,
                               "operation SET link = NULL"_kj,
                               "operation SET link = x''"_kj,
                               "authority SET turn = 'turn-2'"_kj,
                               "authority SET lease = ''"_kj,
                               "authority SET policy_generation = 5"_kj,
                               "helper SET digest = zeroblob(32)"_kj,
                               "event SET link = zeroblob(32) WHERE place = 2"_kj}) {
    TemporaryFolder each(fastPlace());
    copyFolder(pattern, each / "ledger");
    tamper(each / "ledger", kj::str("UPDATE ", change));
    auto taken = Holding::take(each / "ledger", ledger::thisMachine(), Holding::Moved::ACCEPTED);
    ASSERT_TRUE(taken.ok()) << change.cStr();
    ledger::Transaction transaction(*(*taken)->writing);
    Ending ending = success();
    auto recovered = (*taken)->scribe->recover(ending);
    EXPECT_EQ(recovered.quarantined, 1u) << change.cStr();
    EXPECT_EQ(recovered.settled, 0u) << change.cStr();
    ++changes;
  }
  EXPECT_EQ(changes, 22u);
}

TEST(Quarantine, anEndedRecordWithAFlippedBitConcernsItsOwnIdAlone) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    for (auto id : {"first", "damaged", "last"}) {
      ASSERT_TRUE(ledger->claim(claimOf(id, id)).wait(ledger.wait()).ok());
      ledger.settles(id);
    }
  }
  flip(folder, bytesOf(hashNamed("damaged")));
  Running ledger(folder);
  EXPECT_EQ(ledger->recovered().quarantined, 0u);
  EXPECT_TRUE(ledger->find("damaged", hashNamed("damaged"))->is<ledger::Damaged>());
  EXPECT_TRUE(ledger->find("first", hashNamed("first"))->is<attest::Envelope>());
  EXPECT_TRUE(ledger->find("last", hashNamed("last"))->is<attest::Envelope>());
  EXPECT_FALSE(ledger.claims("damaged"));
  EXPECT_TRUE(ledger.claims("afterwards"));
  auto reader = LedgerReader::open(folder);
  EXPECT_EQ((*reader)->receipt("damaged").refusal().code, RefusalCode::RECORD_DAMAGED);
  EXPECT_EQ((*reader)->recent(10)->size(), 4u);
}

// A start says no more than what time it was; a revocation says what may not be done.
TEST(Quarantine, aDamagedStartIsPassedOverAndNamedByAnAudit) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("op-1"));
    ledger.settles("op-1");
  }
  tamper(folder, "UPDATE event SET body = zeroblob(length(body)) WHERE kind = 'started'");
  {
    Running ledger(folder);
    EXPECT_TRUE(ledger->find("op-1")->is<attest::Envelope>());
    ASSERT_TRUE(ledger.claims("op-2"));
    ledger.settles("op-2");
  }
  auto reader = ledger::LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  auto report = (*reader)->verify(nullptr);
  ASSERT_TRUE(report.ok());
  EXPECT_GE(report->findings.size(), 1u);
  for (auto& finding : report->findings) EXPECT_EQ(finding.sequence, 2u) << finding.what.cStr();
}

TEST(Quarantine, anyColumnOfAnEndingThatWasChangedIsNoticed) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("op-1"));
    ledger.settles("op-1");
  }
  for (kj::StringPtr change :
       {"terminal = 'failed'"_kj, "effect = 'none'"_kj, "refusal = 'busy'"_kj,
        "refusal = 'no_such'"_kj, "retry_safe = 1"_kj, "route = 'none'"_kj,
        "verdict = 'unknown'"_kj, "method = 'none'"_kj, "source = 'witness'"_kj,
        "units_done = 0"_kj, "units_asked = 2"_kj, "context = 'breached'"_kj,
        "warnings = 'recovered'"_kj, "settled_at = 1"_kj, "previous = zeroblob(32)"_kj,
        "link = x''"_kj, "signature = zeroblob(64)"_kj}) {
    TemporaryFolder each(fastPlace());
    copyFolder(folder, each / "ledger");
    tamper(each / "ledger", kj::str("UPDATE ending SET ", change));
    auto reader = LedgerReader::open(each / "ledger");
    ASSERT_TRUE(reader.ok());
    auto answer = (*reader)->receipt("op-1");
    ASSERT_FALSE(answer.ok()) << change.cStr();
    EXPECT_EQ(answer.refusal().code, RefusalCode::RECORD_DAMAGED) << change.cStr();
  }
}

// ---- What is not here any more

TEST(Retired, anIdThatIsElsewhereIsNeverUsedAgain) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  attest::Head head;
  {
    Running ledger(folder);
    ASSERT_TRUE(ledger.claims("archived"));
    ledger.settles("archived");
    head = ledger->head();
    ledger.concludes("kept");
  }
  keep(folder, [&](Holding& holding) {
    holding.writing->execute("UPDATE mark SET place = 5, operations = operations + 1");
    holding.scribe->append(attest::Archived{head.sequence, head.link, 1, hashNamed("a file")},
                           NOW + 5);
    holding.writing->execute(
        "INSERT INTO retired SELECT o.id, o.action_hash, e.place, e.link FROM operation o "
        "JOIN ending e ON e.operation = o.place WHERE o.id = 'archived';"
        "INSERT INTO retired (id) VALUES ('imported');"
        "DELETE FROM ending WHERE operation = 3; DELETE FROM operation WHERE place = 3;");
  });
  {
    Running ledger(folder);
    EXPECT_TRUE(ledger->find("archived")->is<ledger::Elsewhere>());
    EXPECT_TRUE(ledger->find("archived", hashNamed("an action"))->is<ledger::Elsewhere>());
    EXPECT_TRUE(ledger->find("archived", hashNamed("another"))->is<ledger::Conflict>());
    EXPECT_TRUE(ledger->find("imported", hashNamed("another"))->is<ledger::Elsewhere>());
    EXPECT_TRUE(ledger->find("kept")->is<attest::Envelope>());
    for (auto id : {"archived", "imported"}) {
      EXPECT_FALSE(ledger.claims(id));
      EXPECT_FALSE(ledger->conclude(unclaimed(id), refusal()).wait(ledger.wait()).ok());
    }
    EXPECT_EQ(ledger->settle(kj::str("archived"), success()).wait(ledger.wait()).refusal().code,
              RefusalCode::OPERATION_ARCHIVED);
    EXPECT_TRUE(ledger->contains(head));  // The archive's last link is known.
    EXPECT_TRUE(ledger.claims("afterwards"));
    ledger.settles("afterwards");
  }
  EXPECT_EQ(findingsIn(folder), "");
  auto reader = LedgerReader::open(folder);
  EXPECT_EQ((*reader)->receipt("archived").refusal().code, RefusalCode::OPERATION_ARCHIVED);
  EXPECT_EQ((*reader)->summary()->operations, 3u);
  // The chain begins at the archive's end, and what was changed behind it is found.
  tamper(folder, "UPDATE ending SET previous = zeroblob(32) WHERE place = 5");
  EXPECT_NE(findingsIn(folder), "");
}

// ---- What a start costs

// Puts `count` ended operations there, as if they had been recorded long ago.
void age(kj::StringPtr folder, int count) {
  tamper(folder,
         kj::str("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ", count,
                 ") INSERT INTO operation SELECT 2 * i + 8, printf('old-%09d', i), action_hash, "
                 "action_class, kind, mode, risk, proof, rights, grant_hash, authority, helper, "
                 "helper_generation, claimed_at, link FROM n, operation WHERE id = 'ended';"
                 "INSERT INTO ending SELECT o.place + 1, o.place, terminal, effect, refusal, "
                 "retry_safe, route, verdict, method, source, units_done, units_asked, context, "
                 "warnings, settled_at, previous, e.link, signature FROM operation o, ending e "
                 "WHERE o.id LIKE 'old-%' AND e.place = 4;"
                 "UPDATE mark SET place = 1 + (SELECT max(place) FROM ending), "
                 "operations = (SELECT count(*) FROM operation)"));
  BackDoor door(folder);
  KJ_ASSERT(door.run("PRAGMA wal_checkpoint(TRUNCATE)") == SQLITE_OK);
}

uint64_t readsOfOpening(int old, int open) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    KJ_ASSERT(ledger.claims("ended"));
    ledger.settles("ended");
  }
  if (old > 0) age(folder, old);
  if (open > 0) {
    Running ledger(folder);
    for (int i = 0; i < open; ++i) KJ_ASSERT(ledger.claims(kj::str("open-", i)));
  }
  FaultyVfs disk;
  disk.disarm();
  Running ledger(folder);
  EXPECT_EQ(ledger->recovered().settled, static_cast<uint32_t>(open));
  return disk.reads();
}

TEST(Opening, readsWhatIsOpenAndNotWhatIsOld) {
  auto young = readsOfOpening(0, 0), old = readsOfOpening(100'000, 0);
  // Three levels of four trees in place of one, and pages that were split.
  EXPECT_LT(old, young + 40);
  EXPECT_GT(readsOfOpening(0, 2000), young + 60);  // The measure measures.
}

// What a start reads begins there.
TEST(Opening, theMarkFollowsWhatEnds) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  auto mark = [&]() { return BackDoor(folder).rows("SELECT place FROM mark")[0].parseAs<int>(); };
  {
    Running ledger(folder);
    EXPECT_EQ(mark(), 3);
    for (int i = 0; i < 600; ++i) ledger.concludes(kj::str("concluded-", i));
    EXPECT_GT(mark(), 500);
    ASSERT_TRUE(ledger.claims("open"));  // In place 603.
    for (int i = 0; i < 600; ++i) ledger.concludes(kj::str("later-", i));
    EXPECT_LE(mark(), 603);
  }
  Running ledger(folder);
  EXPECT_EQ(static_cast<uint64_t>(mark()), ledger->head().sequence + 1);
  EXPECT_EQ(findingsIn(folder), "");
}

TEST(Opening, anIdBehindAllThatWereUsedIsUnknownWithoutARead) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  FaultyVfs disk;
  Running ledger(folder);
  for (int i = 100; i < 200; ++i) ASSERT_TRUE(ledger.claims(kj::str("op-", i)));
  disk.disarm();
  EXPECT_TRUE(ledger->find("op-200")->is<ledger::Unknown>());
  EXPECT_EQ(disk.reads(), 0u);
  EXPECT_TRUE(ledger->find("op-199")->is<ledger::Open>());
  EXPECT_TRUE(ledger->find("op-0")->is<ledger::Unknown>());
  EXPECT_GT(disk.reads(), 0u);
}

}  // namespace
}  // namespace praefectus::test
