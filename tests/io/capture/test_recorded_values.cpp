// Values beside q and k: those that are facts, those that cannot be, and those that shape a map
// without being understood.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "io/capture/capture.h"
#include "io/capture/computable.h"
#include "io/capture/partial_calls.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/zip_bytes.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

using Values = std::vector<std::pair<std::string, std::string>>;

/// q and k of 8 tokens, with these values in the metadata of a file in somebody's format.
std::string write_dump(const TemporaryFolder& folder, const Values& values) {
  CallFile file;
  file.version(0).pair({1, 2, 8, 4}, {1, 2, 8, 4});
  for (const auto& [name, value] : values) file.fact(name, value);
  std::string path = folder / "dump.safetensors";
  file.write(path);
  return path;
}

CallEntry open_dump(const TemporaryFolder& folder, const Values& values,
                    const FactOverrides& overrides = {}) {
  return Capture::open(write_dump(folder, values), overrides).calls().front();
}

/// The fact as JSON; "nothing" where there is none that was recorded.
std::string fact_of(const CallEntry& call, const std::string& name) {
  const auto found = call.facts.find(name);
  return found == call.facts.end() || found->second.origin != "recorded" ? "nothing"
                                                                         : found->second.json;
}

std::string npy_member(const std::string& shape, const std::string& data,
                       const std::string& type = "<f4") {
  return npy_bytes("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n",
                   data);
}

/// An .npz of q and k with another array.
std::string write_npz(const TemporaryFolder& folder, const std::string& name,
                      const std::string& array) {
  const std::string zeros = npy_member("(1, 2, 8, 4)", std::string(256, '\0'));
  std::string path = folder / "dump.npz";
  write_bytes(path, zip_bytes({{"q.npy", zeros}, {"k.npy", zeros}, {name + ".npy", array}}));
  return path;
}

std::string refusal(const std::function<void()>& open) {
  return thrown_text(ErrorCode::file, open);
}

}  // namespace

TEST_CASE("values are understood as JSON, and as Python's str() writes them") {
  const TemporaryFolder folder;
  struct Case {
    std::string key, text, fact, json;
  };
  const std::vector<Case> cases{
      {"is_causal", "True", "mask", "\"causal\""},
      {"is_causal", "true", "mask", "\"causal\""},
      {"causal", "1", "mask", "\"causal\""},
      {"causal", "tensor(True)", "mask", "\"causal\""},
      {"is_causal", "False", "mask", "nothing"},
      {"is_causal", "0", "mask", "nothing"},
      {"is_causal", "None", "mask", "nothing"},
      {"scale", "0.37", "scale", "0.37"},
      {"softmax_scale", "tensor(0.25)", "scale", "0.25"},
      {"scaling", "1e-05", "scale", "1e-05"},
      {"scale", "None", "scale", "nothing"},
      {"step", "10.0", "step", "10"},
      {"step_idx", "7", "step", "7"},
      {"layer", "None", "layer", "nothing"},
      {"layer", "blocks.3.attn", "layer_name", "\"blocks.3.attn\""},
      {"layer", "blocks.3.attn", "layer", "nothing"},
      {"timestep", "tensor([999.])", "timestep", "999.0"},
      {"timestep", "tensor([999.], device='cuda:0')", "timestep", "999.0"},
      {"timestep", "[500.0, 500.0]", "timestep", "500.0"},
      {"layer_idx", "-1", "layer", "nothing"},
      {"step", "-1", "step", "nothing"},
      {"grid", "(2, 2, 2)", "grid", "\"2x2x2\""},
      {"grid", "[[2, 2, 2]]", "grid", "\"2x2x2\""},
      {"branches", "['cond']", "branches", "[\"cond\"]"},
      {"model", "None", "model", "nothing"},
      {"prompt", "None", "prompt", "\"None\""},
      // Words that mean something else in files that are not in the capture format.
      {"block", "3", "block", "nothing"},
      {"score", "0.93", "score", "nothing"},
  };
  for (const Case& c : cases) {
    INFO(c.key << " = " << c.text);
    CHECK(fact_of(open_dump(folder, {{c.key, c.text}}), c.fact) == c.json);
  }
  const CallEntry causal = open_dump(folder, {{"is_causal", "True"}});
  CHECK(causal.problem->mask().describe() == "causal");
  // A fact's own name goes before another one; a second scale is no matter of taste.
  const CallEntry both = open_dump(folder, {{"iteration", "1000"}, {"step", "5"}});
  CHECK(both.id.step == 5);
  CHECK(both.unknown_keys == std::vector<std::string>{"metadata key iteration = 1000"});
  CHECK(contains(refusal([&] {
                   open_dump(folder, {{"scale", "0.5"}, {"sm_scale", "0.7"}});
                 }),
                 "scale: is 0.7, but "));
  // One scale, in full and as a float32 holds it.
  CHECK(open_dump(folder, {{"scale", "0.08838834764831843"}, {"sm_scale", "0.0883883461356163"}})
            .problem->scale(0) == 0.08838834764831843);
  FactOverrides without;
  without.told["grid"] = "none";
  CHECK(fact_of(open_dump(folder, {{"grid", "of patches"}}, without), "grid") == "nothing");
}

TEST_CASE("a fact's own name with a value that cannot be one is an error with a way out") {
  const TemporaryFolder folder;
  struct Case {
    std::string key, text, message, told, value;
  };
  const std::vector<Case> cases{
      {"scale", "abc",
       "scale: expected a number, or a list of one a head (got \"abc\"): --scale states it, "
       "--ignore scale leaves it out",
       "", ""},
      {"scale", "nan", "scale: expected a number, or a list of one a head (got nan)", "", ""},
      {"softmax_scale", "[0.5, \"x\"]", "softmax_scale: expected a number, or a list of one a head",
       "", ""},
      {"is_causal", "abc",
       "is_causal: expected true or false (got \"abc\"): --mask states it, --ignore is_causal", "",
       ""},
      {"layer", "abc",
       "layer: expected a whole number from 0 to 2^63-1 (got \"abc\"): --as layer=VALUE states it, "
       "--ignore layer leaves it out",
       "layer", "3"},
      {"step", "-2", "step: expected a whole number from 0 to 2^63-1 (got -2)", "step", "4"},
      {"timestep", "inf", "timestep: expected a number (got inf)", "timestep", "4"},
      {"layer_idx", "[1, 2]", "layer_idx: expected a whole number from 0 to 2^63-1 (got [1,2])",
       "layer", "1"},
      {"branches", "7", "branches: expected a list of strings (got 7)", "branch", "cond"},
  };
  for (const Case& c : cases) {
    INFO(c.key << " = " << c.text);
    const Values values{{c.key, c.text}};
    CHECK(contains(refusal([&] { open_dump(folder, values); }), "dump.safetensors: " + c.message));
    FactOverrides without;
    without.told[c.key] = "none";
    const Capture capture = Capture::open(write_dump(folder, values), without);
    CHECK(capture.notes().back() == "left out as told: " + c.key);
    FactOverrides overrides;
    if (c.key.find("scale") != std::string::npos) overrides.scale = "0.5";
    if (c.key == "is_causal") overrides.mask = "causal";
    if (!c.told.empty()) overrides.told[c.told] = c.value;
    CHECK_NOTHROW(open_dump(folder, values, overrides));
  }
  // In files of the capture format and in capture.json as well.
  const std::string path = folder / "a.safetensors";
  CallFile().pair({1, 2, 8, 4}, {1, 2, 8, 4}).fact("layer", "abc").write(path);
  CHECK(contains(refusal([&] { Capture::open(path); }), "layer: expected a whole number"));
  FactOverrides told;
  told.told["layer"] = "3";
  CHECK(Capture::open(path, told).calls().front().id.layer == 3);
}

TEST_CASE("arrays of a few numbers are values by their names, and others cannot be facts") {
  const TemporaryFolder folder;
  const std::string two = raw(std::vector<float>{0.5f, 0.25f});
  const std::string same = raw(std::vector<float>{0.5f, 0.5f});
  const std::string nan = raw(std::vector<float>{std::nanf("")});
  const auto open = [&](const std::string& name, const std::string& array) {
    return Capture::open(write_npz(folder, name, array)).calls().front();
  };
  CHECK(open("scale", npy_member("(1,)", two.substr(0, 4))).problem->scale(0) == 0.5);
  CHECK(fact_of(open("timestep", npy_member("(2,)", same)), "timestep") == "0.5");
  CHECK(fact_of(open("grid", npy_member("(3,)", raw(std::vector<int32_t>{2, 2, 2}), "<i4")),
                "grid") == "\"2x2x2\"");
  CHECK(open("causal", npy_member("()", std::string(1, '\1'), "|b1")).problem->mask().describe() ==
        "causal");
  // "hi" in characters of 4 bytes, bytes, and None, which NumPy pickles.
  CHECK(open("prompt", npy_member("()", std::string("h\0\0\0i\0\0\0", 8), "<U2")).prompt == "hi");
  CHECK(open("prompt", npy_member("(1,)", std::string("\0\0\0h\0\0\0i", 8), ">U2")).prompt == "hi");
  CHECK(open("model", npy_member("()", "wan", "|S3")).model == "wan");
  CHECK(fact_of(open("scale", npy_member("()",
                                         "\x89]\x94Nat\x94"
                                         "b.",
                                         "|O")),
                "scale") == "nothing");
  CHECK(contains(refusal([&] {
                   open("scale", npy_member("()",
                                            "\x89]\x94Kat\x94"
                                            "b.",
                                            "|O"));
                 }),
                 "scale: expected a number, or a list of one a head (got what cannot be read)"));
  CHECK(open("scale", npy_member("(2,)", two)).problem->scale(1) == 0.25);
  CHECK(open("scale", npy_member("(2, 1, 1)", two)).problem->scale(1) == 0.25);
  CHECK(open("scale", npy_member("(2,)", same)).problem->scales().is_one());
  CHECK(open_dump(folder, {{"scale", "tensor([0.5000, 0.2500])"}}).problem->scale(1) == 0.25);
  CHECK(contains(refusal([&] {
                   open_dump(folder, {{"scale", "tensor([[0.5], [0.2]])"}});
                 }),
                 "scale: expected a number, or a list of one a head"));
  CHECK(open("alibi_slopes", npy_member("(2,)", two)).problem->mask().describe() == "alibi");
  const std::string three = raw(std::vector<float>{0.5f, 0.25f, 1});
  CHECK(contains(refusal([&] { open("scale", npy_member("(3,)", three)); }),
                 "one for each of the 2 heads (got 3 numbers)"));
  CHECK(contains(refusal([&] { open("scale", npy_member("()", nan)); }),
                 "scale: expected a number, or a list of one a head (got nan)"));
  CHECK(contains(refusal([&] { open("scale", npy_member("(2, 2)", two + two)); }),
                 "scale: expected a number, or a list of one a head (got f32 [2, 2])"));
  CHECK(contains(refusal([&] { open("timestep", npy_member("(24,)", std::string(96, '\0'))); }),
                 "timestep: expected a number (got f32 [24]): --as timestep=VALUE states it"));
}

TEST_CASE("what shapes a map and is not understood is an error, unless it is ignored") {
  const TemporaryFolder folder;
  const std::string two = raw(std::vector<float>{2, 4});
  for (const std::string name : {"score_mod", "head_mask", "attn_bias", "position_bias", "alibi",
                                 "window_size", "key_padding_mask", "attn.position_bias"}) {
    INFO(name);
    const std::string path = write_npz(folder, name, npy_member("(2,)", two));
    const Capture capture = Capture::open(path);
    const std::string text = refusal([&] { require_computable(capture); });
    const std::string plain = name == "attn.position_bias" ? "position_bias" : name;
    CHECK(contains(text, "dump.npz: "));
    CHECK(contains(text, name + ": "));
    CHECK(contains(text, "--ignore " + plain + " makes the map without it"));
    FactOverrides without;
    without.told[plain] = "none";
    const Capture other = Capture::open(path, without);
    CHECK_NOTHROW(require_computable(other));
    CHECK(other.notes().back() == "left out as told: " + plain);
    CHECK(other.calls().front().facts.at(plain).json == "\"none\"");
    CHECK(other.calls().front().unknown_keys.empty());
  }
  // An option that says what the map has of it answers.
  FactOverrides window;
  window.mask = "window:2";
  const std::string windowed = write_npz(folder, "window_size", npy_member("(2,)", two));
  CHECK_NOTHROW(require_computable(Capture::open(windowed, window)));
  const std::string several =
      write_dump(folder, {{"head_mask", "50.0"}, {"window_size", "[8, 8]"}});
  CHECK(contains(refusal([&] { require_computable(Capture::open(several)); }),
                 "metadata key head_mask (and window_size): weights of heads are multiplied by it, "
                 "which is not supported: --ignore head_mask --ignore window_size makes the map "
                 "without it"));
}

TEST_CASE("what says that there is nothing of it shapes no map") {
  const TemporaryFolder folder;
  for (const auto& [name, text] : Values{{"softcap", "0.0"},
                                         {"logits_soft_cap", "None"},
                                         {"soft_cap", "False"},
                                         {"window_size", "[-1, -1]"},
                                         {"window_size", "(-1, -1)"},
                                         {"alibi_slopes", "None"},
                                         {"dropout_p", "0.0"},
                                         {"sliding_window", "null"},
                                         {"attention_bias", "True"},
                                         {"key_padding_mask", "[true, true]"}}) {
    INFO(name << " = " << text);
    const Capture capture = Capture::open(write_dump(folder, {{name, text}}));
    CHECK_NOTHROW(require_computable(capture));
    CHECK(not_understood(capture).empty());
  }
  // Values of another part of a pipeline shape no map of the transformer, and are told.
  for (const std::string name :
       {"vae.scaling", "text_encoder_2.config.sliding_window", "text_encoder/key_padding_mask"}) {
    INFO(name);
    const Capture capture = Capture::open(write_dump(folder, {{name, "4096"}}));
    CHECK_NOTHROW(require_computable(capture));
    CHECK(not_understood(capture) == std::vector<std::string>{"metadata key " + name});
  }
  CHECK_THROWS_AS(require_computable(Capture::open(
                      write_dump(folder, {{"softcap", "False"}, {"window_left", "0"}}))),
                  Error);
}

TEST_CASE("what is not understood is told in one line, the first five names and how many") {
  const TemporaryFolder folder;
  CHECK(not_understood_text(Capture::open(write_dump(folder, {}))).empty());
  const Capture some = Capture::open(write_dump(folder, {{"a", "1"}, {"b", "2"}}));
  CHECK(not_understood_text(some) == "not understood: 2 names: metadata key a, metadata key b");
  const Capture many = Capture::open(
      write_dump(folder, {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}, {"e", "5"}, {"f", "6"}}));
  CHECK(not_understood_text(many) ==
        "not understood: 6 names: metadata key a, metadata key b, metadata key c, metadata key d, "
        "metadata key e …");
}

TEST_CASE("values beside q and k of several calls, and what shapes maps of all of them") {
  const TemporaryFolder folder;
  const std::string path = folder / "layers.safetensors";
  CallFile file;
  file.version(0);
  for (const std::string layer : {"run.blocks.0.", "run.blocks.1."}) {
    file.tensor(layer + "q", "F32", {1, 2, 8, 4}).tensor(layer + "k", "F32", {1, 2, 8, 4});
  }
  file.fact("run.blocks.0.scale", "0.5").fact("run.scale", "0.25").fact("scale", "0.125");
  CallFile capped = file;
  file.write(path);
  const Capture capture = Capture::open(path);
  REQUIRE(capture.calls().size() == 2);
  CHECK(capture.calls()[0].problem->scale(0) == 0.5);
  CHECK(capture.calls()[1].problem->scale(0) == 0.25);
  CHECK(not_understood(capture).empty());
  // A tensor of one number, as safetensors have it, is a value too.
  const std::string scalar = folder / "scalar.safetensors";
  CallFile()
      .version(0)
      .pair({1, 2, 8, 4}, {1, 2, 8, 4})
      .tensor("scale", "F32", {}, raw(std::vector<float>{0.25f}))
      .write(scalar);
  CHECK(Capture::open(scalar).calls().front().problem->scale(0) == 0.25);
  // Whose sinks they are is not known.
  capped.tensor("sinks", "F32", {2}).write(path);
  CHECK(contains(refusal([&] { require_computable(Capture::open(path)); }),
                 "sinks: a learnt logit a head"));
}
