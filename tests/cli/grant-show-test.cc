// grant show: what a person reads before saying yes, and afterwards to see what was said yes to.
#include "tests/cli/program.h"

#include "attest/signed.h"
#include "ipc/action.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>

namespace praefectus::tests {
namespace {

const WindowRef WINDOW{{4711, 123456}, 0x1400003};
constexpr FrameId FRAME = {0xAB, 0xCD};

void save(const std::string& path, Bytes bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.begin()),
             static_cast<std::streamsize>(bytes.size()));
}

int64_t now() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::string hexOf(Bytes bytes) { return hex(bytes).cStr(); }

Action actionOn(Target target, Act act) {
  Action action;
  action.blind.fill(7);
  action.timeoutMs = 5000;
  action.target = kj::mv(target);
  action.act = kj::mv(act);
  return action;
}

Action typing(kj::StringPtr text) {
  ElementTarget element{WINDOW, FRAME, 3, 17, Hash{}};
  return actionOn(element, TypeTextRequest{kj::str(text), false, true, 250});
}

// What a host that asks has: a key, and files of what it asks for.
class Host {
 public:
  std::string key() const { return hexOf(bytesOf(signing.publicKey())); }
  std::string file(const std::string& leaf) const { return folder.file(leaf); }

  template <typename Value>
  void name(Value& value) const {
    value.issuer = kj::str("my-agent");
    value.keyId = attest::keyIdOf(signing.publicKey());
    value.audience.key.fill(0x5A);
    value.audience.incarnation = 2;
    value.subject = kj::str("uid:1000");
  }

  template <typename Value>
  void nameTurn(Value& value, int64_t life) const {
    name(value);
    value.session = kj::str("session-1");
    value.turn = kj::str("turn-1");
    value.policyGeneration = 4;
    value.notBefore = now() - 1000;
    value.expires = value.notBefore + life;
  }

  attest::Grant grantFor(const Action& action) const {
    attest::Grant grant;
    nameTurn(grant, 3'600'000);
    grant.operation = kj::str("operation-1");
    grant.actionHash = attest::actionHash(encode(action));
    grant.actionClass = action.actionClass();
    grant.risk = action.safety;
    grant.target = action.window();
    KJ_IF_MAYBE (frame, action.frame()) grant.frame = frame->id;
    return grant;
  }

  template <typename Value>
  std::string sign(const Value& value) const {
    save(file("signed"), attest::envelopeBytes(attest::seal(value, signing)));
    return file("signed");
  }
  template <typename Value>
  std::string bare(const Value& value) const {
    save(file("bare"), attest::seal(value, signing).body);
    return file("bare");
  }
  std::string write(const Action& action) const {
    save(file("action"), encode(action));
    return file("action");
  }

  attest::SigningKey signing = (attest::initialize(), attest::SigningKey::generate());

 private:
  Folder folder;
};

Ran show(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"grant", "show"});
  return praefectus(arguments);
}

Json shown(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  auto ran = show(arguments);
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  return envelope(ran)["data"];
}

std::string refused(std::vector<std::string> arguments, int exit = 3) {
  arguments.push_back("--json");
  auto ran = show(arguments);
  EXPECT_EQ(ran.exit, exit) << ran.out;
  auto json = envelope(ran);
  EXPECT_EQ(json["ok"], false);
  return json["error"]["code"];
}

size_t widestLine(const std::string& text) {
  size_t widest = 0;
  for (auto& line : linesOf(text)) {
    size_t width = 0;
    for (char c : line) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    widest = std::max(widest, width);
  }
  return widest;
}

TEST(GrantShow, aGrantIsToldInWordsBeforeItIsSignedAndAfter) {
  Host host;
  auto grant = host.grantFor(typing("hello"));
  for (auto& file : {host.bare(grant), host.sign(grant)}) {
    auto ran = show({file});
    ASSERT_EQ(ran.exit, 0) << ran.err;
    for (auto part : {"A GRANT", "my-agent", "uid:1000", "session-1", "turn-1", "operation-1",
                      "act by a keyboard", "window 0x1400003 of process 4711", "123456", "once",
                      "reversible", "none beyond the action itself", "1 h; valid now", "abcd0000",
                      "generation 4", "incarnation 2", "5a5a5a5a"}) {
      EXPECT_TRUE(has(ran.out, part)) << part << "\n" << ran.out;
    }
    EXPECT_FALSE(has(ran.out, "CAUTION")) << ran.out;
    EXPECT_LE(widestLine(ran.out), 80u) << ran.out;
  }
}

TEST(GrantShow, dataAreTheGrantFieldByField) {
  Host host;
  auto grant = host.grantFor(typing("hello"));
  grant.rights.focus = true;
  auto data = shown({host.sign(grant)});
  EXPECT_EQ(data["kind"], "grant");
  EXPECT_EQ(data["issuer"], "my-agent");
  EXPECT_EQ(data["subject"], "uid:1000");
  EXPECT_EQ(data["operation"], "operation-1");
  EXPECT_EQ(data["action_class"], "keyboard_mutation");
  EXPECT_EQ(data["action_hash"], hexOf(bytesOf(grant.actionHash)));
  EXPECT_EQ(data["target"], (Json{{"id", "0x1400003"}, {"pid", 4711}, {"process_start", 123456}}));
  EXPECT_EQ(data["frame"], hexOf(bytesOf(FRAME)));
  EXPECT_EQ(data["risk"], "reversible");
  EXPECT_EQ(data["rights"]["focus"], true);
  EXPECT_EQ(data["rights"]["user_pointer"], false);
  EXPECT_EQ(data["uses"], 1);
  EXPECT_EQ(data["not_before_ms"], grant.notBefore);
  EXPECT_EQ(data["expires_ms"], grant.expires);
  EXPECT_EQ(data["standing"], "current");
  EXPECT_EQ(data["policy_generation"], 4);
  EXPECT_EQ(data["incarnation"], 2);
  EXPECT_EQ(data["grant_hash"],
            hexOf(bytesOf(attest::digestOf(attest::seal(grant, host.signing).body))));
}

TEST(GrantShow, timesAreThoseOfThePersonsOwnZone) {
  Host host;
  auto grant = host.grantFor(typing("hello"));
  grant.notBefore = 1'764'521'331'007;  // 2025-11-30 16:48:51.007 UTC
  grant.expires = grant.notBefore + 90'500;
  auto environment = NO_DESKTOP;
  environment.push_back("TZ=XYZ-5:30");
  auto ran = praefectus({"grant", "show", host.sign(grant)}, environment);
  EXPECT_TRUE(has(ran.out, "2025-11-30 22:18:51.007 +0530")) << ran.out;
  EXPECT_TRUE(has(ran.out, "2025-11-30 22:20:21.507 +0530")) << ran.out;
  EXPECT_TRUE(has(ran.out, "1 min 30 s 500 ms; no longer valid")) << ran.out;
  grant.notBefore = now() + 3'600'000;
  grant.expires = grant.notBefore + 1;
  EXPECT_EQ(shown({host.sign(grant)})["standing"], "pending");
}

TEST(GrantShow, specialRightsAndRisksAreLoud) {
  Host host;
  auto action = typing("hello");
  action.safety = Safety::DESTRUCTIVE;
  auto grant = host.grantFor(action);
  grant.rights = Rights{true, false, true, true};
  auto text = show({host.sign(grant)}).out;
  for (auto part : {"CAUTION      THE FOCUS", "CAUTION      YOUR OWN POINTER",
                    "CAUTION      the effect may be IRREVERSIBLE", "DESTRUCTIVE"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  EXPECT_FALSE(has(text, "refused as it stands"));
  grant.rights = Rights{false, true, false, false};
  text = show({host.sign(grant)}).out;
  EXPECT_FALSE(has(text, "CAUTION")) << text;
  EXPECT_TRUE(has(text, "a second pointer")) << text;
  EXPECT_TRUE(has(text, "refused as it stands")) << text;
  grant.risk = Safety::EXTERNAL;
  EXPECT_TRUE(has(show({host.sign(grant)}).out, "EXTERNAL"));
}

TEST(GrantShow, aLeaseNamesEveryClassItOpensAndNoOther) {
  Host host;
  attest::Lease lease;
  host.nameTurn(lease, 60'000);
  lease.lease = kj::str("lease-1");
  lease.classes = {ActionClass::POINTER_MUTATION, ActionClass::SCREENSHOT_READ};
  lease.target.process = {4711, 123456};
  auto text = show({host.bare(lease)}).out;
  for (auto part : {"A LEASE", "lease-1", "(screenshot_read)", "(pointer_mutation)",
                    "any window of process 4711", "1 min; valid now", "any number of times"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  EXPECT_FALSE(has(text, "keyboard")) << text;
  EXPECT_LE(widestLine(text), 80u) << text;
  auto data = shown({host.sign(lease)});
  EXPECT_EQ(data["kind"], "lease");
  EXPECT_EQ(data["action_classes"], (Json{"screenshot_read", "pointer_mutation"}));
  lease.target = WindowRef();
  EXPECT_TRUE(has(show({host.sign(lease)}).out, "the whole desktop"));
}

TEST(GrantShow, aTaskGrantNamesFolderAndSteps) {
  Host host;
  attest::TaskGrant grant;
  host.nameTurn(grant, 600'000);
  grant.task = kj::str("task-1");
  grant.rootDevice = 66;
  grant.rootInode = 7788;
  grant.steps.add(Hash{1});
  grant.steps.add(Hash{2});
  auto text = show({host.bare(grant)}).out;
  for (auto part : {"A TASK GRANT", "task-1", "carry out 2 steps", "inode 7788 on device 66",
                    "10 min; valid now"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  EXPECT_LE(widestLine(text), 80u) << text;
  grant.undo = true;
  EXPECT_TRUE(has(show({host.sign(grant)}).out, "undo an earlier task, in 2 steps"));
  EXPECT_EQ(shown({host.sign(grant)})["steps"], 2);
}

TEST(GrantShow, aRevocationSaysWhatItTakesBack) {
  Host host;
  attest::Revocation revocation;
  host.name(revocation);
  revocation.revocation = kj::str("revocation-1");
  revocation.issuedAt = now();
  revocation.what = attest::RevokedOperation{kj::str("operation-9")};
  EXPECT_TRUE(has(show({host.bare(revocation)}).out, "the operation or task operation-9"));
  revocation.what = attest::RevokedLease{kj::str("lease-9")};
  EXPECT_TRUE(has(show({host.bare(revocation)}).out, "the lease lease-9"));
  revocation.what = attest::RevokedTurn{kj::str("session-9"), kj::str("turn-9")};
  auto turn = shown({host.sign(revocation)});
  EXPECT_EQ(turn["session"], "session-9");
  EXPECT_EQ(turn["turn"], "turn-9");
  revocation.what = attest::RevokedGeneration{9};
  auto text = show({host.sign(revocation)}).out;
  EXPECT_TRUE(has(text, "generation 9")) << text;
  EXPECT_TRUE(has(text, "It allows nothing")) << text;
  EXPECT_LE(widestLine(text), 80u) << text;
}

TEST(GrantShow, theActionIsShownWithItsTextWhenItIsTheOneInTheGrant) {
  Host host;
  auto action = typing("rm -rf ~\n\xE2\x80\xAEtfosorciM \\ \"x\"\tend");
  auto file = host.sign(host.grantFor(action));
  auto ran = show({file, "--action", host.write(action)});
  ASSERT_EQ(ran.exit, 0) << ran.err;
  for (auto part :
       {"type_text", "types this text, key by key, 250 ms apart, and then presses Return",
        "\"rm -rf ~\\n\"\n", "\"\\u{202e}tfosorciM \\\\ \\\"x\\\"\\tend\"\n", "element 17 of",
        "number 3 of", "within       5 s", "the strongest"}) {
    EXPECT_TRUE(has(ran.out, part)) << part << "\n" << ran.out;
  }
  EXPECT_LE(widestLine(ran.out), 80u) << ran.out;
  auto raw = show({file, "--action", host.write(action), "--json"}).out;
  EXPECT_TRUE(has(raw, "\\u202etfosorciM")) << raw;
  EXPECT_FALSE(has(raw, "\xE2\x80\xAE")) << raw;
  auto data = shown({file, "--action", host.write(action)})["action"];
  EXPECT_EQ(data["kind"], "type_text");
  EXPECT_EQ(data["parameters"]["text"], "rm -rf ~\n\xE2\x80\xAEtfosorciM \\ \"x\"\tend");
  EXPECT_EQ(data["parameters"]["press_return"], true);
  EXPECT_EQ(data["target"]["element"], 17);
  // Who did not ask for the action's text does not get it.
  EXPECT_FALSE(has(show({file}).out, "rm -rf"));
}

TEST(GrantShow, aLongTextIsShownToItsEndWithinTheLines) {
  Host host;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "w" + std::to_string(i) + (i % 7 == 0 ? "\xC3\xA9" : " ");
  text += "LAST";
  auto action = typing(text.c_str());
  auto file = host.sign(host.grantFor(action));
  auto out = show({file, "--action", host.write(action)}).out;
  EXPECT_LE(widestLine(out), 80u);
  std::string together;
  for (auto& line : linesOf(out)) {
    if (line.size() > 14 && line[13] == '"' && line.back() == '"') {
      together += line.substr(14, line.size() - 15);
    }
  }
  EXPECT_EQ(together, text);
}

TEST(GrantShow, everyKindOfActionHasItsWords) {
  Host host;
  ElementTarget element{WINDOW, FRAME, 3, 17, Hash{}};
  PointTarget point{WINDOW, FRAME, 3, 12, 34};
  HotkeyRequest hotkey;
  hotkey.keys.add(kj::str("ctrl"));
  hotkey.keys.add(kj::str("w"));
  kj::Vector<Action> actions;
  std::vector<std::string> words;
  auto add = [&](Target target, Act act, const char* expected) {
    actions.add(actionOn(kj::mv(target), kj::mv(act)));
    words.push_back(expected);
  };
  add(DesktopTarget(), ListAct(), "lists the applications and windows");
  add(WINDOW, ObserveAct{true}, "takes a picture of it");
  add(WINDOW, ScreenshotAct(), "takes a picture; changes nothing");
  add(element, InvokeRequest{kj::str("press-me")}, "\"press-me\"");
  add(element, SetValueRequest{kj::str("new value")}, "\"new value\"");
  add(element, SelectTextRequest{4, 1}, "selects 1 character, from character 4");
  add(element, SecondaryRequest{kj::str("show_menu")}, "\"show_menu\"");
  add(point, ClickRequest{Button::RIGHT, 2}, "clicks 2 times with the right button");
  add(element, ScrollRequest{Direction::DOWN, 3}, "scrolls down by 3 steps");
  add(point, MoveRequest(), "the point x 12, y 34");
  add(point, DragRequest{Button::LEFT, 56, 78}, "moves to x 56, y 78");
  add(element, TypeTextRequest{kj::str("typed"), true, false, 0},
      "removes what is there, then types");
  add(element, PressRequest{kj::str("F5"), 3, 10}, "presses this key 3 times, 10 ms apart");
  add(element, kj::mv(hotkey), "\"ctrl\"\n             \"w\"");
  add(element, PasteRequest{kj::str("pasted")}, "\"pasted\"");
  add(DesktopTarget(),
      ApplicationRequest{wire::ControlApplication::Operation::QUIT, kj::str("editor")},
      "asks this application to quit");
  add(WINDOW, WindowRequest{wire::ControlWindow::Operation::CLOSE}, "asks the window to close");
  add(DesktopTarget(), OpenRequest{kj::str("/tmp/x"), kj::str("viewer"), true},
      "giving it the focus");
  add(DesktopTarget(), ClipboardWriteRequest{kj::str("clip")}, "\"clip\"");
  add(point, ZoomAct{56, 78}, "takes a picture from the point to x 56, y 78");
  ASSERT_EQ(actions.size(), actionKinds().size());
  // Forms of kinds that stand above already.
  ObserveAct below{false, 20, 1, 30, 40, Below{FRAME, 3, 17, Hash{}, 9}};
  add(WINDOW, below, "element 17, from its child 9 on (counted from 0)");
  add(WINDOW, below, "20 elements, 1 level, 30 bytes of each text, 40 ms");
  add(MonitorTarget{MonitorId{0xab}}, ScreenshotAct(), "monitor ab00");

  for (size_t i = 0; i < actions.size(); ++i) {
    auto& action = actions[i];
    if (i < actionKinds().size()) {
      EXPECT_EQ(action.kind(), actionKinds()[i]);
    }
    auto file = host.sign(host.grantFor(action));
    auto ran = show({file, "--action", host.write(action)});
    EXPECT_EQ(ran.exit, 0) << action.kind().cStr() << ": " << ran.err;
    EXPECT_TRUE(has(ran.out, words[i])) << words[i] << "\n" << ran.out;
    EXPECT_LE(widestLine(ran.out), 80u) << ran.out;
    auto data = shown({file, "--action", host.file("action")})["action"];
    EXPECT_EQ(data["kind"], action.kind().cStr());
    EXPECT_TRUE(data["parameters"].is_object()) << data;
    EXPECT_TRUE(data["target"].is_object()) << data;
  }
}

TEST(GrantShow, everyProofHasItsWords) {
  Host host;
  StateProof states;
  states.expected.add(Expectation{State::CHECKED, true});
  states.expected.add(Expectation{State::SENSITIVE, false});
  kj::Vector<Verification::Content> proofs;
  proofs.add(NoProof());
  proofs.add(ValueProof{kj::str("afterwards")});
  proofs.add(kj::mv(states));
  proofs.add(AppearsProof());
  proofs.add(DisappearsProof());
  proofs.add(RegionProof{Rect{1, 2, 30, 40}});
  const char* words[] = {"that it was sent is enough",
                         "\"afterwards\"",
                         "checked, not sensitive",
                         "one window more",
                         "is gone",
                         "30 x 40 pixels at x 1, y 2"};
  for (size_t i = 0; i < proofs.size(); ++i) {
    auto action = typing("hello");
    action.verification.content = kj::mv(proofs[i]);
    auto out = show({host.sign(host.grantFor(action)), "--action", host.write(action)}).out;
    EXPECT_TRUE(has(out, words[i])) << words[i] << "\n" << out;
  }
}

TEST(GrantShow, anotherActionThanTheGrantsIsNotShown) {
  Host host;
  auto file = host.sign(host.grantFor(typing("harmless")));
  auto ran = show({file, "--action", host.write(typing("something else"))});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(has(ran.err, "the action is not the one in the grant")) << ran.err;
  EXPECT_FALSE(has(ran.err, "something else"));
  EXPECT_EQ(refused({file, "--action", host.file("action")}), "action_differs");
}

// The hash alone would hold in all of these.
TEST(GrantShow, aGrantThatBelittlesItsOwnActionIsRefused) {
  Host host;
  auto action = typing("hello");
  action.safety = Safety::EXTERNAL;
  auto path = host.write(action);
  EXPECT_EQ(show({host.sign(host.grantFor(action)), "--action", path}).exit, 0);
  auto risk = host.grantFor(action);
  risk.risk = Safety::REVERSIBLE;
  EXPECT_EQ(refused({host.sign(risk), "--action", path}), "action_differs");
  auto kind = host.grantFor(action);
  kind.actionClass = ActionClass::POINTER_MUTATION;
  EXPECT_EQ(refused({host.sign(kind), "--action", path}), "action_differs");
  auto window = host.grantFor(action);
  window.target.window = 1;
  EXPECT_EQ(refused({host.sign(window), "--action", path}), "action_differs");
  auto frame = host.grantFor(action);
  frame.frame = nullptr;
  EXPECT_EQ(refused({host.sign(frame), "--action", path}), "action_differs");
}

TEST(GrantShow, onlyAGrantHasAnAction) {
  Host host;
  attest::Lease lease;
  host.nameTurn(lease, 60'000);
  lease.lease = kj::str("lease-1");
  lease.classes = {ActionClass::KEYBOARD_MUTATION};
  EXPECT_EQ(refused({host.sign(lease), "--action", host.write(typing("x"))}, 2), "usage");
}

TEST(GrantShow, theSignatureIsCheckedWhenThereIsAKeyAndOnlyThen) {
  Host host, stranger;
  auto grant = host.grantFor(typing("hello"));
  auto file = host.sign(grant);
  EXPECT_EQ(shown({file})["signature"], "not_checked");
  EXPECT_TRUE(has(show({file}).out, "not checked"));
  EXPECT_EQ(shown({file, "--key", host.key()})["signature"], "holds");
  EXPECT_TRUE(has(show({file, "--key", host.key()}).out, "holds, for the key you gave"));

  EXPECT_EQ(refused({file, "--key", stranger.key()}), "signature_broken");
  auto broken = show({file, "--key", stranger.key()});
  EXPECT_EQ(broken.exit, 3);
  EXPECT_TRUE(has(broken.out, "DOES NOT HOLD")) << broken.out;

  // A signature of the same key over something else of the same form.
  auto moved = attest::seal(grant, host.signing);
  moved.signature = host.signing.sign(attest::LEASE_LABEL, moved.body);
  save(host.file("moved"), attest::envelopeBytes(moved));
  EXPECT_EQ(refused({host.file("moved"), "--key", host.key()}), "signature_broken");

  EXPECT_EQ(shown({host.bare(grant)})["signature"], "absent");
  EXPECT_EQ(refused({host.bare(grant), "--key", host.key()}), "unsigned");
}

TEST(GrantShow, whatIsNoSuchThingIsRefusedByName) {
  Host host;
  auto grant = host.grantFor(typing("hello"));
  EXPECT_EQ(refused({"/nonexistent"}), "input_failed");
  EXPECT_EQ(refused({"/"}), "input_failed");
  EXPECT_EQ(refused({"/dev/zero"}), "input_failed");
  EXPECT_EQ(refused({"/dev/null"}), "malformed");
  EXPECT_EQ(refused({host.write(typing("x"))}), "malformed");
  EXPECT_EQ(refused({host.sign(grant), "--action", host.file("signed")}), "malformed");
  EXPECT_EQ(refused({host.sign(grant), "--action", "/nonexistent"}), "input_failed");

  auto bytes = contents(host.bare(grant));
  std::ofstream(host.file("cut")) << bytes.substr(0, bytes.size() - 8);
  EXPECT_EQ(refused({host.file("cut")}), "malformed");
  std::ofstream(host.file("more")) << bytes << std::string(8, '\0');
  EXPECT_EQ(refused({host.file("more")}), "malformed");

  // Well formed and out of bounds: the reason is the reader's own.
  grant.uses = 2;
  auto often = show({host.bare(grant)});
  EXPECT_EQ(often.exit, 3);
  EXPECT_TRUE(has(often.err, "The number of uses is out of bounds.")) << often.err;
  grant.uses = 1;
  grant.expires = grant.notBefore + 25 * 3'600'000ll;
  EXPECT_TRUE(has(show({host.sign(grant)}).err, "longer than 24 hours"));

  // An envelope that names another key than the body in it.
  auto renamed = attest::seal(host.grantFor(typing("hello")), host.signing);
  renamed.issuer = kj::str("somebody-else");
  save(host.file("renamed"), attest::envelopeBytes(renamed));
  EXPECT_EQ(refused({host.file("renamed")}), "policy_denied");

  attest::Manifest manifest;
  for (auto field :
       {&manifest.issuer, &manifest.keyId, &manifest.name, &manifest.release, &manifest.platform}) {
    *field = kj::str("x");
  }
  manifest.size = 1;
  save(host.file("manifest"), attest::envelopeBytes(attest::seal(manifest, host.signing)));
  EXPECT_EQ(refused({host.file("manifest")}), "malformed");
}

}  // namespace
}  // namespace praefectus::tests
