// What a command has to say, once as data and once as text; and the one writer of standard output.
#pragma once

#include "ipc/words.h"

#include <nlohmann/json.hpp>

#include <kj/string.h>
#include <kj/vector.h>

namespace praefectus::cli {

using Json = nlohmann::ordered_json;

enum class ExitCode : int { OK = 0, OUTPUT_LOST = 1, USAGE = 2, FAILED = 3 };

// The result of a command. `text` is for a person; `data` is the same for a program.
struct Report {
  Json data;
  Json beside =
      Json::object();  // Members of the envelope beside `data`, for what scripts look up most.
  kj::String text;
  bool ok = true;      // False: the work was done and its finding is bad (verify, doctor, demo).
  kj::String code;     // Then: what was found, in one word,
  kj::String message;  // and in one sentence;
  kj::String hint;     // what to do next; empty when there is nothing to add.
};

// Why a command could not do its work.
struct Failure {
  ExitCode exit;
  kj::String code;
  kj::String message;
  kj::String advice;  // What to do next; empty when there is nothing to add.
};

// The advice is filled in by main, which knows the command's usage line.
Failure usage(kj::String message);
// With the hint for a person (hints.h).
Failure failure(const Refusal& refusal);

// Thrown by commands, caught by main, so that a command reads as what it does.
template <typename T>
T orFail(Result<T> result);

// Writes the answer: one line of JSON, or text. Data and text go to standard output, a failure's
// text to standard error. OUTPUT_LOST when that could not be written.
ExitCode print(const Report& report, bool json);
ExitCode print(const Failure& failure, bool json);

// False when not all of it could be written.
bool writeAll(int fd, kj::StringPtr text);

// "1 receipt", "2 receipts"
kj::String counted(uint64_t count, kj::StringPtr noun);

// Text that came from an application, made safe for a terminal and for JSON: control characters and
// bidirectional overrides become U+FFFD.
kj::String printable(kj::StringPtr text);
std::string json(kj::StringPtr text);

// Columns with two spaces between them, as wide as their widest cell.
class Table {
 public:
  explicit Table(kj::ArrayPtr<const kj::StringPtr> heads);
  void row(kj::Vector<kj::String> cells);
  kj::String str() const;

 private:
  kj::Vector<kj::Vector<kj::String>> rows;
};

template <typename T>
T orFail(Result<T> result) {
  if (!result.ok()) throw failure(result.refusal());
  return kj::mv(*result);
}

}  // namespace praefectus::cli
