// One request from host to receipt, with every real part: client library, supervisor, launcher,
// attested helper, SQLite, X server, accessibility bus, and an application whose own record is the
// oracle.
#include "tests/scenario/rig.h"

#include <chrono>
#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

namespace praefectus::tests {
namespace {

std::string hexLine(kj::StringPtr text) { return hex(text.asBytes()).cStr(); }

size_t timesRecorded(Rig& rig, kj::StringPtr text) {
  size_t count = 0;
  for (auto& line : rig.recorded("text")) {
    auto wanted = " " + hexLine(text);
    if (line.size() >= wanted.size() &&
        line.compare(line.size() - wanted.size(), wanted.size(), wanted) == 0) {
      ++count;
    }
  }
  return count;
}

TEST(Request, aTextThatIsSetIsReadBackAndRecordedByTheApplicationOnce) {
  Rig rig;
  auto seen = rig.look();
  auto request = rig.session->setValue(seen, Rig::entry(seen), "Grüße, 世界 🌍");
  auto outcome = rig.need(rig.session->execute(request));
  EXPECT_EQ(outcome.receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_EQ(outcome.receipt.effect, Effect::VERIFIED);
  EXPECT_EQ(outcome.receipt.evidence.method, Method::VALUE_READBACK);
  EXPECT_EQ(outcome.receipt.context, ContextState::PRESERVED);
  EXPECT_FALSE(outcome.replayed);
  EXPECT_EQ(timesRecorded(rig, "Grüße, 世界 🌍"), 1u);

  // The fresh observation shows it, under a new frame.
  auto& fresh = KJ_ASSERT_NONNULL(outcome.fresh);
  EXPECT_NE(fresh.frame.id, seen.frame.id);
  EXPECT_STREQ(KJ_ASSERT_NONNULL(Rig::entry(fresh).value).cStr(), "Grüße, 世界 🌍");
}

TEST(Request, aCheckBoxIsConfirmedByItsOwnState) {
  Rig rig;
  auto seen = rig.look();
  auto& check = Rig::named(seen, "check box", "Check");
  auto outcome = rig.need(rig.session->execute(rig.session->invoke(seen, check, check.actions[0])));
  EXPECT_EQ(outcome.receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_EQ(outcome.receipt.evidence.method, Method::STATE_READBACK);
  EXPECT_EQ(rig.recorded("check").size(), 1u);
}

TEST(Request, aSliderIsConfirmedByItsNumber) {
  Rig rig;
  auto seen = rig.look();
  auto& slider = Rig::named(seen, "slider", "Slider");
  auto outcome = rig.need(rig.session->execute(rig.session->setValue(seen, slider, "55")));
  EXPECT_EQ(outcome.receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_EQ(rig.recorded("slider"), (std::vector<std::string>{"slider 55"}));
}

TEST(Request, aPressWithoutVisibleConsequenceIsUnknownUnlessTheHostAcceptsNoProof) {
  Rig rig;
  auto seen = rig.look();
  auto& button = Rig::named(seen, "push button", "Record");
  auto strict =
      rig.need(rig.session->execute(rig.session->invoke(seen, button, button.actions[0])));
  EXPECT_EQ(strict.receipt.terminal, Terminal::OUTCOME_UNKNOWN);
  EXPECT_EQ(strict.receipt.evidence.verdict, Verdict::UNVERIFIABLE);
  ASSERT_TRUE(rig.waitForRecord("record", 1));

  seen = rig.look();
  client::How how;
  how.verification = Verification::none();
  auto& again = Rig::named(seen, "push button", "Record");
  auto lax =
      rig.need(rig.session->execute(rig.session->invoke(seen, again, again.actions[0], how)));
  EXPECT_EQ(lax.receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_EQ(lax.receipt.effect, Effect::EXECUTED_UNVERIFIED);
  EXPECT_TRUE(rig.waitForRecord("record", 2));
  EXPECT_EQ(rig.recorded("record").size(), 2u);
}

TEST(Request, theSameRequestAgainAnswersTheRecordedReceiptAndHasNoSecondEffect) {
  Rig rig;
  auto seen = rig.look();
  auto& check = Rig::named(seen, "check box", "Check");
  auto request = rig.session->invoke(seen, check, check.actions[0]);
  auto first = rig.need(rig.session->execute(request));
  for (int i = 0; i < 3; ++i) {
    auto again = rig.need(rig.session->execute(request));
    EXPECT_TRUE(again.replayed);
    EXPECT_EQ(hex(again.sealed.body), hex(first.sealed.body));
  }
  // Also from another session, and after a restart: the grant's session differs from the session's.
  auto other = rig.openSession("session-2");
  EXPECT_EQ(rig.refusalOf(other->execute(request)), "policy_denied");
  rig.stop();
  rig.start();
  auto later = rig.need(rig.session->execute(request));
  EXPECT_TRUE(later.replayed);
  rig.look();  // The probe has answered since; a second toggle would be on disk.
  EXPECT_EQ(rig.recorded("check").size(), 1u);
}

TEST(Request, manyAskingForOneOperationAtOnceGetOneEffect) {
  Rig rig;
  auto seen = rig.look();
  auto& check = Rig::named(seen, "check box", "Check");
  auto request = rig.session->invoke(seen, check, check.actions[0]);
  kj::Vector<kj::Promise<Result<client::Outcome>>> answers;
  for (int i = 0; i < 64; ++i) answers.add(rig.session->execute(request));
  int fresh = 0;
  for (auto& answer : answers) fresh += rig.need(kj::mv(answer)).replayed ? 0 : 1;
  EXPECT_EQ(fresh, 1);
  rig.look();
  EXPECT_EQ(rig.recorded("check").size(), 1u);
}

TEST(Request, aTamperedOrForeignGrantHasNoEffect) {
  Rig rig;
  auto seen = rig.look();
  auto& check = Rig::named(seen, "check box", "Check");
  auto good = rig.session->invoke(seen, check, check.actions[0]);
  // Any byte of body or signature.
  for (size_t i = 0; i < good.grant.body.size(); i += 7) {
    auto bad = good.clone();
    bad.grant.body[i] ^= 0x20;
    EXPECT_EQ(rig.refusalOf(rig.session->execute(bad)), "policy_denied") << "byte " << i;
  }
  for (size_t i = 0; i < good.grant.signature.size(); i += 9) {
    auto bad = good.clone();
    bad.grant.signature[i] ^= 1;
    EXPECT_EQ(rig.refusalOf(rig.session->execute(bad)), "policy_denied");
  }
  // An action other than the signed one, and a key that nobody pinned.
  auto swapped = good.clone();
  swapped.action[swapped.action.size() - 1] ^= 1;
  EXPECT_EQ(rig.refusalOf(rig.session->execute(swapped)), "policy_denied");
  client::Authority stranger("test-host", attest::SigningKey::generate());
  auto forged = good.clone();
  forged.grant.keyId = kj::str(stranger.keyId());
  forged.grant.signature = stranger.key().sign(attest::GRANT_LABEL, forged.grant.body);
  EXPECT_EQ(rig.refusalOf(rig.session->execute(forged)), "policy_denied");
  rig.look();
  EXPECT_TRUE(rig.recorded("check").empty());
}

int64_t wallMs() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

TEST(Request, anExpiredGrantHasNoEffectAndCanStillReplay) {
  Rig rig;
  auto seen = rig.look();
  auto& check = Rig::named(seen, "check box", "Check");
  client::How how;
  how.validForMs = 5'000;
  auto done = rig.session->invoke(seen, check, check.actions[0], how);
  auto first = rig.need(rig.session->execute(done));
  EXPECT_EQ(first.receipt.terminal, Terminal::SUCCEEDED);

  seen = rig.look();
  how.validForMs = 1;
  auto& entry = Rig::entry(seen);
  auto late = rig.session->setValue(seen, entry, "late", how);
  int64_t over = wallMs() + 5'000;  // Both were signed before now.
  ASSERT_TRUE(eventually([&] { return wallMs() > over; }));

  auto again = rig.need(rig.session->execute(done));
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(hex(again.sealed.body), hex(first.sealed.body));
  auto refused = rig.wait(rig.session->execute(late));
  ASSERT_FALSE(refused.ok());
  EXPECT_STREQ(nameOf(refused.refusal().code).cStr(), "policy_denied");
  EXPECT_STREQ(refused.refusal().detail.cStr(), "The grant has expired.");
  EXPECT_TRUE(rig.need(rig.host->status(late.operation)).is<client::OperationUnknown>());
  rig.look();
  EXPECT_EQ(rig.recorded("check").size(), 1u);
  EXPECT_EQ(timesRecorded(rig, "late"), 0u);
}

TEST(Request, aSpentASupersededAndAForeignFrameAreRefused) {
  Rig rig;
  auto old = rig.look();
  auto seen = rig.look();
  auto superseded = rig.session->setValue(old, Rig::entry(old), "old");
  EXPECT_EQ(rig.refusalOf(rig.session->execute(superseded)), "stale_epoch");

  rig.need(rig.session->execute(rig.session->setValue(seen, Rig::entry(seen), "one")));
  auto spent = rig.session->setValue(seen, Rig::entry(seen), "two");
  EXPECT_EQ(rig.refusalOf(rig.session->execute(spent)), "stale_frame");

  auto other = rig.openSession("session-2");
  auto foreign = rig.look(*other);
  auto stolen = rig.session->setValue(foreign, Rig::entry(foreign), "three");
  EXPECT_EQ(rig.refusalOf(rig.session->execute(stolen)), "stale_frame");
  EXPECT_EQ(timesRecorded(rig, "one"), 1u);
  EXPECT_EQ(timesRecorded(rig, "two") + timesRecorded(rig, "three") + timesRecorded(rig, "old"),
            0u);
}

struct Refused {
  const char* mode;
  const char* role;
  const char* name;
  RefusalCode code;
  bool change;
};

class Targets : public testing::TestWithParam<Refused> {};

TEST_P(Targets, thatAreNotWhatWasObservedAreRejectedWithoutEffect) {
  auto& row = GetParam();
  Rig rig(row.mode);
  auto seen = rig.look();
  auto& target = Rig::named(seen, row.role, row.name);
  auto name = target.actions.size() > 0 ? kj::str(target.actions[0]) : kj::str("click");
  client::How how;
  how.verification = Verification::none();
  auto request = rig.session->invoke(seen, target, name, how);
  size_t before = rig.recorded("record").size();
  if (row.change) rig.change();
  auto outcome = rig.need(rig.session->execute(request));
  EXPECT_EQ(outcome.receipt.terminal, Terminal::REJECTED);
  EXPECT_EQ(outcome.receipt.effect, Effect::NONE);
  ASSERT_TRUE(outcome.receipt.refusal != nullptr);
  EXPECT_STREQ(nameOf(KJ_ASSERT_NONNULL(outcome.receipt.refusal)).cStr(), nameOf(row.code).cStr());
  rig.need(rig.session->list());
  EXPECT_EQ(rig.recorded("record").size(), before);
}

INSTANTIATE_TEST_SUITE_P(
    Probe, Targets,
    testing::Values(Refused{"plain", "push button", "Disabled", RefusalCode::TARGET_DISABLED,
                            false},
                    Refused{"plain", "push button", "Hidden", RefusalCode::TARGET_HIDDEN, false},
                    Refused{"disable", "push button", "Record", RefusalCode::TARGET_DISABLED, true},
                    Refused{"hide", "push button", "Record", RefusalCode::TARGET_HIDDEN, true},
                    Refused{"remove", "push button", "Record", RefusalCode::TARGET_MISSING, true},
                    Refused{"replace", "push button", "Record", RefusalCode::TARGET_MISSING, true},
                    Refused{"rename", "push button", "Record", RefusalCode::TARGET_CHANGED, true}),
    [](auto& each) { return std::string(each.param.mode) + "_" + each.param.name; });

TEST(Request, aPasswordFieldIsNeitherReadNorWritten) {
  constexpr kj::StringPtr KEPT = "correct horse battery"_kj;  // What mode "secret" puts there.
  Rig rig("secret");
  const std::vector<std::string> untouched = {kj::str("secret ", KEPT.size()).cStr()};
  ASSERT_EQ(rig.recorded("secret"), untouched);
  auto seen = rig.look();
  const Element* secret = nullptr;
  for (auto& element : seen.elements) {
    if (element.secure) secret = &element;
    auto value =
        element.value.map([](auto& text) { return kj::str(text); }).orDefault(kj::String());
    for (kj::StringPtr text : {kj::StringPtr(element.name), kj::StringPtr(value)}) {
      EXPECT_EQ(std::string(text.cStr()).find("horse"), std::string::npos) << element.role.cStr();
    }
  }
  ASSERT_NE(secret, nullptr);
  EXPECT_TRUE(secret->value == nullptr);
  auto outcome = rig.need(rig.session->execute(rig.session->setValue(seen, *secret, "hunter2")));
  EXPECT_EQ(outcome.receipt.terminal, Terminal::REJECTED);
  EXPECT_STREQ(nameOf(KJ_ASSERT_NONNULL(outcome.receipt.refusal)).cStr(), "sensitivity_blocked");
  rig.look();  // The probe has answered since; a change would be on disk.
  EXPECT_EQ(rig.recorded("secret"), untouched);
}

TEST(Request, ofTwoEqualButtonsTheOneThatWasMeantIsPressed) {
  Rig rig("equal");
  auto seen = rig.look();
  auto twins = client::find(seen, "push button", "Twin");
  ASSERT_EQ(twins.size(), 2u);
  client::How how;
  how.verification = Verification::none();
  rig.need(rig.session->execute(rig.session->invoke(seen, *twins[1], twins[1]->actions[0], how)));
  ASSERT_TRUE(rig.waitForRecord("twin", 1));
  EXPECT_EQ(rig.recorded("twin"), (std::vector<std::string>{"twin 2"}));
}

TEST(Request, aSessionOnAStoppedApplicationDoesNotDelayAnother) {
  Rig rig;
  auto hung = rig.openSession("hung");
  auto seenHung = rig.look(*hung);
  auto request = hung->setValue(seenHung, Rig::entry(seenHung), "late");

  std::string second = rig.folder.file("second");
  kj::StringPtr command[] = {PRAEFECTUS_BIN "/praefectus-probe", "--record", second.c_str(),
                             "--title", "Second"};
  pid_t other = rig.desktop.run(kj::arrayPtr(command, 5)).pid;
  auto window = rig.windowOf(other);
  kill(rig.probe, SIGSTOP);
  auto waiting = hung->execute(request);
  auto seen = rig.need(rig.session->observe(window));
  auto outcome =
      rig.need(rig.session->execute(rig.session->setValue(seen, Rig::entry(seen), "soon")));
  EXPECT_EQ(outcome.receipt.terminal, Terminal::SUCCEEDED);
  EXPECT_FALSE(waiting.poll(rig.io.waitScope));  // The other is still held up, and held nobody up.
  auto late = rig.need(kj::mv(waiting));
  EXPECT_EQ(late.receipt.terminal, Terminal::REJECTED);
  EXPECT_STREQ(nameOf(KJ_ASSERT_NONNULL(late.receipt.refusal)).cStr(), "not_answering");
  kill(rig.probe, SIGCONT);
  rig.look();
  EXPECT_EQ(timesRecorded(rig, "late"), 0u);
}

// A grant as a host could sign it that approves this action as one of another class.
client::Request signedAs(Rig& rig, Action action, ActionClass approved) {
  auto window = action.window();
  auto request = rig.session->sign(kj::mv(action));
  auto& info = rig.host->info();
  attest::Grant grant;
  grant.issuer = kj::str(rig.authority.issuer());
  grant.keyId = kj::str(rig.authority.keyId());
  grant.audience = info.ledger;
  grant.subject = kj::str(info.subject);
  grant.session = kj::str("session-1");
  grant.turn = kj::str("turn-1");
  grant.operation = kj::str(request.operation);
  grant.actionHash = attest::actionHash(request.action);
  grant.actionClass = approved;
  grant.target = window;
  grant.notBefore = wallMs();
  grant.expires = grant.notBefore + 60'000;
  grant.uses = 1;
  request.grant = attest::seal(grant, rig.authority.key());
  return request;
}

TEST(Request, whoListensToStagesIsLetGoOfWhenTheOperationHasEndedUnclaimed) {
  Rig rig;
  auto old = rig.look();
  auto stale = rig.session->setValue(old, Rig::entry(old), "never");
  rig.look();
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto answer = rig.session->execute(
      stale, kj::Function<void(wire::Stage)>(
                 [told = kj::mv(paf.fulfiller)](wire::Stage) mutable { told->fulfill(); }));
  auto letGo = paf.promise.then([] { return false; }, [](kj::Exception&&) { return true; });
  // Nobody waits for the answer meanwhile.
  EXPECT_TRUE(rig.io.provider->getTimer()
                  .timeoutAfter(20 * kj::SECONDS, kj::mv(letGo))
                  .wait(rig.io.waitScope));
  EXPECT_EQ(rig.refusalOf(kj::mv(answer)), "stale_epoch");
}

TEST(Request, readGrantsCountTheirUsesAndServeNoOtherClass) {
  Rig rig;
  Action listing;
  listing.act = ListAct();
  auto once = rig.session->sign(kj::mv(listing));
  EXPECT_TRUE(rig.wait(rig.session->list(once)).ok());
  auto twice = rig.wait(rig.session->list(once));
  ASSERT_FALSE(twice.ok());
  EXPECT_STREQ(nameOf(twice.refusal().code).cStr(), "grant_spent");

  // A grant to read the window's words is none to take its picture; nothing else is wrong with it.
  auto pictured = [&]() {
    Action action;
    action.act = ObserveAct{true};
    action.target = rig.window;
    return action;
  };
  EXPECT_TRUE(
      rig.wait(rig.session->observe(signedAs(rig, pictured(), ActionClass::SCREENSHOT_READ))).ok());
  auto wrong =
      rig.wait(rig.session->observe(signedAs(rig, pictured(), ActionClass::METADATA_READ)));
  ASSERT_FALSE(wrong.ok());
  EXPECT_STREQ(nameOf(wrong.refusal().code).cStr(), "policy_denied");
  EXPECT_STREQ(wrong.refusal().detail.cStr(), "The grant is for another class of action.");
}

TEST(Request, aPictureIsTheWindowAsPng) {
  Rig rig;
  auto seen = rig.need(rig.session->observe(rig.window, true));
  auto& png = KJ_ASSERT_NONNULL(seen.png);
  ASSERT_GT(png.size(), 100u);
  EXPECT_EQ(memcmp(png.begin(), "\x89PNG\r\n\x1a\n", 8), 0);
  auto& info = KJ_ASSERT_NONNULL(seen.picture);
  EXPECT_EQ(info.width, seen.frame.bounds.width);
  EXPECT_EQ(info.height, seen.frame.bounds.height);
}

// Our standard error, and so that of every process that inherits it, in a file.
class StandardError {
 public:
  explicit StandardError(const std::string& file) : kept(fcntl(2, F_DUPFD_CLOEXEC, 3)) {
    int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (kept < 0 || fd < 0 || dup2(fd, 2) != 2) throw std::runtime_error("standard error");
    close(fd);
  }
  ~StandardError() {
    dup2(kept, 2);
    close(kept);
  }
  StandardError(const StandardError&) = delete;

 private:
  int kept;
};

// Every word that came back to a host, to be searched afterwards.
struct Heard {
  void operator()(const char* what, const Result<client::Outcome>& answer) {
    if (answer.ok()) {
      auto bytes = attest::envelopeBytes(answer->sealed);
      auto text = reinterpret_cast<const char*>(bytes.begin());
      texts.emplace_back(std::string("the receipt of ") + what, std::string(text, bytes.size()));
      KJ_IF_MAYBE (refusal, answer->notFresh) {
        texts.emplace_back(std::string("the view after ") + what, refusal->detail.cStr());
      }
    } else {
      ++refusals;
      texts.emplace_back(std::string("the refusal of ") + what, answer.refusal().detail.cStr());
    }
  }
  std::vector<std::pair<std::string, std::string>> texts;
  size_t refusals = 0;
};

TEST(Privacy, nothingThatWasTypedSeenOrNamedIsInTheLedgerItsLogsOrStandardError) {
  constexpr kj::StringPtr CANARY = "canary-7c1f-secret-text"_kj;
  Folder folder;
  auto errors = folder.file("standard-error");
  StandardError captured(errors);
  Rig rig("secret");
  Heard heard;
  auto ask = [&](const char* what, const client::Request& request) {
    heard(what, rig.wait(rig.session->execute(request)));
  };

  auto seen = rig.look();
  auto text = rig.session->setValue(seen, Rig::entry(seen), CANARY);
  ask("a text", text);
  ask("the text again", text);
  ask("a spent frame", rig.session->setValue(seen, Rig::entry(seen), CANARY));
  auto forged = text.clone();
  forged.grant.signature[0] ^= 1;
  ask("a forged grant", forged);

  seen = rig.look();
  auto& check = Rig::named(seen, "check box", "Check");
  ask("a check box", rig.session->invoke(seen, check, check.actions[0]));
  seen = rig.look();
  ask("a disabled button",
      rig.session->invoke(seen, Rig::named(seen, "push button", "Disabled"), "click"));
  seen = rig.look();
  for (auto& element : seen.elements) {
    if (element.secure) ask("a password", rig.session->setValue(seen, element, CANARY));
  }
  seen = rig.look();
  client::How how;
  how.operation = text.operation;
  ask("a conflict", rig.session->setValue(seen, Rig::entry(seen), "canary-7c1f-other", how));
  // An application that dies of what it is asked, and one that is gone.
  kill(rig.probe, SIGKILL);
  ask("a dead application", rig.session->setValue(seen, Rig::entry(seen), CANARY));
  // What the supervisor's program prints does arrive here.
  EXPECT_FALSE(client::createLedger(rig.options(), rig.authority).ok());
  rig.stop();

  ASSERT_EQ(timesRecorded(rig, CANARY), 1u);  // It was really written.
  EXPECT_EQ(heard.texts.size(), 9u);
  EXPECT_GE(heard.refusals, 3u);
  auto& texts = heard.texts;
  texts.emplace_back("standard error", contents(errors));
  EXPECT_NE(texts.back().second.find("ledger_foreign"), std::string::npos);
  size_t files = 0;
  for (auto& file : std::filesystem::directory_iterator(rig.ledger)) {
    texts.emplace_back(file.path(), contents(file.path()));
    ++files;
  }
  EXPECT_GE(files, 3u);
  for (auto& [where, bytes] : texts) {
    for (const char* secret : {"canary-7c1f", "battery", "Praefectus Probe", "Record", "Check",
                               "Disabled", "Password"}) {
      EXPECT_EQ(bytes.find(secret), std::string::npos) << secret << " in " << where;
    }
  }
}

}  // namespace
}  // namespace praefectus::tests
