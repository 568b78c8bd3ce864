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
  Request clone() const;
};

struct Outcome {
  attest::Receipt receipt;       // Its signature, operation and action were checked.
  attest::Envelope sealed;       // The same as signed bytes, for keeping.
  bool replayed = false;         // Recorded earlier; this call dispatched nothing.
  kj::Maybe<Observation> fresh;  // The window afterwards, with its new frame.
  kj::Maybe<Refusal> notFresh;   // Why there is none.
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
};

// How a request is built. The defaults ask for the strongest proof the action has.
struct How {
  Verification verification = Verification::STRONGEST;
  uint32_t timeoutMs = 15'000;
  kj::Maybe<kj::StringPtr> operation = nullptr;  // A fresh one by default.
  int64_t validForMs = 60'000;                   // Of the grant, from now.
};

class Session {
 public:
  virtual ~Session() noexcept(false) = default;

  virtual kj::Promise<Result<HelperStatus>> capabilities() = 0;
  virtual kj::Promise<Result<Desktop>> list() = 0;
  // With its picture, as PNG, when asked for.
  virtual kj::Promise<Result<Observation>> observe(WindowRef window, bool picture = false) = 0;

  // Signed requests for one element of one observation.
  virtual Request invoke(const Observation& seen, const Element& element, kj::StringPtr action,
                         How how = {}) = 0;
  virtual Request setValue(const Observation& seen, const Element& element, kj::StringPtr text,
                           How how = {}) = 0;
  // Signs an action as it stands, for one of the calls below.
  virtual Request sign(const Action& action, How how = {}) = 0;

  // Carries out a mutation, at most once. `onStage` is called as it goes on, if the supervisor
  // lives.
  virtual kj::Promise<Result<Outcome>> execute(
      const Request& request, kj::Maybe<kj::Function<void(wire::Stage)>> onStage = nullptr) = 0;

  // Reads under a request signed earlier.
  virtual kj::Promise<Result<Desktop>> list(const Request& request) = 0;
  virtual kj::Promise<Result<Observation>> observe(const Request& request) = 0;

  // Whether such an operation was in flight.
  virtual kj::Promise<bool> cancel(kj::StringPtr operation) = 0;
  virtual kj::Promise<void> close() = 0;
};

class Host {
 public:
  // Spawns a supervisor and says hello. Refuses what the supervisor's hello refuses
  // (LEDGER_FOREIGN, LEDGER_BUSY, …), and SERVICE_UNAVAILABLE when it cannot be started.
  static kj::Promise<Result<kj::Own<Host>>> start(kj::AsyncIoContext& io, Options options,
                                                  const Authority& authority);

  // Lets the supervisor go: it settles what is in flight and exits. Waits for that at most
  // bounds::CLOSE.
  virtual ~Host() noexcept(false) = default;

  virtual const HostInfo& info() const = 0;
  virtual pid_t supervisorPid() const = 0;
  virtual kj::Promise<Result<kj::Own<Session>>> open(kj::StringPtr session, kj::StringPtr turn) = 0;
  virtual kj::Promise<Result<Status>> status(kj::StringPtr operation) = 0;
  // The raw connection, for programs that speak host.capnp themselves.
  virtual wire::Supervisor::Client raw() = 0;
};

// An operation id whose first digits are the time, so that ids sort as they were made.
kj::String newOperationId();

// The elements of an observation with this role and name, in order. A host that finds several has
// to look closer; the supervisor will not choose for it.
kj::Vector<const Element*> find(const Observation& seen, kj::StringPtr role, kj::StringPtr name);

}  // namespace praefectus::client
