#include "tests/bench/stand.h"

#include "tests/bench/measure.h"

#include <kj/io.h>

#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::bench {
namespace {

constexpr char HELPER[] = PRAEFECTUS_BIN "/echo-helper";
constexpr int64_t LEASE_MS = 60'000;
constexpr double RENEWED_AFTER = 30e6;
constexpr uint32_t TIMEOUT_MS = 60'000;

const attest::Classes EVERYTHING = {ActionClass::METADATA_READ,     ActionClass::SCREENSHOT_READ,
                                    ActionClass::POINTER_MUTATION,  ActionClass::KEYBOARD_MUTATION,
                                    ActionClass::SEMANTIC_MUTATION, ActionClass::FILE_MUTATION};

kj::Array<kj::byte> readWhole(kj::StringPtr path) {
  int fd;
  KJ_SYSCALL(fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC), path);
  kj::FdInputStream input{kj::AutoCloseFd(fd)};
  return input.readAllBytes();
}

void writeWhole(kj::StringPtr path, Bytes content) {
  int fd;
  KJ_SYSCALL(fd = ::open(path.cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), path);
  kj::FdOutputStream(kj::AutoCloseFd(fd)).write(content.begin(), content.size());
}

kj::String madeFolder(kj::StringPtr path) {
  std::filesystem::remove_all(path.cStr());
  std::filesystem::create_directories(path.cStr());
  KJ_SYSCALL(chmod(path.cStr(), 0700));
  return kj::str(path);
}

kj::AutoCloseFd forkLauncher(uint32_t& pid) {
  auto table = kj::heapArrayBuilder<launch::RoleEntry>(1);
  table.add(launch::RoleEntry{Role::DESKTOP, nullptr});
  auto roles = table.finish();
  return launch::Launcher::fork(roles, pid);
}

class NoListener final : public Listener {
 public:
  void reached(wire::Stage) override {}
};

template <typename T>
T need(Result<T> result) {
  KJ_REQUIRE(result.ok(), nameOf(result.refusal().code), result.refusal().detail);
  return kj::mv(*result);
}

}  // namespace

kj::String newOperation() {
  char time[16];
  snprintf(time, sizeof(time), "%012llx", static_cast<unsigned long long>(moment().wallMs));
  return kj::str("op-", time, "-", hex(bytesOf(attest::random<10>())));
}

ledger::Moment moment() {
  SystemClock clock;
  return {clock.wallMs(), clock.bootMs()};
}

Echoes::Echoes(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, launch::Launcher& launcher,
               kj::StringPtr folder)
    : io(io),
      timer(timer),
      launcher(launcher),
      folder(kj::str(folder)),
      publisher(attest::SigningKey::generate()) {
  pinned.add(attest::Purpose::PUBLISHER, "publisher", attest::keyIdOf(publisher.publicKey()),
             publisher.publicKey());
}

kj::Promise<Result<kj::Own<HelperLink>>> Echoes::startDesktopHelper() {
  return HelperLink::start(io, timer, launcher, imageOf(name), ++generation);
}

const attest::Image& Echoes::imageOf(kj::StringPtr named) {
  auto& image = images[named];
  if (image.get() != nullptr) return *image;
  auto path = kj::str(folder, '/', named);
  auto bytes = readWhole(HELPER);
  writeWhole(path, bytes);
  attest::Manifest manifest;
  manifest.issuer = kj::str("publisher");
  manifest.keyId = attest::keyIdOf(publisher.publicKey());
  manifest.name = kj::str(named);
  manifest.release = kj::str(PRAEFECTUS_RELEASE);
  manifest.role = Role::DESKTOP;
  manifest.platform = kj::str(attest::platform());
  manifest.protocol = wire::PROTOCOL_VERSION;
  manifest.digest = attest::digestOf(bytes);
  manifest.size = bytes.size();
  writeWhole(kj::str(path, ".manifest"), attest::envelopeBytes(attest::seal(manifest, publisher)));
  image = need(attest::Image::attest(pinned, Role::DESKTOP, path));
  return *image;
}

Guest::Guest(Stand& stand, kj::StringPtr name, uint64_t number)
    : stand(stand),
      own(need(stand.supervisor().open(kj::str(name)))),
      window{{4242, 987'654}, number},
      leasedAt(now() - RENEWED_AFTER) {
  renew();
  observe();
}

Guest::~Guest() noexcept(false) { stand.supervisor().leave(*own); }

// In a turn of its own: the oldest lease that covers an operation is the one that it is held to, so
// one beside it that lasts longer would not help.
void Guest::renew() {
  if (now() - leasedAt < RENEWED_AFTER) return;
  turn = kj::str("turn-", ++leases);
  need(stand.supervisor().beginTurn(*own, kj::str(turn)));
  attest::Lease lease;
  lease.session = kj::str(own->id);
  lease.turn = kj::str(turn);
  lease.lease = kj::str("lease-", leases);
  lease.classes = EVERYTHING;
  lease.notBefore = moment().wallMs;
  lease.expires = lease.notBefore + LEASE_MS;
  need(stand.supervisor().openLease(*own, stand.seal(kj::mv(lease))));
  leasedAt = now();
}

void Guest::observe() {
  Action action;
  action.target = window;
  action.act = ObserveAct();
  auto answer = stand.supervisor().observe(*own, sign(kj::mv(action))).wait(stand.wait());
  seen = read(need(kj::mv(answer)).get());
}

Submission Guest::setsValue() {
  Action action;
  action.target =
      ElementTarget{window, seen.frame.id, seen.frame.epoch, 1, seen.elements[1].digest};
  action.act = SetValueRequest{kj::str("thirty characters of some text")};
  return sign(kj::mv(action));
}

Submission Guest::writesClipboard() {
  Action action;
  action.verification = Verification::none();
  action.act = ClipboardWriteRequest{kj::str("thirty characters of some text")};
  return sign(kj::mv(action));
}

Submission Guest::focuses() {
  Action action;
  action.verification = Verification::none();
  action.target = window;
  action.act = WindowRequest{wire::ControlWindow::Operation::FOCUS};
  return sign(kj::mv(action));
}

Submission Guest::sign(Action action) {
  action.blind = attest::random<32>();
  action.timeoutMs = TIMEOUT_MS;
  auto bytes = encode(action);
  attest::Grant grant;
  grant.session = kj::str(own->id);
  grant.turn = kj::str(turn);
  grant.operation = newOperation();
  grant.actionHash = attest::actionHash(bytes);
  grant.actionClass = action.actionClass();
  grant.risk = action.safety;
  grant.target = action.window();
  KJ_IF_MAYBE (frame, action.frame()) grant.frame = frame->id;
  grant.notBefore = moment().wallMs;
  grant.expires = grant.notBefore + LEASE_MS;
  return {stand.seal(kj::mv(grant)), kj::mv(bytes)};
}

kj::Promise<kj::Own<Answer>> Guest::submit(Submission submission) {
  return stand.supervisor().execute(*own, kj::mv(submission), kj::heap<NoListener>());
}

kj::Own<Answer> Guest::carryOut(Submission submission) {
  auto answer = submit(kj::mv(submission)).wait(stand.wait());
  take(*answer);
  return answer;
}

// That the outcome is not unknown shows in the session, without another check of a signature.
void Guest::take(const Answer& answer) {
  KJ_IF_MAYBE (refusal, answer.refusal) {
    KJ_FAIL_REQUIRE("refused", nameOf(refusal->code), refusal->detail);
  }
  KJ_REQUIRE(!answer.replayed && !own->mustObserve, "not carried out");
  KJ_IF_MAYBE (fresh, answer.fresh.tryGet<ObservationHeld>()) seen = read(fresh->get());
}

Stand::Stand(kj::StringPtr path)
    : folder(madeFolder(path)),
      issuer(attest::SigningKey::generate()),
      launcherSocket(forkLauncher(launcherPid)),
      io(kj::setupAsyncIo()),
      launcher(launch::Launcher::attach(io.unixEventPort, io.provider->getTimer(),
                                        kj::mv(launcherSocket), launcherPid)),
      echoes(kj::heap<Echoes>(*io.lowLevelProvider, io.provider->getTimer(), *launcher, folder)) {
  attest::KeyRing ring;
  ring.add(attest::Purpose::ISSUER, "host", attest::keyIdOf(issuer.publicKey()),
           issuer.publicKey());
  auto place = kj::str(folder, "/ledger");
  need(ledger::Ledger::create(place, ring, moment()));
  book = need(ledger::Ledger::open(place, moment()));
  keeper = kj::heap<TimeKeeper>(clock, book->clockMemory());
  core = kj::heap<Supervisor>(*book, *echoes, actor, *keeper, io.provider->getTimer(),
                              kj::str("uid:1000"));
}

Stand::~Stand() noexcept(false) {
  core = nullptr;
  book = nullptr;
  std::error_code ignored;
  std::filesystem::remove_all(folder.cStr(), ignored);
}

}  // namespace praefectus::bench
