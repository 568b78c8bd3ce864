#include "supervisor/cli/commands.h"

namespace praefectus::cli {
namespace {

// An option as it was typed: "--name VALUE" or "--name=VALUE".
struct Typed {
  kj::ArrayPtr<const char> name;
  kj::Maybe<kj::StringPtr> value;
};

Typed split(kj::StringPtr word) {
  KJ_IF_MAYBE (equals, word.findFirst('=')) {
    return {word.slice(0, *equals), word.slice(*equals + 1)};
  }
  return {word, nullptr};
}

const Options::Spec& find(const Typed& typed, kj::ArrayPtr<const Options::Spec> specs) {
  for (auto& candidate : specs) {
    if (candidate.name.asArray() == typed.name) return candidate;
  }
  throw usage(kj::str("unknown option ", printable(kj::heapString(typed.name))));
}

}  // namespace

Options::Options(Arguments arguments, kj::ArrayPtr<const Spec> specs, size_t positionals) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto word = arguments[i];
    if (!word.startsWith("-")) {
      if (rest.size() == positionals)
        throw usage(kj::str("one argument too many: ", printable(word)));
      rest.add(word);
      continue;
    }
    auto typed = split(word);
    auto& spec = find(typed, specs);
    if (has(spec.name)) throw usage(kj::str(spec.name, " was given twice"));
    auto value = typed.value;
    if (!spec.takesValue) {
      if (value != nullptr) throw usage(kj::str(spec.name, " takes no value"));
      given.add(Given{spec.name, ""_kj});
      continue;
    }
    if (value == nullptr && i + 1 < arguments.size() && !arguments[i + 1].startsWith("-")) {
      value = arguments[++i];
    }
    auto text = value.orDefault(""_kj);
    if (text.size() == 0) throw usage(kj::str(spec.name, " needs a value"));
    given.add(Given{spec.name, text});
  }
}

kj::Maybe<kj::StringPtr> Options::value(kj::StringPtr name) const {
  for (auto& one : given) {
    if (one.name == name) return one.value;
  }
  return nullptr;
}

bool Options::has(kj::StringPtr name) const { return value(name) != nullptr; }

kj::Maybe<attest::PublicKey> trustedKey(const Options& options) {
  KJ_IF_MAYBE (text, options.value("--key")) {
    KJ_IF_MAYBE (bytes, unhex(*text)) {
      KJ_IF_MAYBE (key, fixed<32>(*bytes)) return *key;
    }
    throw usage(kj::str("--key is 64 lower-case hexadecimal digits"));
  }
  return nullptr;
}

}  // namespace praefectus::cli
