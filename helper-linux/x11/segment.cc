#include "helper-linux/x11/segment.h"

#include <kj/debug.h>
#include <kj/io.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace praefectus::x11 {
namespace {

// Sealed at its size: whoever else has the descriptor cannot take the memory away under us.
constexpr int SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

kj::Maybe<kj::AutoCloseFd> newMemory(size_t size) {
  int fd = memfd_create("praefectus-picture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return nullptr;
  kj::AutoCloseFd memory(fd);
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return nullptr;
  if (fcntl(fd, F_ADD_SEALS, SEALS) != 0) return nullptr;
  return kj::mv(memory);
}

}  // namespace

bool Segment::works(const Display& display) {
  Display::Waiting waiting(display);
  auto connection = display.raw();
  auto extension = xcb_get_extension_data(connection, &xcb_shm_id);
  if (extension == nullptr || extension->present == 0) return false;
  Freed version(
      xcb_shm_query_version_reply(connection, xcb_shm_query_version(connection), nullptr));
  return version && (version->major_version > 1 || version->minor_version >= 2);
}

kj::Maybe<kj::Own<Segment>> Segment::make(kj::Own<Display> display, size_t size) {
  KJ_IF_MAYBE (fd, newMemory(size)) {
    void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
    if (mapped == MAP_FAILED) return nullptr;
    auto connection = display->raw();
    auto out = kj::refcounted<Segment>(kj::mv(display), static_cast<kj::byte*>(mapped), size);
    // xcb closes the descriptor that it sends.
    int sent = fcntl(fd->get(), F_DUPFD_CLOEXEC, 0);
    if (sent < 0) return nullptr;
    Freed refused(
        xcb_request_check(connection, xcb_shm_attach_fd_checked(connection, out->id(), sent, 0)));
    if (refused || xcb_connection_has_error(connection) != 0) return nullptr;
    return kj::mv(out);
  }
  return nullptr;
}

Segment::Segment(kj::Own<Display> display, kj::byte* memory, size_t size)
    : display(kj::mv(display)),
      memory(memory),
      bytes(size),
      name(xcb_generate_id(this->display->raw())) {}

// The server learns of it with the next request.
Segment::~Segment() noexcept(false) {
  xcb_shm_detach(display->raw(), name);
  KJ_SYSCALL(munmap(memory, bytes));
}

kj::Array<kj::byte> Segment::hold(size_t size) {
  KJ_REQUIRE(size <= bytes);
  return kj::arrayPtr(memory, size).attach(kj::addRef(*this));
}

}  // namespace praefectus::x11
