#include "attest/image.h"

#include "ipc/bounds.h"
#include "tests/attest/samples.h"
#include "tests/ipc/refusals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace praefectus::attest {
namespace {

using std::string;

Bytes bytesOf(const string& text) { return kj::StringPtr(text.data(), text.size()).asBytes(); }

string contentsOf(const Image& image) {
  string out(image.size(), '\0');
  KJ_ASSERT(pread(image.fd(), out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()));
  return out;
}

class ImageTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialize(); }
  ImageTest() {
    char pattern[] = "/tmp/praefectus-image-XXXXXX";
    KJ_ASSERT(mkdtemp(pattern) != nullptr);
    folder = pattern;
    path = folder + "/helper";
    put(path, good);
    sign(sampleManifest(bytesOf(good)));
  }
  ~ImageTest() override { std::filesystem::remove_all(folder); }

  static void put(const string& where, const string& what) {
    std::ofstream(where, std::ios::binary | std::ios::trunc) << what;
  }
  void sign(const Manifest& manifest) { place(seal(manifest, publisherKey())); }
  void place(const Envelope& envelope) { putManifest(envelopeBytes(envelope)); }
  void putManifest(Bytes bytes) {
    put(path + ".manifest", string(bytes.asChars().begin(), bytes.size()));
  }

  Result<kj::Own<Image>> attest(Role role = Role::DESKTOP) {
    return Image::attest(sampleRing(), role, path.c_str());
  }
  string outcomeNow() { return outcome(attest()); }

  // More than one piece of the copy, and no multiple of it.
  const string good =
      "\x7f"
      "ELF" +
      string(700'001, 'g');
  string folder, path;
};

TEST_F(ImageTest, theFileThatWasSignedIsAttested) {
  auto image = attest();
  ASSERT_TRUE(image.ok()) << image.refusal().detail.cStr();
  EXPECT_EQ((*image)->digest(), digestOf(bytesOf(good)));
  EXPECT_EQ((*image)->size(), good.size());
  EXPECT_EQ((*image)->manifest().name, "praefectus-desktop");
  EXPECT_EQ((*image)->manifest().role, Role::DESKTOP);
  EXPECT_EQ(contentsOf(**image), good);
}

TEST_F(ImageTest, theCopyCanNeverChangeAgain) {
  auto image = attest();
  ASSERT_TRUE(image.ok());
  int fd = (*image)->fd();
  EXPECT_LT(pwrite(fd, "x", 1, 0), 0);
  EXPECT_LT(pwrite(fd, "x", 1, static_cast<off_t>(good.size())), 0);
  EXPECT_LT(ftruncate(fd, 1), 0);
  EXPECT_LT(ftruncate(fd, static_cast<off_t>(good.size()) + 1), 0);
  EXPECT_LT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  // Nor through a second opening of the same memory.
  int again = open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC);
  if (again >= 0) {
    EXPECT_LT(pwrite(again, "x", 1, 0), 0);
    close(again);
  }
  EXPECT_EQ(contentsOf(**image), good);
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ImageTest, oneChangedByteAnywhereIsAMismatch) {
  for (size_t at : {size_t{0}, size_t{4}, good.size() / 2, good.size() - 1}) {
    auto bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    put(path, bad);
    EXPECT_EQ(outcomeNow(), "service_mismatch") << at;
  }
  put(path, good);
  EXPECT_EQ(outcomeNow(), "ok");
}

TEST_F(ImageTest, aShorterOrLongerFileIsAMismatch) {
  put(path, good.substr(0, good.size() - 1));
  EXPECT_EQ(outcomeNow(), "service_mismatch");
  put(path, good + "g");
  EXPECT_EQ(outcomeNow(), "service_mismatch");
}

TEST_F(ImageTest, theDigestComesFromTheManifestAndNotFromTheFile) {
  auto manifest = sampleManifest(bytesOf("another program"));
  manifest.size = good.size();
  sign(manifest);
  EXPECT_EQ(outcomeNow(), "service_mismatch");
}

TEST_F(ImageTest, everyStatementOfTheManifestIsCompared) {
  using Change = void (*)(Manifest&);
  std::tuple<const char*, Change, const char*> rows[] = {
      {"as it is", [](Manifest&) {}, "ok"},
      {"role", [](Manifest& m) { m.role = Role::FILES; }, "service_mismatch"},
      {"platform", [](Manifest& m) { m.platform = kj::str("linux-pdp11"); }, "service_mismatch"},
      {"protocol", [](Manifest& m) { m.protocol = 2; }, "service_mismatch"},
      {"digest", [](Manifest& m) { m.digest[0] ^= 1; }, "service_mismatch"},
      {"size", [](Manifest& m) { --m.size; }, "service_mismatch"},
      {"no size", [](Manifest& m) { m.size = 0; }, "service_mismatch"},
      {"name", [](Manifest& m) { m.name = kj::str("a name"); }, "service_mismatch"},
      {"release", [](Manifest& m) { m.release = kj::str(""); }, "service_mismatch"},
  };
  for (auto& [name, change, expected] : rows) {
    auto manifest = sampleManifest(bytesOf(good));
    change(manifest);
    sign(manifest);
    EXPECT_EQ(outcomeNow(), expected) << name;
  }
}

TEST_F(ImageTest, anImageServesItsRoleOnly) {
  EXPECT_EQ(outcome(attest(Role::DESKTOP)), "ok");
  EXPECT_EQ(outcome(attest(Role::FILES)), "service_mismatch");
  EXPECT_EQ(outcome(attest(Role::PRESENTER)), "service_mismatch");
}

TEST_F(ImageTest, anyChangedBitOfTheManifestIsRefused) {
  auto file = envelopeBytes(seal(sampleManifest(bytesOf(good)), publisherKey()));
  for (size_t at = 0; at < file.size(); ++at) {
    auto bit = static_cast<kj::byte>(1u << (at % 8));
    file[at] ^= bit;
    putManifest(file);
    EXPECT_EQ(outcomeNow(), "service_mismatch") << at;
    file[at] ^= bit;
  }
}

TEST_F(ImageTest, onlyAPinnedPublisherCounts) {
  auto manifest = sampleManifest(bytesOf(good));
  place(seal(manifest, keyNumber(77)));
  EXPECT_EQ(outcomeNow(), "service_mismatch");
  // A pinned key, but for another purpose; and the right key over another kind of body.
  manifest.issuer = kj::str("host");
  manifest.keyId = keyIdOf(issuerKey().publicKey());
  place(seal(manifest, issuerKey()));
  EXPECT_EQ(outcomeNow(), "service_mismatch");
  auto body = seal(sampleManifest(bytesOf(good)), publisherKey()).body;
  place(signedAs(GRANT_LABEL, publisherKey(), "publisher", body));
  EXPECT_EQ(outcomeNow(), "service_mismatch");
  place(signedAs(MANIFEST_LABEL, publisherKey(), "publisher", body));
  EXPECT_EQ(outcomeNow(), "ok");
  EXPECT_EQ(outcome(Image::attest(KeyRing(), Role::DESKTOP, path.c_str())), "service_mismatch");
}

TEST_F(ImageTest, whatIsMissingIsUnavailable) {
  std::filesystem::remove(path + ".manifest");
  EXPECT_EQ(outcomeNow(), "service_unavailable");
  sign(sampleManifest(bytesOf(good)));
  std::filesystem::remove(path);
  EXPECT_EQ(outcomeNow(), "service_unavailable");
}

TEST_F(ImageTest, aManifestThatIsNoneIsAMismatch) {
  for (auto& bytes : {string("{}"), string(64, '\0'), string(4096, 'x')}) {
    put(path + ".manifest", bytes);
    EXPECT_EQ(outcomeNow(), "service_mismatch");
  }
  for (auto& bytes : {string(), string(1u << 20, '\0')}) {
    put(path + ".manifest", bytes);
    EXPECT_EQ(outcomeNow(), "service_unavailable");
  }
}

TEST_F(ImageTest, linksFoldersAndPipesAreNotFollowed) {
  for (auto& name : {path, path + ".manifest"}) {
    std::filesystem::rename(name, name + ".real");
    std::filesystem::create_symlink(name + ".real", name);
    EXPECT_EQ(outcomeNow(), "service_unavailable") << name;
    std::filesystem::remove(name);
    std::filesystem::create_directory(name);
    EXPECT_EQ(outcomeNow(), "service_unavailable") << name;
    std::filesystem::remove(name);
    KJ_SYSCALL(mkfifo(name.c_str(), 0600));
    EXPECT_EQ(outcomeNow(), "service_unavailable") << name;
    std::filesystem::remove(name);
    std::filesystem::rename(name + ".real", name);
  }
  EXPECT_EQ(outcomeNow(), "ok");
}

TEST_F(ImageTest, aFileBeyondTheBoundIsNotEvenCopied) {
  put(path, "");
  EXPECT_EQ(outcomeNow(), "service_unavailable");
  // Sparse: the length alone decides.
  std::filesystem::resize_file(path, bounds::IMAGE_BYTES + 1);
  EXPECT_EQ(outcomeNow(), "service_unavailable");
}

TEST_F(ImageTest, descriptorsAreGivenBack) {
  auto count = [] {
    size_t n = 0;
    for (auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      (void)entry;
      ++n;
    }
    return n;
  };
  size_t before = count();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(outcomeNow(), "ok");
  put(path, good + "g");
  for (int i = 0; i < 50; ++i) EXPECT_EQ(outcomeNow(), "service_mismatch");
  EXPECT_EQ(count(), before);
}

// The file is swapped, overwritten and cut while it is attested, over and over. Whatever comes out
// of that as an image holds the signed bytes.
TEST_F(ImageTest, whatIsAttestedIsWhatWasSignedHoweverTheFileIsSwapped) {
  const string evil =
      "\x7f"
      "ELF" +
      string(700'001, 'e');
  std::atomic<bool> stop = false;
  std::atomic<int> swaps = 0;
  std::thread swapper([&] {
    for (int i = 0; !stop; ++i) {
      switch (i % 4) {
        case 0: {  // Another file under the name.
          put(path + ".new", i % 8 == 0 ? evil : good);
          std::filesystem::rename(path + ".new", path);
          break;
        }
        case 1:  // The same file, other bytes.
          put(path, evil);
          break;
        case 2:  // The very bytes, but slowly and in place.
          put(path, good);
          break;
        case 3: {  // Part of it.
          std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
          file.seekp(350'000);
          file << string(1000, 'e');
          break;
        }
      }
      ++swaps;
    }
  });
  KJ_DEFER(stop = true; swapper.join());
  for (int round = 0; round < 400; ++round) {
    auto image = attest();
    if (!image.ok()) continue;
    EXPECT_EQ((*image)->manifest().digest, digestOf(bytesOf(good)));
    EXPECT_EQ(digestOf(bytesOf(contentsOf(**image))), (*image)->manifest().digest);
  }
  EXPECT_GT(swaps, 0);
}

}  // namespace
}  // namespace praefectus::attest
