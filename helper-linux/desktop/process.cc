#include "helper-linux/desktop/process.h"

#include <kj/io.h>

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace praefectus::desktop {

kj::Maybe<uint64_t> startFrom(kj::StringPtr stat) {
  constexpr int START_FIELD = 22;
  const char* at = strrchr(stat.cStr(), ')');
  if (at == nullptr) return nullptr;
  ++at;
  // A zombie, and one being removed, have ended; only their parents have not looked yet.
  if (at[0] == ' ' && (at[1] == 'Z' || at[1] == 'X')) return nullptr;
  for (int field = 3; field < START_FIELD; ++field) {
    if (*at != ' ') return nullptr;
    at = strchr(at + 1, ' ');
    if (at == nullptr) return nullptr;
  }
  char* end = nullptr;
  uint64_t start = strtoull(at, &end, 10);
  if (end == at) return nullptr;
  return start;
}

kj::Maybe<uint64_t> startOf(uint32_t pid) {
  int fd = open(kj::str("/proc/", pid, "/stat").cStr(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  kj::AutoCloseFd file(fd);
  char text[1024];
  ssize_t size = ::read(file.get(), text, sizeof(text) - 1);
  if (size <= 0) return nullptr;
  text[size] = 0;
  return startFrom(kj::StringPtr(text, static_cast<size_t>(size)));
}

}  // namespace praefectus::desktop
