#include "core/stream/head_work.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kRows = 384, kKeys = 512, kUnit = 4096;

/// Counts by halves, so that what is empty or full is asked about once, however large it is.
class KeptEntries {
 public:
  KeptEntries(const AttentionProblem& problem, int64_t batch, int64_t head)
      : problem_(problem), batch_(batch), head_(head) {}

  /// Of rectangles [rows, keys) of those that are counted.
  int64_t count(IndexRange rows, IndexRange keys) const {
    const IndexRange queries{rows.begin * kRows,
                             std::min(rows.end * kRows, problem_.num_queries())};
    const IndexRange columns{keys.begin * kKeys, std::min(keys.end * kKeys, problem_.num_keys())};
    const TileClass what = problem_.mask().classify(batch_, head_, queries, columns);
    if (what == TileClass::empty) return 0;
    if (what == TileClass::full || (rows.size() == 1 && keys.size() == 1)) {
      return queries.size() * columns.size();
    }
    if (rows.size() >= keys.size()) {
      const int64_t middle = (rows.begin + rows.end) / 2;
      return count({rows.begin, middle}, keys) + count({middle, rows.end}, keys);
    }
    const int64_t middle = (keys.begin + keys.end) / 2;
    return count(rows, {keys.begin, middle}) + count(rows, {middle, keys.end});
  }

 private:
  const AttentionProblem& problem_;
  const int64_t batch_, head_;
};

}  // namespace

int64_t head_work(const AttentionProblem& problem, int64_t batch, int64_t head) {
  const int64_t rows = problem.num_queries(), keys = problem.num_keys();
  const auto whole = checked_mul(rows, keys);
  if (!whole) throw Error(ErrorCode::resource, problem.name() + ": its maps are too large");
  const int64_t entries = problem.mask().is_none()
                              ? *whole
                              : KeptEntries(problem, batch, head)
                                    .count({0, ceil_div(rows, kRows)}, {0, ceil_div(keys, kKeys)});
  // In this order nothing is lost of heads of usual size, and nothing overflows.
  const int64_t dims = problem.head_dim();
  const int64_t work = entries / kUnit * dims + entries % kUnit * dims / kUnit;
  return std::max<int64_t>(1, work);
}

}  // namespace attnscope
