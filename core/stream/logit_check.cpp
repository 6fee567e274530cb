#include "core/stream/logit_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/mask/masked_bias.h"
#include "core/stream/null_sink.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/tile_plan.h"

namespace attnscope {
namespace {

/// Logits that no backend refuses, in octaves: half of what float32 kernels take (2²²).
constexpr double kMostOctaves = 0x1p21;
/// Products that no float32 sum overflows at.
constexpr double kMostProduct = std::numeric_limits<float>::max() / 2;

/// Logits that no bias that float32 holds makes infinite.
constexpr double kSafeLogit = 0x1p100;

[[noreturn]] void stop_check() { throw Error(ErrorCode::interrupted, "interrupted"); }

/// Calls visit(row, ‖row‖) for rows of a head, a piece of them at a time.
template <typename Visit>
void for_each_length(const HeadTensor& tensor, int64_t batch, int64_t head, IndexRange rows,
                     const std::stop_token& stop, const Visit& visit) {
  constexpr int64_t kPieceValues = int64_t{64} << 10;
  const int64_t width = tensor.width();
  const int64_t most_rows = std::clamp<int64_t>(kPieceValues / width, 1, rows.size());
  std::vector<std::byte> bytes(static_cast<size_t>(most_rows * tensor.row_bytes()));
  std::vector<float> values(static_cast<size_t>(most_rows * width));
  for (int64_t begin = rows.begin; begin < rows.end; begin += most_rows) {
    if (stop.stop_requested()) stop_check();
    const IndexRange piece{begin, std::min(begin + most_rows, rows.end)};
    tensor.read_rows(batch, head, piece, bytes.data());
    to_floats(tensor.dtype(), bytes.data(), piece.size() * width, values.data());
    const float* value = values.data();
    for (int64_t row = piece.begin; row < piece.end; ++row, value += width) {
      double squares = 0;
      for (int64_t c = 0; c < width; ++c) squares += double{value[c]} * double{value[c]};
      visit(row, std::sqrt(squares));
    }
  }
}

/// The length of the longest key of each head that was asked for.
class LongestKeys {
 public:
  explicit LongestKeys(std::stop_token stop) : stop_(std::move(stop)) {}

  double of(const HeadTask& task) {
    const int64_t kv_head = task.problem->kv_head(task.head);
    const auto [found, fresh] = lengths_.try_emplace({task.problem, task.batch, kv_head}, 0.0);
    double& longest = found->second;
    if (fresh) {
      for_each_length(task.problem->k(), task.batch, kv_head, {0, task.problem->num_keys()}, stop_,
                      [&](int64_t, double length) { longest = std::max(longest, length); });
    }
    return longest;
  }

 private:
  const std::stop_token stop_;
  std::map<std::tuple<const AttentionProblem*, int64_t, int64_t>, double> lengths_;
};

/// Indices in the sequence of the task's rows for which ‖q‖·max‖k‖ exceeds `most`.
std::vector<int64_t> doubtful_rows(const HeadTask& task, double longest_key, double most,
                                   const std::stop_token& stop) {
  std::vector<int64_t> doubtful;
  for (int64_t i = 0; i < task.num_rows();) {
    int64_t past = i + 1;
    while (past < task.num_rows() && task.row_at(past) == task.row_at(past - 1) + 1) ++past;
    for_each_length(task.problem->q(), task.batch, task.head,
                    {task.row_at(i), task.row_at(past - 1) + 1}, stop,
                    [&](int64_t row, double length) {
                      if (length * longest_key > most) doubtful.push_back(row);
                    });
    i = past;
  }
  return doubtful;
}

/// Streams a task's rows without keeping anything. Throws Error(interrupted).
void stream_rows(HeadTask task, std::span<const int64_t> rows, TileSink& sink,
                 const TileBackend& backend, MemoryBudget& budget, const std::stop_token& stop) {
  task.rows = {};
  task.row_list = rows;
  const TilePlan plan = plan_tiles({&task, 1}, sink.request(), backend, budget.room());
  StreamControl control;
  control.stop = stop;
  if (!StreamingEngine(backend, budget).run({&task, 1}, plan, sink, control)) stop_check();
}

[[noreturn]] void refuse_logit(const HeadTask& task, int64_t query, int64_t key) {
  throw Error(ErrorCode::value,
              task.problem->name() + ": head " + std::to_string(task.head) + ", query " +
                  std::to_string(query) + ", key " + std::to_string(key) +
                  ": the logit, or a product on the way to it, is more than float32 holds "
                  "(3.4e38)");
}

/// Looks at logits, of which only masked ones may be infinite, below 0.
class LogitSink : public TileSink {
 public:
  TileRequest request() const override {
    return {.norms = false, .quantity = Quantity::logits, .chunk_rows = kRows, .chunk_cols = kCols};
  }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override {
    for (size_t c = 0; c < tile.chunks.size(); ++c) {
      if (tile.chunks[c] == nullptr) continue;
      const int64_t first = tile.cols.begin + static_cast<int64_t>(c) * kCols;
      const IndexRange cols{first, std::min(first + kCols, tile.cols.end)};
      const auto* row = reinterpret_cast<const float*>(tile.chunks[c]);
      for (int64_t r = tile.rows.begin; r < tile.rows.end; ++r, row += kCols) {
        check_logit_row(*tile.task, tile.task->row_at(r), cols,
                        {row, static_cast<size_t>(cols.size())});
      }
    }
  }
  void end() override {}

 private:
  static constexpr int64_t kRows = 16, kCols = 512;
};

}  // namespace

void check_logit_row(const HeadTask& task, int64_t query, IndexRange cols,
                     std::span<const float> logits) {
  const auto finite = [](float logit) { return std::isfinite(logit); };
  if (std::all_of(logits.begin(), logits.end(), finite)) return;
  const IndexRange keys{task.keys.begin + cols.begin, task.keys.begin + cols.end};
  std::vector<float> bias(logits.size());
  task.problem->mask().fill_bias(task.batch, task.head, {&query, 1}, keys, bias.data(),
                                 keys.size());
  for (size_t j = 0; j < logits.size(); ++j) {
    if (std::isfinite(logits[j]) || (logits[j] == kMasked && bias[j] == kMasked)) continue;
    refuse_logit(task, query, keys.begin + static_cast<int64_t>(j));
  }
}

void check_stored_logits(std::span<const HeadTask> tasks,
                         std::span<const TaskMagnitudes> magnitudes, const TileBackend& backend,
                         MemoryBudget& budget, std::stop_token stop) {
  LongestKeys longest_keys(stop);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const AttentionProblem& problem = *tasks[i].problem;
    if (is_linear(problem.score())) continue;
    const double most = kSafeLogit / std::max(problem.scale(tasks[i].head), 1.0);
    const auto channels = static_cast<double>(problem.head_dim());
    if (channels * magnitudes[i].q * magnitudes[i].k <= most) continue;
    const std::vector<int64_t> rows =
        doubtful_rows(tasks[i], longest_keys.of(tasks[i]), most, stop);
    if (rows.empty()) continue;
    LogitSink sink;
    stream_rows(tasks[i], rows, sink, backend, budget, stop);
  }
}

void check_logits(std::span<const HeadTask> tasks, const TileBackend& backend, MemoryBudget& budget,
                  std::stop_token stop) {
  const TileRequest norms_alone{.entries = false};
  LongestKeys longest_keys(stop);
  for (const HeadTask& task : tasks) {
    if (!is_softmax(task.problem->score())) continue;
    const double octaves = task.problem->scale(task.head) * std::numbers::log2e;
    const double most = std::min(kMostOctaves / octaves, kMostProduct);
    const std::vector<int64_t> rows = doubtful_rows(task, longest_keys.of(task), most, stop);
    if (rows.empty()) continue;
    NullSink sink(norms_alone);
    stream_rows({task.problem, task.batch, task.head, {}, {}, {0, task.problem->num_keys()}}, rows,
                sink, backend, budget, stop);
  }
}

}  // namespace attnscope
