// D-Bus messages as bytes: arguments written, replies read. Only what an accessibility client
// needs.
//
// Replies come from applications we do not trust, through a bus we trust a little more. So every
// length is checked against what is there, and a reply whose signature is not the expected one is
// not read at all. Source: D-Bus Specification 0.41, "Marshaling (Wire Format)" and "Message
// Protocol".
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>
#include <kj/vector.h>

#include <cstdint>

namespace praefectus::dbus {

// Fixed part of a header, and from it the whole message's length.
constexpr size_t PREAMBLE_BYTES = 16;
// Nothing when the bytes cannot begin a message. One in the other order of bytes has a length, so
// that it can be passed over, and is not parsed.
kj::Maybe<uint64_t> messageLength(kj::ArrayPtr<const kj::byte> preamble);

// Arguments of a call, marshalled in the order they are added.
class Arguments {
 public:
  Arguments& text(kj::StringPtr value);    // s
  Arguments& int32(int32_t value);         // i
  Arguments& uint32(uint32_t value);       // u
  Arguments& variantDouble(double value);  // v holding d
  Arguments& variantBoolean(bool value);   // v holding b
  Arguments& noTexts();                    // as, empty

  kj::StringPtr signature() const { return types; }
  kj::ArrayPtr<const kj::byte> body() const { return bytes; }

 private:
  kj::String types = kj::str();
  kj::Vector<kj::byte> bytes;
};

struct Call {
  kj::StringPtr destination, path, interface, member;
  // Asks the bus not to start a service that is not there: reading must not change the desktop.
  bool startService = false;
};

kj::Array<kj::byte> encodeCall(const Call& call, uint32_t serial, const Arguments& arguments);

// A cursor over a body. Throws when the bytes end early or are not what the specification says.
class Reader {
 public:
  explicit Reader(kj::ArrayPtr<const kj::byte> bytes) : bytes(bytes) {}

  uint8_t byte();
  uint32_t uint32();
  int32_t int32() { return static_cast<int32_t>(uint32()); }
  bool boolean();
  double float64();
  kj::StringPtr text();       // s or o; points into the message.
  kj::StringPtr signature();  // g, and the head of a variant.
  void structure() { align(8); }

  // Enters an array whose elements align to `alignment`; `more(end)` until it is false.
  size_t array(size_t alignment);
  bool more(size_t end) const { return at < end; }
  // Leaves an array without reading the rest.
  void leave(size_t end) { at = end; }

 private:
  void align(size_t alignment);
  const kj::byte* take(size_t size);

  kj::ArrayPtr<const kj::byte> bytes;
  size_t at = 0;
};

class Message {
 public:
  enum class Type : uint8_t { INVALID = 0, CALL = 1, RETURN = 2, ERROR = 3, SIGNAL = 4 };

  // Nothing when the bytes are not one well-formed message.
  static kj::Maybe<Message> parse(kj::Array<kj::byte> whole);

  Type type = Type::INVALID;
  uint32_t replySerial = 0;
  kj::StringPtr errorName;  // These point into `whole`.
  kj::StringPtr signature;
  kj::StringPtr sender, path, interface, member;  // Of a signal, who says what.

  Reader body() const { return Reader(whole.slice(bodyAt, whole.size())); }

 private:
  kj::Array<kj::byte> whole;
  size_t bodyAt = 0;
};

}  // namespace praefectus::dbus
