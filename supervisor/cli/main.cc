// praefectus: the command line. An ordinary client of the supervisor, with no privilege of its own.
#include "supervisor/cli/commands.h"

#include "attest/digest.h"

#include <kj/debug.h>

namespace praefectus::cli {
namespace {

struct Command {
  kj::StringPtr name;
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
     "hidden; \"no tree\" beside it means that the window cannot be observed: its application "
     "offers no\n"
     "accessibility tree.\n"_kj,
     windows},
    {"observe"_kj, "WINDOW [--png FILE]"_kj, "read one window as a tree of elements"_kj,
     "Reads the window with this id (as `praefectus windows` prints it) as a tree of elements, one "
     "line\n"
     "each, indented under its parent. With --png, saves a picture of it too; FILE must not "
     "exist.\n"_kj,
     observe},
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
    {"verify"_kj, "--ledger FOLDER [--key HEX] [--head SEQUENCE:HASH]"_kj,
     "check a ledger's chain and every receipt, off line"_kj,
     "Recomputes every link and checks every signature. With --key, the public key you trust for "
     "this\n"
     "ledger; without it, the one the ledger itself names, which proves consistency but not "
     "origin. With\n"
     "--head, a head noted earlier (`praefectus status` prints it), which must be part of the "
     "chain: only\n"
     "so can an end that was cut off be seen.\n"_kj,
     verify},
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

kj::Maybe<const Command&> findCommand(kj::StringPtr name) {
  for (auto& command : COMMANDS) {
    if (command.name == name) return command;
  }
  return nullptr;
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

Report generalHelp() {
  kj::Vector<kj::String> lines;
  Json commands = Json::array();
  for (auto& command : COMMANDS) {
    auto name = kj::str(command.name);
    while (name.size() < 14) name = kj::str(name, " ");
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

Failure noSuchCommand(kj::StringPtr word) {
  return unusable(kj::str("there is no command named ", printable(word)));
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

Report run(kj::ArrayPtr<const kj::StringPtr> words, bool json) {
  if (words.size() == 0) throw unusable(kj::str("no command was given"));
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    if (words.size() == 1) return generalHelp();
    KJ_IF_MAYBE (command, findCommand(words[1])) return helpFor(*command);
    throw noSuchCommand(words[1]);
  }
  if (words[0] == "--version") {
    Report report;
    report.text = kj::str("praefectus ", PRAEFECTUS_RELEASE, "\n");
    report.data = {{"release", PRAEFECTUS_RELEASE}};
    return report;
  }
  KJ_IF_MAYBE (command, findCommand(words[0])) {
    auto arguments = words.slice(1, words.size());
    for (auto word : arguments) {
      if (word == "--help" || word == "-h") return helpFor(*command);
    }
    return runCommand(*command, arguments, json);
  }
  throw noSuchCommand(words[0]);
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
