// praefectus-sign: the publisher's part of a build. Makes the key, writes its public half as a
// header, and signs manifests. Nothing else links it, and no product reads what it reads.
#include "attest/image.h"
#include "ipc/bounds.h"

#include <kj/main.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>

namespace praefectus::attest {
namespace {

constexpr kj::StringPtr PUBLISHER = "publisher"_kj;

kj::Maybe<Role> roleNamed(kj::StringPtr name) {
  for (auto role : {Role::DESKTOP, Role::FILES, Role::PRESENTER}) {
    if (nameOf(role) == name) return role;
  }
  return nullptr;
}

kj::Array<kj::byte> contentsOf(kj::StringPtr path) {
  int fd;
  KJ_SYSCALL(fd = open(path.cStr(), O_RDONLY | O_CLOEXEC), path);
  return kj::FdInputStream(kj::AutoCloseFd(fd)).readAllBytes(bounds::IMAGE_BYTES + 1);
}

// Whole or not at all, and untouched when it holds this already, so that nothing is rebuilt for it.
void place(kj::StringPtr path, Bytes bytes) {
  if (access(path.cStr(), R_OK) == 0 && contentsOf(path) == bytes) return;
  auto beside = kj::str(path, ".new");
  int fd;
  KJ_SYSCALL(fd = open(beside.cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), beside);
  kj::FdOutputStream(kj::AutoCloseFd(fd)).write(bytes.begin(), bytes.size());
  KJ_SYSCALL(rename(beside.cStr(), path.cStr()), path);
}

class Sign {
 public:
  explicit Sign(kj::ProcessContext& context) : context(context) {}

  kj::MainFunc getMain() {
    return kj::MainBuilder(context, "praefectus-sign",
                           "Makes and uses the publisher key of a build.")
        .addSubCommand("create", KJ_BIND_METHOD(*this, createMain), "make a key file when absent")
        .addSubCommand("header", KJ_BIND_METHOD(*this, headerMain), "write the public half as C++")
        .addSubCommand("manifest", KJ_BIND_METHOD(*this, manifestMain), "sign FILE.manifest")
        .build();
  }

 private:
  kj::MainFunc createMain() {
    return kj::MainBuilder(context, "praefectus-sign", "Makes KEY (0600) when it is not there.")
        .expectArg("KEY", KJ_BIND_METHOD(*this, setKeyPath))
        .callAfterParsing(KJ_BIND_METHOD(*this, create))
        .build();
  }

  kj::MainFunc headerMain() {
    return kj::MainBuilder(context, "praefectus-sign", "Writes the public half of KEY to HEADER.")
        .expectArg("KEY", KJ_BIND_METHOD(*this, setKeyPath))
        .expectArg("HEADER", KJ_BIND_METHOD(*this, setOutput))
        .callAfterParsing(KJ_BIND_METHOD(*this, writeHeader))
        .build();
  }

  kj::MainFunc manifestMain() {
    return kj::MainBuilder(context, "praefectus-sign", "Signs what IMAGE is, into IMAGE.manifest.")
        .expectArg("KEY", KJ_BIND_METHOD(*this, setKeyPath))
        .expectArg("IMAGE", KJ_BIND_METHOD(*this, setOutput))
        .expectArg("NAME", KJ_BIND_METHOD(*this, setName))
        .expectArg("RELEASE", KJ_BIND_METHOD(*this, setRelease))
        .expectArg("ROLE", KJ_BIND_METHOD(*this, setRole))
        .callAfterParsing(KJ_BIND_METHOD(*this, writeManifest))
        .build();
  }

  kj::MainBuilder::Validity setKeyPath(kj::StringPtr text) { return keyPath = text, true; }
  kj::MainBuilder::Validity setOutput(kj::StringPtr text) { return output = text, true; }
  kj::MainBuilder::Validity setName(kj::StringPtr text) { return setIdentifier(name, text); }
  kj::MainBuilder::Validity setRelease(kj::StringPtr text) { return setIdentifier(release, text); }
  kj::MainBuilder::Validity setRole(kj::StringPtr text) {
    KJ_IF_MAYBE (known, roleNamed(text)) {
      role = *known;
      return true;
    }
    return "no such role";
  }
  static kj::MainBuilder::Validity setIdentifier(kj::StringPtr& where, kj::StringPtr text) {
    if (!isIdentifier(text)) return "not an identifier";
    where = text;
    return true;
  }

  kj::MainBuilder::Validity create() {
    if (access(keyPath.cStr(), F_OK) == 0) return true;
    KJ_IF_MAYBE (slash, keyPath.findLast('/')) {
      auto folder = kj::heapString(keyPath.slice(0, *slash));
      int made = mkdir(folder.cStr(), 0700);
      KJ_ASSERT(made == 0 || errno == EEXIST, folder, errno);
    }
    SigningKey::generate().save(keyPath);
    return true;
  }

  kj::MainBuilder::Validity writeHeader() {
    auto key = SigningKey::load(keyPath);
    if (!key.ok()) return kj::str(key.refusal().detail);
    auto numbers = kj::strArray(
        KJ_MAP(byte, key->publicKey()) { return kj::str(static_cast<unsigned>(byte)); }, ", ");
    auto text = kj::str(
        "// Made by praefectus-sign: the public half of this build's publisher key.\n#pragma "
        "once\n\n"
        "#include <kj/string.h>\n\nnamespace praefectus::attest {\n\n",
        "constexpr kj::byte PUBLISHER_KEY[32] = {", numbers, "};\n",
        "constexpr kj::StringPtr PUBLISHER_ISSUER = \"", PUBLISHER, "\"_kj;\n",
        "constexpr kj::StringPtr PUBLISHER_KEY_ID = \"", keyIdOf(key->publicKey()), "\"_kj;\n\n",
        "}  // namespace praefectus::attest\n");
    place(output, text.asBytes());
    return true;
  }

  kj::MainBuilder::Validity writeManifest() {
    auto key = SigningKey::load(keyPath);
    if (!key.ok()) return kj::str(key.refusal().detail);
    auto image = contentsOf(output);
    Manifest manifest;
    manifest.issuer = kj::str(PUBLISHER);
    manifest.keyId = keyIdOf(key->publicKey());
    manifest.name = kj::str(name);
    manifest.release = kj::str(release);
    manifest.role = role;
    manifest.platform = kj::str(platform());
    manifest.protocol = wire::PROTOCOL_VERSION;
    manifest.digest = digestOf(image);
    manifest.size = image.size();
    place(kj::str(output, ".manifest"), envelopeBytes(seal(manifest, *key)));
    return true;
  }

  kj::ProcessContext& context;
  kj::StringPtr keyPath, output, name, release;
  Role role{};
};

}  // namespace
}  // namespace praefectus::attest

int main(int argc, char* argv[]) {
  praefectus::attest::initialize();
  kj::TopLevelProcessContext context(argv[0]);
  praefectus::attest::Sign sign(context);
  return kj::runMainAndExit(context, sign.getMain(), argc, argv);
}
