#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/attention_problem.h"

namespace attnscope::test {

/// A mask, and the same said independently of it: the bias of one entry (0, −inf or finite).
struct MaskCase {
  std::string name;
  Mask mask;
  std::function<double(int64_t batch, int64_t head, int64_t query, int64_t key)> bias;
};

struct Shape {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t head_dim = 1;
};
std::string to_text(const Shape& shape);

/// The kinds of mask that mask_case knows; beside these "lowest_bias", with logits that float32
/// cannot resolve.
inline constexpr std::string_view kMaskNames[] = {
    "none",        "causal",      "window",      "key_lengths",  "keys",         "segments",
    "blocks",      "dense_bool",  "dense_float", "key_bias",     "low_bias",     "causal_and_keys",
    "masked_rows", "padded_keys", "padded_rows", "valid",        "block_causal", "recorded_blocks",
    "spans",       "last_window", "alibi_bias",  "relative_bias"};
/// Those that tell queries and keys alike, of which there are as many; "grid_bias" does, too.
inline constexpr std::string_view kSquareMaskNames[] = {"valid_pairs", "same_segment",
                                                        "causal_valid_pairs", "natten"};
MaskCase mask_case(std::string_view name, const Shape& shape);

/// Keys that lie so far below all others that they must not count: by a bias, or by their products
/// with the queries.
struct FarKeys {
  IndexRange keys;
  /// Added to the logits; a row that has no other keys keeps the bias all the same.
  std::optional<float> bias = {};
  /// False: the bias is [Nk]. True: it is [Nq, Nk], with `keys` turned by 37 from one row to the
  /// next.
  bool by_row = false;
  /// q·k with all rows but every third; 0: as the others.
  double product = 0;
};

struct AttentionCase {
  Shape shape;
  DType dtype = DType::f32;
  ScoreFunction score = ScoreFunction::softmax;
  std::string_view mask = "none";
  /// "none", "head" (one of kSinkLevels a head), "query" (one a batch item, head and query), "far"
  /// (so far above that no weight is left).
  std::string_view sinks = "none";
  /// Standard deviation of q and k.
  double amplitude = 1;
  double scale = 0;
  /// Head h has (1 + h/heads) times the scale.
  bool own_scales = false;
  unsigned seed = 1;
  /// Added to all of q and of k; to every other row of q only, where `mixed_rows`.
  float q_shift = 0, k_shift = 0;
  bool mixed_rows = false;
  /// Added to channel 0 of all q and k, as models have it: one large channel that all share.
  float common_channel = 0;
  /// Token grid of queries and keys, with text at `place`; extents of 0: none is known.
  std::array<int64_t, 3> grid{};
  int64_t text = 0;
  TextPlace place = TextPlace::none;
  std::vector<int64_t> text_valid = {};
  /// Channels of V, and the standard deviation of its values; without channels there is no V.
  int64_t value_width = 0;
  double value_amplitude = 1;
  /// A bias takes the place of `mask`.
  FarKeys far = {};
};

/// Sinks far below, among and far above the logits.
inline constexpr float kSinkLevels[] = {-200, -1, 0, 2.5f, 30, 60};
/// The sink of a row; −∞ where the case has none.
double sink_of(const AttentionCase& description, int64_t batch, int64_t head, int64_t query);

/// A problem with random q and k, the values that were stored, and its entries computed directly
/// in double.
class Oracle {
 public:
  explicit Oracle(const AttentionCase& description);

  const AttentionProblem& problem() const { return problem_; }
  const AttentionCase& description() const { return case_; }
  std::string text() const;
  /// Query rows of a head as stored, packed, in the problem's dtype.
  std::vector<std::byte> query_rows(int64_t batch, int64_t head,
                                    const std::vector<int64_t>& index) const;

  /// One row, everything over all keys.
  struct Row {
    std::vector<double> logits;  ///< −inf where masked
    std::vector<double> weights;
    double lse = 0;        ///< ln of the normaliser; −inf for a masked row
    double magnitude = 0;  ///< max over keys of scale·Σ|q||k| + |bias|
    /// How far a backend may be off the row's logits. Each of the d roundings of a product may be
    /// 2⁻²⁴ of Σ|q||k|, and so may those of scale and bias. That is the bound; it is allowed where
    /// the terms of sums have one sign. Of signs at random much less is left, and allowed.
    double logit_error = 0;
    bool one_sign = false;
  };
  Row row(int64_t batch, int64_t head, int64_t query) const;
  /// V as stored, for a query head.
  double value(int64_t batch, int64_t head, int64_t key, int64_t channel) const;

 private:
  AttentionCase case_;
  MaskCase mask_;
  std::vector<double> q_, k_;  ///< features of linear scores, else the values
  std::vector<float> v_;
  AttentionProblem problem_;
};

}  // namespace attnscope::test
