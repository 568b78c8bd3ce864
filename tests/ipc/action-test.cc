#include "ipc/action.h"

#include "ipc/canonical.h"
#include "tests/ipc/refusals.h"

namespace praefectus {
namespace {

Hash hashOf(kj::byte fill) {
  Hash hash;
  hash.fill(fill);
  return hash;
}

Action read(bool picture) {
  Action action;
  action.blind = hashOf(7);
  action.timeoutMs = 1000;
  action.act = ObserveAct{picture};
  action.window = {{12, 34}, 56};
  return action;
}

Action mutation() {
  Action action = read(false);
  action.element.window = action.window;
  action.element.frame.fill(3);
  action.element.epoch = 1;
  action.element.element = 2;
  action.element.digest = hashOf(4);
  action.act = InvokeRequest{kj::str("click")};
  return action;
}

Action invoke(kj::StringPtr name) {
  Action action = mutation();
  action.act = InvokeRequest{kj::str(name)};
  return action;
}

Action setValue(kj::StringPtr text) {
  Action action = mutation();
  action.act = SetValueRequest{kj::str(text)};
  return action;
}

Action list() {
  Action action;
  action.blind = hashOf(7);
  action.timeoutMs = 1;
  action.act = ListAct();
  return action;
}

std::string decoded(const Action& action) { return outcome(decodeAction(encode(action))); }

// A valid mutation, changed on the wire.
template <typename Change>
std::string changed(const Action& action, Change&& change) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Action>();
  write(action, root);
  change(root);
  auto direct = outcome(readAction(root.asReader()));
  EXPECT_EQ(direct, outcome(decodeAction(canonicalBytes(root.asReader()))));
  return direct;
}

kj::String repeated(kj::StringPtr piece, size_t times) {
  return kj::strArray(kj::repeat(piece, times), "");
}

TEST(Action, everyKindIsReadAsItWasWritten) {
  kj::Vector<Action> actions;
  actions.add(list());
  actions.add(read(false));
  actions.add(read(true));
  actions.add(invoke("click"));
  actions.add(setValue("Grüße"));
  actions.add(setValue(""));
  for (auto& action : actions) {
    auto bytes = encode(action);
    auto back = decodeAction(bytes);
    ASSERT_EQ(outcome(back), "ok") << action.kind().cStr();
    EXPECT_EQ(encode(*back), bytes);
    EXPECT_EQ(back->kind(), action.kind());
    EXPECT_EQ(back->blind, action.blind);
    EXPECT_EQ(back->timeoutMs, action.timeoutMs);
    EXPECT_EQ(back->window, action.window);
    EXPECT_EQ(back->isMutation(), action.isMutation());
    EXPECT_EQ(back->actionClass(), action.actionClass());
  }
  auto back = decodeAction(encode(setValue("Grüße")));
  EXPECT_EQ(back->act.get<SetValueRequest>().text, "Grüße"_kj);
  EXPECT_EQ(back->element.window, back->window);
  EXPECT_EQ(back->element.frame, mutation().element.frame);
  EXPECT_EQ(back->element.digest, mutation().element.digest);
  EXPECT_EQ(back->element.element, 2u);
  EXPECT_EQ(back->element.epoch, 1u);
}

TEST(Action, theClassFollowsFromTheKind) {
  EXPECT_EQ(list().actionClass(), ActionClass::METADATA_READ);
  EXPECT_EQ(read(false).actionClass(), ActionClass::METADATA_READ);
  EXPECT_EQ(read(true).actionClass(), ActionClass::SCREENSHOT_READ);
  EXPECT_EQ(invoke("x").actionClass(), ActionClass::SEMANTIC_MUTATION);
  EXPECT_EQ(setValue("x").actionClass(), ActionClass::SEMANTIC_MUTATION);
  EXPECT_EQ(setValue("x").kind(), "set_value"_kj);
}

TEST(Action, theBlindIs32BytesAndNotAllZero) {
  Action action = mutation();
  action.blind = hashOf(0);
  EXPECT_EQ(decoded(action), "malformed");
  action.blind[31] = 1;
  EXPECT_EQ(decoded(action), "ok");
  const kj::byte bytes[33] = {1};
  for (size_t size : {0, 31, 33}) {
    EXPECT_EQ(changed(mutation(), [&](auto to) { to.setBlind(kj::arrayPtr(bytes, size)); }),
              "malformed");
  }
}

TEST(Action, theTimeoutIsOneTo120000Milliseconds) {
  Action action = mutation();
  for (auto [ms, expected] : {std::pair{0u, "malformed"}, std::pair{1u, "ok"},
                              std::pair{120'000u, "ok"}, std::pair{120'001u, "malformed"}}) {
    action.timeoutMs = ms;
    EXPECT_EQ(decoded(action), expected) << ms;
  }
}

TEST(Action, theTargetSuitsTheKind) {
  auto asWindow = [](auto to) { to.initTarget().initWindow().setWindow(1); };
  auto asDesktop = [](auto to) { to.initTarget().setDesktop(); };
  EXPECT_EQ(changed(list(), asWindow), "malformed");
  EXPECT_EQ(changed(read(false), asDesktop), "malformed");
  EXPECT_EQ(changed(mutation(), asDesktop), "malformed");
  EXPECT_EQ(changed(mutation(), asWindow), "malformed");
  EXPECT_EQ(changed(setValue("x"), asDesktop), "malformed");
  EXPECT_EQ(changed(read(false), [](auto to) { to.setInvoke(to.initInvoke()); }), "malformed");
}

TEST(Action, aTargetNamesItsWindow) {
  Action action = read(false);
  action.window.window = 0;
  EXPECT_EQ(decoded(action), "malformed");
  action = read(false);
  action.window.process.pid = 0;
  EXPECT_EQ(decoded(action), "malformed");
  action = mutation();
  action.element.window = WindowRef();
  EXPECT_EQ(decoded(action), "malformed");
}

TEST(Action, anElementIsNamedInFull) {
  const kj::byte bytes[33] = {1};
  for (auto [size, expected] :
       {std::pair{15, "malformed"}, std::pair{16, "ok"}, std::pair{17, "malformed"}}) {
    EXPECT_EQ(changed(mutation(),
                      [&, size = size](auto to) {
                        to.getTarget().getElement().setFrame(kj::arrayPtr(bytes, size));
                      }),
              expected);
  }
  for (auto [size, expected] :
       {std::pair{31, "malformed"}, std::pair{32, "ok"}, std::pair{33, "malformed"}}) {
    EXPECT_EQ(changed(mutation(),
                      [&, size = size](auto to) {
                        to.getTarget().getElement().setDigest(kj::arrayPtr(bytes, size));
                      }),
              expected);
  }
  Action action = mutation();
  action.element.epoch = 0;
  EXPECT_EQ(decoded(action), "malformed");
  action = mutation();
  action.element.element = bounds::ELEMENTS - 1;
  EXPECT_EQ(decoded(action), "ok");
  action.element.element = bounds::ELEMENTS;
  EXPECT_EQ(decoded(action), "malformed");
}

TEST(Action, anActionNameIsOneTo128BytesOfText) {
  EXPECT_EQ(decoded(invoke("")), "malformed");
  EXPECT_EQ(decoded(invoke(repeated("a", 128))), "ok");
  EXPECT_EQ(decoded(invoke(repeated("a", 129))), "malformed");
  EXPECT_EQ(decoded(invoke("\xFF")), "malformed");
}

TEST(Action, aValueIsUpTo16384BytesOfText) {
  EXPECT_EQ(decoded(setValue(repeated("a", 16'384))), "ok");
  EXPECT_EQ(decoded(setValue(repeated("a", 16'385))), "malformed");
  EXPECT_EQ(decoded(setValue(repeated("ä", 8'192))), "ok");
  EXPECT_EQ(decoded(setValue("\xC3")), "malformed");
}

TEST(Action, aRedactionMarkIsNoValue) {
  for (auto mark : {"<text:18>", "<text:0>", "<point>", "<value>", "<2 items>", "<1 item>"}) {
    EXPECT_EQ(decoded(setValue(mark)), "withheld_value_replayed") << mark;
  }
  for (auto text : {"<text:>", "<text:1a>", " <text:18>", "<text:18> ", "<points>", "< items>",
                    "<two items>", "<value", "value", "<text:18", "<>"}) {
    EXPECT_EQ(decoded(setValue(text)), "ok") << text;
  }
  // A mark is a value only; a control's action may be named as it likes.
  EXPECT_EQ(decoded(invoke("<value>")), "ok");
}

TEST(Action, whatTheSchemaDoesNotKnowIsRefused) {
  EXPECT_EQ(changed(mutation(), [](auto to) { to.setVerification(static_cast<Verification>(2)); }),
            "unknown_field");
}

TEST(Action, oversizeAndForeignBytesAreMalformed) {
  auto bytes = kj::heapArray<kj::byte>(bounds::ACTION_BYTES + 8);
  std::fill(bytes.begin(), bytes.end(), kj::byte{0});
  EXPECT_EQ(outcome(decodeAction(bytes)), "malformed");
  EXPECT_EQ(outcome(decodeAction(nullptr)), "malformed");
  EXPECT_EQ(outcome(decodeAction(kj::StringPtr("{\"action\":").asBytes())), "malformed");
}

// Every bit counts: whatever bit is turned, the bytes are refused or stand for another action.
TEST(Action, noSingleBitIsWithoutMeaning) {
  for (auto& action : {setValue("some text"), read(true)}) {
    auto bytes = encode(action);
    size_t passed = 0, refused = 0;
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= static_cast<kj::byte>(1u << bit % 8);
      auto back = decodeAction(bytes);
      if (back.ok()) {
        ++passed;
        EXPECT_EQ(encode(*back), bytes) << bit;
      } else {
        ++refused;
      }
      bytes[bit / 8] ^= static_cast<kj::byte>(1u << bit % 8);
    }
    EXPECT_GT(passed, 0u);
    EXPECT_GT(refused, 0u);
  }
}

}  // namespace
}  // namespace praefectus
