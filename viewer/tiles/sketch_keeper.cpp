#include "viewer/tiles/sketch_keeper.h"

#include "viewer/tiles/jobs/sketch_job.h"

namespace attnscope {

SketchKeeper::SketchKeeper(SketchCache cache, Stamps stamps, const TileBackend& backend,
                           int64_t check_bytes, const Reserve& reserve, Answer answer,
                           Failed failed)
    : cache_(std::move(cache)),
      make_stamps_(std::move(stamps)),
      backend_(backend),
      scratch_(backend, check_bytes, reserve),
      answer_(std::move(answer)),
      failed_(std::move(failed)),
      thread_([this](const Request& request, const std::stop_token&) { serve(request); },
              [this](const Request& request, const std::string& problem) {
                failed_(problem);
                // Who waits for it computes it.
                if (request.sketches.empty()) answer_(request.source, {});
              }) {}

const std::string& SketchKeeper::stamp(int64_t call) {
  const auto place = static_cast<size_t>(call);
  if (place >= stamps_.size()) stamps_ = make_stamps_();
  return stamps_.at(place);
}

void SketchKeeper::serve(const Request& request) {
  const Source& source = request.source;
  const std::string key =
      SketchCache::key(stamp(source.call), backend_.name_for(*source.problem), source.batch);
  if (request.sketches.empty()) {
    answer_(source, found(source, key));
    return;
  }
  const auto problem = cache_.store(key, request.sketches);
  if (problem) failed_("heads of the atlas could not be kept: " + *problem);
}

SketchKeeper::Sketches SketchKeeper::found(const Source& source, const std::string& key) {
  const AttentionProblem& problem = *source.problem;
  const SketchCells cells = SketchCells::of(problem.num_queries(), problem.num_keys());
  auto sketches = cache_.load(key, cells, problem.num_heads());
  if (!sketches) return {};
  if (agrees(source, *sketches)) return std::move(*sketches);
  failed_("kept heads of the atlas do not belong to this capture, and are computed anew");
  return {};
}

/// A row of cells of one head, which another call has elsewhere, is computed again. In a sketch of
/// all rows no sampled weight is above the largest.
bool SketchKeeper::agrees(const Source& source, const Sketches& sketches) {
  const int64_t turn = source.call * 7 + source.batch;
  const int64_t head = turn % static_cast<int64_t>(sketches.size());
  const HeadSketch& kept = *sketches[static_cast<size_t>(head)];
  const int64_t line = turn % kept.cells.rows();
  const HeadSketch now =
      sampled_line(scratch_, *source.problem, {source.call, source.batch, head}, line);
  scratch_.bind_to(nullptr);
  for (int64_t i = line * kept.cells.cols(); i < (line + 1) * kept.cells.cols(); ++i) {
    const auto at = static_cast<size_t>(i);
    const bool same = now.max[at] == kept.max[at] && now.mean[at] == kept.mean[at];
    if (kept.exact ? now.max[at] > kept.max[at] : !same) return false;
  }
  return true;
}

}  // namespace attnscope
