// A host for the duration of one command: throw-away issuer key, throw-away ledger, one session. It
// is how the command line reads a desktop: through a grant, like everybody else.
#pragma once

#include "supervisor/cli/report.h"
#include "supervisor/client/client.h"

#include <kj/async-io.h>

namespace praefectus::cli {

// A private folder that is removed, with what is in it, when this is destroyed.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder() noexcept(false);
  KJ_DISALLOW_COPY(TemporaryFolder);
  kj::StringPtr path() const { return name; }

 private:
  kj::String name;
};

// The absolute path of the running program.
kj::String ownProgram();

class OwnHost {
 public:
  // Throws a Failure when the supervisor cannot be started or refuses.
  // `environment` says which desktop; our own by default.
  explicit OwnHost(kj::Maybe<kj::ArrayPtr<const kj::String>> environment = nullptr);

  client::Session& session() { return *open; }
  client::Host& host() { return *started; }
  kj::StringPtr ledger() const { return ledgerFolder; }

  template <typename T>
  T wait(kj::Promise<Result<T>> promise) {
    return orFail(promise.wait(io.waitScope));
  }
  // Goes on in `time`.
  void pause(kj::Duration time) { io.provider->getTimer().afterDelay(time).wait(io.waitScope); }

 private:
  TemporaryFolder folder;
  kj::String ledgerFolder;
  kj::AsyncIoContext io;
  client::Authority authority;
  kj::Own<client::Host> started;
  kj::Own<client::Session> open;
};

}  // namespace praefectus::cli
