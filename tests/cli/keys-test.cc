// keys make, list, show: one private key, one file, and not a digit of it anywhere else.
#include "tests/cli/program.h"

#include "attest/keyring.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::tests {
namespace {

namespace fs = std::filesystem;

mode_t modeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

// The digits of the private half, as the file has them.
std::string secretIn(const std::string& file) {
  auto line = contents(file);
  auto blank = line.find(' ');
  EXPECT_EQ(line.size() - blank, 66u) << "not a key file";
  return line.substr(blank + 1, 64);
}

std::vector<std::string> withHome(const std::string& home) {
  auto out = NO_DESKTOP;
  out.push_back("HOME=" + home);
  return out;
}

Json make(const std::string& folder, const std::string& name = "agent") {
  auto ran = praefectus({"keys", "make", name, "--folder", folder, "--json"});
  EXPECT_EQ(ran.exit, 0) << ran.out;
  return envelope(ran)["data"];
}

TEST(Keys, aKeyIsMadeInAPrivateFolderAndLoads) {
  Folder folder;
  auto keys = folder.file("deep/keys");
  auto made = make(keys);
  EXPECT_EQ(modeOf(keys), 0700u);
  EXPECT_EQ(modeOf(folder.file("deep")), 0700u);
  EXPECT_EQ(modeOf(keys + "/agent.key"), 0600u);
  attest::initialize();
  auto loaded = attest::SigningKey::load((keys + "/agent.key").c_str());
  ASSERT_TRUE(loaded.ok());
  auto publicKey = std::string(hex(bytesOf(loaded->publicKey())).cStr());
  std::string keyId = attest::keyIdOf(loaded->publicKey()).cStr();
  EXPECT_EQ(made["name"], "agent");
  EXPECT_EQ(made["public_key"], publicKey);
  EXPECT_EQ(made["key_id"], keyId);
  EXPECT_EQ(made["issuer"], "agent:" + keyId + ":" + publicKey);
  auto text = praefectus({"keys", "show", "agent", "--folder", keys});
  EXPECT_TRUE(has(text.out, "--issuer agent:" + keyId + ":" + publicKey + "\n")) << text.out;
}

TEST(Keys, noUmaskOpensAKeyToOthers) {
  Folder folder;
  auto before = umask(0);
  make(folder.file("keys"));
  umask(before);
  EXPECT_EQ(modeOf(folder.file("keys")), 0700u);
  EXPECT_EQ(modeOf(folder.file("keys/agent.key")), 0600u);
}

TEST(Keys, withoutAFolderTheStateFolderOfTheUserIsTaken) {
  Folder folder;
  ASSERT_EQ(praefectus({"keys", "make", "agent"}, withHome(folder.path())).exit, 0);
  EXPECT_TRUE(fs::exists(folder.file(".local/state/praefectus/keys/agent.key")));

  auto environment = withHome(folder.path());
  environment.push_back("XDG_STATE_HOME=" + folder.file("state"));
  ASSERT_EQ(praefectus({"keys", "make", "other"}, environment).exit, 0);
  EXPECT_TRUE(fs::exists(folder.file("state/praefectus/keys/other.key")));
  auto listed = envelope(praefectus({"keys", "list", "--json"}, environment))["data"]["keys"];
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0]["name"], "other");

  environment.back() = "XDG_STATE_HOME=relative";
  listed = envelope(praefectus({"keys", "list", "--json"}, environment))["data"]["keys"];
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0]["name"], "agent");
}

TEST(Keys, aKeyThatIsThereIsNeverWrittenOver) {
  Folder folder;
  auto file = folder.file("agent.key");
  make(folder.path());
  auto before = contents(file);
  auto again = praefectus({"keys", "make", "agent", "--folder", folder.path(), "--json"});
  EXPECT_EQ(again.exit, 3);
  EXPECT_EQ(envelope(again)["error"]["code"], "key_exists");
  EXPECT_EQ(contents(file), before);

  // Nor what a link of that name points at, be it there or not.
  fs::create_symlink(folder.file("elsewhere"), folder.file("link.key"));
  auto link = praefectus({"keys", "make", "link", "--folder", folder.path(), "--json"});
  EXPECT_EQ(link.exit, 3);
  EXPECT_FALSE(fs::exists(folder.file("elsewhere")));
}

TEST(Keys, aFolderThatOthersMayEnterIsRefused) {
  Folder folder;
  make(folder.path());
  chmod(folder.path().c_str(), 0750);
  for (const std::vector<std::string>& asked : {std::vector<std::string>{"keys", "make", "other"},
                                                {"keys", "show", "agent"},
                                                {"keys", "list"}}) {
    auto arguments = asked;
    arguments.insert(arguments.end(), {"--folder", folder.path(), "--json"});
    auto ran = praefectus(arguments);
    EXPECT_EQ(ran.exit, 3) << asked[1];
    EXPECT_EQ(envelope(ran)["error"]["code"], "folder_unsafe") << asked[1];
  }
  EXPECT_FALSE(fs::exists(folder.file("other.key")));
}

TEST(Keys, aFolderThatCannotBeMadeIsNamed) {
  Folder folder;
  std::ofstream(folder.file("file")) << "x";
  for (auto place : {"file", "file/keys"}) {
    auto ran = praefectus({"keys", "make", "agent", "--folder", folder.file(place), "--json"});
    EXPECT_EQ(ran.exit, 3);
    EXPECT_EQ(envelope(ran)["error"]["code"], "folder_failed") << place;
  }
}

TEST(Keys, aListNamesWhatIsDamagedOrOpenAndHidesNothing) {
  Folder folder;
  auto listed = praefectus({"keys", "list", "--folder", folder.path()});
  EXPECT_EQ(listed.exit, 0);
  EXPECT_TRUE(has(listed.out, "no keys in")) << listed.out;

  make(folder.path(), "b");
  make(folder.path(), "a");
  auto good = envelope(praefectus({"keys", "list", "--folder", folder.path(), "--json"}));
  ASSERT_EQ(good["data"]["keys"].size(), 2u);
  EXPECT_EQ(good["data"]["keys"][0]["name"], "a");

  make(folder.path(), "open");
  chmod(folder.file("open.key").c_str(), 0640);
  std::ofstream(folder.file("cut.key")) << contents(folder.file("a.key")).substr(0, 40);
  chmod(folder.file("cut.key").c_str(), 0600);
  std::ofstream(folder.file("notes\033.txt")) << "x";
  auto ran = praefectus({"keys", "list", "--folder", folder.path(), "--json"});
  EXPECT_EQ(ran.exit, 3);
  auto json = envelope(ran);
  EXPECT_EQ(json["error"]["code"], "key_unusable");
  EXPECT_EQ(json["data"]["keys"].size(), 2u);
  auto& wrong = json["data"]["unusable"];
  ASSERT_EQ(wrong.size(), 3u);
  EXPECT_EQ(wrong[0]["file"], "cut.key");
  EXPECT_TRUE(has(wrong[0]["why"], "does not hold a key"));
  EXPECT_EQ(wrong[1]["file"], "notes\uFFFD.txt");
  EXPECT_EQ(wrong[2]["file"], "open.key");
  EXPECT_TRUE(has(wrong[2]["why"], "0600"));
  auto text = praefectus({"keys", "list", "--folder", folder.path()});
  for (auto file : {"cut.key", "open.key", "notes"}) EXPECT_TRUE(has(text.out, file)) << text.out;
}

TEST(Keys, showNamesAKeyThatIsMissingOrUnusable) {
  Folder folder;
  auto show = [&](const std::string& name) {
    auto ran = praefectus({"keys", "show", name, "--folder", folder.path(), "--json"});
    EXPECT_EQ(ran.exit, 3);
    return envelope(ran)["error"]["code"];
  };
  EXPECT_EQ(show("agent"), "key_missing");
  make(folder.path());
  chmod(folder.file("agent.key").c_str(), 0644);
  EXPECT_EQ(show("agent"), "key_unusable");
}

// Whatever is asked about a key, and however that ends.
TEST(Keys, noCommandPrintsAPrivateKey) {
  Folder folder;
  std::string said;
  auto say = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--folder", folder.path()});
    for (int as = 0; as < 2; ++as) {
      auto ran = praefectus(arguments);
      said += ran.out + ran.err;
      arguments.push_back("--json");
    }
  };
  say({"keys", "make", "agent"});
  say({"keys", "make", "agent"});
  say({"keys", "show", "agent"});
  say({"keys", "list"});
  auto file = folder.file("agent.key");
  auto secret = secretIn(file);
  chmod(file.c_str(), 0644);
  say({"keys", "show", "agent"});
  say({"keys", "list"});
  chmod(file.c_str(), 0600);
  std::ofstream(file, std::ios::app) << "more";
  say({"keys", "show", "agent"});
  say({"keys", "list"});
  for (auto as : {std::vector<std::string>{"grant", "show", file},
                  {"grant", "show", file, "--action", file}}) {
    auto ran = praefectus(as);
    EXPECT_EQ(ran.exit, 3);
    said += ran.out + ran.err;
  }

  attest::initialize();
  auto loaded = attest::SigningKey::fromSeed(KJ_ASSERT_NONNULL(unhex(secret.c_str())));
  EXPECT_TRUE(has(said, hex(bytesOf(loaded.publicKey())).cStr())) << "this is not that key";
  // Eight digits of it in a row could not be chance.
  for (size_t from = 0; from + 8 <= secret.size(); ++from) {
    EXPECT_FALSE(has(said, secret.substr(from, 8))) << from;
  }
}

}  // namespace
}  // namespace praefectus::tests
