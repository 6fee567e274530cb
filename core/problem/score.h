#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace attnscope {

/// How logits become weights.
///   softmax      P = exp(s)/Σ exp(s), s = scale·q·k + bias
///   sigmoid      P = 1/(1 + exp(−s)); rows are not normalised
///   linear_elu1  P = φ(q)·φ(k)/Σ φ(q)·φ(k), φ(x) = elu(x) + 1 (Katharopoulos et al. 2020)
///   linear_relu  the same with φ(x) = max(x, 0)
/// The linear scores do not use scale; masked entries count 0 and a float bias is refused.
enum class ScoreFunction : uint8_t { softmax, sigmoid, linear_elu1, linear_relu };

/// "softmax", "sigmoid", "linear:elu1", "linear:relu".
std::string_view score_name(ScoreFunction score);
std::optional<ScoreFunction> parse_score(std::string_view name);
constexpr bool is_linear(ScoreFunction s) {
  return s == ScoreFunction::linear_elu1 || s == ScoreFunction::linear_relu;
}
/// Whether rows are divided by a normaliser (so that an LSE exists).
constexpr bool is_normalised(ScoreFunction s) { return s != ScoreFunction::sigmoid; }

/// What an entry of a tile is: the weight P, or the logit scale·q·k + bias (masked: −inf).
enum class Quantity : uint8_t { weights, logits };
/// Whether entries are divided by their row's norm.
constexpr bool needs_norms(ScoreFunction s, Quantity quantity) {
  return quantity == Quantity::weights && is_normalised(s);
}

}  // namespace attnscope
