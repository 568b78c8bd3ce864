// Copies of windows' trees that their applications' events keep true, so that to look again costs
// what has changed since.
//
// It serves showing only: what is about to be acted on is read from the live object
// (desktop/target.h).
//
// Two accounts of a change are put together. The application's events say which element has another
// name, state, value or place; no toolkit sends all of them (GTK 3 is silent about rows that
// scroll, and about what becomes insensitive with its parent). What was drawn says where a person
// saw anything change, and everything there is read again. A change that is neither told nor drawn,
// as a first name given by code, is found by a comparison with the application's own word now and
// then, and by every check before an action; an application that was found out is read in full from
// then on. Nothing here happens by time alone: a desktop at rest costs nothing.
#pragma once

#include "helper-linux/accessibility/tree.h"

namespace praefectus::accessibility {

class Mirror {
 public:
  Mirror(Objects& objects, kj::Timer& timer);
  ~Mirror() noexcept(false);
  KJ_DISALLOW_COPY(Mirror);

  // A window as it was read.
  struct Copy {
    uint64_t key = 0;
    Toolkit toolkit;
    uint32_t elements = 0, depth = 0;
    Tree tree;
  };

  // The copy of `key`, to be brought up to date; nothing when there is none.
  const Copy* copyOf(uint64_t key);
  // The same, brought up to date. `drawn` is where anything was drawn since it was last shown, in
  // the toolkit's window coordinates. Nothing when that cannot be followed: the window is to be
  // read in full. One at a time.
  kj::Promise<kj::Maybe<Copy&>> refresh(uint64_t key, TreeBounds bounds, kj::Vector<Rect> drawn);

  // To be called before the full reading of a window, so that no change is missed meanwhile.
  void begin(uint64_t key, const ObjectRef& window, const Toolkit& toolkit);
  // What was read since, of a window that can be kept; it is taken, and stands there until the next
  // begin. Nothing, and `tree` is left as it is, for the others.
  kj::Maybe<Copy&> keep(uint64_t key, const Toolkit& toolkit, TreeBounds bounds, Tree& tree);
  // The copy was wrong: it is not relied on again.
  void distrust(uint64_t key);

  // After a copy was shown: compares it with the application's own word, now and then.
  void audit(uint64_t key);

  // Every signal of the bus, in order.
  void hear(const dbus::Message& signal);

 private:
  struct Kept;
  Kept* find(uint64_t key);
  void drop(uint64_t key);
  kj::Promise<bool> readAgain(Kept& kept, TreeBounds bounds);
  kj::Promise<void> readNode(Kept& kept, Node& node, kj::TimePoint deadline);
  void compare(Kept& kept, const dbus::Reply& reply);

  Objects& objects;
  kj::Timer& timer;
  kj::Vector<kj::Own<Kept>> windows;       // The one that was read in full longest ago is first.
  kj::HashSet<kj::String> silentChangers;  // By the names of connections.
  kj::Promise<void> auditing = nullptr;
};

}  // namespace praefectus::accessibility
