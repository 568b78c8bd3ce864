// The demo: the whole of Praefectus on a real editor, then the attacks and the crashes.
//
// What a step claims is checked with the application, never against our own report alone: what was
// done, against the file the editor saves; what was refused, by looking again: the editor's text
// and file are as they were, and the editor itself has nothing to save.
#include "supervisor/cli/bus-witness.h"
#include "supervisor/cli/commands.h"
#include "supervisor/cli/own-host.h"
#include "supervisor/cli/private-desktop.h"
#include "supervisor/cli/receipt-text.h"
#include "supervisor/ledger/reader.h"

#include <kj/debug.h>
#include <kj/filesystem.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::cli {
namespace {

using client::Outcome;
using client::Request;

// Prints as it goes: a person watches this. To standard error when standard output is for JSON.
class Stage {
 public:
  explicit Stage(bool json) : fd(json ? STDERR_FILENO : STDOUT_FILENO) {}

  void say(kj::StringPtr text) const {
    if (writeAll(fd, kj::str(text, "\n"))) return;
    throw Failure{ExitCode::OUTPUT_LOST, kj::str("output_failed"),
                  kj::str("the demo's account could not be written"), kj::str()};
  }

 private:
  int fd;
};

struct StepFailed {
  kj::String why;
};

void expect(bool holds, kj::StringPtr why) {
  if (!holds) throw StepFailed{kj::str(why)};
}

constexpr uint64_t WAIT_MS = 20'000;
constexpr int ATTEMPTS = 8;

uint64_t nowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

constexpr kj::StringPtr FIRST_TEXT = "Dear reader,\nthis was written by an agent, once.\n"_kj;

class Demo {
 public:
  Demo(bool json, kj::String folder)
      : stage(json),
        folder(kj::mv(folder)),
        ledgerFolder(kj::str(this->folder, "/ledger")),
        note(kj::str(this->folder, "/note.txt")),
        io(kj::setupAsyncIo()),
        authority("demo-host", attest::SigningKey::generate()) {}

  Report run() {
    stage.say("Praefectus demo: one real editor on a private desktop. Yours is not touched.\n");
    bool ok = step("prepare", [this] { return setUp(); }) &&
              step("observe", [this] { return observe(); }) &&
              step("set a text", [this] { return setText(); }) &&
              step("press a button", [this] { return pressSave(); }) &&
              step("ask again", [this] { return replay(); }) &&
              step("same id, other act", [this] { return conflict(); }) &&
              step("tampered grant", [this] { return tampered(); }) &&
              step("stale element", [this] { return stale(); }) &&
              step("no lease", [this] { return withoutLease(); }) &&
              step("taken back", [this] { return revoked(); }) &&
              step("person's stop", [this] { return stopped(); }) &&
              step("helper killed", [this] { return killHelper(); }) &&
              step("must look first", [this] { return mustObserve(); }) &&
              step("supervisor killed", [this] { return killSupervisor(); }) &&
              step("ledger verified", [this] { return verifyLedger(); });
    session = nullptr;
    host = nullptr;
    return finish(ok);
  }

 private:
  template <typename Body>
  bool step(kj::StringPtr name, Body body) {
    kj::String said;
    bool ok = true;
    try {
      said = body();
    } catch (const StepFailed& failed) {
      ok = false;
      said = kj::str(failed.why);
    } catch (const Failure& failed) {
      ok = false;
      said = kj::str(failed.message, " (", failed.code, ")");
    } catch (const kj::Exception& broken) {
      ok = false;
      said = kj::str(broken.getDescription());
    }
    auto title = kj::str(name);
    while (title.size() < 20) title = kj::str(title, " ");
    bool first = true;
    for (auto& line : lines(said)) {
      stage.say(first ? kj::str(ok ? "  ok      " : "  FAILED  ", title, line)
                      : kj::str("          ", "                    ", line));
      first = false;
    }
    steps.push_back({{"name", name.cStr()}, {"ok", ok}, {"said", json(said)}});
    return ok;
  }

  static kj::Vector<kj::String> lines(kj::StringPtr text) {
    kj::Vector<kj::String> out;
    while (true) {
      KJ_IF_MAYBE (end, text.findFirst('\n')) {
        out.add(kj::heapString(text.slice(0, *end)));
        text = text.slice(*end + 1);
      } else {
        out.add(kj::str(text));
        return out;
      }
    }
  }

  Report finish(bool ok) {
    Report report;
    report.ok = ok;
    report.beside = {{"steps", steps}};
    report.data = {{"pictures", {json(picture("before")), json(picture("after"))}},
                   {"note", json(note)},
                   {"ledger", json(ledgerFolder)},
                   {"key", receiptKey.cStr()},
                   {"operation", firstOperation.cStr()}};
    if (ok) {
      auto program = quoted(ownProgram());
      auto ledger = quoted(ledgerFolder);
      report.text = kj::str("\nEvery step held. Kept for you:\n  before    ", picture("before"),
                            "\n  after     ", picture("after"), "\n  note      ", note,
                            " (the editor's own file)\n  ledger    ", ledgerFolder,
                            "\n\nTo check the ledger, and to read the first receipt:\n  ", program,
                            " verify --ledger ", ledger, " --key ", receiptKey, "\n  ", program,
                            " status --ledger ", ledger, " ", firstOperation, "\n");
    } else {
      report.code = kj::str("demo_failed");
      report.message = kj::str("a step of the demo did not hold");
      report.hint = kj::str("`praefectus doctor` may say why.");
      report.text =
          kj::str("\nA step did not hold; what was kept is in ", folder, ". ", report.hint, "\n");
    }
    return report;
  }

  // ---- the steps -------------------------------------------------------------------------------

  kj::String setUp() {
    desktop = kj::heap<PrivateDesktop>();
    writeFile(note, "");
    showToolbar();
    kj::StringPtr command[] = {"mousepad"_kj, "--disable-server"_kj, note};
    app = ours().run(kj::arrayPtr(command, 3)).pid;

    orFail(client::createLedger(options(), authority));
    connect();
    auto helper = wait(session->capabilities());
    for (auto& capability : helper.capabilities) {
      expect(capability.available,
             kj::str(capability.name, " does not work: ", nameOf(capability.why)));
    }
    expect(helper.health == Health::HEALTHY, "the helper is not healthy on this desktop");
    return kj::str("mousepad on a private X server (", ours().display(),
                   "); a throw-away key signs for this host\nhelper ", helper.identity.name, " ",
                   helper.identity.release, ", attested as ",
                   hex(bytesOf(helper.identity.digest)).slice(0, 16), "…");
  }

  kj::String observe() {
    window = waitForWindow();
    waitUntilSettled();
    look(true);
    savePicture("before");
    return kj::str(seen.elements.size(), " elements in ", seen.elapsedMs, " ms, as frame ",
                   seen.frame.epoch, ", which is good for 30 s or one action");
  }

  kj::String setText() {
    auto outcome = carryOut([this]() {
      auto request = session->setValue(seen, editor(), FIRST_TEXT);
      firstSeen = kj::mv(seen);
      return request;
    });
    expectVerified(outcome);
    firstOperation = kj::str(outcome.receipt.operation);
    expect(editor().value != nullptr && KJ_ASSERT_NONNULL(editor().value) == FIRST_TEXT,
           "a fresh observation does not show the text");
    return kj::str(receiptSentence(outcome.receipt), ": \"", onOneLine(FIRST_TEXT),
                   "\"\npointer, focus and window order: ", nameOf(outcome.receipt.context),
                   "; receipt signed, at chain position ", outcome.receipt.sequence);
  }

  kj::String pressSave() {
    auto outcome = carryOut([this]() {
      save = session->invoke(seen, saveButton(), saveButton().actions[0]);
      return save.clone();
    });
    expectVerified(outcome);
    expect(waitForFile(FIRST_TEXT), "the editor did not write the text into its file");
    auto sentence = receiptSentence(outcome.receipt);
    look(true);
    savePicture("after");
    return kj::str(sentence, "\nthe editor's own file now holds the text");
  }

  // Which file it is and when it was written last. A save makes another one of it. Only looked at:
  // an editor whose file is touched asks about it in a window of its own, sooner or later.
  kj::String savedAs() const {
    struct stat info;
    KJ_SYSCALL(stat(note.cStr(), &info));
    return kj::str(info.st_ino, ' ', info.st_mtim.tv_sec, '.', info.st_mtim.tv_nsec, ' ',
                   info.st_ctim.tv_sec, '.', info.st_ctim.tv_nsec);
  }

  kj::String replay() {
    auto before = savedAs();
    auto outcome = orFail(session->execute(save).wait(io.waitScope));
    expect(outcome.replayed, "the second answer does not say that it is the recorded one");
    expect(outcome.receipt.terminal == Terminal::SUCCEEDED, "the recorded ending has changed");
    look(false);  // The editor has answered since, so a second save would be on disk by now.
    expect(savedAs() == before, "the editor saved a second time");
    return kj::str(
        "the recorded receipt, and nothing sent: the editor did not save again\n"
        "(its file is the same one, written at the same moment as before)");
  }

  kj::String conflict() {
    client::How how;
    how.operation = save.operation;
    auto other = session->setValue(seen, editor(), "something else", how);
    auto sentence = expectRefused(other, RefusalCode::OPERATION_CONFLICT);
    expectUntouched();
    return kj::str("refused: ", sentence, "\nthe editor's text and file are as they were");
  }

  kj::String tampered() {
    auto request = session->setValue(seen, editor(), "never");
    request.grant.body[request.grant.body.size() / 2] ^= 1;
    auto flipped = expectRefused(request, RefusalCode::POLICY_DENIED);

    auto swapped = session->setValue(seen, editor(), "never");
    auto other = session->setValue(seen, editor(), "never either");
    swapped.action = kj::mv(other.action);
    expectRefused(swapped, RefusalCode::POLICY_DENIED);
    expectUntouched();
    return kj::str("refused: ", flipped,
                   "\nso is an action other than the signed one; text and file are as they were");
  }

  kj::String stale() {
    auto old = session->setValue(firstSeen, firstSeen.elements[editorIndex(firstSeen)], "stale");
    auto sentence = expectRefused(old, RefusalCode::STALE_FRAME);
    expectUntouched();
    return kj::str("refused: ", sentence, "\nthe editor's text and file are as they were");
  }

  // A grant alone, in a session where nobody opened a lease. The supervisor's no is signed.
  kj::String withoutLease() {
    look(false);
    auto unasked = orFail(
        host->open("unasked-session", "turn-1", client::Leasing::BY_HAND).wait(io.waitScope));
    auto request = unasked->setValue(seen, editor(), "no person was asked");
    auto answer = unasked->execute(request).wait(io.waitScope);
    expect(!answer.ok() && answer.refusal().code == RefusalCode::LEASE_MISSING,
           "an action without a lease was not refused");
    auto proof = unasked->lastRefusal() != nullptr;
    expect(proof, "the refusal was not signed");
    unasked->close().wait(io.waitScope);
    expectUntouched();
    return kj::str("refused: ", nameOf(answer.refusal().code), ". ", answer.refusal().detail,
                   "\nthe refusal is signed: the host can prove that nothing was sent");
  }

  kj::String revoked() {
    client::How how;
    auto id = client::newOperationId();
    how.operation = id.asPtr();
    auto request = session->setValue(seen, editor(), "approved, then taken back", kj::mv(how));
    attest::Revocation revocation;
    revocation.what = attest::RevokedOperation{kj::str(id)};
    orFail(host->revoke(kj::mv(revocation)).wait(io.waitScope));
    auto sentence = expectRefused(request, RefusalCode::REVOKED);
    expectUntouched();
    return kj::str("refused: ", sentence,
                   "\nkept in the ledger, so that a restart does not forget it");
  }

  kj::String stopped() {
    host->stop("demo", "turn-2").wait(io.waitScope);
    auto begun = session->beginTurn("turn-2").wait(io.waitScope);
    expect(!begun.ok() && begun.refusal().code == RefusalCode::USER_STOPPED,
           "a stopped turn could begin");
    orFail(session->beginTurn("turn-3").wait(io.waitScope));
    return kj::str("refused: user_stopped. ", begun.refusal().detail,
                   "\nit came before the turn did, and holds all the same; the next turn goes on");
  }

  // The write is on its way when the editor is stopped, so the helper waits for its answer. Killed
  // there, nobody can know; when the editor goes on, its own record shows what became of it.
  kj::String killHelper() {
    for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
      look(false);
      lastText = kj::str("written while the helper fell, ", attempt, "\n", padding());
      auto request = session->setValue(seen, editor(), lastText);
      auto helper = wait(session->capabilities()).pid;
      BusWitness witness(ours().environment(), "SetTextContents");
      auto sent = claimed(request);
      if (sent == nullptr) continue;
      auto answer = kj::mv(KJ_ASSERT_NONNULL(sent));
      if (!witness.waitForCall(10 * kj::SECONDS)) {
        auto instead = orFail(answer.wait(io.waitScope));
        expect(instead.receipt.terminal == Terminal::REJECTED, "the write never reached the bus");
        giveWay(instead.receipt);
        continue;
      }
      KJ_SYSCALL(kill(app, SIGSTOP));
      KJ_DEFER(kill(app, SIGCONT));
      KJ_SYSCALL(kill(static_cast<pid_t>(helper), SIGKILL));
      auto outcome = orFail(answer.wait(io.waitScope));
      // The machine may have been so busy that the action was over before the editor was stopped.
      if (outcome.receipt.terminal == Terminal::SUCCEEDED) {
        lastMiss = receiptSentence(outcome.receipt);
        continue;
      }
      expectUnknown(outcome.receipt);
      auto again = orFail(session->execute(request).wait(io.waitScope));
      expect(again.replayed && again.receipt.terminal == Terminal::OUTCOME_UNKNOWN,
             "asking again did not return the recorded ending");
      return kj::str(receiptSentence(outcome.receipt),
                     ", not to be repeated; asking again sends nothing");
    }
    throw neverInTime();
  }

  kj::String mustObserve() {
    auto blind = session->setValue(seen, editor(), "blind");
    auto sentence = expectRefused(blind, RefusalCode::REOBSERVE_REQUIRED);
    bool landed = hasLanded(lastText, FIRST_TEXT);
    return kj::str("refused: ", sentence,
                   "\nafter looking, the editor's own file shows that the write ",
                   landed ? "did land" : "did not land", ":\nonly \"unknown\" was true");
  }

  // This time the editor is stopped before the write can reach it.
  kj::String killSupervisor() {
    auto before = fileText();
    for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
      auto text = kj::str("written while the supervisor fell, ", attempt, "\n", padding());
      auto request = session->setValue(seen, editor(), text);
      auto sent = claimed(request);
      if (sent == nullptr) {
        look(false);
        continue;
      }
      auto answer = kj::mv(KJ_ASSERT_NONNULL(sent));
      KJ_SYSCALL(kill(app, SIGSTOP));
      KJ_SYSCALL(kill(host->supervisorPid(), SIGKILL));
      auto nothing = answer.wait(io.waitScope);
      session = nullptr;
      host = nullptr;
      KJ_SYSCALL(kill(app, SIGCONT));
      connect();
      auto status = wait(host->status(request.operation));
      expect(status.is<attest::Receipt>(), "the ledger does not know the operation");
      auto& receipt = status.get<attest::Receipt>();
      if (receipt.terminal == Terminal::SUCCEEDED) {  // Over before the editor was stopped.
        before = kj::mv(text);
        lastMiss = receiptSentence(receipt);
        look(false);
        continue;
      }

      expect(!nothing.ok() && nothing.refusal().code == RefusalCode::OUTCOME_UNKNOWN,
             "the host library claims to know how it ended");
      expect(host->info().recovered == 1, "the new supervisor did not find one open operation");
      expectUnknown(receipt);
      auto again = orFail(session->execute(request).wait(io.waitScope));
      expect(again.replayed, "the new supervisor sent it again");
      bool landed = hasLanded(text, before);
      return kj::str("restarted; the ledger says ", receiptSentence(receipt),
                     " and will not send it again\nthe editor's own file shows that this write ",
                     landed ? "had landed" : "had not landed");
    }
    throw neverInTime();
  }

  kj::String verifyLedger() {
    auto trusted = host->info().receiptKey;
    receiptKey = hex(bytesOf(trusted));
    session = nullptr;
    host = nullptr;
    auto reader = orFail(ledger::LedgerReader::open(ledgerFolder));
    auto report = orFail(reader->verify(trusted));
    expect(report.findings.size() == 0, "the ledger does not verify");
    expect(report.summary.open == 0, "the ledger has an open operation");
    return kj::str(counted(report.receipts, "receipt"), " and ",
                   counted(report.summary.sequence, "link"),
                   ", checked off line with the public key alone");
  }

  // ---- what the steps use ----------------------------------------------------------------------

  PrivateDesktop& ours() { return *KJ_ASSERT_NONNULL(desktop); }

  client::Options options() {
    client::Options out;
    out.ledger = ledgerFolder;
    out.environment = ours().environment();
    return out;
  }

  void connect() {
    host = orFail(client::Host::start(io, options(), authority).wait(io.waitScope));
    session = orFail(host->open("demo", "turn-1").wait(io.waitScope));
  }

  template <typename T>
  T wait(kj::Promise<Result<T>> promise) {
    return orFail(promise.wait(io.waitScope));
  }

  WindowRef waitForWindow() {
    uint64_t end = nowMs() + WAIT_MS;
    do {
      auto list = wait(session->list());
      for (auto& candidate : list.windows) {
        // Active besides: a new window gets the focus a moment after it appears, and that must not
        // fall into the watch over our first action.
        if (candidate.ref.process.pid == static_cast<uint32_t>(app) && candidate.accessible &&
            candidate.active) {
          return candidate.ref;
        }
      }
    } while (nowMs() < end);
    throw StepFailed{kj::str("the editor's window was not there and active in 20 s")};
  }

  // An application that has just opened its window is still arranging it, and an element that
  // changes after it was observed is refused. Two looks that show the same are enough.
  void waitUntilSettled() {
    uint64_t end = nowMs() + WAIT_MS;
    kj::String before;
    do {
      auto now = session->observe(window).wait(io.waitScope);
      if (!now.ok()) continue;  // Listed, and not yet readable.
      auto elements = KJ_MAP(element, now->elements) {
        return kj::str(element.role, element.name, element.states.bits, element.position);
      };
      auto after = kj::strArray(elements, "\n");
      if (after == before) return;
      before = kj::mv(after);
    } while (nowMs() < end);
    throw StepFailed{kj::str("the editor's window did not come to rest in 20 s")};
  }

  void look(bool withPicture) { seen = wait(session->observe(window, withPicture)); }

  static size_t editorIndex(const Observation& in) {
    for (size_t i = 0; i < in.elements.size(); ++i) {
      auto& element = in.elements[i];
      if (element.settable && element.states.has(State::MULTI_LINE) &&
          element.states.has(State::SHOWING)) {
        return i;
      }
    }
    throw StepFailed{kj::str("the editor's text was not found in the window")};
  }
  const Element& editor() { return seen.elements[editorIndex(seen)]; }

  const Element& saveButton() {
    for (auto& element : seen.elements) {
      if (element.role == "push button" && element.name == "Save" && element.actions.size() > 0 &&
          element.states.has(State::SHOWING)) {
        return element;
      }
    }
    throw StepFailed{kj::str("the Save button was not found in the window")};
  }

  // Carries out what `make` asks for, and does what a host should when the target has changed since
  // it was observed: look again and ask anew, under a new id. Editors go on arranging themselves.
  template <typename Make>
  Outcome carryOut(Make make) {
    for (int attempt = 0;; ++attempt) {
      auto outcome = orFail(session->execute(make()).wait(io.waitScope));
      KJ_IF_MAYBE (fresh, outcome.fresh) seen = kj::mv(*fresh);
      if (outcome.receipt.terminal != Terminal::REJECTED || attempt + 1 == ATTEMPTS) return outcome;
      giveWay(outcome.receipt);
      look(false);
    }
  }

  // Sends a request and returns when its claim is durable: the effect is then about to be sent.
  // Nothing when the target was refused first, which has had no effect.
  kj::Maybe<kj::Promise<Result<Outcome>>> claimed(const Request& request) {
    auto paf = kj::newPromiseAndFulfiller<bool>();
    auto answer = session->execute(
        request,
        kj::Function<void(wire::Stage)>([told = kj::mv(paf.fulfiller)](wire::Stage stage) mutable {
          if (stage == wire::Stage::CLAIMED) told->fulfill(true);
        }));
    // The listener is let go of when the operation has ended.
    auto ended = paf.promise.catch_([](kj::Exception&&) { return false; });
    if (io.provider->getTimer().timeoutAfter(15 * kj::SECONDS, kj::mv(ended)).wait(io.waitScope)) {
      return kj::mv(answer);
    }
    auto outcome = orFail(answer.wait(io.waitScope));
    expect(outcome.receipt.terminal == Terminal::REJECTED,
           kj::str("the operation was never claimed: ", receiptSentence(outcome.receipt)));
    giveWay(outcome.receipt);
    return nullptr;
  }

  // What covers or rearranges the window is let pass before the same is tried again.
  void giveWay(const attest::Receipt& rejected) {
    lastMiss = receiptSentence(rejected);
    uint64_t end = nowMs() + WAIT_MS;
    while (!isOnTop() && nowMs() < end) {
      io.provider->getTimer().afterDelay(100 * kj::MILLISECONDS).wait(io.waitScope);
    }
    waitUntilSettled();
  }

  // Whether no other window is above the editor's; they are listed from the bottom up.
  bool isOnTop() {
    auto desk = wait(session->list());
    const Window* top = nullptr;
    for (auto& each : desk.windows) {
      if (each.visible) top = &each;
    }
    return top != nullptr && top->ref == window;
  }

  StepFailed neverInTime() const {
    return {kj::str("the editor was not stopped in time in ", ATTEMPTS,
                    " attempts; the last one ended as: ", lastMiss)};
  }

  // The editor's toolbar, which has the Save button, is off by default.
  void showToolbar() {
    constexpr kj::StringPtr HOME = "XDG_CONFIG_HOME="_kj;
    for (auto& entry : ours().environment()) {
      if (!entry.startsWith(HOME)) continue;
      auto path = kj::str(entry.slice(HOME.size()), "/glib-2.0/settings/keyfile");
      kj::newDiskFilesystem()
          ->getRoot()
          .openFile(kj::Path::parse(path.slice(1)),
                    kj::WriteMode::CREATE | kj::WriteMode::MODIFY | kj::WriteMode::CREATE_PARENT)
          ->writeAll("[org/xfce/mousepad/preferences/window]\ntoolbar-visible=true\n"_kj);
    }
  }

  static kj::String firstLine(kj::StringPtr text) {
    return kj::heapString(text.slice(0, KJ_ASSERT_NONNULL(text.findFirst('\n'))));
  }

  // Enough text that replacing it takes the editor a moment.
  static kj::String padding() {
    kj::Vector<kj::StringPtr> lines;
    while (lines.size() < 300) lines.add("The quick brown fox jumps over the lazy dog."_kj);
    return kj::strArray(lines, "\n");
  }

  static kj::String onOneLine(kj::StringPtr text) {
    kj::Vector<kj::String> parts;
    for (auto& line : lines(text)) {
      if (line.size() > 0) parts.add(kj::mv(line));
    }
    return kj::strArray(parts, " / ");
  }

  // For pasting into a shell.
  static kj::String quoted(kj::StringPtr path) {
    kj::Vector<char> out;
    bool plain = true;
    for (char c : path) {
      plain &= isalnum(static_cast<unsigned char>(c)) != 0 || strchr("/._-+", c) != nullptr;
      if (c == '\'') {
        out.addAll("'\\''"_kj);
      } else {
        out.add(c);
      }
    }
    return plain ? kj::str(path) : kj::str("'", out.asPtr(), "'");
  }

  // After a refusal: the application is asked, since our own answer is what is in question.
  void expectUntouched() {
    look(false);
    expect(KJ_REQUIRE_NONNULL(editor().value) == FIRST_TEXT, "the editor's text has changed");
    expect(!hasUnsaved(), "the editor has something to save");
    expect(waitForFile(FIRST_TEXT), "the editor's file has changed");
  }

  // The editor's own word on whether its text and its file differ.
  bool hasUnsaved() { return saveButton().states.has(State::SENSITIVE); }

  // What became of a write that nobody can know of: seen in the window, and proven by the file
  // after the editor has saved what it had to save.
  bool hasLanded(kj::StringPtr text, kj::StringPtr otherwise) {
    look(false);
    bool landed = KJ_ASSERT_NONNULL(editor().value).startsWith(firstLine(text));
    if (hasUnsaved()) saveNow();
    expect(waitForFile(landed ? text : otherwise), "the editor's file and its window disagree");
    return landed;
  }

  void saveNow() {
    expectVerified(carryOut(
        [this]() { return session->invoke(seen, saveButton(), saveButton().actions[0]); }));
  }

  static void expectVerified(const Outcome& outcome) {
    if (outcome.receipt.terminal == Terminal::SUCCEEDED &&
        outcome.receipt.effect == Effect::VERIFIED)
      return;
    throw StepFailed{kj::str(
        "expected a verified success, and got: ", receiptSentence(outcome.receipt), "; evidence ",
        nameOf(outcome.receipt.evidence.verdict), ", desktop ", nameOf(outcome.receipt.context))};
  }

  static void expectUnknown(const attest::Receipt& receipt) {
    expect(receipt.terminal == Terminal::OUTCOME_UNKNOWN && !receipt.retrySafe,
           kj::str("expected outcome_unknown, and got: ", receiptSentence(receipt)));
  }

  kj::String expectRefused(const Request& request, RefusalCode code) {
    auto answer = session->execute(request).wait(io.waitScope);
    if (answer.ok()) {
      throw StepFailed{
          kj::str("expected ", nameOf(code), ", and got: ", receiptSentence(answer->receipt))};
    }
    expect(answer.refusal().code == code,
           kj::str("expected ", nameOf(code), ", and got: ", nameOf(answer.refusal().code)));
    return kj::str(nameOf(code), ". ", answer.refusal().detail);
  }

  void writeFile(kj::StringPtr path, kj::StringPtr text) {
    int fd;
    KJ_SYSCALL(fd = open(path.cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    kj::FdOutputStream(kj::AutoCloseFd(fd)).write(text.begin(), text.size());
  }

  kj::String fileText() {
    int fd = open(note.cStr(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return kj::str();
    return kj::FdInputStream(kj::AutoCloseFd(fd)).readAllText();
  }

  // The editor writes its file after it has answered the press; its content is what is waited for.
  bool waitForFile(kj::StringPtr text) {
    uint64_t end = nowMs() + WAIT_MS;
    do {
      // Editors end a file with a newline.
      auto now = fileText();
      if (now == text || now == kj::str(text, "\n")) return true;
      io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(io.waitScope);
    } while (nowMs() < end);
    return false;
  }

  void savePicture(kj::StringPtr name) {
    auto& png = KJ_REQUIRE_NONNULL(seen.png, "there is no picture");
    int fd;
    KJ_SYSCALL(fd = open(picture(name).cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    kj::FdOutputStream(kj::AutoCloseFd(fd)).write(png.begin(), png.size());
  }

  kj::String picture(kj::StringPtr name) const { return kj::str(folder, "/", name, ".png"); }

  Stage stage;
  kj::String folder, ledgerFolder, note;
  kj::AsyncIoContext io;
  client::Authority authority;
  kj::Maybe<kj::Own<PrivateDesktop>> desktop;
  pid_t app = 0;
  kj::Own<client::Host> host;
  kj::Own<client::Session> session;
  WindowRef window;
  Observation seen, firstSeen;
  Request save;
  kj::String firstOperation;
  kj::String lastText, receiptKey;
  kj::String lastMiss;  // How the last attempt ended that came to nothing.
  Json steps = Json::array();
};

}  // namespace

Report demo(Arguments arguments, bool json) {
  constexpr Options::Spec SPECS[] = {{"--keep"_kj, true}};
  Options options(arguments, kj::arrayPtr(SPECS, 1), 0);
  kj::String folder;
  KJ_IF_MAYBE (chosen, options.value("--keep")) {
    if (mkdir(chosen->cStr(), 0700) != 0) {
      bool exists = errno == EEXIST;
      throw Failure{ExitCode::FAILED, kj::str(exists ? "folder_exists" : "folder_failed"),
                    kj::str(exists ? "the folder for --keep exists already"
                                   : "the folder for --keep cannot be made"),
                    kj::str(exists ? "Name one that does not exist yet."
                                   : "Its parent must exist and be yours to write to.")};
    }
    char* whole = realpath(chosen->cStr(), nullptr);
    KJ_DEFER(free(whole));
    KJ_REQUIRE(whole != nullptr);
    folder = kj::str(whole);
  } else {
    auto pattern = kj::str("/tmp/praefectus-demo-XXXXXX");
    KJ_REQUIRE(mkdtemp(pattern.begin()) != nullptr, "no folder can be made in /tmp");
    folder = kj::mv(pattern);
  }
  // Nothing was kept yet when not even the first line could be written.
  KJ_ON_SCOPE_FAILURE(rmdir(folder.cStr()));
  return Demo(json, kj::str(folder)).run();
}

}  // namespace praefectus::cli
