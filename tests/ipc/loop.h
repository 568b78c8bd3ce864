// A KJ event loop, connected sockets, and waits that end.
#pragma once

#include <kj/async-io.h>
#include <kj/debug.h>
#include <kj/io.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace praefectus {

struct SocketPair {
  kj::AutoCloseFd one, other;

  SocketPair() {
    int fds[2];
    KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    one = kj::AutoCloseFd(fds[0]);
    other = kj::AutoCloseFd(fds[1]);
  }
};

struct Loop {
  kj::AsyncIoContext io = kj::setupAsyncIo();

  kj::LowLevelAsyncIoProvider& low() { return *io.lowLevelProvider; }

  // Throws when nothing has come after a time that only a hang can take.
  template <typename T>
  T wait(kj::Promise<T> promise) {
    return io.provider->getTimer()
        .timeoutAfter(30 * kj::SECONDS, kj::mv(promise))
        .wait(io.waitScope);
  }

  // Runs everything that can run now.
  void settle() {
    for (int i = 0; i < 20; ++i) io.waitScope.poll();
  }
};

// The other end of a socket without any protocol: what it sends and what it was sent.
class RawPeer {
 public:
  explicit RawPeer(kj::AutoCloseFd socket) : fd(kj::mv(socket)) {
    KJ_SYSCALL(::fcntl(fd, F_SETFL, O_NONBLOCK));
  }

  void send(kj::ArrayPtr<const kj::byte> bytes) {
    ssize_t sent;
    KJ_SYSCALL(sent = ::write(fd, bytes.begin(), bytes.size()));
    KJ_REQUIRE(static_cast<size_t>(sent) == bytes.size(), "the socket's buffer is full");
  }
  void send(std::initializer_list<uint32_t> words) {
    send(kj::arrayPtr(words.begin(), words.size()).asBytes());
  }

  // What is there to read, which may be nothing.
  kj::Array<kj::byte> receive() {
    auto buffer = kj::heapArray<kj::byte>(4 << 20);
    size_t size = 0;
    ssize_t got;
    while ((got = ::read(fd, buffer.begin() + size, buffer.size() - size)) > 0) {
      size += static_cast<size_t>(got);
    }
    return kj::heapArray(buffer.slice(0, size).asConst());
  }

  void close() { fd = nullptr; }
  int get() const { return fd; }

 private:
  kj::AutoCloseFd fd;
};

}  // namespace praefectus
