// A supervisor's end of helper.capnp for tests: the shipped helper over a socket pair, with the
// environment that the test gives it. Calls wait for their answer, at most 20 s each.
#pragma once

#include "attest/digest.h"
#include "ipc/action.h"
#include "ipc/channel.h"
#include "ipc/schema/helper.capnp.h"

#include <kj/async-io.h>

#include <sys/types.h>

namespace praefectus::tests {

// What one perform gave: facts, or the refusal in their place.
struct Performed {
  kj::Maybe<RefusalCode> refusal;
  kj::Own<capnp::MallocMessageBuilder> message;
  wire::Facts::Reader facts() { return message->getRoot<wire::Facts>().asReader(); }
};

struct Observed {
  Observation seen;
  kj::Array<kj::byte> png;
  kj::Own<capnp::MallocMessageBuilder> message;

  // The one element with this role and name; fails the test when there is none. `nth` picks among
  // equals, from 0.
  uint32_t find(kj::StringPtr role, kj::StringPtr name, size_t nth = 0) const;
  bool has(kj::StringPtr role, kj::StringPtr name) const;
  const Element& at(uint32_t index) const { return seen.elements[index]; }
};

// A picture by itself, as PNG.
struct Captured {
  PictureInfo info;
  kj::Array<kj::byte> png;
};

class HelperClient {
 public:
  // `environment` as "NAME=value" is the whole of the helper's.
  explicit HelperClient(kj::ArrayPtr<const kj::String> environment);
  ~HelperClient() noexcept(false);
  KJ_DISALLOW_COPY(HelperClient);

  kj::Vector<Capability> hello();
  Result<Desktop> list();
  Result<Observed> observe(const WindowRef& window, bool picture = false);
  Result<Observed> observe(const WindowRef& window, const ObserveAct& request);
  // What is below an element of the given observation, from its child `first` on.
  Result<Observed> observeBelow(const Observed& from, uint32_t element, uint32_t first = 0,
                                uint32_t elements = bounds::ELEMENTS);

  // Any screenshot or zoom; its blind and timeout are filled in.
  Result<Captured> capture(Action action);
  Result<Captured> screenshot(Target of);
  // From the point (x, y) of the observation's window to the other corner.
  Result<Captured> zoom(const Observed& from, int32_t x, int32_t y, ZoomAct to);

  // Prepares on an element of the given observation. Keeps what was prepared for `perform`.
  kj::Maybe<RefusalCode> prepareInvoke(const Observed& from, uint32_t element,
                                       kj::StringPtr action);
  kj::Maybe<RefusalCode> prepareSet(const Observed& from, uint32_t element, kj::StringPtr text);
  kj::Maybe<RefusalCode> prepare(const ElementTarget& target, kj::StringPtr action);
  // Any action; its blind and timeout are filled in.
  kj::Maybe<RefusalCode> prepare(Action action);
  Performed perform();
  // Sends `perform` and does not wait; `finish` does.
  void beginPerform();
  bool isDone();
  Performed finish();

  Performed invoke(const Observed& from, uint32_t element, kj::StringPtr action);
  Performed set(const Observed& from, uint32_t element, kj::StringPtr text);
  Performed carryOut(Action action);

  static Action acting(const ElementTarget& target, Act act, Verification::Content proof);
  static ElementTarget targetOf(const Observed& from, uint32_t element);

  // The hash that facts hold for a value, by the nonce of the last prepare.
  Hash valueHash(const Value& value) const {
    return attest::keyedDigest(bytesOf(nonce), valueBytes(value));
  }
  pid_t pid() const { return process; }
  // Closes the socket and waits for the helper to end; its exit code.
  int leave();
  // Lets the event loop run what it has.
  void turn() { io.waitScope.poll(); }

 private:
  template <typename T>
  T within(kj::Promise<T> promise);

  kj::AsyncIoContext io;
  pid_t process = -1;
  kj::Own<Channel> channel;
  kj::Maybe<wire::Helper::Client> helper;
  kj::Maybe<wire::Prepared::Client> prepared;
  kj::Maybe<kj::Promise<Performed>> performing;
  Hash nonce{};
  uint64_t epoch = 0;
};

}  // namespace praefectus::tests
