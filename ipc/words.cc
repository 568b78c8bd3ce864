#include "ipc/words.h"

#include "ipc/bounds.h"

#include <capnp/schema.h>
#include <kj/encoding.h>
#include <kj/vector.h>

namespace praefectus {
namespace {

// One table per enumeration, made from the schema at first use: names in snake_case, and for
// refusal codes the two annotations.
struct Words {
  kj::Vector<kj::String> names;
  kj::Vector<kj::StringPtr> meanings;
  kj::Vector<wire::Advice> advices;
};

constexpr uint64_t MEANS = 0xb4cdd0d0f4dd2c11;
constexpr uint64_t ADVICE = 0xe7b2c4d81bd5a320;

kj::String snake(kj::StringPtr camel) {
  kj::Vector<char> out;
  for (char c : camel) {
    if ('A' <= c && c <= 'Z') {
      out.add('_');
      out.add(static_cast<char>(c - 'A' + 'a'));
    } else {
      out.add(c);
    }
  }
  return kj::heapString(out.asPtr());
}

template <typename Enum>
const Words& wordsOf() {
  static const Words words = [] {
    Words made;
    for (auto enumerant : capnp::Schema::from<Enum>().getEnumerants()) {
      made.names.add(snake(enumerant.getProto().getName()));
      kj::StringPtr meaning = "";
      wire::Advice advice{};
      for (auto annotation : enumerant.getProto().getAnnotations()) {
        if (annotation.getId() == MEANS) meaning = annotation.getValue().getText();
        if (annotation.getId() == ADVICE) {
          advice = static_cast<wire::Advice>(annotation.getValue().getEnum());
        }
      }
      made.meanings.add(meaning);
      made.advices.add(advice);
    }
    return made;
  }();
  return words;
}

template <typename Enum>
kj::StringPtr lookUp(Enum value) {
  auto& words = wordsOf<Enum>();
  auto index = static_cast<size_t>(value);
  return index < words.names.size() ? kj::StringPtr(words.names[index]) : "unknown"_kj;
}

}  // namespace

kj::StringPtr nameOf(RefusalCode code) { return lookUp(code); }
kj::StringPtr nameOf(Terminal terminal) { return lookUp(terminal); }
kj::StringPtr nameOf(Effect effect) { return lookUp(effect); }
kj::StringPtr nameOf(Verdict verdict) { return lookUp(verdict); }
kj::StringPtr nameOf(Method method) { return lookUp(method); }
kj::StringPtr nameOf(Source source) { return lookUp(source); }
kj::StringPtr nameOf(ContextState context) { return lookUp(context); }
kj::StringPtr nameOf(Route route) { return lookUp(route); }
kj::StringPtr nameOf(ActionClass actionClass) { return lookUp(actionClass); }
kj::StringPtr nameOf(Role role) { return lookUp(role); }
kj::StringPtr nameOf(Warning warning) { return lookUp(warning); }
kj::StringPtr nameOf(wire::Mode mode) { return lookUp(mode); }
kj::StringPtr nameOf(wire::Safety safety) { return lookUp(safety); }
kj::StringPtr nameOf(wire::Proof proof) { return lookUp(proof); }
kj::StringPtr nameOf(wire::Advice advice) { return lookUp(advice); }

kj::StringPtr meaningOf(RefusalCode code) {
  auto& words = wordsOf<RefusalCode>();
  auto index = static_cast<size_t>(code);
  return index < words.meanings.size() ? words.meanings[index] : ""_kj;
}

wire::Advice adviceOn(RefusalCode code) {
  auto& words = wordsOf<RefusalCode>();
  auto index = static_cast<size_t>(code);
  return index < words.advices.size() ? words.advices[index] : wire::Advice::GIVE_UP;
}

WindowRef read(wire::WindowRef::Reader from) {
  auto process = from.getProcess();
  return {{process.getPid(), process.getStart()}, from.getWindow()};
}

void write(const WindowRef& from, wire::WindowRef::Builder to) {
  auto process = to.initProcess();
  process.setPid(from.process.pid);
  process.setStart(from.process.start);
  to.setWindow(from.window);
}

Rights read(wire::Rights::Reader from) {
  return {from.getFocus(), from.getOwnPointer(), from.getUserPointer(), from.getIrreversible()};
}

void write(const Rights& from, wire::Rights::Builder to) {
  to.setFocus(from.focus);
  to.setOwnPointer(from.ownPointer);
  to.setUserPointer(from.userPointer);
  to.setIrreversible(from.irreversible);
}

Rect read(wire::Rect::Reader from) {
  return {from.getX(), from.getY(), from.getWidth(), from.getHeight()};
}

void write(const Rect& from, wire::Rect::Builder to) {
  to.setX(from.x);
  to.setY(from.y);
  to.setWidth(from.width);
  to.setHeight(from.height);
}

kj::Maybe<LedgerId> read(wire::LedgerId::Reader from) {
  KJ_IF_MAYBE (key, fixed<32>(from.getKey())) return LedgerId{*key, from.getIncarnation()};
  return nullptr;
}

void write(const LedgerId& from, wire::LedgerId::Builder to) {
  to.setKey(bytesOf(from.key));
  to.setIncarnation(from.incarnation);
}

void write(const Refusal& from, wire::Refusal::Builder to) {
  to.setCode(from.code);
  to.setDetail(from.detail);
}

kj::String hex(Bytes bytes) { return kj::encodeHex(bytes); }

kj::Maybe<kj::Array<kj::byte>> unhex(kj::StringPtr text) {
  if (text.size() % 2 != 0) return nullptr;
  for (char c : text) {
    if (!(('0' <= c && c <= '9') || ('a' <= c && c <= 'f'))) return nullptr;
  }
  return kj::Array<kj::byte>(kj::decodeHex(text));
}

bool isIdentifier(kj::StringPtr text) {
  if (text.size() < 1 || text.size() > 256) return false;
  for (char c : text) {
    bool fine = ('A' <= c && c <= 'Z') || ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') ||
                c == '.' || c == '_' || c == ':' || c == '-';
    if (!fine) return false;
  }
  return true;
}

bool isText(kj::StringPtr text) {
  // Table 3-7 of the Unicode Standard, by ranges of the second byte.
  auto at = text.asBytes();
  for (size_t i = 0; i < at.size();) {
    kj::byte lead = at[i];
    size_t more;
    kj::byte low = 0x80, high = 0xBF;
    if (lead == 0) return false;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    if (at.size() - i <= more) return false;
    if (at[i + 1] < low || at[i + 1] > high) return false;
    for (size_t k = 2; k <= more; ++k) {
      if (at[i + k] < 0x80 || at[i + k] > 0xBF) return false;
    }
    i += more + 1;
  }
  return true;
}

}  // namespace praefectus
