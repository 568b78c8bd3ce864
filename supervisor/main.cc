// praefectus-supervisor: builds every part, gives up what it does not need, and runs the loop.
#include "attest/publisher-key.h"
#include "ipc/channel.h"
#include "supervisor/desktop-lock.h"
#include "supervisor/helpers.h"
#include "supervisor/host-port.h"
#include "supervisor/launch/launcher.h"
#include "supervisor/own-process.h"

#include <kj/async-unix.h>
#include <kj/main.h>

#include <cstdlib>

namespace praefectus {
namespace {

constexpr int HOST_SOCKET = 3;
constexpr kj::StringPtr HELPER_FILE = "praefectus-desktop-linux"_kj;

// The desktop helper's whole environment: how to reach the display and the buses, whether it may
// switch accessibility on, and nothing else.
kj::Array<launch::RoleEntry> roleTable(bool enableAccessibility) {
  kj::Vector<kj::String> environment;
  for (const char* name : {"DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS",
                           "DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR", "HOME"}) {
    const char* value = getenv(name);
    if (value != nullptr) environment.add(kj::str(name, "=", value));
  }
  if (enableAccessibility) environment.add(kj::str("PRAEFECTUS_ACCESSIBILITY=on"));
  environment.add(kj::str("LANG=C.UTF-8"));
  auto table = kj::heapArrayBuilder<launch::RoleEntry>(1);
  table.add(launch::RoleEntry{Role::DESKTOP, environment.releaseAsArray()});
  return table.finish();
}

class Main {
 public:
  explicit Main(kj::ProcessContext& context) : context(context) {}

  kj::MainFunc get() {
    return kj::MainBuilder(context, "praefectus-supervisor " PRAEFECTUS_RELEASE,
                           "Verifies signed grants, remembers operations, and drives attested "
                           "helpers. Started by a host; see praefectus --help for people.")
        .addSubCommand("create", KJ_BIND_METHOD(*this, createCommand),
                       "make a ledger and pin its keys")
        .addSubCommand("serve", KJ_BIND_METHOD(*this, serveCommand),
                       "serve the host on descriptor 3")
        .build();
  }

 private:
  kj::MainFunc createCommand() {
    return kj::MainBuilder(
               context, "praefectus-supervisor create",
               "Makes a new ledger folder. The issuer keys given here are the only ones "
               "whose grants it will ever accept; the publisher key of this build is "
               "pinned with them.")
        .addOptionWithArg({"ledger"}, KJ_BIND_METHOD(*this, setLedger), "<folder>",
                          "where to make it; must not exist")
        .addOptionWithArg({"issuer"}, KJ_BIND_METHOD(*this, addIssuer), "<name>:<key id>:<hex>",
                          "an issuer's Ed25519 public key; may be repeated")
        .callAfterParsing(KJ_BIND_METHOD(*this, create))
        .build();
  }

  kj::MainFunc serveCommand() {
    return kj::MainBuilder(
               context, "praefectus-supervisor serve",
               "Serves one host over the unix socket it left on descriptor 3, until that "
               "host is gone.")
        .addOptionWithArg({"ledger"}, KJ_BIND_METHOD(*this, setLedger), "<folder>",
                          "a ledger made by create")
        .addOption({"enable-accessibility"}, KJ_BIND_METHOD(*this, setAccessibility),
                   "let helpers switch applications' accessibility on where it is off; each puts "
                   "back what it switched when it ends")
        .callAfterParsing(KJ_BIND_METHOD(*this, serve))
        .build();
  }

  kj::MainBuilder::Validity setLedger(kj::StringPtr folder) {
    if (folder.size() == 0) return "the ledger's folder must be named";
    ledgerFolder = folder;
    return true;
  }

  kj::MainBuilder::Validity setAccessibility() {
    enableAccessibility = true;
    return true;
  }

  kj::MainBuilder::Validity addIssuer(kj::StringPtr text) {
    KJ_IF_MAYBE (first, text.findFirst(':')) {
      auto name = kj::heapString(text.slice(0, *first));
      auto rest = text.slice(*first + 1);
      KJ_IF_MAYBE (second, rest.findFirst(':')) {
        auto keyId = kj::heapString(rest.slice(0, *second));
        KJ_IF_MAYBE (bytes, unhex(rest.slice(*second + 1))) {
          KJ_IF_MAYBE (key, fixed<32>(*bytes)) {
            if (!isIdentifier(name) || !isIdentifier(keyId)) return "bad issuer name or key id";
            ring.add(attest::Purpose::ISSUER, name, keyId, *key);
            return true;
          }
        }
      }
    }
    return "expected <name>:<key id>:<64 hexadecimal digits>";
  }

  kj::MainBuilder::Validity create() {
    if (ledgerFolder.size() == 0) return "--ledger is missing";
    if (ring.entries().size() == 0) return "at least one --issuer is needed";
    attest::initialize();
    attest::PublicKey publisher;
    memcpy(publisher.data(), attest::PUBLISHER_KEY, publisher.size());
    ring.add(attest::Purpose::PUBLISHER, attest::PUBLISHER_ISSUER, attest::PUBLISHER_KEY_ID,
             publisher);
    SystemClock clock;
    auto made = ledger::Ledger::create(ledgerFolder, ring, {clock.wallMs(), clock.bootMs()});
    if (!made.ok())
      context.exitError(kj::str(nameOf(made.refusal().code), ": ", made.refusal().detail));
    return true;
  }

  kj::MainBuilder::Validity serve() {
    if (ledgerFolder.size() == 0) return "--ledger is missing";
    if (!peerOf(HOST_SOCKET).ok())
      return "descriptor 3 is not a unix socket; a host starts this program";
    auto socket = takeInherited(HOST_SOCKET);

    // Before any thread, any secret, and our own confinement: children would inherit all three.
    uint32_t launcherPid = 0;
    auto table = roleTable(enableAccessibility);
    auto launcherSocket = launch::Launcher::fork(table, launcherPid);
    auto image = kj::str(ownFolder(), "/", HELPER_FILE);
    giveUp();
    attest::initialize();

    auto io = kj::setupAsyncIo();
    auto& timer = io.provider->getTimer();
    auto launcher =
        launch::Launcher::attach(io.unixEventPort, timer, kj::mv(launcherSocket), launcherPid);
    auto peer = peerOf(socket.get());
    SystemClock clock;

    auto opened = ledger::Ledger::open(ledgerFolder, {clock.wallMs(), clock.bootMs()});
    if (!opened.ok()) {
      Channel channel(*io.lowLevelProvider, kj::mv(socket), serveRefusal(opened.refusal()));
      channel.onDisconnect().wait(io.waitScope);
      return true;
    }
    const char* display = getenv("DISPLAY");
    DesktopLock desktop(display == nullptr ? "none" : display);
    DesktopHelpers helpers(*io.lowLevelProvider, timer, *launcher, (*opened)->ring(),
                           kj::mv(image));
    TimeKeeper time(clock, (*opened)->clockMemory());
    Supervisor supervisor(**opened, helpers, desktop, time, timer, kj::str("uid:", peer->uid));
    {
      Channel channel(*io.lowLevelProvider, kj::mv(socket), servePort(supervisor));
      channel.onDisconnect().wait(io.waitScope);
    }
    // The host is gone. What was dispatched is still carried to its end and settled.
    supervisor.drained().wait(io.waitScope);
    return true;
  }

  kj::ProcessContext& context;
  kj::StringPtr ledgerFolder;
  bool enableAccessibility = false;
  attest::KeyRing ring;
};

}  // namespace
}  // namespace praefectus

int main(int argc, char* argv[]) {
  kj::TopLevelProcessContext context(argv[0]);
  praefectus::Main mainObject(context);
  return kj::runMainAndExit(context, mainObject.get(), argc, argv);
}
