#include "helper-linux/x11/png.h"

#include <png.h>

#include <csetjmp>

namespace praefectus::x11 {
namespace {

void append(png_structp png, png_bytep data, png_size_t size) {
  auto& out = *static_cast<kj::Vector<kj::byte>*>(png_get_io_ptr(png));
  if (out.size() + size > bounds::PICTURE_BYTES) png_error(png, "beyond the bound");
  out.addAll(kj::arrayPtr(data, size));
}

void nothingToFlush(png_structp) {}

// libpng leaves by longjmp; nothing with a destructor lives in the frame it may leave.
bool writePng(png_structp png, png_infop info, const kj::byte* pixels, uint32_t width,
              uint32_t height) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  // The quickest setting: interfaces are flat colours and compress well anyway.
  png_set_compression_level(png, 1);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_write_info(png, info);
  png_set_bgr(png);
  png_set_filler(png, 0, PNG_FILLER_AFTER);
  for (uint32_t y = 0; y < height; ++y) png_write_row(png, pixels + size_t{y} * width * 4);
  png_write_end(png, info);
  return true;
}

void sayNothing(png_structp, png_const_charp) {}

// libpng's own would print before it leaves.
[[noreturn]] void leave(png_structp png, png_const_charp) { png_longjmp(png, 1); }

}  // namespace

kj::Maybe<kj::Array<kj::byte>> encodePng(const PictureInfo& picture, Bytes pixels) {
  KJ_REQUIRE(pixels.size() == uint64_t{picture.width} * picture.height * 4);
  kj::Vector<kj::byte> out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, leave, sayNothing);
  if (png == nullptr) return nullptr;
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &out, append, nothingToFlush);
  bool ok = info != nullptr && writePng(png, info, pixels.begin(), picture.width, picture.height);
  png_destroy_write_struct(&png, &info);
  if (!ok) return nullptr;
  return out.releaseAsArray();
}

}  // namespace praefectus::x11
