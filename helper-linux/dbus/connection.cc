#include "helper-linux/dbus/connection.h"
#include "ipc/bounds.h"

#include <kj/debug.h>

#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace praefectus::dbus {
namespace {

constexpr size_t FIRST_BUFFER_BYTES = 64u << 10;
constexpr size_t AUTH_LINE_BYTES = 512;

// "AUTH EXTERNAL" takes the user id as hexadecimal of its decimal digits; the kernel vouches for
// it.
kj::String authentication() {
  kj::Vector<char> out;
  out.add('\0');
  out.addAll("AUTH EXTERNAL "_kj);
  for (char digit : kj::str(geteuid())) {
    out.add('3');
    out.add(digit);
  }
  out.addAll("\r\n"_kj);
  out.add('\0');
  return kj::String(out.releaseAsArray());
}

// Reads the server's one line; it says nothing more before BEGIN.
kj::Promise<kj::String> readLine(kj::AsyncIoStream& stream, kj::String soFar) {
  auto buffer = kj::heapArray<char>(AUTH_LINE_BYTES);
  auto reading = stream.tryRead(buffer.begin(), 1, buffer.size());
  return reading.then([&stream, soFar = kj::mv(soFar),
                       buffer = kj::mv(buffer)](size_t size) mutable -> kj::Promise<kj::String> {
    KJ_REQUIRE(size > 0 && soFar.size() < AUTH_LINE_BYTES, "the bus did not authenticate us");
    auto line = kj::str(soFar, buffer.slice(0, size));
    if (line.endsWith("\n")) return kj::mv(line);
    return readLine(stream, kj::mv(line));
  });
}

kj::Promise<void> authenticate(kj::AsyncIoStream& stream) {
  auto hello = authentication();
  auto sent = stream.write(hello.begin(), hello.size()).attach(kj::mv(hello));
  return sent.then([&stream]() { return readLine(stream, kj::str()); })
      .then([&stream](kj::String&& line) {
        KJ_REQUIRE(line.startsWith("OK "), "the bus did not authenticate us");
        static constexpr kj::StringPtr BEGIN = "BEGIN\r\n"_kj;
        return stream.write(BEGIN.begin(), BEGIN.size());
      });
}

// D-Bus addresses escape bytes as %XX.
kj::String unescape(kj::ArrayPtr<const char> text) {
  kj::Vector<char> out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      char digits[3] = {text[i + 1], text[i + 2], 0};
      out.add(static_cast<char>(strtoul(digits, nullptr, 16)));
      i += 2;
    } else {
      out.add(text[i]);
    }
  }
  out.add('\0');
  return kj::String(out.releaseAsArray());
}

kj::Vector<kj::ArrayPtr<const char>> split(kj::ArrayPtr<const char> text, char separator) {
  kj::Vector<kj::ArrayPtr<const char>> out;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == separator) {
      out.add(text.slice(start, i));
      start = i + 1;
    }
  }
  return out;
}

}  // namespace

kj::Vector<kj::String> unixAddresses(kj::StringPtr addresses) {
  kj::Vector<kj::String> out;
  for (auto address : split(addresses, ';')) {
    kj::String text = kj::str(address);
    if (!text.startsWith("unix:")) continue;
    for (auto pair : split(text.slice(5), ',')) {
      kj::String entry = kj::str(pair);
      if (entry.startsWith("path=")) out.add(kj::str("unix:", unescape(entry.slice(5))));
      if (entry.startsWith("abstract=")) {
        out.add(kj::str("unix-abstract:", unescape(entry.slice(9))));
      }
    }
  }
  return out;
}

// One call that waits for its reply. Removes itself when the caller loses interest.
class Connection::PendingCall {
 public:
  PendingCall(kj::PromiseFulfiller<Reply>& fulfiller, Connection& owner, uint32_t serial,
              kj::TimePoint deadline)
      : fulfiller(fulfiller), owner(owner), serial(serial), late(nullptr) {
    owner.waiting.insert(serial, this);
    late = owner.timer.atTime(deadline)
               .then([this]() {
                 end(Reply{End::LATE, {}});
               })
               .eagerlyEvaluate(nullptr);
  }
  ~PendingCall() noexcept(false) { forget(); }
  KJ_DISALLOW_COPY(PendingCall);

  void end(Reply reply) {
    forget();
    fulfiller.fulfill(kj::mv(reply));
  }

 private:
  void forget() {
    KJ_IF_MAYBE (connection, owner) connection->waiting.erase(serial);
    owner = nullptr;
  }

  kj::PromiseFulfiller<Reply>& fulfiller;
  kj::Maybe<Connection&> owner;
  uint32_t serial;
  kj::Promise<void> late;
};

Connection::Connection(kj::Own<kj::AsyncIoStream> streamParam, kj::Timer& timer)
    : stream(kj::mv(streamParam)),
      timer(timer),
      received(kj::heapArray<kj::byte>(FIRST_BUFFER_BYTES)),
      writer(kj::READY_NOW),
      reader(nullptr) {
  reader = readMessages().eagerlyEvaluate([this](kj::Exception&&) { lose(); });
}

Connection::~Connection() noexcept(false) { lose(); }

kj::Promise<kj::Maybe<kj::Own<Connection>>> Connection::open(kj::Network& network, kj::Timer& timer,
                                                             kj::StringPtr addresses,
                                                             kj::TimePoint deadline) {
  using Opened = kj::Maybe<kj::Own<Connection>>;
  auto names = unixAddresses(addresses);
  if (names.empty()) return Opened(nullptr);
  auto connecting = kj::evalNow([&]() {
                      return network.parseAddress(names[0]);
                    }).then([](kj::Own<kj::NetworkAddress>&& address) {
    auto connected = address->connect();
    return connected.attach(kj::mv(address));
  });
  auto opening = connecting.then([&timer, deadline](kj::Own<kj::AsyncIoStream>&& stream) {
    kj::AsyncIoStream& raw = *stream;
    return authenticate(raw).then([&timer, deadline, stream = kj::mv(stream)]() mutable {
      auto self = kj::heap<Connection>(kj::mv(stream), timer);
      Call hello{"org.freedesktop.DBus"_kj, "/org/freedesktop/DBus"_kj, "org.freedesktop.DBus"_kj,
                 "Hello"_kj};
      auto greeted = self->call(hello, Arguments(), deadline);
      return greeted.then([self = kj::mv(self)](Reply&& reply) mutable -> Opened {
        if (reply.end != End::REPLIED) return nullptr;
        return kj::mv(self);
      });
    });
  });
  return timer.timeoutAt(deadline, kj::mv(opening)).catch_([](kj::Exception&&) -> Opened {
    return nullptr;
  });
}

kj::Promise<Reply> Connection::call(const Call& call, const Arguments& arguments,
                                    kj::TimePoint deadline) {
  if (gone) return Reply{End::LOST, {}};
  if (++lastSerial == 0) ++lastSerial;
  outgoing.add(encodeCall(call, lastSerial, arguments));
  if (!writing) {
    writing = true;
    // Later, so that all calls of one turn of the loop leave in one write.
    writer = kj::evalLater([this]() {
               return writeMessages();
             }).eagerlyEvaluate([this](kj::Exception&&) { lose(); });
  }
  return kj::newAdaptedPromise<Reply, PendingCall>(*this, lastSerial, deadline);
}

kj::Promise<bool> Connection::match(kj::StringPtr rule, kj::TimePoint deadline) {
  Arguments arguments;
  arguments.text(rule);
  Call add{"org.freedesktop.DBus"_kj, "/org/freedesktop/DBus"_kj, "org.freedesktop.DBus"_kj,
           "AddMatch"_kj};
  return call(add, arguments, deadline).then([](Reply&& reply) {
    return reply.end == End::REPLIED;
  });
}

kj::Promise<void> Connection::writeMessages() {
  auto batch = outgoing.releaseAsArray();
  outgoing = kj::Vector<kj::Array<kj::byte>>();
  auto pieces = KJ_MAP(message, batch)->kj::ArrayPtr<const kj::byte> { return message; };
  auto written = stream->write(pieces.asPtr());
  return written.attach(kj::mv(pieces), kj::mv(batch)).then([this]() -> kj::Promise<void> {
    if (!outgoing.empty()) return writeMessages();
    writing = false;
    return kj::READY_NOW;
  });
}

kj::Promise<void> Connection::readMessages() {
  return stream->tryRead(received.begin() + filled, 1, received.size() - filled)
      .then([this](size_t size) -> kj::Promise<void> {
        KJ_REQUIRE(size > 0, "the bus closed the connection");
        filled += size;
        takeMessages();
        return readMessages();
      });
}

void Connection::takeMessages() {
  size_t at = 0;
  for (;;) {
    if (skip > 0) {
      size_t dropped = kj::min(skip, filled - at);
      skip -= dropped;
      at += dropped;
    }
    size_t rest = filled - at;
    if (rest < PREAMBLE_BYTES) break;
    auto begin = received.begin() + at;
    uint64_t length =
        KJ_REQUIRE_NONNULL(messageLength(kj::arrayPtr(begin, rest)), "not a D-Bus message");
    if (length > bounds::BUS_MESSAGE_BYTES) {
      skip = length;
      continue;
    }
    if (rest < length) {
      if (received.size() < length) {
        auto larger = kj::heapArray<kj::byte>(length * 2);
        memcpy(larger.begin(), begin, rest);
        received = kj::mv(larger);
        filled = rest;
        return;
      }
      break;
    }
    auto whole = kj::heapArray<kj::byte>(begin, length);
    at += length;
    KJ_IF_MAYBE (message, Message::parse(kj::mv(whole))) {
      if (message->type == Message::Type::SIGNAL) {
        KJ_IF_MAYBE (heard, listener) (*heard)(*message);
        continue;
      }
      if (message->type != Message::Type::RETURN && message->type != Message::Type::ERROR) continue;
      KJ_IF_MAYBE (pending, waiting.find(message->replySerial)) {
        End end = message->type == Message::Type::RETURN ? End::REPLIED : End::ERROR;
        (*pending)->end(Reply{end, kj::mv(*message)});
      }
    }
  }
  memmove(received.begin(), received.begin() + at, filled - at);
  filled -= at;
}

void Connection::lose() {
  gone = true;
  while (waiting.size() > 0) waiting.begin()->value->end(Reply{End::LOST, {}});
}

}  // namespace praefectus::dbus
