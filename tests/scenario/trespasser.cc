// A program that stands in a helper's place and gives itself away: it leaves a file "trespassed" in
// its HOME, which a helper is given too, and exits.
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <unistd.h>

int main() {
  const char* home = getenv("HOME");
  if (home == nullptr) return 1;
  int fd = open((std::string(home) + "/trespassed").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  return fd < 0 ? 1 : 0;
}
