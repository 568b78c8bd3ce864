// An auditor's view: it works at any time, changes nothing, and names the place that was tampered
// with.
#include "tests/ledger/fixture.h"

#include <capnp/dynamic.h>
#include <capnp/message.h>

#include <map>
#include <set>
#include <sstream>
#include <string>

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

struct Files {
  kj::Array<kj::byte> database, log;
};
Files filesOf(kj::StringPtr folder) {
  return {readWhole(kj::str(folder, "/ledger.db")), readWhole(kj::str(folder, "/ledger.db-wal"))};
}

std::set<std::string> namesIn(kj::StringPtr folder) {
  std::set<std::string> out;
  DIR* list = opendir(folder.cStr());
  KJ_DEFER(closedir(list));
  while (auto entry = readdir(list)) out.insert(entry->d_name);
  return out;
}

// Places: 1 creation, 2 start, 3 claim, 4 ending, 5 claim (stays open), 6 conclusion.
void fill(Running& ledger) {
  ASSERT_TRUE(ledger.claims("ended"));
  ledger.settles("ended");
  ASSERT_TRUE(ledger.claims("open"));
  ledger.concludes("unclaimed");
}

enum class State { UNKNOWN, OPEN, ENDED };
State stateIn(LedgerReader& reader, kj::StringPtr operation) {
  auto answer = reader.receipt(operation);
  KJ_REQUIRE(answer.ok());
  KJ_IF_MAYBE (known, *answer) return *known == nullptr ? State::OPEN : State::ENDED;
  return State::UNKNOWN;
}

kj::String receiptIn(LedgerReader& reader, kj::StringPtr operation) {
  auto answer = reader.receipt(operation);
  KJ_REQUIRE(answer.ok());
  return hex(KJ_REQUIRE_NONNULL(KJ_REQUIRE_NONNULL(*answer)).body);
}

void expectFilled(kj::StringPtr folder) {
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok()) << reader.refusal().detail.cStr();
  auto summary = (*reader)->summary();
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->operations, 3u);
  EXPECT_EQ(summary->open, 1u);
  EXPECT_EQ(summary->sequence, 6u);
  auto report = (*reader)->verify(nullptr);
  ASSERT_TRUE(report.ok()) << report.refusal().detail.cStr();
  EXPECT_EQ(report->findings.size(), 0u);
  EXPECT_EQ(report->receipts, 2u);
  EXPECT_EQ(report->events, 2u);
  EXPECT_EQ(report->summary.head, summary->head);

  EXPECT_EQ(stateIn(**reader, "ended"), State::ENDED);
  EXPECT_EQ(stateIn(**reader, "open"), State::OPEN);
  EXPECT_EQ(stateIn(**reader, "never-used"), State::UNKNOWN);
}

TEST(Reader, aLedgerAtWorkIsReadAndItsFilesStayAsTheyWere) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  fill(ledger);
  // From another process: closing a file gives up the locks of the whole process that closes it.
  OtherProcess auditor([&](int) {
    auto before = filesOf(folder);
    expectFilled(folder);
    auto after = filesOf(folder);
    KJ_ASSERT(before.database == after.database && before.log == after.log);
    KJ_ASSERT(!testing::Test::HasFailure());
  });
  EXPECT_EQ(auditor.wait(), 0);
  EXPECT_TRUE(ledger.claims("afterwards"));
}

TEST(Reader, aClosedLedgerIsReadAndItsFilesStayAsTheyWere) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    fill(ledger);
  }
  auto before = filesOf(folder);
  unlink(kj::str(folder, "/ledger.db-shm").cStr());
  expectFilled(folder);
  auto after = filesOf(folder);
  EXPECT_EQ(before.database, after.database);
  EXPECT_EQ(before.log, after.log);
}

TEST(Reader, aLedgerThatWasKilledIsReadFromItsLogAndStaysAsItWas) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  OtherProcess supervisor([&](int) {
    Running ledger(folder);
    fill(ledger);
    raise(SIGKILL);
  });
  ASSERT_EQ(supervisor.wait(), -SIGKILL);
  auto before = filesOf(folder);
  expectFilled(folder);
  auto after = filesOf(folder);
  EXPECT_EQ(before.database, after.database);
  EXPECT_EQ(before.log, after.log);
  EXPECT_EQ(namesIn(folder), (std::set<std::string>{".", "..", "ledger.db", "ledger.db-wal",
                                                    "ledger.db-shm", "receipt.key"}));
}

TEST(Reader, aCopyWithoutTheReceiptKeyCanBeVerified) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    fill(ledger);
  }
  copyFolder(folder, place / "copy");
  unlink((place / "copy/receipt.key").cStr());
  expectFilled(place / "copy");
}

TEST(Reader, anEmptyLedgerHoldsAndItsHeadDependsOnWhoItIs) {
  TemporaryFolder place, elsewhere;
  auto one = LedgerReader::open(makeLedger(place));
  auto other = LedgerReader::open(makeLedger(elsewhere));
  EXPECT_EQ((*one)->verify(nullptr)->findings.size(), 0u);
  EXPECT_EQ((*one)->summary()->sequence, 1u);
  EXPECT_NE((*one)->summary()->head, (*other)->summary()->head);
}

TEST(Reader, whatIsNotALedgerIsForeign) {
  TemporaryFolder place;
  EXPECT_FALSE(LedgerReader::open(place / "nothing").ok());
  EXPECT_FALSE(LedgerReader::open(place / ".").ok());
  auto before = namesIn(place / ".");
  auto folder = makeLedger(place);
  unlink(kj::str(folder, "/ledger.db-wal").cStr());
  EXPECT_FALSE(LedgerReader::open(folder).ok());
  EXPECT_EQ(namesIn(folder).count("ledger.db-wal"), 0u);
}

TEST(Reader, operationsAreListedWithTheNewestFirstAndNoMoreThanAskedFor) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  fill(ledger);
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  auto all = (*reader)->recent(100);
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].operation, "unclaimed");
  EXPECT_EQ((*all)[0].sequence, 6u);
  EXPECT_EQ((*all)[1].operation, "open");
  EXPECT_TRUE((*all)[1].ended == nullptr);
  EXPECT_EQ((*all)[2].operation, "ended");
  EXPECT_EQ(hex(KJ_ASSERT_NONNULL((*all)[2].ended).body), receiptIn(**reader, "ended"));
  auto newest = (*reader)->recent(1);
  ASSERT_EQ(newest->size(), 1u);
  EXPECT_EQ((*newest)[0].operation, "unclaimed");
}

TEST(Reader, operationsAreListedBySessionTurnKindTerminalAndTime) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  for (int i = 0; i < 6; ++i) {
    auto claim = claimOf(kj::str("op-", i));
    claim.session = kj::str("session-", i % 2);
    claim.turn = kj::str("turn-", i % 3);
    claim.kind = kj::str(i < 3 ? "invoke" : "set_value");
    claim.at = NOW + i * 1000;
    ASSERT_TRUE(ledger->claim(kj::mv(claim)).wait(ledger.wait()).ok());
    if (i != 4) {
      auto ending = i == 5 ? refusal() : success();
      ASSERT_TRUE(ledger->settle(kj::str("op-", i), kj::mv(ending)).wait(ledger.wait()).ok());
    }
  }
  ledger.concludes("op-6");  // Ends at NOW + 5, in session-1 and turn-1.
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  auto listed = [&](ledger::Filter filter) {
    auto list = (*reader)->list(filter);
    KJ_ASSERT(list.ok());
    return kj::strArray(
        KJ_MAP(each, *list) { return kj::str(each.operation); }, " ");
  };
  ledger::Filter session, turn, kind, terminal, time, both, two;
  session.session = kj::str("session-0");
  EXPECT_EQ(listed(kj::mv(session)), "op-4 op-2 op-0");
  turn.turn = kj::str("turn-1");
  EXPECT_EQ(listed(kj::mv(turn)), "op-6 op-4 op-1");
  kind.kind = kj::str("invoke");
  EXPECT_EQ(listed(kj::mv(kind)), "op-2 op-1 op-0");
  terminal.terminal = Terminal::REJECTED;
  EXPECT_EQ(listed(kj::mv(terminal)), "op-6 op-5");
  time.since = NOW + 1000;
  time.until = NOW + 4000;
  EXPECT_EQ(listed(kj::mv(time)), "op-3 op-2 op-1");
  both.session = kj::str("session-1");
  both.turn = kj::str("turn-0");
  EXPECT_EQ(listed(kj::mv(both)), "op-3");
  two.limit = 2;
  EXPECT_EQ(listed(kj::mv(two)), "op-6 op-5");
}

TEST(Reader, verificationTellsHowFarItHasCome) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  Running ledger(folder);
  for (int i = 0; i < 400; ++i) ledger.concludes(kj::str("op-", i));
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  uint64_t calls = 0, done = 0, all = 0;
  LedgerReader::Progress progress = [&](uint64_t now, uint64_t of) {
    EXPECT_GE(now, done);
    EXPECT_EQ(of, 402u);
    ++calls;
    done = now;
    all = of;
  };
  auto report = (*reader)->verify(nullptr, kj::mv(progress));
  EXPECT_EQ(report->findings.size(), 0u);
  EXPECT_GT(calls, 2u);
  EXPECT_EQ(done, all);
}

TEST(Reader, aHeadNotedEarlierIsFoundInItsPlaceAndNothingBehindTheEnd) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  auto beginning = (*reader)->summary()->head;
  Running ledger(folder);
  fill(ledger);
  auto later = (*reader)->summary();
  auto linkAt = [&](uint64_t sequence) -> kj::Maybe<Hash> {
    auto answer = (*reader)->linkAt(sequence);
    KJ_ASSERT(answer.ok());
    return kj::mv(*answer);
  };
  EXPECT_TRUE(linkAt(1).orDefault({}) == beginning);
  EXPECT_TRUE(linkAt(6).orDefault({}) == later->head);
  EXPECT_FALSE(linkAt(0).orDefault({}) == beginning);
  EXPECT_FALSE(linkAt(5).orDefault({}) == later->head);
  EXPECT_TRUE(linkAt(7) == nullptr);
  EXPECT_TRUE(ledger->contains({1, beginning}));
  EXPECT_TRUE(ledger->contains({6, later->head}));
  EXPECT_EQ(ledger->head(), (attest::Head{6, later->head}));
  EXPECT_FALSE(ledger->contains({5, later->head}));
  EXPECT_FALSE(ledger->contains({7, later->head}));
  EXPECT_FALSE(ledger->contains({UINT64_MAX, later->head}));
}

// "own_pointer" as the schema spells it: "ownPointer".
kj::String inSchema(kj::ArrayPtr<const char> word) {
  kj::Vector<char> out;
  bool capital = false;
  for (char c : word) {
    if (c != '_') out.add(capital ? static_cast<char>(c - 'a' + 'A') : c);
    capital = c == '_';
  }
  return kj::heapString(out.asPtr());
}

kj::Vector<kj::String> wordsIn(kj::StringPtr text) {
  kj::Vector<kj::String> out;
  std::istringstream words(text.cStr());
  for (std::string word; words >> word;) out.add(inSchema({word.data(), word.size()}));
  return out;
}

// The receipt of an ending as schema.sql describes it, from columns and Cap'n Proto's own means
// alone. For a ledger in its first incarnation with its first key.
kj::Array<kj::byte> rebuiltFrom(BackDoor& door, uint64_t place) {
  auto from = kj::str(
      " FROM ending e JOIN operation o ON o.place = e.operation JOIN authority a ON "
      "a.id = o.authority LEFT JOIN helper h ON h.id = o.helper WHERE e.place = ",
      place);
  auto text = [&](kj::StringPtr column) {
    return kj::mv(door.rows(kj::str("SELECT ", column, from))[0]);
  };
  auto data = [&](kj::StringPtr column) {
    return KJ_ASSERT_NONNULL(unhex(text(kj::str("lower(hex(", column, "))"))));
  };
  auto number = [&](kj::StringPtr column) {
    return text(kj::str("coalesce(", column, ", 0)")).parseAs<uint64_t>();
  };
  auto key = KJ_ASSERT_NONNULL(unhex(door.rows("SELECT lower(hex(receipt_key)) FROM ledger")[0]));
  auto keyHash = attest::digestOf(key);

  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Receipt>();
  auto fields = capnp::toDynamic(root);
  auto word = [&](kj::StringPtr field, kj::StringPtr column) {
    fields.set(field, capnp::Text::Reader(inSchema(text(column))));
  };
  root.setVersion(1);
  root.setIssuer("ledger");
  root.setKeyId(hex(bytesOf(keyHash).slice(0, 8)));
  root.initLedger().setKey(bytesOf(keyHash));
  root.getLedger().setIncarnation(1);
  root.setOperation(text("o.id"));
  root.setActionHash(data("action_hash"));
  word("actionClass", "action_class");
  root.setKind(text("kind"));
  word("mode", "mode");
  word("risk", "risk");
  word("proof", "proof");
  auto rights = capnp::toDynamic(root.initRights());
  for (auto& right : wordsIn(text("rights"))) rights.set(right, true);
  root.setGrantIssuer(text("issuer"));
  root.setGrantKeyId(text("key_id"));
  root.setGrantHash(data("grant_hash"));
  root.setPolicyGeneration(number("policy_generation"));
  root.setLease(text("lease"));
  root.setSubject(text("subject"));
  root.setSession(text("session"));
  root.setTurn(text("turn"));
  auto helper = root.initHelper();
  helper.setName(text("name"));
  helper.setRelease(text("release"));
  auto digest = data("coalesce(digest, zeroblob(32))");
  helper.setDigest(digest);
  helper.setGeneration(number("helper_generation"));
  word("route", "route");
  word("terminal", "terminal");
  word("effect", "effect");
  if (text("refusal").size() > 0) {
    root.setHasRefusal(true);
    word("refusal", "refusal");
  }
  root.setRetrySafe(number("retry_safe") == 1);
  auto evidence = capnp::toDynamic(root.initEvidence());
  for (kj::StringPtr part : {"verdict"_kj, "method"_kj, "source"_kj}) {
    evidence.set(part, capnp::Text::Reader(inSchema(text(part))));
  }
  root.getEvidence().setUnitsDone(static_cast<uint32_t>(number("units_done")));
  root.getEvidence().setUnitsAsked(static_cast<uint32_t>(number("units_asked")));
  word("context", "context");
  auto spelled = wordsIn(text("warnings"));
  auto warnings =
      fields.init("warnings", static_cast<capnp::uint>(spelled.size())).as<capnp::DynamicList>();
  for (capnp::uint i = 0; i < spelled.size(); ++i) {
    warnings.set(i, capnp::Text::Reader(spelled[i]));
  }
  root.setClaimedAt(static_cast<int64_t>(number("claimed_at")));
  root.setSettledAt(static_cast<int64_t>(number("settled_at")));
  root.setSequence(place);
  root.setPrevious(data("previous"));
  return kj::heapArray(capnp::canonicalize(root.asReader()).asBytes());
}

// Every kind of ending, claimed and not, as its receipt was signed: by the reader and by hand.
TEST(Reader, everyReceiptIsRebuiltFromItsColumnsBitForBit) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  std::map<std::string, attest::Envelope> signedOnes;
  {
    Running ledger(folder);
    int n = 0;
    auto record = [&](Claim claim, Ending ending, bool claimed) {
      auto id = kj::str("op-", ++n);
      claim.operation = kj::str(id);
      if (claimed) {
        ASSERT_TRUE(ledger->claim(kj::mv(claim)).wait(ledger.wait()).ok());
        auto receipt = ledger->settle(kj::str(id), kj::mv(ending)).wait(ledger.wait());
        signedOnes.emplace(id.cStr(), kj::mv(*receipt));
      } else {
        auto receipt = ledger->conclude(kj::mv(claim), kj::mv(ending)).wait(ledger.wait());
        signedOnes.emplace(id.cStr(), kj::mv(*receipt));
      }
    };
    for (uint16_t t = 0; t <= static_cast<uint16_t>(Terminal::OUTCOME_UNKNOWN); ++t) {
      auto ending = [&]() {
        auto out = refusal();
        out.terminal = static_cast<Terminal>(t);
        return out;
      };
      record(claimOf("x"), ending(), true);
      record(unclaimed("x"), ending(), false);
      record(claimOf("x"), ending(), false);
    }
    for (uint16_t e = 0; e <= static_cast<uint16_t>(Effect::UNKNOWN); ++e) {
      auto ending = success();
      ending.effect = static_cast<Effect>(e);
      ending.context = static_cast<ContextState>(e);
      ending.evidence.verdict = static_cast<Verdict>(e);
      ending.evidence.source = static_cast<Source>(e % 2);
      ending.evidence.method = static_cast<Method>(e);
      ending.evidence.unitsDone = e;
      ending.evidence.unitsAsked = UINT32_MAX;
      for (uint16_t w = 0; w <= e; ++w) ending.warnings.add(static_cast<Warning>(e - w));
      auto claim = claimOf("x");
      claim.rights = {e % 2 == 0, e > 1, e == 3, e < 2};
      claim.mode = static_cast<Mode>(e % 2);
      claim.risk = static_cast<Safety>(e % 3);
      claim.proof = static_cast<Proof>(e);
      claim.policyGeneration = e + 1;
      claim.lease = kj::str("lease-", e);
      record(kj::mv(claim), kj::mv(ending), true);
    }
    for (auto& [id, receipt] : signedOnes) {
      auto found = ledger->find(id.c_str());
      ASSERT_TRUE(found->is<attest::Envelope>()) << id;
      EXPECT_EQ(found->get<attest::Envelope>().body, receipt.body) << id;
      EXPECT_EQ(found->get<attest::Envelope>().signature, receipt.signature) << id;
    }
  }
  EXPECT_EQ(signedOnes.size(), 22u);
  auto reader = LedgerReader::open(folder);
  BackDoor door(folder);
  for (auto& [id, receipt] : signedOnes) {
    EXPECT_EQ(receiptIn(**reader, id.c_str()), hex(receipt.body)) << id;
    auto ended =
        door.rows(kj::str("SELECT e.place FROM ending e JOIN operation o ON "
                          "o.place = e.operation WHERE id = '",
                          id.c_str(), "'"))[0]
            .parseAs<uint64_t>();
    EXPECT_EQ(hex(rebuiltFrom(door, ended)), hex(receipt.body)) << id;
  }
}

// The formulas of schema.sql, written out once more and by themselves: what an auditor would
// program.
TEST(Reader, theFormatPageIsEnoughToRecomputeTheChain) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    fill(ledger);
  }
  BackDoor door(folder);
  auto bytes = [&](kj::StringPtr query) { return KJ_ASSERT_NONNULL(unhex(door.rows(query)[0])); };
  auto number = [&](kj::StringPtr query) { return door.rows(query)[0].parseAs<uint64_t>(); };
  auto begin = [](kj::StringPtr label) {
    attest::Digest digest;
    digest.add(label).add(Bytes(reinterpret_cast<const kj::byte*>(""), 1));
    return digest;
  };

  auto genesis = begin("praefectus/genesis/v2");
  genesis.add(bytes("SELECT lower(hex(receipt_key)) FROM ledger")).addNumber(2);
  for (auto which : {"purpose = 1", "purpose = 2"}) {
    auto from = kj::str(" FROM ring WHERE ", which);
    genesis.addNumber(number(kj::str("SELECT purpose", from)));
    genesis.addSized(bytes(kj::str("SELECT lower(hex(issuer))", from)));
    genesis.addSized(bytes(kj::str("SELECT lower(hex(key_id))", from)));
    genesis.addSized(bytes(kj::str("SELECT lower(hex(key))", from)));
  }
  auto link = genesis.finish();
  auto extended = [&](uint64_t at, kj::StringPtr step, kj::StringPtr id, const Hash& content) {
    auto digest = begin("praefectus/link/v1");
    digest.add(bytesOf(link)).addNumber(at).addSized(step).addSized(id);
    link = digest.add(bytesOf(content)).finish();
    return hex(bytesOf(link));
  };
  for (uint64_t at : {1, 2}) {
    auto body = bytes(kj::str("SELECT lower(hex(body)) FROM event WHERE place = ", at));
    EXPECT_EQ(extended(at, "event", "", attest::digestOf(body)),
              door.rows(kj::str("SELECT lower(hex(link)) FROM event WHERE place = ", at))[0]);
  }

  auto claim = begin("praefectus/claim/v2");
  auto named =
      "FROM operation o JOIN authority a ON a.id = o.authority "
      "JOIN helper h ON h.id = o.helper WHERE o.id = 'ended'"_kj;
  for (kj::StringPtr column :
       {"o.id"_kj, "action_hash"_kj, "action_class"_kj, "kind"_kj, "mode"_kj, "risk"_kj, "proof"_kj,
        "rights"_kj, "issuer"_kj, "key_id"_kj, "grant_hash"_kj, "policy_generation"_kj, "lease"_kj,
        "subject"_kj, "session"_kj, "turn"_kj, "name"_kj, "release"_kj, "digest"_kj}) {
    if (column == "policy_generation") {
      claim.addNumber(number(kj::str("SELECT policy_generation ", named)));
      continue;
    }
    auto value = bytes(kj::str("SELECT lower(hex(", column, ")) ", named));
    bool isHash = column.endsWith("_hash") || column == "digest";
    isHash ? claim.add(value) : claim.addSized(value);
  }
  claim.addNumber(number(kj::str("SELECT helper_generation ", named)));
  claim.addNumber(number(kj::str("SELECT claimed_at ", named)));
  EXPECT_EQ(extended(3, "claim", "ended", claim.finish()),
            door.rows("SELECT lower(hex(link)) FROM operation WHERE place = 3")[0]);
  EXPECT_EQ(hex(bytesOf(link)),
            door.rows("SELECT lower(hex(previous)) FROM ending WHERE place = 4")[0]);

  auto receipt = rebuiltFrom(door, 4);
  EXPECT_EQ(extended(4, "ending", "ended", attest::digestOf(receipt)),
            door.rows("SELECT lower(hex(link)) FROM ending WHERE place = 4")[0]);
}

TEST(Reader, theTrustedKeyDecidesWhoseReceiptsCount) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  kj::Maybe<attest::PublicKey> own;
  {
    Running ledger(folder);
    fill(ledger);
    own = ledger->receiptKey();
  }
  auto reader = LedgerReader::open(folder);
  EXPECT_EQ((*reader)->verify(own)->findings.size(), 0u);
  auto stranger = attest::SigningKey::fromSeed(bytesOf(hashNamed("stranger")));
  auto report = (*reader)->verify(stranger.publicKey());
  EXPECT_EQ(report->receipts, 0u);
  EXPECT_EQ(report->findings.size(), 5u);  // The key, each event and each receipt.
}

TEST(Reader, aReaderFollowsALedgerAtWork) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  Running ledger(folder);
  auto reader = LedgerReader::open(folder);
  ASSERT_TRUE(reader.ok());
  for (uint64_t i = 0; i < 300; ++i) {
    auto id = kj::str("op-", i);
    ASSERT_TRUE(ledger.claims(id));
    EXPECT_EQ((*reader)->summary()->sequence, 2 * i + 3);
    ledger.settles(id);
    EXPECT_EQ(stateIn(**reader, id), State::ENDED);
  }
  auto report = (*reader)->verify(nullptr);
  EXPECT_EQ(report->findings.size(), 0u);
  EXPECT_EQ(report->receipts, 300u);
}

bool names(const ledger::Report& report, uint64_t sequence) {
  for (auto& finding : report.findings) {
    if (finding.sequence == sequence) return true;
  }
  return false;
}

// An expression that differs from the column's value and keeps its type.
kj::String otherValue(kj::StringPtr table, kj::StringPtr column, kj::ArrayPtr<const char> type) {
  if (column == "place" && table != "mark") return kj::str("place + 10");
  if (column == "latest") return kj::str("latest + 1000");
  if (column == "purpose") return kj::str("3");
  auto quoted = kj::str("\"", column, "\"");
  if (type == kj::StringPtr("INTEGER")) return kj::str(quoted, " + 1");
  if (type == kj::StringPtr("TEXT")) return kj::str("'x' || ", quoted);
  return kj::str("CAST(CASE substr(", quoted,
                 ", 1, 1) WHEN x'00' THEN x'01' ELSE x'00' END || substr(", quoted,
                 ", 2) AS BLOB)");
}

// Each column of each table changed by itself: the audit names the place that is concerned.
TEST(Reader, aChangeOfAnyColumnIsFoundAtItsPlace) {
  TemporaryFolder place(fastPlace());
  auto pattern = makeLedger(place);
  {
    Running ledger(pattern);
    fill(ledger);
  }
  struct Row {
    kj::StringPtr table, which;
    uint64_t sequence;
    std::set<std::string> without;  // Columns that are NULL here.
  };
  Row rows[] = {
      {"operation"_kj, "id = 'ended'"_kj, 3, {}},
      {"operation"_kj, "id = 'open'"_kj, 5, {}},
      {"operation"_kj, "id = 'unclaimed'"_kj, 6, {"claimed_at", "link", "helper"}},
      {"ending"_kj, "place = 4"_kj, 4, {"refusal"}},
      {"ending"_kj, "place = 6"_kj, 6, {}},
      {"event"_kj, "place = 1"_kj, 1, {"about"}},
      {"event"_kj, "place = 2"_kj, 2, {"about"}},
      {"authority"_kj, "id = 1"_kj, 3, {}},
      {"helper"_kj, "id = 1"_kj, 3, {}},
      {"mark"_kj, "only = 1"_kj, 0, {"only"}},
      {"ledger"_kj, "only = 1"_kj, 1, {"only"}},
      {"ring"_kj, "purpose = 1"_kj, 1, {}},
  };
  size_t changes = 0;
  for (auto& row : rows) {
    auto columns = BackDoor(pattern).rows(
        kj::str("SELECT name, type FROM pragma_table_info('", row.table, "')"));
    for (auto& column : columns) {
      auto bar = KJ_ASSERT_NONNULL(column.findFirst('|'));
      auto name = kj::str(column.slice(0, bar));
      if (row.without.count(name.cStr())) continue;
      auto type = column.slice(bar + 1);
      auto changed = otherValue(row.table, name, type);
      TemporaryFolder each(fastPlace());
      auto folder = each / "ledger";
      copyFolder(pattern, folder);
      tamper(folder, kj::str("UPDATE ", row.table, " SET \"", name, "\" = ", changed, " WHERE ",
                             row.which));
      auto reader = LedgerReader::open(folder);
      ASSERT_TRUE(reader.ok()) << row.table.cStr() << "." << name.cStr();
      auto report = (*reader)->verify(nullptr);
      ASSERT_TRUE(report.ok()) << row.table.cStr() << "." << name.cStr();
      auto expected = row.sequence;
      if (name == "place" && row.table != "mark") expected += 10;
      EXPECT_TRUE(names(*report, expected)) << row.table.cStr() << "." << name.cStr() << " where "
                                            << row.which.cStr() << ": " << report->findings.size();
      ++changes;
    }
  }
  EXPECT_GT(changes, 100u);
}

TEST(Reader, aRemovedPlaceAndARemovedOperationAreFound) {
  TemporaryFolder place(fastPlace());
  auto pattern = makeLedger(place);
  {
    Running ledger(pattern);
    fill(ledger);
  }
  struct Case {
    kj::StringPtr change;
    uint64_t sequence;
  };
  for (auto& each :
       {Case{"DELETE FROM event WHERE place = 2"_kj, 3},
        Case{"DELETE FROM ending WHERE place = 4"_kj, 5},
        Case{"DELETE FROM operation WHERE id = 'ended'"_kj, 4},
        Case{"DELETE FROM operation WHERE id = 'open'"_kj, 6}, Case{"DELETE FROM mark"_kj, 0},
        // The last place leaves no gap, but its operation is still there.
        Case{"DELETE FROM ending WHERE place = 6"_kj, 6}}) {
    TemporaryFolder other(fastPlace());
    auto folder = other / "ledger";
    copyFolder(pattern, folder);
    tamper(folder, each.change);
    auto reader = LedgerReader::open(folder);
    auto report = (*reader)->verify(nullptr);
    EXPECT_TRUE(names(*report, each.sequence)) << each.change.cStr();
  }
}

TEST(Reader, aDroppedTriggerIsFound) {
  TemporaryFolder place;
  auto folder = makeLedger(place);
  {
    BackDoor door(folder);
    ASSERT_EQ(door.run("DROP TRIGGER ending_stays"), SQLITE_OK);
  }
  EXPECT_EQ(findingsIn(folder), "0: The ledger's constraints or triggers were changed.");
}

// Flips one bit at a time all over the database: found, or without consequence, and never a crash.
TEST(Reader, aFlippedBitIsFoundOrHarmless) {
  TemporaryFolder place(fastPlace());
  auto folder = makeLedger(place);
  {
    Running ledger(folder);
    fill(ledger);
  }
  {
    BackDoor door(folder);
    ASSERT_EQ(door.run("PRAGMA wal_checkpoint(TRUNCATE)"), SQLITE_OK);
  }
  auto path = kj::str(folder, "/ledger.db");
  auto whole = readWhole(path);
  kj::String truth;
  {
    auto reader = LedgerReader::open(folder);
    ASSERT_TRUE(reader.ok());
    truth = receiptIn(**reader, "ended");
  }
  size_t found = 0, flips = 0;
  for (size_t at = 0; at < whole.size(); at += 61) {
    auto damaged = kj::heapArray<kj::byte>(whole.asPtr());
    damaged[at] = static_cast<kj::byte>(damaged[at] ^ (1u << (at % 8)));
    writeWhole(path, damaged);
    ++flips;
    auto reader = LedgerReader::open(folder);
    if (!reader.ok()) {
      ++found;
      continue;
    }
    auto report = (*reader)->verify(nullptr);
    if (!report.ok() || report->findings.size() > 0) {
      ++found;
      continue;
    }
    EXPECT_EQ(receiptIn(**reader, "ended"), truth) << at;
  }
  EXPECT_GT(found, 20u) << "of " << flips;
}

}  // namespace
}  // namespace praefectus::test
