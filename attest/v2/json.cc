#include "attest/v2/json.h"

#include <sodium.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace praefectus::attest::v2 {
namespace {

// nlohmann's id for a number that no double can hold (its manual, "json.exception.out_of_range").
constexpr int NUMBER_OVERFLOW = 406;

Refusal malformed(kj::StringPtr detail) { return {RefusalCode::MALFORMED, detail}; }

Refusal unsupportedNumber() {
  return {RefusalCode::UNSUPPORTED_NUMBER, "A number is not an integer of at most 64 bits."};
}

kj::String owned(const std::string& text) { return kj::heapString(text.data(), text.size()); }

// Receives the parser's events; each returns whether to go on. The library's own tree is not used,
// because there the last of two equal keys wins and a number's kind is guessed again later.
class Receiver {
 public:
  explicit Receiver(const JsonLimits& limits) : limits(limits) {}

  Result<Json> finish(bool complete) {
    KJ_IF_MAYBE (why, refused) return *why;
    if (!complete) return malformed("The text is not JSON.");
    return kj::mv(root);
  }

  bool null() { return scalar(Json::Null()); }
  bool boolean(bool is) { return scalar(is); }
  // The parser calls this for what begins with a minus only. Minus zero is no integer: the other
  // implementations of v2 take it for a fraction.
  bool number_integer(int64_t number) {
    return number == 0 ? refuse(unsupportedNumber()) : scalar(number);
  }
  bool number_unsigned(uint64_t number) { return scalar(number); }
  bool number_float(double, const std::string&) { return refuse(unsupportedNumber()); }
  bool string(std::string& text) { return scalar(owned(text)); }
  bool binary(nlohmann::json::binary_t&) { return refuse(malformed("JSON has no binary values.")); }
  bool start_object(size_t) { return open(Json::Object()); }
  bool start_array(size_t) { return open(Json::Array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& text) {
    auto name = owned(text);
    if (unfinished.back().json.value.get<Json::Object>().find(name) != nullptr) {
      return refuse(malformed("An object has the same key twice."));
    }
    unfinished.back().key = kj::mv(name);
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) {
    return refuse(error.id == NUMBER_OVERFLOW ? unsupportedNumber()
                                              : malformed("The text is not JSON."));
  }

 private:
  struct Unfinished {
    Json json;
    kj::String key;  // Of the member that comes next, in an object.
  };

  template <typename T>
  bool scalar(T value) {
    return count() && place(Json{kj::mv(value)});
  }

  template <typename T>
  bool open(T container) {
    if (unfinished.size() >= limits.depth) return refuse(malformed("The JSON nests too deeply."));
    if (!count()) return false;
    unfinished.add(Unfinished{Json{kj::mv(container)}, nullptr});
    return true;
  }

  bool close() {
    auto done = kj::mv(unfinished.back().json);
    unfinished.removeLast();
    return place(kj::mv(done));
  }

  bool place(Json json) {
    if (unfinished.empty()) {
      root = kj::mv(json);
      return true;
    }
    auto& parent = unfinished.back();
    if (parent.json.value.is<Json::Array>()) {
      parent.json.value.get<Json::Array>().add(kj::mv(json));
    } else {
      parent.json.value.get<Json::Object>().insert(kj::mv(parent.key), kj::mv(json));
    }
    return true;
  }

  bool count() {
    return ++nodes <= limits.nodes || refuse(malformed("The JSON has too many values."));
  }

  bool refuse(Refusal why) {
    refused = why;
    return false;
  }

  const JsonLimits& limits;
  size_t nodes = 0;
  kj::Vector<Unfinished> unfinished;
  Json root;
  kj::Maybe<Refusal> refused;
};

kj::String joined(kj::StringPtr before, kj::ArrayPtr<const kj::String> parts, kj::StringPtr after) {
  return kj::str(before, kj::strArray(parts, ","), after);
}

kj::String canonicalMember(kj::StringPtr key, kj::StringPtr value) {
  return kj::str(canonicalText(key), ':', value);
}

void addEscaped(kj::Vector<char>& out, char c) {
  constexpr kj::StringPtr SHORT = "\bb\tt\nn\ff\rr\"\"\\\\"_kj;
  constexpr char DIGITS[] = "0123456789abcdef";
  for (size_t i = 0; i < SHORT.size(); i += 2) {
    if (SHORT[i] != c) continue;
    out.add('\\');
    out.add(SHORT[i + 1]);
    return;
  }
  auto byte = static_cast<kj::byte>(c);
  if (byte >= 0x20) {
    out.add(c);
    return;
  }
  out.addAll("\\u00"_kj);
  out.add(DIGITS[byte >> 4]);
  out.add(DIGITS[byte & 15]);
}

}  // namespace

Result<Json> readJson(kj::ArrayPtr<const char> text, const JsonLimits& limits) {
  constexpr kj::StringPtr BYTE_ORDER_MARK = "\xEF\xBB\xBF"_kj;
  if (text.size() > limits.bytes) return malformed("The JSON text is too long.");
  // The parser skips a byte order mark, and takes a NUL for the end whatever comes after it.
  if (text.size() >= BYTE_ORDER_MARK.size() &&
      std::equal(BYTE_ORDER_MARK.begin(), BYTE_ORDER_MARK.end(), text.begin())) {
    return malformed("The text begins with a byte order mark.");
  }
  if (std::find(text.begin(), text.end(), '\0') != text.end()) {
    return malformed("The text is not JSON.");
  }
  Receiver receiver(limits);
  bool complete = nlohmann::json::sax_parse(text.begin(), text.end(), &receiver);
  return receiver.finish(complete);
}

kj::String canonical(const Json& json) {
  KJ_SWITCH_ONEOF(json.value) {
    KJ_CASE_ONEOF(null, Json::Null) { return kj::str("null"); }
    KJ_CASE_ONEOF(is, bool) { return kj::str(is ? "true" : "false"); }
    KJ_CASE_ONEOF(number, int64_t) { return kj::str(number); }
    KJ_CASE_ONEOF(number, uint64_t) { return kj::str(number); }
    KJ_CASE_ONEOF(text, kj::String) { return canonicalText(text); }
    KJ_CASE_ONEOF(array, Json::Array) {
      return canonicalArray(KJ_MAP(item, array) { return canonical(item); });
    }
    KJ_CASE_ONEOF(object, Json::Object) {
      return joined(
          "{",
          KJ_MAP(member, object) { return canonicalMember(member.key, canonical(member.value)); },
          "}");
    }
  }
  KJ_UNREACHABLE;
}

kj::String canonicalText(kj::StringPtr text) {
  kj::Vector<char> out(text.size() + 2);
  out.add('"');
  for (char c : text) addEscaped(out, c);
  out.add('"');
  return kj::heapString(out);
}

kj::String canonicalArray(kj::ArrayPtr<const kj::String> parts) { return joined("[", parts, "]"); }

kj::String canonicalObject(const CanonicalMembers& members) {
  return joined(
      "{", KJ_MAP(member, members) { return canonicalMember(member.key, member.value); }, "}");
}

kj::String sha256(Bytes bytes) {
  std::array<kj::byte, crypto_hash_sha256_BYTES> out;
  crypto_hash_sha256(out.data(), bytes.begin(), bytes.size());
  return hex(bytesOf(out));
}

}  // namespace praefectus::attest::v2
