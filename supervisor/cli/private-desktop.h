// A desktop of our own: virtual X server, window manager, session bus and accessibility bus, in a
// private folder, all ended and removed afterwards. Only programs that have its environment reach
// its display (XAUTHORITY) and its buses, and no other user does. The demo, the doctor and the
// tests act here, never on the desktop of the person.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/string.h>
#include <kj/vector.h>

#include <sys/types.h>

namespace praefectus {

class PrivateDesktop {
 public:
  struct Options {
    uint32_t width = 1280;
    uint32_t height = 800;
    bool windowManager = true;
    bool accessibility = true;  // The accessibility bus and org.a11y.Status.IsEnabled.
  };

  // Starts everything in its order and waits for each part to be ready, at most 15 s in all.
  // Throws, with the missing program or the step that did not come up in the description; then
  // nothing that was started is left.
  explicit PrivateDesktop(Options options);
  PrivateDesktop() : PrivateDesktop(Options()) {}
  ~PrivateDesktop() noexcept(
      false);  // Ends every process it started, by pid, and removes the folder.
  KJ_DISALLOW_COPY(PrivateDesktop);

  kj::StringPtr display() const;  // ":7"
  kj::StringPtr folder() const;   // Private, 0700.
  kj::ArrayPtr<const kj::String> environment()
      const;  // "NAME=value", complete; built, not inherited.

  // Starts a program of this desktop: own session, standard input from nowhere, standard output and
  // error into a file of the folder whose path is returned. Absolute path or a name found in PATH.
  // Throws when it cannot be executed.
  struct Program {
    pid_t pid;
    kj::String output;  // Path of what it prints.
  };
  Program run(kj::ArrayPtr<const kj::StringPtr> arguments,
              kj::ArrayPtr<const kj::StringPtr> extraEnvironment = nullptr);

  // Ends one program started by run: SIGTERM, then SIGKILL after 2 s; reaps it. Its process group
  // too.
  void end(pid_t pid);

 private:
  struct Parts;
  kj::Own<Parts> parts;
};

}  // namespace praefectus
