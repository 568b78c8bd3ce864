// First in, first out, one at a time per key: the order of a session's requests, and the rule that
// two sessions never interleave on one window.
#pragma once

#include <kj/async.h>

#include <cstdint>
#include <deque>
#include <map>

namespace praefectus {

class Turnstile {
 public:
  // Held while inside; letting go admits the next.
  class Ticket {
   public:
    Ticket(Turnstile& owner, uint64_t key) : owner(&owner), key(key) {}
    Ticket(Ticket&& other) noexcept : owner(other.owner), key(other.key) { other.owner = nullptr; }
    ~Ticket() noexcept(false) {
      if (owner != nullptr) owner->leave(key);
    }
    KJ_DISALLOW_COPY(Ticket);

   private:
    Turnstile* owner;
    uint64_t key;
  };

  kj::Promise<Ticket> enter(uint64_t key) {
    auto [place, first] = lines.try_emplace(key);
    if (first) return Ticket(*this, key);
    auto paf = kj::newPromiseAndFulfiller<Ticket>();
    place->second.push_back(kj::mv(paf.fulfiller));
    return kj::mv(paf.promise);
  }

 private:
  // One that gave up waiting is passed over, so that the turn is never handed to nobody.
  void leave(uint64_t key) {
    auto place = lines.find(key);
    while (!place->second.empty()) {
      auto next = kj::mv(place->second.front());
      place->second.pop_front();
      if (next->isWaiting()) {
        next->fulfill(Ticket(*this, key));
        return;
      }
    }
    lines.erase(place);
  }

  // A key is present while somebody is inside; the deque holds those who wait.
  std::map<uint64_t, std::deque<kj::Own<kj::PromiseFulfiller<Ticket>>>> lines;
};

}  // namespace praefectus
