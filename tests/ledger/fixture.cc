#include "tests/ledger/fixture.h"

#include <kj/debug.h>
#include <kj/io.h>

#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::test {

TemporaryFolder::TemporaryFolder(kj::StringPtr where)
    : path(kj::str(where, "/praefectus-ledger-test.XXXXXX")) {
  attest::initialize();
  KJ_ASSERT(mkdtemp(path.begin()) != nullptr);
}

TemporaryFolder::~TemporaryFolder() noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(path.cStr(), ignored);
}

kj::StringPtr fastPlace() { return access("/dev/shm", W_OK) == 0 ? "/dev/shm"_kj : "/tmp"_kj; }

kj::Array<kj::byte> readWhole(kj::StringPtr path) {
  int fd;
  KJ_SYSCALL(fd = open(path.cStr(), O_RDONLY | O_CLOEXEC));
  kj::FdInputStream input{kj::AutoCloseFd(fd)};
  return input.readAllBytes();
}

void writeWhole(kj::StringPtr path, Bytes content) {
  int fd;
  KJ_SYSCALL(fd = open(path.cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  kj::FdOutputStream(kj::AutoCloseFd(fd)).write(content.begin(), content.size());
}

void copyFolder(kj::StringPtr from, kj::StringPtr to) {
  std::filesystem::copy(from.cStr(), to.cStr(), std::filesystem::copy_options::recursive);
  std::filesystem::permissions(to.cStr(), std::filesystem::perms::owner_all);
}

void adopt(kj::StringPtr folder) {
  auto machine = ledger::thisMachine();
  auto taken = ledger::Holding::take(folder, machine, ledger::Holding::Moved::ACCEPTED);
  KJ_REQUIRE(taken.ok(), taken.refusal().detail);
  auto& holding = **taken;
  auto place = ledger::placeOf(holding.folder.path(ledger::DATABASE_FILE),
                               holding.identity.present().id, machine);
  ledger::Transaction transaction(*holding.writing);
  holding.scribe->append(attest::Adopted{place}, kj::max(NOW, holding.scribe->floor()));
  transaction.commit();
}

void copyLedger(kj::StringPtr from, kj::StringPtr to) {
  copyFolder(from, to);
  adopt(to);
}

Hash hashNamed(kj::StringPtr name) { return attest::digestOf(name.asBytes()); }

attest::SigningKey issuerKey() {
  return attest::SigningKey::fromSeed(bytesOf(hashNamed("issuer")));
}

attest::KeyRing sampleRing() {
  attest::KeyRing ring;
  auto issuer = issuerKey();
  auto publisher = attest::SigningKey::fromSeed(bytesOf(hashNamed("publisher")));
  // Not in the table's order.
  ring.add(attest::Purpose::PUBLISHER, "builder", attest::keyIdOf(publisher.publicKey()),
           publisher.publicKey());
  ring.add(attest::Purpose::ISSUER, "host", attest::keyIdOf(issuer.publicKey()),
           issuer.publicKey());
  return ring;
}

Claim claimOf(kj::StringPtr operation, kj::StringPtr action) {
  Claim claim = unclaimed(operation, action);
  claim.helper = {kj::str("praefectus-desktop"), kj::str("0.1.0"), hashNamed("an image"), 3};
  claim.at = NOW;
  return claim;
}

Claim unclaimed(kj::StringPtr operation, kj::StringPtr action) {
  Claim claim;
  claim.operation = kj::str(operation);
  claim.actionHash = hashNamed(action);
  claim.actionClass = ActionClass::SEMANTIC_MUTATION;
  claim.kind = kj::str("set_value");
  claim.mode = Mode::BACKGROUND_ONLY;
  claim.proof = Proof::VALUE;
  claim.rights.irreversible = true;
  claim.grantIssuer = kj::str("host");
  claim.grantKeyId = kj::str("key-1");
  claim.grantHash = hashNamed("a grant");
  claim.policyGeneration = 4;
  claim.lease = kj::str("lease-1");
  claim.subject = kj::str("uid:1000");
  claim.session = kj::str("session-1");
  claim.turn = kj::str("turn-1");
  return claim;
}

Ending success() {
  Ending ending;
  ending.terminal = Terminal::SUCCEEDED;
  ending.effect = Effect::VERIFIED;
  ending.route = Route::ACCESSIBILITY;
  ending.evidence = {Verdict::CONFIRMED, Method::VALUE_READBACK, Source::SAME_PROCESS, 1, 1};
  ending.context = ContextState::PRESERVED;
  ending.at = NOW + 5;
  return ending;
}

Ending refusal() {
  Ending ending;
  ending.terminal = Terminal::REJECTED;
  ending.effect = Effect::NONE;
  ending.refusal = RefusalCode::TARGET_MISSING;
  ending.retrySafe = true;
  ending.at = NOW + 5;
  return ending;
}

Running::Running(kj::StringPtr folder, int64_t now) : io(kj::setupAsyncIo()) {
  auto opened = Ledger::open(folder, momentAt(now));
  KJ_REQUIRE(opened.ok(), opened.refusal().detail);
  ledger = kj::mv(*opened);
}

bool Running::claims(kj::StringPtr operation) {
  return ledger->claim(claimOf(operation)).wait(wait()).ok();
}

attest::Envelope Running::settles(kj::StringPtr operation) {
  auto receipt = ledger->settle(kj::str(operation), success()).wait(wait());
  KJ_REQUIRE(receipt.ok(), receipt.refusal().detail);
  return kj::mv(*receipt);
}

attest::Envelope Running::concludes(kj::StringPtr operation) {
  auto receipt = ledger->conclude(unclaimed(operation), refusal()).wait(wait());
  KJ_REQUIRE(receipt.ok(), receipt.refusal().detail);
  return kj::mv(*receipt);
}

kj::String makeLedger(const TemporaryFolder& in) {
  auto folder = in / "ledger";
  auto made = Ledger::create(folder, sampleRing(), momentAt(NOW));
  KJ_REQUIRE(made.ok(), made.refusal().detail);
  return folder;
}

attest::Receipt opened(Ledger& ledger, const attest::Envelope& envelope) {
  auto receipt = attest::openReceipt(ledger.receiptKey(), envelope);
  KJ_REQUIRE(receipt.ok(), receipt.refusal().detail);
  return kj::mv(*receipt);
}

kj::StringPtr outcomeOfOpening(kj::StringPtr folder, int64_t now) {
  auto opened = Ledger::open(folder, momentAt(now));
  return opened.ok() ? "ok"_kj : nameOf(opened.refusal().code);
}

kj::String findingsIn(kj::StringPtr folder) {
  auto reader = LedgerReader::open(folder);
  if (!reader.ok()) return kj::str(reader.refusal().detail);
  auto report = (*reader)->verify(nullptr);
  if (!report.ok()) return kj::str(report.refusal().detail);
  return kj::strArray(
      KJ_MAP(finding, report->findings) { return kj::str(finding.sequence, ": ", finding.what); },
      "\n");
}

OtherProcess::OtherProcess(kj::Function<void(int output)> deed) {
  int ends[2];
  KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
  input = kj::AutoCloseFd(ends[0]);
  kj::AutoCloseFd output(ends[1]);
  KJ_SYSCALL(pid = fork());
  if (pid != 0) return;
  auto failed = kj::runCatchingExceptions([&]() { deed(output.get()); }) != nullptr;
  _exit(failed ? 1 : 0);
}

OtherProcess::~OtherProcess() noexcept {
  if (status != nullptr) return;
  kill();
  waitpid(pid, nullptr, 0);
}

kj::Maybe<kj::String> OtherProcess::line() {
  kj::Vector<char> out;
  while (true) {
    pollfd ready{input.get(), POLLIN, 0};
    int polled;
    KJ_SYSCALL(polled = poll(&ready, 1, 60'000));
    KJ_REQUIRE(polled == 1, "the other process says nothing");
    char c;
    ssize_t n;
    KJ_SYSCALL(n = ::read(input, &c, 1));
    if (n == 0) return nullptr;
    if (c == '\n') return kj::heapString(out.asPtr());
    out.add(c);
  }
}

void OtherProcess::kill() { ::kill(pid, SIGKILL); }

int OtherProcess::wait() {
  KJ_IF_MAYBE (known, status) return *known;
  // glibc 2.36 has no pidfd_open of its own in every build.
  kj::AutoCloseFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  int polled;
  KJ_SYSCALL(polled = poll(&ended, 1, 60'000));
  KJ_REQUIRE(polled == 1, "the other process does not end");
  int how;
  KJ_SYSCALL(waitpid(pid, &how, 0));
  int result = WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
  status = result;
  return result;
}

void say(int output, kj::StringPtr line) {
  auto text = kj::str(line, '\n');
  kj::FdOutputStream(output).write(text.begin(), text.size());
}

BackDoor::BackDoor(kj::StringPtr folder, int flags) {
  auto path = kj::str(folder, "/ledger.db");
  KJ_REQUIRE(sqlite3_open_v2(path.cStr(), &connection, flags, nullptr) == SQLITE_OK);
  // As the ledger does, so that looking at it changes nothing.
  sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

BackDoor::~BackDoor() noexcept { sqlite3_close(connection); }

int BackDoor::run(kj::StringPtr script) {
  char* text = nullptr;
  int code = sqlite3_exec(connection, script.cStr(), nullptr, nullptr, &text);
  message = kj::str(text == nullptr ? "" : text);
  sqlite3_free(text);
  return code;
}

kj::Vector<kj::String> BackDoor::rows(kj::StringPtr query) {
  sqlite3_stmt* statement = nullptr;
  KJ_REQUIRE(sqlite3_prepare_v2(connection, query.cStr(), -1, &statement, nullptr) == SQLITE_OK,
             sqlite3_errmsg(connection));
  KJ_DEFER(sqlite3_finalize(statement));
  kj::Vector<kj::String> out;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    kj::Vector<kj::String> columns;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      auto text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
      columns.add(kj::str(text == nullptr ? "" : text));
    }
    out.add(kj::strArray(columns, "|"));
  }
  return out;
}

void tamper(kj::StringPtr folder, kj::StringPtr change) {
  BackDoor door(folder);
  auto triggers = door.rows("SELECT sql FROM sqlite_schema WHERE type = 'trigger'");
  for (auto& name : door.rows("SELECT name FROM sqlite_schema WHERE type = 'trigger'")) {
    KJ_REQUIRE(door.run(kj::str("DROP TRIGGER ", name)) == SQLITE_OK);
  }
  KJ_REQUIRE(door.run(kj::str("PRAGMA ignore_check_constraints = ON; ", change)) == SQLITE_OK,
             door.said());
  for (auto& trigger : triggers) KJ_REQUIRE(door.run(trigger) == SQLITE_OK);
}

}  // namespace praefectus::test
