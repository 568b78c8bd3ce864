// A helper that does nothing and says what it saw, as fast as it can: what is left of an operation
// is the supervisor's. Its name chooses the way (argv[0], which the launcher takes from the signed
// manifest): one that is called `stalls` never answers a perform.
#include "attest/digest.h"
#include "ipc/helper-server.h"

#include <kj/async-io.h>

#include <cstdlib>

namespace praefectus {
namespace {

constexpr int SOCKET = 3;

class Performed final : public PreparedAction {
 public:
  Performed(Action action, bool stalls) : action(kj::mv(action)), stalls(stalls) {}

  kj::Promise<Result<Facts>> perform() override {
    if (stalls) return kj::NEVER_DONE;
    Facts facts;
    facts.answer = wire::Answer::ACCEPTED;
    facts.watch.watching = true;
    for (auto sight : {&facts.before, &facts.after}) {
      sight->present = sight->windowPresent = sight->processRunning = true;
      sight->windows.add(7);
    }
    KJ_IF_MAYBE (set, action.act.tryGet<SetValueRequest>()) {
      facts.before.value = kj::str("");
      facts.after.value = kj::str(set->text);
    }
    return Result<Facts>(kj::mv(facts));
  }

 private:
  Action action;
  bool stalls;
};

class EchoDriver final : public Driver {
 public:
  explicit EchoDriver(bool stalls) : stalls(stalls) {}

  kj::Promise<kj::Vector<Capability>> capabilities() override {
    kj::Vector<Capability> out;
    for (auto name : {"list"_kj, "observe"_kj, "picture"_kj, "set_value"_kj, "window"_kj,
                      "clipboard_write"_kj}) {
      out.add(Capability{name, true, {}});
    }
    return kj::mv(out);
  }

  kj::Promise<Result<Desktop>> list() override { return Result<Desktop>(Desktop()); }

  // A window with one entry.
  kj::Promise<Result<Observation>> observe(WindowRef window, FrameId frame, uint64_t epoch,
                                           ObserveAct) override {
    Observation seen;
    seen.frame.id = frame;
    seen.frame.epoch = epoch;
    seen.frame.window = window;
    for (auto role : {"frame"_kj, "text"_kj}) {
      Element element;
      element.role = kj::str(role);
      element.digest = attest::digestOf(role.asBytes());
      seen.elements.add(kj::mv(element));
    }
    return Result<Observation>(kj::mv(seen));
  }

  kj::Promise<Result<Picture>> capture(Action) override {
    return Result<Picture>(Refusal{RefusalCode::UNSUPPORTED_ACTION, "Not offered."});
  }

  kj::Promise<Result<kj::Own<PreparedAction>>> prepare(Action action) override {
    return Result<kj::Own<PreparedAction>>(kj::heap<Performed>(kj::mv(action), stalls));
  }

 private:
  bool stalls;
};

int serve(kj::StringPtr name, uint64_t generation) {
  attest::initialize();
  auto io = kj::setupAsyncIo();
  EchoDriver driver(name == "stalls");
  HelperSelf self{name, PRAEFECTUS_RELEASE, Role::DESKTOP, generation};
  auto noPng = [](const PictureInfo&, Bytes) { return kj::Maybe<kj::Array<kj::byte>>(); };
  return serveHelper(*io.lowLevelProvider, io.provider->getTimer(), kj::AutoCloseFd(SOCKET), self,
                     driver, attest::keyedDigest, noPng)
      .wait(io.waitScope);
}

}  // namespace
}  // namespace praefectus

int main(int argc, char* argv[]) {
  if (argc != 5) return EXIT_FAILURE;
  return praefectus::serve(argv[0], strtoull(argv[4], nullptr, 10));
}
