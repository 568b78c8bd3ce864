// praefectus: the command line. An ordinary client of the supervisor, with no privilege of its own.
#include "supervisor/cli/commands.h"

#include "attest/digest.h"

#include <kj/debug.h>

#include <algorithm>

namespace praefectus::cli {
namespace {

struct Command {
  kj::StringPtr name;  // One word, or a group and one of its commands.
  kj::StringPtr arguments;
  kj::StringPtr summary;
  kj::StringPtr help;
  Report (*run)(Arguments arguments);  // Nothing for the demo, which prints as it goes.
};

const Command COMMANDS[] = {
    {"demo"_kj, "[--keep FOLDER]"_kj,
     "watch one action from observation to receipt, and the attacks refused"_kj,
     "Starts a private desktop with a real editor, and shows the whole of Praefectus on it: an "
     "action\n"
     "observed, signed, claimed, done, proven and receipted; then replays, forgeries, stale "
     "targets and\n"
     "crashes. Your own desktop is not touched. Pictures and the ledger are kept in FOLDER, or in "
     "a new\n"
     "folder whose name is printed.\n"_kj,
     nullptr},
    {"apps"_kj, ""_kj, "list the applications on this desktop and whether they can be read"_kj,
     "Lists the applications of the desktop that DISPLAY names. One that gives itself no name is "
     "shown\n"
     "with its process's, in brackets.\n"_kj,
     apps},
    {"windows"_kj, ""_kj, "list the windows on this desktop"_kj,
     "Lists the windows of the desktop that DISPLAY names, topmost first. STATE is active, visible "
     "or\n"
     "hidden; then what kind of window it is, unless an ordinary one, and which window it belongs "
     "to;\n"
     "\"no tree\" means that it cannot be observed: its application offers no accessibility tree.\n"
     "Below them are the monitors, and whether the session is locked.\n"_kj,
     windows},
    {"observe"_kj,
     "WINDOW [--png FILE [--annotate]] [--elements N] [--depth N] [--text-bytes N] [--time-ms N] "
     "[--below ELEMENT [--first N]] [--again SECONDS]"_kj,
     "read one window as a tree of elements"_kj,
     "Reads the window with this id (as `praefectus windows` prints it) as a tree of elements: one "
     "line\n"
     "each, indented under its parent, in the form that models are given. It begins with the "
     "element's\n"
     "number, then has its role, \"name\", = \"value\", [what is special about its state], (the "
     "actions "
     "it\n"
     "accepts), #id in its page, and place in the window. Lines before them say what was left out. "
     "With\n"
     "--png, saves a picture of the window too; FILE must not exist. With --annotate, every "
     "element "
     "that\n"
     "shows and can be acted on has a box and its number there.\n"
     "A reading ends at 1500 elements (--elements, at most 5000), 64 levels (--depth), 500 bytes "
     "of "
     "a\n"
     "text (--text-bytes, at most 16384) and 6 seconds (--time-ms). --below reads on under one "
     "element,\n"
     "from its first child or from child N (--first, counted from 0). --again reads twice, up to "
     "300\n"
     "seconds apart, and prints what has changed: + new, - gone, ~ changed, = under another number.\n"_kj,
     observe},
    {"screenshot"_kj, "WINDOW|--monitor N --png FILE [--part WIDTHxHEIGHT+X+Y]"_kj,
     "save a picture of a window, a part of it, or a monitor"_kj,
     "Saves what the window with this id shows, covered or not, or what a person sees on monitor N "
     "(both\n"
     "as `praefectus windows` prints them), as a PNG in FILE, which must not exist. The digest is "
     "that of\n"
     "the pixels. --part is in the window's own pixels.\n"_kj,
     screenshot},
    {"capabilities"_kj, ""_kj, "say what works on this desktop now"_kj,
     "Starts an attested helper on this desktop and asks it what works, tried and not assumed.\n"_kj,
     capabilities},
    {"status"_kj, "--ledger FOLDER [OPERATION | --list]"_kj,
     "say what a ledger knows of an operation, or of itself"_kj,
     "Reads a ledger without changing a byte of it, also while a supervisor uses it. With an "
     "operation\n"
     "id, prints how that operation ended; with --list, the newest 100 operations; otherwise a "
     "summary.\n"_kj,
     status},
    {"verify"_kj, "--ledger FOLDER [--key HEX] [--head SEQUENCE:HASH] | FILE --key HEX"_kj,
     "check a ledger or one exported receipt, off line"_kj,
     "Recomputes every link of a ledger's chain and checks every signature. With --key, the public "
     "key you\n"
     "trust for this ledger; without it, the one the ledger itself names, which proves consistency "
     "but not\n"
     "origin. With --head, a head noted earlier (`praefectus status` prints it), which must be "
     "part "
     "of the\n"
     "chain: only so can an end that was cut off be seen.\n"
     "With a FILE, checks a receipt that `praefectus receipts export` wrote, or a signed refusal, "
     "and prints\n"
     "it. That needs nothing but the public key.\n"_kj,
     verify},
    {"receipts list"_kj,
     "--ledger FOLDER [--session ID] [--turn ID] [--kind KIND] [--terminal WORD] [--since TIME] "
     "[--until TIME] [--limit N]"_kj,
     "list operations and how they ended, newest first"_kj,
     "Lists the newest 100 operations of a ledger that match all that is given, or the newest N. A "
     "TIME is\n"
     "that of the claim: 2026-11-30, 2026-11-30T15:40 or 2026-11-30T15:40:11 in your own zone, in "
     "UTC with a\n"
     "Z at its end, or Unix milliseconds; --since is inclusive, --until is not. KIND is an "
     "action's, "
     "such as\n"
     "set_value; WORD an ending, such as outcome_unknown.\n"_kj,
     receiptsList},
    {"receipts show"_kj, "OPERATION --ledger FOLDER"_kj, "show one operation's receipt in words"_kj,
     "Prints the receipt of an operation that has ended. Its signature was checked.\n"_kj,
     receiptsShow},
    {"receipts export"_kj, "[OPERATION] --ledger FOLDER --to PATH [filters]"_kj,
     "write receipts into files that `verify` checks"_kj,
     "Writes the receipt of OPERATION into the new file PATH, exactly as it was signed; or, "
     "without "
     "an\n"
     "OPERATION, one file for each receipt into the folder PATH, of all operations or of those "
     "that "
     "the\n"
     "filters of `praefectus receipts list` choose (at most 100000 at once). No file is written "
     "over. Prints\n"
     "the public key that `praefectus verify FILE --key HEX` needs.\n"_kj,
     receiptsExport},
    {"ledger report"_kj, "--ledger FOLDER"_kj, "count what a ledger holds"_kj,
     "Counts operations by how they ended, events, keys and archives, and says how large the "
     "ledger "
     "is and\n"
     "whether it lies where it belongs. Reads only, also while a supervisor uses it, and checks "
     "nothing.\n"_kj,
     ledgerReport},
    {"ledger check"_kj, "--ledger FOLDER [--key HEX]"_kj,
     "verify a ledger, and its folder and files too"_kj,
     "Does what `praefectus verify` does, and checks besides that the folder and its files are "
     "private and\n"
     "that the receipt key is this ledger's. Reads only, also while a supervisor uses it.\n"_kj,
     ledgerCheck},
    {"ledger backup"_kj, "--ledger FOLDER --to FOLDER"_kj,
     "copy a ledger, also while it is used"_kj,
     "Copies a ledger, receipt key included, as it is at one moment, into a folder that must not "
     "exist, and\n"
     "verifies the copy. It serves nobody until it is restored or adopted.\n"_kj,
     ledgerBackup},
    {"ledger restore"_kj, "--from BACKUP --ledger FOLDER [--above N] [--yes]"_kj,
     "make a ledger of a backup"_kj,
     "Copies a backup into FOLDER, which must not exist, as a new incarnation: no grant that was "
     "signed\n"
     "before counts. If the lost ledger was adopted after the backup was made, its incarnation "
     "must "
     "be\n"
     "given with --above, so that the new one is above it. Revocations and raised policy "
     "generations made\n"
     "after the backup are forgotten: make them again. Asks first; where nobody can be asked,\n"
     "--yes is needed.\n"_kj,
     ledgerRestore},
    {"ledger archive"_kj, "--ledger FOLDER --before TIME --to FILE [--yes]"_kj,
     "move old operations into a file"_kj,
     "Moves the operations that ended before TIME (see `praefectus receipts list`), from the "
     "beginning of\n"
     "the chain on, into the new file FILE, and verifies it before anything is removed. Their ids "
     "are still\n"
     "never used again. FILE can be given as --ledger to verify, status and receipts. Asks first;\n"
     "where nobody can be asked, --yes is needed.\n"_kj,
     ledgerArchive},
    {"ledger import"_kj, "--ledger FOLDER --from FILE"_kj,
     "take over the ids of a protocol v2 ledger"_kj,
     "Reads the JSON lines of a protocol v2 ledger and sees to it that none of its operation ids "
     "is "
     "ever\n"
     "used in this one. Nothing else of them is kept. Doing it again changes nothing.\n"_kj,
     ledgerImport},
    {"ledger adopt"_kj, "--ledger FOLDER [--above N] [--yes]"_kj,
     "say that this is the ledger now, wherever it lies"_kj,
     "A ledger that was moved or copied serves nobody until a person says that it is the one. That "
     "begins\n"
     "a new incarnation, for which no grant is signed yet. If a copy of it may have been adopted "
     "before,\n"
     "its incarnation must be given with --above, so that the new one is above it. Asks first; "
     "where nobody\n"
     "can be asked, --yes is needed.\n"_kj,
     ledgerAdopt},
    {"ledger rotate"_kj, "--ledger FOLDER"_kj, "sign receipts with a new key from now on"_kj,
     "Makes a new receipt key, has the old one sign that, and removes the old one. What it signed "
     "still\n"
     "counts. Tell the new public key to whoever checks receipts.\n"_kj,
     ledgerRotate},
    {"ledger clock"_kj, "--ledger FOLDER --accept"_kj, "say that the wall clock is right"_kj,
     "Nothing is done on a desktop while the clock disagrees with what the ledger remembers. Look "
     "at\n"
     "the clock, set it right, and only if it still refuses, accept it. Grants that had expired by "
     "a later clock may "
     "be valid\n"
     "again.\n"_kj,
     ledgerClock},
    {"keys make"_kj, "NAME [--folder FOLDER]"_kj, "make a key that signs grants"_kj,
     "Makes an Ed25519 key in the file FOLDER/NAME.key (0600, in a folder of mode 0700 that is "
     "made "
     "if it\n"
     "is missing) and prints its public half, with the --issuer line that pins it in a new ledger. "
     "A key\n"
     "that is there is never written over, and the private half is never printed. FOLDER is\n"
     "$XDG_STATE_HOME/praefectus/keys unless it is named, or ~/.local/state/praefectus/keys.\n"_kj,
     keysMake},
    {"keys list"_kj, "[--folder FOLDER]"_kj, "list the keys of a folder"_kj,
     "Lists the keys of FOLDER (see `praefectus keys make`). What is damaged, not a key, or open "
     "to "
     "others\n"
     "is named too, and makes the exit code 3.\n"_kj,
     keysList},
    {"keys show"_kj, "NAME [--folder FOLDER]"_kj, "print the public half of a key"_kj,
     "Prints key id, public key and --issuer line of a key in FOLDER (see `praefectus keys "
     "make`).\n"_kj,
     keysShow},
    {"grant show"_kj, "FILE [--action FILE] [--key HEX]"_kj,
     "say in words what a grant would allow"_kj,
     "Reads a grant, lease, task grant or revocation, signed (an envelope) or not yet (the bare "
     "canonical\n"
     "bytes), and says what it would allow, to whom, on what, how often, for how long and with "
     "which\n"
     "special rights. With --action, shows the action too, if it is the one in the grant. THIS "
     "PRINTS THE\n"
     "ACTION'S OWN TEXT: what would be typed, pasted or set, so that whoever decides sees what is "
     "decided.\n"
     "With --key, the issuer's public key, checks the signature; without it nothing is proven.\n"_kj,
     grantShow},
    {"doctor"_kj, ""_kj, "find out whether Praefectus works here, and name what does not"_kj,
     "Opens a small window of its own on this desktop, reads it, sets a text in it and checks that "
     "the\n"
     "window itself recorded it. Names the first thing that is wrong.\n"_kj,
     doctor},
    {"execute"_kj, ""_kj, "not available here, on purpose"_kj,
     "A process of the same user cannot establish an independent authority from a file that the "
     "caller\n"
     "selects. Actions are carried out for hosts that hold a pinned key: link supervisor/client.\n"_kj,
     execute},
};

using Words = kj::ArrayPtr<const kj::StringPtr>;

struct Found {
  const Command& command;
  size_t words;  // How many of the words were its name.
};

kj::Maybe<Found> findCommand(Words words) {
  for (auto& command : COMMANDS) {
    if (command.name == words[0]) return Found{command, 1};
    if (words.size() > 1 && command.name == kj::str(words[0], " ", words[1])) {
      return Found{command, 2};
    }
  }
  return nullptr;
}

// The commands of a group; empty when there is no such group.
kj::Vector<const Command*> commandsOf(kj::StringPtr group) {
  kj::Vector<const Command*> out;
  auto prefix = kj::str(group, " ");
  for (auto& command : COMMANDS) {
    if (command.name.startsWith(prefix)) out.add(&command);
  }
  return out;
}

kj::String usageLine(const Command& command) {
  return kj::str("praefectus ", command.name, command.arguments.size() > 0 ? " " : "",
                 command.arguments, " [--json]");
}

Report helpFor(const Command& command) {
  Report report;
  report.text = kj::str(usageLine(command), "\n\n", command.help);
  report.data = {{"command", command.name.cStr()},
                 {"arguments", command.arguments.cStr()},
                 {"help", command.help.cStr()}};
  return report;
}

Report helpFor(kj::ArrayPtr<const Command* const> group) {
  Report report;
  kj::Vector<kj::String> lines;
  report.data["commands"] = Json::array();
  for (auto command : group) {
    lines.add(kj::str(usageLine(*command), "\n  ", command->summary, "\n"));
    report.data["commands"].push_back(
        {{"name", command->name.cStr()}, {"summary", command->summary.cStr()}});
  }
  report.text = kj::strArray(lines, "");
  return report;
}

Report generalHelp() {
  kj::Vector<kj::String> lines;
  Json commands = Json::array();
  for (auto& command : COMMANDS) {
    auto name = kj::str(command.name);
    while (name.size() < 17) name = kj::str(name, " ");
    lines.add(kj::str("  ", name, command.summary));
    commands.push_back({{"name", command.name.cStr()}, {"summary", command.summary.cStr()}});
  }
  Report report;
  report.text = kj::str(
      "praefectus ", PRAEFECTUS_RELEASE,
      ": lets a program act on a desktop, at most once, with proof.\n\n",
      "usage: praefectus COMMAND [arguments] [--json]\n\n", kj::strArray(lines, "\n"),
      "\n\n"
      "--json prints one line: {\"ok\":true,\"data\":…} or "
      "{\"ok\":false,\"error\":{\"code\":…,\"message\":…}}.\n"
      "`error` may have a `hint`; `data` may stand beside `error` when the finding is what is bad\n"
      "(verify, demo); the demo's `steps` stand beside both.\n"
      "Exit codes: 0 success, 1 output could not be written, 2 usage, 3 refused or failed.\n"
      "`praefectus COMMAND --help` says more. Start with `praefectus demo` or `praefectus "
      "doctor`.\n");
  report.data = {{"release", PRAEFECTUS_RELEASE}, {"commands", commands}};
  return report;
}

Failure unusable(kj::String message) {
  auto failure = usage(kj::mv(message));
  failure.advice = kj::str("`praefectus --help` lists the commands.");
  return failure;
}

Failure noSuchCommand(Words words) {
  auto group = commandsOf(words[0]);
  if (group.size() == 0) {
    return unusable(kj::str("there is no command named ", printable(words[0])));
  }
  auto names = KJ_MAP(command, group) { return command->name.slice(words[0].size() + 1); };
  return unusable(kj::str(words[0], " needs one of: ", kj::strArray(names, ", ")));
}

bool isHelp(kj::StringPtr word) { return word == "--help" || word == "-h"; }

bool asksForHelp(Words words) { return std::any_of(words.begin(), words.end(), isHelp); }

// Of a command or a group.
Report helpOn(Words words) {
  KJ_IF_MAYBE (found, findCommand(words)) return helpFor(found->command);
  auto group = commandsOf(words[0]);
  if (group.size() == 0 || (words.size() > 1 && !isHelp(words[1]))) throw noSuchCommand(words);
  return helpFor(group);
}

Report runCommand(const Command& command, Arguments arguments, bool json) {
  try {
    return command.run == nullptr ? demo(arguments, json) : command.run(arguments);
  } catch (Failure& failed) {
    if (failed.exit == ExitCode::USAGE && failed.advice.size() == 0) {
      failed.advice = kj::str("usage: ", usageLine(command));
    }
    throw;
  }
}

Report run(Words words, bool json) {
  if (words.size() == 0) throw unusable(kj::str("no command was given"));
  if (isHelp(words[0]) || words[0] == "help") {
    return words.size() == 1 ? generalHelp() : helpOn(words.slice(1, words.size()));
  }
  if (words[0] == "--version") {
    Report report;
    report.text = kj::str("praefectus ", PRAEFECTUS_RELEASE, "\n");
    report.data = {{"release", PRAEFECTUS_RELEASE}};
    return report;
  }
  if (asksForHelp(words)) return helpOn(words);
  KJ_IF_MAYBE (found, findCommand(words)) {
    return runCommand(found->command, words.slice(found->words, words.size()), json);
  }
  throw noSuchCommand(words);
}

int mainWith(int argc, char* argv[]) {
  bool json = false;
  kj::Vector<kj::StringPtr> words;
  for (int i = 1; i < argc; ++i) {
    kj::StringPtr word = argv[i];
    if (word == "--json") {
      json = true;
    } else {
      words.add(word);
    }
  }
  try {
    attest::initialize();
    return static_cast<int>(print(run(words, json), json));
  } catch (const Failure& failed) {
    return static_cast<int>(print(failed, json));
  } catch (const kj::Exception& broken) {
    // Our own sentences only (KJ_REQUIRE texts, missing programs); nothing that an application
    // said.
    return static_cast<int>(print(
        Failure{ExitCode::FAILED, kj::str("internal"), kj::str(broken.getDescription()), kj::str()},
        json));
  }
}

}  // namespace
}  // namespace praefectus::cli

int main(int argc, char* argv[]) { return praefectus::cli::mainWith(argc, argv); }
