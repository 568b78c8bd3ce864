// The test's own eyes and hands on the private display: an independent connection that sees what a
// person sees, and plays both the person and a program that disturbs them.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>
#include <vector>

typedef struct _XDisplay Display;

namespace praefectus::tests {

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
  void warp(int x, int y);       // As a program moves the pointer.
  void moveMouse(int x, int y);  // As the person's own mouse does.
  void click();                  // The person's, where the pointer is.
  void focus(uint64_t window);
  void raise(uint64_t window);
  void type(const char* key, bool control);
  void move(uint64_t window, int x, int y, unsigned width, unsigned height);
  // A property of the root that lists windows.
  std::vector<uint64_t> windows(const char* property);

 private:
  ::Display* display;
};

}  // namespace praefectus::tests
