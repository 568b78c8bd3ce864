// The setting that lets helpers switch accessibility on, from the host's options to the desktop.
#include "tests/scenario/rig.h"

#include <gtest/gtest.h>

namespace praefectus::tests {
namespace {

// What the switch says to a call of its properties.
std::string status(Rig& rig, const std::string& member, const std::vector<std::string>& value) {
  std::vector<std::string> environment;
  for (auto& entry : rig.desktop.environment()) environment.push_back(entry.cStr());
  std::vector<std::string> call = {"/usr/bin/dbus-send",
                                   "--print-reply=literal",
                                   "--dest=org.a11y.Bus",
                                   "/org/a11y/bus",
                                   "org.freedesktop.DBus.Properties." + member,
                                   "string:org.a11y.Status",
                                   "string:IsEnabled"};
  call.insert(call.end(), value.begin(), value.end());
  auto ran = run(call, environment);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  return ran.out;
}

bool isEnabled(Rig& rig) {
  return status(rig, "Get", {}).find("boolean true") != std::string::npos;
}

void disable(Rig& rig) {
  status(rig, "Set", {"variant:boolean:false"});
  ASSERT_FALSE(isEnabled(rig));
}

TEST(Accessibility, isLeftAloneUnlessTheHostAsksForIt) {
  Rig rig;
  disable(rig);
  rig.stop();
  rig.start();
  rig.need(rig.session->list());
  EXPECT_FALSE(isEnabled(rig));
}

// The supervisor ends its helpers without ceremony; it is put back all the same.
TEST(Accessibility, isOnWhileTheHelpersRunWhenTheHostAsksForIt) {
  Rig rig;
  rig.stop();
  disable(rig);
  auto options = rig.options();
  options.enableAccessibility = true;
  rig.host = rig.need(client::Host::start(rig.io, options, rig.authority));
  rig.session = rig.openSession("session-1");
  rig.need(rig.session->list());
  EXPECT_TRUE(isEnabled(rig));
  rig.stop();
  EXPECT_TRUE(eventually([&] { return !isEnabled(rig); }));
}

}  // namespace
}  // namespace praefectus::tests
