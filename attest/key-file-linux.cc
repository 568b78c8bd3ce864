// The two members of SigningKey that touch the file system: one line, "praefectus-key-v1 <hex
// seed>".
#include "attest/keyring.h"

#include <kj/io.h>

#include <sodium.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::attest {
namespace {

constexpr char PREFIX[] = "praefectus-key-v1 ";
constexpr size_t PREFIX_BYTES = sizeof(PREFIX) - 1;
constexpr size_t HEX_BYTES = 2 * crypto_sign_SEEDBYTES;
constexpr size_t LINE_BYTES = PREFIX_BYTES + HEX_BYTES + 1;

// Everything a key passes through on its way from or to the disk; wiped with the scope.
struct Scratch {
  kj::byte seed[crypto_sign_SEEDBYTES];
  char line[LINE_BYTES + 1];
  Scratch() = default;
  ~Scratch() noexcept { sodium_memzero(this, sizeof(*this)); }
  KJ_DISALLOW_COPY(Scratch);
};

void spell(const kj::byte* seed, char* line) {
  memcpy(line, PREFIX, PREFIX_BYTES);
  sodium_bin2hex(line + PREFIX_BYTES, HEX_BYTES + 1, seed, crypto_sign_SEEDBYTES);
  line[LINE_BYTES - 1] = '\n';
}

// Whether the line is exactly what spell writes; the seed is then in `out`.
bool unspell(const char* line, kj::byte* out) {
  size_t length = 0;
  if (sodium_hex2bin(out, crypto_sign_SEEDBYTES, line + PREFIX_BYTES, HEX_BYTES, nullptr, &length,
                     nullptr) != 0 ||
      length != crypto_sign_SEEDBYTES) {
    return false;
  }
  Scratch again;
  spell(out, again.line);
  return sodium_memcmp(again.line, line, LINE_BYTES) == 0;
}

bool isPrivateFile(int fd) {
  struct stat info;
  KJ_SYSCALL(fstat(fd, &info));
  return S_ISREG(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 07777) == 0600;
}

// Reads to the end of the file or of the buffer.
size_t readUpTo(int fd, char* out, size_t size) {
  size_t have = 0;
  while (have < size) {
    ssize_t n;
    KJ_SYSCALL(n = ::read(fd, out + have, size - have));
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  return have;
}

kj::AutoCloseFd openFolderOf(kj::StringPtr path) {
  kj::String folder = kj::str(".");
  KJ_IF_MAYBE (slash, path.findLast('/')) {
    folder = *slash == 0 ? kj::str("/") : kj::heapString(path.slice(0, *slash));
  }
  int fd;
  KJ_SYSCALL(fd = open(folder.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return kj::AutoCloseFd(fd);
}

kj::StringPtr nameIn(kj::StringPtr path) {
  KJ_IF_MAYBE (slash, path.findLast('/')) return path.slice(*slash + 1);
  return path;
}

Refusal foreign(kj::StringPtr why) { return {RefusalCode::LEDGER_FOREIGN, why}; }

}  // namespace

Result<SigningKey> SigningKey::load(kj::StringPtr path) {
  // O_NONBLOCK: a FIFO put there must not hold us up before it is recognised.
  int fd = open(path.cStr(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return foreign("The key file is missing, unreadable or a link.");
  kj::AutoCloseFd file(fd);
  if (!isPrivateFile(file)) {
    return foreign("The key file is not a regular file of this user with mode 0600.");
  }
  Scratch scratch;
  if (readUpTo(file, scratch.line, sizeof(scratch.line)) != LINE_BYTES ||
      !unspell(scratch.line, scratch.seed)) {
    return foreign("The key file does not hold a key.");
  }
  return fromSeed(Bytes(scratch.seed, sizeof(scratch.seed)));
}

void SigningKey::save(kj::StringPtr path) const {
  KJ_REQUIRE(secret != nullptr, "a key that was moved away");
  Scratch scratch;
  crypto_sign_ed25519_sk_to_seed(scratch.seed, secret);
  spell(scratch.seed, scratch.line);

  auto folder = openFolderOf(path);
  auto name = nameIn(path);
  int fd;
  KJ_SYSCALL(
      fd = openat(folder, name.cStr(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  kj::AutoCloseFd file(fd);
  KJ_ON_SCOPE_FAILURE(unlinkat(folder, name.cStr(), 0));
  // The umask may have taken bits away; load wants exactly these.
  KJ_SYSCALL(fchmod(file, 0600));
  kj::FdOutputStream(file.get()).write(scratch.line, LINE_BYTES);
  KJ_SYSCALL(fsync(file));
  KJ_SYSCALL(fsync(folder));
}

}  // namespace praefectus::attest
