#include "io/capture/call/fact_guess.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/tensor/fp4_tensor.h"
#include "io/capture/call/code_tensors.h"
#include "io/capture/call/fact_options.h"
#include "io/capture/call/packed_sequences.h"
#include "io/capture/facts/model_preset.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

bool preset_has(int64_t tokens, int64_t head_dim) {
  return std::any_of(model_presets().begin(), model_presets().end(),
                     [&](const ModelPreset& p) { return p.told_by(tokens, head_dim); });
}

/// Tokens that a grid and text span given as options add up to.
std::optional<int64_t> stated_tokens(const FactOverrides& overrides) {
  if (overrides.preset) {
    const ModelPreset& preset = find_preset(*overrides.preset);
    if (preset.text_varies && preset.text.count > 0) return std::nullopt;
    return preset.tokens();
  }
  if (!overrides.grid) return std::nullopt;
  const auto grid = parse_grid(*overrides.grid);
  const int64_t text = overrides.text ? parse_text_span(*overrides.text).count : 0;
  return grid[0] * grid[1] * grid[2] + text;
}

struct LayoutGuess {
  Layout layout;
  std::string reason;
};

/// True where q's heads share k's evenly, and both have as many batch items, in this order of axes:
/// 3 or 4 of each.
bool fits_both(const TensorSource& q, const TensorSource& k, Layout layout) {
  const auto of_q = q.shape(), of_k = k.shape();
  const size_t rank = of_q.size();
  const bool heads_first = layout == Layout::bhsd || layout == Layout::hsd;
  const size_t heads = heads_first ? rank - 3 : rank - 2;
  return of_k.size() == rank && of_k[heads] > 0 && of_q[heads] % of_k[heads] == 0 &&
         (rank == 3 || of_q[0] == of_k[0]);
}

/// "--layout bshd (32 heads, 8 of k; 7 queries, 7 keys)".
std::string reading_text(const TensorSource& q, const TensorSource& k, Layout layout) {
  const auto of_q = q.shape(), of_k = k.shape();
  const size_t rank = of_q.size();
  const bool heads_first = layout == Layout::bhsd || layout == Layout::hsd;
  const size_t heads = heads_first ? rank - 3 : rank - 2;
  const size_t tokens = heads_first ? rank - 2 : rank - 3;
  const bool grouped = of_q[heads] != of_k[heads];
  return "--layout " + std::string(layout_name(layout)) + " (" + std::to_string(of_q[heads]) +
         " heads" + (grouped ? ", " + std::to_string(of_k[heads]) + " of k" : "") + "; " +
         std::to_string(of_q[tokens]) + " queries, " + std::to_string(of_k[tokens]) + " keys)";
}

/// Which of two neighbouring axes is the sequence, and which the heads. Throws Error(usage) where
/// that would be a guess between maps of different shapes.
LayoutGuess guess_layout(const TensorSource& q, const TensorSource& k,
                         const std::optional<int64_t>& packed, const FactOverrides& overrides) {
  const auto shape = q.shape();
  const size_t rank = shape.size();
  if (rank == 2) return {Layout::sd, "two axes"};
  if (rank != 3 && rank != 4) {
    throw usage_error(q.name() + ": expected 2, 3 or 4 axes (got " + shape_text(shape) + ")");
  }
  const Layout heads_first = rank == 4 ? Layout::bhsd : Layout::hsd;
  const Layout tokens_first = rank == 4 ? Layout::bshd : Layout::shd;
  const int64_t first = shape[rank - 3];
  const int64_t second = shape[rank - 2];
  const int64_t d = shape[rank - 1];
  if (packed && rank == 3) {
    if (first == *packed) return {tokens_first, "the end of cu_seqlens"};
    if (second == *packed) return {heads_first, "the end of cu_seqlens"};
    // Neither is right, and whoever reads cu_seqlens tells why.
    return {tokens_first, "the order of packed sequences"};
  }
  if (const auto tokens = stated_tokens(overrides)) {
    if (second == *tokens && first != *tokens) return {heads_first, "the grid's token count"};
    if (first == *tokens && second != *tokens) return {tokens_first, "the grid's token count"};
  }
  const bool fits_heads_first = fits_both(q, k, heads_first);
  if (fits_heads_first != fits_both(q, k, tokens_first)) {
    return {fits_heads_first ? heads_first : tokens_first,
            "in the other order the heads of k do not divide those of q"};
  }
  if (preset_has(second, d) != preset_has(first, d)) {
    return {preset_has(second, d) ? heads_first : tokens_first, "a preset's token count"};
  }
  // Models have at most 128 heads and far more tokens.
  if (first > 128 && second <= 128) return {tokens_first, "the longer axis is the sequence"};
  if (second > 128 && first <= 128) return {heads_first, "the longer axis is the sequence"};
  const auto of_k = k.shape();
  if (fits_heads_first && !std::equal(shape.begin(), shape.end() - 1, of_k.begin())) {
    throw usage_error(q.name() + ": the axes of q " + shape_text(shape) + " and k " +
                      shape_text(of_k) + " can be read in two ways, " +
                      reading_text(q, k, heads_first) + " or " + reading_text(q, k, tokens_first) +
                      ": say which");
  }
  return {heads_first, "the usual order"};
}

/// Grid and text of the only preset that has this sequence length and head dimension.
void guess_grid(CallFacts& facts, const HeadTensor& q, int64_t keys, const FactOverrides& overrides,
                std::vector<std::string>& notes) {
  if (overrides.grid || overrides.text || overrides.preset || keys != q.tokens()) return;
  if (facts.has("grid") || facts.has("text") || facts.has("queries")) return;
  std::set<std::tuple<std::array<int64_t, 3>, int64_t, TextPlace, int64_t>> grids;
  const ModelPreset* fitting = nullptr;
  for (const ModelPreset& preset : model_presets()) {
    if (!preset.told_by(q.tokens(), q.width())) continue;
    grids.emplace(preset.grid, preset.text.count, preset.text.place, preset.part_tokens());
    // The note names one of the models: rather the one with as many heads.
    if (fitting == nullptr || preset.heads == q.heads() || fitting->heads != q.heads()) {
      fitting = &preset;
    }
  }
  if (grids.size() != 1) return;
  const std::string origin = std::string(kGuessedFromPreset) + std::string(fitting->name);
  const std::string from = " from " + std::to_string(q.tokens()) + " tokens of head dimension " +
                           std::to_string(q.width()) + ", as in " + std::string(fitting->name) +
                           "; --grid and --text override";
  if (fitting->part_tokens() > 0) {
    set_map(facts, *fitting, fitting->text, origin);
    notes.push_back("guessed a token map" + from);
    return;
  }
  const TokenGrid grid = fitting->token_grid();
  facts.set("grid", grid.grid_text(), origin);
  facts.set("text", grid.text_text(), origin);
  notes.push_back("guessed grid " + grid.grid_text() + " and text " + grid.text_text() + from);
}

}  // namespace

CallFacts with_guesses(CallFacts facts, const CallTensors& tensors, const FactOverrides& overrides,
                       std::vector<std::string>& notes) {
  const TensorSource& q = *tensors.q;
  const TensorSource& k = *tensors.k;
  const auto is_number = [](const TensorSource& t) {
    return is_floating(t.dtype()) || t.dtype() == DType::i8 || as_fp4(t) != nullptr;
  };
  if (!overrides.layout && !facts.has("layout")) {
    std::optional<int64_t> packed;
    if (tensors.cu_seqlens_q) packed = read_boundaries(*tensors.cu_seqlens_q).back();
    const LayoutGuess guess = guess_layout(q, k, packed, overrides);
    facts.set("layout", std::string(layout_name(guess.layout)), "guessed: " + guess.reason);
    notes.push_back("guessed layout " + std::string(layout_name(guess.layout)) +
                    " from the shape " + shape_text(q.shape()) + " (" + guess.reason +
                    "); --layout overrides");
  }
  const auto layout = parse_layout(overrides.layout ? *overrides.layout : *facts.text("layout"));
  if (layout && q.shape().size() == static_cast<size_t>(layout_rank(*layout)) &&
      k.shape().size() == q.shape().size() && is_number(q) && is_number(k)) {
    guess_grid(facts, HeadTensor(unscaled(tensors.q, *layout), *layout),
               head_extents(k, *layout)[2], overrides, notes);
  }
  return facts;
}

}  // namespace attnscope
