#include "core/products/map_reductions.h"

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/problem/sampled_rows.h"

namespace attnscope {
namespace {

/// Rows on which key counts are taken.
constexpr int64_t kShareRows = 256;

std::vector<ReductionJob> make_jobs(std::span<const HeadTask> tasks,
                                    const ReductionRequest& request) {
  std::vector<ReductionJob> jobs;
  for (const HeadTask& task : tasks) jobs.push_back({task, request});
  return jobs;
}

/// HeadTotals' number of a segment.
int64_t segment_number(int64_t name) { return name == SegmentMass::kText ? 0 : name + 1; }

/// Rows of blocks become maps.
class PoolSink : public ReductionSink {
 public:
  PoolSink(std::span<const HeadTask> tasks, int64_t block) : block_(block) {
    for (const HeadTask& task : tasks) {
      PooledMap map{block,
                    block,
                    task.rows.begin,
                    task.keys.begin,
                    ceil_div(task.num_rows(), block),
                    ceil_div(task.keys.size(), block),
                    {},
                    {}};
      map.max.resize(static_cast<size_t>(map.rows * map.cols));
      map.mean.resize(map.max.size());
      sizes_.push_back({task.num_rows(), task.keys.size()});
      maps.push_back(std::move(map));
    }
  }

  void block_row(int64_t job, int64_t row, std::span<const float> max,
                 std::span<const double> sum) override {
    PooledMap& map = maps[static_cast<size_t>(job)];
    const auto [rows, cols] = sizes_[static_cast<size_t>(job)];
    const int64_t height = std::min(block_, rows - row * block_);
    for (int64_t c = 0; c < map.cols; ++c) {
      const auto at = static_cast<size_t>(row * map.cols + c);
      const int64_t width = std::min(block_, cols - c * block_);
      map.max[at] = max[static_cast<size_t>(c)];
      map.mean[at] =
          static_cast<float>(sum[static_cast<size_t>(c)] / static_cast<double>(height * width));
    }
  }
  void head(int64_t, const HeadTotals&) override {}

  std::vector<PooledMap> maps;

 private:
  struct Size {
    int64_t rows = 0, cols = 0;
  };
  const int64_t block_;
  std::vector<Size> sizes_;
};

/// Turns the totals of each head into a result.
template <typename Result, typename Make>
class TotalsSink : public ReductionSink {
 public:
  TotalsSink(size_t heads, Make make) : results(heads), make_(std::move(make)) {}
  void head(int64_t job, const HeadTotals& totals) override {
    results[static_cast<size_t>(job)] = make_(static_cast<size_t>(job), totals);
  }
  std::vector<Result> results;

 private:
  Make make_;
};

template <typename Result, typename Make>
std::vector<Result> collect(std::span<const ReductionJob> jobs, ReductionRunner& run, Make make) {
  TotalsSink<Result, Make> sink(jobs.size(), std::move(make));
  run.reduce(jobs, sink);
  if (run.is_plan_only()) return {};
  return std::move(sink.results);
}

SegmentMass segment_mass(const HeadTask& task, const HeadTotals& totals) {
  const TokenGrid& queries = task.problem->query_tokens();
  const TokenGrid& keys = task.problem->key_tokens();
  SegmentMass result{
      mass_segments(queries), mass_segments(keys), {}, {}, queries.has_grid() && queries == keys};
  for (const int64_t query : result.query_segments) {
    result.live_rows.push_back(totals.segment_rows(segment_number(query)));
    for (const int64_t key : result.key_segments) {
      result.mass.push_back(totals.segment_mass(segment_number(query), segment_number(key)));
    }
  }
  return result;
}

OffsetKernel offset_kernel(const HeadTask& task, const HeadTotals& totals) {
  const TokenGrid& grid = task.problem->key_tokens();
  OffsetKernel kernel{grid.frames(), grid.height(), grid.width(), {}};
  int64_t rows = 0;
  for (int64_t t = 0; t < grid.frames(); ++t) rows += totals.segment_rows(segment_number(t));
  for (const double sum : totals.offset_sums()) {
    kernel.mass.push_back(rows == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(rows)));
  }
  return kernel;
}

}  // namespace

int64_t fitting_block(std::span<const HeadTask> tasks, int64_t cells) {
  int64_t longest = 1;
  for (const HeadTask& task : tasks) {
    longest = std::max({longest, task.num_rows(), task.keys.size()});
  }
  int64_t block = 1;
  while (ceil_div(longest, block) > cells) block *= 2;
  return block;
}

std::vector<PooledMap> pooled_maps(std::span<const HeadTask> tasks, int64_t block,
                                   ReductionRunner& run) {
  ReductionRequest request;
  request.block = block;
  int64_t bytes = 0;
  for (const HeadTask& task : tasks) {
    bytes += 8 * ceil_div(task.num_rows(), block) * ceil_div(task.keys.size(), block);
  }
  const MemoryReservation reserved = run.budget().reserve(bytes, "the pooled maps");
  PoolSink sink(run.is_plan_only() ? std::span<const HeadTask>() : tasks, block);
  run.reduce(make_jobs(tasks, request), sink);
  return std::move(sink.maps);
}

std::vector<int64_t> mass_segments(const TokenGrid& tokens) {
  std::vector<int64_t> names;
  const IndexRange text = tokens.text_range();
  const IndexRange video = tokens.video_range();
  const int64_t frames = tokens.has_grid() ? tokens.frames() : video.empty() ? 0 : 1;
  for (int64_t t = 0; t < frames; ++t) names.push_back(t);
  if (!text.empty()) {
    const bool last = text.begin > video.begin;
    names.insert(last ? names.end() : names.begin(), SegmentMass::kText);
  }
  return names;
}

std::vector<SegmentMass> segment_masses(std::span<const HeadTask> tasks, ReductionRunner& run) {
  ReductionRequest request;
  request.rows = true;
  return collect<SegmentMass>(
      make_jobs(tasks, request), run,
      [&](size_t i, const HeadTotals& totals) { return segment_mass(tasks[i], totals); });
}

std::vector<OffsetKernel> offset_kernels(std::span<const HeadTask> tasks, ReductionRunner& run) {
  ReductionRequest request;
  request.rows = request.offsets = true;
  std::vector<ReductionJob> jobs = make_jobs(tasks, request);
  for (ReductionJob& job : jobs) job.task.keys = {0, job.task.problem->num_keys()};
  return collect<OffsetKernel>(jobs, run, [&](size_t i, const HeadTotals& totals) {
    return offset_kernel(tasks[i], totals);
  });
}

std::vector<HeadMetrics> metrics_of_heads(std::span<const HeadTask> tasks, ReductionRunner& run) {
  std::vector<std::vector<int64_t>> share_rows;
  std::vector<ReductionJob> jobs;
  share_rows.reserve(tasks.size());
  for (const HeadTask& task : tasks) {
    share_rows.push_back(sampled_rows(task.problem->num_queries(), kShareRows));
    jobs.push_back({task, metrics_request(*task.problem, share_rows.back())});
  }
  return collect<HeadMetrics>(jobs, run, [&](size_t i, const HeadTotals& totals) {
    return head_metrics(totals, jobs[i].task, jobs[i].request, jobs[i].task.num_rows());
  });
}

}  // namespace attnscope
