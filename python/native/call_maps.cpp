#include "python/native/call_maps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "core/base/error.h"
#include "core/problem/finite_check.h"
#include "core/products/key_runs.h"
#include "core/stream/few_rows.h"
#include "core/stream/logit_check.h"
#include "core/stream/norm_sink.h"
#include "core/stream/number_range.h"

namespace attnscope {
namespace {

/// Some keys of the map that are computed together, and where they go in a row of the result.
struct ColumnRun {
  IndexRange keys;
  std::vector<int64_t> columns;  ///< within `keys`; empty: all of them
  int64_t first = 0;             ///< of the result's columns
};

std::vector<ColumnRun> column_runs(const Places& cols) {
  if (cols.list.empty()) return {{cols.range, {}, 0}};
  std::vector<ColumnRun> runs;
  for (KeyRun& run : key_runs(cols.list, 0, cols.list.size())) {
    runs.push_back({run.keys, std::move(run.columns), static_cast<int64_t>(run.first)});
  }
  return runs;
}

/// Takes tiles to where they belong in [heads, rows, cols]. Task i is column run i % runs of head
/// i / runs, and has the rows `own` of these.
class EntrySink : public TileSink {
 public:
  EntrySink(Quantity quantity, int64_t rows, IndexRange own, int64_t cols,
            std::span<const ColumnRun> runs, float* result)
      : rows_(rows), cols_(cols), runs_(runs), result_(result + own.begin * cols) {
    request_.quantity = quantity;
    request_.norms = false;
    request_.chunk_rows = std::min(request_.chunk_rows, own.size());
    int64_t widest = 1;
    for (const ColumnRun& run : runs) widest = std::max(widest, run.keys.size());
    request_.chunk_cols = std::min(request_.chunk_cols, widest);
  }
  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void end() override {}

  void consume(const Tile& tile) override {
    const auto number = static_cast<size_t>(tile.task_index);
    const ColumnRun& run = runs_[number % runs_.size()];
    float* const head =
        result_ + static_cast<int64_t>(number / runs_.size()) * rows_ * cols_ + run.first;
    for (int64_t r = 0; r < tile.rows.size(); ++r) {
      float* const row = head + (tile.rows.begin + r) * cols_;
      for (size_t c = 0; c < tile.chunks.size(); ++c) copy_chunk(tile, c, r, run, row);
    }
  }

 private:
  void copy_chunk(const Tile& tile, size_t chunk, int64_t r, const ColumnRun& run,
                  float* row) const {
    const int64_t width = request_.chunk_cols;
    const int64_t begin = tile.cols.begin + static_cast<int64_t>(chunk) * width;
    const int64_t end = std::min(begin + width, tile.cols.end);
    const auto* const values = tile.chunks[chunk] == nullptr
                                   ? nullptr
                                   : reinterpret_cast<const float*>(tile.chunks[chunk]) + r * width;
    if (run.columns.empty()) {
      if (values == nullptr) {
        std::fill(row + begin, row + end, 0.0f);
      } else {
        std::memcpy(row + begin, values, static_cast<size_t>(end - begin) * sizeof(float));
      }
      return;
    }
    const auto first = std::lower_bound(run.columns.begin(), run.columns.end(), begin);
    const auto past = std::lower_bound(first, run.columns.end(), end);
    for (auto column = first; column != past; ++column) {
      row[column - run.columns.begin()] = values == nullptr ? 0.0f : values[*column - begin];
    }
  }

  TileRequest request_;
  const int64_t rows_, cols_;
  const std::span<const ColumnRun> runs_;
  float* const result_;
};

/// Takes tiles of outputs to where they belong in [heads, rows, channels].
class OutputSink : public TileSink {
 public:
  OutputSink(int64_t rows, int64_t width, float* result)
      : rows_(rows), width_(width), result_(result) {
    request_.outputs = true;
    request_.norms = false;
    request_.chunk_rows = std::min(request_.chunk_rows, rows);
    request_.chunk_cols = width;
  }
  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void end() override {}
  void consume(const Tile& tile) override {
    float* const to = result_ + (tile.task_index * rows_ + tile.rows.begin) * width_;
    const auto count = static_cast<size_t>(tile.rows.size() * width_);
    if (tile.chunks.front() == nullptr) {
      std::fill_n(to, count, 0.0f);
    } else {
      std::memcpy(to, tile.chunks.front(), count * sizeof(float));
    }
  }

 private:
  TileRequest request_;
  const int64_t rows_, width_;
  float* const result_;
};

HeadTask head_task(const CallHandle& call, const HeadPlace& place, const Places& rows,
                   IndexRange keys) {
  return {&call.problem(), place.batch, place.head, rows.range, rows.list, keys};
}

std::vector<HeadTask> row_tasks(const CallHandle& call, std::span<const HeadPlace> heads,
                                const Places& rows) {
  std::vector<HeadTask> tasks;
  for (const HeadPlace& place : heads) {
    tasks.push_back(head_task(call, place, rows, {0, call.problem().num_keys()}));
  }
  return tasks;
}

/// The rows' norms, [heads, rows], for streams that meet a row several times.
std::vector<RowNorm> norms_of(std::span<const HeadTask> tasks, EngineRun& run) {
  TileRequest request;
  request.entries = false;
  const auto rows = static_cast<size_t>(tasks.front().num_rows());
  request.chunk_rows = std::min(request.chunk_rows, tasks.front().num_rows());
  std::vector<RowNorm> norms(tasks.size() * rows);
  for (size_t i = 0; i < tasks.size(); ++i) {
    NormSink sink(request, std::span(norms).subspan(i * rows, rows));
    run.run(tasks.subspan(i, 1), sink);
  }
  return norms;
}

/// The runs of columns of every head, head by head. norms: [heads, rows], or empty.
std::vector<HeadTask> entry_tasks(const CallHandle& call, std::span<const HeadPlace> heads,
                                  const Places& rows, std::span<const ColumnRun> runs,
                                  std::span<const RowNorm> norms) {
  std::vector<HeadTask> tasks;
  for (size_t h = 0; h < heads.size(); ++h) {
    for (const ColumnRun& columns : runs) {
      tasks.push_back(head_task(call, heads[h], rows, columns.keys));
      if (norms.empty()) continue;
      const auto count = static_cast<size_t>(rows.size());
      tasks.back().known_norms = norms.subspan(h * count, count);
    }
  }
  return tasks;
}

/// Looks through the rows of q that the tasks have, and for products that the backend would lose.
void check_rows(std::span<const HeadTask> tasks, EngineRun& run) {
  const std::stop_token stop = run.watch().stop();
  std::vector<TaskMagnitudes> magnitudes;
  FiniteCheck check;
  for (const HeadTask& task : tasks) {
    TaskMagnitudes found{0};
    for (int64_t i = 0; i < task.num_rows(); ++i) {
      const int64_t row = task.row_at(i);
      const auto largest =
          check.check(task.problem->q(), task.batch, task.head, {row, row + 1}, stop);
      found.q = std::max(found.q, double{largest.value_or(std::numeric_limits<float>::infinity())});
    }
    magnitudes.push_back(found);
  }
  check_subnormals(tasks, magnitudes, run.backend(), stop);
}

/// True where rows alone are looked through: by the kernels of softmax on the host, which refuse a
/// row whose products are not finite.
bool checks_rows(const CallHandle& call, ValueCheck check, const EngineRun& run) {
  return check == ValueCheck::rows && is_softmax(call.problem().score()) &&
         run.backend().device() == nullptr &&
         dynamic_cast<const FewRowBackend*>(&run.backend()) != nullptr;
}

/// Computes `result`, of which a number that is not finite (but for `but`) tells of q, k or v.
template <typename T>
void compute_checked(std::span<const HeadTask> tasks, bool with_values, EngineRun& run,
                     ResultArray<T>& result, T but, const std::function<void()>& compute) {
  check_rows(tasks, run);
  try {
    compute();
  } catch (const Error& error) {
    // Who looks through everything can name the number.
    if (error.code() == ErrorCode::value) run.check_values(tasks, with_values);
    throw;
  }
  const std::span<const T> numbers = result.values();
  if (std::ranges::all_of(numbers, [&](T x) { return std::isfinite(x) || x == but; })) return;
  run.check_values(tasks, with_values);
  throw Error(ErrorCode::value,
              tasks.front().problem->name() + ": results of the chosen rows are not finite");
}

/// Rows at most for which a head is bound once for every few of them, where packing K for a tile
/// unit takes longer.
constexpr int64_t kMostRowsByFew = 36;

/// The rows in groups that are computed one after the other: [first, past) of each.
std::vector<IndexRange> row_groups(const CallHandle& call, const Places& rows,
                                   const TileBackend& backend) {
  const auto* const few = dynamic_cast<const FewRowBackend*>(&backend);
  const bool by_few =
      few != nullptr && few->refuses_bad_keys(call.problem()) && rows.size() <= kMostRowsByFew;
  const int64_t few_rows = by_few ? few->few_rows(call.problem()) : 0;
  const int64_t at_once = few_rows > 0 ? few_rows : rows.size();
  std::vector<IndexRange> groups;
  for (int64_t begin = 0; begin < rows.size(); begin += at_once) {
    groups.push_back({begin, std::min(begin + at_once, rows.size())});
  }
  return groups;
}

Places part_of(const Places& rows, IndexRange group) {
  if (rows.list.empty()) {
    return {{rows.range.begin + group.begin, rows.range.begin + group.end}, {}};
  }
  return {{}, {rows.list.begin() + group.begin, rows.list.begin() + group.end}};
}

/// Entries of the rows `group` of `rows`, into [heads, rows, cols].
void compute_entries(const CallHandle& call, std::span<const HeadPlace> heads, const Places& rows,
                     IndexRange group, const Places& cols, std::span<const ColumnRun> runs,
                     Quantity quantity, EngineRun& run, float* result) {
  const Places own = part_of(rows, group);
  std::vector<RowNorm> norms;
  if (runs.size() > 1 && needs_norms(call.problem().score(), quantity)) {
    norms = norms_of(row_tasks(call, heads, own), run);
  }
  EntrySink sink(quantity, rows.size(), group, cols.size(), runs, result);
  run.run(entry_tasks(call, heads, own, runs, norms), sink);
}

}  // namespace

ResultArray<float> entries_of(const CallHandle& call, std::span<const HeadPlace> heads,
                              const Places& rows, const Places& cols, Quantity quantity,
                              ValueCheck check, EngineRun& run) {
  ResultArray<float> result({static_cast<int64_t>(heads.size()), rows.size(), cols.size()},
                            call.problem().name());
  if (heads.empty() || rows.size() == 0 || cols.size() == 0) return result;
  const std::vector<ColumnRun> runs = column_runs(cols);
  const std::vector<HeadTask> whole = row_tasks(call, heads, rows);
  const auto compute = [&] {
    for (const IndexRange group : row_groups(call, rows, run.backend())) {
      compute_entries(call, heads, rows, group, cols, runs, quantity, run, result.data());
    }
  };
  if (quantity == Quantity::weights && checks_rows(call, check, run)) {
    compute_checked(whole, false, run, result, 0.0f, compute);
    return result;
  }
  const std::vector<TaskMagnitudes> magnitudes = run.check_values(whole);
  if (!needs_norms(call.problem().score(), quantity)) {
    check_stored_logits(whole, magnitudes, run.backend(), run.budget(), run.watch().stop());
  }
  compute();
  return result;
}

std::vector<RowNorm> row_norms_of(const CallHandle& call, const HeadPlace& head, const Places& rows,
                                  EngineRun& run) {
  if (rows.size() == 0) return {};
  const std::vector<HeadTask> tasks = row_tasks(call, {&head, 1}, rows);
  run.check_values(tasks);
  if (!needs_norms(call.problem().score(), Quantity::weights)) return {};
  return norms_of(tasks, run);
}

ResultArray<float> known_entries_of(const CallHandle& call, const HeadPlace& head,
                                    const Places& rows, const Places& cols,
                                    std::span<const RowNorm> norms, EngineRun& run) {
  ResultArray<float> result({1, rows.size(), cols.size()}, call.problem().name());
  if (rows.size() == 0 || cols.size() == 0) return result;
  const std::vector<ColumnRun> runs = column_runs(cols);
  EntrySink sink(Quantity::weights, rows.size(), {0, rows.size()}, cols.size(), runs,
                 result.data());
  run.run(entry_tasks(call, {&head, 1}, rows, runs, norms), sink);
  return result;
}

ResultArray<double> lse_of(const CallHandle& call, std::span<const HeadPlace> heads,
                           const Places& rows, ValueCheck check, EngineRun& run) {
  const AttentionProblem& problem = call.problem();
  if (!is_normalised(problem.score())) {
    throw usage_error(problem.name() + ": rows of " + score_name(problem.score()) +
                      " scores are not normalised, so there is no LSE");
  }
  ResultArray<double> result({static_cast<int64_t>(heads.size()), rows.size()}, problem.name());
  if (heads.empty() || rows.size() == 0) return result;
  const std::vector<HeadTask> tasks = row_tasks(call, heads, rows);
  const auto compute = [&] {
    for (const IndexRange group : row_groups(call, rows, run.backend())) {
      const auto norms = norms_of(row_tasks(call, heads, part_of(rows, group)), run);
      for (size_t i = 0; i < norms.size(); ++i) {
        const int64_t head = static_cast<int64_t>(i) / group.size();
        const int64_t row = group.begin + static_cast<int64_t>(i) % group.size();
        result.data()[head * rows.size() + row] = norms[i].lse();
      }
    }
  };
  if (checks_rows(call, check, run)) {
    compute_checked(tasks, false, run, result, -std::numeric_limits<double>::infinity(), compute);
  } else {
    run.check_values(tasks);
    compute();
  }
  return result;
}

ResultArray<float> outputs_of(const CallHandle& call, std::span<const HeadPlace> heads,
                              const Places& rows, ValueCheck check, EngineRun& run) {
  const AttentionProblem& problem = call.problem();
  if (!problem.v()) {
    throw usage_error(problem.name() + ": has no v, which outputs are made of");
  }
  const int64_t width = problem.v().width();
  ResultArray<float> result({static_cast<int64_t>(heads.size()), rows.size(), width},
                            problem.name());
  if (heads.empty() || rows.size() == 0) return result;
  const std::vector<HeadTask> tasks = row_tasks(call, heads, rows);
  OutputSink sink(rows.size(), width, result.data());
  if (checks_rows(call, check, run)) {
    compute_checked(tasks, true, run, result, 0.0f, [&] { run.run(tasks, sink); });
  } else {
    run.check_values(tasks, true);
    run.run(tasks, sink);
  }
  return result;
}

std::vector<PooledMap> pooled_of(const CallHandle& call, std::span<const HeadPlace> heads,
                                 int64_t block, EngineRun& run) {
  const std::vector<HeadTask> tasks = whole_heads(call, heads);
  run.check_values(tasks);
  return pooled_maps(tasks, block, run);
}

std::vector<HeadTask> whole_heads(const CallHandle& call, std::span<const HeadPlace> heads) {
  return row_tasks(call, heads, {{0, call.problem().num_queries()}, {}});
}

}  // namespace attnscope
