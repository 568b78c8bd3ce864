// A host at the other end of a real connection, that speaks host.capnp by hand: it can also keep no
// rule of it.
#pragma once

#include "supervisor/host-port.h"
#include "tests/support/workbench.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

namespace praefectus::test {

struct Ends {
  kj::AutoCloseFd ours, theirs;
  Ends() {
    int ends[2];
    KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    ours = kj::AutoCloseFd(ends[0]);
    theirs = kj::AutoCloseFd(ends[1]);
  }
};

// One host's connection, both ends of it.
struct Host {
  Host(Workbench& bench, wire::Supervisor::Client served, Ends ends = Ends())
      : server(kj::heap<Channel>(bench.low(), kj::mv(ends.ours), kj::mv(served))),
        channel(kj::heap<Channel>(bench.low(), kj::mv(ends.theirs))),
        supervisor(channel->bootstrap().castAs<wire::Supervisor>()) {}
  explicit Host(Workbench& bench) : Host(bench, servePort(bench.supervisor())) {}

  kj::Own<Channel> server, channel;
  wire::Supervisor::Client supervisor;
};

template <typename Params, typename Results>
kj::Promise<capnp::Response<Results>> sent(capnp::Request<Params, Results>& call) {
  return call.send();
}

// What an answer says: "ok", or the refusal's name.
template <typename Response>
std::string said(Response&& response) {
  auto result = response.getResult();
  if (!result.isRefusal()) return "ok";
  return nameOf(result.getRefusal().getRefusal().getCode()).cStr();
}

inline auto hello(Workbench& on, Host& host, attest::Head seen = {},
                  uint16_t protocol = wire::PROTOCOL_VERSION) {
  auto call = host.supervisor.helloRequest();
  call.setProtocol(protocol);
  if (seen.sequence > 0) {
    call.initSeen().setSequence(seen.sequence);
    call.getSeen().setLink(bytesOf(seen.link));
  }
  return on.wait(sent(call));
}

inline auto opening(Workbench& on, Host& host, kj::StringPtr session = "session-1") {
  auto call = host.supervisor.openRequest();
  call.setSession(session);
  return on.wait(sent(call));
}

inline auto beginning(Workbench& on, wire::Session::Client session, kj::StringPtr turn) {
  auto call = session.beginTurnRequest();
  call.setTurn(turn);
  return on.wait(sent(call));
}

inline auto leasing(Workbench& on, wire::Session::Client session, const attest::Envelope& lease) {
  auto call = session.openLeaseRequest();
  attest::write(lease, call.initLease());
  return on.wait(sent(call));
}

inline auto revoking(Workbench& on, Host& host, const attest::Envelope& revocation) {
  auto call = host.supervisor.revokeRequest();
  attest::write(revocation, call.initRevocation());
  return on.wait(sent(call));
}

inline auto status(Workbench& on, Host& host, kj::StringPtr operation) {
  auto call = host.supervisor.statusRequest();
  call.setOperation(operation);
  return on.wait(sent(call));
}

// What leases and grants name; a host has no other use for it.
inline kj::Own<Session> named(Workbench& on, kj::StringPtr id = "session-1") {
  auto session = kj::refcounted<Session>(0, kj::str(id), on.clock, on.helpers());
  EXPECT_TRUE(session->beginTurn(kj::str("turn-1")).ok());
  return session;
}

// A session in its first turn, with a lease for everything.
inline wire::Session::Client opened(Workbench& on, Host& host) {
  EXPECT_EQ(said(hello(on, host)), "ok");
  auto answer = opening(on, host);
  EXPECT_EQ(said(answer), "ok");
  auto session = answer.getSession();
  EXPECT_EQ(said(beginning(on, session, "turn-1")), "ok");
  auto lease = on.seal(on.leaseFor(*named(on), EVERYTHING, "lease-1"));
  EXPECT_EQ(said(leasing(on, session, lease)), "ok");
  return session;
}

// How a call that fails ends, or nothing when it does not fail.
inline std::string complaint(Workbench& on, kj::Promise<void> call) {
  std::string text;
  on.wait(call.catch_([&](kj::Exception&& why) { text = why.getDescription().cStr(); }));
  return text;
}

inline void fill(const Request& request, wire::Submission::Builder to) {
  attest::write(request.grant, to.initGrant());
  to.setAction(request.action);
}

inline auto observing(wire::Session::Client session, const Request& request) {
  auto call = session.observeRequest();
  fill(request, call.initSubmission());
  return sent(call);
}

inline Observation observed(Workbench& on, wire::Session::Client session,
                            kj::StringPtr id = "read-1") {
  auto answer = on.wait(observing(session, on.request(*named(on), look(), id)));
  EXPECT_EQ(said(answer), "ok");
  return read(answer.getResult().getObservation());
}

inline auto executing(wire::Session::Client session, const Request& request,
                      kj::Maybe<wire::Progress::Client> progress = nullptr) {
  auto call = session.executeRequest();
  fill(request, call.initSubmission());
  KJ_IF_MAYBE (to, progress) call.setProgress(kj::mv(*to));
  return sent(call);
}

}  // namespace praefectus::test
