#include "tests/support/workbench.h"

#include "supervisor/launch/pidfd.h"

#include <algorithm>
#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::test {
namespace {

constexpr char HELPER[] = PRAEFECTUS_BIN "/fake-helper";
constexpr kj::StringPtr SUBJECT = "uid:1000"_kj;
constexpr int END_MS = 60'000;

// The whole environment of every helper.
kj::Array<launch::RoleEntry> rolesWith(kj::StringPtr recordPath) {
  auto environment = kj::heapArrayBuilder<kj::String>(1);
  environment.add(kj::str("RECORD=", recordPath));
  auto table = kj::heapArrayBuilder<launch::RoleEntry>(1);
  table.add(launch::RoleEntry{Role::DESKTOP, environment.finish()});
  return table.finish();
}

kj::AutoCloseFd forkLauncher(kj::StringPtr recordPath, uint32_t& pid) {
  writeWhole(recordPath, nullptr);
  auto table = rolesWith(recordPath);
  return launch::Launcher::fork(table, pid);
}

kj::AutoCloseFd watchOn(kj::StringPtr path) {
  int fd;
  KJ_SYSCALL(fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  kj::AutoCloseFd watch(fd);
  KJ_SYSCALL(inotify_add_watch(fd, path.cStr(), IN_MODIFY));
  return watch;
}

class Teller final : public Listener {
 public:
  explicit Teller(OnStage onStage) : onStage(kj::mv(onStage)) {}
  void reached(wire::Stage stage) override {
    if (onStage) onStage(stage);
  }

 private:
  OnStage onStage;
};

Verification verificationFor(Proof proof) {
  Verification out;
  if (proof == Proof::NONE) out.content = NoProof();
  if (proof == Proof::APPEARS) out.content = AppearsProof();
  if (proof == Proof::DISAPPEARS) out.content = DisappearsProof();
  return out;
}

Action actionOn(const Observation& seen, uint32_t element, const Terms& terms) {
  Action action;
  action.blind = attest::random<32>();
  action.timeoutMs = terms.timeoutMs;
  action.mode = terms.mode;
  action.safety = terms.safety;
  action.verification = verificationFor(terms.proof);
  action.target = ElementTarget{seen.frame.window, seen.frame.id, seen.frame.epoch, element,
                                seen.elements[element].digest};
  return action;
}

}  // namespace

NamedHelpers::NamedHelpers(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer,
                           launch::Launcher& launcher, kj::StringPtr folder)
    : io(io),
      timer(timer),
      launcher(launcher),
      folder(kj::str(folder)),
      publisher(attest::SigningKey::fromSeed(bytesOf(hashNamed("publisher")))) {
  pinned.add(attest::Purpose::PUBLISHER, "publisher", attest::keyIdOf(publisher.publicKey()),
             publisher.publicKey());
}

kj::Promise<Result<kj::Own<HelperLink>>> NamedHelpers::startDesktopHelper() {
  ++starts;
  return HelperLink::start(io, timer, launcher, imageOf(mode), ++generation);
}

kj::String NamedHelpers::fileOf(const std::string& name) const {
  auto path = kj::str(folder, '/', name.c_str());
  auto bytes = readWhole(HELPER);
  writeWhole(path, bytes);
  attest::Manifest manifest;
  manifest.issuer = kj::str("publisher");
  manifest.keyId = attest::keyIdOf(publisher.publicKey());
  manifest.name = kj::str(name.c_str());
  manifest.release = kj::str(PRAEFECTUS_RELEASE);
  manifest.role = Role::DESKTOP;
  manifest.platform = kj::str(attest::platform());
  manifest.protocol = wire::PROTOCOL_VERSION;
  manifest.digest = attest::digestOf(bytes);
  manifest.size = bytes.size();
  writeWhole(kj::str(path, ".manifest"), attest::envelopeBytes(attest::seal(manifest, publisher)));
  return path;
}

const attest::Image& NamedHelpers::imageOf(const std::string& name) {
  auto& image = images[name];
  if (image.get() == nullptr) {
    auto attested = attest::Image::attest(pinned, Role::DESKTOP, fileOf(name));
    KJ_REQUIRE(attested.ok(), attested.refusal().detail);
    image = kj::mv(*attested);
  }
  return *image;
}

Workbench::Workbench(const std::string& mode, bool acting)
    : actor(acting),
      folder(fastPlace()),
      recordPath(folder / "record"),
      ledgerPath(folder / "ledger"),
      issuer(attest::SigningKey::fromSeed(bytesOf(hashNamed("issuer")))),
      launcherSocket(forkLauncher(recordPath, launcherPid)),
      io(kj::setupAsyncIo()),
      starter(launch::Launcher::attach(io.unixEventPort, io.provider->getTimer(),
                                       kj::mv(launcherSocket), launcherPid)),
      recordWatch(watchOn(recordPath)),
      recordObserver(io.unixEventPort, recordWatch, kj::UnixEventPort::FdObserver::OBSERVE_READ) {
  auto place = folder / "helpers";
  KJ_SYSCALL(mkdir(place.cStr(), 0700));
  source = kj::heap<NamedHelpers>(low(), timer, *starter, place);
  source->mode = mode;
  attest::KeyRing ring;
  ring.add(attest::Purpose::ISSUER, "host", attest::keyIdOf(issuer.publicKey()),
           issuer.publicKey());
  auto made = ledger::Ledger::create(ledgerPath, ring, {clock.wallMs(), clock.bootMs()});
  KJ_REQUIRE(made.ok(), made.refusal().detail);
  openLedger();
}

Workbench::~Workbench() noexcept(false) {}

void Workbench::openLedger() {
  auto opened = ledger::Ledger::open(ledgerPath, {clock.wallMs(), clock.bootMs()});
  KJ_REQUIRE(opened.ok(), opened.refusal().detail);
  book = kj::mv(*opened);
  keeper = kj::heap<TimeKeeper>(clock, book->clockMemory());
  core = kj::heap<Supervisor>(*book, *source, actor, *keeper, ledgerTimer, kj::str(SUBJECT));
}

void Workbench::restart(const std::function<void()>& meanwhile) {
  core = nullptr;
  book = nullptr;
  if (meanwhile) meanwhile();
  openLedger();
}

void Workbench::pass(kj::Duration duration) {
  settle();
  clock.wall += duration / kj::MILLISECONDS;
  clock.boot += static_cast<uint64_t>(duration / kj::MILLISECONDS);
  timer.advanceTo(timer.now() + duration);
  settle();
}

void Workbench::passForLedger(kj::Duration duration) {
  ledgerTimer.advanceTo(ledgerTimer.now() + duration);
  settle();
}

void Workbench::settle() {
  for (int i = 0; i < 20; ++i) io.waitScope.poll();
}

std::vector<std::string> Workbench::record() const {
  std::ifstream file(recordPath.cStr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

size_t Workbench::count(const std::string& beginning) const {
  auto lines = record();
  return static_cast<size_t>(
      std::count_if(lines.begin(), lines.end(),
                    [&](const std::string& line) { return line.starts_with(beginning); }));
}

void Workbench::await(const std::string& beginning, size_t times) {
  for (;;) {
    char events[4096];
    while (::read(recordWatch, events, sizeof(events)) > 0) continue;
    if (count(beginning) >= times) return;
    wait(recordObserver.whenBecomesReadable());
  }
}

std::vector<pid_t> Workbench::pids() const {
  std::vector<pid_t> out;
  for (auto& line : record()) {
    if (line.starts_with("start ")) out.push_back(std::stoi(line.substr(6)));
  }
  return out;
}

void Workbench::signal(pid_t pid) { KJ_SYSCALL(::kill(pid, SIGUSR2)); }

void Workbench::killNoticed(Session& session) {
  auto pid = static_cast<pid_t>(KJ_ASSERT_NONNULL(session.liveHelper()).pid());
  KJ_SYSCALL(::kill(pid, SIGKILL));
  KJ_REQUIRE(ends(pid));
  settle();
  KJ_REQUIRE(session.liveHelper() == nullptr);
}

bool Workbench::ends(pid_t pid) {
  int fd = launch::openPidfd(pid);
  if (fd < 0) return true;
  kj::AutoCloseFd process(fd);
  return launch::goneWithin(process, END_MS);
}

kj::Own<Session> Workbench::open(kj::StringPtr session, kj::StringPtr turn) {
  auto opened = core->open(kj::str(session));
  KJ_REQUIRE(opened.ok(), opened.refusal().detail);
  auto begun = core->beginTurn(**opened, kj::str(turn));
  KJ_REQUIRE(begun.ok(), begun.refusal().detail);
  return kj::mv(*opened);
}

attest::Lease Workbench::leaseFor(const Session& session, attest::Classes classes, kj::StringPtr id,
                                  int64_t validForMs) const {
  attest::Lease lease;
  lease.issuer = kj::str("host");
  lease.keyId = attest::keyIdOf(issuer.publicKey());
  lease.audience = book->id();
  lease.subject = kj::str(SUBJECT);
  lease.session = kj::str(session.id);
  lease.turn = kj::str(session.turn().orDefault(kj::str("none")));
  lease.lease = kj::str(id);
  lease.policyGeneration = policyGeneration;
  lease.classes = classes;
  lease.notBefore = clock.wallMs();
  lease.expires = clock.wallMs() + validForMs;
  return lease;
}

attest::Envelope Workbench::seal(attest::Revocation revocation) const {
  revocation.issuer = kj::str("host");
  revocation.keyId = attest::keyIdOf(issuer.publicKey());
  revocation.audience = book->id();
  revocation.subject = kj::str(SUBJECT);
  revocation.issuedAt = clock.wallMs();
  return attest::seal(revocation, issuer);
}

std::string Workbench::lease(Session& session, const attest::Lease& lease) {
  auto opened = core->openLease(session, seal(lease));
  return opened.ok() ? "ok" : nameOf(opened.refusal().code).cStr();
}

std::string Workbench::revoke(attest::Envelope revocation) {
  auto revoked = wait(core->revoke(kj::mv(revocation)));
  return revoked.ok() ? "ok" : nameOf(revoked.refusal().code).cStr();
}

void Workbench::leaseAll(Session& session) {
  if (!leasing || session.turn() == nullptr) return;
  auto scope = leaseScope(session, book->revocations(), *keeper);
  if (session.leases.isOpen("host", lastLease.c_str(), scope)) return;
  lastLease = "lease-" + std::to_string(++leases);
  lease(session, leaseFor(session, EVERYTHING, lastLease.c_str()));
}

attest::Grant Workbench::grantFor(const Session& session, const Action& action,
                                  kj::StringPtr operation, Terms terms) const {
  attest::Grant grant;
  grant.issuer = kj::str("host");
  grant.keyId = attest::keyIdOf(issuer.publicKey());
  grant.audience = book->id();
  grant.subject = kj::str(SUBJECT);
  grant.session = kj::str(session.id);
  KJ_IF_MAYBE (turn, session.turn()) grant.turn = kj::str(*turn);
  grant.operation = kj::str(operation);
  grant.policyGeneration = policyGeneration;
  grant.actionHash = attest::actionHash(encode(action));
  grant.actionClass = action.actionClass();
  grant.risk = action.safety;
  grant.target = action.window();
  KJ_IF_MAYBE (frame, action.frame()) grant.frame = frame->id;
  grant.rights = terms.rights;
  grant.notBefore = clock.wallMs();
  grant.expires = clock.wallMs() + terms.validForMs;
  grant.uses = terms.uses;
  return grant;
}

Request Workbench::seal(const attest::Grant& grant, const Action& action) const {
  return {kj::str(grant.operation), attest::seal(grant, issuer), encode(action)};
}

Request Workbench::request(const Session& session, const Action& action, kj::StringPtr operation,
                           Terms terms) const {
  return seal(grantFor(session, action, operation, terms), action);
}

Observation Workbench::observe(Session& session, const WindowRef& window) {
  leaseAll(session);
  auto ask = request(session, look(window), kj::str("read-", ++reads));
  auto seen = wait(core->observe(session, ask.submission()));
  KJ_REQUIRE(seen.ok(), nameOf(seen.refusal().code), seen.refusal().detail);
  return read(seen->get());
}

kj::Promise<Result<ObservationHeld>> Workbench::beginObserving(Session& session,
                                                               const Request& request) {
  leaseAll(session);
  return core->observe(session, request.submission());
}

std::string Workbench::observing(Session& session, const Request& request) {
  auto seen = wait(beginObserving(session, request));
  return seen.ok() ? "ok" : nameOf(seen.refusal().code).cStr();
}

std::string Workbench::listing(Session& session, const Request& request) {
  leaseAll(session);
  auto listed = wait(core->list(session, request.submission()));
  return listed.ok() ? "ok" : nameOf(listed.refusal().code).cStr();
}

kj::Promise<kj::Own<Answer>> Workbench::begin(Session& session, const Request& request,
                                              OnStage onStage) {
  leaseAll(session);
  return core->execute(session, request.submission(), kj::heap<Teller>(kj::mv(onStage)));
}

attest::Receipt Workbench::receiptOf(const Answer& answer) const {
  KJ_IF_MAYBE (refusal, answer.refusal) KJ_FAIL_REQUIRE("refused", nameOf(refusal->code));
  auto receipt = attest::openReceipt(book->receiptKey(), answer.receipt);
  KJ_REQUIRE(receipt.ok(), receipt.refusal().detail);
  return kj::mv(*receipt);
}

std::string Workbench::outcome(const Answer& answer) const {
  KJ_IF_MAYBE (refusal, answer.refusal) {
    return std::string("refused: ") + nameOf(refusal->code).cStr();
  }
  return nameOf(receiptOf(answer).terminal).cStr();
}

std::string Workbench::known(kj::StringPtr operation) {
  auto found = book->find(operation);
  KJ_REQUIRE(found.ok(), nameOf(found.refusal().code));
  if (found->is<ledger::Unknown>()) return "unknown";
  if (found->is<ledger::Open>()) return "open";
  auto receipt = attest::openReceipt(book->receiptKey(), found->get<attest::Envelope>());
  KJ_REQUIRE(receipt.ok(), receipt.refusal().detail);
  return nameOf(receipt->terminal).cStr();
}

Request Ready::pressing(kj::StringPtr operation, Terms terms) {
  return request(*session, press(seen, operation, terms), operation, terms);
}

Action press(const Observation& seen, kj::StringPtr name, Terms terms) {
  auto action = actionOn(seen, 1, terms);
  action.act = InvokeRequest{kj::str(name)};
  return action;
}

Action put(const Observation& seen, kj::StringPtr text, Terms terms) {
  auto action = actionOn(seen, 2, terms);
  action.act = SetValueRequest{kj::str(text)};
  return action;
}

Action acting(const Observation& seen, Act act, Terms terms) {
  auto action = actionOn(seen, 1, terms);
  action.act = kj::mv(act);
  return action;
}

Action launching(kj::StringPtr application, Terms terms) {
  Action action;
  action.blind = attest::random<32>();
  action.timeoutMs = terms.timeoutMs;
  action.verification = verificationFor(terms.proof);
  action.act =
      ApplicationRequest{wire::ControlApplication::Operation::LAUNCH, kj::str(application)};
  return action;
}

Action look(const WindowRef& window, bool picture) {
  Action action;
  action.blind = attest::random<32>();
  action.timeoutMs = 15'000;
  action.target = window;
  action.act = ObserveAct{picture};
  return action;
}

Action survey() {
  Action action;
  action.blind = attest::random<32>();
  action.timeoutMs = 15'000;
  action.act = ListAct();
  return action;
}

}  // namespace praefectus::test
