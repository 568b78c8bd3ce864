// The shipped helper as a process: where it starts, what it says it can do, and when it ends.
#include "tests/helper-linux/desk.h"

#include <kj/debug.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include <signal.h>

namespace praefectus::tests {
namespace {

const Capability& named(const kj::Vector<Capability>& all, kj::StringPtr name) {
  for (auto& each : all) {
    if (each.name == name) return each;
  }
  KJ_FAIL_REQUIRE("no such capability", name);
}

kj::Array<kj::String> without(kj::ArrayPtr<const kj::String> environment, kj::StringPtr name) {
  kj::Vector<kj::String> out;
  auto prefix = kj::str(name, "=");
  for (auto& each : environment) {
    if (!each.startsWith(prefix)) out.add(kj::str(each));
  }
  return out.releaseAsArray();
}

// A reader of ELF would see no interpreter and no needed library: nothing but the hashed file runs.
TEST(HelperFile, isOneStaticFile) {
  std::ifstream file(PRAEFECTUS_BIN "/praefectus-desktop-linux", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ASSERT_GT(bytes.size(), 100'000u);
  EXPECT_EQ(bytes.find("/ld-linux-x86-64.so"), std::string::npos);
  FILE* said = popen("readelf -d '" PRAEFECTUS_BIN "/praefectus-desktop-linux'", "r");
  ASSERT_NE(said, nullptr);
  std::string dynamic;
  char part[4096];
  while (size_t size = fread(part, 1, sizeof(part), said)) dynamic.append(part, size);
  EXPECT_EQ(pclose(said), 0);
  EXPECT_NE(dynamic.find("PIE"), std::string::npos);
  EXPECT_EQ(dynamic.find("NEEDED"), std::string::npos);
}

TEST(Helper, offersEverythingOnAWholeDesktop) {
  PrivateDesktop desktop;
  HelperClient helper(desktop.environment());
  auto capabilities = helper.hello();
  std::vector<std::string> names;
  for (auto& each : capabilities) {
    names.push_back(each.name.cStr());
    EXPECT_TRUE(each.available) << each.name.cStr();
  }
  const std::vector<std::string> expected = {
      "list",        "observe",       "picture",         "screenshot",
      "zoom",        "invoke",        "set_value",       "proof_value",
      "proof_state", "proof_appears", "proof_disappears"};
  EXPECT_EQ(names, expected);
}

TEST(Helper, startsWithoutADisplayAndSaysSo) {
  PrivateDesktop desktop;
  HelperClient helper(without(desktop.environment(), "DISPLAY"));
  auto capabilities = helper.hello();
  for (auto& each : capabilities) {
    EXPECT_FALSE(each.available);
    EXPECT_EQ(each.why, RefusalCode::NO_DISPLAY);
  }
  EXPECT_EQ(helper.list().refusal().code, RefusalCode::NO_DISPLAY);
}

TEST(Helper, startsWithoutAnAccessibilityBusAndSaysSo) {
  PrivateDesktop::Options options;
  options.accessibility = false;
  PrivateDesktop desktop(options);
  HelperClient helper(without(desktop.environment(), "DBUS_SESSION_BUS_ADDRESS"));
  auto capabilities = helper.hello();
  EXPECT_EQ(named(capabilities, "list").why, RefusalCode::NO_ACCESSIBILITY_BUS);
  EXPECT_FALSE(named(capabilities, "invoke").available);
  EXPECT_EQ(helper.list().refusal().code, RefusalCode::NO_ACCESSIBILITY_BUS);
}

TEST(Helper, startsWithNothingAtAll) {
  HelperClient helper(nullptr);
  for (auto& each : helper.hello()) EXPECT_FALSE(each.available);
  EXPECT_EQ(helper.list().refusal().code, RefusalCode::NO_DISPLAY);
}

TEST(Helper, endsWhenItsPeerIsGone) {
  PrivateDesktop desktop;
  HelperClient helper(desktop.environment());
  helper.hello();
  EXPECT_EQ(helper.leave(), 0);
}

TEST(Helper, cannotBeDumpedOrGainRights) {
  PrivateDesktop desktop;
  HelperClient helper(desktop.environment());
  helper.hello();
  std::ifstream status("/proc/" + std::to_string(helper.pid()) + "/status");
  std::string text((std::istreambuf_iterator<char>(status)), {});
  EXPECT_NE(text.find("NoNewPrivs:\t1"), std::string::npos);
  std::ifstream limits("/proc/" + std::to_string(helper.pid()) + "/limits");
  std::string line, core;
  while (std::getline(limits, line)) {
    if (line.rfind("Max core file size", 0) == 0) core = line;
  }
  EXPECT_NE(core.find(" 0 "), std::string::npos);
}

// Reading must not switch anything on: with the bus's launcher not running, asking does not start
// it.
TEST(Helper, doesNotStartTheAccessibilityBus) {
  PrivateDesktop::Options options;
  options.accessibility = false;
  PrivateDesktop desktop(options);
  HelperClient helper(desktop.environment());
  EXPECT_EQ(named(helper.hello(), "list").why, RefusalCode::NO_ACCESSIBILITY_BUS);
  EXPECT_EQ(helper.list().refusal().code, RefusalCode::NO_ACCESSIBILITY_BUS);
}

}  // namespace
}  // namespace praefectus::tests
