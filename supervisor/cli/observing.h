// What `observe` is asked for, and what was seen as JSON.
#pragma once

#include "supervisor/cli/commands.h"
#include "supervisor/cli/own-host.h"

#include <capnp/schema.h>

namespace praefectus::cli {

// The enumerant's schema name in snake_case, as words.h spells refusals.
template <typename Enum>
kj::String wordFor(Enum value) {
  kj::Vector<char> out;
  auto enumerants = capnp::Schema::from<Enum>().getEnumerants();
  auto index = static_cast<capnp::uint>(value);
  if (index >= enumerants.size()) return kj::str("unknown");
  for (char c : kj::StringPtr(enumerants[index].getProto().getName())) {
    if ('A' <= c && c <= 'Z') out.add('_');
    out.add('A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return kj::heapString(out.asPtr());
}

// The window that a person names. Throws a usage Failure for what is no id, and TARGET_MISSING for
// one that is not listed.
uint64_t windowId(kj::StringPtr text);
const Window& windowIn(const Desktop& desktop, uint64_t id);

Json rectJson(const Rect& rect);
Json monitorsJson(kj::ArrayPtr<const Monitor> monitors);
Json pictureJson(const PictureInfo& picture);
// Of the frame and all that was seen in it.
Json observationJson(const Observation& seen);

// The options of a reading, beside those of the command itself.
constexpr Options::Spec READING[] = {{"--elements"_kj, true},   {"--depth"_kj, true},
                                     {"--text-bytes"_kj, true}, {"--time-ms"_kj, true},
                                     {"--below"_kj, true},      {"--first"_kj, true},
                                     {"--again"_kj, true}};

// One or two readings of one window in one session.
struct Reading {
  Observation seen;
  kj::String text;  // The outline of it, or of what changed.
};

// As the options say: the window, or what is below one of its elements, which takes a reading of
// the window first; or the window and, a time later, what has changed. Throws a usage Failure for
// an option that is out of bounds or goes with no other, and what reading throws.
class Reader {
 public:
  explicit Reader(const Options& options);
  Reading read(OwnHost& own, const WindowRef& window, bool picture) const;

 private:
  Observation look(OwnHost& own, const WindowRef& window, ObserveAct act) const;

  ObserveAct usual;
  kj::Maybe<uint32_t> below;
  uint32_t first = 0;
  kj::Maybe<uint32_t> again;  // Seconds.
};

}  // namespace praefectus::cli
