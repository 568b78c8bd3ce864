// What a helper says that it offers, and what becomes of one that says it wrongly.
#include "supervisor/dispatch.h"

#include "tests/support/workbench.h"

#include <gtest/gtest.h>

namespace praefectus::test {
namespace {

kj::Own<HelperLink> started(Workbench& on) {
  auto link = on.wait(on.helpers().startDesktopHelper());
  KJ_REQUIRE(link.ok());
  return kj::mv(*link);
}

Action proving(Act act, Verification::Content proof) {
  Action action;
  action.act = kj::mv(act);
  action.verification.content = kj::mv(proof);
  return action;
}

TEST(Offers, areWhatTheHelloNamed) {
  Workbench on;
  auto link = started(on);
  for (auto name : {"list", "observe", "picture", "invoke", "set_value"}) {
    EXPECT_TRUE(link->offers(kj::StringPtr(name))) << name;
  }
  for (auto name : {"screenshot", "click", "proof_value", "proof_none", "", "Invoke", "invoke "}) {
    EXPECT_FALSE(link->offers(kj::StringPtr(name))) << name;
  }
}

TEST(Offers, mayBeOfEveryKindAndEveryProof) {
  Workbench on("versatile");
  auto link = started(on);
  for (auto kind : actionKinds()) EXPECT_TRUE(link->offers(kind)) << kind.cStr();
  for (auto name : {"proof_value", "proof_state", "proof_appears", "proof_disappears",
                    "proof_region_changed"}) {
    EXPECT_TRUE(link->offers(kj::StringPtr(name))) << name;
  }
}

TEST(Offers, coverAnActionByItsKindAndItsProof) {
  Workbench on;
  auto some = started(on);
  EXPECT_TRUE(some->offers(proving(InvokeRequest(), StrongestProof())));
  EXPECT_TRUE(some->offers(proving(SetValueRequest(), NoProof())));
  EXPECT_FALSE(some->offers(proving(InvokeRequest(), AppearsProof())));
  EXPECT_FALSE(some->offers(proving(ClickRequest(), StrongestProof())));
  on.helpers().mode = "versatile";
  auto all = started(on);
  EXPECT_TRUE(all->offers(proving(InvokeRequest(), AppearsProof())));
  EXPECT_TRUE(all->offers(proving(ClickRequest(), RegionProof())));
}

TEST(Offers, thatLackAReadOrAreNoneOfOursEndTheHelper) {
  for (std::string mode :
       {"offers-no-picture", "offers-what-nobody-knows", "offers-one-thing-twice"}) {
    Workbench on;
    on.helpers().mode = mode;
    auto link = on.wait(on.helpers().startDesktopHelper());
    ASSERT_FALSE(link.ok()) << mode;
    EXPECT_EQ(link.refusal().code, RefusalCode::SERVICE_MISMATCH) << mode;
    for (auto pid : on.pids()) EXPECT_TRUE(on.ends(pid)) << mode;
  }
}

}  // namespace
}  // namespace praefectus::test
