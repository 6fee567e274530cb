#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attnscope {

/// How logits become weights.
///   softmax      P = exp(s)/Σ exp(s), s = scale·q·k + bias
///   softcap:C    the same with s = C·tanh(scale·q·k/C) + bias: logits stay within ±C before mask
///                and bias (Gemma 2)
///   sigmoid      P = 1/(1 + exp(−s)); rows are not normalised
///   linear:elu1  P = φ(q)·φ(k)/Σ φ(q)·φ(k), φ(x) = elu(x) + 1 (Katharopoulos et al. 2020)
///   linear:relu  the same with φ(x) = max(x, 0)
///   linear:normaliser  P = s, s = scale·q·k: features of linear attention that were mapped, and
///                turned, already, each query divided by a normaliser of its own that was recorded
///                (RoFormer's linear attention: it is taken of unturned features). Weights have
///                either sign and rows do not add up to 1; there is no mask.
/// elu1 and relu do not use scale; masked entries count 0 and a float bias is refused.
struct ScoreFunction {
  enum class Form : uint8_t { softmax, sigmoid, linear_elu1, linear_relu, linear_normaliser };
  Form form = Form::softmax;
  double cap = 0;  ///< of softcap: C, finite and above 0; 0: logits are not capped

  static const ScoreFunction softmax, sigmoid, linear_elu1, linear_relu, linear_normaliser;
  static constexpr ScoreFunction softcap(double cap) { return {Form::softmax, cap}; }

  friend constexpr bool operator==(const ScoreFunction&, const ScoreFunction&) = default;
};
inline constexpr ScoreFunction ScoreFunction::softmax{};
inline constexpr ScoreFunction ScoreFunction::sigmoid{Form::sigmoid};
inline constexpr ScoreFunction ScoreFunction::linear_elu1{Form::linear_elu1};
inline constexpr ScoreFunction ScoreFunction::linear_relu{Form::linear_relu};
inline constexpr ScoreFunction ScoreFunction::linear_normaliser{Form::linear_normaliser};

/// "softmax", "softcap:50", "sigmoid", "linear:elu1", "linear:relu", "linear:normaliser".
std::string score_name(ScoreFunction score);
/// nullopt: none of these, or a cap that is no finite number above 0.
std::optional<ScoreFunction> parse_score(std::string_view name);
/// True of softmax, with and without a cap.
constexpr bool is_softmax(ScoreFunction s) { return s.form == ScoreFunction::Form::softmax; }
/// True where q and k are made into features first, whose products are no logits.
constexpr bool is_linear(ScoreFunction s) {
  return s.form == ScoreFunction::Form::linear_elu1 || s.form == ScoreFunction::Form::linear_relu;
}
/// True where weights may be below 0. A weight is then its logit, so logits are asked for: shares,
/// entropy and octaves of weights are not defined.
constexpr bool is_signed(ScoreFunction s) {
  return s.form == ScoreFunction::Form::linear_normaliser;
}
/// True where rows are divided by their own sum (so that an LSE exists).
constexpr bool is_normalised(ScoreFunction s) { return is_softmax(s) || is_linear(s); }

/// The value of a tile's entry: the weight P, or the logit scale·q·k + bias (masked: −inf).
enum class Quantity : uint8_t { weights, logits };
/// True where entries are divided by their row's norm.
constexpr bool needs_norms(ScoreFunction s, Quantity quantity) {
  return quantity == Quantity::weights && is_normalised(s);
}

}  // namespace attnscope
