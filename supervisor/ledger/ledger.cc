#include "supervisor/ledger/ledger.h"

#include "supervisor/ledger/holding.h"

#include <kj/mutex.h>
#include <kj/thread.h>

#include <atomic>

#include <signal.h>

namespace praefectus::ledger {
namespace {

constexpr Refusal POISONED{RefusalCode::LEDGER_POISONED,
                           "A write to the ledger failed; it must be opened again."_kj};
constexpr Refusal UNREADABLE{RefusalCode::LEDGER_POISONED, "The ledger could not be read."_kj};
constexpr Refusal CONFLICT{RefusalCode::OPERATION_CONFLICT,
                           "This operation id was already used."_kj};

// How an operation ends whose supervisor ended first. `accessibility` is the one route there is:
// that nothing was sent would be a promise.
Ending lostBy(int64_t now) {
  Ending ending;
  ending.terminal = Terminal::OUTCOME_UNKNOWN;
  ending.effect = Effect::UNKNOWN;
  ending.route = Route::ACCESSIBILITY;
  ending.warnings.add(Warning::RECOVERED);
  ending.at = now;
  return ending;
}

// Mistakes of the caller are found in the caller's thread, before they could look like a failed
// write.
void requireWhole(const Claim& claim) {
  KJ_REQUIRE(isIdentifier(claim.operation) && isIdentifier(claim.kind));
  KJ_REQUIRE(isIdentifier(claim.grantIssuer) && isIdentifier(claim.grantKeyId));
  KJ_REQUIRE(isIdentifier(claim.subject) && isIdentifier(claim.session) &&
             isIdentifier(claim.turn));
  KJ_REQUIRE(isIdentifier(claim.lease));
  KJ_REQUIRE(claim.policyGeneration >= 1 &&
             claim.policyGeneration <= static_cast<uint64_t>(INT64_MAX));
  auto& helper = claim.helper;
  KJ_REQUIRE(helper.generation <= static_cast<uint64_t>(INT64_MAX));
  KJ_REQUIRE(helper.generation > 0 ? isIdentifier(helper.name) && isIdentifier(helper.release)
                                   : helper.name.size() == 0 && helper.release.size() == 0);
}

// One request on its way through the ledger's thread: written in a transaction with others, then
// answered once that is durable, or refused.
class Request {
 public:
  virtual ~Request() noexcept(false) = default;
  virtual void write(Scribe& scribe) = 0;
  virtual void answer() = 0;
  virtual void refuse() = 0;
};

// The work answers nothing when the caller asked for what cannot be; that harms nobody else.
template <typename T>
class RequestFor final : public Request {
 public:
  using Work = kj::Function<kj::Maybe<Result<T>>(Scribe&)>;
  // On the heap on its way between the threads: g++ 12 takes KJ's own moving of a larger value for
  // a use of uninitialized memory.
  using Parcel = kj::Own<Result<T>>;

  RequestFor(Work work, kj::Own<kj::CrossThreadPromiseFulfiller<Parcel>> fulfiller)
      : work(kj::mv(work)), fulfiller(kj::mv(fulfiller)) {}

  void write(Scribe& scribe) override {
    KJ_IF_MAYBE (result, work(scribe)) outcome = kj::heap<Result<T>>(kj::mv(*result));
  }
  void answer() override {
    if (outcome.get() != nullptr) return fulfiller->fulfill(kj::mv(outcome));
    fulfiller->reject(KJ_EXCEPTION(FAILED, "an ending for an operation that was never claimed"));
  }
  void refuse() override { fulfiller->fulfill(kj::heap<Result<T>>(POISONED)); }

 private:
  Work work;
  kj::Own<kj::CrossThreadPromiseFulfiller<Parcel>> fulfiller;
  Parcel outcome;
};

using Batch = kj::Vector<kj::Own<Request>>;

struct Queue {
  Batch waiting;
  bool closing = false;
};

// The thread that writes. It ends when it is destroyed, after everything queued was written.
class Writer {
 public:
  Writer(Database& database, Scribe& scribe)
      : database(database), scribe(scribe), durable(scribe.head()), thread(start()) {}

  ~Writer() noexcept(false) {
    queue.lockExclusive()->closing = true;
    thread = nullptr;
  }
  KJ_DISALLOW_COPY(Writer);

  template <typename T>
  kj::Promise<Result<T>> submit(typename RequestFor<T>::Work work) {
    using Parcel = typename RequestFor<T>::Parcel;
    auto paf = kj::newPromiseAndCrossThreadFulfiller<Parcel>();
    kj::Own<Request> request = kj::heap<RequestFor<T>>(kj::mv(work), kj::mv(paf.fulfiller));
    queue.lockExclusive()->waiting.add(kj::mv(request));
    return paf.promise.then([](Parcel outcome) { return kj::mv(*outcome); });
  }

  bool isPoisoned() const { return poisoned; }
  attest::Head head() const { return *durable.lockShared(); }

 private:
  // Signals belong to the event loop's thread.
  kj::Own<kj::Thread> start() {
    sigset_t all, before;
    sigfillset(&all);
    KJ_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    KJ_DEFER(pthread_sigmask(SIG_SETMASK, &before, nullptr));
    return kj::heap<kj::Thread>([this]() { run(); });
  }

  void run() {
    while (true) {
      auto batch = take();
      if (batch.empty()) break;
      serve(batch);
    }
    // At rest the database is whole without its log. Nothing is lost when this fails.
    if (!poisoned) succeeds([this]() { database.checkpoint(); });
  }

  // Everything that waits, or nothing when it is time to end.
  Batch take() {
    return queue.when([](const Queue& q) { return q.closing || !q.waiting.empty(); },
                      [](Queue& q) { return kj::mv(q.waiting); });
  }

  void serve(Batch& batch) {
    // A commit that answered with an error may be on disk, and a second try would be told that all
    // is well while the device has lost it: nothing is written after a failure.
    if (!poisoned && !succeeds([&]() { commit(batch); })) poisoned = true;
    for (auto& request : batch) poisoned ? request->refuse() : request->answer();
    if (!poisoned && !succeeds([this]() { recycleLog(); })) poisoned = true;
  }

  void commit(Batch& batch) {
    Transaction transaction(database);
    for (auto& request : batch) request->write(scribe);
    transaction.commit();
    *durable.lockExclusive() = scribe.head();
  }

  // After the answers, so that nobody waits for it. With a reader in the way the log grows, and the
  // next attempt comes when it has grown as much again.
  void recycleLog() {
    auto pages = database.logPages();
    if (pages < lastAttempt) lastAttempt = 0;
    if (pages - lastAttempt < LOG_PAGES) return;
    lastAttempt = pages;
    database.checkpoint();
  }

  template <typename Deed>
  bool succeeds(Deed&& deed) {
    return kj::runCatchingExceptions(deed) == nullptr;
  }

  Database& database;
  Scribe& scribe;
  kj::MutexGuarded<attest::Head> durable;
  uint64_t lastAttempt = 0;
  std::atomic<bool> poisoned{false};
  kj::MutexGuarded<Queue> queue;
  kj::Own<kj::Thread> thread;
};

class OpenLedger final : public Ledger {
 public:
  // Settles what is open before the thread starts.
  OpenLedger(kj::Own<Holding> taken, const Machine& machine, Moment now)
      : holding(kj::mv(taken)), book(*holding->reading, holding->identity) {
    for (auto& each : holding->memory.revocations) revoked.add(each);
    for (auto& era : holding->identity.eras) {
      if (era.key != present().key && (former.empty() || former.back() != era.key)) {
        former.add(era.key);
      }
    }
    clock = holding->clockMemory(machine);
    begin(machine, now);
    highest = highestId();
    writer = kj::heap<Writer>(*holding->writing, *holding->scribe);
  }

  const attest::KeyRing& ring() const override { return holding->identity.ring; }
  const LedgerId& id() const override { return present().id; }
  const attest::PublicKey& receiptKey() const override { return present().key; }
  kj::ArrayPtr<const attest::PublicKey> formerReceiptKeys() const override { return former; }
  Recovered recovered() const override { return settledAtStart; }
  const ClockMemory& clockMemory() const override { return clock; }
  bool usable() const override { return !writer->isPoisoned(); }
  attest::Head head() const override { return writer->head(); }
  const Revocations& revocations() const override { return revoked; }

  bool contains(const attest::Head& seen) override {
    bool there = false;
    KJ_IF_MAYBE (trouble, kj::runCatchingExceptions([&]() {
                   KJ_IF_MAYBE (link, book.linkAt(seen.sequence)) {
                     there = attest::same(*link, seen.link);
                   }
                 })) {
      (void)trouble;
      return false;
    }
    return there;
  }

  Result<Found> find(kj::StringPtr operation, const Hash& actionHash) override {
    return lookUp(operation, actionHash);
  }
  Result<Found> find(kj::StringPtr operation) override { return lookUp(operation, nullptr); }

  kj::Promise<Result<Done>> claim(Claim claim) override {
    requireWhole(claim);
    KJ_REQUIRE(claim.at > 0);
    use(claim.operation);
    return writer->submit<Done>(
        [claim = kj::mv(claim)](Scribe& scribe) mutable -> kj::Maybe<Result<Done>> {
          return scribe.claim(kj::mv(claim)) ? Result<Done>(Done()) : Result<Done>(CONFLICT);
        });
  }

  kj::Promise<Result<attest::Envelope>> settle(kj::String operation, Ending ending) override {
    return writer->submit<attest::Envelope>(
        [operation = kj::mv(operation), ending = kj::mv(ending)](Scribe& scribe) {
          return scribe.settle(operation, ending);
        });
  }

  kj::Promise<Result<attest::Envelope>> conclude(Claim claim, Ending ending) override {
    requireWhole(claim);
    KJ_REQUIRE(ending.effect == Effect::NONE, "an effect without a claim");
    claim.at = 0;
    use(claim.operation);
    return writer->submit<attest::Envelope>(
        [claim = kj::mv(claim),
         ending = kj::mv(ending)](Scribe& scribe) -> kj::Maybe<Result<attest::Envelope>> {
          return scribe.conclude(claim, ending);
        });
  }

  kj::Promise<Result<Done>> revoke(attest::Envelope envelope, int64_t nowMs) override {
    auto revocation = attest::openRevocation(ring(), envelope);
    if (!revocation.ok()) return Result<Done>(revocation.refusal());
    return writer->submit<Done>([revocation = kj::mv(*revocation), envelope = kj::mv(envelope),
                                 nowMs](Scribe& scribe) mutable -> kj::Maybe<Result<Done>> {
      scribe.revoke(revocation, kj::mv(envelope), nowMs);
      return Result<Done>(Done());
    });
  }

  attest::Envelope sign(attest::Refused refused) const override {
    refused.issuer = kj::str("ledger");
    refused.keyId = kj::str(present().keyId);
    refused.ledger = present().id;
    return attest::seal(refused, holding->key);
  }

 private:
  // Nothing of it changes while the thread runs.
  const Era& present() const { return holding->identity.present(); }

  void begin(const Machine& machine, Moment now) {
    auto& scribe = *holding->scribe;
    bool agrees = clock.agrees(now);
    auto at = agrees ? kj::max(clock.floorMs, now.wallMs) : clock.floorMs;
    Transaction transaction(*holding->writing);
    if (agrees) {
      scribe.append(attest::Started{readingOf(now, id(), machine)}, at);
      clock.floorMs = at;
      clock.sameBoot = now;
    }
    settledAtStart = scribe.recover(lostBy(at));
    transaction.commit();
    holding->writing->stay();
  }

  // In the order of the index: by bytes.
  kj::String highestId() {
    Statement statement(*holding->reading,
                        "SELECT max(coalesce((SELECT max(id) FROM operation), ''), "
                        "coalesce((SELECT max(id) FROM retired), ''))");
    auto rows = statement.rows();
    KJ_REQUIRE(rows.next());
    return kj::str(rows.text(0));
  }

  void use(kj::StringPtr operation) {
    if (highest < operation) highest = kj::str(operation);
  }

  Result<Found> lookUp(kj::StringPtr operation, kj::Maybe<const Hash&> actionHash) {
    if (writer->isPoisoned()) return POISONED;
    if (highest < operation) return Found(Unknown());
    kj::Maybe<Found> found;
    KJ_IF_MAYBE (trouble,
                 kj::runCatchingExceptions([&]() { found = book.find(operation, actionHash); })) {
      (void)trouble;
      return UNREADABLE;
    }
    return kj::mv(KJ_ASSERT_NONNULL(found));
  }

  kj::Own<Holding> holding;
  Book book;
  Revocations revoked;
  kj::Vector<attest::PublicKey> former;
  ClockMemory clock;
  Recovered settledAtStart;
  // Ids begin with their time, so that a new one is behind all that were used: the answer that it
  // is unknown then costs no read.
  kj::String highest;
  kj::Own<Writer> writer;
};

}  // namespace

Result<Done> Ledger::create(kj::StringPtr folder, const attest::KeyRing& ring, Moment now) {
  auto made = NewFolder::beside(folder);
  if (!made.ok()) return made.refusal();

  auto key = attest::SigningKey::generate();
  key.save(made->path(KEY_FILE));
  auto file = made->path(DATABASE_FILE);
  made->makeFile(DATABASE_FILE);
  {
    Database database(file, Database::Mode::CREATE);
    Transaction transaction(database);
    found(database, key.publicKey(), ring);
    auto identity = readIdentity(database);
    Scribe scribe(database, identity, key, Memory());
    // The file keeps device and inode when its folder is renamed.
    scribe.append(attest::Created{placeOf(file, identity.present().id, thisMachine())}, now.wallMs);
    transaction.commit();
    database.checkpoint();
  }
  // All of it is in the database now. A log that begins with zeros is an empty one.
  made->blank(LOG_FILE, LOG_BYTES);
  made->remove(INDEX_FILE);
  return made->publish();
}

Result<kj::Own<Ledger>> Ledger::open(kj::StringPtr path, Moment now) {
  return openOn(thisMachine(), path, now);
}

Result<kj::Own<Ledger>> openOn(const Machine& machine, kj::StringPtr path, Moment now) {
  auto holding = Holding::take(path, machine, Holding::Moved::REFUSED);
  if (!holding.ok()) return holding.refusal();
  return refusingTrouble<kj::Own<Ledger>>([&]() -> Result<kj::Own<Ledger>> {
    return kj::Own<Ledger>(kj::heap<OpenLedger>(kj::mv(*holding), machine, now));
  });
}

}  // namespace praefectus::ledger
