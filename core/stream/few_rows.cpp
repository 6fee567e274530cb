#include "core/stream/few_rows.h"

namespace attnscope {
namespace {

/// Null where the backend has no way of its own for so few rows.
const FewRowBackend* of_few(const TileBackend& backend, const AttentionProblem& problem,
                            int64_t rows) {
  const auto* const few = dynamic_cast<const FewRowBackend*>(&backend);
  return few != nullptr && rows <= few->few_rows(problem) ? few : nullptr;
}

}  // namespace

TileBackend::BindCost bind_cost_for_rows(const TileBackend& backend,
                                         const AttentionProblem& problem, int64_t rows) {
  const FewRowBackend* const few = of_few(backend, problem, rows);
  return few != nullptr ? few->bind_cost_for_few(problem, rows) : backend.bind_cost(problem);
}

bool refuses_bad_keys(const TileBackend& backend, const AttentionProblem& problem, int64_t rows) {
  const FewRowBackend* const few = of_few(backend, problem, rows);
  return few != nullptr && few->refuses_bad_keys(problem);
}

std::unique_ptr<BoundHead> bind_for_rows(const TileBackend& backend,
                                         const AttentionProblem& problem, int64_t batch,
                                         int64_t head, int64_t rows) {
  const FewRowBackend* const few = of_few(backend, problem, rows);
  return few != nullptr ? few->bind_for_few(problem, batch, head)
                        : backend.bind(problem, batch, head);
}

}  // namespace attnscope
