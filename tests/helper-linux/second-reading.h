// What praefectus-second-reader says of a window.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <string>

#include <sys/types.h>

namespace praefectus::tests {

// Everything that it prints. `title` is a part of the window's name, "" for the application's
// first. Throws when it fails.
std::string secondReading(kj::ArrayPtr<const kj::String> environment, pid_t process,
                          kj::StringPtr title, kj::ArrayPtr<const kj::StringPtr> options);

}  // namespace praefectus::tests
