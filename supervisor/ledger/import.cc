// Ids of a ledger of protocol v2.
#include "attest/v2/json.h"
#include "supervisor/ledger/deed.h"

namespace praefectus::ledger {
namespace {

using attest::v2::Json;

constexpr attest::v2::JsonLimits LINE = {1u << 20, 32, 4096};
constexpr size_t PIECE = 64u << 10;
constexpr size_t IDS_SHOWN = 100;
constexpr size_t HASH_DIGITS = 64;
constexpr kj::StringPtr SOURCE = "protocol-v2"_kj;

// Lines without their end; the last one may have none.
class Lines {
 public:
  explicit Lines(kj::InputStream& input) : input(input) {}

  struct Line {
    kj::ArrayPtr<const char> text;
    bool whole;    // It had its end.
    bool tooLong;  // Then the text is its beginning.
  };
  // Valid until the next one.
  kj::Maybe<Line> next() {
    buffer.clear();
    while (true) {
      if (from == to && !fill()) {
        if (buffer.empty()) return nullptr;
        return Line{buffer.asPtr(), false, false};
      }
      char c = piece[from++];
      if (c == '\n') return Line{buffer.asPtr(), true, false};
      if (buffer.size() == LINE.bytes) return Line{buffer.asPtr(), false, true};
      buffer.add(c);
    }
  }

 private:
  bool fill() {
    from = 0;
    to = input.tryRead(piece.begin(), 1, piece.size());
    return to > 0;
  }

  kj::InputStream& input;
  kj::Array<char> piece = kj::heapArray<char>(PIECE);
  size_t from = 0, to = 0;
  kj::Vector<char> buffer;
};

bool isBlank(kj::ArrayPtr<const char> text) {
  for (char c : text) {
    if (c != ' ' && c != '\t' && c != '\r') return false;
  }
  return true;
}

// ---- One record. `deny_unknown_fields` is the other engine's own rule.

kj::Maybe<const kj::String&> textOf(const Json::Object& object, kj::StringPtr key) {
  KJ_IF_MAYBE (member, object.find(key)) return member->value.tryGet<kj::String>();
  return nullptr;
}

bool isText(const Json::Object& object, kj::StringPtr key, kj::StringPtr text) {
  KJ_IF_MAYBE (stated, textOf(object, key)) return *stated == text;
  return false;
}

bool isInteger(const Json::Object& object, kj::StringPtr key) {
  KJ_IF_MAYBE (member, object.find(key)) {
    return member->value.is<uint64_t>() || member->value.is<int64_t>();
  }
  return false;
}

bool isHash(const Json::Object& object, kj::StringPtr key) {
  KJ_IF_MAYBE (text, textOf(object, key)) {
    return text->size() == HASH_DIGITS && unhex(*text) != nullptr;
  }
  return false;
}

bool hasOnly(const Json::Object& object, std::initializer_list<kj::StringPtr> required,
             std::initializer_list<kj::StringPtr> optional = {}) {
  size_t known = 0;
  for (auto key : required) {
    if (object.find(key) == nullptr) return false;
    ++known;
  }
  for (auto key : optional) known += object.find(key) == nullptr ? 0 : 1;
  return known == object.size();
}

kj::Maybe<kj::String> idIn(const Json::Object& object) {
  KJ_IF_MAYBE (id, textOf(object, "operation_id")) {
    if (isIdentifier(*id)) return kj::str(*id);
  }
  return nullptr;
}

bool isClaim(const Json::Object& object) {
  return isText(object, "kind", "claim") && isHash(object, "action_hash") &&
         isInteger(object, "claimed_at_ms") &&
         hasOnly(object, {"kind", "operation_id", "action_hash", "claimed_at_ms"},
                 {"action_name", "delivery_route", "session_isolation", "interaction_mode"});
}

bool isTerminalState(const Json& state) {
  KJ_IF_MAYBE (object, state.value.tryGet<Json::Object>()) {
    KJ_IF_MAYBE (kind, textOf(*object, "kind")) {
      for (auto word : {Terminal::SUCCEEDED, Terminal::REJECTED, Terminal::FAILED,
                        Terminal::CANCELLED_BEFORE_EFFECT, Terminal::EXPIRED_BEFORE_EFFECT,
                        Terminal::OUTCOME_UNKNOWN}) {
        if (*kind == nameOf(word)) return true;
      }
    }
  }
  return false;
}

bool isAcknowledgement(const Json::Object& object) {
  bool form = isInteger(object, "protocol_version") && isInteger(object, "sequence") &&
              isHash(object, "action_hash") &&
              hasOnly(object, {"protocol_version", "operation_id", "sequence", "action_hash",
                               "replayed", "state"});
  KJ_IF_MAYBE (state, object.find("state"_kj)) return form && isTerminalState(*state);
  return false;
}

// The id that a record is about; nothing when it is none.
kj::Maybe<kj::String> idOf(kj::ArrayPtr<const char> line) {
  auto json = attest::v2::readJson(line, LINE);
  if (!json.ok()) return nullptr;
  KJ_IF_MAYBE (record, json->value.tryGet<Json::Object>()) {
    if (isClaim(*record)) return idIn(*record);
    if (!isText(*record, "kind", "terminal") || !hasOnly(*record, {"kind", "acknowledgement"})) {
      return nullptr;
    }
    auto& acknowledgement = KJ_ASSERT_NONNULL(record->find("acknowledgement"_kj));
    KJ_IF_MAYBE (object, acknowledgement.value.tryGet<Json::Object>()) {
      if (isAcknowledgement(*object)) return idIn(*object);
    }
  }
  return nullptr;
}

// ---- Taking them over

class Import {
 public:
  explicit Import(Database& database)
      : selectOperation(database, "SELECT 1 FROM operation WHERE id = ?"),
        selectRetired(database, "SELECT 1 FROM retired WHERE id = ?"),
        insert(database, "INSERT INTO retired (id) VALUES (?)") {}

  void take(kj::StringPtr id) {
    // A claim and its terminal name one id, mostly one after the other.
    if (mine.find(id) != nullptr) return;
    mine.insert(kj::str(id), true);
    if (selectOperation.rows(id).next()) {
      ++made.conflicts;
      if (made.conflicting.size() < IDS_SHOWN) made.conflicting.add(kj::str(id));
    } else if (selectRetired.rows(id).next()) {
      ++made.already;
    } else {
      insert.run(id);
      ++made.taken;
    }
  }

  ImportMade made;

 private:
  kj::HashMap<kj::String, bool> mine;
  Statement selectOperation, selectRetired, insert;
};

using Outcome = kj::OneOf<ImportMade, BadLine>;

// What is read before a bad line is rolled back with the transaction.
Result<Outcome> importInto(Holding& holding, kj::InputStream& input, int64_t at) {
  Transaction transaction(*holding.writing);
  Import import(*holding.writing);
  Lines lines(input);
  uint64_t number = 0;
  while (true) {
    KJ_IF_MAYBE (line, lines.next()) {
      ++number;
      import.made.torn = !line->whole && !line->tooLong;
      if (isBlank(line->text)) continue;
      KJ_IF_MAYBE (id, idOf(line->text)) {
        if (line->tooLong) return Outcome(BadLine{number});
        import.take(*id);
      } else if (!import.made.torn) {
        return Outcome(BadLine{number});
      }
    } else {
      break;
    }
  }
  if (import.made.taken > 0) {
    holding.scribe->append(attest::Imported{import.made.taken, kj::str(SOURCE)}, at);
    transaction.commit();
  }
  return Outcome(kj::mv(import.made));
}

}  // namespace

Result<Outcome> importV2(kj::StringPtr folder, kj::InputStream& lines, Moment now) {
  auto machine = thisMachine();
  return onLedger<Outcome>(folder, machine, Holding::Moved::REFUSED, [&](Holding& holding) {
    return importInto(holding, lines, timeToRecord(holding, machine, now));
  });
}

}  // namespace praefectus::ledger
