// An X server and nothing else.
#pragma once

#include <kj/string.h>

#include <sys/types.h>

namespace praefectus::tests {

class BareServer {
 public:
  // 640 by 400. Without the extension of this name, if one is named.
  explicit BareServer(kj::StringPtr without = nullptr);
  ~BareServer();
  KJ_DISALLOW_COPY(BareServer);

  kj::StringPtr display() const { return name; }

 private:
  pid_t process;
  kj::String name;
};

}  // namespace praefectus::tests
