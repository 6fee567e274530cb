#include "cli/bench/bench_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>
#include <vector>

#include "cli/bench/best_seconds.h"
#include "core/base/error.h"
#include "core/problem/sampled_rows.h"
#include "core/reduce/head_metrics.h"
#include "core/stream/null_sink.h"
#include "io/export/write/hdf5_export.h"
#include "io/export/write/make_export.h"

namespace attnscope {
namespace {

constexpr int64_t kMeasuredSide = 2048;
constexpr int64_t kPyramidBlock = 16;
/// Rows on which `attnscope stats` counts keys.
constexpr int64_t kStatsRows = 256;

class NullReductionSink : public ReductionSink {
 public:
  void head(int64_t, const HeadTotals&) override {}
};

Error interrupted() { return {ErrorCode::interrupted, "interrupted"}; }

void say(const Console& console, const AttentionProblem& problem, const std::string& what) {
  console.say(problem.name() + " " + what);
}

HeadTask whole_head(const AttentionProblem& problem) {
  return {&problem, 0, 0, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
}

/// Of one product, which is the floor, whatever the plan needed.
double product_flops(const TilePlan& plan) { return plan.flops / (plan.one_product ? 1 : 2); }

}  // namespace

/// Seconds of `flops` of products and of the exponentials of `entries`; 0: not known.
double BenchRuns::floor_seconds(double flops, double entries) const {
  if (m_.ceilings == nullptr) return 0;
  const CpuCeilings& cpu = m_.ceilings->cpu;
  if (m_.backend.name().starts_with("cpu-amx")) {
    // The tile unit works beside the vector units.
    return std::max(flops * 1e-9 / cpu.tile_gflops, entries * 1e-9 / cpu.table_exp_gigaelements);
  }
  // Q and K are bf16: the peak is that of the better instructions for those.
  const double peak = std::max(cpu.bf16_gflops, cpu.fma_gflops);
  return flops * 1e-9 / peak + entries * 1e-9 / cpu.exp_gigaelements;
}

BenchResult BenchRuns::stream_task(const std::string& name, const HeadTask& task,
                                   const TileRequest& request, int threads) {
  const AttentionProblem& problem = *task.problem;
  const std::span<const HeadTask> tasks(&task, 1);
  const TilePlan plan = plan_tiles(tasks, request, m_.backend, m_.budget.room(),
                                   threads > 0 ? threads : m_.options.run.threads);
  say(m_.console, problem, name);
  StreamingEngine engine(m_.backend, m_.budget);
  StreamControl control;
  control.stop = m_.stop;
  const double seconds = best_seconds(m_.options.repeats, [&] {
    NullSink sink(request);
    if (!engine.run(tasks, plan, sink, control)) throw interrupted();
  });
  const auto entries = static_cast<double>(plan.entries);
  return {problem.name() + " " + name,
          seconds,
          plan.flops,
          entries,
          0,
          floor_seconds(product_flops(plan), entries),
          plan.bytes_total};
}

BenchResult BenchRuns::norms(const std::string& name, const AttentionProblem& problem,
                             int threads) {
  TileRequest request;
  request.entries = false;
  return stream_task(name, whole_head(problem), request, threads);
}

BenchResult BenchRuns::weights(const std::string& name, const AttentionProblem& problem) {
  TileRequest request;
  request.encoding = Encoding::f16_scaled;
  return stream_task(name, whole_head(problem), request, 0);
}

BenchResult BenchRuns::row(const AttentionProblem& problem) {
  HeadTask task = whole_head(problem);
  task.rows = {problem.num_queries() / 2, problem.num_queries() / 2 + 1};
  BenchResult result = stream_task("row", task, TileRequest(), 0);
  // K is read for it, not multiplied again: neither ceiling is near.
  result.floor_seconds = 0;
  return result;
}

BenchResult BenchRuns::reduce(const std::string& name, const AttentionProblem& problem,
                              const ReductionRequest& request) {
  const ReductionJob job{whole_head(problem), request};
  const std::span<const ReductionJob> jobs(&job, 1);
  const ReductionPlan plan =
      plan_reductions(jobs, m_.backend, m_.budget.room(), m_.options.run.threads);
  say(m_.console, problem, name);
  ReductionStream stream(m_.backend, m_.budget);
  StreamControl control;
  control.stop = m_.stop;
  const double seconds = best_seconds(m_.options.repeats, [&] {
    NullReductionSink sink;
    if (!stream.run(jobs, plan, sink, control)) throw interrupted();
  });
  return {problem.name() + " " + name,
          seconds,
          plan.flops,
          plan.entries,
          0,
          floor_seconds(plan.flops, plan.entries),
          plan.bytes_total};
}

BenchResult BenchRuns::metrics(const AttentionProblem& problem) {
  const std::vector<int64_t> shares = sampled_rows(problem.num_queries(), kStatsRows);
  return reduce("metrics", problem, metrics_request(problem, shares, std::nullopt));
}

BenchResult BenchRuns::pyramid(const AttentionProblem& problem) {
  ReductionRequest request;
  request.block = kPyramidBlock;
  return reduce(fmt::format("pyramid of {}x{} blocks", kPyramidBlock, kPyramidBlock), problem,
                request);
}

BenchResult BenchRuns::tile(const AttentionProblem& problem) {
  const int64_t side = std::min({kMeasuredSide, problem.num_queries(), problem.num_keys()});
  say(m_.console, problem, "tile");
  std::vector<std::byte> rows(static_cast<size_t>(side * problem.q().row_bytes()));
  problem.q().read_rows(0, 0, {0, side}, rows.data());
  std::vector<int64_t> index(static_cast<size_t>(side));
  std::iota(index.begin(), index.end(), 0);
  const QueryBlock queries{rows.data(), index};
  const int64_t bytes = m_.backend.workspace_bytes(problem, side, side, false);
  const int64_t tile_bytes = side * side * encoding_bytes(Encoding::f16_scaled);
  const MemoryReservation reserved = m_.budget.reserve(bytes + tile_bytes, "a tile");
  std::vector<std::byte> workspace(static_cast<size_t>(bytes));
  std::vector<std::byte> entries(static_cast<size_t>(tile_bytes));
  std::byte* const block = entries.data();
  const auto head = m_.backend.bind(problem, 0, 0);
  std::vector<RowNorm> norms(static_cast<size_t>(side));
  head->row_norms(queries, norms, workspace);
  const double seconds = best_seconds(m_.options.repeats, [&] {
    if (m_.stop.stop_requested()) throw interrupted();
    head->emit(queries, norms, {0, side}, Quantity::weights,
               {{&block, 1}, side, side, Encoding::f16_scaled}, workspace);
  });
  const auto count = static_cast<double>(side * side);
  return {fmt::format("{} tile of {}x{}", problem.name(), side, side),
          seconds,
          2 * count * static_cast<double>(problem.head_dim()),
          count,
          static_cast<double>(tile_bytes),
          0,
          bytes + tile_bytes};
}

BenchResult BenchRuns::exported(const std::shared_ptr<const AttentionProblem>& problem, bool sync) {
  CallEntry call;
  call.problem = problem;
  call.id = problem->id();
  ExportSpec spec;
  spec.calls = {{.selected = {&call, {0}, {0}},
                 .rows = {0, problem->num_queries()},
                 .row_list = {},
                 .keys = {0, problem->num_keys()}}};
  spec.capture_name = "bench";
  spec.options_json = "{}";
  spec.backend = m_.backend.name_for(*problem);
  const std::string out = m_.folder + "/attnscope-bench.h5";
  m_.console.say(fmt::format("{} export to {}", problem->name(), out));
  StreamingEngine engine(m_.backend, m_.budget);
  TilePlan plan;
  int64_t bytes = 0;
  const double seconds = best_seconds(m_.options.repeats, [&] {
    std::filesystem::remove(out);
    ExportPlan export_plan = spec;
    const ExportWriteOptions how{.sync = sync};
    const int at_disk = threads_at_disk(export_plan, how);
    const auto sink = make_export(std::move(export_plan), out, how);
    plan = plan_tiles(sink->tasks(), sink->request(), m_.backend, m_.budget.room(),
                      m_.options.run.threads, at_disk);
    StreamControl control;
    control.stop = m_.stop;
    if (!engine.run(sink->tasks(), plan, *sink, control)) {
      throw interrupted();
    }
    bytes = sink->bytes_written();
  });
  std::filesystem::remove(out);
  const auto entries = static_cast<double>(plan.entries);
  double floor = 0;
  if (m_.ceilings != nullptr && m_.ceilings->disk) {
    const DiskCeilings& disk = *m_.ceilings->disk;
    const double rate = sync ? std::max(disk.durable, disk.direct) : disk.buffered;
    floor =
        std::max(floor_seconds(product_flops(plan), entries), static_cast<double>(bytes) / rate);
  }
  return {problem->name() + " export f16 (" + (sync ? "durable" : "closed file") + ")",
          seconds,
          plan.flops,
          entries,
          static_cast<double>(bytes),
          floor,
          plan.bytes_total};
}

}  // namespace attnscope
