#include "supervisor/cli/report.h"

#include "supervisor/cli/hints.h"

#include <cerrno>

#include <unistd.h>

namespace praefectus::cli {
namespace {

// In ASCII, so that a character that cannot be seen, or that reorders others, is written out.
ExitCode printLine(const Json& envelope, ExitCode otherwise) {
  auto line = envelope.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  return writeAll(STDOUT_FILENO, kj::StringPtr(line.c_str(), line.size())) ? otherwise
                                                                           : ExitCode::OUTPUT_LOST;
}

// Code points of a well-formed text: how wide a terminal shows it, near enough for alignment.
size_t width(kj::StringPtr text) {
  size_t count = 0;
  for (char c : text) count += (static_cast<kj::byte>(c) & 0xC0) != 0x80;
  return count;
}

Json errorJson(kj::StringPtr code, kj::StringPtr message, kj::StringPtr hint) {
  Json out = {{"code", code.cStr()}, {"message", message.cStr()}};
  if (hint.size() > 0) out["hint"] = hint.cStr();
  return out;
}

}  // namespace

bool writeAll(int fd, kj::StringPtr text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = ::write(fd, text.begin() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

kj::String counted(uint64_t count, kj::StringPtr noun) {
  return kj::str(count, " ", noun, count == 1 ? "" : "s");
}

Failure usage(kj::String message) {
  return {ExitCode::USAGE, kj::str("usage"), kj::mv(message), kj::str()};
}

Failure failure(const Refusal& refusal) {
  return {ExitCode::FAILED, kj::str(nameOf(refusal.code)), kj::str(refusal.detail),
          kj::str(hintFor(refusal.code))};
}

ExitCode print(const Report& report, bool asJson) {
  ExitCode otherwise = report.ok ? ExitCode::OK : ExitCode::FAILED;
  if (asJson) {
    Json envelope;
    envelope["ok"] = report.ok;
    envelope.update(report.beside);
    envelope["data"] = report.data;
    if (!report.ok) envelope["error"] = errorJson(report.code, report.message, report.hint);
    return printLine(envelope, otherwise);
  }
  return writeAll(STDOUT_FILENO, report.text) ? otherwise : ExitCode::OUTPUT_LOST;
}

ExitCode print(const Failure& failure, bool asJson) {
  if (asJson) {
    Json envelope;
    envelope["ok"] = false;
    envelope["error"] = errorJson(failure.code, failure.message, failure.advice);
    return printLine(envelope, failure.exit);
  }
  auto text = kj::str("praefectus: ", failure.message, " (", failure.code, ")\n",
                      failure.advice.size() > 0 ? kj::str("  ", failure.advice, "\n") : kj::str());
  return writeAll(STDERR_FILENO, text) ? failure.exit : ExitCode::OUTPUT_LOST;
}

kj::String printable(kj::StringPtr text) {
  kj::Vector<char> out;
  auto bytes = text.asBytes();
  for (size_t i = 0; i < bytes.size();) {
    kj::byte c = bytes[i];
    size_t length = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    length = kj::min(length, bytes.size() - i);
    bool control = c < 0x20 || c == 0x7F || (c == 0xC2 && length == 2 && bytes[i + 1] < 0xA0);
    // U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069 change the order in which text is shown.
    if (c == 0xE2 && length == 3) {
      kj::byte b = bytes[i + 1], d = bytes[i + 2];
      control = (b == 0x80 && (d == 0x8E || d == 0x8F || (d >= 0xAA && d <= 0xAE))) ||
                (b == 0x81 && d >= 0xA6 && d <= 0xA9);
    }
    if (control) {
      out.addAll("\xEF\xBF\xBD"_kj);
    } else {
      out.addAll(bytes.slice(i, i + length).asChars());
    }
    i += length;
  }
  return kj::heapString(out.asPtr());
}

std::string json(kj::StringPtr text) { return std::string(text.begin(), text.size()); }

Table::Table(kj::ArrayPtr<const kj::StringPtr> heads) {
  kj::Vector<kj::String> first;
  for (auto head : heads) first.add(kj::str(head));
  rows.add(kj::mv(first));
}

void Table::row(kj::Vector<kj::String> cells) { rows.add(kj::mv(cells)); }

kj::String Table::str() const {
  kj::Vector<size_t> widths;
  for (auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.add(0);
      widths[i] = kj::max(widths[i], width(row[i]));
    }
  }
  kj::Vector<char> out;
  for (auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      out.addAll(row[i]);
      if (i + 1 == row.size()) break;
      for (size_t pad = width(row[i]); pad < widths[i] + 2; ++pad) out.add(' ');
    }
    out.add('\n');
  }
  return kj::heapString(out.asPtr());
}

}  // namespace praefectus::cli
