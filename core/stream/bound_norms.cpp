#include "core/stream/bound_norms.h"

#include <algorithm>
#include <limits>

#include "core/base/aligned_vector.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/stream/panel.h"

namespace attnscope {

BoundNorms::BoundNorms(const HeadTask& task, const BoundHead& head, const TileBackend& backend,
                       int64_t rows, const std::function<bool()>& stopped)
    : norms_(static_cast<size_t>(task.num_rows())) {
  const AttentionProblem& problem = *task.problem;
  const int64_t most = std::min(rows, task.num_rows());
  std::vector<int64_t> index(static_cast<size_t>(most));
  AlignedVector<std::byte> queries(static_cast<size_t>(most * problem.q().row_bytes()));
  AlignedVector<std::byte> workspace(
      static_cast<size_t>(backend.workspace_bytes(problem, most, 0, false)));
  for (int64_t begin = 0; begin < task.num_rows(); begin += most) {
    if (stopped && stopped()) throw Error(ErrorCode::interrupted, "interrupted");
    const IndexRange part{begin, std::min(begin + most, task.num_rows())};
    const QueryBlock block = read_query_rows(task, head, part, index.data(), queries.data());
    head.row_norms(
        block,
        std::span(norms_).subspan(static_cast<size_t>(begin), static_cast<size_t>(part.size())),
        workspace);
  }
}

int64_t BoundNorms::bytes(const HeadTask& task) {
  return checked_mul(task.num_rows(), sizeof(RowNorm)).value_or(INT64_MAX);
}

int64_t BoundNorms::transient_bytes(const HeadTask& task, const TileBackend& backend,
                                    int64_t rows) {
  const int64_t most = std::min(rows, task.num_rows());
  const int64_t row_bytes = task.problem->q().row_bytes() + static_cast<int64_t>(sizeof(int64_t));
  const auto read = checked_mul(most, row_bytes);
  const auto all =
      read ? checked_add(*read, backend.workspace_bytes(*task.problem, most, 0, false)) : read;
  return all.value_or(INT64_MAX);
}

}  // namespace attnscope
