#pragma once

#include <memory>

#include "viewer/tiles/jobs/map_job.h"

namespace attnscope {

/// A head's sketch from a sample of its rows, in one piece of some milliseconds. The head is made
/// ready for it alone, so that a whole atlas takes nothing away from the heads that are looked at.
std::shared_ptr<MapJob> make_sketch_job(const HeadId& id);
/// Computes that sketch, and leaves the scratch bound to the head. Throws Error(value) where q or k
/// are not finite.
HeadSketch sampled_sketch(WorkerScratch& scratch, const AttentionProblem& problem,
                          const HeadId& id);
/// Row `line` of the cells of that sketch alone, which a row or two of the head suffice for.
HeadSketch sampled_line(WorkerScratch& scratch, const AttentionProblem& problem, const HeadId& id,
                        int64_t line);
/// From all of its rows, panel by panel: with the numbers of `stats`.
std::shared_ptr<MapJob> make_exact_sketch_job(const HeadId& id);

}  // namespace attnscope
