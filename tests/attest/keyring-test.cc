#include "attest/keyring.h"

#include "tests/attest/samples.h"
#include "tests/ipc/refusals.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::attest {
namespace {

constexpr kj::StringPtr LABEL = "praefectus/test/v1"_kj;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

mode_t modeOf(const std::string& path) {
  struct stat info;
  KJ_SYSCALL(stat(path.c_str(), &info));
  return info.st_mode & 07777;
}

class KeyTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialize(); }
  KeyTest() {
    char pattern[] = "/tmp/praefectus-keys-XXXXXX";
    KJ_ASSERT(mkdtemp(pattern) != nullptr);
    folder = pattern;
    path = folder + "/key";
  }
  ~KeyTest() override { std::filesystem::remove_all(folder); }

  std::string load() { return outcome(SigningKey::load(path.c_str())); }
  void put(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    KJ_SYSCALL(chmod(path.c_str(), mode));
  }

  std::string folder, path;
};

// RFC 8032, section 7.1, test 2: the seed's public key. Signatures of ours always carry a label.
TEST_F(KeyTest, aSeedGivesTheKeyThatTheStandardSays) {
  auto seed =
      KJ_ASSERT_NONNULL(unhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
  EXPECT_EQ(std::string(hex(bytesOf(SigningKey::fromSeed(seed).publicKey())).cStr()),
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
}

TEST_F(KeyTest, aSignatureHoldsForItsLabelBodyAndKeyOnly) {
  auto key = keyNumber(1);
  auto body = "what was said"_kj.asBytes();
  auto signature = key.sign(LABEL, body);
  EXPECT_TRUE(verify(key.publicKey(), LABEL, body, signature));
  EXPECT_FALSE(verify(key.publicKey(), "praefectus/test/v2", body, signature));
  EXPECT_FALSE(verify(key.publicKey(), LABEL, "what was sung"_kj.asBytes(), signature));
  EXPECT_FALSE(verify(keyNumber(2).publicKey(), LABEL, body, signature));
  EXPECT_FALSE(verify(key.publicKey(), LABEL, nullptr, signature));
}

// Made with OpenSSL from the same seed, over "praefectus/test/v1", a NUL and the body.
TEST_F(KeyTest, whatIsSignedIsTheLabelANulAndTheBody) {
  auto signature = keyNumber(1).sign(LABEL, "what was said"_kj.asBytes());
  EXPECT_EQ(std::string(hex(bytesOf(signature)).cStr()),
            "5360f66a5fa71a83c402c5ec0b89820ce374c4998c9861ae586238faf0080ba2"
            "59218b6686e82c21a4af8403bbe8c767fbd21188648b4ead5e9822fbd73b520e");
}

TEST_F(KeyTest, theBorderBetweenLabelAndBodyIsSigned) {
  auto key = keyNumber(1);
  auto signature = key.sign("ab", "c"_kj.asBytes());
  EXPECT_FALSE(verify(key.publicKey(), "a", "bc"_kj.asBytes(), signature));
  EXPECT_FALSE(verify(key.publicKey(), "abc", nullptr, signature));
}

TEST_F(KeyTest, everyBitOfASignatureMatters) {
  auto key = keyNumber(1);
  auto body = "what was said"_kj.asBytes();
  auto signature = key.sign(LABEL, body);
  for (size_t bit = 0; bit < 8 * signature.size(); ++bit) {
    auto other = signature;
    other[bit / 8] = static_cast<kj::byte>(other[bit / 8] ^ (1u << (bit % 8)));
    EXPECT_FALSE(verify(key.publicKey(), LABEL, body, other)) << bit;
  }
}

// With S replaced by S + L the equation still holds; a strict check refuses it all the same.
TEST_F(KeyTest, aSecondSpellingOfASignatureIsRefused) {
  constexpr kj::byte L[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                              0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
                              0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};
  auto key = keyNumber(1);
  auto body = "what was said"_kj.asBytes();
  auto signature = key.sign(LABEL, body);
  unsigned carry = 0;
  for (size_t i = 0; i < 32; ++i) {
    carry += static_cast<unsigned>(signature[32 + i]) + L[i];
    signature[32 + i] = static_cast<kj::byte>(carry);
    carry >>= 8;
  }
  EXPECT_FALSE(verify(key.publicKey(), LABEL, body, signature));
}

// Under a key of small order one signature would hold for very many bodies.
TEST_F(KeyTest, aKeyOfSmallOrderVerifiesNothing) {
  PublicKey neutral{1};
  Signature everything{};
  everything[0] = 1;
  EXPECT_FALSE(verify(neutral, LABEL, "anything"_kj.asBytes(), everything));
  EXPECT_FALSE(verify(PublicKey{}, LABEL, "anything"_kj.asBytes(), Signature{}));
}

TEST_F(KeyTest, aKeyIdIsTheBeginningOfTheKeysDigest) {
  auto pub = keyNumber(1).publicKey();
  auto digest = hex(bytesOf(digestOf(bytesOf(pub))));
  EXPECT_EQ(std::string(keyIdOf(pub).cStr()), std::string(digest.cStr()).substr(0, 16));
}

TEST_F(KeyTest, generatedKeysDiffer) {
  EXPECT_NE(SigningKey::generate().publicKey(), SigningKey::generate().publicKey());
}

TEST_F(KeyTest, aKeyMovesWhole) {
  auto key = keyNumber(1);
  auto pub = key.publicKey();
  auto moved = kj::mv(key);
  EXPECT_TRUE(verify(pub, LABEL, nullptr, moved.sign(LABEL, nullptr)));
  EXPECT_ANY_THROW(key.sign(LABEL, nullptr));
  moved = keyNumber(2);
  EXPECT_TRUE(verify(keyNumber(2).publicKey(), LABEL, nullptr, moved.sign(LABEL, nullptr)));
}

TEST_F(KeyTest, aSavedKeyLoadsAndIsPrivate) {
  umask(0);
  SigningKey::generate().save((folder + "/other").c_str());
  umask(022);
  EXPECT_EQ(modeOf(folder + "/other"), 0600u);

  auto key = keyNumber(9);
  key.save(path.c_str());
  auto loaded = SigningKey::load(path.c_str());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->publicKey(), key.publicKey());
  EXPECT_EQ(modeOf(path), 0600u);
}

TEST_F(KeyTest, aStrictUmaskDoesNotMakeAKeyUnusable) {
  auto before = umask(0777);
  keyNumber(9).save(path.c_str());
  umask(before);
  EXPECT_EQ(load(), "ok");
}

TEST_F(KeyTest, savingNeverReplacesAnything) {
  put("something of value");
  EXPECT_ANY_THROW(keyNumber(9).save(path.c_str()));
  EXPECT_EQ(contents(path), "something of value");
  std::filesystem::create_symlink(folder + "/elsewhere", folder + "/link");
  EXPECT_ANY_THROW(keyNumber(9).save((folder + "/link").c_str()));
  EXPECT_FALSE(std::filesystem::exists(folder + "/elsewhere"));
}

TEST_F(KeyTest, aKeyThatOthersCouldReadOrChangeIsRefused) {
  keyNumber(9).save(path.c_str());
  for (mode_t mode : {0644, 0640, 0620, 0602, 0604, 0601, 0700, 0400, 04600}) {
    KJ_SYSCALL(chmod(path.c_str(), mode));
    EXPECT_EQ(load(), "ledger_foreign") << std::oct << mode;
  }
  KJ_SYSCALL(chmod(path.c_str(), 0600));
  EXPECT_EQ(load(), "ok");
}

TEST_F(KeyTest, aKeyOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  keyNumber(9).save(path.c_str());
  KJ_SYSCALL(chown(path.c_str(), 65534, 65534));
  EXPECT_EQ(load(), "ledger_foreign");
}

TEST_F(KeyTest, aLinkAFolderAPipeAndNothingAreNoKeys) {
  auto real = folder + "/real";
  keyNumber(9).save(real.c_str());
  std::filesystem::create_symlink(real, path);
  EXPECT_EQ(load(), "ledger_foreign");
  std::filesystem::remove(path);
  EXPECT_EQ(load(), "ledger_foreign");
  std::filesystem::create_directory(path);
  KJ_SYSCALL(chmod(path.c_str(), 0600));
  EXPECT_EQ(load(), "ledger_foreign");
  std::filesystem::remove(path);
  KJ_SYSCALL(mkfifo(path.c_str(), 0600));
  EXPECT_EQ(load(), "ledger_foreign");
}

TEST_F(KeyTest, aKeyFileIsExactlyOneLine) {
  keyNumber(0xab).save(path.c_str());
  auto good = contents(path);
  EXPECT_EQ(
      good, "praefectus-key-v1 " + [] {
        std::string text;
        for (int i = 0; i < 32; ++i) text += "ab";
        return text;
      }() + "\n");

  auto upper = good;
  for (auto& c : upper) c = c == 'a' ? 'A' : c;
  auto spaced = good;
  spaced[30] = ' ';
  auto newer = good;
  newer[16] = '2';
  for (auto& bad : {std::string(), good.substr(0, good.size() - 1), good + "\n", good + "x",
                    " " + good, upper, spaced, newer, good.substr(0, 40) + "\n",
                    good.substr(0, good.size() - 1) + std::string(1, 0)}) {
    put(bad);
    EXPECT_EQ(load(), "ledger_foreign") << bad;
  }
  put(good);
  EXPECT_EQ(load(), "ok");
}

TEST_F(KeyTest, anEmptyRingDeniesEverything) {
  auto envelope = signedAs(LABEL, issuerKey(), "host", "body"_kj.asBytes());
  for (auto purpose : {Purpose::ISSUER, Purpose::PUBLISHER, Purpose::RECEIPT}) {
    EXPECT_EQ(outcome(KeyRing().check(purpose, LABEL, envelope)), "policy_denied");
  }
}

TEST_F(KeyTest, aKeyServesItsPurposeOnly) {
  auto ring = sampleRing();
  auto envelope = signedAs(LABEL, issuerKey(), "host", "body"_kj.asBytes());
  EXPECT_EQ(outcome(ring.check(Purpose::ISSUER, LABEL, envelope)), "ok");
  EXPECT_EQ(outcome(ring.check(Purpose::PUBLISHER, LABEL, envelope)), "policy_denied");
  EXPECT_EQ(outcome(ring.check(Purpose::RECEIPT, LABEL, envelope)), "policy_denied");
  EXPECT_EQ(outcome(ring.check(Purpose::ISSUER, "praefectus/test/v2", envelope)), "policy_denied");
}

TEST_F(KeyTest, theNamesOfAKeyMustBeThePinnedOnes) {
  auto ring = sampleRing();
  auto good = signedAs(LABEL, issuerKey(), "host", "body"_kj.asBytes());
  auto otherIssuer = good.clone(), otherKeyId = good.clone();
  otherIssuer.issuer = kj::str("hos");
  otherKeyId.keyId = kj::str("default");
  EXPECT_EQ(outcome(ring.check(Purpose::ISSUER, LABEL, otherIssuer)), "policy_denied");
  EXPECT_EQ(outcome(ring.check(Purpose::ISSUER, LABEL, otherKeyId)), "policy_denied");
}

TEST_F(KeyTest, aRingHoldsEachNameOnceAndEachKeyForOnePurpose) {
  auto one = keyNumber(11).publicKey(), other = keyNumber(12).publicKey();
  KeyRing ring;
  ring.add(Purpose::ISSUER, "host", "k1", one);
  EXPECT_ANY_THROW(ring.add(Purpose::ISSUER, "host", "k1", other));
  EXPECT_ANY_THROW(ring.add(Purpose::PUBLISHER, "publisher", "k1", one));
  EXPECT_ANY_THROW(ring.add(Purpose::ISSUER, "", "k2", other));
  EXPECT_ANY_THROW(ring.add(Purpose::ISSUER, "ho st", "k2", other));
  EXPECT_ANY_THROW(ring.add(Purpose::ISSUER, "host", "k/2", other));
  EXPECT_EQ(ring.entries().size(), 1u);
  // The same name for another purpose, and a second key of an issuer, are nothing strange.
  ring.add(Purpose::PUBLISHER, "host", "k1", other);
  ring.add(Purpose::ISSUER, "host", "k2", keyNumber(13).publicKey());
  EXPECT_EQ(ring.entries().size(), 3u);
}

}  // namespace
}  // namespace praefectus::attest
