// machine-id(5), and boot_id of random(4).
#include "supervisor/ledger/place.h"

#include <kj/io.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::ledger {
namespace {

constexpr kj::StringPtr MACHINE_FILE = "/etc/machine-id"_kj;
constexpr kj::StringPtr BOOT_FILE = "/proc/sys/kernel/random/boot_id"_kj;
constexpr size_t NAME_BYTES = 128;

// The first line; nothing when there is no such file.
kj::Maybe<kj::String> firstLine(kj::StringPtr path) {
  int fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  kj::FdInputStream input{kj::AutoCloseFd(fd)};
  char text[NAME_BYTES];
  size_t size = input.tryRead(text, sizeof(text), sizeof(text));
  auto end = static_cast<const char*>(memchr(text, '\n', size));
  return kj::heapString(text, end == nullptr ? size : static_cast<size_t>(end - text));
}

Hash hashed(kj::StringPtr name, const LedgerId& id) {
  return attest::keyedDigest(bytesOf(id.key), name.asBytes());
}

}  // namespace

Machine thisMachine() {
  Machine out;
  KJ_IF_MAYBE (name, firstLine(MACHINE_FILE)) out.name = kj::mv(*name);
  out.boot = KJ_REQUIRE_NONNULL(firstLine(BOOT_FILE), "the kernel does not name its boot");
  return out;
}

attest::LedgerPlace placeOf(kj::StringPtr file, const LedgerId& id, const Machine& machine) {
  struct stat info;
  KJ_SYSCALL(stat(file.cStr(), &info));
  return {info.st_dev, info.st_ino, hashed(machine.name, id)};
}

attest::ClockReading readingOf(const Moment& now, const LedgerId& id, const Machine& machine) {
  return {now.wallMs, now.bootMs, hashed(machine.boot, id)};
}

}  // namespace praefectus::ledger
