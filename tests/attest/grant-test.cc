// What hosts sign: the bounds of leases, grants, task grants and revocations.
#include "tests/attest/bodies.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace praefectus::attest {
namespace {

using std::string;

constexpr int64_t DAY = 24ll * 3600 * 1000;
constexpr int64_t MIN = std::numeric_limits<int64_t>::min();
constexpr int64_t MAX = std::numeric_limits<int64_t>::max();
constexpr int64_t LAST = 1ll << 53;  // Of times, and of policy generations.

const ActionClass READS[] = {ActionClass::METADATA_READ, ActionClass::SCREENSHOT_READ};
const ActionClass MUTATIONS[] = {ActionClass::POINTER_MUTATION, ActionClass::KEYBOARD_MUTATION,
                                 ActionClass::SEMANTIC_MUTATION, ActionClass::FILE_MUTATION};

template <typename Edit>
string lease(Edit&& edit) {
  return outcomeWith<wire::Lease>("lease", edit);
}
template <typename Edit>
string grant(Edit&& edit) {
  return outcomeWith<wire::Grant>("grant", edit);
}
template <typename Edit>
string taskGrant(Edit&& edit) {
  return outcomeWith<wire::TaskGrant>("task-grant", edit);
}

// A life of at most `most` milliseconds is allowed, and no other; `name` is a body of type Wire.
template <typename Wire>
void expectLife(const string& name, int64_t most) {
  struct {
    int64_t notBefore, expires;
    const char* expected;
  } lives[] = {
      {0, 1, "ok"},
      {0, most, "ok"},
      {LAST - most, LAST, "ok"},
      {LAST - most + 1, LAST + 1, "malformed"},
      {-1, 0, "malformed"},
      {MAX - most, MAX, "malformed"},
      {MIN, MIN + most, "malformed"},
      {0, 0, "malformed"},
      {0, most + 1, "malformed"},
      {1, 0, "malformed"},
      {MIN, MAX, "malformed"},
      {MAX, MIN, "malformed"},
  };
  for (auto& life : lives) {
    EXPECT_EQ(outcomeWith<Wire>(name,
                                [&](typename Wire::Builder body) {
                                  body.setNotBefore(life.notBefore);
                                  body.setExpires(life.expires);
                                }),
              life.expected)
        << name << " " << life.notBefore << " " << life.expires;
  }
}

template <typename Wire>
void expectFrame(const string& name) {
  auto bytes = kj::heapArray<kj::byte>(33);
  memset(bytes.begin(), 7, bytes.size());
  for (size_t size : {0, 1, 15, 16, 17, 32}) {
    EXPECT_EQ(outcomeWith<Wire>(
                  name, [&](typename Wire::Builder b) { b.setFrame(bytes.slice(0, size)); }),
              size == 0 || size == 16 ? "ok" : "malformed")
        << name << " " << size;
  }
  EXPECT_EQ(outcomeWith<Wire>(name, [](typename Wire::Builder b) { b.disownFrame(); }), "ok");
}

template <typename Wire>
void expectPolicyGeneration(const string& name) {
  std::pair<uint64_t, const char*> rows[] = {{0, "malformed"},
                                             {1, "ok"},
                                             {LAST, "ok"},
                                             {LAST + 1, "malformed"},
                                             {std::numeric_limits<uint64_t>::max(), "malformed"}};
  for (auto& [generation, expected] : rows) {
    EXPECT_EQ(
        outcomeWith<Wire>(name, [&, value = generation](
                                    typename Wire::Builder b) { b.setPolicyGeneration(value); }),
        expected)
        << name << " " << generation;
  }
}

class LeaseTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialize(); }

  static string withClasses(const std::vector<ActionClass>& classes) {
    return lease([&](wire::Lease::Builder body) {
      auto list = body.initClasses(static_cast<capnp::uint>(classes.size()));
      for (capnp::uint i = 0; i < list.size(); ++i) list.set(i, classes[i]);
    });
  }
};
class GrantTest : public LeaseTest {};
class TaskGrantTest : public LeaseTest {};
class RevocationTest : public LeaseTest {};

// ---- Lease

TEST_F(LeaseTest, itsClassesAreASetInOneSpelling) {
  auto unknown = static_cast<ActionClass>(6);
  using C = ActionClass;
  std::pair<std::vector<C>, const char*> rows[] = {
      {{C::METADATA_READ}, "ok"},
      {{C::FILE_MUTATION}, "ok"},
      {{C::METADATA_READ, C::SCREENSHOT_READ, C::POINTER_MUTATION, C::KEYBOARD_MUTATION,
        C::SEMANTIC_MUTATION, C::FILE_MUTATION},
       "ok"},
      {{}, "malformed"},
      {{C::METADATA_READ, C::METADATA_READ}, "malformed"},
      {{C::FILE_MUTATION, C::FILE_MUTATION}, "malformed"},
      {{C::SCREENSHOT_READ, C::METADATA_READ}, "malformed"},
      {{C::METADATA_READ, C::FILE_MUTATION, C::POINTER_MUTATION}, "malformed"},
      {{unknown}, "unknown_field"},
      {{C::METADATA_READ, unknown}, "unknown_field"},
  };
  for (auto& [classes, expected] : rows) {
    EXPECT_EQ(withClasses(classes), expected) << testing::PrintToString(classes.size());
  }
  EXPECT_EQ(lease([](wire::Lease::Builder body) { body.disownClasses(); }), "malformed");
}

TEST_F(LeaseTest, eachSetOfClassesIsOpenedAsItWasSealed) {
  for (unsigned bits = 1; bits < 64; ++bits) {
    auto asked = sampleLease();
    asked.classes = Classes();
    for (unsigned i = 0; i < 6; ++i) {
      if ((bits >> i) & 1) asked.classes.add(static_cast<ActionClass>(i));
    }
    auto got = openLease(sampleRing(), seal(asked, issuerKey()));
    ASSERT_TRUE(got.ok()) << bits;
    EXPECT_EQ(got->classes, asked.classes) << bits;
  }
}

TEST_F(LeaseTest, oneWithAMutationLivesAMinuteAndOneOfReadsFive) {
  expectLife<wire::Lease>("lease", 60'000);
  expectLife<wire::Lease>("lease/reads", 300'000);
  auto with = [](std::initializer_list<ActionClass> classes, int64_t life) {
    auto asked = sampleLease();
    asked.classes = classes;
    asked.expires = asked.notBefore + life;
    return outcome(openLease(sampleRing(), seal(asked, issuerKey())));
  };
  for (auto c : READS) {
    EXPECT_EQ(with({c}, 300'000), "ok");
    EXPECT_EQ(with({c}, 300'001), "malformed");
  }
  for (auto c : MUTATIONS) {
    EXPECT_EQ(with({c}, 60'000), "ok") << nameOf(c).cStr();
    EXPECT_EQ(with({c}, 60'001), "malformed") << nameOf(c).cStr();
    EXPECT_EQ(with({ActionClass::METADATA_READ, c}, 60'001), "malformed") << nameOf(c).cStr();
  }
}

TEST_F(LeaseTest, aFrameHas16BytesOrIsAbsent) { expectFrame<wire::Lease>("lease"); }

TEST_F(LeaseTest, aPolicyGenerationBeginsAtOneAndHas53Bits) {
  expectPolicyGeneration<wire::Lease>("lease");
}

// ---- Grant

TEST_F(GrantTest, itsHashIsThatOfTheBodyAsItCame) {
  auto envelope = seal(sampleGrant(), issuerKey());
  EXPECT_EQ(openGrant(sampleRing(), envelope)->hash, digestOf(envelope.body));
}

TEST_F(GrantTest, aLifeIsLongerThanNothingAndNoLongerThanADay) {
  expectLife<wire::Grant>("grant", DAY);
}

TEST_F(GrantTest, aFrameHas16BytesOrIsAbsent) { expectFrame<wire::Grant>("grant"); }

TEST_F(GrantTest, aPolicyGenerationBeginsAtOneAndHas53Bits) {
  expectPolicyGeneration<wire::Grant>("grant");
}

TEST_F(GrantTest, anAbsentAudienceIsNone) {
  EXPECT_EQ(grant([](wire::Grant::Builder body) { body.disownAudience(); }), "malformed");
}

TEST_F(GrantTest, anAbsentRightIsNone) {
  auto envelope = seal(sampleGrant(), issuerKey());
  EXPECT_TRUE(openGrant(sampleRing(), envelope)->rights.focus);
  EXPECT_EQ(grant([](wire::Grant::Builder body) { body.disownRights(); }), "ok");
  auto without = sampleGrant();
  without.rights = {};
  EXPECT_EQ(openGrant(sampleRing(), seal(without, issuerKey()))->rights, Rights());
}

TEST_F(GrantTest, aMutationHasOneUseAndAReadUpToAThousand) {
  auto uses = [](ActionClass actionClass, uint32_t count) {
    return grant([=](wire::Grant::Builder body) {
      body.setActionClass(actionClass);
      body.setUses(count);
    });
  };
  for (auto actionClass : READS) {
    EXPECT_FALSE(isMutation(actionClass));
    EXPECT_EQ(uses(actionClass, 0), "malformed");
    EXPECT_EQ(uses(actionClass, 1), "ok");
    EXPECT_EQ(uses(actionClass, 1000), "ok");
    EXPECT_EQ(uses(actionClass, 1001), "malformed");
    EXPECT_EQ(uses(actionClass, 0xFFFFFFFF), "malformed");
  }
  for (auto actionClass : MUTATIONS) {
    EXPECT_TRUE(isMutation(actionClass));
    EXPECT_EQ(uses(actionClass, 0), "malformed");
    EXPECT_EQ(uses(actionClass, 1), "ok");
    EXPECT_EQ(uses(actionClass, 2), "malformed");
  }
}

TEST_F(GrantTest, itsOperationIsNamedBeforeAnythingIsProven) {
  for (auto& kind : bodies()) {
    EXPECT_EQ(operationNamed(kind.sample().body),
              kind.label == GRANT_LABEL ? "operation-1"_kj : ""_kj)
        << kind.name;
  }
  auto named = [](kj::StringPtr operation) {
    auto asked = sampleGrant();
    asked.operation = kj::str(operation);
    return operationNamed(seal(asked, keyNumber(77)).body);
  };
  EXPECT_EQ(named("operation-2"), "operation-2");
  EXPECT_EQ(named("no identifier"), "");
  EXPECT_EQ(operationNamed(notCanonical(seal(sampleGrant(), issuerKey()).body)), "");
  EXPECT_EQ(operationNamed(nullptr), "");
}

// ---- Task grant

TEST_F(TaskGrantTest, itsHashIsThatOfTheBodyAsItCame) {
  auto envelope = seal(sampleTaskGrant(), issuerKey());
  EXPECT_EQ(openTaskGrant(sampleRing(), envelope)->hash, digestOf(envelope.body));
}

TEST_F(TaskGrantTest, aTaskHasOneStepOrUpToAThousand) {
  for (auto [count, expected] : {std::pair<capnp::uint, const char*>{0, "malformed"},
                                 {1, "ok"},
                                 {1000, "ok"},
                                 {1001, "malformed"}}) {
    EXPECT_EQ(taskGrant([size = count](wire::TaskGrant::Builder body) {
                auto steps = body.initSteps(size);
                for (capnp::uint i = 0; i < size; ++i) steps.init(i, 32)[0] = 1;
              }),
              expected)
        << count;
  }
  EXPECT_EQ(taskGrant([](wire::TaskGrant::Builder body) { body.disownSteps(); }), "malformed");
}

TEST_F(TaskGrantTest, itsStepsKeepTheirOrder) {
  auto got = openTaskGrant(sampleRing(), seal(sampleTaskGrant(), issuerKey()));
  ASSERT_EQ(got->steps.size(), 2u);
  EXPECT_EQ(got->steps[0], digestOf("a step"_kj.asBytes()));
  EXPECT_EQ(got->steps[1], digestOf("another step"_kj.asBytes()));
}

TEST_F(TaskGrantTest, itsFolderIsNamed) {
  EXPECT_EQ(taskGrant([](wire::TaskGrant::Builder body) { body.setRootInode(0); }), "malformed");
  // Device numbers begin at zero: an overlay may have it.
  EXPECT_EQ(taskGrant([](wire::TaskGrant::Builder body) { body.setRootDevice(0); }), "ok");
}

TEST_F(TaskGrantTest, aLifeIsLongerThanNothingAndNoLongerThanADay) {
  expectLife<wire::TaskGrant>("task-grant", DAY);
}

TEST_F(TaskGrantTest, aPolicyGenerationBeginsAtOneAndHas53Bits) {
  expectPolicyGeneration<wire::TaskGrant>("task-grant");
}

// ---- Revocation

TEST_F(RevocationTest, aPolicyGenerationIsRaisedToTwoOrMoreAndNotBeyond53Bits) {
  for (auto [generation, expected] : {std::pair<uint64_t, const char*>{0, "malformed"},
                                      {1, "malformed"},
                                      {2, "ok"},
                                      {LAST, "ok"},
                                      {LAST + 1, "malformed"},
                                      {std::numeric_limits<uint64_t>::max(), "malformed"}}) {
    EXPECT_EQ(outcomeWith<wire::Revocation>("revocation/generation",
                                            [value = generation](wire::Revocation::Builder body) {
                                              body.setGeneration(value);
                                            }),
              expected)
        << generation;
  }
}

TEST_F(RevocationTest, aTurnIsNamedWithItsSession) {
  auto turn = [](auto&& edit) { return outcomeWith<wire::Revocation>("revocation/turn", edit); };
  EXPECT_EQ(turn([](wire::Revocation::Builder body) { body.getTurn().disownSession(); }),
            "malformed");
  EXPECT_EQ(turn([](wire::Revocation::Builder body) { body.getTurn().disownTurn(); }), "malformed");
  EXPECT_EQ(turn([](wire::Revocation::Builder body) { body.initTurn(); }), "malformed");
}

TEST_F(RevocationTest, itsTimeIsNotBeforeTheEpochAndHas53Bits) {
  auto at = [](int64_t time) {
    return outcomeWith<wire::Revocation>(
        "revocation/lease", [=](wire::Revocation::Builder body) { body.setIssuedAt(time); });
  };
  EXPECT_EQ(at(-1), "malformed");
  EXPECT_EQ(at(0), "ok");
  EXPECT_EQ(at(LAST), "ok");
  EXPECT_EQ(at(LAST + 1), "malformed");
  EXPECT_EQ(at(MAX), "malformed");
}

}  // namespace
}  // namespace praefectus::attest
