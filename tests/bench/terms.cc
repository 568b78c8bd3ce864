#include "tests/bench/terms.h"

#include <fcntl.h>
#include <unistd.h>

namespace praefectus::bench {
namespace {

constexpr size_t BLOCK = 4096, BLOCKS = 1024;

}  // namespace

Overwriting::Overwriting(kj::StringPtr path) {
  int fd;
  KJ_SYSCALL(fd = ::open(path.cStr(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), path);
  file = kj::AutoCloseFd(fd);
  auto zeros = kj::heapArray<kj::byte>(BLOCK * BLOCKS);
  memset(zeros.begin(), 0, zeros.size());
  kj::FdOutputStream(fd).write(zeros.begin(), zeros.size());
  KJ_SYSCALL(fsync(fd));
}

void Overwriting::once() {
  kj::byte block[BLOCK];
  memset(block, 0x5a, sizeof(block));
  ssize_t written;
  KJ_SYSCALL(written = pwrite(file, block, sizeof(block), next));
  KJ_ASSERT(written == BLOCK);
  KJ_SYSCALL(fdatasync(file));
  next = (next + static_cast<off_t>(BLOCK)) % static_cast<off_t>(BLOCK * BLOCKS);
}

OtherThread::OtherThread() : thread(kj::heap<kj::Thread>([this]() { run(); })) {}

OtherThread::~OtherThread() noexcept(false) {
  queue.lockExclusive()->closing = true;
  thread = nullptr;
}

kj::Promise<void> OtherThread::exchange() {
  auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
  queue.lockExclusive()->waiting.add(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

void OtherThread::run() {
  for (;;) {
    auto taken = queue.when([](const Queue& q) { return q.closing || !q.waiting.empty(); },
                            [](Queue& q) { return kj::mv(q.waiting); });
    if (taken.empty()) return;
    for (auto& each : taken) each->fulfill();
  }
}

}  // namespace praefectus::bench
