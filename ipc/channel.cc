#include "ipc/channel.h"

#include "ipc/bounds.h"
#include "ipc/strict.h"

#include <capnp/serialize-async.h>
#include <kj/debug.h>

namespace praefectus {
namespace {

using Message = capnp::MessageReaderAndFds;
using Segments = kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>;

// A received message in its own memory.
class ReceivedMessage final : public capnp::MessageReader {
 public:
  ReceivedMessage(kj::Array<capnp::word> content, kj::Array<size_t> sizes,
                  capnp::ReaderOptions options)
      : MessageReader(options), words(kj::mv(content)) {
    segments = kj::heapArray<kj::ArrayPtr<const capnp::word>>(sizes.size());
    size_t at = 0;
    for (auto i : kj::indices(sizes)) {
      segments[i] = words.slice(at, at + sizes[i]);
      at += sizes[i];
    }
  }

  kj::ArrayPtr<const capnp::word> getSegment(capnp::uint id) override {
    return id < segments.size() ? segments[id] : nullptr;
  }

 private:
  kj::Array<capnp::word> words;
  kj::Array<kj::ArrayPtr<const capnp::word>> segments;
};

size_t littleEndian(const kj::byte* at) {
  return size_t{at[0]} | size_t{at[1]} << 8 | size_t{at[2]} << 16 | size_t{at[3]} << 24;
}

// Cap'n Proto's stream framing with three rules of its own.
//
// The library has one number for both the size of a message and how much of it may be read in all.
// We read a message several times, so with one number either a large message could not be read or a
// too large one would be buffered.
//
// The library gives up reading when a write fails. A helper that answers and dies would then lose
// its answer to our next message, and a known outcome would turn into an unknown one. Here only
// reading ends a connection: what can no longer be sent is dropped.
//
// A peer that asks and never reads would have us keep its answers without end.
//
// Source: https://capnproto.org/encoding.html#serialization-over-a-stream
class BoundedMessages final : public capnp::MessageStream {
 public:
  // `queued` tells how many bytes wait to be sent.
  BoundedMessages(kj::AsyncIoStream& bytes, kj::Function<size_t()> queued)
      : stream(bytes), out(bytes), unsent(kj::mv(queued)) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    readingEnd = kj::mv(paf.promise);
    readingEnded = kj::mv(paf.fulfiller);
  }

  bool peerLeft() const { return left; }

  // Resolves when nothing more will be read: the peer has gone, or sent what no message can be.
  kj::Promise<void> takeReadingEnd() { return kj::mv(readingEnd); }

  kj::Promise<kj::Maybe<Message>> tryReadMessage(kj::ArrayPtr<kj::AutoCloseFd>,
                                                 capnp::ReaderOptions options,
                                                 kj::ArrayPtr<capnp::word>) override {
    return kj::evalNow([&]() {
             KJ_REQUIRE(unsent() <= bounds::UNREAD_BYTES, "the peer does not read its answers");
             return readStart(options);
           })
        .catch_([this](kj::Exception&& why) -> kj::Promise<kj::Maybe<Message>> {
          left = left || why.getType() == kj::Exception::Type::DISCONNECTED;
          endReading();
          return kj::mv(why);
        });
  }

  kj::Promise<void> writeMessage(kj::ArrayPtr<const int> fds, Segments segments) override {
    requireSendable(segments);
    return writeUnlessLost([&]() { return out.writeMessage(fds, segments); });
  }

  kj::Promise<void> writeMessages(kj::ArrayPtr<Segments> messages) override {
    for (auto& message : messages) requireSendable(message);
    return writeUnlessLost([&]() { return out.writeMessages(messages); });
  }

  kj::Maybe<int> getSendBufferSize() override { return nullptr; }
  kj::Promise<void> end() override { return out.end(); }

 private:
  static void requireSendable(Segments segments) {
    size_t words = 0;
    for (auto& segment : segments) words += segment.size();
    KJ_REQUIRE(words <= bounds::MESSAGE_WORDS && segments.size() <= bounds::SEGMENTS,
               "a message of ours is larger than a peer may accept");
  }

  // A stream that ends inside a message is a peer that died, not one that lies.
  static void requireWhole(size_t got, size_t wanted) {
    if (got < wanted) kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "the peer has gone"));
  }

  // Calls in flight now fail. Nothing that still waits to be sent may follow after that, or a call
  // of which we say "nothing was sent" could yet be carried out.
  void endReading() {
    lost = true;
    readingEnded->fulfill();
  }

  template <typename Write>
  kj::Promise<void> writeUnlessLost(Write&& write) {
    if (lost) return kj::READY_NOW;
    return kj::evalNow(kj::fwd<Write>(write)).catch_([this](kj::Exception&& why) {
      if (why.getType() != kj::Exception::Type::DISCONNECTED) kj::throwFatalException(kj::mv(why));
      lost = true;
    });
  }

  // Fills `to`, less where the stream ends. What has arrived behind it is taken along for the next
  // time: most messages are then one read and not two.
  kj::Promise<size_t> read(kj::ArrayPtr<kj::byte> to) {
    size_t had = takeAhead(to);
    auto rest = to.slice(had, to.size());
    if (rest.size() == 0) return had;
    if (rest.size() >= sizeof(ahead)) {
      return stream.tryRead(rest.begin(), rest.size(), rest.size()).then([had](size_t got) {
        return had + got;
      });
    }
    return stream.tryRead(ahead, rest.size(), sizeof(ahead)).then([this, had, rest](size_t got) {
      unused = kj::arrayPtr(ahead, got);
      return had + takeAhead(rest);
    });
  }

  size_t takeAhead(kj::ArrayPtr<kj::byte> to) {
    size_t size = kj::min(to.size(), unused.size());
    if (size > 0) memcpy(to.begin(), unused.begin(), size);
    unused = unused.slice(size, unused.size());
    return size;
  }

  // The number of segments, less one, and the first one's size.
  kj::Promise<kj::Maybe<Message>> readStart(capnp::ReaderOptions options) {
    auto start = kj::heapArray<kj::byte>(8);
    auto promise = read(start);
    return promise.then(
        [this, options, start = kj::mv(start)](size_t got) -> kj::Promise<kj::Maybe<Message>> {
          left = got < start.size();
          if (got == 0) {
            endReading();
            return kj::Maybe<Message>(nullptr);
          }
          requireWhole(got, start.size());
          size_t more = littleEndian(start.begin());
          KJ_REQUIRE(more < bounds::SEGMENTS, "a received message has too many segments");
          return readTable(littleEndian(start.begin() + 4), more, options);
        });
  }

  // The sizes of the other segments, padded to whole words.
  kj::Promise<kj::Maybe<Message>> readTable(size_t first, size_t more,
                                            capnp::ReaderOptions options) {
    if (more == 0) return readContent(kj::heapArray<size_t>({first}), options);
    auto table = kj::heapArray<kj::byte>((more + 1) / 2 * 8);
    auto promise = read(table);
    return promise.then([this, first, more, options, table = kj::mv(table)](size_t got) {
      requireWhole(got, table.size());
      auto sizes = kj::heapArray<size_t>(more + 1);
      sizes[0] = first;
      for (size_t i = 0; i < more; ++i) sizes[i + 1] = littleEndian(table.begin() + i * 4);
      return readContent(kj::mv(sizes), options);
    });
  }

  kj::Promise<kj::Maybe<Message>> readContent(kj::Array<size_t> sizes,
                                              capnp::ReaderOptions options) {
    size_t total = 0;
    for (auto size : sizes) total += size;
    KJ_REQUIRE(total <= bounds::MESSAGE_WORDS, "a received message is too large");
    auto words = kj::heapArray<capnp::word>(total);
    auto bytes = words.asBytes();
    auto promise = read(bytes);
    return promise.then([options, sizes = kj::mv(sizes),
                         words = kj::mv(words)](size_t got) mutable -> kj::Maybe<Message> {
      requireWhole(got, words.asBytes().size());
      return Message{kj::heap<ReceivedMessage>(kj::mv(words), kj::mv(sizes), options), nullptr};
    });
  }

  kj::AsyncIoStream& stream;
  capnp::AsyncIoMessageStream out;
  kj::Function<size_t()> unsent;
  kj::Promise<void> readingEnd = nullptr;
  kj::Own<kj::PromiseFulfiller<void>> readingEnded;
  bool left = false;
  bool lost = false;
  kj::byte ahead[4096];
  kj::ArrayPtr<const kj::byte> unused = nullptr;  // Of `ahead`: read, and not asked for yet.
};

capnp::ReaderOptions receiveOptions() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = bounds::TRAVERSAL_WORDS;
  options.nestingLimit = bounds::NESTING;
  return options;
}

}  // namespace

CountingStream::CountingStream(kj::Own<kj::AsyncIoStream> stream) : inner(kj::mv(stream)) {}

uint64_t CountingStream::written() const { return handed; }

kj::Promise<size_t> CountingStream::tryRead(void* buffer, size_t minBytes, size_t maxBytes) {
  return inner->tryRead(buffer, minBytes, maxBytes);
}

kj::Promise<void> CountingStream::write(const void* buffer, size_t size) {
  handed += size;
  return inner->write(buffer, size);
}

kj::Promise<void> CountingStream::write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) {
  for (auto& piece : pieces) handed += piece.size();
  return inner->write(pieces);
}

kj::Promise<void> CountingStream::whenWriteDisconnected() { return inner->whenWriteDisconnected(); }
void CountingStream::shutdownWrite() { inner->shutdownWrite(); }
void CountingStream::abortRead() { inner->abortRead(); }

struct Channel::Parts {
  using Side = capnp::rpc::twoparty::Side;
  using VatId = capnp::rpc::twoparty::VatId;

  CountingStream stream;
  BoundedMessages messages;
  mutable capnp::TwoPartyVatNetwork network;  // Its queries are not const.
  capnp::RpcSystem<VatId> rpc;
  kj::ForkedPromise<void> gone;

  Parts(kj::LowLevelAsyncIoProvider& io, kj::AutoCloseFd socket, Side side,
        kj::Maybe<capnp::Capability::Client> bootstrap)
      : stream(io.wrapSocketFd(kj::mv(socket))),
        messages(stream, [this]() { return network.getCurrentQueueSize(); }),
        network(messages, bounds::DESCRIPTORS, side, receiveOptions()),
        rpc(makeRpc(kj::mv(bootstrap))),
        // The last thing in the queue, so that whoever waits for an answer that was read sees the
        // answer first.
        gone(network.onDisconnect()
                 .exclusiveJoin(messages.takeReadingEnd())
                 .then([]() { return kj::evalLast([]() {}); })
                 .fork()) {
    rpc.setFlowLimit(bounds::CALL_WORDS);
  }

  capnp::RpcSystem<VatId> makeRpc(kj::Maybe<capnp::Capability::Client> bootstrap) {
    KJ_IF_MAYBE (served, bootstrap) return capnp::makeRpcServer(network, kj::mv(*served));
    return capnp::makeRpcClient(network);
  }
};

Channel::Channel(kj::LowLevelAsyncIoProvider& io, kj::AutoCloseFd socket,
                 capnp::Capability::Client bootstrap)
    : parts(kj::heap<Parts>(io, kj::mv(socket), Parts::Side::SERVER, kj::mv(bootstrap))) {}

Channel::Channel(kj::LowLevelAsyncIoProvider& io, kj::AutoCloseFd socket)
    : parts(kj::heap<Parts>(io, kj::mv(socket), Parts::Side::CLIENT, nullptr)) {}

Channel::~Channel() noexcept(false) = default;

capnp::Capability::Client Channel::bootstrap() {
  capnp::MallocMessageBuilder message;
  auto peer = message.initRoot<Parts::VatId>();
  bool serving = parts->network.getSide() == Parts::Side::SERVER;
  peer.setSide(serving ? Parts::Side::CLIENT : Parts::Side::SERVER);
  return parts->rpc.bootstrap(peer);
}

kj::Promise<void> Channel::onDisconnect() { return parts->gone.addBranch(); }
bool Channel::peerLeft() const { return parts->messages.peerLeft(); }
uint64_t Channel::written() const { return parts->stream.written(); }

namespace {

[[noreturn]] void endCall(const Refusal& refusal) {
  kj::throwFatalException(kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__,
                                        kj::str(nameOf(refusal.code), ": ", refusal.detail)));
}

}  // namespace

void requireStrictCall(capnp::InterfaceSchema schema, uint64_t interfaceId, uint16_t methodId,
                       capnp::AnyPointer::Reader params) {
  auto methods = schema.getMethods();
  if (interfaceId != schema.getProto().getId() || methodId >= methods.size()) {
    endCall({RefusalCode::UNKNOWN_FIELD, "The call names an unknown method."});
  }
  if (!params.isNull() && !params.isStruct()) {
    endCall({RefusalCode::MALFORMED, "The parameters are no struct."});
  }
  auto checked = checkStrict(params.getAs<capnp::AnyStruct>(), methods[methodId].getParamType());
  if (!checked.ok()) endCall(checked.refusal());
}

}  // namespace praefectus
