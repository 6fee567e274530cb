#include "core/products/reverse_query.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/base/budget_error.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/products/kept_norms.h"
#include "core/stream/norm_sink.h"
#include "core/stream/streaming_engine.h"

namespace attnscope {
namespace {

/// Entries of a tile: many rows of a few columns, few of many.
constexpr int64_t kTileEntries = int64_t{1} << 18;
constexpr int64_t kMostRows = 512;

/// Adds up chosen columns of one run of keys, row by row. Rows are independent, so no order
/// matters.
class ColumnSink : public TileSink {
 public:
  /// Each row is divided by its sum over the run first where `divide` is set.
  ColumnSink(const HeadTask& task, const KeyRun& run, std::span<const double> factors, bool divide,
             std::span<double> sums)
      : cols_(task.keys.size()),
        rows_(std::min(task.num_rows(), std::clamp(kTileEntries / cols_, int64_t{16}, kMostRows))),
        run_(run),
        factors_(factors),
        divide_(divide),
        sums_(sums) {}

  TileRequest request() const override {
    TileRequest request;
    request.norms = false;
    request.chunk_rows = rows_;
    request.chunk_cols = cols_;
    return request;
  }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override {
    // The mask leaves nothing.
    if (tile.chunks.front() == nullptr) return;
    const auto* row = reinterpret_cast<const float*>(tile.chunks.front());
    for (int64_t r = tile.rows.begin; r < tile.rows.end; ++r, row += cols_) {
      const double total = divide_ ? std::accumulate(row, row + cols_, 0.0) : 1;
      if (total > 0) sums_[static_cast<size_t>(r)] += weigh_keys(row, run_, factors_) / total;
    }
  }
  void end() override {}

 private:
  const int64_t cols_;
  const int64_t rows_;
  const KeyRun& run_;
  const std::span<const double> factors_;
  const bool divide_;
  const std::span<double> sums_;
};

}  // namespace

ReverseQuery::ReverseQuery(std::span<const ReverseTask> tasks, const Settings& settings,
                           const TileBackend& backend, MemoryBudget& budget)
    : tasks_(tasks), settings_(settings), backend_(backend), budget_(budget) {
  reserve();
  for (size_t i = 0; i < tasks.size(); ++i) add_parts(i);
}

void ReverseQuery::reserve() {
  int64_t bytes = 0;
  int64_t most_rows = 0;
  for (const ReverseTask& task : tasks_) {
    const int64_t rows = task.problem->num_queries();
    most_rows = std::max(most_rows, rows);
    bytes += rows * static_cast<int64_t>(sizeof(float));
  }
  // Norms, their copy on the way to or from the disk, and the sums of the task at hand.
  bytes += most_rows * static_cast<int64_t>(2 * sizeof(RowNorm) + sizeof(double));
  reservation_ = budget_.reserve(bytes, "the columns of the query");
}

void ReverseQuery::add_parts(size_t task) {
  const ReverseTask& t = tasks_[task];
  const TokenGrid& grid = t.domain_keys != nullptr ? *t.domain_keys : t.problem->key_tokens();
  for (size_t first = 0; first < t.keys.size();) {
    const IndexRange domain = domain_of(settings_.domain, grid, t.keys[first]);
    if (domain.empty()) {
      const bool text = grid.text_range().contains(t.keys[first]);
      const std::string what = grid.has_map() ? grid.place_text(t.keys[first], t.batch)
                               : text         ? "text"
                                              : "video";
      throw usage_error("--domain " + std::string(domain_name(settings_.domain)) + ": key " +
                        std::to_string(t.keys[first]) + " of " + t.problem->name() + " is " + what +
                        " and has no weight there; choose keys of the domain, or --domain all");
    }
    size_t past = first + 1;
    while (past < t.keys.size() && domain.contains(t.keys[past])) ++past;
    add_part(task, first, past - first, domain);
    first = past;
  }
}

void ReverseQuery::add_part(size_t task, size_t first, size_t count, IndexRange domain) {
  const ReverseTask& t = tasks_[task];
  Part part{task, t.problem, domain, first, count, false};
  if (domain.size() < t.problem->num_keys()) {
    part.divide = !is_normalised(t.problem->score());
    // Without norms the whole domain is computed, and nothing else.
    if (!part.divide) {
      // Heads of a call share the masked call.
      const AttentionProblem*& masked = masked_[{t.problem, domain.begin}];
      if (masked == nullptr) {
        masked = &problems_.emplace_back(
            t.problem->with_mask(Mask::key_range(domain, t.problem->num_keys())));
      }
      part.problem = masked;
    }
  } else if (settings_.domain != SoftmaxDomain::all) {
    part.divide = !is_normalised(t.problem->score());
  }
  parts_.push_back(part);
  norm_tasks_.push_back({part.problem,
                         t.batch,
                         t.head,
                         {0, t.problem->num_queries()},
                         {},
                         {0, t.problem->num_keys()}});
}

TileRequest ReverseQuery::norm_request() const {
  TileRequest request;
  request.entries = !is_normalised(tasks_.front().problem->score());
  return request;
}

TilePlan ReverseQuery::plan() const {
  const MemoryRoom room = budget_.room();
  int64_t smallest = 0;
  const auto plan = [&](std::span<const HeadTask> tasks, const TileRequest& request) {
    std::optional<TilePlan> found;
    try {
      found = plan_tiles(tasks, request, backend_, room, settings_.threads);
    } catch (const BudgetError& error) {
      smallest = std::max(smallest, error.smallest());
    }
    return found;
  };
  const std::optional<TilePlan> rows = plan(norm_tasks_, norm_request());
  const Part* planned = nullptr;
  for (const Part& part : parts_) {
    // Heads of a call are planned alike.
    if (planned != nullptr && part.problem == planned->problem && part.first == planned->first &&
        part.count == planned->count) {
      continue;
    }
    planned = &part;
    std::vector<RowNorm> norms;
    if (is_normalised(part.problem->score())) {
      norms.resize(static_cast<size_t>(part.problem->num_queries()));
    }
    for (const KeyRun& run : runs_of(part)) {
      const HeadTask task = column_task(part, run, norms);
      plan({&task, 1}, ColumnSink(task, run, {}, part.divide, {}).request());
    }
  }
  if (smallest > 0) throw BudgetError(room, smallest);
  return *rows;
}

void ReverseQuery::stream(const HeadTask& task, TileSink& sink, const Control& control) {
  const TilePlan plan =
      plan_tiles({&task, 1}, sink.request(), backend_, budget_.room(), settings_.threads);
  StreamControl stream_control;
  stream_control.stop = control.stop;
  if (control.progress) {
    stream_control.progress = [&](const StreamProgress& p) {
      control.progress(static_cast<double>(p.tiles_done) / static_cast<double>(p.tiles_total));
    };
  }
  if (!StreamingEngine(backend_, budget_).run({&task, 1}, plan, sink, stream_control)) {
    throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
  }
}

std::vector<RowNorm> ReverseQuery::norms_of(const Part& part, NormStore* store,
                                            const Control& control) {
  if (!is_normalised(part.problem->score())) return {};
  ++normed_;
  const ReverseTask& t = tasks_[part.task];
  std::vector<RowNorm> norms(static_cast<size_t>(part.problem->num_queries()));
  std::string key;
  if (store != nullptr) {
    const NormSource source{part.problem, t.mask, t.batch, t.head};
    key = store->key(source, backend_.name_for(*part.problem), control.stop);
    if (store->load(key, norms)) {
      if (norms_agree(source, norms, backend_, budget_, control.stop)) {
        ++kept_;
        return norms;
      }
      store_problem_ = kForeignNorms;
    }
  }
  const HeadTask task{part.problem, t.batch,
                      t.head,       {0, part.problem->num_queries()},
                      {},           {0, part.problem->num_keys()}};
  TileRequest request;
  request.entries = false;
  NormSink sink(request, norms);
  stream(task, sink, control);
  if (store != nullptr) {
    const auto problem = store->store(key, norms);
    if (problem && store_problem_.empty()) {
      store_problem_ = "row sums could not be kept: " + *problem;
    }
  }
  return norms;
}

std::vector<KeyRun> ReverseQuery::runs_of(const Part& part) const {
  const std::vector<int64_t>& keys = tasks_[part.task].keys;
  const size_t past = part.first + part.count;
  if (part.divide) return {make_key_run(keys, part.first, past, part.domain)};
  return key_runs(keys, part.first, past);
}

HeadTask ReverseQuery::column_task(const Part& part, const KeyRun& run,
                                   std::span<const RowNorm> norms) const {
  const ReverseTask& t = tasks_[part.task];
  HeadTask task{part.problem, t.batch, t.head, {0, part.problem->num_queries()}, {}, run.keys};
  task.known_norms = norms;
  return task;
}

void ReverseQuery::add_columns(const Part& part, std::span<const RowNorm> norms,
                               std::span<double> sums, const Control& control) {
  for (const KeyRun& run : runs_of(part)) {
    const HeadTask task = column_task(part, run, norms);
    ColumnSink sink(task, run, tasks_[part.task].factors, part.divide, sums);
    stream(task, sink, {control.stop, {}});
  }
}

std::vector<std::vector<float>> ReverseQuery::run(NormStore* store, const Control& control) {
  std::vector<std::vector<float>> results(tasks_.size());
  size_t at = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    std::vector<double> sums(static_cast<size_t>(tasks_[i].problem->num_queries()), 0.0);
    for (; at < parts_.size() && parts_[at].task == i; ++at) {
      const auto before = static_cast<double>(at);
      Control of_part{control.stop, {}};
      if (control.progress) {
        of_part.progress = [&](double share) { control.progress(before + share); };
      }
      const std::vector<RowNorm> norms = norms_of(parts_[at], store, of_part);
      add_columns(parts_[at], norms, sums, control);
      if (control.progress) control.progress(before + 1);
    }
    results[i].reserve(sums.size());
    for (double sum : sums) results[i].push_back(static_cast<float>(sum));
  }
  return results;
}

}  // namespace attnscope
