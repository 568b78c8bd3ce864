// The applications on the accessibility bus and their top-level windows, read anew at every call.
#pragma once

#include "helper-linux/accessibility/node.h"

namespace praefectus::accessibility {

struct AccessibleWindow {
  ObjectRef ref;
  kj::String title;
  kj::Maybe<Rect> extents;  // Only the size means something.
  // Read only to tell windows of one process and title apart; the first never from GTK 4.
  kj::Maybe<Rect> screen;
  kj::Maybe<int32_t> children;
};

struct AccessibleApplication {
  ObjectRef root;
  uint32_t pid = 0;
  kj::String name;
  Toolkit toolkit;
  bool answering = true;
  bool cut = false;  // It has more windows than were read.
  kj::Vector<AccessibleWindow> windows;
};

// Reads all applications, or those of one process. All are asked at once, so that a silent one
// costs at most `deadline` and delays no other. Nothing when the registry itself does not answer.
kj::Promise<kj::Maybe<kj::Vector<kj::Own<AccessibleApplication>>>> readApplications(
    Objects& objects, kj::Maybe<uint32_t> onlyPid, kj::TimePoint deadline);

}  // namespace praefectus::accessibility
