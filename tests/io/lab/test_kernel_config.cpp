#include <limits>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "io/lab/kernel_config.h"
#include "tests/io/lab/numbers.h"
#include "tests/support/catch.h"

using namespace attnscope;
using namespace attnscope::lab_tests;

namespace {

PlanScope scope(const std::string& edit, std::optional<std::vector<int64_t>> layers,
                std::optional<std::vector<int64_t>> heads = {},
                std::optional<std::array<int64_t, 2>> steps = {}) {
  PlanScope scope;
  scope.kind = "self";
  scope.slot = "attn1";
  scope.edit = edit;
  scope.layers = std::move(layers);
  scope.heads = std::move(heads);
  scope.steps = steps;
  return scope;
}

EditPlan plan_of(const std::vector<PlanScope>& scopes) {
  EditPlan plan;
  plan.scopes = scopes;
  return plan;
}

struct Written {
  OrderedJson json;
  std::vector<std::string> losses;
};

Written write(const std::vector<PlanScope>& scopes, ConfigFormat format,
              const ConfigFacts& facts = {}) {
  const KernelConfig config = write_config(plan_of(scopes), format, facts);
  return {OrderedJson::parse(config.text), config.losses};
}

ConfigFacts model(int64_t steps, int64_t layers, int64_t heads) {
  ConfigFacts facts;
  facts.steps = steps;
  facts.layers = layers;
  facts.heads = heads;
  return facts;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("STA has a window for each step, layer and head") {
  ConfigFacts facts = model(2, 2, 2);
  facts.tiles = {5, 6, 10};
  const auto [json, losses] =
      write({scope("tiles:window=3x3x3", {{0}}, {{1}}, {{1, 1}}),
             scope("tiles:window=2x5x10", {{1}}), scope("sla", {{0}}, {{0}})},
            ConfigFormat::sta, facts);
  CHECK(json == OrderedJson::parse(R"({
      "0_0_0": [5, 6, 10], "0_0_1": [5, 6, 10], "0_1_0": [3, 5, 10], "0_1_1": [3, 5, 10],
      "1_0_0": [5, 6, 10], "1_0_1": [3, 3, 3], "1_1_0": [3, 5, 10], "1_1_1": [3, 5, 10]})"));
  CHECK(losses ==
        Lines{"sla is left dense: STA has windows of tiles alone (2 times)",
              "tiles:window=2x5x10 becomes 3x5x10: STA's windows have a middle (4 times)"});
}

TEST_CASE("STA's windows are told where they grow, and not where they end with the video") {
  ConfigFacts facts = model(1, 1, 2);
  facts.tiles = {3, 6, 10};
  const auto [json, losses] =
      write({scope("tiles:window=5x2x1", {{0}}, {{0}}), scope("tiles:window=1x9x3", {{0}}, {{1}})},
            ConfigFormat::sta, facts);
  CHECK(json == OrderedJson::parse(R"({"0_0_0": [3, 3, 1], "0_0_1": [1, 6, 3]})"));
  CHECK(losses == Lines{"tiles:window=5x2x1 becomes 3x3x1: STA's windows have a middle"});
}

TEST_CASE("STA keeps its tiles and text") {
  ConfigFacts facts = model(1, 1, 2);
  facts.tiles = {5, 6, 10};
  const auto [json, losses] = write({scope("sta:size=2x4x4,window=1x1x1", {{0}}, {{0}}),
                                     scope("tiles:window=9x9x9,text=drop", {{0}}, {{1}})},
                                    ConfigFormat::sta, facts);
  CHECK(json == OrderedJson::parse(R"({"0_0_0": [5, 6, 10], "0_0_1": [5, 6, 10]})"));
  CHECK(losses ==
        Lines{"sta:size=2x4x4,window=1x1x1 is left dense: the kernel's tiles are told to be 6x8x8",
              "tiles:window=9x9x9,text=drop is left dense: STA keeps all text"});
  facts.tile = {2, 4, 4};
  CHECK(write({scope("sta:size=2x4x4,window=1x1x1", {{0}})}, ConfigFormat::sta, facts)
            .json["0_0_0"] == OrderedJson({1, 1, 1}));
  // A window beyond the video is the video.
  facts.tile = {6, 8, 8};
  CHECK(write({scope("sta:window=7x7x7", {{0}})}, ConfigFormat::sta, facts).json["0_0_0"] ==
        OrderedJson({5, 6, 7}));
}

TEST_CASE("counts that nobody told are the plan's, or missed") {
  const auto says = [](const std::vector<PlanScope>& scopes, ConfigFormat format,
                       const ConfigFacts& facts = {}) {
    return refusal([&] { write(scopes, format, facts); });
  };
  const PlanScope window = scope("tiles", {{1}}, {{0, 2}});
  CHECK(says({window}, ConfigFormat::sta) ==
        "the number of steps of a run is needed, and a plan does not have it");
  CHECK(says({scope("subblock", {{1}}, {}, {{0, 3}})}, ConfigFormat::vllm_omni) ==
        "the number of steps of a run is needed, and a plan does not have it");
  CHECK(says({window}, ConfigFormat::sta, model(1, 0, 0)) ==
        "STA's dense heads need the window of the whole video: tell its tiles");
  CHECK(says({scope("sparge", {{1}})}, ConfigFormat::sparge) ==
        "the number of heads is needed, and the plan does not have it");
  CHECK(says({window}, ConfigFormat::sta, model(1, 1, 9)) ==
        "the plan counts layers to 1, and the model is told to have 1");
  CHECK(says({}, ConfigFormat::lightx2v) ==
        "the plan has no scope of the self attention of layers");
  CHECK(says({window}, ConfigFormat::sta, model(1 << 20, 1 << 20, 1 << 20)) != "");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CHECK(says({scope("sparge", {{1}}, {{kMost}})}, ConfigFormat::sparge) ==
        "the plan counts heads to 9223372036854775807, which is more than any model has");
  CHECK(says({scope("sparge", {{kMost}}, {{1}})}, ConfigFormat::sparge) ==
        "the plan counts layers to 9223372036854775807, which is more than any model has");
  const auto [json, losses] = write({scope("sparge", {{0, 1}}, {{0, 2}})}, ConfigFormat::sparge);
  CHECK(json["blocks.1.attn1.is_sparse"] == OrderedJson({true, false, true}));
  CHECK(losses == Lines{"2 layers: as many as the plan counts; of others nothing is told",
                        "3 heads: as many as the plan counts; of others nothing is told"});
}

TEST_CASE("one attention is told: others of the plan are named") {
  PlanScope audio = scope("sol", {{0}});
  audio.slot = "audio_attn";
  PlanScope refiner = scope("sol", {});
  refiner.block = "refiner.0";
  PlanScope cross = scope("sol", {{0}});
  cross.kind = "cross";
  const PlanScope video = scope("sol:tau=2", {{0}});
  CHECK(refusal([&] {
          write({audio, video}, ConfigFormat::lightx2v, model(0, 1, 1));
        }) ==
        "the plan has edits of self attention in attn1 or self attention in audio_attn, and a "
        "configuration is of one: tell the slot");
  ConfigFacts facts = model(0, 1, 1);
  facts.slot = "attn1";
  const auto [json, losses] = write({audio, refiner, cross, video}, ConfigFormat::lightx2v, facts);
  CHECK(json["sol_attn_setting"]["tau"] == 2);
  CHECK(losses == Lines{"layer 0 attn1 cross: is not told, it stays as it is",
                        "layer 0 audio_attn self: is not told, it stays as it is",
                        "refiner.0 attn1 self: is not told, it stays as it is"});
  facts.slot = "atn1";
  CHECK(refusal([&] { write({video}, ConfigFormat::lightx2v, facts); }) ==
        "the plan has no scope of the self attention of layers in slot atn1");
}

TEST_CASE("SpargeAttn's modules have thresholds a head, the widest of all steps") {
  ConfigFacts facts = model(0, 1, 4);
  const std::vector<PlanScope> scopes{scope("sparge:sim=-1,cdf=0.9", {{0}}, {{0}}, {{0, 4}}),
                                      scope("sparge:sim=0.5,cdf=0.8", {{0}}, {{0}}, {{5, 9}}),
                                      scope("sparge:sim=-1,cdf=0.9", {{0}}, {{1}}, {{0, 4}}),
                                      scope("sparge:keep=0.5", {{0}}, {{2}}),
                                      scope("sparge:text=keep", {{0}}, {{3}})};
  CHECK(refusal([&] { write(scopes, ConfigFormat::sparge, facts); }) != "");
  facts.steps = 10;
  facts.modules = "transformer.blocks.{layer}.attn1.inner_attention";
  const auto [json, losses] = write(scopes, ConfigFormat::sparge, facts);
  const std::string module = "transformer.blocks.0.attn1.inner_attention.";
  CHECK(json.size() == 5);
  CHECK(json[module + "is_sparse"] == OrderedJson({true, false, false, true}));
  CHECK(json[module + "cdfthreshd"] == OrderedJson({0.9, 1, 1, 0.98}));
  CHECK(json[module + "simthreshd1"] == OrderedJson({0.5, 1, 1, 0.6}));
  CHECK(json[module + "simthreshd2"] == OrderedJson({0, 0, 0, 0}));
  CHECK(json[module + "pvthreshd"] == OrderedJson({50, 50, 50, 50}));
  CHECK(losses ==
        Lines{"sparge:keep=0.5 is left dense: a tuned module has cdf and no count (10 times)",
              "sparge:text=keep: was measured with all text kept; here text is a token like any "
              "other",
              "steps of one head: dense, sparge:sim=-1,cdf=0.9 become dense",
              "steps of one head: sparge:sim=-1,cdf=0.9, sparge:sim=0.5,cdf=0.8 become "
              "sparge:sim=-1,cdf=0.9 or sparge:sim=0.5,cdf=0.8"});
  facts.modules = "blocks.attn1";
  CHECK(refusal([&] { write(scopes, ConfigFormat::sparge, facts); }) ==
        "modules blocks.attn1: expected a path with {layer}, as blocks.{layer}.attn1");
}

TEST_CASE("vLLM-Omni has a preset a layer, in phases of steps") {
  const auto [json, losses] =
      write({scope("subblock:keep=0.25", {{0}}, {{0}}, {{2, 3}}),
             scope("subblock:keep=0.3", {{0}}, {{1}}, {{2, 3}}),
             scope("topk:block=64,keep=0.1", {{1, 2}}, {}, {{2, 3}}), scope("sol", {{3}})},
            ConfigFormat::vllm_omni, model(5, 4, 2));
  CHECK(json == OrderedJson::parse(R"({
    "presets": {
      "full": {"backend": "FLASH_ATTN"},
      "edit1": {"backend": "SUBBLOCK_ATTN", "subblock": {"sparsity": 0.7, "n_q": 4, "n_k": 4,
                "skip_first_steps": 0, "skip_first_layers": 0}},
      "edit2": {"name": "block_sparse", "config": {"block_size": [64, 64],
                "selection": {"name": "block_topk", "config": {"target_sparsity": 0.9}},
                "backend": {"require": "FLASH_ATTN", "implementation": "auto"}}}},
    "layouts": {
      "layout0": {"default": "full"},
      "layout1": {"default": "full", "overrides": [
        {"layers": [0], "attention_role": "self", "use": "edit1"},
        {"layers": [1, 2], "attention_role": "self", "use": "edit2"}]}},
    "schedule": {"coordinate": "step_index", "phases": [
      {"until": 2, "layout": "layout0"}, {"until": 4, "layout": "layout1"},
      {"until": null, "layout": "layout0"}]}})"));
  CHECK(losses ==
        Lines{"heads of one layer: subblock:keep=0.25, subblock:keep=0.3 become subblock:keep=0.3 "
              "(2 times)",
              "sol is left dense: vLLM-Omni has subblock and topk alone (10 times)",
              "topk:block=64,keep=0.1: was measured with all text kept; here text is a token like "
              "any other (4 times)"});
}

TEST_CASE("vLLM-Omni has one layout where no step differs, of all layers where all are alike") {
  const auto [json, losses] =
      write({scope("subblock:keep=0.25,cells=1x4", {})}, ConfigFormat::vllm_omni);
  CHECK(json["layout"] == OrderedJson::parse(R"({"default": "full", "overrides": [
      {"attention_role": "self", "use": "edit1"}]})"));
  CHECK(json["presets"]["edit1"]["subblock"]["n_q"] == 1);
  CHECK_FALSE(json.contains("schedule"));
  CHECK(losses.empty());
  const auto mixed = write({scope("subblock", {{0}}, {{0}}), scope("topk:block=64", {{0}}, {{1}})},
                           ConfigFormat::vllm_omni, model(0, 1, 2));
  CHECK(mixed.json["layout"] == OrderedJson({{"default", "full"}}));
  CHECK(mixed.losses == Lines{"heads of one layer: subblock, topk:block=64 become dense"});
  const auto words =
      write({scope("subblock:block=128", {{0}}), scope("topk:blocks=4,block=64", {{1}}),
             scope("subblock:order=morton", {{2}}), scope("blocks.npy", {{3}}),
             scope("topk:block=64,text=drop", {{4}})},
            ConfigFormat::vllm_omni, model(0, 5, 1));
  CHECK(words.json["presets"].size() == 1);
  CHECK(words.losses.size() == 5);
}

TEST_CASE("LightX2V has one Sol-Attn, dense first steps and dense layers") {
  const auto [json, losses] =
      write({scope("sol:tau=1", {{0, 1}}, {}, {{2, 3}}), scope("sol:tau=1.5", {{2}}, {}, {{2, 3}}),
             scope("sol:tau=1.5", {{3}}, {}, {{3, 3}})},
            ConfigFormat::lightx2v, model(4, 5, 0));
  CHECK(json == OrderedJson::parse(R"({
    "self_attn_1_type": "sol_attn",
    "sol_attn_setting": {"tau": 1.0, "thresh_type": "diag", "reorder": "none", "dense_steps": 2,
                         "dense_layers": [3, 4], "strict": true}})"));
  CHECK(losses == Lines{"layer 3: is dense in all steps, because it is in some",
                        "layers and steps: sol:tau=1 and sol:tau=1.5 become sol:tau=1 (2 times)"});
  const auto exact =
      write({scope("sol:tau=1,variance=exact,order=morton", {})}, ConfigFormat::lightx2v);
  CHECK(exact.json["sol_attn_setting"]["thresh_type"] == "exact");
  CHECK(exact.json["sol_attn_setting"]["reorder"] == "morton3d");
  CHECK(exact.json["sol_attn_setting"]["dense_layers"] == OrderedJson::array());
  for (const char* edit : {"sol:keep=0.2", "sol:tau=-1", "sol:block=128", "sol:tail=none",
                           "sol:order=hilbert", "vsa", "sla:order=morton"}) {
    INFO(edit);
    const auto dense = write({scope(edit, {})}, ConfigFormat::lightx2v);
    CHECK(dense.json == OrderedJson::object());
    REQUIRE(dense.losses.size() == 2);
    CHECK(dense.losses[0] == "nothing is set: all attention stays dense");
  }
}

TEST_CASE("LightX2V has one sla for all layers") {
  const auto [json, losses] = write({scope("sla:keep=0.1", {{0}}), scope("sla:keep=0.3", {{1}})},
                                    ConfigFormat::lightx2v, model(0, 2, 0));
  CHECK(json == OrderedJson::parse(R"({
    "self_attn_1_type": "general_sparse_attn",
    "general_sparse_attn_setting": {"sparse_mask_generator": "sla_mask_generator",
      "sparse_setting": {"sparsity_ratio": 0.7}, "sparse_operator": "flashinfer_operator"}})"));
  CHECK(losses == Lines{"layers and steps: sla:keep=0.1 and sla:keep=0.3 become sla:keep=0.3",
                        "sla:keep=0.3: blocks are those of the operator, measured were 64 tokens"});
  const auto dense = write({scope("sla:keep=0.1", {{0}})}, ConfigFormat::lightx2v, model(0, 2, 0));
  CHECK(dense.json == OrderedJson::object());
  const auto mixed = write({scope("sla:keep=0.1", {{0}}), scope("sol", {{1}}), scope("sol", {{2}})},
                           ConfigFormat::lightx2v, model(0, 3, 0));
  CHECK(mixed.json == OrderedJson::object());
  CHECK(mixed.losses == Lines{"layers and steps: sla:keep=0.1 and sol become dense",
                              "nothing is set: all attention stays dense"});
}

TEST_CASE("configurations have names") {
  CHECK(parse_config_format("vllm-omni") == ConfigFormat::vllm_omni);
  CHECK(refusal([] { parse_config_format("spage"); }) ==
        "--format spage: no such name, did you mean sparge? (sta, vllm-omni, lightx2v, sparge)");
}
