#include "supervisor/cli/annotation.h"

#include <kj/debug.h>

#include <png.h>

#include <algorithm>

namespace praefectus::cli {
namespace {

struct Colour {
  kj::byte red, green, blue;
};
constexpr Colour WHITE = {255, 255, 255};
// Dark enough for white digits, and each unlike the next.
constexpr Colour COLOURS[] = {{200, 30, 30}, {20, 90, 200}, {0, 120, 60}, {150, 40, 160},
                              {190, 90, 0},  {0, 110, 130}, {90, 70, 20}, {200, 20, 110}};

// Five columns by seven rows; the highest of the five bits is the left.
constexpr int DIGIT_WIDTH = 5, DIGIT_HEIGHT = 7;
constexpr kj::byte DIGITS[10][DIGIT_HEIGHT] = {
    {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}, {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e},
    {0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f}, {0x1f, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0e},
    {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}, {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e},
    {0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e}, {0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08},
    {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e}, {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c}};

// A box in the picture's pixels, its right and bottom edges beside it.
struct Box {
  int left, top, right, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

class Canvas {
 public:
  explicit Canvas(Bytes png) {
    image.version = PNG_IMAGE_VERSION;
    KJ_REQUIRE(png_image_begin_read_from_memory(&image, png.begin(), png.size()) != 0,
               "the picture is not a PNG");
    KJ_DEFER(png_image_free(&image));
    image.format = PNG_FORMAT_RGB;
    pixels = kj::heapArray<kj::byte>(PNG_IMAGE_SIZE(image));
    KJ_REQUIRE(png_image_finish_read(&image, nullptr, pixels.begin(), 0, nullptr) != 0,
               "the picture is not a whole PNG");
  }

  Box whole() const {
    return {0, 0, static_cast<int>(image.width), static_cast<int>(image.height)};
  }

  void fill(Box box, Colour colour) {
    auto all = whole();
    for (int y = std::max(box.top, 0); y < std::min(box.bottom, all.bottom); ++y) {
      for (int x = std::max(box.left, 0); x < std::min(box.right, all.right); ++x) {
        auto at = pixels.begin() +
                  (size_t{image.width} * static_cast<size_t>(y) + static_cast<size_t>(x)) * 3;
        at[0] = colour.red;
        at[1] = colour.green;
        at[2] = colour.blue;
      }
    }
  }

  kj::Array<kj::byte> encode() {
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    auto out = kj::heapArray<kj::byte>(size);
    KJ_REQUIRE(
        png_image_write_to_memory(&image, out.begin(), &size, 0, pixels.begin(), 0, nullptr) != 0,
        "the picture could not be written");
    return kj::heapArray(out.slice(0, size));
  }

 private:
  png_image image{};
  kj::Array<kj::byte> pixels;
};

bool canBeActedOn(const Element& element) {
  return element.shows && (element.actions.size() > 0 || element.settable || element.secure);
}

class Annotator {
 public:
  Annotator(Canvas& canvas, const PictureInfo& picture) : canvas(canvas), picture(picture) {}

  void drawBox(const Rect& bounds, Colour colour) {
    auto box = boxOf(bounds);
    canvas.fill({box.left, box.top, box.right, box.top + 1}, colour);
    canvas.fill({box.left, box.bottom - 1, box.right, box.bottom}, colour);
    canvas.fill({box.left, box.top, box.left + 1, box.bottom}, colour);
    canvas.fill({box.right - 1, box.top, box.right, box.bottom}, colour);
  }

  void drawNumber(const Rect& bounds, size_t number, Colour colour) {
    auto digits = kj::str(number);
    auto box = boxOf(bounds);
    // Large where there is room beside it: a number should not hide what the element says.
    auto large = labelFor(digits.size(), 2);
    bool roomy = box.right - box.left >= 4 * large.width && box.bottom - box.top >= large.height;
    auto label = roomy ? large : labelFor(digits.size(), 1);
    auto place = placeFor(box, label);
    taken.add(place);
    canvas.fill(place, colour);
    int x = place.left + label.scale;
    for (char digit : digits) {
      draw(DIGITS[digit - '0'], x, place.top + label.scale, label.scale);
      x += (DIGIT_WIDTH + 1) * label.scale;
    }
  }

 private:
  // A row of digits with a margin around and a gap between them.
  struct Label {
    int scale, width, height;
  };
  static Label labelFor(size_t digits, int scale) {
    int columns = static_cast<int>(digits) * (DIGIT_WIDTH + 1) + 1;
    return {scale, columns * scale, (DIGIT_HEIGHT + 2) * scale};
  }

  Box boxOf(const Rect& bounds) const {
    int left = bounds.x - picture.x, top = bounds.y - picture.y;
    return {left, top, left + static_cast<int>(bounds.width),
            top + static_cast<int>(bounds.height)};
  }

  // In a corner of the element, or beside it, where it hides no other number; else in its corner.
  Box placeFor(const Box& box, const Label& label) const {
    auto [scale, width, height] = label;
    auto all = canvas.whole();
    const std::pair<int, int> corners[] = {
        {box.left, box.top},
        {box.right - width, box.top},
        {box.left, box.bottom - height},
        {box.right - width, box.bottom - height},
        {box.left, box.top - height},
        {box.left, box.bottom},
        {box.right, box.top},
        {box.left - width, box.top},
    };
    for (auto [left, top] : corners) {
      Box place{left, top, left + width, top + height};
      bool inside = left >= 0 && top >= 0 && place.right <= all.right && place.bottom <= all.bottom;
      if (inside && isFree(place)) return place;
    }
    int left = std::clamp(box.left, 0, std::max(0, all.right - width));
    int top = std::clamp(box.top, 0, std::max(0, all.bottom - height));
    return {left, top, left + width, top + height};
  }

  bool isFree(const Box& place) const {
    return std::none_of(taken.begin(), taken.end(),
                        [&](const Box& other) { return place.meets(other); });
  }

  void draw(const kj::byte (&digit)[DIGIT_HEIGHT], int x, int y, int scale) {
    for (int row = 0; row < DIGIT_HEIGHT; ++row) {
      for (int column = 0; column < DIGIT_WIDTH; ++column) {
        if ((digit[row] >> (DIGIT_WIDTH - 1 - column) & 1) == 0) continue;
        int left = x + column * scale, top = y + row * scale;
        canvas.fill({left, top, left + scale, top + scale}, WHITE);
      }
    }
  }

  Canvas& canvas;
  const PictureInfo& picture;
  kj::Vector<Box> taken;
};

}  // namespace

kj::Array<kj::byte> annotated(Bytes png, const Observation& seen) {
  Canvas canvas(png);
  Annotator annotator(canvas, KJ_REQUIRE_NONNULL(seen.picture));
  // Every box first, so that none is drawn across a number.
  for (bool numbers : {false, true}) {
    for (size_t i = 0; i < seen.elements.size(); ++i) {
      auto& element = seen.elements[i];
      if (!canBeActedOn(element)) continue;
      auto colour = COLOURS[i % std::size(COLOURS)];
      KJ_IF_MAYBE (bounds, element.bounds) {
        if (numbers) {
          annotator.drawNumber(*bounds, i, colour);
        } else {
          annotator.drawBox(*bounds, colour);
        }
      }
    }
  }
  return canvas.encode();
}

}  // namespace praefectus::cli
