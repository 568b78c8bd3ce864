// The pictures that the command line saves: which window, which part of it, and what is drawn on
// it.
#include "attest/digest.h"
#include "supervisor/cli/private-desktop.h"
#include "tests/cli/program.h"

#include <gtest/gtest.h>

#include <png.h>

#include <array>
#include <cstring>

namespace praefectus::tests {
namespace {

using Pixel = std::array<uint8_t, 4>;  // Blue, green, red, 0.

struct Image {
  uint32_t width = 0, height = 0;
  std::vector<Pixel> pixels;
  const Pixel& at(int x, int y) const {
    return pixels[static_cast<size_t>(y) * width + static_cast<size_t>(x)];
  }
  std::string digest() const {
    auto bytes = kj::arrayPtr(pixels[0].data(), pixels.size() * 4);
    return hex(bytesOf(attest::digestOf(bytes))).cStr();
  }
};

Image imageIn(const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  Image out;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) {
    ADD_FAILURE() << path << ": " << image.message;
    return out;
  }
  image.format = PNG_FORMAT_BGRA;
  out.width = image.width;
  out.height = image.height;
  out.pixels.resize(size_t{image.width} * image.height);
  EXPECT_NE(png_image_finish_read(&image, nullptr, out.pixels[0].data(), 0, nullptr), 0) << path;
  for (auto& pixel : out.pixels) pixel[3] = 0;
  return out;
}

// A desktop with the probe on it, and the probe's window.
struct Shown {
  PrivateDesktop desktop;
  Folder folder;
  std::vector<std::string> environment;
  std::string id;

  Shown() {
    for (auto& entry : desktop.environment()) environment.push_back(entry.cStr());
    kj::StringPtr command[] = {PRAEFECTUS_BIN "/praefectus-probe", "--no-focus"};
    pid_t probe = desktop.run(kj::arrayPtr(command, 2)).pid;
    for (int looks = 0; looks < 100 && id.empty(); ++looks) {
      auto listed = data({"windows"});
      for (auto& window : listed["windows"]) {
        if (window["pid"] == probe && window["accessible"] == true) id = window["id"];
      }
    }
  }

  Json data(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    auto answer = envelope(praefectus(arguments, environment));
    EXPECT_EQ(answer["ok"], true) << answer;
    return answer["data"];
  }
  std::string file(const char* name) { return folder.file(name); }
};

TEST(Annotation, drawsEveryElementThatCanBeActedOnAndNothingElse) {
  Shown on;
  on.data({"observe", on.id, "--png", on.file("plain.png")});
  auto seen = on.data({"observe", on.id, "--png", on.file("drawn.png"), "--annotate"});
  auto plain = imageIn(on.file("plain.png")), drawn = imageIn(on.file("drawn.png"));
  ASSERT_EQ(drawn.pixels.size(), plain.pixels.size());
  std::vector<bool> mayDiffer(plain.pixels.size());
  size_t boxes = 0;
  for (auto& element : seen["elements"]) {
    bool acts =
        !element["actions"].empty() || element["settable"] == true || element["secure"] == true;
    if (!acts || element["shows"] != true) continue;
    ++boxes;
    int x = element["bounds"]["x"], y = element["bounds"]["y"];
    int width = element["bounds"]["width"], height = element["bounds"]["height"];
    const Pixel colour = drawn.at(x + width - 1, y + height - 1);
    for (int i = 0; i < width; ++i) ASSERT_EQ(drawn.at(x + i, y + height - 1), colour) << element;
    for (int i = 0; i < height; ++i) ASSERT_EQ(drawn.at(x + width - 1, y + i), colour) << element;
    // Its number, white on that colour, in its corner.
    size_t white = 0;
    for (int i = 0; i < 12; ++i) {
      for (int j = 0; j < 8; ++j) white += drawn.at(x + j, y + i) == Pixel{255, 255, 255, 0};
    }
    EXPECT_GT(white, 5u) << element;
    EXPECT_EQ(drawn.at(x, y), colour);
    for (int i = 0; i < height; ++i) {
      for (int j = 0; j < width; ++j) {
        mayDiffer[static_cast<size_t>(y + i) * plain.width + static_cast<size_t>(x + j)] = true;
      }
    }
  }
  EXPECT_EQ(boxes, 6u) << seen;
  for (size_t i = 0; i < plain.pixels.size(); ++i) {
    if (!mayDiffer[i]) {
      ASSERT_EQ(drawn.pixels[i], plain.pixels[i]) << i;
    }
  }
}

TEST(Screenshot, isWhatAnObservationShowsAndAPartIsAPartOfIt) {
  Shown on;
  auto seen = on.data({"observe", on.id, "--png", on.file("seen.png")});
  auto taken = on.data({"screenshot", on.id, "--png", on.file("taken.png")});
  auto part = on.data({"screenshot", on.id, "--png", on.file("part.png"), "--part", "50x40+7+9"});
  auto whole = imageIn(on.file("seen.png"));
  EXPECT_EQ(seen["picture"]["pixels"], whole.digest());
  EXPECT_EQ(taken["pixels"], whole.digest());
  EXPECT_EQ(imageIn(on.file("taken.png")).digest(), whole.digest());
  auto cut = imageIn(on.file("part.png"));
  ASSERT_EQ(cut.width, 50u);
  ASSERT_EQ(cut.height, 40u);
  EXPECT_EQ(part["x"], 7);
  EXPECT_EQ(part["y"], 9);
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 50; ++x) ASSERT_EQ(cut.at(x, y), whole.at(x + 7, y + 9));
  }
  auto screen = on.data({"screenshot", "--monitor", "1", "--png", on.file("screen.png")});
  EXPECT_EQ(screen["width"], 1280);
  EXPECT_EQ(screen["height"], 800);
  EXPECT_EQ(imageIn(on.file("screen.png")).digest(), screen["pixels"]);
  for (const std::vector<std::string>& nothing : {std::vector<std::string>{"--monitor", "2"},
                                                  {"0x999999"},
                                                  {on.id, "--part", "50x40+400+9"}}) {
    auto asked = nothing;
    asked.insert(asked.begin(), "screenshot");
    asked.insert(asked.end(), {"--png", on.file("none.png"), "--json"});
    auto answer = praefectus(asked, on.environment);
    EXPECT_EQ(answer.exit, 3);
    auto code = nothing.size() == 3 ? "invalid_coordinate" : "target_missing";
    EXPECT_EQ(envelope(answer)["error"]["code"], code);
  }
}

TEST(Screenshot, ofNothingOrOfTwoThingsIsWrongUsage) {
  const std::vector<std::vector<std::string>> wrong = {
      {"screenshot"},
      {"screenshot", "0x1"},
      {"screenshot", "--png", "x"},
      {"screenshot", "window", "--png", "x"},
      {"screenshot", "0x1", "--monitor", "1", "--png", "x"},
      {"screenshot", "--monitor", "0", "--png", "x"},
      {"screenshot", "--monitor", "33", "--png", "x"},
      {"screenshot", "--monitor", "1", "--part", "1x1+0+0", "--png", "x"},
      {"screenshot", "0x1", "--part", "1x1", "--png", "x"},
      {"screenshot", "0x1", "--part", "0x1+0+0", "--png", "x"},
      {"screenshot", "0x1", "--part=1x1+-1+0", "--png", "x"},
      {"screenshot", "0x1", "--part", "1x1+0+0+0", "--png", "x"},
      {"screenshot", "0x1", "--part", "99999999999x1+0+0", "--png", "x"},
      {"observe", "0x1", "--annotate"},
  };
  for (auto& arguments : wrong) {
    auto ran = praefectus(arguments);
    EXPECT_EQ(ran.exit, 2) << testing::PrintToString(arguments);
    EXPECT_TRUE(has(ran.err, "usage")) << ran.err;
  }
}

}  // namespace
}  // namespace praefectus::tests
