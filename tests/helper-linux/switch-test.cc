// org.a11y.Status.IsEnabled: never set without the setting, and put back with it.
#include "tests/helper-linux/bus-service.h"
#include "tests/helper-linux/desk.h"

#include <gtest/gtest.h>

#include <thread>

#include <signal.h>

namespace praefectus::tests {
namespace {

using Values = std::vector<bool>;

kj::Array<kj::String> withSetting(const PrivateDesktop& desktop) {
  kj::Vector<kj::String> out;
  for (auto& each : desktop.environment()) out.add(kj::str(each));
  out.add(kj::str("PRAEFECTUS_ACCESSIBILITY=on"));
  return out.releaseAsArray();
}

TEST(Switch, nothingTouchesItWithoutTheSetting) {
  Desk desk;
  SwitchWatch watch(desk.desktop);
  watch.set(false);
  ASSERT_EQ(watch.values(), (Values{true, false}));
  ASSERT_TRUE(desk.helper.list().ok());
  auto seen = desk.observe();
  ASSERT_EQ(nameOf(desk.helper.invoke(seen, seen.find("push button", "Record"), "click").refusal),
            "");
  EXPECT_EQ(desk.recorded("record").size(), 1u);
  EXPECT_EQ(desk.helper.leave(), 0);
  EXPECT_EQ(watch.values(), (Values{true, false}));
}

TEST(Switch, withTheSettingItIsOnWhileTheHelperRunsAndThenAsBefore) {
  PrivateDesktop desktop;
  SwitchWatch watch(desktop);
  watch.set(false);
  HelperClient helper(withSetting(desktop));
  helper.hello();
  EXPECT_EQ(watch.values(), (Values{true, false, true}));
  EXPECT_EQ(helper.leave(), 0);
  EXPECT_EQ(watch.values(), (Values{true, false, true, false})) << "before the helper has ended";
}

TEST(Switch, whatWasOnStaysOn) {
  PrivateDesktop desktop;
  SwitchWatch watch(desktop);
  HelperClient helper(withSetting(desktop));
  helper.hello();
  EXPECT_EQ(helper.leave(), 0);
  EXPECT_EQ(watch.values(), (Values{true}));
}

TEST(Switch, itIsPutBackHoweverTheHelperEnds) {
  for (int how : {SIGTERM, SIGKILL, SIGSEGV}) {
    PrivateDesktop desktop;
    SwitchWatch watch(desktop);
    watch.set(false);
    HelperClient helper(withSetting(desktop));
    helper.hello();
    ASSERT_EQ(watch.values().size(), 3u);
    ASSERT_EQ(kill(helper.pid(), how), 0);
    EXPECT_TRUE(eventually([&]() {
      return watch.values() == Values{true, false, true, false};
    })) << how;
  }
}

TEST(Switch, onlyTheHelperThatTurnedItPutsItBack) {
  PrivateDesktop desktop;
  SwitchWatch watch(desktop);
  watch.set(false);
  HelperClient first(withSetting(desktop));
  first.hello();
  std::thread([&]() {
    HelperClient second(withSetting(desktop));
    second.hello();
    EXPECT_EQ(second.leave(), 0);
  }).join();
  EXPECT_EQ(watch.values(), (Values{true, false, true}));
  EXPECT_EQ(first.leave(), 0);
  EXPECT_EQ(watch.values(), (Values{true, false, true, false}));
}

TEST(Switch, withoutABusTheHelperStartsAllTheSame) {
  kj::String environment[] = {kj::str("PRAEFECTUS_ACCESSIBILITY=on")};
  HelperClient helper(environment);
  for (auto& each : helper.hello()) EXPECT_FALSE(each.available);
  EXPECT_EQ(helper.leave(), 0);
}

}  // namespace
}  // namespace praefectus::tests
