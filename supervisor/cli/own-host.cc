#include "supervisor/cli/own-host.h"

#include <kj/debug.h>
#include <kj/filesystem.h>

#include <cstdlib>

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

}  // namespace

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
  orFail(client::createLedger(options, authority));
  started = orFail(client::Host::start(io, options, authority).wait(io.waitScope));
  open = orFail(started->open("cli", "1").wait(io.waitScope));
}

}  // namespace praefectus::cli
