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
///   linear_normaliser  P = s, s = scale·q·k: features of linear attention that were mapped, and
///                turned, already, each query divided by a normaliser of its own that was recorded
///                (RoFormer's linear attention: it is taken of unturned features). Weights have
///                either sign and rows do not add up to 1; there is no mask.
/// elu1 and relu do not use scale; masked entries count 0 and a float bias is refused.
enum class ScoreFunction : uint8_t {
  softmax,
  sigmoid,
  linear_elu1,
  linear_relu,
  linear_normaliser
};

/// "softmax", "sigmoid", "linear:elu1", "linear:relu", "linear:normaliser".
std::string_view score_name(ScoreFunction score);
std::optional<ScoreFunction> parse_score(std::string_view name);
/// True where q and k are made into features first, whose products are no logits.
constexpr bool is_linear(ScoreFunction s) {
  return s == ScoreFunction::linear_elu1 || s == ScoreFunction::linear_relu;
}
/// True where weights may be below 0. A weight is then its logit, so logits are asked for: shares,
/// entropy and octaves of weights are not defined.
constexpr bool is_signed(ScoreFunction s) { return s == ScoreFunction::linear_normaliser; }
/// True where rows are divided by their own sum (so that an LSE exists).
constexpr bool is_normalised(ScoreFunction s) {
  return s != ScoreFunction::sigmoid && s != ScoreFunction::linear_normaliser;
}

/// The value of a tile's entry: the weight P, or the logit scale·q·k + bias (masked: −inf).
enum class Quantity : uint8_t { weights, logits };
/// True where entries are divided by their row's norm.
constexpr bool needs_norms(ScoreFunction s, Quantity quantity) {
  return quantity == Quantity::weights && is_normalised(s);
}

}  // namespace attnscope
