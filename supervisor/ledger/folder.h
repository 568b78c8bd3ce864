// The folder that holds a ledger: who may own it, what it may contain, and who has it now.
#pragma once

#include "ipc/words.h"

#include <kj/io.h>
#include <kj/vector.h>

namespace praefectus::ledger {

constexpr kj::StringPtr DATABASE_FILE = "ledger.db"_kj;
constexpr kj::StringPtr LOG_FILE = "ledger.db-wal"_kj;
constexpr kj::StringPtr INDEX_FILE = "ledger.db-shm"_kj;
constexpr kj::StringPtr KEY_FILE = "receipt.key"_kj;
// The next key while one is changed for it.
constexpr kj::StringPtr NEXT_KEY_FILE = "receipt.key.next"_kj;

class Folder {
 public:
  // For the one writer: the folder belongs to the effective user with mode 0700 and is no link; its
  // files belong to the effective user with mode 0600, are regular and have one name each; nobody
  // else can replace a folder on the way to it. The folder itself is locked (flock(2)) for as long
  // as this object lives: unlike a lock file it cannot be removed and made again under the holder.
  //
  // Refuses: LEDGER_FOREIGN when any of that does not hold or a file is missing; LEDGER_BUSY when
  // another supervisor has it.
  static Result<Folder> own(kj::StringPtr path);

  // For a reader: whatever the permissions let it read, as long as nothing is a link. Takes no
  // lock. Refuses: LEDGER_FOREIGN.
  static Result<Folder> view(kj::StringPtr path);

  // Everything for which `own` would refuse this folder, but that somebody has it; takes no lock.
  static kj::Vector<kj::StringPtr> faults(kj::StringPtr path);

  kj::String path(kj::StringPtr name) const { return kj::str(place, '/', name); }

  // Puts one file in the place of another, on the device when it returns.
  void replace(kj::StringPtr name, kj::StringPtr by) const;
  // Removes a file that need not be there.
  void remove(kj::StringPtr name) const;

 private:
  Folder(kj::String place, kj::AutoCloseFd directory)
      : place(kj::mv(place)), directory(kj::mv(directory)) {}
  kj::String place;  // Absolute, without links.
  kj::AutoCloseFd directory;
};

// A folder in the making: beside its final place, under a name of its own, so that what is found in
// the final place was always finished. Removed again unless it was published.
class NewFolder {
 public:
  // Makes missing folders on the way (0700).
  // Refuses: LEDGER_FOREIGN when something is there already, or a folder on the way is not safe.
  static Result<NewFolder> beside(kj::StringPtr path);
  NewFolder(NewFolder&&) = default;
  ~NewFolder() noexcept;

  kj::String path(kj::StringPtr name) const { return kj::str(place, '/', name); }

  // An empty file, 0600.
  void makeFile(kj::StringPtr name) const;
  // Leaves nothing but this many written zeros in a file.
  void blank(kj::StringPtr name, size_t size) const;
  void remove(kj::StringPtr name) const;

  // Brings files, folder and its name to the device, and puts it in its place.
  // Refuses: LEDGER_FOREIGN when something has come there meanwhile.
  Result<Done> publish();

 private:
  NewFolder(kj::String place, kj::String destination)
      : place(kj::mv(place)), destination(kj::mv(destination)) {}
  kj::String place, destination;
};

}  // namespace praefectus::ledger
