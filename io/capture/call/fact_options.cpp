#include "io/capture/call/fact_options.h"

#include "core/base/error.h"
#include "core/problem/token_grid.h"
#include "io/capture/facts/model_preset.h"
#include "io/files/json_types.h"
#include "io/segments/segment_json.h"

namespace attnscope {
namespace {

struct FactOption {
  const char* fact;
  std::string option;  ///< how the command line calls it
  const std::optional<std::string>& value;
};

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void set_by_option(CallFacts& facts, const FactOption& o, std::vector<std::string>& notes) {
  if (!o.value) return;
  facts.replace_value(o.fact);
  if (const CallFacts::Fact* recorded = facts.find(o.fact)) {
    const std::string old = text_of(recorded->value);
    if (old != *o.value) {
      notes.push_back(facts.name() + ": " + o.option + " " + *o.value + " overrides the recorded " +
                      old);
    }
  }
  facts.set(o.fact, *o.value, "option " + o.option);
}

}  // namespace

CallFacts with_options(CallFacts facts, bool has_mask, const FactOverrides& overrides,
                       std::vector<std::string>& notes) {
  if (has_mask && !facts.has("mask")) facts.set("mask", "tensor", "default");
  if (overrides.grid || overrides.text || overrides.preset) {
    for (const char* fact : {"queries", "keys"}) {
      if (!facts.has(fact)) continue;
      const char* option = overrides.grid ? "--grid" : overrides.text ? "--text" : "--preset";
      notes.push_back(facts.name() + ": " + option + " drops the recorded " + fact);
      facts.drop(fact);
    }
  }
  const bool text_changes = overrides.text && facts.text("text") != overrides.text;
  for (const FactOption& option : {FactOption{"layout", "--layout", overrides.layout},
                                   {"grid", "--grid", overrides.grid},
                                   {"text", "--text", overrides.text},
                                   {"mask", overrides.mask_option, overrides.mask},
                                   {"scale", "--scale", overrides.scale}}) {
    set_by_option(facts, option, notes);
  }
  if (!facts.has("mask")) facts.set("mask", "none", "default");
  // The size of recorded blocks says nothing of another mask.
  if (overrides.mask) facts.drop("mask_block");
  if (!text_changes) return facts;
  // How much of the recorded text is valid, and its words, say nothing of another span.
  for (const char* fact : {"text_valid", "tokens"}) {
    if (!facts.has(fact)) continue;
    notes.push_back(facts.name() + ": --text " + *overrides.text + " drops the recorded " + fact);
    facts.drop(fact);
  }
  return facts;
}

CallFacts with_told(CallFacts facts, const FactOverrides& overrides,
                    std::vector<std::string>& notes) {
  for (const auto& [name, text] : overrides.told) {
    const ToldFact told = parse_told_fact(name, text);
    if (told.value.is_null()) continue;  // left out as it was read
    const CallFacts::Fact* recorded = facts.find(told.fact);
    if (recorded != nullptr && recorded->value != told.value) {
      notes.push_back(facts.name() + ": --as " + name + "=" + text + " overrides the recorded " +
                      text_of(recorded->value));
    }
    facts.replace_value(told.fact);
    facts.set(told.fact, told.value, kToldOrigin);
  }
  return facts;
}

CallFacts with_preset(CallFacts facts, const HeadTensors& heads, const std::string& name) {
  const ModelPreset& preset = find_preset(name);
  const int64_t queries = heads.q.tokens();
  const int64_t keys = heads.k.tokens();
  const std::string option = "--preset " + std::string(preset.name);
  if (preset.head_dim != heads.q.width()) {
    throw usage_error(option + " has head dimension " + std::to_string(preset.head_dim) + ", but " +
                      facts.name() + " has " + std::to_string(heads.q.width()));
  }
  const bool cross = preset.is_cross(queries, keys);
  const auto text = preset.text_of(queries);
  if (!cross && (!text || keys != queries)) {
    const std::string count =
        std::to_string(preset.text_varies ? preset.tokens() - preset.text.count : preset.tokens()) +
        " tokens" + (preset.text_varies && preset.text.count > 0 ? " and text" : "");
    throw usage_error(option + " has " + count + ", but " + facts.name() + " has " +
                      std::to_string(queries) + " queries and " + std::to_string(keys) + " keys");
  }
  if (preset.is_map() && !cross) {
    if (facts.has("grid") || facts.has("text")) {
      throw usage_error(
          option +
          (preset.has_tiles() ? " has its cells in tiles" : " has other tokens before its video") +
          ", which a grid and a text beside it cannot say: " + facts.name() +
          " states them; give --preset alone");
    }
    set_map(facts, preset, *text, "preset");
    return facts;
  }
  const TokenGrid grid = TokenGrid::video(preset.cells(), preset.grid, 0, TextPlace::none);
  if (!facts.has("grid")) facts.set("grid", grid.grid_text(), "preset");
  if (facts.has("text") || cross) return facts;
  const TokenGrid whole = TokenGrid::video(queries, preset.grid, text->count, text->place);
  facts.set("text", whole.text_text(), "preset");
  return facts;
}

void set_map(CallFacts& facts, const ModelPreset& preset, const TextSpan& text,
             const std::string& origin) {
  // As a file would state it, whose numbers have no sign.
  facts.set("queries", Json::parse(segments_json(preset.token_grid(text)).dump()), origin);
}

}  // namespace attnscope
