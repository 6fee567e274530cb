#include "kernels/cuda/host/trust/known_answers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/dtype.h"
#include "core/reduce/panel_reduction.h"
#include "core/stream/device_facet.h"
#include "core/stream/value_panels.h"
#include "core/stream/weight_code.h"
#include "kernels/cuda/host/devices/unusable.h"
#include "kernels/cuda/host/trust/known_maps.h"
#include "kernels/cuda/kernel/texel_args.h"

namespace attnscope {
namespace {

constexpr int64_t kTexelLevels = cuda::kMostTexelLevel + 1;

/// A whole head, bound.
struct KnownHead {
  KnownHead(const TileBackend& of, const AttentionProblem& known)
      : backend(of),
        problem(known),
        head(of.bind(known, 0, 0)),
        rows(static_cast<size_t>(known.num_queries() * known.q().row_bytes())),
        index(static_cast<size_t>(known.num_queries())),
        norms(is_normalised(known.score()) ? index.size() : 0),
        workspace(static_cast<size_t>(workspace_bytes())) {
    known.q().read_rows(0, 0, {0, known.num_queries()}, rows.data());
    std::iota(index.begin(), index.end(), 0);
  }
  QueryBlock queries() const { return {rows.data(), index}; }
  int64_t keys() const { return problem.num_keys(); }

  /// And the norms of the rows, where they have some.
  std::vector<float> weights() {
    if (norms.empty()) return entries<float>(Quantity::weights, Encoding::f32);
    std::vector<float> all(index.size() * static_cast<size_t>(keys()));
    std::byte* const block = reinterpret_cast<std::byte*>(all.data());
    head->emit_panel(queries(), norms, {0, keys()}, target(&block, Encoding::f32), workspace);
    return all;
  }
  /// Weights are of norms that are there already. `Stored` is the type of an encoded entry.
  template <typename Stored>
  std::vector<Stored> entries(Quantity quantity, Encoding encoding) {
    std::vector<Stored> all(index.size() * static_cast<size_t>(keys()));
    std::byte* const block = reinterpret_cast<std::byte*>(all.data());
    std::span<const RowNorm> scaled_by;
    if (quantity == Quantity::weights) scaled_by = norms;
    head->emit(queries(), scaled_by, {0, keys()}, quantity, target(&block, encoding), workspace);
    return all;
  }
  void find_norms() { head->row_norms(queries(), norms, workspace); }

  const TileBackend& backend;
  const AttentionProblem& problem;
  const std::unique_ptr<BoundHead> head;
  std::vector<std::byte> rows;
  std::vector<int64_t> index;
  std::vector<RowNorm> norms;
  std::vector<std::byte> workspace;

 private:
  EmitTarget target(std::byte* const* block, Encoding encoding) const {
    return {{block, 1}, keys(), keys(), encoding};
  }
  int64_t workspace_bytes() const {
    const int64_t queries = problem.num_queries();
    return std::max({backend.workspace_bytes(problem, queries, 0, false),
                     backend.workspace_bytes(problem, queries, keys(), false),
                     backend.workspace_bytes(problem, queries, keys(), true),
                     problem.v() ? backend.outputs_workspace_bytes(problem, queries) : 0});
  }
};

/// How far a number may be from the expected one.
struct Tolerance {
  double absolute = 0, relative = 0;
};

/// Holds numbers against expected ones.
class Comparison {
 public:
  Comparison(const TileBackend& backend, DType dtype, bool tf32)
      : backend_(backend), dtype_(dtype), relative_(tf32 && dtype == DType::f32 ? 2e-2 : 2e-4) {}

  double relative() const { return relative_; }
  /// Of weights of rows with so many keys.
  Tolerance of_weights(int64_t keys) const { return {1e-3 / static_cast<double>(keys), relative_}; }

  /// `row_length` 0: numbers are counted, else told by row and column.
  template <typename T>
  void check(const char* what, const std::vector<T>& got, const std::vector<T>& expected,
             Tolerance tolerance, int64_t row_length = 0) const {
    for (size_t i = 0; i < got.size(); ++i) {
      const auto is = static_cast<double>(got[i]), wanted = static_cast<double>(expected[i]);
      // A masked entry is −inf, or 0, in both.
      if (is == wanted) continue;
      if (std::fabs(is - wanted) <= tolerance.absolute + tolerance.relative * std::fabs(wanted)) {
        continue;
      }
      const auto at = static_cast<int64_t>(i);
      const std::string place = row_length == 0 ? std::to_string(at)
                                                : "(" + std::to_string(at / row_length) + ", " +
                                                      std::to_string(at % row_length) + ")";
      throw cuda::Unusable(backend_.description() + ": computes a map of " +
                           std::string(dtype_name(dtype_)) + " tensors wrongly: " + what + " " +
                           place + " is " + std::to_string(is) + ", expected " +
                           std::to_string(wanted));
    }
  }

 private:
  const TileBackend& backend_;
  const DType dtype_;
  const double relative_;
};

std::vector<double> lse_of(const std::vector<RowNorm>& norms) {
  std::vector<double> lse;
  for (const RowNorm& norm : norms) lse.push_back(norm.lse());
  return lse;
}

void check_weights(KnownHead& got, KnownHead& expected, const Comparison& comparison) {
  comparison.check("weight", got.weights(), expected.weights(), comparison.of_weights(got.keys()),
                   got.keys());
  if (got.norms.empty()) return;
  // By themselves rows are summed by other launches.
  got.find_norms();
  comparison.check("LSE", lse_of(got.norms), lse_of(expected.norms),
                   {comparison.relative(), comparison.relative()});
}

/// Of the forms in which entries are stored, after their weights were checked.
void check_encodings(KnownHead& got, KnownHead& expected, const Comparison& comparison) {
  constexpr double kHalfUnit = 0x1p-11;
  constexpr double kCodeStep = 0.07;  // a step of the code and what rounding makes another of
  const int64_t keys = got.keys();
  const std::vector<float> weights = expected.weights();
  std::vector<double> halves, codes;
  for (const f16 half : got.entries<f16>(Quantity::weights, Encoding::f16_scaled)) {
    halves.push_back(static_cast<double>(to_float(half) / kF16Scale));
  }
  Tolerance tolerance = comparison.of_weights(keys);
  tolerance.relative += kHalfUnit;
  const std::vector<double> wanted(weights.begin(), weights.end());
  comparison.check("half-float weight", halves, wanted, tolerance, keys);
  for (const uint8_t code : got.entries<uint8_t>(Quantity::weights, Encoding::u8_log2)) {
    codes.push_back(decode_u8_log2(code));
  }
  comparison.check("coded weight", codes, wanted, {2e-7, kCodeStep}, keys);
}

void check_logits(KnownHead& got, KnownHead& expected, const Comparison& comparison) {
  const int64_t keys = got.keys();
  const std::vector<float> wanted = expected.entries<float>(Quantity::logits, Encoding::f32);
  // Logits are sums of products of about 1.
  const Tolerance tolerance{4 * comparison.relative(), comparison.relative() + 0x1p-11};
  comparison.check("logit", got.entries<float>(Quantity::logits, Encoding::f32), wanted, tolerance,
                   keys);
  std::vector<float> halves;
  for (const f16 half : got.entries<f16>(Quantity::logits, Encoding::f16)) {
    halves.push_back(to_float(half));
  }
  comparison.check("half-float logit", halves, wanted, tolerance, keys);
}

/// The heads of one map that is computed by both.
struct KnownPair {
  KnownPair(const TileBackend& backend, const TileBackend& trusted, const AttentionProblem& known)
      : problem(known), got(backend, problem), expected(trusted, problem) {}

  const AttentionProblem problem;
  KnownHead got, expected;
};

void check_entries(const TileBackend& backend, const TileBackend& trusted, DType dtype,
                   const Comparison& comparison) {
  const auto weights_of = [&](const AttentionProblem& problem) {
    KnownPair pair(backend, trusted, problem);
    check_weights(pair.got, pair.expected, comparison);
  };
  weights_of(cuda::ragged_map(dtype));
  weights_of(cuda::narrow_map(dtype));
  weights_of(cuda::biased_map(dtype, ScoreFunction::sigmoid));
  // Features are float32, whatever they are made of.
  if (dtype == DType::f32) weights_of(cuda::linear_map(dtype));
  KnownPair loud(backend, trusted, cuda::loud_map(dtype));
  check_weights(loud.got, loud.expected, comparison);
  check_encodings(loud.got, loud.expected, comparison);
  KnownPair biased(backend, trusted, cuda::biased_map(dtype, ScoreFunction::softmax));
  check_weights(biased.got, biased.expected, comparison);
  check_logits(biased.got, biased.expected, comparison);
}

/// The reductions of a head's rows.
struct KnownSums {
  std::vector<double> entropies, largest, masses, places, columns, diagonals, offsets;
  std::vector<double> block_maxima, block_sums;
  std::vector<int64_t> largest_keys;
};

void keep_row(const RowReduction& row, KnownSums& sums) {
  sums.entropies.push_back(row.entropy);
  sums.largest.push_back(row.max_weight);
  sums.largest_keys.push_back(row.max_key);
  sums.places.insert(sums.places.end(),
                     {row.places.same_position, row.places.band, row.places.local});
}

KnownSums sums_of(KnownHead& head) {
  const AttentionProblem& problem = head.problem;
  const int64_t rows = problem.num_queries(), keys = problem.num_keys();
  const HeadTask task{&problem, 0, 0, {0, rows}, {}, {0, keys}};
  ReductionRequest request;
  request.rows = request.entropy = request.max_keys = request.columns = request.diagonals = true;
  request.places = request.offsets = problem.same_tokens() && problem.key_tokens().has_grid();
  request.band = 1;
  request.block = 48;
  KnownSums sums;
  PanelReduction panel;
  panel.begin(
      task, request, {0, rows}, head.index,
      [&](int64_t, std::span<const float> max, std::span<const double> sum) {
        sums.block_maxima.insert(sums.block_maxima.end(), max.begin(), max.end());
        sums.block_sums.insert(sums.block_sums.end(), sum.begin(), sum.end());
      },
      1);
  head.head->reduce(head.queries(), 0, panel, head.workspace);
  for (int64_t row = 0; row < rows; ++row) {
    keep_row(panel.row(row), sums);
    const double* const masses = panel.masses(row);
    sums.masses.insert(sums.masses.end(), masses, masses + panel.segments().count());
  }
  const TokenGrid& grid = problem.key_tokens();
  std::vector<int64_t> columns(static_cast<size_t>(keys));
  std::vector<int64_t> diagonals(static_cast<size_t>(rows + keys - 1));
  std::vector<int64_t> offsets(static_cast<size_t>(
      request.offsets ? (2 * grid.frames() - 1) * (2 * grid.height() - 1) * (2 * grid.width() - 1)
                      : 0));
  panel.add_to(columns, diagonals, offsets);
  const auto scaled = [&](const std::vector<int64_t>& values) {
    std::vector<double> result;
    for (const int64_t value : values) {
      result.push_back(static_cast<double>(value) / panel.fixed_scale());
    }
    return result;
  };
  sums.columns = scaled(columns);
  sums.diagonals = scaled(diagonals);
  sums.offsets = scaled(offsets);
  return sums;
}

void check_reductions(KnownPair pair, const Comparison& comparison) {
  const KnownSums got = sums_of(pair.got), expected = sums_of(pair.expected);
  const Tolerance tolerance{1e-6, comparison.relative()};
  // A difference of two numbers, each as large as the row's exponents are: nearly 0 for rows with
  // one key.
  comparison.check("the entropy of row", got.entropies, expected.entropies,
                   {1e-4, comparison.relative()});
  comparison.check("the largest weight of row", got.largest, expected.largest, tolerance);
  comparison.check("segment mass", got.masses, expected.masses, tolerance);
  comparison.check("mass around its own place", got.places, expected.places, tolerance);
  comparison.check("the mass of column", got.columns, expected.columns, tolerance);
  comparison.check("the mass of diagonal", got.diagonals, expected.diagonals, tolerance);
  comparison.check("the mass of offset", got.offsets, expected.offsets, tolerance);
  comparison.check("the largest weight of block", got.block_maxima, expected.block_maxima,
                   tolerance);
  comparison.check("the mass of block", got.block_sums, expected.block_sums, tolerance);
  // Of keys with nearly the same weight either may be the largest.
  const std::vector<float> weights = pair.expected.weights();
  std::vector<double> there;
  for (size_t row = 0; row < got.largest_keys.size(); ++row) {
    const int64_t key = got.largest_keys[row];
    const bool is_key = key >= 0 && key < pair.got.keys();
    const size_t at = row * static_cast<size_t>(pair.got.keys()) + static_cast<size_t>(key);
    there.push_back(is_key ? static_cast<double>(weights[at]) : 0);
  }
  comparison.check("the weight of the largest key of row", there, expected.largest, tolerance);
}

/// The texels of one level, from entries that are trusted.
struct KnownTexels {
  KnownTexels(const KnownHead& head, const std::vector<float>& entries, Quantity quantity,
              int level)
      : side(int64_t{1} << level),
        cols(ceil_div(head.keys(), side)),
        max(static_cast<size_t>(ceil_div(head.problem.num_queries(), side) * cols),
            quantity == Quantity::logits ? -std::numeric_limits<float>::infinity() : 0.0f),
        mean(max.size()) {
    std::vector<int> count(max.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / head.keys();
      const int64_t key = static_cast<int64_t>(i) % head.keys();
      const auto at = static_cast<size_t>(row / side * cols + key / side);
      if (std::isinf(entries[i])) continue;
      max[at] = std::max(max[at], entries[i]);
      mean[at] += entries[i];
      ++count[at];
    }
    for (size_t at = 0; at < mean.size(); ++at) {
      mean[at] = count[at] > 0 ? mean[at] / static_cast<float>(count[at]) : max[at];
    }
  }

  const int64_t side, cols;
  std::vector<float> max, mean;
};

void check_texels(KnownPair pair, Quantity quantity, IndexRange levels,
                  const Comparison& comparison) {
  KnownHead& head = pair.got;
  const DeviceFacet* const device = head.backend.device();
  const TexelPooler* const pooler = device == nullptr ? nullptr : device->pooler(*head.head);
  if (pooler == nullptr) return;
  const bool logits = quantity == Quantity::logits;
  if (!logits) head.find_norms();
  const std::vector<float> entries =
      logits ? pair.expected.entries<float>(quantity, Encoding::f32) : pair.expected.weights();
  Tolerance tolerance = comparison.of_weights(head.keys());
  if (logits) tolerance.absolute = 4 * comparison.relative();
  for (int64_t level = levels.begin; level < levels.end; ++level) {
    const KnownTexels expected(head, entries, quantity, static_cast<int>(level));
    std::vector<float> max(expected.max.size()), mean(max.size());
    // Without memory nothing is computed, rightly or wrongly.
    if (!pooler->pool(head.queries(), logits ? std::span<const RowNorm>() : head.norms,
                      {quantity, static_cast<int>(level), {0, head.keys()}},
                      {max.data(), mean.data(), expected.cols})) {
      return;
    }
    comparison.check("the largest entry of texel", max, expected.max, tolerance, expected.cols);
    comparison.check("the mean entry of texel", mean, expected.mean, tolerance, expected.cols);
  }
}

std::vector<float> outputs_of(KnownHead& head) {
  const int64_t width = head.problem.v().width();
  std::vector<float> outputs(head.index.size() * static_cast<size_t>(width));
  const BoundValues values(head.problem, 0, 0);
  head.head->outputs(head.queries(), head.norms, values.panels(), {outputs.data(), width},
                     head.workspace);
  return outputs;
}

}  // namespace

const char* known_work_name(KnownWork work) {
  switch (work) {
    case KnownWork::entries:
      return "entries";
    case KnownWork::reductions:
      return "reductions";
    case KnownWork::texels:
      return "texels";
    case KnownWork::outputs:
      return "outputs";
  }
  return "";
}

void check_known_answers(const TileBackend& backend, const TileBackend& trusted, DType dtype,
                         KnownWork work, bool tf32) {
  const Comparison comparison(backend, dtype, tf32);
  const auto pair_of = [&](const AttentionProblem& problem) {
    return KnownPair(backend, trusted, problem);
  };
  switch (work) {
    case KnownWork::entries:
      return check_entries(backend, trusted, dtype, comparison);
    case KnownWork::reductions:
      check_reductions(pair_of(cuda::ragged_map(dtype)), comparison);
      return check_reductions(pair_of(cuda::video_map(dtype)), comparison);
    case KnownWork::texels:
      check_texels(pair_of(cuda::ragged_map(dtype)), Quantity::weights, {2, 3}, comparison);
      check_texels(pair_of(cuda::narrow_map(dtype)), Quantity::weights, {1, kTexelLevels},
                   comparison);
      for (const int64_t level : {0, 3}) {
        check_texels(pair_of(cuda::biased_map(dtype, ScoreFunction::softmax)), Quantity::logits,
                     {level, level + 1}, comparison);
      }
      return;
    case KnownWork::outputs: {
      KnownPair pair = pair_of(cuda::ragged_map(dtype));
      // Of a number of weights whose signs differ: what they are rounded to counts.
      return comparison.check("output", outputs_of(pair.got), outputs_of(pair.expected),
                              {comparison.relative(), comparison.relative()},
                              pair.problem.v().width());
    }
  }
}

}  // namespace attnscope
