#include "io/lab/kernel_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "io/lab/plan_table.h"

namespace attnscope {
namespace {

KernelConfig config_of(const PlanTable& table, const OrderedJson& json) {
  return {json_text(json, 1) + "\n", table.losses()};
}

/// 1 − keep without the noise of its last digits.
double dropped_share(double keep) {
  constexpr double kDigits = 1e12;
  return std::round((1 - keep) * kDigits) / kDigits;
}

/// A line where a selector was measured with all text kept, and the kernel does not know text.
void lose_text(PlanTable& table, const MaskPattern& edit) {
  if (edit.text_rule != TextRule::keep) return;
  table.lose(edit.text + ": was measured with all text kept; here text is a token like any other");
}

std::string no_sta_word(const MaskPattern& edit, const ConfigFacts& facts) {
  if (edit.kind != PatternKind::tiles) return "STA has windows of tiles alone";
  if (edit.text_rule != TextRule::keep) return "STA keeps all text";
  if (edit.tile == facts.tile) return "";
  return fmt::format("the kernel's tiles are told to be {}x{}x{}", facts.tile[0], facts.tile[1],
                     facts.tile[2]);
}

/// The window in STA's own count: around the query's tile, of an odd number of tiles but where it
/// is the whole axis.
std::array<int64_t, 3> sta_window(const TableEdit& edit, const ConfigFacts& facts,
                                  PlanTable& table) {
  if (!edit) {
    if (facts.tiles[0] > 0) return facts.tiles;
    throw usage_error("STA's dense heads need the window of the whole video: tell its tiles");
  }
  std::array<int64_t, 3> window = edit->window;
  bool widened = false;
  for (size_t axis = 0; axis < window.size(); ++axis) {
    const int64_t whole = facts.tiles[axis];
    if (window[axis] % 2 == 0 && (whole == 0 || window[axis] < whole)) {
      ++window[axis];
      widened = true;
    }
    if (whole > 0) window[axis] = std::min(window[axis], whole);
  }
  if (widened) {
    table.lose(fmt::format("{} becomes {}x{}x{}: STA's windows have a middle", edit->text,
                           window[0], window[1], window[2]));
  }
  return window;
}

KernelConfig sta_config(const EditPlan& plan, const ConfigFacts& facts) {
  PlanTable table(plan, facts, true,
                  [&](const MaskPattern& edit) { return no_sta_word(edit, facts); });
  std::string text = "{";
  for (int64_t step = 0; step < table.steps(); ++step) {
    for (int64_t layer = 0; layer < table.layers(); ++layer) {
      for (int64_t head = 0; head < table.heads(); ++head) {
        const auto window = sta_window(table.at(step, layer, head), facts, table);
        text += fmt::format("{}\n \"{}_{}_{}\": [{}, {}, {}]", text.size() > 1 ? "," : "", step,
                            layer, head, window[0], window[1], window[2]);
      }
    }
  }
  return {text + "\n}\n", table.losses()};
}

/// Of a dense head, as its tuning leaves it; and what is not measured here: pv, as a call has it.
constexpr double kSpargeDense = 1, kSpargePv = 50;

std::string no_sparge_word(const MaskPattern& edit) {
  if (edit.kind != PatternKind::sparge) return "a tuned module has SpargeAttn's thresholds alone";
  return edit.keep > 0 ? "a tuned module has cdf and no count" : "";
}

KernelConfig sparge_config(const EditPlan& plan, const ConfigFacts& facts) {
  constexpr std::string_view kPlace = "{layer}";
  const size_t at = facts.modules.find(kPlace);
  if (at == std::string::npos) {
    throw usage_error("modules " + one_line(facts.modules) +
                      ": expected a path with {layer}, as blocks.{layer}.attn1");
  }
  ConfigFacts some = facts;
  const bool by_step = std::any_of(plan.scopes.begin(), plan.scopes.end(),
                                   [](const PlanScope& scope) { return scope.steps.has_value(); });
  if (!by_step) some.steps = 1;
  PlanTable table(plan, some, true, no_sparge_word);
  OrderedJson json = OrderedJson::object();
  for (int64_t layer = 0; layer < table.layers(); ++layer) {
    std::string module = facts.modules;
    module.replace(at, kPlace.size(), std::to_string(layer));
    std::vector<bool> sparse;
    std::vector<double> cdf, sim;
    for (int64_t head = 0; head < table.heads(); ++head) {
      const TableEdit edit = table.widest({-1, layer, head}, "steps of one head");
      if (edit) lose_text(table, *edit);
      sparse.push_back(edit.has_value());
      cdf.push_back(edit ? edit->cdf : kSpargeDense);
      sim.push_back(edit ? edit->sim : kSpargeDense);
    }
    json[module + ".is_sparse"] = sparse;
    json[module + ".cdfthreshd"] = cdf;
    json[module + ".simthreshd1"] = sim;
    json[module + ".simthreshd2"] = std::vector<double>(cdf.size(), 0);
    json[module + ".pvthreshd"] = std::vector<double>(cdf.size(), kSpargePv);
  }
  return config_of(table, json);
}

std::string no_vllm_word(const MaskPattern& edit) {
  const bool subblock = edit.kind == PatternKind::subblock;
  if (!subblock && edit.kind != PatternKind::topk) return "vLLM-Omni has subblock and topk alone";
  constexpr int64_t kBlock = 64;
  if (edit.block != kBlock) return "its blocks are of 64 tokens";
  if (edit.reorders()) return "its blocks are of tokens as they are stored";
  if (!subblock && edit.blocks > 0) return "it has a share of blocks and no count";
  return !subblock && edit.text_rule == TextRule::drop ? "it does not drop text" : "";
}

OrderedJson vllm_preset(const MaskPattern& edit) {
  const double sparsity = dropped_share(edit.keep);
  if (edit.kind == PatternKind::subblock) {
    return {{"backend", "SUBBLOCK_ATTN"},
            {"subblock",
             {{"sparsity", sparsity},
              {"n_q", edit.cells[0]},
              {"n_k", edit.cells[1]},
              {"skip_first_steps", 0},
              {"skip_first_layers", 0}}}};
  }
  return {{"name", "block_sparse"},
          {"config",
           {{"block_size", {edit.block, edit.block}},
            {"selection", {{"name", "block_topk"}, {"config", {{"target_sparsity", sparsity}}}}},
            {"backend", {{"require", "FLASH_ATTN"}, {"implementation", "auto"}}}}}};
}

/// The name of what is equal to `value`, which is added where nothing is.
std::string named(OrderedJson& all, const OrderedJson& value, const std::string& word) {
  for (const auto& [name, other] : all.items()) {
    if (other == value) return name;
  }
  const std::string name = word + std::to_string(all.size());
  all[name] = value;
  return name;
}

/// The layers of a step and the presets that they use.
OrderedJson vllm_layout(PlanTable& table, int64_t step, OrderedJson& presets) {
  std::vector<std::pair<std::string, OrderedJson>> uses;
  for (int64_t layer = 0; layer < table.layers(); ++layer) {
    const TableEdit edit = table.widest({step, layer, -1}, "heads of one layer");
    if (!edit) continue;
    if (edit->kind == PatternKind::topk) lose_text(table, *edit);
    const std::string preset = named(presets, vllm_preset(*edit), "edit");
    auto use = std::find_if(uses.begin(), uses.end(),
                            [&](const auto& other) { return other.first == preset; });
    if (use == uses.end()) use = uses.insert(uses.end(), {preset, OrderedJson::array()});
    use->second.push_back(layer);
  }
  OrderedJson layout{{"default", "full"}};
  for (const auto& [preset, layers] : uses) {
    OrderedJson override = OrderedJson::object();
    if (table.counts_layers()) override["layers"] = layers;
    override["attention_role"] = table.kind();
    override["use"] = preset;
    layout["overrides"].push_back(override);
  }
  return layout;
}

KernelConfig vllm_config(const EditPlan& plan, const ConfigFacts& facts) {
  PlanTable table(plan, facts, false, no_vllm_word);
  OrderedJson presets{{"full", {{"backend", "FLASH_ATTN"}}}};
  OrderedJson layouts = OrderedJson::object(), phases = OrderedJson::array();
  for (int64_t step = 0; step < table.steps(); ++step) {
    const std::string layout = named(layouts, vllm_layout(table, step, presets), "layout");
    const bool goes_on = !phases.empty() && phases.back()["layout"] == layout;
    if (!goes_on) phases.push_back({{"until", nullptr}, {"layout", layout}});
    if (!goes_on && step > 0) phases[phases.size() - 2]["until"] = step;
  }
  OrderedJson json{{"presets", presets}};
  if (phases.size() == 1) {
    json["layout"] = layouts.front();
  } else {
    json["layouts"] = layouts;
    json["schedule"] = {{"coordinate", "step_index"}, {"phases", phases}};
  }
  return config_of(table, json);
}

std::string no_lightx2v_word(const MaskPattern& edit) {
  const bool sol = edit.kind == PatternKind::sol;
  if (!sol && edit.kind != PatternKind::sla) return "LightX2V has sol and sla here alone";
  const bool morton = sol && edit.order == TokenOrder::parse("morton");
  if (edit.reorders() && !morton) return "it does not have this order of tokens";
  if (!sol) return "";
  constexpr int64_t kBlock = 64;
  if (edit.keep > 0) return "its Sol-Attn has tau and no count";
  if (edit.tau < 0) return "its tau is at least 0";
  if (edit.block != kBlock) return "its blocks are of 64 tokens";
  const bool terms = edit.rest == BlockRest::row || edit.rest == BlockRest::centroid;
  return terms ? "" : "its Sol-Attn has terms for what it drops";
}

/// Steps and layers that stay dense, and the edit of all others.
struct WholeModelEdit {
  int64_t dense_steps = 0;
  std::vector<int64_t> dense_layers;
  TableEdit edit;
};

WholeModelEdit whole_model_edit(PlanTable& table) {
  const auto of = [&](int64_t step, int64_t layer) {
    return table.widest({step, layer, -1}, "heads of one layer");
  };
  std::vector<std::vector<TableEdit>> edits;
  for (int64_t step = 0; step < table.steps(); ++step) {
    auto& row = edits.emplace_back();
    for (int64_t layer = 0; layer < table.layers(); ++layer) row.push_back(of(step, layer));
  }
  WholeModelEdit whole;
  const auto begin = std::find_if(edits.begin(), edits.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](const TableEdit& e) { return e.has_value(); });
  });
  whole.dense_steps = begin - edits.begin();
  bool first = true;
  for (int64_t layer = 0; layer < table.layers(); ++layer) {
    const auto at = static_cast<size_t>(layer);
    const auto dense = std::count_if(begin, edits.end(), [&](const auto& row) { return !row[at]; });
    if (dense > 0) {
      whole.dense_layers.push_back(layer);
      if (dense < edits.end() - begin) {
        table.lose(fmt::format("layer {}: is dense in all steps, because it is in some", layer));
      }
      continue;
    }
    for (auto row = begin; row != edits.end(); ++row) {
      const TableEdit wide = first ? (*row)[at] : wider_edit(whole.edit, (*row)[at]);
      const bool differ = !first && (!whole.edit || whole.edit->text != (*row)[at]->text);
      if (differ && whole.edit) {
        table.lose(fmt::format("layers and steps: {} and {} become {}", whole.edit->text,
                               (*row)[at]->text, wide ? wide->text : kDenseEdit));
      }
      whole.edit = wide;
      first = false;
    }
  }
  return whole;
}

KernelConfig lightx2v_config(const EditPlan& plan, const ConfigFacts& facts) {
  PlanTable table(plan, facts, false, no_lightx2v_word);
  const auto [dense_steps, dense_layers, edit] = whole_model_edit(table);
  OrderedJson json = OrderedJson::object();
  const bool some_dense = dense_steps > 0 || !dense_layers.empty();
  if (edit && edit->kind == PatternKind::sla && some_dense) {
    table.lose("sla: its setting is of all layers and steps, of which some are dense: all stay so");
  } else if (edit && edit->kind == PatternKind::sla) {
    lose_text(table, *edit);
    table.lose(fmt::format("{}: blocks are those of the operator, measured were {} tokens",
                           edit->text, edit->block));
    json["self_attn_1_type"] = "general_sparse_attn";
    json["general_sparse_attn_setting"] = {
        {"sparse_mask_generator", "sla_mask_generator"},
        {"sparse_setting", {{"sparsity_ratio", dropped_share(edit->keep)}}},
        {"sparse_operator", "flashinfer_operator"}};
  } else if (edit) {
    json["self_attn_1_type"] = "sol_attn";
    json["sol_attn_setting"] = {{"tau", edit->tau},
                                {"thresh_type", edit->exact_variance ? "exact" : "diag"},
                                {"reorder", edit->reorders() ? "morton3d" : "none"},
                                {"dense_steps", dense_steps},
                                {"dense_layers", dense_layers},
                                {"strict", true}};
  }
  if (json.empty()) table.lose("nothing is set: all attention stays dense");
  return config_of(table, json);
}

}  // namespace

ConfigFormat parse_config_format(std::string_view text, std::string_view option) {
  const std::vector<std::string> names{"sta", "vllm-omni", "lightx2v", "sparge"};
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) throw unknown_name(option, std::string(text), names);
  return static_cast<ConfigFormat>(found - names.begin());
}

KernelConfig write_config(const EditPlan& plan, ConfigFormat format, const ConfigFacts& facts) {
  switch (format) {
    case ConfigFormat::sta:
      return sta_config(plan, facts);
    case ConfigFormat::vllm_omni:
      return vllm_config(plan, facts);
    case ConfigFormat::lightx2v:
      return lightx2v_config(plan, facts);
    case ConfigFormat::sparge:
      return sparge_config(plan, facts);
  }
  throw usage_error("no such configuration");
}

}  // namespace attnscope
