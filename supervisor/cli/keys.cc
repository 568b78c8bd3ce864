// keys make, list, show: the keys that sign grants. What a key is shown by is its public half; its
// private half goes from the generator to its file and into no text of ours.
#include "supervisor/cli/commands.h"
#include "supervisor/cli/files.h"
#include "supervisor/cli/page.h"

#include "attest/keyring.h"

#include <algorithm>
#include <cstdlib>

#include <dirent.h>
#include <sys/stat.h>

namespace praefectus::cli {
namespace {

constexpr kj::StringPtr ENDING = ".key"_kj;
constexpr size_t NAME_CHARACTERS = 64;

// The XDG base directory specification has a relative path ignored.
kj::String defaultFolder() {
  const char* state = getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return kj::str(state, "/praefectus/keys");
  const char* home = getenv("HOME");
  if (home != nullptr && *home == '/') return kj::str(home, "/.local/state/praefectus/keys");
  throw usage(kj::str("neither XDG_STATE_HOME nor HOME is set: say which folder with --folder"));
}

kj::String folderOf(const Options& options) {
  KJ_IF_MAYBE (folder, options.value("--folder")) return kj::str(*folder);
  return defaultFolder();
}

Options keyOptions(Arguments arguments, size_t positionals) {
  constexpr Options::Spec SPECS[] = {{"--folder"_kj, true}};
  return Options(arguments, kj::arrayPtr(SPECS, 1), positionals);
}

bool isLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Narrower than an identifier: it is a file's name too, and ':' parts the fields of --issuer.
bool isKeyName(kj::StringPtr name) {
  if (name.size() == 0 || name.size() > NAME_CHARACTERS || !isLetterOrDigit(name[0])) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return isLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
}

kj::StringPtr keyNameOf(const Options& options) {
  if (options.positional().size() == 0) throw usage(kj::str("which key? It needs a name"));
  auto name = options.positional()[0];
  if (isKeyName(name)) return name;
  throw usage(
      kj::str("a key's name is 1 to 64 of A-Z a-z 0-9 . _ - and begins with a letter or digit"));
}

kj::String fileOf(kj::StringPtr folder, kj::StringPtr name) {
  return kj::str(folder, "/", name, ENDING);
}

// What `praefectus-supervisor create --issuer` takes.
kj::String issuerOf(kj::StringPtr name, const attest::PublicKey& key) {
  return kj::str(name, ":", attest::keyIdOf(key), ":", hex(bytesOf(key)));
}

Json keyJson(kj::StringPtr name, kj::StringPtr file, const attest::PublicKey& key) {
  return {{"name", json(name)},
          {"key_id", attest::keyIdOf(key).cStr()},
          {"public_key", hex(bytesOf(key)).cStr()},
          {"issuer", issuerOf(name, key).cStr()},
          {"file", json(printable(file))}};
}

Report keyReport(kj::StringPtr heading, kj::StringPtr name, kj::StringPtr file,
                 const attest::PublicKey& key) {
  Page page;
  page.say(heading);
  page.gap();
  page.line("name", name);
  page.line("key id", attest::keyIdOf(key));
  page.line("public key", hex(bytesOf(key)));
  page.word("file", printable(file));
  // In one piece, whatever its width, so that it can be copied.
  Report report;
  report.text = kj::str(page.str(),
                        "\nTo pin it in a new ledger:\n  praefectus-supervisor create "
                        "--ledger FOLDER \\\n    --issuer ",
                        issuerOf(name, key), "\n");
  report.data = keyJson(name, file, key);
  return report;
}

Failure noSuchKey(kj::StringPtr name) {
  return {ExitCode::FAILED, kj::str("key_missing"), kj::str("there is no key named ", name),
          kj::str("`praefectus keys list` shows those that are there.")};
}

bool isThere(kj::StringPtr path) {
  struct stat info;
  return lstat(path.cStr(), &info) == 0;
}

// Throws a Failure when it is there already or cannot be written.
void save(const attest::SigningKey& key, kj::StringPtr file) {
  bool before = isThere(file);
  if (!before && kj::runCatchingExceptions([&]() { key.save(file); }) == nullptr) return;
  // One that somebody else made at the same moment is there now; one of ours that failed is gone.
  if (before || isThere(file)) {
    throw Failure{ExitCode::FAILED, kj::str("key_exists"),
                  kj::str("a key of that name exists already; it was left as it is"),
                  kj::str("Choose another name: whoever pinned that key relies on it.")};
  }
  throw Failure{ExitCode::FAILED, kj::str("key_failed"), kj::str("the key could not be written"),
                kj::str("Check the disk (full, read-only, failing), then try again.")};
}

// Every name in the folder, in order, without "." and "..".
kj::Vector<kj::String> namesIn(kj::StringPtr folder) {
  kj::Vector<kj::String> out;
  DIR* directory = opendir(folder.cStr());
  if (directory == nullptr) {
    throw Failure{ExitCode::FAILED, kj::str("input_failed"),
                  kj::str("the folder cannot be read: ", printable(folder)), kj::str()};
  }
  while (dirent* entry = readdir(directory)) {
    kj::StringPtr name = entry->d_name;
    if (name != "." && name != "..") out.add(kj::str(name));
  }
  closedir(directory);
  std::sort(out.begin(), out.end());
  return out;
}

// The name of the key in a file of this name; nothing when no key is named so.
kj::Maybe<kj::String> keyNameIn(kj::StringPtr file) {
  if (!file.endsWith(ENDING)) return nullptr;
  auto name = kj::heapString(file.slice(0, file.size() - ENDING.size()));
  if (!isKeyName(name)) return nullptr;
  return kj::mv(name);
}

// What a folder holds, each thing as a key or by what is wrong with it.
struct Listing {
  Json keys = Json::array(), wrong = Json::array();
  kj::Vector<kj::Vector<kj::String>> rows;
  Page complaints;

  void addKey(kj::StringPtr name, kj::StringPtr path, const attest::PublicKey& key) {
    kj::Vector<kj::String> cells;
    cells.add(kj::str(name));
    cells.add(attest::keyIdOf(key));
    rows.add(kj::mv(cells));
    keys.push_back(keyJson(name, path, key));
  }

  void addWrong(kj::StringPtr file, kj::StringPtr why) {
    complaints.line("not usable", kj::str(printable(file), ": ", why));
    wrong.push_back({{"file", json(printable(file))}, {"why", why.cStr()}});
  }
};

void look(kj::StringPtr folder, kj::StringPtr file, Listing& into) {
  KJ_IF_MAYBE (name, keyNameIn(file)) {
    auto path = fileOf(folder, *name);
    auto key = attest::SigningKey::load(path);
    if (key.ok()) {
      into.addKey(*name, path, key->publicKey());
    } else {
      into.addWrong(file, key.refusal().detail);
    }
  } else {
    into.addWrong(file, "The file is not named as a key's is."_kj);
  }
}

}  // namespace

Report keysMake(Arguments arguments) {
  auto options = keyOptions(arguments, 1);
  auto name = keyNameOf(options);
  auto folder = folderOf(options);
  makeFolder(folder);
  isPrivateFolder(folder);
  auto file = fileOf(folder, name);
  auto key = attest::SigningKey::generate();
  save(key, file);
  return keyReport("Made a new key. Its private half is in this file and nowhere else."_kj, name,
                   file, key.publicKey());
}

Report keysShow(Arguments arguments) {
  auto options = keyOptions(arguments, 1);
  auto name = keyNameOf(options);
  auto folder = folderOf(options);
  auto file = fileOf(folder, name);
  if (!isPrivateFolder(folder) || !isThere(file)) throw noSuchKey(name);
  auto key = attest::SigningKey::load(file);
  if (!key.ok()) {
    throw Failure{ExitCode::FAILED, kj::str("key_unusable"), kj::str(key.refusal().detail),
                  kj::str()};
  }
  return keyReport("The public half of a key."_kj, name, file, key->publicKey());
}

Report keysList(Arguments arguments) {
  auto options = keyOptions(arguments, 0);
  auto folder = folderOf(options);
  Listing found;
  if (isPrivateFolder(folder)) {
    for (auto& file : namesIn(folder)) look(folder, file, found);
  }

  Report report;
  report.data = {{"folder", json(printable(folder))}, {"keys", found.keys}};
  if (found.rows.size() == 0) {
    report.text = kj::str("no keys in ", printable(folder), "\n");
  } else {
    constexpr kj::StringPtr HEADS[] = {"NAME"_kj, "KEY ID"_kj};
    Table table(kj::arrayPtr(HEADS, 2));
    for (auto& row : found.rows) table.row(kj::mv(row));
    report.text = kj::str(table.str(), "\n`praefectus keys show NAME` prints a public half.\n");
  }
  if (found.wrong.size() > 0) {
    report.ok = false;
    report.data["unusable"] = found.wrong;
    report.code = kj::str("key_unusable");
    report.message = kj::str(counted(found.wrong.size(), "file"), " in the folder of keys ",
                             found.wrong.size() == 1 ? "is" : "are", " not a usable key");
    report.text = kj::str(report.text, "\n", found.complaints.str());
  }
  return report;
}

}  // namespace praefectus::cli
