#include "attest/image.h"
#include "attest/sealed-copy.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::attest {
namespace {

// From linux/memfd.h and linux/fcntl.h of 6.3; Debian 12's own headers and kernel do not know them.
constexpr unsigned EXECUTABLE_MEMORY = 0x0010;  // MFD_EXEC
constexpr int SEAL_EXECUTABLE = 0x0020;         // F_SEAL_EXEC

constexpr size_t PIECE = 256u << 10;

Refusal unavailable(kj::StringPtr why) { return {RefusalCode::SERVICE_UNAVAILABLE, why}; }

struct OpenFile {
  kj::AutoCloseFd fd;
  uint64_t size;
};

Result<OpenFile> openRegular(kj::StringPtr path, uint64_t limit) {
  // O_NONBLOCK: a FIFO put there must not hold us up before it is recognised.
  int fd = open(path.cStr(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return unavailable("The helper's file or manifest cannot be opened.");
  kj::AutoCloseFd file(fd);
  struct stat info;
  KJ_SYSCALL(fstat(file, &info));
  auto size = static_cast<uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || size == 0 || size > limit) {
    return unavailable("The helper's file or manifest is not a file of a sensible size.");
  }
  return OpenFile{kj::mv(file), size};
}

// Reads exactly `out`, less when the file ends before. A read error is an early end.
size_t readFully(int fd, kj::ArrayPtr<kj::byte> out) {
  size_t have = 0;
  while (have < out.size()) {
    ssize_t n = ::read(fd, out.begin() + have, out.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    have += static_cast<size_t>(n);
  }
  return have;
}

kj::AutoCloseFd memoryFile() {
  // The name is only seen in /proc. Kernels before 6.3 know no MFD_EXEC and make every memory file
  // executable; later ones may be told not to (vm.memfd_noexec) unless asked.
  constexpr char NAME[] = "praefectus-helper";
  int fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | EXECUTABLE_MEMORY);
  if (fd < 0 && errno == EINVAL) fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  KJ_SYSCALL(fd);
  return kj::AutoCloseFd(fd);
}

// The mode first, where the kernel can seal it: after F_SEAL_SEAL no seal can be added.
void sealAll(int fd) {
  constexpr int CONTENTS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (fcntl(fd, F_ADD_SEALS, CONTENTS | SEAL_EXECUTABLE) < 0) {
    KJ_ASSERT(errno == EINVAL, errno);
    KJ_SYSCALL(fcntl(fd, F_ADD_SEALS, CONTENTS));
  }
  KJ_SYSCALL(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
  int seals;
  KJ_SYSCALL(seals = fcntl(fd, F_GET_SEALS));
  constexpr int NEEDED = CONTENTS | F_SEAL_SEAL;
  KJ_ASSERT((seals & NEEDED) == NEEDED);
}

class Unmap final : public kj::ArrayDisposer {
 public:
  static const Unmap INSTANCE;

 private:
  void disposeImpl(void* first, size_t elementSize, size_t count, size_t,
                   void (*)(void*)) const override {
    munmap(first, elementSize * count);
  }
};
const Unmap Unmap::INSTANCE;

kj::Array<const kj::byte> view(int fd, size_t size) {
  void* at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (at == MAP_FAILED) KJ_FAIL_SYSCALL("mmap", errno);
  return kj::Array<const kj::byte>(static_cast<const kj::byte*>(at), size, Unmap::INSTANCE);
}

}  // namespace

Result<SealedCopy> sealedCopy(kj::StringPtr path, uint64_t limit) {
  auto file = openRegular(path, limit);
  if (!file.ok()) return file.refusal();
  auto memory = memoryFile();
  auto piece = kj::heapArray<kj::byte>(PIECE);
  // The file may change while it is read; what counts is what arrives in memory, up to the limit.
  uint64_t total = 0;
  for (;;) {
    size_t n = readFully(file->fd, piece);
    total += n;
    if (total > limit) return unavailable("The helper's file grew beyond its limit.");
    if (n > 0) kj::FdOutputStream(memory.get()).write(piece.begin(), n);
    if (n < PIECE) break;
  }
  if (total == 0) return unavailable("The helper's file is empty.");
  sealAll(memory);
  auto contents = view(memory, total);
  return SealedCopy{kj::mv(memory), kj::mv(contents)};
}

Result<kj::Array<kj::byte>> smallFile(kj::StringPtr path, uint64_t limit) {
  auto file = openRegular(path, limit);
  if (!file.ok()) return file.refusal();
  auto out = kj::heapArray<kj::byte>(file->size);
  if (readFully(file->fd, out) != out.size()) {
    return unavailable("The helper's manifest cannot be read.");
  }
  return kj::mv(out);
}

kj::StringPtr platform() { return "linux-" PRAEFECTUS_MACHINE ""_kj; }

}  // namespace praefectus::attest
