#include "core/patterns/mask_measurement.h"

#include <algorithm>
#include <memory>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/mask_cover.h"
#include "core/problem/sampled_rows.h"
#include "core/stream/row_stream.h"
#include "core/stream/streaming_engine.h"

namespace attnscope {
namespace {

MaskRecall::Wanted wanted_detail(const AttentionProblem& problem, const MaskMeasurement& how) {
  return {.oracle = true,
          .values = how.outputs && static_cast<bool>(problem.v()),
          .best_blocks = how.best_blocks && how.exact};
}

/// Streams the task's rows through a probe; `progress` gets the share of it that is done.
std::unique_ptr<MaskRecall> probe_rows(const HeadTask& task, std::span<const Mask> masks,
                                       MaskRecall::Wanted wanted, const MaskMeasurement& how,
                                       const std::function<void(double)>& progress) {
  const int workers = how.backend.workers();
  const int64_t kept = MaskRecall::bytes(task, masks, wanted, MaskMeasurement::kTileRows, workers);
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
  const bool all_rows = how.exact || std::ssize(some) == problem.num_queries();
  const double share = all_rows            ? 1
                       : how.sampled_alone ? 0
                                           : total / (total + static_cast<double>(some.size()));
  const auto tell = [&](double done) {
    if (progress) progress(done);
  };
  std::unique_ptr<MaskRecall> all, sampled;
  if (all_rows || !how.sampled_alone) {
    all = probe_rows(head, masks, all_rows ? detail : MaskRecall::Wanted(), how,
                     [&](double done) { tell(done * share); });
  }
  HeadTask sample = head;
  sample.row_list = some;
  if (!all_rows) {
    sampled = probe_rows(sample, masks, detail, how,
                         [&](double done) { tell(share + done * (1 - share)); });
  }
  std::vector<MaskQuality> qualities;
  for (size_t m = 0; m < masks.size(); ++m) {
    qualities.push_back(summarise_mask(all ? *all : *sampled, sampled ? *sampled : *all, m,
                                       problem.num_keys(), detail.values));
  }
  return qualities;
}

int64_t least_measurement_bytes(const HeadTask& head, size_t masks, const MaskMeasurement& how) {
  const auto least = [&](const HeadTask& task, MaskRecall::Wanted wanted) {
    const int64_t kept =
        MaskRecall::bytes(task, masks, wanted, MaskMeasurement::kTileRows, how.backend.workers());
    return least_row_stream_bytes({&task, 1}, how.backend, kept);
  };
  const MaskRecall::Wanted detail = wanted_detail(*head.problem, how);
  const std::vector<int64_t> some =
      sampled_rows(head.problem->num_queries(), MaskMeasurement::kSampledRows);
  if (how.exact || std::ssize(some) == head.problem->num_queries()) return least(head, detail);
  const MaskRecall::Wanted recall;
  HeadTask sample = head;
  sample.row_list = some;
  if (how.sampled_alone) return least(sample, detail);
  // The results of all rows stay in memory while the sampled rows are streamed.
  const int64_t results =
      MaskRecall::bytes(head, masks, recall, MaskMeasurement::kTileRows, how.backend.workers());
  return std::max(least(head, recall), results + least(sample, detail));
}

std::vector<MaskQuality> sample_masks(const HeadTask& head, std::span<const Mask> masks,
                                      MaskMeasurement how) {
  how.sampled_alone = true;
  return measure_masks(head, masks, how);
}

std::vector<MaskQuality> measure_edits(const HeadTask& head, std::span<const MeasuredEdit> edits,
                                       MaskMeasurement how,
                                       const std::function<void(double)>& progress) {
  how.best_blocks = how.exact;
  how.sampled_alone = !how.exact;
  std::vector<Mask> masks;
  for (const MeasuredEdit& edit : edits) masks.push_back(edit.mask);
  std::vector<MaskQuality> found = measure_masks(head, masks, how, progress);
  for (size_t m = 0; m < found.size(); ++m) {
    if (!found[m].visited) found[m].visited = visited_blocks(head, masks[m], edits[m].block, how);
  }
  return found;
}

double visited_blocks(const HeadTask& head, const Mask& mask, std::optional<int64_t> block,
                      const MaskMeasurement& how) {
  constexpr int64_t kUsualBlock = 128, kSampledBlocks = 64;
  const int64_t side = block.value_or(kUsualBlock);
  const int64_t queries = head.problem->num_queries(), keys = head.problem->num_keys();
  const int64_t rows = ceil_div(queries, side);
  int64_t kept = 0, all = 0;
  for (const int64_t row : sampled_rows(rows, how.exact ? rows : kSampledBlocks)) {
    if (how.stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const IndexRange range{row * side, std::min((row + 1) * side, queries)};
    const std::vector<uint8_t> found = kept_blocks(mask, head.batch, head.head, range, keys, side);
    kept += std::count(found.begin(), found.end(), uint8_t{1});
    all += std::ssize(found);
  }
  return static_cast<double>(kept) / static_cast<double>(all);
}

}  // namespace attnscope
