// One JSON object with known members: being read, or being written canonically.
//
// Both classes have the same verbs, so that the members of a struct are listed once, in a function
// template that is given either. Sizes are in bytes; every bound is inclusive, and only the reader
// looks at it.
#pragma once

#include "attest/v2/request.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace praefectus::attest::v2 {

constexpr size_t HASH_DIGITS = 64;
constexpr size_t NAME_BYTES = 256;

// The spellings of an enumeration, in its order.
template <size_t N>
using Words = const kj::StringPtr[N];

// Keeps its first refusal, and does nothing more after it.
class Reader {
 public:
  static constexpr bool READS = true;

  explicit Reader(Json& json) : from(objectIn(json)) {
    if (from == nullptr) {
      refuse("Something that must be an object is missing or is not.");
    }
  }

  void version(kj::StringPtr name) {
    auto json = take(name);
    if (json == nullptr || !json->value.is<uint64_t>()) {
      return refuse("A version is missing or is not a number.");
    }
    if (json->value.get<uint64_t>() != VERSION) {
      refuse({RefusalCode::UNSUPPORTED_VERSION, "The request states another protocol version."});
    }
  }

  void text(kj::StringPtr name, kj::String& to, size_t least, size_t most) {
    readText(take(name), to, least, most);
  }

  void maybeText(kj::StringPtr name, kj::Maybe<kj::String>& to, size_t least, size_t most) {
    auto json = takeOptional(name);
    if (json != nullptr) readText(json, to.emplace(), least, most);
  }

  void texts(kj::StringPtr name, kj::Vector<kj::String>& to, size_t fewest, size_t greatest,
             size_t least, size_t most) {
    auto json = take(name);
    if (json == nullptr || !json->value.is<Json::Array>()) {
      return refuse("A list is missing or is not one.");
    }
    auto& items = json->value.get<Json::Array>();
    if (items.size() < fewest || items.size() > greatest) {
      return refuse("A list is too short or too long.");
    }
    for (auto& item : items) readText(&item, to.add(), least, most);
  }

  // See isName.
  void name(kj::StringPtr name, kj::String& to) {
    text(name, to, 1, NAME_BYTES);
    if (!isName(to)) refuse("A name is not 1 to 256 letters, digits, '-', '_' or ':'.");
  }

  void hash(kj::StringPtr name, kj::String& to) {
    text(name, to, HASH_DIGITS, HASH_DIGITS);
    if (unhex(to) == nullptr) {
      refuse("A hash is not 64 lower-case hexadecimal digits.");
    }
  }

  template <typename T>
  void number(kj::StringPtr name, T& to, std::type_identity_t<T> least,
              std::type_identity_t<T> most) {
    to = numberIn(take(name), least, most);
  }

  void maybeNumber(kj::StringPtr name, kj::Maybe<uint32_t>& to, uint32_t least, uint32_t most) {
    auto json = takeOptional(name);
    if (json != nullptr) to = numberIn(json, least, most);
  }

  void flag(kj::StringPtr name, bool& to) {
    auto json = take(name);
    if (json == nullptr || !json->value.is<bool>()) {
      return refuse("A flag is missing or is neither true nor false.");
    }
    to = json->value.get<bool>();
  }

  template <typename Enum, size_t N>
  void word(kj::StringPtr name, Enum& to, Words<N>& words) {
    to = static_cast<Enum>(indexOf(name, words));
  }

  // The position of a member's text among `words`; 0 when that is refused.
  size_t indexOf(kj::StringPtr name, kj::ArrayPtr<const kj::StringPtr> words) {
    kj::String text;
    this->text(name, text, 0, NAME_BYTES);
    auto at = std::find(words.begin(), words.end(), text);
    if (at != words.end()) return static_cast<size_t>(at - words.begin());
    refuse({RefusalCode::UNKNOWN_FIELD, "A kind or another word is not one of those that exist."});
    return 0;
  }

  // The object that a member is; `visit` is given its reader.
  template <typename Visit>
  void members(kj::StringPtr name, Visit&& visit) {
    auto json = take(name);
    if (json == nullptr) return refuse("An object is missing.");
    Reader inner(*json);
    visit(inner);
    KJ_IF_MAYBE (why, inner.finish()) refuse(*why);
  }

  // Nothing when the member is absent, or something was refused before.
  Json* take(kj::StringPtr name) {
    if (refused != nullptr) return nullptr;
    KJ_IF_MAYBE (json, from->find(name)) {
      ++found;
      return json;
    }
    return nullptr;
  }

  void refuse(Refusal why) {
    if (refused == nullptr) refused = why;
  }
  void refuse(const char* detail) { refuse({RefusalCode::MALFORMED, detail}); }

  // Once every member was asked for.
  kj::Maybe<Refusal> finish() {
    if (refused == nullptr && from->size() > found) {
      refuse({RefusalCode::UNKNOWN_FIELD, "An object has an unknown key."});
    }
    return refused;
  }

 private:
  static Json::Object* objectIn(Json& json) {
    return json.value.is<Json::Object>() ? &json.value.get<Json::Object>() : nullptr;
  }

  // Nothing when it is null, too.
  Json* takeOptional(kj::StringPtr name) {
    auto json = take(name);
    return json != nullptr && json->value.is<Json::Null>() ? nullptr : json;
  }

  void readText(Json* json, kj::String& to, size_t least, size_t most) {
    if (json == nullptr || !json->value.is<kj::String>()) {
      return refuse("A text is missing or is not one.");
    }
    auto& text = json->value.get<kj::String>();
    if (text.size() < least || text.size() > most || !isText(text)) {
      return refuse("A text is too short, too long or has a NUL.");
    }
    to = kj::mv(text);
  }

  // `least` when it is refused.
  template <typename T>
  T numberIn(const Json* json, T least, T most) {
    if (json != nullptr && json->value.is<int64_t>()) {
      return within(json->value.get<int64_t>(), least, most);
    }
    if (json != nullptr && json->value.is<uint64_t>()) {
      return within(json->value.get<uint64_t>(), least, most);
    }
    refuse("A number is missing or is not one.");
    return least;
  }

  template <typename T, typename Integer>
  T within(Integer number, T least, T most) {
    if (std::cmp_greater_equal(number, least) && std::cmp_less_equal(number, most)) {
      return static_cast<T>(number);
    }
    refuse("A number is too small or too large.");
    return least;
  }

  Json::Object* from;
  size_t found = 0;
  kj::Maybe<Refusal> refused;
};

class Writer {
 public:
  static constexpr bool READS = false;

  void version(kj::StringPtr name) { add(name, kj::str(VERSION)); }
  void text(kj::StringPtr name, kj::StringPtr from, size_t, size_t) {
    add(name, canonicalText(from));
  }
  void maybeText(kj::StringPtr name, const kj::Maybe<kj::String>& from, size_t, size_t) {
    KJ_IF_MAYBE (text, from) {
      add(name, canonicalText(*text));
    } else {
      add(name, kj::str("null"));
    }
  }
  void texts(kj::StringPtr name, const kj::Vector<kj::String>& from, size_t, size_t, size_t,
             size_t) {
    add(name, canonicalArray(KJ_MAP(text, from) { return canonicalText(text); }));
  }
  void name(kj::StringPtr name, kj::StringPtr from) { add(name, canonicalText(from)); }
  void hash(kj::StringPtr name, kj::StringPtr from) { add(name, canonicalText(from)); }
  template <typename T>
  void number(kj::StringPtr name, T from, std::type_identity_t<T>, std::type_identity_t<T>) {
    add(name, kj::str(from));
  }
  void maybeNumber(kj::StringPtr name, const kj::Maybe<uint32_t>& from, uint32_t, uint32_t) {
    KJ_IF_MAYBE (number, from) {
      add(name, kj::str(*number));
    } else {
      add(name, kj::str("null"));
    }
  }
  void flag(kj::StringPtr name, bool from) { add(name, kj::str(from ? "true" : "false")); }
  template <typename Enum, size_t N>
  void word(kj::StringPtr name, Enum from, Words<N>& words) {
    add(name, canonicalText(words[static_cast<size_t>(from)]));
  }

  template <typename Visit>
  void members(kj::StringPtr name, Visit&& visit) {
    Writer inner;
    visit(inner);
    add(name, inner.finish());
  }

  void add(kj::StringPtr name, kj::String part) { written.insert(kj::str(name), kj::mv(part)); }
  kj::String finish() const { return canonicalObject(written); }

 private:
  CanonicalMembers written;
};

// A struct as a visitor takes it.
template <typename Visitor, typename T>
using Visited = std::conditional_t<Visitor::READS, T, const T>;

}  // namespace praefectus::attest::v2
