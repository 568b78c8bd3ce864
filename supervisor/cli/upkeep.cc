// ledger …: what a person does to a ledger that no supervisor has open, and asks of one beside it.
#include "supervisor/cli/commands.h"
#include "supervisor/cli/consent.h"
#include "supervisor/cli/ledger-text.h"
#include "supervisor/cli/moment.h"
#include "supervisor/cli/operations.h"
#include "supervisor/cli/page.h"
#include "supervisor/cli/progress.h"

#include <charconv>

#include <fcntl.h>

namespace praefectus::cli {
namespace {

constexpr Options::Spec LEDGER{"--ledger"_kj, true}, TO{"--to"_kj, true}, FROM{"--from"_kj, true},
    BEFORE{"--before"_kj, true}, ABOVE{"--above"_kj, true}, KEY{"--key"_kj, true},
    ACCEPT{"--accept"_kj, false};

Options optionsOf(Arguments arguments, std::initializer_list<Options::Spec> specs) {
  return Options(arguments, kj::arrayPtr(specs.begin(), specs.size()), 0);
}

kj::StringPtr needed(const Options& options, const Options::Spec& spec, kj::StringPtr what) {
  KJ_IF_MAYBE (value, options.value(spec.name)) return *value;
  throw usage(kj::str(spec.name, " ", what, " is needed"));
}

kj::StringPtr folderOf(const Options& options) { return needed(options, LEDGER, "FOLDER"_kj); }

uint32_t aboveOf(const Options& options) {
  KJ_IF_MAYBE (text, options.value(ABOVE.name)) {
    uint32_t out = 0;
    auto parsed = std::from_chars(text->begin(), text->end(), out);
    if (parsed.ec == std::errc() && parsed.ptr == text->end()) return out;
    throw usage(kj::str("--above is an incarnation, as `praefectus status` prints it"));
  }
  return 0;
}

// The deed, with its progress on a terminal.
template <typename Deed>
auto telling(Deed&& deed) {
  Progress progress;
  return deed(ledger::Telling(
      [&](kj::StringPtr step, uint64_t done, uint64_t all) { progress.at(step, done, all); }));
}

Json copiedJson(const ledger::Copied& copied, kj::StringPtr folder) {
  return {{"folder", json(printable(folder))},
          {"summary", summaryJson(copied.summary)},
          {"findings", copied.findings}};
}

// A copy of what does not hold is a copy all the same, and whoever relies on it must hear of it.
Report copiedReport(const ledger::Copied& copied, kj::StringPtr folder, kj::StringPtr sentence) {
  Report report;
  report.data = copiedJson(copied, folder);
  report.text = kj::str(sentence, " ", printable(folder), "\n\n", summaryText(copied.summary));
  if (copied.findings > 0) {
    report.ok = false;
    report.code = kj::str("ledger_damaged");
    report.message = kj::str("the copy was made, and does not hold, as its original does not: ",
                             counted(copied.findings, "finding"));
    report.hint = kj::str("`praefectus ledger check` names them.");
    report.text = kj::str(report.text, "\n", report.message, "\n  ", report.hint, "\n");
  }
  return report;
}

kj::AutoCloseFd openInput(kj::StringPtr path) {
  int fd = open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return kj::AutoCloseFd(fd);
  throw Failure{ExitCode::FAILED, kj::str("input_failed"),
                kj::str("the file cannot be opened: ", printable(path)), kj::str()};
}

Report importReport(const ledger::ImportMade& made) {
  Json conflicting = Json::array();
  for (auto& id : made.conflicting) conflicting.push_back(json(id));
  Page page;
  page.line("taken over", counted(made.taken, "id"));
  page.line("known", kj::str(counted(made.already, "id"), ", taken over before"));
  if (made.torn) page.line("note", "the last line of the file had no end");
  Report report;
  report.data = {{"taken", made.taken},
                 {"already", made.already},
                 {"conflicts", made.conflicts},
                 {"conflicting", conflicting},
                 {"torn", made.torn}};
  if (made.conflicts > 0) {
    report.ok = false;
    report.code = kj::str("operation_conflict");
    report.message =
        kj::str(counted(made.conflicts, "id"), " of the file had been used in this ledger already");
    report.hint = kj::str("Look at these operations in both: they may have been done twice.");
    kj::StringPtr label = "CAUTION"_kj;
    page.line(label, kj::str(report.message, ":"));
    for (auto& id : made.conflicting) page.line("", id);
    page.line("", report.hint);
  }
  report.text = page.str();
  return report;
}

}  // namespace

Report ledgerReport(Arguments arguments) {
  auto options = optionsOf(arguments, {LEDGER});
  return inventoryReport(orFail(ledger::takeInventory(folderOf(options))));
}

Report ledgerCheck(Arguments arguments) {
  auto options = optionsOf(arguments, {LEDGER, KEY});
  auto folder = folderOf(options);
  auto trusted = trustedKey(options);
  auto reader = orFail(ledger::LedgerReader::open(folder));
  return judge(
      [&](const kj::Maybe<attest::PublicKey>& key) {
        return orFail(telling([&](auto tell) { return ledger::check(folder, key, kj::mv(tell)); }));
      },
      *reader, trusted, false);
}

Report ledgerBackup(Arguments arguments) {
  auto options = optionsOf(arguments, {LEDGER, TO});
  auto folder = folderOf(options);
  auto to = needed(options, TO, "FOLDER"_kj);
  auto copied =
      orFail(telling([&](auto tell) { return ledger::backUp(folder, to, kj::mv(tell)); }));
  return copiedReport(copied, to, "Backed up, receipt key included, into");
}

Report ledgerRestore(Arguments arguments) {
  auto options = optionsOf(arguments, {FROM, LEDGER, ABOVE, YES});
  auto backup = needed(options, FROM, "BACKUP"_kj);
  auto folder = folderOf(options);
  auto above = aboveOf(options);
  confirm(
      options,
      "The restored ledger will not know what happened after the backup, and every grant that "
      "was signed before will be void. It forgets revocations and raised policy generations made "
      "after the backup. Only one copy of a ledger may be in service."_kj);
  auto copied = orFail(telling([&](auto tell) {
    return ledger::restore(backup, folder, momentNow(), above, kj::mv(tell));
  }));
  return copiedReport(copied, folder,
                      "Restored, as a new incarnation for which nothing is signed yet, into");
}

Report ledgerArchive(Arguments arguments) {
  auto options = optionsOf(arguments, {LEDGER, BEFORE, TO, YES});
  auto folder = folderOf(options);
  auto to = needed(options, TO, "FILE"_kj);
  auto before = momentOf(needed(options, BEFORE, "TIME"_kj));
  if (before == nullptr) throw usage(kj::str("--before is a time such as 2026-11-30"));
  confirm(options, kj::str("What ended before ", localTimeText(KJ_ASSERT_NONNULL(before)),
                           " will be moved out of the ledger: the receipts will be in the archive "
                           "and nowhere else. Their ids stay used."));
  auto made = orFail(telling([&](auto tell) {
    return ledger::archive(folder, KJ_ASSERT_NONNULL(before), to, momentNow(), kj::mv(tell));
  }));
  Report report;
  KJ_IF_MAYBE (archive, made) {
    Page page;
    page.line("archived", kj::str(counted(archive->operations, "operation"), ", up to place ",
                                  archive->through));
    page.word("file", printable(to));
    page.line("digest", hex(bytesOf(archive->digest)));
    page.line("size",
              kj::str(archive->bytesBefore, " bytes before, ", archive->bytesAfter, " after"));
    page.say(
        "Keep the file: their receipts are nowhere else. `praefectus verify --ledger FILE` "
        "checks it.");
    report.text = page.str();
    report.data = {
        {"operations", archive->operations},    {"through", archive->through},
        {"file", json(printable(to))},          {"digest", hex(bytesOf(archive->digest)).cStr()},
        {"bytes_before", archive->bytesBefore}, {"bytes_after", archive->bytesAfter}};
  } else {
    report.text = kj::str("nothing to archive: no file was made\n");
    report.data = {{"operations", 0}, {"file", nullptr}};
  }
  return report;
}

Report ledgerImport(Arguments arguments) {
  auto options = optionsOf(arguments, {LEDGER, FROM});
  auto folder = folderOf(options);
  kj::FdInputStream lines{openInput(needed(options, FROM, "FILE"_kj))};
  auto made = orFail(ledger::importV2(folder, lines, momentNow()));
  KJ_SWITCH_ONEOF(made) {
    KJ_CASE_ONEOF(import, ledger::ImportMade) { return importReport(import); }
    KJ_CASE_ONEOF(bad, ledger::BadLine) {
      throw Failure{ExitCode::FAILED, kj::str("malformed"),
                    kj::str("line ", bad.number,
                            " is not a record of a protocol v2 ledger; nothing was taken over"),
                    kj::str()};
    }
  }
  KJ_UNREACHABLE;
}

Report ledgerAdopt(Arguments arguments) {
  auto options = optionsOf(arguments, {LEDGER, ABOVE, YES});
  auto folder = folderOf(options);
  auto above = aboveOf(options);
  confirm(options,
          "Every grant that was signed for this ledger before will be void. Only one copy of a "
          "ledger may be in service."_kj);
  auto id = orFail(ledger::adopt(folder, momentNow(), above));
  Report report;
  report.data = {{"ledger", hex(bytesOf(id.key)).cStr()}, {"incarnation", id.incarnation}};
  report.text = kj::str("This is the ledger now, in incarnation ", id.incarnation,
                        ". No grant that was signed before counts.\n");
  return report;
}

Report ledgerRotate(Arguments arguments) {
  auto options = optionsOf(arguments, {LEDGER});
  auto key = orFail(ledger::rotateKey(folderOf(options), momentNow()));
  Report report;
  report.data = {{"receipt_key", hex(bytesOf(key)).cStr()}};
  report.text =
      kj::str("New receipts are signed with the key\n  ", hex(bytesOf(key)),
              "\nWhat the old one signed still counts, and is checked with the old one. The whole "
              "ledger is checked\nwith the first key, as before.\n");
  return report;
}

Report ledgerClock(Arguments arguments) {
  auto options = optionsOf(arguments, {LEDGER, ACCEPT});
  auto folder = folderOf(options);
  if (!options.has(ACCEPT.name)) {
    throw usage(kj::str("--accept says that you looked at the clock and it is right"));
  }
  auto now = momentNow();
  orFail(ledger::acceptClock(folder, now));
  Report report;
  report.data = {{"wall_ms", now.wallMs}};
  report.text = kj::str("Accepted: it is ", localTimeText(now.wallMs),
                        ". What had expired by a later clock may be valid again.\n");
  return report;
}

}  // namespace praefectus::cli
