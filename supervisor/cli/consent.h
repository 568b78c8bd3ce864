// A person's yes to what cannot be taken back.
#pragma once

#include "supervisor/cli/commands.h"

namespace praefectus::cli {

constexpr Options::Spec YES{"--yes"_kj, false};

// Says what would come of it and asks, when standard input and standard error are a terminal; where
// nobody can be asked, `--yes` has to be among the options, and is enough everywhere. Throws a
// Failure: usage when nobody can be asked, `not_confirmed` when the answer is not "yes".
void confirm(const Options& options, kj::StringPtr what);

}  // namespace praefectus::cli
