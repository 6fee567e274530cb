#include "core/stream/logit_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/stream/null_sink.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/tile_plan.h"

namespace attnscope {
namespace {

/// Logits that no backend refuses, in octaves: half of what float32 kernels take (2²²).
constexpr double kMostOctaves = 0x1p21;
/// Products that no float32 sum overflows at.
constexpr double kMostProduct = std::numeric_limits<float>::max() / 2;

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

/// Indices in the sequence of the task's rows that may be refused.
std::vector<int64_t> doubtful_rows(const HeadTask& task, double longest_key,
                                   const std::stop_token& stop) {
  std::vector<int64_t> doubtful;
  const double octaves = task.problem->scale() * std::numbers::log2e;
  const double most = std::min(kMostOctaves / octaves, kMostProduct);
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

}  // namespace

void check_logits(std::span<const HeadTask> tasks, const TileBackend& backend, MemoryBudget& budget,
                  std::stop_token stop) {
  const TileRequest norms_alone{.entries = false};
  LongestKeys longest_keys(stop);
  for (const HeadTask& task : tasks) {
    if (task.problem->score() != ScoreFunction::softmax) continue;
    const std::vector<int64_t> rows = doubtful_rows(task, longest_keys.of(task), stop);
    if (rows.empty()) continue;
    HeadTask doubtful{task.problem, task.batch, task.head, {}, rows, {0, task.problem->num_keys()}};
    NullSink sink(norms_alone);
    const TilePlan plan = plan_tiles({&doubtful, 1}, norms_alone, backend, budget.available());
    StreamControl control;
    control.stop = stop;
    if (!StreamingEngine(backend, budget).run({&doubtful, 1}, plan, sink, control)) stop_check();
  }
}

}  // namespace attnscope
