#include "core/products/kept_norms.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/stream/norm_sink.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/tile_plan.h"

namespace attnscope {

namespace {

/// Of each kind below, so many rows at most.
constexpr size_t kRows = 8;

/// Rows chosen at random, ascending: of all, and of those that are said not to be masked, which may
/// be few.
std::vector<int64_t> some_rows(std::span<const RowNorm> norms) {
  std::vector<int64_t> all(norms.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  std::vector<int64_t> weighted;
  std::copy_if(all.begin(), all.end(), std::back_inserter(weighted),
               [&](int64_t row) { return norms[static_cast<size_t>(row)].sum != 0; });
  std::mt19937 random(std::random_device{}());
  std::vector<int64_t> rows;
  for (const std::vector<int64_t>& from : {std::cref(all), std::cref(weighted)}) {
    std::sample(from.begin(), from.end(), std::back_inserter(rows), kRows, random);
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

}  // namespace

bool norms_agree(const NormSource& source, std::span<const RowNorm> norms,
                 const TileBackend& backend, MemoryBudget& budget, std::stop_token stop) {
  const std::vector<int64_t> rows = some_rows(norms);
  const HeadTask task{
      source.problem, source.batch, source.head, {}, rows, {0, source.problem->num_keys()}};
  const TileRequest request{.entries = false};
  std::vector<RowNorm> computed(rows.size());
  NormSink sink(request, computed);
  const TilePlan plan = plan_tiles({&task, 1}, request, backend, budget.room());
  StreamControl control;
  control.stop = stop;
  if (!StreamingEngine(backend, budget).run({&task, 1}, plan, sink, control)) {
    throw Error(ErrorCode::interrupted, "interrupted");
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowNorm& kept = norms[static_cast<size_t>(rows[i])];
    if (kept.sum != computed[i].sum) return false;
    if (kept.sum != 0 && kept.exponent != computed[i].exponent) return false;
  }
  return true;
}

}  // namespace attnscope
