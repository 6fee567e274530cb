#include "core/stream/number_range.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr double kLeastNormal = std::numeric_limits<float>::min();
/// Additions of a channel's products, at most (three parts of float32 on the tile unit), that may
/// each lose a result below kLeastNormal.
constexpr double kProducts = 8;
/// Parts of a small number that may be lost.
constexpr double kParts = 3;
/// Below this factor its own lower half is subnormal.
constexpr double kSmallScale = 0x1p-100;

/// The most that a logit may lose without a weight being off by more than its tolerance; less of
/// products of features, whose rows have to add up to more than the kernels' smallest sum, and of
/// weights that are logits.
double tolerated(ScoreFunction score) {
  if (is_linear(score)) return 0x1p-97;
  return is_signed(score) ? 0x1p-40 : 0x1p-17;
}

/// The largest magnitude in some rows of a head; small: some are below kSmallNumber, but not 0.
struct Numbers {
  double largest = 0;
  bool small = false;
};

Numbers numbers_of(const HeadTensor& tensor, int64_t batch, int64_t head,
                   std::span<const IndexRange> ranges, const std::stop_token& stop) {
  constexpr int64_t kPieceValues = int64_t{64} << 10;
  const int64_t width = tensor.width();
  const int64_t most_rows = std::max<int64_t>(kPieceValues / width, 1);
  std::vector<std::byte> bytes(static_cast<size_t>(most_rows * tensor.row_bytes()));
  std::vector<float> values(static_cast<size_t>(most_rows * width));
  Numbers found;
  for (const IndexRange rows : ranges) {
    for (int64_t begin = rows.begin; begin < rows.end; begin += most_rows) {
      if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
      const IndexRange piece{begin, std::min(begin + most_rows, rows.end)};
      tensor.read_rows(batch, head, piece, bytes.data());
      to_floats(tensor.dtype(), bytes.data(), piece.size() * width, values.data());
      for (int64_t i = 0; i < piece.size() * width; ++i) {
        const double size = std::fabs(double{values[static_cast<size_t>(i)]});
        found.largest = std::max(found.largest, size);
        found.small = found.small || (size > 0 && size < kSmallNumber);
      }
    }
  }
  return found;
}

std::vector<IndexRange> rows_of(const HeadTask& task) {
  std::vector<IndexRange> ranges;
  for (int64_t i = 0; i < task.num_rows(); ++i) {
    const int64_t row = task.row_at(i);
    if (ranges.empty() || ranges.back().end != row) ranges.push_back({row, row});
    ++ranges.back().end;
  }
  return ranges;
}

[[noreturn]] void refuse(const HeadTask& task, const TileBackend& backend) {
  throw Error(ErrorCode::value,
              task.problem->name() + ": batch " + std::to_string(task.batch) + ", head " +
                  std::to_string(task.head) +
                  ": numbers or products of q and k are subnormal (below 1.2e-38), which backend " +
                  backend.name() +
                  " takes for 0, and the scale or the other numbers are so large that this would "
                  "change weights (--backend reference computes them)");
}

void check(const HeadTask& task, TaskMagnitudes magnitudes, const TileBackend& backend,
           const std::stop_token& stop) {
  const AttentionProblem& problem = *task.problem;
  const double most = tolerated(problem.score());
  if (lost_to_subnormals(problem, task.head, magnitudes, true, true) <= most) return;
  const Numbers q = numbers_of(problem.q(), task.batch, task.head, rows_of(task), stop);
  magnitudes.q = q.largest;
  if (lost_to_subnormals(problem, task.head, magnitudes, q.small, true) <= most) return;
  const IndexRange keys{0, problem.num_keys()};
  const Numbers k =
      numbers_of(problem.k(), task.batch, problem.kv_head(task.head), {&keys, 1}, stop);
  magnitudes.k = k.largest;
  if (lost_to_subnormals(problem, task.head, magnitudes, q.small, k.small) > most)
    refuse(task, backend);
}

}  // namespace

double lost_to_subnormals(const AttentionProblem& problem, int64_t head,
                          const TaskMagnitudes& magnitudes, bool small_q, bool small_k) {
  const auto channels = static_cast<double>(problem.head_dim());
  // A factor of 0 loses nothing, also beside one that nobody looked at (infinity).
  const auto times = [](double a, double b) { return a == 0 || b == 0 ? 0 : a * b; };
  // Features of elu(x) + 1 are not small where numbers are. Sums of products that were lost are
  // told apart from those that are 0 by whoever adds them up.
  if (problem.score() == ScoreFunction::linear_elu1) return 0;
  double lost = is_linear(problem.score()) ? 0 : kProducts;
  if (small_q) lost += kParts * magnitudes.k;
  if (small_k) lost += kParts * magnitudes.q;
  lost *= channels * kLeastNormal;
  if (is_linear(problem.score())) return lost;
  lost = times(problem.scale(head), lost);
  if (problem.scale(head) * std::numbers::log2e < kSmallScale) {
    lost += 2 * kLeastNormal * channels * times(magnitudes.q, magnitudes.k);
  }
  return lost;
}

void check_subnormals(std::span<const HeadTask> tasks, std::span<const TaskMagnitudes> magnitudes,
                      const TileBackend& backend, const std::stop_token& stop) {
  assert(tasks.size() == magnitudes.size());
  if (dynamic_cast<const CountsSubnormals*>(&backend) != nullptr) return;
  for (size_t i = 0; i < tasks.size(); ++i) check(tasks[i], magnitudes[i], backend, stop);
}

}  // namespace attnscope
