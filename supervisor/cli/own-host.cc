#include "supervisor/cli/own-host.h"

#include <kj/debug.h>
#include <kj/filesystem.h>

#include <cstdlib>

#include <unistd.h>

namespace praefectus::cli {
namespace {

client::Authority throwAway() {
  return client::Authority("praefectus-cli", attest::SigningKey::generate());
}

client::Options optionsFor(kj::StringPtr ledger,
                           kj::Maybe<kj::ArrayPtr<const kj::String>> environment) {
  client::Options options;
  options.ledger = ledger;
  options.environment = environment;
  return options;
}

// The ledger is ours and temporary; what can be wrong is the place.
Failure notMade(const Refusal& refusal) {
  auto failed = failure(refusal);
  if (refusal.code == RefusalCode::LEDGER_FOREIGN) {
    failed.advice =
        kj::str("Is the folder for temporary files (TMPDIR, else /tmp) safe from other users?");
  }
  return failed;
}

}  // namespace

kj::String ownProgram() {
  char path[4096];
  ssize_t size;
  KJ_SYSCALL(size = readlink("/proc/self/exe", path, sizeof(path) - 1));
  return kj::heapString(path, static_cast<size_t>(size));
}

TemporaryFolder::TemporaryFolder() {
  const char* base = getenv("TMPDIR");
  auto pattern = kj::str(base != nullptr && base[0] == '/' ? base : "/tmp", "/praefectus-XXXXXX");
  KJ_REQUIRE(mkdtemp(pattern.begin()) != nullptr, "no temporary folder can be made");
  name = kj::mv(pattern);
}

TemporaryFolder::~TemporaryFolder() noexcept(false) {
  auto disk = kj::newDiskFilesystem();
  disk->getRoot().tryRemove(kj::Path::parse(name.slice(1)));
}

OwnHost::OwnHost(kj::Maybe<kj::ArrayPtr<const kj::String>> environment)
    : ledgerFolder(kj::str(folder.path(), "/ledger")),
      io(kj::setupAsyncIo()),
      authority(throwAway()) {
  auto options = optionsFor(ledgerFolder, environment);
  auto made = client::createLedger(options, authority);
  if (!made.ok()) throw notMade(made.refusal());
  started = orFail(client::Host::start(io, options, authority).wait(io.waitScope));
  open = orFail(started->open("cli", "1").wait(io.waitScope));
}

}  // namespace praefectus::cli
