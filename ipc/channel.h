// A Cap'n Proto connection on an inherited socket, with our bounds, and the two things that RPC
// alone cannot tell: how many bytes the kernel has taken from us, and who the peer is.
#pragma once

#include "ipc/words.h"

#include <capnp/rpc-twoparty.h>
#include <capnp/schema.h>
#include <kj/async-io.h>
#include <kj/io.h>

namespace praefectus {

// Who is on the other end, from the kernel (SO_PEERCRED: the credentials at the time the socket
// pair was made or connected). Source: unix(7).
struct Peer {
  uint32_t pid = 0;
  uint32_t uid = 0;
};

// Refuses: MALFORMED when the descriptor is not a unix stream socket.
Result<Peer> peerOf(int fd);

// A stream that counts. `written()` is the number of bytes the kernel has accepted so far, or a
// larger one while a write is under way: when it has not moved across a call, no byte of that call
// was sent.
class CountingStream final : public kj::AsyncIoStream {
 public:
  explicit CountingStream(kj::Own<kj::AsyncIoStream> inner);

  uint64_t written() const;

  kj::Promise<size_t> tryRead(void* buffer, size_t minBytes, size_t maxBytes) override;
  kj::Promise<void> write(const void* buffer, size_t size) override;
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override;
  kj::Promise<void> whenWriteDisconnected() override;
  void shutdownWrite() override;
  void abortRead() override;

 private:
  kj::Own<kj::AsyncIoStream> inner;
  uint64_t handed = 0;
};

// One end of a connection. Owns the descriptor.
class Channel {
 public:
  // Serves `bootstrap` to the peer.
  Channel(kj::LowLevelAsyncIoProvider& io, kj::AutoCloseFd socket,
          capnp::Capability::Client bootstrap);
  // Uses the peer's bootstrap.
  Channel(kj::LowLevelAsyncIoProvider& io, kj::AutoCloseFd socket);
  ~Channel() noexcept(false);
  KJ_DISALLOW_COPY(Channel);

  capnp::Capability::Client bootstrap();
  // Resolves when the peer has gone, after everything readable was read and every answer among it
  // was delivered; or as soon as the peer sent what is no message, or one beyond
  // bounds::MESSAGE_BYTES.
  kj::Promise<void> onDisconnect();
  // After onDisconnect: whether the peer closed its end or died, rather than broke the protocol.
  bool peerLeft() const;
  // Bytes handed to the kernel since the beginning; never falls. When it has not moved across a
  // call that failed with the connection, no byte of that call was sent, nor will be: what waits to
  // be written is dropped once the connection is lost.
  uint64_t written() const;

 private:
  struct Parts;
  kj::Own<Parts> parts;
};

// A server whose every call is checked by the strict reader before it reaches the method. A call
// that fails the check ends in an exception whose description starts with the refusal's name; so
// does one of an unknown method. `Base` is an Interface::Server.
//
//   class HostPort final : public Strict<wire::Supervisor> { ... };
template <typename Interface>
class Strict : public Interface::Server {
 public:
  capnp::Capability::Server::DispatchCallResult dispatchCall(
      uint64_t interfaceId, uint16_t methodId,
      capnp::CallContext<capnp::AnyPointer, capnp::AnyPointer> context) override;
};

// Throws a failed exception "unknown_field: …" / "malformed: …" when the params of this call do not
// pass. Used by Strict.
void requireStrictCall(capnp::InterfaceSchema schema, uint64_t interfaceId, uint16_t methodId,
                       capnp::AnyPointer::Reader params);

template <typename Interface>
capnp::Capability::Server::DispatchCallResult Strict<Interface>::dispatchCall(
    uint64_t interfaceId, uint16_t methodId,
    capnp::CallContext<capnp::AnyPointer, capnp::AnyPointer> context) {
  requireStrictCall(capnp::Schema::from<Interface>(), interfaceId, methodId, context.getParams());
  return Interface::Server::dispatchCall(interfaceId, methodId, context);
}

}  // namespace praefectus
