// Monitors as somebody arranges them.
#pragma once

#include "ipc/words.h"

#include <kj/string.h>

typedef struct _XDisplay Display;

namespace praefectus::tests {

class Arrangement {
 public:
  explicit Arrangement(kj::StringPtr display);
  ~Arrangement();
  KJ_DISALLOW_COPY(Arrangement);

  // A monitor beside those that there are, in pixels of the root window.
  void place(kj::StringPtr name, const Rect& at);

 private:
  ::Display* display;
};

}  // namespace praefectus::tests
