#include "supervisor/cli/consent.h"

#include "supervisor/cli/page.h"

#include <unistd.h>

namespace praefectus::cli {
namespace {

constexpr size_t ANSWER_BYTES = 64;  // A terminal hands over a line at a time.

bool saysYes() {
  char answer[ANSWER_BYTES];
  auto size = ::read(STDIN_FILENO, answer, sizeof(answer));
  return size > 0 && "yes\n"_kj.asArray() == kj::arrayPtr(answer, static_cast<size_t>(size));
}

}  // namespace

void confirm(const Options& options, kj::StringPtr what) {
  if (options.has(YES.name)) return;
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
    throw usage(kj::str(what, " Nobody can be asked here: say --yes to have it done"));
  }
  Page page;
  page.say(what);
  writeAll(STDERR_FILENO, kj::str(page.str(), "Type yes to go on: "));
  if (saysYes()) return;
  throw Failure{ExitCode::FAILED, kj::str("not_confirmed"), kj::str("nothing was done"), kj::str()};
}

}  // namespace praefectus::cli
