#include "core/patterns/mask_measurement.h"

#include <algorithm>
#include <memory>

#include "core/base/error.h"
#include "core/problem/sampled_rows.h"
#include "core/stream/row_stream.h"
#include "core/stream/streaming_engine.h"

namespace attnscope {
namespace {

constexpr int64_t kMostTileRows = 64;

MaskRecall::Wanted wanted_detail(const AttentionProblem& problem, const MaskMeasurement& how) {
  return {true, how.outputs && static_cast<bool>(problem.v())};
}

/// Streams the task's rows through a probe; `progress` gets the share of it that is done.
std::unique_ptr<MaskRecall> probe_rows(const HeadTask& task, std::span<const Mask> masks,
                                       MaskRecall::Wanted wanted, const MaskMeasurement& how,
                                       const std::function<void(double)>& progress) {
  const int workers = how.backend.workers();
  const int64_t kept = MaskRecall::bytes(task, masks.size(), wanted, kMostTileRows, workers);
  const RowStream stream = plan_row_stream({&task, 1}, how.backend, how.budget, kept);
  auto probe =
      std::make_unique<MaskRecall>(task, masks, wanted, stream.request, workers, how.budget);
  StreamControl control;
  control.stop = how.stop;
  control.progress = [&](const StreamProgress& p) {
    progress(static_cast<double>(p.tiles_done) / static_cast<double>(p.tiles_total));
  };
  StreamingEngine engine(how.backend, how.budget);
  if (!engine.run({&task, 1}, stream.plan, *probe, control)) {
    throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
  }
  return probe;
}

}  // namespace

std::vector<MaskQuality> measure_masks(const HeadTask& head, std::span<const Mask> masks,
                                       const MaskMeasurement& how,
                                       const std::function<void(double)>& progress) {
  const AttentionProblem& problem = *head.problem;
  const MaskRecall::Wanted detail = wanted_detail(problem, how);
  const std::vector<int64_t> some =
      sampled_rows(problem.num_queries(), MaskMeasurement::kSampledRows);
  const auto total = static_cast<double>(problem.num_queries());
  const bool all_rows = how.exact || static_cast<int64_t>(some.size()) == problem.num_queries();
  const double share = all_rows ? 1 : total / (total + static_cast<double>(some.size()));
  const auto tell = [&](double done) {
    if (progress) progress(done);
  };
  const auto all = probe_rows(head, masks, all_rows ? detail : MaskRecall::Wanted(), how,
                              [&](double done) { tell(done * share); });
  std::unique_ptr<MaskRecall> sampled;
  if (!all_rows) {
    HeadTask task = head;
    task.row_list = some;
    sampled = probe_rows(task, masks, detail, how,
                         [&](double done) { tell(share + done * (1 - share)); });
  }
  std::vector<MaskQuality> qualities;
  for (size_t m = 0; m < masks.size(); ++m) {
    qualities.push_back(
        summarise_mask(*all, sampled ? *sampled : *all, m, problem.num_keys(), detail.values));
  }
  return qualities;
}

int64_t least_measurement_bytes(const HeadTask& head, size_t masks, const MaskMeasurement& how) {
  const auto least = [&](const HeadTask& task, MaskRecall::Wanted wanted) {
    const int64_t kept =
        MaskRecall::bytes(task, masks, wanted, kMostTileRows, how.backend.workers());
    return least_row_stream_bytes({&task, 1}, how.backend, kept);
  };
  const MaskRecall::Wanted detail = wanted_detail(*head.problem, how);
  const std::vector<int64_t> some =
      sampled_rows(head.problem->num_queries(), MaskMeasurement::kSampledRows);
  if (how.exact || std::ssize(some) == head.problem->num_queries()) return least(head, detail);
  const MaskRecall::Wanted recall;
  HeadTask sample = head;
  sample.row_list = some;
  // The results of all rows stay in memory while the sampled rows are streamed.
  const int64_t results =
      MaskRecall::bytes(head, masks, recall, kMostTileRows, how.backend.workers());
  return std::max(least(head, recall), results + least(sample, detail));
}

std::vector<MaskQuality> sample_masks(const HeadTask& head, std::span<const Mask> masks,
                                      const MaskMeasurement& how) {
  const AttentionProblem& problem = *head.problem;
  const MaskRecall::Wanted detail = wanted_detail(problem, how);
  const std::vector<int64_t> some =
      sampled_rows(problem.num_queries(), MaskMeasurement::kSampledRows);
  HeadTask task = head;
  task.row_list = some;
  const auto sampled = probe_rows(task, masks, detail, how, [](double) {});
  std::vector<MaskQuality> qualities;
  for (size_t m = 0; m < masks.size(); ++m) {
    qualities.push_back(summarise_mask(*sampled, *sampled, m, problem.num_keys(), detail.values));
  }
  return qualities;
}

}  // namespace attnscope
