#include "core/patterns/map_scores.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/patterns/block_runs.h"
#include "core/stream/row_stream.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/tile_plan.h"

namespace attnscope {
namespace {

/// Keys whose weights are added in float32.
constexpr int64_t kRunKeys = 256;
/// Sums are integers of this unit, so that their order does not matter: a row adds 1 at most.
constexpr double kUnit = 0x1p40;

class MapScoreSink : public TileSink {
 public:
  MapScoreSink(const TokenBlocks& queries, const TokenBlocks& keys, MapScore which,
               const TileRequest& request)
      : queries_(queries),
        keys_(keys),
        which_(which),
        request_(request),
        runs_(block_runs(keys, kRunKeys)),
        sums_(which == MapScore::mass ? queries.lengths.size() * keys.lengths.size() : 0),
        table_{queries.size(), keys.size(), {}} {
    table_.values.assign(queries.lengths.size() * keys.lengths.size(),
                         -std::numeric_limits<double>::infinity());
  }

  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override {
    if (tile.chunks.front() == nullptr) return;
    std::vector<double> numbers(keys_.lengths.size());
    for (int64_t r = 0; r < tile.rows.size(); ++r) {
      const auto* const row =
          reinterpret_cast<const float*>(tile.chunks.front()) + r * request_.chunk_cols;
      const int64_t query = tile.task->row_at(tile.rows.begin + r);
      const int64_t block = queries_.of_token[static_cast<size_t>(query)];
      which_ == MapScore::mass ? add_mass(row, block, numbers) : add_distance(row, block, numbers);
    }
  }
  void end() override {}

  BlockTable take() {
    for (size_t i = 0; i < sums_.size(); ++i) {
      table_.values[i] = static_cast<double>(sums_[i].load()) / kUnit;
    }
    return std::move(table_);
  }

 private:
  void add_mass(const float* row, int64_t block, std::vector<double>& numbers) {
    std::fill(numbers.begin(), numbers.end(), 0.0);
    for (const TokenRun& run : runs_) {
      numbers[static_cast<size_t>(run.block)] +=
          weight_sum(row + run.tokens.begin, run.tokens.size());
    }
    for (size_t j = 0; j < numbers.size(); ++j) {
      sums_[static_cast<size_t>(block) * numbers.size() + j].fetch_add(
          std::llround(numbers[j] * kUnit), std::memory_order_relaxed);
    }
  }

  void add_distance(const float* row, int64_t block, std::vector<double>& numbers) {
    std::fill(numbers.begin(), numbers.end(), -std::numeric_limits<double>::infinity());
    for (const TokenRun& run : runs_) {
      const float most = *std::max_element(row + run.tokens.begin, row + run.tokens.end);
      double& number = numbers[static_cast<size_t>(run.block)];
      number = std::max(number, double{most});
    }
    double before = -std::numeric_limits<double>::infinity();
    for (double& number : numbers) {
      before = std::max(before, number);
      if (!std::isinf(before)) number -= before;
    }
    const std::lock_guard lock(mutex_);
    const std::span<double> largest = table_.row(block);
    for (size_t j = 0; j < numbers.size(); ++j) largest[j] = std::max(largest[j], numbers[j]);
  }

  const TokenBlocks& queries_;
  const TokenBlocks& keys_;
  const MapScore which_;
  const TileRequest request_;
  const std::vector<TokenRun> runs_;
  std::vector<std::atomic<int64_t>> sums_;
  BlockTable table_;
  std::mutex mutex_;
};

/// The sums and the table, and what each worker adds up of a row.
int64_t table_bytes(int64_t query_blocks, int64_t key_blocks, int64_t tokens, int workers) {
  const auto pairs = checked_mul(query_blocks, key_blocks);
  const auto bytes = pairs ? checked_mul(*pairs, 16) : std::nullopt;
  if (!bytes) throw Error(ErrorCode::resource, "the blocks are too many for any memory");
  return *bytes + tokens * int64_t{sizeof(TokenRun)} + key_blocks * 8 * workers;
}

HeadTask whole_head(const AttentionProblem& problem, int64_t batch, int64_t head) {
  return {&problem, batch, head, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
}

}  // namespace

BlockTable map_scores(const ScoredHead& head, const TokenBlocks& queries, const TokenBlocks& keys,
                      MapScore which) {
  const HeadTask task = whole_head(head.problem, head.batch, head.head);
  const int64_t bytes =
      table_bytes(queries.size(), keys.size(), head.problem.num_keys(), head.backend.workers());
  RowStream stream = plan_row_stream({&task, 1}, head.backend, head.budget, bytes);
  if (which == MapScore::below_maximum) {
    stream.request.quantity = Quantity::logits;
    stream.request.norms = false;
    // Logits take no more than weights do.
    stream.plan = plan_tiles({&task, 1}, stream.request, head.backend, head.budget.room(bytes));
  }
  const MemoryReservation reserved = head.budget.reserve(bytes, "the scores of blocks");
  MapScoreSink sink(queries, keys, which, stream.request);
  StreamControl control;
  control.stop = head.stop;
  StreamingEngine engine(head.backend, head.budget);
  if (!engine.run({&task, 1}, stream.plan, sink, control)) {
    throw Error(ErrorCode::interrupted, "interrupted");
  }
  return sink.take();
}

int64_t map_scores_bytes(const AttentionProblem& problem, const TileBackend& backend,
                         int64_t query_blocks, int64_t key_blocks) {
  const HeadTask task = whole_head(problem, 0, 0);
  return least_row_stream_bytes(
      {&task, 1}, backend,
      table_bytes(query_blocks, key_blocks, problem.num_keys(), backend.workers()));
}

}  // namespace attnscope
