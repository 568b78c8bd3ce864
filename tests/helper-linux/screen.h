// The test's own eyes and hands on the private display: an independent connection that sees what a
// person sees, and plays both the person and a program that disturbs them.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>
#include <string>
#include <vector>

typedef struct _XDisplay Display;

namespace praefectus {
class PrivateDesktop;
}

namespace praefectus::tests {

// X's libraries find the key to a display only through the process's own environment.
void useAuthorityOf(const PrivateDesktop& desktop);

struct Surroundings {
  int pointerX = 0, pointerY = 0;
  uint64_t focus = 0, active = 0;
  std::vector<uint64_t> stacking;
  bool operator==(const Surroundings&) const = default;
};

class Screen {
 public:
  explicit Screen(kj::StringPtr display);
  ~Screen();
  KJ_DISALLOW_COPY(Screen);

  Surroundings look();
  void warp(int x, int y);          // As a program moves the pointer.
  void moveMouse(int x, int y);     // As the person's own mouse does.
  void click(unsigned button = 1);  // The person's, where the pointer is.
  void focus(uint64_t window);
  void raise(uint64_t window);
  void type(const char* key, bool control);
  void move(uint64_t window, int x, int y, unsigned width, unsigned height);
  // The given windows in the order in which the server draws them, bottom first. Each is a child of
  // the root or in a frame that is one.
  std::vector<uint64_t> drawn(std::vector<uint64_t> ids);
  std::string title(uint64_t window);
  // A property of the root that lists windows.
  std::vector<uint64_t> windows(const char* property);

 private:
  ::Display* display;
};

}  // namespace praefectus::tests
