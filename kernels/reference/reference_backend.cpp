#include "kernels/reference/reference_backend.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/problem/signed_weights.h"
#include "core/reduce/panel_reduction.h"
#include "core/stream/number_range.h"
#include "core/stream/value_panels.h"
#include "kernels/common/emit_runs.h"
#include "kernels/common/host_cores.h"
#include "kernels/common/workspace.h"

namespace attnscope {
namespace {

/// φ of linear scores; other scores use q and k as they are.
double feature(ScoreFunction score, double x) {
  switch (score.form) {
    case ScoreFunction::Form::linear_elu1:
      return x > 0 ? x + 1 : std::exp(x);
    case ScoreFunction::Form::linear_relu:
      return std::max(x, 0.0);
    default:
      return x;
  }
}

/// Logits beyond this many octaves are not known to a thousandth of an octave.
constexpr double kMostOctaves = 0x1p40;

void store(Encoding encoding, double value, std::byte* destination) {
  const auto put = [&](auto stored) { std::memcpy(destination, &stored, sizeof(stored)); };
  switch (encoding) {
    case Encoding::f32:
      return put(static_cast<float>(value));
    case Encoding::f16:
      // Finite logits stay finite, since −inf says masked.
      if (std::isfinite(value)) value = std::clamp(value, -double{kF16Max}, double{kF16Max});
      return put(to_f16(static_cast<float>(value)));
    case Encoding::f16_scaled:
      return put(to_f16(static_cast<float>(value * double{kF16Scale})));
    case Encoding::u8_log2:
      return put(encode_u8_log2(value));
  }
}

class ReferenceHead : public BoundHead {
 public:
  ReferenceHead(const AttentionProblem& problem, int64_t batch, int64_t head)
      : problem_(problem),
        batch_(batch),
        head_(head),
        keys_(static_cast<size_t>(problem.num_keys() * problem.head_dim())) {
    const HeadTensor& k = problem.k();
    std::vector<std::byte> row(static_cast<size_t>(k.row_bytes()));
    for (int64_t key = 0; key < k.tokens(); ++key) {
      k.read_rows(batch, problem.kv_head(head), {key, key + 1}, row.data());
      to_floats(k.dtype(), row.data(), k.width(), keys_.data() + key * k.width());
    }
  }

  void row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                 std::span<std::byte> workspace) const override {
    Row row(problem_, workspace);
    for (size_t r = 0; r < queries.index.size(); ++r) {
      score_row(queries, r, {0, problem_.num_keys()}, row);
      norms[r] = norm(row, queries.index[r]);
    }
  }

  void emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
            Quantity quantity, const EmitTarget& target,
            std::span<std::byte> workspace) const override {
    if (quantity == Quantity::logits && is_linear(problem_.score())) {
      throw usage_error(problem_.name() + ": score " + score_name(problem_.score()) +
                        " has no logits");
    }
    Row row(problem_, workspace);
    for (size_t r = 0; r < queries.index.size(); ++r) {
      score_row(queries, r, keys, row);
      const RowNorm norm_of_row = norms.empty() ? RowNorm() : norms[r];
      const int64_t bytes = encoding_bytes(target.encoding);
      for_each_run(target, static_cast<int64_t>(r), {0, keys.size()}, [&](const EmitRun& run) {
        for (int64_t i = 0; i < run.count; ++i) {
          const double score = row.scores[run.col + i];
          const double entry = quantity == Quantity::logits ? score : weight(score, norm_of_row);
          store(target.encoding, entry, run.destination + i * bytes);
        }
      });
    }
  }

  void emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                  const EmitTarget& target, std::span<std::byte> workspace) const override {
    row_norms(queries, norms, workspace);
    emit(queries, norms, keys, Quantity::weights, target, workspace);
  }

  void reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
              std::span<std::byte> workspace) const override {
    require_one_sign(problem_, "what a map adds up to");
    Row row(problem_, workspace);
    for (size_t r = 0; r < queries.index.size(); ++r) {
      const int64_t i = first + static_cast<int64_t>(r);
      score_row(queries, r, {0, problem_.num_keys()}, row);
      RowNorm& norm_of_row = panel.row(i).norm;
      if (is_normalised(problem_.score())) norm_of_row = norm(row, queries.index[r]);
      for (int64_t j = 0; j < row.count; ++j) row.scores[j] = weight(row.scores[j], norm_of_row);
      reduce_row(row, i, panel);
      panel.advance(i + 1);
    }
  }

  void outputs(const QueryBlock& queries, std::span<RowNorm> norms, const ValuePanels& values,
               const OutputTarget& target, std::span<std::byte> workspace) const override {
    Row row(problem_, workspace);
    for (size_t r = 0; r < queries.index.size(); ++r) {
      score_row(queries, r, {0, problem_.num_keys()}, row);
      const RowNorm norm_of_row = norms.empty() ? RowNorm() : norm(row, queries.index[r]);
      if (!norms.empty()) norms[r] = norm_of_row;
      for (int64_t j = 0; j < row.count; ++j) row.scores[j] = weight(row.scores[j], norm_of_row);
      float* const out = target.data + static_cast<int64_t>(r) * target.row_stride;
      for (int64_t c = 0; c < values.width; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < row.count; ++j) {
          sum += row.scores[j] * static_cast<double>(values.at(j, c));
        }
        out[c] = static_cast<float>(sum);
      }
    }
  }

  static int64_t workspace_bytes(const AttentionProblem& problem) {
    Workspace counter;
    Row::take(problem, counter);
    return counter.bytes_needed();
  }

 private:
  /// One query and its scores with the keys at hand.
  struct Row {
    float* query = nullptr;    ///< [head_dim]
    float* bias = nullptr;     ///< [num_keys]
    double* scores = nullptr;  ///< [num_keys]
    int64_t count = 0;

    Row() = default;
    Row(const AttentionProblem& problem, std::span<std::byte> bytes) {
      Workspace workspace(bytes);
      *this = take(problem, workspace);
    }
    static Row take(const AttentionProblem& problem, Workspace& workspace) {
      Row row;
      row.query = workspace.take<float>(problem.head_dim());
      row.bias = workspace.take<float>(problem.num_keys());
      row.scores = workspace.take<double>(problem.num_keys());
      return row;
    }
  };

  /// The logits scale·q·k + bias, or for linear scores φ(q)·φ(k) (masked: 0), of one row.
  void score_row(const QueryBlock& queries, size_t r, IndexRange keys, Row& row) const {
    const int64_t d = problem_.head_dim();
    const bool linear = is_linear(problem_.score());
    to_floats(problem_.q().dtype(),
              queries.data + static_cast<int64_t>(r) * problem_.q().row_bytes(), d, row.query);
    problem_.mask().fill_bias(batch_, head_, queries.index.subspan(r, 1), keys, row.bias,
                              keys.size());
    row.count = keys.size();
    for (int64_t j = 0; j < row.count; ++j) {
      const float* key = keys_.data() + (keys.begin + j) * d;
      double dot = 0;
      for (int64_t i = 0; i < d; ++i) {
        dot += feature(problem_.score(), double{row.query[i]}) *
               feature(problem_.score(), double{key[i]});
      }
      if (linear) {
        row.scores[j] = std::isinf(row.bias[j]) ? 0 : dot;
      } else {
        row.scores[j] = capped(problem_.scale(head_) * dot) + double{row.bias[j]};
      }
    }
  }

  /// Of `row` over all keys, the query's.
  RowNorm norm(const Row& row, int64_t query) const {
    double sum = 0;
    if (is_linear(problem_.score())) {
      for (int64_t j = 0; j < row.count; ++j) sum += row.scores[j];
      return RowNorm::from_value(sum);
    }
    const double largest = *std::max_element(row.scores, row.scores + row.count);
    const double sink = problem_.sinks().logit(batch_, head_, query);
    if (largest == -std::numeric_limits<double>::infinity()) return RowNorm().with_logit(sink);
    const double octaves = std::floor(largest * std::numbers::log2e);
    // NaN too: sums of huge terms of both signs.
    if (!(std::fabs(octaves) <= kMostOctaves)) {
      throw Error(ErrorCode::value,
                  problem_.name() + ": head " + std::to_string(head_) + ", query " +
                      std::to_string(query) +
                      ": logits are too large for double to tell keys apart (limit 7.6e11)");
    }
    for (int64_t j = 0; j < row.count; ++j) {
      sum += std::exp2(row.scores[j] * std::numbers::log2e - octaves);
    }
    RowNorm norm = RowNorm::from_value(sum);
    norm.exponent += static_cast<int64_t>(octaves);
    return norm.with_logit(sink);
  }

  double capped(double logit) const {
    const double cap = problem_.score().cap;
    return cap == 0 ? logit : cap * std::tanh(logit / cap);
  }

  /// Row i of the panel, whose weights are in row.scores.
  void reduce_row(const Row& row, int64_t i, PanelReduction& panel) const {
    const double* weights = row.scores;
    const ReductionRequest& request = panel.request();
    RowReduction& result = panel.row(i);
    result.masked = std::all_of(weights, weights + row.count, [](double w) { return w == 0; });
    const auto largest = std::max_element(weights, weights + row.count);
    result.max_weight = *largest;
    if (!result.masked) result.max_key = largest - weights;
    // The entropy is of the mass on keys.
    const double mass =
        problem_.sinks().is_none() ? 1 : std::accumulate(weights, weights + row.count, 0.0);
    for (int64_t j = 0; j < row.count; ++j) {
      const double share = weights[j] / mass;
      if (request.entropy && share > 0) result.entropy -= share * std::log(share);
      if (float* sums = panel.column_sums(i)) {
        sums[j] += static_cast<float>(weights[j]);
        float& largest_of_key = panel.column_maxima(i)[j];
        largest_of_key = std::max(largest_of_key, static_cast<float>(weights[j]));
      }
      if (float* diagonal = panel.diagonal(i)) diagonal[j] += static_cast<float>(weights[j]);
    }
    for (const KeySegments::Span& span : panel.segments().spans()) {
      for (int64_t j = span.keys.begin; j < span.keys.end; ++j) {
        panel.masses(i)[span.segment] += weights[j];
      }
    }
    const RowEntries<double> entries{weights, 1};
    if (panel.wants_shares(i)) result.keys_for = panel.key_counter().count(entries, row.count);
    const auto place = problem_.query_tokens().coord(panel.row_index(i));
    if (!place) return;
    const TokenGrid& grid = problem_.key_tokens();
    if (request.places) result.places = place_masses(entries, grid, *place, request.band);
    if (!panel.wants_offsets()) return;
    for (int64_t key = grid.video_range().begin; key < grid.video_range().end; ++key) {
      const LatentCoord to = *grid.coord(key);
      panel.offset_line(*place, to.t, to.y)[to.x] += static_cast<float>(weights[key]);
    }
  }

  double weight(double score, const RowNorm& norm) const {
    if (problem_.score() == ScoreFunction::sigmoid) return 1 / (1 + std::exp(-score));
    if (is_signed(problem_.score())) return score;
    if (norm.sum == 0) return 0;
    const auto exponent = static_cast<double>(norm.exponent);
    if (is_linear(problem_.score())) return score * std::exp2(-exponent) / norm.sum;
    return std::exp2(score * std::numbers::log2e - exponent) / norm.sum;
  }

  const AttentionProblem& problem_;
  const int64_t batch_;
  const int64_t head_;
  std::vector<float> keys_;  ///< [num_keys, head_dim], widened exactly
};

class ReferenceBackend : public TileBackend, public CountsSubnormals {
 public:
  explicit ReferenceBackend(int threads) : workers_(threads > 0 ? threads : usable_cores()) {}

  std::string name() const override { return "reference"; }
  std::string description() const override {
    return "reference (double precision, " + std::to_string(workers_) + " threads)";
  }
  int workers() const override { return workers_; }

  BindCost bind_cost(const AttentionProblem& problem) const override {
    return {problem.num_keys() * problem.head_dim() * 4, int64_t{1} << 20};
  }
  int64_t workspace_bytes(const AttentionProblem& problem, int64_t, int64_t, bool) const override {
    return ReferenceHead::workspace_bytes(problem);
  }
  int64_t outputs_workspace_bytes(const AttentionProblem& problem, int64_t) const override {
    return ReferenceHead::workspace_bytes(problem);
  }
  std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                  int64_t head) const override {
    return std::make_unique<ReferenceHead>(problem, batch, head);
  }

 private:
  const int workers_;
};

}  // namespace

std::unique_ptr<TileBackend> make_reference_backend(int threads) {
  return std::make_unique<ReferenceBackend>(threads);
}

}  // namespace attnscope
