#include "supervisor/ledger/ledger.h"

#include "supervisor/ledger/book.h"
#include "supervisor/ledger/database.h"
#include "supervisor/ledger/folder.h"

#include <kj/mutex.h>
#include <kj/thread.h>

#include <atomic>

#include <signal.h>

namespace praefectus::ledger {
namespace {

// The log is used again from its beginning once this many pages are in it, and is made in that
// size: overwriting costs the device half of what growing does. A frame is a page and 24 bytes
// (SQLite, "WAL-mode file format").
constexpr uint64_t LOG_PAGES = 1000;
constexpr size_t LOG_BYTES = 32 + LOG_PAGES * (4096 + 24);
// Open operations settled in one commit at the start.
constexpr uint64_t SETTLED_AT_ONCE = 1000;

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
  Writer(kj::Own<Database> database, kj::Own<Scribe> scribe)
      : database(kj::mv(database)), scribe(kj::mv(scribe)), thread(start()) {}

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
    if (!poisoned) succeeds([this]() { database->checkpoint(); });
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
    Transaction transaction(*database);
    for (auto& request : batch) request->write(*scribe);
    transaction.commit();
  }

  // After the answers, so that nobody waits for it. With a reader in the way the log grows, and the
  // next attempt comes when it has grown as much again.
  void recycleLog() {
    auto pages = database->logPages();
    if (pages < lastAttempt) lastAttempt = 0;
    if (pages - lastAttempt < LOG_PAGES) return;
    lastAttempt = pages;
    database->checkpoint();
  }

  template <typename Deed>
  bool succeeds(Deed&& deed) {
    return kj::runCatchingExceptions(deed) == nullptr;
  }

  kj::Own<Database> database;
  kj::Own<Scribe> scribe;
  uint64_t lastAttempt = 0;
  std::atomic<bool> poisoned{false};
  kj::MutexGuarded<Queue> queue;
  kj::Own<kj::Thread> thread;
};

// All that is opened before the thread starts, in the order in which it may go away again.
struct Parts {
  Folder folder;
  attest::SigningKey key;
  kj::Own<Database> reading;
  Identity identity;
};

class OpenLedger final : public Ledger {
 public:
  // Settles what is open before the thread starts.
  OpenLedger(kj::Own<Parts> parts, int64_t now)
      : parts(kj::mv(parts)), book(*this->parts->reading, this->parts->identity) {
    auto& kept = *this->parts;
    auto database = kj::heap<Database>(kept.folder.path(DATABASE_FILE), Database::Mode::WRITE);
    auto scribe = kj::heap<Scribe>(*database, kept.identity, kept.key);
    settleOpen(*database, *scribe, now);
    writer = kj::heap<Writer>(kj::mv(database), kj::mv(scribe));
  }

  const attest::KeyRing& ring() const override { return parts->identity.ring; }
  const LedgerId& id() const override { return parts->identity.id; }
  const attest::PublicKey& receiptKey() const override { return parts->identity.receiptKey; }
  Recovered recovered() const override { return settledAtStart; }
  bool usable() const override { return !writer->isPoisoned(); }

  Result<Found> find(kj::StringPtr operation, const Hash& actionHash) override {
    return lookUp(operation, actionHash);
  }
  Result<Found> find(kj::StringPtr operation) override { return lookUp(operation, nullptr); }

  kj::Promise<Result<Done>> claim(Claim claim) override {
    requireWhole(claim);
    KJ_REQUIRE(claim.at > 0);
    return writer->submit<Done>([claim = kj::mv(claim)](Scribe& scribe) -> kj::Maybe<Result<Done>> {
      return scribe.claim(claim) ? Result<Done>(Done()) : Result<Done>(CONFLICT);
    });
  }

  kj::Promise<Result<attest::Envelope>> settle(kj::String operation, Ending ending) override {
    return writer->submit<attest::Envelope>(
        [operation = kj::mv(operation),
         ending = kj::mv(ending)](Scribe& scribe) -> kj::Maybe<Result<attest::Envelope>> {
          KJ_IF_MAYBE (receipt, scribe.settle(operation, ending)) {
            return Result<attest::Envelope>(kj::mv(*receipt));
          }
          return nullptr;
        });
  }

  kj::Promise<Result<attest::Envelope>> conclude(Claim claim, Ending ending) override {
    requireWhole(claim);
    KJ_REQUIRE(ending.effect == Effect::NONE, "an effect without a claim");
    claim.at = 0;
    return writer->submit<attest::Envelope>(
        [claim = kj::mv(claim),
         ending = kj::mv(ending)](Scribe& scribe) -> kj::Maybe<Result<attest::Envelope>> {
          return scribe.conclude(claim, ending);
        });
  }

 private:
  void settleOpen(Database& database, Scribe& scribe, int64_t now) {
    auto ending = lostBy(now);
    Transaction transaction(database);
    while (true) {
      auto open = scribe.openOperations(SETTLED_AT_ONCE);
      if (open.size() == 0) break;
      for (auto& operation : open) KJ_ASSERT(scribe.settle(operation, ending) != nullptr);
      settledAtStart.settled += static_cast<uint32_t>(open.size());
    }
    transaction.commit();
  }

  Result<Found> lookUp(kj::StringPtr operation, kj::Maybe<const Hash&> actionHash) {
    if (writer->isPoisoned()) return POISONED;
    kj::Maybe<Found> found;
    KJ_IF_MAYBE (trouble,
                 kj::runCatchingExceptions([&]() { found = read(operation, actionHash); })) {
      (void)trouble;
      return UNREADABLE;
    }
    return kj::mv(KJ_ASSERT_NONNULL(found));
  }

  Found read(kj::StringPtr operation, kj::Maybe<const Hash&> actionHash) {
    KJ_IF_MAYBE (known, book.record(operation)) {
      KJ_IF_MAYBE (asked, actionHash) {
        if (!attest::same(*asked, known->claim.actionHash)) return Conflict();
      }
      KJ_IF_MAYBE (ended, known->ended) return book.receipt(*ended);
      return Open();
    }
    return Unknown();
  }

  kj::Own<Parts> parts;
  Book book;
  Recovered settledAtStart;
  kj::Own<Writer> writer;
};

// Reads who the ledger is. A foreign file is only read, so it stays as it was.
Result<kj::Own<Parts>> openParts(Folder folder, attest::SigningKey key) {
  auto path = folder.path(DATABASE_FILE);
  auto reading = kj::heap<Database>(path, Database::Mode::READ);
  if (!isLedger(*reading)) {
    return Refusal{RefusalCode::LEDGER_FOREIGN, "The database is not a ledger of this version."};
  }
  if (!hasOurRules(*reading)) {
    return Refusal{RefusalCode::LEDGER_FOREIGN,
                   "The ledger's constraints or triggers were changed."};
  }
  auto identity = readIdentity(*reading);
  if (identity.receiptKey != key.publicKey()) {
    return Refusal{RefusalCode::LEDGER_FOREIGN, "The receipt key belongs to another ledger."};
  }
  return kj::heap<Parts>(Parts{kj::mv(folder), kj::mv(key), kj::mv(reading), kj::mv(identity)});
}

}  // namespace

Result<Done> Ledger::create(kj::StringPtr folder, const attest::KeyRing& ring) {
  auto made = NewFolder::beside(folder);
  if (!made.ok()) return made.refusal();

  auto key = attest::SigningKey::generate();
  key.save(made->path(KEY_FILE));

  Identity identity;
  identity.id = {attest::digestOf(bytesOf(key.publicKey())), 1};
  identity.receiptKey = key.publicKey();
  for (auto& entry : ring.entries()) {
    identity.ring.add(entry.purpose, entry.issuer, entry.keyId, entry.key);
  }
  made->makeFile(DATABASE_FILE);
  {
    Database database(made->path(DATABASE_FILE), Database::Mode::CREATE);
    found(database, identity);
    database.checkpoint();
  }
  // All of it is in the database now. A log that begins with zeros is an empty one.
  made->blank(LOG_FILE, LOG_BYTES);
  made->remove(INDEX_FILE);
  return made->publish();
}

Result<kj::Own<Ledger>> Ledger::open(kj::StringPtr path, int64_t nowMs) {
  auto folder = Folder::own(path);
  if (!folder.ok()) return folder.refusal();
  auto key = attest::SigningKey::load(folder->path(KEY_FILE));
  if (!key.ok()) return key.refusal();

  auto parts =
      refusingTrouble<kj::Own<Parts>>([&]() { return openParts(kj::mv(*folder), kj::mv(*key)); });
  if (!parts.ok()) return parts.refusal();
  return refusingTrouble<kj::Own<Ledger>>([&]() -> Result<kj::Own<Ledger>> {
    return kj::Own<Ledger>(kj::heap<OpenLedger>(kj::mv(*parts), nowMs));
  });
}

}  // namespace praefectus::ledger
