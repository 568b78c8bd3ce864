// Applications say odd things of themselves. What is odd about one element spoils no other.
#include "tests/helper-linux/desk.h"

#include "ipc/bounds.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace praefectus::tests {
namespace {

TEST(Oddity, ofANameOrATextSpoilsNoOtherElement) {
  Desk desk;
  // In the title of the window: control characters, and as long as a file's name can be.
  auto odd = "a\001\n" + std::string(200, 'n');
  auto path = kj::str(desk.desktop.folder(), "/", odd.c_str());
  std::string line = "a line with \001 in it\n";
  {
    std::ofstream file(path.cStr());
    while (file.tellp() < 2'000) file << line;
  }
  kj::StringPtr arguments[] = {"mousepad"_kj, path};
  auto editor = desk.open(arguments);
  Observed seen;
  const Element* text = nullptr;
  ASSERT_TRUE(eventually([&] {
    auto observed = desk.helper.observe(editor);
    if (!observed.ok()) return false;
    seen = kj::mv(*observed);
    text = nullptr;
    for (auto& element : seen.seen.elements) {
      if (element.role == "text" && element.states.has(State::MULTI_LINE)) text = &element;
    }
    return text != nullptr && text->textCut;
  }));
  EXPECT_TRUE(isText(seen.seen.frame.title));
  auto& value = KJ_ASSERT_NONNULL(text->value);
  EXPECT_LE(value.size(), bounds::TEXT_BYTES);
  EXPECT_EQ(std::string(value.cStr()).substr(0, line.size()), line);
  EXPECT_TRUE(seen.seen.cuts.text);
  EXPECT_TRUE(seen.has("menu", "File")) << "the others are there";
  for (auto& element : seen.seen.elements) {
    EXPECT_EQ(element.fault, Fault::NONE) << element.role.cStr();
  }
}

}  // namespace
}  // namespace praefectus::tests
