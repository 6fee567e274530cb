#include "tests/support/backend/outputs_by_weights.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope::test {
namespace {

constexpr int64_t kBlockKeys = 256;
constexpr int64_t kAlignment = 64;

int64_t weights_bytes(int64_t rows) { return rows * kBlockKeys * 4; }
int64_t totals_bytes(int64_t rows, int64_t width) {
  return round_up(rows * width * 8 + width * 4, kAlignment);
}

}  // namespace

int64_t outputs_by_weights_bytes(const TileBackend& backend, const AttentionProblem& problem,
                                 int64_t rows) {
  return kAlignment + weights_bytes(rows) + totals_bytes(rows, problem.v().width()) +
         backend.workspace_bytes(problem, rows, kBlockKeys, false);
}

void outputs_by_weights(const BoundHead& head, const QueryBlock& queries, std::span<RowNorm> norms,
                        const ValuePanels& values, const OutputTarget& target,
                        std::span<std::byte> workspace) {
  const auto rows = static_cast<int64_t>(queries.index.size());
  void* begin = workspace.data();
  size_t space = workspace.size();
  std::align(kAlignment, 1, begin, space);
  auto* const weights = static_cast<float*>(begin);
  auto* const totals =
      reinterpret_cast<double*>(static_cast<std::byte*>(begin) + weights_bytes(rows));
  auto* const sums = reinterpret_cast<float*>(totals + rows * values.width);
  const auto rest =
      std::span(static_cast<std::byte*>(begin), space)
          .subspan(static_cast<size_t>(weights_bytes(rows) + totals_bytes(rows, values.width)));
  std::fill_n(totals, rows * values.width, 0.0);
  if (!norms.empty()) head.row_norms(queries, norms, rest);
  for (int64_t first = 0; first < values.keys; first += kBlockKeys) {
    const IndexRange keys{first, std::min(first + kBlockKeys, values.keys)};
    std::byte* const block = reinterpret_cast<std::byte*>(weights);
    head.emit(queries, norms, keys, Quantity::weights,
              {{&block, 1}, kBlockKeys, kBlockKeys, Encoding::f32}, rest);
    for (int64_t r = 0; r < rows; ++r) {
      std::fill_n(sums, values.width, 0.0f);
      for (int64_t j = 0; j < keys.size(); ++j) {
        const float weight = weights[r * kBlockKeys + j];
        if (weight == 0) continue;
        for (int64_t c = 0; c < values.width; ++c) {
          sums[c] += weight * values.at(first + j, c);
        }
      }
      for (int64_t c = 0; c < values.width; ++c) {
        totals[r * values.width + c] += static_cast<double>(sums[c]);
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < values.width; ++c) {
      const auto output = static_cast<float>(totals[r * values.width + c]);
      if (!std::isfinite(output)) {
        throw Error(ErrorCode::value, "query " +
                                          std::to_string(queries.index[static_cast<size_t>(r)]) +
                                          ", channel " + std::to_string(c) +
                                          ": weights times values are more than float32 holds");
      }
      target.data[r * target.row_stride + c] = output;
    }
  }
}

}  // namespace attnscope::test
