#include "ipc/channel.h"

#include <sys/socket.h>

namespace praefectus {
namespace {

bool optionIs(int fd, int name, int wanted) {
  int value = 0;
  socklen_t size = sizeof(value);
  return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 && value == wanted;
}

}  // namespace

Result<Peer> peerOf(int fd) {
  Refusal refusal{RefusalCode::MALFORMED, "The descriptor is not a connected unix stream socket."};
  if (!optionIs(fd, SO_DOMAIN, AF_UNIX) || !optionIs(fd, SO_TYPE, SOCK_STREAM)) return refusal;
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return refusal;
  // An unconnected socket answers too, with pid 0 and uid -1.
  if (credentials.pid <= 0) return refusal;
  return Peer{static_cast<uint32_t>(credentials.pid), credentials.uid};
}

}  // namespace praefectus
