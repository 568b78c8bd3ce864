#include "supervisor/cli/commands.h"

namespace praefectus::cli {

Options::Options(Arguments arguments, kj::ArrayPtr<const Spec> specs, size_t positionals) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto word = arguments[i];
    if (!word.startsWith("-")) {
      if (rest.size() == positionals)
        throw usage(kj::str("one argument too many: ", printable(word)));
      rest.add(word);
      continue;
    }
    const Spec* spec = nullptr;
    for (auto& candidate : specs) {
      if (candidate.name == word) spec = &candidate;
    }
    if (spec == nullptr) throw usage(kj::str("unknown option ", printable(word)));
    if (has(word)) throw usage(kj::str(word, " was given twice"));
    if (!spec->takesValue) {
      given.add(Given{word, ""_kj});
      continue;
    }
    if (i + 1 == arguments.size() || arguments[i + 1].size() == 0 || arguments[i + 1][0] == '-') {
      throw usage(kj::str(word, " needs a value"));
    }
    given.add(Given{word, arguments[++i]});
  }
}

kj::Maybe<kj::StringPtr> Options::value(kj::StringPtr name) const {
  for (auto& one : given) {
    if (one.name == name) return one.value;
  }
  return nullptr;
}

bool Options::has(kj::StringPtr name) const { return value(name) != nullptr; }

}  // namespace praefectus::cli
