// The C++ twin of schema/words.capnp: refusals, Result, and the small values that rooms exchange.
//
// Enumerations are the schema's own, so both sides of a process boundary use one word. This header
// is included nearly everywhere and stays light: no RPC, no message reader.
#pragma once

#include "ipc/schema/words.capnp.h"

#include <kj/array.h>
#include <kj/common.h>
#include <kj/debug.h>
#include <kj/one-of.h>
#include <kj/string.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace praefectus {

using wire::ActionClass;
using wire::ContextState;
using wire::Effect;
using wire::Method;
using wire::Mode;
using wire::Proof;
using wire::RefusalCode;
using wire::Role;
using wire::Route;
using wire::Safety;
using wire::Source;
using wire::Terminal;
using wire::Verdict;
using wire::Warning;

using Bytes = kj::ArrayPtr<const kj::byte>;

// 32 bytes: a digest, a nonce or a chain link. A value, compared in full.
using Hash = std::array<kj::byte, 32>;
// 16 random bytes that name a frame.
using FrameId = std::array<kj::byte, 16>;

template <size_t N>
Bytes bytesOf(const std::array<kj::byte, N>& array) {
  return Bytes(array.data(), N);
}

// The N bytes of `data`, or nothing when it has another length.
template <size_t N>
kj::Maybe<std::array<kj::byte, N>> fixed(Bytes data) {
  if (data.size() != N) return nullptr;
  std::array<kj::byte, N> out;
  memcpy(out.data(), data.begin(), N);
  return out;
}

// Why something was not done; always means that nothing was dispatched. `detail` is a fixed
// sentence of ours, never text from an application, a model or a file.
struct Refusal {
  RefusalCode code;
  kj::StringPtr detail;  // Points at a literal.
};

// A T, or the Refusal that stands in its place.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content(kj::mv(value)) {}
  Result(Refusal refusal) : content(refusal) {}
  Result(Result&&) = default;
  Result& operator=(Result&&) = default;
  KJ_DISALLOW_COPY(Result);

  bool ok() const { return content.template is<T>(); }
  T& operator*() { return content.template get<T>(); }
  T* operator->() { return &content.template get<T>(); }
  const T& operator*() const { return content.template get<T>(); }
  const T* operator->() const { return &content.template get<T>(); }
  const Refusal& refusal() const { return content.template get<Refusal>(); }

 private:
  kj::OneOf<T, Refusal> content;
};

struct Done {};  // Result<Done>: an act without a value.

struct Process {
  uint32_t pid = 0;
  uint64_t start = 0;  // Clock ticks since boot (proc(5), stat field 22).
  bool operator==(const Process&) const = default;
};

struct WindowRef {
  Process process;
  uint64_t window = 0;
  bool operator==(const WindowRef&) const = default;
};

struct Rect {
  int32_t x = 0, y = 0;
  uint32_t width = 0, height = 0;
  bool operator==(const Rect&) const = default;
};

struct LedgerId {
  Hash key{};
  uint32_t incarnation = 0;
  bool operator==(const LedgerId&) const = default;
};

// What a grant allows beyond the action itself; all off by default.
struct Rights {
  bool focus = false, ownPointer = false, userPointer = false, irreversible = false;
  bool operator==(const Rights&) const = default;
};

WindowRef read(wire::WindowRef::Reader from);
void write(const WindowRef& from, wire::WindowRef::Builder to);
Rect read(wire::Rect::Reader from);
void write(const Rect& from, wire::Rect::Builder to);
Rights read(wire::Rights::Reader from);
void write(const Rights& from, wire::Rights::Builder to);
// Nothing when the key is not 32 bytes.
kj::Maybe<LedgerId> read(wire::LedgerId::Reader from);
void write(const LedgerId& from, wire::LedgerId::Builder to);
// The detail is cut at 256 bytes when read into a String; codes are checked by the strict reader.
void write(const Refusal& from, wire::Refusal::Builder to);

// Spelling in text: an enumerant's schema name in snake_case ("stale_frame"). Valid for every value
// that the strict reader let through; "unknown" otherwise.
kj::StringPtr nameOf(RefusalCode code);
kj::StringPtr nameOf(Terminal terminal);
kj::StringPtr nameOf(Effect effect);
kj::StringPtr nameOf(Verdict verdict);
kj::StringPtr nameOf(Method method);
kj::StringPtr nameOf(Source source);
kj::StringPtr nameOf(ContextState context);
kj::StringPtr nameOf(Route route);
kj::StringPtr nameOf(ActionClass actionClass);
kj::StringPtr nameOf(Role role);
kj::StringPtr nameOf(Warning warning);
kj::StringPtr nameOf(wire::Mode mode);
kj::StringPtr nameOf(wire::Safety safety);
kj::StringPtr nameOf(wire::Proof proof);
kj::StringPtr nameOf(wire::Advice advice);

// One line on what a code means and what to do about it, from the schema's annotations.
kj::StringPtr meaningOf(RefusalCode code);
wire::Advice adviceOn(RefusalCode code);

// Lower-case hexadecimal, and back; nothing when the text is not exactly that.
kj::String hex(Bytes bytes);
kj::Maybe<kj::Array<kj::byte>> unhex(kj::StringPtr text);

// 1 to 256 of A-Z a-z 0-9 . _ : -   (operation, session, turn, issuer, key id, subject)
bool isIdentifier(kj::StringPtr text);
// Well-formed UTF-8 without NUL; nothing else is text here.
bool isText(kj::StringPtr text);

}  // namespace praefectus
