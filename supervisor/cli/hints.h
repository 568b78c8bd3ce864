// What a person at a terminal can do about a refusal. The advice of words.capnp is for hosts, which
// hold frames and grants; somebody who typed a command has neither.
#pragma once

#include "ipc/words.h"

namespace praefectus::cli {

// Empty when there is nothing to add to the refusal's own sentence.
kj::StringPtr hintFor(RefusalCode code);

}  // namespace praefectus::cli
