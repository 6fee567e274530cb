#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "io/capture/capture.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool any_contains(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return contains(line, part); });
}

CallFile video_call() {
  CallFile call;
  call.pair({1, 2, 26, 8}, {1, 2, 26, 8}).fact("grid", "2x3x4").fact("text", "2@start");
  return call;
}

}  // namespace

TEST_CASE("the sample capture opens with its facts") {
  const Capture capture = Capture::open(project_folder() + "/samples/moving-shapes");
  CHECK(capture.notes().empty());
  CHECK(capture.unknown_keys().empty());
  CHECK(capture.frames().size() == 7);
  CHECK(contains(capture.prompt(), "red circle"));
  REQUIRE(capture.calls().size() == 4);
  for (const CallEntry& call : capture.calls()) {
    CHECK(call.unknown_keys.empty());
    CHECK(call.id.step == 10);
    CHECK(call.id.kind == CallKind::joint);
    CHECK(call.id.branches == std::vector<std::string>{"cond"});
    CHECK(call.timestep == 750);
    CHECK(call.q_state == "qk_norm,rope");
    REQUIRE(call.tokens.size() == 1);
    CHECK(call.tokens[0][2] == "red");
    CHECK(call.tokens_of(0).data() == call.tokens[0].data());
    const AttentionProblem& p = *call.problem;
    CHECK(p.num_heads() == 4);
    CHECK(p.scale(0) == 0.125);
    CHECK(p.query_tokens().grid_text() == "7x12x12");
    CHECK(p.key_tokens().segment(12) == Segment::text);
    CHECK(p.key_tokens().segment(13) == Segment::padding);
    CHECK(p.key_tokens().coord(16 + 144 + 12 + 1) == LatentCoord{1, 1, 1});
    p.check_finite(0, 3);
  }
}

TEST_CASE("missing facts take the format's defaults") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  CallFile().pair({1, 4, 6, 16}, {1, 2, 6, 16}).write(path);
  const Capture capture = Capture::open(path);
  const CallEntry& call = capture.calls().front();
  CHECK(call.id.place.unrecorded.text() == "step layer branch");
  CHECK(call.id.step == 0);
  CHECK(call.id.branches == std::vector<std::string>{"all"});
  CHECK(call.id.kind == CallKind::self);
  CHECK(call.problem->scale(0) == 0.25);
  CHECK(call.problem->num_kv_heads() == 2);
  CHECK(call.facts.at("scale").origin == "default");

  CallFile().pair({1, 4, 6, 16}, {1, 4, 5, 16}).fact("grid", "1x2x3").write(path);
  const Capture cross = Capture::open(path);
  CHECK(cross.calls().front().id.kind == CallKind::cross);
  CHECK(cross.calls().front().problem->query_tokens().grid_text() == "1x2x3");
  CHECK(cross.calls().front().problem->key_tokens().text_text() == "all");

  video_call().write(path);
  CHECK(Capture::open(path).calls().front().id.kind == CallKind::joint);
}

TEST_CASE("layouts, axes, masks, tokens and lengths are understood") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  SECTION("bshd") {
    CallFile().pair({2, 26, 3, 8}, {2, 26, 3, 8}).fact("layout", "bshd").write(path);
    const Capture capture = Capture::open(path);
    CHECK(capture.calls().front().problem->num_heads() == 3);
    CHECK(capture.calls().front().problem->num_queries() == 26);
  }
  SECTION("temporal axes: a batch item a place") {
    CallFile()
        .pair({24, 1, 5, 8}, {24, 1, 5, 8})
        .fact("axes", "temporal")
        .fact("grid", "5x4x3")
        .write(path);
    const Capture capture = Capture::open(path);
    CHECK(capture.calls().front().problem->query_tokens().grid_text() == "5x1x1");
  }
  SECTION("spatial axes with a wrong batch") {
    CallFile()
        .pair({4, 1, 12, 8}, {4, 1, 12, 8})
        .fact("axes", "spatial")
        .fact("grid", "5x4x3")
        .write(path);
    CHECK(contains(thrown_text(ErrorCode::file, [&] { Capture::open(path); }), "multiple of 5"));
  }
  SECTION("a key-padding mask, valid lengths and tokens a batch item") {
    CallFile call;
    call.pair({2, 1, 4, 8}, {2, 1, 4, 8})
        .tensor("mask", "BOOL", {2, 1, 1, 4}, std::string("\1\1\1\0\1\1\0\0", 8))
        .fact("branches", R"(["uncond","cond"])")
        .fact("text", "all")
        .fact("text_valid", "[3,2]")
        .fact("tokens", R"([["a","b","c","d"],["e","f","g","h"]])")
        .write(path);
    const Capture capture = Capture::open(path);
    const CallEntry& entry = capture.calls().front();
    CHECK(entry.tokens[1][0] == "e");
    CHECK(entry.problem->key_tokens().segment(2, 0) == Segment::text);
    CHECK(entry.tokens_of(0).front() == "a");
    CHECK(entry.tokens_of(1).front() == "e");
    CHECK(entry.problem->key_tokens().segment(2, 1) == Segment::padding);
    CHECK(entry.problem->mask().classify(1, 0, {0, 4}, {2, 4}) == TileClass::empty);
    CHECK(entry.problem->mask().classify(0, 0, {0, 4}, {0, 3}) == TileClass::full);
    const auto cond = capture.select({{}, {}, {}, {}, {"cond"}, {}});
    CHECK(cond.front().batch == std::vector<int64_t>{1});
  }
  SECTION("f64 is rounded and said") {
    CallFile().pair({1, 1, 3, 4}, {1, 1, 3, 4}, "F64").write(path);
    const Capture capture = Capture::open(path);
    CHECK(any_contains(capture.notes(), "rounded to f32"));
    CHECK(capture.calls().front().problem->q().dtype() == DType::f32);
    CHECK(capture.calls().front().tokens_of(0).empty());
  }
  SECTION("unknown keys and tensors are named") {
    CallFile call;
    call.pair({1, 1, 3, 4}, {1, 1, 3, 4}).tensor("z", "F32", {1}).fact("laeyr", "3").write(path);
    const Capture capture = Capture::open(path);
    CHECK(any_contains(capture.calls().front().unknown_keys, "laeyr"));
    CHECK(any_contains(capture.calls().front().unknown_keys, "tensor z"));
  }
  SECTION("and shown without what a terminal would obey") {
    CallFile().pair({1, 1, 3, 4}, {1, 1, 3, 4}).fact("a\\n\\u001b[2Jb", "3").write(path);
    const Capture capture = Capture::open(path);
    CHECK(capture.calls().front().unknown_keys ==
          std::vector<std::string>{"metadata key a\\n\\x1b[2Jb"});
  }
}

TEST_CASE("facts that are wrong are refused, naming file and fact") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  struct Case {
    CallFile call;
    std::string part;
  };
  const auto pair = [] { return CallFile().pair({1, 2, 26, 8}, {1, 2, 26, 8}); };
  const auto with = [&](const std::string& fact, const std::string& value) {
    return pair().fact(fact, value);
  };
  const std::string rows(8, '\x7f');
  const std::vector<Case> cases{
      {with("scale", "-1"), "scale"},
      {with("scale", "\"big\""), "scale"},
      {with("step", "1.5"), "step"},
      {with("step", "one"), "step"},
      {with("step", "-1"), "step: expected a whole number from 0"},
      {with("layer", "18446744073709551615"), "layer: expected a whole number from 0"},
      {with("head_offset", "9223372036854775808"), "head_offset"},
      {with("text", "2@start").fact("text_valid", "18446744073709551615"), "text_valid"},
      {with("kind", "sideways"), "self, cross or joint"},
      {with("layout", "dshb"), "bhsd"},
      {with("grid", "2x3x5"), "30"},
      {with("grid", "2x3"), "grid"},
      {with("text", "2@middle"), "text"},
      {with("branches", R"(["a","b"])"), "branches"},
      {with("branches", R"(["a/b"])"), "branches"},
      {with("mask", "tensor"), "no tensor mask"},
      {with("mask", "window:3"), "causal"},
      {with("axes", "diagonal"), "spatial"},
      {with("text_valid", "3"), "text_valid"},
      {with("tokens", R"(["a"])"), "tokens"},
      {with("head_offset", "-1"), "head_offset"},
      {CallFile().tensor("q", "F32", {1, 1, 3, 4}), "k"},
      {CallFile().pair({1, 1, 3, 4}, {1, 1, 3, 5}), "[1, 1, 3, 5]"},
      {CallFile().pair({1, 4, 3, 4}, {1, 3, 3, 4}), "3"},
      {CallFile().pair({2, 1, 3, 4}, {1, 1, 3, 4}), "[1, 1, 3, 4]"},
      {CallFile().pair({1, 1, 0, 4}, {1, 1, 3, 4}), "0"},
      {CallFile().pair({1, 3, 4}, {1, 3, 4}), "bhsd"},
      {CallFile().pair({1, 1, 3, 5000}, {1, 1, 3, 5000}), "4096"},
      {CallFile().pair({1, 1, 3, 4}, {1, 1, 5, 4}).fact("kind", "self"), "self"},
      {pair().tensor("mask", "BOOL", {1, 1, 5, 26}), "broadcast"},
      {pair().tensor("out", "F32", {1, 2, 1, 8}), "out_rows"},
      {pair().tensor("out", "F32", {1, 2, 1, 8}).tensor("out_rows", "I64", {1}, rows), "outside"},
      {pair().tensor("lse", "F32", {1, 2, 25}), "lse"},
  };
  for (const Case& c : cases) {
    c.call.write(path);
    const std::string text = thrown_text(ErrorCode::file, [&] { Capture::open(path); });
    INFO(c.part << ": " << text);
    CHECK(text.rfind(path.string(), 0) == 0);
    CHECK(contains(text, c.part));
    CHECK_FALSE(contains(text, "\n"));
  }
}

TEST_CASE("capture.json and a file's own facts must agree") {
  const TemporaryFolder folder;
  video_call().fact("step", "3").fact("layer", "1").write(folder.path() / "a.safetensors");
  const auto catalogue = folder.path() / "capture.json";
  const auto open = [&](const std::string& calls, const std::string& more = "") {
    write_bytes(catalogue,
                R"({"format":"attnscope-capture/1")" + more + R"(,"calls":)" + calls + "}");
    return Capture::open(folder.path());
  };
  const auto error = [&](const std::string& calls, const std::string& more = "") {
    return thrown_text(ErrorCode::file, [&] { open(calls, more); });
  };
  const Capture good = open(R"([{"file":"a.safetensors","step":3,"layer_name":"x","later":1}])",
                            R"(,"model":"m","extra":{"a":1},"whim":2)");
  CHECK(good.model() == "m");
  CHECK(good.extra() == R"({"a":1})");
  CHECK(good.calls().front().layer_name == "x");
  CHECK(any_contains(good.unknown_keys(), "whim"));
  CHECK(any_contains(good.calls().front().unknown_keys, "later"));

  const std::string text = error(R"([{"file":"a.safetensors","step":4}])");
  CHECK(contains(text, "capture.json"));
  CHECK(contains(text, "a.safetensors"));
  CHECK(contains(error(R"([{"file":"a.safetensors"},{"file":"a.safetensors"}])"), "is also in"));
  CHECK(contains(error(R"([{"file":"../a.safetensors"}])"), "inside the capture"));
  CHECK(contains(error(R"([{"file":"/etc/passwd"}])"), "inside the capture"));
  CHECK(contains(error(R"([{"file":"b.safetensors"}])"), "cannot be opened"));
  CHECK(contains(error("[]"), "calls"));
  CHECK(contains(error("3"), "calls"));
  CHECK(
      contains(error(R"([{"file":"a.safetensors"}])", R"(,"frames":[{"file":"x.png"}])"), "\"t\""));
  video_call().fact("model", "n").write(folder.path() / "b.safetensors");
  const std::string models = error(R"([{"file":"b.safetensors"}])", R"(,"model":"m")");
  CHECK(contains(models, "model"));
  CHECK(contains(models, "b.safetensors"));
  CHECK(open(R"([{"file":"b.safetensors"}])", R"(,"model":"n")").model() == "n");
  // A text that the catalogue does not tell is each call's own.
  const Capture mixed = open(R"([{"file":"a.safetensors"},{"file":"b.safetensors"}])");
  CHECK(mixed.calls()[0].model == "n");
  CHECK(mixed.calls()[1].model.empty());
  const Capture frames =
      open(R"([{"file":"b.safetensors"}])", R"(,"frames":[{"file":"x.png","t":0,"whim":1}])");
  CHECK(any_contains(frames.unknown_keys(), "frames[0].whim"));
  write_bytes(catalogue, R"({"format":"attnscope-capture/3","calls":[]})");
  CHECK(contains(thrown_text(ErrorCode::file, [&] { Capture::open(folder.path()); }), "format"));
}

TEST_CASE("folders without capture.json, and things that are no capture") {
  const TemporaryFolder folder;
  const auto refuse = [&](const std::filesystem::path& path) {
    return thrown_text(ErrorCode::file, [&] { Capture::open(path); });
  };
  CHECK(contains(refuse(folder.path()), "no capture.json"));
  CHECK(contains(refuse(folder.path() / "none"), "no such file"));
  write_bytes(
      folder.path() / "x.npy",
      npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", raw<float>({1})));
  CHECK(contains(refuse(folder.path() / "x.npy"), "--q"));
  video_call().fact("layer", "2").write(folder.path() / "b.safetensors");
  video_call().fact("layer", "1").write(folder.path() / "a.safetensors");
  const Capture capture = Capture::open(folder.path());
  REQUIRE(capture.calls().size() == 2);
  CHECK(capture.calls()[0].id.layer == 1);
}

TEST_CASE("a note that holds of many calls is told once") {
  const std::string sample = project_folder() + "/samples/moving-shapes";
  FactOverrides overrides;
  overrides.scale = "0.5";
  const Capture capture = Capture::open(sample, overrides);
  REQUIRE(capture.calls().size() == 4);
  REQUIRE(capture.notes().size() == 1);
  CHECK(capture.notes().front() ==
        sample +
            "/step10_layer00.safetensors and 3 more: --scale 0.5 overrides the recorded 0.125");
}

TEST_CASE("options override recorded facts and say so") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  video_call().fact("scale", "0.5").write(path);
  FactOverrides overrides;
  overrides.scale = "0.25";
  overrides.mask = "window:3";
  const Capture capture = Capture::open(path, overrides);
  CHECK(capture.calls().front().problem->scale(0) == 0.25);
  CHECK(capture.calls().front().problem->mask().describe() == "window:3");
  CHECK(any_contains(capture.notes(), "--scale 0.25 overrides the recorded 0.5"));
  overrides = {};
  overrides.scale = "auto";
  CHECK(Capture::open(path, overrides).calls().front().problem->scale(0) ==
        Approx(1 / std::sqrt(8.0)));
  for (const std::string bad : {"0", "-2", "inf", "nan", "x", ""}) {
    overrides.scale = bad;
    INFO(bad);
    CHECK(
        contains(thrown_text(ErrorCode::usage, [&] { Capture::open(path, overrides); }), "scale"));
  }
  overrides = {};
  overrides.preset = "cogvideox-2b";
  CHECK(contains(thrown_text(ErrorCode::usage, [&] { Capture::open(path, overrides); }), "64"));
}

TEST_CASE("an overridden fact takes along what depends on it, and says so") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "call.safetensors";
  video_call().fact("text_valid", "1").fact("tokens", R"(["a","b"])").write(path);
  FactOverrides no_text;
  no_text.text = "none";
  no_text.grid = "none";
  const Capture plain = Capture::open(path, no_text);
  CHECK(plain.calls().front().tokens.empty());
  CHECK(any_contains(plain.notes(), "drops the recorded text_valid"));
  CHECK(any_contains(plain.notes(), "drops the recorded tokens"));
  FactOverrides same;
  same.text = "2@start";
  CHECK(Capture::open(path, same).calls().front().tokens.size() == 1);

  CallFile masked = video_call();
  masked.tensor("mask", "BOOL", {26, 26}).write(path);
  FactOverrides no_mask;
  no_mask.mask = "none";
  const Capture unmasked = Capture::open(path, no_mask);
  CHECK(unmasked.calls().front().problem->mask().is_none());
  CHECK(any_contains(unmasked.notes(), "--mask none overrides the recorded tensor"));
}

TEST_CASE("text without a grid makes no grid up") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "call.safetensors";
  CallFile call;
  call.pair({1, 2, 26, 8}, {1, 2, 26, 8}).fact("text", "2@end").write(path);
  const Capture capture = Capture::open(path);
  const TokenGrid& tokens = capture.calls().front().problem->key_tokens();
  CHECK_FALSE(tokens.has_grid());
  CHECK(tokens.grid_text() == "none");
  CHECK(tokens.text_text() == "2@end");
  CHECK(tokens.video_range() == attnscope::IndexRange{0, 24});
  CHECK_FALSE(tokens.coord(3));
}

TEST_CASE("bare tensors: layout and grid are guessed and the guess is told") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& shape, int64_t count) {
    const auto path = folder.path() / name;
    write_bytes(path,
                npy_bytes("{'descr': '<f2', 'fortran_order': False, 'shape': " + shape + "}", ""));
    // Zeros that take no room.
    std::filesystem::resize_file(path, std::filesystem::file_size(path) + 2 * count);
  };
  const BareTensors pair{folder / "q.npy", folder / "k.npy", ""};
  SECTION("a single head") {
    write("q.npy", "(7, 4)", 28);
    write("k.npy", "(7, 4)", 28);
    const Capture capture = Capture::from_tensors(pair, {});
    CHECK(capture.calls().front().problem->num_queries() == 7);
    CHECK(any_contains(capture.notes(), "guessed layout sd"));
  }
  SECTION("batch, tokens, heads, by the longer axis") {
    write("q.npy", "(1, 200, 2, 4)", 1600);
    write("k.npy", "(1, 200, 2, 4)", 1600);
    CHECK(Capture::from_tensors(pair, {}).calls().front().problem->num_heads() == 2);
    FactOverrides overrides;
    overrides.layout = "bhsd";
    CHECK(Capture::from_tensors(pair, overrides).calls().front().problem->num_heads() == 200);
  }
  SECTION("by the grid") {
    write("q.npy", "(12, 20, 4)", 960);
    write("k.npy", "(12, 20, 4)", 960);
    FactOverrides overrides;
    overrides.grid = "3x2x2";
    CHECK(Capture::from_tensors(pair, overrides).calls().front().problem->num_heads() == 20);
  }
  SECTION("a preset's sequence") {
    write("q.npy", "(7392, 64)", 7392 * 64);
    write("k.npy", "(7392, 64)", 7392 * 64);
    const Capture capture = Capture::from_tensors(pair, {});
    CHECK(capture.calls().front().problem->query_tokens().grid_text() == "21x16x22");
    CHECK(any_contains(capture.notes(), "ltx-video"));
  }
  SECTION("a preset whose text is as long as the prompt") {
    write("q.npy", "(1024, 128)", 1024 * 128);
    write("k.npy", "(1024, 128)", 1024 * 128);
    FactOverrides overrides;
    overrides.preset = "qwen-image";
    CHECK(contains(thrown_text(ErrorCode::usage, [&] { Capture::from_tensors(pair, overrides); }),
                   "--preset qwen-image has 4096 tokens and text, but"));
    write("q.npy", "(4133, 128)", 4133 * 128);
    write("k.npy", "(4133, 128)", 4133 * 128);
    const Capture capture = Capture::from_tensors(pair, overrides);
    const TokenGrid& tokens = capture.calls().front().problem->query_tokens();
    CHECK(tokens.grid_text() == "1x64x64");
    CHECK(tokens.text_text() == "37@start");
    CHECK_FALSE(Capture::from_tensors(pair, {}).calls().front().problem->query_tokens().has_grid());
  }
  SECTION("a model named by its heads, where several have the sequence") {
    write("q.npy", "(48, 4608, 128)", 48 * 4608 * 128);
    write("k.npy", "(48, 4608, 128)", 48 * 4608 * 128);
    CHECK(any_contains(Capture::from_tensors(pair, {}).notes(), "flux2-dev"));
    write("q.npy", "(4608, 128)", 4608 * 128);
    write("k.npy", "(4608, 128)", 4608 * 128);
    CHECK(any_contains(Capture::from_tensors(pair, {}).notes(), "flux-dev"));
  }
  SECTION("keys in a file of several") {
    CallFile()
        .pair({1, 1, 5, 4}, {1, 1, 5, 4})
        .tensor("other", "F32", {1, 1, 5, 4})
        .write(folder.path() / "t.safetensors");
    const std::string file = folder / "t.safetensors";
    CHECK(Capture::from_tensors({file, file + ":other", ""}, {}).calls().size() == 1);
    CHECK(contains(thrown_text(ErrorCode::file,
                               [&] {
                                 Capture::from_tensors({file, file + ":othr", ""}, {});
                               }),
                   "did you mean other"));
  }
}

TEST_CASE("selection names what exists when it asks for what does not") {
  const TemporaryFolder folder;
  for (int step : {0, 10}) {
    for (int layer : {3, 4}) {
      if (step == 10 && layer == 4) continue;
      video_call()
          .fact("step", std::to_string(step))
          .fact("layer", std::to_string(layer))
          .write(folder.path() / (std::to_string(step * 100 + layer) + ".safetensors"));
    }
  }
  const Capture capture = Capture::open(folder.path());
  const auto select = [&](const std::string& steps, const std::string& layers,
                          const std::string& heads = "all") {
    CallSelection selection;
    selection.steps = Selection::parse(steps, "--steps");
    selection.layers = Selection::parse(layers, "--layers");
    selection.heads = Selection::parse(heads, "--heads");
    return capture.select(selection);
  };
  CHECK(select("all", "all").size() == 3);
  CHECK(select("0", "last").size() == 1);
  CHECK(select("all", "3", "1").front().heads == std::vector<int64_t>{1});
  const auto error = [&](const std::string& steps, const std::string& layers,
                         const std::string& heads = "all") {
    return thrown_text(ErrorCode::usage, [&] { select(steps, layers, heads); });
  };
  CHECK(contains(error("5", "all"), "0, 10"));
  CHECK(contains(error("all", "0-2"), "3-4"));
  CHECK(contains(error("all", "all", "2"), "0-1"));
  CHECK(contains(error("10", "4"), "leaves no head"));
  CallSelection branch;
  branch.branches = {"al"};
  CHECK(contains(thrown_text(ErrorCode::usage, [&] { capture.select(branch); }),
                 "did you mean all?"));
}

TEST_CASE("the content hash follows content and facts, not names") {
  const TemporaryFolder folder;
  const auto hash = [&](CallFile call, const std::string& name) {
    const auto path = folder.path() / name;
    call.write(path);
    const Capture capture = Capture::open(path);
    return capture.content_hash(capture.select({}), false);
  };
  const std::string base = hash(video_call(), "a.safetensors");
  CHECK(base.size() == 32);
  CHECK(hash(video_call(), "b.safetensors") == base);
  CHECK(hash(video_call().fact("scale", "0.5"), "c.safetensors") != base);
  CHECK(hash(video_call().fact("extra", "{}"), "d.safetensors") == base);
  for (const auto& [name, value] : std::map<std::string, std::string>{{"tokens", R"(["a","b"])"},
                                                                      {"timestep", "3.5"},
                                                                      {"q_state", "rope"},
                                                                      {"head_offset", "4"},
                                                                      {"model", "m"},
                                                                      {"prompt", "p"}}) {
    INFO(name);
    CHECK(hash(video_call().fact(name, value), "f.safetensors") != base);
  }
  std::string data(1 * 2 * 26 * 8 * 4, '\0');
  CallFile changed;
  data[100] = 1;
  changed.tensor("q", "F32", {1, 2, 26, 8}).tensor("k", "F32", {1, 2, 26, 8}, data);
  changed.fact("grid", "2x3x4").fact("text", "2@start");
  CHECK(hash(changed, "e.safetensors") != base);
}
