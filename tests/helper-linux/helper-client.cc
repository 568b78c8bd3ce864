#include "tests/helper-linux/helper-client.h"

#include "ipc/desktop.h"
#include "ipc/picture.h"

#include <kj/debug.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace praefectus::tests {
namespace {

constexpr kj::Duration PATIENCE = 20 * kj::SECONDS;
constexpr int SOCKET = 3;
constexpr kj::StringPtr CAPABILITIES[] = {
    "list"_kj,        "observe"_kj,       "picture"_kj,         "screenshot"_kj,
    "zoom"_kj,        "invoke"_kj,        "set_value"_kj,       "proof_value"_kj,
    "proof_state"_kj, "proof_appears"_kj, "proof_disappears"_kj};

pid_t start(int socket, kj::ArrayPtr<const kj::String> environment) {
  kj::Vector<char*> variables;
  for (auto& each : environment) variables.add(const_cast<char*>(each.cStr()));
  variables.add(nullptr);
  const char* path = PRAEFECTUS_BIN "/praefectus-desktop-linux";
  const char* arguments[] = {
      "praefectus-desktop-linux", "--role", "desktop", "--generation", "7", nullptr};
  pid_t pid = fork();
  if (pid != 0) return pid;
  // Parked above 3 first: dup2 to itself would keep close-on-exec.
  int parked = fcntl(socket, F_DUPFD, 10);
  dup2(parked, SOCKET);
  close(parked);
  // KJ ignores SIGPIPE; the helper starts as the launcher would start it.
  signal(SIGPIPE, SIG_DFL);
  execve(path, const_cast<char**>(arguments), variables.begin());
  _exit(127);
}

// As the supervisor fetches it.
kj::Promise<kj::Array<kj::byte>> pngOf(wire::Picture::Client picture, const PictureInfo& info) {
  return fetchPng(kj::mv(picture), info, [](Bytes bytes) { return attest::digestOf(bytes); })
      .then([](kj::Maybe<Png>&& png) {
        return kj::mv(KJ_REQUIRE_NONNULL(png, "there is no PNG").bytes);
      });
}

Performed copyOf(wire::PerformResult::Reader result) {
  Performed out;
  out.message = kj::heap<capnp::MallocMessageBuilder>();
  if (result.isRefusal()) {
    out.refusal = result.getRefusal().getCode();
  } else {
    out.message->setRoot(result.getFacts());
  }
  return out;
}

}  // namespace

uint32_t Observed::find(kj::StringPtr role, kj::StringPtr name, size_t nth) const {
  for (size_t i = 0; i < seen.elements.size(); ++i) {
    if (seen.elements[i].role == role && seen.elements[i].name == name && nth-- == 0) {
      return static_cast<uint32_t>(i);
    }
  }
  KJ_FAIL_REQUIRE("no such element", role, name);
}

bool Observed::has(kj::StringPtr role, kj::StringPtr name) const {
  for (auto& element : seen.elements) {
    if (element.role == role && element.name == name) return true;
  }
  return false;
}

HelperClient::HelperClient(kj::ArrayPtr<const kj::String> environment) : io(kj::setupAsyncIo()) {
  attest::initialize();
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
  process = start(theirs, environment);
  KJ_REQUIRE(process > 0);
  channel = kj::heap<Channel>(*io.lowLevelProvider, kj::mv(ours));
  helper = channel->bootstrap().castAs<wire::Helper>();
}

HelperClient::~HelperClient() noexcept(false) {
  if (process > 0) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

template <typename T>
T HelperClient::within(kj::Promise<T> promise) {
  return io.provider->getTimer().timeoutAfter(PATIENCE, kj::mv(promise)).wait(io.waitScope);
}

kj::Vector<Capability> HelperClient::hello() {
  auto request = KJ_ASSERT_NONNULL(helper).helloRequest();
  request.setProtocol(wire::PROTOCOL_VERSION);
  auto sent = request.send();
  return within(sent.then([](capnp::Response<wire::Helper::HelloResults>&& response) {
    kj::Vector<Capability> out;
    for (auto each : response.getHello().getCapabilities()) {
      // A Capability's name is a literal, so it is one of ours that is kept.
      auto name = std::find(std::begin(CAPABILITIES), std::end(CAPABILITIES), each.getName());
      KJ_REQUIRE(name != std::end(CAPABILITIES), "a capability of no name", each.getName());
      out.add(Capability{*name, each.getAvailable(), each.getWhy()});
    }
    EXPECT_EQ(response.getHello().getGeneration(), 7u);
    return out;
  }));
}

Result<Desktop> HelperClient::list() {
  auto sent = KJ_ASSERT_NONNULL(helper).listRequest().send();
  return within(
      sent.then([](capnp::Response<wire::Helper::ListResults>&& response) -> Result<Desktop> {
        auto result = response.getResult();
        if (result.isRefusal()) return Refusal{result.getRefusal().getCode(), ""_kj};
        return read(result.getDesktop());
      }));
}

Result<Observed> HelperClient::observe(const WindowRef& window, bool picture) {
  ObserveAct act;
  act.picture = picture;
  return observe(window, act);
}

Result<Observed> HelperClient::observeBelow(const Observed& from, uint32_t element, uint32_t first,
                                            uint32_t elements) {
  ObserveAct act;
  auto& frame = from.seen.frame;
  act.below = Below{frame.id, frame.epoch, element, from.at(element).digest, first};
  act.elements = elements;
  return observe(frame.window, act);
}

Result<Observed> HelperClient::observe(const WindowRef& window, const ObserveAct& act) {
  auto request = KJ_ASSERT_NONNULL(helper).observeRequest();
  auto frame = attest::random<16>();
  write(window, request.initWindow());
  request.setFrame(bytesOf(frame));
  request.setEpoch(++epoch);
  write(act, request.initRequest());
  auto sent = request.send();
  return within(sent.then([](capnp::Response<wire::Helper::ObserveResults>&& response)
                              -> kj::Promise<Result<Observed>> {
    auto result = response.getResult();
    if (result.isRefusal()) {
      return Result<Observed>(Refusal{result.getRefusal().getCode(), ""_kj});
    }
    Observed out;
    out.seen = read(result.getObservation());
    KJ_IF_MAYBE (info, out.seen.picture) {
      return pngOf(response.getPicture(), *info)
          .then([out = kj::mv(out)](kj::Array<kj::byte>&& png) mutable -> Result<Observed> {
            out.png = kj::mv(png);
            return kj::mv(out);
          });
    }
    KJ_REQUIRE(!response.hasPicture());
    return Result<Observed>(kj::mv(out));
  }));
}

Result<Captured> HelperClient::capture(Action action) {
  action.blind = attest::random<32>();
  action.timeoutMs = 15'000;
  auto request = KJ_ASSERT_NONNULL(helper).captureRequest();
  write(action, request.initAction());
  auto sent = request.send();
  return within(sent.then([](capnp::Response<wire::Helper::CaptureResults>&& response)
                              -> kj::Promise<Result<Captured>> {
    auto result = response.getResult();
    if (result.isRefusal()) {
      return Result<Captured>(Refusal{result.getRefusal().getCode(), ""_kj});
    }
    auto info = read(result.getPicture());
    return pngOf(response.getPicture(), info).then([info](kj::Array<kj::byte>&& png) {
      return Result<Captured>(Captured{info, kj::mv(png)});
    });
  }));
}

Result<Captured> HelperClient::screenshot(Target of) {
  Action action;
  action.target = kj::mv(of);
  action.act = ScreenshotAct();
  return capture(kj::mv(action));
}

Result<Captured> HelperClient::zoom(const Observed& from, int32_t x, int32_t y, ZoomAct to) {
  auto& frame = from.seen.frame;
  Action action;
  action.target = PointTarget{frame.window, frame.id, frame.epoch, x, y};
  action.act = to;
  return capture(kj::mv(action));
}

ElementTarget HelperClient::targetOf(const Observed& from, uint32_t element) {
  ElementTarget out;
  out.window = from.seen.frame.window;
  out.frame = from.seen.frame.id;
  out.epoch = from.seen.frame.epoch;
  out.element = element;
  out.digest = from.at(element).digest;
  return out;
}

kj::Maybe<RefusalCode> HelperClient::prepare(Action action) {
  action.blind = attest::random<32>();
  action.timeoutMs = 15'000;
  nonce = attest::random<32>();
  auto request = KJ_ASSERT_NONNULL(helper).prepareRequest();
  write(action, request.initAction());
  request.setNonce(bytesOf(nonce));
  auto sent = request.send();
  return within(sent.then(
      [this](capnp::Response<wire::Helper::PrepareResults>&& response) -> kj::Maybe<RefusalCode> {
        auto result = response.getResult();
        if (result.isRefusal()) return result.getRefusal().getCode();
        prepared = response.getPrepared();
        return nullptr;
      }));
}

Action HelperClient::acting(const ElementTarget& target, Act act, Verification::Content proof) {
  Action action;
  action.target = target;
  action.act = kj::mv(act);
  action.verification.content = kj::mv(proof);
  return action;
}

kj::Maybe<RefusalCode> HelperClient::prepare(const ElementTarget& target, kj::StringPtr name) {
  return prepare(acting(target, InvokeRequest{kj::str(name)}, StrongestProof()));
}

kj::Maybe<RefusalCode> HelperClient::prepareInvoke(const Observed& from, uint32_t element,
                                                   kj::StringPtr name) {
  return prepare(targetOf(from, element), name);
}

kj::Maybe<RefusalCode> HelperClient::prepareSet(const Observed& from, uint32_t element,
                                                kj::StringPtr text) {
  return prepare(acting(targetOf(from, element), SetValueRequest{kj::str(text)}, StrongestProof()));
}

void HelperClient::beginPerform() {
  auto sent = KJ_REQUIRE_NONNULL(prepared, "nothing was prepared").performRequest().send();
  performing = sent.then([](capnp::Response<wire::Prepared::PerformResults>&& response) {
    return copyOf(response.getResult());
  });
  turn();
}

bool HelperClient::isDone() { return KJ_REQUIRE_NONNULL(performing).poll(io.waitScope); }

Performed HelperClient::finish() {
  auto promise = kj::mv(KJ_REQUIRE_NONNULL(performing));
  performing = nullptr;
  return within(kj::mv(promise));
}

Performed HelperClient::perform() {
  beginPerform();
  return finish();
}

Performed HelperClient::invoke(const Observed& from, uint32_t element, kj::StringPtr action) {
  return carryOut(
      acting(targetOf(from, element), InvokeRequest{kj::str(action)}, StrongestProof()));
}

Performed HelperClient::set(const Observed& from, uint32_t element, kj::StringPtr text) {
  return carryOut(
      acting(targetOf(from, element), SetValueRequest{kj::str(text)}, StrongestProof()));
}

Performed HelperClient::carryOut(Action action) {
  auto refused = prepare(kj::mv(action));
  KJ_IF_MAYBE (code, refused) return Performed{*code, {}};
  return perform();
}

int HelperClient::leave() {
  prepared = nullptr;
  helper = nullptr;
  channel = nullptr;
  int status = 0;
  KJ_SYSCALL(waitpid(process, &status, 0));
  process = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace praefectus::tests
