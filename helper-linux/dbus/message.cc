#include "helper-linux/dbus/message.h"

#include <kj/debug.h>

#include <bit>
#include <cstring>

namespace praefectus::dbus {
namespace {

static_assert(std::endian::native == std::endian::little, "messages are written in native order");

// Header fields, by the specification's table.
enum Field : uint8_t {
  PATH = 1,
  INTERFACE = 2,
  MEMBER = 3,
  ERROR_NAME = 4,
  REPLY_SERIAL = 5,
  DESTINATION = 6,
  SENDER = 7,
  SIGNATURE = 8
};

constexpr uint8_t NO_AUTO_START = 0x2;

void pad(kj::Vector<kj::byte>& out, size_t alignment) {
  while (out.size() % alignment != 0) out.add(0);
}

void put32(kj::Vector<kj::byte>& out, uint32_t value) {
  pad(out, 4);
  kj::byte raw[4];
  memcpy(raw, &value, 4);
  out.addAll(kj::arrayPtr(raw, 4));
}

void putText(kj::Vector<kj::byte>& out, kj::StringPtr value) {
  put32(out, static_cast<uint32_t>(value.size()));
  out.addAll(value.asBytes());
  out.add(0);
}

void putSignature(kj::Vector<kj::byte>& out, kj::StringPtr value) {
  out.add(static_cast<kj::byte>(value.size()));
  out.addAll(value.asBytes());
  out.add(0);
}

void putField(kj::Vector<kj::byte>& out, Field field, kj::StringPtr type, kj::StringPtr value) {
  if (value.size() == 0) return;
  pad(out, 8);
  out.add(field);
  putSignature(out, type);
  if (type == "g") {
    putSignature(out, value);
  } else {
    putText(out, value);
  }
}

}  // namespace

kj::Maybe<uint64_t> messageLength(kj::ArrayPtr<const kj::byte> preamble) {
  if (preamble.size() < PREAMBLE_BYTES || preamble[3] != 1) return nullptr;
  // A bus passes on what a peer wrote in its own order of bytes.
  bool swapped = preamble[0] == 'B';
  if (!swapped && preamble[0] != 'l') return nullptr;
  uint32_t body, fields;
  memcpy(&body, preamble.begin() + 4, 4);
  memcpy(&fields, preamble.begin() + 12, 4);
  if (swapped) {
    body = __builtin_bswap32(body);
    fields = __builtin_bswap32(fields);
  }
  uint64_t header = (uint64_t{PREAMBLE_BYTES} + fields + 7) & ~uint64_t{7};
  return header + body;
}

Arguments& Arguments::text(kj::StringPtr value) {
  types = kj::str(types, 's');
  putText(bytes, value);
  return *this;
}

Arguments& Arguments::int32(int32_t value) {
  types = kj::str(types, 'i');
  put32(bytes, static_cast<uint32_t>(value));
  return *this;
}

Arguments& Arguments::uint32(uint32_t value) {
  types = kj::str(types, 'u');
  put32(bytes, value);
  return *this;
}

Arguments& Arguments::variantDouble(double value) {
  types = kj::str(types, 'v');
  putSignature(bytes, "d");
  pad(bytes, 8);
  kj::byte raw[8];
  memcpy(raw, &value, 8);
  bytes.addAll(kj::arrayPtr(raw, 8));
  return *this;
}

Arguments& Arguments::variantBoolean(bool value) {
  types = kj::str(types, 'v');
  putSignature(bytes, "b");
  put32(bytes, value ? 1 : 0);
  return *this;
}

Arguments& Arguments::noTexts() {
  types = kj::str(types, "as");
  put32(bytes, 0);
  return *this;
}

kj::Array<kj::byte> encodeCall(const Call& call, uint32_t serial, const Arguments& arguments) {
  kj::Vector<kj::byte> out(256);
  out.add('l');
  out.add(static_cast<kj::byte>(Message::Type::CALL));
  out.add(call.startService ? 0 : NO_AUTO_START);
  out.add(1);
  put32(out, static_cast<uint32_t>(arguments.body().size()));
  put32(out, serial);
  put32(out, 0);  // Length of the fields, set below.
  putField(out, PATH, "o", call.path);
  putField(out, INTERFACE, "s", call.interface);
  putField(out, MEMBER, "s", call.member);
  putField(out, DESTINATION, "s", call.destination);
  putField(out, SIGNATURE, "g", arguments.signature());
  uint32_t fields = static_cast<uint32_t>(out.size() - PREAMBLE_BYTES);
  memcpy(out.begin() + 12, &fields, 4);
  pad(out, 8);
  out.addAll(arguments.body());
  return out.releaseAsArray();
}

void Reader::align(size_t alignment) { at = (at + alignment - 1) & ~(alignment - 1); }

const kj::byte* Reader::take(size_t size) {
  KJ_REQUIRE(at <= bytes.size() && size <= bytes.size() - at, "message ends early");
  const kj::byte* start = bytes.begin() + at;
  at += size;
  return start;
}

uint8_t Reader::byte() { return *take(1); }

uint32_t Reader::uint32() {
  align(4);
  uint32_t value;
  memcpy(&value, take(4), 4);
  return value;
}

bool Reader::boolean() {
  uint32_t value = uint32();
  KJ_REQUIRE(value <= 1, "not a boolean");
  return value == 1;
}

double Reader::float64() {
  align(8);
  double value;
  memcpy(&value, take(8), 8);
  return value;
}

kj::StringPtr Reader::text() {
  size_t size = uint32();
  const char* start = reinterpret_cast<const char*>(take(size));
  KJ_REQUIRE(*take(1) == 0 && memchr(start, 0, size) == nullptr, "not a string");
  return kj::StringPtr(start, size);
}

kj::StringPtr Reader::signature() {
  size_t size = byte();
  const char* start = reinterpret_cast<const char*>(take(size));
  KJ_REQUIRE(*take(1) == 0 && memchr(start, 0, size) == nullptr, "not a signature");
  return kj::StringPtr(start, size);
}

size_t Reader::array(size_t alignment) {
  size_t size = uint32();
  align(alignment);
  KJ_REQUIRE(at <= bytes.size() && size <= bytes.size() - at, "array ends early");
  return at + size;
}

kj::Maybe<Message> Message::parse(kj::Array<kj::byte> whole) {
  Message out;
  bool ok = false;
  auto broken = kj::runCatchingExceptions([&]() {
    KJ_REQUIRE(whole.size() >= PREAMBLE_BYTES, "message ends early");
    KJ_REQUIRE(whole[0] == 'l', "another order of bytes");
    out.type = static_cast<Type>(whole[1]);
    // The fields' array begins at 12, with its length; alignment counts from the message's start.
    uint32_t fieldBytes;
    memcpy(&fieldBytes, whole.begin() + 12, 4);
    size_t fieldsEnd = PREAMBLE_BYTES + fieldBytes;
    KJ_REQUIRE(fieldsEnd <= whole.size(), "header ends early");
    out.bodyAt = (fieldsEnd + 7) & ~size_t{7};
    KJ_REQUIRE(out.bodyAt <= whole.size(), "header ends early");
    Reader fields(whole.slice(0, fieldsEnd));
    fields.leave(PREAMBLE_BYTES);
    while (fields.more(fieldsEnd)) {
      fields.structure();
      uint8_t field = fields.byte();
      kj::StringPtr type = fields.signature();
      if (type == "s" || type == "o") {
        kj::StringPtr value = fields.text();
        if (field == ERROR_NAME) out.errorName = value;
        if (field == SENDER) out.sender = value;
        if (field == PATH) out.path = value;
        if (field == INTERFACE) out.interface = value;
        if (field == MEMBER) out.member = value;
      } else if (type == "g") {
        kj::StringPtr value = fields.signature();
        if (field == SIGNATURE) out.signature = value;
      } else {
        KJ_REQUIRE(type == "u", "a header field of another type");
        uint32_t value = fields.uint32();
        if (field == REPLY_SERIAL) out.replySerial = value;
      }
    }
    ok = true;
  });
  if (!ok || broken != nullptr) return nullptr;
  out.whole = kj::mv(whole);
  return kj::mv(out);
}

}  // namespace praefectus::dbus
