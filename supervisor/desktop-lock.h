// One desktop has one actor. The first supervisor that acts on a display holds its lock until it
// ends; the others may read.
#pragma once

#include "supervisor/supervisor.h"

#include <kj/io.h>

namespace praefectus {

// A lock file in a folder of the user that no environment variable names (/run/user/UID, else
// /tmp/praefectus-UID), called after the X server: every spelling of a local display (":0",
// "unix:0", "localhost:0.1") is one. Supervisors of other users are not seen.
class DesktopLock final : public Actor {
 public:
  explicit DesktopLock(kj::StringPtr display);

  // Refuses DESKTOP_BUSY: another one holds it, or there is no safe place for the file; the detail
  // says which. Asked again at every mutation, so that a desktop that has become free is taken.
  Result<Done> hold() override;
  bool isFree() override;

 private:
  kj::Maybe<kj::AutoCloseFd&> lockFile();

  kj::String name;
  kj::Maybe<kj::AutoCloseFd> file;
  bool held = false;
};

}  // namespace praefectus
