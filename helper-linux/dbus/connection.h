// One connection to a message bus, entirely asynchronous: connecting, authenticating and every
// call.
//
// Why not libdbus: its transport reads a little and relies on being told again (level-triggered),
// while KJ tells once (edge-triggered), and its connect blocks. A client over KJ's streams needs
// neither a trick nor a shared library. No call waits for another one, and each ends by its own
// deadline, so a silent application delays nobody else.
#pragma once

#include "helper-linux/dbus/message.h"

#include <kj/async-io.h>
#include <kj/function.h>
#include <kj/map.h>
#include <kj/timer.h>

namespace praefectus::dbus {

enum class End {
  REPLIED,
  ERROR,  // The peer, or the bus for it, answered with an error.
  LATE,   // No answer by the deadline. Whether the peer acts on the call later is unknown.
  LOST,   // The connection is gone.
};

struct Reply {
  End end = End::LOST;
  Message message;

  // What `read` makes of the body; nothing unless it was replied, with this signature, well formed.
  template <typename Read>
  auto decode(kj::StringPtr signature, Read&& read) const
      -> kj::Maybe<decltype(read(kj::instance<Reader&>()))> {
    kj::Maybe<decltype(read(kj::instance<Reader&>()))> out;
    if (end != End::REPLIED || message.signature != signature) return nullptr;
    KJ_IF_MAYBE (broken, kj::runCatchingExceptions([&]() {
                   Reader reader = message.body();
                   out = read(reader);
                 })) {
      (void)broken;
      return nullptr;
    }
    return out;
  }
};

class Connection {
 public:
  // Connects to the first address of a list like "unix:path=/run/bus,guid=…;unix:abstract=…" that
  // can be understood, authenticates as the effective user and says hello. Nothing when that does
  // not succeed by `deadline`.
  static kj::Promise<kj::Maybe<kj::Own<Connection>>> open(kj::Network& network, kj::Timer& timer,
                                                          kj::StringPtr addresses,
                                                          kj::TimePoint deadline);

  // Over a stream that is already authenticated.
  Connection(kj::Own<kj::AsyncIoStream> stream, kj::Timer& timer);
  ~Connection() noexcept(false);
  KJ_DISALLOW_COPY(Connection);

  // Sends a call and resolves with its reply, or with why there is none. Never throws. Dropping the
  // promise gives the reply up; the call stays sent.
  kj::Promise<Reply> call(const Call& call, const Arguments& arguments, kj::TimePoint deadline);

  // Hands every signal that arrives to `heard`, in the order of arrival: what a peer said before it
  // answered a call has been heard when the answer is there. Which signals arrive is asked of the
  // bus by `match`. One listener; it must not throw.
  void listen(kj::Function<void(const Message&)> heard) { listener = kj::mv(heard); }
  // Asks the bus for signals by a match rule of the specification; whether the bus has it now.
  kj::Promise<bool> match(kj::StringPtr rule, kj::TimePoint deadline);

  bool lost() const { return gone; }

 private:
  class PendingCall;

  kj::Promise<void> readMessages();
  void takeMessages();
  kj::Promise<void> writeMessages();
  void lose();

  kj::Own<kj::AsyncIoStream> stream;
  kj::Timer& timer;
  bool gone = false;
  kj::Maybe<kj::Function<void(const Message&)>> listener;
  uint32_t lastSerial = 0;
  kj::HashMap<uint32_t, PendingCall*> waiting;

  kj::Array<kj::byte> received;
  size_t filled = 0;
  uint64_t skip = 0;  // Bytes still to come of an oversize message.

  kj::Vector<kj::Array<kj::byte>> outgoing;
  bool writing = false;
  kj::Promise<void> writer;
  kj::Promise<void> reader;
};

// The sockets that a D-Bus address list names, as KJ network addresses ("unix:/path",
// "unix-abstract:name"). Others than unix sockets are left out: a desktop is on this machine.
kj::Vector<kj::String> unixAddresses(kj::StringPtr addresses);

}  // namespace praefectus::dbus
