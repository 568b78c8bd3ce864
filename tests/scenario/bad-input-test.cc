// What can be wrong around a supervisor: each has a named answer, dispatches nothing, and hangs nobody.
#include "tests/scenario/rig.h"

#include <filesystem>
#include <fstream>

#include <sys/stat.h>

namespace praefectus::tests {
namespace {

namespace fs = std::filesystem;

// Supervisor, helper and manifest in a folder of the test's own, to be damaged at will.
struct Installed {
  Installed() {
    for (const char* file : {"praefectus-supervisor", "praefectus-desktop-linux",
                             "praefectus-desktop-linux.manifest"}) {
      fs::copy_file(std::string(PRAEFECTUS_BIN "/") + file, folder.file(file));
    }
  }
  std::string supervisor() const { return folder.file("praefectus-supervisor"); }
  std::string helper() const { return folder.file("praefectus-desktop-linux"); }
  std::string manifest() const { return helper() + ".manifest"; }
  Folder folder;
};

// A host without a desktop of its own.
struct Bare {
  explicit Bare(std::string supervisorPath = PRAEFECTUS_BIN "/praefectus-supervisor")
      : supervisor(kj::mv(supervisorPath)),
        io(kj::setupAsyncIo()),
        authority("test-host", (attest::initialize(), attest::SigningKey::generate())),
        ledger(folder.file("ledger")) {}

  client::Options options(kj::ArrayPtr<const kj::String> environment = nullptr) {
    client::Options out;
    out.ledger = kj::StringPtr(ledger.c_str(), ledger.size());
    out.supervisor = kj::StringPtr(supervisor.c_str(), supervisor.size());
    out.environment = environment;
    return out;
  }
  std::string startRefusal() {
    auto host = client::Host::start(io, options(), authority).wait(io.waitScope);
    return host.ok() ? "started" : nameOf(host.refusal().code).cStr();
  }
  // The first capability's reason on this desktop.
  std::string whyNot(kj::ArrayPtr<const kj::String> environment) {
    auto host = client::Host::start(io, options(environment), authority).wait(io.waitScope);
    if (!host.ok()) return nameOf(host.refusal().code).cStr();
    auto session = (*host)->open("session-1", "turn-1").wait(io.waitScope);
    auto helper = (*session)->capabilities().wait(io.waitScope);
    if (!helper.ok()) return nameOf(helper.refusal().code).cStr();
    auto listed = (*session)->list().wait(io.waitScope);
    for (auto& capability : helper->capabilities) {
      if (capability.available) return std::string("available: ") + capability.name.cStr();
      if (listed.ok() || listed.refusal().code != capability.why) return "list disagrees";
    }
    return nameOf(helper->capabilities[0].why).cStr();
  }

  Folder folder;
  std::string supervisor;
  kj::AsyncIoContext io;
  client::Authority authority;
  std::string ledger;
};

TEST(BadInput, aSecondSupervisorOnOneLedgerIsRefused) {
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  auto first = client::Host::start(bare.io, bare.options(), bare.authority).wait(bare.io.waitScope);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(bare.startRefusal(), "ledger_busy");
  // The first one is none the worse for it.
  EXPECT_TRUE((*first)->status("nothing").wait(bare.io.waitScope).ok());
}

TEST(BadInput, aLedgerThatIsNotOneIsRefusedByName) {
  Bare bare;
  EXPECT_EQ(bare.startRefusal(), "ledger_foreign");  // Absent.
  fs::create_directory(bare.ledger);
  chmod(bare.ledger.c_str(), 0700);
  EXPECT_EQ(bare.startRefusal(), "ledger_foreign");  // Empty.
  std::ofstream(bare.ledger + "/ledger.db") << "this is not a database";
  EXPECT_EQ(bare.startRefusal(), "ledger_foreign");
}

TEST(BadInput, aLedgerThatOthersCouldReadIsRefused) {
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  chmod(bare.ledger.c_str(), 0755);
  EXPECT_EQ(bare.startRefusal(), "ledger_foreign");
  chmod(bare.ledger.c_str(), 0700);
  EXPECT_EQ(bare.startRefusal(), "started");
}

TEST(BadInput, anExistingFolderIsNotMadeALedger) {
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  auto again = client::createLedger(bare.options(), bare.authority);
  ASSERT_FALSE(again.ok());
  EXPECT_STREQ(nameOf(again.refusal().code).cStr(), "ledger_foreign");
}

TEST(BadInput, aMissingDisplayIsSaid) {
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  kj::String none[] = {kj::str("LANG=C.UTF-8")};
  EXPECT_EQ(bare.whyNot(kj::arrayPtr(none, 1)), "no_display");
  kj::String dead[] = {kj::str("DISPLAY=:9999")};
  EXPECT_EQ(bare.whyNot(kj::arrayPtr(dead, 1)), "no_display");
}

TEST(BadInput, aMissingAccessibilityBusIsSaid) {
  PrivateDesktop::Options without;
  without.accessibility = false;
  PrivateDesktop desktop(without);
  Bare bare;
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  EXPECT_EQ(bare.whyNot(desktop.environment()), "no_accessibility_bus");
}

TEST(BadInput, aMissingSupervisorIsSaid) {
  Bare bare("/nonexistent/praefectus-supervisor");
  EXPECT_EQ(bare.startRefusal(), "service_unavailable");
}

struct Damage {
  const char* name;
  void (*harm)(const Installed&);
  const char* code;
};

class Provenance : public testing::TestWithParam<Damage> {};

TEST_P(Provenance, aHelperThatIsNotThePublishedOneNeverRuns) {
  Installed installed;
  GetParam().harm(installed);
  Bare bare(installed.supervisor());
  ASSERT_TRUE(client::createLedger(bare.options(), bare.authority).ok());
  kj::String none[] = {kj::str("LANG=C.UTF-8")};
  EXPECT_EQ(bare.whyNot(kj::arrayPtr(none, 1)), GetParam().code);
}

void flip(const std::string& path, std::streamoff offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  int byte = file.get();
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 1));
}

INSTANTIATE_TEST_SUITE_P(
    Damage, Provenance,
    testing::Values(
        Damage{"oneByteOfTheHelper", [](const Installed& at) { flip(at.helper(), 200'000); },
               "service_mismatch"},
        Damage{"oneByteAppended",
               [](const Installed& at) { std::ofstream(at.helper(), std::ios::app) << "x"; },
               "service_mismatch"},
        Damage{"manifestEdited", [](const Installed& at) { flip(at.manifest(), 100); },
               "service_mismatch"},
        Damage{"manifestMissing", [](const Installed& at) { fs::remove(at.manifest()); },
               "service_unavailable"},
        Damage{"helperMissing", [](const Installed& at) { fs::remove(at.helper()); },
               "service_unavailable"},
        Damage{"anotherProgramInItsPlace",
               [](const Installed& at) {
                 fs::remove(at.helper());
                 fs::copy_file("/bin/true", at.helper());
               },
               "service_mismatch"},
        Damage{"symlinkInItsPlace",
               [](const Installed& at) {
                 fs::rename(at.helper(), at.helper() + ".real");
                 fs::create_symlink(at.helper() + ".real", at.helper());
               },
               "service_unavailable"}),
    [](auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace praefectus::tests
