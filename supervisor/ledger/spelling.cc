#include "supervisor/ledger/spelling.h"

namespace praefectus::ledger {
namespace {

struct Right {
  kj::StringPtr word;
  bool Rights::*granted;
};
constexpr Right RIGHTS[] = {{"focus"_kj, &Rights::focus},
                            {"own_pointer"_kj, &Rights::ownPointer},
                            {"user_pointer"_kj, &Rights::userPointer},
                            {"irreversible"_kj, &Rights::irreversible}};

template <typename Take>
void forEachWord(kj::StringPtr words, Take&& take) {
  size_t begin = 0;
  for (size_t end = 0; end <= words.size() && words.size() > 0; ++end) {
    if (end < words.size() && words[end] != ' ') continue;
    take(kj::heapString(words.slice(begin, end)));
    begin = end + 1;
  }
}

}  // namespace

kj::String wordsOf(const Rights& rights) {
  kj::Vector<kj::StringPtr> words;
  for (auto& each : RIGHTS) {
    if (rights.*each.granted) words.add(each.word);
  }
  return kj::strArray(words, " ");
}

Rights rightsIn(kj::StringPtr words) {
  Rights out;
  forEachWord(words, [&](kj::StringPtr word) {
    for (auto& each : RIGHTS) out.*each.granted = out.*each.granted || word == each.word;
  });
  KJ_REQUIRE(wordsOf(out) == words, "not rights, or not in their order");
  return out;
}

kj::String wordsOf(kj::ArrayPtr<const Warning> warnings) {
  return kj::strArray(
      KJ_MAP(warning, warnings) { return nameOf(warning); }, " ");
}

kj::Vector<Warning> warningsIn(kj::StringPtr words) {
  kj::Vector<Warning> out;
  forEachWord(words, [&](kj::StringPtr word) { out.add(enumerantOf<Warning>(word)); });
  return out;
}

}  // namespace praefectus::ledger
