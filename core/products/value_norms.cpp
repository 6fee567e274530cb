#include "core/products/value_norms.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/dtype.h"
#include "core/base/error.h"

namespace attnscope {

std::vector<double> value_norms(const AttentionProblem& problem, int64_t batch, int64_t head,
                                IndexRange keys) {
  const HeadTensor& v = problem.v();
  if (!v) {
    throw usage_error("--weighting value: " + problem.name() +
                      " has no v; capture it, or give --v with bare tensors");
  }
  constexpr int64_t kPieceElements = 1 << 17;
  const int64_t step = std::max<int64_t>(1, kPieceElements / v.width());
  std::vector<std::byte> bytes;
  std::vector<float> values;
  std::vector<double> norms;
  norms.reserve(static_cast<size_t>(keys.size()));
  for (int64_t begin = keys.begin; begin < keys.end; begin += step) {
    const IndexRange rows{begin, std::min(begin + step, keys.end)};
    bytes.resize(static_cast<size_t>(rows.size() * v.row_bytes()));
    values.resize(static_cast<size_t>(rows.size() * v.width()));
    v.read_rows(batch, problem.kv_head(head), rows, bytes.data());
    to_floats(v.dtype(), bytes.data(), rows.size() * v.width(), values.data());
    for (int64_t key = rows.begin; key < rows.end; ++key) {
      const float* row = values.data() + (key - rows.begin) * v.width();
      double sum = 0;
      for (int64_t c = 0; c < v.width(); ++c) {
        if (!std::isfinite(row[c])) {
          throw Error(ErrorCode::value, v.source().name() + ": value " + std::to_string(row[c]) +
                                            " at batch " + std::to_string(batch) + ", head " +
                                            std::to_string(problem.kv_head(head)) + ", token " +
                                            std::to_string(key) + ", channel " + std::to_string(c));
        }
        sum += static_cast<double>(row[c]) * row[c];
      }
      norms.push_back(std::sqrt(sum));
    }
  }
  return norms;
}

void weigh_by_values(std::span<const HeadTask> tasks, std::vector<std::vector<float>>& values,
                     MemoryBudget& budget) {
  const HeadTask* previous = nullptr;
  std::vector<double> norms;
  MemoryReservation reservation;
  for (size_t i = 0; i < values.size(); ++i) {
    const HeadTask& task = tasks[i];
    const AttentionProblem& problem = *task.problem;
    const bool same = previous != nullptr && previous->problem == task.problem &&
                      previous->batch == task.batch &&
                      problem.kv_head(previous->head) == problem.kv_head(task.head);
    if (!same) {
      norms = {};
      reservation = {};
      reservation = budget.reserve(problem.num_keys() * static_cast<int64_t>(sizeof(double)),
                                   "the norms of the values");
      norms = value_norms(problem, task.batch, task.head, {0, problem.num_keys()});
    }
    previous = &task;
    for (size_t j = 0; j < norms.size(); ++j) {
      values[i][j] = static_cast<float>(values[i][j] * norms[j]);
    }
  }
}

}  // namespace attnscope
