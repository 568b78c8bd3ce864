#include "supervisor/launch/packet.h"

#include <cerrno>

#include <sys/socket.h>

namespace praefectus::launch {
namespace {

constexpr size_t DESCRIPTORS = 2;

// Room for the descriptors of one packet, aligned as the kernel wants it (cmsg(3)).
union Control {
  char room[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
  cmsghdr align;
};

}  // namespace

Sent sendPacket(int socket, Bytes packet, std::initializer_list<int> descriptors) {
  KJ_REQUIRE(descriptors.size() <= DESCRIPTORS);
  iovec piece{const_cast<kj::byte*>(packet.begin()), packet.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (descriptors.size() > 0) {
    message.msg_control = control.room;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    auto header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    memcpy(CMSG_DATA(header), descriptors.begin(), descriptors.size() * sizeof(int));
  }
  for (;;) {
    if (sendmsg(socket, &message, MSG_NOSIGNAL) >= 0) return Sent::YES;
    if (errno == EINTR) continue;
    return errno == EAGAIN ? Sent::FULL : Sent::CLOSED;
  }
}

Received receivePacket(int socket, kj::ArrayPtr<kj::byte> packet,
                       kj::Vector<kj::AutoCloseFd>& descriptors) {
  iovec piece{packet.begin(), packet.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.room;
  message.msg_controllen = sizeof(control.room);
  ssize_t n;
  do {
    n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno == EAGAIN ? Received::NOTHING : Received::CLOSED;
  if (n == 0) return Received::CLOSED;

  for (auto header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      descriptors.add(kj::AutoCloseFd(fd));
    }
  }
  bool cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  bool whole = !cut && static_cast<size_t>(n) == packet.size();
  return whole ? Received::PACKET : Received::BROKEN;
}

}  // namespace praefectus::launch
