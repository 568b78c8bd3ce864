// The host library: what an agent application links to use Praefectus.
//
// A host owns identity, approval and the signing key. This library spawns a supervisor, builds
// actions from observations, signs grants, and checks the receipts that come back. Everything is a
// promise on the host's own KJ event loop; the README has a complete example, which the tests run.
//
// What a Refusal means here: the call it answers dispatched nothing, with one exception,
// OUTCOME_UNKNOWN, which promises nothing (ask `status` of the operation, from this supervisor or
// the next).
#pragma once

#include "attest/signed.h"
#include "ipc/action.h"
#include "ipc/channel.h"
#include "ipc/schema/host.capnp.h"

#include <kj/async-io.h>

#include <sys/types.h>

namespace praefectus::client {

// Who signs: an issuer's name and its key. The key's id is derived from the key.
class Authority {
 public:
  Authority(kj::StringPtr issuer, attest::SigningKey key);
  kj::StringPtr issuer() const { return name; }
  kj::StringPtr keyId() const { return id; }
  const attest::SigningKey& key() const { return signingKey; }

 private:
  kj::String name, id;
  attest::SigningKey signingKey;
};

struct Options {
  kj::StringPtr ledger;                // A folder made by createLedger.
  kj::StringPtr supervisor = nullptr;  // Path of the program; beside our own by default.
  // The supervisor's whole environment ("NAME=value"): which desktop it serves. Ours by default.
  kj::Maybe<kj::ArrayPtr<const kj::String>> environment = nullptr;
  // Lets helpers switch applications' accessibility on where it is off. It concerns everything on
  // the desktop, so a person decides. Each puts back what it switched when it ends.
  bool enableAccessibility = false;
  // The last head that this host knows of the ledger.
  attest::Head seen = {};
};

// Makes a ledger that accepts this authority's grants, by running `praefectus-supervisor create`.
// Refuses LEDGER_FOREIGN when the folder exists or its place is not safe, SERVICE_UNAVAILABLE when
// the program cannot be run.
Result<Done> createLedger(const Options& options, const Authority& authority);

// One signed request. It can be sent again: the answer is then the recorded one.
struct Request {
  kj::String operation;
  attest::Envelope grant;
  kj::Array<kj::byte> action;
  // What a lease has to cover.
  ActionClass actionClass{};
  WindowRef target;
  Request clone() const;
};

struct Outcome {
  attest::Receipt receipt;       // Its signature, operation and action were checked.
  attest::Envelope sealed;       // The same as signed bytes, for keeping.
  bool replayed = false;         // Recorded earlier; this call dispatched nothing.
  kj::Maybe<Observation> fresh;  // The window afterwards, with its new frame.
  kj::Maybe<Refusal> notFresh;   // Why there is none.
};

// A picture that was asked for, as PNG.
struct Pictured {
  PictureInfo info;
  kj::Array<kj::byte> png;
};

struct HelperStatus {
  attest::HelperIdentity identity;
  uint32_t pid = 0;
  wire::Health health{};
  kj::Vector<Capability> capabilities;
};

struct OperationOpen {};
struct OperationUnknown {};
using Status = kj::OneOf<OperationUnknown, OperationOpen, attest::Receipt>;

struct HostInfo {
  kj::String release;
  LedgerId ledger;
  attest::PublicKey receiptKey{};
  kj::String subject;
  bool acting = false;
  uint32_t recovered = 0;
  bool clockTrusted = true;
  // Where the ledger stood at hello. Kept by the host and given to the next start, it shows whether
  // the ledger was set back meanwhile; attest::headAfter makes a newer one of any receipt.
  attest::Head head;
  kj::Vector<attest::PublicKey> formerKeys;
  // The authority's, as the ledger has it: what is signed states it. Follows what `revoke` raises.
  uint64_t policyGeneration = 1;
};

// How a request is built. The defaults ask for the strongest proof the action has, and for no right
// beyond the action.
struct How {
  Verification verification;
  Mode mode = Mode::INTERACTIVE;
  Safety safety = Safety::REVERSIBLE;
  Rights rights;
  uint32_t timeoutMs = 15'000;
  kj::Maybe<kj::StringPtr> operation = nullptr;  // A fresh one by default.
  int64_t validForMs = 60'000;                   // Of the grant, from now.
};

// Who opens leases. A host that asks a person for each kind of thing signs them by hand.
enum class Leasing : uint8_t {
  AUTOMATIC,  // The session signs and opens what each request needs.
  BY_HAND,    // Only Session::openLease does.
};

// A lease to be signed: what it opens, for how long.
struct Opening {
  attest::Classes classes;
  WindowRef target;  // As in attest::Lease.
  kj::Maybe<FrameId> frame = nullptr;
  kj::Maybe<kj::StringPtr> lease = nullptr;  // A fresh id by default.
  int64_t validForMs = 60'000;
};

class Session {
 public:
  virtual ~Session() noexcept(false) = default;

  virtual kj::Promise<Result<HelperStatus>> capabilities() = 0;
  virtual kj::Promise<Result<Desktop>> list() = 0;
  // With its picture, as PNG, when asked for.
  virtual kj::Promise<Result<Observation>> observe(WindowRef window, bool picture = false) = 0;
  // What a window or a monitor of the list looks like now; and a part of what an observation is of,
  // in its coordinates, which is refused when the window is not as it was observed.
  virtual kj::Promise<Result<Pictured>> screenshot(WindowRef window) = 0;
  virtual kj::Promise<Result<Pictured>> screenshot(MonitorId monitor) = 0;
  virtual kj::Promise<Result<Pictured>> zoom(const Observation& seen, Rect part) = 0;

  // Signed requests for one element of one observation.
  virtual Request invoke(const Observation& seen, const Element& element, kj::StringPtr action,
                         How how = {}) = 0;
  virtual Request setValue(const Observation& seen, const Element& element, kj::StringPtr text,
                           How how = {}) = 0;
  // The same for every other kind of action: on an element, on a point of the frame, on a window,
  // on the desktop.
  virtual Request act(const Observation& seen, const Element& element, Act act, How how = {}) = 0;
  virtual Request actAt(const Observation& seen, int32_t x, int32_t y, Act act, How how = {}) = 0;
  virtual Request actOn(WindowRef window, Act act, How how = {}) = 0;
  virtual Request actOnDesktop(Act act, How how = {}) = 0;
  // Signs an action, whose blind, timeout, verification, mode and safety are taken from `how`.
  virtual Request sign(Action action, How how = {}) = 0;

  // Ends the present turn and begins this one. Refuses USER_STOPPED, OPERATION_CONFLICT, …
  virtual kj::Promise<Result<Done>> beginTurn(kj::StringPtr turn) = 0;
  virtual kj::Promise<void> endTurn() = 0;
  // Signs a lease for this session and its present turn, and opens it.
  virtual kj::Promise<Result<Done>> openLease(Opening opening) = 0;
  // The supervisor's signed word for the last refusal, for keeping. Its signature was checked.
  virtual kj::Maybe<const attest::Envelope&> lastRefusal() const = 0;

  // Carries out a mutation, at most once. `onStage` is called as it goes on, if the supervisor
  // lives, and let go of when the operation has ended.
  virtual kj::Promise<Result<Outcome>> execute(
      const Request& request, kj::Maybe<kj::Function<void(wire::Stage)>> onStage = nullptr) = 0;

  // Reads under a request signed earlier.
  virtual kj::Promise<Result<Desktop>> list(const Request& request) = 0;
  virtual kj::Promise<Result<Observation>> observe(const Request& request) = 0;
  virtual kj::Promise<Result<Pictured>> capture(const Request& request) = 0;

  // Whether such an operation was in flight.
  virtual kj::Promise<bool> cancel(kj::StringPtr operation) = 0;
  virtual kj::Promise<void> close() = 0;
};

class Host {
 public:
  // Spawns a supervisor and says hello. Refuses what the supervisor's hello refuses
  // (LEDGER_FOREIGN, LEDGER_BUSY, …), and SERVICE_UNAVAILABLE when it cannot be started.
  // LEDGER_ROLLED_BACK when the ledger does not contain Options::seen.
  static kj::Promise<Result<kj::Own<Host>>> start(kj::AsyncIoContext& io, Options options,
                                                  const Authority& authority);

  // Lets the supervisor go: it settles what is in flight and exits. Waits for that at most
  // bounds::CLOSE.
  virtual ~Host() noexcept(false) = default;

  virtual const HostInfo& info() const = 0;
  virtual pid_t supervisorPid() const = 0;
  // Opens a session and begins its first turn.
  virtual kj::Promise<Result<kj::Own<Session>>> open(kj::StringPtr session, kj::StringPtr turn,
                                                     Leasing leasing = Leasing::AUTOMATIC) = 0;
  virtual kj::Promise<Result<Status>> status(kj::StringPtr operation) = 0;
  // The person's stop of one turn, begun or not: nothing that was not sent yet is sent.
  virtual kj::Promise<void> stop(kj::StringPtr session, kj::StringPtr turn) = 0;
  // Takes back what this authority has signed; who signs, for which ledger and subject, and where
  // empty the revocation's id and time, are filled in. Durable when it resolves. A revoked lease is
  // not missed by a session with Leasing::AUTOMATIC, which opens another one.
  virtual kj::Promise<Result<Done>> revoke(attest::Revocation what) = 0;
  // The raw connection, for programs that speak host.capnp themselves.
  virtual wire::Supervisor::Client raw() = 0;
};

// An operation id whose first digits are the time, so that ids sort as they were made.
kj::String newOperationId();

// The elements of an observation with this role and name, in order. A host that finds several has
// to look closer; the supervisor will not choose for it.
kj::Vector<const Element*> find(const Observation& seen, kj::StringPtr role, kj::StringPtr name);

}  // namespace praefectus::client
