// The shipped supervisor in a process of its own, with a host on the client library. The fixture
// helper stands in the place of the desktop's, under its name and signed like it.
#include "tests/bench/parts.h"

#include "supervisor/client/client.h"

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace praefectus::bench {
namespace {

namespace fs = std::filesystem;

constexpr size_t SESSIONS = 8;
constexpr size_t OPERATIONS = 100'000;

template <typename T>
T need(Result<T> result) {
  KJ_REQUIRE(result.ok(), nameOf(result.refusal().code), result.refusal().detail);
  return kj::mv(*result);
}

// A supervisor beside a helper that is not its usual one.
kj::String installed(kj::StringPtr folder) {
  fs::create_directories(folder.cStr());
  auto copy = [&](kj::StringPtr from, kj::StringPtr to) {
    fs::copy_file(kj::str(PRAEFECTUS_BIN "/", from).cStr(), kj::str(folder, "/", to).cStr());
  };
  copy("praefectus-supervisor", "praefectus-supervisor");
  copy("echo-helper", "praefectus-desktop-linux");
  copy("echo-helper.manifest", "praefectus-desktop-linux.manifest");
  return kj::str(folder, "/praefectus-supervisor");
}

// MB, as the kernel says of a process ("VmRSS").
double memoryOf(pid_t pid, const std::string& word) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(word + ":")) return std::stod(line.substr(word.size() + 1)) * 1024 / 1e6;
  }
  KJ_FAIL_REQUIRE("the process says nothing of its memory");
}

// The next of a session's operations when the last one has its receipt.
kj::Promise<void> work(client::Session& session, WindowRef window, size_t left) {
  if (left == 0) return kj::READY_NOW;
  client::How how;
  how.verification = Verification::none();
  auto request =
      session.actOn(window, WindowRequest{wire::ControlWindow::Operation::FOCUS}, kj::mv(how));
  return session.execute(request).then([&session, window, left](Result<client::Outcome> outcome) {
    KJ_REQUIRE(need(kj::mv(outcome)).receipt.terminal == Terminal::SUCCEEDED);
    return work(session, window, left - 1);
  });
}

class Service {
 public:
  Service(kj::AsyncIoContext& io, kj::StringPtr folder)
      : io(io),
        authority("host", attest::SigningKey::generate()),
        ledger(kj::str(folder, "/ledger")),
        program(installed(kj::str(folder, "/bin"))) {
    environment.add(kj::str("DISPLAY=:", getpid()));  // No display; a desktop of our own to act on.
    need(client::createLedger(options(), authority));
    host = need(client::Host::start(io, options(), authority).wait(io.waitScope));
    for (size_t i = 0; i < SESSIONS; ++i) {
      sessions.add(need(host->open(kj::str("session-", i), "turn-0").wait(io.waitScope)));
    }
  }

  // In turns of their own, so that no lease ends in the middle of an operation.
  void carryOut(size_t operations) {
    ++turns;
    for (auto& session : sessions) {
      need(session->beginTurn(kj::str("turn-", turns)).wait(io.waitScope));
    }
    auto all = kj::heapArrayBuilder<kj::Promise<void>>(SESSIONS);
    for (size_t i = 0; i < SESSIONS; ++i) {
      all.add(work(*sessions[i], WindowRef{{4242, 987'654}, i + 1}, operations / SESSIONS));
    }
    kj::joinPromises(all.finish()).wait(io.waitScope);
  }

  pid_t pid() const { return host->supervisorPid(); }

  // Ends the supervisor; the ledger is at rest then.
  void end() {
    sessions.clear();
    host = nullptr;
  }

 private:
  client::Options options() {
    client::Options out;
    out.ledger = ledger;
    out.supervisor = program;
    out.environment = environment.asPtr().asConst();
    return out;
  }

  kj::AsyncIoContext& io;
  client::Authority authority;
  kj::String ledger, program;
  kj::Vector<kj::String> environment;
  kj::Own<client::Host> host;
  kj::Vector<kj::Own<client::Session>> sessions;
  unsigned turns = 0;
};

double numberIn(kj::StringPtr file, kj::StringPtr query) {
  sqlite3* connection = nullptr;
  KJ_REQUIRE(sqlite3_open_v2(file.cStr(), &connection, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  KJ_DEFER(sqlite3_close(connection));
  sqlite3_stmt* statement = nullptr;
  KJ_REQUIRE(sqlite3_prepare_v2(connection, query.cStr(), -1, &statement, nullptr) == SQLITE_OK,
             sqlite3_errmsg(connection));
  KJ_DEFER(sqlite3_finalize(statement));
  KJ_REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
  return sqlite3_column_double(statement, 0);
}

// The bytes of every column of a table: texts and blobs as long as they are, numbers as wide as
// they are in the format (a NULL has none).
double fieldsOf(kj::StringPtr file, kj::StringPtr table, kj::ArrayPtr<const kj::StringPtr> texts,
                kj::ArrayPtr<const kj::StringPtr> wide, kj::ArrayPtr<const kj::StringPtr> narrow,
                double flags) {
  auto sum = kj::str("SELECT sum(0");
  for (auto each : texts) {
    sum = kj::str(sum, " + coalesce(length(CAST(", each, " AS BLOB)), 0)");
  }
  for (auto each : wide) sum = kj::str(sum, " + 8 * (", each, " IS NOT NULL)");
  for (auto each : narrow) sum = kj::str(sum, " + 4 * (", each, " IS NOT NULL)");
  return numberIn(file, kj::str(sum, " + ", flags, ") FROM ", table));
}

double rawFields(kj::StringPtr file) {
  constexpr kj::StringPtr OPERATION[] = {
      "id"_kj,   "action_hash"_kj, "action_class"_kj, "kind"_kj,       "mode"_kj,
      "risk"_kj, "proof"_kj,       "rights"_kj,       "grant_hash"_kj, "link"_kj};
  constexpr kj::StringPtr OPERATION_WIDE[] = {"place"_kj, "helper_generation"_kj, "claimed_at"_kj};
  constexpr kj::StringPtr OPERATION_NARROW[] = {"authority"_kj, "helper"_kj};
  constexpr kj::StringPtr ENDING[] = {"terminal"_kj, "effect"_kj,   "refusal"_kj, "route"_kj,
                                      "verdict"_kj,  "method"_kj,   "source"_kj,  "context"_kj,
                                      "warnings"_kj, "previous"_kj, "link"_kj,    "signature"_kj};
  constexpr kj::StringPtr ENDING_WIDE[] = {"place"_kj, "operation"_kj, "settled_at"_kj};
  constexpr kj::StringPtr ENDING_NARROW[] = {"units_done"_kj, "units_asked"_kj};
  return fieldsOf(file, "operation", OPERATION, OPERATION_WIDE, OPERATION_NARROW, 0) +
         fieldsOf(file, "ending", ENDING, ENDING_WIDE, ENDING_NARROW, 1);
}

}  // namespace

void measureService(kj::AsyncIoContext& io, const Places& places, Report& report) {
  auto folder = kj::str(places.scratch, "/service");
  fs::create_directories(folder.cStr());
  Service service(io, folder);
  service.carryOut(SESSIONS);
  report.note("memory of the supervisor at its start", memoryOf(service.pid(), "VmRSS"), "MB");

  constexpr size_t BATCH = 2000;
  double began = now();
  for (size_t done = BATCH; done <= OPERATIONS; done += BATCH) {
    service.carryOut(BATCH);
    if (done % (5 * BATCH) != 0) continue;
    tell("       " + std::to_string(done) + " operations, " +
         std::to_string(memoryOf(service.pid(), "VmRSS")) + " MB");
  }
  report.note("rate of 8 sessions over the socket", OPERATIONS / (now() - began) * 1e6,
              "operations/s");
  report.gate({"memory of the supervisor after 10^5 operations", memoryOf(service.pid(), "VmRSS"),
               12, "MB"});
  report.note("most memory that it ever had", memoryOf(service.pid(), "VmHWM"), "MB");
  service.end();

  auto file = kj::str(folder, "/ledger/ledger.db");
  auto operations = numberIn(file, "SELECT count(*) FROM operation");
  auto bytes = static_cast<double>(fs::file_size(file.cStr())) / operations;
  auto raw = rawFields(file) / operations;
  report.note("raw fields of an operation", raw, "bytes");
  report.gate({"bytes of an operation, everything that is stored", bytes, 800, "bytes"});
  report.gate({"bytes of an operation / its raw fields", bytes / raw, 1.3, "times"});
}

}  // namespace praefectus::bench
