// Labelled lines for a person at a terminal of 80 columns.
#pragma once

#include <kj/string.h>
#include <kj/vector.h>

#include <cstdint>

namespace praefectus::cli {

class Page {
 public:
  static constexpr size_t COLUMNS = 80;
  static constexpr size_t INDENT = 13;

  // A line of its own, such as a heading.
  void say(kj::StringPtr sentence);
  // The label, and beside it the text, broken between words. A word that is longer than a line is
  // broken where the line ends. The label is ASCII of at most 12 characters; the text is ours or
  // went through `printable`.
  void line(kj::StringPtr label, kj::StringPtr text);
  // The same in one piece, however long, so that it can be copied.
  void word(kj::StringPtr label, kj::StringPtr text);
  // The label, and text of somebody else: between quotation marks, each piece by itself, and every
  // character that would not be seen written out, so that nothing is hidden in it.
  void quote(kj::StringPtr label, kj::StringPtr text);
  void gap();

  kj::String str() const;

 private:
  void put(kj::StringPtr label, kj::Vector<kj::String> pieces);
  kj::Vector<kj::String> lines;
};

// "1 h 30 min", "2 s 500 ms"; of a time that is not negative.
kj::String durationText(int64_t ms);
// "2026-11-30 15:40:11.123 +0100", in the zone of whoever reads it.
kj::String localTimeText(int64_t unixMs);

}  // namespace praefectus::cli
