#include "kernels/cuda/host/known_answers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/dtype.h"
#include "core/reduce/panel_reduction.h"
#include "core/stream/device_facet.h"
#include "core/stream/value_panels.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/cuda/host/unusable.h"

namespace attnscope {
namespace {

HeadTensor random_tensor(DType dtype, int64_t tokens, int64_t width, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < tokens * width; ++i) {
    const float value = normal(random);
    const auto append = [&](auto stored) {
      const auto* from = reinterpret_cast<const std::byte*>(&stored);
      bytes.insert(bytes.end(), from, from + sizeof(stored));
    };
    if (dtype == DType::f32) append(value);
    if (dtype == DType::f16) append(to_f16(value));
    if (dtype == DType::bf16) append(to_bf16(value));
  }
  const std::vector<int64_t> shape{tokens, width};
  return HeadTensor(std::make_shared<MemoryTensor>("random", dtype, shape, std::move(bytes)),
                    Layout::sd);
}

AttentionProblem make_problem(DType dtype, int64_t queries, int64_t keys, int64_t width,
                              Mask mask) {
  constexpr int64_t kOutputs = kValueChannels + 8;
  AttentionProblem::Parts parts;
  parts.q = random_tensor(dtype, queries, width, 1);
  parts.k = random_tensor(dtype, keys, width, 2);
  parts.v = random_tensor(dtype, keys, kOutputs, 3);
  parts.mask = std::move(mask);
  parts.id.kind = CallKind::cross;
  parts.name = "the device's first maps";
  return AttentionProblem::make(std::move(parts));
}

/// More than a tile of rows, than one segment of keys and than one chunk of channels, all of them
/// ragged.
AttentionProblem ragged_problem(DType dtype) {
  return make_problem(dtype, 140, 1100, 72, Mask::window(700));
}

/// Less than a tile of rows, and one ragged chunk of channels.
AttentionProblem short_problem(DType dtype) { return make_problem(dtype, 100, 300, 40, {}); }

/// A whole head, bound.
struct KnownHead {
  KnownHead(const TileBackend& of, const AttentionProblem& known)
      : backend(of),
        problem(known),
        head(of.bind(known, 0, 0)),
        rows(static_cast<size_t>(known.num_queries() * known.q().row_bytes())),
        index(static_cast<size_t>(known.num_queries())),
        norms(index.size()),
        workspace(static_cast<size_t>(
            std::max(of.workspace_bytes(known, known.num_queries(), known.num_keys(), true),
                     of.outputs_workspace_bytes(known, known.num_queries())))) {
    known.q().read_rows(0, 0, {0, known.num_queries()}, rows.data());
    std::iota(index.begin(), index.end(), 0);
  }
  QueryBlock queries() const { return {rows.data(), index}; }

  /// And the norms of the rows.
  std::vector<float> weights() {
    const int64_t keys = problem.num_keys();
    std::vector<float> all(index.size() * static_cast<size_t>(keys));
    std::byte* const block = reinterpret_cast<std::byte*>(all.data());
    head->emit_panel(queries(), norms, {0, keys}, {{&block, 1}, keys, keys, Encoding::f32},
                     workspace);
    return all;
  }

  const TileBackend& backend;
  const AttentionProblem& problem;
  const std::unique_ptr<BoundHead> head;
  std::vector<std::byte> rows;
  std::vector<int64_t> index;
  std::vector<RowNorm> norms;
  std::vector<std::byte> workspace;
};

/// Holds numbers against expected ones.
class Comparison {
 public:
  Comparison(const TileBackend& backend, DType dtype, bool tf32)
      : backend_(backend), dtype_(dtype), relative_(tf32 && dtype == DType::f32 ? 2e-2 : 2e-4) {}

  double relative() const { return relative_; }

  /// `row_length` 0: numbers are counted, else told by row and column.
  template <typename T>
  void check(const char* what, const std::vector<T>& got, const std::vector<T>& expected,
             double absolute, int64_t row_length = 0) const {
    for (size_t i = 0; i < got.size(); ++i) {
      const auto is = static_cast<double>(got[i]), wanted = static_cast<double>(expected[i]);
      if (std::fabs(is - wanted) <= absolute + relative_ * std::fabs(wanted)) continue;
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

void check_entries(KnownHead got, KnownHead expected, const Comparison& comparison) {
  const int64_t keys = got.problem.num_keys();
  const std::vector<float> weights = got.weights();
  comparison.check("weight", weights, expected.weights(), 1e-3 / static_cast<double>(keys), keys);
  // By themselves rows are summed by other launches.
  got.head->row_norms(got.queries(), got.norms, got.workspace);
  const auto lse_of = [](const std::vector<RowNorm>& norms) {
    std::vector<double> lse;
    for (const RowNorm& norm : norms) lse.push_back(norm.lse());
    return lse;
  };
  comparison.check("LSE", lse_of(got.norms), lse_of(expected.norms), comparison.relative());
}

/// What a head's rows add up to.
struct KnownSums {
  std::vector<double> entropies, masses, columns, diagonals, block_maxima, block_sums;
};

KnownSums sums_of(KnownHead head) {
  const AttentionProblem& problem = head.problem;
  const int64_t rows = problem.num_queries(), keys = problem.num_keys();
  const HeadTask task{&problem, 0, 0, {0, rows}, {}, {0, keys}};
  ReductionRequest request;
  request.rows = request.entropy = request.columns = request.diagonals = true;
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
    sums.entropies.push_back(panel.row(row).entropy);
    const double* const masses = panel.masses(row);
    sums.masses.insert(sums.masses.end(), masses, masses + panel.segments().count());
  }
  std::vector<int64_t> columns(static_cast<size_t>(keys));
  std::vector<int64_t> diagonals(static_cast<size_t>(rows + keys - 1));
  panel.add_to(columns, diagonals, {});
  const auto scaled = [&](const std::vector<int64_t>& values) {
    std::vector<double> result;
    for (const int64_t value : values) {
      result.push_back(static_cast<double>(value) / panel.fixed_scale());
    }
    return result;
  };
  sums.columns = scaled(columns);
  sums.diagonals = scaled(diagonals);
  return sums;
}

void check_reductions(const KnownSums& got, const KnownSums& expected,
                      const Comparison& comparison) {
  constexpr double kAbsolute = 1e-6;
  comparison.check("the entropy of row", got.entropies, expected.entropies, kAbsolute);
  comparison.check("segment mass", got.masses, expected.masses, kAbsolute);
  comparison.check("the mass of column", got.columns, expected.columns, kAbsolute);
  comparison.check("the mass of diagonal", got.diagonals, expected.diagonals, kAbsolute);
  comparison.check("the largest weight of block", got.block_maxima, expected.block_maxima,
                   kAbsolute);
  comparison.check("the mass of block", got.block_sums, expected.block_sums, kAbsolute);
}

void check_texels(KnownHead got, KnownHead trusted, const Comparison& comparison) {
  const DeviceFacet* const device = got.backend.device();
  const TexelPooler* const pooler = device == nullptr ? nullptr : device->pooler(*got.head);
  if (pooler == nullptr) return;
  constexpr int kLevel = 2;
  constexpr int64_t kSide = int64_t{1} << kLevel;
  const int64_t rows = got.problem.num_queries(), keys = got.problem.num_keys();
  const int64_t cols = ceil_div(keys, kSide);
  const auto texels = static_cast<size_t>(ceil_div(rows, kSide) * cols);
  std::vector<float> max(texels), mean(texels), expected_max(texels), expected_mean(texels);
  got.head->row_norms(got.queries(), got.norms, got.workspace);
  // Without memory nothing is computed, rightly or wrongly.
  if (!pooler->pool(got.queries(), got.norms, {Quantity::weights, kLevel, {0, keys}},
                    {max.data(), mean.data(), cols})) {
    return;
  }
  const std::vector<float> weights = trusted.weights();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t height = std::min(kSide, rows - row / kSide * kSide);
    for (int64_t key = 0; key < keys; ++key) {
      const auto at = static_cast<size_t>(row / kSide * cols + key / kSide);
      const float weight = weights[static_cast<size_t>(row * keys + key)];
      const int64_t area = height * std::min(kSide, keys - key / kSide * kSide);
      expected_max[at] = std::max(expected_max[at], weight);
      expected_mean[at] += weight / static_cast<float>(area);
    }
  }
  const double absolute = 1e-3 / static_cast<double>(keys);
  comparison.check("the largest weight of texel", max, expected_max, absolute, cols);
  comparison.check("the mean weight of texel", mean, expected_mean, absolute, cols);
}

std::vector<float> outputs_of(KnownHead head) {
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
  const AttentionProblem problem = ragged_problem(dtype);
  switch (work) {
    case KnownWork::entries: {
      check_entries({backend, problem}, {trusted, problem}, comparison);
      const AttentionProblem narrow = short_problem(dtype);
      return check_entries({backend, narrow}, {trusted, narrow}, comparison);
    }
    case KnownWork::reductions:
      return check_reductions(sums_of({backend, problem}), sums_of({trusted, problem}), comparison);
    case KnownWork::texels:
      return check_texels({backend, problem}, {trusted, problem}, comparison);
    case KnownWork::outputs:
      // Of a number of weights whose signs differ: what they are rounded to counts.
      return comparison.check("output", outputs_of({backend, problem}),
                              outputs_of({trusted, problem}), comparison.relative(),
                              problem.v().width());
  }
}

}  // namespace attnscope
