// Drives one running helper: hello, reads, prepare, perform, each with a deadline; and turns what
// can go wrong with a process into words.
//
// Whether a byte of `perform` left this process decides between "failed, safe to ask again" and
// "unknown". The channel's count tells; in doubt it did.
#pragma once

#include "attest/image.h"
#include "ipc/action.h"
#include "ipc/channel.h"
#include "ipc/picture.h"
#include "ipc/schema/helper.capnp.h"
#include "supervisor/launch/launcher.h"

#include <capnp/message.h>
#include <kj/async-io.h>

namespace praefectus {

// A struct copied into a message of its own: it outlives the call that brought it.
template <typename T>
struct Held {
  // Mutable: reading a builder's root is not const in Cap'n Proto.
  mutable kj::Own<capnp::MallocMessageBuilder> message = kj::heap<capnp::MallocMessageBuilder>();
  typename T::Reader get() const { return message->getRoot<T>().asReader(); }
};

// A validated action on a live object, held in the helper; performs once.
class PreparedHandle {
 public:
  explicit PreparedHandle(wire::Prepared::Client client) : client(kj::mv(client)) {}

 private:
  friend class HelperLink;
  wire::Prepared::Client client;
};

// What came of perform.
using FactsHeld = Held<wire::Facts>;
struct RefusedBySelf {  // Revalidation refused; the helper sent nothing.
  RefusalCode code;
};
struct NothingSent {};  // No byte of perform was handed to the kernel.
struct Lost {           // Sent or perhaps sent, and no complete answer.
  bool late = false;    // The deadline passed; otherwise the helper ended or broke the protocol.
};
using Performed = kj::OneOf<FactsHeld, RefusedBySelf, NothingSent, Lost>;

// A picture that a helper took and keeps. What it is, is as it said when it took it.
class PictureHandle {
 public:
  PictureHandle(PictureInfo info, uint64_t generation, wire::Picture::Client client)
      : info(kj::mv(info)), generation(generation), client(kj::mv(client)) {}

  PictureInfo info;
  uint64_t generation;  // Of that helper.

 private:
  friend class HelperLink;
  wire::Picture::Client client;
};

// An observation, and the picture that goes with it.
struct ObservationHeld : Held<wire::Observation> {
  kj::Maybe<PictureHandle> picture;
};
using DesktopHeld = Held<wire::Desktop>;
using StatusHeld = Held<wire::HelperStatus>;

class HelperLink {
 public:
  // Starts the image, says hello, and compares every field of the answer with the manifest, the
  // launcher's report and our bounds.
  // Refuses: SERVICE_UNAVAILABLE (no start, no hello in time), SERVICE_MISMATCH (a field differs).
  // Either way no process is left.
  static kj::Promise<Result<kj::Own<HelperLink>>> start(kj::LowLevelAsyncIoProvider& io,
                                                        kj::Timer& timer,
                                                        launch::Launcher& launcher,
                                                        const attest::Image& image,
                                                        uint64_t generation);
  // A started child and its socket; `start` makes these, and hands out only what said hello.
  HelperLink(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, kj::AutoCloseFd socket,
             kj::Own<launch::Child> child, attest::HelperIdentity self);
  ~HelperLink() noexcept(false);
  KJ_DISALLOW_COPY(HelperLink);

  const attest::HelperIdentity& identity() const { return self; }
  uint64_t generation() const { return self.generation; }
  // Whether its hello named this capability (desktop.capnp), whatever works at the moment.
  bool offers(kj::StringPtr capability) const;
  // Whether it offers both the kind of this action and the proof that it asks for. What it does not
  // is UNSUPPORTED_ACTION, without asking it.
  bool offers(const Action& action) const;
  uint32_t pid() const;
  // False once the process has ended or was ended for breaking the protocol.
  bool alive() const { return running; }
  // Ends the process at once. Every call under way fails.
  void kill();

  // Reads. Refuse what the helper refuses; SERVICE_UNAVAILABLE when it ends or `within` passes;
  // SERVICE_MISMATCH when it answers what its schema does not allow. In both cases it is ended.
  kj::Promise<Result<StatusHeld>> status(kj::Duration within);
  kj::Promise<Result<DesktopHeld>> list(kj::Duration within);
  kj::Promise<Result<ObservationHeld>> observe(const WindowRef& window, const FrameId& frame,
                                               uint64_t epoch, const ObserveAct& request,
                                               kj::Duration within);
  kj::Promise<Result<PictureHandle>> capture(const Action& action, kj::Duration within);
  // Of a picture that this helper took. Nothing when it says that there is none.
  kj::Promise<Result<kj::Maybe<Png>>> png(PictureHandle picture, kj::Duration within);

  // Refuses like a read.
  kj::Promise<Result<PreparedHandle>> prepare(const Action& action, const Hash& nonce,
                                              kj::Duration within);

  // Sends perform, at once, and waits for its answer or the deadline. Never throws. The helper is
  // ended when the deadline passes or its answer is not understood.
  kj::Promise<Performed> perform(PreparedHandle prepared, kj::Duration within);

 private:
  PictureHandle pictureFrom(wire::PictureInfo::Reader from, wire::Picture::Client client) const;
  Result<Done> compareHello(wire::HelperHello::Reader hello, const attest::Image& image);
  template <typename T>
  kj::Promise<Result<T>> guarded(kj::Promise<Result<T>> call, kj::Duration within);

  kj::Timer& timer;
  attest::HelperIdentity self;
  kj::Vector<kj::StringPtr> offered;  // As our own table spells them.
  bool running = true;
  kj::Own<launch::Child> child;
  Channel channel;
  wire::Helper::Client helper;
  kj::Promise<void> watch;
};

}  // namespace praefectus
